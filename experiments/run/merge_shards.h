/* SPDX-License-Identifier: MIT
 * Shards put together: the folder of the run that was not divided, its lines in its order, its summary made anew from them. */
#ifndef WG_EXPERIMENTS_RUN_MERGE_SHARDS_H
#define WG_EXPERIMENTS_RUN_MERGE_SHARDS_H

#include "core/engine/build.h"

/* Writes `out` (a new folder) from n shard folders in any order. Refused, naming what and where (EINVAL): a folder that is no
 * finished shard, shards of different configs, programs, weights or prompts, missing ones and doubled ones, files that changed
 * since. ECONFIG: what the config names is not here. On failure `out` is not there. */
wg_status wg_merge(const char *out, const char *const *dir, int n, const wg_plugins *plugins, wg_error *err);

#endif
