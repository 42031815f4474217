/* SPDX-License-Identifier: MIT
 * The split among ranks: every output has one rank, queries stand beside the keys that they read, and too many ranks are
 * refused by name. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/model/split.h"

Test(split, every_output_has_one_rank)
{
    static const struct {
        int heads, kv_heads, dim, hidden, vocab, experts;
    } models[] = { { 9, 3, 576, 1536, 49152, 0 },
                   { 4, 1, 640, 2048, 1777, 0 },
                   { 10, 2, 40, 33, 17, 0 },
                   { 12, 12, 96, 100, 64, 5 },
                   { 8, 1, 4096, 11008, 32000, 64 } };
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        for (int ranks = 1; ranks <= models[i].heads; ranks++) {
            wg_error err;
            wg_rank_part s[12];
            int given = 0;
            const int group = models[i].heads / models[i].kv_heads;
            wg_arch a = { .heads = models[i].heads,
                          .kv_heads = models[i].kv_heads,
                          .dim = models[i].dim,
                          .hidden = models[i].hidden,
                          .vocab = models[i].vocab,
                          .experts = models[i].experts,
                          .layers = 3,
                          .head_dim = 16 };
            for (int r = 0; r < ranks; r++) cr_assert_eq(wg_rank_part_of(&s[r], &a, a.vocab, r, ranks, 1, &err), WG_OK);
            const int all[WG_SPLITS] = { a.heads, a.kv_heads, a.dim, a.hidden, a.vocab, a.vocab, a.experts };
            for (int of = 0; of < WG_SPLITS; of++) {
                given = 0;
                for (int r = 0; r < ranks; r++) {
                    cr_assert_eq(wg_rank_part_from(&s[r], of), given, "split %d of %d ranks: rank %d", of, ranks, r);
                    given += wg_rank_part_n(&s[r], of);
                    cr_assert(wg_rank_part_n(&s[r], of) >= (of != WG_SPLIT_KEYS && of != WG_SPLIT_EXPERTS));
                }
                cr_assert_eq(given, all[of]);
            }
            for (int r = 0; r < ranks; r++) { /* the kernel's head of keys, head * kv_heads / heads, is the model's */
                const int from = wg_rank_part_from(&s[r], WG_SPLIT_HEADS), n = wg_rank_part_n(&s[r], WG_SPLIT_HEADS);
                for (int h = 0; h < n; h++)
                    cr_assert_eq(s[r].kv_from[r] + h * wg_rank_part_kv(&s[r]) / n, (from + h) / group, "rank %d of %d", r,
                                 ranks);
            }
        }
}

Test(split, more_ranks_than_there_is_to_split_are_refused)
{
    wg_error err;
    wg_rank_part s;
    const wg_arch a = { .heads = 8, .kv_heads = 2, .dim = 64, .hidden = 5, .vocab = 6, .layers = 1 };
    cr_assert_eq(wg_rank_part_of(&s, &a, 6, 0, 9, 1, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "9 ranks: the model has 8 attention heads; expected at most as many ranks"));
    cr_assert_eq(wg_rank_part_of(&s, &a, 6, 0, 6, 1, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "6 ranks: the model's MLP has 5 rows"));
    cr_assert_eq(wg_rank_part_of(&s, &a, 3, 0, 5, 1, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "5 ranks: the model's output head has 3 rows"));
    const wg_arch b = { .heads = 8, .kv_heads = 2, .dim = 64, .hidden = 64, .vocab = 64, .layers = 3 };
    cr_assert_eq(wg_rank_part_of(&s, &b, 64, 0, 5, 2, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "5 ranks in a pipeline of 2: expected a multiple of its stages"));
    cr_assert_eq(wg_rank_part_of(&s, &b, 64, 0, 8, 4, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "a pipeline of 4 stages: the model has 3 layers"));
    int layers = 0;
    for (int r = 0; r < 6; r++) {
        cr_assert_eq(wg_rank_part_of(&s, &b, 64, r, 6, 2, &err), WG_OK);
        cr_assert(s.stage == r / 3 && s.rank == r % 3 && s.ranks == 3 && s.stages == 2);
        cr_assert_eq(s.layer_from, s.stage ? 1 : 0);
        layers += s.layer_to - s.layer_from;
    }
    cr_assert_eq(layers, 3 * 3);
}
