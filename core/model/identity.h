/* SPDX-License-Identifier: MIT
 * The identity of a language model's passes, the key of their measured prices (core/engine/profile.h). */
#ifndef WG_CORE_MODEL_IDENTITY_H
#define WG_CORE_MODEL_IDENTITY_H

#include "core/base/hash.h"

struct wg_weights;
struct wg_tensor;

enum { WG_IDENTITY_TEXT = 96 };

typedef struct wg_lm_identity {
    char name[WG_IDENTITY_TEXT];   /* name of the file, for people; not part of the key */
    char weights[WG_SHA256_HEX];   /* digest of the weights in memory; "": unknown */
    char part[WG_IDENTITY_TEXT];   /* "cache f16", with the rows of a shorter head and the layers of a submodel */
    char device[WG_IDENTITY_TEXT]; /* "cpu", or number, mode and name of a card */
    int threads;
} wg_lm_identity;

/* The digest of weights: SHA-256 over the file's size and all its single numbers (hyper-parameters), and of every tensor that
 * is loaded its name, type, shape, and SAMPLE bytes each from its beginning, middle and end: what was read anyway, about a
 * quarter of a megabyte of a model of 300 tensors. Files that differ in other bytes alone have one digest, and equal prices,
 * since shapes and types are what passes cost. begin before the first tensor; add each tensor once its bytes are in memory. */
void wg_identity_begin(wg_sha256_state *s, const struct wg_weights *w);
void wg_identity_add(wg_sha256_state *s, const struct wg_tensor *t);

#endif
