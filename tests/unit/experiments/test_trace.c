/* SPDX-License-Identifier: MIT
 * Traces: written values are read back, the recorded rule repeats the run, compact rows are within their stated distance,
 * and a cut or damaged file gives its complete rounds only. */
#include <math.h>

#include "core/base/mem.h"
#include "lab/replay.h"
#include "experiments/run/distill.h"
#include "experiments/run/runner.h"
#include "scene.h"
#include "verify/verify.h"

static scene s;
static void setup(void) { scene_make(&s); }
static void teardown(void) { scene_remove(&s); }
TestSuite(trace, .init = setup, .fini = teardown, .timeout = 120);

#define CONFIG(more)                                                                                                           \
    "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": \"prompts.jsonl\"},"  \
    "\"trace\": \"probs\", \"max_tokens\": 12, \"seed\": 5, " more "}"

/* Runs a config into a folder. */
static void run_into(const char *out, const char *text)
{
    wg_config *c = config_of(text);
    const wg_run_options o = { .out = out };
    wg_run r;
    char *path = NULL;
    wg_error err;
    cr_assert_eq(wg_run_config(c, &o, &r, &path, &err), WG_OK, "%s", err.text);
    wg_free(path);
    wg_run_free(&r);
    wg_config_close(c);
}

static wg_trace *open_trace(const char *dir)
{
    char path[128];
    wg_trace *t;
    wg_error err;
    snprintf(path, sizeof path, "%s/trace.wgt", dir);
    cr_assert_eq(wg_trace_open(&t, path, &err), WG_OK, "%s", err.text);
    cr_assert_str_eq(t->damage, "");
    cr_assert_eq(t->end, t->size);
    return t;
}

/* The outputs in requests.jsonl against the texts the trace gives. Returns how many were compared. */
static int same_texts(const wg_trace *t, const char *dir)
{
    char path[128];
    int compared = 0;
    snprintf(path, sizeof path, "%s/requests.jsonl", dir);
    char *text = file_read(path, NULL);
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
        json_t *v = json_loadb(at, (size_t)(end - at), 0, NULL);
        const json_t *ids = json_object_get(v, "ids");
        for (int i = 0; i < t->requests; i++) {
            const wg_trace_request *r = &t->request[i];
            if (!json_is_integer(json_object_get(v, "cell")) ||
                r->asked.cell != json_integer_value(json_object_get(v, "cell")) ||
                r->asked.prompt != json_integer_value(json_object_get(v, "prompt")) ||
                r->asked.repeat != json_integer_value(json_object_get(v, "repeat")))
                continue;
            cr_assert(r->ended);
            cr_assert_eq(r->n - r->asked.prompt_tokens, (int)json_array_size(ids));
            for (size_t k = 0; k < json_array_size(ids); k++)
                cr_assert_eq(r->token[r->asked.prompt_tokens + (int)k], json_integer_value(json_array_get(ids, k)));
            compared++;
        }
        json_decref(v);
    }
    free(text);
    return compared;
}

/* Every round of every cell, verified again by its own rule. */
static void repeats(wg_trace *t, const char *what)
{
    wg_error err;
    for (int c = 0; c < (int)json_array_size(t->cells); c++) {
        wg_replay *r;
        cr_assert_eq(wg_replay_open(&r, t, c, -1, &err), WG_OK, "%s", err.text);
        wg_replayed all = { .rule = r->rule.class, .options = r->rule.options };
        cr_assert_eq(wg_replay_all(r, &all, 1, &err), WG_OK, "%s: %s", what, err.text);
        cr_assert_gt(all.rounds, 0);
        cr_assert_eq(all.same, all.rounds, "%s, cell %d: %ld of %ld rounds are the same", what, c, all.same, all.rounds);
        cr_assert_eq(all.worst, 0);
        wg_replayed_free(&all);
        wg_replay_close(r);
    }
}

Test(trace, recorded_rule_repeats_the_run)
{
    static const char *const configs[] = {
        CONFIG(
            "\"sampling\": {\"temperature\": 1}, \"repeats\": 2, \"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\"},"
            "\"sweep\": {\"verify.rule\": [\"rejection\", \"match\", \"block\", \"lenience\"]}"),
        CONFIG("\"sampling\": {\"temperature\": 0.7, \"top_p\": 0.9, \"repetition_penalty\": 1.3, \"frequency_penalty\": 0.5}, "
               "\"batch\": 3,"
               "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"tree\": \"2-2\"},"
               "\"sweep\": {\"verify.rule\": [\"rejection\", \"kseq\", \"multipath\", \"optimal\"]}"),
        CONFIG("\"sampling\": {\"temperature\": 1, \"top_k\": 9}, \"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\","
               "\"tree\": \"3-1\", \"siblings\": \"without_replacement\"},"
               "\"sweep\": {\"verify.rule\": [\"without_replacement\", \"traversal\"]}"),
        CONFIG("\"sampling\": {\"temperature\": 1}, \"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\","
               "\"siblings\": \"coupled\"}, \"verify\": {\"rule\": \"coupled\"}"),
        CONFIG(
            "\"sampling\": {\"temperature\": 0}, \"draft\": {\"kind\": \"ngram\"}, \"sweep\": {\"verify.rule\": [\"greedy\", "
            "\"topk\"]}"),
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        for (int logits = 0; logits < 2; logits++) {
            char out[16], text[1024];
            snprintf(out, sizeof out, "out-%zu-%d", i, logits);
            snprintf(text, sizeof text, "%.*s, \"trace_rows\": \"%s\"}", (int)strlen(configs[i]) - 1, configs[i],
                     logits ? "logits" : "exact");
            run_into(out, text);
            wg_trace *t = open_trace(out);
            cr_assert_gt(same_texts(t, out), 2);
            repeats(t, out);
            wg_trace_close(t);
        }
    }
}

/* Where drafts were rejected (distill.h), against a count of emitted tokens that reads no position of the trace. Under
 * `match` the token of a rejection is none of those drafted for its place, and where none is marked no draft failed. */
Test(trace, rejections_are_at_the_tokens_that_replaced_drafts)
{
    wg_error err;
    wg_target *target;
    wg_rejections r;
    run_into("out", CONFIG("\"sampling\": {\"temperature\": 0.5}, \"batch\": 2, \"repeats\": 2, \"draft\": {\"kind\": "
                           "\"model\", \"model\": \"target.gguf\", \"tree\": \"2-1\"}, \"verify\": {\"rule\": \"match\"}"));
    wg_trace *t = open_trace("out");
    cr_assert_eq(wg_target_open(&target, "target.gguf", &(wg_target_options){ .need_tokenizer = true }, &err), WG_OK, "%s",
                 err.text);
    cr_assert_eq(wg_rejections_open(&r, "out/trace.wgt", "trace.tokens", target, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_tokens_documents(r.text), (size_t)t->requests);
    long marked = 0, expected = 0;
    for (int k = 0; k < t->requests; k++) {
        const wg_trace_request *q = &t->request[k];
        size_t first, n;
        bool want[512] = { false };
        wg_tokens_document(r.text, (size_t)k, &first, &n);
        cr_assert(n == (size_t)q->n && n <= 512);
        for (int i = 0, emitted = q->asked.prompt_tokens; i < t->rounds; i++) {
            wg_trace_round round;
            if (t->round[i].request != k) continue;
            cr_assert_eq(wg_trace_get(t, i, &round, &err), WG_OK, "%s", err.text);
            emitted += round.path.n; /* the kept drafts and one more */
            if (emitted > q->n) continue;
            const int last = round.path.node[round.path.n - 1];
            for (int node = last + 1; node < round.tree.n; node++) {
                if (round.tree.parent[node] != last) continue;
                want[emitted - 1] = true;
                cr_assert_neq(round.tree.token[node], q->token[emitted - 1]);
            }
        }
        for (size_t i = 0; i < n; i++) {
            cr_assert_eq(wg_tokens_id(r.text, first + i), q->token[i]);
            cr_assert_eq(r.at[first + i], want[i], "request %d, token %zu", k, i);
            marked += r.at[first + i], expected += want[i];
        }
    }
    cr_assert(marked == r.rejected && marked > 5 && expected == marked, "%ld of %ld", marked, r.rejected);
    wg_rejections_close(&r);
    wg_target_close(target);
    wg_trace_close(t);
}

/* The state of a length policy that learns stands in its rounds: `average` plans what the round before it left. */
Test(trace, policy_state)
{
    wg_error err;
    wg_replay *r;
    run_into("out", CONFIG("\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 6, \"policy\": \"adaedl\"},"
                           "\"verify\": {\"rule\": \"match\"}, \"sampling\": {\"temperature\": 0.2}"));
    wg_trace *t = open_trace("out");
    cr_assert_eq(wg_replay_open(&r, t, 0, -1, &err), WG_OK);
    int planned = 0;
    for (int i = 0; i < t->rounds; i++) {
        cr_assert_eq(wg_replay_load(r, i, &err), WG_OK, "%s", err.text);
        const wg_trace_facts *f = &r->round.facts;
        cr_assert_eq(f->n_policy, 6);
        const int height = wg_tree_height(&r->round.tree), room = f->left - 1;
        cr_assert_leq(height, (int)f->policy[1] < room ? (int)f->policy[1] : room);
        planned += height > 0 && height == (int)f->policy[1];
    }
    cr_assert_gt(planned, 0);
    wg_replay_close(r);
    wg_trace_close(t);
}

/* Exact rows that are whole are kept as logits: another temperature is the same row whichever way; truncated rows refuse it. */
Test(trace, other_temperature)
{
    static const char *const rows[] = { "exact", "logits" };
    wg_error err;
    wg_replay *r[2];
    wg_trace *t[2];
    for (int k = 0; k < 2; k++) {
        char text[512];
        snprintf(text, sizeof text,
                 CONFIG("\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\"}, \"trace_rows\": \"%s\","
                        "\"sampling\": {\"temperature\": 0.8}"),
                 rows[k]);
        run_into(rows[k], text);
        t[k] = open_trace(rows[k]);
        cr_assert_eq(wg_replay_open(&r[k], t[k], 0, 1.3, &err), WG_OK);
    }
    cr_assert_eq(t[0]->rounds, t[1]->rounds);
    for (int i = 0; i < t[0]->rounds; i++) {
        for (int k = 0; k < 2; k++) cr_assert_eq(wg_replay_load(r[k], i, &err), WG_OK, "%s", err.text);
        for (int row = 0; row < r[0]->p.n; row++)
            for (int x = 0; x < r[0]->vocab; x++)
                cr_assert_float_eq(wg_rows_prob(&r[0]->p, row, x), wg_rows_prob(&r[1]->p, row, x), 1e-12);
    }
    for (int k = 0; k < 2; k++) {
        wg_replay_close(r[k]);
        wg_trace_close(t[k]);
    }
    run_into("cut", CONFIG("\"draft\": {\"kind\": \"ngram\"}, \"sampling\": {\"temperature\": 0.8, \"top_k\": 5}"));
    wg_trace *truncated = open_trace("cut");
    cr_assert_eq(wg_replay_open(&r[0], truncated, 0, 1.3, &err), WG_OK);
    cr_assert_eq(wg_replay_load(r[0], 0, &err), WG_EINVAL);
    wg_replay_close(r[0]);
    wg_trace_close(truncated);
}

/* The error that a compact row states is its distance from the exact row of the same round. */
Test(trace, compact_rows_state_their_error)
{
    static const char *const rows[] = { "exact", "f16", "top" };
    wg_error err;
    wg_replay *r[3];
    wg_trace *t[3];
    double worst[3] = { 0 };
    for (int k = 0; k < 3; k++) {
        char text[512];
        snprintf(text, sizeof text,
                 CONFIG("\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"tree\": \"2-1\"},"
                        "\"trace_rows\": \"%s\", \"trace_top\": 7, \"verify\": {\"rule\": \"topk\"}, \"sampling\": "
                        "{\"temperature\": 1}"),
                 rows[k]);
        run_into(rows[k], text);
        t[k] = open_trace(rows[k]);
        cr_assert_eq(wg_replay_open(&r[k], t[k], 0, -1, &err), WG_OK);
    }
    for (int i = 0; i < t[0]->rounds; i++) {
        for (int k = 0; k < 3; k++) cr_assert_eq(wg_replay_load(r[k], i, &err), WG_OK, "%s", err.text);
        for (int k = 1; k < 3; k++) {
            const wg_trace_round *o = &r[k]->round;
            cr_assert_eq(o->tree.n, r[0]->round.tree.n);
            for (int row = 0; row < o->tree.n + o->n_q; row++) {
                const bool of_p = row < o->tree.n;
                wg_rows *a = of_p ? &r[0]->p : &r[0]->q, *b = of_p ? &r[k]->p : &r[k]->q;
                const int at = of_p ? row : row - o->tree.n;
                const double stated = of_p ? o->p[at].error : o->q[at].error;
                double distance = 0;
                for (int x = 0; x < r[0]->vocab; x++) distance += fabs(wg_rows_prob(a, at, x) - wg_rows_prob(b, at, x)) / 2;
                cr_assert_float_eq(distance, stated, 1e-12, "%s: %g, stated %g", rows[k], distance, stated);
                worst[k] = fmax(worst[k], stated);
            }
        }
    }
    cr_assert(worst[1] > 0 && worst[1] < 1e-3, "%g", worst[1]);
    cr_assert(worst[2] > worst[1] && worst[2] < 1, "%g", worst[2]);
    for (int k = 0; k < 3; k++) {
        wg_replay_close(r[k]);
        wg_trace_close(t[k]);
    }
}

static wg_trace *read_bytes(const char *byte, size_t n, wg_error *err)
{
    wg_trace *t = NULL;
    FILE *f = fmemopen((void *)byte, n, "rb");
    cr_assert_not_null(f);
    return wg_trace_read(&t, "bytes", f, err) ? NULL : t;
}

/* Cut anywhere: the whole rounds before the cut, and where it is. One bit turned anywhere: the rounds before it. */
Test(trace, cut_and_damaged)
{
    size_t n = 0;
    wg_error err;
    run_into("out", CONFIG("\"draft\": {\"kind\": \"ngram\"}, \"sampling\": {\"temperature\": 1, \"top_k\": 4}"));
    char *byte = file_read("out/trace.wgt", &n);
    wg_trace *whole = open_trace("out");
    for (size_t cut = 1; cut < n; cut += 1 + cut % 29) {
        wg_trace *t = read_bytes(byte, cut, &err);
        int rounds = 0;
        while (rounds < whole->rounds && whole->round[rounds].at + 16 <= cut) rounds++; /* those that begin before it */
        if (!t) {
            cr_assert_eq(err.code, WG_EFORMAT);
            cr_assert_eq(rounds, 0);
            continue;
        }
        cr_assert(t->rounds == rounds || t->rounds == rounds - 1, "cut at %zu: %d rounds", cut, t->rounds);
        cr_assert(t->end == cut || *t->damage, "cut at %zu is not noticed", cut);
        cr_assert_leq(t->end, cut);
        for (int i = 0; i < t->rounds; i++) cr_assert_eq(t->round[i].at, whole->round[i].at);
        wg_trace_close(t);
    }
    for (size_t at = 16; at < n; at += 1 + at % 61) {
        byte[at] ^= (char)(1 << at % 8);
        wg_trace *t = read_bytes(byte, n, &err);
        byte[at] ^= (char)(1 << at % 8);
        if (t) {
            cr_assert(*t->damage, "a turned bit at %zu is not noticed", at);
            cr_assert_leq(t->end, at);
        }
        wg_trace_close(t);
    }
    wg_trace_close(whole);
    free(byte);
}

/* Takes away from the rounds what says that numbers of siblings were declared, as in traces of versions that did not write it.
 * */
static int forget_declared(char *byte, size_t n)
{
    int forgotten = 0;
    for (size_t at = 16; at < n;) {
        uint32_t length, kind;
        memcpy(&length, byte + at, 4);
        memcpy(&kind, byte + at + 4, 4);
        if (kind == WG_RECORD_ROUND) {
            int32_t policies, law;
            memcpy(&policies, byte + at + 8 + 68, 4);
            char *of_law = byte + at + 8 + 72 + 8 * (size_t)policies;
            memcpy(&law, of_law, 4);
            forgotten += law > WG_LAWS;
            law &= WG_LAWS;
            memcpy(of_law, &law, 4);
            const uint64_t sum = wg_trace_sum((unsigned char *)byte + at, (unsigned char *)byte + at + 8, length);
            memcpy(byte + at + 8 + length, &sum, 8);
        }
        at += length + 16;
    }
    return forgotten;
}

/* One rule over all rounds of a cell; the message of its failure is in *err. */
static wg_status by_rule(wg_trace *t, int cell, const char *name, int length, wg_error *err)
{
    wg_replay *r;
    wg_rule_choice rule = { 0 };
    cr_assert_eq(wg_replay_open(&r, t, cell, -1, err), WG_OK, "%s", err->text);
    cr_assert_eq(wg_choose_rule(name, &rule, err), WG_OK, "%s", err->text);
    wg_replayed all = { .rule = rule.class, .options = rule.options, .length = length };
    const wg_status s = wg_replay_all(r, &all, 1, err);
    wg_replayed_free(&all);
    wg_rule_choice_close(&rule);
    wg_replay_close(r);
    return s;
}

/* Rules that weigh siblings jointly replay drafts whose numbers of siblings were declared, at every length; where the trace
 * does not say so they are refused by name, but for the rule that the run had. */
Test(trace, numbers_of_siblings_travel)
{
    static const char *const joint[] = { "kseq", "optimal", "multipath" };
    wg_error err;
    size_t n = 0;
    run_into("out", CONFIG("\"sampling\": {\"temperature\": 1}, \"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\","
                           "\"tree\": \"3-1\"}, \"sweep\": {\"verify.rule\": [\"rejection\", \"optimal\"]}"));
    wg_trace *t = open_trace("out");
    for (size_t i = 0; i < 3; i++)
        for (int length = 0; length <= 2; length++)
            cr_assert_eq(by_rule(t, 0, joint[i], length, &err), WG_OK, "%s, %d: %s", joint[i], length, err.text);
    wg_trace_close(t);
    char *byte = file_read("out/trace.wgt", &n);
    cr_assert_gt(forget_declared(byte, n), 0);
    t = read_bytes(byte, n, &err);
    cr_assert(t, "%s", err.text);
    for (size_t i = 0; i < 3; i++) {
        char says[600];
        cr_assert_eq(by_rule(t, 0, joint[i], 0, &err), WG_ELAW, "%s", joint[i]);
        snprintf(
            says, sizeof says,
            "bytes: cell 0: rule %s weighs siblings jointly, and the trace does not say that their numbers were declared "
            "before they were drawn (docs/verification.md), or was recorded by a version that did not write it; rules that "
            "fit: greedy, match, rejection, topk, traversal, coupled, typical, lenience, relaxed, ensemble, "
            "speculative_cascade",
            joint[i]);
        cr_assert_str_eq(err.text, says);
    }
    cr_assert_eq(by_rule(t, 0, "rejection", 0, &err), WG_OK, "%s", err.text);
    cr_assert_eq(by_rule(t, 1, "optimal", 0, &err), WG_OK, "the recorded rule: %s", err.text);
    wg_trace_close(t);
    free(byte);
}

/* The same for siblings drawn without replacement, which `paired` weighs jointly. */
Test(trace, numbers_of_distinct_siblings_travel)
{
    wg_error err;
    size_t n = 0;
    run_into("out",
             CONFIG("\"sampling\": {\"temperature\": 1}, \"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"tree\": "
                    "\"3-1\", \"siblings\": \"without_replacement\"}, \"verify\": {\"rule\": \"traversal\"}"));
    wg_trace *t = open_trace("out");
    for (int length = 0; length <= 2; length++) cr_assert_eq(by_rule(t, 0, "paired", length, &err), WG_OK, "%s", err.text);
    wg_trace_close(t);
    char *byte = file_read("out/trace.wgt", &n);
    cr_assert_gt(forget_declared(byte, n), 0);
    t = read_bytes(byte, n, &err);
    cr_assert(t, "%s", err.text);
    cr_assert_eq(by_rule(t, 0, "paired", 0, &err), WG_ELAW);
    cr_assert(strstr(err.text, "rule paired weighs siblings jointly"), "%s", err.text);
    cr_assert_eq(by_rule(t, 0, "traversal", 0, &err), WG_OK, "%s", err.text);
    wg_trace_close(t);
    free(byte);
}

/* A drawn tree whose nodes are numbered depth first is not cut in the middle of a level. */
Test(trace, cuts_whole_levels)
{
    wg_error err;
    wg_replay *r;
    wg_path path;
    run_into("out", CONFIG("\"sampling\": {\"temperature\": 1}, \"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\","
                           "\"tree\": \"2-1\"}, \"verify\": {\"rule\": \"rejection\"}"));
    wg_trace *t = open_trace("out");
    cr_assert_eq(wg_replay_open(&r, t, 0, -1, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_replay_load(r, 0, &err), WG_OK, "%s", err.text);
    const wg_tree levels = r->round.tree;
    cr_assert_eq(levels.n, 5);
    wg_tree *deep = &r->round.tree;
    wg_tree_reset(deep, levels.token[0], WG_LAW_IID);
    for (int i = 0; i < 2; i++) {
        const int child = wg_tree_push(deep, 0, levels.token[1 + i], levels.qrow[1 + i]);
        wg_tree_push(deep, child, levels.token[3 + i], levels.qrow[3 + i]);
    }
    cr_assert_eq(wg_replay_rule(r, &wg_verifier_rejection, NULL, 2, &path, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_replay_rule(r, &wg_verifier_rejection, NULL, 1, &path, &err), WG_EUNSUPPORTED);
    cr_assert_str_eq(err.text,
                     "out/trace.wgt: cell 0, length 1: its trees are numbered depth first, so a cut would take siblings "
                     "away from nodes of that depth; replay them without --length");
    deep->law = WG_LAW_FIXED;
    cr_assert_eq(wg_replay_rule(r, &wg_verifier_rejection, NULL, 1, &path, &err), WG_OK, "%s", err.text);
    wg_replay_close(r);
    wg_trace_close(t);
}
