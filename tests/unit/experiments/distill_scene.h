/* SPDX-License-Identifier: MIT
 * A distillation in a folder of its own, for tests. */
#ifndef WG_TESTS_DISTILL_SCENE_H
#define WG_TESTS_DISTILL_SCENE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "experiments/run/distill.h"
#include "tests/temp.h"
#include "tests/unit/model/one_sequence.h"

#define TARGET "synth:tiny:f32"

static const char page[] =
    "The mill stood where the river bent. Every morning the miller opened the sluice, and the great wheel began to turn, "
    "slowly at first, then with a steady groan that the whole valley knew.\n\nCarts came down the lane before the sun was over "
    "the hill; the children counted the sacks, and the dog barked at each horse in turn, though he had known them all.\n\n"
    "In winter the pond froze, the wheel hung still with ice, and the miller mended harness by the fire until the thaw.\n\n"
    "When the floods came, the lower meadow was a lake, and boys sailed on it in a trough that was meant for pigs.\n\n"
    "Nobody knew how old the willow was that leaned over the weir, nor who had cut the names into its bark.";

typedef struct scene {
    temp in, out;
    wg_distill_config c;
    volatile sig_atomic_t stop;
} scene;

static const char config[] =
    "{ \"model\": { \"dim\": 32, \"layers\": 1, \"heads\": 2 }, \"data\": { \"text\": \"page.txt\", \"separator\": \"\\n\\n\","
    "  \"held_out\": 3 }, \"train\": { \"steps\": 40, \"batch\": 4, \"micro\": 2, \"length\": 32, \"evaluate\": 20,"
    "  \"checkpoint\": 10 }, \"output\": { \"type\": \"f32\" }, \"distill\": { \"predict\": false, \"prompt\": 6 }%s }\n";

static inline void scene_open(scene *s, const char *more, const char *const *set, int n_set)
{
    char text[2000];
    const char *all[12] = { "target.model=" TARGET, "target.threads=2" };
    wg_error err;
    temp_make(&s->in);
    temp_make(&s->out);
    snprintf(text, sizeof text, config, more);
    file_write(temp_at(&s->in, "page.txt"), page, sizeof page - 1);
    file_write(temp_at(&s->in, "c.json"), text, strlen(text));
    for (int i = 0; i < n_set; i++) all[2 + i] = set[i];
    must(wg_distill_config_open(&s->c, temp_at(&s->in, "c.json"), all, 2 + n_set, &err), &err);
}

static inline void scene_close(scene *s)
{
    wg_distill_config_close(&s->c);
    temp_remove(&s->in);
    temp_remove(&s->out);
}

static inline wg_status go(scene *s, bool resume, int threads, json_t **result, wg_error *err)
{
    const wg_distill_run_options o = { .folder = s->out.dir, .threads = threads, .resume = resume, .stop = &s->stop };
    return wg_distill_run(&s->c, &o, result, err);
}

/* Numbers of a kind in the log of a student, in order. */
static inline int logged(scene *s, const char *student, const char *key, double *out, int most)
{
    char *log = file_read(temp_at(&s->out, "distill.jsonl"), NULL);
    int n = 0;
    cr_assert_not_null(log);
    for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *o = json_loads(line, 0, NULL);
        const json_t *v = json_object_get(o, key);
        cr_assert_not_null(o, "%s", line);
        if (json_is_number(v) && !strcmp(json_string_value(json_object_get(o, "student")), student) && n < most)
            out[n++] = json_number_value(v);
        json_decref(o);
    }
    free(log);
    return n;
}

/* Files of a run that may not depend on threads or interruptions. */
static inline char *model_of(scene *s, const char *name, size_t *n)
{
    char *p = file_read(temp_at(&s->out, name), n);
    cr_assert_not_null(p, "%s", name);
    return p;
}

#endif
