/* SPDX-License-Identifier: MIT
 * Measurements of a draft model (measured_draft.h). */
#include "experiments/analysis/measured_draft.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/base/json_number.h"
#include "experiments/base/stats.h"
#include "experiments/record/run_reader.h"

enum { PATH = 4096 };

/* ---- which file a cell drafts with */

/* The file that stands for a model: itself, or the weights (or their index) of its folder. */
static bool weights_of(const char *model, const char *name, char path[PATH])
{
    return snprintf(path, PATH, "%s%s%s", model, *name ? "/" : "", name) < PATH;
}
static const char *const weight_files[] = { "", "model.safetensors", "model.safetensors.index.json", NULL };

static bool digest_of(const char *model, char hex[WG_SHA256_HEX])
{
    char path[PATH];
    struct stat st;
    for (int i = 0; weight_files[i]; i++)
        if (weights_of(model, weight_files[i], path) && stat(path, &st) == 0 && S_ISREG(st.st_mode))
            return wg_sha256_file(path, hex, NULL) == WG_OK;
    return false;
}

/* The digest that the run noted; NULL: none. */
static const char *noted(const wg_run_reader *run, const char *model)
{
    const json_t *files = json_object_get(run->machine, "files_sha256");
    char path[PATH];
    for (int i = 0; weight_files[i]; i++) {
        const char *hex = weights_of(model, weight_files[i], path) ? json_string_value(json_object_get(files, path)) : NULL;
        if (hex) return hex;
    }
    return NULL;
}

/* ---- a cell */

typedef struct sums {
    double *accepted, *drafted, *alpha, *positions; /* (prompts) */
    int requests;
} sums;

static void add_request(const wg_run_reader *run, const wg_entry *e, sums *s)
{
    json_t *line = wg_run_reader_line(run, e);
    const json_t *spec = json_object_get(line, "speculative_decoding");
    const double sum = wg_json_measured(spec, "teacher_forced_alpha_sum"), n = wg_json_measured(spec, "teacher_forced_alpha_n");
    s->accepted[e->prompt] += e->accepted;
    s->drafted[e->prompt] += e->drafted;
    s->requests++;
    if (isfinite(sum) && n > 0) s->alpha[e->prompt] += sum, s->positions[e->prompt] += n;
    json_decref(line);
}

static void copy(json_t *to, const json_t *from, const char *const *keys)
{
    for (; *keys; keys++) {
        json_t *v = json_object_get(from, *keys);
        json_object_set_new(to, *keys, v ? json_incref(v) : json_null());
    }
}

static int prompts_in(const sums *s, int n)
{
    int all = 0;
    for (int i = 0; i < n; i++) all += s->drafted[i] > 0;
    return all;
}

static json_t *describe(const wg_run_reader *run, int cell, const sums *s)
{
    static const char *const of_summary[] = {
        "rule", "temperature", "tau", "tau_ci", "speedup", "speedup_ci", "lossless", NULL
    };
    const json_t *config = json_object_get(json_array_get(run->cells, (size_t)cell), "config"),
                 *draft = json_object_get(config, "draft"), *length = json_object_get(draft, "length");
    const wg_ratio rate = { .a = s->accepted, .b = s->drafted, .n = run->n_asked },
                   alpha = { .a = s->alpha, .b = s->positions, .n = run->n_asked };
    char *name = wg_run_reader_cell_name(run, cell);
    json_t *o =
        json_pack("{s:o, s:o, s:o, s:o, s:O?, s:i, s:i, s:O?}", "results", wg_json_text(run->path), "cell", wg_json_text(name),
                  "target", wg_json_text(wg_json_word(json_object_get(config, "target"), "model")), "draft",
                  wg_json_text(wg_json_word(draft, "model")), "length", length, "prompts", prompts_in(s, run->n_asked),
                  "requests", s->requests, "machine", json_object_get(json_object_get(run->machine, "cpu"), "model"));
    wg_free(name);
    if (!o) return NULL;
    copy(o, json_array_get(json_object_get(run->summary, "cells"), (size_t)cell), of_summary);
    wg_ratio_set_json(o, "acceptance_rate", &rate);
    wg_ratio_set_json(o, "alpha", &alpha);
    return o;
}

static wg_status measure(const wg_run_reader *run, int cell, json_t *out, wg_error *err)
{
    const size_t n = (size_t)run->n_asked;
    double *all = wg_calloc(4 * n, sizeof *all);
    if (!all) return wg_nomem(err, 4 * n * sizeof *all, "the prompts of a run");
    sums s = { .accepted = all, .drafted = all + n, .alpha = all + 2 * n, .positions = all + 3 * n };
    for (int i = 0; i < run->n; i++)
        if (run->entry[i].cell == cell && run->entry[i].ok) add_request(run, &run->entry[i], &s);
    json_t *o = describe(run, cell, &s);
    wg_free(all);
    return o && json_array_append_new(out, o) == 0 ? WG_OK : wg_nomem(err, 1, "a measured cell");
}

/* ---- a run */

static wg_status measure_all(const wg_run_reader *run, const char *model, json_t *out, wg_error *err)
{
    const json_t *cells;
    char hex[WG_SHA256_HEX] = "";
    WG_TRY(wg_run_reader_cells(run, &cells, err));
    if (model && !digest_of(model, hex)) return wg_fail(err, WG_EIO, "%s: cannot read its weights for their digest", model);
    for (int i = 0; i < (int)json_array_size(cells) && i < (int)json_array_size(run->cells); i++) {
        const json_t *draft = json_object_get(json_object_get(json_array_get(run->cells, (size_t)i), "config"), "draft");
        const char *file = wg_json_word(draft, "model"), *digest = noted(run, file);
        if (strcmp(wg_json_word(draft, "kind"), "model") != 0 || !digest || (model && strcmp(digest, hex) != 0)) continue;
        WG_TRY(measure(run, i, out, err));
    }
    if (json_array_size(out) > 0) return WG_OK;
    return wg_fail(
        err, WG_EINVAL,
        "%s: no cell drafts with %s (drafter model; files are compared by SHA-256); name the folder of a run that does",
        run->path, model ? model : "a draft model");
}

wg_status wg_measured_draft_read(json_t **out, const char *results, const char *model, wg_error *err)
{
    wg_run_reader *run;
    *out = NULL;
    WG_TRY(wg_run_reader_open(&run, results, err));
    json_t *all = json_array();
    const wg_status s = all ? measure_all(run, model, all, err) : wg_nomem(err, 1, "measured cells");
    wg_run_reader_close(run);
    if (s == WG_OK) *out = all;
    else json_decref(all);
    return s;
}
