/* SPDX-License-Identifier: MIT
 * Bets on the emitted tokens, for unknown rules. Under every lossless rule the text of a round, continued from p, has the law
 * of p. So a product over the round's tokens of a(y) / p(y), where the law a is a function of the text before y, of p and q
 * there, and of what was before the round, has the mean 1, whatever decided where the round ends: its expectation given the
 * round is that of the continued text. Acceptance and drafts of the round must not enter.
 *
 * A row of q is known where the draft has children. It must be a function of the text, too, so q enters along chains and at the
 * root of trees. */
#include "lab/audit/bets.h"

#include <math.h>
#include <stddef.h>

static double overlap(const double *p, const double *q, int vocab)
{
    double sum = 0;
    for (int x = 0; x < vocab; x++) sum += p[x] < q[x] ? p[x] : q[x];
    return sum;
}

/* Bets on the law of token-wise rules with a defect, where one token is drafted. */
static void bet_on_defects(wg_bets *b, const double *p, const double *q, int vocab, int32_t y, double error)
{
    const double kept = p[y] < q[y] ? p[y] : q[y], alpha = overlap(p, q, vocab), left = alpha < 1 ? 1 - alpha : 0;
    wg_bet_on(b, WG_BET_KEEP_ALL, q[y], p[y], error);
    wg_bet_on(b, WG_BET_TEXT_DRAFT, (p[y] + q[y]) / 2, p[y], error);
    wg_bet_on(b, WG_BET_REST_TARGET, kept + left * p[y], p[y], error);
    wg_bet_on(b, WG_BET_REST_DRAFT, kept + left * q[y], p[y], error);
}

void wg_bets_text(wg_bets *b, const wg_audit_round *r, wg_rows *before, wg_rows *other)
{
    static const wg_bet rows[] = { WG_BET_STALE_BEFORE,  WG_BET_STALE_ROUND,  WG_BET_SHARP,
                                   WG_BET_SHARPER,       WG_BET_FLAT,         WG_BET_FLATTER,
                                   WG_BET_PENALTY_LESS,  WG_BET_PENALTY_MORE, WG_BET_SUPPORT_OUTSIDE,
                                   WG_BET_SUPPORT_DRAFT, WG_BET_PENALTY_RAW,  WG_BET_SUPPORT_RAW };
    const wg_tree *t = &r->tree;
    const int V = r->p->vocab;
    const bool drawn = r->q && t->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT), chain = wg_tree_is_chain(t);
    for (int k = 0; k < r->path.n; k++) {
        const int node = r->path.node[k], child = wg_tree_child(t, node, node);
        const int32_t y = k + 1 < r->path.n ? t->token[r->path.node[k + 1]] : r->path.next;
        const double *p = wg_rows_at(r->p, node), error = r->rounding + r->p_error[node];
        wg_bet_rank(b, WG_BET_TEXT_RANK, p, V, y, error);
        if (drawn && (chain || k == 0) && child >= 0 && t->qrow[child] >= 0)
            bet_on_defects(b, p, wg_rows_at(r->q, t->qrow[child]), V, y, error + r->q_error[t->qrow[child]]);
        if (drawn && chain && child < 0 && node > 0)
            wg_bet_on(b, WG_BET_BONUS_LAST, wg_rows_at(r->q, t->qrow[node])[y], p[y], error);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i] == WG_BET_SUPPORT_DRAFT && !chain) continue;
        if (!wg_bets_other_rows(rows[i], r, before, other)) continue;
        for (int k = 0; k < r->path.n; k++) {
            const int node = r->path.node[k];
            const int32_t y = k + 1 < r->path.n ? t->token[r->path.node[k + 1]] : r->path.next;
            wg_bet_on(b, rows[i], wg_rows_at(other, node)[y], wg_rows_at(r->p, node)[y], r->rounding + r->p_error[node]);
        }
    }
}
