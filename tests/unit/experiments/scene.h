/* SPDX-License-Identifier: MIT
 * A folder with a tiny pair of models and prompt files, which is the working directory. Include once per test program. */
#ifndef WG_TESTS_SCENE_H
#define WG_TESTS_SCENE_H

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdarg.h>

#include "core/file/synth.h"
#include "experiments/config/config.h"
#include "core/setup/spec.h"
#include "kernels/types.h"
#include "tests/temp.h"

typedef struct scene {
    temp t;
    char before[1024];
} scene;

/* Three lines of prompts; the second one is longer than the models' context of 64 tokens. */
#define SCENE_PROMPTS                                                                                                          \
    "{\"id\": \"cat\", \"prompt\": \"The cat sat\"}\n"                                                                         \
    "{\"id\": \"long\", \"prompt\": \"0123456789012345678901234567890123456789012345678901234567890123456789\"}\n"             \
    "{\"id\": \"dog\", \"prompt\": \"abababab\"}\n"

static inline void put(const char *file, const char *text) { file_write(file, text, strlen(text)); }

static const wg_synth_shape scene_draft = {
    .name = "draft", .layers = 1, .dim = 32, .heads = 2, .kv_heads = 1, .hidden = 32, .vocab = 320, .context = 64, .tied = true
};

static inline void scene_make(scene *s)
{
    wg_synth_shape target = scene_draft;
    target.name = "target", target.layers = 2, target.hidden = 64;
    wg_error err;
    temp_make(&s->t);
    if (!getcwd(s->before, sizeof s->before) || chdir(s->t.dir)) abort();
    cr_assert_eq(wg_synth_write(&target, WG_F32, 1, "target.gguf", &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_synth_write(&scene_draft, WG_F32, 2, "draft.gguf", &err), WG_OK, "%s", err.text);
    put("prompts.jsonl", "{\"id\": \"a\", \"category\": \"x\", \"prompt\": \"The cat sat\"}\n"
                         "\n"
                         "{\"question_id\": 7, \"category\": \"y\", \"turns\": [\"A dog ran\", \"and then\"]}\n"
                         "{\"prompt\": \"abababab\"}\n");
    put("empty.jsonl", "{\"prompt\": \"fine\"}\n{\"prompt\": \"\"}\n");
}

static inline int scene_unlink(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)st, (void)type, (void)f;
    return remove(path);
}

static inline void scene_remove(scene *s)
{
    if (chdir(s->before)) abort();
    nftw(s->t.dir, scene_unlink, 8, FTW_DEPTH | FTW_PHYS);
}

/* Opens a config from its text; fails the test when it is not valid. */
static inline wg_config *config_of(const char *text)
{
    wg_error err;
    wg_config *c = NULL;
    put("config.json", text);
    cr_assert_eq(wg_config_open(&c, "config.json", NULL, 0, &wg_program_plugins, &err), WG_OK, "%s", err.text);
    return c;
}

#endif
