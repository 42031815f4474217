/* SPDX-License-Identifier: MIT
 * Pruned draft vocabularies: the file's round trip and its refusals, and the drafter that computes only these rows. */
#include "draft/lookup/datastore.h"
#include "draft/lm/vocabulary_subset.h"
#include "tests/unit/draft/composed.h"

enum { VOCAB = 320, PROMPT = 20, KEPT = 37 };

static law_model target;
static int32_t prompt[PROMPT], kept[KEPT];
static char list_path[512], other_path[512];

static void setup(void)
{
    wg_error err;
    write_models(VOCAB);
    law_model_open(&target, target_path, 1, WG_CPU_REF, WG_F32);
    snprintf(list_path, sizeof list_path, "%s", temp_at(&folder, "list.json"));
    snprintf(other_path, sizeof other_path, "%s", temp_at(&folder, "other.gguf"));
    for (int i = 0; i < KEPT; i++) kept[i] = (i * 101 + 7) % VOCAB;
    kept[5] = 2; /* the end of a text */
    LAW_TRY(wg_vocabulary_subset_write(list_path, target.tokenizer, kept, KEPT, &err));
    const wg_synth_shape s = { .layers = 1, .dim = 32, .heads = 2, .hidden = 32, .vocab = 300, .context = 96 };
    LAW_TRY(wg_synth_write(&s, WG_F32, 1, other_path, &err));
    for (int i = 0; i < PROMPT; i++) prompt[i] = 3 + (i * i * 7 + i) % (VOCAB - 3);
}

static void teardown(void)
{
    law_model_close(&target);
    remove_models();
}
TestSuite(pruned, .init = setup, .fini = teardown);

static const char *with(const char *format, const char *model, const char *list)
{
    static char options[1600];
    snprintf(options, sizeof options, format, model, list);
    return options;
}

static bool is_kept(int32_t id)
{
    for (int i = 0; i < KEPT; i++)
        if (kept[i] == id) return true;
    return false;
}

Test(pruned, round_trip)
{
    wg_error err;
    wg_vocabulary_subset p;
    LAW_TRY(wg_vocabulary_subset_open(&p, list_path, target.tokenizer, "target", &err));
    cr_assert(p.n == KEPT && p.vocab == VOCAB && !memcmp(p.token, kept, sizeof kept));
    wg_vocabulary_subset_close(&p);
    LAW_TRY(wg_vocabulary_subset_write(list_path, target.tokenizer, kept, 1, &err));
    LAW_TRY(wg_vocabulary_subset_open(&p, list_path, target.tokenizer, "target", &err));
    cr_assert_eq(p.n, 1);
    wg_vocabulary_subset_close(&p);
}

/* q is the whole model's row, restricted to the list and renormalised before the draw; the row knows its support. */
Test(pruned, q_is_the_whole_row_restricted)
{
    wg_error err;
    static const wg_sampling samplings[] = {
        WG_SAMPLING(1, 0, 1, 0),
        WG_SAMPLING(0.8, 9, 0.9, 0),
        { .temperature = 1, .top_p = 1, .presence_penalty = 1.5, .penalise_prompt = true }
    };
    for (size_t k = 0; k < sizeof samplings / sizeof *samplings; k++) {
        wg_engine *e[2];
        wg_seq *s[2];
        for (int i = 0; i < 2; i++) {
            const law_setup setup = { .target = &target,
                                      .drafter = "model",
                                      .options = i ? with("model=%s,prune=%s,length=3,kv_type=f32", near_path, list_path)
                                                   : with("model=%s%s,length=3,kv_type=f32", near_path, ""),
                                      .rule = "rejection",
                                      .sampling = i ? samplings[k] : (wg_sampling)WG_SAMPLING(1, 0, 1, 0) };
            e[i] = law_engine(&setup);
            LAW_TRY(wg_seq_open(e[i], &s[i], 3, prompt, PROMPT, 40, &err));
            LAW_TRY(wg_engine_step(e[i], &s[i], 1, &err));
        }
        const int whole = wg_engine_last_step(e[0]).tree[0].qrow[1], part = wg_engine_last_step(e[1]).tree[0].qrow[1];
        double mass = 0, sum = 0;
        for (int32_t x = 0; x < VOCAB; x++)
            if (is_kept(x)) mass += wg_rows_prob(wg_engine_last_step(e[0]).q, whole, x);
        for (int32_t x = 0; x < VOCAB; x++) {
            const double q = wg_rows_prob(wg_engine_last_step(e[1]).q, part, x);
            if (!is_kept(x)) cr_assert_eq(q, 0, "token %d was pruned", x);
            else if (k == 0)
                cr_assert_float_eq(q, wg_rows_prob(wg_engine_last_step(e[0]).q, whole, x) / mass, 1e-12, "token %d", x);
            sum += q;
        }
        cr_assert_float_eq(sum, 1, 1e-12);
        const wg_support support = wg_rows_support(wg_engine_last_step(e[1]).q, part);
        cr_assert(support.token && support.n <= KEPT);
        for (int i = 1; i < wg_engine_last_step(e[1]).tree[0].n; i++)
            cr_assert(is_kept(wg_engine_last_step(e[1]).tree[0].token[i]));
        for (int i = 0; i < 2; i++) {
            wg_seq_close(e[i], s[i]);
            wg_engine_close(e[i]);
        }
    }
}

/* A model whose head is its embedding proposes tokens of the text, too: the first text_tokens different ones. */
Test(pruned, tokens_of_the_text_complete_the_list)
{
    enum { MOST = 3 };
    wg_error err;
    wg_engine *e[2];
    wg_seq *s[2];
    char tied[512], options[1600];
    bool can[VOCAB] = { false };
    double mass = 0, sum = 0;
    const wg_synth_shape shape = {
        .layers = 1, .dim = 32, .heads = 2, .hidden = 32, .vocab = VOCAB, .context = 96, .tied = true
    };
    snprintf(tied, sizeof tied, "%s", temp_at(&folder, "tied.gguf"));
    LAW_TRY(wg_synth_write(&shape, WG_Q8_0, 1, tied, &err));
    for (int i = 0, n = 0; i < PROMPT && n < MOST; i++) {
        n += !is_kept(prompt[i]) && !can[prompt[i]];
        can[prompt[i]] = true;
    }
    for (int i = 0; i < 2; i++) {
        snprintf(options, sizeof options, "model=%s,length=3,kv_type=f32%s%s%s", tied, i ? ",prune=" : "", i ? list_path : "",
                 i ? ",text_tokens=3" : "");
        const law_setup setup = {
            .target = &target, .drafter = "model", .options = options, .rule = "rejection", .sampling = WG_SAMPLING(1, 0, 1, 0)
        };
        e[i] = law_engine(&setup);
        LAW_TRY(wg_seq_open(e[i], &s[i], 3, prompt, PROMPT, 40, &err));
        LAW_TRY(wg_engine_step(e[i], &s[i], 1, &err));
    }
    const int whole = wg_engine_last_step(e[0]).tree[0].qrow[1], part = wg_engine_last_step(e[1]).tree[0].qrow[1];
    int tokens = 0;
    for (int32_t x = 0; x < VOCAB; x++) {
        can[x] |= is_kept(x);
        tokens += can[x];
        if (can[x]) mass += wg_rows_prob(wg_engine_last_step(e[0]).q, whole, x);
    }
    cr_assert_eq(tokens, KEPT + MOST);
    for (int32_t x = 0; x < VOCAB; x++) {
        const double q = wg_rows_prob(wg_engine_last_step(e[1]).q, part, x);
        if (!can[x]) cr_assert_eq(q, 0, "token %d is neither in the list nor in the text", x);
        else cr_assert_float_eq(q, wg_rows_prob(wg_engine_last_step(e[0]).q, whole, x) / mass, 1e-12, "token %d", x);
        sum += q;
    }
    cr_assert_float_eq(sum, 1, 1e-12);
    const wg_support support = wg_rows_support(wg_engine_last_step(e[1]).q, part);
    cr_assert(support.token && support.n == KEPT + MOST);
    for (int k = 1; k < support.n; k++) cr_assert(support.token[k - 1] < support.token[k]);
    for (int i = 0; i < 2; i++) {
        wg_seq_close(e[i], s[i]);
        wg_engine_close(e[i]);
    }
    expect_drafts_as_if_fresh(&target, "model", options, (wg_sampling)WG_SAMPLING(1, 0, 1, 0), prompt, PROMPT, 70);
    fail_every_allocation(&target, "model", options);
}

/* Drafts go on behind such a token; the next text in the same place has tokens of its own alone. */
Test(pruned, tokens_of_a_text_are_drafted_and_forgotten)
{
    wg_error err;
    wg_seq *s;
    char tied[512], options[1600];
    bool there[2][VOCAB] = { { false } };
    int32_t other[PROMPT];
    int inner = 0;
    const wg_synth_shape shape = {
        .layers = 1, .dim = 32, .heads = 2, .hidden = 32, .vocab = VOCAB, .context = 96, .tied = true
    };
    snprintf(tied, sizeof tied, "%s", temp_at(&folder, "tied.gguf"));
    LAW_TRY(wg_synth_write(&shape, WG_Q8_0, 1, tied, &err));
    snprintf(options, sizeof options, "model=%s,length=4,prune=%s", tied, list_path);
    const law_setup setup = {
        .target = &target, .drafter = "model", .options = options, .rule = "rejection", .sampling = WG_SAMPLING(1, 0, 1, 0)
    };
    wg_engine *e = law_engine(&setup);
    for (int i = 0; i < PROMPT; i++) other[i] = VOCAB - 1 - i;
    for (int k = 0; k < 2; k++) {
        LAW_TRY(wg_seq_open(e, &s, 3, k ? other : prompt, PROMPT, 60, &err));
        for (int step = 0; step < 12; step++) {
            for (int i = 0; i < s->n; i++) there[k][s->token[i]] = true;
            LAW_TRY(wg_engine_step(e, &s, 1, &err));
            const wg_tree *t = &wg_engine_last_step(e).tree[0];
            for (int i = 1; i < t->n; i++) {
                const int32_t x = t->token[i];
                cr_assert(is_kept(x) || there[k][x], "text %d: token %d is neither in the list nor in the text", k, x);
                inner += !is_kept(x) && i + 1 < t->n;
            }
        }
        wg_seq_close(e, s);
    }
    cr_assert(inner > 0);
    wg_engine_close(e);
}

Test(pruned, drafts_as_if_fresh)
{
    static const char *const options[] = { "model=%s,prune=%s,length=3", "model=%s,prune=%s,tree=2-2",
                                           "model=%s,prune=%s,grow=best_first,budget=7,length=4",
                                           "model=%s,prune=%s,temperature=0,tree=3-1" };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        expect_drafts_as_if_fresh(&target, "model", with(options[i], near_path, list_path),
                                  (wg_sampling)WG_SAMPLING(1, 0, 1, 0), prompt, PROMPT, 70);
    /* both at once: the list's tokens that the other vocabulary has */
    expect_drafts_as_if_fresh(&target, "model",
                              with("model=%s,prune=%s,vocabulary=intersection,length=3", other_path, list_path),
                              (wg_sampling)WG_SAMPLING(1, 0, 1, 0), prompt, PROMPT, 70);
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    cr_assert(f);
    fputs(text, f);
    fclose(f);
}

Test(pruned, refusals)
{
    wg_error err;
    law_model other;
    char bad[512], text[900], digest[WG_SHA256_HEX];
    snprintf(bad, sizeof bad, "%s", temp_at(&folder, "bad.json"));
    wg_tokenizer_digest(target.tokenizer, digest);
    static const struct {
        const char *tail, *says;
    } rows[] = {
        { "\"vocabulary\": 320, \"tokens\": [320]}", "tokens[0]: expected an id in 0 .. vocabulary - 1" },
        { "\"vocabulary\": 320, \"tokens\": [3, -1]}", "tokens[1]: expected an id in 0 .. vocabulary - 1" },
        { "\"vocabulary\": 320, \"tokens\": [3, 4, 3]}", "tokens[2]: expected an id that did not come before" },
        { "\"vocabulary\": 320, \"tokens\": []}", "tokens: expected a list of ids" },
        { "\"vocabulary\": 320}", "tokens: expected a list of ids" },
        { "\"vocabulary\": 0, \"tokens\": [3]}", "vocabulary: expected a number of tokens" },
        { "\"vocabulary\": 330, \"tokens\": [3]}", "was made for another tokenizer" },
        { "\"vocabulary\": 320, \"tokens\": [3", "bad.json:1" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(text, sizeof text, "{\"schema\": 1, \"tokenizer\": \"%s\", %s", digest, rows[i].tail);
        put(bad, text);
        const char *said = refusal(&target, "model", with("model=%s,prune=%s", near_path, bad), true);
        cr_assert(said && strstr(said, rows[i].says), "%s: %s", rows[i].tail, said ? said : "opens");
    }
    put(bad, "{\"schema\": 7}");
    cr_assert(strstr(refusal(&target, "model", with("model=%s,prune=%s", near_path, bad), true), "schema: expected 1"));
    cr_assert(strstr(refusal(&target, "model", with("model=%s,prune=%s/no", near_path, bad), true), "bad.json/no"));
    law_model_open(&other, other_path, 1, WG_CPU_REF, WG_F32);
    const char *said = refusal(&other, "model", with("model=%s,prune=%s", other_path, list_path), true);
    cr_assert(strstr(said, "was made for another tokenizer") && strstr(said, "wager vocab prune"), "%s", said);
    const int32_t high[] = { 310, 315 }; /* which the other vocabulary does not have */
    LAW_TRY(wg_vocabulary_subset_write(bad, target.tokenizer, high, 2, &err));
    said = refusal(&target, "model", with("model=%s,prune=%s,vocabulary=intersection", other_path, bad), true);
    cr_assert(strstr(said, "none of the tokens of the pruned list"), "%s", said);
    law_model_close(&other);
}

Test(pruned, failed_allocations)
{
    fail_every_allocation(&target, "model", with("model=%s,prune=%s,tree=2-1", near_path, list_path));
}
