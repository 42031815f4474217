/* SPDX-License-Identifier: MIT
 * A suffix automaton (Blumer et al. 1985) over tokens, for one text or several, grown one token at a time in amortised constant
 * time: every substring of the texts is a path from the root, and all substrings that end at the same places share a state. A
 * state's strings are the suffixes of its longest one (`len` tokens) that are longer than its link's longest.
 *
 * With `depth` > 0 it also counts exactly how often each token followed each context of at most `depth` tokens, and keeps the
 * TOP most frequent followers of each context. Adding a token then takes at most `depth` table look-ups, one per state of its
 * context's link chain.
 *
 * Memory is fixed at open (about 170 bytes a token with counts, 110 without) and nothing is allocated later. */
#ifndef WG_DRAFT_LOOKUP_AUTOMATON_H
#define WG_DRAFT_LOOKUP_AUTOMATON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WG_AUTOMATON_TOP = 4 };

typedef struct wg_automaton_state {
    int32_t len, link; /* longest string, suffix link; 0 and -1 at the root */
    int32_t first;     /* first edge, -1: none */
    int32_t end;       /* the `at` of the token at which its strings first ended */
} wg_automaton_state;
typedef struct wg_automaton_edge {
    int32_t from, token, to, next; /* next: the next edge of the same state; -1: none */
    int32_t count;                 /* times that `token` followed the strings of `from` (of at most depth tokens) */
} wg_automaton_edge;
typedef struct wg_automaton_counts {
    int32_t out;                   /* sum of the counts of all edges */
    int32_t top[WG_AUTOMATON_TOP]; /* edges by descending count, then oldest first; -1: none */
} wg_automaton_counts;

typedef struct wg_automaton {
    int cap, depth, tokens;      /* capacity in tokens; context length of counts; tokens held */
    wg_automaton_state *state;   /* (2 cap + 1) state 0 is the root */
    wg_automaton_edge *edge;     /* (3 cap) */
    wg_automaton_counts *counts; /* (2 cap + 1) NULL without counting */
    uint32_t *slot;              /* (slots) hash table of edge + 1 by (from, token); 0: free */
    uint32_t slots;
    int states, edges;
    int last; /* state of the whole text so far; 0 at the start of a text */
    int near; /* state of its last min(len, depth) tokens, with counting */
} wg_automaton;

/* Allocates for `cap` tokens; depth 0: no counting. False, and nothing allocated, when memory is short. */
bool wg_automaton_open(wg_automaton *a, int cap, int depth);
void wg_automaton_close(wg_automaton *a); /* a zeroed or closed one is fine */
void wg_automaton_clear(wg_automaton *a); /* makes it as after open */
size_t wg_automaton_bytes(int cap, int depth);
int wg_automaton_cap(size_t bytes, int depth); /* most tokens whose automaton fits in so many bytes */

void wg_automaton_begin(wg_automaton *a);                          /* the next token starts another text */
bool wg_automaton_put(wg_automaton *a, int32_t token, int32_t at); /* false: full, nothing changed */

int wg_automaton_find(const wg_automaton *a, int state, int32_t token); /* an edge; -1: none */

/* Follows a token from a state with *len matched tokens: returns the state of, and sets *len to the length of, the longest
 * suffix of matched string and token that occurs in the texts. */
int wg_automaton_step(const wg_automaton *a, int state, int *len, int32_t token);

/* The state with the counts of the longest context, of at most `depth` tokens, that the strings of `state` end with. */
static inline int wg_automaton_near(const wg_automaton *a, int state)
{
    while (a->state[state].link >= 0 && a->state[a->state[state].link].len >= a->depth) state = a->state[state].link;
    return state;
}

#endif
