/* SPDX-License-Identifier: MIT
 * The contract of a drafter (docs/add-a-drafter.md). A drafter proposes a tree per sequence and declares the law by which
 * the siblings were drawn. The q rows are the distributions that the tokens were drawn from, after the sampler chain
 * (methods.md, L1). */
#ifndef WG_CORE_ENGINE_DRAFTER_H
#define WG_CORE_ENGINE_DRAFTER_H

#include "core/base/option.h"
#include "core/base/pool.h"
#include "core/dist/rows.h"
#include "core/dist/sampler.h"
#include "core/dist/tree.h"
#include "core/engine/length_log.h"
#include "core/engine/seq.h"
#include "core/model/device_chain.h"
#include "core/model/lm.h"
#include "core/text/tokenizer.h"

/* What a drafter may use. Everything is borrowed and outlives the drafter. */
struct wg_plugins;
typedef struct wg_env {
    wg_lm *target;
    wg_kv *kv; /* shared: a drafter with a model attaches its space in open */
    wg_pool *pool;
    const wg_ops *ops;
    const wg_sampling *sampling;   /* the target's chain; drafters use it unless their options set another */
    const wg_tokenizer *tokenizer; /* of the target; may be NULL */
    const char *target_name;
    int max_batch;        /* sequences of one step */
    wg_is_eog_fn *is_eog; /* which tokens end a text, or NULL */
    const void *is_eog_user;
    unsigned checks;                  /* sibling laws that the rule accepts. A draft whose shape depends on its own draws
                                       * (methods.md, L3) needs WG_LAW_COUPLED among them, at every depth of composites */
    int races;                        /* lists of times that the rule races on, which a draft of law COUPLED distributes over
                                       * siblings (wg_lists_dealt); 1 for rules that do not race */
    const struct wg_plugins *plugins; /* drafters and rules by name, for composites; NULL: there are none */
    wg_length_log *lengths;           /* for policies that use measured costs; NULL: there is none */
    const void *reserved;             /* NULL: the place of a member that earlier versions had */
    bool *watches;                    /* set in open (wg_env_watch) by a drafter that reads target rows or logits in observe */
    const float *logits;              /* (rows, vocab) inside observe: the target's logits; row tree->row + node follows that
                                       * node or probe. NULL: this engine provides none */
    struct wg_tap_feeds *feeds;       /* hidden states of the target's rows; a drafter that reads them opens a feed in open
                                       * (tap_feed.h). NULL: no engine runs the target */
    struct wg_profile *profile;       /* prices of passes (profile.h) for decisions by cost; NULL: nominal ones */
} wg_env; /* new members go to the end: objects built before them still run (draft/external/drafter_plugin.h) */

/* Whether the token ends a text: no token is emitted after it, so a draft may end there. */
static inline bool wg_env_is_eog(const wg_env *env, int32_t token)
{
    return env->is_eog && env->is_eog(env->is_eog_user, token);
}

/* Requests the target's rows and logits on the host in every observe. Call it in open. */
static inline void wg_env_watch(const wg_env *env)
{
    if (env->watches) *env->watches = true;
}

/* Statistics of one component of a composite in a sequence's last step. */
typedef struct wg_composite_stats {
    const char *kind;  /* name of its class */
    bool asked, taken; /* it drafted; its tree was verified */
    int drafted;       /* draft tokens of that tree */
    int matched;       /* leading emitted tokens of the step that its tree contains */
} wg_composite_stats;

/* The cost of a model's draft of some depth: its deepest level, and the rows of its passes. */
typedef struct wg_draft_extent {
    int levels, rows;
    bool reserved; /* the place of a member that earlier versions had */
} wg_draft_extent;

/* The common vocabulary of target and draft model. own[id], id < n: the draft model's id of a target token, or -1; borrowed
 * from the drafter. */
typedef struct wg_overlap {
    int shared, vocab; /* target tokens that the draft model has; the target's vocabulary */
    int n;
    const int32_t *own;
} wg_overlap;

/* Options of a drafter that tests run, as written after KIND: in --draft. Every law test, the test of the program and the test
 * of the registry run them. A word that begins with $ is a file that the test provides: $target, the target's own weights;
 * $near, a draft model close to the target; $far, one that is not; $short, one whose context is shorter than the texts; $other,
 * one with another vocabulary; $store, a datastore (wager datastore); $list, the tokens that may be drafted (wager vocab
 * prune); $plugin, the shared object of examples/plugin-drafter; $head, the folder of a head of the target
 * (head_file.h), and in it `block`, of a DFlash head, and `mtp`, of an MTP layer. */
typedef struct wg_drafter_test {
    const char *options; /* "": the defaults; NULL: the end of the list */
    bool siblings;       /* its drafts may have siblings, so rules for chains are left out */
    bool own_request;    /* with these options drafts depend on their request alone, although cross_request is set */
    bool runs_target;    /* it runs passes of the target while drafting */
    double keeps;        /* least share of its draft tokens that greedy decoding of the tests' models accepts */
} wg_drafter_test;

typedef struct wg_drafter wg_drafter;
typedef struct wg_drafter_class {
    const char *name, *doc;   /* as written in configs; one line for `wager list` */
    size_t size;              /* bytes of the instance; allocated zeroed by the caller */
    const wg_option *options; /* fields of the struct at options_at; NULL: none */
    size_t options_at;
    /* Options that tests run, the usual first. A registered drafter without any fails the tests. */
    const wg_drafter_test *test_options;
    unsigned laws; /* sibling laws that it can produce with any options */
    wg_status (*open)(wg_drafter *d, const wg_env *env, wg_error *err);
    /* Fills out[i] for seq[i] (root = its last token) and pushes the q rows that the trees name (q is shared by the n trees and
     * cleared before the call). May reserve tail slots of seq[i]->kv and write its own space there: slot len + node. A drafter
     * without a proposal leaves the root as the only node, and says why in no_draft unless it found nothing. The shape of a
     * tree: whether a node has children, and how many, may depend on its prefix, its q row and the past, not on what is drawn
     * for them (methods.md, L3, L4). A drafter that draws several siblings from q declares their number first (wg_tree_group);
     * rules that weigh siblings jointly (.joint of wg_verifier_class) refuse other trees. Nodes deeper than wg_seq_room are cut
     * by whole levels and the others numbered anew: observe gets the tree that was verified. On failure the engine rolls the
     * caches back; the drafter's own state must be as before the call. */
    wg_status (*propose)(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err);
    /* Called after the commit of a sequence with tree, path and the target's rows (from tree->row on, none for probes). The
     * rows are present after wg_env_watch; else they may have stayed on a device. NULL: the drafter does not learn. It cannot
     * fail. */
    void (*observe)(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target);
    /* Called when the sequence in this slot was closed. NULL: the drafter keeps no state per sequence. */
    void (*forget)(wg_drafter *d, const wg_seq *seq);
    void (*close)(wg_drafter *d); /* a half-open drafter is allowed */
    /* The laws with these options (the struct at options_at) under the target's sampling chain; NULL: `laws`, always. */
    unsigned (*laws_for)(const void *options, const wg_sampling *sampling);
    bool stands_alone;  /* it needs no target, model or cache, so `wager bench draft` can time it alone */
    bool cross_request; /* drafts may depend on earlier requests, so a resumed run begins its group again */
    bool outside;       /* its code is not this program's and its declared q is unproved: it is audited (core/dist/audit.h),
                         * and rules that use q are lossless if its q is true */
    /* Writes the state of its length policy, for traces; returns the count of numbers, at most `most`. NULL: none. */
    int (*policy)(const wg_drafter *d, const wg_seq *seq, double *out, int most);
    /* Writes the statistics of its components in the last step of this sequence, in a fixed order; returns their count, at most
     * `most`. NULL: it is not a composite. */
    int (*composite_stats)(const wg_drafter *d, const wg_seq *seq, wg_composite_stats *out, int most);
    /* The language model whose seconds, passes and rows are the cost of its drafts. NULL: it runs none. */
    const wg_lm *(*lm)(const wg_drafter *d);
    /* The context of the draft model, in its tokens. *slides: of a longer text it reads the last tokens; else later rounds have
     * no draft (WG_NO_DRAFT_CONTEXT). 0, or NULL: unbounded. */
    int (*context)(const wg_drafter *d, bool *slides);
    /* The cost of a draft of `depth` levels. NULL: it runs no model. */
    void (*extent)(const wg_drafter *d, int depth, wg_draft_extent *out);
    /* The target's tokens that its draft model has. False, or NULL: all of them under the same ids, or there is no model. */
    bool (*overlap)(const wg_drafter *d, wg_overlap *out);
    /* Describes its drafts if they are chains that a device can draft instead. False, or NULL: they are not. */
    bool (*device_chain)(const wg_drafter *d, wg_device_chain *out);
    /* Checks the file or folder of its option `model` before anything runs. ENOENT: there is none. NULL: it is a language
     * model's, if there is such an option. */
    wg_status (*check_model)(const struct wg_drafter_class *c, const char *path, wg_error *err);
} wg_drafter_class;
static inline unsigned wg_drafter_laws(const wg_drafter_class *d, const void *options, const wg_sampling *sampling)
{
    return d->laws_for ? d->laws_for(options, sampling) : d->laws;
}

struct wg_drafter {
    const wg_drafter_class *class;
    const wg_env *env;
}; /* first member of every drafter */

static inline const wg_lm *wg_drafter_lm(const wg_drafter *d) { return d->class->lm ? d->class->lm(d) : NULL; }
static inline int wg_drafter_context(const wg_drafter *d, bool *slides)
{
    return d->class->context ? d->class->context(d, slides) : 0;
}
static inline bool wg_drafter_overlap(const wg_drafter *d, wg_overlap *out)
{
    return d->class->overlap && d->class->overlap(d, out);
}

#endif
