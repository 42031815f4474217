/* SPDX-License-Identifier: MIT
 * Configs: resolution, sweeps, overrides, and every golden mistake under tests/bad/config-*. */
#include <glob.h>
#include <sys/stat.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "draft/draft.h"
#include "scene.h"
#include "verify/verify.h"

static scene s;
static void setup(void) { scene_make(&s); }
static void teardown(void) { scene_remove(&s); }
TestSuite(config, .init = setup, .fini = teardown);

#define BASE "\"name\": \"t\", \"target\": {\"model\": \"target.gguf\"}, \"prompts\": {\"file\": \"prompts.jsonl\"}"
#define MODEL "{\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": %d}"

static json_t *at(const wg_config *c, int cell, const char *key) { return json_object_get(c->cell[cell].swept, key); }

Test(config, defaults_are_plain_decoding)
{
    wg_config *c = config_of("{" BASE "}");
    cr_assert_eq(c->n, 1);
    cr_assert_eq(c->groups, 1);
    cr_assert_str_eq(c->cell[0].drafter->name, "none");
    cr_assert_str_eq(c->cell[0].verifier->name, "rejection");
    cr_assert_eq(c->cell[0].top.max_tokens, 128);
    cr_assert_eq(c->dataset[c->cell[0].dataset]->n, 3);
    cr_assert_eq(json_object_size(c->cell[0].swept), 0);
    wg_config_close(c);
}

Test(config, a_sweep_is_the_product_of_its_lists)
{
    wg_config *c = config_of("{" BASE ", \"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\"},"
                             "\"sweep\": {\"verify.rule\": [\"match\", \"rejection\"], \"sampling.temperature\": [0, 0.5], "
                             "\"draft.length\": [1, 2, 3]}}");
    cr_assert_eq(c->n, 12);
    cr_assert_eq(c->groups, 2); /* temperatures */
    for (int i = 0; i < c->n; i++) {
        cr_assert_eq(json_integer_value(at(c, i, "draft.length")), 1 + i / 4);
        cr_assert_eq(json_number_value(at(c, i, "sampling.temperature")), i / 2 % 2 ? 0.5 : 0);
        cr_assert_eq(c->cell[i].sampling.temperature, i / 2 % 2 ? 0.5 : 0);
        cr_assert_str_eq(c->cell[i].verifier->name, i % 2 ? "rejection" : "match");
        cr_assert_eq(c->cell[i].group, i / 2 % 2);
        const wg_option *row = wg_option_find(c->cell[i].drafter->options, "length");
        cr_assert_eq(*(int *)((char *)c->cell[i].draft + row->at), 1 + i / 4);
    }
    wg_config_close(c);
}

/* A drafter without a length is the only one of `auto`, in cells and in the resolved config, which reads as the same
 * experiment. A named length, siblings that composites refuse, and a sweep of single options leave it as it is. */
Test(config, a_drafter_without_a_length_runs_under_auto)
{
    static const char *const by_itself[][2] = {
        { "\"draft\": {\"kind\": \"ngram\"}", "ngram" },
        { "\"draft\": {\"kind\": \"ngram\", \"n_max\": 2}", "ngram:n_max=2" },
        { "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"p_min\": 0.25}",
          "model:model=draft.gguf;length=8;p_min=0.25" },
        { "\"sweep\": {\"draft\": [{\"kind\": \"suffix\"}], \"sampling.temperature\": [0, 1]}", "suffix" },
    };
    static const char *const as_named[] = {
        "\"draft\": {\"kind\": \"ngram\", \"k\": 3}",
        "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"tree\": \"2-1\"}",
        "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"siblings\": \"coupled\"}, \"verify\": {\"rule\": "
        "\"match\"}",
        "\"draft\": {\"kind\": \"ngram\"}, \"sweep\": {\"draft.n_max\": [2, 3]}",
        "\"draft\": {\"kind\": \"best_of\", \"of\": \"ngram|suffix\"}",
    };
    char text[900];
    for (size_t i = 0; i < sizeof by_itself / sizeof *by_itself; i++) {
        snprintf(text, sizeof text, "{" BASE ", %s}", by_itself[i][0]);
        wg_config *c = config_of(text);
        const wg_option *of = wg_option_find(c->cell[0].drafter->options, "of");
        cr_assert_str_eq(c->cell[0].drafter->name, "auto", "%s", text);
        cr_assert_str_eq((const char *)c->cell[0].draft + of->at, by_itself[i][1]);
        cr_assert_eq(strncmp(wg_cell_lone(&c->cell[0]).class->name, by_itself[i][1], strcspn(by_itself[i][1], ":")), 0);
        char *again = wg_json_canonical(c->resolved, true);
        wg_config *b = config_of(again);
        cr_assert_str_eq(b->sha256, c->sha256, "%s", again);
        wg_free(again);
        wg_config_close(b);
        wg_config_close(c);
    }
    for (size_t i = 0; i < sizeof as_named / sizeof *as_named; i++) {
        snprintf(text, sizeof text, "{" BASE ", %s}", as_named[i]);
        wg_config *c = config_of(text);
        cr_assert_str_neq(c->cell[0].drafter->name, "auto", "%s", text);
        cr_assert_eq(wg_cell_lone(&c->cell[0]).class, c->cell[0].drafter);
        wg_config_close(c);
    }
    cr_assert(wg_names_length(&wg_drafter_model, "model:model=x,length=3") &&
              !wg_names_length(&wg_drafter_model, "model:model=length=3"));
}

Test(config, a_section_can_be_swept_whole)
{
    wg_config *c =
        config_of("{" BASE ", \"sweep\": {\"draft\": [{\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 2},"
                  "{\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 3}, {\"kind\": \"ngram\", \"k\": 5}]}}");
    cr_assert_eq(c->n, 3);
    cr_assert_eq(c->groups, 1);
    cr_assert_str_eq(json_string_value(at(c, 1, "draft.kind")), "model");
    cr_assert_eq(json_integer_value(at(c, 1, "draft.length")), 3);
    cr_assert_null(at(c, 1, "draft.model"), "all that have a model have the same");
    cr_assert_str_eq(json_string_value(at(c, 2, "draft.kind")), "ngram");
    cr_assert_eq(json_object_size(c->cell[2].swept), 1);
    wg_config_close(c);
}

/* A cascade has an option called rule; it distinguishes a drafter from others of its kind only. */
Test(config, a_section_is_told_by_its_own_name)
{
    wg_config *c = config_of("{" BASE ", \"sweep\": {\"draft\": [{\"kind\": \"cascade\", \"model\": \"draft.gguf\"}, "
                             "{\"kind\": \"ngram\"}], \"verify\": [{\"rule\": \"match\"}, {\"rule\": \"rejection\"}]}}");
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(json_object_size(c->cell[i].swept), 2);
        cr_assert(at(c, i, "draft.kind") && at(c, i, "verify.rule"));
    }
    wg_config_close(c);
}

Test(config, an_option_refines_a_swept_section)
{
    wg_config *c =
        config_of("{" BASE ", \"sweep\": {\"draft.k\": [2, 3],"
                  "\"draft\": [{\"kind\": \"ngram\", \"k\": 9, \"n_max\": 5}, {\"kind\": \"ngram\", \"n_max\": 4}]}}");
    cr_assert_eq(c->n, 4);
    for (int i = 0; i < 4; i++) {
        const json_t *draft = json_object_get(c->cell[i].config, "draft");
        cr_assert_eq(json_integer_value(json_object_get(draft, "k")), 2 + i % 2);
        cr_assert_eq(json_integer_value(json_object_get(draft, "n_max")), 5 - i / 2);
    }
    wg_config_close(c);
}

/* What does not fit all values of a key gets a grid of its own: cells one behind the other, baselines shared. */
Test(config, a_sweep_may_be_several_grids)
{
    wg_config *c = config_of("{" BASE ", \"sampling\": {\"temperature\": 1}, \"sweep\": ["
                             "{\"sampling.temperature\": [0, 1], \"draft\": [{\"kind\": \"ngram\", \"k\": 3}, "
                             "{\"kind\": \"ngram\", \"k\": 5}]},"
                             "{},"
                             "{\"verify.rule\": [\"match\", \"greedy\"], \"draft\": [{\"kind\": \"synthetic\"}]}]}");
    static const struct {
        const char *kind, *rule;
        int k;
        double temperature;
        int group;
    } want[] = {
        { "ngram", "rejection", 3, 0, 0 },  { "ngram", "rejection", 3, 1, 1 }, { "ngram", "rejection", 5, 0, 0 },
        { "ngram", "rejection", 5, 1, 1 },  { "none", "rejection", 0, 1, 1 },  { "synthetic", "match", 4, 1, 1 },
        { "synthetic", "greedy", 4, 1, 1 },
    };
    cr_assert_eq(c->n, 7);
    cr_assert_eq(c->groups, 2);
    for (int i = 0; i < 7; i++) {
        const wg_cell *cell = &c->cell[i];
        const json_t *draft = json_object_get(cell->config, "draft");
        cr_expect_str_eq(cell->drafter->name, want[i].kind, "%d", i);
        cr_expect_str_eq(cell->verifier->name, want[i].rule, "%d", i);
        cr_expect_eq(json_integer_value(json_object_get(draft, "k")), want[i].k, "%d", i);
        cr_expect_eq(cell->sampling.temperature, want[i].temperature, "%d", i);
        cr_expect_eq(cell->group, want[i].group, "%d", i);
    }
    cr_assert_str_eq(json_string_value(at(c, 5, "draft.kind")), "synthetic", "told from those of other grids");
    cr_assert_str_eq(json_string_value(at(c, 5, "verify.rule")), "match");
    cr_assert(json_integer_value(at(c, 2, "draft.k")) == 5 && !at(c, 2, "verify.rule"));
    cr_assert_eq(json_object_size(c->cell[4].swept), 0);
    wg_config_close(c);
}

/* What is written to config.json is a config of the same experiment: same digest, same cells. */
Test(config, resolving_is_idempotent)
{
    static const char *const texts[] = {
        "{" BASE "}",
        "{" BASE ", \"draft\": {\"kind\": \"ngram\"}, \"sampling\": {\"temperature\": 1}, \"sweep\": "
        "{\"sampling.temperature\": [0, 1, 0.3]}}",
        "{" BASE ", \"sweep\": {\"draft\": [{\"kind\": \"ngram\"}, {\"kind\": \"none\"}], \"batch\": [1, 2]}}",
        "{" BASE
        ", \"sweep\": {\"draft\": [{\"kind\": \"ngram\", \"k\": 8}, {\"kind\": \"ngram_cache\"}, {\"kind\": \"ngram\"}, "
        "{\"kind\": \"ngram\", \"k\": 3}]}}",
        "{" BASE ", \"draft\": {\"model\": \"draft.gguf\"}, \"sweep\": {\"draft.kind\": [\"model\"]}}",
        "{" BASE ", \"sweep\": [{\"draft\": [{\"kind\": \"ngram\"}]}, {}, {\"draft\": [{\"kind\": \"sam\"}], "
        "\"batch\": [1, 2]}]}",
        "{" BASE ", \"sweep\": [{}]}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        wg_config *a = config_of(texts[i]);
        char *text = wg_json_canonical(a->resolved, true);
        wg_config *b = config_of(text);
        cr_assert_str_eq(a->sha256, b->sha256, "case %zu: %s", i, text);
        cr_assert_eq(a->n, b->n);
        for (int k = 0; k < a->n; k++)
            cr_assert(json_equal(a->cell[k].config, b->cell[k].config) && json_equal(a->cell[k].swept, b->cell[k].swept));
        wg_free(text);
        wg_config_close(a);
        wg_config_close(b);
    }
}

Test(config, digest_ignores_spelling_not_content)
{
    wg_config *a = config_of("{" BASE ", \"sampling\": {\"temperature\": 0}, \"seed\": 1}");
    wg_config *b = config_of("{\"seed\": 1, " BASE "}");
    wg_config *c = config_of("{\"seed\": 2, " BASE "}");
    wg_config *d = config_of("{\"sampling\": {\"temperature\": 0.0}, \"seed\": 1, " BASE "}");
    cr_assert_str_eq(a->sha256, d->sha256);
    static const char *const set = "target={\"//\": 1, \"model\": \"target.gguf\"}";
    static const char commented[] = "{\"//\": \"of the file\", \"// seed\": [\"usual\"], \"seed\": 1, \"target\": {\"// why\": "
                                    "{\"a\": 1}, \"model\": \"target.gguf\"}, \"name\": \"t\", \"prompts\": {\"//\": null, "
                                    "\"file\": \"prompts.jsonl\"}, \"sweep\": {\"// one\": 1}}";
    wg_config *e = config_of(commented), *f;
    wg_error err = { 0 };
    cr_assert_str_eq(a->sha256, e->sha256);
    cr_assert_eq(wg_config_open(&f, "config.json", &set, 1, &wg_program_plugins, &err), WG_OK, "%s", err.text);
    cr_assert_str_eq(a->sha256, f->sha256);
    wg_config_close(e);
    wg_config_close(f);
    cr_assert_str_neq(b->sha256, c->sha256);
    cr_assert_eq(strncmp(a->hash, a->sha256, 12), 0);
    wg_config_close(a);
    wg_config_close(b);
    wg_config_close(c);
    wg_config_close(d);
}

Test(config, overrides_win_and_are_resolved)
{
    static const char *const set[] = { "draft.kind=ngram", "draft.k=3", "sampling.temperature=0.25", "name=other" };
    wg_error err;
    wg_config *c;
    put("config.json", "{" BASE ", \"sampling\": {\"temperature\": 1}}");
    cr_assert_eq(wg_config_open(&c, "config.json", set, 4, &wg_program_plugins, &err), WG_OK, "%s", err.text);
    cr_assert_str_eq(c->top.name, "other");
    cr_assert_str_eq(c->cell[0].drafter->name, "ngram");
    cr_assert_eq(c->cell[0].sampling.temperature, 0.25);
    cr_assert_eq(json_integer_value(json_object_get(json_object_get(c->resolved, "draft"), "k")), 3);
    wg_config_close(c);
}

/* It reaches into the objects that the sweep has for the section; what it cannot set there is its own mistake. */
Test(config, an_override_reaches_into_swept_sections)
{
    static const char *const text =
        "{" BASE ", \"sweep\": [{\"draft\": [{\"kind\": \"ngram\", \"k\": 2}, {\"kind\": \"ngram\"}]},\n"
        "{\"draft\": [{\"kind\": \"ngram\", \"k\": 7}]}]}";
    static const char *const set[] = { "draft.k=3", "draft.policy=cost" };
    wg_error err = { 0 };
    wg_config *c = NULL;
    put("config.json", text);
    cr_assert_eq(wg_config_open(&c, "config.json", set, 2, &wg_program_plugins, &err), WG_OK, "%s", err.text);
    cr_assert_eq(c->n, 3);
    for (int i = 0; i < c->n; i++) {
        const json_t *draft = json_object_get(c->cell[i].config, "draft");
        cr_assert_eq(json_integer_value(json_object_get(draft, "k")), 3);
        cr_assert_str_eq(json_string_value(json_object_get(draft, "policy")), "cost");
    }
    wg_config_close(c);
    static const char *const bad[] = { "draft.k=many", "draft.budget=4" };
    cr_assert_eq(wg_config_open(&c, "config.json", bad, 2, &wg_program_plugins, &err), WG_ECONFIG);
    static const char *const said =
        "--set draft.k=many: draft.k: expected integer 1..63, got text \"many\"\n"
        "--set draft.budget=4: unknown key \"budget\" in \"draft\" of drafter \"ngram\"; known: kind";
    cr_assert(!strncmp(err.text, said, strlen(said)) && !strchr(err.text + strlen(said), '\n'), "%s", err.text); /* each once */
    static const char *const gone[] = { "draft.k=many", "sweep={\"draft\": [{\"kind\": \"none\"}]}",
                                        "draft={\"kind\": \"none\"}" };
    cr_assert_eq(wg_config_open(&c, "config.json", gone, 2, &wg_program_plugins, &err), WG_ECONFIG);
    cr_assert_eq(wg_config_open(&c, "config.json", gone, 3, &wg_program_plugins, &err), WG_ECONFIG);
    cr_assert(strstr(err.text, "--set draft={\"kind\": \"none\"}: the sweep sets \"draft\"; --set sweep={} drops the sweep"),
              "%s", err.text);
}

Test(config, which_cells_repeat_plain_decoding)
{
    static const struct {
        const char *rule;
        double temperature;
        bool lossless, repeats;
    } cases[] = {
        { "match", 0, true, true },      { "match", 1, true, true },  { "rejection", 0, true, true },
        { "rejection", 1, true, false }, { "greedy", 0, true, true }, { "greedy", 1, false, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "{" BASE ", \"verify\": {\"rule\": \"%s\"}, \"sampling\": {\"temperature\": %g}}",
                 cases[i].rule, cases[i].temperature);
        wg_config *c = config_of(text);
        cr_assert_eq(wg_cell_lossless(&c->cell[0]), cases[i].lossless, "%s", text);
        cr_assert_eq(wg_cell_repeats_plain(&c->cell[0]), cases[i].repeats, "%s", text);
        wg_config_close(c);
    }
}

/* Nor does a rule help where the target does not keep the Prefix Law. */
Test(config, no_cell_of_a_fast_device_is_lossless)
{
    wg_config *c = config_of("{" BASE ", \"verify\": {\"rule\": \"match\"}, \"sweep\": {\"target.device\": "
                             "[\"cuda:0\", \"cuda:1/fast/eager\", \"cuda:0/exact\"]}}");
    cr_assert_eq(c->n, 3);
    for (int i = 0; i < c->n; i++) {
        cr_assert_eq(wg_cell_lossless(&c->cell[i]), i != 1);
        cr_assert_eq(wg_cell_repeats_plain(&c->cell[i]), i != 1);
    }
    cr_assert_str_eq(wg_config_fast(c), "cuda:1/fast/eager");
    wg_config_close(c);
    c = config_of("{" BASE "}");
    cr_assert_null(wg_config_fast(c));
    wg_config_close(c);
}

/* A drafter and a rule that do not fit: refused, with the rules that do. */
Test(config, rules_must_know_the_drafters_law)
{
    static wg_verifier_class narrow;
    narrow = wg_verifier_match;
    narrow.name = "narrow";
    narrow.laws = WG_LAW_IID;
    const wg_verifier_class *const rules[] = { &narrow, &wg_verifier_match, NULL };
    const wg_plugins plugins = { wg_drafters, rules };
    wg_error err = { 0 };
    wg_config *c = NULL;
    put("config.json", "{" BASE ",\n\"draft\": {\"kind\": \"ngram\"},\n\"verify\": {\"rule\": \"narrow\"}}");
    cr_assert_eq(wg_config_open(&c, "config.json", NULL, 0, &plugins, &err), WG_ECONFIG);
    cr_assert(strstr(err.text, "config.json:3:20: verify.rule: drafter ngram"), "%s", err.text);
    cr_assert(strstr(err.text, "choose one of: match"), "%s", err.text);
}

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
Test(config, a_named_part_is_its_object)
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
    cr_expect_eq(c->cell[0].target.threads, 3);
    wg_config_close(c);

    put("config.json", "{" REST ", \"target\": {\"model\": \"nowhere\"}}");
    cr_assert_eq(wg_config_open(&c, "config.json", set, 3, &wg_program_plugins, &err), WG_OK, "%s", err.text);
    cr_expect_eq(c->cell[0].target.threads, 2);
    cr_expect_str_eq(c->cell[0].drafter->name, "model");
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

Test(config, paths_are_relative_to_the_file)
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
        else cr_expect_str_eq(b->cell[0].target.model, "link/../../target.gguf");
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
Test(config, paths_of_the_working_directory_are_refused)
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
Test(config, a_mistake_is_the_parts_or_the_sets)
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

Test(config, requests_of_a_cell_have_an_end)
{
    FILE *f = fopen("many.jsonl", "w");
    wg_error err;
    wg_config *c = NULL;
    for (int i = 0; i < 1700; i++) fputs("{\"prompt\": \"a\"}\n", f);
    fclose(f);
    put("config.json", "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\"}, \"prompts\": {\"file\": \"many.jsonl\"}, "
                       "\"repeats\": 10000}");
    cr_assert_eq(wg_config_open(&c, "config.json", NULL, 0, &wg_program_plugins, &err), WG_ECONFIG);
    cr_assert(strstr(err.text, "repeats: 1700 prompts x 10000 repeats are more than 16777216 requests of a cell"), "%s",
              err.text);
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

/* tests/bad/config-<what>/{input.json, error}; `set` has a --set a line. WG_UPDATE=1 rewrites the errors, to be reviewed with
 * git diff. */
Test(config, mistakes_are_explained)
{
    char pattern[1100], path[1200];
    const char *root = getenv("WG_ROOT");
    snprintf(pattern, sizeof pattern, "%s/tests/bad/config-*", root ? root : s.before);
    glob_t g;
    cr_assert_eq(glob(pattern, 0, NULL, &g), 0, "no cases at %s", pattern);
    put_parts();
    for (size_t i = 0; i < g.gl_pathc; i++) {
        const char *set[8];
        int n_set = 0;
        snprintf(path, sizeof path, "%s/input.json", g.gl_pathv[i]);
        char *input = file_read(path, NULL);
        snprintf(path, sizeof path, "%s/set", g.gl_pathv[i]);
        char *sets = file_read(path, NULL);
        for (char *line = sets ? strtok(sets, "\n") : NULL; line && n_set < 8; line = strtok(NULL, "\n")) set[n_set++] = line;
        snprintf(path, sizeof path, "%s/error", g.gl_pathv[i]);
        cr_assert_not_null(input, "%s", g.gl_pathv[i]);
        put("input.json", input);
        wg_error err = { 0 };
        wg_config *c = NULL;
        const wg_status status = wg_config_open(&c, "input.json", set, n_set, &wg_program_plugins, &err);
        cr_expect_eq(status, err.code, "%s", path);
        cr_expect(status == WG_ECONFIG || status == WG_EINVAL, "%s: accepted, or not a configuration error", path);
        cr_expect_null(c);
        strcat(err.text, "\n");
        name_lists(err.text);
        if (getenv("WG_UPDATE")) put(path, err.text);
        char *golden = file_read(path, NULL);
        cr_expect_str_eq(err.text, golden ? golden : "", "%s:\n%s\ninstead of\n%s", path, err.text,
                         golden ? golden : "(nothing)");
        free(golden);
        free(sets);
        free(input);
    }
    cr_assert_geq(g.gl_pathc, 15);
    globfree(&g);
}
#endif

/* What stands for prompts that are not the repository's. */
static const char *const own_prompts = "prompts={\"file\": \"configs/prompts/quickstart.jsonl\"}";

/* Whether an error only misses models that results/run-all.sh makes under build before it runs the config. */
static bool awaits_its_models(const wg_error *err)
{
    for (const char *line = err->text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        const char *missing = strstr(line, "no such file: \"build/"), *end = strchr(line, '\n');
        if (!missing || (end && missing > end)) return false;
    }
    return err->text[0];
}

/* What the repository ships runs as it stands, from the repository's root. */
Test(config, shipped_experiments_are_valid)
{
    glob_t g;
    const char *root = getenv("WG_ROOT");
    if (chdir(root ? root : s.before)) cr_assert_fail();
    cr_assert_eq(glob("configs/experiments/*.json", 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        wg_error err;
        wg_config *c = NULL;
        if (wg_config_open(&c, g.gl_pathv[i], &own_prompts, !getenv("WG_SHARED"), &wg_program_plugins, &err)) {
            cr_assert(awaits_its_models(&err), "%s", err.text);
            continue;
        }
        cr_assert(*c->top.question, "%s asks nothing", g.gl_pathv[i]);
        wg_config_close(c);
    }
    globfree(&g);
}

/* Whatever allocation fails, the failure is reported and nothing leaks. */
Test(config, survives_failing_allocations)
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
