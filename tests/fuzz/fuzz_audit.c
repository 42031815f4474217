/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as lines of audit records: what is read goes through the auditor under a rule and without one; what is
 * refused has a message; nothing stays allocated. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "lab/audit/auditor.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void add(wg_auditor *a, const wg_audit_reader *r)
{
    static const char *const rules[] = { "", "rejection", "traversal" };
    wg_error err = { 0 };
    for (int i = 0; i < 3; i++) {
        int stream;
        if (wg_auditor_stream(a, rules[i], rules[i], &stream, &err)) abort();
        if (r->round.evidence == WG_EVIDENCE_COUNTERS) wg_auditor_counters(a, stream, &r->counters);
        else if (r->round.evidence == WG_EVIDENCE_TOKENS) wg_auditor_tokens(a, stream, r);
        else if (wg_auditor_round(a, stream, &r->round, &err)) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    wg_error err = { 0 };
    wg_audit_reader r;
    wg_auditor a;
    if (wg_audit_reader_open(&r, "input", &err) || wg_auditor_open(&a, &err)) return 0;
    for (size_t at = 0; at < n;) {
        const uint8_t *end = memchr(bytes + at, '\n', n - at);
        const size_t size = end ? (size_t)(end - bytes) - at : n - at;
        wg_audit_line kind;
        err.text[0] = '\0';
        if (wg_audit_read_line(&r, (const char *)bytes + at, size, &kind, &err)) {
            if (!err.text[0]) abort();
        } else if (kind == WG_AUDIT_RECORD) add(&a, &r);
        at += size + 1;
    }
    for (int i = 0; i < a.streams; i++) {
        const wg_verdict v = wg_auditor_verdict(&a.stream[i]);
        if (!v.why[0] || !(wg_bets_log10(&a.stream[i].bets) < 1e300)) abort();
    }
    wg_auditor_close(&a);
    wg_audit_reader_close(&r);
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
