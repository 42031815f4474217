/* SPDX-License-Identifier: MIT
 * A Hugging Face folder (config.json, model.safetensors or its shards, tokenizer.json, generation_config.json, chat template),
 * read as the GGUF file that it would become: the same keys and tensor names, so that everything above reads one format. It is
 * for core/file and for writers of tokenizers. */
#ifndef WG_CORE_FILE_HF_H
#define WG_CORE_FILE_HF_H

#include "core/base/json.h"
#include "core/file/gguf_write.h"

enum {
    WG_HF_ENDS = 3,
    WG_HF_HEAD = 256,
    WG_HF_LAYERS = 4096,
    WG_HF_EXPERTS = 512,
    WG_HF_BEYOND = 1024
}; /* tokens that end a text; widest head; layers; experts of a layer; ids beyond the embedding */

/* A member of an object; NULL also for a null, which says the same as leaving it out. */
static inline const json_t *wg_hf_member(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_null(v) ? NULL : v;
}

/* Naming styles of keys and tensors of model types. */
typedef enum wg_hf_style { WG_HF_USUAL, WG_HF_GPT2, WG_HF_NEOX, WG_HF_FALCON, WG_HF_MPT, WG_HF_STYLES } wg_hf_style;

/* Opens a file of a folder; NULL: there is none of this name. EFORMAT, EIO. */
wg_status wg_hf_open_json(wg_json **out, const char *folder, const char *name, wg_error *err);

/* The text of a special token, which is a text or an object whose `content` is the text; s NULL: it is neither. */
wg_text wg_hf_token_text(const json_t *v);

/* The contents of config.json. */
typedef struct wg_hf_config {
    const char *family; /* general.architecture of GGUF */
    wg_hf_style style;
    int layers, dim, hidden, heads, kv_heads, head_dim, vocab, context, window;
    double eps;
    bool adjacent; /* GGUF files of the family hold query and key rows permuted for adjacent pairs */
    bool tied, qkv_bias, output_bias, mlp_bias;
    bool layer_norm, norm_bias; /* norms are LayerNorm; with biases */
    bool parallel;              /* attention and MLP read the same row (of styles that have the choice) */
    bool own_norm, one_norm;    /* attention has a norm beside that of the MLP; the MLP has attention's */
    bool grouped;               /* rows of the fused projection stand by key head: its queries, its key, its value */
    bool unrotated;             /* there are no rotary positions */
    double alibi;               /* the exponent of ALiBi's slopes; 0: there are none */
    double qkv_limit;           /* of queries, keys and values; 0: none */
    const char *activation;     /* of an MLP without a gate, where it is not the family's; NULL: it is */
    bool norms_less_one;        /* norm weights are stored less 1 */
    bool post_norms;            /* the outputs of attention and MLP are normed; */
    bool no_pre_norm;           /* and their inputs are not */
    unsigned names;             /* WG_HF_NAMES_... of hf_names.h */
    const char *qkv_key, *output_key, *mlp_key; /* which keys say that there are biases; NULL: the type does */
    int experts, experts_used;                  /* 0: none */
    bool experts_normed;
    bool mtp;          /* tensors of model.mtp_layers are left aside, */
    bool nextn;        /* or those of mtp and of layers behind the last one */
    bool sparse_names; /* experts are called as Mixtral's */
    bool paired;       /* experts are stored as gpt-oss's (hf_paired.h) */
    bool wrapped;      /* the text model of one with images, whose tensors are left aside */
    bool fused;        /* queries, keys and values are one tensor; so are gate and up */

    /* Rotary positions: the base of all layers, and of those with a window (0: the same); the factor of linear scaling and
     * YaRN; what cos and sin are multiplied with, apart from YaRN's usual factor. */
    int n_rot;
    double rope_base, window_rope_base, rope_factor, rope_magnitude;
    bool yarn, longrope;
    double yarn_fast, yarn_slow;
    int original_context; /* before YaRN or longrope; 0: neither */
    int divisors;         /* of rotary frequencies: those of llama3 scaling, or of longrope (long and short); 0: none */
    float divisor[2][WG_HF_HEAD / 2];

    double attention_scale;                              /* of scores; 0: 1 / sqrt(head_dim) */
    double embedding_scale, residual_scale, logit_scale; /* as GGUF files of the family have them; 0: there are none */
    double query_growth;                                 /* of queries by position; 0: none */
    double attention_cap, logit_cap;                     /* soft caps; WG_HF_NO_KEY: the family has none */
    bool lists_windows;                                  /* `windowed` is not what the family's files mean without a list */
    bool windowed[WG_HF_LAYERS];                         /* layers with the window */
} wg_hf_config;
#define WG_HF_NO_KEY (-1.0)

/* Errors: EMODEL (a key is missing or out of its range), EUNSUPPORTED (a model type, or a key that would change the results and
 * is not implemented: what is supported). */
wg_status wg_hf_config_read(wg_hf_config *out, const wg_json *config, wg_error *err);

/* Sets the keys of the family. */
void wg_hf_config_write(const wg_hf_config *c, wg_gguf_writer *g);

/* Ids of special tokens; -1: none. */
typedef struct wg_hf_ids {
    int64_t bos, end[WG_HF_ENDS]; /* end: of a text, in the order of the file */
} wg_hf_ids;

/* From generation_config.json (NULL: there is none), else from config.json. EMODEL, EUNSUPPORTED: too many ends. */
wg_status wg_hf_ids_read(wg_hf_ids *out, const wg_json *generation, const wg_json *config, wg_error *err);

/* Sets tokenizer.ggml.* from tokenizer.json, for an embedding of `vocab` rows: ids without a token become unused ones. Up to
 * WG_HF_BEYOND ids may lie beyond the embedding: their tokens are known, so that a prompt which has one is refused. Errors:
 * EMODEL (structure: the place, what was expected), EUNSUPPORTED (a step of the pipeline that is not implemented, by name). */
wg_status wg_hf_tokenizer(wg_gguf_writer *g, const wg_json *tokenizer, const wg_hf_ids *ids, int vocab, wg_error *err);

/* The pre_tokenizer of tokenizer.json with the steps of a row. */
struct wg_pretok_row;
json_t *wg_hf_pretok_json(const struct wg_pretok_row *row);

/* Sets tokenizer.chat_template and its variants, and the texts of the special tokens that templates print, from
 * chat_template.jinja, additional_chat_templates, tokenizer_config.json and chat_template.json, where the folder has them.
 * EMODEL, EFORMAT, EIO. */
wg_status wg_hf_chat(wg_gguf_writer *g, const char *folder, wg_error *err);

/* Facts about a folder's tokens beside tokenizer.model. Texts point into the documents. */
typedef struct wg_hf_token {
    wg_text text;
    int64_t id;
    bool special;
    int32_t flags; /* tokenizer.wager.added */
} wg_hf_token;
typedef struct wg_hf_added {
    wg_json *config, *list; /* NULL: there is no such file */
    wg_hf_token *token;     /* (n) */
    size_t n;
    int add_bos, add_eos;  /* whether a text gets them; -1: unknown */
    wg_text bos, eos;      /* s NULL: unknown */
    const char *metaspace; /* tokenizer.wager.metaspace; NULL: unknown */
} wg_hf_added;

/* Reads added_tokens_decoder, else added_tokens.json, and the keys of tokenizer_config.json. EFORMAT, EMODEL, EIO. */
wg_status wg_hf_added_read(wg_hf_added *out, const char *folder, wg_error *err);
void wg_hf_added_close(wg_hf_added *a);

/* wg_hf_tokenizer from tokenizer.model of SentencePiece, and from what stands beside it (NULL: nothing does). Errors: EFORMAT,
 * EMODEL, EUNSUPPORTED. */
wg_status wg_sentencepiece_tokenizer(wg_gguf_writer *g, const char *name, wg_text file, const wg_hf_added *added,
                                     const wg_hf_ids *ids, int vocab, wg_error *err);

/* Opens the folder. Errors: ENOENT, EIO, EFORMAT and those above. */
wg_status wg_hf_open(wg_weights **out, const char *folder, wg_error *err);

#endif
