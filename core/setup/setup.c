/* SPDX-License-Identifier: MIT
 * Properties of a setup's output that are known before it runs. */
#include "core/setup/setup.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/model/device.h"
#include "draft/compose/composite.h"

void wg_setup_close(wg_setup *s)
{
    wg_free(s->draft);
    wg_free(s->verify);
    wg_rule_choice_close(&s->loaded);
}

bool wg_setup_lossless(const wg_setup *s)
{
    return wg_verifier_lossless(s->verifier, s->sampling.temperature) && !wg_device_is_fast(s->target.device);
}

bool wg_setup_law_only(const wg_setup *s) { return s->target.kind != WG_TARGET_MODEL; }

bool wg_setup_repeats_plain(const wg_setup *s)
{
    return wg_setup_lossless(s) && !wg_setup_law_only(s) &&
           (s->sampling.temperature == 0 || !strcmp(s->verifier->name, "match"));
}

bool wg_setup_is_outside(const wg_setup *s, const wg_plugins *plugins)
{
    return wg_component_is_outside(plugins, s->drafter, s->draft);
}

const char *wg_setup_assumes(const wg_setup *s, const wg_plugins *plugins)
{
    if (!wg_setup_lossless(s)) return NULL;
    return wg_law_assumes(s->verifier, s->loaded.object, s->sampling.temperature, wg_setup_is_outside(s, plugins));
}
