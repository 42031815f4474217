/* SPDX-License-Identifier: MIT
 * Files written by other programs: vocabularies in GGUF, llama2.c checkpoints. They are not in the repository; without
 * WG_SHARED the whole program is skipped (77), so that no part of it counts as passed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/convert.h"
#include "core/file/weights.h"
#include "tests/temp.h"

enum { SKIP = 77 };
static int failures;

#define expect(cond) ((cond) ? (void)0 : (void)(failures++, printf("%s:%d: %s\n", __FILE__, __LINE__, #cond)))

static wg_weights *open_file(const char *folder, const char *name)
{
    char path[1024];
    wg_weights *w = NULL;
    wg_error err = { 0 };
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (wg_weights_open(&w, path, &err)) {
        printf("%s\n", err.text);
        failures++;
    }
    return w;
}

static void vocabularies(const char *shared)
{
    static const struct {
        const char *name, *model;
        int64_t tokens;
    } row[] = {
        { "tokenizers/gguf/ggml-vocab-llama-spm.gguf", "llama", 32000 },
        { "tokenizers/gguf/ggml-vocab-gpt-2.gguf", "gpt2", 50257 },
        { "tokenizers/gguf/ggml-vocab-phi-3.gguf", "llama", 32064 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        wg_text t;
        wg_weights *w = open_file(shared, row[i].name);
        if (!w) continue;
        expect(wg_meta_string(w, "tokenizer.ggml.model", &t) && t.n == strlen(row[i].model) && !memcmp(t.s, row[i].model, t.n));
        const int64_t n = wg_meta_array(w, "tokenizer.ggml.tokens", NULL);
        expect(n == row[i].tokens);
        int64_t bad = 0;
        for (int64_t k = 0; k < n; k++) bad += !wg_meta_array_string(w, "tokenizer.ggml.tokens", k, &t) || t.n >= 1000;
        expect(bad == 0);
        wg_weights_close(w);
    }
}

static void checkpoints(const char *shared)
{
    char path[1024];
    int64_t v = 0;
    size_t parameters = 0;
    wg_error err = { 0 };
    wg_weights *w = open_file(shared, "weights/llama2c/stories260K.bin");
    if (!w) return;
    expect(wg_weights_count(w) == 47);
    expect(wg_meta_int(w, "llama.vocab_size", &v) && v == 512);
    for (int i = 0; i < wg_weights_count(w); i++) parameters += wg_weights_at(w, i)->bytes / 4;
    expect(parameters == 260032);
    wg_weights_close(w);
    snprintf(path, sizeof path, "%s/weights/llama2c/stories260K_v1.bin", shared);
    expect(wg_weights_open(&w, path, &err) == WG_EUNSUPPORTED && strstr(err.text, "version 1 or 2"));
}

static void conversion(const char *shared)
{
    char model[1024], vocabulary[1024];
    wg_error err = { 0 };
    temp t;
    temp_make(&t);
    snprintf(model, sizeof model, "%s/weights/llama2c/stories260K.bin", shared);
    snprintf(vocabulary, sizeof vocabulary, "%s/weights/llama2c/tok512.bin", shared);
    expect(wg_convert(model, vocabulary, temp_at(&t, "out.gguf"), WG_F16, &err) == WG_OK);
    wg_weights *b = open_file(t.dir, "out.gguf");
    wg_text piece;
    int64_t kind;
    if (b) {
        expect(wg_weights_count(b) == 47);
        expect(wg_meta_array_string(b, "tokenizer.ggml.tokens", 259, &piece) && piece.n == 4 &&
               !memcmp(piece.s, "\xe2\x96\x81t", 4));
        expect(wg_meta_array_string(b, "tokenizer.ggml.tokens", 1, &piece) && piece.n == 3 && !memcmp(piece.s, "<s>", 3));
        expect(wg_meta_array_int(b, "tokenizer.ggml.token_type", 258, &kind) && kind == 6);
    }
    wg_weights_close(b);
    temp_remove(&t);
}

int main(void)
{
    const char *shared = getenv("WG_SHARED");
    if (!shared) {
        puts("SKIPPED: WG_SHARED is not set");
        return SKIP;
    }
    vocabularies(shared);
    checkpoints(shared);
    conversion(shared);
    printf("%d failures, %zu blocks not freed\n", failures, wg_mem_read().live_blocks);
    return failures > 0 || wg_mem_read().live_blocks > 0;
}
