/* SPDX-License-Identifier: MIT
 * The machine profile (core/engine/profile.h) of a run. Its file is profile.json of the result folder, which a resumed run
 * uses. */
#ifndef WG_EXPERIMENTS_RUN_RUN_PROFILE_H
#define WG_EXPERIMENTS_RUN_RUN_PROFILE_H

#include "core/engine/profile.h"
#include "experiments/run/runner.h"

/* Opens the resumed folder's profile, if there is one; else the config's. */
wg_status wg_run_profile_open(wg_profile **out, const wg_config *config, const wg_run_options *opt, wg_error *err);

/* Writes its digest to `name` and to the member "profile" of machine.json; p NULL: reads it from there. "": no prices were
 * used. */
void wg_run_profile_name(const wg_profile *p, json_t *machine, char name[WG_SHA256_HEX]);

/* Writes profile.json unless nothing was measured or the folder has it. p may be NULL. EIO. */
wg_status wg_run_profile_save(const wg_profile *p, const char *dir, wg_error *err);

#endif
