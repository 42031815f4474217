/* SPDX-License-Identifier: MIT
 * The bundled pair on the bundled prompts: speculative output is plain output. */
#include "tests/law/pair.h"

int main(void)
{
    const char *root = getenv("WG_ROOT");
    char prompts[512];
    snprintf(prompts, sizeof prompts, "%s/configs/prompts/quickstart.jsonl", root ? root : ".");
    return pair_main(prompts, 3, 200, 32);
}
