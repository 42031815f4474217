/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as the body of a completion and of a chat: a request whose values are within their ranges, or a problem with
 * a status and words, whose JSON can be written. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serve/openai_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check(const wgs_request *r)
{
    if (r->n < 1 || r->n * (r->chat ? 1 : r->prompts) > WGS_CHOICES || r->stops.n > WGS_STOPS) abort();
    if (r->biases > WGS_BIASES || r->stop_tokens > WGS_STOP_TOKENS || r->logprobs > WGS_TOP_LOGPROBS) abort();
    if (!(r->temperature >= 0) || !(r->top_p >= 0 && r->top_p <= 1) || !isfinite(r->repetition_penalty)) abort();
    if (r->chat ? !r->messages : !r->prompts) abort();
    for (int i = 0; i < r->prompts; i++)
        for (int k = 0; k < r->prompt[i].n; k++)
            if (r->prompt[i].token[k] < 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    for (int chat = 0; chat < 2; chat++) {
        wgs_request *r = malloc(sizeof *r);
        wgs_problem p = { 0 };
        wgs_request_init(r, chat);
        if (wgs_request_read(r, (const char *)bytes, n, &p)) {
            check(r);
            wgs_request_free(r);
        } else {
            json_t *o = wgs_problem_json(&p);
            if (p.http < 400 || !p.message[0] || !o) abort();
            json_decref(o);
        }
        free(r);
    }
    return 0;
}
