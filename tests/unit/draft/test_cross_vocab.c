/* SPDX-License-Identifier: MIT
 * Drafting across vocabularies: the draft models have 300 tokens, or the same words in another order, the target 320. Drafts
 * are what the same drafter, opened afresh, would draft (so the translated text and its cache are right after any commit), q
 * is the draft model's row over the common tokens only, and impossible pairs are refused with the reason. */
#include <math.h>

#include "core/file/convert.h"
#include "draft/lm/vocabulary_subset.h"
#include "draft/lm/retokenizer.h"
#include "tests/unit/draft/composed.h"

enum { VOCAB = 320, SMALL = 300, PROMPT = 30 };

static char small_path[512], shuffled_path[512], alien_path[512], bare_path[512];
static law_model target;
static int32_t prompt[PROMPT];

/* A llama2.c vocabulary: bytes that count from 3, then words; what it has in common is up to `word`. */
static void write_tokenizer(const char *path, const char *(*word)(int id, char *buf))
{
    char buf[32];
    const uint32_t longest = 16;
    const float score = 0;
    FILE *f = fopen(path, "wb");
    cr_assert(f);
    fwrite(&longest, 4, 1, f);
    for (int id = 0; id < SMALL; id++) {
        const char *s = word(id, buf);
        const uint32_t n = (uint32_t)strlen(s);
        const float better = id < 259 ? score : -(float)id;
        fwrite(&better, 4, 1, f);
        fwrite(&n, 4, 1, f);
        fwrite(s, 1, n, f);
    }
    fclose(f);
}

/* Bytes from high to low, then syllables, some of which the target does not have. */
static const char *shuffled(int id, char *buf)
{
    static const char *const special[] = { "<unk>", "\n<s>\n", "\n</s>\n" };
    if (id < 3) return special[id];
    if (id < 259) snprintf(buf, 32, "<0x%02X>", 258 - id);
    else snprintf(buf, 32, "%s%c%c", id % 3 ? "" : " ", "zxwvtbcdf"[id % 9], "aeiou"[id % 5]);
    return buf;
}

/* Nothing that the target has. */
static const char *alien(int id, char *buf)
{
    snprintf(buf, 32, id ? "\x01\x02%03d" : "<unk>", id);
    return buf;
}

static void setup(void)
{
    char plain[512], tokens[512];
    wg_error err;
    write_models(VOCAB);
    snprintf(small_path, sizeof small_path, "%s", temp_at(&folder, "small.gguf"));
    snprintf(shuffled_path, sizeof shuffled_path, "%s", temp_at(&folder, "shuffled.gguf"));
    snprintf(alien_path, sizeof alien_path, "%s", temp_at(&folder, "alien.gguf"));
    snprintf(bare_path, sizeof bare_path, "%s", temp_at(&folder, "bare.gguf"));
    snprintf(plain, sizeof plain, "%s", temp_at(&folder, "plain.gguf"));
    snprintf(tokens, sizeof tokens, "%s", temp_at(&folder, "tokens.bin"));
    wg_synth_shape s = { .layers = 1, .dim = 32, .heads = 2, .hidden = 32, .vocab = SMALL, .context = 200 };
    LAW_TRY(wg_synth_write(&s, WG_F32, 1, small_path, &err));
    s.tied = true;
    LAW_TRY(wg_synth_write(&s, WG_F16, 1, plain, &err));
    write_tokenizer(tokens, shuffled);
    LAW_TRY(wg_convert(plain, tokens, shuffled_path, -1, &err));
    write_tokenizer(tokens, alien);
    LAW_TRY(wg_convert(plain, tokens, alien_path, -1, &err));
    s.vocab = 250;
    LAW_TRY(wg_synth_write(&s, WG_F32, 1, bare_path, &err));
    law_model_open(&target, target_path, 1, WG_CPU_REF, WG_F32);
    prompt[0] = 1;
    for (int i = 1; i < PROMPT; i++) prompt[i] = 3 + (i * i * 7 + i) % (VOCAB - 3);
}

static void teardown(void)
{
    law_model_close(&target);
    remove_models();
}
TestSuite(cross_vocab, .init = setup, .fini = teardown);

static const char *with(const char *format, const char *path)
{
    static char options[1200];
    snprintf(options, sizeof options, format, path);
    return options;
}

Test(cross_vocab, drafts_as_if_fresh)
{
    static const wg_sampling warm = WG_SAMPLING(1, 0, 1, 0), cut = WG_SAMPLING(0.9, 30, 0.9, 0),
                             strict = { .temperature = 1, .top_p = 1, .repetition_penalty = 1.4, .penalty_window = 8 };
    const struct {
        const char *drafter, *options;
        const wg_sampling *sampling;
    } rows[] = {
        { "model", "model=%s,vocabulary=intersection,length=3,kv_type=f32", &warm },
        { "model", "model=%s,vocabulary=intersection,tree=2-2,kv_type=f32", &warm },
        { "model", "model=%s,vocabulary=intersection,tree=3-1,kv_type=f32", &strict },
        { "model", "model=%s,vocabulary=intersection,grow=best_first,budget=7,length=4,kv_type=f32", &warm },
        { "model", "model=%s,vocabulary=intersection,tree=2-1-1,temperature=0,kv_type=f32", &warm },
        { "model", "model=%s,vocabulary=intersection,length=2,kv_type=f32", &cut },
        { "slem", "model=%s,length=4,kv_type=f32", &warm },
        { "slem", "model=%s,length=5,p_min=0.005,kv_type=f32", &warm },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < (i < 3 ? 2 : 1); k++) /* the shuffled one is a stranger, hardly ever accepted */
            expect_drafts_as_if_fresh(&target, rows[i].drafter, with(rows[i].options, k ? shuffled_path : small_path),
                                      *rows[i].sampling, prompt, PROMPT, 60);
}

/* q at the root, from first principles: the draft model's logits after its own tokens of the text, those of common tokens
 * alone at the target's ids, through the sampler. */
static void expect_row(const law_model *draft, const wg_vocab_map *map, wg_sampling sampling, const char *options)
{
    wg_error err;
    wg_kv *kv;
    wg_kv_seq *seq;
    wg_batch batch;
    wg_sampler sampler;
    wg_rows row;
    char *text;
    size_t bytes, n;
    int32_t *own;
    float logits[SMALL], spread[VOCAB];
    LAW_TRY(wg_tokenizer_decode(target.tokenizer, prompt, PROMPT, false, &text, &bytes, &err));
    LAW_TRY(wg_tokenizer_encode(draft->tokenizer, text, bytes, true, false, &own, &n, &err));
    LAW_TRY(wg_kv_open(&kv, 16, 40, 400, &err));
    LAW_TRY(wg_lm_attach(draft->lm, kv, &err));
    LAW_TRY(wg_kv_seq_open(kv, &seq, &err));
    LAW_TRY(wg_kv_reserve(seq, (int)n, &err));
    LAW_TRY(wg_batch_open(&batch, 400, &err));
    wg_batch_chain(&batch, seq, 0, own, (int)n, 1);
    LAW_TRY(wg_lm_forward(draft->lm, &batch, logits, &err));
    int common = 0;
    for (int i = 0; i < VOCAB; i++) {
        spread[i] = map->to_b[i] >= 0 ? logits[map->to_b[i]] : -INFINITY;
        common += map->to_b[i] >= 0;
    }
    cr_assert_eq(common, map->shared);
    LAW_TRY(wg_sampler_open(&sampler, &sampling, target.ops, VOCAB, &err));
    LAW_TRY(wg_rows_open(&row, 1, VOCAB, &err));
    wg_rows_push(&row);
    wg_sampler_row_after(&sampler, spread, &(wg_prefix){ .token = prompt, .n = PROMPT, .prompt = PROMPT }, &row, 0);

    const law_setup s = {
        .target = &target, .drafter = "model", .options = options, .rule = "rejection", .sampling = sampling
    };
    wg_engine *e = law_engine(&s);
    wg_seq *q;
    LAW_TRY(wg_seq_open(e, &q, 0, prompt, PROMPT, 40, &err));
    LAW_TRY(wg_engine_step(e, &q, 1, &err));
    cr_assert_gt(wg_engine_last_step(e).tree[0].n, 1);
    double sum = 0;
    for (int i = 0; i < VOCAB; i++) {
        const double got = wg_rows_prob(wg_engine_last_step(e).q, wg_engine_last_step(e).tree[0].qrow[1], i);
        cr_assert_eq(got, wg_rows_prob(&row, 0, i), "token %d", i);
        if (map->to_b[i] < 0) cr_assert_eq(got, 0, "token %d, which the draft model does not have", i);
        sum += got;
    }
    cr_assert_float_eq(sum, 1, 1e-12);
    wg_seq_close(e, q);
    wg_engine_close(e);
    wg_rows_close(&row);
    wg_sampler_close(&sampler);
    wg_batch_close(&batch);
    wg_kv_seq_close(seq);
    wg_kv_close(kv);
    wg_free(text);
    wg_free(own);
}

Test(cross_vocab, q_is_restricted_and_renormalised)
{
    const char *const paths[] = { small_path, shuffled_path };
    for (int k = 0; k < 2; k++) {
        wg_error err;
        law_model draft;
        wg_vocab_map map;
        law_model_open(&draft, paths[k], 1, WG_CPU_REF, WG_F32);
        LAW_TRY(wg_vocab_map_open(&map, target.tokenizer, draft.tokenizer, &err));
        cr_assert(k ? map.shared > 258 && map.shared < SMALL - 1 : map.shared == SMALL - 1, "%d shared", map.shared);
        const char *options = with("model=%s,vocabulary=intersection,length=2,kv_type=f32", paths[k]);
        expect_row(&draft, &map, (wg_sampling)WG_SAMPLING(0.9, 0, 1, 0), options);
        expect_row(&draft, &map, (wg_sampling)WG_SAMPLING(1, 25, 0.9, 0), options);
        expect_row(&draft, &map, (wg_sampling){ .temperature = 1, .top_p = 1, .presence_penalty = 2, .penalise_prompt = true },
                   options);
        wg_vocab_map_close(&map);
        law_model_close(&draft);
    }
}

/* With the target's own tokenizer there is nothing to translate: the draft is that of vocabulary=same. */
Test(cross_vocab, the_same_vocabulary_is_left_alone)
{
    wg_error err;
    wg_engine *e[2];
    wg_seq *s[2];
    for (int k = 0; k < 2; k++) {
        char options[600];
        snprintf(options, sizeof options, "model=%s,length=4%s", near_path, k ? ",vocabulary=intersection" : "");
        const law_setup setup = {
            .target = &target, .drafter = "model", .options = options, .rule = "rejection", .sampling = WG_SAMPLING(1, 0, 1, 0)
        };
        e[k] = law_engine(&setup);
        LAW_TRY(wg_seq_open(e[k], &s[k], 0, prompt, PROMPT, 40, &err));
    }
    while (s[0]->finish == WG_RUNNING) {
        for (int k = 0; k < 2; k++) LAW_TRY(wg_engine_step(e[k], &s[k], 1, &err));
        expect_same_draft(e[0], e[1], "same and intersection", s[0]->n);
    }
    for (int k = 0; k < 2; k++) {
        wg_seq_close(e[k], s[k]);
        wg_engine_close(e[k]);
    }
}

/* In the draft model's own tokens; a model that is unsure has a reason of its own. */
Test(cross_vocab, the_context_of_the_draft_ends)
{
    static const struct {
        const char *drafter, *options;
        wg_no_draft reason;
    } rows[] = { { "model", "model=%s,vocabulary=intersection,length=3", WG_NO_DRAFT_CONTEXT },
                 { "slem", "model=%s,length=4", WG_NO_DRAFT_CONTEXT },
                 { "slem", "model=%s,p_min=1", WG_NO_DRAFT_POLICY } };
    char plain[512], tokens[512], brief[512];
    wg_error err;
    wg_synth_shape s = { .layers = 1, .dim = 32, .heads = 2, .hidden = 32, .vocab = SMALL, .context = 80, .tied = true };
    snprintf(plain, sizeof plain, "%s", temp_at(&folder, "plain.gguf"));
    snprintf(tokens, sizeof tokens, "%s", temp_at(&folder, "tokens.bin"));
    snprintf(brief, sizeof brief, "%s", temp_at(&folder, "brief.gguf"));
    LAW_TRY(wg_synth_write(&s, WG_F16, 1, plain, &err));
    write_tokenizer(tokens, shuffled);
    LAW_TRY(wg_convert(plain, tokens, brief, -1, &err));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const law_request r = { prompt, PROMPT, 60 };
        law_output o = { 0 };
        wg_counts c = { 0 };
        law_decode(
            &(law_setup){
                .target = &target, .drafter = rows[i].drafter, .options = with(rows[i].options, brief), .rule = "greedy" },
            &r, 1, &o, &c);
        cr_assert_gt(c.without_draft[rows[i].reason], 5);
        cr_assert_eq(c.without_draft[WG_NO_DRAFT_NOTHING], 0);
        law_free(&o, 1);
    }
}

/* What slem drafts, cut into the target's tokens, is the beginning of the draft model's own greedy text. */
Test(cross_vocab, slem_drafts_what_the_model_writes)
{
    wg_error err;
    const law_setup s = { .target = &target,
                          .drafter = "slem",
                          .options = with("model=%s,length=6,kv_type=f32", shuffled_path),
                          .rule = "match",
                          .sampling = WG_SAMPLING(1, 0, 1, 0) };
    wg_engine *e = law_engine(&s);
    law_model draft;
    law_model_open(&draft, shuffled_path, 1, WG_CPU_REF, WG_F32);
    char *text, drafted[400], written[400];
    size_t bytes, n, at = 0, to = 0;
    int32_t *own;
    wg_seq *q;
    LAW_TRY(wg_tokenizer_decode(target.tokenizer, prompt, PROMPT, false, &text, &bytes, &err));
    LAW_TRY(wg_tokenizer_encode(draft.tokenizer, text, bytes, true, false, &own, &n, &err));
    law_output o = { 0 };
    wg_counts c = { 0 };
    const law_request r = { own, (int)n, 6 };
    const law_setup plain = { .target = &draft, .drafter = "none", .rule = "greedy" };
    law_decode(&plain, &r, 1, &o, &c);
    for (int i = 0; i < o.n; i++)
        to += wg_tokenizer_decode_one(draft.tokenizer, o.token[i], false, false, written + to, sizeof written - to);
    LAW_TRY(wg_seq_open(e, &q, 0, prompt, PROMPT, 40, &err));
    LAW_TRY(wg_engine_step(e, &q, 1, &err));
    const wg_tree *t = &wg_engine_last_step(e).tree[0];
    cr_assert(t->n > 1 && t->law == WG_LAW_FIXED);
    for (int i = 1; i < t->n; i++) {
        cr_assert_eq(t->parent[i], i - 1);
        cr_assert_eq(wg_engine_last_step(e).q->point[t->qrow[i]], t->token[i]);
        at += wg_tokenizer_decode_one(target.tokenizer, t->token[i], false, false, drafted + at, sizeof drafted - at);
    }
    cr_assert(at > 0 && at <= to && at + 3 >= to && !memcmp(drafted, written, at), "%zu bytes drafted, %zu written", at, to);
    law_free(&o, 1);
    wg_free(text);
    wg_free(own);
    wg_seq_close(e, q);
    wg_engine_close(e);
    law_model_close(&draft);
}

Test(cross_vocab, refusals)
{
    static const struct {
        const char *drafter, *options, *path, *says;
    } bad[] = {
        { "model", "model=%s", small_path, "vocabulary=intersection, or slem" },
        { "model", "model=%s,vocabulary=intersection", alien_path,
          "have no token in common, so nothing could be drafted; take another draft model" },
        { "model", "model=%s,vocabulary=intersection", bare_path,
          "has no tokenizer, so its tokens cannot be compared with those of target; convert it again with --tokenizer" },
        { "model", "model=%s,vocabulary=other", small_path, "same, intersection" },
        { "slem", "model=%s", bare_path, "tokenizer.ggml.model is missing" },
        { "slem", "length=3%s", "", "no draft model is named" },
        { "slem", "model=%s/none", small_path, "none" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *text = refusal(&target, bad[i].drafter, with(bad[i].options, bad[i].path), true);
        cr_assert(text && strstr(text, bad[i].says), "%s: %s", bad[i].options, text ? text : "opens");
    }
    law_model bare;
    law_model_open(&bare, bare_path, 1, WG_CPU_REF, WG_F32);
    cr_assert(strstr(refusal(&bare, "slem", with("model=%s", small_path), true),
                     "drafter slem: target has no tokenizer, so text cannot become its tokens"));
    cr_assert(strstr(refusal(&bare, "model", with("model=%s,vocabulary=intersection", small_path), true),
                     "target has no tokenizer, so it is unknown which tokens it has in common with "));
    law_model_close(&bare);
    wg_error err;
    char options[1200], list[600];
    snprintf(list, sizeof list, "%s", temp_at(&folder, "last.json"));
    LAW_TRY(wg_vocabulary_subset_write(list, target.tokenizer, (const int32_t[]){ VOCAB - 1 }, 1, &err));
    snprintf(options, sizeof options, "model=%s,vocabulary=intersection,prune=%s", small_path, list);
    const char *said = refusal(&target, "model", options, true);
    cr_assert(said && strstr(said, "has none of the tokens of the pruned list, so nothing could be drafted"), "%s", said);
    cr_assert_null(refusal(&target, "slem", with("model=%s", alien_path), true), "slem needs no common token");
}

Test(cross_vocab, failed_allocations)
{
    fail_every_allocation(&target, "model", with("model=%s,vocabulary=intersection,tree=2-1", shuffled_path));
    fail_every_allocation(&target, "slem", with("model=%s,p_min=0.1", shuffled_path));
}
