/* SPDX-License-Identifier: MIT
 * A process target in C (docs/process-target.md): wager's own engine in another process. Rows have the bits of the engine's,
 * so every text is that of the model run in the program itself; it is the measure for programs that serve other models.
 *
 *     wager generate -m MODEL.gguf --target "process:command=serve_model MODEL.gguf" -p "Once upon a time"
 *
 * A sequence is a sequence of the KV cache. The rows of a request that form a chain are committed at once; what comes behind
 * them, a tree, stays in the cache's tail until the next request says which path of it is text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/kv/kv.h"
#include "core/model/external/row_protocol.h"
#include "core/model/model.h"
#include "core/model/taps.h"

enum { CHUNK = 256, SHARED = 3 };

typedef struct sequence {
    wg_kv_seq *kv;
    int base;  /* tokens before the rows of its last request */
    int chain; /* of these rows, the first that were committed */
} sequence;

typedef struct server {
    wg_device device;
    wg_model *model;
    wg_lm *lm;
    wg_kv *kv;
    sequence *sequence; /* (sequences) */
    int sequences;
    wg_batch batch;
    float *logits; /* (WG_EXTERNAL_ROWS, vocab) of a pass */
    void *shared;  /* the shared memory: */
    size_t bytes;  /* its size */
    float *rows;   /* logits in it */
    float *states; /* and hidden states */
    wg_taps *taps; /* that OPEN named; NULL: none */
    int tapped;    /* rows of hidden states of the request so far; -1: it wants none */
} server;

static void need(wg_status s, const wg_error *err)
{
    if (!s) return;
    fprintf(stderr, "serve_model: %s\n", err->text);
    exit(1);
}

static void read_words(int32_t *to, size_t n)
{
    if (fread(to, sizeof *to, n, stdin) != n) exit(0); /* the other side is gone */
}

static void answer(int kind, int serial, const int32_t *word, int n)
{
    const int32_t header[WG_ROWS_HEADER] = { WG_ROWS_MAGIC, kind, serial, n };
    fwrite(header, sizeof *header, WG_ROWS_HEADER, stdout);
    if (n) fwrite(word, sizeof *word, (size_t)n, stdout);
    fflush(stdout);
}

/* ---- the cache */

/* Keeps `kept` tokens, then the path of the last request's rows. */
static void settle(sequence *q, int kept, const int32_t *path, int n)
{
    int16_t node[WG_TREE_NODES];
    const int tree = n - q->chain;
    for (int i = 0; i < tree; i++) node[i] = (int16_t)(path[q->chain + i] - q->chain);
    if (tree > 0) wg_kv_commit(q->kv, node, tree);
    else wg_kv_rollback(q->kv), wg_kv_truncate(q->kv, n ? q->base + n : kept);
}

/* How many of the rows are a chain that nothing but its last row is the parent of a later row of. */
static int chain_of(const wg_asked_row *row, int n)
{
    int chain = 0, first = n; /* first: the earliest parent of the rows behind the chain */
    while (chain < n && row[chain].parent == chain - 1) chain++;
    for (int i = chain; i < n; i++) first = row[i].parent < first ? row[i].parent : first;
    return chain < n && first + 1 < chain ? first + 1 : chain;
}

/* Runs the batch, whose rows are rows `row` of the request, and copies what was asked of them into the shared memory. */
static wg_status forward(server *s, const wg_asked_row *row, int n, wg_error *err)
{
    const size_t vocab = (size_t)s->lm->vocab;
    s->batch.taps = s->tapped >= 0 ? s->taps : NULL;
    WG_TRY(wg_lm_forward(s->lm, &s->batch, s->logits, err));
    for (int i = 0; i < n; i++)
        if (row[i].logits >= 0)
            memcpy(s->rows + (size_t)row[i].logits * vocab, s->logits + (size_t)s->batch.row[i].logits * vocab,
                   vocab * sizeof(float));
    if (!s->batch.taps) return WG_OK;
    const size_t floats = (size_t)wg_taps_count(s->taps) * (size_t)wg_taps_dim(s->taps);
    float *to = s->states + (size_t)s->tapped * floats;
    s->tapped += n;
    return wg_taps_read(s->taps, 0, n, to, err);
}

static wg_status pass_chain(server *s, sequence *q, const wg_asked_row *row, int n, wg_error *err)
{
    int32_t token[CHUNK];
    int asked = 0; /* from the first row with logits on */
    for (int i = 0; i < n; i++) {
        token[i] = row[i].token;
        if (row[i].logits >= 0 && !asked) asked = n - i;
    }
    WG_TRY(wg_kv_reserve(q->kv, n, err));
    wg_batch_clear(&s->batch);
    wg_batch_chain(&s->batch, q->kv, wg_kv_len(q->kv), token, n, asked);
    WG_TRY(forward(s, row, n, err));
    wg_kv_commit_chain(q->kv, n);
    return WG_OK;
}

/* Rows behind the first `chain` ones, as a tree whose roots stand behind them. */
static wg_status pass_tree(server *s, sequence *q, const wg_asked_row *row, int chain, int n, wg_error *err)
{
    wg_mask anc[WG_TREE_NODES];
    int depth[WG_TREE_NODES];
    if (n > WG_TREE_NODES)
        return wg_fail(err, WG_EUNSUPPORTED, "a tree of %d rows; this program was built for %d", n, WG_TREE_NODES);
    WG_TRY(wg_kv_reserve(q->kv, n, err));
    wg_batch_clear(&s->batch);
    for (int i = 0; i < n; i++) {
        const int parent = row[i].parent - chain;
        anc[i] = parent < 0 ? wg_mask_bit(i) : wg_mask_with(anc[parent], i);
        depth[i] = parent < 0 ? 0 : depth[parent] + 1;
        wg_batch_node(&s->batch, q->kv, i, depth[i], anc[i], row[i].token, row[i].logits >= 0);
    }
    return forward(s, row, n, err);
}

static wg_status pass_part(server *s, sequence *q, const wg_asked_row *row, int n, wg_error *err)
{
    q->chain = chain_of(row, n);
    q->base = wg_kv_len(q->kv);
    for (int i = 0, now; i < q->chain; i += now) {
        now = q->chain - i < CHUNK ? q->chain - i : CHUNK;
        WG_TRY(pass_chain(s, q, row + i, now, err));
    }
    return n > q->chain ? pass_tree(s, q, row + q->chain, q->chain, n - q->chain, err) : WG_OK;
}

/* ---- requests */

static wg_status ask(server *s, const int32_t *w, int serial, wg_error *err)
{
    int32_t logits = 0;
    const int parts = w[1];
    if (w[0] && !s->taps) return wg_fail(err, WG_EINVAL, "hidden states are wanted, and OPEN named none");
    s->tapped = w[0] ? 0 : -1;
    w += 2;
    for (int i = 0; i < parts; i++) {
        sequence *q = &s->sequence[w[0]];
        const int kept = w[1], path_n = w[2], n = w[3];
        const wg_asked_row *row = (const wg_asked_row *)(w + 4 + path_n);
        if (!q->kv) WG_TRY(wg_kv_seq_open(s->kv, &q->kv, err));
        settle(q, kept, w + 4, path_n);
        WG_TRY(pass_part(s, q, row, n, err));
        for (int k = 0; k < n; k++) logits += row[k].logits >= 0;
        w += 4 + path_n + 4 * n;
    }
    answer(WG_ROWS_ASK, serial, (const int32_t[]){ logits, s->tapped > 0 ? s->tapped : 0 }, 2);
    return WG_OK;
}

static wg_status greet(server *s, const int32_t *w, int serial, wg_error *err)
{
    const int longest = s->lm->context + WG_EXTERNAL_ROWS;
    const int32_t word[5] = { WG_ROWS_VERSION, s->lm->vocab, s->lm->context, s->lm->hidden.layers, s->lm->hidden.dim };
    s->sequences = w[2];
    s->sequence = calloc((size_t)s->sequences, sizeof *s->sequence);
    s->logits = calloc((size_t)WG_EXTERNAL_ROWS * (size_t)s->lm->vocab, sizeof *s->logits);
    if (!s->sequence || !s->logits) return wg_fail(err, WG_ENOMEM, "no memory for %d sequences", s->sequences);
    WG_TRY(wg_kv_open(&s->kv, 16, s->sequences * (longest / 16 + 2), longest, err));
    WG_TRY(wg_lm_attach(s->lm, s->kv, err));
    WG_TRY(wg_batch_open(&s->batch, WG_EXTERNAL_ROWS, err));
    answer(WG_ROWS_HELLO, serial, word, 5);
    return WG_OK;
}

/* It comes again when other hidden states are wanted. */
static wg_status share(server *s, const int32_t *w, int serial, wg_error *err)
{
    uint64_t bytes, states;
    memcpy(&bytes, w, sizeof bytes);
    memcpy(&states, w + 2, sizeof states);
    if (s->shared) munmap(s->shared, s->bytes);
    s->shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, SHARED, 0);
    if (s->shared == MAP_FAILED) return wg_fail(err, WG_ENOMEM, "the shared memory cannot be mapped");
    s->bytes = bytes;
    s->rows = s->shared;
    s->states = s->rows + states / sizeof(float);
    wg_taps_close(s->taps);
    s->taps = NULL;
    if (w[4]) WG_TRY(wg_taps_open(&s->taps, s->lm, w + 5, w[4], err));
    answer(WG_ROWS_OPEN, serial, NULL, 0);
    return WG_OK;
}

static wg_status serve_one(server *s, const int32_t *h, const int32_t *w, wg_error *err)
{
    switch (h[1]) {
    case WG_ROWS_HELLO: return greet(s, w, h[2], err);
    case WG_ROWS_OPEN: return share(s, w, h[2], err);
    case WG_ROWS_ASK: return ask(s, w, h[2], err);
    }
    return wg_fail(err, WG_EUNSUPPORTED, "no request of kind %d is known", h[1]);
}

static void serve(server *s)
{
    int32_t h[WG_ROWS_HEADER], *w = NULL;
    for (;;) {
        wg_error err;
        read_words(h, WG_ROWS_HEADER);
        if (h[0] != WG_ROWS_MAGIC || h[3] < 0 || !(w = realloc(w, sizeof *w * ((size_t)h[3] + 1)))) exit(1);
        read_words(w, (size_t)h[3]);
        if (!serve_one(s, h, w, &err)) continue;
        int32_t text[WG_ROWS_ANSWER_MOST] = { 0 };
        memcpy(text, err.text, strlen(err.text));
        answer(WG_ROWS_FAILED, h[2], text, (int)(strlen(err.text) / 4 + 1));
    }
}

int main(int argc, char **argv)
{
    server s = { .batch = { 0 } };
    wg_weights *w;
    wg_pool *pool;
    wg_error err;
    if (argc != 2) return fprintf(stderr, "usage: serve_model MODEL.gguf   (started by wager: \"kind\": \"process\")\n"), 2;
    need(wg_pool_open(&pool, 0, &err), &err);
    need(wg_weights_open(&w, argv[1], &err), &err);
    need(wg_device_open(&s.device, "cpu", pool, &err), &err);
    need(wg_model_open(&s.model, w, &s.device, &(wg_model_options){ .kv_type = WG_F16 }, &err), &err);
    s.lm = wg_model_lm(s.model);
    serve(&s);
}
