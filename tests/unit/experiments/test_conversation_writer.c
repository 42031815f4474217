/* SPDX-License-Identifier: MIT
 * Conversations that a target writes: what they consist of, that a file which is continued is the one written at once, and what
 * is refused. The target is a tiny one with a chat template. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "core/base/mem.h"
#include "core/file/gguf_write.h"
#include "draft/train/target_rows.h"
#include "experiments/run/conversations.h"
#include "experiments/run/distill.h"
#include "tests/temp.h"
#include "tests/unit/model/one_sequence.h"

#define TEMPLATE "{{ bos_token }}{% for m in messages %}{{ m['content'] }}{{ eos_token }}{% endfor %}"

static wg_status same_bytes(void *user, const wg_tensor *t, void *dst, wg_error *err)
{
    const wg_tensor *from = wg_weights_find(user, t->name);
    WG_TRY(wg_weights_need(user, from, err));
    memcpy(dst, from->data, t->bytes);
    return WG_OK;
}

static void target_write(const char *path, const char *chat)
{
    wg_weights *w;
    wg_gguf_writer *g;
    wg_error err;
    must(wg_weights_open(&w, "synth:tiny:f32", &err), &err);
    must(wg_gguf_writer_open(&g, path, &err), &err);
    for (int i = 0; i < wg_meta_count(w); i++) wg_gguf_copy_meta(g, w, i);
    wg_gguf_set_string(g, "tokenizer.chat_template", chat, strlen(chat));
    for (int i = 0; i < wg_weights_count(w); i++) wg_gguf_add(g, wg_weights_at(w, i), same_bytes, w);
    must(wg_gguf_writer_finish(g, &err), &err);
    wg_weights_close(w);
}

typedef struct scene {
    temp dir;
    wg_distill_config c;
    wg_target *target;
} scene;

/* tokens, magpie, batch: of the section `conversations`. */
static void scene_config(scene *s, int tokens, double magpie, int batch)
{
    wg_error err;
    char text[1200];
    snprintf(text, sizeof text,
             "{ \"target\": { \"model\": \"target.gguf\", \"kv_type\": \"f32\" }, \"data\": { \"conversations\": \"t.jsonl\" },"
             "  \"conversations\": { \"tokens\": %d, \"magpie\": %g, \"batch\": %d, \"seeds\": \"seeds.jsonl\", "
             "\"temperature\": \"0/0.9\", \"question\": 120, \"prompt\": 40, \"answer\": 9, \"question_temperature\": 1.2 },"
             "  \"students\": [ { \"name\": \"a\", \"model\": { \"target_layers\": [0], \"target_head\": \"frozen\" } } ] }",
             tokens, magpie, batch);
    file_write(temp_at(&s->dir, "c.json"), text, strlen(text));
    must(wg_distill_config_open(&s->c, temp_at(&s->dir, "c.json"), NULL, 0, &err), &err);
}

static void scene_open(scene *s, const char *chat)
{
    static const char seeds[] =
        "{\"prompt\": \"The cat sat\"}\n"
        "{\"prompt\": \"a much longer question about the weather, the wind, the rain, the sun and the sea\"}\n"
        "{\"prompt\": \"A dog ran\"}\n";
    wg_error err;
    *s = (scene){ 0 };
    temp_make(&s->dir);
    target_write(temp_at(&s->dir, "target.gguf"), chat);
    file_write(temp_at(&s->dir, "seeds.jsonl"), seeds, sizeof seeds - 1);
    must(wg_target_open(&s->target, temp_at(&s->dir, "target.gguf"),
                        &(wg_target_options){ .need_tokenizer = true, .model = { .kv_type = WG_F32 } }, &err),
         &err);
}

static wg_status write_with(scene *s, int tokens, double magpie, int batch, wg_conversations_count *n, wg_error *err)
{
    scene_config(s, tokens, magpie, batch);
    const wg_conversations_job job = { .options = &s->c.conversations,
                                       .path = s->c.train.data.conversations,
                                       .target = s->target };
    const wg_status status = wg_conversations_write(&job, n, err);
    wg_distill_config_close(&s->c);
    return status;
}

static void scene_close(scene *s)
{
    wg_target_close(s->target);
    temp_remove(&s->dir);
}

static void append_text(scene *s, const char *text)
{
    FILE *f = fopen(temp_at(&s->dir, "t.jsonl"), "a");
    cr_assert_not_null(f);
    fputs(text, f);
    fclose(f);
}

Test(conversation_writer, a_file_that_is_continued_is_the_one_written_at_once)
{
    enum { TOKENS = 400 };
    scene s[2];
    wg_error err;
    wg_conversations_count n[2];
    char *text[2];
    for (int i = 0; i < 2; i++) scene_open(&s[i], TEMPLATE);
    must(write_with(&s[0], TOKENS, 0.6, 1, &n[0], &err), &err);
    cr_assert(n[0].tokens >= TOKENS && n[0].tokens < TOKENS + 9 && n[0].conversations > TOKENS / 9);
    for (int tokens = 100; tokens <= TOKENS; tokens += 100) {
        must(write_with(&s[1], tokens, 0.6, 3 + tokens / 100, &n[1], &err), &err);
        cr_assert(n[1].tokens >= tokens);
        if (tokens < TOKENS) append_text(&s[1], "{\"n\":12,\"ids\":[1,2");
    }
    must(write_with(&s[1], TOKENS, 0.6, 2, &n[1], &err), &err); /* nothing is missing */
    cr_assert(n[1].tokens == n[0].tokens && n[1].conversations == n[0].conversations);
    for (int i = 0; i < 2; i++) text[i] = file_read(temp_at(&s[i].dir, "t.jsonl"), NULL);
    cr_assert_str_eq(text[0], text[1]);
    for (int i = 0; i < 2; i++) free(text[i]), scene_close(&s[i]);
}

/* Answers at temperature 0 are the most probable tokens behind the ids of the line, so these are what the target read and
 * wrote. */
static void check_greedy(const wg_target *t, const int32_t *id, int n, int prompt)
{
    enum { MOST = 256 };
    wg_error err;
    wg_target_rows *rows;
    int32_t target[MOST], start[MOST] = { 0 }, position[MOST];
    cr_assert_leq(n, MOST);
    for (int i = 0; i < n; i++) target[i] = i + 1 < n ? id[i + 1] : -1, position[i] = i;
    const wg_target_rows_options o = {
        .lm = t->lm, .ops = t->ops, .pool = t->pool, .temperature = 0, .sequences = 1, .length = n
    };
    must(wg_target_rows_open(&rows, &o, &err), &err);
    const wg_train_rows in = {
        .sequences = 1, .length = n, .token = id, .target = target, .start = start, .position = position
    };
    must(wg_target_rows_compute(rows, &in, &err), &err);
    for (int i = prompt - 1; i + 1 < n; i++) cr_assert_eq(wg_target_rows_p(rows, i)[id[i + 1]], 1, "row %d", i);
    wg_target_rows_close(rows);
}

Test(conversation_writer, lines_are_what_the_target_read_and_wrote)
{
    scene s;
    wg_error err;
    wg_conversations_count n;
    int asked = 0, given = 0, none = 0, greedy = 0, ended = 0, line_number = 0;
    int32_t *seed[2];
    size_t seed_n[2];
    scene_open(&s, TEMPLATE);
    must(write_with(&s, 500, 0.6, 4, &n, &err), &err);
    const wg_chat chat = { .family = WG_CHAT_MODEL, .model = s.target->weights };
    const wg_text question[2] = { { "The cat sat", 11 }, { "A dog ran", 9 } };
    for (int i = 0; i < 2; i++)
        must(wg_chat_encode(s.target->tokenizer, &chat, &question[i], 1, &seed[i], &seed_n[i], &err), &err);
    char *text = file_read(temp_at(&s.dir, "t.jsonl"), NULL);
    for (char *line = strtok(text, "\n"); (line = strtok(NULL, "\n")); line_number++) {
        json_t *v = json_loads(line, 0, NULL);
        int32_t id[256];
        const json_t *ids = json_object_get(v, "ids");
        const int all = (int)json_array_size(ids), prompt = (int)json_integer_value(json_object_get(v, "prompt"));
        const double temperature = json_number_value(json_object_get(v, "temperature"));
        cr_assert_eq(json_integer_value(json_object_get(v, "n")), line_number);
        for (int i = 0; i < all; i++) id[i] = (int32_t)json_integer_value(json_array_get(ids, (size_t)i));
        json_decref(v);
        if (all == 0) {
            none++;
            continue;
        }
        cr_assert(id[0] == 1 && id[prompt - 1] == 2 && all > prompt && all <= prompt + 9, "%s", line);
        bool of_seed = false;
        for (int i = 0; i < 2; i++)
            of_seed = of_seed || ((size_t)prompt == seed_n[i] && memcmp(id, seed[i], seed_n[i] * sizeof *id) == 0);
        given += of_seed, asked += !of_seed;
        cr_assert(temperature == 0 || temperature == 0.9);
        ended += id[all - 1] == 2;
        cr_assert(all == prompt + 9 || id[all - 1] == 2, "%s", line);
        if (temperature == 0) check_greedy(s.target, id, all, prompt), greedy++;
    }
    cr_assert(asked > 3 && given > 10 && none > 3 && greedy > 5 && greedy < asked + given - 5, "%d %d %d %d", asked, given,
              none, greedy);
    cr_assert(n.lines == line_number && n.conversations == asked + given, "%ld, %ld", n.lines, n.conversations);
    for (int i = 0; i < 2; i++) wg_free(seed[i]);
    free(text);
    scene_close(&s);
}

Test(conversation_writer, a_run_writes_them_and_trains_on_them)
{
    scene s;
    wg_error err;
    json_t *result;
    char out[600];
    scene_open(&s, TEMPLATE);
    scene_config(&s, 300, 0.5, 4);
    s.c.train.train.steps = 2, s.c.train.train.batch = 2, s.c.train.train.micro = 1, s.c.train.train.length = 32;
    s.c.distill.documents = 2, s.c.distill.predict = false, s.c.train.data.held_out = 5;
    snprintf(out, sizeof out, "%s-out", s.dir.dir);
    const wg_distill_run_options o = { .folder = out, .threads = 1 };
    must(wg_distill_run(&s.c, &o, &result, &err), &err);
    cr_assert_eq(json_integer_value(json_object_get(result, "steps")), 2);
    json_decref(result);
    const wg_distill_run_options only = { .folder = out, .threads = 1, .write_only = true };
    must(wg_distill_run(&s.c, &only, &result, &err), &err); /* they are there already */
    cr_assert(json_integer_value(json_object_get(result, "tokens")) >= 300);
    json_decref(result);
    snprintf(s.c.target.quantize, sizeof s.c.target.quantize, "q8_0"); /* of which it would have other answers */
    cr_assert_eq(wg_distill_run(&s.c, &only, &result, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "\"kv_type\":\"f32\"") && strstr(err.text, "\"quantize\":\"q8_0\""), "%s", err.text);
    s.c.conversations.tokens = 0;
    cr_assert_eq(wg_distill_run(&s.c, &only, &result, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "conversations.tokens is 0: there is nothing to write; say how many tokens of answers");
    wg_distill_config_close(&s.c);
    temp folder = { 0 };
    snprintf(folder.dir, sizeof folder.dir, "%.60s", out);
    temp_remove(&folder);
    scene_close(&s);
}

Test(conversation_writer, a_stop_is_an_interruption)
{
    scene s;
    wg_error err;
    wg_conversations_count n;
    volatile sig_atomic_t stop = 1;
    scene_open(&s, TEMPLATE);
    scene_config(&s, 300, 0.5, 4);
    const wg_conversations_job job = {
        .options = &s.c.conversations, .path = s.c.train.data.conversations, .target = s.target, .stop = &stop
    };
    cr_assert_eq(wg_conversations_write(&job, &n, &err), WG_EINTERRUPTED);
    cr_assert_not_null(strstr(err.text, ": stopped after 0 conversations, 0 of 300 tokens of answers"), "%s", err.text);
    wg_distill_config_close(&s.c);
    scene_close(&s);
}

Test(conversation_writer, a_full_disk_keeps_whole_lines)
{
    scene s;
    wg_error err;
    wg_conversations_count n;
    scene_open(&s, TEMPLATE);
    must(write_with(&s, 40, 0.5, 2, &n, &err), &err);
    char *text = file_read(temp_at(&s.dir, "t.jsonl"), NULL);
    const rlim_t room = strlen(text) + 300;
    free(text);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ room, RLIM_INFINITY }), 0);
    cr_assert_eq(write_with(&s, 4000, 0.5, 2, &n, &err), WG_EIO);
    cr_assert_not_null(
        strstr(err.text, "t.jsonl: cannot write: File too large; its whole lines are kept. Free some space, then go on"), "%s",
        err.text);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }), 0);
    must(write_with(&s, 200, 0.5, 2, &n, &err), &err);
    cr_assert(n.tokens >= 200);
    scene_close(&s);
}

static void refused(scene *s, double magpie, wg_status code, const char *said)
{
    wg_error err;
    wg_conversations_count n;
    cr_assert_eq(write_with(s, 100, magpie, 2, &n, &err), code);
    cr_assert_not_null(strstr(err.text, said), "%s\nexpected: %s", err.text, said);
}

Test(conversation_writer, refusals)
{
    scene s;
    wg_error err;
    wg_conversations_count n;
    scene_open(&s, "{% for m in messages %}{{ m['content'] }} and then {% endfor %}");
    refused(&s, 1, WG_EINVAL,
            ": its chat template does not end a question with a control token, so it cannot write one: set "
            "conversations.magpie to 0 and name a file of prompts (seeds)");
    must(write_with(&s, 30, 0, 2, &n, &err), &err); /* questions of seeds need no control token */
    refused(&s, 0.5, WG_EINVAL, "does not end a question with a control token");
    scene_close(&s);

    scene_open(&s, TEMPLATE);
    must(write_with(&s, 30, 0, 2, &n, &err), &err);
    refused(&s, 0.25, WG_EINVAL, "t.jsonl: begins with\n  {\"answer\":9,\"magpie\":0");
    refused(&s, 0.25, WG_EINVAL,
            "\nname another file in data.conversations, or set conversations.tokens to 0 to train on this one");
    const int held = open(temp_at(&s.dir, "t.jsonl"), O_RDWR | O_CLOEXEC);
    cr_assert_eq(flock(held, LOCK_EX), 0);
    refused(&s, 0, WG_EINVAL, "t.jsonl: another process is writing conversations into it; wait for it, or stop it");
    close(held);
    char expected[100], line[80];
    snprintf(expected, sizeof expected, "t.jsonl: line %ld is not conversation %ld; move the file away", n.lines + 2, n.lines);
    static const struct {
        long ahead, prompt; /* what is added to its number; the tokens of its prompt, of one */
    } lines[] = { { 1, 0 }, { 0, 2 }, { 0, -9000000000000000000 } };
    char *whole = file_read(temp_at(&s.dir, "t.jsonl"), NULL);
    for (int i = 0; i < 3; i++) {
        file_write(temp_at(&s.dir, "t.jsonl"), whole, strlen(whole));
        snprintf(line, sizeof line, "{\"n\":%ld,\"ids\":[1],\"prompt\":%ld}\n", n.lines + lines[i].ahead, lines[i].prompt);
        append_text(&s, line);
        refused(&s, 0, WG_EFORMAT, expected);
    }
    free(whole);
    unlink(temp_at(&s.dir, "t.jsonl"));
    scene_config(&s, 100, 0, 2);
    s.c.conversations.prompt = 100000;
    const wg_conversations_job job = { .options = &s.c.conversations,
                                       .path = s.c.train.data.conversations,
                                       .target = s.target };
    cr_assert_eq(wg_conversations_write(&job, &n, &err), WG_EINVAL);
    cr_assert_not_null(strstr(err.text, "conversations have up to 100010 tokens, the context of "), "%s", err.text);
    cr_assert_not_null(strstr(err.text, ": lower conversations.prompt, question or answer"), "%s", err.text);
    unlink(temp_at(&s.dir, "t.jsonl"));
    s.c.conversations.prompt = 3; /* no prompt is as short */
    cr_assert_eq(wg_conversations_write(&job, &n, &err), WG_EINVAL);
    cr_assert_not_null(strstr(err.text,
                              ": the last 1000 conversations came to nothing: questions of the target had no end within "
                              "conversations.question tokens (120), or prompts of conversations.seeds more than "
                              "conversations.prompt (3); raise these"),
                       "%s", err.text);
    const wg_conversations_job nowhere = { .options = &s.c.conversations, .path = "/nowhere/t.jsonl", .target = s.target };
    cr_assert_eq(wg_conversations_write(&nowhere, &n, &err), WG_EIO);
    cr_assert_str_eq(err.text, "/nowhere/t.jsonl: cannot create: No such file or directory");
    wg_distill_config_close(&s.c);
    scene_close(&s);
}
