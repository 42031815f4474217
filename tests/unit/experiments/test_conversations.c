/* SPDX-License-Identifier: MIT
 * Training on conversations: their ids reach the token file as they are, prompts have no loss, and students that propose a part
 * of the vocabulary are measured as drafts of it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/gguf_write.h"
#include "core/model/student.h"
#include "core/setup/spec.h"
#include "draft/lm/vocabulary_subset.h"
#include "draft/train/target_rows.h"
#include "draft/train/tokens.h"
#include "experiments/run/distill.h"
#include "tests/temp.h"
#include "tests/unit/model/one_sequence.h"

#define TARGET "synth:tiny:f32"

static wg_tokenizer *tokenizer_open(char digest[WG_SHA256_HEX])
{
    wg_error err;
    wg_weights *w;
    wg_tokenizer *t;
    must(wg_weights_open(&w, TARGET, &err), &err);
    must(wg_tokenizer_open(&t, w, &err), &err);
    wg_weights_close(w);
    wg_tokenizer_digest(t, digest);
    return t;
}

/* Writes a file of `lines` conversations; number i has 12 + i % 5 tokens, of which 5 are the prompt. Ids repeat with periods,
 * so that few tokens make up most of the text. */
enum { LINES = 60, PROMPT = 5 };
static int length_of(int i) { return 12 + i % 5; }
static int32_t id_of(int i, int k) { return (int32_t)(3 + (k % 4 == 3 ? (i * 31 + k * 7) % 200 : (i + k) % 9)); }

static void conversations_write(const char *path, int lines, const char *tail)
{
    char digest[WG_SHA256_HEX];
    wg_tokenizer_close(tokenizer_open(digest));
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fprintf(f, "{\"schema\":1,\"tokenizer\":\"%s\",\"model\":\"tiny\"}\n", digest);
    for (int i = 0; i < lines; i++) {
        fprintf(f, "{\"n\":%d,\"prompt\":%d,\"ids\":[", i, PROMPT);
        for (int k = 0; k < length_of(i); k++) fprintf(f, "%s%d", k ? "," : "", id_of(i, k));
        fputs("]}\n", f);
    }
    fputs(tail, f);
    fclose(f);
}

Test(conversations, ids_and_prompts_reach_the_token_file)
{
    char digest[WG_SHA256_HEX];
    temp dir;
    wg_error err;
    wg_tokens *part[2];
    wg_tokenizer *t = tokenizer_open(digest);
    temp_make(&dir);
    /* a number without a conversation, and a line that is still being written */
    conversations_write(temp_at(&dir, "a.jsonl"), LINES, "{\"n\":60,\"ids\":[],\"prompt\":0}\n{\"n\":61,\"ids\":[4,");
    conversations_write(temp_at(&dir, "notes.json"), 0, "not one of them");
    char train[512], held[512];
    snprintf(train, sizeof train, "%s", temp_at(&dir, "train.tokens"));
    snprintf(held, sizeof held, "%s", temp_at(&dir, "held.tokens"));
    wg_corpus c = { .path = dir.dir, .held_out = 4 };
    must(wg_conversations_tokens(&c, t, train, held, &err), &err);
    must(wg_tokens_open(&part[0], train, digest, &err), &err);
    must(wg_tokens_open(&part[1], held, digest, &err), &err);
    size_t at[2] = { 0, 0 };
    for (int i = 0; i < LINES; i++) { /* each is in one of the files, in order */
        int in = -1;
        for (int k = 0; k < 2 && in < 0; k++) {
            size_t first, n;
            if (at[k] == wg_tokens_documents(part[k])) continue;
            wg_tokens_document(part[k], at[k], &first, &n);
            bool same = n == (size_t)length_of(i) && wg_tokens_prompt(part[k], at[k]) == PROMPT;
            for (size_t x = 0; same && x < n; x++) same = wg_tokens_id(part[k], first + x) == id_of(i, (int)x);
            if (same) in = k;
        }
        cr_assert(in >= 0, "conversation %d", i);
        at[in]++;
    }
    cr_assert(at[0] == wg_tokens_documents(part[0]) && at[1] == wg_tokens_documents(part[1]) && at[1] > 5 && at[1] < 30);
    for (int k = 0; k < 2; k++) wg_tokens_close(part[k]);
    wg_tokenizer_close(t);
    temp_remove(&dir);
}

Test(conversations, no_row_predicts_a_prompt)
{
    enum { LENGTH = 40 };
    char digest[WG_SHA256_HEX], train[512];
    temp dir;
    wg_error err;
    wg_tokens *tokens;
    wg_tokenizer *t = tokenizer_open(digest);
    int32_t token[LENGTH], target[LENGTH], start[LENGTH], position[LENGTH];
    temp_make(&dir);
    conversations_write(temp_at(&dir, "a.jsonl"), LINES, "");
    snprintf(train, sizeof train, "%s", temp_at(&dir, "train.tokens"));
    wg_corpus c = { .path = dir.dir };
    must(wg_conversations_tokens(&c, t, train, train, &err), &err);
    must(wg_tokens_open(&tokens, train, digest, &err), &err);
    wg_windows w = { .tokens = tokens, .length = LENGTH, .vocab = wg_tokenizer_size(t), .bos = -1, .seed = 1 };
    must(wg_windows_open(&w, &err), &err);
    must(wg_windows_get(&w, 0, true, &(wg_window_out){ token, target, start, position }, &err), &err);
    for (int i = 0; i < LENGTH; i++) {
        const int n = length_of(start[i] == 0 ? 0 : start[i] == 12 ? 1 : 2);
        const bool last = position[i] == n - 1, asked = position[i] + 1 < PROMPT;
        cr_assert_eq(target[i] >= 0, !last && !asked, "row %d, position %d", i, position[i]);
    }
    wg_windows_close(&w);
    wg_tokens_close(tokens);
    wg_tokenizer_close(t);
    temp_remove(&dir);
}

Test(conversations, token_files_that_contradict_themselves)
{
    char digest[WG_SHA256_HEX];
    const int32_t id[6] = { 4, 5, 6, 7, 8, 9 };
    const uint64_t start[2] = { 0, 4 };
    temp dir;
    wg_error err;
    wg_tokens *tokens;
    wg_tokenizer *t = tokenizer_open(digest);
    temp_make(&dir);
    const char *path = temp_at(&dir, "x.tokens");
    for (uint64_t i = 0; i < 4; i++) { /* the second document has two tokens */
        const uint64_t prompt[2] = { 4, i };
        must(wg_tokens_write(path, t, id, 6, start, prompt, 2, &err), &err);
        const wg_status s = wg_tokens_open(&tokens, path, digest, &err);
        cr_assert_eq(s, i <= 2 ? WG_OK : WG_EFORMAT);
        if (s == WG_OK) wg_tokens_close(tokens);
        else cr_assert_not_null(strstr(err.text, "a prompt that is longer than its document"), "%s", err.text);
    }
    must(wg_tokens_write(path, t, id, 0, start, start, 0, &err), &err);
    cr_assert_eq(wg_tokens_open(&tokens, path, digest, &err), WG_EFORMAT);
    cr_assert_not_null(strstr(err.text, "no documents"), "%s", err.text);
    wg_tokenizer_close(t);
    temp_remove(&dir);
}

static void check_refusal(const char *text, wg_status code, const char *expected)
{
    char digest[WG_SHA256_HEX], whole[1200];
    temp dir;
    wg_error err;
    wg_tokenizer *t = tokenizer_open(digest);
    temp_make(&dir);
    char path[512];
    snprintf(path, sizeof path, "%s", temp_at(&dir, "a.jsonl"));
    snprintf(whole, sizeof whole, "{\"schema\":1,\"tokenizer\":\"%s\"}\n%s", digest, text);
    if (*text == '!') snprintf(whole, sizeof whole, "%s", text + 1);
    file_write(path, whole, strlen(whole));
    wg_corpus c = { .path = path };
    char train[512];
    snprintf(train, sizeof train, "%s", temp_at(&dir, "train.tokens"));
    cr_assert_eq(wg_conversations_tokens(&c, t, train, train, &err), code, "%s", text);
    cr_assert_not_null(strstr(err.text, expected), "%s: expected '%s'", err.text, expected);
    cr_assert_neq(access(train, F_OK), 0);
    wg_tokenizer_close(t);
    temp_remove(&dir);
}

Test(conversations, refusals_name_the_line)
{
    static const char form[] = "; docs/distillation.md has the form of conversations";
    char said[300];
    snprintf(said, sizeof said, ":2: expected {\"ids\": [tokens], \"prompt\": how many of them are the prompt, ...}%s", form);
    check_refusal("{\"ids\":[4,5]}\n", WG_EFORMAT, said);
    check_refusal("{\"ids\":[4,5],\"prompt\":3}\n", WG_EFORMAT, said);
    check_refusal("{\"ids\":[4,5],\"prompt\":-1}\n", WG_EFORMAT, said);
    check_refusal("{\"ids\":\"4\",\"prompt\":0}\n", WG_EFORMAT, said);
    snprintf(said, sizeof said, ":3: expected ids of the tokenizer's tokens%s", form);
    check_refusal("{\"ids\":[4],\"prompt\":0}\n{\"ids\":[4,100000],\"prompt\":0}\n", WG_EFORMAT, said);
    check_refusal("{\"ids\":[4],\"prompt\":0}\n{\"ids\":[4,-1],\"prompt\":0}\n", WG_EFORMAT, said);
    check_refusal("{\"ids\":[4],\"prompt\":0}\n{\"ids\":[4,1.5],\"prompt\":0}\n", WG_EFORMAT, said);
    snprintf(said, sizeof said, ":2: expected a JSON object%s", form);
    check_refusal("[]\n", WG_EFORMAT, said);
    check_refusal("{\"ids\":\n", WG_EFORMAT, said);
    snprintf(said, sizeof said, ":1: expected {\"schema\": 1, \"tokenizer\": digest, ...} as the first line%s", form);
    check_refusal("!{\"ids\":[4],\"prompt\":0}\n", WG_EFORMAT, said);
    check_refusal("!{\"schema\":2,\"tokenizer\":\"00\"}\n", WG_EFORMAT, said);
    check_refusal("!{\"schema\":1,\"tokenizer\":\"00\"}\n", WG_EVOCAB,
                  "written by a model with another tokenizer (digest 00, expected ");
    check_refusal("{\"ids\":[4,5],\"prompt\":2}\n{\"ids\":[],\"prompt\":0}\n{\"ids\":[6],\"prompt\":1}\n", WG_EINVAL,
                  ": all 3 tokens of its conversations are prompts, which have no loss: there is nothing to learn");
    check_refusal("", WG_EINVAL,
                  "no conversation to train on: 1 files, 0 documents held out; expected a JSONL file, or a folder with "
                  "*.jsonl files");
}

/* ---- a part of the vocabulary */

Test(conversations, frequent_tokens_and_those_that_end_a_text_are_kept)
{
    enum { N = 12 };
    char digest[WG_SHA256_HEX];
    wg_error err;
    int32_t token[N];
    wg_tokenizer *t = tokenizer_open(digest);
    const int vocab = wg_tokenizer_size(t), eos = wg_tokenizer_eos(t);
    long *count = wg_calloc((size_t)vocab, sizeof *count);
    int ends = 0;
    for (int i = 0; i < vocab; i++) count[i] = wg_tokenizer_is_eog(t, i) ? 0 : i >= 100 && i < 110 ? 5 : i < 300 && i >= 200;
    for (int i = 0; i < vocab; i++) ends += wg_tokenizer_is_eog(t, i);
    must(wg_vocabulary_frequent(t, count, N, token, &err), &err);
    for (int i = 0; i < 10; i++) cr_assert_eq(token[i], 100 + i);
    cr_assert_eq(ends, 1);
    cr_assert(token[10] == 200 && token[11] == eos, "%d, %d", token[10], token[11]); /* of equals the lower id */
    cr_assert_eq(wg_vocabulary_frequent(t, count, vocab + 1, token, &err), WG_EINVAL);
    cr_assert_not_null(strstr(err.text, "tokens of 512 were to be kept, among them the 1 that end a text"), "%s", err.text);
    cr_assert_eq(wg_vocabulary_frequent(t, count, 0, token, &err), WG_EINVAL);
    wg_free(count);
    wg_tokenizer_close(t);
}

Test(conversations, kept_rows_are_columns_of_the_whole_ones)
{
    enum { N = 10, KEPT = 5 };
    static const int32_t kept[KEPT] = { 7, 3, 400, 11, 2 };
    wg_error err;
    wg_target *t;
    wg_target_rows *rows[2];
    int32_t token[N], target[N], start[N] = { 0 }, position[N];
    must(wg_target_open(&t, TARGET, NULL, &err), &err);
    for (int i = 0; i < N; i++) token[i] = 5 + 3 * i, position[i] = i, target[i] = i < N - 1 ? kept[i % KEPT] + (i % 2) : -1;
    const wg_train_rows in = {
        .sequences = 1, .length = N, .token = token, .target = target, .start = start, .position = position
    };
    for (int greedy = 0; greedy < 2; greedy++) {
        for (int k = 0; k < 2; k++) {
            const wg_target_rows_options o = { .lm = t->lm,
                                               .ops = t->ops,
                                               .pool = t->pool,
                                               .temperature = greedy ? 0 : 0.7,
                                               .sequences = 1,
                                               .length = N,
                                               .kept = k ? kept : NULL,
                                               .n_kept = k ? KEPT : 0 };
            must(wg_target_rows_open(&rows[k], &o, &err), &err);
            must(wg_target_rows_compute(rows[k], &in, &err), &err);
        }
        cr_assert(wg_target_rows_width(rows[0]) == t->lm->vocab && wg_target_rows_width(rows[1]) == KEPT);
        for (int i = 0; i < N - 1; i++) {
            const float *whole = wg_target_rows_p(rows[0], i), *part = wg_target_rows_p(rows[1], i);
            double entropy = 0;
            for (int k = 0; k < KEPT; k++) {
                cr_assert_eq(part[k], whole[kept[k]], "row %d, token %d", i, kept[k]);
                if (part[k] > 0) entropy -= (double)part[k] * log((double)part[k]);
            }
            cr_assert_float_eq(wg_target_rows_entropy(rows[1], i), entropy, 1e-6);
            cr_assert_eq(wg_target_rows_text(rows[0], i), target[i]);
            cr_assert_eq(wg_target_rows_text(rows[1], i), target[i] >= 0 && i % 2 == 0 ? i % KEPT : -1);
        }
        for (int k = 0; k < 2; k++) wg_target_rows_close(rows[k]);
    }
    wg_target_close(t);
}

/* ---- runs */

typedef struct scene {
    temp in, out;
    wg_distill_config c;
    volatile sig_atomic_t stop;
} scene;

static void scene_open(scene *s, const char *more, const char *const *set, int n_set)
{
    static const char config[] =
        "{ \"data\": { \"conversations\": \"talks.jsonl\", \"held_out\": 4 }, \"distill\": { \"predict\": false, \"keep\": 24 "
        "},"
        "  \"train\": { \"steps\": 12, \"batch\": 4, \"micro\": 2, \"length\": 32, \"evaluate\": 6, \"checkpoint\": 5,"
        "  \"bos_share\": 0 }, \"output\": { \"type\": \"f32\" }%s }\n";
    char text[1200];
    const char *all[8] = { "target.model=" TARGET, "target.threads=2" };
    wg_error err;
    temp_make(&s->in);
    temp_make(&s->out);
    snprintf(text, sizeof text, config, more);
    conversations_write(temp_at(&s->in, "talks.jsonl"), LINES, "");
    file_write(temp_at(&s->in, "c.json"), text, strlen(text));
    for (int i = 0; i < n_set; i++) all[2 + i] = set[i];
    must(wg_distill_config_open(&s->c, temp_at(&s->in, "c.json"), all, 2 + n_set, &err), &err);
}

static void scene_close(scene *s)
{
    wg_distill_config_close(&s->c);
    temp_remove(&s->in);
    temp_remove(&s->out);
}

static wg_status go(scene *s, bool resume, json_t **result, wg_error *err)
{
    const wg_distill_run_options o = { .folder = s->out.dir, .threads = 2, .resume = resume, .stop = &s->stop };
    return wg_distill_run(&s->c, &o, result, err);
}

static const char first_layer[] = ", \"students\": [ {\"name\":\"a\", \"loss\": {\"kl\":1, \"block\":0.5, \"length\":3}, "
                                  "\"model\":{\"target_layers\":[0],\"target_head\":\"frozen\"}} ]";

Test(conversations, a_resumed_run_is_the_uninterrupted_one)
{
    static const char *const files[] = { "a.gguf", "vocabulary.json", "train.tokens" };
    scene s[2] = { 0 };
    wg_error err;
    json_t *result[2], *none;
    for (int i = 0; i < 2; i++) scene_open(&s[i], first_layer, NULL, 0);
    must(go(&s[0], false, &result[0], &err), &err);
    s[1].stop = 1;
    cr_assert_eq(go(&s[1], false, &none, &err), WG_EINTERRUPTED);
    s[1].stop = 0;
    must(go(&s[1], true, &result[1], &err), &err);
    cr_assert(json_equal(json_object_get(result[0], "students"), json_object_get(result[1], "students")));
    for (int k = 0; k < 3; k++) {
        size_t n[2];
        char *p[2] = { file_read(temp_at(&s[0].out, files[k]), &n[0]), file_read(temp_at(&s[1].out, files[k]), &n[1]) };
        cr_assert(p[0] && p[1] && n[0] == n[1] && memcmp(p[0], p[1], n[0]) == 0, "%s", files[k]);
        free(p[0]), free(p[1]);
    }
    /* what is not trained is not in checkpoints */
    wg_weights *w;
    size_t all, trained = 0;
    must(wg_weights_open(&w, temp_at(&s[0].out, "a.gguf"), &err), &err);
    for (int i = 0; i < wg_weights_count(w); i++)
        if (strcmp(wg_weights_at(w, i)->name, "token_embd.weight") != 0) trained += wg_weights_at(w, i)->bytes;
    free(file_read(temp_at(&s[0].out, "checkpoint-00000012.wgc"), &all));
    cr_assert(all > trained && all < 3 * trained + 8192, "%zu of %zu", all, trained);
    wg_weights_close(w);
    for (int i = 0; i < 2; i++) json_decref(result[i]), scene_close(&s[i]);
}

/* A student that is all of the target has q = p over the kept tokens, divided by their mass: it accepts every token of the text
 * that is kept and no other, and alpha is the mass. */
Test(conversations, a_part_of_the_vocabulary_is_accepted_where_it_has_the_token)
{
    static const char *const set[] = { "train.steps=1", "optimiser.lr=1e-12", "optimiser.lr_embedding=1e-12",
                                       "target.kv_type=f32" };
    scene s = { 0 };
    wg_error err;
    wg_target *t;
    json_t *result;
    char more[400], layers[160] = "0";
    size_t used = 1;
    must(wg_target_open(&t, TARGET, &(wg_target_options){ .need_tokenizer = true }, &err), &err);
    for (int i = 1; i < wg_model_arch(t->model)->layers; i++)
        used += (size_t)snprintf(layers + used, sizeof layers - used, ", %d", i);
    snprintf(more, sizeof more,
             ", \"students\": [ {\"name\":\"all\",\"model\":{\"target_layers\":[%s],\"target_head\":\"frozen\"}} ]", layers);
    scene_open(&s, more, set, 4);
    must(go(&s, false, &result, &err), &err);
    wg_vocabulary_subset kept;
    wg_tokens *held;
    must(wg_vocabulary_subset_open(&kept, temp_at(&s.out, "vocabulary.json"), t->tokenizer, TARGET, &err), &err);
    must(wg_tokens_open(&held, temp_at(&s.out, "held.tokens"), NULL, &err), &err);
    cr_assert_eq(kept.n, 24);
    double covered = 0, rows = 0;
    for (size_t i = 0; i < wg_tokens_documents(held); i++) {
        size_t first, n;
        wg_tokens_document(held, i, &first, &n);
        for (size_t k = PROMPT; k < n; k++, rows++)
            for (int x = 0; x < kept.n; x++) covered += kept.token[x] == wg_tokens_id(held, first + k);
    }
    const json_t *one = json_array_get(json_object_get(result, "students"), 0);
    const json_t *written = json_object_get(one, "target_text"), *text = json_object_get(one, "held_out_text");
    const double tau = json_number_value(json_array_get(json_object_get(written, "tau"), 0)), share = covered / rows;
    const double alpha = json_number_value(json_object_get(text, "alpha"));
    cr_assert(share > 0.5 && share < 0.95, "%g", share);
    cr_assert(alpha > 0 && alpha < 0.5, "%g", alpha);     /* 24 of 512 tokens of an untrained target */
    cr_assert(json_is_null(json_object_get(text, "ce"))); /* infinite: there are tokens that the student does not have */
    /* chains of one token: a round that is accepted emits two tokens */
    double emitted = 0, rounds = 0;
    for (size_t i = 0; i < wg_tokens_documents(held); i++) {
        size_t first, n;
        wg_tokens_document(held, i, &first, &n);
        for (size_t k = PROMPT; k < n; rounds++) {
            bool has = false;
            for (int x = 0; x < kept.n; x++) has = has || kept.token[x] == wg_tokens_id(held, first + k);
            const size_t step = has && k + 1 < n ? 2 : 1;
            emitted += (double)step, k += step;
        }
    }
    cr_assert_float_eq(tau, emitted / rounds, 1e-3, "tau %g, expected %g", tau, emitted / rounds);
    wg_tokens_close(held);
    wg_vocabulary_subset_close(&kept);
    json_decref(result);
    scene_close(&s);
    wg_target_close(t);
}

/* ---- students without what they have from their target */

/* Decodes with a drafter; returns the number of accepted draft tokens, or -1 with *err. */
static long decode(wg_target *t, const char *spec, int32_t *out, int n, wg_error *err)
{
    const int32_t prompt[5] = { 1, 4, 5, 6, 7 };
    wg_engine_parts parts = wg_target_engine_parts(t);
    const wg_engine_options o = { .max_batch = 1, .max_tokens = 64, .seed = 3, .sampling = WG_SAMPLING(1, 0, 1, 0) };
    wg_drafter_choice draft = { 0 };
    wg_engine *e = NULL;
    wg_seq *s;
    must(wg_find_verifier(&wg_program_plugins, "rejection", &parts.verifier, err), err);
    wg_status status = wg_choose_drafter(spec, &draft, err);
    parts.drafter = draft.class, parts.drafter_options = draft.options;
    if (!status) status = wg_engine_open(&e, &parts, &o, err);
    wg_choice_close(&draft);
    if (status) return -1;
    must(wg_seq_open(e, &s, 0, prompt, 5, n, err), err);
    s->ignore_end = true;
    while (s->finish == WG_RUNNING) must(wg_engine_step(e, &s, 1, err), err);
    memcpy(out, s->token + 5, (size_t)n * sizeof *out);
    const long accepted = s->counts.accepted;
    wg_seq_close(e, s);
    wg_engine_close(e);
    return accepted;
}

static wg_status same_bytes(void *user, const wg_tensor *t, void *dst, wg_error *err)
{
    const wg_tensor *from = wg_weights_find(user, t->name);
    WG_TRY(wg_weights_need(user, from, err));
    memcpy(dst, from->data, t->bytes);
    return WG_OK;
}

/* Copies a cut student with other tokens (n of them) or another digest. */
static void forge(const char *from, const char *to, const int32_t *token, size_t n, const char *digest)
{
    wg_weights *w;
    wg_gguf_writer *g;
    wg_error err;
    must(wg_weights_open(&w, from, &err), &err);
    must(wg_gguf_writer_open(&g, to, &err), &err);
    for (int i = 0; i < wg_meta_count(w); i++)
        if (strncmp(wg_meta_key(w, i), "wager.student.", 14) != 0) wg_gguf_copy_meta(g, w, i);
    wg_gguf_set_i32s(g, WG_STUDENT_TOKENS, token, n);
    wg_gguf_set_string(g, WG_STUDENT_TOKENIZER, digest, strlen(digest));
    for (int i = 0; i < wg_weights_count(w); i++) wg_gguf_add(g, wg_weights_at(w, i), same_bytes, w);
    must(wg_gguf_writer_finish(g, &err), &err);
    wg_weights_close(w);
}

static void refused(wg_target *t, const char *path, const char *said)
{
    char spec[700];
    int32_t out[8];
    wg_error err;
    snprintf(spec, sizeof spec, "model:model=%s,length=3", path);
    cr_assert_eq(decode(t, spec, out, 8, &err), -1);
    cr_assert_not_null(strstr(err.text, said), "%s\nexpected: %s", err.text, said);
}

static void check_refusals(wg_target *t, temp *dir, const char *cut)
{
    char digest[WG_SHA256_HEX], forged[512];
    int32_t token[24];
    wg_error err;
    wg_weights *w;
    wg_model *m;
    wg_tokenizer_digest(t->tokenizer, digest);
    snprintf(forged, sizeof forged, "%s", temp_at(dir, "forged.gguf"));
    for (int i = 0; i < 24; i++) token[i] = i;
    token[5] = 4;
    forge(cut, forged, token, 24, digest);
    refused(t, forged, "key 'wager.student.tokens' has at 5 the token 4: expected different ones below 512");
    token[5] = 512;
    forge(cut, forged, token, 24, digest);
    refused(t, forged, "key 'wager.student.tokens' has at 5 the token 512: expected different ones below 512");
    token[5] = 5;
    forge(cut, forged, token, 24, digest); /* the rows of other tokens */
    refused(t, forged, "forged.gguf is a student of '' and reads its embedding; that of ");
    refused(t, forged,
            " is another one: give the target file that it was distilled from, without target.quantize, or "
            "distil it again");
    forge(cut, forged, token, 24, "0123456789abcdef");
    refused(t, forged, "is a student of another target (digest of the tokenizer 0123456789ab, that of ");
    forge(cut, forged, token, 23, digest);
    refused(t, forged, "tensor 'output.weight' has shape (32, 24, 1, 1): expected (32, 23)");
    forge(cut, forged, token, 0, digest);
    refused(t, forged, "key 'wager.student.tokens' has 0 tokens: expected 1 to 512");
    must(wg_weights_open(&w, cut, &err), &err);
    cr_assert_eq(wg_model_open(&m, w, &t->device, &(wg_model_options){ .kv_type = WG_F32 }, &err), WG_EUNSUPPORTED);
    cr_assert_not_null(strstr(err.text, ": is a student cut to what its target lacks, whose embedding it reads: it drafts for "
                                        "this target on the CPU without ranks, as model:model=FILE, and does not run alone"),
                       "%s", err.text);
    const wg_matrix narrow = { .n = 512, .k = 16 };
    const wg_model_options o = { .kv_type = WG_F32, .embedding = &narrow };
    cr_assert_eq(wg_model_open(&m, w, &t->device, &o, &err), WG_EMODEL);
    cr_assert_not_null(
        strstr(err.text, ": is a cut student of a target with 512 tokens and width 32; this target has 512 and 16"), "%s",
        err.text);
    wg_weights_close(w);
}

Test(conversations, a_cut_student_drafts_as_the_whole_one)
{
    enum { N = 40 };
    scene s = { 0 };
    wg_error err;
    json_t *result;
    wg_target *t;
    wg_weights *w;
    char cut[512], spec[3][1500];
    int32_t text[3][N];
    long accepted[3];
    scene_open(&s, first_layer, NULL, 0);
    must(go(&s, false, &result, &err), &err);
    must(wg_target_open(&t, TARGET, &(wg_target_options){ .need_tokenizer = true }, &err), &err);
    snprintf(cut, sizeof cut, "%s", temp_at(&s.out, "a-cut.gguf"));
    snprintf(spec[0], sizeof spec[0], "model:model=%s/a.gguf,prune=%s/vocabulary.json,length=3", s.out.dir, s.out.dir);
    snprintf(spec[1], sizeof spec[1], "model:model=%s,length=3", cut);
    snprintf(spec[2], sizeof spec[2], "model:model=%s,prune=%s/vocabulary.json,length=3,quantize=q8_0", cut, s.out.dir);
    for (int i = 0; i < 3; i++) {
        accepted[i] = decode(t, spec[i], text[i], N, &err);
        cr_assert(accepted[i] >= 0, "%s: %s", spec[i], err.text);
    }
    cr_assert(accepted[0] > 0 && accepted[0] == accepted[1], "%ld, %ld", accepted[0], accepted[1]);
    cr_assert(memcmp(text[0], text[1], sizeof text[0]) == 0);
    must(wg_weights_open(&w, cut, &err), &err);
    cr_assert_null(wg_weights_find(w, "token_embd.weight"));
    cr_assert(wg_meta_array(w, "tokenizer.ggml.tokens", &(wg_meta_kind){ 0 }) < 0);
    cr_assert_eq(wg_weights_find(w, "output.weight")->dim[1], 24);
    wg_weights_close(w);
    check_refusals(t, &s.out, cut);
    json_decref(result);
    scene_close(&s);
    wg_target_close(t);
}
