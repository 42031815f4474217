/* SPDX-License-Identifier: MIT
 * The config of a training run: what is resolved, and that its page has every key with its default. */
#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/config/distill_config.h"
#include "experiments/config/train_config.h"
#include "tests/temp.h"

Test(train_config, what_is_left_out_is_derived)
{
    static const char text[] = "{ \"// why\": 1, \"model\": { \"tokenizer\": \"a.gguf\", \"dim\": 192, \"heads\": 6 },\n"
                               "  \"data\": { \"tokens\": \"x/y.tokens\" }, \"optimiser\": { \"kind\": \"adamw\" } }\n";
    temp dir;
    wg_error err;
    wg_train_config c, again;
    char expected[600];
    const char *set[] = { "train.steps=7", "output.name=b" };
    temp_make(&dir);
    file_write(temp_at(&dir, "c.json"), text, sizeof text - 1);
    file_write(temp_at(&dir, "a.gguf"), "", 0);
    cr_assert_eq(wg_train_config_open(&c, temp_at(&dir, "c.json"), set, 2, &err), WG_OK, "%s", err.text);
    cr_assert(c.model.kv_heads == 6 && c.model.head_dim == 32 && c.model.hidden == 512 && c.model.tied);
    cr_assert(c.train.steps == 7 && c.train.micro == 4 && c.optimiser.kind == WG_ADAMW && c.schedule.kind == WG_WSD);
    snprintf(expected, sizeof expected, "%s/x/y.tokens", dir.dir);
    cr_assert_str_eq(c.data.tokens, expected);
    /* what is resolved is a config that resolves to itself */
    file_write(temp_at(&dir, "r.json"), c.resolved, strlen(c.resolved));
    cr_assert_eq(wg_train_config_open(&again, temp_at(&dir, "r.json"), NULL, 0, &err), WG_OK, "%s", err.text);
    cr_assert_str_eq(c.resolved, again.resolved);
    wg_train_config_close(&again);
    wg_train_config_close(&c);
    temp_remove(&dir);
}

static wg_status read_shipped(const char *path, bool distill, const char *const *set, int n_set, wg_error *err)
{
    wg_train_config t;
    wg_distill_config d;
    const wg_status s =
        distill ? wg_distill_config_open(&d, path, set, n_set, err) : wg_train_config_open(&t, path, set, n_set, err);
    if (s == WG_OK && distill) wg_distill_config_close(&d);
    if (s == WG_OK && !distill) wg_train_config_close(&t);
    return s;
}

/* What the repository ships is read from its root as it stands, but for a text that is given on the command line. */
static void are_valid(const char *pattern, bool distill)
{
    static const char *const given[] = { "data.text=README.md" };
    glob_t g;
    cr_assert_eq(glob(pattern, 0, NULL, &g), 0, "%s", pattern);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        wg_error err;
        wg_status s = read_shipped(g.gl_pathv[i], distill, NULL, 0, &err);
        if (s != WG_OK && strstr(err.text, "expected `text`, `tokens` or `conversations`"))
            s = read_shipped(g.gl_pathv[i], distill, given, 1, &err);
        cr_expect_eq(s, WG_OK, "%s: %s", g.gl_pathv[i], err.text);
    }
    globfree(&g);
}

Test(train_config, shipped_configs_are_valid)
{
    const char *root = getenv("WG_ROOT");
    if (root && chdir(root)) cr_assert_fail();
    are_valid("configs/train/*.json", false);
    are_valid("configs/distill/*.json", true);
}
