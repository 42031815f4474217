/* SPDX-License-Identifier: MIT
 * Drafts that `wager plan` tries (plan_drafts.h). */
#include "experiments/cli/plan_drafts.h"

#include <stdio.h>
#include <string.h>

#include "core/setup/spec.h"

/* Lengths to try, by the option that sets them; trees get more nodes than chains get tokens. */
static const struct by_option {
    const char *option;
    int length[WG_PLAN_LENGTHS];
} by_option[] = { { "length", { 4, 2, 8 } }, { "nodes", { 8, 4, 16 } }, { "k", { 4, 2, 8 } }, { NULL, { 0 } } };

/* The look-ups to try. On texts as short as these, sam, ngram_cache and ngram_hash draft the same. */
static const wg_plan_draft lookups[] = {
    { "ngram", "k", { 4, 2, 8 }, 3, false },
    { "suffix", "k", { 8, 4, 16 }, 3, false },
    { "recycle", "nodes", { 8, 4, 16 }, 3, false },
    { "lookahead:n=3", "window", { 1, 2, 3 }, 3, false },
};

static wg_status add(wg_plan_draft out[WG_PLAN_DRAFTS], int *n, const wg_plan_draft *d, wg_error *err)
{
    if (*n == WG_PLAN_DRAFTS)
        return wg_fail(err, WG_EINVAL, "more than %d drafts; give fewer of -d and --draft", WG_PLAN_DRAFTS);
    out[(*n)++] = *d;
    return WG_OK;
}

/* Whether "KIND:k=v,..." sets an option for the length of drafts. */
static bool names_length(const char *spec)
{
    static const char *const options[] = { "length", "k", "nodes", "tree", "budget", "grow", "policy", "window" };
    for (const char *at = strchr(spec, ':'); at; at = strchr(at + 1, ','))
        for (size_t i = 0; i < sizeof options / sizeof *options; i++)
            if (!strncmp(at + 1, options[i], strlen(options[i])) && at[1 + strlen(options[i])] == '=') return true;
    return false;
}

/* Adds a draft that the user names, at several lengths unless it sets one or has no such option. */
static wg_status add_asked(wg_plan_draft out[WG_PLAN_DRAFTS], int *n, const char *before, const char *text, wg_error *err)
{
    wg_plan_draft d = { .asked = true };
    wg_drafter_choice choice;
    if (strlen(before) + strlen(text) + 24 > sizeof d.spec)
        return wg_fail(err, WG_EINVAL, "--draft %.40s...: longer than %d bytes", text, WG_PLAN_SPEC - 24);
    snprintf(d.spec, sizeof d.spec, "%s%s", before, text);
    WG_TRY(wg_choose_drafter(d.spec, &choice, err));
    const bool named = names_length(d.spec);
    for (const struct by_option *b = by_option; b->option && !named && !d.option; b++)
        if (wg_option_find(choice.class->options, b->option)) {
            d.option = b->option;
            memcpy(d.length, b->length, sizeof d.length);
            d.lengths = WG_PLAN_LENGTHS;
        }
    wg_choice_close(&choice);
    return add(out, n, &d, err);
}

wg_status wg_plan_drafts(wg_plan_draft out[WG_PLAN_DRAFTS], int *n, const wg_flag_list *models, const wg_flag_list *drafts,
                         int layers, wg_error *err)
{
    wg_plan_draft skip = { .option = "length", .length = { 2, 1, 4 }, .lengths = WG_PLAN_LENGTHS }, exits = skip;
    *n = 0;
    for (int i = 0; i < models->n; i++) WG_TRY(add_asked(out, n, "model:model=", models->item[i], err));
    for (int i = 0; i < drafts->n; i++) WG_TRY(add_asked(out, n, "", drafts->item[i], err));
    for (size_t i = 0; i < sizeof lookups / sizeof *lookups; i++) WG_TRY(add(out, n, &lookups[i], err));
    if (layers < 3) return WG_OK;
    const int from = layers / 3, to = from + (layers + 2) / 3 - 1; /* the middle third, which changes least */
    snprintf(exits.spec, sizeof exits.spec, "early_exit:layer=%d", (layers + 1) / 2);
    snprintf(skip.spec, sizeof skip.spec, "layer_skip:attention=%d-%d,mlp=%d-%d", from, to, from, to);
    WG_TRY(add(out, n, &exits, err));
    return add(out, n, &skip, err);
}

void wg_plan_draft_spec(const wg_plan_draft *d, int i, char out[WG_PLAN_SPEC])
{
    if (!d->option) snprintf(out, WG_PLAN_SPEC, "%.1175s", d->spec);
    else snprintf(out, WG_PLAN_SPEC, "%.1160s%c%s=%d", d->spec, strchr(d->spec, ':') ? ',' : ':', d->option, d->length[i]);
}
