/* SPDX-License-Identifier: MIT
 * Targets by kind: which options belong to which, and a target on the command line. */
#include <stdio.h>
#include <string.h>

#include "core/model/device.h"
#include "core/setup/setup_check.h"

/* Options that only an external target has; its kind is one of them. */
static const char *const of_external[] = { "kind", "command", "timeout_ms", "start_ms", "library", NULL };

bool wg_target_leaves_out(const wg_setup *s, const wg_setup_section *section, const wg_option *row)
{
    if (section->table != wg_setup_target_table) return false;
    if (strcmp(row->name, "ranks") == 0) return !*s->target.ranks;
    if (strcmp(row->name, "pipeline") == 0) return !s->target.pipeline;
    if (wg_setup_law_only(s)) return false;
    int i = 0;
    while (of_external[i] && strcmp(of_external[i], row->name) != 0) i++;
    return of_external[i] != NULL;
}

wg_status wg_target_kind_check(const wg_setup_target *t, wg_error *err)
{
    const char *kind = wg_target_kinds[t->kind];
    if (t->kind != WG_TARGET_PROCESS && *t->command)
        return wg_fail(err, WG_EINVAL, "target.command belongs to \"kind\": \"process\"; leave it out for a target of kind %s",
                       kind);
    if (t->kind == WG_TARGET_PROCESS && !*t->command)
        return wg_fail(err, WG_EINVAL,
                       "target.command: missing; it is the shell command of the program that answers rows "
                       "(docs/process-target.md)");
    if (t->kind != WG_TARGET_MODEL && (strcmp(t->device, "cpu") != 0 || *t->quantize))
        return wg_fail(err, WG_EINVAL, "target.%s is for a model that this program runs; leave it out for a target of kind %s",
                       *t->quantize ? "quantize" : "device", kind);
    if ((t->tensor > 1 || t->pipeline > 1 || *t->ranks) && (t->kind != WG_TARGET_MODEL || strcmp(t->device, "cpu") != 0))
        return wg_fail(err, WG_EINVAL, "target.%s: ranks share a model on the device cpu; leave it out with %s %s",
                       *t->ranks       ? "ranks"
                       : t->tensor > 1 ? "tensor"
                                       : "pipeline",
                       t->kind != WG_TARGET_MODEL ? "a target of kind" : "the device",
                       t->kind != WG_TARGET_MODEL ? kind : t->device);
    return WG_OK;
}

wg_status wg_target_parse(wg_setup_target *out, const char *spec, wg_error *err)
{
    char kind[32];
    const size_t n = strcspn(spec, ":");
    snprintf(kind, sizeof kind, "%.*s", (int)(n < sizeof kind ? n : sizeof kind - 1), spec);
    wg_option_defaults(wg_setup_target_table, out);
    wg_status s = wg_option_set(wg_setup_target_table, out, "kind", kind, err);
    if (!s && spec[n]) s = wg_option_set_list(wg_setup_target_table, out, sizeof *out, spec + n + 1, err);
    if (s) return wg_fail_in(err, s, "--target");
    return wg_target_kind_check(out, err);
}
