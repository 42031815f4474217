/* SPDX-License-Identifier: MIT
 * Prompt lookup (Saxena 2023): what followed the last few tokens when they last occurred in this sequence, prompt or output, is
 * proposed again as a chain. The longest match wins, up to n_max tokens; among equals the most recent.
 *
 * The copy may run into itself, as in LZ77: after "a b a b" the continuation of the match is "a b", then "a b" again.
 *
 * There is no index: one backward scan compares one token per position, about 0.3 us per 1000 tokens, which is negligible
 * beside a forward pass. So no state is kept per sequence, except by a length policy. The draft is a function of the prefix and
 * the past (law FIXED); its q rows are one-hot rows, so that acceptance is measured like any other drafter's. */
#include "draft/draft.h"
#include "draft/length/length.h"
#include "draft/one_hot.h"

typedef struct ngram_options {
    int k, n_max, n_min;
    wg_length_options length_policy;
} ngram_options;

typedef struct ngram_drafter {
    wg_drafter base;
    ngram_options opt;
    wg_length length;
} ngram_drafter;

static const wg_option options[] = {
    WG_OPTION_INT(ngram_options, k, 10, 1, WG_DRAFT_MAX, "tokens per draft (10, and matches of up to 3: Saxena 2023)"),
    WG_OPTION_INT(ngram_options, n_max, 3, 1, 64, "longest match looked for"),
    WG_OPTION_INT(ngram_options, n_min, 1, 1, 64, "shortest match that is used"),
    WG_LENGTH_OPTIONS(ngram_options),
    WG_OPTION_END,
};

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    ngram_drafter *g = (ngram_drafter *)d;
    const ngram_options *o = &g->opt;
    if (o->n_min > o->n_max)
        return wg_fail(err, WG_ECONFIG, "drafter ngram: n_min=%d is longer than n_max=%d; no match could be found", o->n_min,
                       o->n_max);
    return wg_length_open(&g->length, &o->length_policy, "ngram", o->k < WG_TREE_MAX ? o->k : WG_TREE_MAX - 1, 0, NULL, env,
                          err);
}

/* The end of the best match of the last tokens, or -1; its length in *length. */
static int match_end(const ngram_options *o, const int32_t *token, int n, int *length)
{
    int best = -1, longest = o->n_min - 1;
    for (int end = n - 2; end >= 0 && longest < o->n_max; end--) {
        if (token[end] != token[n - 1]) continue;
        int m = 1;
        while (m < o->n_max && m <= end && token[end - m] == token[n - 1 - m]) m++;
        if (m > longest) {
            longest = m;
            best = end;
        }
    }
    *length = longest;
    return best;
}

static void propose_one(ngram_drafter *d, const wg_seq *s, wg_tree *t, wg_rows *q)
{
    wg_tree_reset(t, s->token[s->n - 1], WG_LAW_FIXED);
    int k = wg_length_plan(&d->length, s);
    if (k <= 0) t->no_draft = WG_NO_DRAFT_POLICY;
    if (k > wg_seq_room(s)) k = wg_seq_room(s);
    if (k <= 0) return;
    int match;
    const int end = match_end(&d->opt, s->token, s->n, &match);
    if (end < 0) return;
    t->score = match < k ? match : k; /* a match of m tokens predicts m more */
    for (int i = 0, from = end + 1; i < k; i++, from++) {
        const int32_t x = from < s->n ? s->token[from] : t->token[from - s->n + 1]; /* node 0 is token n - 1 */
        const int row = wg_rows_push(q);
        if (row >= 0) q->point[row] = x;
        wg_tree_push(t, i, x, row);
        if (wg_env_is_eog(d->base.env, x)) break;
    }
}

WG_PROPOSE_EACH(ngram_drafter);

static void observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    (void)target;
    wg_length_learn(&((ngram_drafter *)d)->length, seq, tree, path);
}

static void forget(wg_drafter *d, const wg_seq *seq) { wg_length_forget(&((ngram_drafter *)d)->length, seq); }

static int policy(const wg_drafter *d, const wg_seq *seq, double *out, int most)
{
    return wg_length_report(&((const ngram_drafter *)d)->length, seq, out, most);
}

static bool device_chain(const wg_drafter *d, wg_device_chain *out)
{
    const ngram_drafter *g = (const ngram_drafter *)d;
    *out = (wg_device_chain){ .source = WG_CHAIN_LOOKUP,
                              .length = g->length.max,
                              .match = { .n_max = g->opt.n_max, .n_min = g->opt.n_min },
                              .law = WG_LAW_FIXED };
    return g->opt.length_policy.policy == WG_LENGTH_FIXED;
}

static void close(wg_drafter *d) { wg_length_close(&((ngram_drafter *)d)->length); }

const wg_drafter_class wg_drafter_ngram = {
    .name = "ngram",
    .doc = "prompt lookup: repeats what followed the last tokens before",
    .size = sizeof(ngram_drafter),
    .options = options,
    .options_at = offsetof(ngram_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "k=5,n_max=4" },
            { .options = "" },
            { .options = NULL },
        },
    WG_LOOKUP_MEMBERS,
    .observe = observe,
    .policy = policy,
    .forget = forget,
    .device_chain = device_chain,
};
