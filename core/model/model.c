/* SPDX-License-Identifier: MIT
 * Loading a model: every tensor of the file is matched to a member of a layer, checked (shape, type, no NaN), packed for the
 * device, and its pages are released. An unknown tensor is refused by name: leaving it out would change every number. */
#include "core/model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/model/model_impl.h"
#include "core/model/places.h"
#include "core/model/ranked_impl.h"
#include "core/model/read_ahead.h"
#include "core/model/rotary.h"

typedef struct loader {
    wg_model *m;
    const wg_weights *w;
    const wg_model_options *opt;
    int64_t width[WIDTHS];
    wg_read_ahead *ahead;
    bool reads;            /* tensors are read */
    wg_sha256_state *seen; /* of the model's identity */
    wg_error *err;
} loader;

/* ---- one tensor */

static wg_status find_stack(const loader *o, const char *name, int64_t in, int64_t out, int64_t depth, const wg_tensor **t)
{
    char expected[80];
    const int n = snprintf(expected, sizeof expected, "(%lld, %lld", (long long)in, (long long)out);
    snprintf(expected + n, sizeof expected - (size_t)n, depth > 1 ? ", %lld)" : ")", (long long)depth);
    const char *path = wg_weights_path(o->w);
    *t = wg_weights_find(o->w, name);
    if (!*t)
        return wg_fail(o->err, WG_EMODEL, "%s: tensor '%s' is missing: expected %s; is the file complete?", path, name,
                       expected);
    const int64_t *d = (*t)->dim;
    if (d[0] != in || d[1] != out || d[2] != depth || d[3] != 1)
        return wg_fail(o->err, WG_EMODEL, "%s: tensor '%s' has shape (%lld, %lld, %lld, %lld): expected %s", path, name,
                       (long long)d[0], (long long)d[1], (long long)d[2], (long long)d[3], expected);
    const wg_type_info *type = wg_type_get((*t)->type);
    if (!type || !type->computable || (type->block > 1 && (out == 1 || in % type->block != 0)))
        return wg_fail(o->err, WG_EUNSUPPORTED,
                       "%s: tensor '%s' has type %s: expected %s; `wager convert` writes f32, f16, bf16, q8_0 and more", path,
                       name, wg_type_name((*t)->type),
                       out == 1  ? "f32, f16 or bf16"
                       : in % 32 ? "f32, f16 or bf16 (rows are no multiple of 32)"
                                 : WG_COMPUTABLE_TYPES);
    return (*t)->data ? WG_OK : wg_fail(o->err, WG_EINVAL, "%s: was opened for its header alone: no weights to load", path);
}

static wg_status find(const loader *o, const char *name, int64_t in, int64_t out, const wg_tensor **t)
{
    return find_stack(o, name, in, out, 1, t);
}

/* Checks that rows from .. from + n - 1 of a tensor are numbers; of an earlier `need`. */
static wg_status check_numbers(const loader *o, const wg_tensor *t, int64_t from, int64_t n)
{
    const int64_t in = t->dim[0], rows = t->dim[1] * t->dim[2];
    wg_tensor part = *t;
    part.bytes = t->bytes / (size_t)rows * (size_t)n;
    part.data = (const char *)t->data + t->bytes / (size_t)rows * (size_t)from;
    const int64_t bad = o->opt->allow_nan ? -1 : wg_finite_check(o->m->device.pool, &part);
    if (bad >= 0)
        return wg_fail(o->err, WG_EMODEL,
                       "%s: tensor '%s' holds NaN or infinity at row %lld, column %lld: the file is damaged or its "
                       "training diverged; allow_nan (--allow-nan) loads it all the same",
                       wg_weights_path(o->w), t->name, (long long)(from + bad / in), (long long)(bad % in));
    return WG_OK;
}

/* Makes the bytes of a tensor readable, and a part of the model's identity. */
static wg_status begin_tensor(const loader *o, const wg_tensor *t)
{
    WG_TRY(wg_weights_need(o->w, t, o->err));
    wg_identity_add(o->seen, t);
    return WG_OK;
}

/* Loads the bytes of a tensor, which stay resident from then on, and checks that they are numbers. */
static wg_status need(const loader *o, const wg_tensor *t)
{
    WG_TRY(begin_tensor(o, t));
    return check_numbers(o, t, 0, t->dim[1] * t->dim[2]);
}

/* n elements from `from` on, as f32, in device memory. */
static wg_status load_vector(const loader *o, const wg_tensor *t, int64_t from, int64_t elements, wg_buf *to)
{
    wg_device *d = &o->m->device;
    const size_t n = (size_t)elements;
    const char *at = (const char *)t->data + wg_type_size(wg_type_get(t->type), (size_t)from);
    WG_TRY(need(o, t));
    float *host = wg_alloc(n, sizeof *host);
    *to = host ? d->class->alloc(d, n) : NULL;
    const bool read = *to && !wg_row_to_f32(t->type, at, host, n);
    if (read) d->class->upload(d, *to, host, n);
    wg_free(host);
    if (!*to) return wg_nomem(o->err, n * sizeof(float), t->name);
    if (!read)
        return wg_fail(o->err, WG_EUNSUPPORTED, "%s: tensor '%s': no conversion from %s", wg_weights_path(o->w), t->name,
                       wg_type_name(t->type));
    o->m->bytes += n * sizeof(float);
    return WG_OK;
}

/* The part of a matrix's rows, or of a vector that is added to them, that this rank has: its number, and those before it. */
static int64_t part_of(const loader *o, const place *p, int64_t *before)
{
    const wg_rank_part *s = &o->m->part;
    const int64_t head_dim = o->m->arch.head_dim;
    const bool norm = p->out == ONE && p->trait & WG_TRAIT_ROW_NORM; /* over all heads */
    const enum width of = p->out == ONE ? p->in : p->out;
    wg_split split = WG_SPLIT_DIM;
    *before = 0;
    if (norm || (of == DIM && p->out == ONE)) return o->width[of];
    switch (of) {
    case Q_DIM: *before = wg_rank_part_from(s, WG_SPLIT_HEADS) * head_dim; return wg_rank_part_n(s, WG_SPLIT_HEADS) * head_dim;
    case HEADS: *before = wg_rank_part_from(s, WG_SPLIT_HEADS); return wg_rank_part_n(s, WG_SPLIT_HEADS);
    case KV_DIM: *before = s->kv_from[s->rank] * head_dim; return wg_rank_part_kv(s) * head_dim;
    case DIM: break;
    case HIDDEN: split = WG_SPLIT_HIDDEN; break;
    case VOCAB: split = WG_SPLIT_VOCAB; break;
    case HEAD_ROWS: split = WG_SPLIT_HEAD; break;
    default: return o->width[of];
    }
    *before = wg_rank_part_from(s, split);
    return wg_rank_part_n(s, split);
}

/* Rows of the whole tensor, of a vector its elements, and those before the part. */
static int64_t rows_of(const loader *o, const place *p, int64_t *before)
{
    int64_t n = o->width[p->out == ONE ? p->in : p->out];
    *before = 0;
    if (!p->all) return n;
    n = 0;
    for (int i = 0; p->all[i] != ONE; i++) {
        if (i == p->part) *before = n;
        n += o->width[p->all[i]];
    }
    return n;
}

static int64_t depth_of(const loader *o, const place *p) { return p->each ? o->width[EXPERTS] : 1; }

/* The matrices of all experts, which lie one behind another. */
static wg_status load_each(const loader *o, const place *p, const wg_tensor *t, wg_stack *to)
{
    wg_device *d = &o->m->device;
    const size_t n = (size_t)o->width[EXPERTS], words = n * sizeof(void *) / sizeof(float);
    const size_t first = (size_t)wg_rank_part_from(&o->m->part, WG_SPLIT_EXPERTS);
    const size_t end = first + (size_t)wg_rank_part_n(&o->m->part, WG_SPLIT_EXPERTS);
    const void *data[WG_MAX_EXPERTS] = { NULL };
    WG_TRY(begin_tensor(o, t));
    WG_TRY(check_numbers(o, t, (int64_t)first * t->dim[1], (int64_t)(end - first) * t->dim[1]));
    wg_matrix *m = to->each = wg_calloc(n, sizeof *m);
    to->data = d->class->alloc(d, words);
    if (!m || !to->data) return wg_nomem(o->err, n * sizeof *m, "a layer's experts");
    for (size_t i = first; i < end; i++) {
        const char *from = (const char *)t->data + i * (t->bytes / n);
        if (d->class->matrix(d, t->type, (int)o->width[p->out], (int)o->width[p->in], from, &m[i], o->err) != WG_OK)
            return wg_fail_in(o->err, WG_ENOMEM, "%s: tensor '%s'", wg_weights_path(o->w), t->name);
        const size_t bytes = d->class->matrix_bytes(d, m[i].type, m[i].n, m[i].k);
        o->m->bytes += bytes;
        o->m->expert_bytes += bytes;
        data[i] = m[i].data;
    }
    d->class->upload(d, to->data, (const float *)(const void *)data, words);
    wg_weights_release(o->w, t);
    return WG_OK;
}

/* The tensor of a place, with the shape that it must have. */
static wg_status find_of(const loader *o, const place *p, const char *name, const wg_tensor **t)
{
    int64_t before;
    const int64_t rows = rows_of(o, p, &before);
    if (p->out == ONE) return find(o, name, rows, 1, t);
    return find_stack(o, name, o->width[p->in], rows, depth_of(o, p), t);
}

/* A table that is read row by row, not multiplied with, in device memory as f32. */
static bool is_table(const place *p) { return p->out == CONTEXT || p->out == EACH_EXPERT; }

static wg_status load(const loader *o, const place *p, const char *name, void *into)
{
    wg_device *d = &o->m->device;
    const wg_tensor *t;
    int64_t before, skipped;
    const int64_t in = o->width[p->in], out = o->width[p->out], rows = rows_of(o, p, &before);
    const int64_t own = part_of(o, p, &skipped);
    WG_TRY(find_of(o, p, name, &t));
    wg_read_ahead_next(o->ahead);
    if (p->each) return load_each(o, p, t, (wg_stack *)(void *)((char *)into + p->at));
    wg_buf *to = (wg_buf *)(void *)((char *)into + p->at);
    if (p->out == ONE) return load_vector(o, t, before + skipped, own, to);
    if (is_table(p)) return load_vector(o, t, 0, in * out, to);
    wg_matrix *m = (wg_matrix *)(void *)((char *)into + p->at);
    uint64_t seed;
    const bool draws = wg_weights_made(o->w, &seed) && d->class->draws && d->class->draws(d, t->type);
    if (!draws && p->part == 0) WG_TRY(begin_tensor(o, t));
    if (!draws) WG_TRY(check_numbers(o, t, before + skipped, own));
    const uint32_t stream = (uint32_t)wg_hash64(WG_HASH_START, name, strlen(name)) + (uint32_t)p->part;
    const char *from = draws ? NULL : (const char *)t->data + (size_t)(before + skipped) * (t->bytes / (size_t)rows);
    if ((draws ? d->class->matrix_random(d, t->type, (int)out, (int)in, seed, stream, m, o->err)
               : d->class->matrix(d, t->type, (int)own, (int)in, from, m, o->err)) != WG_OK)
        return wg_fail_in(o->err, WG_ENOMEM, "%s: tensor '%s'", wg_weights_path(o->w), name);
    o->m->bytes += d->class->matrix_bytes(d, m->type, m->n, m->k);
    if (before + out == rows) wg_weights_release(o->w, t);
    return WG_OK;
}

/* A head of some rows: they are gathered from the file, whose rows stand one after another in every type. */
static wg_status load_head(const loader *o)
{
    wg_model *m = o->m;
    wg_device *d = &m->device;
    const wg_tensor *t;
    const int n = wg_rank_part_n(&m->part, WG_SPLIT_HEAD);
    const int32_t *row_of = o->opt->head + wg_rank_part_from(&m->part, WG_SPLIT_HEAD);
    WG_TRY(find(o, m->arch.tied ? "token_embd.weight" : "output.weight", o->width[DIM], o->width[HEAD_ROWS], &t));
    WG_TRY(need(o, t));
    const size_t row = t->bytes / (size_t)o->width[HEAD_ROWS];
    char *rows = wg_alloc((size_t)n, row);
    if (!rows) return wg_nomem(o->err, (size_t)n * row, "the rows of an output head");
    for (int i = 0; i < n; i++) memcpy(rows + (size_t)i * row, (const char *)t->data + (size_t)row_of[i] * row, row);
    const wg_status s = d->class->matrix(d, t->type, n, (int)o->width[DIM], rows, &m->head, o->err);
    wg_free(rows);
    if (s) return wg_fail_in(o->err, s, "%s: tensor '%s'", wg_weights_path(o->w), t->name);
    m->bytes += d->class->matrix_bytes(d, m->head.type, m->head.n, m->head.k);
    wg_weights_release(o->w, t);
    return WG_OK;
}

/* ---- all tensors */

/* Whether this model has the tensor of a place. */
static bool belongs(const loader *o, const place *p)
{
    if (o->m->arch.kept && p == &model_places[EMBEDDING]) return false;
    return (p->trait & o->m->arch.traits) == p->trait && !(p->unless & o->m->arch.traits);
}

static bool has_place(const loader *o, const char *name)
{
    for (int i = 0; i < MODEL_PLACES; i++)
        if (strcmp(name, model_places[i].name) == 0) return belongs(o, &model_places[i]);
    if (strcmp(name, ROPE_FREQS) == 0 || strcmp(name, ROPE_LONG) == 0 || strcmp(name, ROPE_SHORT) == 0) return true;
    if (strncmp(name, "blk.", 4) != 0) return false;
    const int layer = atoi(name + 4);
    if (layer < 0 || layer >= o->m->arch.layers) return false;
    for (int i = 0; i < LAYER_PLACES; i++) {
        char exact[NAME];
        snprintf(exact, sizeof exact, "blk.%d.%s", layer, layer_places[i].name);
        if (strcmp(name, exact) == 0 && belongs(o, &layer_places[i])) return true;
    }
    return false;
}

/* Every tensor has a place, and every place its tensor. */
static wg_status check_tensors(const loader *o)
{
    const wg_arch *a = &o->m->arch;
    const wg_tensor *t;
    for (int i = 0; i < wg_weights_count(o->w); i++) {
        const char *name = wg_weights_at(o->w, i)->name;
        if (!has_place(o, name))
            return wg_fail(o->err, WG_EUNSUPPORTED,
                           "%s: tensor '%s' has no place in a %s model of %d layers: its results would be wrong "
                           "without it",
                           wg_weights_path(o->w), name, a->family, a->layers);
    }
    const char *const lists[] = { ROPE_FREQS, ROPE_LONG, ROPE_SHORT };
    for (int i = 0; i < 3; i++)
        if (wg_weights_find(o->w, lists[i])) WG_TRY(find(o, lists[i], a->n_rot / 2, 1, &t));
    if (a->original_context == 0 && wg_weights_find(o->w, ROPE_LONG))
        return wg_fail(o->err, WG_EMODEL,
                       "%s: there is a tensor '" ROPE_LONG
                       "', and no key '%s.rope.scaling.original_context_length', which says "
                       "from which context on it holds",
                       wg_weights_path(o->w), a->family);
    for (int i = 0; i < MODEL_PLACES; i++) {
        const place *p = &model_places[i];
        const bool absent = p->at == offsetof(wg_model, head) && a->tied;
        if (!absent && belongs(o, p)) WG_TRY(find_of(o, p, p->name, &t));
    }
    for (int l = 0; l < a->layers; l++)
        for (int i = 0; i < LAYER_PLACES; i++) {
            const place *p = &layer_places[i];
            char name[NAME];
            snprintf(name, sizeof name, "blk.%d.%s", l, p->name);
            if (belongs(o, p)) WG_TRY(find_of(o, p, name, &t));
        }
    return WG_OK;
}

typedef wg_status visit_fn(const loader *o, const place *p, const char *name, void *into);

/* A tensor of another stage: a part of the model's identity, without being loaded. */
static wg_status pass_over(const loader *o, const place *p, const char *name, void *into)
{
    const wg_tensor *t;
    (void)into;
    WG_TRY(find_of(o, p, name, &t));
    if (!o->reads) return WG_OK;
    if (p->part == 0 || p->out == ONE) WG_TRY(begin_tensor(o, t)); /* as load does it */
    wg_weights_release(o->w, t);
    return WG_OK;
}

/* The places that tensors are loaded into, in the order of loading. */
static wg_status each_place(const loader *o, visit_fn *visit)
{
    wg_model *m = o->m;
    for (int i = 0; i < MODEL_PLACES; i++) {
        const place *p = &model_places[i];
        const bool elsewhere = p->at == offsetof(wg_model, head) && (o->opt->head || m->arch.tied);
        if (!elsewhere && belongs(o, p)) WG_TRY((m->part.stage ? pass_over : visit)(o, p, p->name, m));
    }
    for (int l = 0; l < m->arch.layers; l++)
        for (int i = 0; i < LAYER_PLACES; i++) {
            char name[NAME];
            if (!belongs(o, &layer_places[i])) continue;
            snprintf(name, sizeof name, "blk.%d.%s", l, layer_places[i].name);
            const bool own = l >= m->part.layer_from && l < m->part.layer_to;
            WG_TRY((own ? visit : pass_over)(o, &layer_places[i], name, own ? &m->layer[l - m->part.layer_from] : NULL));
        }
    return WG_OK;
}

static wg_status list_tensor(const loader *o, const place *p, const char *name, void *into)
{
    const wg_tensor *t;
    (void)into;
    WG_TRY(find_of(o, p, name, &t));
    return wg_read_ahead_add(o->ahead, t) ? WG_OK : wg_nomem(o->err, sizeof t, "a list of tensors");
}

static wg_status load_all(loader *o)
{
    wg_model *m = o->m;
    wg_read_ahead list = { .weights = o->w };
    WG_TRY(wg_model_check_room(o->w, &m->device, o->err));
    if (o->opt->head && !m->part.stage) WG_TRY(load_head(o));
    o->ahead = &list;
    wg_status s = each_place(o, list_tensor);
    o->reads = true;
    if (s == WG_OK) s = each_place(o, load);
    wg_read_ahead_close(&list);
    o->ahead = NULL;
    if (!o->opt->head && m->arch.tied) m->head = m->embed;
    if (m->arch.kept) m->embed = *o->opt->embedding;
    return s;
}

/* ---- rotary angles */

static wg_status load_divisors(const loader *o, int pairs, float *divisor)
{
    const wg_tensor *t;
    const char *name = o->m->lm.context > o->m->arch.original_context ? ROPE_LONG : ROPE_SHORT;
    if (!wg_weights_find(o->w, name)) name = ROPE_FREQS;
    for (int i = 0; i < pairs; i++) divisor[i] = 1;
    if (!wg_weights_find(o->w, name)) return WG_OK;
    WG_TRY(find(o, name, pairs, 1, &t));
    WG_TRY(need(o, t));
    wg_row_to_f32(t->type, t->data, divisor, (size_t)pairs);
    for (int i = 0; i < pairs; i++)
        if (!(divisor[i] >= 0.125f))
            return wg_fail(o->err, WG_EMODEL, "%s: tensor '%s' holds %g at %d: expected a divisor of at least 0.125",
                           wg_weights_path(o->w), name, (double)divisor[i], i);
    return WG_OK;
}

static wg_status load_angles(const loader *o, const wg_rotary *r, wg_rope *to, wg_buf *angles)
{
    wg_model *m = o->m;
    const size_t floats = (size_t)m->lm.context * (size_t)(2 * r->pairs);
    *angles = m->device.class->alloc(&m->device, floats);
    float *host = *angles ? wg_alloc(floats, sizeof *host) : NULL;
    if (!host) return wg_nomem(o->err, floats * sizeof(float), "rotary angles; lower the context");
    wg_rotary_angles(r, m->lm.context, m->device.pool, host);
    m->device.class->upload(&m->device, *angles, host, floats);
    wg_free(host);
    *to = (wg_rope){ .n_rot = 2 * r->pairs, .adjacent = m->arch.rope_adjacent, .cs = *angles };
    m->angles_bytes += floats * sizeof(float);
    return WG_OK;
}

/* Layers with a window have angles of their own, where the family has another base for them. */
static wg_status load_rotary(const loader *o)
{
    wg_model *m = o->m;
    float divisor[WG_MAX_HEAD / 2];
    wg_rotary r;
    if (m->arch.n_rot == 0) return WG_OK;
    WG_TRY(load_divisors(o, m->arch.n_rot / 2, divisor));
    wg_rotary_of(&m->arch, false, divisor, &r);
    WG_TRY(load_angles(o, &r, &m->rope[0], &m->angles[0]));
    m->rope[1] = m->rope[0];
    if (m->arch.window_rope_base > 0) {
        wg_rotary_of(&m->arch, true, divisor, &r);
        WG_TRY(load_angles(o, &r, &m->rope[1], &m->angles[1]));
    }
    m->bytes += m->angles_bytes;
    return WG_OK;
}

/* ---- numbers that are in no file */

static wg_status load_growth(wg_model *m, wg_error *err)
{
    const size_t n = (size_t)m->lm.context;
    float *host = wg_calloc(n, sizeof *host);
    m->growth = host ? m->device.class->alloc(&m->device, n) : NULL;
    for (size_t p = 0; host && p < n; p++)
        host[p] = (float)(1 + (double)m->arch.query_growth * log(1 + floor((double)p / m->arch.original_context)));
    if (m->growth) m->device.class->upload(&m->device, m->growth, host, n);
    wg_free(host);
    return m->growth ? WG_OK : wg_nomem(err, n * sizeof *host, "factors of queries; lower the context");
}

static wg_status load_numbers(const loader *o)
{
    wg_model *m = o->m;
    const wg_arch *a = &m->arch;
    const wg_device_class *op = m->device.class;
    const bool plain = (a->traits & (WG_TRAIT_LAYER_NORM | WG_TRAIT_NORM_BIAS)) == WG_TRAIT_LAYER_NORM;
    const size_t heads = (size_t)a->heads, dim = (size_t)a->dim, n = heads > dim ? heads : dim;
    if (a->query_growth > 0) WG_TRY(load_growth(m, o->err));
    if (!plain && a->alibi == 0) return WG_OK;
    float *host = wg_calloc(n, sizeof *host);
    if (a->alibi > 0) m->slopes = op->alloc(&m->device, heads);
    if (plain) m->zeros = op->alloc(&m->device, dim);
    const bool fits = host && (m->slopes || a->alibi == 0) && (m->zeros || !plain);
    if (fits && plain) op->upload(&m->device, m->zeros, host, dim);
    if (fits && a->alibi > 0) {
        wg_arch_slopes(a, host);
        op->upload(&m->device, m->slopes, host + wg_rank_part_from(&m->part, WG_SPLIT_HEADS),
                   (size_t)wg_rank_part_n(&m->part, WG_SPLIT_HEADS));
    }
    wg_free(host);
    return fits ? WG_OK : wg_nomem(o->err, 2 * n * sizeof(float), "a model");
}

/* ---- the model */

static wg_status check_options(const wg_model_options *opt, const wg_arch *a, wg_error *err)
{
    if (opt->kv_type != WG_F32 && opt->kv_type != WG_F16 && opt->kv_type != WG_BF16 && opt->kv_type != WG_KV_Q8)
        return wg_fail(err, WG_EINVAL, "kv_type = %s: expected f32, f16, bf16 or q8", wg_type_name(opt->kv_type));
    if (opt->max_rows < 0 || opt->max_rows > 1 << 16)
        return wg_fail(err, WG_EINVAL, "max_rows = %d: expected 1..65536, or 0 for %d", opt->max_rows, (int)WG_MODEL_ROWS);
    if (opt->context < 0 || opt->context > a->context)
        return wg_fail(err, WG_EINVAL, "context = %d: the model was made for %d tokens: expected 1..%d, or 0 for all of them",
                       opt->context, a->context, a->context);
    const int rows = a->kept ? a->kept : a->vocab;
    if (opt->head && (opt->n_head < 1 || opt->n_head > rows))
        return wg_fail(err, WG_EINVAL, "a head of %d rows: expected 1..%d", opt->n_head, rows);
    for (int i = 0; opt->head && i < opt->n_head; i++)
        if (opt->head[i] < 0 || opt->head[i] >= rows)
            return wg_fail(err, WG_EINVAL, "row %d of the head is that of token %d: expected 0..%d", i, (int)opt->head[i],
                           rows - 1);
    return WG_OK;
}

/* Reads the hyper-parameters into m and checks all that can be checked before loading. */
static wg_status check(loader *o, wg_model *m, const wg_weights *w, const wg_model_options *opt, wg_error *err)
{
    WG_TRY(wg_arch_read(w, &m->arch, err));
    const wg_arch *a = &m->arch;
    WG_TRY(check_options(opt, a, err));
    WG_TRY(wg_model_check_window(w, a, opt->context ? opt->context : a->context, err));
    *o = (loader){ .m = m,
                   .w = w,
                   .opt = opt,
                   .err = err,
                   .width = { [ONE] = 1,
                              [DIM] = a->dim,
                              [Q_DIM] = (int64_t)a->heads * a->head_dim,
                              [KV_DIM] = (int64_t)a->kv_heads * a->head_dim,
                              [HEAD_DIM] = a->head_dim,
                              [HEADS] = a->heads,
                              [HIDDEN] = a->hidden,
                              [VOCAB] = a->vocab,
                              [HEAD_ROWS] = a->kept ? a->kept : a->vocab,
                              [EXPERTS] = a->experts,
                              [EACH_EXPERT] = a->experts,
                              [CONTEXT] = a->context } };
    return check_tensors(o);
}

wg_status wg_model_check(const wg_weights *w, const wg_model_options *opt, wg_arch *out, wg_error *err)
{
    loader o;
    wg_model m = { 0 };
    WG_TRY(check(&o, &m, w, opt, err));
    *out = m.arch;
    return WG_OK;
}

static wg_status open_into(wg_model *m, const wg_weights *w, const wg_model_options *opt, wg_error *err)
{
    loader o;
    wg_sha256_state seen;
    WG_TRY(check(&o, m, w, opt, err));
    WG_TRY(wg_model_check_embedding(m, w, opt->embedding, err));
    o.seen = &seen;
    wg_identity_begin(&seen, w);
    const wg_arch *a = &m->arch;
    m->kv_type = opt->kv_type;
    m->max_rows = opt->max_rows ? opt->max_rows : WG_MODEL_ROWS;
    m->lm = (wg_lm){ .class = &wg_model_lm_class,
                     .vocab = a->vocab,
                     .context = opt->context ? opt->context : a->context,
                     .space = -1,
                     .most_rows = m->max_rows,
                     .hidden = { .layers = a->layers, .dim = a->dim, .device = &m->device } };
    m->head_rows = opt->head ? opt->n_head : (int)o.width[HEAD_ROWS];
    WG_TRY(wg_ranked_open(m, &opt->ranks, err));
    m->all_windowed = true;
    for (int l = 0; l < a->layers; l++) {
        if (!wg_arch_windowed(a, l)) m->all_windowed = false;
        else if (m->lm.context > a->window) m->window = a->window;
    }
    m->layer = wg_calloc((size_t)(m->part.layer_to - m->part.layer_from), sizeof *m->layer);
    if (!m->layer) return wg_nomem(err, (size_t)a->layers * sizeof *m->layer, "a model");
    WG_TRY(load_rotary(&o));
    WG_TRY(load_numbers(&o));
    WG_TRY(load_all(&o));
    wg_model_identify(m, w, &seen);
    return wg_model_open_scratch(m, err);
}

wg_status wg_model_open(wg_model **out, const wg_weights *w, const wg_device *device, const wg_model_options *opt,
                        wg_error *err)
{
    wg_model *m = wg_calloc(1, sizeof *m);
    if (!m) return wg_nomem(err, sizeof *m, "a model");
    m->device = *device;
    wg_device_retain(&m->device);
    const wg_status s = open_into(m, w, opt, err);
    if (s) wg_model_close(m);
    else *out = m;
    return s;
}

static void close_each(wg_model *m, wg_stack *of)
{
    for (int i = 0; of->each && i < m->arch.experts; i++) m->device.class->matrix_free(&m->device, &of->each[i]);
    m->device.class->free(&m->device, of->data);
    wg_free(of->each);
}

/* Several places are one buffer's. */
static void free_vector(wg_device *d, wg_buf *b)
{
    d->class->free(d, *b);
    *b = NULL;
}

void wg_model_close(wg_model *m)
{
    if (!m) return;
    wg_device *d = &m->device;
    for (int l = 0; m->layer && l < m->part.layer_to - m->part.layer_from; l++)
        for (int i = 0; i < LAYER_PLACES; i++) {
            char *at = (char *)&m->layer[l] + layer_places[i].at;
            if (layer_places[i].each) close_each(m, (wg_stack *)(void *)at);
            else if (layer_places[i].out == ONE || is_table(&layer_places[i])) free_vector(d, (wg_buf *)(void *)at);
            else d->class->matrix_free(d, (wg_matrix *)(void *)at);
        }
    if (m->head.data != m->embed.data) d->class->matrix_free(d, &m->head);
    if (!m->arch.kept) d->class->matrix_free(d, &m->embed);
    const wg_buf buf[] = { m->out_norm,  m->out_norm_bias, m->positions, m->angles[0],
                           m->angles[1], m->slopes,        m->zeros,     m->growth };
    for (size_t i = 0; i < sizeof buf / sizeof buf[0]; i++) d->class->free(d, buf[i]);
    wg_model_close_scratch(m);
    wg_ranked_close(m);
    wg_device_close(d);
    wg_free(m->layer);
    wg_free(m);
}
