/* SPDX-License-Identifier: MIT
 * Rotary positions of config.json: both dialects (rope_theta with rope_scaling, and rope_parameters), and the scalings: linear,
 * llama3, YaRN (Peng et al. 2023), longrope (Ding et al. 2024). `dynamic` changes nothing within max_position_embeddings. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/angles.h"
#include "core/file/hf_keys.h"

/* Wavelengths and factors beyond these are mistakes. */
#define FACTOR_MAX 1e6
#define CONTEXT_MAX 1e9

/* The scaling of Llama 3.1: long wavelengths are divided by `factor`, short ones stay, those between are interpolated. GGUF
 * files hold it as divisors, rounded to f32. */
static wg_status llama3(const wg_hf_keys *r, wg_hf_config *c)
{
    double factor, low, high, context;
    WG_TRY(wg_hf_number(r, "factor", WG_HF_ABSENT, 1, FACTOR_MAX, &factor));
    WG_TRY(wg_hf_number(r, "low_freq_factor", WG_HF_ABSENT, 1e-3, 1e6, &low));
    WG_TRY(wg_hf_number(r, "high_freq_factor", WG_HF_ABSENT, 1e-3, 1e6, &high));
    WG_TRY(wg_hf_number(r, "original_max_position_embeddings", WG_HF_ABSENT, 1, CONTEXT_MAX, &context));
    if (!(high > low)) return wg_hf_wrong(r, "high_freq_factor", "more than low_freq_factor");
    c->divisors = c->n_rot / 2;
    for (int i = 0; i < c->divisors; i++) {
        const double wavelength = 2 * 3.14159265358979323846 / wg_rope_frequency(c->rope_base, 1, i, c->n_rot);
        const double s = (context / wavelength - low) / (high - low);
        c->divisor[0][i] = (float)(wavelength < context / high  ? 1
                                   : wavelength > context / low ? factor
                                                                : 1 / ((1 - s) / factor + s));
    }
    return WG_OK;
}

static wg_status linear(const wg_hf_keys *r, wg_hf_config *c)
{
    return wg_hf_number(r, "factor", WG_HF_ABSENT, 1, FACTOR_MAX, &c->rope_factor);
}

static double magnitude(double factor, double by) { return factor <= 1 ? 1 : 0.1 * by * log(factor) + 1; }

/* The context before the scaling: a key of the file's top goes first. */
static wg_status original_context(const wg_hf_keys *top, const wg_hf_keys *r, wg_hf_config *c)
{
    double context;
    const wg_hf_keys *in = wg_hf_get(top, "original_max_position_embeddings") ? top : r;
    WG_TRY(wg_hf_number(in, "original_max_position_embeddings", c->context, 2, CONTEXT_MAX, &context));
    c->original_context = (int)context;
    return WG_OK;
}

/* The file's context grows to what the scaling was made for. */
static wg_status yarn(const wg_hf_keys *top, const wg_hf_keys *r, wg_hf_config *c)
{
    double all, part, factor;
    bool truncated;
    WG_TRY(original_context(top, r, c));
    WG_TRY(wg_hf_number(r, "factor", (double)c->context / c->original_context, 1, FACTOR_MAX, &c->rope_factor));
    WG_TRY(wg_hf_number(r, "beta_fast", 32, 1e-3, 1e6, &c->yarn_fast));
    WG_TRY(wg_hf_number(r, "beta_slow", 1, 1e-3, 1e6, &c->yarn_slow));
    WG_TRY(wg_hf_number(r, "mscale", 0, 0, 1e3, &part));
    WG_TRY(wg_hf_number(r, "mscale_all_dim", 0, 0, 1e3, &all));
    const double usual = magnitude(c->rope_factor, 1);
    factor = part > 0 && all > 0 ? magnitude(c->rope_factor, part) / magnitude(c->rope_factor, all) : usual;
    WG_TRY(wg_hf_number(r, "attention_factor", factor, 1e-3, 1e3, &factor));
    WG_TRY(wg_hf_bool(r, "truncate", true, &truncated));
    if (!truncated) return wg_hf_refuse(r, "truncate", "true");
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

static wg_status longrope(const wg_hf_keys *top, const wg_hf_keys *r, wg_hf_config *c)
{
    double factor;
    WG_TRY(original_context(top, r, c));
    c->divisors = c->n_rot / 2;
    c->longrope = true;
    WG_TRY(factors(r, "long_factor", c->divisors, c->divisor[0]));
    WG_TRY(factors(r, "short_factor", c->divisors, c->divisor[1]));
    WG_TRY(wg_hf_number(r, "factor", (double)c->context / c->original_context, 1e-3, FACTOR_MAX, &factor));
    const double usual = factor <= 1 ? 1 : sqrt(1 + log(factor) / log(c->original_context));
    return wg_hf_number(r, "attention_factor", usual, 1e-3, 1e3, &c->rope_magnitude);
}

static wg_status scaling(const wg_hf_keys *top, const wg_hf_keys *r, bool only_longrope, wg_hf_config *c)
{
    const char *key = wg_hf_get(r, "rope_type") ? "rope_type" : "type", *type = json_string_value(wg_hf_get(r, key));
    if (!wg_hf_get(r, key)) return WG_OK;
    if (!type) return wg_hf_refuse(r, key, "the name of a scaling");
    if (strcmp(type, "default") == 0) return WG_OK;
    if (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0 || only_longrope) return longrope(top, r, c);
    if (strcmp(type, "linear") == 0) return linear(r, c);
    if (strcmp(type, "llama3") == 0) return llama3(r, c);
    if (strcmp(type, "yarn") == 0) return yarn(top, r, c);
    if (strcmp(type, "dynamic") == 0 && !wg_hf_get(r, "alpha")) return WG_OK;
    return wg_hf_refuse(r, key, "default, linear, dynamic, llama3, yarn or longrope");
}

/* The part of a head that is rotated. */
static wg_status rotated(const wg_hf_keys *top, const wg_hf_keys *r, const wg_hf_rope_defaults *of, wg_hf_config *c)
{
    double share;
    const char *key = "partial_rotary_factor";
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
    if (of->local_base == 0 || (w.o && !json_is_object(w.o)) || (r->o && !json_is_object(r->o)))
        return wg_fail(top->err, WG_EUNSUPPORTED,
                       "%s: key 'rope_parameters' differs between kinds of layers: expected one for all", top->path);
    if (!w.o) return WG_OK;
    WG_TRY(wg_hf_number(&w, "rope_theta", c->window_rope_base, 1, 1e12, &c->window_rope_base));
    const char *type = json_string_value(wg_hf_get(&w, "rope_type"));
    return wg_hf_get(&w, "rope_type") && (!type || strcmp(type, "default") != 0) ? wg_hf_refuse(&w, "rope_type", "default")
                                                                                 : WG_OK;
}

wg_status wg_hf_rope(const wg_hf_keys *top, const wg_hf_rope_defaults *of, wg_hf_config *c)
{
    const json_t *now = wg_hf_get(top, "rope_parameters"), *old = wg_hf_get(top, "rope_scaling");
    wg_hf_keys r = *top;
    r.o = now ? now : old;
    r.where = now ? "rope_parameters." : "rope_scaling.";
    c->rope_factor = c->rope_magnitude = 1;
    WG_TRY(wg_hf_number(top, of->base_key ? of->base_key : "rope_theta", of->base, 1, 1e12, &c->rope_base));
    if (of->local_base > 0) WG_TRY(wg_hf_number(top, "rope_local_base_freq", of->local_base, 1, 1e12, &c->window_rope_base));
    if (r.o && !json_is_object(r.o)) return wg_hf_wrong(top, now ? "rope_parameters" : "rope_scaling", "an object");
    if (r.o && (wg_hf_get(&r, "full_attention") || wg_hf_get(&r, "sliding_attention"))) WG_TRY(local(top, of, &r, c));
    WG_TRY(rotated(top, &r, of, c));
    if (!r.o) return WG_OK;
    WG_TRY(wg_hf_number(&r, "rope_theta", c->rope_base, 1, 1e12, &c->rope_base));
    return scaling(top, &r, of->only_longrope, c);
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
