/* SPDX-License-Identifier: MIT
 * Penalties for tokens already seen: the repetition penalty (Keskar et al. 2019), and frequency and presence penalties as most
 * services define them. The
 * window runs backwards from the row's own node, along the drafted path and on into the text: the row after a drafted token
 * counts that token, exactly as plain decoding will (METHODS B14-2). Each token of the window counts once: the root of a tree
 * is the last token of the text and is not counted twice. */
#include "core/dist/sampler.h"

static inline void see(wg_sampler *s, int32_t token)
{
    if (s->count[token]++ == 0) s->seen[s->n_seen++] = token;
}

void wg_sampler_penalise(wg_sampler *s, float *logits, const wg_prefix *prefix)
{
    s->n_seen = 0;
    if (!s->penalises || !prefix) return;
    const wg_sampling *o = &s->sampling;
    int left = o->penalty_window ? o->penalty_window : INT32_MAX;
    if (prefix->tree)
        for (int node = prefix->node; node > 0 && left > 0; node = prefix->tree->parent[node], left--)
            see(s, prefix->tree->token[node]);
    for (int i = prefix->n - 1; i >= 0 && left > 0; i--, left--) see(s, prefix->token[i]);
    const float repeat = o->repetition_penalty > 0 ? (float)o->repetition_penalty : 1;
    for (int i = 0; i < s->n_seen; i++) {
        const int32_t id = s->seen[i];
        float x = s->before[i] = logits[id];
        x = x > 0 ? x / repeat : x * repeat;
        logits[id] = x - (float)(s->count[id] * o->frequency_penalty + o->presence_penalty);
        s->count[id] = 0;
    }
}

void wg_sampler_restore(wg_sampler *s, float *logits)
{
    for (int i = 0; i < s->n_seen; i++) logits[s->seen[i]] = s->before[i];
    s->n_seen = 0;
}
