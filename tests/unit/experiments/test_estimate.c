/* SPDX-License-Identifier: MIT
 * Estimates before a run: memory from shapes, time from a probe; and the schema of a config. */
#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/run/estimate.h"
#include "experiments/run/runner.h"
#include "experiments/config/schema.h"
#include "scene.h"

static scene s;
static void setup(void) { scene_make(&s); }
static void teardown(void) { scene_remove(&s); }
TestSuite(estimate, .init = setup, .fini = teardown, .timeout = 60);

#define CONFIG(more)                                                                                                           \
    "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": \"prompts.jsonl\"}, " \
    "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 3}, \"max_tokens\": 24" more "}"

static double size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (double)st.st_size : -1;
}

/* The target: 2 layers, 1 kv head of 16; the draft: 1 layer. The longest prompt has 11 bytes, so 11 + 1 + 24 places of f16. */
Test(estimate, memory_by_hand)
{
    wg_config *c = config_of(CONFIG(", \"batch\": 2, \"sweep\": {\"draft.length\": [2, 3]}"));
    wg_memory m;
    wg_error err;
    cr_assert_eq(wg_estimate_memory(&m, c, &err), WG_OK, "%s", err.text);
    const double place = 2 * 1 * 16 * 2;
    cr_assert_eq(m.target, size_of("target.gguf"));
    cr_assert_eq(m.draft, 3 * size_of("draft.gguf"));
    cr_assert_eq(m.cache,
                 36 * 2 * place * (4 * 2 + 3 * 1)); /* baseline, two cells, teacher forcing of both; drafts but of the first */
    cr_assert_gt(m.disk, 9 * 24 * 10);
    wg_config_close(c);
    c = config_of(CONFIG(", \"batch\": 2, \"alpha\": false, \"sweep\": {\"draft.length\": [2, 3]}"));
    cr_assert_eq(wg_estimate_memory(&m, c, &err), WG_OK, "%s", err.text);
    cr_assert_eq(m.draft, 2 * size_of("draft.gguf"));
    cr_assert_eq(m.cache, 36 * 2 * place * (3 * 2 + 2 * 1));
    wg_config_close(c);
}

Test(estimate, a_probe_leaves_nothing_behind)
{
    wg_config *c = config_of(CONFIG(", \"repeats\": 20"));
    double few = 0, many = 0;
    wg_error err;
    const int before = dir_count(".");
    cr_assert_eq(wg_estimate_time(&few, c, "config.json", NULL, 0, &err), WG_OK, "%s", err.text);
    wg_config_close(c);
    c = config_of(CONFIG(", \"repeats\": 10000"));
    cr_assert_eq(wg_estimate_time(&many, c, "config.json", NULL, 0, &err), WG_OK, "%s", err.text);
    wg_config_close(c);
    cr_assert_gt(few, 0);
    cr_assert_gt(many, 20 * few, "%g s of 20 repeats, %g s of 10000", few, many);
    cr_assert_eq(dir_count("."), before);
    c = config_of(CONFIG(", \"sweep\": {\"max_tokens\": [8, 16]}"));
    cr_assert_eq(wg_estimate_time(&few, c, "config.json", NULL, 0, &err), WG_EUNSUPPORTED);
    cr_assert(strstr(err.text, "the sweep sets what a probe makes smaller"), "%s", err.text);
    wg_config_close(c);
}

/* Every option of every table is in the schema, with its range, and may be swept. */
Test(estimate, schema_has_every_option)
{
    json_t *schema = wg_config_schema(&wg_program_plugins), *defs = json_object_get(schema, "$defs"),
           *properties = json_object_get(schema, "properties"),
           *axes = json_object_get(json_object_get(defs, "grid"), "properties");
    char name[200];
    for (int i = 0; wg_program_plugins.drafters[i]; i++) {
        const wg_drafter_class *d = wg_program_plugins.drafters[i];
        snprintf(name, sizeof name, "draft.%s", d->name);
        const json_t *options = json_object_get(json_object_get(defs, name), "properties");
        cr_assert(json_is_object(options), "%s", name);
        for (const wg_option *o = d->options; o && o->name; o++) {
            const json_t *v = json_object_get(options, o->name);
            cr_assert(v, "%s.%s", d->name, o->name);
            if (o->type == WG_OPT_INT && o->max > 0) cr_assert_eq(json_number_value(json_object_get(v, "maximum")), o->max);
            snprintf(name, sizeof name, "draft.%s", o->name);
            cr_assert(json_object_get(axes, name), "%s cannot be swept", name);
        }
    }
    for (int i = 0; wg_program_plugins.verifiers[i]; i++) {
        snprintf(name, sizeof name, "verify.%s", wg_program_plugins.verifiers[i]->name);
        cr_assert(json_is_object(json_object_get(defs, name)), "%s", name);
    }
    for (const wg_config_section *section = wg_config_sections; section->name; section++)
        if (*section->name)
            cr_assert(json_object_get(properties, section->name) && json_object_get(axes, section->name), "%s", section->name);
    cr_assert_null(json_object_get(axes, "repeats"), "of all cells at once");
    /* A number with words for some of its values is either. */
    const json_t *prompts = json_array_get(json_object_get(json_object_get(properties, "prompts"), "anyOf"), 0);
    const json_t *turns = json_object_get(json_object_get(prompts, "properties"), "turns");
    json_t *want = json_pack("[{s:s}, {s:[s,s]}]", "type", "integer", "enum", "all", "first");
    cr_assert(json_equal(json_object_get(turns, "anyOf"), want) && !json_object_get(turns, "type"));
    cr_assert_eq(json_number_value(json_object_get(turns, "maximum")), WG_TURNS_MAX);
    json_decref(want);
    json_decref(schema);
}
