/* SPDX-License-Identifier: MIT
 * Answers of the bundled pair under twenty JSON schemas, sampled with speculation off and on: every answer that ends is valid
 * under a validator that shares nothing with the grammar, and under `match` the answers with drafts are those without, byte for
 * byte. usage: law_schemas [ANSWERS], to each schema, 1 to 100 (usually 1); with 50 there are 1,000 in each of the ways. Exit
 * 77: there is no bundled pair. */
#include "core/engine/seq_rows.h"
#include "core/text/grammar/constraint.h"
#include "tests/bundled.h"
#include "tests/law/plain_decode.h"
#include "tests/schema_check.h"

#include <unistd.h>

enum { SCHEMAS = 20, MOST = 100, GROUP = 8, NEW = 120 };
static int answers = 1; /* to each schema, GROUP at a time */
#define TARGET BUNDLED_TARGET
#define DRAFT BUNDLED_DRAFT

static const struct way {
    const char *drafter, *options, *rule;
    bool forced;
} ways[] = {
    { "none", "", "match", false },
    { "model", "model=" DRAFT ",length=4", "match", true },
    { "model", "model=" DRAFT ",tree=2-2", "rejection", true },
    { "suffix", "", "rejection", true },
    { "none", "", "rejection", true },
};
enum { WAYS = sizeof ways / sizeof *ways };

static struct {
    long answers, valid, unfinished, emitted, passes, drafted, accepted;
} sum[WAYS];
static int failures;
static int32_t *prompt;
static int prompt_n;
static char *plain[SCHEMAS][MOST];

static void judge(const law_model *m, const json_t *schema, const wg_seq *s, int way, int i, int answer)
{
    wg_error err;
    char *text;
    size_t n;
    const int end = s->n - (s->finish == WG_FINISH_EOS);
    LAW_TRY(wg_tokenizer_decode(m->tokenizer, s->token + s->prompt - 1, (size_t)(end - s->prompt + 1), false, &text, &n, &err));
    /* From the prompt's last token on, so that the first token keeps its space; its own text, "said:", goes. */
    const char *from = strchr(text, ':');
    from = from ? from + 1 : text;
    sum[way].answers++;
    sum[way].emitted += s->counts.emitted, sum[way].passes += s->counts.passes;
    sum[way].drafted += s->counts.drafted, sum[way].accepted += s->counts.accepted;
    if (s->finish != WG_FINISH_EOS) sum[way].unfinished++;
    else if (check_answer(schema, from, strlen(from)) && wg_seq_is_whole(s)) sum[way].valid++;
    else {
        fprintf(stderr, "FAILED schema %d, %s:%s, rule %s: not valid: %s\n", i, ways[way].drafter, ways[way].options,
                ways[way].rule, from);
        failures++;
    }
    if (way == 0) plain[i][answer] = text;
    else {
        if (way == 1 && strcmp(text, plain[i][answer])) {
            fprintf(stderr, "FAILED schema %d: match with drafts: %s, without: %s\n", i, text, plain[i][answer]);
            failures++;
        }
        wg_free(text);
    }
}

/* n answers to a schema, from number `first` on. */
static void run_group(const law_model *m, wg_engine *e, int way, int i, const wg_seq_sampling *how, const json_t *schema,
                      int first, int n)
{
    wg_error err;
    wg_seq *seq[GROUP], *running[GROUP];
    for (int k = 0; k < n; k++) {
        LAW_TRY(wg_seq_open(e, &seq[k], (uint32_t)(MOST * i + first + k), prompt, prompt_n, NEW, &err));
        LAW_TRY(wg_seq_sample(e, seq[k], how, &err));
    }
    for (int some = 1; some > 0;) {
        some = 0;
        for (int k = 0; k < n; k++)
            if (seq[k]->finish == WG_RUNNING) running[some++] = seq[k];
        if (some) LAW_TRY(wg_engine_step(e, running, some, &err));
    }
    for (int k = 0; k < n; k++) {
        judge(m, schema, seq[k], way, i, first + k);
        wg_seq_close(e, seq[k]);
    }
}

static void run_way(const law_model *m, const wg_token_trie *trie, int way)
{
    wg_error err;
    const law_setup setup = { .target = m,
                              .drafter = ways[way].drafter,
                              .options = ways[way].options,
                              .rule = ways[way].rule,
                              .sampling = { .temperature = 0.8, .top_p = 0.95 },
                              .seed = 5,
                              .batch = answers < GROUP ? answers : GROUP,
                              .max_tokens = prompt_n + NEW };
    wg_engine *e = law_engine(&setup);
    for (int i = 0; i < SCHEMAS; i++) {
        json_t *schema = json_loads(check_schemas[i], 0, NULL);
        wg_constraint c;
        LAW_TRY(wg_constraint_open(&c, WG_CONSTRAINT_SCHEMA, "schema", check_schemas[i], strlen(check_schemas[i]), trie, &err));
        const wg_seq_sampling how = { .acceptor = c.acceptor, .forced = ways[way].forced };
        for (int k = 0; k < answers; k += GROUP)
            run_group(m, e, way, i, &how, schema, k, answers - k < GROUP ? answers - k : GROUP);
        wg_constraint_close(&c);
        json_decref(schema);
    }
    wg_engine_close(e);
}

int main(int argc, char **argv)
{
    law_model m;
    wg_token_trie *trie;
    wg_error err;
    size_t n;
    const double start = wg_clock_now();
    if (argc > 1) answers = atoi(argv[1]);
    if (answers < 1 || answers > MOST) exit((fprintf(stderr, "usage: law_schemas [ANSWERS to each schema, 1..%d]\n", MOST), 2));
    if (access(TARGET, R_OK) || access(DRAFT, R_OK)) {
        printf("SKIPPED: no bundled pair in models/\n");
        return LAW_SKIP;
    }
    law_model_open(&m, TARGET, 2, wg_cpu_chosen(), WG_F16);
    LAW_TRY(wg_tokenizer_encode(m.tokenizer, "The computer said:", 18, true, false, &prompt, &n, &err));
    prompt_n = (int)n;
    LAW_TRY(wg_token_trie_of(&trie, m.tokenizer, m.lm->vocab, &err));
    for (int way = 0; way < WAYS; way++) {
        run_way(&m, trie, way);
        printf("%s:%s, rule %s%s: %ld answers, %ld valid, %ld cut by the limit; tau %.2f, %ld of %ld drafts kept\n",
               ways[way].drafter, ways[way].options, ways[way].rule, ways[way].forced ? ", forced" : "", sum[way].answers,
               sum[way].valid, sum[way].unfinished, (double)sum[way].emitted / (double)sum[way].passes, sum[way].accepted,
               sum[way].drafted);
        if (sum[way].valid * 10 < sum[way].answers * 6) {
            fprintf(stderr, "FAILED: few answers end\n");
            failures++;
        }
    }
    for (int i = 0; i < SCHEMAS; i++)
        for (int k = 0; k < answers; k++) wg_free(plain[i][k]);
    wg_token_trie_close(trie);
    wg_free(prompt);
    law_model_close(&m);
    printf("%.1f s\n", wg_clock_now() - start);
    return failures != 0;
}
