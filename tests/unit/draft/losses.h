/* SPDX-License-Identifier: MIT
 * Shared by the tests of losses: random numbers by their place, and losses as a config writes them. */
#ifndef WG_TESTS_UNIT_DRAFT_LOSSES_H
#define WG_TESTS_UNIT_DRAFT_LOSSES_H

#include <criterion/criterion.h>
#include <jansson.h>

#include "draft/train/loss.h"
#include "kernels/philox.h"

static wg_error err;

static inline double uniform(int c, int i, int v, int which)
{
    const wg_philox r = wg_philox_at(31, (uint32_t)c, (uint32_t)i, (uint32_t)v, (uint32_t)which);
    return wg_philox_double(r.v[0], r.v[1]);
}

static inline wg_loss_spec spec_of(const char *json)
{
    wg_loss_spec spec;
    json_t *o = json_loads(json, 0, NULL);
    cr_assert(o, "%s", json);
    cr_assert_eq(wg_loss_read(&spec, o, &err), WG_OK, "%s", err.text);
    json_decref(o);
    return spec;
}

#endif
