/* SPDX-License-Identifier: MIT
 * Long texts: a draft model whose context is shorter reads the end of the text, with positions from 0; pages behind a window of
 * attention return to the pool, and nothing else changes. */
#include "draft/lm/lm_draft.h"
#include "tests/unit/draft/composed.h"
#include "tests/unit/model/tiny_model.h"

enum { VOCAB = 40, TEXT = 92, SHORT = 24, WINDOW = 64 };

static char brief_path[512]; /* the target's weights, rounded, with a context of SHORT positions */

static void open_models(void)
{
    wg_error err;
    const wg_synth_shape s = { .layers = 1, .dim = 32, .heads = 2, .hidden = 32, .vocab = VOCAB, .context = SHORT };
    open_target(VOCAB);
    snprintf(brief_path, sizeof brief_path, "%s", temp_at(&folder, "brief.gguf"));
    cr_assert_eq(wg_synth_write(&s, WG_Q8_0, 1, brief_path, &err), WG_OK, "%s", err.text);
}

TestSuite(window, .init = open_models, .fini = close_target);

Test(window, begins_at_a_function_of_the_length)
{
    cr_assert(wg_window_base(24, 24) == 0 && wg_window_base(25, 24) == 12 && wg_window_base(36, 24) == 12);
    cr_assert(wg_window_base(37, 24) == 24 && wg_window_base(1000, 1) == 0 && wg_window_base(9, 3) == 6);
    for (int context = 2; context < 40; context++)
        for (int n = 1, last = 0; n < 300; n++) {
            const int base = wg_window_base(n, context), left = n - base;
            cr_assert(base >= last && left >= 1 && left <= context && (base == 0 || left > context - context / 2));
            last = base;
        }
}

/* A prompt without order. */
static void make_text(int32_t *text, int n)
{
    for (int i = 0; i < n; i++) text[i] = (int32_t)(((uint32_t)i * 2654435761u >> 7) % VOCAB);
}

/* The draft for a long text is that for its last tokens alone. */
static void expect_draft_of_the_end(const char *options, wg_sampling sampling)
{
    wg_error err;
    int32_t text[TEXT];
    char with[700];
    make_text(text, TEXT);
    snprintf(with, sizeof with, options, brief_path);
    const law_setup setup = {
        .target = &target, .drafter = "model", .options = with, .rule = "rejection", .sampling = sampling, .seed = 5
    };
    for (int n = SHORT - 2; n < TEXT - 8; n++) {
        wg_engine *e = law_engine(&setup), *alone = law_engine(&setup);
        wg_seq *s, *end;
        const int base = wg_window_base(n, SHORT);
        LAW_TRY(wg_seq_open(e, &s, 1, text, n, 8, &err));
        LAW_TRY(wg_seq_open(alone, &end, 1, text + base, n - base, 8, &err));
        LAW_TRY(wg_engine_step(e, &s, 1, &err));
        LAW_TRY(wg_engine_step(alone, &end, 1, &err));
        const wg_last_step a = wg_engine_last_step(e), b = wg_engine_last_step(alone);
        cr_assert(a.tree->n > 1 && (sampling.temperature > 0 || a.tree->n == b.tree->n), "%s: %d tokens", with, n);
        for (int i = 1; i < a.tree->n && sampling.temperature == 0; i++)
            cr_assert(a.tree->token[i] == b.tree->token[i] && a.tree->parent[i] == b.tree->parent[i], "%s: %d tokens", with, n);
        double x[VOCAB], y[VOCAB];
        const double *p = wg_rows_dense(a.q, a.tree->qrow[1], x), *q = wg_rows_dense(b.q, b.tree->qrow[1], y);
        cr_assert_eq(memcmp(p, q, sizeof x), 0, "%s: q after %d tokens", with, n);
        wg_seq_close(e, s);
        wg_seq_close(alone, end);
        wg_engine_close(e);
        wg_engine_close(alone);
    }
}

Test(window, the_draft_is_that_of_the_last_tokens)
{
    expect_draft_of_the_end("model=%s,length=4", (wg_sampling)WG_SAMPLING(0, 0, 1, 0));
    expect_draft_of_the_end("model=%s,tree=2-1-1,kv_type=f32", (wg_sampling)WG_SAMPLING(0, 0, 1, 0));
    expect_draft_of_the_end("model=%s,grow=best_first,budget=6,length=5", (wg_sampling)WG_SAMPLING(0, 0, 1, 0));
    expect_draft_of_the_end("model=%s,length=3", (wg_sampling)WG_SAMPLING(1, 0, 1, 0));
}

/* Neither earlier rounds nor rejected drafts change it. */
Test(window, drafts_are_as_if_fresh)
{
    int32_t text[30];
    char options[700];
    make_text(text, 30);
    snprintf(options, sizeof options, "model=%s,length=4", brief_path);
    expect_drafts_as_if_fresh(&target, "model", options, (wg_sampling)WG_SAMPLING(0.7, 0, 1, 0), text, 20, TEXT - 20);
    expect_drafts_as_if_fresh(&target, "model", options, (wg_sampling)WG_SAMPLING(0.7, 0, 1, 0), text, 30, TEXT - 30);
    snprintf(options, sizeof options, "model=%s,grow=best_first,budget=6,length=5", brief_path);
    expect_drafts_as_if_fresh(&target, "model", options, (wg_sampling)WG_SAMPLING(0.7, 0, 1, 0), text, 20, TEXT - 20);
}

/* ---- pages behind the window of a target */

#ifdef WG_HARD
enum { LONG = 600, LESS = 600, PAGE = 2 };
#elif defined(__SANITIZE_ADDRESS__)
enum { LONG = 1500, LESS = 700, PAGE = 16 };
#else
enum { LONG = 4000, LESS = 1200, PAGE = 16 };
#endif

static char tiny_path[2][512]; /* a model with a window in all layers; a draft for it, with a short context as well */

static void write_windowed(void)
{
    wg_error err;
    tiny t = { .layers = 2,
               .dim = 16,
               .heads = 2,
               .kv_heads = 1,
               .head_dim = 8,
               .hidden = 16,
               .vocab = VOCAB,
               .context = 4096,
               .window = WINDOW,
               .seed = 3 };
    (void)tiny_open;
    for (int i = 0; i < 2; i++) {
        snprintf(tiny_path[i], sizeof tiny_path[i], "%s", temp_at(&folder, i ? "few.gguf" : "windowed.gguf"));
        cr_assert_eq(tiny_write(&t, tiny_path[i], &err), WG_OK, "%s", err.text);
        t.context = 100;
        t.window = 40;
    }
}

typedef struct reading {
    int32_t *token;
    int n, most; /* tokens; pages held after a step, at most */
} reading;

/* Decodes a text of LONG tokens, with a draft of LESS; pages: of the pool, 0 for enough. keep: pages do not return. */
static reading decode(const law_model *m, const char *drafter, const char *options, int pages, bool keep)
{
    wg_error err;
    const int n = strcmp(drafter, "none") ? LESS : LONG;
    int32_t prompt[300];
    reading r = { .token = malloc((size_t)n * sizeof *r.token), .n = n };
    make_text(prompt, 300);
    static const wg_plugins plugins = { wg_drafters, wg_verifiers };
    wg_engine_parts parts = { .target = m->lm, .pool = m->pool, .ops = m->ops, .rules = wg_verifiers, .plugins = &plugins };
    const wg_engine_options o = {
        .max_batch = 1, .page_slots = 16, .pages = pages, .sampling = WG_SAMPLING(0.8, 0, 1, 0), .seed = 9
    };
    wg_engine *e;
    wg_seq *s;
    LAW_TRY(wg_find_drafter(&plugins, drafter, &parts.drafter, &err));
    LAW_TRY(wg_find_verifier(&plugins, "match", &parts.verifier, &err));
    void *opt = law_options(parts.drafter, options);
    parts.drafter_options = (char *)opt;
    LAW_TRY(wg_engine_open(&e, &parts, &o, &err));
    wg_free(opt);
    if (keep) wg_kv_window(wg_engine_kv(e), m->lm->space, 0);
    LAW_TRY(wg_seq_open(e, &s, 0, prompt, 300, n - 300, &err));
    while (s->finish == WG_RUNNING) {
        LAW_TRY(wg_engine_step(e, &s, 1, &err));
        const int held = wg_kv_pages_held(s->kv);
        if (held > r.most) r.most = held;
    }
    cr_assert(s->n == n && (s->counts.accepted > 0 || !strcmp(drafter, "none")));
    memcpy(r.token, s->token, (size_t)n * sizeof *r.token);
    wg_seq_close(e, s);
    cr_assert_eq(wg_kv_pages_free(wg_engine_kv(e)), wg_kv_pages(wg_engine_kv(e)));
    wg_engine_close(e);
    return r;
}

/* The same text in a pool that could not hold it, with a number of pages that does not grow with it. */
Test(window, a_long_text_holds_few_pages)
{
    enum { BOUND = (WINDOW + WG_KV_BACK) / PAGE + 2 };
    const int pool = wg_kv_window_slots(WINDOW, 256, PAGE) / PAGE;
    law_model m;
    char with[700];
    write_windowed();
    law_model_open(&m, tiny_path[0], 1, wg_cpu_chosen(), WG_F16);
    const reading whole = decode(&m, "none", "", 0, true);
    cr_assert_eq(whole.most, (LONG - 1 + PAGE - 1) / PAGE);
    snprintf(with, sizeof with, "model=%s,length=3", tiny_path[1]);
    static const char *const drafters[] = { "none", "ngram", "model" };
    for (int i = 0; i < 3; i++) {
        const int more = i == 2 ? 300 / PAGE : 0; /* the draft model has read nothing before the first step */
        const reading r = decode(&m, drafters[i], i == 2 ? with : "", pool + more, false);
        cr_assert_eq(memcmp(r.token, whole.token, (size_t)r.n * sizeof *r.token), 0, "%s", drafters[i]);
        cr_assert(r.most <= (i == 2 ? BOUND + 300 / PAGE : BOUND), "%s: %d pages", drafters[i], r.most);
        free(r.token);
    }
    const reading sinks = decode(&m, "sparse_kv", "sinks=2,window=20,length=2", 0, false);
    cr_assert(sinks.most >= (LESS - 1) / PAGE && !memcmp(sinks.token, whole.token, LESS * sizeof *sinks.token));
    free(sinks.token);
    free(whole.token);
    law_model_close(&m);
}
