/* SPDX-License-Identifier: MIT
 * Keys of config.json, read with their ranges, and model types. Private to core/file. */
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
    bool exact;          /* the ends of YaRN's ramp are not rounded: `truncate` is false */
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

/* ---- model types of config.json, one row each (hf_types.c) */

/* Keys of one type alone (hf_families.c). */
typedef wg_status wg_hf_more_fn(const wg_hf_keys *r, wg_hf_config *c);
typedef void wg_hf_more_json_fn(const wg_hf_config *c, json_t *o);
wg_hf_more_fn wg_hf_smollm3, wg_hf_granite, wg_hf_granite_hybrid, wg_hf_cohere2, wg_hf_stablelm, wg_hf_ministral3,
    wg_hf_gpt_oss;
wg_hf_more_json_fn wg_hf_granite_json, wg_hf_cohere2_json, wg_hf_stablelm_json, wg_hf_gpt_oss_json;

#define WG_HF_KEY_TYPE "model_type"
#define WG_HF_KEY_ARCHITECTURES "architectures"

/* Whether there are biases: what a key says, or `is` where it is absent, or there is no such key (NULL). */
typedef struct wg_hf_choice {
    const char *key;
    bool is;
} wg_hf_choice;

/* Which layers have a window, where there is one: none; all; all if use_sliding_window; from max_window_layers on, if so; all
 * but each n-th. The last two kinds may list them in layer_types. */
typedef enum wg_hf_windows {
    WG_HF_NO_WINDOW,
    WG_HF_ALL_WINDOWED,
    WG_HF_ALL_SWITCHED,
    WG_HF_FROM_LAYER,
    WG_HF_PERIODIC
} wg_hf_windows;

typedef struct wg_hf_type {
    const char *name, *architecture, *family;
    bool adjacent;
    wg_hf_choice qkv, output, mlp; /* biases, of types of the usual style */
    bool layer_norm, norm_bias;    /* of these too: norms are LayerNorm; with biases */
    bool parallel, no_pre_norm;    /* attention and MLP read the same normed row; they read what is not normed */
    bool ungated;                  /* the MLP has no gate */
    unsigned names;                /* WG_HF_NAMES_...: names of its own */
    const char *eps_key;           /* what the type calls it; NULL: as its style */
    const char *reads;             /* a key that `more` reads, and other types refuse */
    wg_hf_more_fn *more;           /* reads keys that only this type has, and refuses values of them. NULL: there are none */
    wg_hf_more_json_fn *more_json; /* the inverse */
    int head_dim;                  /* when the key is absent; 0: hidden_size / num_attention_heads */
    int kv_heads;                  /* the same; 0: num_attention_heads */
    wg_hf_windows windows;
    int window;                /* when the key is absent; 0: none */
    int period;                /* of WG_HF_PERIODIC */
    const char *act_key, *act; /* the activation: its key, and the one there is; the key may be absent */
    bool tied;                 /* when the key is absent */
    double eps;                /* the same */
    wg_hf_rope_defaults rope;
    double scalar;                   /* query_pre_attn_scalar when the key is absent; 0: there is no such key */
    double attention_cap, logit_cap; /* when the keys are absent; WG_HF_NO_KEY: there are no such keys */
    bool norms_less_one, post_norms, fused;
    const char *experts;              /* the key of their number; NULL: there are none */
    int experts_absent, experts_used; /* when the keys are absent */
    const char *experts_hidden;       /* the key of their width; NULL: intermediate_size */
    bool mtp;                         /* tensors of model.mtp_layers are left aside, */
    bool nextn;                       /* or where a key says so those of mtp and of layers behind the last one */
    bool auto_map;                    /* the code that auto_map names is not needed: it says the same as the type's class */
    wg_hf_style style;
    bool experts_normed; /* always; else by norm_topk_prob */
    bool sparse_names;   /* experts are called as Mixtral's */
    bool paired;         /* experts are stored as gpt-oss's */
} wg_hf_type;

enum { WG_HF_TYPES = 32 };
extern const wg_hf_type wg_hf_types[WG_HF_TYPES];

/* The type of config.json. Of a wrapper around a text model (one with images), r->o becomes `*text`, the keys of that model
 * with the defaults of its class, owned by the caller; else *text stays NULL. EMODEL; EUNSUPPORTED: the next step. */
wg_status wg_hf_type_of(wg_hf_keys *r, const wg_hf_type **out, json_t **text);

#endif
