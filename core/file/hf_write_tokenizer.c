/* SPDX-License-Identifier: MIT
 * tokenizer.json of the keys that hf_tokenizer.c and hf_pipeline.c set, and of GGUF files of others: a vocabulary, merges
 * or scores, the steps before them, tokens around a text. SPM-style BPE without a list of merges gets one of its scores:
 * every split of a token into two, by the score of the token. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/base64.h"
#include "core/base/mem.h"
#include "core/file/hf_tokenizer_impl.h"
#include "core/file/hf_write.h"
#include "core/file/pretok_rows.h"

#define KEY(name) "tokenizer.ggml." name

typedef struct writer {
    const wg_weights *w;
    bool bytes, spm, unigram;
    int n;
    json_t *vocab; /* token and id, of all that may be a word's */
    wg_error *err;
} writer;

static wg_status refuse(const writer *t, const char *what)
{
    return wg_fail(t->err, WG_EUNSUPPORTED,
                   "%s: %s: a tokenizer.json that is read here has no place for it (docs/models.md); write a GGUF file instead",
                   wg_weights_path(t->w), what);
}

static json_t *text_of(wg_text t) { return json_stringn(t.s, t.n); }

static bool flag(const writer *t, const char *key, bool absent)
{
    bool v = absent;
    (void)wg_meta_bool(t->w, key, &v);
    return v;
}

static int64_t id_of(const wg_weights *w, const char *key)
{
    int64_t v = -1;
    (void)wg_meta_int(w, key, &v);
    return v;
}

static wg_text token(const writer *t, int64_t id)
{
    wg_text s = { "", 0 };
    (void)wg_meta_array_string(t->w, KEY("tokens"), id, &s);
    return s;
}

static int type_of(const writer *t, int64_t id)
{
    int64_t v = WG_HF_NORMAL;
    (void)wg_meta_array_int(t->w, KEY("token_type"), id, &v);
    return (int)v;
}

/* A row that pads the embedding: hf_tokenizer.c names it. */
static bool is_pad(const writer *t, int64_t id)
{
    char name[32];
    snprintf(name, sizeof name, WG_HF_PAD, (int)id);
    return type_of(t, id) == WG_HF_UNUSED && wg_text_is(token(t, id), name);
}

static bool is_added(const writer *t, int64_t id)
{
    const int type = type_of(t, id);
    return type == WG_HF_CONTROL || type == WG_HF_USER || type == WG_HF_UNKNOWN;
}

/* ---- steps */

static json_t *typed(const char *type) { return json_pack("{s:s}", "type", type); }
static json_t *sequence(const char *list, json_t *steps)
{
    if (json_array_size(steps) != 1) return json_pack("{s:s, s:o}", "type", "Sequence", list, steps);
    json_t *one = json_incref(json_array_get(steps, 0));
    json_decref(steps);
    return one;
}

static json_t *replace(const char *kind, wg_text from, wg_text to)
{
    return json_pack("{s:s, s:{s:o}, s:o}", "type", "Replace", "pattern", kind, text_of(from), "content", text_of(to));
}

/* The name in tokenizer.json of a normaliser without parameters; NULL: it is none. */
static const char *plain_normalizer(wg_text word)
{
    for (size_t i = 0; i < WG_HF_PLAIN_NORMALIZERS; i++)
        if (wg_text_is(word, wg_hf_plain_normalizers[i][1])) return wg_hf_plain_normalizers[i][0];
    return NULL;
}

static wg_status precompiled(const writer *t, wg_text map, json_t **out)
{
    const size_t room = (map.n + 2) / 3 * 4;
    char *text = wg_alloc(room, 1);
    if (!text) return wg_nomem(t->err, room, "a map of characters");
    *out = json_pack("{s:s, s:o}", "type", "Precompiled", "precompiled_charsmap",
                     json_stringn(text, wg_base64_encode(map.s, map.n, text)));
    wg_free(text);
    return WG_OK;
}

/* The words of a key, or -1: there is no such key. */
static int words_of(const writer *t, const char *key, wg_text *word)
{
    const int64_t n = wg_meta_array(t->w, key, NULL);
    for (int64_t i = 0; i < n && i < WG_HF_WORDS; i++)
        if (!wg_meta_array_string(t->w, key, i, &word[i])) return -1;
    return n > WG_HF_WORDS ? -1 : (int)n;
}

/* The steps of the normaliser, and of those without bytes what writes spaces as U+2581. */
static wg_status normalizer(const writer *t, bool spaces, bool prefix, json_t **out)
{
    wg_text word[WG_HF_WORDS];
    const int n = words_of(t, "tokenizer.wager.normalizer", word);
    json_t *steps = json_array();
    *out = steps;
    if (t->unigram && n < 0 &&
        (wg_meta_array(t->w, KEY("precompiled_charsmap"), NULL) > 0 || flag(t, KEY("remove_extra_whitespaces"), false)))
        return refuse(t, "the map of characters of a SentencePiece model");
    for (int i = 0; i < n; i++) {
        json_t *step = NULL;
        if (plain_normalizer(word[i])) step = typed(plain_normalizer(word[i]));
        else if (wg_text_is(word[i], "replace") && i + 2 < n) step = replace("String", word[i + 1], word[i + 2]), i += 2;
        else if (wg_text_is(word[i], "replace_regex") && i + 2 < n) step = replace("Regex", word[i + 1], word[i + 2]), i += 2;
        else if (wg_text_is(word[i], "precompiled") && i + 1 < n) WG_TRY(precompiled(t, word[++i], &step));
        else if (wg_text_is(word[i], "prepend") && i + 1 < n)
            step = json_pack("{s:s, s:o}", "type", "Prepend", "prepend", text_of(word[++i]));
        else if (wg_text_is(word[i], "strip") && i + 1 < n) {
            const bool both = wg_text_is(word[++i], "both");
            step = json_pack("{s:s, s:b, s:b}", "type", "Strip", "strip_left", both || wg_text_is(word[i], "left"),
                             "strip_right", both || wg_text_is(word[i], "right"));
        } else
            return refuse(t, wg_text_is(word[i], "squeeze") ? "squeezing spaces"
                                                            : "the map of characters of a SentencePiece model");
        json_array_append_new(steps, step);
    }
    const wg_text mark = { WG_HF_SPACE, strlen(WG_HF_SPACE) };
    if (spaces && prefix) json_array_append_new(steps, json_pack("{s:s, s:s}", "type", "Prepend", "prepend", WG_HF_SPACE));
    if (spaces) json_array_append_new(steps, replace("String", (wg_text){ " ", 1 }, mark));
    *out = json_array_size(steps) > 0 ? sequence("normalizers", steps) : json_null();
    if (json_is_null(*out)) json_decref(steps);
    return WG_OK;
}

static json_t *byte_level(bool prefix, bool regex)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", prefix, "trim_offsets", true, "use_regex",
                     regex);
}

static json_t *split(wg_text behavior, const char *kind, wg_text pattern, bool invert)
{
    return json_pack("{s:s, s:{s:o}, s:s, s:b}", "type", "Split", "pattern", kind, text_of(pattern), "behavior",
                     wg_hf_behavior_title(behavior), "invert", invert);
}

/* The steps of a byte-level pre-tokeniser. One of them is ByteLevel, the last if no other is. */
static wg_status pretok_steps(const writer *t, const wg_text *word, int n, json_t *steps)
{
    bool prefix = false, bytes = false;
    for (int i = 0; i < n; i++) {
        const wg_text w = word[i];
        json_t *step = NULL;
        if (wg_text_is(w, "prefix_space")) {
            prefix = true;
            continue;
        }
        const bool gpt2 = wg_text_is(w, "split") && i + 2 < n && wg_text_is(word[i + 1], "isolated") &&
                          wg_text_is(word[i + 2], WG_PRETOK_GPT2),
                   next = gpt2 && i + 3 < n && wg_text_is(word[i + 3], "bytes");
        if (!bytes && gpt2 && (next || i + 3 == n)) step = byte_level(prefix, true), i += next ? 3 : 2;
        else if (wg_text_is(w, "bytes")) step = byte_level(prefix, false);
        else if ((wg_text_is(w, "split") || wg_text_is(w, "split_not")) && i + 2 < n && wg_hf_behavior_title(word[i + 1]))
            step = split(word[i + 1], "Regex", word[i + 2], wg_text_is(w, "split_not")), i += 2;
        else if (wg_text_is(w, "text") && i + 2 < n && wg_hf_behavior_title(word[i + 1]))
            step = split(word[i + 1], "String", word[i + 2], false), i += 2;
        else if (wg_text_is(w, "digits") && i + 1 < n)
            step = json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", wg_text_is(word[++i], "each"));
        else if (wg_text_is(w, "punctuation") && i + 1 < n && wg_hf_behavior_title(word[i + 1]))
            step = json_pack("{s:s, s:s}", "type", "Punctuation", "behavior", wg_hf_behavior_title(word[++i]));
        else return refuse(t, "a step of its pre-tokeniser");
        if (strcmp(json_string_value(json_object_get(step, "type")), "ByteLevel") == 0) bytes = true, prefix = false;
        json_array_append_new(steps, step);
    }
    if (!bytes) json_array_append_new(steps, byte_level(prefix, false));
    return WG_OK;
}

static int words_of_row(const wg_pretok_row *row, wg_text *word)
{
    int n = 0;
    for (; row->words[n]; n++) word[n] = (wg_text){ row->words[n], strlen(row->words[n]) };
    return n;
}

json_t *wg_hf_pretok_json(const wg_pretok_row *row)
{
    wg_text word[WG_HF_WORDS];
    json_t *steps = json_array();
    const wg_status s = pretok_steps(NULL, word, words_of_row(row, word), steps);
    wg_assert(s == WG_OK); /* the steps of a row are known */
    return sequence("pretokenizers", steps);
}

static wg_status pretok(const writer *t, json_t **out, bool *whole)
{
    wg_text word[WG_HF_WORDS], name = { "", 0 };
    int n = words_of(t, WG_PRETOK_KEY, word);
    *whole = flag(t, "tokenizer.wager.ignore_merges", false);
    if (n < 0) {
        (void)wg_meta_string(t->w, KEY("pre"), &name);
        const wg_pretok_row *row = wg_pretok_row_named(name.s, name.n);
        if (!row) return refuse(t, "its pre-tokeniser");
        n = words_of_row(row, word);
        *whole = row->whole_words;
    }
    json_t *steps = json_array();
    const wg_status s = pretok_steps(t, word, n, steps);
    *out = sequence("pretokenizers", steps);
    return s;
}

static json_t *decoder(bool prefix)
{
    json_t *steps = json_array();
    json_array_append_new(steps, replace("String", (wg_text){ WG_HF_SPACE, strlen(WG_HF_SPACE) }, (wg_text){ " ", 1 }));
    json_array_append_new(steps, typed("ByteFallback"));
    json_array_append_new(steps, typed("Fuse"));
    if (prefix)
        json_array_append_new(steps, json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip", "content", " ", "start", 1, "stop", 0));
    return sequence("decoders", steps);
}

/* ---- tokens around a text */

static void add_around(const writer *t, const char *key, bool flagged, int64_t one, json_t *list, json_t *specials)
{
    const int64_t n = wg_meta_array(t->w, key, NULL);
    for (int64_t i = 0; i < (n > 0 ? n : flagged); i++) {
        int64_t id = one;
        if (n > 0) (void)wg_meta_array_int(t->w, key, i, &id);
        const wg_text s = token(t, id);
        json_array_append_new(list, json_pack("{s:{s:o, s:i}}", "SpecialToken", "id", text_of(s), "type_id", 0));
        json_object_setn_new(specials, s.s, s.n,
                             json_pack("{s:o, s:[I], s:[o]}", "id", text_of(s), "ids", (json_int_t)id, "tokens", text_of(s)));
    }
}

static json_t *post_processor(const writer *t)
{
    json_t *single = json_array(), *specials = json_object();
    const int64_t bos = id_of(t->w, KEY("bos_token_id")), eos = id_of(t->w, KEY("eos_token_id"));
    wg_text name = { "", 0 };
    (void)wg_meta_string(t->w, KEY("pre"), &name);
    const wg_pretok_row *row = t->bytes ? wg_pretok_row_named(name.s, name.n) : NULL;
    const bool usual = t->spm || (row && row->add_bos);
    add_around(t, "tokenizer.wager.before", bos >= 0 && flag(t, KEY("add_bos_token"), usual), bos, single, specials);
    json_array_append_new(single, json_pack("{s:{s:s, s:i}}", "Sequence", "id", "A", "type_id", 0));
    add_around(t, "tokenizer.wager.after", eos >= 0 && flag(t, KEY("add_eos_token"), false), eos, single, specials);
    if (json_object_size(specials) > 0) {
        json_t *pair = json_deep_copy(single);
        json_array_append_new(pair, json_pack("{s:{s:s, s:i}}", "Sequence", "id", "B", "type_id", 1));
        return json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing", "single", single, "pair", pair, "special_tokens",
                         specials);
    }
    json_decref(single);
    json_decref(specials);
    return json_null();
}

/* ---- tokens */

static json_t *added_tokens(const writer *t)
{
    static const char *const names[] = { "lstrip", "rstrip", "single_word", "normalized" }; /* as hf_tokenizer.c reads them */
    json_t *list = json_array();
    for (int64_t i = 0; i < t->n; i++) {
        int64_t flags = 0;
        if (!is_added(t, i)) continue;
        (void)wg_meta_array_int(t->w, "tokenizer.wager.added", i, &flags);
        json_t *one = json_pack("{s:I, s:o, s:b}", "id", (json_int_t)i, "content", text_of(token(t, i)), "special",
                                type_of(t, i) != WG_HF_USER);
        for (int k = 0; k < 4; k++) json_object_set_new(one, names[k], json_boolean(flags >> k & 1));
        json_array_append_new(list, one);
    }
    return list;
}

/* Tokens of the model: all but rows that pad the embedding, and added tokens behind all others, which follow each other. */
static int model_tokens(const writer *t)
{
    int n = t->n;
    while (n > 0 && is_pad(t, n - 1)) n--;
    int added = n;
    while (added > 0 && is_added(t, added - 1) && type_of(t, added - 1) != WG_HF_UNKNOWN) added--;
    for (int i = 0; i < added; i++)
        if (is_pad(t, i)) return n; /* a hole would move the ids of added tokens that the model does not have */
    return t->bytes ? added : n;
}

static wg_status vocabulary(writer *t)
{
    const int n = model_tokens(t);
    t->vocab = json_object();
    for (int i = 0; i < n; i++) {
        const wg_text s = token(t, i);
        if (is_pad(t, i)) continue;
        if (memchr(s.s, '\0', s.n) || json_object_setn_new(t->vocab, s.s, s.n, json_integer(i)) != 0)
            return refuse(t, "a token that is no text in UTF-8");
    }
    return WG_OK;
}

typedef struct joint {
    double score;
    wg_text text;
    size_t left; /* bytes */
} joint;

static int by_score(const void *a, const void *b)
{
    const joint *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->text.s != y->text.s) return x->text.s < y->text.s ? -1 : 1; /* in the order of ids */
    return (x->left < y->left) - (x->left > y->left);
}

/* Whether a word can become this part of a token. */
static bool in_words(const writer *t, const char *s, size_t n)
{
    const json_t *id = json_object_getn(t->vocab, s, n);
    return id && type_of(t, json_integer_value(id)) == WG_HF_NORMAL;
}

/* Whether this part can stand in a word before it is joined: a token, or any one character. */
static bool joins(const writer *t, const char *s, size_t n)
{
    size_t first = 1;
    while (first < n && ((unsigned char)s[first] & 0xC0) == 0x80) first++;
    return first == n || in_words(t, s, n);
}

static wg_status merges_of_scores(const writer *t, json_t *list)
{
    size_t n = 0, room = 0;
    joint *all = NULL;
    wg_status status = WG_OK;
    for (int64_t i = 0; i < t->n && !status; i++) {
        const wg_text s = token(t, i);
        double score = 0;
        if (type_of(t, i) != WG_HF_NORMAL) continue;
        (void)wg_meta_array_float(t->w, KEY("scores"), i, &score);
        for (size_t k = 1; k < s.n; k++) {
            if (((unsigned char)s.s[k] & 0xC0) == 0x80 || !joins(t, s.s, k) || !joins(t, s.s + k, s.n - k)) continue;
            if (!in_words(t, s.s, k) || !in_words(t, s.s + k, s.n - k))
                status = refuse(t, "a token of characters that are no tokens themselves, which scores join and merges cannot");
            if (!status) status = wg_grow((void **)&all, &room, n + 1, sizeof *all, "merges", t->err);
            if (status) break;
            all[n++] = (joint){ score, s, k };
        }
    }
    if (n > 1) qsort(all, n, sizeof *all, by_score);
    for (size_t i = 0; i < n && !status; i++) {
        const wg_text s = all[i].text;
        json_array_append_new(
            list, json_pack("[o, o]", json_stringn(s.s, all[i].left), json_stringn(s.s + all[i].left, s.n - all[i].left)));
    }
    wg_free(all);
    return status;
}

/* The text of the unknown token, or null. */
static json_t *unknown(const writer *t)
{
    for (int64_t i = 0; i < t->n; i++)
        if (type_of(t, i) == WG_HF_UNKNOWN) return text_of(token(t, i));
    return json_null();
}

static bool has_bytes(const writer *t)
{
    for (int64_t i = 0; i < t->n; i++)
        if (type_of(t, i) == WG_HF_BYTE) return true;
    return false;
}

static wg_status bpe(const writer *t, bool whole, json_t **out)
{
    json_t *merges = json_array();
    wg_text s;
    *out = json_pack("{s:s, s:o, s:b, s:b, s:b, s:O, s:o}", "type", "BPE", "unk_token", unknown(t), "fuse_unk",
                     flag(t, "tokenizer.wager.fuse_unk", false), "byte_fallback", t->spm && has_bytes(t), "ignore_merges",
                     whole, "vocab", t->vocab, "merges", merges);
    if (t->spm && !flag(t, "tokenizer.wager.pair_merges", false)) return merges_of_scores(t, merges);
    for (int64_t i = 0; wg_meta_array_string(t->w, KEY("merges"), i, &s); i++) json_array_append_new(merges, text_of(s));
    return WG_OK;
}

static wg_status unigram(const writer *t, json_t **out)
{
    json_t *list = json_array();
    int64_t last = t->n, unk = 0;
    double score = 0;
    const char *key = wg_meta_array(t->w, "tokenizer.wager.scores", NULL) > 0 ? "tokenizer.wager.scores" : KEY("scores");
    while (last > 0 && (is_pad(t, last - 1) || (wg_meta_array_float(t->w, key, last - 1, &score) && isnan(score)))) last--;
    for (int64_t i = 0; i < last; i++) {
        if (type_of(t, i) == WG_HF_UNKNOWN) unk = i;
        if (!wg_meta_array_float(t->w, key, i, &score) || !isfinite(score)) score = -1e6; /* never the best */
        json_array_append_new(list, json_pack("[o, f]", text_of(token(t, i)), score));
    }
    *out = json_pack("{s:s, s:I, s:b, s:o}", "type", "Unigram", "unk_id", (json_int_t)unk, "byte_fallback", has_bytes(t),
                     "vocab", list);
    return WG_OK;
}

/* ---- all of it */

static wg_status fill(writer *t, json_t *root)
{
    json_t *normal = NULL, *pre = NULL, *model = NULL;
    wg_text metaspace = { "", 0 };
    bool whole = false;
    const bool prefix = !t->bytes && flag(t, KEY("add_space_prefix"), true),
               split_spaces = flag(t, "tokenizer.wager.split_spaces", 0);
    const bool by_step = !t->bytes && (wg_meta_string(t->w, "tokenizer.wager.metaspace", &metaspace) || split_spaces);
    wg_status s = normalizer(t, !t->bytes && !by_step, prefix, &normal);
    json_object_set_new(root, "normalizer", normal);
    if (s == WG_OK && t->bytes) s = pretok(t, &pre, &whole);
    if (by_step)
        pre = json_pack("{s:s, s:s, s:o, s:b}", "type", "Metaspace", "replacement", WG_HF_SPACE, "prepend_scheme",
                        metaspace.n ? text_of(metaspace) : json_string("never"), "split", split_spaces);
    json_object_set_new(root, "pre_tokenizer", pre ? pre : json_null());
    json_object_set_new(root, "post_processor", post_processor(t));
    json_object_set_new(root, "decoder", t->bytes ? byte_level(true, true) : decoder(prefix));
    json_object_set_new(root, "added_tokens", added_tokens(t));
    if (s == WG_OK && !t->unigram) s = vocabulary(t);
    if (s == WG_OK) s = t->unigram ? unigram(t, &model) : bpe(t, whole, &model);
    json_object_set_new(root, "model", model ? model : json_null());
    return s;
}

wg_status wg_hf_tokenizer_json(const wg_weights *w, json_t **out, wg_error *err)
{
    wg_text kind;
    writer t = { .w = w, .n = (int)wg_meta_array(w, KEY("tokens"), NULL), .err = err };
    *out = NULL;
    if (!wg_meta_string(w, KEY("model"), &kind)) return WG_OK;
    t.bytes = wg_text_is(kind, "gpt2");
    t.spm = wg_text_is(kind, "llama");
    t.unigram = wg_text_is(kind, "t5");
    if (t.n < 1 || !(t.bytes || t.spm || t.unigram)) return refuse(&t, "its kind of tokenizer");
    json_t *root = json_pack("{s:s, s:n, s:n}", "version", "1.0", "truncation", "padding");
    const wg_status s = fill(&t, root);
    json_decref(t.vocab);
    if (s == WG_OK) *out = root;
    else json_decref(root);
    return s;
}

/* ---- the files beside it */

json_t *wg_hf_ids_json(const wg_weights *w)
{
    json_t *o = json_object(), *ends = json_array();
    const int64_t bos = id_of(w, KEY("bos_token_id"));
    if (bos >= 0) json_object_set_new(o, "bos_token_id", json_integer(bos));
    for (int i = 0; i < WG_HF_ENDS; i++)
        if (id_of(w, wg_hf_end_keys[i]) >= 0) json_array_append_new(ends, json_integer(id_of(w, wg_hf_end_keys[i])));
    if (json_array_size(ends) == 1) json_object_set(o, "eos_token_id", json_array_get(ends, 0));
    if (json_array_size(ends) > 1) json_object_set(o, "eos_token_id", ends);
    json_decref(ends);
    return o;
}

/* The text of a special token: the one that the file gives to templates, else that of its id. */
static void set_token(const wg_weights *w, json_t *o, const char *name, const char *key, const char *id)
{
    wg_text s;
    if (wg_meta_string(w, key, &s)) json_object_set_new(o, name, text_of(s));
    else if (!flag(&(writer){ .w = w }, "wager.special_tokens", false) && id_of(w, id) >= 0)
        json_object_set_new(o, name, text_of(token(&(writer){ .w = w }, id_of(w, id))));
}

json_t *wg_hf_tokenizer_config_json(const wg_weights *w, int context)
{
    static const char key[] = "tokenizer.chat_template";
    json_t *list = json_array(), *o = json_pack("{s:s, s:i, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
                                                "model_max_length", context, "clean_up_tokenization_spaces", 0);
    set_token(w, o, "bos_token", "wager.bos_token", KEY("bos_token_id"));
    set_token(w, o, "eos_token", "wager.eos_token", KEY("eos_token_id"));
    for (int i = 0; i < wg_meta_count(w); i++) {
        const char *name = wg_meta_key(w, i);
        wg_text s;
        if (strncmp(name, key, sizeof key - 1) != 0 || !wg_meta_string(w, name, &s)) continue;
        name += sizeof key - 1;
        if (*name == '\0') name = ".default";
        if (*name == '.') json_array_append_new(list, json_pack("{s:s, s:o}", "name", name + 1, "template", text_of(s)));
    }
    const json_t *first = json_array_get(list, 0);
    const bool alone = json_array_size(list) == 1 && strcmp(json_string_value(json_object_get(first, "name")), "default") == 0;
    if (alone) json_object_set(o, "chat_template", json_object_get(first, "template"));
    else if (json_array_size(list) > 0) json_object_set(o, "chat_template", list);
    json_decref(list);
    return o;
}
