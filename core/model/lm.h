/* SPDX-License-Identifier: MIT
 * The interface of a language model: rows in, logits out. Implementations: the transformer (model.h), a table for tests
 * (lm_table.h), a model elsewhere (external/external.h). The Prefix Law is part of the contract, but for a class that says
 * law_only: a row's logits depend on its token prefix alone, bit for bit. */
#ifndef WG_CORE_MODEL_LM_H
#define WG_CORE_MODEL_LM_H

#include "core/kv/batch.h"
#include "core/model/device.h"
#include "core/model/identity.h"

typedef struct wg_lm wg_lm;

typedef struct wg_lm_class {
    const char *name;
    /* Registers its storage with the cache (called once, before the first sequence). May be NULL: keeps nothing per token. */
    wg_status (*attach)(wg_lm *lm, wg_kv *kv, wg_error *err);
    /* One pass. logits: (batch->logits, vocab) f32, row-major; for a model on a device with its own memory it may be NULL: the
     * logits then stay there. Marks written slots with wg_kv_wrote. On failure no slot counts as written. After warm-up it
     * allocates nothing. */
    wg_status (*forward)(wg_lm *lm, const wg_batch *batch, float *logits, wg_error *err);
    void (*close)(wg_lm *lm);
    /* Device verification (device.h): passes whose logits stay on the device, which samples and verifies there. NULL: not
     * supported. verify_open allocates for trees of up to *rows rows in all under this rule, and sets *rows to the number that
     * fits (0: not on this device). */
    wg_status (*verify_open)(wg_lm *lm, wg_rule_kind rule, int trees, int *rows, wg_error *err);
    wg_status (*verify)(wg_lm *lm, const wg_batch *batch, const wg_verify_spec *s, wg_error *err);
    /* Its logits are computed elsewhere and need not keep the Prefix Law, so texts are equal in law only, not byte by byte. */
    bool law_only;
    /* The transformer behind it (core/model/model.h). NULL: a model of another kind. */
    struct wg_model *(*transformer)(const wg_lm *lm);
    /* The identity of its passes. NULL: unknown, so measured prices are not kept. */
    void (*identity)(const wg_lm *lm, wg_lm_identity *out);
} wg_lm_class;

/* The hidden states that its passes can give (taps.h). */
typedef struct wg_hidden {
    int layers, dim;   /* taps 0 .. layers + 1, of dim floats each */
    wg_device *device; /* they lie in its memory; borrowed. NULL: no hidden states */
} wg_hidden;

struct wg_lm {
    const wg_lm_class *class;
    int vocab, context; /* context: the longest sequence, in tokens */
    int space;          /* its number in the cache after attach, or -1 */
    int most_rows;      /* of one pass; 0: any number */
    double seconds;     /* spent in forward passes so far; passes and rows counted beside it */
    long passes, rows;
    wg_hidden hidden;
};

/* forward with the clock running; checks the batch (tokens inside the vocabulary, positions inside the context). */
wg_status wg_lm_forward(wg_lm *lm, const wg_batch *batch, float *logits, wg_error *err);
/* The same for more rows than one pass takes: in several passes, each of whole sequences. A sequence that has more than
 * most_rows by itself is refused by the model, and so is a batch that asks for hidden states, which are those of one pass.
 * After a failure the slots of earlier passes count as written. */
wg_status wg_lm_forward_in_parts(wg_lm *lm, const wg_batch *batch, float *logits, wg_error *err);
wg_status wg_lm_verify(wg_lm *lm, const wg_batch *batch, const wg_verify_spec *s, wg_error *err);
wg_status wg_lm_attach(wg_lm *lm, wg_kv *kv, wg_error *err);

/* The transformer behind lm, or NULL. */
static inline struct wg_model *wg_lm_transformer(const wg_lm *lm)
{
    return lm->class && lm->class->transformer ? lm->class->transformer(lm) : NULL;
}

#endif
