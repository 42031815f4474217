/* SPDX-License-Identifier: MIT
 * Tokenizers: special tokens in text, encoding, decoding, streaming, opening.
 *
 * User-defined tokens are always found, control and unknown ones only when the caller allows `special`; the longest wins. Where
 * a file says so, some are found in the text as it is and the others in its normal form. In "llama" files every stretch of text
 * after such a token gets its own prefix space, as in llama.cpp, unless the file says otherwise. */
#include "core/text/tokenizer.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/text/metadata.h"
#include "core/text/spm.h"
#include "core/text/unicode.h"

enum { TEXT_MAX = 256 << 20, HELD = sizeof((wg_stream *)0)->held, AROUND = 8 };

typedef enum kind_id { SPM, BPE, UNIGRAM } kind_id;
static const char *const kinds[] = { "llama", "gpt2", "t5" };

struct wg_tokenizer {
    kind_id kind;
    wg_vocab v;
    wg_spm spm;
    wg_bpe bpe;
    wg_unigram unigram;
    wg_text *words; /* of the normaliser; NULL: none */
    wg_normalizer normalizer;
    int32_t bos, eos, eot, eom;
    bool add_bos;
    int32_t before[AROUND], after[AROUND]; /* ids put before and after a text */
    int befores, afters;
    size_t longest; /* most bytes that a token stands for */
};

/* ---- questions */

static bool known(const wg_tokenizer *t, int32_t id) { return id >= 0 && id < t->v.n; }

const char *wg_tokenizer_kind(const wg_tokenizer *t) { return kinds[t->kind]; }
int wg_tokenizer_size(const wg_tokenizer *t) { return t->v.n; }
int wg_tokenizer_bos(const wg_tokenizer *t) { return t->bos; }
int wg_tokenizer_eos(const wg_tokenizer *t) { return t->eos; }
bool wg_tokenizer_add_bos(const wg_tokenizer *t) { return t->add_bos; }
size_t wg_tokenizer_room(const wg_tokenizer *t) { return t->longest + HELD; }

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

typedef struct encoder {
    const wg_tokenizer *t;
    wg_merger *m;
    wg_ids *out;
    wg_error *err;
    bool special;
} encoder;

/* A stretch without special tokens, in its normal form. `prefix`: it may get a space in front. */
static wg_status encode_words(encoder *e, wg_text s, bool prefix)
{
    const wg_tokenizer *t = e->t;
    if (s.n == 0) return WG_OK;
    if (t->kind == BPE) {
        if (prefix && t->bpe.pretok->prefix_space && s.s[0] != ' ')
            WG_TRY(wg_normal_prepend(s, (wg_text){ " ", 1 }, &e->m->normal, &s, e->err));
        return wg_bpe_encode(&t->bpe, &t->v, s.s, s.n, e->m, e->out, e->err);
    }
    wg_spm spm = t->spm;
    spm.prefix = spm.prefix && prefix;
    return wg_spm_encode(&spm, &t->v, s.s, s.n, e->m, e->out, e->err);
}

/* The white space at the end of s[from..at), and at the beginning of s[at..n): where it begins, and ends. */
static size_t space_before(const char *s, size_t from, size_t at)
{
    uint32_t cp;
    for (size_t k = 1; at - k + 1 > from && k <= WG_UTF8_MAX; k++) {
        if (wg_utf8_decode(s + at - k, k, &cp) != k || wg_unicode_category(cp) != WG_CATEGORY_SPACE) continue;
        at -= k;
        k = 0;
    }
    return at;
}

static size_t space_behind(const char *s, size_t n, size_t at)
{
    uint32_t cp;
    for (size_t k; (k = wg_utf8_decode(s + at, n - at, &cp)) > 0 && wg_unicode_category(cp) == WG_CATEGORY_SPACE;) at += k;
    return at;
}

/* Whether s[at..end) stands alone as a word. */
static bool is_single_word(const char *s, size_t n, size_t at, size_t end)
{
    uint32_t cp;
    if (wg_utf8_decode(s + end, n - end, &cp) > 0 && wg_unicode_is_word(cp)) return false;
    for (size_t k = 1; k <= at && k <= WG_UTF8_MAX; k++)
        if (wg_utf8_decode(s + at - k, k, &cp) == k && wg_unicode_is_word(cp)) return false;
    return true;
}

/* Whether the token x, whose text is at s[at..), stands there, and what it takes of s[begin..): s[from..end). */
static bool stands(const wg_special *x, wg_text s, size_t begin, size_t at, size_t *from, size_t *end)
{
    *from = at;
    *end = at + x->text.n;
    if (x->flags & WG_ADDED_SINGLE_WORD && !is_single_word(s.s, s.n, at, *end)) return false;
    if (x->flags & WG_ADDED_LSTRIP && begin < at) *from = space_before(s.s, begin, at);
    if (x->flags & WG_ADDED_RSTRIP) *end = space_behind(s.s, s.n, *end);
    return true;
}

static wg_status encode_stretch(encoder *e, wg_text s, bool first, bool begins, bool normal);

/* Cuts out the special tokens, in the text as it is or (`normal`) in its normal form. `begins`: it begins a stretch; `first`:
 * the first of a text. */
static wg_status find_specials(encoder *e, wg_text s, bool first, bool begins, bool normal)
{
    const wg_vocab *v = &e->t->v;
    const unsigned kinds = (e->special ? WG_FIND_USER | WG_FIND_CONTROL : WG_FIND_USER) << (normal ? 2 : 0);
    size_t begin = 0;
    const wg_special *x;
    for (size_t at = 0; at < s.n && v->kinds & kinds; at += x ? x->text.n : 1) {
        x = wg_vocab_special(v, s.s + at, s.n - at, kinds);
        size_t from, end;
        if (!x || !stands(x, s, begin, at, &from, &end)) continue;
        if (begin < from)
            WG_TRY(encode_stretch(e, (wg_text){ s.s + begin, from - begin }, first && begin == 0, begins, normal));
        WG_TRY(wg_ids_push(e->out, x->id, e->err));
        begin = end;
        begins = true;
    }
    if (begin == s.n) return WG_OK;
    return encode_stretch(e, (wg_text){ s.s + begin, s.n - begin }, first && begin == 0, begins, normal);
}

static wg_status encode_stretch(encoder *e, wg_text s, bool first, bool begins, bool normal)
{
    const wg_tokenizer *t = e->t;
    if (normal) return encode_words(e, s, begins && (first || !t->spm.first_only));
    WG_TRY(wg_normalizer_apply(&t->normalizer, s, &e->m->normal, &s, e->err));
    return find_specials(e, s, first, begins, true);
}

wg_status wg_tokenizer_encode_part(const wg_tokenizer *t, const char *text, size_t n, bool begins, wg_merger *m, wg_ids *out,
                                   wg_error *err)
{
    encoder e = { .t = t, .m = m, .out = out, .err = err };
    return find_specials(&e, (wg_text){ text, n }, begins, begins, false);
}

size_t wg_tokenizer_special(const wg_tokenizer *t, wg_text s, size_t begin, size_t at, size_t to, bool special,
                            wg_special_place *out)
{
    const unsigned user = WG_FIND_USER | WG_FIND_NORMAL_USER, control = WG_FIND_CONTROL | WG_FIND_NORMAL_CONTROL;
    const wg_special *x = wg_vocab_special(&t->v, s.s + at, to - at, special ? user | control : user);
    if (!x || !stands(x, s, begin, at, &out->from, &out->end)) return 0;
    out->id = x->id;
    return x->text.n;
}

size_t wg_tokenizer_cut(const wg_tokenizer *t, const char *text, size_t n)
{
    const unsigned kinds = WG_FIND_USER | WG_FIND_NORMAL_USER;
    size_t sure = 0;                                 /* before this offset no special tokens can occur */
    if (t->v.flags & WG_ADDED_SINGLE_WORD) return 0; /* they look at what stands before them */
    while (sure < n && !(t->v.begins[(unsigned char)text[sure]] & kinds)) sure++;
    sure = wg_normalizer_sure(&t->normalizer, text, sure);
    return t->kind == BPE ? wg_bpe_cut(&t->bpe, text, sure) : wg_spm_cut(&t->spm, text, sure);
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
    encoder e = { .t = t, .m = &m, .out = &out, .err = err, .special = special };
    wg_status s = WG_OK;
    for (int i = 0; bos && i < t->befores && !s; i++) s = wg_ids_push(&out, t->before[i], err);
    if (!s) s = find_specials(&e, (wg_text){ text, n }, true, true, false);
    for (int i = 0; bos && i < t->afters && !s; i++) s = wg_ids_push(&out, t->after[i], err);
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
    if (t->kind == BPE) return wg_bpe_decode(&t->bpe, text, out, size);
    return wg_spm_decode(&t->v, id, first && t->spm.prefix, out, size);
}

wg_status wg_tokenizer_decode(const wg_tokenizer *t, const int32_t *ids, size_t n_ids, bool special, char **out, size_t *n,
                              wg_error *err)
{
    char *text = NULL;
    size_t len = 0;
    for (int pass = 0; pass < 2; pass++) { /* measure, then write */
        size_t at = 0;
        bool first = true; /* control tokens that are not shown leave it so */
        for (size_t i = 0; i < n_ids; i++) {
            at += wg_tokenizer_decode_one(t, ids[i], first, special, text ? text + at : NULL, text ? len - at : 0);
            first = first && (!known(t, ids[i]) || (!special && wg_tokenizer_is_control(t, ids[i])));
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
    wg_assert(size >= wg_tokenizer_room(t));
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

/* ---- opening: one block holds the vocabulary with its merges; the pre-tokeniser and the words of the normaliser have
 * their own. The keys tokenizer.wager.* (docs/models.md) hold what GGUF has no key for. */

#define METASPACE "tokenizer.wager.metaspace"

/* "gemma4": as "llama", but joins go by the list of merges, no space is put in front, and a text begins with the first token
 * whatever add_bos_token says (files have a false one). */
static bool is_gemma4(const wg_weights *w)
{
    wg_text kind;
    return wg_meta_string(w, WG_KEY("model"), &kind) && wg_text_is(kind, "gemma4");
}

static wg_status read_kind(wg_tokenizer *t, const wg_weights *w, wg_error *err)
{
    char quoted[80];
    wg_text kind;
    if (wg_weights_is_folder(w) && !wg_key_present(w, WG_KEY("model")))
        return wg_fail(
            err, WG_EMODEL,
            "%s: the folder has no tokenizer: neither tokenizer.json nor tokenizer.model is there; put the model's own "
            "one beside config.json",
            wg_weights_path(w));
    WG_TRY(wg_key_string(w, WG_KEY("model"), &kind, err));
    t->kind = SPM;
    if (is_gemma4(w)) return WG_OK;
    for (int i = 0; i < 3; i++)
        if (wg_text_is(kind, kinds[i])) {
            t->kind = (kind_id)i;
            return WG_OK;
        }
    return wg_fail(err, WG_EUNSUPPORTED,
                   "%s: %s is %s, which is not implemented; there are: llama and gemma4 (SPM-style BPE), gpt2 (byte-level "
                   "BPE), t5 (Unigram)",
                   wg_weights_path(w), WG_KEY("model"), wg_vocab_quote(kind, quoted, sizeof quoted));
}

/* Tokens around a text: lists of ours, or GGUF's flags. */
static wg_status read_template(wg_tokenizer *t, const wg_weights *w, wg_error *err)
{
    bool add_eos = false;
    const char *const before = "tokenizer.wager.before", *const after = "tokenizer.wager.after";
    WG_TRY(wg_key_bool(w, WG_KEY("add_eos_token"), &add_eos, err));
    if (add_eos && t->eos < 0)
        return wg_fail(err, WG_EMODEL, "%s: %s is true, but %s is missing; add the id or clear the flag", wg_weights_path(w),
                       WG_KEY("add_eos_token"), WG_KEY("eos_token_id"));
    WG_TRY(wg_key_ids(w, before, t->v.n, t->before, AROUND, &t->befores, err));
    WG_TRY(wg_key_ids(w, after, t->v.n, t->after, AROUND, &t->afters, err));
    if (t->befores == 0 && t->add_bos) t->before[t->befores++] = t->bos;
    if (t->afters == 0 && add_eos) t->after[t->afters++] = t->eos;
    return WG_OK;
}

static wg_status read_spaces(wg_tokenizer *t, const wg_weights *w, wg_error *err)
{
    wg_text scheme = { 0 };
    wg_spm *spm = &t->spm;
    spm->prefix = t->kind != BPE && !is_gemma4(w);
    WG_TRY(wg_key_bool(w, WG_KEY("add_space_prefix"), &spm->prefix, err));
    WG_TRY(wg_key_bool(w, "tokenizer.wager.split_spaces", &spm->split_spaces, err));
    WG_TRY(wg_key_bool(w, "tokenizer.wager.fuse_unk", &spm->fuses, err));
    if (!wg_key_present(w, METASPACE)) return WG_OK;
    WG_TRY(wg_key_string(w, METASPACE, &scheme, err));
    spm->unless_space = true;
    spm->first_only = wg_text_is(scheme, "first");
    if (spm->first_only || wg_text_is(scheme, "always")) return WG_OK;
    char quoted[80];
    return wg_fail(err, WG_EMODEL, "%s: " METASPACE " is %s, expected \"first\" or \"always\"; convert the model again",
                   wg_weights_path(w), wg_vocab_quote(scheme, quoted, sizeof quoted));
}

static wg_status read_flags(wg_tokenizer *t, const wg_weights *w, wg_error *err)
{
    const int n = t->v.n;
    t->bos = t->eos = t->eot = t->eom = -1;
    WG_TRY(wg_key_id(w, WG_KEY("bos_token_id"), n, &t->bos, err));
    WG_TRY(wg_key_id(w, WG_KEY("eos_token_id"), n, &t->eos, err));
    WG_TRY(wg_key_id(w, WG_KEY("eot_token_id"), n, &t->eot, err));
    WG_TRY(wg_key_id(w, WG_KEY("eom_token_id"), n, &t->eom, err));
    t->add_bos = t->bos >= 0 && (t->bpe.pretok ? t->bpe.pretok->add_bos : t->kind == SPM);
    if (!is_gemma4(w)) WG_TRY(wg_key_bool(w, WG_KEY("add_bos_token"), &t->add_bos, err));
    if (t->add_bos && t->bos < 0)
        return wg_fail(err, WG_EMODEL, "%s: %s is true, but %s is missing; add the id or clear the flag", wg_weights_path(w),
                       WG_KEY("add_bos_token"), WG_KEY("bos_token_id"));
    WG_TRY(read_template(t, w, err));
    return read_spaces(t, w, err);
}

/* Whether joins of the kind "llama" go by the list of merges: files from tokenizer.json say so. */
static wg_status by_merges(const wg_weights *w, bool *out, wg_error *err)
{
    *out = is_gemma4(w);
    return wg_key_bool(w, "tokenizer.wager.pair_merges", out, err);
}

/* Checks everything that needs no memory. */
static wg_status count(wg_tokenizer *t, const wg_weights *w, wg_error *err)
{
    bool pairs;
    WG_TRY(read_kind(t, w, err));
    WG_TRY(by_merges(w, &pairs, err));
    WG_TRY(wg_vocab_count(&t->v, w, t->kind != BPE, err));
    if (t->kind == UNIGRAM) return wg_unigram_count(&t->unigram, &t->v, w, err);
    if (t->kind == BPE || pairs) WG_TRY(wg_bpe_count(&t->bpe, w, t->kind != BPE, err));
    return WG_OK;
}

static void carve(wg_tokenizer *t, char *base, size_t *used)
{
    wg_carve(base, used, 1, sizeof *t);
    wg_vocab_carve(&t->v, base, used);
    if (t->bpe.slots > 0) wg_bpe_carve(&t->bpe, base, used);
    if (t->kind == UNIGRAM) wg_unigram_carve(&t->unigram, &t->v, base, used);
}

/* The normaliser of GGUF files of kind "t5", as words. */
static wg_status ggml_words(const wg_weights *w, wg_text **out, size_t *n, wg_error *err)
{
    const char *const map = WG_KEY("precompiled_charsmap");
    bool squeezes = false;
    int64_t bytes = 0, v = 0;
    *n = 0;
    WG_TRY(wg_key_bool(w, WG_KEY("remove_extra_whitespaces"), &squeezes, err));
    if (wg_key_present(w, map)) WG_TRY(wg_key_array(w, map, WG_META_INT, &bytes, err));
    const size_t room = 3 * sizeof **out + (size_t)bytes;
    *out = wg_alloc(room, 1);
    if (!*out) return wg_nomem(err, room, "a map of characters");
    char *copy = (char *)(*out + 3);
    for (int64_t i = 0; i < bytes; i++) copy[i] = wg_meta_array_int(w, map, i, &v) ? (char)v : 0;
    if (bytes > 0) {
        (*out)[(*n)++] = (wg_text){ "charsmap", 8 };
        (*out)[(*n)++] = (wg_text){ copy, (size_t)bytes };
    }
    if (squeezes) (*out)[(*n)++] = (wg_text){ "squeeze", 7 };
    return WG_OK;
}

static wg_status read_normalizer(wg_tokenizer *t, const wg_weights *w, wg_error *err)
{
    wg_normal_room r = { 0 };
    wg_status s = WG_OK;
    size_t n;
    const bool ggml = t->kind == UNIGRAM && !wg_key_present(w, WG_NORMALIZER_KEY);
    WG_TRY(ggml ? ggml_words(w, &t->words, &n, err) : wg_key_words(w, WG_NORMALIZER_KEY, &t->words, &n, err));
    WG_TRY(wg_normalizer_open(&t->normalizer, wg_weights_path(w), t->words, n, err));
    for (size_t i = 0; i < t->v.specials && t->normalizer.steps > 0 && s == WG_OK; i++) {
        const wg_special *x = &t->v.special[i];
        wg_text form;
        char quoted[80];
        if (!(x->flags & WG_ADDED_NORMALIZED)) continue;
        s = wg_normalizer_apply(&t->normalizer, x->text, &r, &form, err);
        if (s == WG_OK && (form.n != x->text.n || memcmp(form.s, x->text.s, form.n) != 0))
            s = wg_fail(err, WG_EUNSUPPORTED,
                        "%s: the added token %s is to be found in normalised text, but is not normalised itself, which is not "
                        "implemented",
                        wg_weights_path(w), wg_vocab_quote(x->text, quoted, sizeof quoted));
    }
    wg_normal_room_free(&r);
    return s;
}

static wg_status fill(wg_tokenizer *t, const wg_weights *w, wg_error *err)
{
    if (t->kind == BPE) WG_TRY(wg_bpe_open_pretok(&t->bpe, w, err));
    WG_TRY(read_flags(t, w, err));
    WG_TRY(wg_vocab_fill(&t->v, w, err));
    if (t->kind != BPE) WG_TRY(wg_spm_fill(&t->spm, &t->v, w, err));
    if (t->bpe.slots > 0) WG_TRY(wg_bpe_fill(&t->bpe, &t->v, w, err));
    if (t->kind == UNIGRAM) WG_TRY(wg_unigram_fill(&t->unigram, &t->v, w, err));
    if (t->kind == UNIGRAM) t->spm.unigram = &t->unigram;
    else if (t->kind == SPM && t->bpe.slots > 0) t->spm.merges = &t->bpe;
    for (int32_t i = 0; i < t->v.n; i++) {
        const size_t n = wg_tokenizer_decode_one(t, i, false, true, NULL, 0);
        if (n > t->longest) t->longest = n;
    }
    return read_normalizer(t, w, err);
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

void wg_tokenizer_close(wg_tokenizer *t)
{
    if (!t) return;
    wg_free(t->bpe.pretok);
    wg_normalizer_close(&t->normalizer);
    wg_free(t->words);
    wg_free(t);
}
