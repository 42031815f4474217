/* SPDX-License-Identifier: MIT
 * Device verification on a CUDA device. Rows of p are computed from logits that never leave it; rows of q come from the
 * host's drafters, one-hot rows as one number each; paths are copied back, some bytes per tree. */
#include "core/model/cuda/verify_buffers.h"

#include "core/base/mem.h"

static const size_t MOST = (size_t)512 << 20; /* bytes of all rows together; at least those of one tree */

void wg_verify_buffers_close(wg_verify_buffers *r, wg_gpu *g)
{
    void *const piece[] = { r->p, r->q, r->p_one_hot, r->q_one_hot, r->keys, r->scratch, r->tree, r->path };
    for (size_t i = 0; i < sizeof piece / sizeof *piece; i++) g->api->free(g, piece[i]);
    *r = (wg_verify_buffers){ 0 };
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static wg_status take_room(wg_verify_buffers *r, wg_gpu *g, wg_error *err)
{
    r->p = g->api->alloc(g, r->cells * sizeof *r->p);
    r->q = g->api->alloc(g, r->cells * sizeof *r->q);
    r->p_one_hot = g->api->alloc(g, r->rows * sizeof *r->p_one_hot);
    r->q_one_hot = g->api->alloc(g, r->rows * sizeof *r->q_one_hot);
    r->keys = g->api->alloc(g, r->key_bytes);
    r->scratch = g->api->alloc(g, r->scratch_cells * sizeof *r->scratch);
    r->tree = g->api->alloc(g, r->trees * sizeof *r->tree);
    r->path = g->api->alloc(g, r->trees * sizeof *r->path);
    if (r->p && r->q && r->p_one_hot && r->q_one_hot && r->keys && r->scratch && r->tree && r->path) return WG_OK;
    const size_t bytes = (2 * r->cells + r->scratch_cells) * sizeof(double) + r->key_bytes, rows = r->rows;
    wg_verify_buffers_close(r, g);
    return wg_fail(err, WG_ENOMEM,
                   "out of memory on cuda:%d (%s): %zu bytes for the probabilities of %zu rows, %zu are free; "
                   "lower max_batch, max_tokens or pages, or take a smaller model",
                   g->ordinal, g->card, bytes, rows, g->api->room(g));
}

wg_status wg_verify_buffers_open(wg_verify_buffers *r, wg_gpu *g, wg_rule_kind rule, int vocab, int trees, int *rows,
                                 wg_error *err)
{
    const size_t V = (size_t)vocab, each = 2 * V * sizeof(double) + wg_gpu_sample_bytes(vocab);
    const size_t most = larger(MOST / each, WG_TREE_NODES), n = (size_t)*rows < most ? (size_t)*rows : most;
    const wg_verify_buffers want = { .rows = larger(n, r->rows),
                                     .trees = larger((size_t)trees, r->trees),
                                     .cells = larger(n * V, r->cells),
                                     .key_bytes = larger(n * wg_gpu_sample_bytes(vocab), r->key_bytes),
                                     .scratch_cells =
                                         larger((size_t)trees * wg_gpu_verify_cells(rule, vocab), r->scratch_cells) };
    *rows = (int)n;
    if (want.rows == r->rows && want.trees == r->trees && want.cells == r->cells && want.key_bytes == r->key_bytes &&
        want.scratch_cells == r->scratch_cells)
        return WG_OK;
    wg_verify_buffers_close(r, g);
    *r = want;
    return take_room(r, g, err);
}

void wg_cuda_verify_send(wg_verify_buffers *r, wg_gpu *g, int vocab, const wg_verify_spec *s)
{
    const size_t V = (size_t)vocab;
    wg_assert((size_t)s->trees <= r->trees && (size_t)s->q_rows <= r->rows && (size_t)s->q_rows * V <= r->cells);
    g->api->put(g, r->tree, s->tree, (size_t)s->trees * sizeof *s->tree);
    if (s->q_rows) g->api->put(g, r->q_one_hot, s->q_one_hot, (size_t)s->q_rows * sizeof *s->q_one_hot);
    for (int i = 0; i < s->q_rows; i++)
        if (s->q[i]) g->api->put(g, r->q + (size_t)i * V, s->q[i], V * sizeof *r->q);
}

void wg_cuda_verify_sample(wg_verify_buffers *r, wg_gpu *g, int vocab, const wg_verify_spec *s, const float *logits, int first,
                           int n)
{
    const size_t at = (size_t)first, V = (size_t)vocab;
    const wg_gpu_chain chain = { .temperature = s->temperature,
                                 .top_p = s->top_p,
                                 .min_p = s->min_p,
                                 .top_k = s->top_k,
                                 .best = first == 0 ? r->best : NULL };
    wg_assert(at + (size_t)n <= r->rows && (at + (size_t)n) * V <= r->cells);
    g->api->sample(g, logits, vocab, &chain, r->p + at * V, r->p_one_hot + at, r->keys, n);
}

void wg_cuda_verify_draft(wg_verify_buffers *r, wg_gpu *g, int vocab, const wg_gpu_chain *chain, const float *logits, int first,
                          int n)
{
    const size_t at = (size_t)first, V = (size_t)vocab;
    wg_assert(at + (size_t)n <= r->rows && (at + (size_t)n) * V <= r->cells);
    g->api->sample(g, logits, vocab, chain, r->q + at * V, r->q_one_hot + at, r->keys, n);
}

void wg_cuda_verify_trees(wg_verify_buffers *r, wg_gpu *g, int vocab, const wg_rule *rule, int trees)
{
    const wg_gpu_laws laws = { .p = r->p, .q = r->q, .p_one_hot = r->p_one_hot, .q_one_hot = r->q_one_hot };
    g->api->verify(g, rule, r->tree, trees, vocab, &laws, r->scratch, r->path);
}

void wg_cuda_verify_finish(wg_verify_buffers *r, wg_gpu *g, int vocab, const wg_verify_spec *s)
{
    wg_cuda_verify_trees(r, g, vocab, &s->rule, s->trees);
    g->api->get(g, s->path, r->path, (size_t)s->trees * sizeof *s->path);
}
