/* SPDX-License-Identifier: MIT
 * Bets on mistakes in the rounds that test siblings drawn without replacement (verify/without_replacement.c): p is not replaced
 * by its residual after a rejection, or q keeps the earlier siblings. Hypothesis: path and next token have the rule's law at
 * the node. */
#include "lab/audit/bets.h"

#include <string.h>

typedef enum mistake { STILL, WHOLE } mistake; /* STILL: p is never replaced; WHOLE: q keeps earlier siblings */

/* The law of the rounds at a node. rest, q: (vocab) scratch. *child, *stop: probabilities of going on to s->to and of stopping;
 * *next: probability of token x after a stop, drawn from the last round's residual. */
static void rounds(const wg_audit_round *r, const wg_step *s, mistake m, double *rest, double *q, double *child, double *stop,
                   double *next)
{
    const wg_tree *t = &r->tree;
    const int vocab = r->p->vocab, first = wg_tree_child(t, s->node, s->node);
    const double *p = wg_rows_at(r->p, s->node);
    double left = 1;
    memcpy(rest, p, (size_t)vocab * sizeof *rest);
    memcpy(q, wg_rows_at(r->q, t->qrow[first]), (size_t)vocab * sizeof *q);
    *child = 0, *stop = 1;
    for (int i = first; i >= 0; i = wg_tree_child(t, s->node, i)) {
        const int32_t x = t->token[i];
        const double *from = m == STILL ? p : rest, part = m == WHOLE ? 1 : 1 / left;
        const double kept = from[x] < q[x] * part ? from[x] / (q[x] * part) : 1;
        double sum = 0;
        if (i == s->to) *child = *stop * kept;
        *stop *= 1 - kept;
        for (int y = 0; y < vocab; y++) sum += from[y] > q[y] * part ? from[y] - q[y] * part : 0;
        for (int y = 0; y < vocab && sum > 0; y++) rest[y] = from[y] > q[y] * part ? (from[y] - q[y] * part) / sum : 0;
        left -= q[x];
        q[x] = 0;
        if (!(left > 1e-9)) break; /* q can draw no more */
    }
    *next = s->to < 0 ? rest[r->path.next] : 0;
}

void wg_bets_siblings(wg_bets *b, const wg_audit_round *r, const wg_decisions *d, bool looks_ahead)
{
    static const wg_bet bets[] = { [STILL] = WG_BET_REST_STILL, [WHOLE] = WG_BET_KEEP_WHOLE };
    if (r->tree.law != WG_LAW_WITHOUT_REPLACEMENT || !r->q) return;
    for (int k = 0; k < d->n; k++) {
        const wg_step *s = &d->step[k];
        const int first = wg_tree_child(&r->tree, s->node, s->node);
        if (first < 0 || r->tree.qrow[first] < 0 || s->merged >= 0 || wg_tree_child(&r->tree, s->node, first) < 0) continue;
        for (mistake m = STILL; m <= WHOLE; m++) {
            double child, stop, next;
            rounds(r, s, m, b->other, b->other + r->p->vocab, &child, &stop, &next);
            wg_bet_on(b, bets[m], wg_step_probability(s, child, stop, next),
                      wg_step_probability(s, s->child, s->stop, s->to < 0 ? d->next[r->path.next] : 0),
                      wg_step_error(r, s->node, looks_ahead));
        }
    }
}
