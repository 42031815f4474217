/* SPDX-License-Identifier: MIT
 * The weights and the shape of a small random model, for tests of training. */
#ifndef WG_TESTS_UNIT_DRAFT_TINY_ARCH_H
#define WG_TESTS_UNIT_DRAFT_TINY_ARCH_H

#include "core/model/arch.h"
#include "tests/unit/model/one_sequence.h"
#include "tests/unit/model/tiny_model.h"

static inline wg_weights *tiny_weights(const tiny *t)
{
    wg_error err;
    wg_weights *w;
    char shown[64];
    must(tiny_open(t, &w, shown, &err), &err);
    return w;
}

static inline wg_arch tiny_arch(const tiny *t)
{
    wg_error err;
    wg_arch a;
    wg_weights *w = tiny_weights(t);
    must(wg_arch_read(w, &a, &err), &err);
    wg_weights_close(w);
    return a;
}

#endif
