/* SPDX-License-Identifier: MIT
 * A round of another engine's speculative decoding as it was recorded: what was drafted, the rows of p and q, what was
 * accepted. docs/audit.md has the file format. */
#ifndef WG_LAB_AUDIT_AUDIT_ROUND_H
#define WG_LAB_AUDIT_AUDIT_ROUND_H

#include "core/dist/rows.h"
#include "core/dist/tree.h"

/* What a record holds, and so what can be decided from it. */
typedef enum wg_evidence {
    WG_EVIDENCE_COUNTERS, /* numbers of rounds and tokens */
    WG_EVIDENCE_TOKENS,   /* the emitted tokens; beside them, perhaps, those of plain decoding at temperature 0 */
    WG_EVIDENCE_TEXT,     /* the emitted tokens and the target's row before each of them; no drafts */
    WG_EVIDENCE_DRAFTS,   /* drafts and the rows of q; nothing of the target */
    WG_EVIDENCE_ROUND,    /* drafts, rows of q where they were drawn, rows of p, decisions */
    WG_EVIDENCE_KINDS
} wg_evidence;

/* Of the tree: row 0, qrow of the nodes of a drawn law; the root's token is -1, for no record has it. A round of
 * WG_EVIDENCE_TEXT is a chain of its tokens but the last, without rows of q, and its path is all of it. */
typedef struct wg_audit_round {
    wg_evidence evidence;
    wg_tree tree;
    wg_path path;
    wg_rows *p, *q;  /* (borrowed) p: row i follows node i, support unknown. q: one row for each drawn group of siblings */
    int bonus_row;   /* row of q that follows the last node of a chain; -1: not recorded */
    wg_rows *raw;    /* (borrowed) p before penalties and grammar masks, as p; NULL: not recorded */
    bool final;      /* the text ended: path and next may be cut, so next may be an accepted draft token */
    bool dense;      /* tokens of the rows are the vocabulary's; else those that the round lists, and one for the others */
    double rounding; /* total variation of each row from the engine's, by its number format */
    double p_error[WG_TREE_MAX], q_error[WG_TREE_MAX]; /* beyond that: mass that is not listed, declared errors */
} wg_audit_round;

#endif
