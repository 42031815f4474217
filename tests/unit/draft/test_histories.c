/* SPDX-License-Identifier: MIT
 * The lookup drafters on the shortest texts, and prompt lookup over many requests. */
#include "kernels/cpu.h"
#include "tests/unit/draft/points.h"

static float logits[2 * WG_TREE_MAX * VOCAB];
static wg_lm lm = { .vocab = VOCAB };
static wg_env env = { .target = &lm, .max_batch = 8, .is_eog = points_is_eog, .logits = logits };

/* A text shorter than the key, of one token up, gives no draft and no error; nor does it when that token comes again. */
Test(histories, shorter_than_the_key)
{
    enum { KEY = 6 };
    static const struct {
        const wg_drafter_class *c;
        const char *options;
    } rows[] = {
        { &wg_drafter_ngram, "n_min=6,n_max=6" },
        { &wg_drafter_ngram_hash, "n=6,memory_mb=1" },
        { &wg_drafter_suffix, "n_min=6,memory_mb=1" },
        { &wg_drafter_sam, "n_min=6" },
        { &wg_drafter_lookahead, "n=6,window=1,guesses=1,text=true" },
    };
    env.ops = wg_ops_for(WG_CPU_REF);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        wg_error err;
        wg_drafter *d = points_open(rows[r].c, &env, rows[r].options, &err);
        cr_assert_not_null(d, "%s", err.text);
        for (int n = 1; n < KEY; n++) {
            int32_t text[KEY] = { 7, 7, 7, 7, 7, 7 };
            wg_tree t;
            wg_seq s = { .slot = 2, .token = text, .n = n, .prompt = n, .cap = 32, .limit = 32 };
            wg_seq *const seq = &s;
            points_propose(d, &seq, 1, &t);
            cr_assert_eq(t.n, 1, "%s drafts %d tokens after %d", rows[r].c->name, t.n - 1, n);
            points_forget(d, text, n, n, 2);
        }
        points_close(d);
    }
}

Test(histories, ten_thousand_requests_of_prompt_lookup) { points_long_run(&wg_drafter_ngram, &env, "", 10000); }
