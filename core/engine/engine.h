/* SPDX-License-Identifier: MIT
 * The engine: one loop for every drafter, rule, batch and device. Plain decoding is the drafter `none`. */
#ifndef WG_CORE_ENGINE_ENGINE_H
#define WG_CORE_ENGINE_ENGINE_H

#include "core/engine/drafter.h"
#include "core/engine/verifier.h"

enum { WG_ENGINE_PAGE_SLOTS = 16, WG_ENGINE_PREFILL_ROWS = 256 };

typedef struct wg_engine_options {
    int max_batch;    /* most open sequences, 1 .. 256 */
    int step_batch;   /* most sequences of one step, for which rows are allocated; 0: max_batch */
    int max_tokens;   /* longest sequence, prompt included; 0: the target's context */
    int page_slots;   /* 0: WG_ENGINE_PAGE_SLOTS */
    int pages;        /* 0: enough for max_batch sequences of max_tokens */
    int prefill_rows; /* prompt tokens of one pass; 0: WG_ENGINE_PREFILL_ROWS. Bounded by the target's passes */
    /* Prompt tokens that may ride with the trees of a step (wg_engine_step_with); 0: none. A step then has up to step_batch x
     * WG_TREE_MAX + ride_rows rows: in one pass if the target takes so many, else in several of whole sequences. Readers of
     * hidden states require one pass. */
    int ride_rows;
    uint64_t seed;
    wg_sampling sampling;
    bool host_rows;         /* the caller reads p or the logits after a step, so a device copies them to the host */
    bool measure_alpha;     /* measure sum min(p,q) and its optimum at every verified node (costs passes over the vocabulary) */
    bool audit;             /* test whether drafts have their declared law (core/dist/audit.h); costs the same */
    wg_length_log *lengths; /* borrowed: length policies with measured costs record their plans here, or repeat recorded ones
                             * (length_log.h); NULL: neither */
} wg_engine_options;

/* Seconds of the steps so far. `measure` is the time of measure_alpha and of the audit; it belongs to no other phase, nor to
 * the algorithm. */
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

/* Whether the target's device runs the rule of steps that fit; and whether it decodes several rounds of wg_engine_rounds
 * without the host. */
bool wg_engine_verifies_on_device(const wg_engine *e);
bool wg_engine_decodes_on_device(const wg_engine *e);

/* Changes the options measure_alpha and audit. It requires rows of p on the host: the device must not verify. */
void wg_engine_measure(wg_engine *e, bool alpha, bool audit);

/* Times since the engine was opened or the phases were cleared. */
const wg_phases *wg_engine_phases(const wg_engine *e);
void wg_engine_phases_clear(wg_engine *e);

/* Drafts refused since the engine was opened because a drafted token had no probability in its row of q. The engine counts
 * them, since the failed step leaves its sequences unchanged. */
long wg_engine_massless(const wg_engine *e);

/* The last step, valid until the next one: its trees in the order of its sequences, their rows p (row tree->row + node; n == 0:
 * the rows stayed on a device) and q, and the logits (as wg_env.logits). */
typedef struct wg_last_step {
    const wg_tree *tree;
    wg_rows *p, *q;
    const float *logits;
    wg_workspace *work; /* workspace for reading the rows (core/dist/workspace.h) */
} wg_last_step;
wg_last_step wg_engine_last_step(wg_engine *e);

/* Makes the drafter drop its state of this sequence. It is to be called after a change of the text by hand. */
void wg_engine_forget(wg_engine *e, const wg_seq *s);
/* Drops cached tokens from `len` on (wg_kv_truncate) and their hidden states. It is to be called before the text from there on
 * is changed. */
void wg_seq_truncate(wg_engine *e, wg_seq *s, int len);

/* Opens a sequence for a prompt of n >= 1 tokens (ids are checked against the vocabulary). `request` addresses its randomness.
 * It finishes after max_new tokens or at the end of the context. ECONTEXT: the prompt alone does not fit. EFULL: no place is
 * free. */
wg_status wg_seq_open(wg_engine *e, wg_seq **out, uint32_t request, const int32_t *prompt, int n, int max_new, wg_error *err);
void wg_seq_close(wg_engine *e, wg_seq *s);

/* Continues a conversation: appends n >= 1 tokens (the next question) to a finished sequence, which then runs again as above.
 * Caches and drafters keep their state, so only the last token and the new ones are fed; text and draws are those of a sequence
 * opened with all the tokens as its prompt. Counts begin again. EINVAL also when it is running; ECONTEXT when the tokens do not
 * fit into the context. On failure nothing has changed. */
wg_status wg_seq_extend(wg_engine *e, wg_seq *s, const int32_t *token, int n, int max_new, wg_error *err);

/* Puts all prompt tokens but the last into the cache, in chunks. The first step does it when needed; callers do it separately
 * to measure TTFT. */
wg_status wg_engine_prefill(wg_engine *e, wg_seq *s, wg_error *err);

/* One step for n different running sequences: draft, score, verify, commit (Leviathan et al. 2023, Algorithm 1, on trees). All
 * that can fail happens before the first commit; after a failure every sequence is as it was (a prompt whose prefill was done
 * stays in the cache). EINVAL: n out of range, a sequence twice or finished, or a tree the drafter may not make. */
wg_status wg_engine_step(wg_engine *e, wg_seq *const *seq, int n, wg_error *err);

/* A chunk of a prompt: n of its tokens from wg_kv_len on, the last one excluded. */
typedef struct wg_chunk {
    wg_seq *seq;
    int n;
    bool logits; /* compute the logits after each of them */
    int row;     /* out, with `logits`: the first of these rows in wg_last_step.logits, which the next pass overwrites */
} wg_chunk;

/* Runs a pass over one chunk alone, of at most prefill_rows tokens. After a failure the sequence is unchanged. */
wg_status wg_engine_chunk(wg_engine *e, wg_chunk *c, wg_error *err);

/* wg_engine_step with chunks of other sequences in its pass, at most ride_rows tokens in all. n may be 0. EUNSUPPORTED: there
 * are chunks, but not wg_engine_carries: hidden states are read (which may fail, as nothing may after a pass), or the device
 * verifies. */
bool wg_engine_carries(const wg_engine *e);
wg_status wg_engine_step_with(wg_engine *e, wg_seq *const *seq, int n, wg_chunk *chunk, int chunks, wg_error *err);

/* Gives a sequence with an empty cache the first `len` slots of `from`, which must hold the sequence's first tokens; fewer
 * where readers of hidden states need some. Their pages are shared and copied on write. Hidden states of these slots count as
 * read (wg_seq_shareable). ENOMEM. */
wg_status wg_seq_share(wg_engine *e, wg_seq *s, wg_kv_seq *from, int len, wg_error *err);
/* The number of slots in a sequence's cache that another sequence with the same tokens can share; less than wg_kv_len where
 * readers of hidden states have not read the last ones. */
int wg_seq_shareable(const wg_engine *e, const wg_seq *s);
/* Takes the cache out of a sequence that ends; the caller owns it (wg_kv_seq_close, before the engine is closed). The sequence
 * keeps its tokens and can only be closed. */
wg_kv_seq *wg_seq_take_cache(wg_engine *e, wg_seq *s);

/* Use of the drafter alone, while another engine scores and verifies (core/engine/propose.c). propose drafts for one running
 * sequence; tree and q are those of wg_engine_last_step. observe appends the n tokens that the other engine emitted, accepted
 * drafts included. A call for another sequence drops the draft. EUNSUPPORTED: the drafter reads the target's rows, logits or
 * hidden states, which are absent. EINVAL: a token outside the vocabulary. ECONTEXT: the tokens do not fit. On failure nothing
 * has changed (in an engine with `pages` 0). The sequences must never have been stepped. */
wg_status wg_engine_proposes(const wg_engine *e, wg_error *err); /* EUNSUPPORTED: it cannot be used alone */
wg_status wg_engine_propose(wg_engine *e, wg_seq *s, wg_error *err);
wg_status wg_engine_observe(wg_engine *e, wg_seq *s, const int32_t *token, int n, wg_error *err);

/* Runs up to `rounds` steps of those of n different sequences that are running. After each step, on_round (may be NULL) is
 * called for every running sequence, in order, with the verified tree; it may read only sequence and tree, since the cache is
 * updated later. A device that supports it (device_decode.h) runs several steps at a time, with the same text and counts. It
 * ends early when no sequence is running, or after a round in which on_round returned false. After a failure, every sequence is
 * in the state after the last step for which on_round was called. */
typedef bool wg_round_fn(void *user, const wg_seq *s, const wg_tree *verified);
wg_status wg_engine_rounds(wg_engine *e, wg_seq *const *seq, int n, int rounds, wg_round_fn *on_round, void *user,
                           wg_error *err);

#endif
