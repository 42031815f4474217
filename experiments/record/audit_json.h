/* SPDX-License-Identifier: MIT
 * The audit of a drafter (core/dist/audit.h) in a line of requests.jsonl and in summary.json. */
#ifndef WG_EXPERIMENTS_RECORD_AUDIT_JSON_H
#define WG_EXPERIMENTS_RECORD_AUDIT_JSON_H

#include <jansson.h>

#include "core/dist/audit.h"

/* The sums, which add up over requests; NULL: the audit is empty. */
json_t *wg_audit_sums_json(const wg_audit *a);
void wg_audit_sums_read(wg_audit *a, const json_t *sums);

/* The e-values, and the findings in words. */
json_t *wg_audit_verdict_json(const wg_audit *a);

#endif
