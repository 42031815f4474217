/* SPDX-License-Identifier: MIT
 * A drafter as a plug-in that samples: after each token, a draw from the tokens that followed it in this text, by their
 * frequency, and so on as a chain. bigram.c, beside it, has no draws and no q; here each token has its row of q, and rules such
 * as rejection keep it with probability min(1, p/q).
 *
 *     wager generate -m TARGET.gguf -p "..." -t 1 --rule rejection --draft plugin:path=libfollowers.so,options=k=4
 *
 * A rule that uses q is lossless only if q is true: the row that the token was drawn from, by a draw of WG_DRAW_DRAFT at the
 * node's number. `wager run` audits it (results/README.md, "Audit"). LIE makes two wrong drafters for the tests of that audit:
 * 1 publishes the square roots, normalised; 2 publishes q without the token that it drew. */
#include "draft/external/drafter_plugin.h"

#include <math.h>
#include <string.h>

typedef struct followers_options {
    int k;
} followers_options;

typedef struct followers {
    wg_drafter base;
    followers_options opt;
} followers;

static const wg_option options[] = {
    WG_OPTION_INT(followers_options, k, 4, 1, 63, "tokens per draft"),
    WG_OPTION_END,
};

enum { MOST = 64 };

/* The distinct tokens that followed `token`, ascending, and how often; returns how many, at most MOST. */
static int followers_of(const wg_seq *s, int32_t token, int32_t *out, double *count)
{
    int n = 0;
    for (int i = s->n - 2; i >= 0; i--) {
        if (s->token[i] != token) continue;
        const int32_t y = s->token[i + 1];
        int at = 0;
        while (at < n && out[at] < y) at++;
        if (at < n && out[at] == y) count[at]++;
        if ((at < n && out[at] == y) || n == MOST) continue;
        for (int j = n++; j > at; j--) out[j] = out[j - 1], count[j] = count[j - 1];
        out[at] = y;
        count[at] = 1;
    }
    return n;
}

static void normalise(double *v, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += v[i];
    for (int i = 0; i < n; i++) v[i] /= sum;
}

/* Fills a row of q: short lists are cheaper to read where the row has room for them. */
static void put_row(wg_rows *q, int row, const int32_t *token, const double *mass, int n)
{
    if (n <= q->room) {
        wg_rows_set(q, row, token, mass, n);
        return;
    }
    double *d = wg_rows_at(q, row);
    memset(d, 0, (size_t)q->vocab * sizeof *d);
    for (int i = 0; i < n; i++) d[token[i]] = mass[i];
}

/* A token drawn after x, and the row of q that says from what; -1: nothing followed it yet. */
static int32_t draw(const wg_seq *s, int32_t x, int node, wg_rows *q, int *row)
{
    int32_t token[MOST];
    double mass[MOST];
    const int n = followers_of(s, x, token, mass);
    if (n == 0 || (*row = wg_rows_push(q)) < 0) return -1;
    normalise(mass, n);
    put_row(q, *row, token, mass, n);
    const int32_t y = wg_rows_pick(q, *row, &s->chance, WG_DRAW_DRAFT, node);
#ifdef LIE
    for (int i = 0; i < n; i++) mass[i] = LIE == 1 ? sqrt(mass[i]) : token[i] == y && n > 1 ? 0 : mass[i];
    normalise(mass, n);
    put_row(q, *row, token, mass, n);
#endif
    return y;
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    (void)err;
    for (int i = 0; i < n; i++) {
        const wg_seq *s = seq[i];
        int32_t x = s->token[s->n - 1];
        wg_tree_reset(&out[i], x, WG_LAW_IID);
        for (int k = 0, node = 0, row; k < ((followers *)d)->opt.k && k < wg_seq_room(s) && node >= 0; k++) {
            if (wg_env_is_eog(d->env, x) || (x = draw(s, x, out[i].n, q, &row)) < 0) break;
            wg_tree_group(&out[i], node, 1); /* one child, said before it is drawn (a chain need not say it) */
            node = wg_tree_push(&out[i], node, x, row);
        }
    }
    return WG_OK;
}

static const wg_drafter_class followers_class = {
    .name = "followers",
    .doc = "a draw from what followed the last token before",
    .size = sizeof(followers),
    .options = options,
    .options_at = offsetof(followers, opt),
    .laws = WG_LAW_IID,
    .propose = propose,
};

WG_DRAFTER_PLUGIN(followers_class);
