/* SPDX-License-Identifier: MIT
 * REST (He et al. 2024): drafts the tokens that follow, in a datastore, the longest suffix of the text (of at most n_max
 * tokens) that occurs there. The continuations of all hits form a trie with counts, whose most frequent prefixes are drafted as
 * a tree. It can draft from the first token on, and suits code and texts like the datastore's.
 *
 * The datastore is a mapped file with a suffix array (draft/lookup/datastore.h): hits are a range of it, found by two binary
 * searches per length; a shorter suffix has at least the hits of a longer one, so the length is found by bisection too. Hits
 * are sorted by their continuation, so a trie node is a range of hits and its children are the runs in it: no trie is built. Of
 * more than `hits` hits an evenly spaced selection is counted, which bounds the work.
 *
 * There is no state per sequence and no learning. Law FIXED: a function of the prefix; rows of q are one-hot. */
#include "draft/draft.h"

#include "core/base/mem.h"
#include "draft/lookup/datastore.h"
#include "draft/one_hot.h"

enum { HITS_MAX = 4096 };

typedef struct retrieval_options {
    char datastore[WG_OPTION_STRING];
    int nodes, depth, n_max, n_min, hits;
} retrieval_options;

/* A trie node that may be drafted under node `parent`: hits low .. high-1, which agree in their first `depth` tokens. */
typedef struct range {
    int low, high, depth, parent;
} range;

typedef struct retrieval_drafter {
    wg_drafter base;
    retrieval_options opt;
    wg_datastore *store;
    int64_t *hit;    /* (hits) positions of the continuations, in the order of their tokens */
    range *frontier; /* (hits) disjoint ranges that may be drafted next */
} retrieval_drafter;

static const wg_option options[] = {
    WG_OPTION_NAME(retrieval_options, datastore, WG_NAMES_FILE, "", "file made by `wager datastore build` (needed)"),
    WG_OPTION_INT(retrieval_options, nodes, 16, 1, WG_DRAFT_MAX, "draft tokens of a tree (16: ours, for CPUs; REST has 64)"),
    WG_OPTION_INT(retrieval_options, depth, 8, 1, WG_DRAFT_MAX, "deepest draft token"),
    WG_OPTION_INT(retrieval_options, n_max, 16, 1, 64, "longest match looked for"),
    WG_OPTION_INT(retrieval_options, n_min, 2, 1, 64, "shortest match that is used"),
    WG_OPTION_INT(retrieval_options, hits, 256, 1, HITS_MAX, "most hits that are counted"),
    WG_OPTION_END,
};

static wg_status open(wg_drafter *base, const wg_env *env, wg_error *err)
{
    retrieval_drafter *d = (retrieval_drafter *)base;
    const retrieval_options *o = &d->opt;
    if (!*o->datastore)
        return wg_fail(
            err, WG_ECONFIG,
            "drafter retrieval: no datastore is named; set its option datastore=FILE (make one with: wager datastore "
            "build --model MODEL --out FILE TEXT...)");
    if (o->n_min > o->n_max)
        return wg_fail(err, WG_ECONFIG, "drafter retrieval: n_min=%d is longer than n_max=%d; no match could be found",
                       o->n_min, o->n_max);
    d->hit = wg_calloc((size_t)o->hits, sizeof *d->hit);
    d->frontier = wg_calloc((size_t)o->hits, sizeof *d->frontier);
    if (!d->hit || !d->frontier) return wg_nomem(err, (size_t)o->hits * sizeof *d->frontier, "the drafter retrieval");
    return wg_datastore_open(&d->store, o->datastore, "retrieval", env, err);
}

static void close(wg_drafter *base)
{
    retrieval_drafter *d = (retrieval_drafter *)base;
    wg_free(d->hit);
    wg_free(d->frontier);
    wg_datastore_close(d->store);
}

/* Fills hit[] with the continuations of the longest match; returns how many. */
static int search(retrieval_drafter *d, const wg_seq *s)
{
    const int32_t *end = s->token + s->n;
    int64_t low = 0, high = 0;
    /* yes: a length with hits, no: one without; 0 always has some */
    int no = (d->opt.n_max < s->n ? d->opt.n_max : s->n) + 1, yes = d->opt.n_min - 1;
    while (no - yes > 1) {
        int64_t from, to;
        const int mid = yes + (no - yes) / 2;
        wg_datastore_find(d->store, end - mid, mid, &from, &to);
        if (to > from) {
            yes = mid;
            low = from;
            high = to;
        } else no = mid;
    }
    const int64_t found = high - low;
    const int n = found < d->opt.hits ? (int)found : d->opt.hits;
    for (int i = 0; i < n; i++) d->hit[i] = (int64_t)d->store->suffix[low + found * i / n] + yes;
    return n;
}

/* Adds the runs of equal next tokens in a range to the frontier. */
static int spread(retrieval_drafter *d, range r, int depth, int parent, int n)
{
    for (int i = r.low, k; i < r.high; i = k) {
        const int32_t x = wg_datastore_token(d->store, d->hit[i] + depth - 1);
        for (k = i + 1; k < r.high && wg_datastore_token(d->store, d->hit[k] + depth - 1) == x;) k++;
        if (x >= 0 && n < d->opt.hits) d->frontier[n++] = (range){ i, k, depth, parent };
    }
    return n;
}

static void propose_one(retrieval_drafter *d, const wg_seq *s, wg_tree *t, wg_rows *q)
{
    wg_tree_reset(t, s->token[s->n - 1], WG_LAW_FIXED);
    const int room = wg_one_hot_depth(s, d->opt.depth);
    if (room == 0) return;
    const int hits = search(d, s);
    int n = spread(d, (range){ 0, hits, 0, 0 }, 1, 0, 0);
    while (n > 0 && t->n <= d->opt.nodes) {
        int best = 0;
        for (int i = 1; i < n; i++) { /* the most hits; then the shallower, then the first in the datastore's order */
            const range *a = &d->frontier[i], *b = &d->frontier[best];
            const int more = (a->high - a->low) - (b->high - b->low);
            if (more > 0 || (more == 0 && (a->depth < b->depth || (a->depth == b->depth && a->low < b->low)))) best = i;
        }
        const range r = d->frontier[best];
        d->frontier[best] = d->frontier[--n];
        const int32_t x = wg_datastore_token(d->store, d->hit[r.low] + r.depth - 1);
        const int node = wg_one_hot_push(t, r.parent, x, q);
        if (node < 0) return;
        t->score += (double)(r.high - r.low) / hits; /* the share of the hits with this continuation */
        if (r.depth < room && !wg_env_is_eog(d->base.env, x)) n = spread(d, r, r.depth + 1, node, n);
    }
}

WG_PROPOSE_EACH(retrieval_drafter);

const wg_drafter_class wg_drafter_retrieval = {
    .name = "retrieval",
    .doc = "REST: a tree of what follows the longest suffix in a datastore of texts",
    .size = sizeof(retrieval_drafter),
    .options = options,
    .options_at = offsetof(retrieval_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "datastore=$store,n_min=1,nodes=12,depth=4", .siblings = true },
            { .options = NULL },
        },
    WG_LOOKUP_MEMBERS,
};
