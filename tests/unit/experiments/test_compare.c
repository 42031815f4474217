/* SPDX-License-Identifier: MIT
 * Comparisons of folders written by hand, with every number known; and the reader of their lines. */
#include <math.h>
#include <sys/stat.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/cli/cli.h"
#include "experiments/analysis/compare.h"
#include "core/base/json_number.h"
#include "experiments/base/stats.h"
#include "experiments/report/plot.h"
#include "scene.h"

static scene s;
static void setup(void)
{
    temp_make(&s.t);
    if (!getcwd(s.before, sizeof s.before) || chdir(s.t.dir)) abort();
}
static void teardown(void) { scene_remove(&s); }
TestSuite(compare, .init = setup, .fini = teardown, .timeout = 60);

#define BASE_CONFIG "\"name\": \"t\", \"draft\": {\"kind\": \"model\", \"length\": 4}, \"verify\": {\"rule\": \"match\"}"

/* Folder `dir` with n prompts of 10 tokens: the cell takes `ms` a request and 5 passes, the baseline 100 ms and 10 passes.
 * Prompt 3 says `other` as its third token. From `first` on. */
static void folder(const char *dir, int first, int n, double ms, int other)
{
    char path[64];
    mkdir(dir, 0777);
    snprintf(path, sizeof path, "%s/config.json", dir);
    put(path, "{" BASE_CONFIG "}");
    snprintf(path, sizeof path, "%s/machine.json", dir);
    put(path, "{\"started\": \"now\", \"cpu\": {\"model\": \"x\", \"mhz_at_start\": 7}}");
    snprintf(path, sizeof path, "%s/summary.json", dir);
    put(path, "{\"complete\": true}");
    snprintf(path, sizeof path, "%s/requests.jsonl", dir);
    FILE *f = fopen(path, "w");
    for (int i = first; i < first + n; i++)
        for (int base = 1; base >= 0; base--)
            fprintf(f,
                    "{\"arm\":\"%s\",\"cell\":%s,\"group\":0,\"prompt\":%d,\"repeat\":0,\"id\":\"p%d\",\"category\":\"%s\","
                    "\"prompt_sha256\":\"h%d\",\"status\":\"ok\",\"prompt_tokens\":%d,\"tokens\":10,\"decode_ms\":%g,"
                    "\"ttft_ms\":3,\"tpot_ms\":null,\"output_sha256\":\"%064x\",\"ids\":[1,2,%d,4],\"speculative_decoding\":"
                    "{\"num_spec_steps\":%d,\"num_draft_tokens\":%d,\"num_accepted_draft_tokens\":%d}}\n",
                    base ? "baseline" : "cell", base ? "null" : "0", i - first, i, i % 2 ? "odd" : "even", i, 10 + 10 * i,
                    base ? 100 : ms + i % 2, i == 3 ? (unsigned)other : 0u, i == 3 ? other : 3, base ? 10 : 5, base ? 0 : 20,
                    base ? 0 : 5);
    fclose(f);
}

static wg_error err; /* of the latest comparison */

static json_t *compare(const char *a, const char *b, int cell_a, int cell_b, wg_status want)
{
    err = (wg_error){ 0 };
    wg_run_reader *x = NULL, *y = NULL;
    json_t *o = NULL;
    cr_assert_eq(wg_run_reader_open(&x, a, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_run_reader_open(&y, b, &err), WG_OK, "%s", err.text);
    const wg_compared run[2] = { { x, cell_a }, { y, cell_b } };
    cr_assert_eq(wg_compare(&o, run, 2, &err), want, "%s", err.text);
    wg_run_reader_close(x);
    wg_run_reader_close(y);
    return o;
}

static double real(const json_t *v, const char *key) { return json_number_value(json_object_get(v, key)); }
static double item(const json_t *v, const char *key, size_t i)
{
    return json_number_value(json_array_get(json_object_get(v, key), i));
}

Test(compare, numbers_by_hand)
{
    folder("a", 0, 8, 50, 3);
    folder("b", 0, 8, 40, 9);
    json_t *o = compare("a", "b", -1, -1, WG_OK);
    const json_t *p = json_array_get(json_object_get(o, "pairs"), 0);
    cr_assert_eq(json_array_size(json_object_get(o, "config_diff")), 0);
    cr_assert_eq(json_array_size(json_object_get(o, "machine_diff")), 0, "the hour and the clock do not count");
    cr_assert_eq(real(p, "requests"), 8);
    cr_assert_eq(real(p, "prompts"), 8);
    cr_assert_float_eq(real(p, "faster"), (4 * 50 + 4 * 51) / (4 * 40. + 4 * 41), 1e-12);
    cr_assert(item(p, "faster_ci", 0) > 51 / 41. - 1e-9 && item(p, "faster_ci", 1) < 50 / 40. + 1e-9);
    cr_assert_str_eq(json_string_value(json_object_get(p, "verdict")), "faster");
    cr_assert_float_eq(real(p, "speedup_ratio"), real(p, "faster"), 1e-12); /* the baselines are equal */
    cr_assert_float_eq(item(p, "speedup", 0), 800 / 404., 1e-12);
    cr_assert_float_eq(item(p, "speedup", 1), 800 / 324., 1e-12);
    cr_assert(item(p, "speedup_ratio_ci", 0) < item(p, "faster_ci", 0), "the variance between runs is in it");
    cr_assert_float_eq(item(p, "standard_error", 1), sqrt(2) * 0.01, 1e-12);
    cr_assert(real(p, "p") < 1e-5 && real(p, "p") == real(p, "p_holm") && real(o, "family") == 1);
    cr_assert_float_eq(real(p, "speedup_ratio_mean_of_prompts"), (50 / 40. + 51 / 41.) / 2, 1e-12);
    cr_assert_float_eq(real(p, "baseline_faster"), 1, 1e-12);
    cr_assert_float_eq(item(p, "tok_s", 0), 80 / .404, 1e-9);
    cr_assert_float_eq(item(p, "tau", 1), 2, 1e-12);
    cr_assert_float_eq(item(p, "acceptance_rate", 0), .25, 1e-12);
    cr_assert_eq(item(p, "ttft_ms_p50", 0), 3);
    cr_assert(json_is_null(json_array_get(json_object_get(p, "tpot_ms_p50"), 0)));
    const json_t *same = json_object_get(p, "same_texts"), *first = json_object_get(same, "first_divergence");
    cr_assert_eq(real(same, "equal"), 7);
    cr_assert_str_eq(json_string_value(json_object_get(first, "id")), "p3");
    cr_assert_eq(real(first, "token"), 2);
    cr_assert_eq(real(first, "a"), 3);
    cr_assert_eq(real(first, "b"), 9);
    const json_t *odd = json_array_get(json_object_get(p, "by_category"), 1);
    cr_assert_str_eq(json_string_value(json_object_get(odd, "category")), "odd");
    cr_assert_float_eq(real(odd, "faster"), 51 / 41., 1e-12);
    cr_assert_eq(real(odd, "prompts"), 4);
    const json_t *lengths = json_object_get(p, "by_prompt_length"); /* 10 20 30 | 40 50 60 | 70 80 */
    cr_assert_eq(json_array_size(lengths), 3);
    cr_assert_eq(real(json_array_get(lengths, 0), "prompts"), 3);
    cr_assert_eq(item(json_array_get(lengths, 1), "prompt_tokens", 0), 32);
    cr_assert_eq(real(json_array_get(lengths, 2), "prompts"), 2);
    cr_assert_eq(json_array_size(json_object_get(p, "regressions")), 0);
    int unknown;
    cr_assert(wg_compare_slower(o, 0, &unknown) == 0 && unknown == 0);
    json_decref(o);
    o = compare("b", "a", -1, -1, WG_OK);
    p = json_array_get(json_object_get(o, "pairs"), 0);
    cr_assert_eq(json_array_size(json_object_get(p, "regressions")), 5);
    cr_assert_float_eq(real(json_array_get(json_object_get(p, "regressions"), 0), "speedup_ratio"), .8, 1e-12);
    cr_assert(wg_compare_slower(o, .19, &unknown) == 1 && wg_compare_slower(o, .21, &unknown) == 0);
    json_decref(o);
}

/* Conversations of two turns of 10 tokens: `first` and `second` milliseconds a turn, in 5 and 4 passes. The second turn of
 * prompt 2 says `other` as its second token. */
static void conversations(const char *dir, double first, double second, int other)
{
    char path[64];
    folder(dir, 0, 1, 1, 0);
    snprintf(path, sizeof path, "%s/requests.jsonl", dir);
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 5; i++)
        for (int base = 1; base >= 0; base--)
            for (int turn = 0; turn < 2; turn++) {
                const int said = i == 2 && turn ? other : 2;
                fprintf(f,
                        "{\"arm\":\"%s\",\"cell\":%s,\"group\":0,\"prompt\":%d,\"turn\":%d,\"repeat\":0,\"id\":\"p%d\","
                        "\"category\":\"c\",\"prompt_sha256\":\"h%d\",\"status\":\"ok\",\"prompt_tokens\":%d,\"tokens\":10,"
                        "\"decode_ms\":%g,"
                        "\"output_sha256\":\"%064x\",\"ids\":[1,%d],\"speculative_decoding\":{\"num_spec_steps\":%d,"
                        "\"num_draft_tokens\":20,\"num_accepted_draft_tokens\":5}}\n",
                        base ? "baseline" : "cell", base ? "null" : "0", i, turn, i, i, 10 + 20 * turn,
                        base   ? 100
                        : turn ? second
                               : first,
                        (unsigned)said, said, 5 - turn);
            }
    fclose(f);
}

/* What one turn loses the other one gains: of a conversation nothing is left, and so of its interval; by requests it would be
 * wide. Turns are paired with turns, and each has its own line. */
Test(compare, conversations_are_one_prompt)
{
    conversations("a", 60, 40, 2);
    conversations("b", 40, 60, 7);
    json_t *o = compare("a", "b", -1, -1, WG_OK);
    const json_t *p = json_array_get(json_object_get(o, "pairs"), 0), *turns = json_object_get(p, "by_turn");
    cr_assert_eq(real(p, "requests"), 10);
    cr_assert_eq(real(p, "prompts"), 5);
    cr_assert_eq(real(p, "in_one_only"), 0);
    cr_assert_float_eq(real(p, "faster"), 1, 1e-12);
    cr_assert_float_eq(item(p, "faster_ci", 0), 1, 1e-12);
    cr_assert_float_eq(item(p, "faster_ci", 1), 1, 1e-12);
    cr_assert_eq(json_array_size(turns), 2);
    for (size_t turn = 0; turn < 2; turn++) {
        const json_t *t = json_array_get(turns, turn);
        cr_assert_eq(real(t, "turn"), (double)turn);
        cr_assert_eq(real(t, "prompts"), 5);
        cr_assert_float_eq(real(t, "speedup_ratio"), turn ? 40 / 60. : 60 / 40., 1e-12);
        cr_assert_float_eq(real(t, "faster"), turn ? 40 / 60. : 60 / 40., 1e-12);
        cr_assert_float_eq(item(t, "tau", 0), turn ? 2.5 : 2, 1e-12);
    }
    const json_t *same = json_object_get(p, "same_texts"), *first = json_object_get(same, "first_divergence");
    cr_assert_eq(real(same, "equal"), 9);
    cr_assert_str_eq(json_string_value(json_object_get(first, "id")), "p2");
    cr_assert(real(first, "turn") == 1 && real(first, "token") == 1 && real(first, "a") == 2 && real(first, "b") == 7);
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    wg_compare_print(f, o, true);
    fclose(f);
    cr_assert(strstr(text, "first difference: prompt p2, turn 2, repeat 0, token 1 (2 | 7)"), "%s", text);
    cr_assert(strstr(text, "| turn | prompts | speed-up, B/A |") && strstr(text, "| 2 | 5 | 0.667x [0.648, 0.685] |"), "%s",
              text);
    json_t *page = wg_compare_document(o, true);
    const json_t *figures = json_object_get(page, "figures"), *shown = json_object_get(page, "comparison");
    cr_assert_eq(json_array_size(figures) == 1, wg_plot_available(WG_PLOT_PAGE), "of the one pair by its parts");
    for (size_t i = 0; i < 2 && json_array_size(figures); i++) { /* it names both runs */
        const char *about = wg_json_word(json_array_get(json_object_get(o, "runs"), i), "about");
        cr_assert(*about && strstr(wg_json_word(json_array_get(figures, 0), "caption"), about), "%s", about);
        cr_assert_str_eq(wg_json_word(json_array_get(figures, 0), "name"), "pair 0");
    }
    cr_assert(json_equal(json_object_get(shown, "pairs"), json_object_get(o, "pairs")));
    free(text);
    json_decref(page);
    json_decref(o);
}

Test(compare, only_common_prompts_count_and_it_is_said)
{
    folder("a", 0, 8, 50, 3);
    folder("b", 4, 8, 25, 3);
    FILE *f = fopen("b/requests.jsonl", "a"); /* torn */
    fputs("{\"arm\":\"cell\",\"cell\":0,\"id\":\"p1\",", f);
    fclose(f);
    unlink("b/summary.json");
    json_t *o = compare("a", "b", -1, -1, WG_OK);
    const json_t *p = json_array_get(json_object_get(o, "pairs"), 0);
    cr_assert_eq(real(p, "requests"), 4);
    cr_assert_float_eq(real(p, "faster"), (50 + 51) / (25. + 26), 1e-12);
    char *text = NULL;
    size_t n = 0;
    f = open_memstream(&text, &n);
    wg_compare_print(f, o, false);
    fclose(f);
    cr_assert(strstr(text, "A and B share 4 prompts; 4 are only in A, 4 only in B, and do not count"), "%s", text);
    cr_assert(strstr(text, "INCOMPLETE: only what had finished is compared"), "%s", text);
    free(text);
    json_decref(o);
    folder("c", 20, 3, 25, 3);
    cr_assert_null(compare("a", "c", -1, -1, WG_EINVAL));
    cr_assert_str_eq(err.text, "a and c have no prompt in common (by id and text); nothing to compare");
}

Test(compare, cells_are_matched_by_what_they_sweep)
{
    folder("a", 0, 4, 50, 3);
    folder("b", 0, 4, 40, 3);
    put("a/config.json", "{" BASE_CONFIG ", \"sweep\": {\"draft.length\": [2, 4]}}");
    put("b/config.json", "{" BASE_CONFIG ", \"sweep\": {\"draft.length\": [4, 6]}}");
    json_t *o = compare("a", "b", -1, -1, WG_OK); /* b's cell 0 against a's cell 1, which has no requests */
    cr_assert_eq(json_array_size(json_object_get(o, "pairs")), 1);
    const json_t *p = json_array_get(json_object_get(o, "pairs"), 0);
    cr_assert_eq(real(json_object_get(p, "a"), "cell"), 1);
    cr_assert_eq(real(p, "requests"), 0);
    cr_assert_eq(real(p, "in_one_only"), 4);
    json_decref(o);
    o = compare("a", "b", 0, 0, WG_OK);
    p = json_array_get(json_object_get(o, "pairs"), 0);
    cr_assert_eq(real(p, "requests"), 4);
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(json_object_get(p, "config_diff"), 0), "key")),
                     "draft.length");
    json_decref(o);
    put("b/config.json", "{" BASE_CONFIG ", \"sweep\": {\"draft.length\": [8, 16]}}");
    cr_assert_null(compare("a", "b", -1, -1, WG_EINVAL));
    cr_assert_str_eq(err.text, "no cell of b has the swept values of a cell of a; name two cells: DIR:NUMBER DIR:NUMBER");
}

/* A sweep of several grids: their cells one behind the other, each named by what its own grid sweeps. */
Test(compare, cells_of_several_grids)
{
    static const char *const name[] = { "draft=ngram(k=2), temperature=0",
                                        "draft=ngram(k=2), temperature=1",
                                        "draft=ngram(k=3), temperature=0",
                                        "draft=ngram(k=3), temperature=1",
                                        "model, match",
                                        "draft=synthetic, rule=greedy" };
    wg_error err;
    wg_run_reader *f;
    folder("a", 0, 4, 50, 3);
    put("a/config.json",
        "{" BASE_CONFIG ", \"sweep\": [{\"sampling.temperature\": [0, 1], \"draft\": [{\"kind\": \"ngram\", "
        "\"k\": 2}, {\"kind\": \"ngram\", \"k\": 3}]}, {}, {\"draft\": [{\"kind\": \"synthetic\", \"k\": 2}], \"verify.rule\": "
        "[\"greedy\"]}]}");
    cr_assert_eq(wg_run_reader_open(&f, "a", &err), WG_OK, "%s", err.text);
    cr_assert_eq(json_array_size(f->cells), 6);
    for (int i = 0; i < 6; i++) {
        char *is = wg_run_reader_cell_name(f, i);
        cr_expect_str_eq(is, name[i]);
        wg_free(is);
    }
    wg_run_reader_close(f);
    put("a/config.json", "{" BASE_CONFIG ", \"sweep\": [{\"draft.length\": [2]}, {\"draft.length\": [4, 6]}]}");
    cr_assert_eq(wg_run_reader_open(&f, "a", &err), WG_OK, "%s", err.text);
    cr_assert_eq(json_array_size(f->cells), 3);
    wg_run_reader_close(f);
}

/* Names say what differs: not a value that all cells have, and no member that a swept option implies. */
Test(compare, names_say_what_differs_between_cells)
{
    static const char *const name[] = { "draft=auto, temperature=0", "draft=ngram(k=2), temperature=0",
                                        "draft=ngram(k=3), temperature=0", "draft=auto, temperature=1",
                                        "draft=ngram(k=2), temperature=1" };
    wg_run_reader *f;
    folder("a", 0, 4, 50, 3);
    put("a/config.json",
        "{" BASE_CONFIG ", \"sweep\": [{\"sampling.temperature\": [0], \"seed\": [7], \"draft\": [{\"kind\": \"auto\", "
        "\"costs\": \"\"}, {\"kind\": \"ngram\", \"k\": 2}, {\"kind\": \"ngram\", \"k\": 3}]}, {\"sampling.temperature\": "
        "[1], \"seed\": [7], \"draft\": [{\"kind\": \"auto\", \"costs\": \"measured\"}, {\"kind\": \"ngram\", \"k\": 2}]}]}");
    cr_assert_eq(wg_run_reader_open(&f, "a", &err), WG_OK, "%s", err.text);
    cr_assert_eq(json_array_size(f->cells), 5);
    for (int i = 0; i < 4; i++) {
        char *is = wg_run_reader_cell_name(f, i);
        cr_expect_str_eq(is, name[i]);
        wg_free(is);
    }
    wg_run_reader_close(f);
    put("a/config.json",
        "{" BASE_CONFIG ", \"sweep\": [{\"seed\": [7, 8], \"verify\": [{\"rule\": \"match\"}]}, {\"seed\": [7], \"verify\": "
        "[{\"rule\": \"topk\", \"k\": 1}, {\"rule\": \"topk\", \"k\": 2}]}]}");
    cr_assert_eq(wg_run_reader_open(&f, "a", &err), WG_OK, "%s", err.text);
    char *first = wg_run_reader_cell_name(f, 0), *last = wg_run_reader_cell_name(f, 3);
    cr_expect_str_eq(first, "seed=7, verify=match");
    cr_expect_str_eq(last, "seed=7, verify=topk(k=2)");
    wg_free(first);
    wg_free(last);
    wg_run_reader_close(f);
}

/* Cells of one run only are counted and not compared. */
Test(compare, cells_without_a_partner_are_said)
{
    folder("a", 0, 8, 50, 3);
    folder("b", 0, 8, 40, 3);
    put("a/config.json", "{" BASE_CONFIG ", \"sweep\": {\"draft.length\": [4, 2, 3]}}");
    put("b/config.json", "{" BASE_CONFIG ", \"sweep\": {\"draft.length\": [4, 8]}}");
    json_t *o = compare("a", "b", -1, -1, WG_OK);
    cr_assert_eq(json_array_size(json_object_get(o, "pairs")), 1);
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    wg_compare_print(f, o, false);
    fclose(f);
    cr_assert(strstr(text, "A and B have 1 cells in common; 2 are only in A, 1 only in B, and are not compared\n"), "%s", text);
    free(text);
    json_decref(o);
}

Test(compare, a_cell_that_failed_counts_on_neither_side)
{
    folder("a", 0, 4, 50, 3);
    folder("b", 0, 4, 40, 3);
    size_t n = 0;
    char *text = file_read("b/requests.jsonl", &n), *cell = strstr(text, "\"arm\":\"cell\""), *ok = strstr(cell, "\"ok\"");
    memcpy(ok, "\"ko\"", 4);
    file_write("b/requests.jsonl", text, n);
    free(text);
    json_t *o = compare("a", "b", -1, -1, WG_OK);
    const json_t *p = json_array_get(json_object_get(o, "pairs"), 0);
    cr_assert_eq(real(p, "requests"), 3);
    cr_assert_eq(real(p, "failed"), 1);
    cr_assert_float_eq(real(p, "faster"), (51 + 50 + 51) / (41. + 40 + 41), 1e-12);
    json_decref(o);
}

/* Four prompts have no interval, so no verdict, and the limit is not passed. */
Test(compare, few_prompts_have_no_verdict)
{
    folder("a", 0, 4, 50, 3);
    folder("b", 0, 4, 90, 3);
    json_t *o = compare("a", "b", -1, -1, WG_OK);
    const json_t *p = json_array_get(json_object_get(o, "pairs"), 0);
    int unknown;
    cr_assert_str_eq(json_string_value(json_object_get(p, "verdict")), "unknown");
    cr_assert(json_is_null(json_object_get(p, "speedup_ratio_ci")) && json_is_null(json_object_get(p, "p_holm")));
    cr_assert(json_is_null(json_object_get(p, "faster_ci")) && real(o, "family") == 0);
    cr_assert(wg_compare_slower(o, .03, &unknown) == 0 && unknown == 1);
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    wg_compare_print(f, o, false);
    fclose(f);
    cr_assert(strstr(text, "0.558x: no verdict; it needs 5 prompts in both, with their baselines\n"), "%s", text);
    free(text);
    json_decref(o);
}

/* The machine is half as fast under B: cell and baseline alike. Raw, B is slower; over its own baseline it is not. */
Test(compare, a_slower_machine_is_no_verdict_but_a_warning)
{
    folder("a", 0, 8, 50, 3);
    folder("b", 0, 8, 50, 3);
    size_t n = 0;
    char *text = file_read("b/requests.jsonl", &n), *out = NULL;
    FILE *f = open_memstream(&out, &n);
    for (char *line = text, *at; *line; line = strchr(line, '\n') + 1) {
        at = strstr(line, "\"decode_ms\":") + 12;
        fprintf(f, "%.*s%g%.*s", (int)(at - line), line, 2 * strtod(at, NULL), (int)(strchr(line, '\n') + 1 - strchr(at, ',')),
                strchr(at, ','));
    }
    fclose(f);
    file_write("b/requests.jsonl", out, n);
    free(text);
    free(out);
    put("b/machine.json", "{\"cpu\": {\"model\": \"x\", \"cores_online\": 2}, \"system\": {\"load_at_start\": [2.5, 1, 1]}}");
    json_t *o = compare("a", "b", -1, -1, WG_OK);
    const json_t *p = json_array_get(json_object_get(o, "pairs"), 0), *warning = json_object_get(o, "warnings");
    int unknown;
    cr_assert(item(p, "faster_ci", 1) < 0.51, "raw, it would be slower");
    cr_assert_float_eq(real(p, "speedup_ratio"), 1, 1e-12);
    cr_assert_str_eq(json_string_value(json_object_get(p, "verdict")), "undecided");
    cr_assert(wg_compare_slower(o, 0, &unknown) == 0 && unknown == 0);
    const double half = wg_student_t(0.05, 1e6) * sqrt(2e-4 + 0.01 * log(2) * log(2)); /* the prompts add nothing */
    cr_assert_float_eq(log(item(p, "speedup_ratio_ci", 1)), half, 1e-6);
    cr_assert_eq(json_array_size(warning), 2);
    cr_assert_str_eq(json_string_value(json_array_get(warning, 0)),
                     "B began with a load of 2.5 on 2 cores: other programs ran beside it");
    cr_assert_str_eq(
        json_string_value(json_array_get(warning, 1)),
        "plain decoding of B ran at 0.50x [0.50, 0.50] of A's speed, beside 1 of 1 cells: raw times do not compare, "
        "speed-ups over the own baseline do");
    f = open_memstream(&text, &n);
    wg_compare_print(f, o, false);
    fclose(f);
    const char *verdict = strstr(text, "speed-up, B/A  "), *raw = strstr(text, "raw time, A/B ");
    cr_assert(verdict && raw && verdict < raw && strstr(text, "  WARNING: B began with a load of 2.5 on 2 cores"), "%s", text);
    free(text);
    json_decref(o);
}

/* Runs that are alike are one side where another one is beside them: A and C are, B has another config. */
Test(compare, runs_that_are_alike_are_one_side)
{
    static const char *const dir[] = { "a", "b", "c" };
    wg_run_reader *f[3];
    wg_compared run[3];
    json_t *o;
    folder("a", 0, 8, 50, 3);
    folder("b", 0, 8, 40, 3);
    folder("c", 2, 8, 54, 3);
    put("b/config.json", "{\"name\": \"other\", \"draft\": {\"kind\": \"model\"}, \"verify\": {\"rule\": \"match\"}}");
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(wg_run_reader_open(&f[i], dir[i], &err), WG_OK, "%s", err.text);
        run[i] = (wg_compared){ f[i], -1 };
    }
    cr_assert_eq(wg_compare(&o, run, 3, &err), WG_OK, "%s", err.text);
    const json_t *pairs = json_object_get(o, "pairs"), *p = json_array_get(pairs, 0), *runs = json_object_get(o, "runs");
    cr_assert_eq(json_array_size(pairs), 1);
    cr_assert_eq(real(json_object_get(p, "b"), "run"), 1);
    cr_assert_eq(real(p, "requests"), 6, "of the prompts that all three have");
    static const double sample[] = { 0, 1, 0 };
    for (size_t i = 0; i < 3; i++) cr_assert_eq(real(json_array_get(runs, i), "sample"), sample[i]);
    /* The speed-ups of a and c over p2 to p7; their variance, twice: one run of either side is paired */
    const double off = log((3 * 54. + 3 * 55) / (3 * 50. + 3 * 51)) / 2;
    cr_assert_float_eq(item(p, "standard_error", 1), sqrt(2 * 2 * off * off), 1e-12);
    char *text = NULL;
    size_t n = 0;
    FILE *g = open_memstream(&text, &n);
    wg_compare_print(g, o, false);
    fclose(g);
    cr_assert(strstr(text, "C: c, now, 1 cell, 16 requests, A again\n"), "%s", text);
    cr_assert(strstr(text, "A and B share 6 prompts; 2 are only in A, 2 only in B, and do not count\n"), "%s", text);
    free(text);
    const json_t *both = json_array_get(json_object_get(o, "prompts"), 0);
    cr_assert(real(both, "common") == 6 && real(both, "only_a") + real(both, "only_b") == 4);
    json_decref(o);
    for (int i = 0; i < 3; i++) wg_run_reader_close(f[i]);
}

Test(compare, warns_of_another_machine)
{
    folder("a", 0, 4, 50, 3);
    folder("b", 0, 4, 40, 3);
    put("b/machine.json", "{\"started\": \"then\", \"cpu\": {\"model\": \"y\"}, \"files_sha256\": {\"m\": \"1\"}}");
    json_t *o = compare("a", "b", -1, -1, WG_OK);
    cr_assert_eq(json_array_size(json_object_get(o, "machine_diff")), 2);
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    wg_compare_print(f, o, true);
    fclose(f);
    cr_assert(strstr(text, "## WARNING: more than the config differs") && strstr(text, "* `cpu.model`: x | y"), "%s", text);
    free(text);
    json_decref(o);
}

Test(compare, a_damaged_line_is_an_error_with_its_place)
{
    wg_error err = { 0 };
    wg_run_reader *f = NULL;
    folder("a", 0, 2, 50, 3);
    FILE *g = fopen("a/requests.jsonl", "a");
    fputs("{\"arm\":\"cell\"]\n", g);
    fclose(g);
    const size_t before = wg_mem_read().live_blocks;
    cr_assert_eq(wg_run_reader_open(&f, "a", &err), WG_EFORMAT);
    cr_assert(strstr(err.text, "a/requests.jsonl:5: this is not the line of a request"), "%s", err.text);
    cr_assert_eq(wg_run_reader_open(&f, "none", &err), WG_ENOENT);
    static const char *const summaries[] = {
        "", "{", "null", "[]", "{\"cells\": {}}", "{\"cells\": [7]}", "{\"cells\": [{\"cell\": {}, \"rule\": \"match\"}]}"
    };
    folder("a", 0, 2, 50, 3);
    for (size_t i = 0; i < sizeof summaries / sizeof *summaries; i++) {
        put("a/summary.json", summaries[i]);
        cr_assert_eq(wg_run_reader_open(&f, "a", &err), WG_EFORMAT, "%s", summaries[i]);
        cr_assert_str_eq(err.text, "a/summary.json is not what a run writes; remove it, and wager run --resume makes it again");
    }
    put("a/config.json", "7");
    cr_assert_eq(wg_run_reader_open(&f, "a", &err), WG_EFORMAT);
    cr_assert_str_eq(err.text, "a/config.json is missing or damaged; expected the folder of a run");
    cr_assert_eq(wg_mem_read().live_blocks, before);
}

/* Whatever allocation fails, it is a message and nothing is held. */
Test(compare, survives_failing_allocations)
{
    folder("a", 0, 8, 50, 3);
    folder("b", 0, 8, 40, 9);
    bool done = false;
    for (uint64_t nth = 1; !done && nth < 4000; nth++) {
        const size_t before = wg_mem_read().live_blocks;
        wg_error err = { 0 };
        wg_run_reader *x = NULL, *y = NULL;
        json_t *o = NULL;
        wg_mem_fail_at(nth, true);
        wg_status st = wg_run_reader_open(&x, "a", &err);
        if (!st) st = wg_run_reader_open(&y, "b", &err);
        const wg_compared run[2] = { { x, -1 }, { y, -1 } };
        if (!st) st = wg_compare(&o, run, 2, &err);
        done = wg_mem_read().live_blocks > before && st == WG_OK && nth > 60;
        wg_mem_fail_at(0, false);
        cr_assert(st == WG_OK || err.text[0], "allocation %d: no message", (int)nth);
        cr_assert_eq(st == WG_OK, o != NULL);
        json_decref(o);
        wg_run_reader_close(x);
        wg_run_reader_close(y);
        cr_assert_eq(wg_mem_read().live_blocks, before, "allocation %d: %s", (int)nth, err.text);
    }
    cr_assert(done);
}

/* The page has what the JSON has, and no number that a reader of JSON would round. */
Test(compare, the_page_says_the_same)
{
    folder("a", 0, 8, 50, 3);
    folder("b", 0, 8, 40, 9);
    put("b/config.json", "{\"name\": \"other\", \"draft\": {\"kind\": \"model\"}, \"verify\": {\"rule\": \"match\"}, "
                         "\"seed\": 9007199254740993}");
    json_t *o = compare("a", "b", -1, -1, WG_OK), *page = wg_compare_document(o, false);
    const json_t *shown = json_object_get(page, "comparison"), *differences = json_object_get(shown, "config_diff"), *row;
    const char *key;
    json_t *v;
    cr_assert_str_eq(wg_json_word(page, "kind"), "compare");
    json_object_foreach(o, key, v) cr_assert(strstr(key, "_diff") || json_equal(json_object_get(shown, key), v), "%s", key);
    bool exact = false;
    for (size_t i = 0; (row = json_array_get(differences, i)); i++) {
        const json_t *values = json_object_get(row, "values");
        cr_assert(json_is_string(json_array_get(values, 0)) && json_is_string(json_array_get(values, 1)));
        exact |= !strcmp(json_string_value(json_array_get(values, 1)), "9007199254740993");
    }
    cr_assert(exact);
    cr_assert(json_array_size(json_object_get(page, "figures")) == 0 && json_is_false(json_object_get(page, "no_gnuplot")));
    json_decref(page);
    json_decref(o);
}
