/* SPDX-License-Identifier: MIT
 * Rotary positions of config.json: both dialects (rope_theta with rope_scaling, and rope_parameters), and the scalings: linear,
 * llama3, YaRN (Peng et al. 2023), longrope (Ding et al. 2024). `dynamic` changes nothing within max_position_embeddings. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/angles.h"
#include "core/file/hf_keys.h"
#include "core/file/hf_write.h"

/* Keys that are read and written below. */
#define KEY_ORIGINAL "original_max_position_embeddings"
#define KEY_FACTOR "factor"
#define KEY_LOW "low_freq_factor"
#define KEY_HIGH "high_freq_factor"
#define KEY_FAST "beta_fast"
#define KEY_SLOW "beta_slow"
#define KEY_MAGNITUDE "attention_factor"
#define KEY_LONG "long_factor"
#define KEY_SHORT "short_factor"
#define KEY_TYPE "rope_type"
#define KEY_BASE "rope_theta"
#define KEY_LOCAL_BASE "rope_local_base_freq"
#define KEY_SCALING "rope_scaling"
#define KEY_ALPHA "alpha"
#define KEY_GROWTH "llama_4_scaling_beta"
#define KEY_SHARE "partial_rotary_factor"

/* Wavelengths and factors beyond these are mistakes. */
#define FACTOR_MAX 1e6
#define CONTEXT_MAX 1e9

static double wavelength(const wg_hf_config *c, int i)
{
    return 2 * 3.14159265358979323846 / wg_rope_frequency(c->rope_base, 1, i, c->n_rot);
}

/* Of pair i; p: factor, low, high, context. */
static float llama3_divisor(const wg_hf_config *c, int i, const double p[4])
{
    const double length = wavelength(c, i), s = (p[3] / length - p[1]) / (p[2] - p[1]);
    return (float)(length < p[3] / p[2] ? 1 : length > p[3] / p[1] ? p[0] : 1 / ((1 - s) / p[0] + s));
}

/* The scaling of Llama 3.1: long wavelengths are divided by `factor`, short ones stay, those between are interpolated. GGUF
 * files hold it as divisors, rounded to f32. */
static wg_status llama3(const wg_hf_keys *r, wg_hf_config *c)
{
    double factor, low, high, context;
    WG_TRY(wg_hf_number(r, KEY_FACTOR, WG_HF_ABSENT, 1, FACTOR_MAX, &factor));
    WG_TRY(wg_hf_number(r, KEY_LOW, WG_HF_ABSENT, 1e-3, 1e6, &low));
    WG_TRY(wg_hf_number(r, KEY_HIGH, WG_HF_ABSENT, 1e-3, 1e6, &high));
    WG_TRY(wg_hf_number(r, KEY_ORIGINAL, WG_HF_ABSENT, 1, CONTEXT_MAX, &context));
    if (!(high > low)) return wg_hf_wrong(r, KEY_HIGH, "more than low_freq_factor");
    c->divisors = c->n_rot / 2;
    for (int i = 0; i < c->divisors; i++) c->divisor[0][i] = llama3_divisor(c, i, (double[]){ factor, low, high, context });
    return WG_OK;
}

static wg_status linear(const wg_hf_keys *r, wg_hf_config *c)
{
    return wg_hf_number(r, KEY_FACTOR, WG_HF_ABSENT, 1, FACTOR_MAX, &c->rope_factor);
}

static double magnitude(double factor, double by) { return factor <= 1 ? 1 : 0.1 * by * log(factor) + 1; }

/* The context before the scaling: a key of the file's top goes first. */
static wg_status original_context(const wg_hf_keys *top, const wg_hf_keys *r, wg_hf_config *c)
{
    double context;
    const wg_hf_keys *in = wg_hf_get(top, KEY_ORIGINAL) ? top : r;
    WG_TRY(wg_hf_number(in, KEY_ORIGINAL, c->context, 2, CONTEXT_MAX, &context));
    c->original_context = (int)context;
    return WG_OK;
}

/* The file's context grows to what the scaling was made for. */
static wg_status yarn(const wg_hf_keys *top, const wg_hf_keys *r, const wg_hf_rope_defaults *of, wg_hf_config *c)
{
    double all, part, factor;
    bool truncated;
    WG_TRY(original_context(top, r, c));
    WG_TRY(wg_hf_number(r, KEY_FACTOR, (double)c->context / c->original_context, 1, FACTOR_MAX, &c->rope_factor));
    WG_TRY(wg_hf_number(r, KEY_FAST, 32, 1e-3, 1e6, &c->yarn_fast));
    WG_TRY(wg_hf_number(r, KEY_SLOW, 1, 1e-3, 1e6, &c->yarn_slow));
    WG_TRY(wg_hf_number(r, "mscale", 0, 0, 1e3, &part));
    WG_TRY(wg_hf_number(r, "mscale_all_dim", 0, 0, 1e3, &all));
    const double usual = magnitude(c->rope_factor, 1);
    factor = part > 0 && all > 0 ? magnitude(c->rope_factor, part) / magnitude(c->rope_factor, all) : usual;
    WG_TRY(wg_hf_number(r, KEY_MAGNITUDE, factor, 1e-3, 1e3, &factor));
    WG_TRY(wg_hf_bool(r, "truncate", true, &truncated));
    if (truncated && of->exact && !wg_hf_get(r, "truncate")) return wg_hf_wrong(r, "truncate", "false");
    if (truncated == of->exact) return wg_hf_refuse(r, "truncate", of->exact ? "false" : "true");
    if (of->grows) WG_TRY(wg_hf_number(r, KEY_GROWTH, WG_HF_ABSENT, 0, 1e3, &c->query_growth));
    c->yarn = true;
    c->rope_magnitude = factor / usual;
    const double most = c->rope_factor * c->original_context;
    if (most > c->context && most <= CONTEXT_MAX) c->context = (int)most;
    return WG_OK;
}

static wg_status factors(const wg_hf_keys *r, const char *key, int n, float *to)
{
    char expected[64];
    const json_t *list = wg_hf_get(r, key);
    snprintf(expected, sizeof expected, "a list of %d numbers, one for each pair", n);
    if (!json_is_array(list) || json_array_size(list) != (size_t)n) return wg_hf_wrong(r, key, expected);
    for (int i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, (size_t)i);
        to[i] = (float)json_number_value(v);
        if (!json_is_number(v) || !(to[i] >= 0.125f && to[i] <= 1e6f))
            return wg_hf_wrong(r, key, "a list of numbers of at least 0.125");
    }
    return WG_OK;
}

static double longrope_magnitude(double factor, double context)
{
    return factor <= 1 ? 1 : sqrt(1 + log(factor) / log(context));
}

static wg_status longrope(const wg_hf_keys *top, const wg_hf_keys *r, wg_hf_config *c)
{
    double factor;
    WG_TRY(original_context(top, r, c));
    c->divisors = c->n_rot / 2;
    c->longrope = true;
    WG_TRY(factors(r, KEY_LONG, c->divisors, c->divisor[0]));
    WG_TRY(factors(r, KEY_SHORT, c->divisors, c->divisor[1]));
    WG_TRY(wg_hf_number(r, KEY_FACTOR, (double)c->context / c->original_context, 1e-3, FACTOR_MAX, &factor));
    return wg_hf_number(r, KEY_MAGNITUDE, longrope_magnitude(factor, c->original_context), 1e-3, 1e3, &c->rope_magnitude);
}

/* NTK-aware scaling by a fixed alpha. */
static wg_status raise_base(const wg_hf_keys *r, wg_hf_config *c)
{
    double alpha;
    WG_TRY(wg_hf_number(r, KEY_ALPHA, WG_HF_ABSENT, 1, FACTOR_MAX, &alpha));
    c->rope_base *= pow(alpha, c->n_rot / (c->n_rot - 2.0));
    return c->n_rot > 2 ? WG_OK : wg_hf_refuse(r, KEY_ALPHA, "heads of more than two elements");
}

static wg_status scaling(const wg_hf_keys *top, const wg_hf_keys *r, const wg_hf_rope_defaults *of, wg_hf_config *c)
{
    const char *key = wg_hf_get(r, KEY_TYPE) ? KEY_TYPE : "type", *type = json_string_value(wg_hf_get(r, key));
    if (!wg_hf_get(r, key)) return WG_OK;
    if (!type) return wg_hf_refuse(r, key, "the name of a scaling");
    if (strcmp(type, "default") == 0) return WG_OK;
    if (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0 || of->only_longrope) return longrope(top, r, c);
    if (strcmp(type, "linear") == 0) return linear(r, c);
    if (strcmp(type, "llama3") == 0) return llama3(r, c);
    if (strcmp(type, "yarn") == 0) return yarn(top, r, of, c);
    if (strcmp(type, "dynamic") == 0 && !wg_hf_get(r, KEY_ALPHA)) return WG_OK;
    if (strcmp(type, "dynamic") == 0 && of->alpha) return raise_base(r, c);
    return wg_hf_refuse(r, key, "default, linear, dynamic, llama3, yarn or longrope");
}

/* The part of a head that is rotated. */
static wg_status rotated(const wg_hf_keys *top, const wg_hf_keys *r, const wg_hf_rope_defaults *of, wg_hf_config *c)
{
    double share;
    const char *key = KEY_SHARE;
    const wg_hf_keys *in = r->o && wg_hf_get(r, key) ? r : top;
    if (in == top && of->share_key) key = of->share_key;
    WG_TRY(wg_hf_number(in, key, of->share > 0 ? of->share : 1, 0, 1, &share));
    if (share != 1 && !of->partial) return wg_hf_refuse(in, key, "1");
    c->n_rot = (int)(c->head_dim * share);
    if (c->n_rot >= 2 && c->n_rot % 2 == 0) return WG_OK;
    return wg_hf_wrong(in, key, "the share of an even number of elements of a head, at least two");
}

/* rope_parameters of kinds of layers: r becomes that of layers without a window. */
static wg_status local(const wg_hf_keys *top, const wg_hf_rope_defaults *of, wg_hf_keys *r, wg_hf_config *c)
{
    wg_hf_keys w = *r;
    w.o = wg_hf_get(r, "sliding_attention");
    w.where = "rope_parameters.sliding_attention.";
    r->o = wg_hf_get(r, "full_attention");
    r->where = "rope_parameters.full_attention.";
    if ((of->local_base == 0 && !of->local_unscaled) || (w.o && !json_is_object(w.o)) || (r->o && !json_is_object(r->o)))
        return wg_fail(top->err, WG_EUNSUPPORTED,
                       "%s: key 'rope_parameters' differs between kinds of layers: expected one for all", top->path);
    if (!w.o) return WG_OK;
    if (of->local_unscaled) c->window_rope_base = c->rope_base;
    WG_TRY(wg_hf_number(&w, KEY_BASE, c->window_rope_base, 1, 1e12, &c->window_rope_base));
    const char *type = json_string_value(wg_hf_get(&w, KEY_TYPE));
    return wg_hf_get(&w, KEY_TYPE) && (!type || strcmp(type, "default") != 0) ? wg_hf_refuse(&w, KEY_TYPE, "default") : WG_OK;
}

wg_status wg_hf_rope(const wg_hf_keys *top, const wg_hf_rope_defaults *of, wg_hf_config *c)
{
    const json_t *now = wg_hf_get(top, "rope_parameters"), *old = wg_hf_get(top, KEY_SCALING);
    wg_hf_keys r = *top;
    r.o = now ? now : old;
    r.where = now ? "rope_parameters." : "rope_scaling.";
    c->rope_factor = c->rope_magnitude = 1;
    WG_TRY(wg_hf_number(top, of->base_key ? of->base_key : KEY_BASE, of->base, 1, 1e12, &c->rope_base));
    if (of->local_base > 0) WG_TRY(wg_hf_number(top, KEY_LOCAL_BASE, of->local_base, 1, 1e12, &c->window_rope_base));
    if (r.o && !json_is_object(r.o)) return wg_hf_wrong(top, now ? "rope_parameters" : KEY_SCALING, "an object");
    if (r.o && (wg_hf_get(&r, "full_attention") || wg_hf_get(&r, "sliding_attention"))) WG_TRY(local(top, of, &r, c));
    WG_TRY(rotated(top, &r, of, c));
    if (!r.o) return WG_OK;
    WG_TRY(wg_hf_number(&r, KEY_BASE, c->rope_base, 1, 1e12, &c->rope_base));
    if (of->local_unscaled && c->window_rope_base == c->rope_base) c->window_rope_base = 0; /* as GGUF files mean it */
    return scaling(top, &r, of, c);
}

void wg_hf_rope_write(const wg_hf_config *c, wg_gguf_writer *g)
{
    const char *type = c->yarn ? "yarn" : c->longrope ? "longrope" : c->rope_factor != 1 ? "linear" : NULL;
    const struct {
        const char *key;
        double v;
        bool written;
    } row[] = {
        { "rope.freq_base", c->rope_base, true },
        { "rope.freq_base_swa", c->window_rope_base, c->window_rope_base > 0 },
        { "rope.scaling.factor", c->rope_factor, c->rope_factor != 1 },
        { "rope.scaling.attn_factor", c->rope_magnitude, c->rope_magnitude != 1 },
        { "rope.scaling.yarn_beta_fast", c->yarn_fast, c->yarn },
        { "rope.scaling.yarn_beta_slow", c->yarn_slow, c->yarn },
    };
    char key[96];
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        snprintf(key, sizeof key, "%s.%s", c->family, row[i].key);
        if (row[i].written) wg_gguf_set_f32(g, key, (float)row[i].v);
    }
    snprintf(key, sizeof key, "%s.rope.scaling.type", c->family);
    if (type) wg_gguf_set_string(g, key, type, strlen(type));
    snprintf(key, sizeof key, "%s.rope.scaling.original_context_length", c->family);
    if (c->original_context > 0) wg_gguf_set_u32(g, key, (uint32_t)c->original_context);
}

/* ---- the other way round */

static bool llama3_is(const wg_hf_config *c, const double p[4])
{
    for (int i = 0; i < c->divisors; i++)
        if (llama3_divisor(c, i, p) != c->divisor[0][i]) return false;
    return true;
}

/* The parameters of llama3 that give these divisors, which hold them up to a common factor of low, high and context: low is
 * 1. The published ones are tried first; then context and high are those of the line through the first and the last pair
 * between. */
static bool find_llama3(const wg_hf_config *c, double p[4])
{
    int pair[2] = { -1, -1 };
    double s[2];
    p[0] = 1;
    for (int i = 0; i < c->divisors; i++) p[0] = c->divisor[0][i] > p[0] ? c->divisor[0][i] : p[0];
    p[1] = 1, p[2] = 4;
    for (p[3] = 32; p[3] <= 1 << 20; p[3] *= 2)
        if (llama3_is(c, p)) return true;
    for (int i = 0; i < c->divisors; i++)
        if (c->divisor[0][i] > 1 && c->divisor[0][i] < p[0]) pair[pair[0] < 0 ? 0 : 1] = i;
    if (pair[1] < 0) return false;
    for (int k = 0; k < 2; k++) s[k] = (1 / (double)c->divisor[0][pair[k]] - 1 / p[0]) / (1 - 1 / p[0]);
    const double slope = (s[0] - s[1]) / (1 / wavelength(c, pair[0]) - 1 / wavelength(c, pair[1])); /* context / (high - 1) */
    const double below = slope / wavelength(c, pair[0]) - s[0];                                     /* 1 / (high - 1) */
    p[3] = nearbyint(slope / below);
    for (int digits = 1; digits < 8; digits++) {
        const double scale = pow(10, digits);
        p[2] = nearbyint((1 + 1 / below) * scale) / scale;
        if (llama3_is(c, p)) return true;
    }
    return false;
}

static double magnitude_over(double factor, double usual) { return factor / usual; }

static json_t *number(double v) { return json_real(wg_hf_shortest(v, NULL, 0)); }

static json_t *list_of(const float *v, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, number((double)v[i]));
    return list;
}

/* The object of the scaling; NULL in *out: there is none. */
static wg_status scaling_json(const wg_hf_config *c, const char *path, json_t *top, json_t **out, wg_error *err)
{
    double p[4];
    json_t *o = *out = NULL;
    if (c->longrope) {
        o = json_pack("{s:s, s:o, s:o}", "type", "longrope", KEY_LONG, list_of(c->divisor[0], c->divisors), KEY_SHORT,
                      list_of(c->divisor[1], c->divisors));
        const double usual = longrope_magnitude((double)c->context / c->original_context, c->original_context);
        if ((float)usual != (float)c->rope_magnitude) json_object_set_new(o, KEY_MAGNITUDE, number(c->rope_magnitude));
        json_object_set_new(top, KEY_ORIGINAL, json_integer(c->original_context));
    } else if (c->divisors > 0) {
        if (!find_llama3(c, p))
            return wg_fail(
                err, WG_EUNSUPPORTED,
                "%s: tensor 'rope_freqs.weight' holds divisors that no scaling of the kind llama3 gives; write a GGUF "
                "file instead",
                path);
        o = json_pack("{s:s, s:f, s:f, s:f, s:I}", KEY_TYPE, "llama3", KEY_FACTOR, p[0], KEY_LOW, p[1], KEY_HIGH, p[2],
                      KEY_ORIGINAL, (json_int_t)p[3]);
    } else if (c->yarn) {
        const double usual = magnitude(c->rope_factor, 1);
        o = json_pack("{s:s, s:o, s:I, s:o, s:o}", KEY_TYPE, "yarn", KEY_FACTOR, number(c->rope_factor), KEY_ORIGINAL,
                      (json_int_t)c->original_context, KEY_FAST, number(c->yarn_fast), KEY_SLOW, number(c->yarn_slow));
        if (c->rope_magnitude != 1)
            json_object_set_new(o, KEY_MAGNITUDE, json_real(wg_hf_shortest(c->rope_magnitude * usual, magnitude_over, usual)));
        if (c->query_growth > 0) json_object_set_new(o, KEY_GROWTH, number(c->query_growth));
    } else if (c->rope_factor != 1) {
        o = json_pack("{s:s, s:o}", KEY_TYPE, "linear", KEY_FACTOR, number(c->rope_factor));
    }
    *out = o;
    return WG_OK;
}

/* rope_parameters by kind of layer: those with a window are not scaled. */
static void nested_json(const wg_hf_config *c, json_t *scaling, json_t *to)
{
    json_t *full = scaling ? scaling : json_pack("{s:s}", KEY_TYPE, "default");
    const double own = c->window_rope_base > 0 ? c->window_rope_base : c->rope_base;
    json_object_set_new(full, KEY_BASE, number(c->rope_base));
    json_object_set_new(to, "rope_parameters",
                        json_pack("{s:o, s:{s:s, s:o}}", "full_attention", full, "sliding_attention", KEY_TYPE, "default",
                                  KEY_BASE, number(own)));
}

wg_status wg_hf_rope_json(const wg_hf_config *c, const wg_hf_rope_defaults *of, const char *path, json_t *to, wg_error *err)
{
    json_t *scaling;
    json_object_set_new(to, of->base_key ? of->base_key : KEY_BASE, number(c->rope_base));
    if (of->local_base > 0) json_object_set_new(to, KEY_LOCAL_BASE, number(c->window_rope_base));
    if (of->partial && (of->share > 0 || c->n_rot != c->head_dim))
        json_object_set_new(to, of->share_key ? of->share_key : KEY_SHARE, json_real((double)c->n_rot / c->head_dim));
    WG_TRY(scaling_json(c, path, to, &scaling, err));
    if (of->exact && c->yarn) json_object_set_new(scaling, "truncate", json_false());
    if (of->local_unscaled) {
        nested_json(c, scaling, to);
        return WG_OK;
    }
    json_object_set_new(to, KEY_SCALING, scaling ? scaling : json_null());
    return WG_OK;
}
