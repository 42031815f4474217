/* SPDX-License-Identifier: MIT
 * Tap feeds: hidden states (core/model/taps.h) of the target for their readers, which are drafters with heads (EAGLE, MTP,
 * Medusa, DFlash; methods.md, Heads) and recorders.
 *
 * A reader opens a feed of the taps that it reads, in its order. Every pass of the target computes the union of the taps of all
 * feeds once. When tokens are committed, each feed takes its taps of their rows: a prompt's in chunks; a verified tree's along
 * the accepted path, root first, so the last one is the row that `next` was drawn from. Rows of rejected nodes and of probes
 * never enter a feed. Rows wait in memory of the target's device, in a queue per sequence, until the reader drops them.
 *
 * The rows of a sequence that wait have the positions first, first + 1, ... up to the last token in the cache: in propose and
 * in observe (first) + (rows) is wg_kv_len(seq->kv) == seq->n - 1. The last token of the text has no row yet: it is the root of
 * the next tree. A row has the bits that a plain prefill of its prefix gives (law_taps). When cached tokens are dropped (a
 * prefill that failed, a cascade whose text went another way), the feed drops their rows, and if they had been read, `first`
 * moves back; the reader continues from there, as from the valid length of a space of the cache. */
#ifndef WG_CORE_ENGINE_TAP_FEED_H
#define WG_CORE_ENGINE_TAP_FEED_H

#include "core/base/plugin_api.h"
#include "core/engine/seq.h"
#include "core/model/lm.h"

typedef struct wg_tap_feeds wg_tap_feeds; /* all feeds of an engine: wg_env.feeds, wg_engine_feeds */
typedef struct wg_tap_feed wg_tap_feed;

/* A reader and the taps that it reads. */
typedef struct wg_tap_reader {
    const int *tap; /* (n) copied */
    int n;
    int latest; /* it needs only the newest `latest` rows; older ones are dropped. 0: it reads every row */
    /* Called when new rows need the place of waiting ones; reads and drops those. Required where `latest` is 0, since a prompt
     * has more rows than there is room for, and a composite does not call every drafter in every step. All rows up to `first` +
     * `rows` belong to committed tokens, and seq->token has one more. It must not run a pass of the target. On failure the step
     * fails. */
    wg_status (*absorb)(void *user, const wg_seq *seq, wg_error *err);
    void *user;
} wg_tap_reader;

/* Opens a feed; the engine closes it. A drafter calls this when it is opened, others before the engine's first sequence. Memory
 * is allocated when the first sequence opens. EUNSUPPORTED: the target has no hidden states, or no engine runs it (feeds is
 * NULL). EINVAL: a list that wg_taps_check refuses. ENOMEM. */
WG_PLUGIN_API wg_status wg_tap_feed_open(wg_tap_feed **out, wg_tap_feeds *feeds, const wg_tap_reader *reader, wg_error *err);

WG_PLUGIN_API int wg_tap_feed_dim(const wg_tap_feed *f);                      /* floats of one tap */
WG_PLUGIN_API int wg_tap_feed_first(const wg_tap_feed *f, const wg_seq *seq); /* position of the oldest waiting row */
WG_PLUGIN_API int wg_tap_feed_rows(const wg_tap_feed *f, const wg_seq *seq);  /* waiting rows */
/* The i-th oldest waiting row: (n, dim) floats in memory of the target's device. Rows are contiguous and valid until the next
 * commit. */
WG_PLUGIN_API const float *wg_tap_feed_at(const wg_tap_feed *f, const wg_seq *seq, int i);
/* Copies `rows` rows from the i-th on to host memory. EIO: the device failed. */
WG_PLUGIN_API wg_status wg_tap_feed_read(const wg_tap_feed *f, const wg_seq *seq, int i, int rows, float *to, wg_error *err);
/* Drops the n oldest rows. A drafter that drops rows in propose must have stored their results where a failure of the step does
 * not undo them: in committed slots of its space, or in its own memory. */
WG_PLUGIN_API void wg_tap_feed_drop(wg_tap_feed *f, const wg_seq *seq, int n);

/* ---- for the engine */

struct wg_tap_feeds {
    wg_lm *target;
    int sequences;
    wg_tap_feed *list;
    struct wg_taps *taps; /* the union of all taps; NULL without feeds and before the first sequence */
};

/* Allocates, before the first sequence. On failure nothing is left. ENOMEM; EINVAL: too many taps in all. */
wg_status wg_tap_feeds_start(wg_tap_feeds *fs, wg_error *err);
void wg_tap_feeds_close(wg_tap_feeds *fs); /* closes all feeds */

/* Takes the rows of the last pass, a chunk of n tokens now committed. Fails if a reader fails. */
wg_status wg_tap_feeds_chunk(wg_tap_feeds *fs, const wg_seq *seq, int n, wg_error *err);
/* Makes room for a path of any tree, before a step drafts. Fails if a reader fails. */
wg_status wg_tap_feeds_make_room(wg_tap_feeds *fs, const wg_seq *seq, wg_error *err);
/* Takes the rows of a committed path (root first) of a tree whose rows of the last pass begin at `row`. Cannot fail. */
void wg_tap_feeds_path(wg_tap_feeds *fs, const wg_seq *seq, int row, const wg_path *path);
/* Cuts the rows of a slot to a cache of `len` tokens; 0: the sequence was closed. */
void wg_tap_feeds_rewind(wg_tap_feeds *fs, int slot, int len);
/* Begins a sequence with a cache of `len` tokens, which count as read: the drafter's space has their results. */
void wg_tap_feeds_resume(wg_tap_feeds *fs, int slot, int len);
/* The number of the first `len` tokens with which another sequence may begin: those that all readers of every row have read. */
int wg_tap_feeds_read(const wg_tap_feeds *fs, int slot, int len);
int wg_tap_feeds_latest(const wg_tap_feeds *fs); /* rows before the root that some reader needs of every text */

#endif
