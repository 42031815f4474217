/* SPDX-License-Identifier: MIT
 * The speculation of one answer in the fields of other engines: `timings` of llama.cpp's server and `metrics` of vLLM. Both
 * count draft tokens that were verified. Functions return a new reference, or NULL when memory runs out. */
#ifndef WG_SERVE_SPECULATION_JSON_H
#define WG_SERVE_SPECULATION_JSON_H

#include <jansson.h>

#include "serve/answer.h"

json_t *wgs_timings_json(const wgs_answer *a);

/* draft_length: longest draft in tokens; 0: not known. steps: list the rounds one by one. */
json_t *wgs_metrics_json(const wgs_answer *a, int draft_length, bool steps);

#endif
