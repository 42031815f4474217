/* SPDX-License-Identifier: MIT
 * A model family as data: hyper-parameters of a model and the tensors a family has. A new family is rows in arch.c. */
#ifndef WG_CORE_MODEL_ARCH_H
#define WG_CORE_MODEL_ARCH_H

#include "core/file/weights.h"

/* What the layers of a model have beside the tensors of every family. */
typedef enum wg_trait {
    WG_TRAIT_QKV_BIAS = 1,    /* queries, keys and values are products plus a bias */
    WG_TRAIT_OUTPUT_BIAS = 2, /* so is the output of attention */
    WG_TRAIT_HEAD_NORM = 4,   /* RMSNorm of each head of queries and keys, before they are turned */
} wg_trait;

typedef struct wg_arch {
    char family[32]; /* general.architecture */
    char name[96];   /* general.name or the file's name */
    int layers, dim, heads, kv_heads, head_dim, hidden, vocab, context;
    int n_rot;                    /* rotated elements of a head */
    bool rope_adjacent;           /* pairs (2i, 2i+1), else (i, i + n_rot/2) */
    double rope_base, rope_scale; /* frequency i: base^(-2i/n_rot) / scale (linear scaling) */
    float eps;
    bool tied;         /* the head is the embedding */
    unsigned traits;   /* wg_trait */
    int window;        /* a token attends to this many, itself included; 0: to all */
    bool all_windowed; /* in all layers; else which ones is not known here */
} wg_arch;

/* Reads and checks the hyper-parameters. EMODEL names the key, its value and what was expected; EUNSUPPORTED lists the
 * families there are. */
wg_status wg_arch_read(const wg_weights *w, wg_arch *out, wg_error *err);

bool wg_arch_reads(const char *family); /* whether models of this family can be read */

/* Number of weights: layers, embedding, head unless tied, norms, biases. */
int64_t wg_arch_parameters(const wg_arch *a);

/* Multiply-adds of a row of a forward pass, without those of keys and values: of layers and head; of one layer's attention
 * block; of its MLP; of the head. */
int64_t wg_arch_macs(const wg_arch *a);
int64_t wg_arch_attention_macs(const wg_arch *a);
int64_t wg_arch_mlp_macs(const wg_arch *a);
int64_t wg_arch_head_macs(const wg_arch *a);

#endif
