/* SPDX-License-Identifier: MIT
 * The auditor: decides from recorded rounds whether an engine follows a lossless rule, and names the defect (docs/audit.md).
 *
 * The hypothesis. Of a stream whose rule is named: each drafted token has the law that the record declares, and each decision,
 * given the draft, the law of that rule (rule_law.h: its own code). Of a stream without a rule, or whose rule's law is not
 * known: the emitted tokens have the law of p, as under every lossless rule.
 *
 * The verdict. Bets of all rounds of a stream (bets.h), in the order of the file, are an e-process. Those of the streams and of
 * all rounds together have weights that sum to 1 at most: a half for all rounds, 1 / (2 s (s + 1)) for stream s. A defect is
 * named where a weighted e-value has reached 1000 at any time, so a file of clean engines is accused with probability 1/1000 at
 * most, whatever the number of its streams and whenever one stops.
 *
 * The name is the defect of the bet with the largest capital, which is the alternative of the largest likelihood; another one
 * is named beside it while its best bet has more than a thousandth of that. */
#ifndef WG_LAB_AUDIT_AUDITOR_H
#define WG_LAB_AUDIT_AUDITOR_H

#include "lab/audit/audit_reader.h"
#include "lab/audit/bets.h"

typedef enum wg_verdict_kind {
    WG_VERDICT_LOSSLESS, /* nothing speaks against it, at this evidence */
    WG_VERDICT_LOSSY,    /* follows its rule, which is lossy */
    WG_VERDICT_DEFECT,
    WG_VERDICT_UNDECIDABLE
} wg_verdict_kind;
const char *wg_verdict_name(wg_verdict_kind k);

/* One stream, or all of them. */
typedef struct wg_audited {
    char name[WG_AUDIT_NAME], rule_name[WG_AUDIT_NAME];
    wg_rule_choice rule; /* class NULL: not known */
    wg_bets bets;
    long records[WG_EVIDENCE_KINDS];
    long drafted, emitted;  /* tokens */
    long by_rule, by_text;  /* rounds that were held against the rule's law, and against the law of p alone */
    double error;           /* largest error of a row, as total variation */
    double weight, highest; /* log10 of the e-value, at most so far */
    long rounds;            /* with bets */
    long accused_at,
        named_at;   /* the first round after which the weighted e-value was 1000, and then one name alone fits; 0: never */
    char fact[256]; /* what no chance explains; "": nothing */
    wg_defect fact_defect;
    bool counters_contradict, plain_differs, plain_same;
} wg_audited;

typedef struct wg_auditor {
    wg_audited *stream, all;
    int streams, room;
    wg_workspace work;
    wg_rows other, before; /* p of the round before; n 0: none */
    double *next[2];       /* (room_next) */
    int vocab;
} wg_auditor;

wg_status wg_auditor_open(wg_auditor *a, wg_error *err);
void wg_auditor_close(wg_auditor *a);

/* The stream of a name, opened under a rule ("" none) where it is new. EINVAL: no such rule, or the stream has another one. */
wg_status wg_auditor_stream(wg_auditor *a, const char *name, const char *rule, int *out, wg_error *err);

/* Adds a round; what the reader holds of tokens and counters. */
wg_status wg_auditor_round(wg_auditor *a, int stream, const wg_audit_round *r, wg_error *err);
void wg_auditor_tokens(wg_auditor *a, int stream, const wg_audit_reader *r);
void wg_auditor_counters(wg_auditor *a, int stream, const wg_audit_counters *c);

/* A verdict, with the defect (WG_DEFECT_KINDS: none of the table), and in words why, in buf. */
typedef struct wg_verdict {
    wg_verdict_kind kind;
    wg_defect defect, or ; /* or: another one that fits nearly as well */
    wg_bet bet;            /* the alternative that fits best */
    double log10;
    char why[512];
} wg_verdict;
wg_verdict wg_auditor_verdict(const wg_audited *s);

#endif
