/* SPDX-License-Identifier: MIT
 * The exact law of the text that an engine emits: every random decision of one sequence, the drafter's draws included, is
 * enumerated (core/dist/chance.h), and the probability of each run is added to that of its text. In a batch of two the other
 * sequence draws as in production, under a fixed seed. */
#ifndef WG_VERIFY_PROOF_TEXT_LAW_H
#define WG_VERIFY_PROOF_TEXT_LAW_H

#include "core/engine/seq_rows.h"

/* A tree of texts and their prefixes; text 0 is the empty one. */
typedef struct wg_text_law {
    int32_t token;
    int child, next;  /* first child, next sibling; 0: none */
    double want, got; /* probabilities of whole texts */
} wg_text_law;

typedef struct wg_text_laws {
    wg_text_law *text;
    int n, cap;
} wg_text_laws;
wg_status wg_text_laws_open(wg_text_laws *l, int cap, wg_error *err);
void wg_text_laws_close(wg_text_laws *l);
static inline void wg_text_laws_clear(wg_text_laws *l)
{
    l->n = 1;
    l->text[0] = (wg_text_law){ 0 };
}
/* The text that continues text `at` by a token, added if it is new; -1: no room. */
int wg_text_child(wg_text_laws *l, int at, int32_t token);
double wg_text_laws_deviation(const wg_text_laws *l); /* largest |got - want|; NaN where one is */

enum { WG_LAW_REQUEST = 7, WG_LAW_OTHER = 8, WG_LAW_LENGTH = 8 };

/* The sequence that is enumerated, and sums over runs. */
typedef struct wg_engine_law {
    const int32_t *prompt;
    int n, length;                   /* tokens of the prompt, and of a text (at most WG_LAW_LENGTH) */
    uint64_t other;                  /* seed of the other sequence's draws; 0: there is none */
    bool after;                      /* the enumerated sequence stands behind the other in the batch */
    const wg_seq_sampling *sampling; /* rows of the enumerated sequence; NULL: the engine's */
    long runs, drafted, accepted;
    double passes;                       /* expected passes of the target */
    unsigned heights[WG_LAW_LENGTH + 1]; /* by the room of a step: bit h is set if a draft had height h */
} wg_engine_law;

/* Decodes the prompt once under the outcomes of `tree`; *text: the emitted text, which has the probability of the tree's
 * outcomes. EFULL: no room for the text. Other errors are the engine's; the sequences are closed then, too. */
wg_status wg_engine_law_once(wg_engine_law *x, wg_engine *e, wg_chance_tree *tree, wg_text_laws *l, int *text, wg_error *err);

#endif
