/* SPDX-License-Identifier: MIT
 * Configs of several files: named parts and paths; and every mistake of tests/bad/config.txt. */
#include <sys/stat.h>

#include "core/base/mem.h"
#include "draft/draft.h"
#include "scene.h"
#include "tests/transcript.h"
#include "verify/verify.h"

static scene s;
static void setup(void) { scene_make(&s); }
static void teardown(void) { scene_remove(&s); }
TestSuite(config_parts, .init = setup, .fini = teardown);

/* A folder of parts as configs/ has it, and an experiment beside it or in it. */
static void put_parts(void)
{
    mkdir("models", 0700), mkdir("drafts", 0700), mkdir("experiments", 0700), mkdir("none", 0700);
    put("models/tiny.json", "{\"// of\": \"tests\", \"model\": \"../target.gguf\", \"threads\": 1}");
    put("models/other.json", "{\n  \"model\": \"../target.gguf\",\n  \"threds\": 1,\n  \"kv_type\": \"f33\"\n}");
    put("models/again.json", "\n\"@models/tiny\"\n");
    put("models/list.json", "[7]");
    put("models/cut.json", "{\"model\": \"../target.gguf\",}");
    put("drafts/small.json", "{\"kind\": \"model\", \"model\": \"../draft.gguf\", \"length\": 2}");
    put("drafts/long.json", "{\"kind\": \"ngram\", \"k\": 5000}");
}

#define REST "\"name\": \"t\", \"prompts\": {\"file\": \"prompts.jsonl\"}"

/* A name is its object, nothing else: in a section, a sweep or a --set, beside the config or one level up. */
Test(config_parts, a_named_part_is_its_object)
{
    static const char *const set[] = { "target=@models/tiny", "target.threads=2", "sweep.draft=[\"@drafts/small\"]" };
    wg_error err = { 0 };
    wg_config *c;
    put_parts();
    wg_config *a = config_of("{" REST ", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"sweep\": {\"draft\": ["
                             "{\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 2}, {\"kind\": \"none\"}]}}");
    static const char named[] = "{" REST ", \"target\": \"@models/tiny\", "
                                "\"sweep\": {\"draft\": [\"@drafts/small\", {\"kind\": \"none\"}]}}";
    wg_config *b = config_of(named);
    cr_expect_str_eq(a->sha256, b->sha256);
    wg_config_close(b);
    static const char *const prompts = "prompts.file=prompts.jsonl";
    put("experiments/e.json", named);
    cr_assert_eq(wg_config_open(&b, "experiments/e.json", &prompts, 1, &wg_program_plugins, &err), WG_OK, "%s", err.text);
    cr_expect_str_eq(a->sha256, b->sha256);
    wg_config_close(b);
    wg_config_close(a);

    mkdir("experiments/models", 0700); /* the nearer one is meant */
    put("experiments/models/tiny.json", "{\"model\": \"../../target.gguf\", \"threads\": 3}");
    cr_assert_eq(wg_config_open(&c, "experiments/e.json", &prompts, 1, &wg_program_plugins, &err), WG_OK, "%s", err.text);
    cr_expect_eq(c->cell[0].setup.target.threads, 3);
    wg_config_close(c);

    put("config.json", "{" REST ", \"target\": {\"model\": \"nowhere\"}}");
    cr_assert_eq(wg_config_open(&c, "config.json", set, 3, &wg_program_plugins, &err), WG_OK, "%s", err.text);
    cr_expect_eq(c->cell[0].setup.target.threads, 2);
    cr_expect_str_eq(c->cell[0].setup.drafter->name, "model");
    wg_config_close(c);
}

/* The same experiment with its paths written from two folders: in sections, components, commands and lists of the sweep. */
#define WITH_PATHS(up)                                                                                                         \
    "{\"name\": \"t\", \"prompts\": {\"file\": \"" up "prompts.jsonl\"}, \"target\": {\"model\": \"" up "target.gguf\"},\n"    \
    "\"sweep\": {\"draft\": [{\"kind\": \"model\", \"model\": \"" up "draft.gguf\", \"grow\": \"file\", \"tree\": \"" up       \
    "tree.json\"},\n{\"kind\": \"model\", \"model\": \"" up "draft.gguf\", \"tree\": \"2-1\"},\n"                              \
    "{\"kind\": \"hybrid\", \"first\": \"ngram:k=2\", \"second\": \"best_of:of={model:model=" up                               \
    "draft.gguf;length=2|ngram}\"},\n"                                                                                         \
    "{\"kind\": \"process\", \"command\": \"cat '" up "tree.json' >out; cat no/file\"}]}}"

Test(config_parts, paths_are_relative_to_the_file)
{
    wg_error err = { 0 };
    wg_config *a, *b;
    put_parts();
    put("tree.json", "[-1,0,0]");
    a = config_of(WITH_PATHS(""));
    cr_expect_str_eq(json_string_value(json_object_get(json_object_get(a->cell[2].config, "draft"), "second")),
                     "best_of:of={model:model=draft.gguf;length=2|ngram}");
    put("experiments/e.json", WITH_PATHS("../"));
    static const char *const names[] = { "experiments/e.json", "./experiments/../experiments//e.json", "link/../e.json" };
    cr_assert_eq(mkdir("experiments/in", 0700) || symlink("experiments/in", "link"), 0);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(wg_config_open(&b, names[i], NULL, 0, &wg_program_plugins, &err), WG_OK, "%s: %s", names[i], err.text);
        if (i < 2) cr_expect_str_eq(a->sha256, b->sha256, "%s", names[i]); /* ".." of a link is not taken out */
        else cr_expect_str_eq(b->cell[0].setup.target.model, "link/../../target.gguf");
        wg_config_close(b);
    }
    wg_config_close(a);
    /* What a result folder has is as the run saw it. */
    mkdir("run", 0700);
    put("run/config.json", WITH_PATHS(""));
    cr_expect_eq(wg_config_open(&b, "run/config.json", NULL, 0, &wg_program_plugins, &err), WG_ECONFIG);
    put("run/summary.json", "{}");
    cr_assert_eq(wg_config_open(&b, "run/config.json", NULL, 0, &wg_program_plugins, &err), WG_OK, "%s", err.text);
    wg_config_close(b);
}

/* A path by the rule of before is told so; so is one that has no room for the folder. */
Test(config_parts, paths_of_the_working_directory_are_refused)
{
    static const char *const wants[] = {
        "e.json:1:35: prompts.file: no such file: \"experiments/prompts.jsonl\"; \"prompts.jsonl\" is in the working "
        "directory, but a path in a config is relative to the folder of its file",
        "e.json:1:73: target.model: no such file: \"experiments/target.gguf\"",
        "e.json:2:48: draft.model: no such file: \"experiments/draft.gguf\"",
        "draft.tree: no such file: \"experiments/tree.json\"",
        "draft.second: no such file: \"experiments/draft.gguf\"",
    };
    char path[300], long_name[700];
    wg_error err = { 0 };
    wg_config *c = NULL;
    put_parts();
    put("tree.json", "[-1,0,0]");
    put("experiments/e.json", WITH_PATHS(""));
    cr_assert_eq(wg_config_open(&c, "experiments/e.json", NULL, 0, &wg_program_plugins, &err), WG_ECONFIG);
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++)
        cr_expect(strstr(err.text, wants[i]), "%s\n%s", wants[i], err.text);
    snprintf(path, sizeof path, "%0200d", 0);
    mkdir(path, 0700);
    strcat(path, "/e.json");
    snprintf(long_name, sizeof long_name, "{" REST ", \"target\": {\"model\": \"%0400d\"}}", 0);
    put(path, long_name);
    cr_assert_eq(wg_config_open(&c, path, NULL, 0, &wg_program_plugins, &err), WG_ECONFIG);
    cr_expect(strstr(err.text, "is too long with the folder of the config before it"), "%s", err.text);
}

/* What a --set says of a part is the --set's mistake; what a part says that a --set named is the part's. */
Test(config_parts, a_mistake_is_the_parts_or_the_sets)
{
    static const struct {
        const char *target, *set, *want;
    } cases[] = {
        { "\"@models/tiny\"", "target.threads=-1", "--set target.threads=-1: target.threads: expected" },
        { "{\"model\": \"x\"}", "target=@models/other", "models/other.json:3:3: unknown key \"threds\"" },
        { "\"@models/other\"", "target={\"model\": 7}", "--set target={\"model\": 7}: target.model: expected" },
        { "\"@models/tiny\"", "target=@models/nothing", "--set target=@models/nothing: target: no part" },
    };
    put_parts();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        wg_error err = { 0 };
        wg_config *c = NULL;
        snprintf(text, sizeof text, "{" REST ", \"target\": %s}", cases[i].target);
        put("config.json", text);
        cr_expect_eq(wg_config_open(&c, "config.json", &cases[i].set, 1, &wg_program_plugins, &err), WG_ECONFIG);
        cr_expect_eq(strncmp(err.text, cases[i].want, strlen(cases[i].want)), 0, "%s\ninstead of\n%s", err.text, cases[i].want);
        wg_config_close(c);
    }
}

#if WG_TREE_NODES == 64 /* the golden messages name the ranges of such trees */
/* Messages list the names of a whole table, or of the rules for a law; goldens have a word instead, so a new drafter or rule
 * changes none. */
static void name_list(char *text, const char *before, const char *list, const char *word)
{
    char whole[1200];
    const size_t n = (size_t)snprintf(whole, sizeof whole, "%s%s", before, list), kept = strlen(before);
    for (char *at; (at = strstr(text, whole));) {
        memmove(at + kept + strlen(word), at + n, strlen(at + n) + 1);
        memcpy(at + kept, word, strlen(word));
    }
}

static void name_lists(char *text)
{
    char drafters[1024] = "", rules[1024] = "", coupled[1024] = "";
    const wg_plugins *p = &wg_program_plugins;
    for (int i = 0; p->drafters[i]; i++) sprintf(drafters + strlen(drafters), "%s%s", i ? ", " : "", p->drafters[i]->name);
    for (int i = 0; p->verifiers[i]; i++) {
        const wg_verifier_class *v = p->verifiers[i];
        sprintf(rules + strlen(rules), "%s%s", i ? ", " : "", v->name);
        if (v->laws & WG_LAW_COUPLED)
            sprintf(coupled + strlen(coupled), "%s%s%s", *coupled ? ", " : "", v->name,
                    !v->lossless   ? " (lossy)"
                    : v->zero_only ? " (at temperature 0)"
                                   : "");
    }
    name_list(text, "expected one of: ", drafters, "@drafters@");
    name_list(text, "expected one of: ", rules, "@rules@");
    name_list(text, "choose one of: ", coupled, "@coupled_rules@");
}

/* The cases of tests/bad/config.txt. */
Test(config_parts, mistakes_are_explained)
{
    if (!getenv("WG_ROOT")) setenv("WG_ROOT", s.before, 1);
    transcript t = transcript_open("config");
    put_parts();
    for (int i = 0; i < t.n; i++) {
        transcript_case *of = &t.of[i];
        put("input.json", of->input);
        wg_error err = { 0 };
        wg_config *c = NULL;
        const wg_status status =
            wg_config_open(&c, "input.json", (const char *const *)of->set, of->sets, &wg_program_plugins, &err);
        cr_expect_eq(status, err.code, "%s", of->name);
        cr_expect(status == WG_ECONFIG || status == WG_EINVAL, "%s: accepted, or not a configuration error", of->name);
        cr_expect_null(c);
        strcat(err.text, "\n");
        name_lists(err.text);
        cr_expect_str_eq(err.text, of->message, "%s:\n%s\ninstead of\n%s", of->name, err.text, of->message);
        free(of->message);
        of->message = strdup(err.text);
    }
    cr_assert_geq(t.n, 15);
    transcript_close(&t);
}
#endif

/* Whatever allocation fails, the failure is reported and nothing leaks. */
Test(config_parts, survives_failing_allocations)
{
    put_parts();
    put("config.json", "{" REST ", \"target\": \"@models/tiny\", "
                       "\"sweep\": [{\"draft\": [{\"kind\": \"ngram\"}, \"@drafts/small\"]}, {\"batch\": [2]}]}");
    wg_status status = WG_ENOMEM;
    for (uint64_t nth = 1; status != WG_OK && nth < 2000; nth++) {
        wg_error err;
        wg_config *c = NULL;
        const size_t before = wg_mem_read().live_blocks;
        wg_mem_fail_at(nth, false);
        status = wg_config_open(&c, "config.json", NULL, 0, &wg_program_plugins, &err);
        wg_mem_fail_at(0, false);
        cr_assert_eq(status == WG_OK, c != NULL);
        wg_config_close(c);
        cr_assert_eq(wg_mem_read().live_blocks, before, "allocation %d", (int)nth);
    }
    cr_assert_eq(status, WG_OK);
}
