/* SPDX-License-Identifier: MIT
 * What the files of libwager share: the public header over the library's own headers, structs that cross the border, and the
 * fields of sessions and sequences. */
#ifndef WG_API_API_IMPL_H
#define WG_API_API_IMPL_H

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/engine/profile.h"
#include "core/text/tokenizer.h"
#include "core/setup/target.h"
#include "core/setup/engine_text.h"
#include "include/wager.h"

/* Copies a struct of the caller's, whose first member is its size, over *own, which is zeroed: what the caller does not know
 * stays 0. EINVAL: its size is not set, or it sets members that this library does not know. */
wg_status wg_struct_in(void *own, size_t own_size, const void *from, size_t least, const char *name, wg_error *err);
/* Copies *own to the caller's struct, as much as it has room for; its size stays. EINVAL: its size is not set. */
wg_status wg_struct_out(void *to, const void *own, size_t own_size, size_t least, const char *name, wg_error *err);

/* The least size of a struct: that of its first version, up to and including this member. */
#define WG_SIZE_TO(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* What a function needs of its arguments. */
wg_status wg_missing(const char *function, const char *what, wg_error *err);

/* A target of the caller's as a language model, which keeps the tokens in the cache instead of keys (scorer.c). */
typedef struct wg_scorer_lm wg_scorer_lm;
/* seq_of: the place of the sequence that owns a cache. */
typedef int wg_place_fn(const void *user, const wg_kv_seq *kv);
wg_status wg_scorer_lm_open(wg_scorer_lm **out, const wg_scorer *s, int batch, wg_place_fn *place, const void *user,
                            wg_error *err);
void wg_scorer_lm_close(wg_scorer_lm *lm); /* NULL is fine */
wg_lm *wg_scorer_lm_of(wg_scorer_lm *lm);

typedef enum wg_session_kind { WG_SESSION_MODEL, WG_SESSION_SCORER, WG_SESSION_DRAFTER } wg_session_kind;

struct wg_session {
    wg_session_kind kind;
    wg_setup setup; /* the config */
    wg_target *target;
    wg_scorer scorer;
    wg_scorer_lm *lm;    /* in the place of a target */
    wg_pool *pool;       /* of an engine without a target: one thread */
    wg_profile *profile; /* as the config says */
    char profile_name[WG_SHA256_HEX], profile_notes[1024];
    wg_engine *engine;
    char drafter[WG_OPTION_STRING]; /* wg_drafter_title */
    wg_engine_options opt;          /* what the engine was opened with, or will be */
    wg_sequence *first;             /* the open ones */
    uint32_t opened;
};

struct wg_sequence {
    wg_session *session;
    wg_sequence *before, *after; /* in the session's list */
    wg_seq *seq;
    int max_tokens, seen; /* seen: tokens of seq before the last round */
    wg_text *question;    /* (questions) owned copies, for templates that read them all */
    int questions;
    wg_stream stream;
    char *text; /* (room) of the last round */
    size_t bytes, room;
    int nodes;
    int32_t *node; /* (3, WG_TREE_MAX) token, parent, qrow of the last draft; NULL before the first */
};

wg_status wg_session_make(wg_session **out, const wg_engine_text *text, const wg_scorer *scorer, wg_session_kind kind,
                          wg_error *err);
/* A session whose engine runs for a scheduler: step_batch (0: the config's batch), pages, prefill_rows, ride_rows and host_rows
 * of *serving; as many more requests can be preempted. */
wg_status wg_session_make_serving(wg_session **out, const wg_engine_text *text, const wg_engine_options *serving,
                                  wg_error *err);

/* wg_profile_name; lives as long as the session. */
const char *wg_session_profile(wg_session *s);

/* ---- tier 3: trees and rows of the caller's as the library's own */

/* EINVAL names what is legal. */
wg_status wg_law_in(const char *name, wg_sibling_law *out, wg_error *err);
/* Checked; every node declares the children that it has. */
wg_status wg_tree_in(const wg_draft *d, int vocab, wg_tree *out, wg_error *err);
/* Appends n rows (vocab) of distributions to a set with room for them. EINVAL: a row that is none. */
wg_status wg_rows_in(const double *from, int n, int vocab, const char *name, wg_rows *out, wg_error *err);
/* Whether n nodes are a path of the tree from its root down, and `next` is a token. */
bool wg_is_path(const wg_tree *t, int vocab, const int32_t *node, int n, int32_t next);

#endif
