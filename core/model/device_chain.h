/* SPDX-License-Identifier: MIT
 * The description of a draft that a device can make instead of the drafter: a chain of at most `length` tokens that ends
 * after a token which ends the text. A drafter whose drafts are such chains returns the description
 * (wg_drafter_class.device_chain); the device's rounds (core/model/decode_loop.h) read it and know no drafter. */
#ifndef WG_CORE_MODEL_DEVICE_CHAIN_H
#define WG_CORE_MODEL_DEVICE_CHAIN_H

struct wg_lm;

typedef enum wg_chain_source {
    WG_CHAIN_EMPTY,  /* nothing is drafted: plain decoding */
    WG_CHAIN_LOOKUP, /* what followed, in the text itself, the latest earlier match of its last tokens */
    WG_CHAIN_MODEL,  /* tokens of a language model, one at a time */
} wg_chain_source;

typedef struct wg_device_chain {
    wg_chain_source source;
    int length; /* tokens, at most; EMPTY: 0 */
    struct {
        int n_max, n_min;
    } match; /* LOOKUP: lengths of a match in tokens; the longest is tried first */
    /* MODEL. law: WG_RULE_FIXED (kernels/rule/rule_kinds.h): the most probable token; WG_RULE_IID: drawn from the model's
     * logits after this chain of sampling, at the address (WG_DRAW_DRAFT, node) of the step. */
    struct wg_lm *lm;
    int law, top_k;
    double temperature, top_p, min_p;
} wg_device_chain;

#endif
