/* SPDX-License-Identifier: MIT
 * A library with libllama's interface and no model: a cell of the cache has a position and a set of sequences, and the logits
 * after a token are a function of all tokens that it sees. A token that sees two cells of one position, misses one, or sees
 * different texts through its sequence ids is an error, so a wrong tree or a wrong commit cannot go unnoticed. */
#include "tests/api/llama/llama.h"

#include <stdlib.h>
#include <string.h>

#ifndef STUB_OTHER
#define STUB_OTHER 0 /* 1: its parameters lie elsewhere */
#endif
enum { VOCAB = 512, CELLS = 8192, OUTPUTS = 2048, SEQUENCES = 64 };
struct llama_model {
    bool recurrent;
};
struct llama_context {
    uint32_t n_ctx;
    int n;
    struct {
        int32_t token, pos;
        uint64_t of; /* sequences */
    } cell[CELLS];
    float logits[OUTPUTS][VOCAB];
};

void llama_log_set(ggml_log_callback log_callback, void *user_data) { (void)log_callback, (void)user_data; }
void llama_backend_init(void) {}
size_t llama_max_parallel_sequences(void) { return SEQUENCES; }
void llama_set_n_threads(struct llama_context *ctx, int32_t n_threads, int32_t n_threads_batch)
{
    (void)ctx, (void)n_threads, (void)n_threads_batch;
}
struct llama_model_params llama_model_default_params(void) { return (struct llama_model_params){ 0 }; }
struct llama_context_params llama_context_default_params(void)
{
    return (struct llama_context_params){ .n_ctx = 512,
                                          .n_batch = 2048,
                                          .n_ubatch = 512,
                                          .n_seq_max = 1,
                                          .rope_scaling_type = -1,
                                          .yarn_ext_factor = -1,
                                          .type_k = 1,
                                          .type_v = 1,
                                          .offload_kqv = true,
                                          .no_perf = true,
                                          .op_offload = true,
                                          .swa_full = !STUB_OTHER };
}
struct llama_model *llama_model_load_from_file(const char *path, struct llama_model_params params)
{
    (void)params;
    struct llama_model *m = calloc(1, sizeof *m);
    m->recurrent = strstr(path, "recurrent");
    if (!strstr(path, "missing")) return m;
    free(m);
    return NULL;
}
void llama_model_free(struct llama_model *model) { free(model); }
const struct llama_vocab *llama_model_get_vocab(const struct llama_model *model) { return (const void *)model; }
bool llama_model_is_recurrent(const struct llama_model *model) { return model->recurrent; }
int32_t llama_model_n_ctx_train(const struct llama_model *model) { return model ? 512 : 0; }
struct llama_context *llama_init_from_model(struct llama_model *model, struct llama_context_params params)
{
    struct llama_context *c = model && params.kv_unified && params.n_seq_max <= SEQUENCES ? calloc(1, sizeof *c) : NULL;
    if (c) c->n_ctx = params.n_ctx;
    return c;
}
void llama_free(struct llama_context *ctx) { free(ctx); }
int32_t llama_vocab_n_tokens(const struct llama_vocab *vocab) { return vocab ? VOCAB : 0; }
llama_memory_t llama_get_memory(const struct llama_context *ctx) { return (llama_memory_t)ctx; }

static bool in_range(int32_t pos, llama_pos p0, llama_pos p1) { return (p0 < 0 || pos >= p0) && (p1 < 0 || pos < p1); }

void llama_memory_clear(llama_memory_t mem, bool data)
{
    (void)data;
    ((struct llama_context *)mem)->n = 0;
}

bool llama_memory_seq_rm(llama_memory_t mem, llama_seq_id seq_id, llama_pos p0, llama_pos p1)
{
    struct llama_context *c = (struct llama_context *)mem;
    int n = 0;
    for (int i = 0; i < c->n; i++) {
        if (in_range(c->cell[i].pos, p0, p1)) c->cell[i].of &= ~(1ull << seq_id);
        if (c->cell[i].of) c->cell[n++] = c->cell[i];
    }
    c->n = n;
    return true;
}

void llama_memory_seq_cp(llama_memory_t mem, llama_seq_id src, llama_seq_id dst, llama_pos p0, llama_pos p1)
{
    struct llama_context *c = (struct llama_context *)mem;
    for (int i = 0; i < c->n; i++)
        if (c->cell[i].of >> src & 1 && in_range(c->cell[i].pos, p0, p1)) c->cell[i].of |= 1ull << dst;
}

/* The text that a token at `pos` sees through a sequence, folded; 0: a position is missing or there twice. */
static uint64_t seen(const struct llama_context *c, int seq, int32_t pos, int32_t last[2])
{
    static int32_t at[CELLS];
    uint64_t h = 1469598103934665603u;
    for (int p = 0; p <= pos; p++) at[p] = -1;
    for (int i = 0; i < c->n; i++) {
        if (!(c->cell[i].of >> seq & 1) || c->cell[i].pos > pos) continue;
        if (at[c->cell[i].pos] >= 0) return 0;
        at[c->cell[i].pos] = c->cell[i].token;
    }
    for (int p = 0; p <= pos; p++) {
        if (at[p] < 0) return 0;
        h = (h ^ (uint64_t)at[p]) * 1099511628211u;
    }
    last[0] = at[pos];
    last[1] = pos ? at[pos - 1] : 0;
    return h ? h : 1;
}

int32_t llama_decode(struct llama_context *ctx, struct llama_batch b)
{
    for (int i = 0; i < b.n_tokens; i++) {
        if (ctx->n == CELLS || ctx->n == (int)ctx->n_ctx) return 1;
        ctx->cell[ctx->n].token = b.token[i];
        ctx->cell[ctx->n].pos = b.pos[i];
        ctx->cell[ctx->n].of = 0;
        for (int k = 0; k < b.n_seq_id[i]; k++) ctx->cell[ctx->n].of |= 1ull << b.seq_id[i][k];
        ctx->n++;
    }
    for (int i = 0; i < b.n_tokens; i++) {
        int32_t last[2];
        const uint64_t h = b.n_seq_id[i] > 0 ? seen(ctx, b.seq_id[i][0], b.pos[i], last) : 0;
        for (int k = 1; k < b.n_seq_id[i]; k++)
            if (seen(ctx, b.seq_id[i][k], b.pos[i], last) != h) return -2;
        if (!h) return -3;
        /* a to z: mostly a function of the last letter and the one before; now and then of everything */
        for (int x = 0; x < VOCAB && b.logits[i]; x++)
            ctx->logits[i][x] = x < 'a' || x > 'z'                             ? -30.f
                                : x == 'a' + (last[0] + (last[1] & 1) + 3) % 9 ? 6.f
                                : x == 'a' + (int)(h % 26)                     ? 5.f
                                                                               : 0.f;
    }
    return 0;
}

float *llama_get_logits_ith(struct llama_context *ctx, int32_t i) { return ctx->logits[i]; }
