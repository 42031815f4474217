/* SPDX-License-Identifier: MIT
 * Enumerating an engine's text (text_law.h). */
#include "verify/proof/text_law.h"

#include <math.h>

#include "core/base/mem.h"

wg_status wg_text_laws_open(wg_text_laws *l, int cap, wg_error *err)
{
    *l = (wg_text_laws){ .text = wg_calloc((size_t)cap, sizeof *l->text), .n = 1, .cap = cap };
    return l->text ? WG_OK : wg_nomem(err, (size_t)cap * sizeof *l->text, "the laws of texts");
}

void wg_text_laws_close(wg_text_laws *l)
{
    wg_free(l->text);
    *l = (wg_text_laws){ 0 };
}

int wg_text_child(wg_text_laws *l, int at, int32_t token)
{
    int *link = &l->text[at].child;
    for (; *link; link = &l->text[*link].next)
        if (l->text[*link].token == token) return *link;
    if (l->n == l->cap) return -1;
    l->text[l->n] = (wg_text_law){ .token = token };
    return *link = l->n++;
}

double wg_text_laws_deviation(const wg_text_laws *l)
{
    double most = 0;
    for (int i = 0; i < l->n; i++) {
        const double d = fabs(l->text[i].got - l->text[i].want);
        if (!(d <= most)) most = d;
    }
    return most;
}

/* Runs steps until the enumerated sequence has its text; the other one may finish earlier. */
static wg_status decode(wg_engine_law *x, wg_engine *e, wg_seq *const *seq, int n, const wg_seq *s, wg_error *err)
{
    while (s->finish == WG_RUNNING) {
        wg_seq *running[2];
        int some = 0;
        const int room = wg_seq_room(s);
        for (int i = 0; i < n; i++)
            if (seq[i]->finish == WG_RUNNING) running[some++] = seq[i];
        WG_TRY(wg_engine_step(e, running, some, err));
        x->heights[room] |= 1u << s->last_height;
    }
    return WG_OK;
}

wg_status wg_engine_law_once(wg_engine_law *x, wg_engine *e, wg_chance_tree *tree, wg_text_laws *l, int *text, wg_error *err)
{
    static const int32_t others[] = { 2, 0, 1, 2, 0, 1, 0 };
    wg_seq *seq[2] = { NULL, NULL };
    const int me = x->other && x->after, n = x->other ? 2 : 1;
    wg_status status = WG_OK;
    for (int i = 0; i < n && !status; i++)
        if (i == me) status = wg_seq_open(e, &seq[i], WG_LAW_REQUEST, x->prompt, x->n, x->length, err);
        else status = wg_seq_open(e, &seq[i], WG_LAW_OTHER, others, 7, x->length + 1, err);
    if (!status && x->sampling) status = wg_seq_sample(e, seq[me], x->sampling, err);
    const long passes = wg_engine_target(e)->passes;
    *text = 0;
    if (!status) {
        seq[me]->chance = wg_chance_tree_chance(tree, (uint32_t)x->n);
        if (x->other) seq[1 - me]->chance = wg_chance_philox(x->other, WG_LAW_OTHER, 7);
        status = decode(x, e, seq, n, seq[me], err);
    }
    for (int i = x->n; !status && i < seq[me]->n && *text >= 0; i++) *text = wg_text_child(l, *text, seq[me]->token[i]);
    if (*text < 0) status = wg_fail(err, WG_EFULL, "more than %d texts", l->cap);
    if (!status) {
        x->passes += wg_chance_tree_probability(tree) * (double)(wg_engine_target(e)->passes - passes);
        x->drafted += seq[me]->counts.drafted;
        x->accepted += seq[me]->counts.accepted;
    }
    x->runs++;
    for (int i = 0; i < n; i++) wg_seq_close(e, seq[i]);
    return status;
}
