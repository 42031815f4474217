/* SPDX-License-Identifier: MIT
 * Configs: resolution, sweeps, overrides, and those that the repository ships. */
#include <glob.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "draft/draft.h"
#include "draft/open.h"
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
    cr_assert_str_eq(c->cell[0].setup.drafter->name, "none");
    cr_assert_str_eq(c->cell[0].setup.verifier->name, "rejection");
    cr_assert_eq(c->cell[0].setup.top.max_tokens, 128);
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
        cr_assert_eq(c->cell[i].setup.sampling.temperature, i / 2 % 2 ? 0.5 : 0);
        cr_assert_str_eq(c->cell[i].setup.verifier->name, i % 2 ? "rejection" : "match");
        cr_assert_eq(c->cell[i].group, i / 2 % 2);
        const wg_option *row = wg_option_find(c->cell[i].setup.drafter->options, "length");
        cr_assert_eq(*(int *)((char *)c->cell[i].setup.draft + row->at), 1 + i / 4);
    }
    wg_config_close(c);
}

/* A drafter that is named runs as itself, in cells and in the resolved config, with a length and without. */
Test(config, a_named_drafter_runs_as_itself)
{
    static const char *const named[][2] = {
        { "\"draft\": {\"kind\": \"ngram\"}", "ngram" },
        { "\"draft\": {\"kind\": \"suffix\", \"p_min\": 0.2}", "suffix" },
        { "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\"}", "model" },
        { "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 3}", "model" },
        { "\"sweep\": {\"draft\": [{\"kind\": \"sam\"}], \"sampling.temperature\": [0, 1]}", "sam" },
        { "\"sweep\": {\"draft.kind\": [\"recycle\"]}", "recycle" },
        { "\"draft\": {\"kind\": \"best_of\", \"of\": \"ngram|suffix\"}", "best_of" },
        { "\"draft\": {\"kind\": \"auto\", \"of\": \"ngram\"}", "auto" },
    };
    char text[900];
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        snprintf(text, sizeof text, "{" BASE ", %s}", named[i][0]);
        wg_config *c = config_of(text);
        cr_assert_str_eq(c->cell[0].setup.drafter->name, named[i][1], "%s", text);
        cr_assert_str_eq(json_string_value(json_object_get(json_object_get(c->cell[0].config, "draft"), "kind")), named[i][1]);
        const char *lone = strcmp(named[i][1], "auto") ? named[i][1] : "ngram";
        cr_assert_str_eq(wg_cell_lone(&c->cell[0]).class->name, lone);
        char *again = wg_json_canonical(c->resolved, true);
        wg_config *b = config_of(again);
        cr_assert_str_eq(b->sha256, c->sha256, "%s", again);
        wg_free(again);
        wg_config_close(b);
        wg_config_close(c);
    }
}

/* What -d FILE alone is, and what every page, table and log calls it. */
Test(config, a_lone_draft_model_is_auto)
{
    static const struct {
        const char *spec, *title;
    } named[] = {
        { "ngram:k=3", "ngram" },
        { "auto:of=model:model={a;b|c.gguf};length=8", "auto (model)" },
        { "auto:of=ngram|{best_of:of={suffix|sam:k=2}}|model:model=x", "auto (ngram, best_of, model)" },
        { "hybrid:first=ngram,second=suffix", "hybrid" },
    };
    wg_drafter_choice c;
    wg_error err;
    char text[WG_OPTION_STRING];
    cr_assert_eq(wg_choose_auto("a;b|c.gguf", &c, &err), WG_OK, "%s", err.text);
    cr_assert_str_eq(wg_drafter_title(c.class, c.options, text, sizeof text), "auto (model)");
    cr_assert_str_eq((const char *)c.options + wg_option_find(c.class->options, "of")->at, "model:model={a;b|c.gguf};length=8");
    wg_choice_close(&c);
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        cr_assert_eq(wg_choose_drafter(named[i].spec, &c, &err), WG_OK, "%s", err.text);
        cr_assert_str_eq(wg_drafter_title(c.class, c.options, text, sizeof text), named[i].title);
        char cut[8];
        snprintf(cut, sizeof cut, "%s", named[i].title);
        cr_assert_str_eq(wg_drafter_title(c.class, c.options, text, sizeof cut), cut);
        wg_choice_close(&c);
    }
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
        cr_expect_str_eq(cell->setup.drafter->name, want[i].kind, "%d", i);
        cr_expect_str_eq(cell->setup.verifier->name, want[i].rule, "%d", i);
        cr_expect_eq(json_integer_value(json_object_get(draft, "k")), want[i].k, "%d", i);
        cr_expect_eq(cell->setup.sampling.temperature, want[i].temperature, "%d", i);
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
    cr_assert_str_eq(c->cell[0].setup.drafter->name, "ngram");
    cr_assert_eq(c->cell[0].setup.sampling.temperature, 0.25);
    cr_assert_eq(json_integer_value(json_object_get(json_object_get(c->resolved, "draft"), "k")), 3);
    wg_config_close(c);
}

/* A number of a command line is the text of a text option; in a file it is a mistake. */
Test(config, a_number_for_a_text)
{
    static const char *const set[] = { "draft={\"kind\":\"auto\",\"of\":\"ngram\"}", "draft.costs=1.5", "name=12" };
    wg_error err;
    wg_config *c;
    put("config.json", "{" BASE "}");
    cr_assert_eq(wg_config_open(&c, "config.json", set, 3, &wg_program_plugins, &err), WG_OK, "%s", err.text);
    cr_assert_str_eq(c->top.name, "12");
    cr_assert_str_eq(json_string_value(json_object_get(json_object_get(c->resolved, "draft"), "costs")), "1.5");
    wg_config_close(c);
    put("config.json", "{" BASE ", \"question\": 5}");
    cr_assert_eq(wg_config_open(&c, "config.json", NULL, 0, &wg_program_plugins, &err), WG_ECONFIG);
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
        cr_assert_eq(wg_setup_lossless(&c->cell[0].setup), cases[i].lossless, "%s", text);
        cr_assert_eq(wg_setup_repeats_plain(&c->cell[0].setup), cases[i].repeats, "%s", text);
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
        cr_assert_eq(wg_setup_lossless(&c->cell[i].setup), i != 1);
        cr_assert_eq(wg_setup_repeats_plain(&c->cell[i].setup), i != 1);
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

/* What stands for prompts that are not the repository's. */
static const char *const own_prompts = "prompts={\"file\": \"configs/prompts/quickstart.jsonl\"}";

/* Whether an error only misses models that results/run-all.sh makes under build before it runs the config, or that `wager pull`
 * fetches. Indented lines quote the config, and the last one of a long message counts what it leaves out. */
static bool awaits_its_models(const wg_error *err)
{
    for (const char *line = err->text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        const char *missing = strstr(line, "no such file: \"build/"), *end = strchr(line, '\n');
        if (line > err->text && (*line == ' ' || (!end && !strncmp(line, "... and ", 8)))) continue;
        if (!missing) missing = strstr(line, ": this model is not on this machine; fetch it (");
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
