/* SPDX-License-Identifier: MIT
 * The Markov and confidence heads of DSpark (2607.05147; methods.md, Heads). With h_k the normed state of row k of a block, x_k
 * the token before the one that the row gives, and e = W1[x_k]:
 *     vanilla   logits_k += W2 e
 *     gated     logits_k += W2 (sigmoid(G [h_k; e] + b) e)
 *     rnn       (g, c, o) = J [s; e; h_k] + b, s' = sigmoid(g) s + (1 - sigmoid(g)) tanh c, logits_k += W2 tanh o, from s = 0
 * and the selector of DFlash 2 (z-lab, 2026): of the K most probable tokens c of a row logits_k(c) += <A[x_k] H h_k, B[c]>, and
 * the others are out. Its tensors take the places of W1, W2 and G. Estimates of DSpark:
 *     confidence_k = sigmoid(w [h_k; e] + b)
 * Where row 0 gives no token, the anchor stands before rows 0 and 1, and the recurrence begins at row 0, as in speculators. A
 * row is computed by itself, so it is a function of the text and of the path. */
#include <math.h>
#include <string.h>

#include "draft/head/head_impl.h"

static float sigmoid(const wg_head *h, float x)
{
    const float minus = -x;
    float e;
    h->device.ops->exp32(&minus, &e, 1);
    return 1 / (1 + e);
}

static float hyperbolic(const wg_head *h, float x) { return 2 * sigmoid(h, 2 * x) - 1; }

/* The row of a block that gives what follows n tokens, and the token of the path that stands before that of row k. */
static int row_after(const wg_head *h, int n) { return n - h->spec.from_anchor; }
static int32_t before(const wg_head *h, const int32_t *path, int k) { return path[k - (k > 0 && !h->spec.from_anchor)]; }

static void lookup(wg_head *h, const wg_matrix *table, int32_t token, float *to)
{
    const wg_row row = { .token = token };
    h->device.class->embed(&h->device, table, &row, 1, to, h->spec.markov_rank);
}

static void embed(wg_head *h, int32_t token, float *to) { lookup(h, &h->markov_in, token, to); }

static void joined(wg_head *h, int outputs)
{
    wg_head_product(h, &h->markov_gate, h->link, h->linked, 1);
    h->device.class->bias(&h->device, h->linked, h->markov_bias, outputs, 1);
}

/* z of `gated` in `linked`, and of `rnn` in its last part. */
static float *gated(wg_head *h, const float *states, const int32_t *path, int row)
{
    const size_t dim = (size_t)h->spec.dim;
    const int rank = h->spec.markov_rank;
    float *e = h->link + dim;
    memcpy(h->link, states + (size_t)row * dim, dim * sizeof *states);
    embed(h, before(h, path, row), e);
    joined(h, rank);
    for (int i = 0; i < rank; i++) h->linked[i] = sigmoid(h, h->linked[i]) * e[i];
    return h->linked;
}

static float *recurrent(wg_head *h, const float *states, const int32_t *path, int row)
{
    const size_t dim = (size_t)h->spec.dim;
    const int rank = h->spec.markov_rank;
    float *s = h->link, *g = h->linked, *c = g + rank, *o = c + rank;
    memset(s, 0, (size_t)rank * sizeof *s);
    for (int k = 0; k <= row; k++) {
        embed(h, before(h, path, k), s + rank);
        memcpy(s + 2 * rank, states + (size_t)k * dim, dim * sizeof *states);
        joined(h, 3 * rank);
        for (int i = 0; i < rank; i++) {
            const float keep = sigmoid(h, g[i]);
            s[i] = keep * s[i] + (1 - keep) * hyperbolic(h, c[i]);
            o[i] = hyperbolic(h, o[i]);
        }
    }
    return o;
}

/* Leaves the candidates of a row, with the scores of their edges. */
static void select_candidates(wg_head *h, const float *state, int32_t token, float *row)
{
    const int rank = h->spec.markov_rank, all = h->spec.draft_vocab;
    float *edge = h->link, *successor = edge + rank;
    wg_head_product(h, &h->markov_gate, state, h->linked, 1);
    lookup(h, &h->markov_in, token, edge);
    for (int i = 0; i < rank; i++) edge[i] *= h->linked[i];
    memcpy(h->shift, row, (size_t)all * sizeof *row);
    for (int i = 0; i < all; i++) row[i] = -INFINITY;
    for (int k = 0; k < h->spec.top; k++) {
        const int x = h->device.ops->argmax(h->shift, all);
        float sum = 0;
        if (x < 0) return;
        lookup(h, &h->markov_out, x, successor);
        for (int i = 0; i < rank; i++) sum += edge[i] * successor[i];
        row[x] = h->shift[x] + sum;
        h->shift[x] = -INFINITY;
    }
}

void wg_head_follow(wg_head *h, const float *states, const int32_t *path, int n, float *row)
{
    const int at = row_after(h, n);
    float *z = h->link;
    if (h->spec.markov == WG_MARKOV_SELECTOR) {
        select_candidates(h, states + (size_t)at * (size_t)h->spec.dim, before(h, path, at), row);
        return;
    }
    if (h->spec.markov == WG_MARKOV_GATED) z = gated(h, states, path, at);
    else if (h->spec.markov == WG_MARKOV_RNN) z = recurrent(h, states, path, at);
    else embed(h, before(h, path, at), z);
    wg_head_product(h, &h->markov_out, z, h->shift, 1);
    h->device.class->add(&h->device, row, h->shift, h->spec.draft_vocab, 1);
}

double wg_head_confidence(wg_head *h, const float *states, const int32_t *path, int n)
{
    const int at = row_after(h, n), dim = h->spec.dim;
    const float *state = states + (size_t)at * (size_t)dim;
    double sum = h->confidence_bias[0];
    for (int i = 0; i < dim; i++) sum += (double)h->confidence[i] * state[i];
    if (h->spec.confidence_markov) {
        embed(h, before(h, path, at), h->link);
        for (int i = 0; i < h->spec.markov_rank; i++) sum += (double)h->confidence[dim + i] * h->link[i];
    }
    return sigmoid(h, (float)sum);
}
