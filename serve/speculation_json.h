/* SPDX-License-Identifier: MIT
 * The speculation of one answer, in the words of other engines: `timings` of llama.cpp's server and `metrics` of vLLM. Both
 * count draft tokens that were verified. Results are new references, or NULL: out of memory. */
#ifndef WG_SERVE_SPECULATION_JSON_H
#define WG_SERVE_SPECULATION_JSON_H

#include <jansson.h>

#include "serve/answer.h"

json_t *wgs_timings_json(const wgs_answer *a);

/* steps: with the rounds one by one. draft_length: the longest drafts; 0: not known. */
json_t *wgs_metrics_json(const wgs_answer *a, int draft_length, bool steps);

#endif
