/* SPDX-License-Identifier: MIT
 * Rows of a sequence that the engine's sampler chain does not make: a chain of its own, logit biases, allowed tokens, a
 * grammar; and log-probabilities of emitted tokens.
 *
 * Law. A row stays a function of the model and of the token prefix of its node: the committed text and the path to the node,
 * for every node of a draft tree and for the token behind the last one. So emitted tokens have the law of plain decoding with
 * the same transformations, under every lossless rule. Drafts with p = 0 leave the tree before the target's pass, as far as the
 * law of siblings allows (methods.md, L1, L3, L4): drafts of law FIXED and COUPLED are dropped; a drawn one stays, because
 * without it its siblings would have another law, but its descendants are dropped.
 *
 * A device that verifies or decodes by itself knows the engine's chain alone: steps with such a sequence take the host's path,
 * which has the same bits. */
#ifndef WG_CORE_ENGINE_SEQ_ROWS_H
#define WG_CORE_ENGINE_SEQ_ROWS_H

#include "core/dist/logprob.h"
#include "core/dist/sampler.h"
#include "core/engine/engine.h"
#include "core/text/grammar/acceptor.h"

/* How the rows of a sequence are made. A member that is 0 or NULL leaves it to the engine. Everything is copied. */
typedef struct wg_seq_sampling {
    const wg_sampling *sampling;
    const wg_logit_bias *bias; /* (biases) of different tokens */
    int biases;
    const int32_t *allowed; /* (n_allowed) the only tokens that may be emitted; none: all */
    int n_allowed;
    wg_acceptor *acceptor; /* borrowed until the sequence is closed; sequences of one thread may share it. The text from
                            * token `from` on (0: the prompt's end) follows its grammar; tokens that end a text are allowed
                            * where the grammar's text is complete, or where it allows no token */
    int from;
    const int32_t *after; /* the constraint begins behind the first such token from `from` on (the end of a model's
                           * reasoning). NULL: at once */
    bool forced;          /* tokens that the grammar forces are drafted, with q = 1, at the leaves of the drafter's tree */
    bool logprobs;        /* log-probabilities of emitted tokens, */
    int top;              /* and of the `top` most probable ones, 0 .. WG_LOGPROBS_MAX */
} wg_seq_sampling;

/* Checks the arguments of wg_seq_sample without a sequence, in any thread. */
wg_status wg_seq_sampling_check(const wg_engine *e, const wg_seq_sampling *how, wg_error *err);
/* Sets how the rows of this sequence are made from its next step on. EINVAL: a value out of range, with its name. ELAW: a
 * temperature above 0 under a rule that verifies greedy decoding alone. EUNSUPPORTED: a grammar, but no token ends a text.
 * ENOMEM. On failure nothing has changed. */
wg_status wg_seq_sample(wg_engine *e, wg_seq *s, const wg_seq_sampling *how, wg_error *err);

/* Log-probabilities of the tokens of the last step, 1 + top for each of the s->last_emitted (wg_logprobs); NULL: not
 * requested. */
const wg_logprob *wg_seq_logprobs(const wg_seq *s, int *top);

/* Whether its text so far, without a token that ends it, is a complete text of its grammar; true without one. */
bool wg_seq_is_whole(const wg_seq *s);

/* Whether the sequence has rows of its own. */
static inline bool wg_seq_has_rows(const wg_seq *s) { return s->rows != NULL; }

/* ---- of the engine's step */

void wg_seq_rows_close(wg_seq *s);
/* Advances the grammar to the end of the text, before a step drafts. This and the next two fail (EINVAL) where a bound of the
 * acceptor is exceeded. */
wg_status wg_seq_rows_read(const wg_seq *s, wg_error *err);
/* Clears keep[i] for nodes of a draft whose p is 0, and the group of a node whose children are dropped. */
wg_status wg_seq_rows_prune(const wg_seq *s, wg_tree *t, bool *keep, wg_error *err);
/* Adds forced tokens to a draft, and finds what may follow its nodes. */
wg_status wg_seq_rows_finish(const wg_engine *e, const wg_seq *s, wg_tree *t, wg_rows *q, wg_error *err);
/* The sequence's sampler, with the working memory of `memory`, one of the engine's samplers. */
wg_sampler wg_seq_sampler(const wg_seq *s, const wg_sampler *memory);
/* The sampler of rows that are computed when they are read; NULL: they may not be. */
wg_sampler *wg_seq_lazy_sampler(const wg_seq *s, wg_sampler *engines);
/* The prefix on which the row behind a node depends, for drafters, on any path of a tree. Its `allowed` is valid until the next
 * call. */
wg_prefix wg_seq_prefix(const wg_seq *s, const wg_tree *t, int node);
/* The same for a node of the tree of the last wg_seq_rows_finish, in any thread. */
wg_prefix wg_seq_scored_prefix(const wg_seq *s, const wg_tree *t, int node);
/* Computes log-probabilities after the sequence has appended a path of the tree, from rows tree->row + node of the logits. */
void wg_seq_rows_emitted(const wg_engine *e, wg_seq *s, const wg_tree *t);

#endif
