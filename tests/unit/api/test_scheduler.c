/* SPDX-License-Identifier: MIT
 * The scheduler of libwager through the public header alone: texts, events, counts, errors. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bundled.h"
#include "wager.h"

#define MODEL BUNDLED_DRAFT
#define TARGET "\"target\": {\"model\": \"" MODEL "\", \"threads\": 1}, \"max_tokens\": 24"
#define PLAIN "{" TARGET ", \"sampling\": {\"temperature\": 0.9}}"
#define DRAFTED                                                                                                                \
    "{" TARGET ", \"sampling\": {\"temperature\": 0.9}, \"draft\": {\"kind\": \"ngram\", \"k\": 4}, \"verify\": "              \
    "{\"rule\": \"match\"}, \"batch\": 4}"

enum { REQUESTS = 7, TOKENS = 160, TOP = 3 };
#ifdef WG_HARD
enum { PAGES = 40 }; /* of two tokens each */
#else
enum { PAGES = 9 };
#endif

#define LONG "Once upon a time there was a little girl named Lily. She liked to play in the park with her red ball and her dog."

static const char *const prompts[REQUESTS] = { LONG,
                                               "Tom and Sue",
                                               "The dog saw the cat. The dog saw the",
                                               "One day, a bird",
                                               "Lily had",
                                               LONG " One day",
                                               "The sun was very hot" };

/* What a request was told. */
typedef struct told {
    int32_t token[TOKENS];
    double logprob[TOKENS], echo[TOKENS];
    int n, echoed, started, rounds, ended, failed, cached, drafted;
    wg_end end;
    int64_t emitted, passes;
    uint64_t id, cancels;
    wg_scheduler *cancel_in; /* cancels itself at its first round */
    char message[256];
    double first_token, now;
} told;

static void on_event(void *user, const wg_event *e)
{
    told *t = user;
    cr_assert(!t->ended && !t->failed, "an event after the last");
    cr_assert(e->size == sizeof *e && (t->id == 0 || e->id == t->id));
    if (e->kind == WG_EVENT_STARTED) {
        cr_assert(t->started++ == 0 && t->n == 0);
        for (int i = 0; i < e->n; i++) t->echo[i] = e->logprob ? e->logprob[i] : 0;
        t->echoed = e->n;
    }
    if (e->kind == WG_EVENT_ROUND) {
        cr_assert(t->started && e->n >= 1 && t->n + e->n <= TOKENS);
        memcpy(t->token + t->n, e->token, (size_t)e->n * sizeof *e->token);
        for (int i = 0; i < e->n; i++) {
            t->drafted += e->drafted[i];
            if (!e->logprob) continue;
            t->logprob[t->n + i] = e->logprob[i];
            cr_assert(e->logprob[i] <= 0 && (e->top == TOP || e->top == 0));
            if (e->top == 0) continue;
            for (int k = 1; k < TOP; k++) cr_assert(e->top_logprob[i * TOP + k] <= e->top_logprob[i * TOP + k - 1]);
            cr_assert(e->logprob[i] <= e->top_logprob[i * TOP]);
        }
        t->n += e->n;
        t->rounds++;
        if (t->cancel_in && t->rounds == 1) cr_assert(wg_scheduler_cancel(t->cancel_in, e->id, NULL) == WG_OK);
    }
    if (e->kind == WG_EVENT_FAILED) {
        t->failed++;
        snprintf(t->message, sizeof t->message, "%s", e->message);
    }
    if (e->kind == WG_EVENT_ENDED) t->ended++;
    t->end = e->end;
    t->cached = e->cached_tokens;
    t->emitted = e->emitted, t->passes = e->passes;
    t->first_token = e->first_token, t->now = e->now;
}

static wg_scheduler *open_scheduler(const char *config, const wg_scheduler_options *opt)
{
    wg_error err;
    wg_scheduler *s = NULL;
    cr_assert(wg_scheduler_open(&s, config, opt, &err) == WG_OK, "%s", err.text);
    return s;
}

/* Submits a text with the fields of `more` that are not of the prompt. */
static uint64_t submit(wg_scheduler *s, const char *text, wg_request more, told *t)
{
    wg_error err;
    int32_t *token = NULL;
    uint64_t id = 0;
    cr_assert(wg_scheduler_tokenize(s, text, strlen(text), 1, 1, &token, &more.n, &err) == WG_OK, "%s", err.text);
    more.size = sizeof more;
    more.token = token;
    more.user = t;
    more.on_event = on_event;
    cr_assert(wg_scheduler_submit(s, &more, &id, &err) == WG_OK, "%s", err.text);
    wg_tokens_free(token);
    t->id = id;
    return id;
}

static void run(wg_scheduler *s)
{
    for (int running = 1, steps = 0; running; steps++) cr_assert(wg_scheduler_step(s, &running, NULL) == WG_OK && steps < 2000);
}

static void expect_same(const told *a, const told *b)
{
    cr_assert(a->n == b->n && a->n > 0 && a->end == b->end && a->ended == 1 && b->ended == 1);
    cr_assert(memcmp(a->token, b->token, (size_t)a->n * sizeof *a->token) == 0);
}

/* All prompts, each by itself without drafts. */
static void one_at_a_time(const char *config, told *out, wg_request more)
{
    wg_scheduler *s = open_scheduler(config, NULL);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        memset(&out[i], 0, sizeof out[i]);
        more.number = i;
        submit(s, prompts[i], more, &out[i]);
        run(s);
    }
    wg_scheduler_close(s);
}

static void together(const char *config, const wg_scheduler_options *opt, wg_request more, told *out)
{
    wg_scheduler *s = open_scheduler(config, opt);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        memset(&out[i], 0, sizeof out[i]);
        more.number = i;
        submit(s, prompts[i], more, &out[i]);
    }
    run(s);
    wg_scheduler_stats t = { .size = sizeof t };
    cr_assert(wg_scheduler_stats_get(s, &t, NULL) == WG_OK);
    cr_assert(t.submitted == REQUESTS && t.ended == REQUESTS && t.running == 0 && t.waiting == 0 && t.failed == 0);
    const int caches = opt && opt->prefix_cache && !more.echo, short_of_pages = opt && opt->pages;
    cr_assert(t.pages_free + t.pages_cached <= t.pages && (caches ? t.hits > 0 && t.cached_tokens > 16 : t.hits == 0));
    cr_assert((opt && opt->prefix_cache) || t.pages_free == t.pages);
    cr_assert((t.preemptions > 0) == short_of_pages);
    int64_t emitted = 0;
    for (int i = 0; i < REQUESTS; i++) emitted += out[i].emitted;
    cr_assert(t.emitted == emitted && t.passes > 0 && t.accepted <= t.drafted);
    wg_scheduler_close(s);
}

Test(scheduler, a_request_depends_on_itself_alone)
{
    static told want[REQUESTS], got[REQUESTS];
    const wg_request warm = { .seed = 5 };
    one_at_a_time(PLAIN, want, warm);
    const wg_scheduler_options options[] = {
        { .size = sizeof *options },
        { .size = sizeof *options, .mode = WG_BATCHING_STATIC, .prefill_rows = 3 },
        { .size = sizeof *options, .mode = WG_BATCHING_DYNAMIC, .window = 1e-4, .batch = 3 },
        { .size = sizeof *options, .prefix_cache = 1, .batch = 2 },
        { .size = sizeof *options, .pages = PAGES, .prefill_rows = 5 },
        { .size = sizeof *options, .speculation = WG_SPECULATION_OFF },
        { .size = sizeof *options, .speculation = WG_SPECULATION_ADAPTIVE },
        { .size = sizeof *options, .speculation = WG_SPECULATION_ADAPTIVE, .cost = { 1, 1.1, 2, 2, 2, 5 }, .draft_cost = 0.01 },
    };
    for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
        together(DRAFTED, &options[k], warm, got);
        for (int i = 0; i < REQUESTS; i++) expect_same(&want[i], &got[i]);
    }
    cr_assert(want[0].n != want[2].n || memcmp(want[0].token, want[2].token, sizeof want[0].token));
}

Test(scheduler, log_probabilities_are_those_without_drafts)
{
    static told want[REQUESTS], got[REQUESTS];
    const wg_request asks = { .seed = 5, .logprobs = 1, .top = TOP, .echo = 1 };
    one_at_a_time("{" TARGET "}", want, asks);
    together("{" TARGET ", \"draft\": {\"kind\": \"ngram\", \"k\": 4}, \"batch\": 4}",
             &(wg_scheduler_options){ .size = sizeof(wg_scheduler_options), .prefill_rows = 2, .prefix_cache = 1 }, asks, got);
    int drafted = 0;
    for (int i = 0; i < REQUESTS; i++) {
        expect_same(&want[i], &got[i]);
        cr_assert(memcmp(want[i].logprob, got[i].logprob, sizeof want[i].logprob) == 0);
        cr_assert(want[i].echoed > 1 && memcmp(want[i].echo, got[i].echo, sizeof want[i].echo) == 0);
        cr_assert(want[i].echo[0] == 0 && want[i].echo[1] < 0);
        drafted += got[i].drafted;
    }
    cr_assert(drafted > 0);
}

Test(scheduler, a_cancelled_request_ends_in_the_next_step)
{
    told t[3] = { 0 };
    wg_scheduler *s = open_scheduler(DRAFTED, NULL);
    wg_scheduler_stats now = { .size = sizeof now };
    t[0].cancel_in = s;
    submit(s, prompts[0], (wg_request){ .max_tokens = 60 }, &t[0]);
    submit(s, prompts[1], (wg_request){ .deadline = 1e-9 }, &t[1]);
    const uint64_t id = submit(s, prompts[2], (wg_request){ 0 }, &t[2]);
    cr_assert(wg_scheduler_cancel(s, id, NULL) == WG_OK);
    run(s);
    cr_assert(t[0].ended && t[0].end == WG_END_CANCELLED && t[0].rounds == 1);
    cr_assert(t[1].ended && t[1].end == WG_END_DEADLINE && t[1].n == 0);
    cr_assert(t[2].ended && t[2].end == WG_END_CANCELLED && t[2].n == 0 && !t[2].started);
    wg_error err;
    cr_assert(wg_scheduler_cancel(s, id, &err) == WG_ENOENT && strstr(err.text, "has ended, or there was none"));
    cr_assert(wg_scheduler_stats_get(s, &now, NULL) == WG_OK && now.pages_free == now.pages);
    cr_assert(now.cancelled == 2 && now.expired == 1 && now.ended == 3);
    submit(s, prompts[3], (wg_request){ 0 }, &t[0]); /* left open: close tells it */
    memset(&t[0], 0, sizeof t[0]);
    wg_scheduler_step(s, NULL, NULL);
    wg_scheduler_close(s);
    cr_assert(t[0].ended && t[0].end == WG_END_CANCELLED);
}

Test(scheduler, stop_tokens_and_ends)
{
    told t[2] = { 0 };
    wg_scheduler *s = open_scheduler(PLAIN, NULL);
    submit(s, prompts[0], (wg_request){ .seed = 5 }, &t[0]);
    run(s);
    const int32_t stop[] = { -7, t[0].token[3] };
    submit(s, prompts[0], (wg_request){ .seed = 5, .stop = stop, .stops = 2 }, &t[1]);
    run(s);
    cr_assert(t[1].end == WG_END_STOP && t[1].n <= 4 && t[1].token[t[1].n - 1] == stop[1]);
    cr_assert(t[0].end == WG_END_LENGTH && t[0].n == 24 && t[0].first_token > 0 && t[0].now >= t[0].first_token);
    wg_scheduler_close(s);
}

Test(scheduler, a_full_queue_and_draining_refuse)
{
    told t[4] = { 0 };
    wg_error err;
    wg_scheduler *s = open_scheduler(PLAIN, &(wg_scheduler_options){ .size = sizeof(wg_scheduler_options), .queue = 2 });
    wg_request r = { .size = sizeof r, .token = (const int32_t[]){ 3, 4 }, .n = 2, .user = &t[2], .on_event = on_event };
    cr_assert(wg_scheduler_wait(s, 0) == 0);
    submit(s, prompts[0], (wg_request){ 0 }, &t[0]);
    submit(s, prompts[1], (wg_request){ 0 }, &t[1]);
    cr_assert(wg_scheduler_wait(s, 10) == 1);
    cr_assert(wg_scheduler_submit(s, &r, NULL, &err) == WG_EFULL && strstr(err.text, "2 requests wait"));
    wg_scheduler_step(s, NULL, NULL); /* one has left the queue */
    cr_assert(wg_scheduler_submit(s, &r, NULL, &err) == WG_OK);
    wg_scheduler_drain(s);
    cr_assert(wg_scheduler_submit(s, &r, NULL, &err) == WG_EINTERRUPTED && strstr(err.text, "draining"));
    run(s);
    cr_assert(t[0].ended && t[1].ended && t[2].ended);
    wg_scheduler_stats now = { .size = sizeof now };
    cr_assert(wg_scheduler_stats_get(s, &now, NULL) == WG_OK && now.refused == 2 && now.draining == 1 && now.submitted == 3);
    wg_scheduler_close(s);
}

static void refused(wg_scheduler *s, wg_request r, wg_status status, const char *why)
{
    static const int32_t three = 3;
    wg_error err;
    r.size = sizeof r;
    if (!r.token && !r.n) r.token = &three, r.n = 1;
    const wg_status got = wg_scheduler_submit(s, &r, NULL, &err);
    cr_assert(got == status, "%d, expected %d", (int)got, (int)status);
    cr_assert(strstr(err.text, why), "%s", err.text);
}

Test(scheduler, bad_requests_are_refused)
{
    static int32_t many[4096];
    const int32_t strange[] = { 3, 1 << 30 };
    const wg_sampler_options bad = { .size = sizeof bad, .temperature = 1, .top_p = 7 },
                             same = { .size = sizeof same, .temperature = 0.9, .top_p = 1 };
    const wg_token_bias biased[] = { { 5, 1 }, { 5, 2 }, { 9999999, 1 } };
    wg_scheduler *s = open_scheduler(PLAIN, NULL);
    refused(s, (wg_request){ .token = many, .n = 0 }, WG_EINVAL, "an empty prompt");
    refused(s, (wg_request){ .token = NULL, .n = 4 }, WG_EINVAL, "request->token is NULL");
    refused(s, (wg_request){ .token = many, .n = 4096 }, WG_ECONTEXT, "the prompt has 4096 tokens");
    refused(s, (wg_request){ .token = strange, .n = 2 }, WG_EINVAL, "prompt token 1 is 1073741824");
    refused(s, (wg_request){ .max_tokens = -1 }, WG_EINVAL, "-1 new tokens");
    refused(s, (wg_request){ .stops = 2 }, WG_EINVAL, "request->stop is NULL");
    refused(s, (wg_request){ .stop = many, .stops = 4096 }, WG_EINVAL, "4096 stop tokens; expected 0..");
    refused(s, (wg_request){ .logprobs = 1, .top = 33 }, WG_EINVAL, "log-probabilities of 33 tokens");
    refused(s, (wg_request){ .draft_most = -2 }, WG_EINVAL, "drafts of at most -2 tokens");
    refused(s, (wg_request){ .deadline = -1 }, WG_EINVAL, "a deadline in -1 seconds");
    refused(s, (wg_request){ .sampling = &bad }, WG_EINVAL, "top_p");
    refused(s, (wg_request){ .bias = biased, .biases = 2 }, WG_EINVAL, "logit_bias: token 5 is there twice");
    refused(s, (wg_request){ .bias = biased + 1, .biases = 2 }, WG_EINVAL, "logit_bias: token 9999999; the vocabulary is");
    refused(s, (wg_request){ .top = -1 }, WG_EINVAL, "0 biases, -1 most probable tokens; expected 0 or more");
    refused(s, (wg_request){ .biases = 1 }, WG_EINVAL, "request->bias is NULL");
    told t = { 0 };
    submit(s, prompts[0], (wg_request){ .sampling = &same }, &t);
    run(s);
    cr_assert(t.ended);
    wg_scheduler_close(s);
}

/* A request's own chain and biases, beside others with the config's. */
Test(scheduler, requests_sample_in_their_own_ways)
{
    static told want[REQUESTS], greedy[REQUESTS], got[4];
    const wg_sampler_options cold = { .size = sizeof cold, .top_p = 1 };
    one_at_a_time(PLAIN, want, (wg_request){ .seed = 5 });
    one_at_a_time("{" TARGET "}", greedy, (wg_request){ .seed = 5 });
    const wg_token_bias never[] = { { greedy[1].token[0], -100 }, { greedy[1].token[1], -100 } };
    wg_scheduler *s = open_scheduler(DRAFTED, NULL);
    submit(s, prompts[1], (wg_request){ .seed = 5, .number = 1, .sampling = &cold }, &got[0]);
    submit(s, prompts[2], (wg_request){ .seed = 5, .number = 2 }, &got[1]);
    submit(s, prompts[1], (wg_request){ .seed = 5, .sampling = &cold, .bias = never, .biases = 2, .logprobs = 1 }, &got[2]);
    submit(s, prompts[1], (wg_request){ .seed = 5, .number = 1, .logprobs = 1, .sampling = &cold }, &got[3]);
    run(s);
    expect_same(&greedy[1], &got[0]);
    expect_same(&want[2], &got[1]);
    expect_same(&greedy[1], &got[3]);
    for (int i = 0; i < got[2].n; i++)
        cr_assert(got[2].token[i] != never[0].token && got[2].token[i] != never[1].token && got[2].logprob[i] < 0);
    cr_assert(got[2].ended && got[2].n > 0);
    wg_scheduler_close(s);
}

static void not_opened(wg_scheduler_options o, wg_status status, const char *why)
{
    wg_error err;
    wg_scheduler *s = NULL;
    o.size = sizeof o;
    cr_assert(wg_scheduler_open(&s, PLAIN, &o, &err) == status && s == NULL);
    cr_assert(strstr(err.text, why), "%s", err.text);
}

Test(scheduler, options_out_of_range_are_refused)
{
    not_opened((wg_scheduler_options){ .mode = (wg_batching)7 }, WG_EINVAL, "wg_scheduler_options.mode is 7");
    not_opened((wg_scheduler_options){ .speculation = (wg_speculation)7 }, WG_EINVAL, "wg_scheduler_options.speculation is 7");
    not_opened((wg_scheduler_options){ .cost = { 1, -2 } }, WG_EINVAL, "wg_scheduler_options.cost[1] is -2; expected a number");
    not_opened((wg_scheduler_options){ .draft_cost = -1 }, WG_EINVAL, "wg_scheduler_options.draft_cost is -1; expected 0");
    not_opened((wg_scheduler_options){ .batch = 1000 }, WG_EINVAL, "wg_scheduler_options.batch is 1000");
    not_opened((wg_scheduler_options){ .prefill_rows = 5000 }, WG_EINVAL, "wg_scheduler_options.prefill_rows is 5000");
    not_opened((wg_scheduler_options){ .pages = -1 }, WG_EINVAL, "wg_scheduler_options.pages is -1");
    not_opened((wg_scheduler_options){ .queue = -1 }, WG_EINVAL, "a queue of -1 requests");
    not_opened((wg_scheduler_options){ .aging = -1 }, WG_EINVAL, "aging of -1 steps");
    cr_assert(wg_scheduler_open(NULL, PLAIN, NULL, NULL) == WG_EINVAL);
    cr_assert(wg_scheduler_step(NULL, NULL, NULL) == WG_EINVAL && wg_scheduler_cancel(NULL, 1, NULL) == WG_EINVAL);
    wg_scheduler_close(NULL);
}

Test(scheduler, texts)
{
    wg_error err;
    int32_t *token = NULL;
    int n = 0;
    char *text = NULL, whole[512] = "";
    size_t bytes = 0;
    wg_scheduler *s = open_scheduler(PLAIN, NULL);
    wg_scheduler_about a = { .size = sizeof a };
    cr_assert(wg_scheduler_about_get(s, &a, &err) == WG_OK && a.vocab > 100 && a.batch == 1 && a.queue == 256 && !a.chat);
    cr_assert(a.lossless && !a.law_only && a.max_tokens == 24 && !strcmp(a.model, MODEL) && a.bos >= -1);
    const char *const said = "Zo\xc3\xab saw a \xe2\x82\xac coin.";
    cr_assert(wg_scheduler_tokenize(s, said, strlen(said), 0, 0, &token, &n, &err) == WG_OK, "%s", err.text);
    cr_assert(wg_scheduler_detokenize(s, token, n, 0, &text, &bytes, &err) == WG_OK && bytes == strlen(text));
    cr_assert(strcmp(text, said) == 0, "%s", text);
    wg_detokenizer *d = NULL;
    cr_assert(wg_detokenizer_open(&d, s, &err) == WG_OK);
    const char *piece;
    for (int i = 0; i < n; i++) {
        cr_assert(wg_detokenizer_put(d, token + i, 1, &piece, &bytes, &err) == WG_OK && strlen(piece) == bytes);
        cr_assert((*piece & 0xC0) != 0x80, "a piece begins inside a character");
        strcat(whole, piece);
    }
    cr_assert(wg_detokenizer_put(d, NULL, 0, &piece, &bytes, &err) == WG_OK);
    strcat(whole, piece);
    cr_assert(strcmp(whole + (*whole == ' '), said) == 0, "%s", whole);
    const int32_t none = 1 << 29;
    cr_assert(wg_detokenizer_put(d, &none, 1, &piece, &bytes, &err) == WG_EINVAL && strstr(err.text, "token 0 is 536870912"));
    wg_detokenizer_close(d);
    wg_tokens_free(token);
    wg_text_free(text);
    cr_assert(wg_scheduler_chat(s, "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}", &text, &token, &n, &err) ==
              WG_EUNSUPPORTED);
    cr_assert(strstr(err.text, "this model has no chat template; name one in the config"), "%s", err.text);
    wg_scheduler_close(s);
}

static void bad_chat(wg_scheduler *s, const char *conversation, const char *why)
{
    wg_error err;
    char *text = NULL;
    cr_assert(wg_scheduler_chat(s, conversation, &text, NULL, NULL, &err) == WG_EINVAL && !text);
    cr_assert(strstr(err.text, why), "%s", err.text);
}

Test(scheduler, conversations)
{
    wg_error err;
    int32_t *token = NULL;
    int n = 0;
    char *text = NULL;
    wg_scheduler *s = open_scheduler("{" TARGET ", \"prompts\": {\"chat\": \"vicuna\"}}", NULL);
    const char *const said = "{\"messages\": [{\"role\": \"system\", \"content\": \"Be kind.\"}, {\"role\": \"user\", "
                             "\"content\": [{\"type\": \"text\", "
                             "\"text\": \"Hel\"}, {\"type\": \"text\", \"text\": \"lo\"}]}]}";
    cr_assert(wg_scheduler_chat(s, said, &text, &token, &n, &err) == WG_OK, "%s", err.text);
    cr_assert(strstr(text, "Be kind.") && strstr(text, "Hello") && n > 5, "%s", text);
    wg_text_free(text);
    wg_tokens_free(token);
    bad_chat(s, "[]", "expected an object with messages");
    bad_chat(s, "{\"messages\": 3}", "messages: expected a list of one or more {\"role\": ...");
    bad_chat(s, "{\"messages\": [{\"content\": \"x\"}]}", "messages[0].role: expected a text");
    bad_chat(s, "{\"messages\": [{\"role\": \"user\", \"content\": 3}]}", "messages[0].content: expected a text, or a list");
    bad_chat(s, "{\"messages\": [{\"role\": \"tool\", \"content\": \"x\"}]}",
             "this template takes a system text, then user and assistant in turn");
    bad_chat(s, "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", \"content\": \"y\"}]}",
             "messages: the last one is not the user's; an answer follows");
    bad_chat(s, "{", "conversation:1");
    bad_chat(s, "{\"messages\": [{\"role\": \"user\", \"content\": \"x\", \"name\": \"Ann\"}]}",
             "messages[0].name has no meaning for this chat template; leave it out");
    bad_chat(s, "{\"messages\": [{\"role\": \"user\", \"content\": \"x\", \"tool_calls\": [1]}]}",
             "messages[0].tool_calls has no");
    bad_chat(s, "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"tools\": []}",
             "\"tools\" has no meaning for this chat template");
    bad_chat(s, "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"add_generation_prompt\": false}",
             "\"add_generation_prompt\" has no meaning for this chat template, which reads messages alone; leave it out");
    const char *const developer = "{\"messages\": [{\"role\": \"developer\", \"content\": \"Be kind.\"}, {\"role\": \"user\", "
                                  "\"content\": \"Hello\"}], \"add_generation_prompt\": true}";
    cr_assert(wg_scheduler_chat(s, developer, &text, NULL, NULL, &err) == WG_OK, "%s", err.text);
    cr_assert(strstr(text, "Be kind.") && strstr(text, "Hello"), "%s", text);
    wg_text_free(text);
    wg_scheduler_close(s);
}

/* ---- grammars of requests */

static void no_grammar(wg_scheduler *s, int kind, const char *text, wg_status code, const char *says)
{
    wg_grammar *g = NULL;
    wg_error err;
    const wg_status status = wg_grammar_open(&g, s, (wg_grammar_kind)kind, text, text ? strlen(text) : 0, &err);
    cr_assert(status == code && !g && strstr(err.text, says), "%s", err.text);
}

/* Requests under one schema beside one without: the same with drafts and one at a time, and a whole text each. */
Test(scheduler, requests_have_grammars)
{
    static const char schema[] = "{\"type\": \"array\", \"items\": {\"enum\": [\"cat\", \"dog\"]}, \"minItems\": 1, "
                                 "\"maxItems\": 3}";
    static told alone[2], together[3];
    for (int drafted = 0; drafted < 2; drafted++) {
        wg_scheduler *s = open_scheduler(drafted ? DRAFTED : PLAIN, NULL);
        wg_grammar *g;
        wg_error err;
        cr_assert(wg_grammar_open(&g, s, WG_GRAMMAR_SCHEMA, schema, strlen(schema), &err) == WG_OK, "%s", err.text);
        told *t = drafted ? together : alone;
        for (uint32_t i = 0; i < 2; i++) {
            submit(s, prompts[i], (wg_request){ .seed = 5, .number = i, .max_tokens = 60, .grammar = g }, &t[i]);
            if (!drafted) run(s);
        }
        if (drafted) submit(s, prompts[2], (wg_request){ .seed = 5 }, &t[2]);
        run(s);
        for (int i = 0; i < 2; i++) {
            char *text;
            size_t n;
            cr_assert(t[i].end == WG_END_EOS && t[i].n > 2);
            cr_assert(wg_scheduler_detokenize(s, t[i].token, t[i].n, 0, &text, &n, &err) == WG_OK, "%s", err.text);
            cr_assert(strchr(text, '[') && strchr(text, ']'), "%s", text);
            cr_assert(strstr(text, "\"cat\"") || strstr(text, "\"dog\""), "%s", text);
            wg_text_free(text);
            if (drafted) expect_same(&alone[i], &t[i]);
        }
        no_grammar(s, WG_GRAMMAR_GBNF, "root ::= x", WG_EFORMAT, "grammar:1:10: a rule that is nowhere defined");
        no_grammar(s, WG_GRAMMAR_SCHEMA, "{\"not\": 1}", WG_EUNSUPPORTED, "schema#: the keyword not is not supported");
        no_grammar(s, WG_GRAMMAR_SCHEMA, "{", WG_EFORMAT, "schema:1");
        no_grammar(s, WG_GRAMMAR_SCHEMA, "false", WG_EFORMAT, "schema#: expected a schema that something satisfies");
        no_grammar(s, WG_GRAMMAR_SCHEMA, "{\"const\": 18446744073709551615}", WG_EUNSUPPORTED, "a number beyond 64 bits");
        no_grammar(s, WG_GRAMMAR_GBNF, NULL, WG_EINVAL, "text is NULL");
        no_grammar(s, 7, "", WG_EINVAL, "wg_grammar_open: kind 7; expected 0..2");
        wg_grammar_close(g);
        wg_grammar_close(NULL);
        cr_assert(wg_grammar_open(&g, s, WG_GRAMMAR_JSON, NULL, 0, &err) == WG_OK, "%s", err.text);
        wg_grammar_close(g);
        wg_scheduler_close(s);
    }
}

static wg_grammar *schema_of(wg_scheduler *s, int i)
{
    char text[120];
    wg_grammar *g = NULL;
    wg_error err;
    const int n = snprintf(
        text, sizeof text,
        "{\"type\": \"object\", \"properties\": {\"key%d\": {\"type\": \"string\"}}, \"required\": [\"key%d\"]}", i, i);
    cr_assert(wg_grammar_open(&g, s, WG_GRAMMAR_SCHEMA, text, (size_t)n, &err) == WG_OK, "%s", err.text);
    return g;
}

/* MiB of this process that are in memory; 0 under a sanitizer, which keeps what was freed. */
static long resident(void)
{
#ifdef __SANITIZE_ADDRESS__
    return 0;
#endif
    long whole = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    cr_assert(f && fscanf(f, "%ld %ld", &whole, &pages) == 2);
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE) >> 20;
}

/* A text is compiled once, as long as it is used or among the last ones; a grammar that waits costs little, and those that
 * nobody uses have a bound. */
Test(scheduler, grammars_are_shared_and_bounded)
{
    enum { MANY = 64 };
    wg_scheduler *s = open_scheduler(DRAFTED, NULL);
    wg_grammar *a = schema_of(s, 0), *b, *many[MANY];
    wg_grammar_close(a);
    b = schema_of(s, 1);
    cr_assert(schema_of(s, 0) == a && schema_of(s, 0) == a && a != b, "compiled again");
    wg_grammar_close(a);
    wg_grammar_close(a);
    wg_grammar_close(b);
    const long start = resident();
    for (int i = 0; i < MANY; i++) many[i] = schema_of(s, 100 + i);
    cr_assert(resident() - start < 30, "%d grammars that wait: %ld MiB", MANY, resident() - start);
    long after[3];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            static told t;
            wg_grammar *g = round ? schema_of(s, 1000 * round + i) : many[i];
            t = (told){ 0 };
            submit(s, prompts[0], (wg_request){ .seed = (uint64_t)i, .max_tokens = 12, .grammar = g }, &t);
            run(s);
            cr_assert(t.n > 0);
            wg_grammar_close(g);
        }
        after[round] = resident();
    }
    cr_assert(after[0] - start < 120 && after[2] - after[0] < 16, "%ld, then %ld, %ld and %ld MiB", start, after[0], after[1],
              after[2]);
    wg_scheduler_close(s);
}
