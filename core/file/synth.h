/* SPDX-License-Identifier: MIT
 * Models with random weights, for tests and benchmarks: real shapes without a download. Weights come from addressed
 * randomness, so a file depends on (shape, type, seed) only. The vocabulary is byte-level and complete: any text encodes,
 * any token decodes. */
#ifndef WG_CORE_FILE_SYNTH_H
#define WG_CORE_FILE_SYNTH_H

#include "core/file/weights.h"

/* A transformer's shape. Any positive sizes: heads a multiple of kv_heads, head_dim even. A vocab below 259 (256 bytes and
 * <unk>, <s>, </s>) gives a file without a tokenizer. Zero means the usual value where one is given. */
typedef struct wg_synth_shape {
    const char *name; /* "tinyllama-1.1b"; NULL: "synthetic" */
    /* "llama", "qwen2" (with q, k, v biases), "qwen3" (with norms of heads), "gpt-oss", ...; NULL: "llama" */
    const char *arch;
    int layers, dim, heads;
    int kv_heads; /* 0: heads */
    int head_dim; /* 0: dim / heads */
    int hidden, vocab, context;
    double rope_base;          /* 0: 10000 */
    bool tied;                 /* the head is the embedding: no output.weight */
    int experts, experts_used; /* of "qwen3moe" and "gpt-oss", each of `hidden`; of a row */
} wg_synth_shape;

/* The named shapes, ending with a row whose name is NULL. */
const wg_synth_shape *wg_synth_shapes(void);

/* Writes a GGUF file. type: of the matrices (WG_COMPUTABLE_TYPES; those that are not written from numbers get random codes);
 * norms, biases and learned positions are f32, and a matrix whose rows do not fit the type's block is f16. Matrices and
 * embeddings have standard deviation 1/sqrt(row length), norms lie around 1: logits are of order 1 at any depth. Errors: EINVAL
 * (the field, what was expected), EIO, ENOMEM. */
wg_status wg_synth_write(const wg_synth_shape *shape, int type, uint64_t seed, const char *out, wg_error *err);

/* The same for a named shape; EINVAL lists the names. */
wg_status wg_synth(const char *like, int type, uint64_t seed, const char *out, wg_error *err);

/* A model without a file, by name, as wg_weights_open takes it: synth:SHAPE:TYPE[:layers=N][:vocab=N][:context=N][:seed=N], a
 * named shape of any computable type. Its bytes are those of the file that wg_synth_write writes, drawn tensor by tensor when
 * they are needed; types that cannot be written get random codes. A device with its own memory may draw other weights instead
 * (core/model/device.h). Errors: EINVAL (the piece of the name, what was expected), ENOMEM. */
#define WG_SYNTH_NAME "synth:"
#define WG_SYNTH_NAMES WG_SYNTH_NAME "SHAPE:TYPE[:layers=N][:vocab=N][:context=N][:seed=N], such as synth:llama-3.2-1b:bf16"
wg_status wg_synth_open(wg_weights **out, const char *name, wg_error *err);

#endif
