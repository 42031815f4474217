/* SPDX-License-Identifier: MIT
 * tokenizer.json of the library `tokenizers`, as the keys of a GGUF file. Two pipelines are known:
 *   byte-level BPE: normalizer none or NFC (which is not applied: texts are taken as they are), a pre-tokenizer whose pattern
 *     core/text implements, decoder ByteLevel;
 *   SPM-style BPE: spaces become U+2581 by the normalizer or by Metaspace, byte fallback. Its merges become scores of tokens: minus
 *     the rank of the first merge that makes the token.
 * Any other step is refused by name, because it would change the ids. */
#include "core/file/hf.h"

#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"

enum { NORMAL = 1, UNKNOWN, CONTROL, USER, UNUSED, BYTE }; /* tokenizer.ggml.token_type */
enum { PAD_TEXT = 20, TOKEN_MOST = 4096 };

#define SPACE "\xe2\x96\x81" /* U+2581 */

typedef struct reader {
    const json_t *root, *model, *vocab;
    const char *path;
    int n; /* tokens: rows of the embedding */
    bool spm, prefix_space;
    const char *pretok; /* byte-level: the name of its pattern in GGUF files */
    int64_t bos;        /* put before a text; -1: none */
    wg_text *text;      /* (n) of each token; s NULL: none has this id */
    int32_t *type;      /* (n) */
    float *score;       /* (n) */
    wg_text *merge;     /* (merges) "left right" */
    char *bytes;        /* what merges and unused tokens are written to */
    size_t merges;
    wg_error *err;
} reader;

static const json_t *get(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_null(v) ? NULL : v;
}

static bool is_text(const json_t *v, const char *s) { return json_is_string(v) && strcmp(json_string_value(v), s) == 0; }
static bool is_type(const json_t *v, const char *type) { return is_text(get(v, "type"), type); }
static bool is_list(const json_t *v, size_t n) { return json_is_array(v) && json_array_size(v) == n; }

static wg_status refuse_step(const reader *r, const char *what, const json_t *v)
{
    char *text = v ? wg_json_canonical(v, false) : NULL;
    const wg_status s =
        wg_fail(r->err, WG_EUNSUPPORTED,
                "%s: %s is not implemented: %.200s; known are byte-level BPE with the patterns of gpt-2, llama-3, "
                "qwen2 and smollm, and SPM-style BPE with byte fallback",
                r->path, what, text ? text : "none");
    wg_free(text);
    return s;
}

static wg_status malformed(const reader *r, const char *what, const char *expected)
{
    return wg_fail(r->err, WG_EMODEL, "%s: %s: expected %s; download the file again", r->path, what, expected);
}

/* ---- the pipeline */

/* The steps of a Sequence, or the step itself; NULL behind the last. */
static const json_t *step(const json_t *v, const char *list, size_t i)
{
    if (is_type(v, "Sequence")) return json_array_get(get(v, list), i);
    return i == 0 ? v : NULL;
}

static bool is_byte_level(const json_t *v, bool regex)
{
    return is_type(v, "ByteLevel") && json_is_false(get(v, "add_prefix_space")) &&
           (get(v, "use_regex") ? json_is_true(get(v, "use_regex")) : true) == regex;
}

static const struct pattern {
    const char *regex, *pretok;
    bool whole_words; /* ignore_merges of the model */
} patterns[] = {
    { "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
      "\\s+(?!\\S)|\\s+",
      "llama-bpe", true },
    { "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
      "\\s+(?!\\S)|\\s+",
      "dbrx", false },
    { "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
      "\\s+(?!\\S)|\\s+",
      "qwen2", false },
};

static wg_status read_pretok(reader *r)
{
    const json_t *v = get(r->root, "pre_tokenizer"), *first = step(v, "pretokenizers", 0),
                 *second = step(v, "pretokenizers", 1);
    const bool whole = json_is_true(get(r->model, "ignore_merges")), more = second && step(v, "pretokenizers", 2);
    if (is_byte_level(first, true) && !second && !whole) r->pretok = "gpt-2";
    if (is_type(first, "Digits") && json_is_true(get(first, "individual_digits")) && is_byte_level(second, true) && !whole)
        r->pretok = "smollm";
    const json_t *regex = get(get(first, "pattern"), "Regex");
    if (is_type(first, "Split") && is_text(get(first, "behavior"), "Isolated") && !json_is_true(get(first, "invert")) &&
        is_byte_level(second, false))
        for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
            if (is_text(regex, patterns[i].regex) && whole == patterns[i].whole_words) r->pretok = patterns[i].pretok;
    return r->pretok && !more ? WG_OK : refuse_step(r, "this pre_tokenizer", v);
}

static bool replaces_spaces(const json_t *v)
{
    return is_type(v, "Replace") && is_text(get(get(v, "pattern"), "String"), " ") && is_text(get(v, "content"), SPACE);
}

/* Where spaces become U+2581, and whether one is put before a text. */
static wg_status read_spaces(reader *r)
{
    const json_t *v = get(r->root, "normalizer"), *first = step(v, "normalizers", 0), *second = step(v, "normalizers", 1);
    const json_t *meta = get(r->root, "pre_tokenizer");
    if (!v && is_type(meta, "Metaspace") && is_text(get(meta, "replacement"), SPACE) && json_is_false(get(meta, "split"))) {
        r->prefix_space = is_text(get(meta, "prepend_scheme"), "always");
        if (r->prefix_space || is_text(get(meta, "prepend_scheme"), "never")) return WG_OK;
    }
    if (meta) return refuse_step(r, "this pre_tokenizer", meta);
    r->prefix_space = is_type(first, "Prepend") && is_text(get(first, "prepend"), SPACE);
    if (r->prefix_space && replaces_spaces(second) && !step(v, "normalizers", 2)) return WG_OK;
    if (replaces_spaces(first) && !second) return WG_OK;
    return refuse_step(r, "this normalizer", v);
}

static wg_status read_pipeline(reader *r)
{
    static const char *const unset[] = { "dropout", "continuing_subword_prefix", "end_of_word_suffix" };
    const json_t *normalizer = get(r->root, "normalizer"), *decoder = get(r->root, "decoder");
    if (!is_type(r->model, "BPE") && !(json_is_object(r->model) && !get(r->model, "type") && get(r->model, "merges")))
        return refuse_step(r, "this model type", get(r->model, "type"));
    for (size_t i = 0; i < sizeof unset / sizeof unset[0]; i++) {
        const json_t *v = get(r->model, unset[i]);
        if (v && !is_text(v, "")) return refuse_step(r, unset[i], v);
    }
    r->spm = json_is_true(get(r->model, "byte_fallback"));
    if (r->spm) return read_spaces(r);
    if (normalizer && !is_type(normalizer, "NFC")) return refuse_step(r, "this normalizer", normalizer);
    if (!is_type(decoder, "ByteLevel")) return refuse_step(r, "this decoder", decoder);
    return read_pretok(r);
}

/* A template for one text: the text, or one special token before it. */
static wg_status read_template(reader *r, const json_t *v)
{
    const json_t *single = get(v, "single"), *last = json_array_get(single, json_array_size(single) - 1);
    const json_t *name = get(get(json_array_get(single, 0), "SpecialToken"), "id");
    const bool ends_in_text = get(last, "Sequence") != NULL;
    if (ends_in_text && is_list(single, 1)) return WG_OK;
    const json_t *ids = get(get(get(v, "special_tokens"), json_string_value(name) ? json_string_value(name) : ""), "ids");
    const json_t *id = json_array_get(ids, 0);
    if (!ends_in_text || !is_list(single, 2) || !is_list(ids, 1) || !json_is_integer(id) || json_integer_value(id) < 0)
        return refuse_step(r, "this post_processor", single);
    r->bos = json_integer_value(id);
    return WG_OK;
}

static wg_status read_post_processor(reader *r)
{
    const json_t *v = get(r->root, "post_processor"), *one;
    r->bos = -1;
    for (size_t i = 0; (one = step(v, "processors", i)); i++) {
        if (is_type(one, "TemplateProcessing")) WG_TRY(read_template(r, one));
        else if (!is_type(one, "ByteLevel"))
            return refuse_step(r, "this post_processor", one); /* ByteLevel trims offsets alone */
    }
    return WG_OK;
}

/* ---- tokens */

static wg_status add_token(reader *r, const char *text, const json_t *id, int32_t type)
{
    const json_int_t i = json_integer_value(id);
    const size_t n = strlen(text);
    if (!json_is_integer(id) || i < 0 || i >= r->n)
        return wg_fail(r->err, WG_EMODEL,
                       "%s: token '%.80s' has no id below %d, the rows of the embedding; do the files belong together?",
                       r->path, text, r->n);
    if (n == 0 || n > TOKEN_MOST)
        return wg_fail(r->err, WG_EMODEL, "%s: token %d is %zu bytes long: expected 1..%d", r->path, (int)i, n, TOKEN_MOST);
    if (r->text[i].s && (r->text[i].n != n || memcmp(r->text[i].s, text, n) != 0))
        return wg_fail(r->err, WG_EMODEL, "%s: tokens '%.60s' and '%.60s' have the same id %d; download the file again",
                       r->path, r->text[i].s, text, (int)i);
    r->text[i] = (wg_text){ text, n };
    r->type[i] = type;
    return WG_OK;
}

static bool is_byte_token(const char *s)
{
    return strlen(s) == 6 && strncmp(s, "<0x", 3) == 0 && s[5] == '>' && strspn(s + 3, "0123456789ABCDEF") == 2;
}

/* Added tokens are cut out of a text before all else: as they stand, not with the white space or word around them. */
static wg_status read_added(reader *r)
{
    static const char *const around[] = { "lstrip", "rstrip", "single_word" };
    const json_t *list = get(r->root, "added_tokens");
    if (list && !json_is_array(list)) return malformed(r, "'added_tokens'", "a list");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        const char *text = json_string_value(get(v, "content"));
        if (!text) return malformed(r, "an added token without 'content'", "a text");
        for (int k = 0; k < 3; k++)
            if (json_is_true(get(v, around[k]))) return refuse_step(r, around[k], v);
        WG_TRY(add_token(r, text, get(v, "id"), json_is_true(get(v, "special")) ? CONTROL : USER));
    }
    return WG_OK;
}

static wg_status read_tokens(reader *r)
{
    const char *text, *unknown = json_string_value(get(r->model, "unk_token"));
    json_t *id;
    if (!json_is_object(r->vocab)) return malformed(r, "'model.vocab'", "an object: token and id");
    json_object_foreach((json_t *)(uintptr_t)r->vocab, text, id) {
        WG_TRY(add_token(r, text, id, r->spm && is_byte_token(text) ? BYTE : NORMAL));
    }
    WG_TRY(read_added(r));
    id = unknown ? json_object_get(r->vocab, unknown) : NULL;
    if (id) r->type[json_integer_value(id)] = UNKNOWN;
    return WG_OK;
}

/* ---- merges */

/* The halves of a merge, "left right" or ["left", "right"]. */
static bool halves(const json_t *v, wg_text half[2])
{
    const char *s = json_string_value(v), *gap = s && *s ? strchr(s + 1, ' ') : NULL;
    if (gap) {
        half[0] = (wg_text){ s, (size_t)(gap - s) };
        half[1] = (wg_text){ gap + 1, strlen(gap + 1) };
        return half[1].n > 0;
    }
    for (size_t i = 0; i < 2 && is_list(v, 2); i++) {
        const json_t *part = json_array_get(v, i);
        half[i] = (wg_text){ json_string_value(part), json_string_length(part) };
    }
    return is_list(v, 2) && half[0].n > 0 && half[1].n > 0;
}

/* A score for the token that each merge makes: the first counts. Tokens of several characters that no merge makes cannot come
 * from a text. */
static wg_status score_tokens(reader *r, const json_t *list)
{
    char joined[2 * TOKEN_MOST + 1];
    wg_text half[2];
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!halves(json_array_get(list, i), half)) return malformed(r, "'model.merges'", "pairs of tokens");
        if (half[0].n > TOKEN_MOST || half[1].n > TOKEN_MOST) return malformed(r, "'model.merges'", "shorter tokens");
        memcpy(joined, half[0].s, half[0].n);
        memcpy(joined + half[0].n, half[1].s, half[1].n);
        joined[half[0].n + half[1].n] = '\0';
        const json_t *id = json_object_get(r->vocab, joined);
        if (!id) return malformed(r, "'model.merges'", "pairs that make a token");
        float *score = &r->score[json_integer_value(id)];
        if (*score > 0) *score = -(float)i;
    }
    for (int t = 0; t < r->n; t++) {
        const wg_text s = r->text[t];
        size_t first = 1;
        while (s.s && first < s.n && ((unsigned char)s.s[first] & 0xC0) == 0x80) first++;
        if (r->score[t] > 0 && r->type[t] == NORMAL && s.s && first < s.n) r->type[t] = UNUSED;
        if (r->score[t] > 0) r->score[t] = 0;
    }
    return WG_OK;
}

/* "left right" of every merge, written one behind the other to r->bytes from *at on. */
static wg_status list_merges(reader *r, const json_t *list, size_t *at)
{
    wg_text half[2];
    for (size_t i = 0; i < json_array_size(list); i++) {
        char *to = r->bytes + *at;
        if (!halves(json_array_get(list, i), half) || memchr(half[0].s, ' ', half[0].n))
            return malformed(r, "'model.merges'", "pairs of tokens without spaces");
        memcpy(to, half[0].s, half[0].n);
        to[half[0].n] = ' ';
        memcpy(to + half[0].n + 1, half[1].s, half[1].n);
        r->merge[i] = (wg_text){ to, half[0].n + half[1].n + 1 };
        *at += r->merge[i].n;
    }
    return WG_OK;
}

static size_t merge_bytes(const json_t *list)
{
    size_t n = 0;
    wg_text half[2];
    for (size_t i = 0; i < json_array_size(list); i++)
        if (halves(json_array_get(list, i), half)) n += half[0].n + half[1].n + 1;
    return n;
}

/* ---- all of it */

static void write(const reader *r, const wg_hf_ids *ids, wg_gguf_writer *g)
{
    static const char *const ends[WG_HF_ENDS] = { "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                                  "tokenizer.ggml.eom_token_id" };
    const char *model = r->spm ? "llama" : "gpt2";
    const int64_t bos = r->bos >= 0 ? r->bos : ids->bos;
    wg_gguf_set_string(g, "tokenizer.ggml.model", model, strlen(model));
    if (r->pretok) wg_gguf_set_string(g, "tokenizer.ggml.pre", r->pretok, strlen(r->pretok));
    wg_gguf_set_strings(g, "tokenizer.ggml.tokens", r->text, (size_t)r->n);
    wg_gguf_set_i32s(g, "tokenizer.ggml.token_type", r->type, (size_t)r->n);
    if (r->spm) wg_gguf_set_f32s(g, "tokenizer.ggml.scores", r->score, (size_t)r->n);
    else wg_gguf_set_strings(g, "tokenizer.ggml.merges", r->merge, r->merges);
    if (bos >= 0) wg_gguf_set_u32(g, "tokenizer.ggml.bos_token_id", (uint32_t)bos);
    for (int i = 0; i < WG_HF_ENDS; i++)
        if (ids->end[i] >= 0) wg_gguf_set_u32(g, ends[i], (uint32_t)ids->end[i]);
    for (int i = 0; i < r->n; i++)
        if (r->type[i] == UNKNOWN) wg_gguf_set_u32(g, "tokenizer.ggml.unknown_token_id", (uint32_t)i);
    wg_gguf_set_bool(g, "tokenizer.ggml.add_bos_token", r->bos >= 0);
    if (r->spm) wg_gguf_set_bool(g, "tokenizer.ggml.add_space_prefix", r->prefix_space);
}

/* Ids without a token: rows that pad the embedding. */
static void name_unused(reader *r, size_t at)
{
    for (int i = 0; i < r->n; i++) {
        if (r->text[i].s) continue;
        char *to = r->bytes + at;
        r->text[i] = (wg_text){ to, (size_t)snprintf(to, PAD_TEXT, "[PAD%d]", i) };
        r->type[i] = UNUSED;
        at += PAD_TEXT;
    }
}

static wg_status read_all(reader *r)
{
    const json_t *list = get(r->model, "merges");
    size_t at = 0;
    WG_TRY(read_tokens(r));
    if (!json_is_array(list)) return malformed(r, "'model.merges'", "a list of pairs of tokens");
    r->merges = json_array_size(list);
    int holes = 0;
    for (int i = 0; i < r->n; i++) {
        holes += !r->text[i].s;
        r->score[i] = 1; /* none */
    }
    const size_t bytes = (r->spm ? 0 : merge_bytes(list)) + (size_t)holes * PAD_TEXT;
    r->bytes = wg_alloc(bytes, 1);
    r->merge = wg_alloc(r->merges, sizeof *r->merge);
    if (!r->bytes || !r->merge) return wg_nomem(r->err, bytes + r->merges * sizeof *r->merge, "a vocabulary");
    WG_TRY(r->spm ? score_tokens(r, list) : list_merges(r, list, &at));
    name_unused(r, at);
    return WG_OK;
}

static wg_status check_id(const reader *r, const char *what, int64_t id)
{
    if (id < r->n) return WG_OK;
    return wg_fail(r->err, WG_EMODEL, "%s: the id of the %s token is %lld: expected one below %d, the rows of the embedding",
                   r->path, what, (long long)id, r->n);
}

wg_status wg_hf_tokenizer(wg_gguf_writer *g, const wg_json *tokenizer, const wg_hf_ids *ids, int vocab, wg_error *err)
{
    const json_t *root = wg_json_root(tokenizer), *model = get(root, "model");
    reader r = {
        .root = root, .model = model, .vocab = get(model, "vocab"), .path = wg_json_name(tokenizer), .n = vocab, .err = err
    };
    WG_TRY(read_pipeline(&r));
    WG_TRY(read_post_processor(&r));
    WG_TRY(check_id(&r, "first", r.bos >= 0 ? r.bos : ids->bos));
    for (int i = 0; i < WG_HF_ENDS; i++) WG_TRY(check_id(&r, "last", ids->end[i]));
    r.text = wg_calloc((size_t)vocab, sizeof *r.text);
    r.type = wg_calloc((size_t)vocab, sizeof *r.type);
    r.score = wg_calloc((size_t)vocab, sizeof *r.score);
    wg_status s = r.text && r.type && r.score ? WG_OK : wg_nomem(err, (size_t)vocab * sizeof *r.text, "a vocabulary");
    if (s == WG_OK) s = read_all(&r);
    if (s == WG_OK) write(&r, ids, g);
    wg_free(r.text);
    wg_free(r.type);
    wg_free(r.score);
    wg_free(r.bytes);
    wg_free(r.merge);
    return s;
}
