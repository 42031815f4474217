/* SPDX-License-Identifier: MIT
 * A run in parts, one a process or machine. What is dealt out are units (a batch of prompts through all arms of its group, so
 * a pair is always measured on one machine); a group with a drafter that remembers earlier requests goes to one shard whole.
 * Requests keep the addresses of their randomness, so the parts together are the run that was not divided, timings apart. */
#ifndef WG_EXPERIMENTS_CONFIG_SHARD_H
#define WG_EXPERIMENTS_CONFIG_SHARD_H

#include <stdbool.h>

#include "core/base/error.h"

typedef struct wg_shard {
    int index, count;
} wg_shard; /* 1 .. count; count 0: all of it */
enum { WG_SHARDS_MAX = 100000, WG_SHARD_TEXT = 32 };

/* "2/8", or "all". EINVAL. */
wg_status wg_shard_parse(wg_shard *s, const char *text, wg_error *err);

/* As the environment says: a Slurm array (SLURM_ARRAY_TASK_ID, _MIN, _STEP, _COUNT), else ranks of Open MPI, MPICH or srun.
 * *from receives the variable's name, NULL when none says so and it is all of it. EINVAL: they contradict each other. */
wg_status wg_shard_of_environment(wg_shard *s, const char **from, wg_error *err);

/* "2/8"; "" for all of it. */
const char *wg_shard_text(wg_shard s, char buf[WG_SHARD_TEXT]);

/* The shape of a group: what a unit is, and how many there are in a repeat. */
typedef struct wg_config wg_config;
typedef struct wg_dataset wg_dataset;
typedef struct wg_group_shape {
    int arms, prompts, batch, units;
    bool cross_request;
    const wg_dataset *dataset;
} wg_group_shape;
wg_group_shape wg_group_shape_of(const wg_config *c, int group);

/* Requests of one arm in a unit: its prompts, each as often as it has turns. */
int wg_unit_requests(const wg_group_shape *g, int unit);

/* Which shard (1 .. count) of `count` has this unit. */
int wg_shard_owner(const wg_group_shape *g, int group, int unit, int count);
static inline bool wg_shard_has(wg_shard s, const wg_group_shape *g, int group, int unit)
{
    return s.count == 0 || wg_shard_owner(g, group, unit, s.count) == s.index;
}

#endif
