/* SPDX-License-Identifier: MIT
 * External language models (external.h). A pass is one request, unless its sequences are more than the server holds, or a text
 * that the server has lost is longer than a request: then rows without logits go first. */
#include "core/model/external/external.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/model/external/token_rows.h"
#include "core/model/taps.h"

/* ---- what a sequence of the server holds: the tokens of a text, and behind them the rows of its last request, a tree of which
 * a path may become text. Before a request the wanted text is compared with them token by token, so commits, rejected drafts,
 * changed prompts and new sequences in the same slot are one case. */

typedef struct held_rows {
    int32_t *text; /* (room) of which n are held; grows */
    int n, room;
    int32_t *token, *parent; /* (most) the rows of the last request: borrowed */
    int rows;
} held_rows;

/* Room for a text of n tokens. ENOMEM: nothing has changed. */
static wg_status held_reserve(held_rows *h, int n, wg_error *err)
{
    if (n <= h->room) return WG_OK;
    const int room = n + n / 2 + 256;
    int32_t *text = wg_realloc(h->text, (size_t)room, sizeof *text);
    if (!text) return wg_nomem(err, (size_t)room * sizeof *text, "a text that an external target holds");
    h->text = text;
    h->room = room;
    return WG_OK;
}

/* Marks the sequence as empty. */
static void held_drop(held_rows *h) { h->n = h->rows = 0; }

/* Adapts h to a text that begins with `prefix` (n): it keeps the first *kept tokens of its text, then rows path[0 .. *path_n -
 * 1] of the last request, a path of the tree, and nothing else; h->n = *kept + *path_n. Room for n must be reserved. */
static void held_settle(held_rows *h, const int32_t *prefix, int n, int *kept, int32_t *path, int *path_n)
{
    int same = 0, last = -1;
    wg_assert(n <= h->room);
    while (same < h->n && same < n && h->text[same] == prefix[same]) same++;
    *kept = same;
    *path_n = 0;
    for (int i = 0; i < h->rows && *kept == h->n && same < n; i++) /* down the tree, a child that the text has at a time */
        if (h->parent[i] == last && h->token[i] == prefix[same]) {
            h->text[same++] = h->token[i];
            path[(*path_n)++] = last = i;
        }
    h->n = same;
    h->rows = 0;
}

/* Records n rows that were requested and answered. */
static void held_asked(held_rows *h, const wg_asked_row *row, int n)
{
    for (int i = 0; i < n; i++) {
        h->token[i] = row[i].token;
        h->parent[i] = row[i].parent;
    }
    h->rows = n;
}

/* ---- requests */

/* A sequence that the server holds. */
typedef struct place {
    const wg_kv_seq *kv; /* sequence of the last request; only an address, since the text shows whether it is the same */
    long used;           /* number of the last request that used it */
    held_rows held;
} place;

typedef struct external {
    wg_lm lm; /* first */
    wg_row_server *server;
    place *place;               /* (sequences) */
    int32_t *last;              /* (sequences, 2, rows) of held */
    wg_asked_part *part;        /* (sequences) the request being gathered, with: */
    int32_t *path;              /* (rows) */
    wg_asked_row *row;          /* (rows) */
    bool own[WG_EXTERNAL_ROWS]; /* a row of the batch, not of a text that the server has lost */
    int owned;                  /* number of such rows */
    wg_asked asked;
    wg_taps *taps;   /* receives hidden states of the running pass; NULL: none */
    wg_device host;  /* they lie in its memory */
    int paths;       /* words of path */
    int32_t *prefix; /* (prefix_room) prefix of the present sequence */
    int prefix_room;
    int32_t parent[WG_EXTERNAL_ROWS];
    long requests;
} external;

static wg_status attach(wg_lm *lm, wg_kv *kv, wg_error *err) { return wg_token_space(kv, &lm->space, err); }

static void begin_request(external *x)
{
    x->asked = (wg_asked){ .part = x->part };
    x->paths = x->owned = 0;
    x->requests++;
}

/* Makes room for the hidden states of gathered rows, behind those of the pass so far. */
static wg_status ask_taps(external *x, wg_error *err)
{
    wg_taps *t = x->taps;
    if (!t || !x->owned) return WG_OK;
    x->asked.tap = t->tap;
    x->asked.taps = t->n;
    return wg_taps_reserve(t, t->rows + x->asked.rows, err);
}

/* Keeps, of the answered hidden states, those of the batch's rows. */
static void keep_own(external *x)
{
    wg_taps *t = x->taps;
    const size_t row = (size_t)t->n * (size_t)t->dim;
    const float *from = t->room + (size_t)t->rows * row;
    for (int i = 0; i < x->asked.rows; i++, from += row)
        if (x->own[i]) memmove(t->room + (size_t)t->rows++ * row, from, row * sizeof *from);
}

static wg_status answer(external *x, float *logits, wg_error *err)
{
    wg_taps *t = x->taps;
    if (!x->asked.parts) return WG_OK;
    WG_TRY(ask_taps(x, err));
    float *taps = x->asked.taps ? t->room + (size_t)t->rows * (size_t)t->n * (size_t)t->dim : NULL;
    WG_TRY(x->server->class->answer(x->server, &x->asked, logits, taps, err));
    if (taps) keep_own(x);
    return WG_OK;
}

/* Sends the gathered request; *logits moves behind the written rows. */
static wg_status send(external *x, float **logits, wg_error *err)
{
    const wg_status s = answer(x, *logits, err);
    for (int i = 0; i < x->asked.parts && !s; i++) {
        const wg_asked_part *p = &x->part[i];
        held_asked(&x->place[p->sequence].held, p->row, p->n);
    }
    for (int i = 0; i < x->server->sequences && s; i++) held_drop(&x->place[i].held);
    if (!s && *logits) *logits += (size_t)x->asked.logits * (size_t)x->lm.vocab;
    begin_request(x);
    return s;
}

/* The place of a sequence: its own, or the least recently used one. */
static int place_of(external *x, const wg_kv_seq *kv)
{
    int oldest = 0;
    for (int i = 0; i < x->server->sequences; i++) {
        if (x->place[i].kv == kv) return i;
        if (x->place[i].used < x->place[oldest].used) oldest = i;
    }
    return oldest;
}

/* Adds to the request that is gathered: `catch_up` tokens of the prefix behind those held, then rows [lo, hi) of the batch. */
static void gather(external *x, const wg_batch *b, int at, int kept, int path_n, int catch_up, int lo, int hi)
{
    place *p = &x->place[at];
    const int held = p->held.n;
    wg_asked_row *row = x->row + x->asked.rows;
    for (int i = 0; i < catch_up + hi - lo; i++) x->own[x->asked.rows + i] = i >= catch_up;
    for (int i = 0; i < catch_up; i++)
        row[i] = (wg_asked_row){ .token = x->prefix[held + i], .parent = i - 1, .position = held + i, .logits = -1 };
    for (int i = 0; i < hi - lo; i++) {
        const wg_row *r = &b->row[lo + i];
        row[catch_up + i] = (wg_asked_row){ .token = r->token,
                                            .parent = x->parent[i] + catch_up,
                                            .position = r->position,
                                            .logits = r->logits >= 0 ? x->asked.logits++ : -1 };
    }
    x->part[x->asked.parts++] = (wg_asked_part){
        .sequence = at, .kept = kept, .path_n = path_n, .n = catch_up + hi - lo, .path = x->path + x->paths, .row = row
    };
    x->asked.rows += catch_up + hi - lo;
    x->owned += hi - lo;
    x->paths += path_n;
    p->used = x->requests;
}

/* Reads the prefix of rows [lo, hi) from the cache, and their parents. */
static wg_status read_rows(external *x, const wg_batch *b, int lo, int hi, int *prefix_n, wg_error *err)
{
    const int n = wg_token_rows_put(b, lo, hi, x->lm.space);
    if (n > x->prefix_room) {
        const int room = n + n / 2 + 256;
        int32_t *prefix = wg_realloc(x->prefix, (size_t)room, sizeof *prefix);
        if (!prefix) return wg_nomem(err, (size_t)room * sizeof *prefix, "a prefix for an external target");
        x->prefix = prefix;
        x->prefix_room = room;
    }
    wg_token_rows_prefix(b, lo, x->lm.space, n, x->prefix);
    wg_token_rows_parents(b, lo, hi, n, x->parent);
    *prefix_n = n;
    return WG_OK;
}

/* Adds rows [lo, hi) of one sequence to the gathered request, which is sent first if they do not fit. */
static wg_status add_rows(external *x, const wg_batch *b, int lo, int hi, float **logits, wg_error *err)
{
    int32_t path[WG_EXTERNAL_ROWS];
    int prefix_n = 0, kept, path_n;
    if (hi - lo > WG_EXTERNAL_ROWS)
        return wg_fail(err, WG_EUNSUPPORTED, "%d rows of one sequence in a pass; an external target takes %d", hi - lo,
                       WG_EXTERNAL_ROWS);
    WG_TRY(read_rows(x, b, lo, hi, &prefix_n, err));
    int at = place_of(x, b->row[lo].kv);
    if (x->asked.parts == x->server->sequences || (x->asked.parts && x->place[at].used == x->requests))
        WG_TRY(send(x, logits, err));
    held_rows *h = &x->place[at].held;
    WG_TRY(held_reserve(h, prefix_n, err));
    x->place[at].kv = b->row[lo].kv;
    held_settle(h, x->prefix, prefix_n, &kept, path, &path_n);
    if (x->paths + path_n > WG_EXTERNAL_ROWS || x->asked.rows + prefix_n - h->n + hi - lo > WG_EXTERNAL_ROWS)
        WG_TRY(send(x, logits, err));
    while (prefix_n - h->n + hi - lo > WG_EXTERNAL_ROWS) { /* a part of the lost text by itself */
        const int left = prefix_n - h->n, n = left < WG_EXTERNAL_ROWS ? left : WG_EXTERNAL_ROWS;
        memcpy(x->path, path, (size_t)path_n * sizeof *path);
        gather(x, b, at, kept, path_n, n, lo, lo);
        WG_TRY(send(x, logits, err));
        held_settle(h, x->prefix, prefix_n, &kept, path, &path_n);
    }
    memcpy(x->path + x->paths, path, (size_t)path_n * sizeof *path);
    gather(x, b, at, kept, path_n, prefix_n - h->n, lo, hi);
    return WG_OK;
}

static wg_status forward(wg_lm *lm, const wg_batch *batch, float *logits, wg_error *err)
{
    external *x = (external *)lm;
    wg_assert(!batch->taps || batch->taps->lm == lm);
    x->taps = batch->taps;
    if (x->taps) x->taps->rows = 0;
    begin_request(x);
    wg_status s = WG_OK;
    for (int lo = 0, hi; lo < batch->n && !s; lo = hi) {
        hi = wg_token_rows_end(batch, lo);
        s = add_rows(x, batch, lo, hi, &logits, err);
    }
    if (!s) s = send(x, &logits, err);
    if (s) {
        if (x->taps) x->taps->rows = 0;
        for (int i = 0; i < x->server->sequences; i++) held_drop(&x->place[i].held);
        return wg_fail_in(err, s, "target %s", x->server->class->name);
    }
    wg_token_rows_wrote(batch, lm->space);
    return WG_OK;
}

static void close_lm(wg_lm *lm)
{
    external *x = (external *)lm;
    for (int i = 0; x->place && i < x->server->sequences; i++) wg_free(x->place[i].held.text);
    x->server->class->close(x->server);
    wg_free(x->place);
    wg_free(x->last);
    wg_free(x->part);
    wg_free(x->path);
    wg_free(x->row);
    wg_free(x->prefix);
    wg_device_close(&x->host);
    wg_free(x);
}

static const wg_lm_class external_class = {
    .name = "external", .attach = attach, .forward = forward, .close = close_lm, .law_only = true
};

static wg_status open_rows(external *x, wg_error *err)
{
    const size_t n = (size_t)x->server->sequences, rows = WG_EXTERNAL_ROWS;
    x->place = wg_calloc(n, sizeof *x->place);
    x->last = wg_calloc(n * 2 * rows, sizeof *x->last);
    x->part = wg_calloc(n, sizeof *x->part);
    x->path = wg_calloc(rows, sizeof *x->path);
    x->row = wg_calloc(rows, sizeof *x->row);
    if (!x->place || !x->last || !x->part || !x->path || !x->row)
        return wg_nomem(err, n * 2 * rows * sizeof *x->last, "an external target's rows");
    for (size_t i = 0; i < n; i++) {
        x->place[i].held.token = x->last + i * 2 * rows;
        x->place[i].held.parent = x->last + (i * 2 + 1) * rows;
    }
    return wg_device_cpu(&x->host, NULL, err);
}

wg_status wg_external_open(wg_lm **out, wg_row_server *server, int context, wg_error *err)
{
    if (context > server->context) {
        const int most = server->context;
        server->class->close(server);
        return wg_fail(err, WG_ECONTEXT, "target: context is %d; the external model's is %d tokens", context, most);
    }
    external *x = wg_calloc(1, sizeof *x);
    if (!x) {
        server->class->close(server);
        return wg_nomem(err, sizeof *x, "an external target");
    }
    x->server = server;
    const wg_status status = open_rows(x, err);
    if (status) {
        close_lm(&x->lm);
        return status;
    }
    x->lm = (wg_lm){
        .class = &external_class, .vocab = server->vocab, .context = context ? context : server->context, .space = -1
    };
    if (server->layers) x->lm.hidden = (wg_hidden){ .layers = server->layers, .dim = server->dim, .device = &x->host };
    *out = &x->lm;
    return WG_OK;
}
