/* SPDX-License-Identifier: MIT
 * Families of models as a current transformers saves them (tests/conformance/families), one table: the folder and the GGUF file
 * that is made of it have the library's logits, the same bits in one pass, token by token and in a tree, and again in a folder
 * that is written of the file; its ids of texts; its text of a conversation. WG_THIN: three of them; WG_FAMILY: one. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/convert.h"
#include "core/model/export.h"
#include "core/text/chat_template.h"
#include "core/text/tokenizer.h"
#include "tests/temp.h"
#include "tests/unit/model/one_sequence.h"
#include "tests/unit/model/tree_rows.h"

enum { TOKENS = 24, TREE = 12 };
static const double allowed = 1e-5;
static wg_error err;

typedef struct family {
    const char *name, *gguf; /* the archive; general.architecture */
    bool thin;               /* of the thin suite too */
    bool codes;              /* weights are codes: the library's logits are those of the same numbers in f32 */
} family;

static const family families[] = {
    { "smollm3", "smollm3", true, false },
    { "ministral3", "mistral3", false, false },
    { "mistral3-wrapped", "llama", false, false },
    { "olmo2", "olmo2", false, false },
    { "olmo3", "olmo2", true, false },
    { "granite", "granite", false, false },
    { "granite4", "granite", false, false },
    { "glm4", "glm4", false, false },
    { "exaone4", "exaone4", false, false },
    { "exaone4-full", "exaone4", false, false },
    { "cohere2", "cohere2", true, false },
    { "seed-oss", "seed_oss", false, false },
    { "hunyuan", "hunyuan-dense", false, false },
    { "ernie4_5", "ernie4_5", false, false },
    { "starcoder2", "starcoder2", false, false },
    { "stablelm", "stablelm", false, false },
    { "stablelm-parallel", "stablelm", false, false },
    { "arcee", "arcee", false, false },
    { "nemotron", "nemotron", false, false },
    { "llama-mlp-bias", "llama", false, false },
    { "gpt-oss", "gpt-oss", true, false },
    { "gpt-oss-mxfp4", "gpt-oss", false, true },
};
enum { FAMILIES = (int)(sizeof families / sizeof families[0]) };

static const char *root(void)
{
    const char *r = getenv("WG_ROOT");
    return r ? r : ".";
}

static void run(const char *command) { cr_assert_eq(system(command), 0, "%s", command); }

/* The bits of a base64 text, of floats in this machine's order. */
static int floats_of(const char *text, float *to, int most)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0, n = 0;
    char *out = (char *)to;
    size_t bytes = 0;
    for (; *text && *text != '='; text++) {
        bits = bits << 6 | (unsigned)(strchr(digits, *text) - digits);
        n += 6;
        if (n < 8 || bytes == (size_t)most * sizeof *to) continue;
        out[bytes++] = (char)(bits >> (n -= 8));
    }
    return (int)(bytes / sizeof *to);
}

/* The largest relative error of a row that the library's rows say. */
static double error_of(const json_t *facts, const float *x, int vocab)
{
    const json_int_t every = json_integer_value(json_object_get(facts, "every"));
    float *want = malloc((size_t)vocab * sizeof *want);
    double worst = 0;
    size_t i;
    const json_t *row;
    json_array_foreach(json_object_get(facts, "logits"), i, row) {
        double error = 0, size = 0;
        cr_assert_eq(floats_of(json_string_value(row), want, vocab), vocab);
        for (int k = 0; k < vocab; k++) {
            const double d = (double)x[(i * (size_t)every) * (size_t)vocab + (size_t)k] - (double)want[k];
            error += d * d;
            size += (double)want[k] * (double)want[k];
        }
        worst = fmax(worst, sqrt(error / size));
    }
    free(want);
    return worst;
}

/* The logits of one pass; those of single tokens and of a tree have the same bits. */
static float *passes(const char *path, const char *name, const int32_t *token, int *vocab)
{
    wg_weights *w;
    must(wg_weights_open(&w, path, &err), &err);
    setup u = setup_open(w, WG_F32, 0);
    const size_t row = (size_t)(*vocab = u.lm->vocab), bytes = TOKENS * row * sizeof(float);
    float *all = malloc(bytes), *one = malloc(bytes);
    feed(&u, token, TOKENS, all);
    wg_kv_truncate(u.seq, 0);
    for (int i = 0; i < TOKENS; i++) feed(&u, token + i, 1, one + (size_t)i * row);
    cr_expect(memcmp(one, all, bytes) == 0, "%s: decoding differs from prefill", name);
    wg_kv_truncate(u.seq, TOKENS - TREE);
    feed_tree(&u, token + TOKENS - TREE, TREE, one);
    cr_expect(memcmp(one, all + (size_t)(TOKENS - TREE) * row, TREE * row * sizeof(float)) == 0, "%s: a tree differs", name);
    setup_close(&u);
    wg_weights_close(w);
    free(one);
    return all;
}

/* Ids of texts, and the text of a conversation. */
static int check_texts(const json_t *facts, const char *path, const char *name)
{
    wg_weights *w;
    wg_tokenizer *t;
    size_t i, k, n;
    const json_t *v;
    int texts = 0;
    must(wg_weights_open(&w, path, &err), &err);
    must(wg_tokenizer_open(&t, w, &err), &err);
    json_array_foreach(json_object_get(facts, "texts"), i, v) {
        const json_t *want = json_array_get(json_object_get(facts, "ids"), i);
        int32_t *ids;
        must(wg_tokenizer_encode(t, json_string_value(v), strlen(json_string_value(v)), true, true, &ids, &n, &err), &err);
        bool same = n == json_array_size(want);
        for (k = 0; same && k < n; k++) same = ids[k] == (int32_t)json_integer_value(json_array_get(want, k));
        cr_expect(same, "%s: '%s' has other ids", name, json_string_value(v));
        texts += same;
        wg_free(ids);
    }
    json_t *data = json_pack("{s:O, s:b}", "messages", json_object_get(facts, "talk"), "add_generation_prompt", true);
    wg_rendered r;
    must(wg_chat_template_render(w, NULL, NULL, data, NULL, &r, &err), &err);
    cr_expect_str_eq(r.text, json_string_value(json_object_get(facts, "said")), "%s: the conversation", name);
    wg_rendered_free(&r);
    json_decref(data);
    wg_tokenizer_close(t);
    wg_weights_close(w);
    return texts;
}

static void check(const family *f)
{
    char path[600], folder[100], gguf[200];
    temp t, out;
    int vocab, again;
    int32_t token[TOKENS];
    size_t i;
    const json_t *v;
    wg_weights *w;
    wg_text is;
    snprintf(path, sizeof path, "%.200s/tests/conformance/families/%.60s.json", root(), f->name);
    json_t *facts = json_load_file(path, 0, NULL);
    cr_assert(facts, "%s", path);
    json_array_foreach(json_object_get(facts, "tokens"), i, v) token[i] = (int32_t)json_integer_value(v);
    temp_make(&t), temp_make(&out);
    snprintf(path, sizeof path, "tar -xzf '%.200s/tests/conformance/families/%.60s.tar.gz' -C '%s'", root(), f->name, t.dir);
    run(path);
    snprintf(folder, sizeof folder, "%s", t.dir);
    float *x = passes(folder, f->name, token, &vocab);
    snprintf(gguf, sizeof gguf, "%s", temp_at(&t, "model.gguf"));
    must(wg_convert(folder, NULL, gguf, -1, &err), &err);
    float *y = passes(gguf, f->name, token, &again);
    const size_t bytes = TOKENS * (size_t)vocab * sizeof *x;
    cr_expect(again == vocab && memcmp(x, y, bytes) == 0, "%s: the GGUF file has other bits", f->name);
    if (f->codes) { /* whose inputs are rounded too */
        free(x);
        must(wg_convert(folder, NULL, gguf, WG_F32, &err), &err);
        x = passes(gguf, f->name, token, &again);
    }
    const double error = error_of(facts, x, vocab);
    free(y);
    must(wg_weights_open(&w, gguf, &err), &err);
    cr_expect(wg_meta_string(w, "general.architecture", &is) && is.n == strlen(f->gguf) && memcmp(is.s, f->gguf, is.n) == 0);
    must(wg_export(w, temp_at(&out, "folder"), -1, 0, &err), &err);
    wg_weights_close(w);
    y = passes(temp_at(&out, "folder"), f->name, token, &again);
    cr_expect(again == vocab && memcmp(x, y, bytes) == 0, "%s: the folder of the GGUF file has other bits", f->name);
    const int texts = check_texts(facts, folder, f->name);
    fprintf(stderr, "families: %-18s GGUF %-14s error %.1e (allowed %.0e), texts %d of %d, bits of 3 passes and 3 files\n",
            f->name, f->gguf, error, allowed, texts, (int)json_array_size(json_object_get(facts, "texts")));
    cr_expect(error < allowed, "%s: %g", f->name, error);
    free(x), free(y);
    json_decref(facts);
    snprintf(path, sizeof path, "rm -r '%s' '%s'", t.dir, out.dir);
    run(path);
}

Test(families, agree_with_transformers)
{
    const char *only = getenv("WG_FAMILY"), *thin = getenv("WG_THIN");
    for (int i = 0; i < FAMILIES; i++)
        if (only ? strcmp(only, families[i].name) == 0 : !thin || families[i].thin) check(&families[i]);
}
