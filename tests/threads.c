/* SPDX-License-Identifier: MIT
 * The program for ThreadSanitizer (Criterion does not start under it): the pool alone, then batches of sequences decoded with
 * three threads and on three ranks by every drafter, compared with one thread; then every rule on three threads over the same
 * rows; then texts: a template and a tokenizer that two threads share, and such that are refused; then two sessions of libwager
 * at once; then a scheduler that other threads submit to and cancel in. Built with -DWG_SANITIZE=thread a race fails it; built
 * otherwise it still compares. */
#include <unistd.h>

#include "core/file/synth.h"
#include "core/setup/target.h"
#include "core/file/tokenizer_file.h"
#include "core/text/jinja/jinja.h"
#include "core/text/pretok.h"
#include "core/text/tokenizer.h"
#include "kernels/philox.h"
#include <pthread.h>

#include "include/wager.h"
#include "tests/bundled.h"
#include "tests/law/plain_decode.h"
#include "verify/verify.h"

enum { THREADS = 3, JOBS = 2000, ITEMS = 97, REQUESTS = 6 };

static char dir[] = "/tmp/wg-threads-XXXXXX";
static char target_path[64], draft_path[64];

static void write_models(void)
{
    wg_error err;
    if (!mkdtemp(dir)) exit((perror(dir), 1));
    snprintf(target_path, sizeof target_path, "%s/target.gguf", dir);
    snprintf(draft_path, sizeof draft_path, "%s/draft.gguf", dir);
    const wg_synth_shape s = {
        .name = "target", .layers = 2, .dim = 64, .heads = 4, .kv_heads = 2, .hidden = 96, .vocab = 320, .context = 128
    };
    LAW_TRY(wg_synth_write(&s, WG_F32, 1, target_path, &err));
    LAW_TRY(wg_synth_write(&s, WG_Q8_0, 1, draft_path, &err));
}

static void remove_models(void) { remove(target_path), remove(draft_path), remove(dir); }

typedef struct job {
    int items[ITEMS], round;
} job;

/* Each thread writes its share and reads what the others wrote in the round before. */
static void add(void *arg, int thread, int threads)
{
    job *j = arg;
    int lo, hi;
    wg_pool_share(ITEMS, 8, thread, threads, &lo, &hi);
    for (int i = lo; i < hi; i++) j->items[i] += j->round;
    if (thread == 0 && j->round % 8 == 0) usleep(100); /* or the caller would run most parts itself */
}

static void add_items(void *arg, int lo, int hi)
{
    job *j = arg;
    for (int i = lo; i < hi; i++) j->items[i] += j->round;
}

static int check_pool(void)
{
    wg_error err;
    wg_pool *pool;
    LAW_TRY(wg_pool_open(&pool, THREADS, &err));
    job j = { 0 };
    long sum = 0, want = 0;
    for (j.round = 1; j.round <= JOBS; j.round++) {
        if (j.round % 2) wg_pool_run(pool, add, &j);
        else wg_pool_each(pool, ITEMS, 8, add_items, &j);
        want += j.round;
        if (j.round % 500 == 0) usleep(20000); /* long enough for the workers to fall asleep */
        for (int i = 0; i < ITEMS; i++) sum += j.items[i] != want;
    }
    wg_pool_close(pool);
    printf("pool: %d jobs on %d threads, %ld wrong items\n", JOBS, THREADS, sum);
    return sum != 0;
}

/* The target on three ranks, with its own parts of the matrices each. */
static wg_target *open_ranks(law_model *out)
{
    wg_error err;
    wg_target *t;
    LAW_TRY(
        wg_target_open(&t, target_path, &(wg_target_options){ .ranks = "threads:3", .model = { .kv_type = WG_F16 } }, &err));
    *out = (law_model){ .lm = t->lm, .tokenizer = t->tokenizer, .pool = t->pool, .ops = t->ops };
    return t;
}

static int check_decode(void)
{
    char options[128];
    snprintf(options, sizeof options, "model=%s,tree=2-1-1", draft_path);
    int32_t prompt[REQUESTS][40];
    law_request r[REQUESTS];
    for (int i = 0; i < REQUESTS; i++) {
        for (int k = 0; k < 40; k++) prompt[i][k] = 3 + (i + 5 * k) % 17;
        r[i] = (law_request){ prompt[i], 1 + 7 * i, 8 + 3 * i };
    }
    const struct {
        const char *drafter, *options;
    } drafters[] = { { "none", NULL }, { "model", options }, { "ngram", NULL } };
    law_model one, three, ranked;
    wg_target *target = open_ranks(&ranked);
    law_model_open(&one, target_path, 1, wg_cpu_chosen(), WG_F16);
    law_model_open(&three, target_path, THREADS, wg_cpu_chosen(), WG_F16);
    int failures = 0;
    for (int d = 0; d < 3; d++) {
        law_output want[REQUESTS] = { 0 }, got[REQUESTS] = { 0 };
        wg_counts counts = { 0 };
        law_setup s = {
            .target = &one, .drafter = "none", .rule = "match", .sampling = WG_SAMPLING(0.8, 0, 0.95, 0), .seed = 1, .batch = 1
        };
        law_decode(&s, r, REQUESTS, want, &counts);
        s.target = &three;
        s.drafter = drafters[d].drafter;
        s.options = drafters[d].options;
        s.batch = 4;
        law_decode(&s, r, REQUESTS, got, &counts);
        failures += law_compare(s.drafter, want, got, REQUESTS);
        printf("%s: %ld tokens, %d threads\n", s.drafter, law_tokens(got, REQUESTS), THREADS);
        law_free(got, REQUESTS);
        memset(got, 0, sizeof got);
        s.target = &ranked;
        law_decode(&s, r, REQUESTS, got, &counts);
        failures += law_compare("on ranks", want, got, REQUESTS);
        printf("%s: %ld tokens, 3 ranks\n", s.drafter, law_tokens(got, REQUESTS));
        law_free(want, REQUESTS);
        law_free(got, REQUESTS);
    }
    wg_target_close(target);
    law_model_close(&one);
    law_model_close(&three);
    return failures;
}

/* ---- rules: threads that verify at the same time read the same rows, each with a workspace of its own (verifier.h) */

enum { VOCAB = 64, VERIFIED = 400 };

typedef struct rules_job {
    const wg_verifier_class *rule;
    const void *options;
    wg_tree tree;
    wg_rows p, q;
    wg_workspace work[THREADS];
    wg_path path[VERIFIED];
} rules_job;

static void verify_share(void *arg, int thread, int threads)
{
    rules_job *j = arg;
    for (int i = thread; i < VERIFIED; i += threads) {
        const wg_chance c = wg_chance_philox(5, (uint32_t)i, 9);
        j->rule->accept(j->options, &j->tree, &j->p, &j->q, &c, &j->work[thread], &j->path[i]);
    }
}

/* Row i has its mass on VOCAB / 2 tokens; q is near p. */
static void fill_rows(wg_rows *r, int n, uint32_t which)
{
    for (int i = 0; i < n; i++) {
        double *x = wg_rows_at(r, wg_rows_push(r)), sum = 0;
        for (int k = 0; k < VOCAB; k++) {
            const wg_philox a = wg_philox_at(3, (uint32_t)k, (uint32_t)i, 0, 0),
                            b = wg_philox_at(4, (uint32_t)k, (uint32_t)i, which, 0);
            sum += x[k] = k % 2 ? 0 : wg_philox_double(a.v[0], a.v[1]) + 0.3 * wg_philox_double(b.v[0], b.v[1]);
        }
        for (int k = 0; k < VOCAB; k++) x[k] /= sum;
    }
}

/* A chain of three, or two children at the root and one below each. */
static void draw_tree(rules_job *j, wg_sibling_law law)
{
    static const int parents[] = { -1, 0, 0, 1, 2 };
    const wg_chance c = wg_chance_philox(7, 1, 1);
    const int n = j->rule->chains ? 4 : 5;
    wg_tree_reset(&j->tree, 0, law);
    for (int i = 1; i < n; i++) {
        const int parent = j->rule->chains ? i - 1 : parents[i], token = wg_rows_pick(&j->q, parent, &c, WG_DRAW_DRAFT, i);
        wg_tree_push(&j->tree, parent, token, law == WG_LAW_FIXED ? -1 : parent);
    }
}

static int check_rules(void)
{
    static rules_job one, three;
    wg_error err;
    wg_pool *pool;
    int wrong = 0, kept = 0, rules = 0;
    LAW_TRY(wg_pool_open(&pool, THREADS, &err));
    LAW_TRY(wg_rows_open(&one.p, 5, VOCAB, &err));
    LAW_TRY(wg_rows_open(&one.q, 5, VOCAB, &err));
    for (int t = 0; t < THREADS; t++) LAW_TRY(wg_workspace_open(&one.work[t], VOCAB, &err));
    fill_rows(&one.p, 5, 1);
    fill_rows(&one.q, 5, 2);
    for (const wg_verifier_class *const *v = wg_verifiers; *v; v++, rules++) {
        char options[64] __attribute__((aligned(16)));
        wg_option_defaults((*v)->options, options);
        one.rule = *v;
        one.options = options;
        draw_tree(&one, (*v)->laws & WG_LAW_IID ? WG_LAW_IID : WG_LAW_FIXED);
        three = one;
        verify_share(&one, 0, 1);
        wg_pool_run(pool, verify_share, &three);
        for (int i = 0; i < VERIFIED; i++) {
            const wg_path *a = &one.path[i], *b = &three.path[i];
            kept += a->n - 1;
            wrong += a->n != b->n || a->next != b->next || memcmp(a->node, b->node, (size_t)a->n * sizeof a->node[0]) != 0;
        }
    }
    printf("rules: %d on %d threads, %d tokens kept, %d paths differ\n", rules, THREADS, kept, wrong);
    for (int t = 0; t < THREADS; t++) wg_workspace_close(&one.work[t]);
    wg_rows_close(&one.p);
    wg_rows_close(&one.q);
    wg_pool_close(pool);
    return wrong + (kept == 0);
}

/* ---- texts: what is open is read only, and what is refused leaves nothing behind */

enum { ROUNDS = 200 };

typedef struct text_job {
    const wg_tokenizer *tokenizer;
    const wg_jinja *template;
    const json_t *data;
    uint64_t digest; /* of all ids and texts */
    int failed;
} text_job;

/* A template with a mistake in front of other text, and an expression that is longer than a program. */
static int refuse_both(void)
{
    char regex[200] = "";
    wg_jinja *bad = NULL;
    wg_pretok *pre = NULL;
    wg_error err;
    memset(regex, 'a', 180);
    const wg_text words[] = { { "split", 5 }, { "isolated", 8 }, { regex, strlen(regex) } };
    const char text[] = "{{ 1 + }} {% for x in [1, 2] %}{{ x }}{% endfor %}";
    return (wg_jinja_open(&bad, "bad", text, sizeof text - 1, &err) == WG_OK) +
           (wg_pretok_open(&pre, "long", "key", words, 3, &err) == WG_OK);
}

static void *use_texts(void *arg)
{
    static const char text[] = "It's 12345 tokens,\n\n  \xe4\xb8\xad\xe6\x96\x87 and e\xcc\x81 more ...";
    text_job *j = arg;
    wg_error err;
    j->digest = WG_HASH_START;
    for (int i = 0; i < ROUNDS; i++) {
        int32_t *ids;
        size_t n;
        wg_rendered out;
        j->failed += wg_tokenizer_encode(j->tokenizer, text, sizeof text - 1, true, true, &ids, &n, &err) != WG_OK;
        j->digest = wg_hash64(j->digest, ids, n * sizeof *ids);
        wg_free(ids);
        j->failed += wg_jinja_render(j->template, &(wg_jinja_input){ .data = j->data }, &out, &err) != WG_OK;
        j->digest = wg_hash64(j->digest, out.text, out.n);
        wg_rendered_free(&out);
        j->failed += refuse_both();
    }
    return NULL;
}

/* The tokenizer of a fixture, whose pre-tokeniser has expressions, and whose normaliser has tables. */
static wg_tokenizer *open_fixture(const char *fixture)
{
    char path[64];
    wg_error err;
    wg_weights *w;
    wg_tokenizer *t;
    json_t *v = json_load_file(fixture, JSON_ALLOW_NUL, NULL);
    snprintf(path, sizeof path, "%s/t.json", dir);
    if (!v || json_dump_file(json_object_get(v, "tokenizer"), path, JSON_COMPACT)) exit((perror(fixture), 1));
    json_decref(v);
    LAW_TRY(wg_tokenizer_file_open(&w, path, &err));
    LAW_TRY(wg_tokenizer_open(&t, w, &err));
    wg_weights_close(w);
    remove(path);
    return t;
}

static int check_texts(void)
{
    static const char template[] =
        "{% for m in messages %}{{ loop.index }}{{ m.role | upper }}: {{ m.content.split() | join('_') }}"
        "{% for x in none_such %}{{ x }}{% endfor %}{{ {'a': [1, m]} | tojson }}{% endfor %}";
    wg_error err;
    wg_jinja *open;
    pthread_t thread[2];
    json_t *data = json_pack("{s:[{s:s, s:s}, {s:s, s:s}]}", "messages", "role", "user", "content", "a b  c", "role", "system",
                             "content", "d");
    wg_tokenizer *t = open_fixture("tests/conformance/tokenizers/qwen2.json");
    LAW_TRY(wg_jinja_open(&open, "shared", template, sizeof template - 1, &err));
    text_job job[2] = { { t, open, data, 0, 0 }, { t, open, data, 0, 0 } };
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, use_texts, &job[i])) return 1;
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    const bool same = job[0].digest == job[1].digest && job[0].failed + job[1].failed == 0;
    printf("texts: two threads, %d rounds, %s\n", ROUNDS, same ? "one digest" : "DIGESTS DIFFER");
    wg_jinja_close(open);
    wg_tokenizer_close(t);
    json_decref(data);
    return !same;
}

/* ---- libwager: two sessions of one process on two threads, each with a pool of its own */

typedef struct session_job {
    const char *drafter;
    char text[1 << 12];
    bool failed;
} session_job;

/* Opens, generates and closes three times; the last text counts. */
static void *run_session(void *arg)
{
    session_job *j = arg;
    char config[512];
    snprintf(config, sizeof config,
             "{\"target\": {\"model\": \"" BUNDLED_DRAFT "\", \"threads\": 2}, \"draft\": {\"kind\": \"%s\"}, "
             "\"verify\": {\"rule\": \"match\"}, \"sampling\": {\"temperature\": 0.8}, \"max_tokens\": 24}",
             j->drafter);
    for (int i = 0; i < 3; i++) {
        char *text = NULL;
        wg_error err;
        j->failed = wg_generate(NULL, "Once upon a time", config, &text, &err) != WG_OK;
        snprintf(j->text, sizeof j->text, "%s", j->failed ? err.text : text);
        wg_text_free(text);
    }
    return NULL;
}

static int check_sessions(void)
{
    static session_job job[] = { { .drafter = "none" }, { .drafter = "ngram" } };
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, run_session, &job[i])) return 1;
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    const bool same = !strcmp(job[0].text, job[1].text) && !job[0].failed && !job[1].failed;
    printf("libwager: two sessions at once, %s\n", same ? "one text" : "TEXTS DIFFER");
    if (!same) printf("%s\n%s\n", job[0].text, job[1].text);
    return !same;
}

/* ---- libwager: threads that submit, cancel and count while one steps */

enum { CLIENTS = 3, EACH = 12 };

typedef struct client {
    wg_scheduler *s;
    int index, refused;
    int32_t token[EACH][32];
    int n[EACH], last[EACH];
    wg_end end[EACH];
} client;

typedef struct answer {
    client *of;
    int i;
} answer;

static void on_answer(void *user, const wg_event *e)
{
    const answer *a = user;
    client *c = a->of;
    for (int k = 0; e->kind == WG_EVENT_ROUND && k < e->n; k++) c->token[a->i][c->n[a->i]++] = e->token[k];
    if (e->kind == WG_EVENT_ENDED || e->kind == WG_EVENT_FAILED) c->last[a->i]++, c->end[a->i] = e->end;
}

/* Its requests, every third of which it cancels at once. Request i of every client is the same. */
static void *submit_all(void *arg)
{
    static answer answers[CLIENTS][EACH];
    client *c = arg;
    for (int i = 0; i < EACH; i++) {
        int32_t prompt[24];
        uint64_t id = 0;
        for (int k = 0; k < 24; k++) prompt[k] = 3 + (i % 4 + 5 * k) % 17;
        answers[c->index][i] = (answer){ c, i };
        const wg_request r = { .size = sizeof r,
                               .token = prompt,
                               .n = 10 + i,
                               .max_tokens = 16,
                               .number = (uint32_t)i,
                               .seed = 4,
                               .user = &answers[c->index][i],
                               .on_event = on_answer };
        wg_scheduler_stats t = { .size = sizeof t };
        while (wg_scheduler_submit(c->s, &r, &id, NULL) == WG_EFULL) c->refused++, usleep(200);
        if (i % 3 == c->index) wg_scheduler_cancel(c->s, id, NULL);
        wg_scheduler_stats_get(c->s, &t, NULL);
        usleep(100);
    }
    return NULL;
}

static int check_scheduler(void)
{
    static client c[CLIENTS];
    pthread_t thread[CLIENTS];
    wg_error err;
    wg_scheduler *s;
    const wg_scheduler_options o = { .size = sizeof o, .prefix_cache = 1, .queue = 6, .pages = 24, .prefill_rows = 8 };
    LAW_TRY(
        wg_scheduler_open(&s,
                          "{\"target\": {\"model\": \"" BUNDLED_DRAFT "\", \"threads\": 2}, \"draft\": {\"kind\": "
                          "\"ngram\"}, \"verify\": {\"rule\": \"match\"}, \"sampling\": {\"temperature\": 0.8}, \"batch\": 4}",
                          &o, &err));
    for (int i = 0; i < CLIENTS; i++) {
        c[i] = (client){ .s = s, .index = i };
        if (pthread_create(&thread[i], NULL, submit_all, &c[i])) return 1;
    }
    wg_scheduler_stats t = { .size = sizeof t };
    for (t.ended = 0; t.ended < CLIENTS * EACH; wg_scheduler_stats_get(s, &t, NULL))
        if (wg_scheduler_wait(s, 0.01)) wg_scheduler_step(s, NULL, NULL);
    for (int i = 0; i < CLIENTS; i++) pthread_join(thread[i], NULL);
    wg_scheduler_close(s);
    int bad = 0, cut = 0;
    for (int i = 0; i < EACH; i++) {
        const client *whole = &c[i % 3 == 0]; /* one that has not cancelled it */
        for (int k = 0; k < CLIENTS; k++) {
            const int n = c[k].n[i];
            bad += c[k].last[i] != 1 || n > whole->n[i] || memcmp(c[k].token[i], whole->token[i], (size_t)n * sizeof(int32_t));
            bad += c[k].end[i] != WG_END_CANCELLED && n != whole->n[i];
            cut += c[k].end[i] == WG_END_CANCELLED;
        }
    }
    printf("scheduler: %d requests of %d threads, %d cancelled, %s\n", CLIENTS * EACH, CLIENTS, cut,
           bad ? "TEXTS DIFFER" : "one text each");
    return bad != 0;
}

int main(void)
{
    write_models();
    atexit(remove_models);
    return (check_pool() + check_decode() + check_rules() + check_texts() + check_sessions() + check_scheduler()) != 0;
}
