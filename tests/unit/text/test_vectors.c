/* SPDX-License-Identifier: MIT
 * Real vocabularies against other tokenizers: llama.cpp's vectors (made without BOS, special tokens as plain text) and the
 * golden ones of tests/golden/text. The vocabularies are not in the repository; without them (WG_SHARED) the test is
 * reported as skipped, which is why it has its own main. */
#include "core/base/mem.h"
#include "core/file/convert.h"
#include "core/text/chat.h"
#include "core/text/tokenizer.h"
#include "tests/unit/text/golden.h"

enum { SKIP = 77 };

static int failures;

static _Noreturn void die(const char *what, const char *why)
{
    printf("%s: %s\n", what, why);
    exit(1);
}

static void fail_count(const char *what, int got, int expected)
{
    if (got != expected) failures += printf("%s: %d vectors, expected %d\n", what, got, expected) > 0;
}

static wg_tokenizer *open_vocabulary(const char *shared, const char *name)
{
    char path[512];
    wg_error err;
    wg_weights *w;
    wg_tokenizer *t = NULL;
    snprintf(path, sizeof path, "%s/tokenizers/gguf/ggml-vocab-%s.gguf", shared, name);
    if (wg_weights_open(&w, path, &err)) die(path, err.text);
    if (wg_tokenizer_open(&t, w, &err)) die(path, err.text);
    wg_weights_close(w);
    return t;
}

/* Encodes, compares, and decodes back: the text must return, but for a literal U+2581 in "llama" files. */
static void check(const wg_tokenizer *t, const char *file, int line, const char *text, size_t n, const int *want, size_t n_want)
{
    int32_t *ids = NULL;
    size_t n_ids = 0, n_back = 0;
    char *back = NULL;
    wg_error err;
    if (wg_tokenizer_encode(t, text, n, false, false, &ids, &n_ids, &err) ||
        wg_tokenizer_decode(t, ids, n_ids, false, &back, &n_back, &err))
        die(file, err.text);
    bool same = n_ids == n_want;
    for (size_t i = 0; same && i < n_ids; i++) same = ids[i] == want[i];
    if (!same) {
        printf("%s:%d: got", file, line);
        for (size_t i = 0; i < n_ids; i++) printf(" %d", ids[i]);
        printf("\n");
    }
    const bool round_trip = strstr(text, "\xe2\x96\x81") || (n_back == n && memcmp(back, text, n) == 0);
    if (!round_trip) printf("%s:%d: decodes to \"%s\"\n", file, line, back);
    failures += !same || !round_trip;
    wg_free(ids);
    wg_free(back);
}

/* Inputs are divided by a line of their own; the outputs stand one in a line. */
static void official(const wg_tokenizer *t, const char *shared, const char *name)
{
    static const char bar[] = "\n__ggml_vocab_test__\n";
    char path[512];
    size_t n_in, n_out;
    int lines = 0, want[GOLDEN_NUMBERS];
    snprintf(path, sizeof path, "%s/tokenizers/gguf/ggml-vocab-%s.gguf.inp", shared, name);
    char *in = file_read(path, &n_in), *text = in;
    snprintf(path, sizeof path, "%s/tokenizers/gguf/ggml-vocab-%s.gguf.out", shared, name);
    char *out = file_read(path, &n_out), *next = out;
    if (!in || !out) die(path, "cannot be read");
    for (char *line = next, *end; (end = golden_line(&next)); line = next) {
        char *stop = strstr(text, bar);
        if (!stop) break;
        *stop = '\0';
        check(t, path, ++lines, text, (size_t)(stop - text), want, golden_numbers(line, end, want));
        text = stop + sizeof bar - 1;
    }
    fail_count(path, lines, 46);
    free(in);
    free(out);
}

static void ours(const wg_tokenizer *t, const char *name)
{
    char path[512];
    size_t n;
    int lines = 0, want[GOLDEN_NUMBERS];
    char *file = file_read(golden_path(name, path, sizeof path), &n), *next = file;
    if (!file) die(path, "cannot be read");
    for (char *line = next, *end; (end = golden_line(&next)); line = next) {
        char *tab = memchr(line, '\t', (size_t)(end - line));
        const size_t n_want = golden_numbers(tab + 1, end, want), len = golden_unescape(line, (size_t)(tab - line));
        line[len] = '\0';
        check(t, name, ++lines, line, len, want, n_want);
    }
    fail_count(path, lines, 100);
    free(file);
}

/* The Llama-2 vocabulary as llama2.c stores it, through our converter, behind a model of one layer and no meaning. */
static void converted(const char *shared)
{
    enum { DIM = 8, HIDDEN = 8, LAYERS = 1, HEADS = 1, VOCAB = 32000, CONTEXT = 4 };
    static const int32_t head[7] = { DIM, HIDDEN, LAYERS, HEADS, HEADS, VOCAB, CONTEXT };
    enum { FLOATS = VOCAB * DIM + 3 * DIM + 4 * DIM * DIM + 3 * DIM * HIDDEN + CONTEXT * DIM };
    static const float zero[FLOATS];
    char bin[600], gguf[600], tokenizer[600];
    temp dir;
    wg_error err;
    wg_weights *w;
    wg_tokenizer *t;
    temp_make(&dir);
    snprintf(bin, sizeof bin, "%s", temp_at(&dir, "model.bin"));
    snprintf(gguf, sizeof gguf, "%s", temp_at(&dir, "model.gguf"));
    snprintf(tokenizer, sizeof tokenizer, "%s/tokenizers/llama2/tokenizer.bin", shared);
    FILE *f = fopen(bin, "wb");
    if (!f || fwrite(head, sizeof head, 1, f) != 1 || fwrite(zero, sizeof zero, 1, f) != 1 || fclose(f))
        die(bin, "cannot be written");
    if (wg_convert(bin, tokenizer, gguf, -1, &err)) die("converting", err.text);
    if (wg_weights_open(&w, gguf, &err)) die(gguf, err.text);
    if (wg_tokenizer_open(&t, w, &err)) die(gguf, err.text);
    wg_weights_close(w);
    official(t, shared, "llama-spm");
    ours(t, "llama-spm.txt");
    wg_tokenizer_close(t);
    temp_remove(&dir);
}

/* Llama 2's template in its own vocabulary, against ids written down elsewhere. */
static void chat(const wg_tokenizer *t)
{
    static const int32_t want[] = { 1, 518, 25580, 29962, 22172, 518, 29914, 25580, 29962 }; /* <s> [INST] hello [/INST] */
    const wg_text turn = { "hello", 5 };
    wg_error err;
    int32_t *ids;
    size_t n;
    if (wg_chat_encode(t, &(wg_chat){ .family = WG_CHAT_LLAMA_2, .system = NULL }, &turn, 1, &ids, &n, &err))
        die("llama-2", err.text);
    if (n != sizeof want / sizeof *want || memcmp(ids, want, sizeof want) != 0)
        failures += printf("llama-2: its template is not the ids of <s> [INST] hello [/INST]\n") > 0;
    wg_free(ids);
}

int main(void)
{
    static const char *const names[] = { "llama-spm", "phi-3", "gpt-2" };
    static const char *const files[] = { "llama-spm.txt", NULL, "gpt2.txt" };
    const char *shared = getenv("WG_SHARED");
    if (!shared) {
        printf("skipped: WG_SHARED does not name a folder with tokenizers/gguf\n");
        return SKIP;
    }
    for (int i = 0; i < 3; i++) {
        wg_tokenizer *t = open_vocabulary(shared, names[i]);
        official(t, shared, names[i]);
        if (files[i]) ours(t, files[i]);
        if (i == 0) chat(t);
        wg_tokenizer_close(t);
    }
    converted(shared);
    printf("%d failures, %zu blocks not freed\n", failures, wg_mem_read().live_blocks);
    return failures > 0 || wg_mem_read().live_blocks > 0;
}
