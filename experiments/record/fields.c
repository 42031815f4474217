/* SPDX-License-Identifier: MIT
 * Members of the lines of a run (fields.h). */
#include "experiments/record/fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json_number.h"
#include "experiments/record/acceptance.h"
#include "experiments/record/audit_json.h"

enum { PROMPT_DIGITS = 16 }; /* digits of the digest that distinguishes the prompts of several runs */

/* ---- values that are not stored as one field ---------------------------------------------------------------------- */

#define OF(field) json_object_get(line, field)

static void cell_read(void *record, const json_t *line)
{
    ((wg_request *)record)->cell = json_is_integer(OF("cell")) ? (int)json_integer_value(OF("cell")) : -1;
}

static void status_read(void *record, const json_t *line) /* of a failed request until its error is read */
{
    ((wg_request *)record)->status = strcmp(wg_json_word(line, "status"), "ok") ? WG_EINVAL : WG_OK;
}
static void error_read(void *record, const json_t *line)
{
    wg_request *q = record;
    const char *text = json_string_value(OF("error")), *colon = text ? strstr(text, ": ") : NULL;
    q->status = WG_EINVAL;
    for (int s = WG_STATUS_BASE + 1; s <= WG_EINTERRUPTED; s++) {
        const char *name = wg_status_name((wg_status)s);
        if (colon && strlen(name) == (size_t)(colon - text) && !strncmp(name, text, strlen(name))) q->status = (wg_status)s;
    }
    snprintf(q->error, sizeof q->error, "%s", colon ? colon + 2 : text ? text : "");
}

static json_t *prompt_digest_value(const void *record)
{
    const wg_request *q = record;
    char sha[WG_SHA256_HEX];
    wg_prompt_digest(q->source, sha);
    return json_stringn(sha, PROMPT_DIGITS);
}

static void prompt_tokens_read(void *record, const json_t *line)
{
    ((wg_request *)record)->prompt_tokens = (int)wg_json_int(line, "prompt_tokens");
}

static void finish_read(void *record, const json_t *line)
{
    ((wg_request *)record)->finish = strcmp(wg_json_word(line, "finish"), "stop") ? WG_FINISH_LENGTH : WG_FINISH_EOS;
}

static json_t *other_ms(const wg_phases *p, double seconds)
{
    return wg_json_ms(seconds - p->draft - p->verify - p->accept - p->kv);
}

static void gaps_read(void *record, const json_t *line) { wg_events_read(&((wg_request *)record)->events, line); }
static void load_read(void *record, const json_t *line) { wg_pass_stats_read(&((wg_request *)record)->pass_stats, OF("load")); }

long wg_fields_passes(const json_t *speculation)
{
    const char *name = json_object_get(speculation, "target_passes") ? "target_passes" : "num_spec_steps";
    return (long)wg_json_int(speculation, name);
}

static void passes_read(void *record, const json_t *line)
{
    ((wg_request *)record)->counts.passes = wg_fields_passes(OF("speculative_decoding"));
}

static json_t *depths(const wg_counts *c, const long *of)
{
    json_t *list = json_array();
    for (int d = 1; d < WG_TREE_MAX && c->offered_at[d]; d++) json_array_append_new(list, json_integer(of[d]));
    return list;
}

static void read_depths(long *to, const json_t *list)
{
    for (size_t d = 1; d < WG_TREE_MAX && d <= json_array_size(list); d++)
        to[d] = (long)json_integer_value(json_array_get(list, d - 1));
}

static void offered_read(void *record, const json_t *line)
{
    read_depths(((wg_request *)record)->counts.offered_at, json_object_get(OF("speculative_decoding"), "offered_by_position"));
}
static void tried_read(void *record, const json_t *line)
{
    read_depths(((wg_request *)record)->counts.tried_at, json_object_get(OF("speculative_decoding"), "tried_by_position"));
}
static void accepted_read(void *record, const json_t *line)
{
    read_depths(((wg_request *)record)->counts.accepted_at,
                json_object_get(OF("speculative_decoding"), "accepted_by_position"));
}

static void without_draft_read(void *record, const json_t *line)
{
    const json_t *reasons = json_object_get(OF("speculative_decoding"), "rounds_without_draft");
    for (int i = 0; i < WG_NO_DRAFT_REASONS; i++)
        ((wg_request *)record)->counts.without_draft[i] = (long)wg_json_int(reasons, wg_no_draft_names[i]);
}

static json_t *step_accepted_value(const void *record)
{
    const wg_request *q = record;
    json_t *list = json_array();
    for (int i = 0; i < q->steps; i++) json_array_append_new(list, json_integer(q->step[i].accepted));
    return list;
}

static json_t *step_drafted_value(const void *record)
{
    const wg_request *q = record;
    json_t *list = json_array();
    for (int i = 0; i < q->steps; i++) json_array_append_new(list, json_integer(q->step[i].nodes - 1));
    return list;
}

static json_t *taken_json(int taken) { return taken < 0 ? json_null() : json_integer(taken); }

static json_t *step_part_value(const void *record)
{
    const wg_request *q = record;
    json_t *list = q->composite.n ? json_array() : NULL;
    for (int i = 0; list && i < q->steps; i++) json_array_append_new(list, taken_json(q->step[i].composite.taken));
    return list;
}

static void parts_read(void *record, const json_t *line)
{
    wg_composite_totals_read(&((wg_request *)record)->composite, OF("parts"), (long)wg_json_int(line, "parts_matched"));
}

static void audit_read(void *record, const json_t *line)
{
    wg_audit_sums_read(&((wg_request *)record)->counts.audit, OF("audit"));
}

static json_t *ids_value(const void *record)
{
    const wg_request *q = record;
    json_t *ids = json_array();
    for (int i = 0; i < q->n; i++) json_array_append_new(ids, json_integer(q->token[i]));
    return ids;
}
static void ids_read(void *record, const json_t *line)
{
    wg_request *q = record;
    const json_t *ids = OF("ids");
    const size_t n = json_array_size(ids);
    q->n = n > (size_t)q->cap_tokens ? q->cap_tokens : (int)n;
    for (int i = 0; i < q->n; i++) q->token[i] = (int32_t)json_integer_value(json_array_get(ids, (size_t)i));
    q->counts.emitted = q->n;
}

static json_t *step_other_value(const void *record)
{
    const wg_step_record *t = record;
    return other_ms(&t->phases, t->seconds);
}

static json_t *part_value(const void *record)
{
    const wg_composite_step *s = &((const wg_step_record *)record)->composite;
    return s->n ? taken_json(s->taken) : NULL;
}

static json_t *matched_value(const void *record)
{
    const wg_composite_step *s = &((const wg_step_record *)record)->composite;
    json_t *list = s->n ? json_array() : NULL;
    for (int k = 0; k < s->n; k++) json_array_append_new(list, s->matched[k] < 0 ? json_null() : json_integer(s->matched[k]));
    return list;
}

/* Values of a request that follow from its fields. */
/* clang-format off */
#define VALUE(name, expression) \
    static json_t *name(const void *record) \
    { \
        const wg_request *q = record; \
        return expression; \
    }
VALUE(arm_value, json_string(q->cell < 0 ? "baseline" : "cell"))
VALUE(cell_value, q->cell < 0 ? json_null() : json_integer(q->cell))
VALUE(id_value, json_string(q->source->id))
VALUE(category_value, json_string(q->source->category))
VALUE(status_value, json_string(q->status ? "error" : "ok"))
VALUE(error_value, json_sprintf("%s: %s", wg_status_name(q->status), q->error))
VALUE(prompt_tokens_value, q->prompt_tokens ? json_integer(q->prompt_tokens) : json_null())
VALUE(finish_value, json_string(q->finish == WG_FINISH_EOS ? "stop" : "length"))
VALUE(other_value, other_ms(&q->phases, q->decode))
VALUE(gaps_value, wg_events_gaps(&q->events))
VALUE(gap_tokens_value, wg_events_tokens(&q->events))
VALUE(load_value, wg_pass_stats_json(&q->pass_stats))
VALUE(passes_value, json_integer(q->counts.passes))
VALUE(drafts_value, json_integer(q->counts.offered_at[1]))
VALUE(mean_length_value, wg_mean_acceptance_length(&q->counts))
VALUE(rate_value, wg_json_ratio((double)q->counts.accepted, (double)q->counts.drafted))
VALUE(histogram_value, wg_acceptance_histogram(&q->counts))
VALUE(offered_value, depths(&q->counts, q->counts.offered_at))
VALUE(tried_value, depths(&q->counts, q->counts.tried_at))
VALUE(accepted_value, depths(&q->counts, q->counts.accepted_at))
VALUE(without_draft_value, wg_without_draft_json(&q->counts))
VALUE(parts_value, wg_composite_totals_json(&q->composite))
VALUE(parts_matched_value, q->composite.n ? json_integer(q->composite.matched) : NULL)
VALUE(audit_value, wg_audit_sums_json(&q->counts.audit))
VALUE(equals_value, q->cell < 0 || q->equals < 0 ? json_null() : json_boolean(q->equals))
VALUE(tokens_value, json_integer(q->n))
/* clang-format on */

/* ---- the tables -------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(wg_request, field)
#define ENTRY(field) (int)offsetof(wg_entry, field)
/* clang-format off */
#define PLAIN(name, in, type, field, entry, unit, doc) { name, in, type, AT(field), entry, NULL, NULL, unit, doc }
#define OWN(name, in, value, read, entry, unit, doc) { name, in, WG_FIELD_OWN, 0, entry, value, read, unit, doc }
#define WRITER(name, in, doc) { name, in, WG_FIELD_WRITER, 0, -1, NULL, NULL, "", doc }
/* clang-format on */
#define SPEC "speculative_decoding."
#define LINE_SUM_DOC "checksum of the line before this member: FNV-1a, 64 bits, hexadecimal; the last member"
enum {
    ADDRESS = WG_FIELD_ADDRESS,
    ALWAYS = WG_FIELD_ALWAYS,
    OK = WG_FIELD_OK,
    STEPPED = WG_FIELD_STEPPED,
    FAILED = WG_FIELD_FAILED,
    STEP = WG_FIELD_STEP,
    KEY = WG_FIELD_KEY
};

const wg_field wg_request_fields[] = {
    OWN("arm", ADDRESS, arm_value, NULL, -1, "", "`cell`, or `baseline`: plain decoding"),
    OWN("cell", ADDRESS, cell_value, cell_read, -1, "", "number of the cell in `summary.json`; null for a baseline"),
    PLAIN("group", ADDRESS, WG_FIELD_INT, group, ENTRY(group), "", "cells of one number share a baseline"),
    PLAIN("prompt", ADDRESS, WG_FIELD_INT, prompt, -1, "", "number of the prompt, from 0"),
    PLAIN("turn", ADDRESS, WG_FIELD_INT, turn, ENTRY(turn), "", "of its conversation, from 0"),
    PLAIN("repeat", ADDRESS, WG_FIELD_INT, repeat, ENTRY(repeat), "", "from 0"),
    OWN("id", ALWAYS | KEY, id_value, NULL, -1, "", "of the prompt, from its file"),
    OWN("category", ALWAYS, category_value, NULL, -1, "", "of the prompt, after `merge`"),
    OWN("status", ALWAYS, status_value, status_read, -1, "", "`ok` or `error`"),
    OWN("prompt_sha256", ALWAYS, prompt_digest_value, NULL, -1, "",
        "first 16 digits of the digest of the prompt's text, all turns"),
    OWN("prompt_tokens", ALWAYS, prompt_tokens_value, prompt_tokens_read, -1, "tokens",
        "before the answer, earlier turns included; null: it was never encoded"),
    OWN("error", FAILED, error_value, error_read, -1, "",
        "why it failed: a name (`EREPLAY`: the second pass differed) and a text"),
    PLAIN("cached_tokens", OK, WG_FIELD_INT, cached, -1, "tokens", "of `prompt_tokens`, those that were in the cache already"),
    OWN("tokens", OK, tokens_value, NULL, ENTRY(tokens), "tokens", "of the output"),
    OWN("finish", OK, finish_value, finish_read, -1, "", "`stop`, or `length`"),
    PLAIN("prefill_ms", OK, WG_FIELD_MS, prefill, ENTRY(prefill), "ms", "reading the prompt"),
    PLAIN("ttft_ms", OK, WG_FIELD_MS, ttft, ENTRY(ttft), "ms", "wall time from the request to its first tokens"),
    PLAIN("tpot_ms", OK, WG_FIELD_MS, tpot, ENTRY(tpot), "ms", "wall time of a token after those; null: there are none"),
    PLAIN("decode_ms", OK, WG_FIELD_MS, decode, ENTRY(decode), "ms", "the request's share of its steps"),
    PLAIN("forward_ms", OK, WG_FIELD_MS, forward, -1, "ms", "of that, in the target's passes"),
    PLAIN("phase_ms.draft", OK, WG_FIELD_MS, phases.draft, -1, "ms", "of `decode_ms`, drafting"),
    PLAIN("phase_ms.verify", OK, WG_FIELD_MS, phases.verify, -1, "ms", "the target's pass; on a device its rule too"),
    PLAIN("phase_ms.accept", OK, WG_FIELD_MS, phases.accept, -1, "ms", "rows of p and the rule"),
    PLAIN("phase_ms.kv", OK, WG_FIELD_MS, phases.kv, -1, "ms", "the cache"),
    OWN("phase_ms.other", OK, other_value, NULL, -1, "ms", "the rest"),
    PLAIN("joules", OK, WG_FIELD_REAL, joules, -1, "J", "its share of its batch's, by time; null: not measured"),
    OWN("itl_ms", OK, gaps_value, gaps_read, -1, "ms", "list, for every step but the first: time since the previous one"),
    OWN("itl_tokens", OK, gap_tokens_value, NULL, -1, "tokens", "list: tokens of each of these steps"),
    OWN("load", OK, load_value, load_read, -1, "", "of the target's passes, see \"Use and waste\" in results/README.md"),
    OWN(SPEC "target_passes", OK, passes_value, passes_read, ENTRY(passes), "passes", "of the target"),
    OWN(SPEC "num_spec_steps", OK, drafts_value, NULL, -1, "passes", "that drafted at least one token (vLLM's name)"),
    OWN(SPEC "rounds_without_draft", OK, without_draft_value, without_draft_read, -1, "passes",
        "the others, by reason: \"Rounds without a draft\" in results/README.md"),
    PLAIN(SPEC "num_draft_tokens", OK, WG_FIELD_LONG, counts.drafted, ENTRY(drafted), "tokens", "drafted (vLLM's name)"),
    PLAIN(SPEC "num_accepted_draft_tokens", OK, WG_FIELD_LONG, counts.accepted, ENTRY(accepted), "tokens",
          "accepted (vLLM's name)"),
    OWN(SPEC "mean_acceptance_length", OK, mean_length_value, NULL, -1, "tokens",
        "1 + accepted per pass that drafted (vLLM's name)"),
    OWN(SPEC "draft_acceptance_rate", OK, rate_value, NULL, -1, "share", "accepted of drafted (vLLM's name)"),
    OWN(SPEC "acceptance_histogram", OK, histogram_value, NULL, -1, "passes",
        "list: that drafted and accepted 0, 1, 2 ... (vLLM's name)"),
    OWN(SPEC "offered_by_position", OK, offered_value, offered_read, -1, "passes",
        "list: whose draft was 1, 2 ... deep or deeper"),
    OWN(SPEC "tried_by_position", OK, tried_value, tried_read, -1, "passes",
        "list: that accepted 0, 1 ... tokens, or more, and had a draft token behind them"),
    OWN(SPEC "accepted_by_position", OK, accepted_value, accepted_read, -1, "passes",
        "list: that accepted 1, 2 ... tokens or more"),
    PLAIN(SPEC "num_probe_rows", OK, WG_FIELD_LONG, counts.probes, -1, "rows", "scored for the drafter alone"),
    PLAIN(SPEC "num_device_verified_steps", OK, WG_FIELD_LONG, on_device.verified, -1, "passes",
          "whose rule ran on the target's device"),
    PLAIN(SPEC "num_device_decoded_steps", OK, WG_FIELD_LONG, on_device.decoded, -1, "passes",
          "of them, those of rounds that the device decoded without the host"),
    PLAIN(SPEC "alpha_sum", OK, WG_FIELD_REAL, counts.alpha_sum, -1, "",
          "of sum min(p, q) over the nodes reached; 0 with \"alpha\": false"),
    PLAIN(SPEC "alpha_n", OK, WG_FIELD_LONG, counts.alpha_n, -1, "nodes", "in that sum"),
    PLAIN(SPEC "independent_sum", OK, WG_FIELD_REAL, counts.independent_sum, -1, "", "of min(1, p/q) over draft tokens"),
    PLAIN(SPEC "independent_n", OK, WG_FIELD_LONG, counts.independent_n, -1, "tokens", "in that sum"),
    PLAIN(SPEC "alpha_star_sum", OK, WG_FIELD_REAL, counts.alpha_star_sum, -1, "", "of the optimum at the nodes reached"),
    PLAIN(SPEC "alpha_star_n", OK, WG_FIELD_LONG, counts.alpha_star_n, -1, "nodes", "in that sum"),
    PLAIN(SPEC "teacher_forced_alpha_sum", OK, WG_FIELD_REAL, taught.sum, -1, "",
          "of sum min(p, q) over all positions of the baseline's text that can be drafted; in the first repeat"),
    PLAIN(SPEC "teacher_forced_alpha_n", OK, WG_FIELD_LONG, taught.n, -1, "positions", "in that sum"),
    OWN(SPEC "per_step_accepted", STEPPED, step_accepted_value, NULL, -1, "tokens",
        "list by pass, 0 where nothing was drafted (vLLM's name; vLLM leaves those out)"),
    OWN(SPEC "per_step_drafted", STEPPED, step_drafted_value, NULL, -1, "tokens",
        "list by pass, 0 where nothing was drafted (vLLM's name; vLLM leaves those out)"),
    OWN(SPEC "per_step_part", STEPPED, step_part_value, NULL, -1, "",
        "list by step: the part whose draft was verified; null: none"),
    OWN("audit", OK | FAILED, audit_value, audit_read, -1, "",
        "sums of the audit of its drafts, see \"Audit\" in results/README.md; without any test not there"),
    OWN("parts", OK, parts_value, parts_read, -1, "",
        "see \"Parts of a drafter\" in results/README.md; only of composite drafters"),
    OWN("parts_matched", OK, parts_matched_value, NULL, -1, "tokens", "likewise"),
    OWN("equals_baseline", OK, equals_value, NULL, -1, "",
        "the output is the baseline's; null where the baseline ran later than the cell (compare the digests)"),
    OWN("ids", OK, ids_value, ids_read, -1, "", "list: tokens of the output"),
    PLAIN("output_sha256", OK, WG_FIELD_TEXT, sha256, -1, "", "digest of these as little-endian int32"),
    WRITER("text", OK, "the output; null where it is no UTF-8"),
    WRITER("drafted_bytes", STEPPED,
           "list of alternating counts: bytes of `text` that were drafted, bytes that the target chose"),
    WRITER("trace_end", ALWAYS, "only with \"trace\": \"probs\": where trace.wgt ended when the line was written"),
    WRITER("sum", ALWAYS, LINE_SUM_DOC),
    { NULL, 0, WG_FIELD_INT, 0, -1, NULL, NULL, NULL, NULL },
};

#undef AT
#define AT(field) offsetof(wg_step_record, field)
const wg_field wg_step_fields[] = {
    WRITER("step", STEP, "number of the step in its request, from 0"),
    PLAIN("position", STEP, WG_FIELD_INT, position, -1, "tokens", "before the first one that it emitted"),
    PLAIN("nodes", STEP, WG_FIELD_INT, nodes, -1, "rows", "of the draft tree, its root among them"),
    PLAIN("probes", STEP, WG_FIELD_INT, probes, -1, "rows", "scored for the drafter alone"),
    PLAIN("height", STEP, WG_FIELD_INT, height, -1, "tokens", "of the longest path below the root"),
    PLAIN("accepted", STEP, WG_FIELD_INT, accepted, -1, "tokens", "kept of the draft"),
    PLAIN("emitted", STEP, WG_FIELD_INT, emitted, -1, "tokens", "that the step gave"),
    PLAIN("batch", STEP, WG_FIELD_INT, batch, -1, "", "sequences that shared the pass"),
    OWN("part", STEP, part_value, NULL, -1, "", "the part whose draft was verified; only of composite drafters"),
    OWN("matched", STEP, matched_value, NULL, -1, "tokens",
        "list by part: of the step's tokens, those its draft had; null: it did not draft"),
    PLAIN("ms", STEP, WG_FIELD_MS, seconds, -1, "ms", "its share of the step"),
    PLAIN("phase_ms.draft", STEP, WG_FIELD_MS, phases.draft, -1, "ms", "as of a request"),
    PLAIN("phase_ms.verify", STEP, WG_FIELD_MS, phases.verify, -1, "ms", "as of a request"),
    PLAIN("phase_ms.accept", STEP, WG_FIELD_MS, phases.accept, -1, "ms", "as of a request"),
    PLAIN("phase_ms.kv", STEP, WG_FIELD_MS, phases.kv, -1, "ms", "as of a request"),
    OWN("phase_ms.other", STEP, step_other_value, NULL, -1, "ms", "the rest of `ms`"),
    WRITER("sum", STEP, LINE_SUM_DOC),
    { NULL, 0, WG_FIELD_INT, 0, -1, NULL, NULL, NULL, NULL },
};

/* ---- writing and reading by the tables --------------------------------------------------------------------------- */

_Static_assert(sizeof(int) == sizeof(int32_t), "INT is stored as int in requests, as int32_t in steps");

static json_t *value_of(const wg_field *f, const void *record)
{
    const char *at = (const char *)record + f->at;
    switch (f->type) {
    case WG_FIELD_INT: return json_integer(*(const int *)(const void *)at);
    case WG_FIELD_LONG: return json_integer(*(const long *)(const void *)at);
    case WG_FIELD_REAL: return wg_json_number(*(const double *)(const void *)at);
    case WG_FIELD_MS: return wg_json_ms(*(const double *)(const void *)at);
    case WG_FIELD_TEXT: return json_string(at);
    case WG_FIELD_OWN: return f->value(record);
    case WG_FIELD_WRITER: break;
    }
    return NULL;
}

/* The object that has the member, and the member's own name. */
static json_t *object_of(json_t *line, const char *name, const char **member, bool make)
{
    char key[64];
    const char *dot = strchr(name, '.');
    *member = dot ? dot + 1 : name;
    if (!dot) return line;
    snprintf(key, sizeof key, "%.*s", (int)(dot - name), name);
    if (make && !json_object_get(line, key)) json_object_set_new(line, key, json_object());
    return json_object_get(line, key);
}

void wg_fields_put(json_t *line, const wg_field *table, unsigned in, const void *record)
{
    for (const wg_field *f = table; f->name; f++) {
        const char *member = f->name;
        json_t *v = f->in & in ? value_of(f, record) : NULL;
        if (!v) continue;
        json_t *o = object_of(line, f->name, &member, true);
        json_object_set_new(o, member, v);
    }
}

void wg_fields_read(void *record, const wg_field *table, unsigned in, const json_t *line)
{
    for (const wg_field *f = table; f->name; f++) {
        const char *member = f->name;
        if (!(f->in & in)) continue;
        void *at = (char *)record + f->at;
        const json_t *o = object_of((json_t *)line, f->name, &member, false);
        switch (f->type) {
        case WG_FIELD_INT: *(int *)at = (int)wg_json_int(o, member); break;
        case WG_FIELD_LONG: *(long *)at = (long)wg_json_int(o, member); break;
        case WG_FIELD_REAL: *(double *)at = wg_json_measured(o, member); break;
        case WG_FIELD_MS: *(double *)at = wg_json_measured(o, member) / 1e3; break;
        case WG_FIELD_TEXT: snprintf(at, WG_SHA256_HEX, "%s", wg_json_word(o, member)); break;
        case WG_FIELD_OWN:
            if (f->read) f->read(record, line);
            break;
        case WG_FIELD_WRITER: break;
        }
    }
}

void wg_fields_read_entry(wg_entry *e, const json_t *line)
{
    for (const wg_field *f = wg_request_fields; f->name; f++) {
        const char *member = f->name;
        if (f->entry < 0) continue;
        void *at = (char *)e + f->entry;
        const json_t *o = object_of((json_t *)(uintptr_t)line, f->name, &member, false);
        const double v = wg_json_measured(o, member);
        if (f->type == WG_FIELD_MS || f->type == WG_FIELD_REAL) *(double *)at = v;
        else *(int32_t *)at = v >= -1 && v <= INT32_MAX ? (int32_t)v : 0;
    }
    e->passes = (int32_t)wg_fields_passes(json_object_get(line, "speculative_decoding"));
}

bool wg_fields_is_of(const json_t *line, const wg_request *q)
{
    bool same = true;
    for (const wg_field *f = wg_request_fields; same && f->name; f++) {
        if (!(f->in & (WG_FIELD_ADDRESS | WG_FIELD_KEY))) continue;
        json_t *want = value_of(f, q);
        same = json_equal(want, json_object_get(line, f->name));
        json_decref(want);
    }
    return same;
}

bool wg_fields_same_address(const json_t *a, const json_t *b)
{
    for (const wg_field *f = wg_request_fields; f->name; f++) {
        const json_t *x = json_object_get(a, f->name), *y = json_object_get(b, f->name);
        if (f->in & WG_FIELD_ADDRESS && x != y && !(x && y && json_equal(x, y))) return false;
    }
    return true;
}
