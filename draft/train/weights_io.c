/* SPDX-License-Identifier: MIT
 * Sets the weights of a network at random or from a file, and writes them to a GGUF file. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/angles.h"
#include "core/base/mem.h"
#include "core/file/gguf_write.h"
#include "core/model/student.h"
#include "draft/train/trainer.h"
#include "kernels/philox.h"

/* Fills w with normal numbers, drawn in pairs (Box and Muller). */
static void normal(uint64_t seed, uint32_t tensor, float deviation, float *w, size_t n)
{
    for (size_t i = 0; i < n; i += 2) {
        const wg_philox p = wg_philox_at(seed, (uint32_t)(i / 2), tensor, (uint32_t)(i / 2 >> 32), 0);
        const double radius = sqrt(2 * wg_philox_exponential(wg_philox_double(p.v[0], p.v[1])));
        double sine, cosine;
        wg_sincos(6.283185307179586 * wg_philox_double(p.v[2], p.v[3]), &sine, &cosine);
        w[i] = deviation * (float)(radius * cosine);
        if (i + 1 < n) w[i + 1] = deviation * (float)(radius * sine);
    }
}

static bool ends(const char *s, const char *with)
{
    const size_t n = strlen(s), m = strlen(with);
    return n >= m && strcmp(s + n - m, with) == 0;
}

void wg_net_randomise(wg_net *n, uint64_t seed)
{
    for (int i = 0; i < wg_net_tensors(n); i++) {
        const wg_net_tensor *t = wg_net_tensor_at(n, i);
        float *w = (float *)wg_net_weights(n) + t->at;
        const size_t size = (size_t)t->rows * (size_t)t->columns;
        const bool last = ends(t->name, "attn_output.weight") || ends(t->name, "ffn_down.weight");
        if (t->rows == 1)
            for (size_t k = 0; k < size; k++) w[k] = 1;
        else if (last) memset(w, 0, size * sizeof *w);
        else normal(seed, (uint32_t)i, t->matrix ? 1 / sqrtf((float)t->columns) : 0.02f, w, size);
    }
    wg_net_send(n);
}

/* The number of the layer in a tensor's name, and the rest of the name; -1: it has none. */
static int layer_of(const char *name, const char **rest)
{
    int layer = -1, end = 0;
    *rest = name;
    if (sscanf(name, "blk.%d.%n", &layer, &end) == 1 && end > 0) *rest = name + end;
    return end > 0 ? layer : -1;
}

/* A tensor of the file, outside layers, that the network lacks. */
static const wg_tensor *other_tensor(wg_net *n, const wg_weights *w)
{
    for (int i = 0; i < wg_weights_count(w); i++) {
        bool known = false;
        const char *rest, *own;
        const bool of_layer = layer_of(wg_weights_at(w, i)->name, &rest) >= 0;
        for (int k = 0; k < wg_net_tensors(n) && !known; k++)
            known = (layer_of(wg_net_tensor_at(n, k)->name, &own) >= 0) == of_layer && strcmp(own, rest) == 0;
        if (!known) return wg_weights_at(w, i);
    }
    return NULL;
}

static wg_status read_tensor(wg_net *n, const wg_net_tensor *t, const wg_weights *w, const char *name, wg_error *err)
{
    const wg_tensor *from = wg_weights_find(w, name);
    if (!from || from->dim[0] != t->columns || from->dim[1] != t->rows || !wg_type_get(from->type)->computable)
        return wg_fail(err, WG_EMODEL, "%s: tensor '%s' is missing, or has another shape or type: expected %d x %d of %s",
                       wg_weights_path(w), name, t->columns, t->rows, WG_COMPUTABLE_TYPES);
    WG_TRY(wg_weights_need(w, from, err));
    const size_t row = wg_type_size(wg_type_get(from->type), (size_t)t->columns);
    for (int r = 0; r < t->rows; r++) {
        float *to = (float *)wg_net_weights(n) + t->at + (size_t)r * (size_t)t->columns;
        const int bad = wg_row_to_f32(from->type, (const char *)from->data + (size_t)r * row, to, (size_t)t->columns);
        wg_assert(!bad); /* the type can be converted */
    }
    wg_weights_release(w, from);
    return WG_OK;
}

wg_status wg_net_read_parts(wg_net *n, const wg_weights *w, const int *layer, wg_error *err)
{
    const wg_tensor *other = layer ? other_tensor(n, w) : NULL;
    if (other)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%s: tensor '%s' cannot be trained here; expected those of the family 'llama' alone", wg_weights_path(w),
                       other->name);
    for (int i = 0; i < wg_net_tensors(n); i++) {
        const wg_net_tensor *t = wg_net_tensor_at(n, i);
        char name[64];
        const char *rest;
        const int own = layer_of(t->name, &rest);
        if ((own >= 0 && !layer) || strncmp(t->name, WG_NET_OWN, strlen(WG_NET_OWN)) == 0) continue;
        if (own >= 0) snprintf(name, sizeof name, "blk.%d.%s", layer[own], rest);
        WG_TRY(read_tensor(n, t, w, own >= 0 ? name : t->name, err));
    }
    wg_net_send(n);
    return WG_OK;
}

wg_status wg_net_read(wg_net *n, const wg_weights *w, wg_error *err)
{
    int layer[WG_LAYERS_MAX];
    const int layers = wg_net_arch(n)->layers;
    for (int i = 0; i < layers; i++) layer[i] = i;
    return wg_net_read_parts(n, w, layer, err);
}

typedef struct writer {
    wg_net *net;
    const int32_t *token; /* of the rows of a head that is cut; NULL: all */
} writer;

/* The tensor that a row of the file comes from, and the number of the row there. */
static const float *row_of(const writer *w, const wg_net_tensor *from, int r)
{
    const int at = w->token && from->frozen ? w->token[r] : r;
    return (const float *)wg_net_weights(w->net) + from->at + (size_t)at * (size_t)from->columns;
}

static const wg_net_tensor *head_of(wg_net *n) { return wg_net_tensor_at(n, wg_net_arch(n)->tied ? 0 : wg_net_tensors(n) - 1); }

static const wg_net_tensor *named(const writer *w, const char *name)
{
    if (w->token && !strcmp(name, "output.weight")) return head_of(w->net);
    for (int i = 0;; i++)
        if (!strcmp(wg_net_tensor_at(w->net, i)->name, name)) return wg_net_tensor_at(w->net, i);
}

static wg_status fill(void *user, const wg_tensor *t, void *dst, wg_error *err)
{
    const writer *w = user;
    (void)err;
    const wg_net_tensor *from = named(w, t->name);
    const size_t rows = (size_t)t->dim[1], row = t->bytes / rows;
    for (size_t r = 0; r < rows; r++) {
        const int bad = wg_row_from_f32(t->type, row_of(w, from, (int)r), (char *)dst + r * row, (size_t)from->columns);
        wg_assert(bad == 0); /* `add` chose a type that fits */
    }
    return WG_OK;
}

static void set_u32(wg_gguf_writer *g, const char *family, const char *key, int v)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s", family, key);
    wg_gguf_set_u32(g, name, (uint32_t)v);
}

static void set_f32(wg_gguf_writer *g, const char *family, const char *key, double v)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s", family, key);
    wg_gguf_set_f32(g, name, (float)v);
}

static void set_keys(wg_gguf_writer *g, const wg_arch *a, const char *name, int type)
{
    wg_gguf_set_string(g, "general.architecture", a->family, strlen(a->family));
    wg_gguf_set_string(g, "general.name", name, strlen(name));
    wg_gguf_set_u32(g, "general.file_type", wg_gguf_file_type(type));
    if (wg_type_get(type)->block > 1) wg_gguf_set_u32(g, "general.quantization_version", 2);
    set_u32(g, a->family, "vocab_size", a->vocab);
    set_u32(g, a->family, "context_length", a->context);
    set_u32(g, a->family, "embedding_length", a->dim);
    set_u32(g, a->family, "block_count", a->layers);
    set_u32(g, a->family, "feed_forward_length", a->hidden);
    set_u32(g, a->family, "attention.head_count", a->heads);
    set_u32(g, a->family, "attention.head_count_kv", a->kv_heads);
    set_u32(g, a->family, "attention.key_length", a->head_dim);
    set_u32(g, a->family, "attention.value_length", a->head_dim);
    set_u32(g, a->family, "rope.dimension_count", a->n_rot);
    set_f32(g, a->family, "attention.layer_norm_rms_epsilon", (double)a->eps);
    set_f32(g, a->family, "rope.freq_base", a->rope_base);
}

/* The type of a tensor in the file: in a q8_2of4 model, embedding and head are not pruned, as in wg_quantize. */
static int type_of(const wg_net_tensor *t, int type)
{
    if (t->rows == 1) return WG_F32;
    if (type == WG_Q8_2OF4 && !t->matrix) type = WG_Q8_0;
    return t->columns % wg_type_get(type)->block == 0 ? type : WG_F16;
}

static void add(wg_gguf_writer *g, const wg_net_tensor *t, int type, writer *w)
{
    const int dims = t->rows == 1 ? 1 : 2;
    const wg_tensor x = { .name = t->name, .type = type_of(t, type), .n_dims = dims, .dim = { t->columns, t->rows, 1, 1 } };
    wg_gguf_add(g, &x, fill, w);
}

wg_status wg_net_write(wg_net *n, const char *path, const char *name, const wg_weights *tokenizer, int type, wg_error *err)
{
    wg_gguf_writer *g;
    writer w = { .net = n };
    WG_TRY(wg_gguf_writer_open(&g, path, err));
    set_keys(g, wg_net_arch(n), name, type);
    for (int i = 0; tokenizer && i < wg_meta_count(tokenizer); i++)
        if (strncmp(wg_meta_key(tokenizer, i), "tokenizer.", 10) == 0) wg_gguf_copy_meta(g, tokenizer, i);
    for (int i = 0; i < wg_net_tensors(n); i++) add(g, wg_net_tensor_at(n, i), type, &w);
    return wg_gguf_writer_finish(g, err);
}

/* The digest by which a cut student knows its target. */
static void digest_rows(const writer *w, const wg_net_tensor *head, int kept, char hex[WG_SHA256_HEX])
{
    wg_sha256_state sha;
    wg_sha256_begin(&sha);
    for (int i = 0; i < WG_STUDENT_SAMPLE; i++)
        wg_sha256_add(&sha, row_of(w, head, wg_student_sample(i, kept)), (size_t)head->columns * sizeof(float));
    wg_sha256_end(&sha, hex);
}

wg_status wg_net_write_cut(wg_net *n, const char *path, const wg_net_cut *cut, int type, wg_error *err)
{
    wg_gguf_writer *g;
    writer w = { .net = n, .token = cut->token };
    const int kept = wg_net_outputs(n);
    wg_net_tensor head = *head_of(n);
    char rows[WG_SHA256_HEX];
    wg_assert(head.frozen && kept < head.rows);
    snprintf(head.name, sizeof head.name, "output.weight");
    head.rows = kept;
    WG_TRY(wg_gguf_writer_open(&g, path, err));
    set_keys(g, wg_net_arch(n), cut->name, type);
    digest_rows(&w, &head, kept, rows);
    wg_gguf_set_string(g, WG_STUDENT_TARGET, cut->target, strlen(cut->target));
    wg_gguf_set_string(g, WG_STUDENT_TOKENIZER, cut->tokenizer, strlen(cut->tokenizer));
    wg_gguf_set_string(g, WG_STUDENT_ROWS, rows, strlen(rows));
    wg_gguf_set_i32s(g, WG_STUDENT_TOKENS, cut->token, (size_t)kept);
    for (int i = 0; i < wg_net_tensors(n); i++)
        if (!wg_net_tensor_at(n, i)->frozen) add(g, wg_net_tensor_at(n, i), type, &w);
    add(g, &head, type, &w);
    return wg_gguf_writer_finish(g, err);
}
