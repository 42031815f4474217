/* SPDX-License-Identifier: MIT
 * The bundled pair on prompts of Spec-Bench (Xia et al. 2024), two of each of its 13 categories:
 * speculative output is plain output. Needs the shared data. */
#include "tests/law/pair.h"

int main(void)
{
    const char *shared = getenv("WG_SHARED");
    char prompts[512];
    if (!shared) {
        printf("SKIPPED spec-bench: WG_SHARED not set\n");
        return LAW_SKIP;
    }
    snprintf(prompts, sizeof prompts, "%s/prompts/spec-bench/question.jsonl", shared);
    return pair_main(prompts, 2, 48, 20);
}
