/* SPDX-License-Identifier: MIT
 * The common part of drafters over a head: its options, the feed of hidden states, and their features in the cache. Such a
 * drafter's struct begins with a wg_head_drafter. Private to draft/head. */
#ifndef WG_DRAFT_HEAD_HEAD_DRAFTER_H
#define WG_DRAFT_HEAD_HEAD_DRAFTER_H

#include "core/engine/tap_feed.h"
#include "draft/head/head.h"
#include "draft/lm/lm_draft.h"

typedef struct wg_head_options {
    wg_growth growth; /* first */
    char model[WG_OPTION_STRING];
    int kv_type, quantize;
} wg_head_options;

typedef struct wg_head_drafter {
    wg_lm_drafter m;
    wg_head_options opt;
    wg_head *head;
    wg_tap_feed *feed;
    float *taps; /* (WG_HEAD_ROWS, taps, width) */
} wg_head_drafter;

extern const char *const wg_head_types[]; /* of `quantize` */

/* Rows for the option table of a drafter whose options begin with a wg_head_options. layouts: whose files it reads. */
/* clang-format off */
#define WG_HEAD_OPTION_ROWS(layouts)                                                                                           \
    WG_OPTION_NAME(wg_head_options, model, WG_NAMES_FILE, "", "folder of the head, of " layouts " (needed)"),         \
    WG_GROWTH_OPTIONS,                                                                                                         \
    WG_OPTION_ENUM(wg_head_options, quantize, 0, wg_head_types,                                                                \
                   "the type that the head's matrices are converted to when it is loaded, where their rows are whole blocks"), \
    WG_OPTION_ENUM(wg_head_options, kv_type, 1, wg_kv_type_names, "element type of the head's cache"),                         \
    WG_OPTION_END
/* clang-format on */

/* Opens the head, which must be of the drafter's kind, up to wg_lm_drafter_open. On failure the caller closes the drafter. */
wg_status wg_head_drafter_open(wg_head_drafter *e, const wg_env *env, wg_error *err);
/* The same, and the rest, of a kind that drafts a level a pass and has features of drafted tokens. */
wg_status wg_head_drafter_open_chain(wg_head_drafter *e, const wg_env *env, wg_error *err);
/* Makes features of all rows of a sequence that wait. Pages that other sequences share become this one's own first. */
wg_status wg_head_drafter_absorb(wg_head_drafter *e, const wg_seq *seq, wg_error *err);
/* Functions of the class. */
wg_status wg_head_drafter_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err);
void wg_head_drafter_close(wg_drafter *d);
bool wg_head_drafter_overlap(const wg_drafter *d, wg_overlap *out);
wg_status wg_head_drafter_check_model(const wg_drafter_class *c, const char *path, wg_error *err);

#define WG_HEAD_DRAFTER_MEMBERS                                                                                                \
    WG_LM_DRAFTER_MEMBERS, .options_at = offsetof(wg_head_drafter, opt), .propose = wg_head_drafter_propose,                   \
                           .overlap = wg_head_drafter_overlap, .check_model = wg_head_drafter_check_model

#endif
