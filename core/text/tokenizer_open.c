/* SPDX-License-Identifier: MIT
 * Opening a tokenizer: one block holds the vocabulary with its merges; the pre-tokeniser and the words of the normaliser have
 * their own. The keys tokenizer.wager.* (docs/models.md) hold what GGUF has no key for. */
#include <string.h>

#include "core/base/mem.h"
#include "core/text/metadata.h"
#include "core/text/tokenizer_impl.h"

#define METASPACE "tokenizer.wager.metaspace"

/* "gemma4": as "llama", but joins go by the list of merges, no space is put in front, and a text begins with the first token
 * whatever add_bos_token says (files have a false one). */
static bool is_gemma4(const wg_weights *w)
{
    wg_text kind;
    return wg_meta_string(w, WG_KEY("model"), &kind) && kind.n == 6 && memcmp(kind.s, "gemma4", 6) == 0;
}

static wg_status read_kind(wg_tokenizer *t, const wg_weights *w, wg_error *err)
{
    static const char *const names[] = { "llama", "gpt2", "t5" };
    char quoted[80];
    wg_text kind;
    if (wg_weights_is_folder(w) && !wg_key_present(w, WG_KEY("model")))
        return wg_fail(
            err, WG_EMODEL,
            "%s: the folder has no tokenizer: neither tokenizer.json nor tokenizer.model is there; put the model's own "
            "one beside config.json",
            wg_weights_path(w));
    WG_TRY(wg_key_string(w, WG_KEY("model"), &kind, err));
    t->kind = WG_TOKENIZER_SPM;
    if (is_gemma4(w)) return WG_OK;
    for (int i = 0; i < 3; i++)
        if (kind.n == strlen(names[i]) && memcmp(kind.s, names[i], kind.n) == 0) {
            t->kind = (wg_tokenizer_kind_id)i;
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
    WG_TRY(wg_key_ids(w, before, t->v.n, t->before, WG_TEMPLATE_MOST, &t->befores, err));
    WG_TRY(wg_key_ids(w, after, t->v.n, t->after, WG_TEMPLATE_MOST, &t->afters, err));
    if (t->befores == 0 && t->add_bos) t->before[t->befores++] = t->bos;
    if (t->afters == 0 && add_eos) t->after[t->afters++] = t->eos;
    return WG_OK;
}

static wg_status read_spaces(wg_tokenizer *t, const wg_weights *w, wg_error *err)
{
    wg_text scheme = { 0 };
    wg_spm *spm = &t->spm;
    spm->prefix = t->kind != WG_TOKENIZER_BPE && !is_gemma4(w);
    WG_TRY(wg_key_bool(w, WG_KEY("add_space_prefix"), &spm->prefix, err));
    WG_TRY(wg_key_bool(w, "tokenizer.wager.split_spaces", &spm->split_spaces, err));
    WG_TRY(wg_key_bool(w, "tokenizer.wager.fuse_unk", &spm->fuses, err));
    if (!wg_key_present(w, METASPACE)) return WG_OK;
    WG_TRY(wg_key_string(w, METASPACE, &scheme, err));
    spm->unless_space = true;
    spm->first_only = scheme.n == 5 && memcmp(scheme.s, "first", 5) == 0;
    if (spm->first_only || (scheme.n == 6 && memcmp(scheme.s, "always", 6) == 0)) return WG_OK;
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
    t->add_bos = t->bos >= 0 && (t->bpe.pretok ? t->bpe.pretok->add_bos : t->kind == WG_TOKENIZER_SPM);
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
    WG_TRY(wg_vocab_count(&t->v, w, t->kind != WG_TOKENIZER_BPE, err));
    if (t->kind == WG_TOKENIZER_UNIGRAM) return wg_unigram_count(&t->unigram, &t->v, w, err);
    if (t->kind == WG_TOKENIZER_BPE || pairs) WG_TRY(wg_bpe_count(&t->bpe, w, t->kind != WG_TOKENIZER_BPE, err));
    return WG_OK;
}

static void carve(wg_tokenizer *t, char *base, size_t *used)
{
    wg_carve(base, used, 1, sizeof *t);
    wg_vocab_carve(&t->v, base, used);
    if (t->bpe.slots > 0) wg_bpe_carve(&t->bpe, base, used);
    if (t->kind == WG_TOKENIZER_UNIGRAM) wg_unigram_carve(&t->unigram, &t->v, base, used);
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
    const bool ggml = t->kind == WG_TOKENIZER_UNIGRAM && !wg_key_present(w, WG_NORMALIZER_KEY);
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
    if (t->kind == WG_TOKENIZER_BPE) WG_TRY(wg_bpe_open_pretok(&t->bpe, w, err));
    WG_TRY(read_flags(t, w, err));
    WG_TRY(wg_vocab_fill(&t->v, w, err));
    if (t->kind != WG_TOKENIZER_BPE) WG_TRY(wg_spm_fill(&t->spm, &t->v, w, err));
    if (t->bpe.slots > 0) WG_TRY(wg_bpe_fill(&t->bpe, &t->v, w, err));
    if (t->kind == WG_TOKENIZER_UNIGRAM) WG_TRY(wg_unigram_fill(&t->unigram, &t->v, w, err));
    if (t->kind == WG_TOKENIZER_UNIGRAM) t->spm.unigram = &t->unigram;
    else if (t->kind == WG_TOKENIZER_SPM && t->bpe.slots > 0) t->spm.merges = &t->bpe;
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
