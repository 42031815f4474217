/* SPDX-License-Identifier: MIT
 * A drafter as a plug-in that reads hidden states of the target: among the places where the last token stood before, it takes
 * the one whose hidden state just before it is nearest to that of now (largest cosine), and proposes what followed there. A
 * lookup in the text by meaning where bigram.c, beside it, takes the last place (kNN-LM: Khandelwal et al. 2020).
 *
 *     wager generate -m TARGET.gguf -p "..." --draft plugin:path=libnearest.so,options=tap=2
 *
 * The engine hands it the rows of the accepted text (core/engine/tap_feed.h): row i is the state of token i, from which the
 * model predicts token i + 1. It keeps the last WINDOW of them, by position. */
#include <math.h>
#include <stdlib.h>

#include "core/engine/tap_feed.h"
#include "draft/external/drafter_plugin.h"

enum { WINDOW = 512 };

typedef struct nearest_options {
    int k, tap;
} nearest_options;

typedef struct nearest {
    wg_drafter base;
    nearest_options opt;
    wg_tap_feed *feed;
    int dim;
    float *row; /* (max_batch, WINDOW, dim) of length 1; position i in place i % WINDOW */
} nearest;

static const wg_option options[] = {
    WG_OPTION_INT(nearest_options, k, 4, 1, 63, "tokens per draft"),
    WG_OPTION_INT(nearest_options, tap, 1, 0, 1000, "whose hidden states: those after so many layers"),
    WG_OPTION_END,
};

static float *row_of(const nearest *x, const wg_seq *s, int position)
{
    return x->row + ((size_t)s->slot * WINDOW + (size_t)(position % WINDOW)) * (size_t)x->dim;
}

/* Takes the rows that wait. The engine calls it too, when a long prompt has more rows than there is room for. */
static wg_status absorb(void *user, const wg_seq *s, wg_error *err)
{
    nearest *x = user;
    const int first = wg_tap_feed_first(x->feed, s), rows = wg_tap_feed_rows(x->feed, s);
    for (int i = 0; i < rows; i++) {
        float *to = row_of(x, s, first + i);
        double square = 0;
        WG_TRY(wg_tap_feed_read(x->feed, s, i, 1, to, err));
        for (int k = 0; k < x->dim; k++) square += (double)to[k] * (double)to[k];
        for (int k = 0; k < x->dim; k++) to[k] = square > 0 ? (float)(to[k] / sqrt(square)) : 0;
    }
    wg_tap_feed_drop(x->feed, s, rows);
    return WG_OK;
}

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    nearest *x = (nearest *)d;
    const wg_tap_reader reader = { .tap = &x->opt.tap, .n = 1, .absorb = absorb, .user = x };
    const wg_status s = wg_tap_feed_open(&x->feed, env->feeds, &reader, err);
    if (s) return s;
    x->dim = wg_tap_feed_dim(x->feed);
    x->row = calloc((size_t)env->max_batch * WINDOW * (size_t)x->dim, sizeof *x->row);
    if (x->row) return WG_OK;
    if (err) err->code = WG_ENOMEM;
    return WG_ENOMEM;
}

static void close(wg_drafter *d) { free(((nearest *)d)->row); }

/* The position behind an earlier place of the last token, the one with the nearest row; -1: it is new. */
static int behind_nearest(const nearest *x, const wg_seq *s)
{
    const int now = s->n - 2, from = s->n > WINDOW ? s->n - WINDOW : 0;
    const float *a = now < 0 ? NULL : row_of(x, s, now);
    double best = -2;
    int at = -1;
    for (int i = from; i < now; i++) {
        const float *b = row_of(x, s, i);
        double dot = 0;
        if (s->token[i + 1] != s->token[s->n - 1]) continue;
        for (int k = 0; k < x->dim; k++) dot += (double)a[k] * (double)b[k];
        if (dot > best) best = dot, at = i + 2;
    }
    return at;
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    nearest *x = (nearest *)d;
    (void)q;
    for (int i = 0; i < n; i++) {
        const wg_seq *s = seq[i];
        wg_status status = absorb(x, s, err);
        if (status) return status;
        wg_tree_reset(&out[i], s->token[s->n - 1], WG_LAW_FIXED); /* a function of the text: no draws, no q */
        int at = behind_nearest(x, s);
        for (int k = 0, node = 0; k < x->opt.k && k < wg_seq_room(s) && at >= 0 && at < s->n && node >= 0; k++, at++) {
            if (wg_env_is_eog(d->env, out[i].token[node])) break;
            node = wg_tree_push(&out[i], node, s->token[at], -1);
        }
    }
    return WG_OK;
}

static const wg_drafter_class nearest_class = {
    .name = "nearest",
    .doc = "what followed the last token where the hidden state before it was nearest",
    .size = sizeof(nearest),
    .options = options,
    .options_at = offsetof(nearest, opt),
    .laws = WG_LAW_FIXED,
    .open = open,
    .propose = propose,
    .close = close,
};

WG_DRAFTER_PLUGIN(nearest_class);
