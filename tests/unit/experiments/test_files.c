/* SPDX-License-Identifier: MIT
 * The files that a run reads are found wherever a config names them, and distinguished by content. */
#include "experiments/config/input_files.h"

#include "core/base/mem.h"
#include "scene.h"

static scene s;
static void setup(void) { scene_make(&s); }
static void teardown(void) { scene_remove(&s); }
TestSuite(files, .init = setup, .fini = teardown);

#define WITH(draft)                                                                                                            \
    "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\"}, \"prompts\": {\"file\": \"prompts.jsonl\"}, "                 \
    "\"draft\": " draft "}"

static json_t *files_of(const char *text)
{
    wg_config *c = config_of(text);
    json_t *files = wg_files_json(c);
    wg_config_close(c);
    return files;
}

Test(files, every_place_that_names_one)
{
    static const struct {
        const char *draft, *file[4];
    } cases[] = {
        { "{\"kind\": \"none\"}", { NULL } },
        { "{\"kind\": \"ngram\"}", { NULL } },
        { "{\"kind\": \"model\", \"model\": \"draft.gguf\"}", { "draft.gguf" } },
        { "{\"kind\": \"model\", \"model\": \"draft.gguf\", \"prune\": \"a.json\"}", { "draft.gguf", "a.json" } },
        { "{\"kind\": \"model\", \"model\": \"draft.gguf\", \"grow\": \"file\", \"tree\": \"a b\"}", { "draft.gguf", "a b" } },
        { "{\"kind\": \"model\", \"model\": \"draft.gguf\", \"grow\": \"kary\", \"tree\": \"2-2\"}", { "draft.gguf" } },
        { "{\"kind\": \"retrieval\", \"datastore\": \"sub/c\"}", { "sub/c" } },
        { "{\"kind\": \"sam\", \"corpus\": \"a.json\"}", { "a.json" } },
        { "{\"kind\": \"sam\", \"corpus\": \"nowhere\"}", { NULL } },
        { "{\"kind\": \"sam\", \"corpus\": \"sub\"}", { NULL } }, /* a folder: opening it will say so */
        { "{\"kind\": \"plugin\", \"path\": \"sub/c\", \"options\": \"table=a.json;k=3\"}", { "sub/c", "a.json" } },
        { "{\"kind\": \"hybrid\", \"first\": \"ngram:k=4\", \"second\": \"model:model=draft.gguf;prune=a.json;tree=a b\"}",
          { "draft.gguf", "a.json", "a b" } },
        { "{\"kind\": \"best_of\", \"of\": \"ngram|{hybrid:first=sam:corpus=sub/c;second={model:model=draft.gguf;length=2}}\"}",
          { "sub/c", "draft.gguf" } },
        { "{\"kind\": \"process\", \"command\": \"python3 'sub/c' <a.json 2> \\\"a b\\\" >target\"}", { "sub/c", "a.json" } },
        { "{\"kind\": \"process\", \"command\": \"sub/c --list=a.json 2> log >> log\"}", { "sub/c", "a.json" } },
    };
    cr_assert_eq(mkdir("sub", 0700), 0);
    put("sub/c", "c"), put("a b", "ab"), put("a.json", "[]"), put("log", "written by what the command runs");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *files = files_of(WITH("{\"kind\": \"none\"}"));
        cr_assert_eq(json_object_size(files), 2);
        cr_assert(json_object_get(files, "target.gguf") && json_object_get(files, "prompts.jsonl"));
        json_decref(files);
        char text[700];
        snprintf(text, sizeof text, WITH("%s"), cases[i].draft);
        const size_t before = wg_mem_read().live_blocks;
        files = files_of(text);
        cr_assert_eq(wg_mem_read().live_blocks, before);
        size_t n = 0;
        for (; n < 4 && cases[i].file[n]; n++) {
            const char *hex = json_string_value(json_object_get(files, cases[i].file[n]));
            cr_expect(hex && strlen(hex) == WG_SHA256_HEX - 1, "%s: no %s", text, cases[i].file[n]);
        }
        char *all = json_dumps(files, 0);
        cr_expect_eq(json_object_size(files), 2 + n, "%s: %s", text, all);
        free(all);
        json_decref(files);
    }
}

/* A folder counts when it is a model's, by its files. */
Test(files, folders_of_models)
{
    cr_assert(mkdir("m", 0700) == 0 && mkdir("m/more.json", 0700) == 0);
    put("m/model.safetensors", "weights"), put("m/notes.txt", "");
    json_t *files = files_of(WITH("{\"kind\": \"sam\", \"corpus\": \"m\"}"));
    cr_assert_eq(json_object_size(files), 2);
    json_decref(files);
    put("m/config.json", "{}");
    files = files_of(WITH("{\"kind\": \"sam\", \"corpus\": \"m\"}"));
    const char *hex = json_string_value(json_object_get(files, "m/model.safetensors"));
    cr_assert(json_object_size(files) == 5 && hex && strlen(hex) == WG_SHA256_HEX - 1);
    cr_assert(json_is_string(json_object_get(files, "m/config.json")) && json_is_null(json_object_get(files, "m/more.json")));
    json_decref(files);
}

Test(files, told_apart_by_content)
{
    static const char text[] = WITH("{\"kind\": \"sam\", \"corpus\": \"a\"}");
    put("a", "one");
    json_t *one = files_of(text);
    put("a", "two");
    json_t *two = files_of(text);
    put("a", "one");
    json_t *again = files_of(text);
    cr_assert(json_equal(one, again) && !json_equal(one, two));
    json_decref(one), json_decref(two), json_decref(again);
}
