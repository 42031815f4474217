/* SPDX-License-Identifier: MIT
 * Records of a trace, built in memory. All numbers are little-endian (the machines this runs on are). */
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/trace.h"
#include "kernels/types.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "traces are written as they lie in memory");

uint64_t wg_trace_sum(uint64_t sum, const unsigned char *byte, size_t n)
{
    uint64_t word;
    for (; n >= 8; byte += 8, n -= 8) {
        memcpy(&word, byte, 8);
        sum = (sum ^ word) * 0x9E3779B97F4A7C15ull;
        sum ^= sum >> 32;
    }
    if (n == 0) return sum;
    word = 0;
    memcpy(&word, byte, n);
    sum = (sum ^ word) * 0x9E3779B97F4A7C15ull;
    return sum ^ sum >> 32;
}

wg_status wg_trace_writer_open(wg_trace_writer *w, int rows, int top, int vocab, wg_error *err)
{
    *w = (wg_trace_writer){ .rows = rows, .top = top < vocab ? top : vocab, .vocab = vocab };
    w->clean = wg_alloc((size_t)vocab, sizeof *w->clean);
    w->order = wg_alloc((size_t)vocab, sizeof *w->order);
    if (w->clean && w->order) return WG_OK;
    wg_trace_writer_close(w);
    return wg_nomem(err, (size_t)vocab * 12, "writing a trace");
}

void wg_trace_writer_close(wg_trace_writer *w)
{
    wg_free(w->byte);
    wg_free(w->clean);
    wg_free(w->order);
    *w = (wg_trace_writer){ 0 };
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* Room for n more bytes, which the caller fills; NULL (and failed) when there is none. */
static unsigned char *more(wg_trace_writer *w, size_t n)
{
    if (w->failed) return NULL;
    if (w->room - w->n < n) {
        const size_t room = w->n + n + (w->n + n) / 2 + 4096;
        unsigned char *byte = wg_realloc(w->byte, room, 1);
        if (!byte) {
            w->failed = true;
            return NULL;
        }
        w->byte = byte;
        w->room = room;
    }
    w->n += n;
    return w->byte + w->n - n;
}

static void put(wg_trace_writer *w, const void *p, size_t n)
{
    unsigned char *to = more(w, n);
    if (to && n) memcpy(to, p, n);
}

static void put_u32(wg_trace_writer *w, uint32_t x) { put(w, &x, 4); }
static void put_i32(wg_trace_writer *w, int32_t x) { put(w, &x, 4); }
static void put_f64(wg_trace_writer *w, double x) { put(w, &x, 8); }

static void begin(wg_trace_writer *w, uint32_t kind)
{
    w->n = 0;
    w->failed = false;
    put_u32(w, 0); /* its length: known at the end */
    put_u32(w, kind);
}

/* The record that began at `at` is complete. */
static wg_status end(wg_trace_writer *w, size_t at, wg_error *err)
{
    const size_t n = w->n - at - 8;
    if (!w->failed && n > UINT32_MAX - 64) return wg_fail(err, WG_EUNSUPPORTED, "a trace record of %zu bytes; try trace_rows=top", n);
    if (!w->failed) {
        const uint32_t length = (uint32_t)n;
        memcpy(w->byte + at, &length, 4);
        const uint64_t sum = wg_trace_sum(0, w->byte + at, n + 8);
        put(w, &sum, 8);
    }
    return w->failed ? wg_nomem(err, w->n, "a trace record") : WG_OK;
}

wg_status wg_trace_put_header(wg_trace_writer *w, const json_t *header, wg_error *err)
{
    const uint32_t version[2] = { WG_TRACE_VERSION, 0 };
    char *text = wg_json_canonical(header, false);
    if (!text) return wg_nomem(err, 1, "the header of a trace");
    w->n = 0;
    w->failed = false;
    put(w, WG_TRACE_MAGIC, 8);
    put(w, version, 8);
    put_u32(w, 0);
    put_u32(w, WG_RECORD_HEADER);
    put(w, text, strlen(text));
    wg_free(text);
    return end(w, 16, err);
}

wg_status wg_trace_put_request(wg_trace_writer *w, const wg_trace_asked *a, const int32_t *token, wg_error *err)
{
    begin(w, WG_RECORD_REQUEST);
    put_u32(w, a->address);
    const int32_t rest[] = { a->cell, a->group, a->prompt, a->repeat, a->limit, a->prompt_tokens };
    put(w, rest, sizeof rest);
    put(w, token, (size_t)a->prompt_tokens * 4);
    return end(w, 0, err);
}

wg_status wg_trace_put_end(wg_trace_writer *w, uint64_t request, int32_t tokens, int finish, wg_error *err)
{
    begin(w, WG_RECORD_END);
    put(w, &request, 8);
    put_i32(w, tokens);
    put_i32(w, finish);
    return end(w, 0, err);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void row_head(wg_trace_writer *w, int kind, uint32_t count, double error)
{
    put_u32(w, (uint32_t)kind);
    put_u32(w, count);
    put_f64(w, error);
}

static void put_exact(wg_trace_writer *w, const wg_rows *r, int row)
{
    const wg_support s = wg_rows_support(r, row);
    const double *p = wg_rows_at(r, row);
    const int32_t *token = s.token;
    int n = s.n;
    if (!token) { /* a row that was cut off without a list gets one: sums over it have the same bits */
        n = 0;
        for (int32_t i = 0; i < r->vocab; i++) {
            w->order[n] = i;
            n += p[i] != 0;
        }
        token = w->order;
    }
    if (12 * (size_t)n >= 8 * (size_t)r->vocab) {
        row_head(w, WG_ROW_DENSE, 0, 0);
        put(w, p, (size_t)r->vocab * 8);
        return;
    }
    row_head(w, WG_ROW_LIST, (uint32_t)n, 0);
    put(w, token, (size_t)n * 4);
    unsigned char *to = more(w, (size_t)n * 8);
    for (int i = 0; to && i < n; i++) memcpy(to + 8 * (size_t)i, &p[token[i]], 8);
}

/* Half the sum of distances from p to what a reader will have, made to sum to 1. */
static double variation(const double *p, const double *shown, double sum, int n)
{
    double error = 0;
    for (int i = 0; i < n; i++) {
        const double d = p[i] - shown[i] / sum;
        error += d < 0 ? -d : d;
    }
    return error / 2;
}

static bool is_among(const int32_t *keep, int n, int32_t token)
{
    for (int i = 0; i < n; i++)
        if (keep[i] == token) return true;
    return false;
}

/* keep: tokens drawn from this row, which must not become impossible. */
static void put_f16(wg_trace_writer *w, const double *p, const int32_t *keep, int n_keep)
{
    double sum = 0;
    const size_t at = w->n;
    row_head(w, WG_ROW_F16, 0, 0);
    unsigned char *to = more(w, (size_t)w->vocab * 2);
    for (int i = 0; to && i < w->vocab; i++) {
        uint16_t h = wg_f32_to_f16((float)p[i]);
        if (h == 0 && p[i] > 0 && is_among(keep, n_keep, i)) h = 1;
        memcpy(to + 2 * (size_t)i, &h, 2);
        sum += w->clean[i] = (double)wg_f16_to_f32(h);
    }
    const double error = to ? variation(p, w->clean, sum, w->vocab) : 0;
    if (to) memcpy(w->byte + at + 8, &error, 8);
}

/* Does a come before b: more probable, or as probable and earlier? */
static bool before(const double *p, int32_t a, int32_t b) { return p[a] > p[b] || (p[a] == p[b] && a < b); }

/* The k most probable tokens to the front of order (Hoare's selection). */
static void select_top(const double *p, int32_t *order, int n, int k)
{
    for (int i = 0; i < n; i++) order[i] = i;
    for (int lo = 0, hi = n - 1; lo < hi;) {
        const int32_t pivot = order[lo + (hi - lo) / 2];
        int i = lo, j = hi;
        while (i <= j) {
            while (before(p, order[i], pivot)) i++;
            while (before(p, pivot, order[j])) j--;
            if (i > j) break;
            const int32_t x = order[i];
            order[i++] = order[j];
            order[j--] = x;
        }
        if (k - 1 <= j) hi = j;
        else if (k - 1 >= i) lo = i;
        else return;
    }
}

static void put_top(wg_trace_writer *w, const double *p, const int32_t *keep, int n_keep)
{
    const int V = w->vocab;
    int n = w->top;
    select_top(p, w->order, V, n);
    for (int i = 0; i < n_keep; i++) /* drawn tokens that are not among them */
        for (int k = n; k < V; k++)
            if (w->order[k] == keep[i]) {
                w->order[k] = w->order[n];
                w->order[n++] = keep[i];
                break;
            }
    for (int i = 0; i < V; i++) w->clean[i] = -1;
    for (int i = 0; i < n; i++) w->clean[w->order[i]] = (double)(float)p[w->order[i]];
    const size_t at = w->n;
    row_head(w, WG_ROW_TOP, (uint32_t)n, 0);
    double rest = 0, sum = 0;
    for (int32_t i = 0; i < V; i++) {
        if (w->clean[i] >= 0) put_i32(w, i);
        else rest += p[i];
    }
    for (int32_t i = 0; i < V; i++) {
        const float v = (float)p[i];
        if (w->clean[i] >= 0) put(w, &v, 4);
        else w->clean[i] = rest / (V - n);
        sum += w->clean[i];
    }
    put_f64(w, rest);
    const double error = variation(p, w->clean, sum, V);
    if (!w->failed) memcpy(w->byte + at + 8, &error, 8);
}

static void put_row(wg_trace_writer *w, const wg_rows *r, int row, const int32_t *keep, int n_keep)
{
    if (r->point[row] >= 0) {
        row_head(w, WG_ROW_POINT, (uint32_t)r->point[row], 0);
        return;
    }
    const wg_support s = wg_rows_support(r, row);
    /* a short list is exact and no longer than a compact row */
    const bool shorter = s.token && (w->rows == WG_TRACE_F16 ? 12 * s.n <= 2 * w->vocab : s.n <= w->top);
    if (w->rows == WG_TRACE_EXACT || w->rows == WG_TRACE_LOGITS || shorter) put_exact(w, r, row);
    else if (w->rows == WG_TRACE_F16) put_f16(w, wg_rows_at(r, row), keep, n_keep);
    else put_top(w, wg_rows_at(r, row), keep, n_keep);
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

/* Numbers the q rows of one tree from 0, in the order of its nodes. Returns how many. */
static int number_rows(const wg_tree *t, int16_t *local, int *global)
{
    int n = 0;
    for (int i = 0; i < t->n; i++) {
        local[i] = -1;
        for (int k = 0; t->qrow[i] >= 0 && k < n; k++)
            if (global[k] == t->qrow[i]) local[i] = (int16_t)k;
        if (t->qrow[i] < 0 || local[i] >= 0) continue;
        global[n] = t->qrow[i];
        local[i] = (int16_t)n++;
    }
    return n;
}

static void put_tree(wg_trace_writer *w, const wg_tree *t, const int16_t *local)
{
    put_i32(w, (int32_t)t->law);
    put_i32(w, t->n);
    put_f64(w, t->score);
    for (int i = 0; i < t->n; i++) put_i32(w, t->token[i]);
    for (int i = 0; i < t->n; i++) put_i32(w, t->parent[i]);
    for (int i = 0; i < t->n; i++) put_i32(w, local[i]);
}

static void put_path(wg_trace_writer *w, const wg_path *path)
{
    put_i32(w, path->n);
    put_i32(w, path->next);
    for (int i = 0; i < path->n; i++) put_i32(w, path->node[i]);
}

/* The tokens a row was asked about: the children of its node, and what was emitted after it. */
static int asked_of(const wg_tree *t, const wg_path *path, int node, int32_t *keep)
{
    int n = 0;
    for (int child = node; (child = wg_tree_child(t, node, child)) >= 0;) keep[n++] = t->token[child];
    if (path->node[path->n - 1] == node) keep[n++] = path->next;
    return n;
}

static int drawn_from(const wg_tree *t, int qrow, int32_t *keep)
{
    int n = 0;
    for (int i = 1; i < t->n; i++)
        if (t->qrow[i] == qrow) keep[n++] = t->token[i];
    return n;
}

wg_status wg_trace_put_round(wg_trace_writer *w, const wg_trace_facts *f, const wg_tree *tree, const wg_path *path,
                             const wg_rows *p, const wg_rows *q, const float *logits, wg_error *err)
{
    int16_t local[WG_TREE_MAX];
    int global[WG_TREE_MAX];
    int32_t keep[WG_TREE_MAX + 1];
    const int n_q = number_rows(tree, local, global);
    begin(w, WG_RECORD_ROUND);
    const uint32_t who[] = { f->step, f->position };
    const int32_t how[] = { f->left, f->batch, f->finish };
    const double times[] = { f->seconds, f->draft, f->verify, f->accept, f->kv };
    put(w, &f->request, 8);
    put(w, who, sizeof who);
    put(w, how, sizeof how);
    put(w, times, sizeof times);
    put_tree(w, tree, local);
    put_path(w, path);
    put_i32(w, n_q);
    for (int i = 0; i < tree->n; i++) {
        if (logits && w->rows == WG_TRACE_LOGITS) {
            row_head(w, WG_ROW_LOGITS, 0, 0);
            put(w, logits + (size_t)(tree->row + i) * (size_t)w->vocab, (size_t)w->vocab * 4);
        } else {
            put_row(w, p, tree->row + i, keep, asked_of(tree, path, i, keep));
        }
    }
    for (int k = 0; k < n_q; k++) put_row(w, q, global[k], keep, drawn_from(tree, global[k], keep));
    return end(w, 0, err);
}
