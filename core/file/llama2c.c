/* SPDX-License-Identifier: MIT
 * The llama2.c v0 checkpoint: seven int32, then f32 tensors in a fixed order. It has no magic and no names, so it is
 * recognised by its size alone, and it gets the names and metadata of a GGUF file of arch "llama". Its query and key rows
 * are already in the adjacent-pair order of that arch. Two rotary tables in it are skipped: they are computed. */
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/format.h"
#include "core/file/gguf_write.h"

enum { HEADER_INTS = 7, HEADER_BYTES = 4 * HEADER_INTS, MOST = 1 << 24 };

typedef struct header {
    int32_t dim, hidden, layers, heads, kv_heads, vocab, context;
    bool tied;
} header;

static bool read_header(const uint8_t *base, size_t bytes, header *h)
{
    int32_t v[HEADER_INTS];
    if (bytes < HEADER_BYTES) return false;
    memcpy(v, base, sizeof v);
    for (int i = 0; i < HEADER_INTS; i++)
        if (v[i] == 0 || v[i] > MOST || v[i] < (i == 5 ? -MOST : 1)) return false;
    *h = (header){ .dim = v[0],
                   .hidden = v[1],
                   .layers = v[2],
                   .heads = v[3],
                   .kv_heads = v[4],
                   .vocab = v[5] < 0 ? -v[5] : v[5],
                   .context = v[6],
                   .tied = v[5] > 0 };
    return h->dim % h->heads == 0 && h->heads % h->kv_heads == 0 && h->dim / h->heads % 2 == 0;
}

/* ---- tensors in file order --------------------------------------------------------------------------------------- */

typedef struct part {
    const char *name; /* NULL: not a tensor (rotary table) */
    int64_t in, out;  /* out 0: a vector */
    int copies;
    bool per_layer; /* the name follows "blk.N." */
} part;

enum { PARTS = 14 };

static void list_parts(const header *h, part p[PARTS])
{
    const int64_t d = h->dim, f = h->hidden, half = h->dim / h->heads / 2, kv = d / h->heads * h->kv_heads;
    const int L = h->layers;
    const part all[PARTS] = {
        { "token_embd.weight", d, h->vocab, 1, false },
        { "attn_norm.weight", d, 0, L, true },
        { "attn_q.weight", d, d, L, true },
        { "attn_k.weight", d, kv, L, true },
        { "attn_v.weight", d, kv, L, true },
        { "attn_output.weight", d, d, L, true },
        { "ffn_norm.weight", d, 0, L, true },
        { "ffn_gate.weight", d, f, L, true },
        { "ffn_down.weight", f, d, L, true },
        { "ffn_up.weight", d, f, L, true },
        { "output_norm.weight", d, 0, 1, false },
        { NULL, half, h->context, 1, false }, /* cosines */
        { NULL, half, h->context, 1, false }, /* sines */
        { "output.weight", d, h->vocab, h->tied ? 0 : 1, false },
    };
    memcpy(p, all, sizeof all);
}

static bool part_bytes(const part *p, size_t *one, size_t *all)
{
    return wg_size_mul((size_t)p->in, p->out ? (size_t)p->out : 1, one) && wg_size_mul(*one, sizeof(float), one) &&
           wg_size_mul(*one, (size_t)p->copies, all);
}

bool wg_llama2c_fits(const uint8_t *base, size_t bytes)
{
    header h;
    part p[PARTS];
    size_t total = HEADER_BYTES, one, all;
    if (!read_header(base, bytes, &h)) return false;
    list_parts(&h, p);
    for (int i = 0; i < PARTS; i++)
        if (!part_bytes(&p[i], &one, &all) || !wg_size_add(total, all, &total)) return false;
    return total == bytes;
}

/* The size was checked, so everything below lies inside the file. */
static wg_status add_tensors(wg_weights *w, const header *h, wg_error *err)
{
    part p[PARTS];
    size_t at = HEADER_BYTES, one = 0, all = 0;
    list_parts(h, p);
    for (int i = 0; i < PARTS; i++) {
        (void)part_bytes(&p[i], &one, &all);
        for (int c = 0; c < p[i].copies; c++, at += one) {
            if (!p[i].name) continue;
            char name[64];
            if (p[i].per_layer) snprintf(name, sizeof name, "blk.%d.%s", c, p[i].name);
            else snprintf(name, sizeof name, "%s", p[i].name);
            wg_tensor *t = wg_weights_add_tensor(w, wg_strdup(name));
            if (!t) return wg_nomem(err, sizeof *t, "the tensor list");
            t->type = WG_F32;
            t->n_dims = p[i].out ? 2 : 1;
            t->dim[0] = p[i].in;
            t->dim[1] = p[i].out ? p[i].out : 1;
            t->bytes = one;
            t->data = w->base + at;
        }
    }
    return WG_OK;
}

/* ---- metadata a GGUF file would have ------------------------------------------------------------------------------ */

enum { BLOB = 512 };

static wg_status add_value(wg_weights *w, size_t *fill, const char *key, int type, const void *value, size_t n, wg_error *err)
{
    wg_assert(*fill + n <= BLOB);
    wg_meta *m = wg_weights_add_meta(w, wg_strdup(key));
    if (!m) return wg_nomem(err, sizeof *m, "metadata");
    memcpy(w->blob + *fill, value, n);
    m->type = type;
    m->value = w->blob + *fill;
    m->bytes = n;
    *fill += n;
    return WG_OK;
}

static wg_status add_metadata(wg_weights *w, const header *h, wg_error *err)
{
    const struct {
        const char *key;
        int type;
        uint32_t u;
        float f;
    } row[] = {
        { "general.file_type", GGUF_U32, 0, 0 },
        { "llama.context_length", GGUF_U32, (uint32_t)h->context, 0 },
        { "llama.embedding_length", GGUF_U32, (uint32_t)h->dim, 0 },
        { "llama.block_count", GGUF_U32, (uint32_t)h->layers, 0 },
        { "llama.feed_forward_length", GGUF_U32, (uint32_t)h->hidden, 0 },
        { "llama.attention.head_count", GGUF_U32, (uint32_t)h->heads, 0 },
        { "llama.attention.head_count_kv", GGUF_U32, (uint32_t)h->kv_heads, 0 },
        { "llama.attention.layer_norm_rms_epsilon", GGUF_F32, 0, 1e-5f },
        { "llama.rope.dimension_count", GGUF_U32, (uint32_t)(h->dim / h->heads), 0 },
        { "llama.rope.freq_base", GGUF_F32, 0, 10000.0f },
        { "llama.vocab_size", GGUF_U32, (uint32_t)h->vocab, 0 },
    };
    const char *slash = strrchr(w->path, '/'), *name = slash ? slash + 1 : w->path;
    size_t fill = 0, n = strcspn(name, ".");
    if (n > 63) n = 63;
    w->blob = wg_alloc(BLOB, 1);
    if (!w->blob) return wg_nomem(err, BLOB, "metadata");
    WG_TRY(add_value(w, &fill, "general.architecture", GGUF_STRING, "llama", 5, err));
    WG_TRY(add_value(w, &fill, "general.name", GGUF_STRING, name, n, err));
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        WG_TRY(add_value(w, &fill, row[i].key, row[i].type, row[i].type == GGUF_F32 ? (const void *)&row[i].f : &row[i].u, 4,
                         err));
    return WG_OK;
}

wg_status wg_llama2c_read(wg_weights *w, wg_error *err)
{
    header h;
    const bool ok = read_header(w->base, w->bytes, &h);
    wg_assert(ok); /* checked by wg_llama2c_fits */
    snprintf(w->format, sizeof w->format, "llama2.c v0");
    WG_TRY(add_metadata(w, &h, err));
    return add_tensors(w, &h, err);
}

/* ---- tokenizer.bin as GGUF metadata: u32 longest token, then per token f32 score, u32 length, bytes. It holds an
 * SPM vocabulary whose U+2581 was replaced by a space and whose <s> and </s> stand between newlines; both are undone here.
 * It does not hold kinds: ids 0, 1, 2 are <unk>, <s>, </s> and "<0xNN>" is a byte, as in every SPM model it came from. */

enum { SPACE_BYTES = 3, UNKNOWN = 0, BOS = 1, EOS = 2 };
enum { KIND_NORMAL = 1, KIND_UNKNOWN = 2, KIND_CONTROL = 3, KIND_BYTE = 6 };

typedef struct vocab {
    wg_text *text;
    float *score;
    int32_t *kind;
    char *bytes; /* the bytes that `text` points into */
} vocab;

static bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); }

static int32_t kind_of(int64_t id, const char *s, size_t n)
{
    if (id == UNKNOWN) return KIND_UNKNOWN;
    if (id == BOS || id == EOS) return KIND_CONTROL;
    return n == 6 && memcmp(s, "<0x", 3) == 0 && is_hex(s[3]) && is_hex(s[4]) && s[5] == '>' ? KIND_BYTE : KIND_NORMAL;
}

/* Token text with its spaces restored; returns the bytes written. */
static size_t restore(int64_t id, const char *s, size_t n, char *dst)
{
    if ((id == BOS || id == EOS) && n >= 2 && s[0] == '\n' && s[n - 1] == '\n') s++, n -= 2;
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == ' ') memcpy(dst + k, "\xe2\x96\x81", SPACE_BYTES), k += SPACE_BYTES;
        else dst[k++] = s[i];
    }
    return k;
}

static wg_status truncated(const char *path, size_t at, int64_t id, int64_t n, wg_error *err)
{
    return wg_fail(err, WG_EFORMAT,
                   "%s: byte %zu: the file ends inside token %lld of %lld; expected a llama2.c tokenizer.bin with as many "
                   "tokens as the model: is it the tokenizer of another model, or truncated?",
                   path, at, (long long)id, (long long)n);
}

static wg_status parse(const char *path, const char *p, size_t n, int64_t count, vocab *v, wg_error *err)
{
    size_t at = 4, fill = 0;
    for (int64_t id = 0; id < count; id++) {
        uint32_t len;
        if (n < 8 || at > n - 8) return truncated(path, at, id, count, err);
        memcpy(&v->score[id], p + at, 4);
        memcpy(&len, p + at + 4, 4);
        at += 8;
        if (len > n - at) return truncated(path, at, id, count, err);
        const size_t k = restore(id, p + at, len, v->bytes + fill);
        v->text[id] = (wg_text){ v->bytes + fill, k };
        v->kind[id] = kind_of(id, p + at, len);
        fill += k;
        at += len;
    }
    if (at != n)
        return wg_fail(err, WG_EFORMAT,
                       "%s: byte %zu: %zu bytes follow the last of %lld tokens; it is the tokenizer of a model with another "
                       "vocabulary",
                       path, at, n - at, (long long)count);
    return WG_OK;
}

static void set(wg_gguf_writer *g, const vocab *v, size_t n)
{
    wg_gguf_set_string(g, "tokenizer.ggml.model", "llama", 5);
    wg_gguf_set_strings(g, "tokenizer.ggml.tokens", v->text, n);
    wg_gguf_set_f32s(g, "tokenizer.ggml.scores", v->score, n);
    wg_gguf_set_i32s(g, "tokenizer.ggml.token_type", v->kind, n);
    wg_gguf_set_u32(g, "tokenizer.ggml.bos_token_id", BOS);
    wg_gguf_set_u32(g, "tokenizer.ggml.eos_token_id", EOS);
    wg_gguf_set_u32(g, "tokenizer.ggml.unknown_token_id", UNKNOWN);
    wg_gguf_set_bool(g, "tokenizer.ggml.add_bos_token", true);
    wg_gguf_set_bool(g, "tokenizer.ggml.add_eos_token", false);
    wg_gguf_set_bool(g, "tokenizer.ggml.add_space_prefix", true);
}

wg_status wg_llama2c_tokenizer(wg_gguf_writer *g, const char *name, const char *bytes, size_t n, int64_t count, wg_error *err)
{
    if (count < 3 || (uint64_t)count > n / 8)
        return wg_fail(err, WG_EFORMAT,
                       "%s: %zu bytes cannot hold the %lld tokens of the model; expected a llama2.c tokenizer.bin", name, n,
                       (long long)count);
    vocab v = {
        .text = wg_calloc((size_t)count, sizeof *v.text),
        .score = wg_calloc((size_t)count, sizeof *v.score),
        .kind = wg_calloc((size_t)count, sizeof *v.kind),
        .bytes = wg_alloc(n, SPACE_BYTES),
    };
    const bool ok = v.text && v.score && v.kind && v.bytes;
    wg_status s = ok ? parse(name, bytes, n, count, &v, err) : wg_nomem(err, n * SPACE_BYTES, "a vocabulary");
    if (s == WG_OK) set(g, &v, (size_t)count);
    wg_free(v.text);
    wg_free(v.score);
    wg_free(v.kind);
    wg_free(v.bytes);
    return s;
}
