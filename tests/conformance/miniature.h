/* SPDX-License-Identifier: MIT
 * The miniature models of this folder: draws the weights that make_miniatures.py drew, and writes the folder of a checkpoint.
 * */
#ifndef WG_TESTS_CONFORMANCE_MINIATURE_H
#define WG_TESTS_CONFORMANCE_MINIATURE_H

#include <jansson.h>
#include <math.h>
#include <stdint.h>

#include "core/base/hash.h"
#include "kernels/types.h"
#include "tests/temp.h"

enum { MINI_TOKENS = 64, MINI_TAPPED = 4, MINI_TAPS = 4 };

/* The tokens and taps of taps.f32: MINI_TAPPED of make_miniatures.py; taps 0, 1, L and L + 1 of L layers. */
static const int mini_tapped[MINI_TAPPED] = { 0, 13, 44, 63 };

typedef struct miniature {
    char from[256]; /* its folder here */
    json_t *config, *config_case;
    int vocab;
    int32_t token[MINI_TOKENS];
    int dim, layers;
    float *logits; /* (MINI_TOKENS, vocab) of transformers */
    float *taps;   /* (MINI_TAPPED, MINI_TAPS, dim) likewise */
} miniature;

static inline uint64_t mini_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static inline bool mini_ends(const char *s, const char *with)
{
    const size_t n = strlen(s), k = strlen(with);
    return n >= k && strcmp(s + n - k, with) == 0;
}

/* Element e of a tensor: see make_miniatures.py. */
static inline float mini_element(const char *name, uint64_t e, double columns)
{
    const uint64_t key = wg_hash64(WG_HASH_START, name, strlen(name));
    const int i = (int8_t)(mini_mix(key + (e + 1) * 0x9E3779B97F4A7C15ull) >> 56);
    if (mini_ends(name, "norm.weight") || (mini_ends(name, ".weight") && (strstr(name, "ln_") || strstr(name, "norm_"))))
        return 1 + (float)(i >> 2) / 128;
    if (mini_ends(name, ".bias")) return (float)i / 256;
    if (strstr(name, "embed_tokens") || strstr(name, "embed_in") || strstr(name, "word_embeddings") ||
        strcmp(name, "wte.weight") == 0 || strcmp(name, "wpe.weight") == 0)
        return (float)i / 128;
    return ldexpf((float)i, -(int)nearbyint(log2(74 * sqrt(columns))));
}

/* A size of the config, under the name that most families give it or another. */
static inline int mini_size(const miniature *m, const char *const keys[3])
{
    const json_t *v = NULL;
    for (int i = 0; i < 3 && !v; i++) v = json_object_get(m->config, keys[i]);
    return (int)json_integer_value(v);
}

/* The list of taps of taps.f32. */
static inline void mini_taps(const miniature *m, int tap[MINI_TAPS])
{
    const int list[MINI_TAPS] = { 0, 1, m->layers, m->layers + 1 };
    memcpy(tap, list, sizeof list);
}

/* The largest relative error of the logits of the first tokens: sqrt(sum (x - ref)^2 / sum ref^2). x: (tokens, vocab). */
static inline double mini_worst_row(const miniature *m, const float *x, int tokens)
{
    double worst = 0;
    for (int t = 0; t < tokens; t++) {
        double d = 0, s = 0;
        for (int i = t * m->vocab; i < (t + 1) * m->vocab; i++) {
            const double want = (double)m->logits[i], off = (double)x[i] - want;
            d += off * off, s += want * want;
        }
        worst = fmax(worst, sqrt(d / s));
    }
    return worst;
}

/* The largest relative error of a tap of a token: sqrt(sum (x - ref)^2 / sum ref^2). x: (tokens, MINI_TAPS, dim). */
static inline double mini_worst_tap(const miniature *m, const float *x, int tokens)
{
    double worst = 0;
    for (int i = 0; i < MINI_TAPPED * MINI_TAPS && mini_tapped[i / MINI_TAPS] < tokens; i++) {
        const size_t dim = (size_t)m->dim, row = (size_t)mini_tapped[i / MINI_TAPS] * MINI_TAPS + (size_t)(i % MINI_TAPS);
        double d = 0, s = 0;
        for (size_t e = 0; e < dim; e++) {
            const double want = (double)m->taps[(size_t)i * dim + e], off = (double)x[row * dim + e] - want;
            d += off * off, s += want * want;
        }
        worst = fmax(worst, sqrt(d / s));
    }
    return worst;
}

static inline void mini_open(miniature *m, const char *name)
{
    char path[320];
    const char *root = getenv("WG_ROOT");
    snprintf(m->from, sizeof m->from, "%.128s/tests/conformance/%.64s", root ? root : ".", name);
    snprintf(path, sizeof path, "%s/config.json", m->from);
    m->config = json_load_file(path, 0, NULL);
    snprintf(path, sizeof path, "%s/case.json", m->from);
    m->config_case = json_load_file(path, 0, NULL);
    snprintf(path, sizeof path, "%s/logits.f32", m->from);
    size_t n = 0;
    m->logits = (float *)(void *)file_read(path, &n);
    m->vocab = (int)json_integer_value(json_object_get(m->config, "vocab_size"));
    if (!m->config_case || !m->logits || n != MINI_TOKENS * (size_t)m->vocab * sizeof(float)) abort();
    m->dim = mini_size(m, (const char *const[]){ "hidden_size", "n_embd", "d_model" });
    m->layers = mini_size(m, (const char *const[]){ "num_hidden_layers", "n_layer", "n_layers" });
    snprintf(path, sizeof path, "%s/taps.f32", m->from);
    m->taps = (float *)(void *)file_read(path, &n);
    if (!m->taps || n != MINI_TAPPED * MINI_TAPS * (size_t)m->dim * sizeof(float)) abort();
    for (size_t i = 0; i < MINI_TOKENS; i++)
        m->token[i] = (int32_t)json_integer_value(json_array_get(json_object_get(m->config_case, "tokens"), i));
}

static inline void mini_close(miniature *m)
{
    json_decref(m->config);
    json_decref(m->config_case);
    free(m->logits);
    free(m->taps);
}

/* One file of the model: header and data; `pad`: spaces behind the header, which shift the data. */
static inline void mini_shard(const miniature *m, int file, const char *path, int pad)
{
    json_t *header = json_object(), *v;
    size_t i, data = 0, at = 0;
    char *bytes = NULL;
    json_array_foreach(json_object_get(m->config_case, "tensors"), i, v) {
        const char *name = json_string_value(json_object_get(v, "name"));
        const char *dtype = json_string_value(json_object_get(v, "dtype"));
        const json_t *shape = json_object_get(v, "shape");
        if (json_integer_value(json_object_get(v, "file")) != file) continue;
        const int type = strcmp(dtype, "F32") == 0 ? WG_F32 : strcmp(dtype, "F16") == 0 ? WG_F16 : WG_BF16;
        const size_t k = (size_t)json_integer_value(json_array_get(shape, json_array_size(shape) - 1)),
                     size = type == WG_F32 ? 4 : 2;
        const size_t rows = json_array_size(shape) > 1 ? (size_t)json_integer_value(json_array_get(shape, 0)) : 1;
        bytes = realloc(bytes, data + rows * k * size);
        for (size_t e = 0; e < rows * k; e++) {
            const float x = mini_element(name, e, (double)k);
            if (wg_row_from_f32(type, &x, bytes + data + e * size, 1)) abort();
        }
        json_object_set_new(header, name,
                            json_pack("{s:s, s:O, s:[I, I]}", "dtype", dtype, "shape", shape, "data_offsets", (json_int_t)data,
                                      (json_int_t)(data + rows * k * size)));
        data += rows * k * size;
    }
    json_object_set_new(header, "__metadata__", json_pack("{s:s}", "format", "pt"));
    char *text = json_dumps(header, JSON_COMPACT);
    const uint64_t n = strlen(text) + (uint64_t)pad;
    char *all = calloc(1, sizeof n + n + data);
    memcpy(all, &n, sizeof n);
    memset(all + sizeof n, ' ', n);
    memcpy(all + sizeof n, text, strlen(text));
    at = sizeof n + n;
    memcpy(all + at, bytes, data);
    file_write(path, all, at + data);
    free(all), free(text), free(bytes);
    json_decref(header);
}

/* Writes the whole folder into a fresh one. */
static inline void mini_write(const miniature *m, temp *t, int pad)
{
    const int files = (int)json_integer_value(json_object_get(m->config_case, "files"));
    json_dump_file(m->config, temp_at(t, "config.json"), JSON_INDENT(1));
    if (files == 1) {
        mini_shard(m, 0, temp_at(t, "model.safetensors"), pad);
        return;
    }
    json_t *map = json_object(), *v;
    size_t i;
    char name[64];
    for (int f = 0; f < files; f++) {
        snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", f + 1, files);
        mini_shard(m, f, temp_at(t, name), pad);
        json_array_foreach(json_object_get(m->config_case, "tensors"), i, v) {
            if (json_integer_value(json_object_get(v, "file")) == f)
                json_object_set_new(map, json_string_value(json_object_get(v, "name")), json_string(name));
        }
    }
    json_t *index = json_pack("{s:{}, s:o}", "metadata", "weight_map", map);
    json_dump_file(index, temp_at(t, "model.safetensors.index.json"), 0);
    json_decref(index);
}

#endif
