/* SPDX-License-Identifier: MIT
 * Drafters made of others. A drafter inside another is named by a string "KIND:option=value;option=value"; semicolons, because
 * commas separate the options outside. A value that holds semicolons or bars itself stands in braces, so that strings nest:
 *
 *     hybrid:first=ngram:k=8,second={best_of:of=ngram|suffix}
 *
 * Each inner drafter drafts into trees and q rows of its own; those that are taken are copied out, the others are put aside,
 * and what they wrote into the tail of their spaces no longer counts. Which tree is taken must not depend on what was drawn
 * (METHODS L3): it is chosen by scores and by the past. */
#ifndef WG_DRAFT_COMPOSE_COMPOSITE_H
#define WG_DRAFT_COMPOSE_COMPOSITE_H

#include "draft/open.h"

enum { WG_COMPONENT_MAX = 6 }; /* drafters of one list */

typedef struct wg_component {
    wg_drafter *d;
    wg_tree *tree; /* (max_batch) of the last wg_component_propose, in its order */
    wg_rows q;
    uint64_t *seed;  /* (max_batch) of the sequences, while it drafts under another */
    int first, end;  /* its spaces in the shared cache */
    uint32_t stream; /* its draws are its own: 1, 2, ... among the drafters of one owner */
} wg_component;

/* Finds the class that a string names and where its options begin (NULL: none). `owner` and `option` are for messages. ECONFIG,
 * also when the program did not say which drafters there are. */
wg_status wg_component_find(const wg_env *env, const char *owner, const char *option, const char *spec,
                            const wg_drafter_class **class, const char **options, wg_error *err);

/* The draws of drafters with different streams have nothing to do with each other, nor with the rule's. */
wg_status wg_component_open(wg_component *in, uint32_t stream, const wg_env *env, const char *owner, const char *option,
                            const char *spec, wg_error *err);
void wg_component_close(wg_component *in); /* also of a zeroed one */

/* Opens every drafter of "SPEC|SPEC|..." into in[0 .. *n-1]. On failure the first *n are to be closed. */
wg_status wg_component_open_list(wg_component *in, int *n, const wg_env *env, const char *owner, const char *option,
                                 const char *list, wg_error *err);

/* Whether text options of a class are of the form SPEC|SPEC|...: drafters, that is; and whether one that is names drafters that
 * there are, with options that they have, and so inside them. Nothing is opened. ECONFIG, EINVAL, ENOMEM. */
bool wg_component_is_spec(const wg_drafter_class *class, const wg_option *option);
wg_status wg_component_check(const struct wg_plugins *plugins, const char *owner, const char *option, const char *list,
                             wg_error *err);

/* Drafts for n sequences into in->tree[0 .. n-1]; the trees are checked. */
wg_status wg_component_propose(wg_component *in, wg_seq *const *seq, int n, wg_error *err);

/* Tokens that tree i is expected to keep: what the drafter declares (wg_tree.score); else, from the first q row, r / (1 - r)
 * for r its largest probability; else 1. -1: nothing is proposed. A function of the prefix alone. */
double wg_component_score(wg_component *in, int i);

void wg_component_take(wg_component *in, int i, wg_tree *out, wg_rows *q); /* tree i and its q rows are the draft */
void wg_component_drop(const wg_component *in, const wg_seq *seq);         /* its tree for this sequence is not */
void wg_component_observe(const wg_component *in, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target);
/* What it did in the last step of this sequence, in which its tree i (-1: it was not asked) was taken or not. */
wg_composite_stats wg_component_account(const wg_component *in, int i, bool taken, const wg_seq *seq);
void wg_component_forget(const wg_component *in, const wg_seq *seq);

/* ---- a drafter that is a list of drafters: first in its struct */

/* The last step of the sequence in a slot. */
typedef struct wg_composite_step {
    int tree[WG_COMPONENT_MAX]; /* which tree of each was this sequence's; -1: it was not asked */
    int taken;                  /* whose tree was the draft */
} wg_composite_step;

typedef struct wg_composite {
    wg_drafter base;
    wg_component in[WG_COMPONENT_MAX];
    int n;
    wg_composite_step *last; /* (max_batch) by slot */
} wg_composite;

/* Opens the drafters of "SPEC|SPEC|...", the value of the option `of`. */
wg_status wg_composite_open(wg_composite *c, const wg_env *env, const char *owner, const char *list, wg_error *err);
wg_status wg_composite_open_steps(wg_composite *c, const wg_env *env, wg_error *err); /* c->last alone */

/* All of them draft for n sequences; then, for each, the tree i of one of them is taken and those of the others are dropped. */
wg_status wg_composite_ask(wg_composite *c, wg_seq *const *seq, int n, wg_error *err);
void wg_composite_take(wg_composite *c, int taken, const wg_seq *seq, int i, wg_tree *out, wg_rows *q);

void wg_composite_close(wg_drafter *d);
void wg_composite_observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target);
int wg_composite_account(const wg_drafter *d, const wg_seq *seq, wg_composite_stats *out, int most);
void wg_composite_forget(wg_drafter *d, const wg_seq *seq);

/* The members of the class of such a drafter: `open` and `propose` are its own, and others if they are named after this. */
#define WG_COMPOSITE_MEMBERS                                                                                                   \
    .laws = WG_COMPONENT_LAWS, .open = open, .propose = propose, .cross_request = true, .composite_stats = wg_composite_account

#endif
