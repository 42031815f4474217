/* SPDX-License-Identifier: MIT
 * Reading and writing token files, and the windows of a run (tokens.h). */
#include "draft/train/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/save.h"
#include "kernels/philox.h"

#define MAGIC "WAGERTK\n"
enum { VERSION = 1, PROMPTS = 2 }; /* versions: PROMPTS has those of documents too */

/* The header of the file; the first token of each of the `documents` documents (u64), in version 2 the number of tokens of each
 * one's prompt (u64), and the ids follow. */
typedef struct header {
    char magic[8];
    uint32_t version, vocab, width, zero; /* width: bytes of an id, 2 or 4 */
    uint64_t tokens, documents;
    char digest[64];
    uint8_t rest[16];
    uint64_t check; /* FNV-1a of the bytes before */
} header;
_Static_assert(sizeof(header) == 128, "the file's header");

struct wg_tokens {
    char *path;
    void *map;
    size_t bytes, tokens, documents;
    int width;
    const uint64_t *start, *prompt; /* (documents); prompt NULL: none */
    const void *id;
};

static uint64_t check_of(const header *h) { return wg_hash64(WG_HASH_START, h, sizeof *h - sizeof h->check); }

static wg_status damaged(const wg_tokens *t, const char *what, wg_error *err)
{
    return wg_fail(err, WG_EFORMAT,
                   "%s: %s; expected a token file of version %d or %d, such as `wager train` writes from a text", t->path, what,
                   VERSION, PROMPTS);
}

static wg_status view(wg_tokens *t, const char *digest, wg_error *err)
{
    header h;
    size_t ids = 0, starts = 0, all = sizeof h;
    if (t->bytes < sizeof h) return damaged(t, "no header", err);
    memcpy(&h, t->map, sizeof h);
    if (memcmp(h.magic, MAGIC, sizeof h.magic) != 0) return damaged(t, "another format", err);
    const size_t lists = h.version == PROMPTS ? 2 : 1;
    if (h.version < VERSION || h.version > PROMPTS || h.check != check_of(&h) || (h.width != 2 && h.width != 4))
        return damaged(t, "a damaged header, or another version", err);
    if (h.documents == 0) return damaged(t, "no documents", err);
    if (!wg_size_mul(h.tokens, h.width, &ids) || !wg_size_mul(h.documents, lists * sizeof(uint64_t), &starts) ||
        !wg_size_add(all, ids, &all) || !wg_size_add(all, starts, &all) || all != t->bytes)
        return damaged(t, "the size differs from that of its header", err);
    t->start = (const uint64_t *)((const char *)t->map + sizeof h);
    for (uint64_t i = 0; i < h.documents; i++)
        if (t->start[i] >= h.tokens || (i == 0 ? t->start[i] != 0 : t->start[i] <= t->start[i - 1]))
            return damaged(t, "documents that are not in order", err);
    t->prompt = lists == 2 ? t->start + h.documents : NULL;
    for (uint64_t i = 0; t->prompt && i < h.documents; i++)
        if (t->prompt[i] > (i + 1 < h.documents ? t->start[i + 1] : h.tokens) - t->start[i])
            return damaged(t, "a prompt that is longer than its document", err);
    if (digest && memcmp(h.digest, digest, sizeof h.digest) != 0)
        return wg_fail(err, WG_EVOCAB,
                       "%s: written with another tokenizer (digest %.12s, expected %.12s); write it again from the text",
                       t->path, h.digest, digest);
    t->id = (const char *)t->map + sizeof h + starts;
    t->tokens = h.tokens, t->documents = h.documents, t->width = (int)h.width;
    return WG_OK;
}

wg_status wg_tokens_open(wg_tokens **out, const char *path, const char *digest, wg_error *err)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return wg_fail(err, errno == ENOENT ? WG_ENOENT : WG_EIO, "%s: cannot open the token file: %s", path, strerror(errno));
    wg_tokens *t = wg_calloc(1, sizeof *t);
    if (t) t->path = wg_strdup(path);
    if (t && fstat(fd, &st) == 0 && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) t->map = p, t->bytes = (size_t)st.st_size;
    }
    close(fd);
    if (!t || !t->path) {
        wg_tokens_close(t);
        return wg_nomem(err, sizeof *t, "a token file");
    }
    const wg_status s = view(t, digest, err);
    if (s) wg_tokens_close(t);
    else *out = t;
    return s;
}

void wg_tokens_close(wg_tokens *t)
{
    if (!t) return;
    if (t->map) munmap(t->map, t->bytes);
    wg_free(t->path);
    wg_free(t);
}

size_t wg_tokens_count(const wg_tokens *t) { return t->tokens; }
size_t wg_tokens_documents(const wg_tokens *t) { return t->documents; }
const char *wg_tokens_path(const wg_tokens *t) { return t->path; }

int32_t wg_tokens_id(const wg_tokens *t, size_t at)
{
    if (t->width == 2) return ((const uint16_t *)t->id)[at];
    return (int32_t)((const uint32_t *)t->id)[at];
}

void wg_tokens_document(const wg_tokens *t, size_t i, size_t *first, size_t *n)
{
    *first = t->start[i];
    *n = (i + 1 < t->documents ? t->start[i + 1] : t->tokens) - t->start[i];
}

bool wg_tokens_has_prompts(const wg_tokens *t) { return t->prompt; }
size_t wg_tokens_prompt(const wg_tokens *t, size_t i) { return t->prompt ? t->prompt[i] : 0; }

static wg_status write_ids(wg_save *s, int width, const int32_t *id, size_t n, wg_error *err)
{
    uint16_t part[4096];
    if (width == 4) return wg_save_write(s, id, n * sizeof *id, err);
    for (size_t at = 0; at < n;) {
        size_t m = 0;
        for (; m < sizeof part / sizeof *part && at < n; m++) part[m] = (uint16_t)id[at++];
        WG_TRY(wg_save_write(s, part, m * sizeof *part, err));
    }
    return WG_OK;
}

wg_status wg_tokens_write(const char *path, const wg_tokenizer *tokenizer, const int32_t *id, size_t n, const uint64_t *start,
                          const uint64_t *prompt, size_t documents, wg_error *err)
{
    char hex[WG_SHA256_HEX];
    const int vocab = wg_tokenizer_size(tokenizer);
    header h = { .magic = MAGIC,
                 .version = prompt ? PROMPTS : VERSION,
                 .vocab = (uint32_t)vocab,
                 .width = vocab <= 1 << 16 ? 2 : 4,
                 .tokens = n,
                 .documents = documents };
    wg_tokenizer_digest(tokenizer, hex);
    memcpy(h.digest, hex, sizeof h.digest);
    h.check = check_of(&h);
    wg_save *f;
    WG_TRY(wg_save_open(&f, path, err));
    wg_status s = wg_save_write(f, &h, sizeof h, err);
    if (!s) s = wg_save_write(f, start, documents * sizeof *start, err);
    if (!s && prompt) s = wg_save_write(f, prompt, documents * sizeof *prompt, err);
    if (!s) s = write_ids(f, (int)h.width, id, n, err);
    if (!s) return wg_save_commit(f, err);
    wg_save_abort(f);
    return s;
}

/* ---- windows -------------------------------------------------------------------------------------------------------- */

enum { ORDER = 1, GRID, BEGIN }; /* purposes of draws */

static double draw(const wg_windows *w, uint64_t index, uint64_t epoch, uint32_t what)
{
    const wg_philox p = wg_philox_at(w->seed, (uint32_t)index, (uint32_t)epoch, what, (uint32_t)(epoch >> 32));
    return wg_philox_double(p.v[0], p.v[1]);
}

/* Makes the epoch's order of windows (Fisher and Yates). */
static void shuffle(wg_windows *w, uint64_t epoch)
{
    for (size_t i = 0; i < w->count; i++) w->order[i] = (uint32_t)i;
    for (size_t i = w->count; i-- > 1;) {
        const size_t k = (size_t)(draw(w, i, epoch, ORDER) * (double)(i + 1));
        const uint32_t t = w->order[i];
        w->order[i] = w->order[k];
        w->order[k] = t;
    }
    w->epoch = epoch;
}

wg_status wg_windows_open(wg_windows *w, wg_error *err)
{
    const size_t n = w->tokens->tokens, length = (size_t)w->length;
    if (n < length + 1)
        return wg_fail(err, WG_EINVAL, "%s: %zu tokens: a sequence of %d needs %zu; lower the length or add text",
                       w->tokens->path, n, w->length, length + 1);
    w->count = (n - 1) / length;
    if (w->count > UINT32_MAX) w->count = UINT32_MAX;
    w->order = wg_alloc(w->count, sizeof *w->order);
    if (!w->order) return wg_nomem(err, w->count * sizeof *w->order, "the order of sequences");
    shuffle(w, 0);
    return WG_OK;
}

void wg_windows_close(wg_windows *w)
{
    wg_free(w->order);
    w->order = NULL;
}

/* The number of the document that token i belongs to; 0 for a file without documents. */
static size_t document_of(const wg_tokens *t, size_t i)
{
    size_t lo = 0, hi = t->documents;
    while (hi - lo > 1) {
        const size_t mid = lo + (hi - lo) / 2;
        if (t->start[mid] <= i) lo = mid;
        else hi = mid;
    }
    return lo;
}

static wg_status cut(const wg_windows *w, size_t first, const wg_window_out *out, wg_error *err)
{
    const wg_tokens *t = w->tokens;
    size_t document = document_of(t, first);
    int32_t start = 0;
    for (int i = 0; i < w->length; i++) {
        const size_t at = first + (size_t)i;
        /* the next token begins a document */
        const bool ends = document + 1 < t->documents && t->start[document + 1] == at + 1;
        const bool asked = t->prompt && at + 1 - t->start[document] < t->prompt[document]; /* so is the next token */
        out->token[i] = wg_tokens_id(t, at);
        out->target[i] = ends || asked ? -1 : wg_tokens_id(t, at + 1);
        out->start[i] = start;
        out->position[i] = i - start;
        if (out->token[i] < 0 || out->token[i] >= w->vocab || out->target[i] < -1 || out->target[i] >= w->vocab)
            return wg_fail(err, WG_EFORMAT, "%s: token %zu has id %d: the vocabulary has %d tokens", t->path, at,
                           out->token[i] < 0 || out->token[i] >= w->vocab ? out->token[i] : out->target[i], w->vocab);
        if (!ends) continue;
        start = i + 1;
        document++;
    }
    return WG_OK;
}

size_t wg_windows_first(wg_windows *w, uint64_t n)
{
    const size_t slack = w->tokens->tokens - 1 - w->count * (size_t)w->length;
    const uint64_t epoch = n / w->count;
    if (epoch != w->epoch) shuffle(w, epoch);
    const size_t grid = (size_t)(draw(w, 0, epoch, GRID) * (double)(slack + 1));
    return grid + (size_t)w->order[n % w->count] * (size_t)w->length;
}

wg_status wg_windows_get(wg_windows *w, uint64_t n, bool straight, const wg_window_out *out, wg_error *err)
{
    if (straight) return cut(w, (size_t)n * (size_t)w->length, out, err);
    WG_TRY(cut(w, wg_windows_first(w, n), out, err));
    const uint64_t epoch = n / w->count;
    if (w->bos >= 0 && draw(w, n % w->count, epoch, BEGIN) < w->bos_share) out->token[0] = w->bos;
    return WG_OK;
}
