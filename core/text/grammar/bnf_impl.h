/* SPDX-License-Identifier: MIT
 * Shared by the files that build networks: nodes, and pieces of a network under construction. */
#ifndef WG_CORE_TEXT_GRAMMAR_BNF_IMPL_H
#define WG_CORE_TEXT_GRAMMAR_BNF_IMPL_H

#include "core/text/byte_strings.h"
#include "core/text/grammar/bnf.h"

/* A piece: its first node, and a node of op SPLIT whose `next` is what follows. Its nodes stand side by side and name no
 * others. */
typedef struct wg_piece {
    int32_t start, end;
} wg_piece;

typedef struct wg_bnf_builder {
    const char *name;
    const char *text, *at, *stop;
    wg_bnf_node *node;
    size_t room;
    int n;
    wg_byte_strings rule; /* names */
    int32_t *start;       /* of each; -1: not defined yet */
    size_t start_room;
    size_t *used; /* where each was first named */
    size_t used_room;
    wg_error *err;
    wg_status status; /* of the first failure; then nothing is added */
} wg_bnf_builder;

/* A new node; 0 when there is no room, and the status says so. */
int32_t wg_bnf_add(wg_bnf_builder *b, wg_bnf_op op, int lo, int hi, int32_t next, int32_t other);

/* One character of a set: n ranges of code points, ascending and apart. */
typedef struct wg_char_range {
    uint32_t lo, hi;
} wg_char_range;
wg_piece wg_bnf_chars(wg_bnf_builder *b, const wg_char_range *range, int n);

enum { WG_CHAR_RANGES = 256 }; /* of a set, at most */
/* Sorts and merges n ranges; with `not`, what is left of all characters. r has room for one more. Returns their number. */
int wg_char_ranges_tidy(wg_char_range *r, int n, bool not );

/* Marks tail calls and dead ends; refuses left recursion and a root without a text. */
wg_status wg_bnf_check(wg_bnf_builder *b, wg_bnf *out, wg_error *err);

#endif
