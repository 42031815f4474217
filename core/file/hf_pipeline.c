/* SPDX-License-Identifier: MIT
 * The pipeline of a tokenizer.json: what happens to a text before and after the model. Steps are recognised by what they do,
 * never by the name of a model, and become the lists of words that core/text reads. A step that is not known is refused by its
 * name, because it would change the ids. */
#include <string.h>

#include "core/base/base64.h"
#include "core/base/mem.h"
#include "core/file/hf_tokenizer_impl.h"
#include "core/file/pretok_rows.h"

typedef wg_hf_tokenizer_reader reader;

#define get wg_hf_member

static bool is_text(const json_t *v, const char *s) { return json_is_string(v) && strcmp(json_string_value(v), s) == 0; }
static bool is_type(const json_t *v, const char *type) { return is_text(get(v, "type"), type); }

/* The steps of a Sequence, or the step itself; NULL behind the last. */
static const json_t *step_at(const json_t *v, const char *list, size_t i)
{
    if (is_type(v, "Sequence")) return json_array_get(get(v, list), i);
    return i == 0 ? v : NULL;
}

wg_status wg_hf_refuse_step(const reader *r, const char *what, const json_t *v)
{
    char *text = v ? wg_json_canonical(v, false) : NULL;
    const wg_status s =
        wg_fail(r->err, WG_EUNSUPPORTED,
                "%s: %s is not implemented: %.200s; docs/models.md lists the steps of a tokenizer.json that are", r->path, what,
                text ? text : "none");
    wg_free(text);
    return s;
}

wg_status wg_hf_malformed(const reader *r, const char *what, const char *expected)
{
    return wg_fail(r->err, WG_EMODEL, "%s: %s: expected %s; download the file again", r->path, what, expected);
}

/* Appends up to three words; the last of them may be a JSON string. */
static bool add(wg_hf_words *to, const char *a, const char *b, const json_t *c)
{
    if (to->n + 3 > WG_HF_WORDS) return false;
    if (a) to->word[to->n++] = (wg_text){ a, strlen(a) };
    if (b) to->word[to->n++] = (wg_text){ b, strlen(b) };
    if (c) to->word[to->n++] = (wg_text){ json_string_value(c), json_string_length(c) };
    return true;
}

/* ---- normalizer */

const char *const wg_hf_plain_normalizers[WG_HF_PLAIN_NORMALIZERS][2] = {
    { "NFC", "nfc" },
    { "NFD", "nfd" },
    { "NFKC", "nfkc" },
    { "NFKD", "nfkd" },
    { "Lowercase", "lowercase" },
    { "StripAccents", "strip_accents" },
    { "Nmt", "nmt" },
};

/* The map of characters, which the file has in base64. One of them is kept. */
static bool add_precompiled(reader *r, const json_t *map)
{
    const size_t n = json_string_length(map), room = n / 4 * 3 + 1;
    if (n == 0 || r->map.s || !(r->map.s = wg_alloc(room, 1))) return false;
    return wg_base64_decode(json_string_value(map), n, (char *)(uintptr_t)r->map.s, &r->map.n) &&
           add(&r->normal, "precompiled", NULL, NULL) && (r->normal.word[r->normal.n++] = r->map, true);
}

static bool add_replace(reader *r, const json_t *v)
{
    const json_t *pattern = get(v, "pattern"), *content = get(v, "content");
    const bool regex = json_is_string(get(pattern, "Regex"));
    const json_t *from = get(pattern, regex ? "Regex" : "String");
    return json_string_length(from) > 0 && json_is_string(content) &&
           add(&r->normal, regex ? "replace_regex" : "replace", NULL, from) && add(&r->normal, NULL, NULL, content);
}

static bool add_normal(reader *r, const json_t *v)
{
    wg_hf_words *to = &r->normal;
    for (size_t i = 0; i < WG_HF_PLAIN_NORMALIZERS; i++)
        if (is_type(v, wg_hf_plain_normalizers[i][0])) return add(to, wg_hf_plain_normalizers[i][1], NULL, NULL);
    if (is_type(v, "Precompiled")) return add_precompiled(r, get(v, "precompiled_charsmap"));
    if (is_type(v, "Replace")) return add_replace(r, v);
    if (is_type(v, "Prepend") && json_is_string(get(v, "prepend"))) return add(to, "prepend", NULL, get(v, "prepend"));
    if (!is_type(v, "Strip")) return false;
    const bool left = json_is_true(get(v, "strip_left")), right = json_is_true(get(v, "strip_right"));
    return !(left || right) || add(to, "strip", left && right ? "both" : left ? "left" : "right", NULL);
}

static wg_status read_normalizer(reader *r)
{
    const json_t *v = get(r->root, "normalizer"), *one;
    for (size_t i = 0; (one = step_at(v, "normalizers", i)); i++)
        if (!add_normal(r, one)) return wg_hf_refuse_step(r, "this normalizer", one);
    return WG_OK;
}

/* Whether the words from `at` on are these two or three, U+2581 and a space being the only texts. */
static bool words_are(const wg_hf_words *w, size_t at, size_t n, const char *const *want)
{
    if (at + n > w->n) return false;
    for (size_t i = 0; i < n; i++)
        if (!wg_text_is(w->word[at + i], want[i])) return false;
    return true;
}

/* Takes the steps that write spaces as U+2581 from the end of the normaliser: core/text does it. */
static void take_spaces(reader *r)
{
    static const char *const replace[] = { "replace", " ", WG_HF_SPACE }, *const prepend[] = { "prepend", WG_HF_SPACE };
    wg_hf_words *w = &r->normal;
    if (w->n >= 5 && words_are(w, w->n - 5, 2, prepend) && words_are(w, w->n - 3, 3, replace)) {
        r->prepends = r->replaces = true;
        w->n -= 5;
    } else if (w->n >= 5 && words_are(w, w->n - 5, 3, replace) && words_are(w, w->n - 2, 2, prepend)) {
        r->prepends = r->replaces = true;
        w->n -= 5;
    } else if (w->n >= 3 && words_are(w, w->n - 3, 3, replace)) {
        r->replaces = true;
        w->n -= 3;
    }
    r->prefix_space = r->prepends;
}

/* ---- pre_tokenizer */

/* Behaviours as tokenizer.json and the list of words call them. */
enum { BEHAVIORS = 5 };
static const char *const behaviors[BEHAVIORS][2] = { { "Isolated", "isolated" },
                                                     { "Removed", "removed" },
                                                     { "Contiguous", "contiguous" },
                                                     { "MergedWithPrevious", "merged_with_previous" },
                                                     { "MergedWithNext", "merged_with_next" } };

static const char *behavior_of(const json_t *v)
{
    for (size_t i = 0; i < BEHAVIORS; i++)
        if (is_text(get(v, "behavior"), behaviors[i][0])) return behaviors[i][1];
    return NULL;
}

const char *wg_hf_behavior_title(wg_text word)
{
    for (size_t i = 0; i < BEHAVIORS; i++)
        if (wg_text_is(word, behaviors[i][1])) return behaviors[i][0];
    return NULL;
}

static bool add_split(reader *r, const json_t *v)
{
    const json_t *regex = get(get(v, "pattern"), "Regex"), *text = get(get(v, "pattern"), "String");
    const char *behavior = behavior_of(v);
    const bool inverted = json_is_true(get(v, "invert"));
    if (!behavior) return false;
    if (json_is_string(regex)) return add(&r->pre, inverted ? "split_not" : "split", behavior, regex);
    return json_is_string(text) && !inverted && add(&r->pre, "text", behavior, text);
}

/* `first`: the first step. ByteLevel writes bytes as characters, which later steps see. */
static bool add_pre(reader *r, const json_t *v, bool first)
{
    if (is_type(v, "ByteLevel")) {
        const json_t *space = get(v, "add_prefix_space"), *regex = get(v, "use_regex");
        if ((!space || json_is_true(space)) && (!first || !add(&r->pre, "prefix_space", NULL, NULL))) return false;
        if (regex && !json_is_true(regex)) return add(&r->pre, "bytes", NULL, NULL);
        return add(&r->pre, "split", "isolated", NULL) && add(&r->pre, WG_PRETOK_GPT2, "bytes", NULL);
    }
    if (is_type(v, "Digits")) return add(&r->pre, "digits", json_is_true(get(v, "individual_digits")) ? "each" : "runs", NULL);
    if (is_type(v, "Punctuation")) {
        const char *behavior = get(v, "behavior") ? behavior_of(v) : "isolated";
        return behavior && add(&r->pre, "punctuation", behavior, NULL);
    }
    if (is_type(v, "WhitespaceSplit")) return add(&r->pre, "split", "removed", NULL) && add(&r->pre, "\\s", NULL, NULL);
    if (is_type(v, "CharDelimiterSplit") && json_is_string(get(v, "delimiter")))
        return add(&r->pre, "text", "removed", get(v, "delimiter"));
    return is_type(v, "Split") && add_split(r, v);
}

static wg_status read_pretok(reader *r, const json_t *v)
{
    const json_t *one;
    for (size_t i = 0; (one = step_at(v, "pretokenizers", i)); i++)
        if (!add_pre(r, one, i == 0)) return wg_hf_refuse_step(r, "this pre_tokenizer", one);
    static const char *const bytes[] = { "bytes" };
    while (words_are(&r->pre, r->pre.n - (r->pre.n > 0), 1, bytes)) r->pre.n--; /* no step sees them */
    return WG_OK;
}

/* Metaspace: where a prefix is put, and whether spaces begin words. */
static bool read_metaspace(reader *r, const json_t *v)
{
    const json_t *scheme = get(v, "prepend_scheme"), *split = get(v, "split");
    if (!is_type(v, "Metaspace") || !is_text(get(v, "replacement"), WG_HF_SPACE) || r->replaces) return false;
    const bool old_never = !scheme && json_is_false(get(v, "add_prefix_space"));
    r->metaspace = is_text(scheme, "first") ? "first" : is_text(scheme, "never") || old_never ? NULL : "always";
    if (scheme && r->metaspace && !is_text(scheme, r->metaspace)) return false;
    r->prefix_space = r->metaspace != NULL;
    r->split_spaces = !split || json_is_true(split);
    return r->replaces = true;
}

/* A Split at spaces cuts nothing where the normaliser has left none. */
static bool splits_at_spaces(const json_t *v)
{
    return is_type(v, "Split") && is_text(get(get(v, "pattern"), "String"), " ") && !json_is_true(get(v, "invert"));
}

/* Where spaces become U+2581, and whether one is put before a text. */
static wg_status read_spaces(reader *r)
{
    const json_t *v = get(r->root, "pre_tokenizer");
    take_spaces(r);
    if (v && !(r->replaces && splits_at_spaces(v)) && !read_metaspace(r, v))
        return wg_hf_refuse_step(r, "this pre_tokenizer", v);
    return r->replaces ? WG_OK : wg_hf_refuse_step(r, "this normalizer", get(r->root, "normalizer"));
}

/* ---- decoder */

/* Decoding is the inverse of what is known of the text; a decoder that does something else is refused. */
static wg_status check_decoder(const reader *r)
{
    const json_t *v = get(r->root, "decoder"), *one;
    bool strips = false;
    if (!r->spm && !r->unigram) return is_type(v, "ByteLevel") ? WG_OK : wg_hf_refuse_step(r, "this decoder", v);
    if (!v) return WG_OK;
    for (size_t i = 0; (one = step_at(v, "decoders", i)); i++) {
        const bool replace = is_type(one, "Replace") && is_text(get(get(one, "pattern"), "String"), WG_HF_SPACE) &&
                             is_text(get(one, "content"), " ");
        if (is_type(one, "Metaspace"))
            strips = !is_text(get(one, "prepend_scheme"), "never") && !json_is_false(get(one, "add_prefix_space"));
        else if (is_type(one, "Strip") && is_text(get(one, "content"), " ") && json_integer_value(get(one, "start")) == 1 &&
                 json_integer_value(get(one, "stop")) == 0)
            strips = true;
        else if (!replace && !is_type(one, "ByteFallback") && !is_type(one, "Fuse"))
            return wg_hf_refuse_step(r, "this decoder", one);
    }
    return strips == r->prefix_space
               ? WG_OK
               : wg_hf_refuse_step(r, "a decoder that does not take off the space put before a text, or takes off another,", v);
}

/* ---- post_processor */

/* The ids of a special token of a template. */
static bool add_around(const json_t *ids, int32_t *to, size_t *n)
{
    const size_t count = json_array_size(ids);
    if (count == 0 || *n + count > WG_HF_AROUND) return false;
    for (size_t i = 0; i < count; i++) {
        const json_int_t id = json_integer_value(json_array_get(ids, i));
        if (!json_is_integer(json_array_get(ids, i)) || id < 0 || id > INT32_MAX) return false;
        to[(*n)++] = (int32_t)id;
    }
    return true;
}

/* A template for one text: special tokens, the text, special tokens. */
static wg_status read_template(reader *r, const json_t *v)
{
    const json_t *single = get(v, "single");
    bool behind = false, ok = json_is_array(single);
    for (size_t i = 0; i < json_array_size(single) && ok; i++) {
        const json_t *piece = json_array_get(single, i), *name = get(get(piece, "SpecialToken"), "id");
        if (get(piece, "Sequence")) {
            ok = !behind;
            behind = true;
            continue;
        }
        const char *id = json_is_string(name) ? json_string_value(name) : "";
        const json_t *ids = get(get(get(v, "special_tokens"), id), "ids");
        ok = behind ? add_around(ids, r->after, &r->afters) : add_around(ids, r->before, &r->befores);
    }
    return ok && behind ? WG_OK : wg_hf_refuse_step(r, "this post_processor", single);
}

static wg_status read_post_processor(reader *r)
{
    const json_t *v = get(r->root, "post_processor"), *one;
    for (size_t i = 0; (one = step_at(v, "processors", i)); i++) {
        if (is_type(one, "TemplateProcessing") && r->befores + r->afters == 0) WG_TRY(read_template(r, one));
        else if (!is_type(one, "ByteLevel"))
            return wg_hf_refuse_step(r, "this post_processor", one); /* ByteLevel trims offsets alone */
    }
    return WG_OK;
}

/* ---- all of it */

static wg_status check_model(reader *r)
{
    static const char *const unset[] = { "continuing_subword_prefix", "end_of_word_suffix" };
    const json_t *dropout = get(r->model, "dropout");
    r->unigram = is_type(r->model, "Unigram");
    if (!r->unigram && !is_type(r->model, "BPE") &&
        !(json_is_object(r->model) && !get(r->model, "type") && get(r->model, "merges")))
        return wg_hf_refuse_step(r, "this model type", get(r->model, "type"));
    if (dropout && !(json_is_number(dropout) && json_number_value(dropout) == 0))
        return wg_hf_refuse_step(r, "dropout", dropout);
    for (size_t i = 0; i < sizeof unset / sizeof unset[0]; i++) {
        const json_t *v = get(r->model, unset[i]);
        if (v && !is_text(v, "")) return wg_hf_refuse_step(r, unset[i], v);
    }
    return WG_OK;
}

wg_status wg_hf_pipeline(reader *r)
{
    const json_t *pre = get(r->root, "pre_tokenizer"), *one;
    bool bytes = false;
    WG_TRY(check_model(r));
    for (size_t i = 0; (one = step_at(pre, "pretokenizers", i)); i++) bytes = bytes || is_type(one, "ByteLevel");
    if (bytes && r->unigram) return wg_hf_refuse_step(r, "Unigram over bytes", pre);
    if (!bytes && is_type(get(r->root, "decoder"), "ByteLevel")) return wg_hf_refuse_step(r, "this pre_tokenizer", pre);
    r->spm = !bytes && !r->unigram;
    WG_TRY(read_normalizer(r));
    WG_TRY(bytes ? read_pretok(r, pre) : read_spaces(r));
    if (r->spm && json_is_true(get(r->model, "ignore_merges")))
        return wg_hf_refuse_step(r, "ignore_merges of characters", get(r->model, "ignore_merges"));
    WG_TRY(check_decoder(r));
    return read_post_processor(r);
}
