/* SPDX-License-Identifier: MIT
 * Runs of configs in a scene. Include once per test program. */
#ifndef WG_TESTS_RUN_SCENE_H
#define WG_TESTS_RUN_SCENE_H

#include "core/base/mem.h"
#include "experiments/run/runner.h"
#include "scene.h"

/* Three conversations of two turns. */
#define SCENE_TURNS                                                                                                            \
    "{\"id\": \"a\", \"turns\": [\"The cat sat\", \"and a\"]}\n"                                                               \
    "{\"id\": \"b\", \"turns\": [\"abababab\", \"ab ab\"]}\n"                                                                  \
    "{\"id\": \"c\", \"turns\": [\"A dog ran\", \"The cat\"]}\n"

/* Runs a config into the folder that the options name; fails the test when the run fails. The summary as written. *r is the
 * caller's to free, before the config is closed; NULL: not wanted. */
static inline json_t *scene_run(wg_config *c, const wg_run_options *o, wg_run *r)
{
    wg_error err = { 0 };
    wg_run own;
    char *path = NULL, file[100];
    cr_assert_eq(wg_run_config(c, o, r ? r : &own, &path, &err), WG_OK, "%s", err.text);
    if (!r) wg_run_free(&own);
    wg_free(path);
    snprintf(file, sizeof file, "%s/summary.json", o->out);
    return json_load_file(file, 0, NULL);
}

#endif
