/* SPDX-License-Identifier: MIT
 * Truncation of q: a draft model draws inside the request's own top-k, top-p and min-p, at any temperature of the draft; with
 * truncate=false from all of the vocabulary. What is emitted has the target's law in both cases: tests/law/law_exact.c,
 * law_rows.c. */
#include "core/engine/seq_rows.h"
#include "tests/unit/draft/composed.h"

enum { V = 40, STEPS = 6 };

static void open_all(void) { open_target(V); }
TestSuite(truncate, .init = open_all, .fini = close_target);

/* The drafts of an engine without truncation whose sequence has a chain of its own. The draft model is the target, so its rows
 * are those of p but for the temperature. Returns the rows of q; outside: the tokens of them that p does not have; most: the
 * largest number of tokens of a row. */
static int draft_rows(const char *more, const wg_sampling *own, const wg_logit_bias *bias, int *outside, int *most)
{
    static const int32_t prompt[] = { 1, 2, 3, 1, 2, 4, 1, 2 };
    char options[600];
    wg_error err;
    wg_seq *s;
    int rows = 0;
    snprintf(options, sizeof options, "model=%s,kv_type=f32,length=3%s", target_path, more);
    const law_setup setup = { .target = &target,
                              .drafter = "model",
                              .options = options,
                              .rule = "rejection",
                              .sampling = WG_SAMPLING(1, 0, 1, 0),
                              .batch = 1,
                              .seed = 5 };
    wg_engine *e = law_engine(&setup);
    const wg_seq_sampling how = { .sampling = own, .bias = bias, .biases = bias ? 1 : 0 };
    LAW_TRY(wg_seq_open(e, &s, 1, prompt, 8, 40, &err));
    LAW_TRY(wg_seq_sample(e, s, &how, &err));
    *outside = *most = 0;
    for (int step = 0; step < STEPS; step++) {
        LAW_TRY(wg_engine_step(e, &s, 1, &err));
        const wg_last_step last = wg_engine_last_step(e);
        for (int i = 1; i < last.tree->n; i++, rows++) {
            const int up = last.tree->row + last.tree->parent[i];
            int n = 0;
            for (int32_t x = 0; x < V; x++) {
                const bool drawable = wg_rows_prob(last.q, last.tree->qrow[i], x) > 0;
                n += drawable;
                *outside += drawable && !(wg_rows_prob(last.p, up, x) > 0);
            }
            *most = n > *most ? n : *most;
        }
    }
    wg_seq_close(e, s);
    wg_engine_close(e);
    return rows;
}

Test(truncate, drafts_are_drawn_inside_the_requests_own_chain)
{
    static const wg_sampling chains[] = {
        WG_SAMPLING(0.7, 3, 1, 0),
        WG_SAMPLING(0.7, 0, 0.6, 0),
        WG_SAMPLING(0.7, 0, 1, 0.5),
        { .temperature = 0.7, .top_p = 0.6, .min_p = 0.3, .order = "penalties,top_k,top_p,min_p,temperature" },
    };
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        int outside, most;
        cr_assert_geq(draft_rows("", &chains[i], NULL, &outside, &most), STEPS);
        cr_assert(outside == 0 && most < V, "chain %zu: %d tokens outside, %d in a row", i, outside, most);
        cr_assert_geq(draft_rows(",truncate=false", &chains[i], NULL, &outside, &most), STEPS);
        cr_assert(outside > 0 && most == V, "chain %zu: %d tokens outside, %d in a row", i, outside, most);
    }
}

/* With a temperature of its own the draft keeps what the request's chain has besides. */
Test(truncate, a_temperature_of_the_draft_leaves_the_rest_of_the_chain)
{
    static const wg_sampling three = WG_SAMPLING(0.7, 3, 1, 0);
    static const wg_logit_bias only = { 7, 60 };
    int outside, most;
    cr_assert_geq(draft_rows(",temperature=1.6", &three, NULL, &outside, &most), STEPS);
    cr_assert(outside == 0 && most == 3, "%d tokens outside, %d in a row", outside, most);
    cr_assert_geq(draft_rows(",temperature=1.6", &three, &only, &outside, &most), STEPS);
    cr_assert(outside == 0, "the request's biases are not those of q: %d tokens outside", outside);
    cr_assert_geq(draft_rows(",temperature=1.6,truncate=false", &three, NULL, &outside, &most), STEPS);
    cr_assert(outside > 0 && most == V, "%d tokens outside, %d in a row", outside, most);
}
