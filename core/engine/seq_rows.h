/* SPDX-License-Identifier: MIT
 * The rows of one sequence, where they are not made by the engine's sampler chain: a chain of its own, biases of logits, tokens
 * that are allowed, a grammar, and log-probabilities of what is emitted.
 *
 * Law. A row stays a function of the model and of the token prefix of its node: the committed text and the path to the node,
 * for every node of a draft tree and for the token behind the last one. So what is emitted has the law of plain decoding
 * with the same transformations, under every lossless rule. Drafts that have p = 0 are waste and leave the tree before the
 * target's pass, as far as the law of the siblings allows (methods.md, L1, L3, L4): drafts of law FIXED and COUPLED are dropped
 * themselves; a drawn one stays, because without it its siblings would have another law, and what is drafted behind it is
 * dropped.
 *
 * A device that verifies or decodes by itself knows the engine's chain alone: steps with such a sequence take the host's path,
 * which has the same bits. */
#ifndef WG_CORE_ENGINE_SEQ_ROWS_H
#define WG_CORE_ENGINE_SEQ_ROWS_H

#include "core/dist/logprob.h"
#include "core/dist/sampler.h"
#include "core/engine/engine.h"
#include "core/text/grammar/acceptor.h"

/* 0 or NULL in their place: as the engine does it. Everything is copied. */
typedef struct wg_seq_sampling {
    const wg_sampling *sampling;
    const wg_logit_bias *bias; /* (biases) different tokens */
    int biases;
    const int32_t *allowed; /* (n_allowed) no other token is emitted; 0: all may be */
    int n_allowed;
    wg_acceptor *acceptor; /* borrowed until the sequence is closed; several sequences of one thread may share it. The text from
                          * token `from` on (0: from the prompt's end) is one of its grammar: tokens that end a text are allowed
                          * where the grammar has a whole text, and also where it allows no token at all of this vocabulary */
    int from;
    const int32_t *after; /* the constrained text begins behind this token, wherever it comes from `from` on (the end of a
                           * model's reasoning); until then the grammar says nothing. NULL: at once */
    bool forced;   /* what the grammar forces is drafted: at the leaves of the drafter's tree, as many tokens as have q = 1 */
    bool logprobs; /* of emitted tokens, */
    int top;       /* and of so many most probable tokens, 0 .. WG_LOGPROBS_MAX */
} wg_seq_sampling;

/* What wg_seq_sample refuses of its arguments, without a sequence. Any thread. */
wg_status wg_seq_sampling_check(const wg_engine *e, const wg_seq_sampling *how, wg_error *err);
/* Sets how the rows of this sequence are made from its next step on. EINVAL: a value out of range, with its name. ELAW: a
 * temperature above 0 under a rule that verifies greedy decoding alone. EUNSUPPORTED: a grammar, and no token ends a text.
 * ENOMEM. On failure nothing has changed. */
wg_status wg_seq_sample(wg_engine *e, wg_seq *s, const wg_seq_sampling *how, wg_error *err);

/* Log-probabilities of the tokens of the last step, 1 + top for each of the s->last_emitted (wg_logprobs); NULL: not asked
 * for. */
const wg_logprob *wg_seq_logprobs(const wg_seq *s, int *top);

/* Whether its text so far, without a token that ends it, is a whole text of its grammar; true without one. */
bool wg_seq_is_whole(const wg_seq *s);

/* Whether the sequence has rows of its own. */
static inline bool wg_seq_has_rows(const wg_seq *s) { return s->rows != NULL; }

/* ---- of the engine's step */

void wg_seq_rows_close(wg_seq *s);
/* Before the drafts of a step: reads the text up to its end. Like the two below it fails (EINVAL) where a bound of the
 * grammar's acceptor is exceeded. */
wg_status wg_seq_rows_read(const wg_seq *s, wg_error *err);
/* Clears keep[i] for nodes of a draft whose p is 0, and forgets the group of a node whose children are dropped. Drawn tokens
 * stay for a lossless rule, whose law rests on them. For another rule (lossy), which may keep a token with p = 0, they are
 * dropped, and the row of q that their siblings were drawn from becomes that of the tokens which may follow: what is left is
 * drawn from it. */
wg_status wg_seq_rows_prune(const wg_seq *s, wg_tree *t, wg_rows *q, bool lossy, bool *keep, wg_error *err);
/* Adds forced tokens to a draft, and finds what may follow its nodes. */
wg_status wg_seq_rows_finish(const wg_engine *e, const wg_seq *s, wg_tree *t, wg_rows *q, wg_error *err);
/* The sampler of the sequence over the working memory of `memory`, one of the engine's. */
wg_sampler wg_seq_sampler(const wg_seq *s, const wg_sampler *memory);
/* Whether its rows may be computed when they are read; if so, the sampler that they borrow. */
wg_sampler *wg_seq_lazy_sampler(const wg_seq *s, wg_sampler *engines);
/* What the row behind a node depends on; allowed is valid until the next call. For drafters, about any path of a tree. */
wg_prefix wg_seq_prefix(const wg_seq *s, const wg_tree *t, int node);
/* The same about a node of the tree of the last wg_seq_rows_finish. By any thread. */
wg_prefix wg_seq_scored_prefix(const wg_seq *s, const wg_tree *t, int node);
/* After the sequence has appended a path of the tree: its log-probabilities, from rows tree->row + node of the logits. */
void wg_seq_rows_emitted(const wg_engine *e, wg_seq *s, const wg_tree *t);

#endif
