/* SPDX-License-Identifier: MIT
 * Shards: merged shards equal the undivided run, timings apart, for any number of shards and any batch; incomplete or mixed
 * sets of shards are refused with the reason. */
#include "core/base/json.h"
#include "core/base/mem.h"
#include "draft/lm/vocabulary_subset.h"
#include "experiments/run/merge_shards.h"
#include "experiments/run/runner.h"
#include "core/setup/target.h"
#include "masked.h"
#include "scene.h"

static scene s;
static void setup(void)
{
    scene_make(&s);
    put("prompts.jsonl",
        "{\"id\": \"a\", \"prompt\": \"The cat sat\"}\n{\"id\": \"b\", \"prompt\": \"abababab\"}\n"
        "{\"id\": \"long\", \"prompt\": \"01234567890123456789012345678901234567890123456789012345678901234567\"}\n"
        "{\"id\": \"c\", \"turns\": [\"Once upon\", \"and then\"]}\n{\"id\": \"d\", \"prompt\": \"A dog ran\"}\n");
}

/* list.json: some of the vocabulary, for a draft model that is pruned to it. */
static void prune(int from)
{
    wg_error err;
    wg_target *t;
    int32_t kept[150];
    const wg_target_options o = { .threads = 1, .need_tokenizer = true };
    for (int i = 0; i < 150; i++) kept[i] = 2 * i + from;
    cr_assert_eq(wg_target_open(&t, "target.gguf", &o, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_vocabulary_subset_write("list.json", t->tokenizer, kept, 150, &err), WG_OK, "%s", err.text);
    wg_target_close(t);
}

static void teardown(void) { scene_remove(&s); }
TestSuite(merge, .init = setup, .fini = teardown, .timeout = 240);

/* Two groups, a prompt that fails, one of two turns, two repeats; `more` adds to it. */
#define CONFIG(more)                                                                                                           \
    "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, "                                             \
    "\"prompts\": {\"file\": \"prompts.jsonl\", \"turns\": \"all\"},"                                                          \
    "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 3}, \"max_tokens\": 10, \"repeats\": 2, " more    \
    "}"
#define SWEPT "\"trace\": \"steps\", \"sweep\": {\"sampling.temperature\": [0, 1], \"verify.rule\": [\"match\", \"rejection\"]}"

static void run(const char *out, wg_shard shard)
{
    wg_error err;
    wg_config *c;
    wg_run r;
    char *path;
    cr_assert_eq(wg_config_open(&c, "config.json", NULL, 0, &wg_program_plugins, &err), WG_OK, "%s", err.text);
    c->shard = shard;
    const wg_run_options o = { .out = out };
    cr_assert_eq(wg_run_config(c, &o, &r, &path, &err), WG_OK, "%s", err.text);
    wg_run_free(&r);
    wg_free(path);
    wg_config_close(c);
}

static void equal_files(const char *a, const char *b, bool traced)
{
    static const char *const files[] = { "config.json", "requests.jsonl", "summary.json", "steps.jsonl" };
    for (int i = 0; i < 3 + traced; i++) {
        char *x = masked(a, files[i]), *y = masked(b, files[i]);
        cr_assert_str_eq(x, y, "%s and %s: %s differs", a, b, files[i]);
        free(x);
        free(y);
    }
}

static long failed_in(const char *dir)
{
    char path[64];
    snprintf(path, sizeof path, "%s/summary.json", dir);
    json_t *v = json_load_file(path, 0, NULL);
    const json_t *cell = json_array_get(json_object_get(v, "cells"), 0);
    const long n = (long)json_integer_value(json_object_get(cell, "failed"));
    json_decref(v);
    return n;
}

/* Do its cells say what a draft model's vocabulary has? */
static bool has_overlap(const char *dir)
{
    char *text = masked(dir, "summary.json");
    const bool yes = strstr(text, "\"overlap\":") != NULL;
    free(text);
    return yes;
}

static wg_status merge(const char *out, wg_error *err, int n, const char *a, const char *b, const char *c)
{
    const char *dir[] = { a, b, c };
    return wg_merge(out, dir, n, &wg_program_plugins, err);
}

Test(merge, is_the_run_that_was_not_divided)
{
    static const char *const configs[] = {
        CONFIG(SWEPT),
        CONFIG("\"batch\": 2, " SWEPT),
        CONFIG("\"sweep\": {\"draft.prune\": [\"\", \"list.json\"]}"),
        CONFIG("\"sweep\": {\"sampling.temperature\": [0, 1], "
               "\"draft\": [{\"kind\": \"ngram_cache\", \"hits\": 1, \"k\": 8}, {\"kind\": \"ngram\", \"k\": 8}]}"),
    };
    for (int i = 0; i < 4; i++) {
        char whole[16], part[3][16], out[16];
        wg_error err;
        if (i == 2) prune(1);
        put("config.json", configs[i]);
        snprintf(whole, sizeof whole, "whole%d", i);
        run(whole, (wg_shard){ 0 });
        const size_t before = wg_mem_read().live_blocks;
        for (int k = 0; k < 3; k++) {
            snprintf(part[k], sizeof part[k], "part%d-%d", i, k);
            run(part[k], (wg_shard){ k + 1, 3 });
        }
        snprintf(out, sizeof out, "merged%d", i);
        cr_assert_eq(merge(out, &err, 3, part[2], part[0], part[1]), WG_OK, "%s", err.text);
        equal_files(whole, out, i < 2);
        cr_assert(failed_in(out) > 0, "the long prompt went through");
        cr_assert_eq(has_overlap(out), i == 2);
        cr_assert_eq(wg_mem_read().live_blocks, before);
    }
}

static void edit(const char *file, const char *key, const char *value)
{
    json_t *v = json_load_file(file, 0, NULL);
    cr_assert_not_null(v);
    json_object_set_new(v, key, json_loads(value, JSON_DECODE_ANY, NULL));
    json_dump_file(v, file, 0);
    json_decref(v);
}

static void refused(int n, const char *a, const char *b, const char *c, const char *says)
{
    wg_error err;
    struct stat st;
    const size_t before = wg_mem_read().live_blocks;
    cr_assert_neq(merge("out", &err, n, a, b, c), WG_OK, "%s", says);
    cr_assert(strstr(err.text, says), "'%s' is not in: %s", says, err.text);
    cr_assert_neq(stat("out", &st), 0, "%s: something was left behind", says);
    cr_assert_eq(wg_mem_read().live_blocks, before, "%s", says);
}

/* No run makes such shards. */
static void traced_by_hand(void)
{
    static const char *const files[] = { "p1/config.json", "p2/config.json", "p3/config.json" }, *const machines[] = {
        "p1/machine.json", "p2/machine.json", "p3/machine.json"
    };
    char sha[WG_SHA256_HEX + 2];
    wg_config *c = NULL;
    for (int i = 0; i < 3; i++) edit(files[i], "trace", "\"probs\"");
    cr_assert_eq(wg_config_open(&c, files[0], NULL, 0, &wg_program_plugins, NULL), WG_OK);
    snprintf(sha, sizeof sha, "\"%s\"", c->sha256);
    wg_config_close(c);
    for (int i = 0; i < 3; i++) edit(machines[i], "config_sha256", sha);
}

/* Adding up what a folder should have and has not. */
static void half_a_folder(void)
{
    wg_run r;
    wg_error err;
    wg_coverage none[8] = { { 0 } };
    char *path = NULL, *text = file_read("whole/requests.jsonl", NULL);
    wg_config *c = config_of(CONFIG("\"trace\": \"steps\""));
    const wg_run_options o = { .out = "whole", .resume = true, .recorded = none };
    cr_assert_leq(c->n, 8);
    file_write("whole/requests.jsonl", text, (size_t)(strchr(text, '\n') + 1 - text));
    cr_assert_eq(wg_run_config(c, &o, &r, &path, &err), WG_EFORMAT);
    cr_assert_str_eq(err.text, "whole: requests are missing: it ends after 1");
    wg_run_free(&r);
    wg_config_close(c);
    wg_free(path);
    free(text);
}

Test(merge, refuses_what_does_not_belong_together)
{
    put("config.json", CONFIG("\"trace\": \"steps\""));
    run("whole", (wg_shard){ 0 });
    run("p1", (wg_shard){ 1, 3 });
    run("p2", (wg_shard){ 2, 3 });
    run("p3", (wg_shard){ 3, 3 });
    run("q1", (wg_shard){ 1, 3 });
    run("half", (wg_shard){ 1, 2 });
    refused(2, "p1", "p2", NULL, "1 of 3 shards missing: 3");
    refused(1, "p2", NULL, NULL, "2 of 3 shards missing: 1, 3");
    refused(3, "p1", "p2", "q1", "shard 1/3 is there twice: p1 and q1");
    refused(3, "p1", "p2", "half", "half is shard 1/2, but p1 is one of 3");
    refused(2, "p1", "whole", NULL, "whole: this is a whole run, not a shard");
    refused(2, "p1", "absent", NULL, "absent: no machine.json; expected the folder of a shard");
    put("config.json", CONFIG("\"seed\": 9"));
    run("seed", (wg_shard){ 3, 3 });
    refused(3, "p1", "p2", "seed", "p1 and seed are not parts of one run: configs differ");
    edit("q1/machine.json", "program", "{\"sha256\": \"another\"}");
    refused(3, "q1", "p2", "p3", "programs differ");
    edit("p3/summary.json", "complete", "false");
    refused(3, "p1", "p2", "p3", "p3: shard 3/3 is not finished; wager run CONFIG --resume --shard 3/3");
    edit("p3/summary.json", "complete", "true");
    edit("p3/summary.json", "cells", "[]");
    refused(3, "p1", "p2", "p3", "p3/summary.json is not what this config's shards write");
    edit("p3/summary.json", "cells", "[{\"overlap\": {\"shared\": 3, \"vocabulary\": 2}}]");
    refused(3, "p1", "p2", "p3", "p3/summary.json is not what this config's shards write");
    edit("p3/summary.json", "cells", "[{}]");
    char *lines = file_read("p3/requests.jsonl", NULL);
    char *cut = strchr(lines, '\n') + 1;
    file_write("p3/requests.jsonl", cut, strlen(cut)); /* not its first request any more */
    refused(3, "p1", "p2", "p3", "p3: requests are missing: there are");
    file_write("p3/requests.jsonl", lines, strlen(lines));
    FILE *f = fopen("p3/requests.jsonl", "a"); /* its first one once more, at the end */
    fwrite(lines, 1, (size_t)(cut - lines), f);
    fclose(f);
    refused(3, "p1", "p2", "p3", "p3: there are 1 requests more than its share");
    file_write("p3/requests.jsonl", lines, strlen(lines));
    free(lines);
    wg_error err;
    cr_assert_eq(merge("whole", &err, 3, "p1", "p2", "p3"), WG_EINVAL);
    cr_assert_str_eq(err.text, "whole is there already; merge into a new folder");
    half_a_folder();
    traced_by_hand();
    refused(3, "p1", "p2", "p3", "p1/config.json: traces of probabilities are not merged");
    put("prompts.jsonl", "{\"prompt\": \"changed since\"}\n");
    refused(3, "p1", "p2", "p3", "files (by SHA-256) differ");
    edit("p1/machine.json", "program", "{}");
    edit("p2/machine.json", "program", "{}");
    edit("p3/machine.json", "program", "{}");
    refused(3, "p1", "p2", "p3", "p1 and this machine are not parts of one run: programs differ");
}

/* Of the same name, and yet not what the other shard drafted with. */
Test(merge, refuses_another_side_file)
{
    put("config.json", CONFIG("\"sweep\": {\"draft.prune\": [\"list.json\"]}"));
    prune(1);
    run("p1", (wg_shard){ 1, 2 });
    prune(0);
    run("p2", (wg_shard){ 2, 2 });
    refused(2, "p1", "p2", NULL, "p1 and p2 are not parts of one run: files (by SHA-256) differ: files_sha256.list.json is \"");
}

#define ARRAY "SLURM_ARRAY_TASK_"
Test(merge, environments)
{
    static const struct {
        const char *var[8];
        int index, count;
        const char *from;
    } cases[] = {
        { { NULL }, 0, 0, NULL },
        { { ARRAY "ID", "7", ARRAY "COUNT", "4", ARRAY "MIN", "5", NULL }, 3, 4, ARRAY "ID" },
        { { ARRAY "ID", "9", ARRAY "COUNT", "4", ARRAY "MIN", "3", ARRAY "STEP", "3" }, 3, 4, ARRAY "ID" },
        { { "OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2", NULL }, 2, 2, "OMPI_COMM_WORLD_RANK" },
        { { "PMI_RANK", "0", "PMI_SIZE", "2", NULL }, 1, 2, "PMI_RANK" },
        { { "SLURM_PROCID", "3", "SLURM_STEP_NUM_TASKS", "8", NULL }, 4, 8, "SLURM_PROCID" },
        { { "SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "1", NULL }, 0, 0, NULL },
        { { "SLURM_PROCID", "0", "SLURM_NTASKS", "8", NULL }, 0, 0, NULL }, /* the script of a job, not one of its tasks */
        { { ARRAY "ID", "9", ARRAY "COUNT", "4", NULL }, -1, 0, NULL },
    };
    static const char *const all[] = {
        ARRAY "ID", ARRAY "COUNT", ARRAY "MIN",    ARRAY "STEP",   "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
        "PMI_RANK", "PMI_SIZE",    "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_shard shard;
        wg_error err;
        const char *from;
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) unsetenv(all[k]);
        for (int k = 0; k + 1 < 8 && cases[i].var[k]; k += 2) setenv(cases[i].var[k], cases[i].var[k + 1], 1);
        const wg_status st = wg_shard_of_environment(&shard, &from, &err);
        cr_assert_eq(st, cases[i].index < 0 ? WG_EINVAL : WG_OK);
        if (st) continue;
        cr_assert(shard.index == cases[i].index && shard.count == cases[i].count, "case %zu: %d/%d", i, shard.index,
                  shard.count);
        cr_assert(cases[i].from ? from && !strcmp(from, cases[i].from) : !from);
    }
}

Test(merge, shards_are_written_as_i_of_n)
{
    static const char *const bad[] = { "",    "3",    "0/4",      "5/4",           "1/0",          "1/4x",
                                       "a/b", "-1/4", "1/200000", "1/20000000000", "99999999999/3" };
    wg_shard shard;
    wg_error err;
    char text[WG_SHARD_TEXT];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(wg_shard_parse(&shard, bad[i], &err), WG_EINVAL, "%s", bad[i]);
    cr_assert_eq(wg_shard_parse(&shard, "all", &err), WG_OK);
    cr_assert_eq(shard.count, 0);
    cr_assert_eq(wg_shard_parse(&shard, "2/4", &err), WG_OK);
    cr_assert_str_eq(wg_shard_text(shard, text), "2/4");
}

/* Shards that decided by one profile: the merged run has it. By different ones: none, and it says so. */
Test(merge, profiles)
{
    static const wg_shard shard[] = { { 1, 2 }, { 2, 2 } };
    static const char *const name[2][2] = { { "one", "two" }, { "three", "four" } }, *const out[] = { "same", "others" };
    wg_error err;
    put("config.json",
        "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": "
        "\"prompts.jsonl\", \"turns\": \"all\"}, \"draft\": {\"kind\": \"ngram\", \"policy\": \"cost\", \"k\": 4}, "
        "\"verify\": {\"rule\": \"match\"}, \"max_tokens\": 6, \"profile\": \"new\"}");
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2; k++) run(name[i][k], shard[k]);
        for (const char *const *file = (const char *[]){ "profile.json", "machine.json", NULL }; i == 0 && *file; file++) {
            char from[64], to[64]; /* what a second process with the same profile has */
            snprintf(from, sizeof from, "%s/%s", name[0][0], *file);
            snprintf(to, sizeof to, "%s/%s", name[0][1], *file);
            json_t *v = json_load_file(from, 0, NULL);
            if (json_object_get(v, "shard")) json_object_set_new(v, "shard", json_string("2/2"));
            cr_assert_eq(json_dump_file(v, to, 0), 0);
            json_decref(v);
        }
        cr_assert_eq(merge(out[i], &err, 2, name[i][0], name[i][1], NULL), WG_OK, "%s", err.text);
        json_t *summary = wg_json_load(out[i], "summary.json"), *profile = wg_json_load(out[i], "profile.json");
        const char *said = json_string_value(json_object_get(summary, "profile"));
        cr_assert(said && (i == 0 ? strlen(said) == 64 : !strcmp(said, "several")), "%s", said);
        cr_assert((profile != NULL) == (i == 0));
        json_decref(summary);
        json_decref(profile);
    }
}
