/* SPDX-License-Identifier: MIT
 * The auditor (auditor.h). */
#include "lab/audit/auditor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "lab/audit/import.h"
#include "lab/audit/rule_law.h"
#include "verify/verify.h"

static const double threshold = 3;  /* log10 of the weighted e-value of an accusation */
static const double told_apart = 3; /* log10 of the lead of the best bet over other defects at which it is named alone */
static const double coarse = 0.05;  /* error of rows above which bets are useless */

wg_status wg_auditor_open(wg_auditor *a, wg_error *err)
{
    (void)err;
    *a = (wg_auditor){ .all = { .name = "all", .weight = log10(0.5) } };
    return WG_OK;
}

static void close_rows(wg_auditor *a)
{
    if (a->other.p) wg_rows_close(&a->other);
    if (a->before.p) wg_rows_close(&a->before);
    if (a->work.row) wg_workspace_close(&a->work);
    for (int i = 0; i < 2; i++) {
        wg_free(a->next[i]);
        a->next[i] = NULL;
    }
    a->vocab = 0;
}

void wg_auditor_close(wg_auditor *a)
{
    close_rows(a);
    for (int i = 0; i < a->streams; i++) {
        wg_bets_close(&a->stream[i].bets);
        wg_rule_choice_close(&a->stream[i].rule);
    }
    wg_free(a->stream);
    *a = (wg_auditor){ 0 };
}

/* ---- streams */

static wg_status open_stream(wg_auditor *a, const char *name, const char *rule, wg_error *err)
{
    if (a->streams == a->room) {
        const int more = a->room ? 2 * a->room : 8;
        wg_audited *grown = wg_realloc(a->stream, (size_t)more, sizeof *grown);
        if (!grown) return wg_nomem(err, (size_t)more * sizeof *grown, "streams");
        a->stream = grown;
        a->room = more;
    }
    wg_audited *s = &a->stream[a->streams];
    memset(s, 0, sizeof *s);
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->rule_name, sizeof s->rule_name, "%s", rule);
    s->weight = -log10(2.0 * (a->streams + 1) * (a->streams + 2));
    if (*rule) WG_TRY(wg_choose_rule(rule, &s->rule, err));
    a->streams++;
    return WG_OK;
}

wg_status wg_auditor_stream(wg_auditor *a, const char *name, const char *rule, int *out, wg_error *err)
{
    for (*out = 0; *out < a->streams; ++*out)
        if (!strcmp(a->stream[*out].name, name)) break;
    if (*out == a->streams) return open_stream(a, name, rule, err);
    if (!strcmp(a->stream[*out].rule_name, rule)) return WG_OK;
    return wg_fail(err, WG_EINVAL,
                   "stream '%s' was recorded under the rule '%s' before, and now under '%s'; expected one rule a stream", name,
                   a->stream[*out].rule_name, rule);
}

/* ---- the law of a round's decisions */

/* Fills the steps of the recorded path from a rule's law. */
static void steps_of(const wg_rule_law *law, const wg_audit_round *r, wg_decisions *d)
{
    const wg_tree *t = &r->tree;
    d->n = 0;
    d->next = law->next;
    for (int k = 0; k < r->path.n; k++) {
        const int node = r->path.node[k];
        const double reach = law->reach[node];
        if (!(reach > 0)) return;
        wg_step *s = &d->step[d->n++];
        *s = (wg_step){ .node = node, .to = k + 1 < r->path.n ? r->path.node[k + 1] : -1, .stop = 1, .merged = -1 };
        for (int c = node; (c = wg_tree_child(t, node, c)) >= 0;) s->stop -= law->reach[c] / reach;
        s->stop = s->stop > 1e-12 ? s->stop : 0;
        if (s->to < 0 && r->final) s->merged = wg_tree_find(t, node, r->path.next);
        const int child = s->to >= 0 ? s->to : s->merged;
        s->child = child >= 0 ? law->reach[child] / reach : 0;
    }
}

/* A rule, rows and draft law that decide in place of the recorded ones. */
typedef struct deciders {
    const wg_rule_choice *rule;
    wg_rows *p, *q;
    wg_sibling_law law; /* assumed law of the drafts */
} deciders;

/* The law of next at a recorded stop that is impossible under these deciders: the residual of the first drawn child, else p. */
static void next_of_impossible(const deciders *by, const wg_audit_round *r, double *next)
{
    const wg_tree *t = &r->tree;
    const int node = r->path.node[r->path.n - 1], child = wg_tree_child(t, node, node), vocab = by->p->vocab;
    const double *p = wg_rows_at(by->p, node);
    const double *q = child >= 0 && t->qrow[child] >= 0 && t->law != WG_LAW_FIXED ? wg_rows_at(by->q, t->qrow[child]) : NULL;
    double sum = 0;
    for (int x = 0; x < vocab && q; x++) sum += next[x] = p[x] > q[x] ? p[x] - q[x] : 0;
    for (int x = 0; x < vocab; x++) next[x] = sum > 1e-9 ? next[x] / sum : p[x];
}

/* Computes the decisions on a round; next: their law of next. */
static bool decisions_of(wg_auditor *a, const deciders *by, const wg_audit_round *r, double *next, wg_decisions *d)
{
    const wg_rule_choice *rule = by->rule;
    wg_rule_law of = { .next = next };
    wg_tree tree = r->tree;
    wg_rows none = { 0 };
    tree.law = by->law;
    if (!(rule->class->laws & by->law) || (rule->class->chains && !wg_tree_is_chain(&tree))) return false;
    if (!wg_rule_law_of(rule->class, rule->options, &tree, by->p, by->q ? by->q : &none, &a->work, r->path.node[r->path.n - 1],
                        &of))
        return false;
    if (!(of.stop > 0)) next_of_impossible(by, r, next);
    steps_of(&of, r, d);
    return true;
}

static void bet_on_deciders(wg_auditor *a, wg_audited *s, const wg_audit_round *r, const wg_decisions *d, wg_bet bet,
                            const deciders *by)
{
    wg_decisions o;
    if (decisions_of(a, by, r, a->next[1], &o)) wg_bets_rows(&s->bets, bet, r, d, &o, s->rule.class->looks_ahead);
}

/* Bets on the decisions of other rules. */
static void bet_on_rules(wg_auditor *a, wg_audited *s, const wg_audit_round *r, const wg_decisions *d)
{
    static const struct {
        wg_bet bet;
        const wg_verifier_class *rule;
    } rules[] = { { WG_BET_RULE_REJECTION, &wg_verifier_rejection },
                  { WG_BET_RULE_MATCH, &wg_verifier_match },
                  { WG_BET_RULE_BLOCK, &wg_verifier_block } };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const wg_rule_choice rule = { .class = (wg_verifier_class *)rules[i].rule };
        const deciders by = { &rule, r->p, r->q, r->tree.law };
        if (rule.class != s->rule.class) bet_on_deciders(a, s, r, d, rules[i].bet, &by);
    }
}

/* q^power, normalised, in the scratch rows. */
static wg_rows *other_q(wg_auditor *a, const wg_audit_round *r, double power)
{
    wg_rows_clear(&a->other);
    for (int i = 0; i < r->q->n; i++)
        wg_power_row(wg_rows_at(r->q, i), wg_rows_at(&a->other, wg_rows_push(&a->other)), a->vocab, power);
    return &a->other;
}

static void bet_on_drafts(wg_auditor *a, wg_audited *s, const wg_audit_round *r, const wg_decisions *d)
{
    deciders by = { &s->rule, r->p, r->q, r->tree.law };
    bool all_rows = r->q != NULL;
    for (int i = 1; i < r->tree.n; i++) all_rows &= r->tree.qrow[i] >= 0;
    if (r->q && r->tree.law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT)) {
        by.q = other_q(a, r, 0.5);
        bet_on_deciders(a, s, r, d, WG_BET_KEEP_FLAT, &by);
        by.q = other_q(a, r, 2);
        bet_on_deciders(a, s, r, d, WG_BET_KEEP_SHARP, &by);
        by.q = r->q;
    }
    by.law = WG_LAW_IID;
    if (r->tree.law == WG_LAW_FIXED && all_rows) bet_on_deciders(a, s, r, d, WG_BET_LAW_DRAWN, &by);
}

static void bet_on_other_rows(wg_auditor *a, wg_audited *s, const wg_audit_round *r, const wg_decisions *d)
{
    static const wg_bet rows[] = { WG_BET_STALE_BEFORE,    WG_BET_STALE_AFTER,   WG_BET_STALE_ROUND,
                                   WG_BET_SHARP,           WG_BET_SHARPER,       WG_BET_FLAT,
                                   WG_BET_FLATTER,         WG_BET_PENALTY_LESS,  WG_BET_PENALTY_MORE,
                                   WG_BET_SUPPORT_OUTSIDE, WG_BET_SUPPORT_DRAFT, WG_BET_PENALTY_RAW,
                                   WG_BET_SUPPORT_RAW };
    const deciders by = { &s->rule, &a->other, r->q, r->tree.law };
    wg_rows *before = a->before.n && r->dense ? &a->before : NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (wg_bets_other_rows(rows[i], r, before, &a->other)) bet_on_deciders(a, s, r, d, rows[i], &by);
}

/* ---- a round */

static wg_status make_room(wg_auditor *a, wg_audited *s, int vocab, wg_error *err)
{
    WG_TRY(wg_bets_room(&s->bets, 2 * vocab, err));
    if (a->vocab == vocab) return WG_OK;
    close_rows(a);
    WG_TRY(wg_workspace_open(&a->work, vocab, err));
    WG_TRY(wg_rows_open(&a->other, WG_TREE_MAX, vocab, err));
    WG_TRY(wg_rows_open(&a->before, WG_TREE_MAX, vocab, err));
    for (int i = 0; i < 2; i++)
        if (!(a->next[i] = wg_alloc((size_t)vocab, sizeof *a->next[i])))
            return wg_nomem(err, (size_t)vocab * sizeof *a->next[i], "a law");
    a->vocab = vocab;
    return WG_OK;
}

static void keep_rows(wg_auditor *a, const wg_audit_round *r)
{
    wg_rows_clear(&a->before);
    for (int i = 0; i < r->tree.n && r->dense; i++) {
        double *to = wg_rows_at(&a->before, wg_rows_push(&a->before));
        memcpy(to, wg_rows_at(r->p, i), (size_t)a->vocab * sizeof *to);
    }
}

static void count(wg_audited *s, const wg_audit_round *r)
{
    s->records[r->evidence]++;
    if (r->evidence != WG_EVIDENCE_TEXT) s->drafted += r->tree.n - 1;
    if (r->p) s->emitted += r->path.n;
    for (int i = 0; r->p && i < r->tree.n; i++) s->error = fmax(s->error, r->p_error[i]);
    for (int i = 0; r->q && i < r->q->n; i++) s->error = fmax(s->error, r->q_error[i]);
}

/* Records, after the bets of a round, whether the e-value has reached the threshold. */
static void look(wg_audited *s)
{
    const double e = wg_bets_log10(&s->bets);
    double lead;
    wg_bet other;
    s->rounds++;
    if (s->rounds == 1 || e > s->highest) s->highest = e;
    if (!s->accused_at && e + s->weight >= threshold) s->accused_at = s->rounds;
    if (!s->accused_at || s->named_at) return;
    wg_best_bet(&s->bets, &lead, &other);
    if (lead >= told_apart) s->named_at = s->rounds;
}

static void add_capital(wg_bets *to, const wg_bets *now, const wg_bets *was)
{
    for (int i = 0; i < WG_BET_KINDS; i++) {
        to->made[i] += now->made[i] - was->made[i];
        for (int k = 0; k < WG_BET_SHARES; k++) to->capital[i][k] += now->capital[i][k] - was->capital[i][k];
    }
}

static void bet(wg_auditor *a, wg_audited *s, const wg_audit_round *r)
{
    wg_decisions d;
    const deciders recorded = { &s->rule, r->p, r->q, r->tree.law };
    wg_bets_draws(&s->bets, r);
    if (!r->p) return;
    if (s->rule.class && r->evidence == WG_EVIDENCE_ROUND && decisions_of(a, &recorded, r, a->next[0], &d)) {
        const bool looks_ahead = s->rule.class->looks_ahead;
        s->by_rule++;
        wg_bets_acceptance(&s->bets, r, &d, looks_ahead);
        wg_bets_next(&s->bets, r, &d, looks_ahead);
        wg_bets_siblings(&s->bets, r, &d, looks_ahead);
        bet_on_other_rows(a, s, r, &d);
        bet_on_drafts(a, s, r, &d);
        bet_on_rules(a, s, r, &d);
        return;
    }
    s->by_text++;
    wg_bets_text(&s->bets, r, a->before.n && r->dense ? &a->before : NULL, &a->other);
}

wg_status wg_auditor_round(wg_auditor *a, int stream, const wg_audit_round *r, wg_error *err)
{
    wg_audited *s = &a->stream[stream];
    const int vocab = r->p ? r->p->vocab : r->q ? r->q->vocab : 0;
    count(s, r);
    count(&a->all, r);
    if (!vocab) return WG_OK;
    WG_TRY(make_room(a, s, vocab, err));
    const wg_bets was = s->bets;
    const long by_rule = s->by_rule, by_text = s->by_text;
    bet(a, s, r);
    if (r->p) keep_rows(a, r);
    add_capital(&a->all.bets, &s->bets, &was);
    a->all.by_rule += s->by_rule - by_rule;
    a->all.by_text += s->by_text - by_text;
    look(s);
    look(&a->all);
    return WG_OK;
}

void wg_auditor_tokens(wg_auditor *a, int stream, const wg_audit_reader *r)
{
    wg_audited *s = &a->stream[stream];
    s->records[WG_EVIDENCE_TOKENS]++;
    a->all.records[WG_EVIDENCE_TOKENS]++;
    s->emitted += r->tokens;
    a->all.emitted += r->tokens;
    s->plain_same |= r->plain && r->differs < 0;
    a->all.plain_same |= r->plain && r->differs < 0;
    if (!r->plain || r->differs < 0 || s->plain_differs) return;
    s->plain_differs = true;
    s->fact_defect = WG_DEFECT_TEXT;
    snprintf(s->fact, sizeof s->fact, "line %ld: token %ld differs from plain decoding at temperature 0", r->line, r->differs);
}

void wg_auditor_counters(wg_auditor *a, int stream, const wg_audit_counters *c)
{
    char why[200];
    wg_audited *s = &a->stream[stream];
    s->records[WG_EVIDENCE_COUNTERS]++;
    a->all.records[WG_EVIDENCE_COUNTERS]++;
    if (s->counters_contradict || !wg_counters_contradiction(c, why, sizeof why)) return;
    s->counters_contradict = true;
    s->fact_defect = WG_DEFECT_KINDS;
    snprintf(s->fact, sizeof s->fact, "%s", why);
}

/* ---- verdicts */

const char *wg_verdict_name(wg_verdict_kind k)
{
    static const char *const names[] = { "lossless", "lossy", "defect", "undecidable" };
    return names[k];
}

/* Finds the best bet, and the best one on another defect unless it is far behind. */
static void diagnose(const wg_bets *b, wg_verdict *v)
{
    double lead;
    wg_bet other;
    v->bet = wg_best_bet(b, &lead, &other);
    v->defect = wg_bet_table[v->bet].defect;
    v->other = lead < told_apart ? wg_bet_table[other].defect : WG_DEFECT_KINDS;
    const int n = snprintf(v->why, sizeof v->why, "%s: %s", wg_defect_doc(v->defect), wg_bet_table[v->bet].doc);
    if (v->other < WG_DEFECT_KINDS)
        snprintf(v->why + n, sizeof v->why - (size_t)n, "; or %s: %s (more rounds tell them apart)", wg_defect_name(v->other),
                 wg_bet_table[other].doc);
}

static wg_verdict undecidable(const char *why)
{
    wg_verdict v = { .kind = WG_VERDICT_UNDECIDABLE, .defect = WG_DEFECT_KINDS, .other = WG_DEFECT_KINDS };
    snprintf(v.why, sizeof v.why, "%s", why);
    return v;
}

static wg_verdict without_rows(const wg_audited *s)
{
    if (s->records[WG_EVIDENCE_DRAFTS]) {
        if (s->drafted && s->rounds)
            return undecidable(
                "no rows of p: that drafts were drawn from q is tested and nothing speaks against it, decisions are not");
        return undecidable("no rows of p, and no drawn drafts");
    }
    if (s->plain_same)
        return undecidable("no rows: all texts equal those of plain decoding; temperature 0 alone is tested by that");
    if (s->records[WG_EVIDENCE_TOKENS])
        return undecidable("tokens without rows of p; record rows, or 'plain' at temperature 0");
    if (s->records[WG_EVIDENCE_COUNTERS])
        return undecidable("counters do not say what p and q were; they do not contradict themselves");
    return undecidable("no records");
}

wg_verdict wg_auditor_verdict(const wg_audited *s)
{
    wg_verdict v = {
        .kind = WG_VERDICT_DEFECT, .defect = s->fact_defect, .other = WG_DEFECT_KINDS, .log10 = wg_bets_log10(&s->bets)
    };
    if (*s->fact) {
        snprintf(v.why, sizeof v.why, "%s", s->fact);
        return v;
    }
    if (s->accused_at) {
        diagnose(&s->bets, &v);
        return v;
    }
    if (!s->by_rule && !s->by_text) v = undecidable("");
    if (v.kind == WG_VERDICT_UNDECIDABLE) return without_rows(s);
    if (s->error > coarse) {
        v = undecidable("");
        snprintf(v.why, sizeof v.why,
                 "rows lack up to %.2g of their mass; more than %g hides every defect but gross ones: record whole rows "
                 "(wager run: \"trace_rows\": \"exact\")",
                 s->error, coarse);
        return v;
    }
    const bool lossy = s->rule.class && s->by_rule && !s->rule.class->lossless;
    v.kind = lossy ? WG_VERDICT_LOSSY : WG_VERDICT_LOSSLESS;
    v.defect = WG_DEFECT_KINDS;
    snprintf(v.why, sizeof v.why, "%s",
             lossy        ? "decisions follow the rule, which is lossy"
             : s->by_text ? "the emitted tokens have the law of p at this evidence"
                          : "drafts and decisions follow the rule at this evidence");
    return v;
}
