/* SPDX-License-Identifier: MIT
 * Composite drafters. A component is named by a string "KIND:option=value;option=value"; semicolons, because commas separate
 * the options of the composite. Braces enclose a value that contains semicolons or bars, so strings nest:
 *
 *     hybrid:first=ngram:k=8,second={best_of:of=ngram|suffix}
 *
 * Each component drafts into trees and q rows of its own. The engine copies out those that are verified; the others are
 * dropped, and their rows in the tails of their spaces are invalidated. The choice of the tree depends on scores and on the
 * past, never on drawn tokens (methods.md, L3). */
#ifndef WG_DRAFT_COMPOSE_COMPOSITE_H
#define WG_DRAFT_COMPOSE_COMPOSITE_H

#include "draft/open.h"

enum { WG_COMPONENT_MAX = 6 }; /* most drafters of one list */

typedef struct wg_component {
    wg_drafter *d;
    wg_tree *tree; /* (max_batch) results of the last wg_component_propose, in its order */
    wg_rows q;
    uint64_t *seed;  /* (max_batch) the sequences' own seeds, saved while the component drafts with others */
    bool alone;      /* it is the only one of its list, so messages need not say which one failed */
    int first, end;  /* its spaces in the shared cache: [first, end) */
    uint32_t stream; /* number of its stream of random draws: 1, 2, ... among the components of one owner */
} wg_component;

/* Finds the class that a string names and the beginning of its options (NULL: none). `owner` and `option` stand in messages.
 * ECONFIG, also when wg_env has no table of drafters. */
wg_status wg_component_find(const wg_env *env, const char *owner, const char *option, const char *spec,
                            const wg_drafter_class **class, const char **options, wg_error *err);

/* Opens a component. Draws of different streams are independent of each other and of the rule's. */
wg_status wg_component_open(wg_component *in, uint32_t stream, const wg_env *env, const char *owner, const char *option,
                            const char *spec, wg_error *err);
void wg_component_close(wg_component *in); /* a zeroed one is fine */

/* Opens every drafter of "SPEC|SPEC|..." into in[0 .. *n-1]. On failure the caller closes the first *n. */
wg_status wg_component_open_list(wg_component *in, int *n, const wg_env *env, const char *owner, const char *option,
                                 const char *list, wg_error *err);

/* Whether the drafters that an option names (WG_NAMES_DRAFTERS) and their options exist, components of components included.
 * Nothing is opened. ECONFIG, EINVAL, ENOMEM. */
wg_status wg_component_check(const struct wg_plugins *plugins, const char *owner, const char *option, const char *list,
                             wg_error *err);

/* The sibling laws of the drafts of SPEC|SPEC|...; WG_COMPONENT_LAWS when the list has an unknown drafter or option. */
unsigned wg_component_laws(const struct wg_plugins *plugins, const char *list, const wg_sampling *sampling);

/* Whether a drafter with these options, or a component of it, comes from outside this program (wg_drafter_class.outside). */
bool wg_component_is_outside(const struct wg_plugins *plugins, const wg_drafter_class *class, const void *options);

/* Drafts for n sequences into in->tree[0 .. n-1] and checks the trees. */
wg_status wg_component_propose(wg_component *in, wg_seq *const *seq, int n, wg_error *err);

/* Expected accepted tokens of tree i: the declared score (wg_tree.score); else r / (1 - r) for r the largest probability of the
 * first q row; else 1. -1: the tree is empty. It is a function of the prefix alone. */
double wg_component_score(wg_component *in, int i);

void wg_component_take(wg_component *in, int i, wg_tree *out, wg_rows *q); /* copies tree i and its q rows */
/* Cuts a tree of this component to whole levels (methods.md, L3), in its spaces too. */
void wg_component_cut(const wg_component *in, const wg_seq *seq, wg_tree *t, int depth);
void wg_component_drop(const wg_component *in, const wg_seq *seq); /* invalidates its rows in the cache's tail */
void wg_component_observe(const wg_component *in, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target);
/* Statistics of this sequence's last step; i: the component's tree for it (-1: it did not draft); taken: the tree was
 * verified. */
wg_composite_stats wg_component_account(const wg_component *in, int i, bool taken, const wg_seq *seq);
void wg_component_forget(const wg_component *in, const wg_seq *seq);

/* ---- a drafter over a list of drafters; wg_composite is the first member of its struct */

/* The last step of a sequence. */
typedef struct wg_composite_step {
    int tree[WG_COMPONENT_MAX]; /* the number of this sequence's tree of each component; -1: it did not draft */
    int taken;                  /* the component whose tree was verified */
} wg_composite_step;

typedef struct wg_composite {
    wg_drafter base;
    wg_component in[WG_COMPONENT_MAX];
    int n;
    wg_composite_step *last; /* (max_batch) by slot */
} wg_composite;

/* Opens the drafters of the list "SPEC|SPEC|..." (the option `of`). */
wg_status wg_composite_open(wg_composite *c, const wg_env *env, const char *owner, const char *list, wg_error *err);
wg_status wg_composite_open_steps(wg_composite *c, const wg_env *env, wg_error *err); /* allocates c->last alone */

/* ask: all components draft for n sequences. take: copies tree i of one component as the draft of the sequence and invalidates
 * the other components' trees. */
wg_status wg_composite_ask(wg_composite *c, wg_seq *const *seq, int n, wg_error *err);
void wg_composite_take(wg_composite *c, int taken, const wg_seq *seq, int i, wg_tree *out, wg_rows *q);

void wg_composite_close(wg_drafter *d);
void wg_composite_observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target);
int wg_composite_account(const wg_drafter *d, const wg_seq *seq, wg_composite_stats *out, int most);
void wg_composite_forget(wg_drafter *d, const wg_seq *seq);

/* Members of the class of such a drafter; `open` and `propose` are the drafter's own functions. */
#define WG_COMPOSITE_MEMBERS                                                                                                   \
    .laws = WG_COMPONENT_LAWS, .open = open, .propose = propose, .cross_request = true, .composite_stats = wg_composite_account

#endif
