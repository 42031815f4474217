/* SPDX-License-Identifier: MIT
 * Best drafts by batch size (plan_batch.h). */
#include "core/base/json.h"
#include "core/base/json_line.h"
#include "experiments/cli/plan_batch.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

wg_status wg_plan_batches(const char *text, int *first, int *last, wg_error *err)
{
    char *end;
    const long a = strtol(text, &end, 10);
    const bool range = end != text && !strncmp(end, "..", 2);
    const char *second = end + 2;
    const long b = range ? strtol(second, &end, 10) : a;
    if (end == text || (range && end == second) || *end || a < 1 || b < a || b > WG_PLAN_BATCHES)
        return wg_fail(err, WG_EINVAL, "--batch %s: expected 1..%d sequences of a step: a number, or a range such as 1..%d",
                       text, WG_PLAN_BATCHES, WG_PLAN_BATCHES);
    *first = (int)a;
    *last = (int)b;
    return WG_OK;
}

/* Whether a size is printed: the first, the last, powers of two, and sizes whose draft differs from the previous size's. */
static bool shown(const wg_batch_choice *c, int n, int i)
{
    const wg_batch_choice *x = &c[i], *y = i ? &c[i - 1] : x;
    return i == 0 || i == n - 1 || (x->batch & (x->batch - 1)) == 0 || x->tokens != y->tokens || x->levels != y->levels ||
           x->tree != y->tree || x->chain != y->chain;
}

void wg_plan_batch_print(const wg_batch_choice *c, int n)
{
    puts("batch  draft  tokens  levels    tau            speed-up  plain tok/s     tok/s  best chain  speed-up");
    for (int i = 0; i < n; i++) {
        const wg_batch_choice *x = &c[i];
        char speed[64];
        if (!shown(c, n, i)) continue;
        if (x->tokens) snprintf(speed, sizeof speed, "%.2fx [%.2f, %.2f]", x->speedup, x->lo, x->hi);
        else snprintf(speed, sizeof speed, "1.00x");
        printf("%5d  %-5s  %6d  %6d  %5.2f  %18s  %11.1f  %8.1f  %10d     %.2fx\n", x->batch,
               !x->tokens ? "none"
               : x->tree  ? "tree"
                          : "chain",
               x->tokens, x->levels, x->tau, speed, x->plain, x->drafted, x->chain, x->chain_speedup);
    }
}

void wg_plan_batch_json(const wg_batch_choice *c, int n)
{
    for (int i = 0; i < n; i++) {
        const wg_batch_choice *x = &c[i];
        json_t *v = json_pack("{s:s, s:i, s:s, s:i, s:i, s:f, s:f, s:[f,f], s:i, s:f, s:f, s:f}", "kind", "batch", "batch",
                              x->batch, "draft",
                              !x->tokens ? "none"
                              : x->tree  ? "tree"
                                         : "chain",
                              "draft_tokens", x->tokens, "levels", x->levels, "tau", x->tau, "predicted_speedup", x->speedup,
                              "predicted_speedup_range", x->lo, x->hi, "chain_tokens", x->chain, "chain_predicted_speedup",
                              x->chain_speedup, "plain_tok_s", x->plain, "tok_s", x->drafted);
        wg_json_put_line(v, JSON_REAL_PRECISION(9));
    }
}

void wg_plan_batch_vllm(const wg_batch_choice *c, int n, const char *draft)
{
    json_t *ranges = json_array();
    int most = 1; /* vLLM requires a window even if it is unused */
    for (int i = 0, from = 0; i < n; i++) {
        if (c[i].chain > most) most = c[i].chain;
        if (i + 1 < n && c[i + 1].chain == c[i].chain) continue;
        json_array_append_new(ranges, json_pack("[i,i,i]", from ? c[from].batch : 1, c[i].batch, c[i].chain));
        from = i + 1;
    }
    json_t *v = json_pack("{s:s, s:s, s:i, s:o}", "method", "draft_model", "model", draft, "num_speculative_tokens", most,
                          "num_speculative_tokens_per_batch_size", ranges);
    wg_json_put_line(v, 0);
}
