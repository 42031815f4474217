/* SPDX-License-Identifier: MIT
 * Grammars over bytes, in the notation GBNF of llama.cpp, compiled to a recursive transition network: a graph per rule whose
 * edges are ranges of bytes, choices, and calls of rules.
 *
 *     root   ::= "{" ws pair ("," ws pair)* "}"     # rules by name; the text of a rule ends with its line,
 *     pair   ::= ["] [a-z]+ ["] ":" [^\x00-\x1f]    # but inside ( ) and beside | it may go on
 *     ws     ::= [ \t\n]{0,8} | ""                  # * + ? {m} {m,} {m,n}; "." is any character
 *
 * Escapes in "..." and [...]: \n \r \t \\ \" \[ \] \- \^ and, by number, \xHH \uHHHH \UHHHHHHHH. Characters are those of
 * UTF-8; an escape \xHH is the character of that number. Rule names: letters, digits, - and _. Left recursion is refused,
 * and so is a grammar that no text has; rules without a finite text are left out of the choices that name them. */
#ifndef WG_CORE_TEXT_GRAMMAR_BNF_H
#define WG_CORE_TEXT_GRAMMAR_BNF_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum {
    WG_BNF_TEXT = 1 << 20,  /* bytes of a grammar */
    WG_BNF_NODES = 1 << 17, /* of its network, repetitions written out */
    WG_BNF_RULES = 1 << 13,
    WG_BNF_NESTING = 64, /* parentheses inside each other */
};

typedef enum wg_bnf_op {
    WG_BNF_BYTE,  /* a byte lo .. hi, then next */
    WG_BNF_SPLIT, /* next or other (-1: next alone) */
    WG_BNF_CALL,  /* rule `other`, then next */
    WG_BNF_TAIL,  /* rule `other`, whose end is this rule's end */
    WG_BNF_END,   /* of the rule */
    WG_BNF_DEAD   /* no text gets past it */
} wg_bnf_op;

typedef struct wg_bnf_node {
    uint8_t op, lo, hi;
    int32_t next, other;
} wg_bnf_node;

typedef struct wg_bnf {
    wg_bnf_node *node;
    int n, rules;
    int32_t *start; /* (rules) the first node of each */
    int root;       /* the number of the rule `root` */
} wg_bnf;

/* `name` stands for the grammar in messages, as NAME:LINE:COLUMN. EFORMAT: what is wrong there. EUNSUPPORTED: left
 * recursion, by the names of its rules. EINVAL: a limit is exceeded. ENOMEM. */
wg_status wg_bnf_open(wg_bnf **out, const char *name, const char *text, size_t n, wg_error *err);
void wg_bnf_close(wg_bnf *b); /* NULL is fine */

#endif
