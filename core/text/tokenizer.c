/* SPDX-License-Identifier: MIT
 * The tokenizer's public functions: opening (one block holds everything), special tokens in raw text, decoding, streaming.
 * The two algorithms are in spm.c and bpe.c.
 *
 * In raw text, user-defined tokens are always found, control and unknown ones only when the caller allows `special`; the
 * longest wins. In "llama" files every stretch of text after such a token gets its own prefix space, as in llama.cpp. */
#include "core/text/tokenizer.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/text/bpe.h"
#include "core/text/metadata.h"
#include "core/text/spm.h"
#include "core/text/unicode.h"

enum { TEXT_MAX = 256 << 20, STREAM_MIN = 512 };

struct wg_tokenizer {
    bool is_bpe; /* "gpt2", else "llama" */
    wg_vocab v;
    wg_spm spm;
    wg_bpe bpe;
    int32_t bos, eos, eot, eom;
    bool add_bos;
};

static wg_status read_kind(wg_tokenizer *t, const wg_weights *w, wg_error *err)
{
    char quoted[80];
    wg_text kind;
    WG_TRY(wg_key_string(w, WG_KEY("model"), &kind, err));
    t->is_bpe = kind.n == 4 && memcmp(kind.s, "gpt2", 4) == 0;
    if (t->is_bpe || (kind.n == 5 && memcmp(kind.s, "llama", 5) == 0)) return WG_OK;
    return wg_fail(err, WG_EUNSUPPORTED,
                   "%s: %s is %s, which is not implemented; there are: llama (SPM-style BPE), gpt2 (byte-level BPE)",
                   wg_weights_path(w), WG_KEY("model"), wg_vocab_quote(kind, quoted, sizeof quoted));
}

static wg_status read_flags(wg_tokenizer *t, const wg_weights *w, wg_error *err)
{
    const int n = t->v.n;
    t->bos = t->eos = t->eot = t->eom = -1;
    WG_TRY(wg_key_id(w, WG_KEY("bos_token_id"), n, &t->bos, err));
    WG_TRY(wg_key_id(w, WG_KEY("eos_token_id"), n, &t->eos, err));
    WG_TRY(wg_key_id(w, WG_KEY("eot_token_id"), n, &t->eot, err));
    WG_TRY(wg_key_id(w, WG_KEY("eom_token_id"), n, &t->eom, err));
    t->add_bos = t->bos >= 0 && (t->is_bpe ? t->bpe.pretok->add_bos : true);
    WG_TRY(wg_key_bool(w, WG_KEY("add_bos_token"), &t->add_bos, err));
    if (t->add_bos && t->bos < 0)
        return wg_fail(err, WG_EMODEL, "%s: %s is true, but %s is missing; add the id or clear the flag", wg_weights_path(w),
                       WG_KEY("add_bos_token"), WG_KEY("bos_token_id"));
    t->spm.prefix = !t->is_bpe;
    return wg_key_bool(w, WG_KEY("add_space_prefix"), &t->spm.prefix, err);
}

/* Checks everything that needs no memory. */
static wg_status count(wg_tokenizer *t, const wg_weights *w, wg_error *err)
{
    WG_TRY(read_kind(t, w, err));
    WG_TRY(wg_vocab_count(&t->v, w, !t->is_bpe, err));
    if (t->is_bpe) WG_TRY(wg_bpe_count(&t->bpe, w, err));
    return read_flags(t, w, err);
}

static void carve(wg_tokenizer *t, char *base, size_t *used)
{
    wg_carve(base, used, 1, sizeof *t);
    wg_vocab_carve(&t->v, base, used);
    if (t->is_bpe) wg_bpe_carve(&t->bpe, base, used);
}

static wg_status fill(wg_tokenizer *t, const wg_weights *w, wg_error *err)
{
    WG_TRY(wg_vocab_fill(&t->v, w, err));
    WG_TRY(t->is_bpe ? wg_bpe_fill(&t->bpe, &t->v, w, err) : wg_spm_fill(&t->spm, &t->v, w, err));
    for (int32_t i = 0; i < t->v.n; i++) {
        const size_t n = wg_tokenizer_decode_one(t, i, false, false, NULL, 0);
        if (n > WG_TOKEN_BYTES)
            return wg_fail(err, WG_EMODEL,
                           "%s: token %d stands for %zu bytes, at most %d are supported; take another "
                           "tokenizer",
                           wg_weights_path(w), i, n, WG_TOKEN_BYTES);
    }
    return WG_OK;
}

wg_status wg_tokenizer_open(wg_tokenizer **out, const wg_weights *w, wg_error *err)
{
    wg_tokenizer plan = { 0 };
    size_t bytes = 0, used = 0;
    WG_TRY(count(&plan, w, err));
    carve(&plan, NULL, &bytes);
    wg_tokenizer *t = wg_calloc(bytes, 1);
    if (!t) return wg_nomem(err, bytes, "the tokenizer");
    *t = plan;
    carve(t, (char *)t, &used);
    const wg_status s = fill(t, w, err);
    if (s) wg_tokenizer_close(t);
    else *out = t;
    return s;
}

void wg_tokenizer_close(wg_tokenizer *t) { wg_free(t); }

/* ---- questions */

static bool known(const wg_tokenizer *t, int32_t id) { return id >= 0 && id < t->v.n; }

const char *wg_tokenizer_kind(const wg_tokenizer *t) { return t->is_bpe ? "gpt2" : "llama"; }
int wg_tokenizer_size(const wg_tokenizer *t) { return t->v.n; }
int wg_tokenizer_bos(const wg_tokenizer *t) { return t->bos; }
int wg_tokenizer_eos(const wg_tokenizer *t) { return t->eos; }
bool wg_tokenizer_add_bos(const wg_tokenizer *t) { return t->add_bos; }

bool wg_tokenizer_is_control(const wg_tokenizer *t, int32_t id)
{
    return known(t, id) && (t->v.type[id] == WG_TOKEN_CONTROL || t->v.type[id] == WG_TOKEN_UNKNOWN);
}

bool wg_tokenizer_is_unknown(const wg_tokenizer *t, int32_t id)
{
    return known(t, id) && (t->v.type[id] == WG_TOKEN_UNKNOWN || id == t->v.unknown);
}

bool wg_tokenizer_is_eog(const wg_tokenizer *t, int32_t id)
{
    if (!known(t, id)) return false;
    return id == t->eos || id == t->eot || id == t->eom ||
           (t->v.type[id] == WG_TOKEN_CONTROL && wg_vocab_is_end_text(t->v.text[id]));
}

wg_text wg_tokenizer_piece(const wg_tokenizer *t, int32_t id) { return known(t, id) ? t->v.text[id] : (wg_text){ "", 0 }; }

/* ---- encoding */

/* `begins`: the beginning of a stretch of text, which may get a prefix space. */
static wg_status encode_plain(const wg_tokenizer *t, const char *s, size_t n, bool begins, wg_merger *m, wg_ids *out,
                              wg_error *err)
{
    const wg_spm spm = { .prefix = t->spm.prefix && begins, .space_begins = t->spm.space_begins };
    if (n == 0) return WG_OK;
    return t->is_bpe ? wg_bpe_encode(&t->bpe, &t->v, s, n, m, out, err) : wg_spm_encode(&spm, &t->v, s, n, m, out, err);
}

static wg_status encode_all(const wg_tokenizer *t, const char *s, size_t n, bool begins, bool special, wg_merger *m,
                            wg_ids *out, wg_error *err)
{
    size_t begin = 0;
    for (size_t at = 0, len; at < n; at += len ? len : 1) {
        int32_t id;
        len = wg_vocab_special(&t->v, s + at, n - at, special, &id);
        if (len == 0) continue;
        WG_TRY(encode_plain(t, s + begin, at - begin, begins, m, out, err));
        WG_TRY(wg_ids_push(out, id, err));
        begin = at + len;
        begins = true;
    }
    return n > begin ? encode_plain(t, s + begin, n - begin, begins, m, out, err) : WG_OK;
}

wg_status wg_tokenizer_encode_part(const wg_tokenizer *t, const char *text, size_t n, bool begins, wg_merger *m, wg_ids *out,
                                   wg_error *err)
{
    return encode_all(t, text, n, begins, false, m, out, err);
}

size_t wg_tokenizer_special(const wg_tokenizer *t, const char *s, size_t n, bool special, int32_t *id)
{
    return wg_vocab_special(&t->v, s, n, special, id);
}

size_t wg_tokenizer_cut(const wg_tokenizer *t, const char *text, size_t n)
{
    size_t sure = 0; /* before this offset no special tokens can occur */
    while (sure < n && !(t->v.begins[(unsigned char)text[sure]] & 1)) sure++;
    return t->is_bpe ? wg_bpe_cut(&t->bpe, text, sure) : wg_spm_cut(&t->spm, text, sure);
}

wg_status wg_tokenizer_encode(const wg_tokenizer *t, const char *text, size_t n, bool bos, bool special, int32_t **ids,
                              size_t *n_ids, wg_error *err)
{
    if (n > TEXT_MAX)
        return wg_fail(err, WG_EINVAL, "a text of %zu bytes cannot be encoded, at most %d are; cut it into parts", n, TEXT_MAX);
    wg_merger m = { 0 };
    wg_ids out = { .capacity = n / 4 + 16 };
    out.v = wg_alloc(out.capacity, sizeof *out.v);
    if (!out.v) return wg_nomem(err, out.capacity * sizeof *out.v, "token ids");
    wg_status s = bos && t->add_bos ? wg_ids_push(&out, t->bos, err) : WG_OK;
    if (!s) s = encode_all(t, text, n, true, special, &m, &out, err);
    wg_merger_free(&m);
    if (s) {
        wg_free(out.v);
        return s;
    }
    *ids = out.v;
    *n_ids = out.n;
    return WG_OK;
}

/* ---- decoding */

size_t wg_tokenizer_decode_one(const wg_tokenizer *t, int32_t id, bool first, bool special, char *out, size_t size)
{
    if (!known(t, id)) return 0;
    const wg_text text = t->v.text[id];
    const bool control = wg_tokenizer_is_control(t, id);
    if (control && !special) return 0;
    if (control || t->v.type[id] == WG_TOKEN_USER) {
        if (size > 0) memcpy(out, text.s, text.n < size ? text.n : size);
        return text.n;
    }
    return t->is_bpe ? wg_bpe_decode(&t->bpe, text, out, size) : wg_spm_decode(&t->v, id, first && t->spm.prefix, out, size);
}

wg_status wg_tokenizer_decode(const wg_tokenizer *t, const int32_t *ids, size_t n_ids, bool special, char **out, size_t *n,
                              wg_error *err)
{
    char *text = NULL;
    size_t len = 0;
    for (int pass = 0; pass < 2; pass++) { /* measure, then write */
        size_t at = 0;
        bool first = true; /* control tokens leave it so */
        for (size_t i = 0; i < n_ids; i++) {
            at += wg_tokenizer_decode_one(t, ids[i], first, special, text ? text + at : NULL, text ? len - at : 0);
            first = first && (!known(t, ids[i]) || wg_tokenizer_is_control(t, ids[i]));
        }
        if (pass == 1) break;
        len = at;
        text = wg_alloc(len + 1, 1);
        if (!text) return wg_nomem(err, len + 1, "a decoded text");
    }
    text[len] = '\0';
    *out = text;
    *n = len;
    return WG_OK;
}

size_t wg_stream_put(wg_stream *s, const wg_tokenizer *t, int32_t id, char *out, size_t size)
{
    wg_assert(size >= STREAM_MIN);
    size_t n = (size_t)s->n_held;
    memcpy(out, s->held, n);
    n += wg_tokenizer_decode_one(t, id, !s->started, false, out + n, size - n);
    s->started = s->started || (known(t, id) && !wg_tokenizer_is_control(t, id));
    const size_t tail = wg_utf8_open_tail(out, n);
    s->n_held = (int)tail;
    memcpy(s->held, out + n - tail, tail);
    return n - tail;
}

size_t wg_stream_end(wg_stream *s, char *out, size_t size)
{
    const size_t n = (size_t)s->n_held < size ? (size_t)s->n_held : size;
    memcpy(out, s->held, n);
    *s = (wg_stream){ 0 };
    return n;
}
