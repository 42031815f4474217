/* SPDX-License-Identifier: MIT
 * A recorded round of another engine's speculative decoding: drafts, rows of p and q, accepted tokens. docs/audit.md has the
 * file format. */
#ifndef WG_LAB_AUDIT_AUDIT_ROUND_H
#define WG_LAB_AUDIT_AUDIT_ROUND_H

#include "core/dist/rows.h"
#include "core/dist/tree.h"

/* The contents of a record, which bound what can be decided from it. */
typedef enum wg_evidence {
    WG_EVIDENCE_COUNTERS, /* numbers of rounds and tokens */
    WG_EVIDENCE_TOKENS,   /* the emitted tokens and, optionally, those of plain decoding at temperature 0 */
    WG_EVIDENCE_TEXT,     /* the emitted tokens and the target's row before each of them; no drafts */
    WG_EVIDENCE_DRAFTS,   /* drafts and rows of q, without the target's rows */
    WG_EVIDENCE_ROUND,    /* drafts, rows of q of drawn ones, rows of p, decisions */
    WG_EVIDENCE_KINDS
} wg_evidence;

/* In the tree, row is 0, nodes of a drawn law have a qrow, and the root's token is -1, since no record has it. A round of
 * WG_EVIDENCE_TEXT is a chain of its tokens but the last, without rows of q, and its path is the whole chain. */
typedef struct wg_audit_round {
    wg_evidence evidence;
    wg_tree tree;
    wg_path path;
    wg_rows *p, *q;  /* (borrowed) p: row i follows node i, support unknown. q: one row for each drawn group of siblings */
    int bonus_row;   /* row of q after the last node of a chain; -1: not recorded */
    wg_rows *raw;    /* (borrowed) p before penalties and grammar masks, as p; NULL: not recorded */
    bool final;      /* the text ended here: path and next may be cut, so next may be an accepted draft token */
    bool dense;      /* rows have the vocabulary's tokens; else those that the round lists, and one for the others */
    double rounding; /* total variation of each row from the engine's, due to the number format */
    double p_error[WG_TREE_MAX], q_error[WG_TREE_MAX]; /* further error: unlisted mass, declared errors */
} wg_audit_round;

#endif
