/* SPDX-License-Identifier: MIT
 * The view is described by the head of a GGUF file that is never written, as folders are (hf_folder.c). Rows are converted one
 * by one through f32, each by one thread, so the number of threads changes no bit. */
#include "core/file/quantize.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/mem.h"
#include "core/base/nearest.h"
#include "core/file/format.h"
#include "core/file/gguf_write.h"

/* ---- pruning by magnitude */

wg_status wg_prune_parse(wg_prune *out, const char *text, size_t n, wg_error *err)
{
    char word[16] = "", *end = word;
    if (n < sizeof word) memcpy(word, text, n);
    *out = (wg_prune){ 0 };
    if (strchr(word, ':')) {
        const long keep = strtol(word, &end, 10), of = *end == ':' ? strtol(end + 1, &end, 10) : 0;
        if (*end == '\0' && keep > 0 && of > keep && of <= WG_PRUNE_OF) {
            *out = (wg_prune){ .keep = (int)keep, .of = (int)of };
            return WG_OK;
        }
    } else {
        const double share = strtod(word, &end);
        if (end != word && *end == '\0' && share >= 0 && share <= 0.99) {
            *out = (wg_prune){ .share = share };
            return WG_OK;
        }
    }
    return wg_fail(err, WG_EINVAL, "'%.*s' is no pruning: expected " WG_PRUNE_DOC "; M is at most %d", (int)(n < 40 ? n : 40),
                   text, WG_PRUNE_OF);
}

static float magnitude(float x) { return isnan(x) ? INFINITY : fabsf(x); }

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Zeroes the `drop` smallest of n weights. room: (n) */
static void drop_smallest(float *w, size_t n, size_t drop, float *room)
{
    if (drop == 0) return;
    for (size_t i = 0; i < n; i++) room[i] = magnitude(w[i]);
    qsort(room, n, sizeof *room, ascending);
    const float limit = room[drop - 1];
    size_t below = 0;
    for (size_t i = 0; i < n; i++) below += room[i] < limit;
    drop -= below; /* of those at the limit */
    for (size_t i = n; i-- > 0;) {
        const float m = magnitude(w[i]);
        const bool goes = m < limit || (m == limit && drop > 0);
        drop -= goes && m == limit;
        if (goes) w[i] = 0;
    }
}

void wg_prune_row(const wg_prune *p, float *row, size_t k, float *room)
{
    if (p->of == 0) {
        drop_smallest(row, k, (size_t)(p->share * (double)k), room);
        return;
    }
    const size_t of = (size_t)p->of;
    for (size_t i = 0; i + of <= k; i += of) drop_smallest(row + i, of, of - (size_t)p->keep, room);
}

/* ---- the view */

typedef struct view {
    wg_weights *in, *out;
    wg_pool *pool;
    float *rows; /* (threads, 3, longest row): a row, the same when it is pruned, and what is read back of it */
    wg_quantize q;
    size_t row_room;
    wg_quantize_report_fn *report;
    void *user; /* of report */
} view;

/* ---- which type */

/* Weight matrices are what a forward pass multiplies with; learned positions are added, and routers choose, so these keep their
 * precision. */
static bool is_matrix(const wg_tensor *t)
{
    const size_t n = strlen(t->name);
    const bool weight = n > 7 && strcmp(t->name + n - 7, ".weight") == 0;
    return weight && t->n_dims >= 2 && t->dim[1] > 1 && strcmp(t->name, "position_embd.weight") != 0 &&
           !strstr(t->name, "ffn_gate_inp");
}

static bool is_head(const wg_weights *w, const wg_tensor *t)
{
    return strcmp(t->name, wg_weights_find(w, "output.weight") ? "output.weight" : "token_embd.weight") == 0;
}

static bool in_layer(const wg_tensor *t) { return strncmp(t->name, "blk.", 4) == 0; }

static bool is_pruned(const wg_prune *p, const wg_tensor *t) { return wg_prune_any(p) && is_matrix(t) && in_layer(t); }

/* Whether a tensor has other bytes in the view than in the file. */
static bool changes(const wg_quantize *q, const wg_tensor *from, int type)
{
    return from->type != type || is_pruned(&q->prune, from) || (q->by && is_matrix(from));
}

static bool below_six_bits(int type) { return wg_type_get(type)->bytes * 8 < wg_type_get(type)->block * 6; }

static int wanted_type(const wg_quantize *q, const wg_weights *w, const wg_tensor *t)
{
    for (int i = 0; i < q->keeps; i++)
        if (fnmatch(q->keep[i].pattern, t->name, 0) == 0) return q->keep[i].type;
    if (q->type == WG_Q8_2OF4 && !in_layer(t)) return WG_Q8_0;
    if (q->mixed && below_six_bits(q->type) && is_head(w, t)) return t->dim[0] % 256 == 0 ? WG_Q6_K : WG_Q8_0;
    return q->type;
}

/* The type that a tensor gets. *wanted: the type that its rows are too short for; -1: none. */
static int type_of(const wg_quantize *q, const wg_weights *w, const wg_tensor *t, int *wanted)
{
    *wanted = -1;
    if (t->n_dims == 1 && wg_type_is_float(t->type)) return WG_F32; /* as other readers need norms and biases */
    if (!is_matrix(t)) return t->type;
    const int type = wanted_type(q, w, t);
    const wg_type_info *info = wg_type_get(type), *from = wg_type_get(t->type);
    if (t->dim[0] % info->block == 0) return type;
    *wanted = type;
    return info->block == 256 && t->dim[0] % 32 == 0 ? WG_Q8_0 : from->block == 1 ? t->type : WG_F16;
}

/* Tensors that get another type than was asked for, of one pair of types. */
typedef struct misfit {
    int wanted, got, n;
    const wg_tensor *first;
} misfit;

enum { MISFITS = 16 };

static void count_misfit(misfit *of, const wg_tensor *t, int wanted, int got)
{
    for (int i = 0; i < MISFITS; i++) {
        if (of[i].n && (of[i].wanted != wanted || of[i].got != got)) continue;
        if (!of[i].n++) of[i].wanted = wanted, of[i].got = got, of[i].first = t;
        return;
    }
}

static void warn_of_misfits(const misfit *of, int tensors)
{
    for (int i = 0; i < MISFITS && of[i].n; i++)
        wg_log(WG_LOG_WARN,
               "%d of %d tensors become %s instead of %s, whose blocks have %d elements: the rows of '%s' have %lld", of[i].n,
               tensors, wg_type_name(of[i].got), wg_type_name(of[i].wanted), wg_type_get(of[i].wanted)->block,
               of[i].first->name, (long long)of[i].first->dim[0]);
}

static int parse_type(const char *name, size_t n)
{
    char word[16];
    if (n >= sizeof word) return -1;
    memcpy(word, name, n);
    word[n] = '\0';
    const int type = wg_type_parse(word);
    return type >= 0 && wg_type_get(type)->writable ? type : -1;
}

const char *wg_quantize_near(const char *name, size_t n, char hint[WG_QUANTIZE_HINT])
{
    const char *names[64];
    char word[16] = "";
    int known = 0;
#define TYPE(id, ...)                                                                                                          \
    if (wg_type_get(WG_##id)->writable) names[known++] = wg_type_name(WG_##id);
    WG_WEIGHT_TYPES(TYPE)
#undef TYPE
    names[known] = NULL;
    if (n < sizeof word) memcpy(word, name, n), word[n] = '\0';
    const char *near = *word ? wg_nearest(word, names) : NULL;
    *hint = '\0';
    if (near) snprintf(hint, WG_QUANTIZE_HINT, " (did you mean '%s'?)", near);
    return hint;
}

static wg_status add_keep(wg_quantize *q, const char *text, size_t n, wg_error *err)
{
    const char *equals = memchr(text, '=', n);
    const size_t pattern = equals ? (size_t)(equals - text) : n;
    const int type = equals ? parse_type(equals + 1, n - pattern - 1) : -1;
    if (type < 0 || pattern == 0 || pattern >= WG_QUANTIZE_PATTERN || q->keeps == WG_QUANTIZE_KEEPS)
        return wg_fail(err, WG_EINVAL,
                       "'%.*s' is no PATTERN=TYPE (up to %d, each pattern shorter than %d bytes), such as blk.0.*=f16; TYPE: "
                       "expected " WG_WRITABLE_TYPES,
                       (int)(n < 100 ? n : 100), text, WG_QUANTIZE_KEEPS, WG_QUANTIZE_PATTERN);
    memcpy(q->keep[q->keeps].pattern, text, pattern);
    q->keep[q->keeps].pattern[pattern] = '\0';
    q->keep[q->keeps++].type = type;
    return WG_OK;
}

wg_status wg_quantize_keep(wg_quantize *q, const char *text, wg_error *err) { return add_keep(q, text, strlen(text), err); }

wg_status wg_quantize_parse(wg_quantize *out, const char *text, wg_error *err)
{
    char hint[WG_QUANTIZE_HINT];
    size_t n = strcspn(text, ",");
    *out = (wg_quantize){ .type = parse_type(text, n), .mixed = true };
    if (out->type < 0)
        return wg_fail(err, WG_EINVAL, "'%.*s' is no type that weights are converted to: expected " WG_WRITABLE_TYPES "%s",
                       (int)(n < 100 ? n : 100), text, wg_quantize_near(text, n, hint));
    for (text += n; *text; text += n) {
        n = strcspn(++text, ",");
        const bool prunes = strncmp(text, "prune=", 6) == 0;
        WG_TRY(prunes ? wg_prune_parse(&out->prune, text + 6, n - 6, err) : add_keep(out, text, n, err));
    }
    return WG_OK;
}

/* A pattern that no matrix matches is a mistake. */
static wg_status check_patterns(const wg_weights *w, const wg_quantize *q, wg_error *err)
{
    for (int k = 0; k < q->keeps; k++) {
        int i = 0;
        const wg_tensor *t;
        while ((t = wg_weights_at(w, i)) && !(is_matrix(t) && fnmatch(q->keep[k].pattern, t->name, 0) == 0)) i++;
        if (!t)
            return wg_fail(err, WG_EINVAL, "%s: the pattern '%s' matches no matrix: `wager inspect` lists the names of tensors",
                           wg_weights_path(w), q->keep[k].pattern);
    }
    return WG_OK;
}

/* ---- a tensor */

typedef struct job {
    const view *v;
    const wg_tensor *from, *to;
    char *dst;
    int rows;
    bool prunes;
    int64_t *bad;          /* (threads) the first element that cannot be written; -1: none */
    double *error;         /* (rows, 2) sums of squares, of elements and of errors; NULL: not wanted */
    wg_quantize_result by; /* what the maker said of it */
} job;

/* The first element that is not finite, or -1. */
static int64_t not_finite(const float *x, size_t n)
{
    uint32_t all = 0, u;
    for (size_t i = 0; i < n; i++) {
        memcpy(&u, x + i, sizeof u);
        all |= (u & 0x7FFFFFFF) >= 0x7F800000;
    }
    for (size_t i = 0; all && i < n; i++)
        if (!isfinite(x[i])) return (int64_t)i;
    return -1;
}

/* The same of a converted row: a number, or the scale of a block, has become infinite. */
static int64_t too_large(int type, const float *x, const uint8_t *p, size_t n)
{
    const wg_type_info *t = wg_type_get(type);
    const uint16_t exponent = type == WG_BF16 ? 0x7F80 : 0x7C00;
    const int numbers = t->block == 1 ? 1 : t->scales;
    if (type == WG_F32 || type == WG_F8_E4M3) return -1;
    for (size_t b = 0; b < n / (size_t)t->block; b++, p += t->bytes)
        for (int i = 0; i < numbers; i++) {
            uint16_t h;
            memcpy(&h, p + t->scale_at + 2 * i, sizeof h);
            if ((h & exponent) == exponent && isfinite(x[b * (size_t)t->block])) return (int64_t)b * t->block;
        }
    return -1;
}

/* Sums of squares of a row and of what its bytes in dst are off. back: room. */
static void measure(const job *j, int r, const float *row, float *back)
{
    const size_t k = (size_t)j->to->dim[0], out = j->to->bytes / (size_t)j->rows;
    double *sum = j->error + 2 * (size_t)r;
    (void)wg_row_to_f32(j->to->type, j->dst + (size_t)r * out, back, k);
    sum[0] = sum[1] = 0;
    for (size_t i = 0; i < k; i++) {
        const double off = (double)back[i] - (double)row[i];
        sum[0] += (double)row[i] * (double)row[i];
        sum[1] += off * off;
    }
}

static void convert_rows(void *arg, int thread, int threads)
{
    const job *j = arg;
    const size_t k = (size_t)j->to->dim[0], out = j->to->bytes / (size_t)j->rows;
    const size_t in = wg_type_size(wg_type_get(j->from->type), k);
    float *row = j->v->rows + 3 * (size_t)thread * j->v->row_room, *pruned = row + j->v->row_room;
    float *back = pruned + j->v->row_room, *used = pruned;
    const bool blocks = wg_type_get(j->to->type)->block > 1;
    int lo, hi;
    wg_pool_share(j->rows, 1, thread, threads, &lo, &hi);
    for (int r = lo; r < hi && j->bad[thread] < 0; r++) {
        char *dst = j->dst + (size_t)r * out;
        int failed = wg_row_to_f32(j->from->type, (const char *)j->from->data + (size_t)r * in, row, k);
        int64_t bad = blocks ? not_finite(row, k) : -1; /* a float type keeps what is not finite */
        if (j->prunes) {
            memcpy(pruned, row, k * sizeof *row);
            wg_prune_row(&j->v->q.prune, pruned, k, back);
        } else {
            used = row;
        }
        if (bad < 0) failed |= wg_row_from_f32(j->to->type, used, dst, k);
        if (bad < 0) bad = too_large(j->to->type, used, (const uint8_t *)dst, k);
        wg_assert(!failed); /* check_types */
        if (bad >= 0) j->bad[thread] = (int64_t)r * (int64_t)k + bad;
        if (j->error && bad < 0) measure(j, r, row, back);
    }
}

/* The errors of rows that another has made. */
static void measure_rows(void *arg, int thread, int threads)
{
    const job *j = arg;
    const size_t k = (size_t)j->to->dim[0], in = wg_type_size(wg_type_get(j->from->type), k);
    float *row = j->v->rows + 3 * (size_t)thread * j->v->row_room;
    int lo, hi;
    wg_pool_share(j->rows, 1, thread, threads, &lo, &hi);
    for (int r = lo; r < hi; r++) {
        (void)wg_row_to_f32(j->from->type, (const char *)j->from->data + (size_t)r * in, row, k);
        measure(j, r, row, row + j->v->row_room);
    }
}

static void report(const view *v, const job *j)
{
    double sum[2] = { 0, 0 };
    const int64_t n = j->rows * j->to->dim[0];
    for (int r = 0; j->error && r < j->rows; r++)
        for (int i = 0; i < 2; i++) sum[i] += j->error[2 * r + i];
    v->report(v->user, &(wg_quantize_result){ .name = j->to->name,
                                              .from = j->from->type,
                                              .to = j->to->type,
                                              .elements = n,
                                              .lost = j->by.lost,
                                              .lost_rounded = j->by.lost_rounded,
                                              .stayed = !changes(&v->q, j->from, j->to->type),
                                              .rms = sqrt(sum[0] / (double)n),
                                              .error = sqrt(sum[1] / (double)n) });
}

static wg_status convert_all(const view *v, job *j, wg_error *err)
{
    const int threads = v->pool ? wg_pool_threads(v->pool) : 1;
    const int64_t k = j->to->dim[0];
    for (int i = 0; i < threads; i++) j->bad[i] = -1;
    wg_pool_run(v->pool, convert_rows, j);
    for (int i = 0; i < threads; i++)
        if (j->bad[i] >= 0)
            return wg_fail(
                err, WG_EMODEL,
                "%s: tensor '%s' holds NaN, infinity or a number too large for %s at row %lld, from column %lld on: it "
                "cannot be converted; is the file damaged?",
                wg_weights_path(v->in), j->to->name, wg_type_name(j->to->type), (long long)(j->bad[i] / k),
                (long long)(j->bad[i] % k));
    return WG_OK;
}

static wg_status convert(const view *v, job *j, wg_error *err)
{
    bool made = false;
    if (v->q.by && is_matrix(j->to)) WG_TRY(v->q.by(v->q.user, j->from, j->to, j->dst, &j->by, &made, err));
    if (!made) WG_TRY(convert_all(v, j, err));
    else if (j->error) wg_pool_run(v->pool, measure_rows, j);
    wg_weights_release(v->in, j->from);
    return WG_OK;
}

static wg_status make(void *user, const wg_tensor *t, void *dst, wg_error *err)
{
    const view *v = user;
    job j = { .v = v, .to = t, .dst = dst, .rows = (int)(t->dim[1] * t->dim[2] * t->dim[3]) };
    j.from = wg_weights_at(v->in, (int)(t - wg_weights_at(v->out, 0)));
    j.prunes = is_pruned(&v->q.prune, t);
    WG_TRY(wg_weights_need(v->in, j.from, err));
    if (!changes(&v->q, j.from, t->type)) {
        if (dst != j.from->data) memcpy(dst, j.from->data, t->bytes);
        if (v->report) report(v, &j);
        return WG_OK;
    }
    const size_t threads = v->pool ? (size_t)wg_pool_threads(v->pool) : 1, rows = (size_t)j.rows;
    j.bad = wg_alloc(threads, sizeof *j.bad);
    if (v->report) j.error = wg_alloc(2 * rows, sizeof *j.error);
    const bool ok = j.bad && (j.error || !v->report);
    const wg_status s = ok ? convert(v, &j, err) : wg_nomem(err, 2 * rows * sizeof *j.error, "the errors of a tensor");
    if (s == WG_OK && v->report) report(v, &j);
    wg_free(j.bad);
    wg_free(j.error);
    return s;
}

/* ---- opening */

static void ahead(void *user, const wg_tensor *t)
{
    const view *v = user;
    wg_weights_ahead(v->in, wg_weights_at(v->in, (int)(t - wg_weights_at(v->out, 0))));
}

static void view_close(void *user)
{
    view *v = user;
    wg_weights_close(v->in);
    wg_free(v->rows);
    wg_free(v);
}

static wg_status check_types(const wg_weights *in, const wg_quantize *q, wg_error *err)
{
    for (int i = 0; i < wg_weights_count(in); i++) {
        const wg_tensor *t = wg_weights_at(in, i);
        float none;
        if (!is_matrix(t) || t->type == wanted_type(q, in, t) || wg_row_to_f32(t->type, t->data, &none, 0) == 0) continue;
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%s: tensor '%s' is %s, which cannot be converted to %s; start from an f32, f16, bf16 or q8_0 file",
                       wg_weights_path(in), t->name, wg_type_name(t->type), wg_type_name(wanted_type(q, in, t)));
    }
    return WG_OK;
}

static void describe(wg_gguf_writer *g, view *v, const wg_quantize *q)
{
    bool blocks = false;
    misfit misfits[MISFITS] = { 0 };
    for (int i = 0; i < wg_meta_count(v->in); i++) {
        const char *key = wg_meta_key(v->in, i);
        if (strcmp(key, "general.file_type") != 0 && strcmp(key, "general.quantization_version") != 0)
            wg_gguf_copy_meta(g, v->in, i);
    }
    for (int i = 0; i < wg_weights_count(v->in); i++) {
        wg_tensor t = *wg_weights_at(v->in, i);
        int wanted;
        t.type = type_of(q, v->in, &t, &wanted);
        if (wanted >= 0) count_misfit(misfits, wg_weights_at(v->in, i), wanted, t.type);
        blocks = blocks || wg_type_get(t.type)->block > 1;
        if (changes(q, wg_weights_at(v->in, i), t.type) && (size_t)t.dim[0] > v->row_room) v->row_room = (size_t)t.dim[0];
        wg_gguf_add(g, &t, NULL, NULL);
    }
    warn_of_misfits(misfits, wg_weights_count(v->in));
    wg_gguf_set_u32(g, "general.file_type", wg_gguf_file_type(q->type));
    if (blocks) wg_gguf_set_u32(g, "general.quantization_version", 2);
}

static wg_status open_view(wg_weights **out, view *v, const wg_quantize *q, wg_error *err)
{
    wg_gguf_writer *g = NULL;
    wg_status s = check_patterns(v->in, q, err);
    if (s == WG_OK) s = check_types(v->in, q, err);
    if (s == WG_OK) s = wg_gguf_writer_open(&g, NULL, err);
    if (s == WG_OK) {
        describe(g, v, q);
        const size_t rows = 3 * v->row_room * (v->pool ? (size_t)wg_pool_threads(v->pool) : 1);
        v->rows = wg_alloc(rows, sizeof *v->rows);
        if (!v->rows) s = wg_nomem(err, rows * sizeof *v->rows, "rows of weights");
    }
    const wg_maker maker = { .make = make, .close = view_close, .ahead = ahead, .user = v };
    if (s == WG_OK) return wg_weights_open_made(out, wg_weights_path(v->in), g, &maker, err);
    wg_gguf_writer_abort(g);
    view_close(v);
    return s;
}

wg_status wg_quantize_open(wg_weights **out, wg_weights *in, const wg_quantize *q, wg_pool *pool, wg_error *err)
{
    view *v = wg_calloc(1, sizeof *v);
    if (!v) {
        wg_weights_close(in);
        return wg_nomem(err, sizeof *v, "a view of weights");
    }
    v->in = in;
    v->pool = pool;
    v->q = *q;
    WG_TRY(open_view(out, v, q, err));
    wg_weights *w = v->out = *out;
    snprintf(w->format, sizeof w->format, "%.20s as %.7s", in->format, wg_type_name(q->type));
    for (int i = 0; i < w->n_tensors; i++) /* what stays as it is is not copied, but where it is borrowed */
        if (in->mapped && !changes(q, &in->tensor[i], w->tensor[i].type)) w->tensor[i].data = in->tensor[i].data;
    return WG_OK;
}

void wg_quantize_report(wg_weights *view_of, wg_quantize_report_fn *fn, void *user)
{
    view *v = view_of->maker.user;
    v->report = fn;
    v->user = user;
}

wg_status wg_quantize_open_file(wg_weights **out, const char *path, const char *quantize, wg_pool *pool, wg_error *err)
{
    wg_weights *w;
    wg_quantize q;
    const bool as_they_are = !quantize || !*quantize;
    if (!as_they_are && wg_quantize_parse(&q, quantize, err)) return wg_fail_in(err, WG_EINVAL, "quantize");
    WG_TRY(wg_weights_open(&w, path, err));
    if (!as_they_are) WG_TRY(wg_quantize_open(&w, w, &q, pool, err));
    *out = w;
    return WG_OK;
}
