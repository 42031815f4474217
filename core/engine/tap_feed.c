/* SPDX-License-Identifier: MIT
 * Feeds of hidden states (tap_feed.h): a list of readers, the union of what they read, and a queue for each reader and place in
 * the batch. */
#include "core/engine/tap_feed.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/model/taps.h"

enum { ROOM = 2 * WG_TREE_MAX }; /* rows of a sequence: those left by a step, and another path */

/* The waiting rows of one sequence. */
typedef struct tap_wait {
    wg_tap_queue *queue;
    int first; /* position of the oldest row */
} tap_wait;

struct wg_tap_feed {
    wg_tap_feeds *of;
    wg_tap_feed *next;
    wg_tap_reader reader;
    int tap[WG_TAPS_MOST]; /* target of reader.tap */
    tap_wait *wait;        /* (sequences) by slot; NULL before the first sequence */
};

wg_status wg_tap_feed_open(wg_tap_feed **out, wg_tap_feeds *feeds, const wg_tap_reader *reader, wg_error *err)
{
    if (!feeds)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "hidden states are read from the passes of an engine, and here a drafter runs without one; use "
                       "wager run or generate");
    WG_TRY(wg_taps_offered(feeds->target, reader->tap, reader->n, err));
    wg_assert(!feeds->taps && (reader->latest > 0 || reader->absorb));
    wg_tap_feed *f = wg_calloc(1, sizeof *f);
    if (!f) return wg_nomem(err, sizeof *f, "a reader of hidden states");
    f->of = feeds;
    f->reader = *reader;
    f->reader.tap = memcpy(f->tap, reader->tap, (size_t)reader->n * sizeof *f->tap);
    wg_tap_feed **end = &feeds->list;
    while (*end) end = &(*end)->next;
    *end = *out = f;
    return WG_OK;
}

/* ---- all feeds */

/* Opens the union of all taps, in the order of their first request, so that a single reader takes whole rows. */
static wg_status open_union(wg_tap_feeds *fs, wg_error *err)
{
    enum { MOST = 4 * WG_TAPS_MOST };
    int tap[MOST], n = 0;
    for (const wg_tap_feed *f = fs->list; f; f = f->next)
        for (int i = 0; i < f->reader.n && n < MOST; i++) {
            int k = 0;
            while (k < n && tap[k] != f->tap[i]) k++;
            if (k == n) tap[n++] = f->tap[i];
        }
    return wg_taps_open(&fs->taps, fs->target, tap, n, err);
}

static wg_status open_queues(wg_tap_feed *f, wg_error *err)
{
    const wg_tap_reader *r = &f->reader;
    f->wait = wg_calloc((size_t)f->of->sequences, sizeof *f->wait);
    if (!f->wait) return wg_nomem(err, (size_t)f->of->sequences * sizeof *f->wait, "the rows of a reader of hidden states");
    for (int i = 0; i < f->of->sequences; i++)
        WG_TRY(wg_tap_queue_open(&f->wait[i].queue, f->of->taps, f->tap, r->n, r->latest > 0 ? r->latest : ROOM, err));
    return WG_OK;
}

static void stop(wg_tap_feeds *fs)
{
    for (wg_tap_feed *f = fs->list; f; f = f->next) {
        for (int i = 0; f->wait && i < fs->sequences; i++) wg_tap_queue_close(f->wait[i].queue);
        wg_free(f->wait);
        f->wait = NULL;
    }
    wg_taps_close(fs->taps);
    fs->taps = NULL;
}

wg_status wg_tap_feeds_start(wg_tap_feeds *fs, wg_error *err)
{
    if (!fs->list || fs->taps) return WG_OK;
    wg_status status = open_union(fs, err);
    for (wg_tap_feed *f = fs->list; f && !status; f = f->next) status = open_queues(f, err);
    if (status) stop(fs);
    return status;
}

void wg_tap_feeds_close(wg_tap_feeds *fs)
{
    stop(fs);
    for (wg_tap_feed *f = fs->list, *next; f; f = next) {
        next = f->next;
        wg_free(f);
    }
    fs->list = NULL;
}

/* ---- committed rows */

static int end_of(const tap_wait *w) { return w->first + wg_tap_queue_rows(w->queue); }

static void drop(tap_wait *w, int n)
{
    wg_tap_queue_drop(w->queue, n);
    w->first += n;
}

/* Appends rows row[0 .. n-1] of the last pass, which belong to the next n positions. */
static void take(const wg_tap_feed *f, tap_wait *w, const int *row, int n)
{
    const int latest = f->reader.latest, skip = latest > 0 && n > latest ? n - latest : 0;
    const int over = latest > 0 ? wg_tap_queue_rows(w->queue) + n - skip - latest : 0;
    if (over > 0) drop(w, over);
    w->first += skip;
    wg_tap_queue_push(w->queue, row + skip, n - skip);
}

/* Makes room for n rows, n <= ROOM. */
static wg_status make_room(const wg_tap_feed *f, const wg_seq *seq, int n, wg_error *err)
{
    const tap_wait *w = &f->wait[seq->slot];
    if (f->reader.latest > 0 || wg_tap_queue_room(w->queue) >= n) return WG_OK;
    WG_TRY(f->reader.absorb(f->reader.user, seq, err));
    if (wg_tap_queue_room(w->queue) >= n) return WG_OK;
    return wg_fail(err, WG_EINVAL,
                   "request %u: a reader of hidden states left %d rows of %d unread where %d more come; expected that it drops "
                   "what it has read (wg_tap_feed_drop)",
                   (unsigned)seq->request, wg_tap_queue_rows(w->queue), ROOM, n);
}

wg_status wg_tap_feeds_chunk(wg_tap_feeds *fs, const wg_seq *seq, int n, wg_error *err)
{
    int row[ROOM];
    for (wg_tap_feed *f = fs->list; f; f = f->next) {
        tap_wait *w = &f->wait[seq->slot];
        wg_assert(end_of(w) == wg_kv_len(seq->kv) - n);
        for (int done = 0, some; done < n; done += some) {
            WG_TRY(make_room(f, seq, 1, err));
            some = f->reader.latest > 0 ? ROOM : wg_tap_queue_room(w->queue);
            some = n - done < some ? n - done : some;
            for (int i = 0; i < some; i++) row[i] = done + i;
            take(f, w, row, some);
        }
    }
    return WG_OK;
}

wg_status wg_tap_feeds_make_room(wg_tap_feeds *fs, const wg_seq *seq, wg_error *err)
{
    for (const wg_tap_feed *f = fs->list; f; f = f->next) WG_TRY(make_room(f, seq, WG_TREE_MAX, err));
    return WG_OK;
}

void wg_tap_feeds_path(wg_tap_feeds *fs, const wg_seq *seq, int row, const wg_path *path)
{
    int at[WG_TREE_MAX];
    for (int i = 0; i < path->n; i++) at[i] = row + path->node[i];
    for (wg_tap_feed *f = fs->list; f; f = f->next) {
        tap_wait *w = &f->wait[seq->slot];
        wg_assert(end_of(w) == wg_kv_len(seq->kv) - path->n);
        take(f, w, at, path->n);
    }
}

void wg_tap_feeds_rewind(wg_tap_feeds *fs, int slot, int len)
{
    for (wg_tap_feed *f = fs->list; f && f->wait; f = f->next) {
        tap_wait *w = &f->wait[slot];
        const int over = end_of(w) - len, rows = wg_tap_queue_rows(w->queue);
        if (over <= 0) continue;
        wg_tap_queue_cut(w->queue, over < rows ? over : rows);
        if (w->first > len) w->first = len;
    }
}

void wg_tap_feeds_resume(wg_tap_feeds *fs, int slot, int len)
{
    wg_tap_feeds_rewind(fs, slot, 0);
    for (wg_tap_feed *f = fs->list; f && f->wait; f = f->next) f->wait[slot].first = len;
}

int wg_tap_feeds_read(const wg_tap_feeds *fs, int slot, int len)
{
    for (const wg_tap_feed *f = fs->list; f && f->wait; f = f->next)
        if (f->reader.latest == 0 && f->wait[slot].first < len) len = f->wait[slot].first;
    return len;
}

int wg_tap_feeds_latest(const wg_tap_feeds *fs)
{
    int most = 0;
    for (const wg_tap_feed *f = fs->list; f; f = f->next)
        if (f->reader.latest > most) most = f->reader.latest;
    return most;
}

/* ---- reading */

static tap_wait *waiting(const wg_tap_feed *f, const wg_seq *seq) { return &f->wait[seq->slot]; }

int wg_tap_feed_dim(const wg_tap_feed *f) { return f->of->target->hidden.dim; }
int wg_tap_feed_first(const wg_tap_feed *f, const wg_seq *seq) { return waiting(f, seq)->first; }
int wg_tap_feed_rows(const wg_tap_feed *f, const wg_seq *seq) { return wg_tap_queue_rows(waiting(f, seq)->queue); }

const float *wg_tap_feed_at(const wg_tap_feed *f, const wg_seq *seq, int i)
{
    return wg_tap_queue_at(waiting(f, seq)->queue, i);
}

wg_status wg_tap_feed_read(const wg_tap_feed *f, const wg_seq *seq, int i, int rows, float *to, wg_error *err)
{
    return wg_tap_queue_read(waiting(f, seq)->queue, i, rows, to, err);
}

void wg_tap_feed_drop(wg_tap_feed *f, const wg_seq *seq, int n) { drop(waiting(f, seq), n); }
