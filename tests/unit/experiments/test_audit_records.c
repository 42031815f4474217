/* SPDX-License-Identifier: MIT
 * Records of other engines: what a line says, what is wrong with it, and verdicts by kind of record. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "lab/audit/audit_file.h"
#include "lab/audit/import.h"
#include "tests/temp.h"

static wg_status line(wg_audit_reader *r, const char *text, wg_audit_line *kind, wg_error *err)
{
    return wg_audit_read_line(r, text, strlen(text), kind, err);
}

static void read_lines(wg_audit_reader *r, const char *text)
{
    wg_error err;
    wg_audit_line kind;
    cr_assert_eq(line(r, text, &kind, &err), WG_OK, "%s: %s", text, err.text);
}

/* What a line is refused with. */
static const struct {
    const char *text, *message;
} refused[] = {
    { "x", "no JSON: '[' or '{' expected near 'x' (column 1)" },
    { "[1]", "no JSON object; expected one a line" },
    { "{\"a\": 1, \"a\": 2}", "no JSON: duplicate" },
    { "{\"format\": \"x\"}", "'format' is not \"wager-audit-1\", the one that this version reads" },
    { "{\"format\": \"wager-audit-1\", \"rules\": 1}", "unknown member 'rules'; expected one of: format, stream, rule, law, "
                                                       "row_error, engine, extra (\"extra\" holds anything)" },
    { "{\"format\": \"wager-audit-1\", \"stream\": 3}", "'stream' is no text of less than 128 bytes" },
    { "{\"format\": \"wager-audit-1\", \"law\": \"drawn\"}",
      "'law' is none of: fixed, iid, without_replacement, coupled (how drafts were chosen)" },
    { "{\"format\": \"wager-audit-1\", \"row_error\": 2}",
      "'row_error' is no number from 0 to 1: the total variation of a row from the engine's" },
    { "{\"stream\": \"a\"}", "a record has 'draft', 'tokens' or 'counters', and this line none of them" },
    { "{\"draft\": 3}", "'draft' is no list" },
    { "{\"draft\": [0.5]}", "'draft' has an item that is no whole number" },
    { "{\"draft\": [-4], \"law\": \"fixed\"}", "-4 is no token; expected an id from 0 on" },
    { "{\"draft\": [1]}", NULL },
    { "{\"draft\": [1], \"law\": \"iid\"}", "drafts of law iid without 'q', the rows that they were drawn from" },
    { "{\"draft\": [1], \"p\": [1, 1]}", "'next' is no token: the one emitted behind the accepted ones" },
    { "{\"draft\": [1], \"p\": 3, \"next\": 1}", "'p' is no list of rows" },
    { "{\"draft\": [1], \"p\": [1], \"next\": 1}", "'p' has 1 rows; expected 2" },
    { "{\"draft\": [1], \"p\": [1, null], \"next\": 1}", "'p', row 1: it is null" },
    { "{\"draft\": [1], \"p\": [\"a\", 1], \"next\": 1}",
      "'p', row 0: a row is a list of probabilities, {\"tokens\": [...], \"p\": [...]}, or the token that has all the mass" },
    { "{\"draft\": [1], \"p\": [[0.5, 0.5], [1]], \"next\": 1}",
      "a row has 1 probabilities, another one 2; expected those of one vocabulary" },
    { "{\"draft\": [1], \"p\": [{\"tokens\": [\"a\"], \"p\": [1]}, 1], \"next\": 1}",
      "a row lists something else than token ids" },
    { "{\"draft\": [1], \"p\": [{\"tokens\": [1], \"p\": []}, 1], \"next\": 1}", "a row lists 1 tokens and 0 probabilities" },
    { "{\"draft\": [1], \"p\": [{\"tokens\": [1, 1], \"p\": [0.5, 0.5]}, 1], \"next\": 1}", "a row lists token 1 twice" },
    { "{\"draft\": [1], \"p\": [{\"tokens\": [1, 2], \"p\": [0.9, 0.9]}, 1], \"next\": 1}",
      "a row sums to 1.8; expected 1 at most" },
    { "{\"draft\": [1], \"p\": [{\"tokens\": [1], \"p\": [2]}, 1], \"next\": 1}",
      "a probability is no number from 0 to 1; rows hold probabilities, after the sampler" },
    { "{\"draft\": [1], \"p\": [[0.5, 0.5], {\"tokens\": [9], \"p\": [1]}], \"next\": 1}",
      "a row lists token 9 of a vocabulary of 2" },
    { "{\"draft\": [1], \"p\": [[0.5, 0.5], {\"tokens\": [0, 1], \"p\": [0.1, 0.1]}], \"next\": 1}",
      "a row sums to 0.2 over all tokens" },
    { "{\"draft\": [1], \"p\": [[0.5, 0.5], 9], \"next\": 1}", "a row is token 9 of a vocabulary of 2" },
    { "{\"draft\": [1], \"p\": [[0.5, 0.1], 1], \"next\": 1}", "a row sums to 0.6; expected 1" },
    { "{\"draft\": [5], \"p\": [[0.5, 0.5], 1], \"next\": 1}", "token 5 is outside the vocabulary of the rows, 2" },
    { "{\"draft\": [1], \"q\": [1, 1, 1]}",
      "'q' has 3 rows; expected one for each of 1 drafted tokens, and perhaps the one behind them" },
    { "{\"draft\": [1, 2], \"parents\": [-1, -1], \"q\": [null, 2]}",
      "'q', row 0: it is null; expected the row that drafted token 0 was drawn from" },
    { "{\"draft\": [1, 2], \"parents\": [-1, -1], \"q\": [1, 2]}",
      "'q', row 1: it is not the row of its first sibling, drafted token 0; expected that row, or null" },
    { "{\"draft\": [1, 2], \"parents\": [-1], \"q\": [1, 2]}", "'parents' has 1 items and 'draft' 2; expected as many" },
    { "{\"draft\": [1, 2], \"parents\": [1, -1], \"q\": [1, 2]}",
      "drafted token 0 has the parent 1; expected an earlier index of 'draft', or -1 for the root" },
    { "{\"draft\": [1], \"p\": [1, 1], \"next\": 1, \"accepted\": 2}", "'accepted' is 2; expected 0 to 1, the drafted tokens" },
    { "{\"draft\": [1], \"p\": [1, 1], \"next\": 1}",
      "'accepted' is neither the number of accepted tokens of a chain nor a list of indices of 'draft'" },
    { "{\"draft\": [1, 2], \"p\": [1, 1, 1], \"next\": 1, \"accepted\": [1]}",
      "'accepted', item 0: 1 is no drafted token behind the one accepted before" },
    { "{\"tokens\": 1}", "'tokens' is no list of emitted tokens" },
    { "{\"tokens\": [\"a\"]}", "'tokens', item 0 is no token" },
    { "{\"tokens\": [], \"p\": []}", "'tokens' is empty" },
    { "{\"tokens\": [1], \"plain\": 1}", "'plain' is no list: the tokens of plain decoding at temperature 0" },
};

Test(audit, wrong_lines_are_refused_with_a_reason)
{
    wg_error err;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        wg_audit_reader r;
        wg_audit_line kind;
        const size_t live = wg_mem_read().live_blocks;
        cr_assert_eq(wg_audit_reader_open(&r, "file", &err), WG_OK);
        const wg_status s = line(&r, refused[i].text, &kind, &err);
        if (!refused[i].message) cr_expect_eq(s, WG_OK, "%s", refused[i].text);
        else {
            cr_expect_eq(s, WG_EFORMAT, "%s", refused[i].text);
            cr_expect(strstr(err.text, refused[i].message), "%s: '%s'", refused[i].text, err.text);
            cr_expect(!strncmp(err.text, "file:1: ", 8), "'%s'", err.text);
        }
        wg_audit_reader_close(&r);
        cr_expect_eq(wg_mem_read().live_blocks, live, "%s", refused[i].text);
    }
}

Test(audit, large_trees_and_tables_are_refused)
{
    static char text[1 << 20];
    wg_error err;
    wg_audit_reader r;
    wg_audit_line kind;
    int at = snprintf(text, sizeof text, "{\"draft\": [0");
    for (int i = 1; i < WG_TREE_MAX; i++) at += snprintf(text + at, sizeof text - (size_t)at, ",0");
    snprintf(text + at, sizeof text - (size_t)at, "]}");
    cr_assert_eq(wg_audit_reader_open(&r, "file", &err), WG_OK);
    cr_assert_eq(line(&r, text, &kind, &err), WG_EUNSUPPORTED);
    char want[128];
    snprintf(want, sizeof want, "'draft' has %d items; this build reads trees of %d drafted tokens", WG_TREE_MAX,
             WG_TREE_MAX - 1);
    cr_assert(strstr(err.text, want), "%s", err.text);
    wg_audit_reader_close(&r);
}

/* Few numbers may not claim much memory: rows over a long row's vocabulary. */
Test(audit, rows_need_what_the_file_holds)
{
    enum { LONG = 600000 };
    wg_error err;
    wg_audit_reader r;
    wg_audit_line kind;
    char *text = malloc(4 * LONG);
    int at = snprintf(text, 4 * LONG, "{\"draft\": [0");
    for (int i = 1; i < WG_TREE_MAX - 1; i++) at += snprintf(text + at, 8, ",0");
    at += snprintf(text + at, 64, "], \"accepted\": 0, \"next\": 0, \"p\": [");
    for (int i = 0; i < WG_TREE_MAX - 1; i++) at += snprintf(text + at, 8, "0,");
    at += snprintf(text + at, 8, "[1");
    for (int i = 1; i < LONG / 2; i++) at += snprintf(text + at, 8, ",0");
    snprintf(text + at, 8, "]]}");
    cr_assert_eq(wg_audit_reader_open(&r, "file", &err), WG_OK);
    const wg_status s = line(&r, text, &kind, &err);
    if (WG_TREE_MAX >= 64) {
        cr_assert_eq(s, WG_EUNSUPPORTED);
        cr_assert(strstr(err.text, "64 rows over 300000 tokens; record rows as {\"tokens\", \"p\"}"), "%s", err.text);
    }
    wg_audit_reader_close(&r);
    free(text);
}

Test(audit, a_round_is_what_its_line_says)
{
    wg_error err;
    wg_audit_reader r;
    cr_assert_eq(wg_audit_reader_open(&r, "file", &err), WG_OK);
    read_lines(&r, "{\"format\": \"wager-audit-1\", \"stream\": \"s\", \"rule\": \"rejection\", \"row_error\": 0.001}");
    read_lines(
        &r,
        "{\"draft\": [7, 900000, 7], \"parents\": [-1, -1, 0], \"q\": [{\"tokens\": [7, 900000], \"p\": [0.5, 0.25]}, null, 7],"
        "\"p\": [{\"tokens\": [3], \"p\": [0.9]}, 7, 7, 3], \"accepted\": [0, 2], \"next\": 3, \"final\": true}");
    const wg_audit_round *x = &r.round;
    cr_expect_str_eq(r.stream, "s");
    cr_expect_eq(x->evidence, WG_EVIDENCE_ROUND);
    cr_expect(!x->dense && x->final && x->p->vocab == 4, "%d", x->p->vocab); /* 3, 7, 900000, others */
    cr_expect_eq(x->tree.n, 4);
    cr_expect_eq(x->tree.law, WG_LAW_IID);
    cr_expect_eq(x->tree.token[1], 1);
    cr_expect_eq(x->tree.token[2], 2);
    cr_expect_eq(x->tree.parent[3], 1);
    cr_expect(x->path.n == 3 && x->path.node[1] == 1 && x->path.node[2] == 3 && x->path.next == 0);
    cr_expect_eq(x->tree.qrow[1], x->tree.qrow[2]);
    cr_expect_float_eq(wg_rows_at(x->q, 0)[1], 0.5, 1e-12);
    cr_expect_float_eq(wg_rows_at(x->q, 0)[3], 0.25, 1e-12);
    cr_expect_float_eq(x->q_error[0], 0.25, 1e-12);
    cr_expect_float_eq(x->p_error[0], 0.1, 1e-12);
    cr_expect_float_eq(x->rounding, 0.001, 1e-12);
    cr_expect_float_eq(wg_rows_at(x->p, 1)[1], 1, 0);
    read_lines(&r,
               "{\"draft\": [1], \"q\": [[0.5, 0.5], [0.25, 0.75]], \"p\": [[1, 0], [0, 1]], \"accepted\": 0, \"next\": 0}");
    cr_expect(x->dense && x->bonus_row == 1 && x->p->vocab == 2 && x->path.n == 1);
    wg_audit_reader_close(&r);
}

/* ---- verdicts */

typedef struct audit {
    wg_auditor a;
    wg_audit_reader r;
} audit;

static void open_audit(audit *t)
{
    wg_error err;
    cr_assert_eq(wg_auditor_open(&t->a, &err), WG_OK);
    cr_assert_eq(wg_audit_reader_open(&t->r, "file", &err), WG_OK);
}

static void feed(audit *t, const char *text)
{
    wg_error err;
    wg_audit_line kind;
    int stream;
    cr_assert_eq(line(&t->r, text, &kind, &err), WG_OK, "%s", err.text);
    if (kind != WG_AUDIT_RECORD) return;
    cr_assert_eq(wg_auditor_stream(&t->a, t->r.stream, t->r.header.rule, &stream, &err), WG_OK, "%s", err.text);
    if (t->r.round.evidence == WG_EVIDENCE_COUNTERS) wg_auditor_counters(&t->a, stream, &t->r.counters);
    else if (t->r.round.evidence == WG_EVIDENCE_TOKENS) wg_auditor_tokens(&t->a, stream, &t->r);
    else cr_assert_eq(wg_auditor_round(&t->a, stream, &t->r.round, &err), WG_OK, "%s", err.text);
}

static wg_verdict close_audit(audit *t)
{
    const wg_verdict v = wg_auditor_verdict(&t->a.stream[0]);
    wg_auditor_close(&t->a);
    wg_audit_reader_close(&t->r);
    return v;
}

static wg_verdict verdict_of(const char *text, int times)
{
    audit t;
    open_audit(&t);
    for (int i = 0; i < times; i++) feed(&t, text);
    return close_audit(&t);
}

Test(audit, verdicts_by_kind_of_record)
{
    static const struct {
        const char *text, *why;
        wg_verdict_kind kind;
    } cases[] = {
        { "{\"tokens\": [1, 2]}", "tokens without rows of p", WG_VERDICT_UNDECIDABLE },
        { "{\"tokens\": [1, 2], \"plain\": [1, 2]}", "temperature 0 alone is tested", WG_VERDICT_UNDECIDABLE },
        { "{\"tokens\": [1, 2], \"plain\": [1, 3]}", "token 1 differs from plain decoding", WG_VERDICT_DEFECT },
        { "{\"tokens\": [1, 2], \"plain\": [1]}", "token 1 differs from plain decoding", WG_VERDICT_DEFECT },
        { "{\"draft\": [1], \"law\": \"fixed\"}", "no drawn drafts", WG_VERDICT_UNDECIDABLE },
        { "{\"draft\": [1], \"q\": [1]}", "decisions are not", WG_VERDICT_UNDECIDABLE },
        { "{\"counters\": {\"rounds\": 3}}", "do not contradict themselves", WG_VERDICT_UNDECIDABLE },
        { "{\"counters\": {\"accepted\": 3, \"drafted\": 2}}", "more tokens are accepted than drafted: 3 and 2",
          WG_VERDICT_DEFECT },
        { "{\"tokens\": [1, 2], \"p\": [1, 2]}", "the law of p at this evidence", WG_VERDICT_LOSSLESS },
        { "{\"draft\": [1], \"p\": [{\"tokens\": [1], \"p\": [0.5]}, 1], \"accepted\": 1, \"next\": 1}",
          "rows lack up to 0.5 of their mass; more than 0.05 hides every defect but gross ones: record whole rows (wager run: "
          "\"trace_rows\": \"exact\")",
          WG_VERDICT_UNDECIDABLE },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const wg_verdict v = verdict_of(cases[i].text, 1);
        cr_expect_eq(v.kind, cases[i].kind, "%s: %s", cases[i].text, v.why);
        cr_expect(strstr(v.why, cases[i].why), "%s: %s", cases[i].text, v.why);
    }
}

Test(audit, impossible_tokens_are_named)
{
    wg_verdict v = verdict_of("{\"tokens\": [2], \"p\": [[0.5, 0.5, 0]]}", 20);
    cr_expect_eq(v.kind, WG_VERDICT_DEFECT);
    cr_expect_eq(v.defect, WG_DEFECT_SUPPORT, "%s", v.why);
    v = verdict_of("{\"draft\": [0], \"q\": [[0, 1]]}", 20);
    cr_expect_eq(v.kind, WG_VERDICT_DEFECT);
    cr_expect_eq(v.defect, WG_DEFECT_DRAWS, "%s", v.why);
}

Test(audit, a_lossy_rule_that_is_followed_is_lossy)
{
    audit t;
    open_audit(&t);
    feed(&t, "{\"format\": \"wager-audit-1\", \"rule\": \"typical\"}");
    feed(&t, "{\"draft\": [0], \"q\": [[1, 0]], \"p\": [[1, 0], [0, 1]], \"accepted\": 1, \"next\": 1}");
    const wg_verdict v = close_audit(&t);
    cr_expect_eq(v.kind, WG_VERDICT_LOSSY, "%s", v.why);
}

Test(audit, streams_have_one_rule)
{
    wg_error err;
    wg_auditor a;
    int stream;
    cr_assert_eq(wg_auditor_open(&a, &err), WG_OK);
    cr_assert_eq(wg_auditor_stream(&a, "s", "rejection", &stream, &err), WG_OK);
    cr_assert_eq(wg_auditor_stream(&a, "s", "rejection", &stream, &err), WG_OK);
    cr_assert_eq(wg_auditor_stream(&a, "s", "block", &stream, &err), WG_EINVAL);
    cr_expect_str_eq(err.text,
                     "stream 's' was recorded under the rule 'rejection' before, and now under 'block'; expected one rule a "
                     "stream");
    cr_assert_eq(wg_auditor_stream(&a, "t", "no_rule", &stream, &err), WG_EINVAL);
    wg_auditor_close(&a);
}

/* The weights of the streams and of all rounds sum to 1 at most. */
Test(audit, weights_sum_to_one)
{
    wg_error err;
    wg_auditor a;
    int stream;
    double sum = 0.5;
    cr_assert_eq(wg_auditor_open(&a, &err), WG_OK);
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        cr_assert_eq(wg_auditor_stream(&a, name, "", &stream, &err), WG_OK);
        sum += pow(10, a.stream[i].weight);
    }
    cr_expect_float_eq(pow(10, a.all.weight), 0.5, 1e-12);
    cr_expect(sum <= 1 && sum > 0.99, "%g", sum);
    wg_auditor_close(&a);
}

/* ---- counters of other programs */

#define SGLANG(histogram, length)                                                                                              \
    "{\"text\": \" a\", \"meta_info\": {\"id\": \"a\", \"completion_tokens\": 8, \"spec_verify_ct\": 4, "                      \
    "\"spec_accept_rate\": 0.25, "                                                                                             \
    "\"spec_num_correct_drafts\": 3, \"spec_num_proposed_drafts\": 12, \"spec_accept_length\": " length ", "                   \
    "\"spec_correct_drafts_histogram\": " histogram "}}"

Test(audit, counters_of_other_programs)
{
    static const struct {
        const char *text;
        double rounds, drafted, accepted;
        const char *wrong;
    } cases[] = {
        { "{\"metrics\": {\"speculative_decoding\": {\"num_spec_steps\": 10, \"num_draft_tokens\": 30, "
          "\"num_accepted_draft_tokens\": 15, "
          "\"acceptance_histogram\": [2, 3, 3, 2], \"mean_acceptance_length\": 2.5, \"draft_acceptance_rate\": 0.5}}}",
          10, 30, 15, NULL },
        { "{\"num_spec_steps\": 10, \"num_draft_tokens\": 30, \"num_accepted_draft_tokens\": 15, \"acceptance_histogram\": [2, "
          "3, 3, 1]}",
          10, 30, 15, "the histogram has another number of rounds: 9 and 10" },
        { "{\"num_spec_steps\": 9, \"num_draft_tokens\": 30, \"num_accepted_draft_tokens\": 15, \"acceptance_histogram\": [2, "
          "3, 3, 1]}",
          9, 30, 15, "the histogram has another number of accepted tokens: 12 and 15" },
        { "{\"choices\": [{\"speculative_decoding_stats\": {\"num_spec_steps\": 43, \"num_draft_tokens\": 129, "
          "\"num_accepted_draft_tokens\": 10, \"acceptance_histogram\": {\"0\": 39, \"1\": 1, \"3\": 3}, "
          "\"mean_acceptance_length\": 1.2325581395348837, \"draft_acceptance_rate\": 0.07751937984496124}}]}",
          43, 129, 10, NULL },
        { "{\"num_spec_steps\": 4, \"num_draft_tokens\": 12, \"num_accepted_draft_tokens\": 4, "
          "\"per_step_accepted\": [0, 1, 3, 0], \"per_step_drafted\": [3, 3, 3, 3]}",
          4, 12, 4, NULL },
        { "{\"num_spec_steps\": 4, \"num_draft_tokens\": 12, \"num_accepted_draft_tokens\": 4, "
          "\"per_step_accepted\": [0, 1, 3, 0], \"per_step_drafted\": [3, 3, 2, 4]}",
          4, 12, 4, "rounds accept more tokens than they draft: 1 and 4" },
        { "{\"num_spec_steps\": 5, \"per_step_accepted\": [0, 1], \"per_step_drafted\": [3, 3]}", 5, -1, -1,
          "the lists by round have another number of rounds: 2 and 5" },
        { "{\"num_spec_steps\": 2, \"num_accepted_draft_tokens\": 2, \"per_step_accepted\": [0, 1], \"per_step_drafted\": [3, "
          "3]}",
          2, -1, 2, "the lists by round have another number of accepted tokens: 1 and 2" },
        { "{\"num_spec_steps\": 2, \"num_draft_tokens\": 7, \"per_step_accepted\": [0, 1], \"per_step_drafted\": [3, 3]}", 2, 7,
          -1, "the lists by round have another number of drafted tokens: 6 and 7" },
        { "{\"meta_info\": {\"spec_verify_ct\": 4, \"completion_tokens\": 9}}", 4, -1, -1, NULL },
        { SGLANG("[2, 1, 1]", "2"), 4, 12, 3, NULL },
        { SGLANG("[2, 1, 0, 1]", "2"), 4, 12, 3, "the histogram has another number of accepted tokens: 4 and 3" },
        { SGLANG("[1, 1, 1]", "2"), 4, 12, 3, "the histogram has another number of rounds: 3 and 4" },
        { SGLANG("[2, 1, 1]", "2.5"), 4, 12, 3, "the mean length is not emitted tokens / rounds: 2.5 and 2" },
        { "{\"meta_info\": {\"spec_verify_ct\": 4, \"completion_tokens\": 8, \"spec_draft_token_num\": 12, "
          "\"spec_accept_token_num\": 3, \"spec_accept_histogram\": [2, 1, 1]}}",
          4, 12, 3, NULL }, /* up to 0.5.9 */
        { "{\"spec_tokens_details\": {\"spec_accept_rate\": 0.5, \"spec_num_correct_drafts\": 3, \"spec_num_proposed_drafts\": "
          "12, \"spec_verify_ct\": 4, \"spec_correct_drafts_histogram\": []}}",
          4, 12, 3, "the rate is not accepted / drafted: 0.5 and 0.25" },
        { "{\"metadata\": {\"session_num\": 0}, \"metrics\": {\"spec_decode_steps\": {\"value\": 3, \"unit\": \"count\"}}, "
          "\"spec_decode_acceptance\": {\"engine\": \"vllm\", \"mean_acceptance_length\": 2.0, \"draft_acceptance_rate\": 0.5, "
          "\"acceptance_histogram\": {\"0\": 1, \"1\": 1, \"2\": 1}, \"num_accepted_draft_tokens\": 3, "
          "\"num_draft_tokens\": 6, \"num_spec_steps\": 3, \"completion_tokens\": 7}}",
          3, 6, 3, NULL }, /* a line of AIPerf's profile_export.jsonl */
        { "{\"timings\": {\"draft_n\": 8, \"draft_n_accepted\": 6}}", -1, 8, 6, NULL },
        { "{\"counters\": {\"rounds\": 4, \"accepted\": 6, \"drafted\": 8, \"mean_length\": 2.6}}", 4, 8, 6,
          "the mean length is not 1 + accepted / rounds: 2.6 and 2.5" },
        { "{\"counters\": {\"rounds\": 4, \"accepted\": 6, \"drafted\": 8, \"rate\": 0.8}}", 4, 8, 6,
          "the rate is not accepted / drafted: 0.8 and 0.75" },
        { "{\"counters\": {\"rounds\": 4, \"accepted\": 6, \"drafted\": 8, \"emitted\": 12}}", 4, 8, 6,
          "more tokens are emitted than rounds and accepted tokens give, and the prefill's one: 12 and 11" },
        { "{\"counters\": {\"rounds\": 4, \"accepted\": 6, \"drafted\": 8, \"accepted_by_position\": [3, 4]}}", 4, 8, 6,
          "a position is accepted more often than the one before it: 4 and 3" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_audit_counters c;
        char why[200];
        json_t *o = json_loads(cases[i].text, 0, NULL);
        cr_assert(wg_import_counters(o, &c), "%s", cases[i].text);
        cr_expect(c.rounds == cases[i].rounds && c.drafted == cases[i].drafted && c.accepted == cases[i].accepted, "%s",
                  cases[i].text);
        const char *wrong = wg_counters_contradiction(&c, why, sizeof why);
        cr_expect(wrong ? cases[i].wrong && !strcmp(wrong, cases[i].wrong) : !cases[i].wrong, "%s: %s", cases[i].text,
                  wrong ? wrong : "");
        json_decref(o);
    }
}

/* One document over several lines: a list, an object with `results`, a record; each record counts. */
#define RESULT(drafted, accepted)                                                                                              \
    "{\"category\": \"coding\",\n\"draft_n\": " #drafted ",\n\"draft_n_accepted\": " #accepted ",\n\"ok\": true}"
#define SPEED_BENCH(results)                                                                                                   \
    "{\n\"config\": {\"bench\": \"qualitative\"},\n\"results\": [" results "],\n\"selected_samples\": 2\n}\n"

Test(audit, documents)
{
    static const struct {
        const char *text;
        int records; /* -1: refused */
        const char *said;
    } cases[] = {
        { SPEED_BENCH(RESULT(8, 5) ", " RESULT(4, 4)), 2, "do not contradict" },
        { SPEED_BENCH(RESULT(8, 5) ", " RESULT(4, 6)), 2, "more tokens are accepted than drafted: 6 and 4" },
        { "{\"results\": [{\"draft_n\": 1, \"draft_n_accepted\": 1}, {\"draft_n\": 4, \"draft_n_accepted\": 6}]}", 2,
          "more tokens are accepted than drafted: 6 and 4" },
        { "\xEF\xBB\xBF\n [{\"counters\": {\"rounds\": 1}}, {\"tokens\": [1], \"plain\": [2]},\n{\"tokens\": [1]}]", 3,
          "token 0 differs from plain decoding" },
        { "{\n  \"metrics\": {\"num_spec_steps\": 3}\n}", 1, "do not contradict" },
        { "{\"tokens\": [1]}\n{\"tokens\": [1]}", 2, "tokens without rows" },
        { "[]", -1, "file: there are no records in it" },
        { "[{\"tokens\": [1]},\n3]", -1, "file: record 1 of the document: no JSON object" },
        { "[{\"tokens\": [1]},\n", -1, "file:1: no JSON: " },
        { "{\"tokens\": [1]}\n[{\"tokens\": [1]}]", -1, "file:2: no JSON object; expected one a line" },
    };
    temp t;
    temp_make(&t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_error err;
        wg_auditor a;
        const char *path = temp_at(&t, "file");
        file_write(path, cases[i].text, strlen(cases[i].text));
        cr_assert_eq(wg_auditor_open(&a, &err), WG_OK);
        const wg_status s = wg_audit_file(&a, path, "", &err);
        const wg_verdict v = s ? (wg_verdict){ 0 } : wg_auditor_verdict(&a.stream[0]);
        int n = s ? -1 : 0;
        for (int k = 0; !s && k < WG_EVIDENCE_KINDS; k++) n += (int)a.all.records[k];
        cr_expect_eq(n, cases[i].records, "%s: %d records", cases[i].text, n);
        cr_expect(strstr(s ? err.text : v.why, cases[i].said), "%s: %s", cases[i].text, s ? err.text : v.why);
        wg_auditor_close(&a);
    }
    temp_remove(&t);
}
