/* SPDX-License-Identifier: MIT
 * The auditor: decides from recorded rounds whether an engine follows a lossless rule, and names the defect (docs/audit.md).
 *
 * The hypothesis. In a stream with a named rule, each drafted token has the law that the record declares, and each decision,
 * given the draft, has the law of the rule (rule_law.h runs its code). In a stream without a rule, or with a rule of unknown
 * law, the emitted tokens have the law of p, as under every lossless rule.
 *
 * The verdict. The bets of a stream's rounds (bets.h), in the order of the file, are an e-process. The e-processes of the
 * streams and of all rounds together have weights that sum to at most 1: a half for all rounds, 1 / (2 s (s + 1)) for stream s.
 * A defect is named if a weighted e-value ever reached 1000, so a file of correct engines is accused with probability at most
 * 1/1000, whatever the number of streams and whenever one stops.
 *
 * The defect is that of the bet with the largest capital, the alternative of largest likelihood. Another is named beside it
 * while its best bet has more than a thousandth of that capital. */
#ifndef WG_LAB_AUDIT_AUDITOR_H
#define WG_LAB_AUDIT_AUDITOR_H

#include "lab/audit/audit_reader.h"
#include "lab/audit/bets.h"

typedef enum wg_verdict_kind {
    WG_VERDICT_LOSSLESS, /* no evidence against it */
    WG_VERDICT_LOSSY,    /* follows its rule, which is lossy */
    WG_VERDICT_DEFECT,
    WG_VERDICT_UNDECIDABLE
} wg_verdict_kind;
const char *wg_verdict_name(wg_verdict_kind k);

/* One stream, or all of them. */
typedef struct wg_audited {
    char name[WG_AUDIT_NAME], rule_name[WG_AUDIT_NAME];
    wg_rule_choice rule; /* class NULL: unknown */
    wg_bets bets;
    long records[WG_EVIDENCE_KINDS];
    long drafted, emitted;  /* tokens */
    long by_rule, by_text;  /* rounds compared with the rule's law, and with the law of p alone */
    double error;           /* largest error of a row, as total variation */
    double weight, highest; /* highest: largest log10 of the e-value so far */
    long rounds;            /* rounds with bets */
    long accused_at,
        named_at;   /* first round after which the weighted e-value was 1000; first one after which a single name fits; 0:
                     * never */
    char fact[256]; /* a contradiction that chance cannot explain; "": none */
    wg_defect fact_defect;
    bool counters_contradict, plain_differs, plain_same;
} wg_audited;

typedef struct wg_auditor {
    wg_audited *stream, all;
    int streams;
    size_t room;
    wg_workspace work;
    wg_rows other, before; /* before: p of the previous round; n 0: none */
    double *next[2];       /* (room_next) */
    int vocab;
} wg_auditor;

wg_status wg_auditor_open(wg_auditor *a, wg_error *err);
void wg_auditor_close(wg_auditor *a);

/* Finds the stream of a name, or opens it under a rule ("": none). EINVAL: no such rule, or the stream has another one. */
wg_status wg_auditor_stream(wg_auditor *a, const char *name, const char *rule, int *out, wg_error *err);

/* Adds a round, or the reader's tokens or counters. */
wg_status wg_auditor_round(wg_auditor *a, int stream, const wg_audit_round *r, wg_error *err);
void wg_auditor_tokens(wg_auditor *a, int stream, const wg_audit_reader *r);
void wg_auditor_counters(wg_auditor *a, int stream, const wg_audit_counters *c);

/* A verdict with its defect (WG_DEFECT_KINDS: none of the table) and the reason in words. */
typedef struct wg_verdict {
    wg_verdict_kind kind;
    wg_defect defect, other; /* other: one that fits nearly as well */
    wg_bet bet;              /* the alternative that fits best */
    double log10;
    char why[512];
} wg_verdict;
wg_verdict wg_auditor_verdict(const wg_audited *s);

#endif
