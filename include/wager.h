/* SPDX-License-Identifier: MIT
 * libwager: speculative decoding as a library. C99 and C++, no other header of the project.
 *
 * Tiers, each usable without the one before it:
 *   1. wg_generate: a text from a model file, in one call;
 *   2. sessions: a target, a drafter and a rule, opened from the keys of an experiment (docs/embed.md), and sequences that
 *      are read round by round: streams, conversations, batches, statistics;
 *   3. parts: verification of a tree by rows of p and q, proofs of rules, a drafter alone, the engine around a target of the
 *      caller's, and traces of any engine's rounds;
 *   4. serving: a scheduler that runs many requests at once.
 *
 * Errors. A function that can fail returns a wg_status and fills *err (which may be NULL): the code and the text that the
 * program prints. On failure nothing has changed, and an output pointer is untouched.
 *
 * Threads. A session and its sequences are used by one thread at a time; sessions do not know each other, and any number may
 * run at the same time. Functions without a session may run on any thread. The library keeps no state of its own, installs
 * no signal handler, and neither prints nor exits: only a bug of the library itself (a broken invariant) prints its place and
 * aborts. It reads one environment variable: WG_CPU, the instruction set; opening a session refuses another value.
 *
 * ABI. Structs that cross the border begin with their size (set it to sizeof) and grow at their end only; everything else is
 * opaque. Functions are never changed or removed; those that came after the first WG_ABI say so. The symbols are versioned. */
#ifndef WAGER_H
#define WAGER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#define WG_API __attribute__((visibility("default")))
#else
#define WG_API
#endif

/* The number of this interface; the same as wg_abi() of a library that this header fits. */
#define WG_ABI 3

/* wg_abi: the WG_ABI of the library. wg_version: its version, as printed by wager --version. Any thread. */
WG_API int wg_abi(void);
WG_API const char *wg_version(void);

/* ---- errors -------------------------------------------------------------------------------------------------------- */

#ifndef WG_CORE_BASE_ERROR_H /* inside the library these are its own */
/* Codes are never renumbered. A library newer than this header may return others. */
typedef enum wg_status {
    WG_OK = 0,
    WG_EINVAL = 1001,       /* invalid argument */
    WG_ENOMEM = 1002,       /* out of memory */
    WG_EIO = 1003,          /* input/output error, or failure of a callback */
    WG_ENOENT = 1004,       /* no such file */
    WG_EFORMAT = 1005,      /* malformed file */
    WG_EUNSUPPORTED = 1006, /* not supported */
    WG_ECONFIG = 1007,      /* invalid configuration */
    WG_EMODEL = 1008,       /* unusable model */
    WG_EVOCAB = 1009,       /* vocabularies differ */
    WG_ELAW = 1010,         /* verifier cannot check this kind of draft */
    WG_EFULL = 1011,        /* no free KV page */
    WG_ECONTEXT = 1012,     /* context length exceeded */
    WG_EREPLAY = 1013,      /* a second pass differs from the timed one */
    WG_EINTERRUPTED = 1014  /* interrupted */
} wg_status;

enum { WG_ERROR_TEXT = 2048 };

/* Lives on the caller's stack; on success it is left untouched. text: what, where, expected, how to fix; UTF-8, no newline at
 * its end. */
typedef struct wg_error {
    wg_status code;
    char text[WG_ERROR_TEXT];
} wg_error;
#endif

/* Frees a text that the library has allocated. NULL is fine. Any thread. */
WG_API void wg_text_free(char *text);

/* ---- tier 1: one call ---------------------------------------------------------------------------------------------- */

/* Continues `prompt`. model: the target's weights file, or NULL if the config names one. config: a JSON object with the keys of
 * wg_session_open, or NULL for plain decoding with the defaults. *text: the continuation without the prompt, NUL- terminated,
 * freed by wg_text_free. Any thread. */
WG_API wg_status wg_generate(const char *model, const char *prompt, const char *config, char **text, wg_error *err);

/* ---- tier 2: sessions ---------------------------------------------------------------------------------------------- */

typedef struct wg_session wg_session;   /* one thread at a time */
typedef struct wg_sequence wg_sequence; /* belongs to its session, and to its session's thread */

/* Opens a target, a drafter and a rule. config: a JSON object with the keys of an experiment (wager list options): the
 * sections target, draft, verify and sampling; seed, max_tokens and batch; and of `prompts` chat, system and date. Keys that
 * only a measurement has are refused. Paths are relative to the working directory. Errors: ECONFIG with all problems and
 * their places ("config:3:14: ..."; where a member "//from" has a value's path, what it came from: {"draft": "--draft sufix"}),
 * ENOENT where all of them are files that are not there; those of opening the files; ENOMEM. */
WG_API wg_status wg_session_open(wg_session **out, const char *config, wg_error *err);
WG_API void wg_session_close(wg_session *s); /* also closes its sequences; NULL is fine */

/* Facts of a session. lossless: its text has the law of plain decoding (of p, for a target of the caller's). law_only: the rows
 * come from outside, so equal bits are not promised. */
typedef struct wg_session_about {
    size_t size;
    int vocab, context, batch;  /* tokens; tokens of a sequence; sequences of a round */
    int lossless, law_only;     /* 0 or 1 */
    const char *drafter, *rule; /* names; live as long as the session, as these: */
    const char *profile;        /* prices of passes used for decisions on drafts (docs/drafters.md): a digest, "nominal", or
                                * "" */
    const char *profile_notes;  /* lines on its measurements at opening and on the place where it is kept, or "" */
} wg_session_about;
WG_API wg_status wg_session_about_get(const wg_session *s, wg_session_about *out, wg_error *err);

/* Seconds of all rounds so far, by phase. */
typedef struct wg_seconds {
    size_t size;
    double draft, verify, accept, kv, prefill;
} wg_seconds;
WG_API wg_status wg_session_seconds(const wg_session *s, wg_seconds *out, wg_error *err);

/* Options of a sequence. Without options, request is the number of sequences opened before, and max_tokens the config's. */
typedef struct wg_sequence_options {
    size_t size;
    uint32_t request; /* addresses the randomness: one seed and request give one text, in any batch */
    int max_tokens;   /* new tokens; 0: the config's */
} wg_sequence_options;

/* Opens a sequence for a text of `bytes` bytes, or for tokens. Texts of control tokens become these tokens; under the config's
 * chat template the text is a question, and they stay text. EFULL: the session's `batch` sequences are open. */
WG_API wg_status wg_sequence_open(wg_session *s, wg_sequence **out, const char *text, size_t bytes,
                                  const wg_sequence_options *opt, wg_error *err);
WG_API wg_status wg_sequence_open_tokens(wg_session *s, wg_sequence **out, const int32_t *token, int n,
                                         const wg_sequence_options *opt, wg_error *err);
WG_API void wg_sequence_close(wg_sequence *q); /* NULL is fine */

/* Continues a conversation when the answer has ended: the next question (with a chat template around it), or tokens. Nothing
 * is read again. max_tokens: of the next answer; 0: as before. */
WG_API wg_status wg_sequence_extend(wg_sequence *q, const char *text, size_t bytes, int max_tokens, wg_error *err);
WG_API wg_status wg_sequence_extend_tokens(wg_sequence *q, const int32_t *token, int n, int max_tokens, wg_error *err);

typedef enum wg_end {
    WG_END_NOT = 0,       /* the text goes on */
    WG_END_EOS = 1,       /* the model ended the text */
    WG_END_LENGTH = 2,    /* max_tokens, or the end of the context */
    WG_END_STOP = 3,      /* ABI 3, of requests: one of its stop tokens */
    WG_END_CANCELLED = 4, /* by the caller */
    WG_END_DEADLINE = 5   /* its deadline passed */
} wg_end;

/* The result of the last round. Pointers are valid until the next call with this sequence. */
typedef struct wg_round {
    size_t size;
    const char *text; /* complete UTF-8 characters, NUL-terminated; "" without a tokenizer */
    size_t bytes;
    const int32_t *token;   /* (n) */
    const uint8_t *drafted; /* (n) 1: an accepted draft token */
    int n, nodes;           /* nodes: draft tokens that were verified */
    wg_end end;
} wg_round;

/* One round: draft, verify, accept. On a sequence that has ended: n is 0 and `end` says why. */
WG_API wg_status wg_sequence_next(wg_sequence *q, wg_round *out, wg_error *err);

/* One round of several sequences of a session in one pass of the target; ended sequences are left out. wg_sequence_last reads
 * each result. */
WG_API wg_status wg_session_round(wg_session *s, wg_sequence *const *q, int n, wg_error *err);
WG_API wg_status wg_sequence_last(wg_sequence *q, wg_round *out, wg_error *err);

/* Counts of the current answer. emitted / passes is tau. */
typedef struct wg_stats {
    size_t size;
    int64_t prompt, emitted;           /* tokens before the answer; tokens of the answer */
    int64_t passes, drafted, accepted; /* target passes; verified and accepted draft tokens */
    int lossless;                      /* as in wg_session_about */
} wg_stats;
WG_API wg_status wg_sequence_stats(const wg_sequence *q, wg_stats *out, wg_error *err);

/* ---- tier 3: parts ------------------------------------------------------------------------------------------------- */

/* A draft tree. Node 0 is the last token of the text; a parent precedes its children; a chain is a tree of width 1. */
typedef struct wg_draft {
    size_t size;
    int n;                 /* nodes, node 0 included */
    const int32_t *token;  /* (n) */
    const int32_t *parent; /* (n) parent[0] is -1 */
    const int32_t *qrow;   /* (n) the row of q that a node was drawn from; -1: none. NULL: none has one */
    int q_rows;            /* rows of q */
    const char *law;       /* how siblings were drawn: "fixed", "iid", "without_replacement" or "coupled" */
    double score;          /* ABI 2: tokens that the drafter expects to be accepted; 0: unknown */
    int chain;             /* ABI 3: of wg_sequence_propose and _advance: 1 where parent[i] and qrow[i] are i - 1, or qrow -1 */
} wg_draft;

/* How a tree is verified. Rows are distributions after the sampler chain; a row sums to 1. Rules that weigh siblings jointly
 * take the number of a node's children as declared before the children were drawn. */
typedef struct wg_verification {
    size_t size;
    const char *rule; /* "rejection", "typical:epsilon=0.3" (wager list rules) */
    int vocab;
    const double *p;            /* (draft.n, vocab) the target's distribution after each node */
    const double *q;            /* (draft.q_rows, vocab); may be NULL where draft.q_rows is 0 */
    uint64_t seed;              /* the address of the random decisions, with the two below */
    uint32_t request, position; /* position: that of the first token that is emitted */
    const double *uniform;      /* (uniforms) in [0, 1), used in order instead of the seed; NULL: draws by address */
    int uniforms;
} wg_verification;

typedef struct wg_outcome {
    size_t size;
    int n;         /* accepted nodes, node 0 included */
    int32_t *node; /* (draft.n) the caller's: the accepted nodes, from node 0 down */
    int32_t next;  /* the token after them: corrected, or the bonus */
    int used;      /* number of used uniforms */
} wg_outcome;

/* Verifies one tree. EINVAL: an invalid tree or row; a drafted token that its row of q gives no probability; too few uniforms.
 * ELAW: the rule does not check such drafts. EUNSUPPORTED: uniforms for a rule that races. Any thread. */
WG_API wg_status wg_verify_tree(const wg_draft *draft, const wg_verification *how, wg_outcome *out, wg_error *err);

/* A rule of the caller's, to be proved. All its random decisions go through `choice`. */
typedef struct wg_choice wg_choice;
typedef struct wg_rule_callback {
    size_t size;
    const char *name;
    const char *law; /* law of the siblings that it checks */
    int chains;      /* 1: it takes chains only */
    /* p: (draft->n, vocab), q: (draft->q_rows, vocab). Writes the accepted nodes, node 0 first, to node (draft->n) and the
     * token after them to *next; returns the number of nodes. It must return the same for the same choices. Returning 0 or an
     * invalid path ends the proof with EINVAL. */
    int (*accept)(void *user, const wg_draft *draft, int vocab, const double *p, const double *q, const wg_choice *choice,
                  int32_t *node, int32_t *next);
    void *user;
} wg_rule_callback;

/* 1 with probability min(1, num / den): whether node `node` is accepted. Once per node. */
WG_API int wg_choice_accept(const wg_choice *c, int node, double num, double den);
/* A token with probability weight[i] / sum, weight: (n), for the token after `accepted` accepted nodes (node 0 not counted). */
WG_API int wg_choice_token(const wg_choice *c, int accepted, const double *weight, int n);

typedef struct wg_proof_options {
    size_t size;
    int vocab, depth, children; /* tokens of the language; of the trees: levels, and children of a node */
    int steps;                  /* consecutive rounds; 0: 1 */
    const char *law;            /* of the siblings; NULL: "iid" */
    int cases;                  /* random pairs of p and q */
    uint64_t seed;
} wg_proof_options;

typedef struct wg_proof {
    size_t size;
    double deviation;  /* largest |probability of a text - the target's|: rounding (1e-12) for a lossless rule */
    double tau, alpha; /* mean tokens of a round; probability that a child of the root is kept */
    double alpha_star; /* the largest such probability of any lossless rule */
    int64_t runs;      /* visited combinations of outcomes */
    int64_t reused;    /* random decisions made twice: must be 0 */
    int cases;
    int lossless; /* 1: the deviation is at most 1e-12 and reused is 0 */
} wg_proof;

/* Enumerates every outcome of a rule and its drafts and compares the law of the text with the target's. rule: as in
 * wg_verification, or the callback's. *counterexample (may be NULL): NULL, or for a rule that is not lossless the smallest
 * counterexample found, in words (wg_text_free). Any thread. */
WG_API wg_status wg_rule_prove(const char *rule, const wg_proof_options *opt, wg_proof *out, char **counterexample,
                               wg_error *err);
WG_API wg_status wg_rule_prove_callback(const wg_rule_callback *rule, const wg_proof_options *opt, wg_proof *out,
                                        char **counterexample, wg_error *err);

/* A target of the caller's. One call scores rows of one or more sequences. */
typedef struct wg_score_rows {
    size_t size;
    int sequence;          /* 0 .. batch - 1: the sequence's place, which a later sequence may take */
    const int32_t *prefix; /* (prefix_n) the tokens before the rows, from the first one on */
    int prefix_n;
    int n;                 /* rows */
    const int32_t *token;  /* (n) */
    const int32_t *parent; /* (n) the row before it, or -1: the prefix ends before it. Parents precede children */
    float *const *logits;  /* (n) destinations (vocab) of the logits after each row; NULL: not requested */
} wg_score_rows;

typedef struct wg_scorer {
    size_t size;
    const char *name; /* for messages */
    int vocab, context;
    /* Scores the rows of n sequences. 0: done. Other values: failed, with a reason in message (room bytes); the round then
     * fails with EIO and every sequence is as it was. Called on the session's thread. */
    int (*score)(void *user, const wg_score_rows *rows, int n, char *message, size_t room);
    int (*is_end)(void *user, int32_t token); /* nonzero: the token ends a text; NULL: none does */
    void *user;
} wg_scorer;

/* A session around the caller's target. config: as above without the section target; or NULL. Sequences are opened with
 * tokens, and rounds have no text. The scorer is copied; what it points to must outlive the session. */
WG_API wg_status wg_session_open_scorer(wg_session **out, const wg_scorer *target, const char *config, wg_error *err);

/* A drafter alone: a session without a target, for vocab tokens and sequences of up to `context`. config: as above; verify
 * names the rule that will check the drafts. Drafters that need the target's rows or weights are refused by name. Sequences
 * are opened with tokens; wg_sequence_close makes the drafter forget one. */
WG_API wg_status wg_session_open_drafter(wg_session **out, int vocab, int context, const char *config, wg_error *err);

/* The draft after the sequence's last token. Pointers are valid until the next call with this session. */
WG_API wg_status wg_sequence_propose(wg_sequence *q, wg_draft *out, wg_error *err);
/* Row `row` of q of the last draft: (vocab). */
WG_API wg_status wg_sequence_q(wg_sequence *q, int row, double *out, wg_error *err);
/* Appends the tokens that the text got since, accepted drafts included; the drafter learns from them. ECONTEXT: they do not
 * fit. */
WG_API wg_status wg_sequence_observe(wg_sequence *q, const int32_t *token, int n, wg_error *err);
/* Both in one call, for an engine's round: observes n tokens (0: none), then proposes. Observed tokens stay observed if
 * proposing fails. ABI 2. */
WG_API wg_status wg_sequence_advance(wg_sequence *q, const int32_t *token, int n, wg_draft *out, wg_error *err);
/* As wg_sequence_close, for a complete text: drafters that learn across texts learn it. (A text that is merely closed counts as
 * aborted.) NULL is fine. ABI 2. */
WG_API void wg_sequence_finish(wg_sequence *q);

/* ---- traces (docs/traces.md), ABI 2 -------------------------------------------------------------------------------- */

/* A request of a trace: a prompt and its continuation. */
typedef struct wg_recorded_request {
    size_t size;
    const int32_t *token; /* (n) the prompt; of a recording also the output */
    int n, prompt_tokens; /* a recorder reads n alone, and prompt_tokens stays 0 */
    int limit;            /* most tokens, prompt included; more than the prompt has */
    uint32_t address;     /* address of its randomness: wg_verification.request */
    int prompt, repeat;   /* numbers: of the prompt among all, of the repetition */
    int vocab, cell;      /* of a recording: its vocabulary, and the cell of the header that it belongs to */
    int rounds, ended;    /* of a recording: number of rounds; whether its end was written */
} wg_recorded_request;

/* A round of a trace: a step of one request. */
typedef struct wg_recorded_round {
    size_t size;
    int request;           /* its number in the file, from 0 */
    const wg_draft *draft; /* node 0 is the last token of the request's text */
    int n;                 /* accepted nodes, node 0 included */
    const int32_t *node;   /* (n) from node 0 down */
    int32_t next;          /* the token after them */
    const double *p, *q;   /* (draft->n, vocab), (draft->q_rows, vocab); of a recording NULL: wg_recording_rows */
    int batch;             /* sequences of the step; 0: 1 */
    double seconds, draft_seconds, verify_seconds, accept_seconds, kv_seconds; /* this request's share; 0: not measured */
    int step, position; /* of a recording: its number in the request; the position of the first token that it emitted */
    wg_end end;         /* of a recording: whether the text ended with it */
} wg_recorded_round;

typedef struct wg_recorder wg_recorder;   /* one thread at a time */
typedef struct wg_recording wg_recording; /* one thread at a time */

typedef struct wg_recorder_options {
    size_t size;
    int vocab;          /* tokens, 1 .. 1048576 */
    const int32_t *eog; /* (eogs) the tokens that end a text */
    int eogs;
    const char *config; /* a JSON object: with an experiment's keys name, seed, verify and sampling, which a replay needs;
                         * and `draft`, any value that names the drafter. NULL: {} */
    const char *engine; /* the program that made the rounds, for the header; may be NULL */
    const char *rows;   /* "exact", "f16" or "top": cut (docs/traces.md); NULL: exact */
    int top;            /* most probable tokens of a cut row; 0: 64 */
} wg_recorder_options;

/* Starts the trace `path`; a file of that name is replaced. The rounds of any engine are recorded: `wager replay` verifies them
 * again, by the recorded rule with the same decisions where the engine took them by wg_verify_tree with the config's seed, the
 * request's address and the round's position. Errors: ECONFIG, EINVAL, EIO, ENOMEM. */
WG_API wg_status wg_recorder_open(wg_recorder **out, const char *path, const wg_recorder_options *opt, wg_error *err);
/* Begins a request; its rounds refer to it by *number. Requests may be interleaved. */
WG_API wg_status wg_recorder_request(wg_recorder *r, const wg_recorded_request *q, int *number, wg_error *err);
/* Adds the round *o. The path is cut behind the first token that ends the text, and at the limit. *emitted: the number of
 * tokens left, `next` included; *end: the reason (both may be NULL). A row sums to 1 within 1e-6. EINVAL: an invalid tree, path
 * or row, a root that is not the text's last token, a token that its row of q cannot draw, a request that has ended; then
 * nothing is written. EIO. */
WG_API wg_status wg_recorder_round(wg_recorder *r, const wg_recorded_round *o, int *emitted, wg_end *end, wg_error *err);
/* Ends a request; `wager replay` also uses rounds of requests without an end. */
WG_API wg_status wg_recorder_end(wg_recorder *r, int request, wg_error *err);
/* NULL is fine. EIO: the last bytes could not be written. The recorder is freed in any case. */
WG_API wg_status wg_recorder_close(wg_recorder *r, wg_error *err);

/* A trace, of `wager run` or of a recorder. Errors: EFORMAT: not a trace; ENOENT, EIO, ENOMEM, EUNSUPPORTED. */
WG_API wg_status wg_recording_open(wg_recording **out, const char *path, wg_error *err);
WG_API void wg_recording_close(wg_recording *r); /* NULL is fine */

typedef struct wg_recording_about {
    size_t size;
    int requests, rounds;
    const char *header; /* JSON text, valid as long as the recording */
    const char *damage; /* "", or why only a part of the file can be used; valid as long */
} wg_recording_about;
WG_API wg_status wg_recording_about_get(const wg_recording *r, wg_recording_about *out, wg_error *err);
/* Pointers are valid as long as the recording. */
WG_API wg_status wg_recording_request(const wg_recording *r, int i, wg_recorded_request *out, wg_error *err);
/* Round i of all, in the file's order. Pointers are valid until the next call with this recording. */
WG_API wg_status wg_recording_round(wg_recording *r, int i, wg_recorded_round *out, wg_error *err);
/* The rows of round i, p: (draft->n, vocab), q: (draft->q_rows, vocab), each may be NULL; *error (may be NULL): the largest
 * total variation between them and the true rows (0 unless the trace has compact rows). */
WG_API wg_status wg_recording_rows(wg_recording *r, int i, double *p, double *q, double *error, wg_error *err);

/* ---- serving, ABI 3 ------------------------------------------------------------------------------------------------- */

/* Many requests over one target, one drafter and one rule (docs/scheduler.md). A request's tokens depend on its own prompt,
 * seed and number, not on other requests, the load, the mode, preemption, the prefix cache or cancellation: under the rules
 * that repeat plain decoding (greedy, match, coupled) always; under rules that draw, where the drafter does not learn across
 * requests, `speculation` is WG_SPECULATION_FIXED and pages do not run out.
 *
 * Threads. One thread at a time calls wg_scheduler_step, and the events of that step are called from it. All other functions of
 * a scheduler may be called from any thread, from inside an event too; wg_scheduler_close when no other thread uses it. */
typedef struct wg_scheduler wg_scheduler;

typedef enum wg_batching {
    WG_BATCHING_CONTINUOUS = 0, /* requests enter between steps, as places get free */
    WG_BATCHING_DYNAMIC = 1,    /* a batch runs to its end; the next begins when it is full or its first request has waited
                                 * `window` */
    WG_BATCHING_STATIC = 2      /* a batch runs to its end; the next has the requests that wait then, up to `batch` */
} wg_batching;

typedef enum wg_speculation {
    WG_SPECULATION_FIXED = 0,   /* the config's drafter decides */
    WG_SPECULATION_OFF = 1,     /* plain decoding */
    WG_SPECULATION_ADAPTIVE = 2 /* each step's rows are allotted by acceptance and the cost of a pass */
} wg_speculation;

/* 0 in their place: the default. */
typedef struct wg_scheduler_options {
    size_t size;
    wg_batching mode;
    int batch; /* requests that run at once; 0: the config's `batch` */
    int queue; /* most requests that wait; 0: 256 */
    int pages; /* of the cache (wg_scheduler_stats.page_tokens each); 0: enough for `batch` texts as long as the context */
    int prefill_rows; /* prompt tokens that one step reads, of all requests together; 0: 256 */
    int logprobs;     /* 1: log probabilities can be asked for where the target's device verifies too; logits are copied */
    int prefix_cache; /* 1: keeps the pages of texts that have ended, while no other text needs them */
    int aging;        /* steps of waiting that raise a request's priority by one; 0: 256 */
    wg_speculation speculation;
    double window;   /* seconds; of WG_BATCHING_DYNAMIC; 0: 0.01 */
    double cost[64]; /* of WG_SPECULATION_ADAPTIVE: seconds, or any unit, of a pass of the target over 1, 2, ... rows, the last
                      * one given (> 0) for all larger ones; none given: by the profile, then by its steps */
    double draft_cost; /* of a draft token, in the same unit; 0: by the profile, too */
} wg_scheduler_options;

/* config: as of wg_session_open, whose errors it has. EINVAL: an option out of range. EUNSUPPORTED: a prefix cache for a target
 * that is another engine's. */
WG_API wg_status wg_scheduler_open(wg_scheduler **out, const char *config, const wg_scheduler_options *opt, wg_error *err);
/* Ends all requests (WG_END_CANCELLED; their events are called). NULL is fine. */
WG_API void wg_scheduler_close(wg_scheduler *s);

/* The sampler chain, as the section `sampling` of a config. 0 is no default: set all members. */
typedef struct wg_sampler_options {
    size_t size;
    double temperature, top_p, min_p;
    int top_k, penalty_window;
    double repetition_penalty, frequency_penalty, presence_penalty;
} wg_sampler_options;

typedef struct wg_token_bias {
    int32_t token;
    float bias; /* added to its logit */
} wg_token_bias;

typedef struct wg_event wg_event;

/* The constraint of a request's text (docs/constrained.md): a grammar in GBNF, JSON that is valid under a JSON schema, or any
 * JSON object (text NULL). One grammar may serve many requests of its scheduler, one after the other and at the same time; a
 * text that has been opened before is not compiled again. Open and close: any thread; close it, once for each open, when its
 * requests have ended, before the scheduler. EFORMAT, EUNSUPPORTED, EINVAL: the text, with the place. ENOMEM. */
typedef struct wg_grammar wg_grammar;
typedef enum wg_grammar_kind { WG_GRAMMAR_GBNF = 0, WG_GRAMMAR_SCHEMA = 1, WG_GRAMMAR_JSON = 2 } wg_grammar_kind;
WG_API wg_status wg_grammar_open(wg_grammar **out, wg_scheduler *s, wg_grammar_kind kind, const char *text, size_t bytes,
                                 wg_error *err);
WG_API void wg_grammar_close(wg_grammar *g); /* NULL is fine */

/* A member that is 0 or NULL has its default. Everything is copied except `grammar`, which must outlive the request. */
typedef struct wg_request {
    size_t size;
    const int32_t *token; /* (n) the prompt: 1 token or more */
    int n;
    int max_tokens;      /* new tokens; 0: the config's */
    uint64_t seed;       /* seed of its draws, together with `number` */
    uint32_t number;     /* tells answers to one prompt under one seed apart. Where drafts depend on other requests (adaptive
                      * lengths, drafters that learn) and the rule draws, the request's id takes its place */
    int ignore_end;      /* 1: tokens that end a text do not end it */
    const int32_t *stop; /* (stops) further tokens that end its text */
    int stops;
    int priority;                       /* higher ones run first */
    double deadline;                    /* seconds from now after which it ends with the tokens that it has; 0: none */
    const wg_sampler_options *sampling; /* NULL: the config's */
    const wg_token_bias *bias;          /* (biases) one a token, added to logits before penalties and the chain */
    int biases;
    wg_grammar *grammar;
    int logprobs;   /* 1: events have log probabilities, under the target's logits at temperature 1 without truncation */
    int top;        /* with logprobs: how many of the most probable tokens are listed, 0 .. 32 */
    int echo;       /* 1: WG_EVENT_STARTED has the tokens of the prompt, and with logprobs their log probabilities */
    int no_draft;   /* 1: plain decoding */
    int draft_most; /* largest depth of drafts in tokens; 0: the drafter decides */
    void *user;
    void (*on_event)(void *user, const wg_event *event); /* may be NULL */
} wg_request;

/* Puts a request into the queue; *id (may be NULL) is its name, never 0 and never used again. Its events: WG_EVENT_STARTED,
 * WG_EVENT_ROUND for every step, and WG_EVENT_ENDED or WG_EVENT_FAILED, exactly once and last. EFULL: `queue` requests wait.
 * EINTERRUPTED: the scheduler is draining. ECONTEXT: the prompt does not fit the context, or the cache. EINVAL, EUNSUPPORTED,
 * ENOMEM. On failure nothing has happened. */
WG_API wg_status wg_scheduler_submit(wg_scheduler *s, const wg_request *request, uint64_t *id, wg_error *err);

/* The request ends in the next step (WG_END_CANCELLED), and its pages return then. ENOENT: no such request, or it has ended. */
WG_API wg_status wg_scheduler_cancel(wg_scheduler *s, uint64_t id, wg_error *err);

typedef enum wg_event_kind {
    WG_EVENT_STARTED = 1, /* its prompt has been read */
    WG_EVENT_ROUND = 2,   /* a round has emitted tokens */
    WG_EVENT_ENDED = 3,   /* `end` says why */
    WG_EVENT_FAILED = 4   /* status and message say why; other requests go on */
} wg_event_kind;

/* Pointers are valid during the call. Times are seconds since the submission. */
struct wg_event {
    size_t size;
    uint64_t id;
    wg_event_kind kind;
    wg_end end;             /* set in ENDED and in the last ROUND */
    const int32_t *token;   /* (n) ROUND: the new tokens; STARTED with echo: the prompt */
    const uint8_t *drafted; /* (n) 1: an accepted draft token */
    int n;
    int nodes;                 /* draft tokens that this round verified */
    const double *logprob;     /* (n) NULL without logprobs; 0, without a meaning, for the prompt's first token */
    const int32_t *top_token;  /* (n, top) the most probable first; -1 where there are fewer */
    const double *top_logprob; /* (n, top) */
    int top;
    int prompt_tokens, cached_tokens;                         /* of the request; cached: those that the prefix cache held */
    int64_t emitted, passes, drafted_tokens, accepted_tokens; /* of the request so far */
    int preemptions;                                          /* how often its pages were taken away */
    double now, admitted, started, first_token;               /* times; admitted: it left the queue. 0: has not happened */
    wg_status status;
    const char *message;
};

/* Ends requests that were cancelled or whose deadline has passed, admits waiting ones, runs one step of all that run, and
 * calls their events. *running (may be NULL): number of requests that have not ended; 0: nothing to do until the next
 * submission. A request that makes a step fail ends with WG_EVENT_FAILED; the others go on. The call fails only for NULL. */
WG_API wg_status wg_scheduler_step(wg_scheduler *s, int *running, wg_error *err);

/* Sleeps until there is work for a step, at most `seconds`. Returns 1 when there is, else 0. */
WG_API int wg_scheduler_wait(wg_scheduler *s, double seconds);

/* Refuses new requests from now on; steps run the others to their ends. */
WG_API void wg_scheduler_drain(wg_scheduler *s);

/* Counts since the scheduler was opened; the members up to `draining` are current values. */
typedef struct wg_scheduler_stats {
    size_t size;
    int waiting, running, reading, preempted; /* reading: running requests whose prompt is not read completely */
    int pages, pages_free, pages_cached;      /* cached: pages that only the prefix cache holds, which count as used */
    int page_tokens, draining;
    int64_t submitted, refused, ended, failed, cancelled, expired; /* ended: requests that ended without failing */
    int64_t steps, preemptions, evictions;                         /* evictions: texts that the prefix cache dropped */
    int64_t prompt_tokens, cached_tokens, read_tokens;  /* read: by passes; after a preemption a prompt is read again */
    int64_t lookups, hits;                              /* of the prefix cache */
    int64_t emitted, passes, drafts, drafted, accepted; /* passes: summed over requests, so a step of 8 requests counts 8 */
    int64_t undrafted_off, undrafted_policy, undrafted_other; /* passes without a draft: off; adaptive limit 0; none found */
    int64_t offered_at[64], accepted_at[64]; /* [d]: drafts with at least d + 1 levels; drafts accepted to level d + 1 */
    double draft_seconds, verify_seconds, accept_seconds, kv_seconds, prefill_seconds, step_seconds;
} wg_scheduler_stats;
WG_API wg_status wg_scheduler_stats_get(wg_scheduler *s, wg_scheduler_stats *out, wg_error *err);

/* What the scheduler serves. Texts live as long as the scheduler. */
typedef struct wg_scheduler_about {
    size_t size;
    int vocab, context, batch, queue;               /* batch, queue: as in the options, filled in */
    int lossless, law_only;                         /* as in wg_session_about */
    int max_tokens;                                 /* the config's */
    int bos, eos;                                   /* tokens; -1: none */
    int chat;                                       /* 1: wg_scheduler_chat has a template */
    const char *drafter, *rule, *model, *tokenizer; /* model: the target's path; tokenizer: its kind */
    const char *profile, *profile_notes;            /* as in wg_session_about */
} wg_scheduler_about;
WG_API wg_status wg_scheduler_about_get(const wg_scheduler *s, wg_scheduler_about *out, wg_error *err);

/* ---- its texts */

/* A text as tokens; *token is freed by wg_tokens_free. special: texts of control tokens become these tokens; add: the tokens
 * that the model wants before and after a text are added. */
WG_API wg_status wg_scheduler_tokenize(const wg_scheduler *s, const char *text, size_t bytes, int special, int add,
                                       int32_t **token, int *n, wg_error *err);
WG_API void wg_tokens_free(int32_t *token); /* NULL is fine */
/* Tokens as a text, NUL-terminated, freed by wg_text_free. special: control tokens are written as their texts, otherwise
 * left out. EINVAL: a number is no token. */
WG_API wg_status wg_scheduler_detokenize(const wg_scheduler *s, const int32_t *token, int n, int special, char **text,
                                         size_t *bytes, wg_error *err);
/* The prompt of a conversation, as text and as tokens (each may be NULL), up to where the answer begins. conversation: a
 * JSON object with `messages` ([{"role":, "content":}, ...]), and for the model's own template whatever else it reads (tools
 * ...). The template is the config's `prompts.chat`, else the model's own. The role `developer` becomes `system` where the
 * template does not know it. EINVAL: no such conversation, or the template leaves a message out. EUNSUPPORTED: there is no
 * template. EMODEL: the template fails. */
WG_API wg_status wg_scheduler_chat(const wg_scheduler *s, const char *conversation, char **text, int32_t **token, int *n,
                                   wg_error *err);

/* Turns tokens into a text piece by piece. One thread at a time. */
typedef struct wg_detokenizer wg_detokenizer;
WG_API wg_status wg_detokenizer_open(wg_detokenizer **out, const wg_scheduler *s, wg_error *err);
WG_API void wg_detokenizer_close(wg_detokenizer *d); /* NULL is fine */
/* The text of n more tokens, in complete UTF-8 characters; an incomplete one is held back until its end comes, or until the end
 * of the text (n == 0). Valid until the next call. EINVAL: no such token; then nothing has changed. ENOMEM. */
WG_API wg_status wg_detokenizer_put(wg_detokenizer *d, const int32_t *token, int n, const char **text, size_t *bytes,
                                    wg_error *err);

#ifdef __cplusplus
}
#endif
#endif
