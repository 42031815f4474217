/* SPDX-License-Identifier: MIT
 * Counters of speculative decoding written by programs, one JSON object per request or run: this project's {"counters": ...},
 * vLLM, SGLang, AIPerf and llama.cpp (docs/audit.md lists their members). */
#ifndef WG_LAB_AUDIT_IMPORT_H
#define WG_LAB_AUDIT_IMPORT_H

#include <jansson.h>

#include "lab/audit/audit_reader.h"

/* Reads counters; false: the object has none of a known form. */
bool wg_import_counters(const json_t *o, wg_audit_counters *out);

/* A contradiction within the counters of one request, in words, in buf; NULL: none. */
const char *wg_counters_contradiction(const wg_audit_counters *c, char *buf, size_t size);

#endif
