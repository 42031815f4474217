/* SPDX-License-Identifier: MIT
 * Penalties for tokens already seen: the repetition penalty (Keskar et al. 2019) for those of the prompt and the output, and
 * frequency and presence penalties for those of the output alone, as OpenAI, vLLM and TensorRT-LLM define them. The window runs
 * backwards from the row's own node, along the drafted path and on into the text: the row after a drafted token counts that
 * token, exactly as plain decoding will (methods.md, Sampler chain). Each token of the window counts once: the root of a tree
 * is the last token of the text and is not counted twice. */
#include "core/dist/sampler.h"

/* count: 1 for a token that was seen, and 1 for each time that it is one of the output. */
static inline void see(wg_sampler *s, int32_t token, bool output)
{
    if (s->count[token] == 0) {
        s->seen[s->n_seen++] = token;
        s->count[token] = 1;
    }
    s->count[token] += output;
}

void wg_sampler_penalise(wg_sampler *s, float *logits, const wg_prefix *prefix)
{
    s->n_seen = 0;
    if (!s->penalises || !prefix) return;
    const wg_sampling *o = &s->sampling;
    const int prompt = o->penalise_prompt ? 0 : prefix->prompt;
    int left = o->penalty_window ? o->penalty_window : INT32_MAX;
    if (prefix->tree)
        for (int node = prefix->node; node > 0 && left > 0; node = prefix->tree->parent[node], left--)
            see(s, prefix->tree->token[node], true);
    for (int i = prefix->n - 1; i >= 0 && left > 0; i--, left--) see(s, prefix->token[i], i >= prompt);
    const float repeat = o->repetition_penalty > 0 ? (float)o->repetition_penalty : 1;
    for (int i = 0; i < s->n_seen; i++) {
        const int32_t id = s->seen[i];
        const int output = s->count[id] - 1;
        float x = s->before[i] = logits[id];
        x = x > 0 ? x / repeat : x * repeat;
        logits[id] = output ? x - (float)(output * o->frequency_penalty + o->presence_penalty) : x;
        s->count[id] = 0;
    }
}

void wg_sampler_restore(wg_sampler *s, float *logits)
{
    for (int i = 0; i < s->n_seen; i++) logits[s->seen[i]] = s->before[i];
    s->n_seen = 0;
}
