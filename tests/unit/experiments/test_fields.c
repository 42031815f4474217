/* SPDX-License-Identifier: MIT
 * Tables of fields (fields.h) against the files of runs, and the values read back. */
#include "core/base/mem.h"
#include "experiments/record/acceptance.h"
#include "experiments/record/fields.h"
#include "experiments/record/run_reader.h"
#include "experiments/run/runner.h"
#include "scene.h"

static scene s;
static void setup(void) { scene_make(&s); }
static void teardown(void) { scene_remove(&s); }
TestSuite(fields, .init = setup, .fini = teardown, .timeout = 60);

static bool has(const wg_field *table, unsigned in, const char *path, bool *seen)
{
    for (int i = 0; table[i].name; i++)
        if (table[i].in & in && !strcmp(table[i].name, path)) return seen[i] = true;
    return false;
}

/* The members of one line: each must be a field. */
static void look(const json_t *o, const char *prefix, const wg_field *table, unsigned in, bool *seen)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)o, key, v) {
        char path[200];
        snprintf(path, sizeof path, "%s%s", prefix, key);
        const bool inner = !strcmp(path, "phase_ms") || !strcmp(path, "speculative_decoding");
        bool address[64] = { false };
        if (inner) {
            snprintf(path, sizeof path, "%s.", key);
            look(v, path, table, in, seen);
        } else
            cr_assert(has(table, in, path, seen) || has(wg_request_fields, WG_FIELD_ADDRESS, path, address), "no field: %s",
                      path);
    }
}

static void look_at_all(const char *file, const wg_field *table, unsigned failed, unsigned ok, bool *seen)
{
    char *text = file_read(file, NULL);
    cr_assert_not_null(text, "%s", file);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *v = json_loads(line, 0, NULL);
        look(v, "", table, json_object_get(v, "error") ? failed : ok, seen);
        json_decref(v);
    }
    free(text);
}

/* Lines of a run, with all there can be: they have no member that is no field, and each field is a member somewhere. */
Test(fields, lines_have_all_of_them_and_no_others)
{
    bool request[64] = { false }, step[64] = { false };
    wg_error err;
    wg_run r;
    char *path = NULL;
    put("p.jsonl", "{\"prompt\": \"abababab\"}\n{\"prompt\": "
                   "\"0123456789012345678901234567890123456789012345678901234567890123456789\"}\n");
    wg_config *c = config_of(
        "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": \"p.jsonl\"},"
        "\"max_tokens\": 8, \"trace\": \"probs\", \"draft\": {\"kind\": \"best_of\", \"of\": \"ngram|suffix\"}}");
    const wg_run_options o = { .out = "out" };
    cr_assert_eq(wg_run_config(c, &o, &r, &path, &err), WG_OK, "%s", err.text);
    look_at_all("out/requests.jsonl", wg_request_fields, WG_FIELD_ADDRESS | WG_FIELD_ALWAYS | WG_FIELD_FAILED,
                WG_FIELD_ADDRESS | WG_FIELD_ALWAYS | WG_FIELD_OK | WG_FIELD_STEPPED, request);
    look_at_all("out/steps.jsonl", wg_step_fields, 0, WG_FIELD_STEP, step);
    for (int i = 0; wg_request_fields[i].name; i++) cr_assert(request[i], "in no line: %s", wg_request_fields[i].name);
    for (int i = 0; wg_step_fields[i].name; i++) cr_assert(step[i], "in no step: %s", wg_step_fields[i].name);
    wg_run_free(&r);
    wg_config_close(c);
    wg_free(path);
}

/* Every number that has a place comes back to it, and to nowhere else. */
Test(fields, what_is_put_is_read)
{
    static const wg_prompt source = { .id = "x", .category = "y", .text = "z", .turns = 1 };
    static const wg_prompt other = { .id = "other", .category = "y", .text = "z", .turns = 1 };
    int32_t text[] = { 5, 6, 7 }, room[3] = { 0 };
    wg_request q = { .cell = 3, .source = &source, .token = text, .n = 3, .equals = -1 },
               back = { .source = &source, .token = room, .cap_tokens = 2, .status = WG_EIO, .equals = -1 };
    double value = 1;
    for (const wg_field *f = wg_request_fields; f->name; f++, value++) {
        void *at = (char *)&q + f->at;
        if (f->type == WG_FIELD_INT) *(int *)at = (int)value;
        else if (f->type == WG_FIELD_LONG) *(long *)at = (long)value;
        else if (f->type == WG_FIELD_REAL) *(double *)at = value + 0.5;
        else if (f->type == WG_FIELD_MS) *(double *)at = value / 1000;
    }
    q.counts.passes = 9;
    q.counts.offered_at[1] = q.counts.tried_at[1] = 7;
    q.counts.accepted_at[1] = 5;
    q.counts.without_draft[WG_NO_DRAFT_CONTEXT] = 2;
    q.prompt_tokens = 9;
    const unsigned in = WG_FIELD_ADDRESS | WG_FIELD_ALWAYS | WG_FIELD_OK;
    json_t *line = json_object();
    wg_fields_put(line, wg_request_fields, in, &q);
    wg_fields_read(&back, wg_request_fields, in, line);
    for (const wg_field *f = wg_request_fields; f->name; f++) {
        const void *a = (char *)&q + f->at, *b = (char *)&back + f->at;
        if (f->type == WG_FIELD_INT) cr_assert_eq(*(const int *)b, *(const int *)a, "%s", f->name);
        else if (f->type == WG_FIELD_LONG) cr_assert_eq(*(const long *)b, *(const long *)a, "%s", f->name);
        else if (f->type == WG_FIELD_REAL || f->type == WG_FIELD_MS)
            cr_assert_float_eq(*(const double *)b, *(const double *)a, 1e-12, "%s", f->name);
    }
    cr_assert(back.cell == 3 && back.prompt_tokens == 9 && back.counts.offered_at[1] == 7 && back.counts.accepted_at[1] == 5);
    cr_assert(back.counts.tried_at[1] == 7 && back.counts.without_draft[WG_NO_DRAFT_CONTEXT] == 2);
    cr_assert(back.n == 2 && back.counts.emitted == 2 && room[0] == 5 && room[1] == 6 && room[2] == 0, "as many as fit");
    back.cap_tokens = 3;
    wg_fields_read(&back, wg_request_fields, in, line);
    cr_assert(back.n == 3 && back.counts.emitted == 3 && room[2] == 7);
    cr_assert_eq(back.status, WG_OK);
    cr_assert(wg_fields_is_of(line, &q) && wg_fields_is_of(line, &back));
    back.turn++;
    cr_assert(!wg_fields_is_of(line, &back));
    back.turn--, back.source = &other;
    cr_assert(!wg_fields_is_of(line, &back), "a prompt of another id");
    json_decref(line);
}

/* A failed request, and a line whose status is missing or no word: not a success. */
Test(fields, a_failure_is_read)
{
    static const wg_prompt source = { .id = "x", .category = "y", .text = "z", .turns = 1 };
    const unsigned in = WG_FIELD_ADDRESS | WG_FIELD_ALWAYS | WG_FIELD_FAILED;
    wg_request q = { .source = &source, .status = WG_ENOMEM, .error = "no memory: at all", .prompt_tokens = 4 }, back = { 0 };
    json_t *line = json_object();
    wg_fields_put(line, wg_request_fields, in, &q);
    wg_fields_read(&back, wg_request_fields, in, line);
    cr_assert(back.status == WG_ENOMEM && back.prompt_tokens == 4);
    cr_assert_str_eq(back.error, "no memory: at all");
    for (int i = 0; i < 2; i++) {
        if (i) json_object_set_new(line, "status", json_integer(0));
        else json_object_del(line, "status");
        back.status = WG_OK;
        wg_fields_read(&back, wg_request_fields, WG_FIELD_ALWAYS, line);
        cr_assert_neq(back.status, WG_OK);
    }
    json_decref(line);
}

/* Lines of earlier versions have all passes as num_spec_steps, and no reasons and no tried positions: those are not known. */
Test(fields, lines_of_earlier_versions)
{
    static const wg_prompt source = { .id = "x", .turns = 1 };
    static const char text[] = "{\"id\":\"x\",\"speculative_decoding\":{\"num_spec_steps\":9,\"offered_by_position\":[7,7],"
                               "\"accepted_by_position\":[5,2]}}",
                      now[] = "{\"id\":\"x\",\"speculative_decoding\":{\"target_passes\":9,\"num_spec_steps\":7}}",
                      turned[] = "{\"id\":\"x\",\"speculative_decoding\":{\"num_spec_steps\":7,\"target_passes\":9}}";
    wg_request q = { .source = &source };
    wg_entry e = { .at = 0 };
    json_t *line = json_loads(text, 0, NULL);
    wg_fields_read(&q, wg_request_fields, WG_FIELD_OK, line);
    cr_assert(q.counts.passes == 9 && q.counts.offered_at[1] == 7 && q.counts.accepted_at[2] == 2 && q.counts.tried_at[1] == 0);
    json_t *without = wg_without_draft_json(&q.counts), *a = wg_acceptance_json(&q.counts);
    cr_assert(json_is_null(without) && json_is_null(json_object_get(a, "conditional_by_position")));
    cr_assert(json_is_array(json_object_get(a, "survival_by_position")));
    json_decref(without);
    json_decref(a);
    json_decref(line);
    const char *const lines[] = { text, now, turned }; /* in any order */
    for (int i = 0; i < 3; i++) {
        line = json_loads(lines[i], 0, NULL);
        cr_assert(wg_entry_read(line, &e) && e.passes == 9, "%s", lines[i]);
        json_decref(line);
    }
}
