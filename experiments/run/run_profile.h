/* SPDX-License-Identifier: MIT
 * The profile of the machine (core/engine/profile.h) of a run: its file is profile.json of the result folder, and a resumed run
 * uses that one. */
#ifndef WG_EXPERIMENTS_RUN_RUN_PROFILE_H
#define WG_EXPERIMENTS_RUN_RUN_PROFILE_H

#include "core/engine/profile.h"
#include "experiments/run/runner.h"

/* That of the folder which is resumed, if it has one; else as the config says. */
wg_status wg_run_profile_open(wg_profile **out, const wg_config *config, const wg_run_options *opt, wg_error *err);

/* Its digest, into `name` and the member "profile" of machine.json; p NULL: from there. "": no prices were asked for. */
void wg_run_profile_name(const wg_profile *p, json_t *machine, char name[WG_SHA256_HEX]);

/* Writes profile.json, unless nothing was measured or the folder has it. p may be NULL. EIO */
wg_status wg_run_profile_save(const wg_profile *p, const char *dir, wg_error *err);

#endif
