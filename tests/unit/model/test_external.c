/* SPDX-License-Identifier: MIT
 * External targets without a process: a server in this program keeps texts as it is told to and answers a digest of every row's
 * whole prefix, as its logits and as its hidden states. Random chains, trees, commits, truncations, new sequences and failures
 * must give the digest of what the cache holds. */
#include "core/model/external/external.h"

#include <criterion/criterion.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/model/taps.h"
#include "kernels/philox.h"

enum { V = 3, DIM = 2, LAYERS = 3, TAPS = 2, STATES = TAPS * DIM, CONTEXT = 6000, SEQUENCES = 3, CACHES = 5, LONG = 2600 };

typedef struct text {
    int n;
    int32_t token[CONTEXT + WG_EXTERNAL_ROWS];
} text;

typedef struct server {
    wg_row_server base;
    text held[SEQUENCES];
    wg_asked_row row[SEQUENCES][WG_EXTERNAL_ROWS];
    int rows[SEQUENCES];
    int fail_in; /* > 0: so many requests from now one fails */
    long requests, asked;
} server;

static void digest(const int32_t *token, int n, float out[V])
{
    const uint64_t h = wg_hash64(WG_HASH_START, token, (size_t)n * sizeof *token);
    out[0] = (float)(h & 0xffff);
    out[1] = (float)(h >> 16 & 0xffff);
    out[2] = (float)(h >> 32 & 0xffff);
}

static const int tap_list[TAPS] = { 4, 1 };

/* Hidden states of a row: (TAPS, DIM). */
static void state(const int32_t *token, int n, const int *tap, float out[STATES])
{
    for (int i = 0; i < TAPS; i++) {
        const uint64_t h = wg_hash64(WG_HASH_START + (uint64_t)tap[i] + 1, token, (size_t)n * sizeof *token);
        out[i * DIM] = (float)(h & 0xffff);
        out[i * DIM + 1] = (float)(h >> 16 & 0xffff);
    }
}

/* Keeps what it is told to. */
static void settle(server *s, const wg_asked_part *p)
{
    text *t = &s->held[p->sequence];
    cr_assert(p->kept >= 0 && p->kept <= t->n && (p->path_n == 0 || p->kept == t->n));
    t->n = p->kept;
    for (int i = 0, last = -1; i < p->path_n; last = p->path[i++]) {
        cr_assert(p->path[i] > last && p->path[i] < s->rows[p->sequence]);
        cr_assert_eq(s->row[p->sequence][p->path[i]].parent, last);
        t->token[t->n++] = s->row[p->sequence][p->path[i]].token;
    }
}

static wg_status answer(wg_row_server *base, const wg_asked *asked, float *logits, float *taps, wg_error *err)
{
    server *s = (server *)base;
    int rows = 0, wanted = 0;
    cr_assert(asked->parts >= 1 && asked->parts <= SEQUENCES);
    cr_assert(!taps == !asked->taps && (!taps || (asked->taps == TAPS && !memcmp(asked->tap, tap_list, sizeof tap_list))));
    s->requests++;
    if (s->fail_in > 0 && --s->fail_in == 0) {
        for (int i = 0; i < SEQUENCES; i++) s->held[i].n = s->rows[i] = 0;
        return wg_fail(err, WG_EIO, "as the test wants it");
    }
    for (int i = 0; i < asked->parts; i++) {
        const wg_asked_part *p = &asked->part[i];
        text *t = &s->held[p->sequence];
        for (int k = 0; k < i; k++) cr_assert_neq(asked->part[k].sequence, p->sequence);
        settle(s, p);
        for (int r = 0; r < p->n; r++) {
            int32_t back[CONTEXT], path[CONTEXT];
            int n = 0;
            cr_assert(p->row[r].parent < r);
            for (int k = r; k >= 0; k = p->row[k].parent) back[n++] = p->row[k].token;
            cr_assert_eq(p->row[r].position, t->n + n - 1);
            memcpy(path, t->token, (size_t)t->n * sizeof *path);
            for (int k = 0; k < n; k++) path[t->n + k] = back[n - 1 - k];
            if (taps) state(path, t->n + n, asked->tap, taps + (size_t)(rows + r) * STATES);
            if (p->row[r].logits < 0) continue;
            cr_assert_eq(p->row[r].logits, wanted++);
            digest(path, t->n + n, logits + (size_t)p->row[r].logits * V);
        }
        memcpy(s->row[p->sequence], p->row, (size_t)p->n * sizeof *p->row);
        s->rows[p->sequence] = p->n;
        rows += p->n;
    }
    cr_assert(rows == asked->rows && wanted == asked->logits);
    s->asked += rows;
    return WG_OK;
}

static void close_server(wg_row_server *s) { wg_free(s); }
static const wg_row_server_class test_class = { .name = "of a test", .answer = answer, .close = close_server };

typedef struct bench {
    server *server;
    wg_lm *lm;
    wg_taps *taps;
    wg_kv *kv;
    wg_batch batch;
    wg_kv_seq *seq[CACHES];
    text is[CACHES]; /* what the cache of seq[i] holds */
} bench;

static void must(wg_status s, const wg_error *err) { cr_assert(s == WG_OK, "%s", err->text); }

static bench *start(void)
{
    static bench b;
    wg_error err;
    memset(&b, 0, sizeof b);
    b.server = wg_calloc(1, sizeof *b.server);
    b.server->base = (wg_row_server){
        .class = &test_class, .vocab = V, .context = CONTEXT, .layers = LAYERS, .dim = DIM, .sequences = SEQUENCES
    };
    must(wg_external_open(&b.lm, &b.server->base, 0, &err), &err);
    must(wg_taps_open(&b.taps, b.lm, tap_list, TAPS, &err), &err);
    must(wg_kv_open(&b.kv, 16, CACHES * (CONTEXT / 16 + 80), CONTEXT + WG_KV_TAIL_MAX, &err), &err);
    must(wg_lm_attach(b.lm, b.kv, &err), &err);
    must(wg_batch_open(&b.batch, CACHES * 80 + WG_EXTERNAL_ROWS, &err), &err);
    for (int i = 0; i < CACHES; i++) must(wg_kv_seq_open(b.kv, &b.seq[i], &err), &err);
    return &b;
}

static void stop(bench *b)
{
    for (int i = 0; i < CACHES; i++) wg_kv_seq_close(b->seq[i]);
    wg_batch_close(&b->batch);
    wg_kv_close(b->kv);
    wg_taps_close(b->taps);
    b->lm->class->close(b->lm);
}

static uint32_t draws;
static int draw(int below) { return (int)(wg_philox_at(7, draws++, 0, 0, 0).v[0] % (uint32_t)below); }

/* Rows of a random tree, or of a chain, behind the text of sequence i; want, states: their digests. */
static int add_rows(bench *b, int i, int n, bool tree, float *want, float *states, int32_t *token, int *parent)
{
    wg_error err;
    text *t = &b->is[i];
    wg_mask anc[WG_TREE_NODES];
    int depth[WG_TREE_NODES], wanted = 0;
    must(wg_kv_reserve(b->seq[i], n, &err), &err);
    for (int k = 0; k < n; k++) token[k] = draw(3), parent[k] = k - 1;
    if (!tree) wg_batch_chain(&b->batch, b->seq[i], t->n, token, n, n < 2 ? n : 2);
    for (int k = 0; k < n; k++) {
        int32_t path[CONTEXT + WG_EXTERNAL_ROWS], back[WG_EXTERNAL_ROWS];
        const bool logits = tree ? draw(3) > 0 : k >= n - 2;
        int d = 0;
        if (tree) {
            parent[k] = k ? draw(k) : -1;
            anc[k] = k ? wg_mask_with(anc[parent[k]], k) : wg_mask_bit(0);
            depth[k] = k ? depth[parent[k]] + 1 : 0;
            wg_batch_node(&b->batch, b->seq[i], k, depth[k], anc[k], token[k], logits);
        }
        for (int a = k; a >= 0; a = parent[a]) back[d++] = token[a];
        memcpy(path, t->token, (size_t)t->n * sizeof *path);
        for (int a = 0; a < d; a++) path[t->n + a] = back[d - 1 - a];
        if (states) state(path, t->n + d, tap_list, states + (size_t)k * STATES);
        if (logits) digest(path, t->n + d, want + (size_t)wanted++ * V);
    }
    return wanted;
}

/* Commits a random path that begins at the root, or nothing. */
static void commit(bench *b, int i, int n, const int32_t *token, const int *parent)
{
    int16_t path[WG_EXTERNAL_ROWS], back[WG_EXTERNAL_ROWS];
    int m = 0;
    for (int k = draw(n + 1) - 1; k >= 0; k = parent[k]) back[m++] = (int16_t)k;
    for (int k = 0; k < m; k++) path[k] = back[m - 1 - k];
    for (int k = 0; k < m; k++) b->is[i].token[b->is[i].n++] = token[path[k]];
    if (m) wg_kv_commit(b->seq[i], path, m);
    else wg_kv_rollback(b->seq[i]);
}

static void change_something(bench *b)
{
    wg_error err;
    const int i = draw(CACHES), what = draw(10);
    if (what == 0 && b->is[i].n > 4) {
        b->is[i].n -= draw(4);
        wg_kv_truncate(b->seq[i], b->is[i].n);
    } else if (what == 1) { /* a new sequence, perhaps at the same address */
        wg_kv_seq_close(b->seq[i]);
        must(wg_kv_seq_open(b->kv, &b->seq[i], &err), &err);
        b->is[i].n = 0;
    } else if (what == 2) b->server->fail_in = 1 + draw(3);
}

/* The hidden states of the rows of all sequences, n[i] of each; none after a failure. */
static void expect_states(const bench *b, const int n[CACHES], float want[CACHES][WG_TREE_NODES * STATES], bool failed)
{
    static float got[CACHES * WG_TREE_NODES * STATES];
    wg_error err;
    int rows = 0;
    cr_assert_eq(wg_taps_rows(b->taps), failed ? 0 : b->batch.n);
    must(wg_taps_read(b->taps, 0, wg_taps_rows(b->taps), got, &err), &err);
    for (int i = 0; i < CACHES && !failed; rows += n[i++])
        cr_assert(memcmp(got + rows * STATES, want[i], (size_t)n[i] * STATES * sizeof *got) == 0, "sequence %d", i);
}

static int step(bench *b)
{
    static float want[CACHES][WG_TREE_NODES * V], got[CACHES * WG_TREE_NODES * V], states[CACHES][WG_TREE_NODES * STATES];
    static int32_t token[CACHES][WG_TREE_NODES];
    static int parent[CACHES][WG_TREE_NODES];
    int n[CACHES], wanted[CACHES];
    wg_error err;
    wg_batch_clear(&b->batch);
    for (int i = 0; i < CACHES; i++) {
        n[i] = draw(3) && b->is[i].n < CONTEXT - 100 ? 1 + draw(WG_TREE_NODES / 2) : 0;
        wanted[i] = n[i] ? add_rows(b, i, n[i], draw(4) > 0, want[i], states[i], token[i], parent[i]) : 0;
    }
    b->batch.taps = draw(2) ? b->taps : NULL;
    const wg_status s = wg_lm_forward(b->lm, &b->batch, got, &err);
    if (s) cr_assert(s == WG_EIO && !strcmp(err.text, "target of a test: as the test wants it"), "%s", err.text);
    if (b->batch.taps && b->batch.n) expect_states(b, n, states, s != WG_OK);
    const float *row = got;
    for (int i = 0; i < CACHES; i++) {
        if (!n[i]) continue;
        if (!s) cr_assert(memcmp(row, want[i], (size_t)wanted[i] * V * sizeof *row) == 0, "sequence %d", i);
        row += wanted[i] * V;
        if (s) wg_kv_rollback(b->seq[i]);
        else commit(b, i, n[i], token[i], parent[i]);
    }
    return s != WG_OK;
}

Test(external, rows_are_those_of_the_prefix_that_the_cache_holds)
{
    int failed = 0;
    bench *b = start();
    for (int i = 0; i < 1500; i++) {
        failed += step(b);
        change_something(b);
    }
    cr_assert(failed > 50 && b->lm->passes > 1000);
    stop(b);
}

/* A text that was lost is longer than a request, and is sent again in several. A text that is held is not sent again. */
Test(external, a_lost_text_is_sent_again)
{
    static float want[2 * V], got[2 * V];
    static int32_t token[LONG];
    static int parent[LONG];
    wg_error err;
    bench *b = start();
    for (int done = 0; done < LONG; done += 1000) {
        const int n = LONG - done < 1000 ? LONG - done : 1000;
        wg_batch_clear(&b->batch);
        add_rows(b, 0, n, false, want, NULL, token, parent);
        must(wg_lm_forward(b->lm, &b->batch, got, &err), &err);
        cr_assert(memcmp(got, want, sizeof got) == 0);
        memcpy(b->is[0].token + b->is[0].n, token, (size_t)n * sizeof *token);
        b->is[0].n += n;
        wg_kv_commit_chain(b->seq[0], n);
    }
    cr_assert(b->server->asked == LONG && b->server->requests == 3);
    b->server->fail_in = 1;
    for (int again = 0; again < 2; again++) { /* of what is sent again nobody gets hidden states */
        float states[2 * STATES], rows[2 * STATES];
        wg_batch_clear(&b->batch);
        add_rows(b, 0, 2, false, want, states, token, parent);
        b->batch.taps = b->taps;
        cr_assert_eq(wg_lm_forward(b->lm, &b->batch, got, &err), again ? WG_OK : WG_EIO);
        if (again) cr_assert(memcmp(got, want, sizeof got) == 0 && wg_taps_rows(b->taps) == 2);
        if (again) must(wg_taps_read(b->taps, 0, 2, rows, &err), &err);
        if (again) cr_assert(memcmp(rows, states, sizeof rows) == 0);
        wg_kv_rollback(b->seq[0]);
    }
    cr_assert_eq(b->server->asked, 2 * LONG + 2);
    stop(b);
}

Test(external, what_is_refused)
{
    wg_error err;
    wg_lm *lm;
    server *s = wg_calloc(1, sizeof *s);
    s->base = (wg_row_server){ .class = &test_class, .vocab = V, .context = 100, .sequences = 1 };
    cr_assert_eq(wg_external_open(&lm, &s->base, 101, &err), WG_ECONTEXT);
    cr_assert_str_eq(err.text, "target: context is 101; the external model's is 100 tokens");
    bench *b = start();
    static int32_t token[WG_EXTERNAL_ROWS];
    static float got[2 * V];
    wg_batch_clear(&b->batch);
    must(wg_kv_reserve(b->seq[0], WG_EXTERNAL_ROWS, &err), &err);
    wg_batch_chain(&b->batch, b->seq[0], 0, token, WG_EXTERNAL_ROWS, 1);
    wg_batch_chain(&b->batch, b->seq[0], 0, token, 1, 0);
    cr_assert_eq(wg_lm_forward(b->lm, &b->batch, got, &err), WG_EUNSUPPORTED);
    cr_assert_str_eq(err.text, "target of a test: 1025 rows of one sequence in a pass; an external target takes 1024");
    wg_kv_rollback(b->seq[0]);
    stop(b);
}
