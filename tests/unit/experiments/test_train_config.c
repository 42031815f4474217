/* SPDX-License-Identifier: MIT
 * The config of a training run: what is resolved, and that its page has every key with its default. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

Test(train_config, the_page_has_every_key)
{
    char path[512];
    const char *root = getenv("WG_ROOT");
    snprintf(path, sizeof path, "%s/docs/training.md", root ? root : ".");
    char *page = file_read(path, NULL);
    cr_assert_not_null(page, "%s", path);
    wg_train_config c = { 0 };
    for (const wg_train_section *s = wg_train_sections; s->name; s++) {
        wg_option_defaults(s->table, (char *)&c + s->at);
        for (const wg_option *o = s->table; o->name; o++) {
            char row[800], value[WG_OPTION_STRING];
            const char *v = wg_option_value(o, (const char *)&c + s->at, value, sizeof value);
            snprintf(row, sizeof row, "| `%s` | %s |", o->name, *v ? v : "\"\"");
            cr_assert(strstr(page, row), "%s: no row begins with: %s", path, row);
        }
    }
    free(page);
}
