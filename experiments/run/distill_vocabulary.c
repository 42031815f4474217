/* SPDX-License-Identifier: MIT
 * The tokens that students propose (distill.h). */
#include <stdlib.h>

#include "core/base/mem.h"
#include "draft/lm/vocabulary_subset.h"
#include "experiments/run/distill.h"

/* Counts the tokens that rows have to predict: all but the first of each document and those of prompts. */
static void count_tokens(const wg_tokens *text, int vocab, long *count)
{
    for (size_t i = 0; i < wg_tokens_documents(text); i++) {
        size_t first, n, prompt = wg_tokens_prompt(text, i);
        wg_tokens_document(text, i, &first, &n);
        for (size_t k = prompt ? prompt : 1; k < n; k++) {
            const int32_t id = wg_tokens_id(text, first + k);
            if (id >= 0 && id < vocab) count[id]++;
        }
    }
}

static int by_id(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

wg_status wg_distill_vocabulary(int32_t *token, int n, const wg_tokens *text, const wg_target *target, const char *list,
                                wg_error *err)
{
    const int vocab = wg_tokenizer_size(target->tokenizer);
    long *count = wg_calloc((size_t)vocab, sizeof *count);
    if (!count) return wg_nomem(err, (size_t)vocab * sizeof *count, "counting tokens");
    count_tokens(text, vocab, count);
    wg_status s = wg_vocabulary_frequent(target->tokenizer, count, n, token, err);
    if (s) s = wg_fail_in(err, s, "distill.keep");
    if (!s) s = wg_vocabulary_subset_write(list, target->tokenizer, token, n, err);
    qsort(token, (size_t)n, sizeof *token, by_id);
    wg_free(count);
    return s;
}
