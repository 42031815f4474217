/* SPDX-License-Identifier: MIT
 * The last sentence of captions: machine, model, n. */
#include <stdlib.h>
#include <string.h>

#include "core/base/json_number.h"
#include "experiments/base/once.h"
#include "experiments/record/run_reader.h"

static const char *after_slash(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* "A, B": the targets of all cells, each once. */
static void put_targets(FILE *f, const wg_run_reader *run)
{
    json_t *seen = json_object(), *cell;
    size_t i;
    json_array_foreach(run->cells, i, cell) {
        const char *model = wg_json_word(json_object_get(json_object_get(cell, "config"), "target"), "model");
        const bool first = json_object_size(seen) == 0;
        if (*model && wg_once(seen, model)) fprintf(f, "%s%s", first ? "" : ", ", after_slash(model));
    }
    if (json_object_size(seen) == 0) fputs("unknown target", f);
    json_decref(seen);
}

char *wg_run_reader_about(const wg_run_reader *run)
{
    const json_t *cpu = json_object_get(run->machine, "cpu");
    const char *model = wg_json_word(cpu, "model"), *level = wg_json_word(cpu, "kernels");
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return NULL;
    if (!run->published) fprintf(f, "%s (%s); ", *model ? model : "unknown processor", *level ? level : "unknown kernels");
    put_targets(f, run);
    if (run->published) fputs("; a published result, whose machine and requests are not there.", f);
    else fprintf(f, "; %d prompt%s, %d request%s.", run->n_asked, run->n_asked == 1 ? "" : "s", run->n, run->n == 1 ? "" : "s");
    return fclose(f) == 0 ? text : (free(text), NULL);
}
