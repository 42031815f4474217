/* SPDX-License-Identifier: MIT
 * Counters of speculative decoding as other programs write them, a JSON object a request or a run: this project's own
 * {"counters": ...}, vLLM, SGLang, AIPerf and llama.cpp (docs/audit.md lists their members). */
#ifndef WG_LAB_AUDIT_IMPORT_H
#define WG_LAB_AUDIT_IMPORT_H

#include <jansson.h>

#include "lab/audit/audit_reader.h"

/* False where the object has no counters of a known form. */
bool wg_import_counters(const json_t *o, wg_audit_counters *out);

/* What contradicts itself in the counters of one request, in words, in buf; NULL: nothing does. */
const char *wg_counters_contradiction(const wg_audit_counters *c, char *buf, size_t size);

#endif
