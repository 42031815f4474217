/* SPDX-License-Identifier: MIT
 * The length policy of a draft: the depth of the next draft, and where a draft stops (methods.md, Lengths). Drafters take them
 * through the options of WG_LENGTH_OPTIONS; the state of a policy is per sequence, by its slot.
 *
 * Whether position k is verified must not depend on x_k where a rule accepts with probabilities (methods.md, L3): each policy
 * declares what it reads, and one that reads drawn tokens is refused unless the rule only compares (match, greedy). */
#ifndef WG_DRAFT_LENGTH_LENGTH_H
#define WG_DRAFT_LENGTH_LENGTH_H

#include "core/engine/drafter.h"
#include "core/sched/cost_model.h"

typedef enum wg_sight {
    WG_SEES_PAST = 1,  /* acceptance of earlier drafts of the sequence */
    WG_SEES_Q = 2,     /* q at a node, before its children are drawn */
    WG_SEES_DRAWN = 4, /* the drawn token, before it is verified */
    WG_SEES_HEAD = 16, /* what a head estimates of a node's children from the tokens before them */
    WG_SEES_COST = 8,  /* costs of passes: under rules that draw, the text depends on the profile (core/engine/profile.h) */
} wg_sight;

typedef struct wg_length_options {
    int policy;
    double threshold, keep, aim, spread, draft_cost;
    char costs[WG_OPTION_STRING];
} wg_length_options;

enum {
    WG_LENGTH_FIXED,
    WG_LENGTH_CONFIDENCE,
    WG_LENGTH_ENTROPY,
    WG_LENGTH_ADAEDL,
    WG_LENGTH_COST,
    WG_LENGTH_DRAWN,
    WG_LENGTH_HEAD,
    WG_LENGTHS
};
extern const char *const wg_length_names[];

/* Rows for the option table of a drafter whose options struct T has a field `length_policy` of this type. */
/* clang-format off */
#define WG_LENGTH_ROW(T, field, type, def, max, doc) \
    { #field, doc, type, offsetof(T, length_policy) + offsetof(wg_length_options, field), def, (def) < 0 ? (def) : 0, max, "", \
      (type) == WG_OPT_ENUM ? wg_length_names : NULL }
#define WG_LENGTH_OPTIONS(T)                                                                                                   \
    WG_LENGTH_ROW(T, policy, WG_OPT_ENUM, 0, 0,                                                                                \
                  "length of drafts: fixed; confidence: stop where q's best token is below `threshold`; entropy: stop where "  \
                  "1 - sqrt(spread * H(q)) is (SVIP); adaedl: the same, with a threshold that follows the acceptance `aim`; "  \
                  "cost: best by costs of passes, whose text depends on the profile under rules that draw, such as "           \
                  "rejection; drawn: drop drawn tokens whose q is below `threshold` (rules match and greedy only); head: "     \
                  "stop where a DSpark head's own estimate of the path's acceptance is below `threshold`"),                    \
    WG_LENGTH_ROW(T, threshold, WG_OPT_FLOAT, 0.4, 1, "confidence, entropy, adaedl (where it starts), drawn and head"),        \
    WG_LENGTH_ROW(T, keep, WG_OPT_FLOAT, 0.9, 0.9999, "running averages: what they keep of themselves each step"),             \
    WG_LENGTH_ROW(T, aim, WG_OPT_FLOAT, 0.9, 1, "adaedl: the acceptance to hold"),                                             \
    WG_LENGTH_ROW(T, spread, WG_OPT_FLOAT, 0.2, 100, "entropy, adaedl: factor of the entropy"),                                \
    WG_LENGTH_ROW(T, draft_cost, WG_OPT_FLOAT, -1, 1000,                                                                       \
                  "cost: of one draft token, in passes of the target over one row; negative: the profile's"),                  \
    WG_LENGTH_ROW(T, costs, WG_OPT_STRING, 0, 0,                                                                               \
                  "cost: of target passes over 1, 2, ... rows, such as 1/1.02/1.1 (the last goes on); empty: profile's")
/* clang-format on */

extern const wg_option wg_length_option_rows[]; /* those rows, to recognise them in a drafter's table */

typedef struct wg_length_state {
    bool used;
    int planned, idle;         /* of the current draft; steps in a row without one */
    double bound, rate;        /* policies by q: where they stop; adaedl: its running acceptance */
    wg_cost_survival survival; /* cost */
} wg_length_state;

typedef struct wg_length wg_length;
typedef struct wg_length_class {
    unsigned sees;
    int (*plan)(const wg_length *l, wg_length_state *s); /* most tokens of the coming draft; NULL: max */
    bool (*stops)(const wg_length *l, const wg_length_state *s, double top, double entropy); /* q's best probability, entropy */
    bool (*drops)(const wg_length *l, const wg_length_state *s, int32_t token, double q);    /* the drawn token's q */
    bool (*halts)(const wg_length *l, const wg_length_state *s, double survival);            /* the head's estimate */
    void (*learn)(const wg_length *l, wg_length_state *s, int offered, int accepted);
} wg_length_class;
extern const wg_length_class wg_length_classes[WG_LENGTHS];

struct wg_length {
    const wg_length_class *class;
    wg_length_options opt;
    int max;                /* longest draft */
    wg_cost_prices price;   /* in passes of the target over one row; member 0 is the drafter */
    wg_length_state *state; /* (max_batch) */
    wg_length_log *log;     /* of what is planned by measured costs; NULL: none is kept */
};

/* max: the drafter's longest draft. gives: WG_SEES_Q where the drafter has a q, WG_SEES_HEAD where it has estimates.
 * draft: its own model, whose cost counts, or NULL. ECONFIG, ELAW; ENOMEM; those of env->profile, which has the costs that
 * the policy needs and the options lack: models must be attached before. */
wg_status wg_length_open(wg_length *l, const wg_length_options *o, const char *drafter, int max, unsigned gives, wg_lm *draft,
                         const wg_env *env, wg_error *err);
void wg_length_close(wg_length *l);

/* The largest length of the next draft of this sequence, 0 .. max. */
int wg_length_plan(wg_length *l, const wg_seq *seq);
/* Whether the draft stops before a draw from these n weights with this sum (NULL: one-hot). */
bool wg_length_stops(const wg_length *l, const wg_seq *seq, const double *weight, int n, double sum);
/* Whether the policy asks for the head's estimate that a path is accepted, and stops below a node whose children have it. */
static inline bool wg_length_asks(const wg_length *l) { return l->class->halts != NULL; }
static inline bool wg_length_halts(const wg_length *l, const wg_seq *seq, double survival)
{
    return l->class->halts(l, &l->state[seq->slot], survival);
}
/* Whether the policy drops the drawn token. */
static inline bool wg_length_drops(const wg_length *l, const wg_seq *seq, int32_t token, double q)
{
    return l->class->drops && l->class->drops(l, &l->state[seq->slot], token, q);
}
void wg_length_learn(wg_length *l, const wg_seq *seq, const wg_tree *tree, const wg_path *path);
void wg_length_forget(wg_length *l, const wg_seq *seq);

/* The state of a learning policy (wg_drafter_class.policy): its index in wg_length_names, the last planned draft, bound and
 * rate of wg_length_state, survival at depth 1 and its trials. Policies that learn nothing have none. */
int wg_length_report(const wg_length *l, const wg_seq *seq, double *out, int most);

#endif
