/* SPDX-License-Identifier: MIT
 * Logits of libllama for a list of tokens, in one pass and, up to 64 tokens, token by token: a development tool of
 * llama_cpp.py.
 *   llama_logits MODEL.gguf FAMILY VOCAB OUT.f32 TOKEN...
 * OUT: (tokens, vocabulary) in f32 of one pass. Weights are not repacked, and scores are computed without flash attention over
 * a cache of f32, so that what is left is the arithmetic of each weight type. FAMILY (general.architecture) and VOCAB stand for
 * a tokenizer where the file has none. Prints the version, and the error of decoding token by token against the pass. */
#include <llama.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 1024, ONE_BY_ONE = 64 };

static void only_errors(enum ggml_log_level level, const char *text, void *user)
{
    (void)user;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static struct llama_model *open_model(const char *path, const char *family, int vocab)
{
    struct llama_model_kv_override none[3] = { { .tag = LLAMA_KV_OVERRIDE_TYPE_STR, .key = "tokenizer.ggml.model" },
                                               { .tag = LLAMA_KV_OVERRIDE_TYPE_INT, .val_i64 = vocab } };
    struct llama_model_params p = llama_model_default_params();
    strcpy(none[0].val_str, "none");
    snprintf(none[1].key, sizeof none[1].key, "%s.vocab_size", family);
    p.kv_overrides = none;
    p.use_extra_bufts = false;
    return llama_model_load_from_file(path, p);
}

static struct llama_context *open_context(struct llama_model *m)
{
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = (uint32_t)llama_model_n_ctx_train(m); /* as a program that names no context: longrope takes its list by it */
    p.n_batch = p.n_ubatch = TOKENS;
    p.n_threads = p.n_threads_batch = 1;
    p.type_k = p.type_v = GGML_TYPE_F32;
    p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    return llama_init_from_model(m, p);
}

/* n tokens from position `at` on; their logits go to `out`. */
static int decode(struct llama_context *c, const int32_t *token, int at, int n, int vocab, float *out)
{
    struct llama_batch b = llama_batch_init(n, 0, 1);
    b.n_tokens = n;
    for (int i = 0; i < n; i++) {
        b.token[i] = token[i], b.pos[i] = at + i;
        b.n_seq_id[i] = 1, b.seq_id[i][0] = 0;
        b.logits[i] = 1;
    }
    const int failed = llama_decode(c, b);
    for (int i = 0; i < n && !failed; i++)
        memcpy(out + (size_t)i * (size_t)vocab, llama_get_logits_ith(c, i), (size_t)vocab * sizeof *out);
    llama_batch_free(b);
    return failed;
}

/* sqrt(sum (x - ref)^2 / sum ref^2) */
static double error_of(const float *x, const float *ref, size_t n)
{
    double off = 0, on = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)x[i] - (double)ref[i];
        off += d * d, on += (double)ref[i] * (double)ref[i];
    }
    return sqrt(off / on);
}

int main(int argc, char **argv)
{
    const int n = argc - 5;
    int32_t token[TOKENS];
    if (n < 1 || n > TOKENS) return fprintf(stderr, "usage: llama_logits MODEL.gguf FAMILY VOCAB OUT.f32 TOKEN...\n"), 2;
    for (int i = 0; i < n; i++) token[i] = (int32_t)strtol(argv[5 + i], NULL, 10);
    llama_log_set(only_errors, NULL);
    llama_backend_init();
    struct llama_model *m = open_model(argv[1], argv[2], (int)strtol(argv[3], NULL, 10));
    struct llama_context *c = m ? open_context(m) : NULL;
    if (!c) return fprintf(stderr, "llama_logits: libllama does not open %s\n", argv[1]), 1;
    const int vocab = llama_vocab_n_tokens(llama_model_get_vocab(m));
    const size_t all = (size_t)n * (size_t)vocab;
    float *pass = malloc(2 * all * sizeof *pass), *one = pass + all;
    int failed = decode(c, token, 0, n, vocab, pass);
    llama_memory_clear(llama_get_memory(c), true);
    const int alone = n <= ONE_BY_ONE ? n : 0;
    for (int i = 0; i < alone && !failed; i++) failed = decode(c, token + i, i, 1, vocab, one + (size_t)i * (size_t)vocab);
    FILE *f = failed ? NULL : fopen(argv[4], "wb");
    if (!f || fwrite(pass, sizeof *pass, all, f) != all || fclose(f)) return fprintf(stderr, "llama_logits: failed\n"), 1;
    printf("{\"version\":\"%s\",\"vocab\":%d,\"token_by_token\":%.3g}\n", llama_version(), vocab,
           alone ? error_of(one, pass, all) : 0);
    llama_free(c);
    llama_model_free(m);
    free(pass);
    return 0;
}
