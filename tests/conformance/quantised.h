/* SPDX-License-Identifier: MIT
 * The model of tests/conformance/quantised: random codes of a quantised type of GGUF in every matrix, by
 * seed, and the tokens. */
#ifndef WG_TESTS_QUANTISED_H
#define WG_TESTS_QUANTISED_H

#include "core/file/synth.h"

enum { QUANTISED_SEED = 5, QUANTISED_TOKENS = 24, QUANTISED_VOCAB = 96 };

static const int quantised_types[] = { WG_GGUF_QUANT_TYPES(WG_TYPE_ID) };
enum { QUANTISED_TYPES = sizeof quantised_types / sizeof *quantised_types };

static inline wg_status quantised_write(int type, const char *path, wg_error *err)
{
    static const wg_synth_shape shape = { .name = "quantised",
                                          .layers = 2,
                                          .dim = 256,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .head_dim = 64,
                                          .hidden = 512,
                                          .vocab = QUANTISED_VOCAB,
                                          .context = 64 };
    return wg_synth_write(&shape, type, QUANTISED_SEED, path, err);
}

static inline int quantised_token(int i) { return (37 * i + 5) % QUANTISED_VOCAB; }

#endif
