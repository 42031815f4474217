/* SPDX-License-Identifier: MIT
 * Batch sizes of a plan, and the table for vLLM: ranges of equal chains that begin at 1, follow each other and end at the last
 * size (vllm/v1/spec_decode/dynamic/utils.py refuses others). */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <string.h>

#include "experiments/cli/plan.h"

Test(plan_batch, reads_a_number_or_a_range)
{
    static const char *const bad[] = { "", "0", "65", "1..65", "4..2", "..3", "3..", "3..x", "1-4", "2..3..4", "-1", "1 ..2" };
    int first, last;
    wg_error err;
    cr_assert(!wg_plan_batches("7", &first, &last, &err) && first == 7 && last == 7);
    cr_assert(!wg_plan_batches("1..64", &first, &last, &err) && first == 1 && last == 64);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(wg_plan_batches(bad[i], &first, &last, &err), WG_EINVAL, "%s", bad[i]);
}

static void choices(wg_batch_choice *c, int first, const char *chains)
{
    for (int i = 0; chains[i]; i++) c[i] = (wg_batch_choice){ .batch = first + i, .chain = chains[i] - '0' };
}

Test(plan_batch, writes_ranges_for_vllm, .init = cr_redirect_stdout)
{
    wg_batch_choice c[8];
    choices(c, 1, "5533310");
    wg_plan_batch_vllm(c, 7, "d\"raft");
    choices(c, 4, "22");
    wg_plan_batch_vllm(c, 2, "d");
    choices(c, 1, "000");
    wg_plan_batch_vllm(c, 3, "d");
    fflush(stdout);
    cr_assert_stdout_eq_str("{\"method\":\"draft_model\",\"model\":\"d\\\"raft\",\"num_speculative_tokens\":5,"
                            "\"num_speculative_tokens_per_batch_size\":[[1,2,5],[3,5,3],[6,6,1],[7,7,0]]}\n"
                            "{\"method\":\"draft_model\",\"model\":\"d\",\"num_speculative_tokens\":2,"
                            "\"num_speculative_tokens_per_batch_size\":[[1,5,2]]}\n"
                            "{\"method\":\"draft_model\",\"model\":\"d\",\"num_speculative_tokens\":1,"
                            "\"num_speculative_tokens_per_batch_size\":[[1,3,0]]}\n");
}
