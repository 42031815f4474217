/* SPDX-License-Identifier: MIT
 * Merging of shards: writes the folder of the undivided run, with all lines in order and a summary computed from them. */
#ifndef WG_EXPERIMENTS_RUN_MERGE_SHARDS_H
#define WG_EXPERIMENTS_RUN_MERGE_SHARDS_H

#include "core/engine/build.h"

/* Writes `out` (a new folder) from n shard folders in any order. EINVAL, naming the shard and the reason: a folder that is
 * no complete shard, shards of different configs, programs, weights or prompts, missing or duplicate shards, files that
 * changed since. ECONFIG: a file that the config names is missing. On failure `out` does not exist. */
wg_status wg_merge(const char *out, const char *const *dir, int n, const wg_plugins *plugins, wg_error *err);

#endif
