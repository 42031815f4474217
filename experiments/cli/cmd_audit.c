/* SPDX-License-Identifier: MIT
 * wager audit: whether recorded rounds of an engine follow a lossless rule, and if not, what is wrong. */
#include <stdio.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "lab/audit/audit_file.h"
#include "core/base/json_number.h"
#include "experiments/cli/cli.h"

static const char *word_of(wg_defect d) { return d < WG_DEFECT_KINDS ? wg_defect_name(d) : "counters"; }

static json_t *evidence_json(const wg_audited *s)
{
    json_t *o = json_object();
    for (int d = 0; d < WG_DEFECT_KINDS; d++)
        json_object_set_new(o, wg_defect_name((wg_defect)d), wg_json_number(wg_defect_log10(&s->bets, (wg_defect)d)));
    return o;
}

static json_t *stream_json(const wg_audited *s, const wg_verdict *v)
{
    static const char *const records[] = { "counters", "tokens", "text", "drafts", "rounds" };
    json_t *o = json_object(), *held = json_object();
    json_object_set_new(o, "stream", wg_json_text(s->name));
    json_object_set_new(o, "rule", *s->rule_name ? wg_json_text(s->rule_name) : json_null());
    json_object_set_new(o, "verdict", json_string(wg_verdict_name(v->kind)));
    json_object_set_new(o, "defect", v->kind == WG_VERDICT_DEFECT ? json_string(word_of(v->defect)) : json_null());
    json_object_set_new(o, "or", v->other < WG_DEFECT_KINDS ? json_string(word_of(v->other)) : json_null());
    json_object_set_new(o, "why", wg_json_text(v->why));
    json_object_set_new(o, "log10_e", wg_json_number(wg_bets_log10(&s->bets)));
    json_object_set_new(o, "log10_e_most", wg_json_number(s->highest));
    json_object_set_new(o, "log10_weight", wg_json_number(s->weight));
    json_object_set_new(o, "accused_after", s->accused_at ? json_integer(s->accused_at) : json_null());
    json_object_set_new(o, "named_after", s->named_at ? json_integer(s->named_at) : json_null());
    json_object_set_new(o, "rounds", json_integer(s->rounds));
    json_object_set_new(o, "rounds_by_rule", json_integer(s->by_rule));
    json_object_set_new(o, "rounds_by_text", json_integer(s->by_text));
    json_object_set_new(o, "drafted", json_integer(s->drafted));
    json_object_set_new(o, "emitted", json_integer(s->emitted));
    for (int i = 0; i < WG_EVIDENCE_KINDS; i++) json_object_set_new(held, records[i], json_integer(s->records[i]));
    json_object_set_new(o, "records", held);
    json_object_set_new(o, "log10_e_of", evidence_json(s));
    return o;
}

static void print_stream(const wg_audited *s, const wg_verdict *v)
{
    printf("%s%s%s%s%s\n", *s->name ? s->name : "(no name)", *s->rule_name ? ", rule " : "", s->rule_name, ": ",
           wg_verdict_name(v->kind));
    if (v->kind == WG_VERDICT_DEFECT) printf("  defect %s: %s\n", word_of(v->defect), v->why);
    else printf("  %s\n", v->why);
    if (s->rounds) printf("  e-value 1e%.1f after %ld rounds", wg_bets_log10(&s->bets), s->rounds);
    if (s->accused_at) printf(", accused after %ld", s->accused_at);
    if (s->rounds) printf("; %ld tokens drafted, %ld emitted", s->drafted, s->emitted);
    if (s->rounds) putchar('\n');
}

/* The overall verdict: that on all rounds together, or the worst of the streams'. */
static wg_verdict verdict_of_all(const wg_auditor *a)
{
    static const int worse[] = {
        [WG_VERDICT_LOSSLESS] = 0, [WG_VERDICT_LOSSY] = 1, [WG_VERDICT_UNDECIDABLE] = 2, [WG_VERDICT_DEFECT] = 3
    };
    wg_verdict all = wg_auditor_verdict(&a->all), worst = { .kind = WG_VERDICT_LOSSLESS };
    if (all.kind == WG_VERDICT_DEFECT) return all;
    for (int i = 0; i < a->streams; i++) {
        const wg_verdict v = wg_auditor_verdict(&a->stream[i]);
        if (i == 0 || worse[v.kind] > worse[worst.kind]) worst = v;
    }
    return worst;
}

static bool print(const wg_auditor *a, bool json)
{
    const wg_verdict all = verdict_of_all(a);
    json_t *doc = json_object(), *list = json_array();
    for (int i = 0; i < a->streams; i++) {
        wg_verdict v = wg_auditor_verdict(&a->stream[i]);
        if (a->streams == 1) v = all; /* the stream has all rounds */
        json_array_append_new(list, stream_json(&a->stream[i], &v));
        if (!json) print_stream(&a->stream[i], &v);
    }
    if (!json && a->streams > 1) print_stream(&a->all, &all);
    json_object_set_new(doc, "streams", list);
    json_object_set_new(doc, "all", stream_json(&a->all, &all));
    if (json) wg_cli_put_json(doc, true);
    else json_decref(doc);
    return all.kind == WG_VERDICT_DEFECT;
}

int wg_cmd_audit(int argc, char **argv)
{
    const char *path, *rule = "";
    bool json = false;
    const wg_flag flags[] = {
        { "rule", 0, WG_FLAG_STRING, &rule, "RULE", "the rule of records that name no rule, NAME[:option=value,...]", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &json, NULL, "verdicts and evidence as JSON", 0, 0 },
        { NULL, 0, WG_FLAG_BOOL, NULL, NULL, NULL, 0, 0 },
    };
    const int done = wg_cli_parse("audit", flags, argc, argv, &path, 1, 1);
    if (done >= 0) return done;
    wg_error err;
    wg_auditor a;
    wg_status s = wg_auditor_open(&a, &err);
    if (!s) s = wg_audit_file(&a, path, rule, &err);
    int status = s ? WG_EXIT_USAGE : WG_EXIT_OK;
    if (s) wg_cli_fail(&err);
    else if (print(&a, json)) status = WG_EXIT_FAILED;
    wg_auditor_close(&a);
    return status;
}
