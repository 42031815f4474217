/* SPDX-License-Identifier: MIT
 * A drafter as a plug-in: after each token, the token that followed it last in this text is proposed, and so on as a chain.
 *
 *     wager generate -m TARGET.gguf -p "..." --draft plugin:path=libbigram.so,options=k=4
 *
 * For the drafter's part see docs/add-a-drafter.md; this file differs from one in draft/ in its last line only. */
#include "draft/external/drafter_plugin.h"

typedef struct bigram_options {
    int k;
} bigram_options;

typedef struct bigram {
    wg_drafter base;
    bigram_options opt;
} bigram;

static const wg_option options[] = {
    WG_OPTION_INT(bigram_options, k, 4, 1, 63, "tokens per draft"),
    WG_OPTION_END,
};

/* What followed `token` where it last stood before position n - 1; -1: it never did. */
static int32_t follower(const wg_seq *s, int32_t token)
{
    for (int i = s->n - 2; i >= 0; i--)
        if (s->token[i] == token) return s->token[i + 1];
    return -1;
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    (void)err;
    for (int i = 0; i < n; i++) {
        const wg_seq *s = seq[i];
        int32_t x = s->token[s->n - 1];
        wg_tree_reset(&out[i], x, WG_LAW_FIXED); /* a function of the text: no draws, no q */
        for (int k = 0, node = 0; k < ((bigram *)d)->opt.k && k < wg_seq_room(s) && node >= 0; k++) {
            if (wg_env_is_eog(d->env, x) || (x = follower(s, x)) < 0) break;
            node = wg_tree_push(&out[i], node, x, -1);
        }
    }
    (void)q;
    return WG_OK;
}

static const wg_drafter_class bigram_class = {
    .name = "bigram",
    .doc = "what followed the last token before",
    .size = sizeof(bigram),
    .options = options,
    .options_at = offsetof(bigram, opt),
    .laws = WG_LAW_FIXED,
    .propose = propose,
};

WG_DRAFTER_PLUGIN(bigram_class);
