/* SPDX-License-Identifier: MIT
 * The drafts that `wager plan` tries: look-ups, self-speculation, and those that the user names, each at several lengths. */
#ifndef WG_EXPERIMENTS_CLI_PLAN_DRAFTS_H
#define WG_EXPERIMENTS_CLI_PLAN_DRAFTS_H

#include "experiments/cli/cli.h"

enum { WG_PLAN_LENGTHS = 3, WG_PLAN_DRAFTS = 32, WG_PLAN_SPEC = 1200 };

/* A drafter with its options, and the lengths to try. */
typedef struct wg_plan_draft {
    char spec[WG_PLAN_SPEC];              /* as in --draft, without a length */
    const char *option;                   /* the option for the length; NULL: only `spec` is tried */
    int length[WG_PLAN_LENGTHS], lengths; /* in the order of trial; their number */
    bool asked;                           /* named by the user, so failing to run is an error */
} wg_plan_draft;

/* Fills out with the user's drafts (models: files of draft models; drafts: as in --draft), then the built-in ones for a target
 * with `layers` layers. EINVAL: more than WG_PLAN_DRAFTS, or too long a text; the errors of wg_choose_drafter. */
wg_status wg_plan_drafts(wg_plan_draft out[WG_PLAN_DRAFTS], int *n, const wg_flag_list *models, const wg_flag_list *drafts,
                         int layers, wg_error *err);

/* Writes the draft at its length number i, as in --draft. */
void wg_plan_draft_spec(const wg_plan_draft *d, int i, char out[WG_PLAN_SPEC]);

#endif
