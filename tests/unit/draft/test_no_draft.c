/* SPDX-License-Identifier: MIT
 * The reasons that drafters state for an empty draft, step by step of an engine. */
#include "tests/unit/draft/composed.h"

enum { VOCAB = 40, TEXT = 60, SHORT = 24 };

static char short_path[512]; /* the target's weights, with a context of SHORT positions */

static void open_models(void)
{
    wg_error err;
    const wg_synth_shape s = { .layers = 1, .dim = 32, .heads = 2, .hidden = 32, .vocab = VOCAB, .context = SHORT };
    open_target(VOCAB);
    snprintf(short_path, sizeof short_path, "%s", temp_at(&folder, "short.gguf"));
    cr_assert_eq(wg_synth_write(&s, WG_F32, 1, short_path, &err), WG_OK, "%s", err.text);
}

TestSuite(no_draft, .init = open_models, .fini = close_target);

/* Decodes a text of TEXT tokens after `prompt` of them. Each step without a draft must have the reason
 * that `expected` has for a text of so many tokens before the step; a step with a draft, none (-1). Options name the short
 * model as %s. Returns the counts. */
static wg_counts follow(const char *drafter, const char *options, int prompt, int (*expected)(int n))
{
    char text[1400];
    int32_t token[TEXT];
    wg_error err;
    wg_seq *s;
    for (int i = 0; i < prompt; i++) token[i] = 1 + i % (VOCAB - 1);
    snprintf(text, sizeof text, options, short_path, short_path);
    wg_engine *e = law_engine(&(law_setup){ .target = &target, .drafter = drafter, .options = text, .rule = "greedy" });
    cr_assert_eq(wg_seq_open(e, &s, 0, token, prompt, TEXT - prompt, &err), WG_OK, "%s", err.text);
    while (s->finish == WG_RUNNING) {
        const wg_counts before = s->counts;
        const int want = wg_seq_room(s) > 0 ? expected(s->n) : WG_NO_DRAFT_ROOM, n = s->n;
        cr_assert_eq(wg_engine_step(e, &s, 1, &err), WG_OK, "%s", err.text);
        cr_assert_eq(s->last_nodes == 1, want >= 0, "%s:%s: %d nodes at %d tokens", drafter, text, s->last_nodes, n);
        for (int k = 0; k < WG_NO_DRAFT_REASONS; k++)
            cr_assert_eq(s->counts.without_draft[k], before.without_draft[k] + (k == want), "%s:%s: reason %d at %d tokens",
                         drafter, text, k, n);
    }
    const wg_counts counts = s->counts;
    wg_seq_close(e, s);
    wg_engine_close(e);
    return counts;
}

static int at_the_inner_context(int n) { return n >= SHORT ? WG_NO_DRAFT_CONTEXT : -1; } /* it draws the next token itself */
static int always_drafts(int n) { return (void)n, -1; }
static int never_found(int n) { return (void)n, WG_NO_DRAFT_NOTHING; }
static int never_chosen(int n) { return (void)n, WG_NO_DRAFT_POLICY; }

/* A model that reads the target's tokens goes on over the last of them (test_window.c); a middle model, and one with another
 * tokenizer (test_cross_vocab.c), end. */
Test(no_draft, the_context_of_the_draft_ends)
{
    follow("model", "model=%s,length=3", 6, always_drafts);
    follow("model", "model=%s,tree=2-1", 9, always_drafts);
    follow("model", "model=%s,grow=best_first,budget=3", 9, always_drafts);
    const wg_counts c = follow("cascade", "model=%s,length=3,inner=ngram:k=2", 9, at_the_inner_context);
    cr_assert(c.offered_at[1] > 3 && c.without_draft[WG_NO_DRAFT_CONTEXT] > 20);
    follow("cascade", "model=%s,length=3,inner=ngram:k=2", SHORT, at_the_inner_context);
}

/* Of composites, what ended: not that another part found nothing. */
Test(no_draft, the_context_of_a_part_ends)
{
    follow("hybrid", "first=ngram:n_min=58;n_max=58,second=cascade:model=%s;length=3;inner=ngram", 6, at_the_inner_context);
    follow("best_of", "of=ngram:n_min=58;n_max=58|cascade:model=%s;length=3;inner=ngram", 6, at_the_inner_context);
    follow("best_of", "of=cascade:model=%s;length=3;inner=ngram|ngram:n_min=58;n_max=58", 6, at_the_inner_context);
}

Test(no_draft, nothing_is_found)
{
    follow("ngram", "n_min=58,n_max=58", 30, never_found);
    follow("none", "", 30, never_found);
    follow("sam", "n_min=58", 30, never_found);
}

/* After the model was asked, and before, where a draft does not pay: a plan of 0 comes before the context. Such a policy tries
 * again after 16 steps. */
Test(no_draft, the_policy_chooses_none)
{
    follow("model", "model=%s,p_min=1", 6, never_chosen);
    follow("model", "model=%s,grow=best_first,p_min=1", 6, never_chosen);
    follow("model", "model=%s,policy=confidence,threshold=1", 6, never_chosen);
    follow("ngram", "policy=cost,costs=1/50,draft_cost=1,k=1", TEXT - 12, never_chosen);
    follow("model", "model=%s,policy=cost,costs=1/50,draft_cost=1,length=1", TEXT - 12, never_chosen);
}

Test(no_draft, there_is_room_for_one_token)
{
    const wg_counts c = follow("model", "model=%s,length=3", TEXT - 1, always_drafts);
    cr_assert(c.passes == 1 && c.without_draft[WG_NO_DRAFT_ROOM] == 1);
}
