/* SPDX-License-Identifier: MIT
 * llama.cpp timed as `wager bench forward` times us: one pass of n rows of one sequence at context 0, logits for every row up
 * to 64 and for the last above, an f16 cache, medians (above 64 rows one pass after a warm one). Built by peers.py against
 * libllama, a development tool; no part of the product includes or links it.
 *   llama_bench MODEL --rows 1,16 --threads N --repeats N [--packed 0|1] [--flash -1|0|1]     a line of JSON each
 *   llama_bench --quantize IN OUT          a pure q4_k file (ours writes none), head and embedding included
 * One thread is timed by its own clock and a team by the wall's, as there. */
#include <llama.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS_MAX = 512, LOGITS_ALL = 64, REPEATS_MAX = 101, LIST_MAX = 16 };

typedef struct bench {
    const char *model, *rows;
    int threads, repeats, packed, flash;
} bench;

static double now(int threads)
{
    struct timespec t;
    clock_gettime(threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void only_errors(enum ggml_log_level level, const char *text, void *user)
{
    (void)user;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static int quantize(const char *in, const char *out)
{
    struct llama_model_quantize_params q = llama_model_quantize_default_params();
    q.ftype = LLAMA_FTYPE_MOSTLY_Q4_K_S;
    q.pure = true;
    q.allow_requantize = true;
    return llama_model_quantize(in, out, &q) ? 1 : 0;
}

/* Seconds of one pass; less than 0: it failed. */
static double pass(struct llama_context *c, const bench *b, int rows, int vocab)
{
    struct llama_batch batch = llama_batch_init(rows, 0, 1);
    batch.n_tokens = rows;
    for (int i = 0; i < rows; i++) {
        batch.token[i] = (i * 31 + 7) % vocab, batch.pos[i] = i;
        batch.n_seq_id[i] = 1, batch.seq_id[i][0] = 0;
        batch.logits[i] = rows <= LOGITS_ALL || i == rows - 1;
    }
    llama_memory_clear(llama_get_memory(c), false);
    const double start = now(b->threads);
    const int failed = llama_decode(c, batch);
    llama_synchronize(c);
    const double s = now(b->threads) - start;
    llama_batch_free(batch);
    return failed ? -1 : s;
}

static int time_rows(struct llama_context *c, const bench *b, int rows, int vocab)
{
    double s[REPEATS_MAX];
    const int repeats = rows > LOGITS_ALL ? 1 : b->repeats; /* long passes need no median */
    for (int r = -1; r < repeats; r++) { /* the first warms up, and builds the graph that the others use again */
        const double t = pass(c, b, rows, vocab);
        if (t < 0) return fprintf(stderr, "llama_bench: a pass of %d rows failed\n", rows), 1;
        s[r < 0 ? 0 : r] = t;
    }
    qsort(s, (size_t)repeats, sizeof *s, by_value);
    const double m = s[repeats / 2];
    printf("{\"rows\":%d,\"context\":0,\"ms\":%.6g,\"tok_s\":%.6g,\"threads\":%d}\n", rows, m * 1e3, rows / m, b->threads);
    return 0;
}

static int run(const bench *b)
{
    struct llama_model_params mp = llama_model_default_params();
    mp.use_extra_bufts = b->packed; /* its own repacking of weights at load */
    struct llama_model *m = llama_model_load_from_file(b->model, mp);
    if (!m) return fprintf(stderr, "llama_bench: %s cannot be loaded\n", b->model), 1;
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 1024, cp.n_batch = cp.n_ubatch = ROWS_MAX, cp.n_outputs_max = LOGITS_ALL;
    cp.n_threads = cp.n_threads_batch = b->threads;
    cp.type_k = cp.type_v = GGML_TYPE_F16;
    cp.flash_attn_type = (enum llama_flash_attn_type)b->flash;
    cp.no_perf = true;
    struct llama_context *c = llama_init_from_model(m, cp);
    if (!c) return fprintf(stderr, "llama_bench: no context for %s\n", b->model), 1;
    const int vocab = llama_vocab_n_tokens(llama_model_get_vocab(m));
    printf("{\"version\":\"%s\",\"system\":\"%s\"}\n", llama_version(), llama_print_system_info());
    int failed = 0, n = 0;
    char *end;
    for (const char *at = b->rows; !failed && *at && n < LIST_MAX; at = *end ? end + 1 : end, n++) {
        const long rows = strtol(at, &end, 10);
        if (end == at || rows < 1 || rows > ROWS_MAX || (*end && *end != ',')) {
            failed = fprintf(stderr, "llama_bench: --rows %s: expected 1..%d with commas between\n", b->rows, ROWS_MAX);
            break;
        }
        failed = time_rows(c, b, (int)rows, vocab);
    }
    llama_free(c);
    llama_model_free(m);
    return failed != 0;
}

int main(int argc, char **argv)
{
    llama_log_set(only_errors, NULL);
    llama_backend_init();
    if (argc == 4 && !strcmp(argv[1], "--quantize")) return quantize(argv[2], argv[3]);
    bench b = { .rows = "1", .threads = 1, .repeats = 5, .packed = 1, .flash = LLAMA_FLASH_ATTN_TYPE_AUTO };
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (argv[i][0] != '-') {
            b.model = argv[i];
            continue;
        }
        if (value && !strcmp(argv[i], "--rows")) b.rows = value;
        else if (value && !strcmp(argv[i], "--threads")) b.threads = atoi(value);
        else if (value && !strcmp(argv[i], "--repeats")) b.repeats = atoi(value);
        else if (value && !strcmp(argv[i], "--packed")) b.packed = atoi(value);
        else if (value && !strcmp(argv[i], "--flash")) b.flash = atoi(value);
        else return fprintf(stderr, "llama_bench: %s is not understood; see the top of llama_bench.c\n", argv[i]), 2;
        i++;
    }
    if (!b.model || b.threads < 1 || b.repeats < 1 || b.repeats > REPEATS_MAX)
        return fputs("llama_bench: MODEL is missing, or a number is out of range\n", stderr), 2;
    return run(&b);
}
