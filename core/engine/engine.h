/* SPDX-License-Identifier: MIT
 * The engine: one loop for every drafter, rule, batch and device. Plain decoding is the drafter `none`. */
#ifndef WG_CORE_ENGINE_ENGINE_H
#define WG_CORE_ENGINE_ENGINE_H

#include "core/engine/drafter.h"
#include "core/engine/verifier.h"

enum { WG_ENGINE_PAGE_SLOTS = 16, WG_ENGINE_PREFILL_ROWS = 256 };

typedef struct wg_engine_options {
    int max_batch;    /* sequences at a time, 1 .. 256 */
    int step_batch;   /* of them in one step, for which rows are allocated; 0: all */
    int max_tokens;   /* longest sequence, prompt included; 0: the target's context */
    int page_slots;   /* 0: WG_ENGINE_PAGE_SLOTS */
    int pages;        /* 0: enough for max_batch sequences of max_tokens */
    int prefill_rows; /* prompt tokens of one pass; 0: WG_ENGINE_PREFILL_ROWS. At most what a pass of the target takes */
    int ride_rows; /* prompt tokens that may ride with the trees of a step (wg_engine_step_with); 0: none. Likewise. A step then
                       * has up to step_batch x WG_TREE_MAX + ride_rows rows: in one pass if the target takes so many, else in
                       * several, each of whole sequences. Where hidden states are read it must be one */
    uint64_t seed;
    wg_sampling sampling;
    bool host_rows;         /* the caller reads p or the logits after a step: they are copied to the host from any device */
    bool measure_alpha;     /* sum min(p,q) and the optimum at every verified node (passes over the vocabulary) */
    bool audit;             /* test whether drafts are what the drafter says of them (core/dist/audit.h); likewise */
    wg_length_log *lengths; /* borrowed: where length policies with measured costs record their plans, or repeat those
                             * recorded (length_log.h); NULL: they only plan */
} wg_engine_options;

/* Seconds of the steps so far. `measure` is the time of measure_alpha and of the audit: it is part of no other phase, and not
 * of the time of the algorithm. */
typedef struct wg_phases {
    double draft, verify, accept, kv, prefill, measure;
} wg_phases;

/* The parts of an engine. All are borrowed and must outlive the engine, except the two option structs, which are copied. */
typedef struct wg_engine_parts {
    wg_lm *target;
    wg_pool *pool;
    const wg_ops *ops;
    const wg_tokenizer *tokenizer;
    wg_is_eog_fn *is_eog; /* which tokens end a text; NULL: those of the tokenizer, and without one none */
    const void *is_eog_user;
    const char *target_name;
    const wg_drafter_class *drafter;
    const void *drafter_options; /* its option fields (a struct laid out like the one at options_at), or NULL for defaults */
    const wg_verifier_class *verifier;
    const void *verifier_options;
    const wg_verifier_class *const *rules; /* NULL-terminated: the rules that a message may name as legal; may be NULL */
    const struct wg_plugins *plugins;      /* for composites (wg_env); may be NULL */
    struct wg_profile *profile;            /* prices of passes (profile.h); NULL: nominal ones */
} wg_engine_parts;

/* The fields are private to core/engine (engine_impl.h); programs use the functions below. */
typedef struct wg_engine wg_engine;

/* Opens an engine over a target, a drafter and a rule: allocates everything that a step needs. EINVAL: an option out of range.
 * ELAW: the rule cannot check a law that the drafter produces; the message names legal rules of parts->rules. ENOMEM names what
 * to lower. Also errors of the drafter's open. On failure *out is unchanged. */
wg_status wg_engine_open(wg_engine **out, const wg_engine_parts *parts, const wg_engine_options *opt, wg_error *err);
void wg_engine_close(wg_engine *e); /* NULL and half-open are fine; sequences must be closed */

/* The parts of an open engine. In the options defaults are filled in. */
wg_lm *wg_engine_target(const wg_engine *e);
wg_drafter *wg_engine_drafter(const wg_engine *e);
const wg_verifier_class *wg_engine_verifier(const wg_engine *e);
const wg_engine_options *wg_engine_options_of(const wg_engine *e);
wg_kv *wg_engine_kv(const wg_engine *e);
const wg_env *wg_engine_env(const wg_engine *e);    /* the drafter's environment */
struct wg_tap_feeds *wg_engine_feeds(wg_engine *e); /* for readers beside the drafter (tap_feed.h) */

/* Whether the target's device runs the rule of a step, where a step fits; and whether it decodes several rounds of a call of
 * wg_engine_rounds without the host. */
bool wg_engine_verifies_on_device(const wg_engine *e);
bool wg_engine_decodes_on_device(const wg_engine *e);

/* From now on as if opened with these options. Only where the device does not verify: there the rows of p are on the host. */
void wg_engine_measure(wg_engine *e, bool alpha, bool audit);

/* Times since it was opened, or since they were cleared. */
const wg_phases *wg_engine_phases(const wg_engine *e);
void wg_engine_phases_clear(wg_engine *e);

/* Drafts refused since it was opened because a drafted token had no probability in its row of q: evidence about the drafter. A
 * step that fails leaves its sequences as they were, so it is counted here. */
long wg_engine_massless(const wg_engine *e);

/* The last step, valid until the next one: its trees in the order of its sequences, their rows p (row tree->row + node; n == 0:
 * the rows stayed on a device) and q, and the logits (as wg_env.logits). */
typedef struct wg_last_step {
    const wg_tree *tree;
    wg_rows *p, *q;
    const float *logits;
    wg_workspace *work; /* to read the rows with (core/dist/workspace.h) */
} wg_last_step;
wg_last_step wg_engine_last_step(wg_engine *e);

/* The drafter drops its state of this sequence, as when it is closed. Call it after changing the text by hand. */
void wg_engine_forget(wg_engine *e, const wg_seq *s);
/* Drops cached tokens from `len` on (wg_kv_truncate), and their hidden states. Before the text behind them is changed. */
void wg_seq_truncate(wg_engine *e, wg_seq *s, int len);

/* A sequence for a prompt of n >= 1 tokens (ids checked against the vocabulary). `request` addresses its randomness. It
 * finishes after max_new tokens or at the end of the context. ECONTEXT when the prompt alone does not fit; EFULL when no place
 * is free. */
wg_status wg_seq_open(wg_engine *e, wg_seq **out, uint32_t request, const int32_t *prompt, int n, int max_new, wg_error *err);
void wg_seq_close(wg_engine *e, wg_seq *s);

/* Continues a conversation: appends n >= 1 tokens (the next question) to a finished sequence, which then runs again as above.
 * Caches and drafters keep their state, so only the last token and the new ones are fed; text and draws are those of a sequence
 * opened with all the tokens as its prompt. Counts begin again. EINVAL also when it is running; ECONTEXT when the tokens do not
 * fit into the context. On failure nothing has changed. */
wg_status wg_seq_extend(wg_engine *e, wg_seq *s, const int32_t *token, int n, int max_new, wg_error *err);

/* Puts all prompt tokens but the last into the cache, in chunks. Called by the first step when needed; separately for TTFT. */
wg_status wg_engine_prefill(wg_engine *e, wg_seq *s, wg_error *err);

/* One step for n different running sequences: draft, score, verify, commit (Leviathan et al. 2023, Algorithm 1, on trees). All
 * that can fail happens before the first commit; after a failure every sequence is as it was (a prompt whose prefill was done
 * stays in the cache). EINVAL: n out of range, a sequence twice or finished, or a tree the drafter may not make. */
wg_status wg_engine_step(wg_engine *e, wg_seq *const *seq, int n, wg_error *err);

/* A chunk of a prompt: n of its tokens from wg_kv_len on, at most to its last but one. */
typedef struct wg_chunk {
    wg_seq *seq;
    int n;
    bool logits; /* asks for the logits after each of them */
    int row;     /* out, with `logits`: the first of these rows in wg_last_step.logits, which the next pass overwrites */
} wg_chunk;

/* A pass over one chunk alone, of at most prefill_rows tokens. After a failure the sequence is as it was. */
wg_status wg_engine_chunk(wg_engine *e, wg_chunk *c, wg_error *err);

/* wg_engine_step with chunks of other sequences in its pass, at most ride_rows tokens in all, which are in the cache then. n
 * may be 0. EUNSUPPORTED with chunks unless wg_engine_carries: where hidden states are read (reading them may fail, and after a
 * pass nothing may), or the device verifies. */
bool wg_engine_carries(const wg_engine *e);
wg_status wg_engine_step_with(wg_engine *e, wg_seq *const *seq, int n, wg_chunk *chunk, int chunks, wg_error *err);

/* The cache of a sequence that has none yet, or was truncated to 0, becomes the first `len` slots of `from`, whose pages it
 * shares (fewer where readers of hidden states need some of them); pages are taken when it writes. Hidden states of these slots
 * count as read: see wg_seq_shareable. The slots hold the sequence's first tokens. ENOMEM. */
wg_status wg_seq_share(wg_engine *e, wg_seq *s, wg_kv_seq *from, int len, wg_error *err);
/* So many of the slots in a sequence's cache another sequence with the same tokens can share: fewer than wg_kv_len where
 * readers of hidden states have not read the last ones. */
int wg_seq_shareable(const wg_engine *e, const wg_seq *s);
/* Takes the cache out of a sequence that ends: the caller's (wg_kv_seq_close, before the engine is closed). The sequence keeps
 * its tokens, and can only be closed. */
wg_kv_seq *wg_seq_take_cache(wg_engine *e, wg_seq *s);

/* A drafter beside another engine, which scores and verifies (core/engine/propose.c). propose: a draft for one running
 * sequence, as the tree and q of wg_engine_last_step; nothing is scored. observe: the n tokens that its text has been given
 * since, drafted ones included. A call for another sequence drops the draft. EUNSUPPORTED: the drafter reads rows, logits or
 * hidden states of the target, which there are none of. EINVAL: a token outside the vocabulary. ECONTEXT: the tokens do not
 * fit. On failure nothing has changed (of an engine with `pages` 0). Not for sequences that have been stepped. */
wg_status wg_engine_proposes(const wg_engine *e, wg_error *err); /* EUNSUPPORTED or WG_OK, before there is a sequence */
wg_status wg_engine_propose(wg_engine *e, wg_seq *s, wg_error *err);
wg_status wg_engine_observe(wg_engine *e, wg_seq *s, const int32_t *token, int n, wg_error *err);

/* Up to `rounds` steps of those of n different sequences that are running. on_round (may be NULL) is called after each step of
 * a sequence, with the verified tree: for all running sequences, in their order, before it is called for the next step. Where
 * the device supports it (device_decode.h) it runs several steps at a time, with the same text and counts. Ends early when no
 * sequence is running, and after a round in which on_round returned false. on_round may read the sequence and the tree only;
 * the cache is updated later. After a failure the steps that on_round was called for have been made, and every sequence is in
 * the state after its last such step. */
typedef bool wg_round_fn(void *user, const wg_seq *s, const wg_tree *verified);
wg_status wg_engine_rounds(wg_engine *e, wg_seq *const *seq, int n, int rounds, wg_round_fn *on_round, void *user,
                           wg_error *err);

#endif
