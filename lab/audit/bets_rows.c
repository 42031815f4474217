/* SPDX-License-Identifier: MIT
 * Bets that decisions follow other rows of p than the recorded ones: of another position, round or temperature, without
 * penalties or without a grammar's mask. The alternative is the rule's own law over the other rows. */
#include "lab/audit/bets.h"

#include <math.h>
#include <string.h>

double wg_step_error(const wg_audit_round *r, int node, bool looks_ahead)
{
    const wg_tree *t = &r->tree;
    double error = r->rounding;
    for (int i = looks_ahead ? 0 : node; i < (looks_ahead ? t->n : node + 1); i++) {
        const int child = wg_tree_child(t, i, i);
        error += 2 * (r->p_error[i] + (child >= 0 && t->qrow[child] >= 0 ? r->q_error[t->qrow[child]] : 0));
    }
    return error < 1 ? error : 1;
}

void wg_bets_rows(wg_bets *b, wg_bet bet, const wg_audit_round *r, const wg_decisions *d, const wg_decisions *a,
                  bool looks_ahead)
{
    for (int k = 0; k < d->n; k++) {
        const wg_step *s = &d->step[k], *o = &a->step[k];
        const double next = s->to < 0 ? d->next[r->path.next] : 0, other = s->to < 0 ? a->next[r->path.next] : 0;
        if (k >= a->n) return; /* the alternative cannot get there */
        wg_bet_on(b, bet, wg_step_probability(o, o->child, o->stop, other), wg_step_probability(s, s->child, s->stop, next),
                  wg_step_error(r, s->node, looks_ahead));
    }
}

/* Multiplies the mass of the tokens on the path to a node, except the root's, by `factor`. */
static void put_penalty(const wg_audit_round *r, int node, double *out, int vocab, double factor)
{
    const wg_tree *t = &r->tree;
    double sum = 0;
    for (int i = node; i > 0; i = t->parent[i]) {
        bool again = false;
        for (int j = node; j > i; j = t->parent[j]) again |= t->token[j] == t->token[i];
        if (!again) out[t->token[i]] *= factor;
    }
    for (int x = 0; x < vocab; x++) sum += out[x];
    for (int x = 0; x < vocab && sum > 0; x++) out[x] /= sum;
}

/* Gives tokens that p excludes a fifth of the mass, evenly, or the mass of `of` there. False: there is none. */
static bool put_outside(double *out, const double *of, int vocab)
{
    double sum = 0;
    for (int x = 0; x < vocab; x++) sum += out[x] > 0 ? 0 : of ? of[x] : 1;
    if (!(sum > 1e-9)) return false;
    const double part = of ? sum : 0.2;
    for (int x = 0; x < vocab; x++) out[x] = out[x] > 0 ? (1 - part) * out[x] : part * (of ? of[x] : 1) / sum;
    return true;
}

/* The rows before penalties on the support of p, or behind a mask outside it. */
static bool put_raw(const double *raw, double *out, int vocab, bool inside)
{
    double sum = 0;
    for (int x = 0; x < vocab; x++) sum += !inside || out[x] > 0 ? raw[x] : 0;
    if (!(sum > 1e-9)) return false;
    for (int x = 0; x < vocab; x++) out[x] = !inside || out[x] > 0 ? raw[x] / sum : 0;
    return true;
}

/* Changes one row from p to the alternative's. */
static bool put_row(wg_bet bet, const wg_audit_round *r, wg_rows *before, int node, double *out)
{
    const wg_tree *t = &r->tree;
    const int V = r->p->vocab, child = wg_tree_child(t, node, node), parent = t->parent[node];
    const double *p = wg_rows_at(r->p, node), *from = p;
    switch (bet) {
    case WG_BET_STALE_BEFORE: from = parent >= 0 ? wg_rows_at(r->p, parent) : p; break;
    case WG_BET_STALE_AFTER: from = child >= 0 ? wg_rows_at(r->p, child) : p; break;
    case WG_BET_STALE_ROUND: from = before && node < before->n ? wg_rows_at(before, node) : p; break;
    case WG_BET_SHARP: wg_power_row(p, out, V, 2); return true;
    case WG_BET_SHARPER: wg_power_row(p, out, V, 1.25); return true;
    case WG_BET_FLAT: wg_power_row(p, out, V, 0.5); return true;
    case WG_BET_FLATTER: wg_power_row(p, out, V, 0.8); return true;
    case WG_BET_PENALTY_LESS: put_penalty(r, node, out, V, 2); return node > 0;
    case WG_BET_PENALTY_MORE: put_penalty(r, node, out, V, 0.5); return node > 0;
    case WG_BET_PENALTY_RAW: return r->raw && put_raw(wg_rows_at(r->raw, node), out, V, true);
    case WG_BET_SUPPORT_RAW: return r->raw && put_raw(wg_rows_at(r->raw, node), out, V, false);
    case WG_BET_SUPPORT_OUTSIDE: return put_outside(out, NULL, V);
    case WG_BET_SUPPORT_DRAFT:
        return child >= 0 && r->q && t->qrow[child] >= 0 && put_outside(out, wg_rows_at(r->q, t->qrow[child]), V);
    default: return false;
    }
    memcpy(out, from, (size_t)V * sizeof *out);
    return from != p;
}

bool wg_bets_other_rows(wg_bet bet, const wg_audit_round *r, wg_rows *before, wg_rows *out)
{
    bool other = false;
    wg_rows_clear(out);
    for (int node = 0; node < r->tree.n; node++) {
        double *row = wg_rows_at(out, wg_rows_push(out));
        memcpy(row, wg_rows_at(r->p, node), (size_t)r->p->vocab * sizeof *row);
        other |= put_row(bet, r, before, node, row);
    }
    return other;
}
