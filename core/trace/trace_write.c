/* SPDX-License-Identifier: MIT
 * Records of a trace, built in memory. All numbers are little-endian, as are all supported machines. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/trace/trace.h"
#include "kernels/mass.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "traces are written as they lie in memory");

static inline uint64_t stir(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 0x9E3779B97F4A7C15ull;
    return sum ^ sum >> 32;
}

/* Four independent sums, so that their multiplications overlap. */
uint64_t wg_trace_sum(const unsigned char *head, const unsigned char *byte, size_t n)
{
    uint64_t lane[4] = { 1, 2, 3, 4 }, word[4] = { 0 };
    memcpy(word, head, 8);
    lane[0] = stir(lane[0], word[0]);
    for (; n >= 32; byte += 32, n -= 32) {
        memcpy(word, byte, 32);
        for (int k = 0; k < 4; k++) lane[k] = stir(lane[k], word[k]);
    }
    memset(word, 0, sizeof word);
    if (n) memcpy(word, byte, n);
    for (int k = 0; n && k < 4; k++) lane[k] = stir(lane[k], word[k]);
    for (int k = 1; k < 4; k++) lane[0] = stir(lane[0], lane[k]);
    return lane[0];
}

int wg_trace_whole(int rows, int top, int vocab)
{
    const bool cuts = rows == WG_TRACE_TOP || (rows == WG_TRACE_AUTO && vocab >= WG_TRACE_WIDE);
    if (!cuts || 3 * (int64_t)top >= vocab) return vocab;
    return rows == WG_TRACE_AUTO && top < WG_TRACE_LIST ? WG_TRACE_LIST : top;
}

wg_status wg_trace_writer_open(wg_trace_writer *w, int rows, int top, int vocab, wg_error *err)
{
    *w = (wg_trace_writer){ .rows = rows, .top = top, .list = wg_trace_whole(rows, top, vocab), .vocab = vocab };
    if (rows == WG_TRACE_AUTO || rows == WG_TRACE_TOP) w->rows = w->list < vocab ? WG_TRACE_TOP : WG_TRACE_EXACT;
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

/* Makes room for n more bytes, which the caller fills; NULL (and `failed`) when out of memory. */
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
    put_u32(w, 0); /* its length, filled in at the end */
    put_u32(w, kind);
}

/* Completes the record that began at `at`. */
static wg_status end(wg_trace_writer *w, size_t at, wg_error *err)
{
    const size_t n = w->n - at - 8;
    if (!w->failed && n > UINT32_MAX - 64)
        return wg_fail(err, WG_EUNSUPPORTED, "a trace record of %zu bytes; try trace_rows=top", n);
    if (!w->failed) {
        const uint32_t length = (uint32_t)n;
        memcpy(w->byte + at, &length, 4);
        const uint64_t sum = wg_trace_sum(w->byte + at, w->byte + at + 8, n);
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

/* overlap: -1 where none is stored (WG_ROW_OVERLAP). */
static void row_head(wg_trace_writer *w, int kind, uint32_t count, double error, double overlap)
{
    put_u32(w, (uint32_t)(overlap >= 0 ? kind + WG_ROW_OVERLAP : kind));
    put_u32(w, count);
    put_f64(w, error);
    if (overlap >= 0) put_f64(w, overlap);
}

/* The number of tokens of a row that is not one-hot whose probability is not 0, or that its support names. */
static int nonzero(wg_rows *r, int row)
{
    const double *p = wg_rows_at(r, row);
    const wg_support s = wg_rows_support(r, row);
    int n = 0;
    for (int32_t i = 0; !s.token && i < r->vocab; i++) n += p[i] != 0;
    return s.token ? s.n : n;
}

static void put_exact(wg_trace_writer *w, wg_rows *r, int row, double overlap)
{
    const wg_support s = wg_rows_support(r, row);
    const double *p = wg_rows_at(r, row);
    const int32_t *token = s.token;
    int n = nonzero(r, row); /* a truncated row without a list gets one; sums over it have the same bits */
    const bool list = 12 * (size_t)n < 8 * (size_t)r->vocab;
    if (list && !token) {
        n = 0;
        for (int32_t i = 0; i < r->vocab; i++)
            if (p[i] != 0) w->order[n++] = i;
        token = w->order;
    }
    if (!list) {
        row_head(w, WG_ROW_DENSE, 0, 0, overlap);
        put(w, p, (size_t)r->vocab * 8);
        return;
    }
    row_head(w, WG_ROW_LIST, (uint32_t)n, 0, overlap);
    put(w, token, (size_t)n * 4);
    unsigned char *to = more(w, (size_t)n * 8);
    for (int i = 0; to && i < n; i++) memcpy(to + 8 * (size_t)i, &p[token[i]], 8);
}

static bool is_among(const int32_t *keep, int n, int32_t token)
{
    for (int i = 0; i < n; i++)
        if (keep[i] == token) return true;
    return false;
}

/* Half floats of numbers in 0..1 and back, without branches, equal to wg_f32_to_f16. Below 2^-14 they are multiples of 2^-24:
 * adding 2^28 to x 2^24 in double rounds it to the even integer. */
static inline uint16_t half_of(double x)
{
    const float f = (float)x;
    uint32_t u;
    memcpy(&u, &f, 4);
    const uint32_t normal = (u + 0xfff + (u >> 13 & 1)) >> 13,
                   small = (uint32_t)(int64_t)((double)f * 0x1p24 + 0x1.8p52 - 0x1.8p52);
    return (uint16_t)(f < 0x1p-14f ? small : normal - (112u << 10));
}
static inline double of_half(uint16_t h)
{
    const uint32_t u = ((uint32_t)h << 13) + (112u << 23);
    float f;
    memcpy(&f, &u, 4);
    return h < 1024 ? h * 0x1p-24 : (double)f;
}

/* Writes a row in half floats. keep: drawn tokens, which must keep a positive probability. */
static void put_f16(wg_trace_writer *w, const double *p, const int32_t *keep, int n_keep)
{
    const int V = w->vocab;
    const size_t at = w->n;
    double sum = 0, error = 0;
    row_head(w, WG_ROW_F16, 0, 0, -1);
    unsigned char *to = more(w, (size_t)V * 2);
    if (!to) return;
    uint16_t *half = (uint16_t *)(void *)w->order;
    for (int i = 0; i < V; i++) half[i] = half_of(p[i]);
    for (int i = 0; i < n_keep; i++)
        if (half[keep[i]] == 0 && p[keep[i]] > 0) half[keep[i]] = 1;
    for (int i = 0; i < V; i++) sum += w->clean[i] = of_half(half[i]);
    const double scale = 1 / sum;
    for (int i = 0; i < V; i++) error += fabs(p[i] - w->clean[i] * scale);
    error /= 2;
    memcpy(to, half, (size_t)V * 2);
    memcpy(w->byte + at + 8, &error, 8);
}

/* Whether a precedes b: larger probability, or the same and the smaller id. */
static bool before(const double *p, int32_t a, int32_t b) { return p[a] > p[b] || (p[a] == p[b] && a < b); }

/* Restores the heap at i; the last in order is on top. */
static void sink(const double *p, int32_t *heap, int n, int i)
{
    const int32_t id = heap[i];
    for (int child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(p, heap[child], heap[child + 1])) child++;
        if (!before(p, id, heap[child])) break;
        heap[i] = heap[child];
    }
    heap[i] = id;
}

/* Selects the k most probable tokens by a heap of k, into which few others are inserted. */
static void select_top(const double *p, int32_t *heap, int n, int k)
{
    for (int i = 0; i < k; i++) heap[i] = i;
    for (int i = k / 2 - 1; i >= 0; i--) sink(p, heap, k, i);
    for (int32_t i = k; i < n; i++) {
        if (p[i] <= p[heap[0]]) continue; /* (an equal probability and a larger id: not before it) */
        heap[0] = i;
        sink(p, heap, k, 0);
    }
}

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Writes the gap of the n tokens at p; returns the sum of the distances from it as it is read. largest: of the row. */
static double put_gap(wg_trace_writer *w, const double *p, int n, double largest)
{
    const double scale = wg_scale_of(largest), step = 0x1p-52 / scale;
    wg_mass mass = 0;
    double error = 0;
    for (int k = 0; k < n; k++) mass += wg_steps_of(p[k] * scale);
    const uint64_t each = n ? (uint64_t)(mass / (unsigned)n) : 0;
    const uint32_t more = n ? (uint32_t)(mass % (unsigned)n) : 0;
    for (int k = 0; k < n; k++) error += fabs(p[k] - fmin((double)(each + ((uint32_t)k < more)) * step, largest));
    put(w, &each, 8);
    put_u32(w, more);
    return error;
}

/* Writes a row cut to its most probable tokens and those of keep, which the round needs. */
static void put_cut(wg_trace_writer *w, const double *p, const int32_t *keep, int n_keep, double overlap)
{
    const int V = w->vocab;
    double error = 0, largest = 0;
    int n = w->top;
    select_top(p, w->order, V, n);
    for (int i = 0; i < n_keep; i++)
        if (n < V && !is_among(w->order, n, keep[i])) w->order[n++] = keep[i];
    qsort(w->order, (size_t)n, sizeof *w->order, ascending);
    const size_t at = w->n;
    row_head(w, WG_ROW_CUT, (uint32_t)n, 0, overlap);
    put(w, w->order, (size_t)n * 4);
    for (int i = 0; i < n; i++) {
        put_f64(w, p[w->order[i]]);
        largest = fmax(largest, p[w->order[i]]);
    }
    for (int32_t i = 0, after = 0; i <= n; i++) {
        const int32_t token = i < n ? w->order[i] : V;
        error += put_gap(w, p + after, token - after, largest);
        after = token + 1;
    }
    error = fmin(error / 2, 1);
    if (!w->failed) memcpy(w->byte + at + 8, &error, 8);
}

/* Whether the row's doubles take more room than its logits. */
static bool is_long(wg_rows *r, int row)
{
    return wg_rows_one_hot(r, row) < 0 && 12 * (long)nonzero(r, row) > 4 * (long)r->vocab;
}

/* Whether the row is stored cut. */
static bool is_cut(const wg_trace_writer *w, wg_rows *r, int row)
{
    return w->rows == WG_TRACE_TOP && wg_rows_one_hot(r, row) < 0 && nonzero(r, row) > w->list;
}

static void put_row(wg_trace_writer *w, wg_rows *r, int row, const int32_t *keep, int n_keep, double overlap)
{
    if (wg_rows_one_hot(r, row) >= 0) {
        row_head(w, WG_ROW_ONE_HOT, (uint32_t)r->point[row], 0, overlap);
        return;
    }
    const wg_support s = wg_rows_support(r, row);
    /* a short list is exact and no longer than half floats */
    const bool halves = w->rows == WG_TRACE_F16 && !(s.token && 12 * s.n <= 2 * w->vocab);
    if (halves) put_f16(w, wg_rows_at(r, row), keep, n_keep);
    else if (is_cut(w, r, row)) put_cut(w, wg_rows_at(r, row), keep, n_keep, overlap);
    else put_exact(w, r, row, overlap);
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

/* Numbers the q rows of one tree from 0, in the order of its nodes. Returns their number. */
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
    bool siblings = false;
    int children;
    for (int i = 1; i < t->n; i++) siblings = siblings || wg_tree_child(t, t->parent[i], i) >= 0;
    const bool declared =
        siblings && t->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT) && wg_tree_undeclared(t, &children) < 0;
    put_i32(w, (int32_t)t->law + (declared ? WG_TRACE_DECLARED : 0));
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

/* Lists the tokens whose probability in a row is needed: the children of its node, and the token emitted after it. */
static int asked_of(const wg_tree *t, const wg_path *path, int node, int32_t *keep)
{
    int n = 0;
    for (int child = node; (child = wg_tree_child(t, node, child)) >= 0;) keep[n++] = t->token[child];
    if (path->node[path->n - 1] == node) keep[n++] = path->next;
    return n;
}

/* The tokens drawn from a row of q, and the one emitted where it drew. */
static int drawn_from(const wg_tree *t, const wg_path *path, int qrow, int32_t *keep)
{
    const int last = path->node[path->n - 1];
    bool emitted = false;
    int n = 0;
    for (int i = 1; i < t->n; i++) {
        if (t->qrow[i] != qrow) continue;
        keep[n++] = t->token[i];
        emitted = emitted || t->parent[i] == last;
    }
    if (emitted) keep[n++] = path->next;
    return n;
}

/* sum min(p, q) after a node, if one of the two rows is stored cut, which does not determine it; else -1. */
static double overlap_of(const wg_trace_writer *w, const wg_tree *t, int node, wg_rows *p, wg_rows *q)
{
    const int child = wg_tree_child(t, node, node), qrow = child < 0 ? -1 : t->qrow[child];
    if (qrow < 0 || (!is_cut(w, p, t->row + node) && !is_cut(w, q, qrow))) return -1;
    return wg_rows_overlap(p, t->row + node, q, qrow);
}

wg_status wg_trace_put_round(wg_trace_writer *w, const wg_trace_facts *f, const wg_tree *tree, const wg_path *path, wg_rows *p,
                             wg_rows *q, const float *logits, wg_error *err)
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
    put_i32(w, f->n_policy);
    put(w, f->policy, (size_t)f->n_policy * 8);
    put_tree(w, tree, local);
    put_path(w, path);
    put_i32(w, n_q);
    for (int i = 0; i < tree->n; i++) {
        if (logits && (w->rows == WG_TRACE_LOGITS || (w->rows == WG_TRACE_EXACT && is_long(p, tree->row + i)))) {
            row_head(w, WG_ROW_LOGITS, 0, 0, -1);
            put(w, logits + (size_t)(tree->row + i) * (size_t)w->vocab, (size_t)w->vocab * 4);
        } else {
            put_row(w, p, tree->row + i, keep, asked_of(tree, path, i, keep), overlap_of(w, tree, i, p, q));
        }
    }
    for (int k = 0; k < n_q; k++) put_row(w, q, global[k], keep, drawn_from(tree, path, global[k], keep), -1);
    return end(w, 0, err);
}
