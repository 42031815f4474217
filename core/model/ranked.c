/* SPDX-License-Identifier: MIT
 * The joins of a pass that several ranks compute: each output of a matrix is computed by one rank and copied to the others.
 * Stages cannot fail, so the first failure of a join is kept until the pass ends; the joins after it do nothing. Rows of the
 * residual stream are the same on all ranks; their digests are compared after each pass. */
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/model/ranked_impl.h"

/* Floats of the widest joined row. */
static size_t widest(const wg_model *m)
{
    const wg_arch *a = &m->arch;
    const int q = a->heads * a->head_dim;
    const int n = q > a->dim ? q : a->dim;
    return (size_t)(n > a->hidden ? n : a->hidden);
}

static wg_status open_room(wg_model *m, const wg_model_ranks *in, wg_error *err)
{
    const size_t rows = (size_t)m->max_rows;
    wg_ranked *k = m->ranked = wg_calloc(1, sizeof *k);
    if (!k) return wg_nomem(err, sizeof *k, "ranks");
    k->comm = in->comm;
    k->number = in->number;
    k->stage = (wg_comm_span){ m->part.stage * m->part.ranks, m->part.ranks };
    k->whole = wg_calloc(rows, widest(m) * sizeof *k->whole);
    k->row = wg_calloc(rows, sizeof *k->row);
    k->seq = wg_calloc(rows, sizeof *k->seq);
    return k->whole && k->row && k->seq ? WG_OK
                                        : wg_nomem(err, rows * widest(m) * sizeof *k->whole, "joined rows; lower max_rows");
}

wg_status wg_ranked_open(wg_model *m, const wg_model_ranks *in, wg_error *err)
{
    const wg_device_class *c = m->device.class;
    if (!in->comm) return wg_rank_part_of(&m->part, &m->arch, m->head_rows, 0, 1, 1, err);
    if (c->begin || m->device.memory)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%d ranks on the device %s: expected the device cpu, the only one that ranks share", in->comm->ranks,
                       c->name);
    WG_TRY(wg_rank_part_of(&m->part, &m->arch, m->head_rows, in->comm->rank, in->comm->ranks, in->pipeline ? in->pipeline : 1,
                           err));
    if (m->part.stages > 1) m->lm.hidden.device = NULL; /* rank 0 has the states of its own layers alone */

    return open_room(m, in, err);
}

static void lose(wg_model *m, wg_error *e)
{
    if (m->ranked->lost.code == WG_OK) m->ranked->lost = *e;
}

/* As join of wg_comm, among the ranks of this stage. */
static void join(wg_model *m, const void *own, int rows, const size_t *width, void *to, int rank)
{
    wg_error e;
    wg_comm *c = m->ranked->comm;
    const wg_comm_span *stage = m->part.stages > 1 ? &m->ranked->stage : NULL;
    if (stage && stage->n == 1) memcpy(to, own, (size_t)rows * width[0]);
    else if (m->ranked->lost.code == WG_OK && c->class->join(c, stage, own, rows, width, to, rank, &e)) lose(m, &e);
}

void wg_ranked_take(wg_model *m, float *x, int rows)
{
    wg_error e;
    wg_ranked *k = m->ranked;
    const int before = (m->part.stage + m->part.stages - 1) % m->part.stages * m->part.ranks + m->part.rank;
    const size_t bytes = (size_t)rows * (size_t)m->arch.dim * sizeof *x;
    const double start = wg_clock_now();
    if (k->lost.code == WG_OK && k->comm->class->take(k->comm, before, x, bytes, &e)) lose(m, &e);
    k->waited += wg_clock_now() - start;
}

void wg_ranked_post(wg_model *m, const float *x, int rows)
{
    wg_error e;
    wg_ranked *k = m->ranked;
    const int next = (m->part.stage + 1) % m->part.stages * m->part.ranks + m->part.rank;
    const size_t bytes = (size_t)rows * (size_t)m->arch.dim * sizeof *x;
    if (k->lost.code == WG_OK && k->comm->class->post(k->comm, next, x, bytes, &e)) lose(m, &e);
}

/* Fewer rows cost as much as twice as many: a pass reads all weights. */
int wg_ranked_half(const wg_model *m, int rows)
{
    enum { LEAST = 64 };
    return m->part.stages > 1 && rows >= LEAST ? rows / 2 : 0;
}

wg_status wg_ranked_lost(const wg_model *m, wg_error *err)
{
    const wg_error *lost = &m->ranked->lost;
    return lost->code ? wg_fail(err, lost->code, "%s", lost->text) : WG_OK;
}

void wg_ranked_begin(wg_model *m) { m->ranked->digest = WG_HASH_START; }

/* FNV-1a by words. */
static void digest_rows(wg_model *m, const float *x, int rows)
{
    const size_t n = (size_t)rows * (size_t)m->arch.dim;
    uint64_t h = m->ranked->digest, word;
    for (size_t i = 0; i + 2 <= n; i += 2) {
        memcpy(&word, x + i, sizeof word);
        h = (h ^ word) * 0x100000001b3ull;
    }
    m->ranked->digest = n % 2 ? wg_hash64(h, x + n - 1, sizeof *x) : h;
}

wg_status wg_ranked_end(wg_model *m, wg_error *err)
{
    wg_ranked *k = m->ranked;
    uint64_t all[WG_RANKS_MOST] = { 0 };
    size_t width[WG_RANKS_MOST];
    char why[200];
    wg_error e;
    for (int r = 0; r < k->comm->ranks; r++) width[r] = sizeof all[r];
    if (k->lost.code == WG_OK && k->comm->class->join(k->comm, NULL, &k->digest, 1, width, all, 0, &e)) lose(m, &e);
    for (int r = 1; r < k->comm->ranks && k->comm->rank == 0 && k->lost.code == WG_OK; r++) {
        const int like = r / m->part.ranks * m->part.ranks; /* the first rank of its stage */
        if (all[r] == all[like]) continue;
        snprintf(why, sizeof why,
                 "rank %d has other rows than rank %d after the same pass (digests %016llx and %016llx): its processor or "
                 "memory computes otherwise, or this is an error of the program",
                 r, like, (unsigned long long)all[r], (unsigned long long)all[like]);
        k->comm->class->fail(k->comm, why);
        wg_fail(&k->lost, WG_EIO, "ranks: %s", why);
    }
    return wg_ranked_lost(m, err);
}

static void widths(const wg_model *m, wg_split of, size_t each, size_t *width)
{
    const int *cut = m->part.cut[of];
    for (int r = 0; r < m->part.ranks; r++) width[r] = (size_t)(cut[r + 1] - cut[r]) * each * sizeof(float);
}

const float *wg_ranked_join(wg_model *m, wg_split of, int each, const float *own, float *to, int rows)
{
    size_t width[WG_RANKS_MOST];
    widths(m, of, (size_t)each, width);
    join(m, own, rows, width, to, -1);
    return to;
}

const float *wg_ranked_attention(wg_model *m, const float *x, const float *own, float *to, int rows)
{
    digest_rows(m, x, rows);
    return wg_ranked_join(m, WG_SPLIT_HEADS, m->arch.head_dim, own, to, rows);
}

void wg_ranked_part(int from, int n, const float *whole, int all, float *own, int rows)
{
    for (int i = 0; i < rows; i++)
        memcpy(own + (size_t)i * (size_t)n, whole + (size_t)i * (size_t)all + from, (size_t)n * sizeof *own);
}

static int owner(const wg_model *m, wg_split of, int i)
{
    int r = 0;
    while (m->part.cut[of][r + 1] <= i) r++;
    return r;
}

void wg_ranked_embed(wg_model *m, const wg_row *row, int rows, float *x, float *own)
{
    wg_ranked *k = m->ranked;
    const size_t dim = (size_t)m->arch.dim;
    size_t width[WG_RANKS_MOST] = { 0 }, at[WG_RANKS_MOST];
    int mine = 0;
    for (int i = 0; i < rows; i++) {
        const int r = owner(m, WG_SPLIT_VOCAB, row[i].token);
        width[r] += dim * sizeof *x;
        if (r != m->part.rank) continue;
        k->row[mine] = row[i];
        k->row[mine++].token -= wg_rank_part_from(&m->part, WG_SPLIT_VOCAB);
    }
    if (mine) m->device.class->embed(&m->device, &m->embed, k->row, mine, own, m->arch.dim);
    join(m, own, 1, width, k->whole, -1);
    at[0] = 0;
    for (int r = 1; r < m->part.ranks; r++) at[r] = at[r - 1] + width[r - 1] / sizeof *x;
    for (int i = 0; i < rows; i++) {
        size_t *from = &at[owner(m, WG_SPLIT_VOCAB, row[i].token)];
        memcpy(x + (size_t)i * dim, k->whole + *from, dim * sizeof *x);
        *from += dim;
    }
}

void wg_ranked_head(wg_model *m, const float *h, int rows, float *logits)
{
    wg_ranked *k = m->ranked;
    wg_error e;
    size_t width[WG_RANKS_MOST];
    const size_t need = (size_t)rows * (size_t)wg_rank_part_n(&m->part, WG_SPLIT_HEAD);
    digest_rows(m, h, rows);
    if (wg_grow((void **)&k->head, &k->head_room, need, sizeof *k->head, "columns of logits", &e)) {
        lose(m, &e);
        k->comm->class->fail(k->comm, e.text);
        return;
    }
    m->device.class->head(&m->device, &m->head, h, rows, m->act, m->arch.logit_cap, k->head);
    widths(m, WG_SPLIT_HEAD, 1, width);
    join(m, k->head, rows, width, logits, 0);
}

const float *wg_ranked_expert(void *model, int i, const float *y, int rows)
{
    wg_model *m = model;
    size_t width[WG_RANKS_MOST] = { 0 };
    width[owner(m, WG_SPLIT_EXPERTS, i)] = (size_t)rows * (size_t)m->arch.dim * sizeof *y;
    join(m, y, 1, width, m->ranked->whole, -1);
    return m->ranked->whole;
}
