/* SPDX-License-Identifier: MIT
 * The keys of block heads (head_config.h): DFlash, DSpark, DFlash 2. */
#include "core/file/head_config.h"

/* Which layers see only slots before their own: by speculators those with a window, unless a key says otherwise; by z-lab's
 * key all or none, and where it is absent the same as by speculators. */
static wg_status read_causality(const wg_hf_keys *top, const wg_hf_keys *own, wg_head_spec *s)
{
    static const char *const names[] = { "is_causal", "causal", "causal_head" };
    bool both, causal;
    s->causal = s->windowed;
    if (!own) {
        WG_TRY(wg_head_flag(top, s, "sliding_window_non_causal", s->kind == WG_HEAD_DFLASH2, &both));
        if (both) s->causal = 0;
        return WG_OK;
    }
    for (int i = 0; i < 3; i++) {
        const wg_hf_keys *r = wg_hf_get(top, names[i]) ? top : own;
        if (!wg_hf_get(r, names[i])) continue;
        WG_TRY(wg_hf_bool(r, names[i], false, &causal));
        s->causal = causal ? ~0U : 0;
        return WG_OK;
    }
    wg_head_assume(s, names[0], s->windowed ? "true where layers slide" : "false");
    return WG_OK;
}

/* The keys that DSpark has beside those of a block. */
static wg_status read_markov(const wg_hf_keys *top, const wg_hf_keys *own, wg_head_spec *s)
{
    static const char *const types[] = { "vanilla", "gated", "rnn" }, *const projectors[] = { "dspark" };
    const bool speculators = own == NULL;
    const wg_hf_keys *r = wg_head_where(top, own, "markov_rank");
    double rank;
    int type;
    WG_TRY(wg_head_name_of(wg_head_where(top, own, "projector_type"), "projector_type", projectors, 1, "dspark", &type));
    if (!wg_hf_get(r, "markov_rank")) wg_head_assume(s, "markov_rank", speculators ? "256" : "0");
    WG_TRY(wg_hf_number(r, "markov_rank", speculators ? 256 : 0, 0, 1 << 16, &rank));
    s->markov_rank = (int)rank;
    if (s->markov_rank != rank) return wg_hf_wrong(r, "markov_rank", "a whole number");
    r = wg_head_where(top, own, "markov_head_type");
    if (!wg_hf_get(r, "markov_head_type")) wg_head_assume(s, "markov_head_type", "vanilla");
    WG_TRY(wg_head_name_of(r, "markov_head_type", types, 3, "vanilla, gated or rnn", &type));
    s->markov = rank > 0 ? (wg_head_markov)(WG_MARKOV_VANILLA + type) : WG_MARKOV_NONE;
    WG_TRY(wg_head_flag(wg_head_where(top, own, "enable_confidence_head"), s, "enable_confidence_head", speculators,
                        &s->confidence));
    r = wg_head_where(top, own, "confidence_head_with_markov");
    if (s->confidence) WG_TRY(wg_head_flag(r, s, "confidence_head_with_markov", s->markov_rank > 0, &s->confidence_markov));
    if (s->confidence_markov && s->markov_rank == 0)
        return wg_hf_refuse(r, "confidence_head_with_markov", "false where markov_rank is 0");
    return WG_OK;
}

/* The keys that DFlash 2 has beside those of a block. */
static wg_status read_second(const wg_hf_keys *top, const wg_hf_keys *own, wg_head_spec *s)
{
    WG_TRY(wg_head_size(wg_head_where(top, own, "conv_kernel_size"), s, "conv_kernel_size", 2, s->block, &s->taps));
    WG_TRY(wg_head_size(wg_head_where(top, own, "conv_group_size"), s, "conv_group_size", 16, s->dim, &s->group));
    WG_TRY(wg_head_size(wg_head_where(top, own, "selector_rank"), s, "selector_rank", 256, 1 << 16, &s->markov_rank));
    WG_TRY(wg_head_size(wg_head_where(top, own, "selector_top_k"), s, "selector_top_k", 16, s->vocab, &s->top));
    s->markov = WG_MARKOV_SELECTOR;
    if (s->dim % s->group)
        return wg_hf_wrong(wg_head_where(top, own, "conv_group_size"), "conv_group_size", "a divisor of hidden_size");
    return WG_OK;
}

/* The keys of a block. own: NULL in speculators' files; in z-lab's the object dflash_config, or the top again. Classes of
 * DSpark draw from the anchor's row on where no key says otherwise. */
wg_status wg_head_read_block(const wg_hf_keys *top, const wg_hf_keys *own, wg_head_spec *s)
{
    const wg_hf_keys *r = own ? own : top, *anchor = wg_head_where(top, own, "sample_from_anchor");
    const bool spark = s->kind == WG_HEAD_DSPARK;
    bool apart;
    WG_TRY(wg_hf_count(top, "target_hidden_size", s->dim, 1 << 20, &s->target_dim));
    WG_TRY(wg_hf_count(wg_hf_get(r, "block_size") ? r : top, "block_size", 0, 1024, &s->block));
    if (s->block < 2) return wg_hf_wrong(top, "block_size", "at least 2");
    WG_TRY(wg_head_read_mask(wg_hf_get(r, "mask_token_id") ? r : top, s));
    WG_TRY(read_causality(top, own, s));
    if (spark) WG_TRY(read_markov(top, own, s));
    if (s->kind == WG_HEAD_DFLASH2) WG_TRY(read_second(top, own, s));
    if (spark || !own) WG_TRY(wg_head_flag(anchor, s, "sample_from_anchor", spark, &s->from_anchor));
    WG_TRY(wg_hf_bool(top, "rope_is_neox_style", true, &apart));
    s->adjacent = !apart;
    if (own) return wg_head_read_taps(wg_hf_get(r, "target_layer_ids") ? r : top, "target_layer_ids", 1, s);
    return wg_head_read_taps(top, "aux_hidden_state_layer_ids", 0, s);
}
