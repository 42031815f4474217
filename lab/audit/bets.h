/* SPDX-License-Identifier: MIT
 * Bets against a lossless rule (test supermartingales). A bet names an alternative: the law that an outcome would have under a
 * defect. With n the law under the hypothesis and a the alternative's, both fixed before the outcome x, the capital is
 * multiplied by 1 + share (a(x) / n(x) - 1), whose mean is 1 at most, whatever happened before. So the mean of the capitals of
 * all bets is an e-process: the probability that it ever reaches 1000 under the hypothesis, whenever one looks, is at most
 * 1/1000 (Ville 1939; Shafer 2021; Ramdas, Grunwald, Vovk and Shafer 2023). All bets, shares and weights are fixed in advance.
 *
 * Rows with errors. Where the recorded law may be wrong by a total variation e, a ratio is cut at c = 1e-4 / e (at least 4) and
 * the factor divided by 1 + share c e, its largest mean. So the record's errors can only lower a capital.
 *
 * The evidence for a defect is the mean over its bets and shares; the total evidence is the mean over the defects. */
#ifndef WG_LAB_AUDIT_BETS_H
#define WG_LAB_AUDIT_BETS_H

#include "lab/audit/audit_round.h"

/* clang-format off */
#define WG_DEFECTS(X) \
    X(DRAWS, "draws", "drafted tokens were not drawn from the recorded rows of q") \
    X(ACCEPTANCE, "acceptance", "drafts are accepted with other probabilities than the rule's") \
    X(RESIDUAL, "residual", "the token after a rejection is not drawn from the rule's residual") \
    X(BONUS, "bonus", "the token after full acceptance is not drawn from p") \
    X(NOISE, "noise", "draft, acceptance and recovery share random numbers") \
    X(STALE, "stale", "decisions follow rows of p of another position or round") \
    X(TEMPERATURE, "temperature", "decisions follow p at another temperature") \
    X(PENALTY, "penalty", "tokens drafted in the round are not penalised as p says") \
    X(SUPPORT, "support", "tokens that p excludes (grammar, top-k, top-p) are accepted or emitted") \
    X(LAW, "law", "drafts that were not drawn are verified as drawn ones") \
    X(RULE, "rule", "decisions are those of another rule than the recorded one, which may be lossless too") \
    X(TEXT, "text", "emitted tokens do not have the law of p")

/* Bets and their defects. */
#define WG_BETS(X) \
    X(DRAW_SQUARE, DRAWS, "drawn from q^2") \
    X(DRAW_ROOT, DRAWS, "drawn from sqrt(q)") \
    X(DRAW_BEST, DRAWS, "the most probable token of q") \
    X(DRAW_TARGET, DRAWS, "drawn from p") \
    X(DRAW_OUTSIDE, DRAWS, "drawn evenly from the vocabulary, one of five") \
    X(DRAW_STALE, DRAWS, "drawn from the row of q before") \
    X(DRAW_DISTINCT, DRAWS, "siblings drawn without replacement") \
    X(DRAW_AGAIN, DRAWS, "siblings drawn with replacement") \
    X(DRAW_RANK, DRAWS, "ranks in q, learned") \
    X(KEEP_ALL, ACCEPTANCE, "every draft is accepted") \
    X(KEEP_MORE, ACCEPTANCE, "accepted a quarter more often") \
    X(KEEP_DOUBLE, ACCEPTANCE, "accepted twice as often") \
    X(KEEP_FEWER, ACCEPTANCE, "accepted a fifth less often") \
    X(KEEP_HALF, ACCEPTANCE, "accepted half as often") \
    X(KEEP_BEST, ACCEPTANCE, "accepted where it is the most probable token of p") \
    X(KEEP_TARGET, ACCEPTANCE, "accepted with probability p") \
    X(KEEP_INVERSE, ACCEPTANCE, "accepted with probability min(1, q/p)") \
    X(KEEP_FLAT, ACCEPTANCE, "tests and residual use sqrt(q)") \
    X(KEEP_SHARP, ACCEPTANCE, "tests and residual use q^2") \
    X(KEEP_BINS, ACCEPTANCE, "acceptance in ten bins of its probability, learned") \
    X(KEEP_WHOLE, ACCEPTANCE, "siblings are tested by q that keeps those before") \
    X(REST_TARGET, RESIDUAL, "drawn from p after a rejection") \
    X(REST_WITHOUT, RESIDUAL, "drawn from p without the rejected tokens") \
    X(REST_DRAFT, RESIDUAL, "drawn from q after a rejection") \
    X(REST_REVERSED, RESIDUAL, "drawn from (q - p)+ after a rejection") \
    X(REST_BEST, RESIDUAL, "the most probable token of p after a rejection") \
    X(REST_DOUBLE, RESIDUAL, "drawn from (p - 2q)+ after a rejection") \
    X(REST_AGAIN, RESIDUAL, "drawn from the residual of the residual") \
    X(REST_STILL, RESIDUAL, "siblings are tested by p, which is never replaced by its residual") \
    X(REST_RANK, RESIDUAL, "ranks in the residual, learned") \
    X(BONUS_DRAFT, BONUS, "drawn from the row of q behind the draft") \
    X(BONUS_LAST, BONUS, "drawn from the last row of q") \
    X(BONUS_REST, BONUS, "drawn from the residual of the last row of q") \
    X(BONUS_BEFORE, BONUS, "drawn from the row of p before") \
    X(BONUS_BEST, BONUS, "the most probable token of p") \
    X(BONUS_RANK, BONUS, "ranks in p, learned") \
    X(NOISE_RACE, NOISE, "recovery by the exponential times that drew the draft") \
    X(NOISE_DRAFT, NOISE, "recovery by the uniform that drew the draft") \
    X(NOISE_TEST, NOISE, "recovery by the uniform of the test") \
    X(NOISE_ACCEPT, NOISE, "the test by the uniform that drew the draft") \
    X(STALE_BEFORE, STALE, "p of the position before") \
    X(STALE_AFTER, STALE, "p of the position behind") \
    X(STALE_ROUND, STALE, "p of the round before") \
    X(SHARP, TEMPERATURE, "p^2, normalised") \
    X(SHARPER, TEMPERATURE, "p^1.25, normalised") \
    X(FLAT, TEMPERATURE, "sqrt(p), normalised") \
    X(FLATTER, TEMPERATURE, "p^0.8, normalised") \
    X(PENALTY_LESS, PENALTY, "the round's own tokens twice as probable") \
    X(PENALTY_MORE, PENALTY, "the round's own tokens half as probable") \
    X(PENALTY_RAW, PENALTY, "the rows before penalties, tokens with mass in p") \
    X(SUPPORT_OUTSIDE, SUPPORT, "a fifth of the mass outside the support of p") \
    X(SUPPORT_BONUS, SUPPORT, "a third of the mass outside the support of p after full acceptance") \
    X(SUPPORT_DRAFT, SUPPORT, "the mass of q where p has none") \
    X(SUPPORT_RAW, SUPPORT, "the rows before masks") \
    X(LAW_DRAWN, LAW, "fixed drafts verified as drawn from q") \
    X(RULE_REJECTION, RULE, "decisions of the rule rejection") \
    X(RULE_MATCH, RULE, "decisions of the rule match") \
    X(RULE_BLOCK, RULE, "decisions of the rule block") \
    X(TEXT_DRAFT, TEXT, "half of q in the emitted tokens") \
    X(TEXT_RANK, TEXT, "ranks in p, learned")
/* clang-format on */

typedef enum wg_defect {
#define X(name, word, doc) WG_DEFECT_##name,
    WG_DEFECTS(X)
#undef X
        WG_DEFECT_KINDS
} wg_defect;

typedef enum wg_bet {
#define X(name, defect, doc) WG_BET_##name,
    WG_BETS(X)
#undef X
        WG_BET_KINDS
} wg_bet;

typedef struct wg_bet_about {
    wg_defect defect;
    const char *doc;
} wg_bet_about;
extern const wg_bet_about wg_bet_table[WG_BET_KINDS];
const char *wg_defect_name(wg_defect d);
const char *wg_defect_doc(wg_defect d);

enum { WG_BET_SHARES = 4, WG_BET_BINS = 10 };

/* Learned shares of ten bins, of ranks or of acceptance probabilities. */
typedef struct wg_bet_bins {
    double n[WG_BET_BINS], hits[WG_BET_BINS], expected[WG_BET_BINS];
} wg_bet_bins;

typedef struct wg_bets {
    double capital[WG_BET_KINDS][WG_BET_SHARES]; /* natural logarithms */
    long made[WG_BET_KINDS];
    wg_bet_bins ranks[WG_BET_KINDS], kept;
    double *other; /* (room) scratch: an alternative law */
    int room;
} wg_bets;

wg_status wg_bets_room(wg_bets *b, int vocab, wg_error *err);
void wg_bets_close(wg_bets *b);

/* Bets on an outcome that has probability a under the alternative and n under the hypothesis, whose law is wrong by a total
 * variation of at most `error`. A NaN in a makes no bet. */
void wg_bet_on(wg_bets *b, wg_bet bet, double a, double n, double error);

/* Bets on the rank of token x among the tokens of the law row[vocab] (sum 1) by probability, with the shares of ranks seen
 * before. */
void wg_bet_rank(wg_bets *b, wg_bet bet, const double *row, int vocab, int32_t x, double error);

/* wg_power_row: row^power, normalised; wg_power_law: the probability of x under it; wg_excess_law: under (a - b)+, normalised
 * (NaN: no mass). */
void wg_power_row(const double *row, double *out, int vocab, double power);
double wg_power_law(const double *row, int vocab, double power, int32_t x);
double wg_excess_law(const double *a, const double *b, int vocab, int32_t x);

/* The bet with the largest capital; *lead: log10 of its capital over that of the best bet on another defect, *other. */
wg_bet wg_best_bet(const wg_bets *b, double *lead, wg_bet *other);

/* log10 of the e-value of a defect, and of all together. wg_log_mean: log of the mean of exp(log[i]). */
double wg_defect_log10(const wg_bets *b, wg_defect d);
double wg_bets_log10(const wg_bets *b);
double wg_log_mean(const double *log, int n);

/* ---- the bets, a file each; each is made after its round and uses nothing later */

/* Bets on whether drafts were drawn from q. */
void wg_bets_draws(wg_bets *b, const wg_audit_round *r);

/* The law of a round's decisions, node by node along its path (rule_law.h). */
typedef struct wg_step {
    int node, to;       /* to: the next node of the path; -1: it stopped */
    double child, stop; /* given the node: probability of going on to `to`, and of stopping */
    int merged;         /* in a final round: the child whose acceptance looks like this stop (`child` is its probability);
                         * else -1 */
} wg_step;
typedef struct wg_decisions {
    int n;
    wg_step step[WG_TREE_MAX];
    double *next; /* (vocab) law of next, given that the path stops here */
    bool known;
} wg_decisions;

/* The probability of the recorded outcome at a step of a path. */
static inline double wg_step_probability(const wg_step *s, double child, double stop, double next)
{
    return s->to >= 0 ? child : stop * next + (s->merged >= 0 ? child : 0);
}

/* The error of the law of decisions at a node, as total variation. */
double wg_step_error(const wg_audit_round *r, int node, bool looks_ahead);

/* Bets on acceptance, given the draft. */
void wg_bets_acceptance(wg_bets *b, const wg_audit_round *r, const wg_decisions *d, bool looks_ahead);
/* Bets on the token after the path. */
void wg_bets_next(wg_bets *b, const wg_audit_round *r, const wg_decisions *d, bool looks_ahead);
/* Bets on a mistake in rounds of siblings without replacement: acceptance and the token after. */
void wg_bets_siblings(wg_bets *b, const wg_audit_round *r, const wg_decisions *d, bool looks_ahead);
/* Bets on the rule over other rows, which gives decisions `a` instead of d. */
void wg_bets_rows(wg_bets *b, wg_bet bet, const wg_audit_round *r, const wg_decisions *d, const wg_decisions *a,
                  bool looks_ahead);
/* Writes the alternative's rows of p into out; false: it does not apply to this round. before: p of the previous round; NULL:
 * none. */
bool wg_bets_other_rows(wg_bet bet, const wg_audit_round *r, wg_rows *before, wg_rows *out);

/* Bets on the emitted tokens alone, which have the law of p under every lossless rule. other: room for rows like p. */
void wg_bets_text(wg_bets *b, const wg_audit_round *r, wg_rows *before, wg_rows *other);

#endif
