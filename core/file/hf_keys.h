/* SPDX-License-Identifier: MIT
 * Keys of config.json, read with their ranges. Private to core/file. */
#ifndef WG_CORE_FILE_HF_KEYS_H
#define WG_CORE_FILE_HF_KEYS_H

#include "core/file/hf.h"

enum { WG_HF_ABSENT = -1 };
#define WG_HF_KEY_INNER "n_inner" /* of GPT-2: the width of the MLP */

typedef struct wg_hf_keys {
    const json_t *o;   /* the object in question */
    const char *path;  /* of the file */
    const char *where; /* what stands before a key in messages: "", "rope_scaling." */
    wg_error *err;
} wg_hf_keys;

/* A member, or NULL: null says the same as leaving it out. */
const json_t *wg_hf_get(const wg_hf_keys *r, const char *key);

/* EMODEL: the key, its value, what was expected. EUNSUPPORTED: the same of a value that would change the results. */
wg_status wg_hf_wrong(const wg_hf_keys *r, const char *key, const char *expected);
wg_status wg_hf_refuse(const wg_hf_keys *r, const char *key, const char *expected);

/* absent: the value of a key that is not there; below min: it is required. */
wg_status wg_hf_number(const wg_hf_keys *r, const char *key, double absent, double min, double max, double *out);
wg_status wg_hf_bool(const wg_hf_keys *r, const char *key, bool absent, bool *out);

/* The rotary positions of a model type where keys are absent. */
typedef struct wg_hf_rope_defaults {
    double base;         /* when the key is absent */
    double local_base;   /* the same, of layers with a window; 0: they have the base of all */
    bool only_longrope;  /* the names of former scalings mean longrope too */
    bool local_unscaled; /* layers with a window have a base of their own in rope_parameters alone, and no scaling */
    bool alpha;          /* dynamic scaling has an alpha, which raises the base */
    bool grows;          /* rope_parameters has llama_4_scaling_beta */
    bool partial;        /* partial_rotary_factor may be less than 1 */
    double share;        /* it, when the key is absent; 0: 1 */
    const char *base_key, *share_key; /* what a type calls rope_theta and partial_rotary_factor; NULL: so */
} wg_hf_rope_defaults;

/* Reads the keys of a style and sets its deviations from the usual style: biases, norms, positions. */
wg_status wg_hf_style_keys(const wg_hf_keys *r, wg_hf_config *c);
/* The inverse: whether the style's keys can express the config, which sets c->grouped; and the keys. */
bool wg_hf_style_can_say(wg_hf_style style, const wg_hf_config *c);
void wg_hf_style_json(wg_hf_config *c, json_t *o);

wg_status wg_hf_count(const wg_hf_keys *r, const char *key, int absent, int max, int *out); /* absent 0: it is required */

/* rope_theta, rope_scaling, rope_parameters, partial_rotary_factor. */
wg_status wg_hf_rope(const wg_hf_keys *top, const wg_hf_rope_defaults *of, wg_hf_config *c);

/* Sets their keys. */
void wg_hf_rope_write(const wg_hf_config *c, wg_gguf_writer *g);
/* The keys of config.json that wg_hf_rope reads. EUNSUPPORTED: divisors that no scaling gives. */
wg_status wg_hf_rope_json(const wg_hf_config *c, const wg_hf_rope_defaults *of, const char *path, json_t *to, wg_error *err);

#endif
