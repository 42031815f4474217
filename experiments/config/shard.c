/* SPDX-License-Identifier: MIT
 * Shards and their units (shard.h). */
#include "experiments/config/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/config/config.h"

wg_status wg_shard_parse(wg_shard *s, const char *text, wg_error *err)
{
    int end = 0;
    *s = (wg_shard){ 0 };
    if (!strcmp(text, "all")) return WG_OK;
    if (sscanf(text, "%7d/%7d%n", &s->index, &s->count, &end) == 2 && !text[end] && s->index >= 1 && s->index <= s->count &&
        s->count <= WG_SHARDS_MAX)
        return WG_OK;
    return wg_fail(err, WG_EINVAL, "--shard %.100s: expected I/N with I from 1 to N, such as 2/8, or all", text);
}

static bool number_of(const char *name, long *out)
{
    const char *text = getenv(name);
    char *end;
    if (!text || !*text) return false;
    *out = strtol(text, &end, 10);
    return !*end;
}

wg_status wg_shard_of_environment(wg_shard *s, const char **from, wg_error *err)
{
    static const char *const pairs[][2] = { { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
                                            { "PMI_RANK", "PMI_SIZE" },
                                            { "SLURM_PROCID", "SLURM_STEP_NUM_TASKS" } }; /* a batch script has NTASKS, too */
    long index = 0, count = 0, min = 0, step = 1;
    *s = (wg_shard){ 0 };
    *from = NULL;
    if (number_of("SLURM_ARRAY_TASK_ID", &index) && number_of("SLURM_ARRAY_TASK_COUNT", &count)) {
        *from = "SLURM_ARRAY_TASK_ID";
        number_of("SLURM_ARRAY_TASK_MIN", &min);
        number_of("SLURM_ARRAY_TASK_STEP", &step);
        index = step > 0 ? (index - min) / step : -1;
    }
    for (int i = 0; i < 3 && !*from; i++)
        if (number_of(pairs[i][0], &index) && number_of(pairs[i][1], &count)) *from = pairs[i][0];
    if (*from && (count < 1 || count > WG_SHARDS_MAX || index < 0 || index >= count))
        return wg_fail(err, WG_EINVAL, "%s=%s is not one of %ld tasks; say which part this is with --shard I/N, or --shard all",
                       *from, getenv(*from), count);
    if (count > 1) *s = (wg_shard){ (int)index + 1, (int)count };
    else *from = NULL;
    return WG_OK;
}

const char *wg_shard_text(wg_shard s, char buf[WG_SHARD_TEXT])
{
    buf[0] = '\0';
    if (s.count) snprintf(buf, WG_SHARD_TEXT, "%d/%d", s.index, s.count);
    return buf;
}

wg_group_shape wg_group_shape_of(const wg_config *c, int group)
{
    wg_group_shape g = { .arms = 1 };
    for (int i = 0; i < c->n; i++) {
        const wg_cell *cell = &c->cell[i];
        if (cell->group != group) continue;
        g.arms++;
        g.dataset = c->dataset[cell->dataset];
        g.prompts = g.dataset->n;
        g.batch = cell->setup.top.batch < g.prompts ? cell->setup.top.batch : g.prompts;
        g.cross_request = g.cross_request || cell->setup.drafter->cross_request;
    }
    g.units = (g.prompts + g.batch - 1) / g.batch;
    return g;
}

int wg_unit_requests(const wg_group_shape *g, int unit)
{
    const int first = unit * g->batch, left = g->prompts - first;
    return wg_dataset_questions(g->dataset, first, left < g->batch ? left : g->batch);
}

int wg_shard_owner(const wg_group_shape *g, int group, int unit, int count)
{
    return (g->cross_request ? group : unit) % count + 1;
}
