/* SPDX-License-Identifier: MIT
 * Legal words of flags' values (flag_values.h). */
#include "experiments/cli/flag_values.h"

#include <string.h>

#include "core/file/synth.h"
#include "draft/draft.h"
#include "core/setup/target.h"
#include "experiments/report/columns.h"
#include "experiments/report/engine_metrics.h"
#include "kernels/types.h"
#include "verify/verify.h"

static void add(wg_flag_values *v, const char *word)
{
    if (v->n < WG_FLAG_VALUES_MOST) v->word[v->n++] = word;
}

static void add_drafters(wg_flag_values *v)
{
    for (int i = 0; wg_drafters[i]; i++) add(v, wg_drafters[i]->name);
}

static void add_rules(wg_flag_values *v)
{
    for (int i = 0; wg_verifiers[i]; i++) add(v, wg_verifiers[i]->name);
}

static void add_types(wg_flag_values *v)
{
#define TYPE(id, ...)                                                                                                          \
    if (wg_type_get(WG_##id)->writable) add(v, wg_type_get(WG_##id)->name);
    WG_WEIGHT_TYPES(TYPE)
#undef TYPE
}

static void add_devices(wg_flag_values *v)
{
    static const char *const names[] = { "cpu", "cuda:0", "auto", NULL };
    for (int i = 0; names[i]; i++) add(v, names[i]);
}

static void add_targets(wg_flag_values *v)
{
    for (int i = WG_TARGET_MODEL + 1; wg_target_kinds[i]; i++) add(v, wg_target_kinds[i]);
}

static void add_columns(wg_flag_values *v)
{
    for (int i = 0; wg_column_set(i); i++) add(v, wg_column_set(i));
    for (const wg_column *c = wg_columns; c->name; c++) add(v, c->name);
}

static void add_shapes(wg_flag_values *v)
{
    for (const wg_synth_shape *s = wg_synth_shapes(); s->name; s++) add(v, s->name);
}

static void add_engines(wg_flag_values *v)
{
    for (const wg_engine_metric *m = wg_engine_metrics; m->engine; m++)
        if (!v->n || strcmp(v->word[v->n - 1], m->engine) != 0) add(v, m->engine);
}

void wg_flag_values_of(const wg_flag *f, wg_flag_values *out)
{
    static const struct {
        const char *value;
        void (*add)(wg_flag_values *v);
    } kinds[] = { { "KIND[:k=v,...]", add_drafters }, { "FILE|KIND", add_drafters }, { "RULE", add_rules },
                  { "RULE|all", add_rules },          { "TYPE", add_types },         { "DEVICE", add_devices },
                  { "KIND:k=v,...", add_targets },    { "COLUMNS", add_columns },    { "SHAPE", add_shapes },
                  { "ENGINE", add_engines } };
    char *save;
    *out = (wg_flag_values){ .n = 0 };
    if (f->type == WG_FLAG_CHOICE) {
        snprintf(out->text, sizeof out->text, "%s", f->value);
        for (char *w = strtok_r(out->text, "|", &save); w; w = strtok_r(NULL, "|", &save)) add(out, w);
    }
    for (size_t i = 0; f->value && f->type != WG_FLAG_CHOICE && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].value, f->value)) kinds[i].add(out);
}
