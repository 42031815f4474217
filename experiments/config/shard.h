/* SPDX-License-Identifier: MIT
 * A run divided into shards, one per process or machine. Units are distributed: a unit is a batch of prompts through all arms
 * of its group, so a pair is always measured on one machine; a group with a cross-request drafter goes to one shard as a whole.
 * Requests keep the addresses of their randomness, so the merged shards equal the undivided run, timings apart. */
#ifndef WG_EXPERIMENTS_CONFIG_SHARD_H
#define WG_EXPERIMENTS_CONFIG_SHARD_H

#include <stdbool.h>

#include "core/base/error.h"

typedef struct wg_shard {
    int index, count;
} wg_shard; /* index 1 .. count; count 0: the whole run */
enum { WG_SHARDS_MAX = 100000, WG_SHARD_TEXT = 32 };

/* "2/8", or "all". EINVAL. */
wg_status wg_shard_parse(wg_shard *s, const char *text, wg_error *err);

/* The shard given by the environment: a Slurm array (SLURM_ARRAY_TASK_ID, _MIN, _STEP, _COUNT), else the rank of Open MPI,
 * MPICH or srun. *from receives the variable's name, or NULL for the whole run when there is none. EINVAL: the variables
 * contradict each other. */
wg_status wg_shard_of_environment(wg_shard *s, const char **from, wg_error *err);

/* "2/8"; "" for the whole run. */
const char *wg_shard_text(wg_shard s, char buf[WG_SHARD_TEXT]);

/* The shape of a group: the size of a unit, and the number of units in a repeat. */
typedef struct wg_config wg_config;
typedef struct wg_dataset wg_dataset;
typedef struct wg_group_shape {
    int arms, prompts, batch, units;
    bool cross_request;
    const wg_dataset *dataset;
} wg_group_shape;
wg_group_shape wg_group_shape_of(const wg_config *c, int group);

/* Requests of one arm in a unit: one per turn of each of its prompts. */
int wg_unit_requests(const wg_group_shape *g, int unit);

/* The shard (1 .. count) that runs this unit. */
int wg_shard_owner(const wg_group_shape *g, int group, int unit, int count);
static inline bool wg_shard_has(wg_shard s, const wg_group_shape *g, int group, int unit)
{
    return s.count == 0 || wg_shard_owner(g, group, unit, s.count) == s.index;
}

#endif
