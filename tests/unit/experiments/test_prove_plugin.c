/* SPDX-License-Identifier: MIT
 * A rule in a shared object is proved like a built-in one, and a drafter is held to its contract; an object that is no rule is
 * refused with the reason. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/cli/cli.h"
#include "verify/proof/counterexample.h"
#include "verify/proof/prove.h"
#include "lab/prove_drafter.h"
#include "core/setup/spec.h"
#include "verify/rule_plugin.h"
#include "verify/verify.h"

static wg_prove_result prove(const char *path)
{
    const wg_verifier_class *rule = NULL;
    void *object;
    wg_error err = { 0 };
    wg_prove_result r = { 0 };
    cr_assert(wg_verifier_load(path, &rule, &object, &err) == WG_OK, "%s", err.text);
    const wg_prove_options o = { .vocab = 3, .depth = 2, .children = 2, .law = WG_LAW_IID, .cases = 16, .seed = 2 };
    cr_assert(!strcmp(rule->name, "first_child") && rule->lossless);
    cr_assert(wg_prove(rule, &o, &r, &err) == WG_OK, "%s", err.text);
    wg_verifier_unload(object);
    return r;
}

Test(prove_plugin, exact_and_biased_are_told_apart)
{
    const wg_prove_result right = prove(RULE), wrong = prove(BIASED_RULE);
    cr_assert(right.deviation <= 1e-12 && right.reused == 0, "%g", right.deviation);
    cr_assert(right.alpha < right.alpha_star, "it ignores siblings");
    cr_assert(wrong.deviation > 0.01, "%g", wrong.deviation);
}

/* By hand: with q on token 1 and p even, token 1 is kept with probability 1/2; then p, and not the residual, gives token 0 with
 * 1/2. The exact rule has none. */
Test(prove_plugin, the_smallest_counterexample)
{
    static const char *const paths[] = { RULE, BIASED_RULE };
    for (int wrong = 0; wrong < 2; wrong++) {
        const wg_verifier_class *rule = NULL;
        void *object;
        wg_error err = { 0 };
        wg_counterexample c;
        cr_assert(wg_verifier_load(paths[wrong], &rule, &object, &err) == WG_OK, "%s", err.text);
        const wg_prove_options like = { .vocab = 4, .depth = 2, .children = 2, .law = WG_LAW_IID };
        cr_assert_eq(wg_counterexample_find(rule, &like, 1e-12, &c), wrong);
        if (wrong) {
            char *text = NULL;
            size_t n = 0;
            FILE *f = open_memstream(&text, &n);
            wg_counterexample_print(f, rule, &c);
            fclose(f);
            cr_assert_str_eq(text,
                             "smallest counterexample of first_child: siblings iid, tree 1, 2 tokens, 1 step; after every "
                             "text\n  p = 0.5 0.5\n  q = 0 1\n  text 0: chance 0.25, should be 0.5\n");
            free(text);
        }
        wg_verifier_unload(object);
    }
}

static void half_and_half(const void *opt, const double *p, const double *q, int vocab, double *out)
{
    (void)opt;
    for (int x = 0; x < vocab; x++) out[x] = 0.5 * p[x] + 0.5 * q[x];
}

/* A rule that states another law than its own (w = 0.7): its row is off by 0.2 (p - q). */
Test(prove_plugin, counterexamples_of_stated_laws)
{
    wg_verifier_class rule = wg_verifier_ensemble;
    wg_counterexample c;
    const wg_prove_options like = { .law = WG_LAW_WITHOUT_REPLACEMENT };
    cr_assert(!wg_counterexample_find(&rule, &like, 1e-12, &c));
    rule.law_row = half_and_half;
    cr_assert(wg_counterexample_find(&rule, &like, 1e-12, &c));
    cr_assert(c.n == 1 && c.vocab == 2 && !strcmp(c.tree, "1") && c.reused == 0);
    const double off = c.got - c.want - 0.2 * (c.p[c.text[0]] - c.q[c.text[0]]);
    cr_assert(off < 1e-12 && off > -1e-12, "%g", off);
}

/* The command says so, and fails. */
Test(prove_plugin, the_command_convicts)
{
    char rule[] = BIASED_RULE, *argv[] = { "prove",   "--plugin", rule,     "--rule", "first_child", "--law", "iid",
                                           "--vocab", "3",        "--tree", "2",      "--cases",     "4",     NULL },
         text[300] = "";
    int end[2], status;
    cr_assert(pipe(end) == 0);
    const pid_t child = fork();
    if (child == 0) {
        const int null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO);
        dup2(end[1], STDERR_FILENO);
        _exit(wg_cmd_prove(13, argv));
    }
    close(end[1]);
    const ssize_t n = read(end[0], text, sizeof text - 1);
    close(end[0]);
    waitpid(child, &status, 0);
    cr_assert(n > 0 && strstr(text, "wager prove: 1 of the lines above deviate by more than 1e-12 or use an address twice\n"),
              "%s", text);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

Test(prove_plugin, refusals)
{
    char path[300];
    const wg_verifier_class *rule = NULL;
    void *object;
    wg_error err = { 0 };
    cr_assert(wg_verifier_load("/no/such/rule.so", &rule, &object, &err) == WG_ENOENT && strstr(err.text, "/no/such/rule.so"));
    snprintf(path, sizeof path, "%s/README.md", getenv("WG_ROOT") ? getenv("WG_ROOT") : ".");
    cr_assert(wg_verifier_load(path, &rule, &object, &err) == WG_EFORMAT && strstr(err.text, "no ELF header"), "%s", err.text);
    wg_status s =
        wg_verifier_load("/proc/self/exe", &rule, &object, &err); /* ELF, but no shared object, or one without a rule */
    cr_assert(s == WG_EFORMAT, "%s", err.text);
    cr_assert(rule == NULL && object == NULL);
}

/* ---- drafters: one that keeps its contract, and one with each fault ------------------------------------------------ */

typedef enum fault { NONE, DROPS, DEEP, PEEKS, COUNTS_DRAWS, REMEMBERS, RANDOM, LOOKS_ASIDE, NO_ROW, FAULTS } fault;
static fault now;
static int calls;

typedef struct liar {
    wg_drafter base;
    int last; /* the token that the last request ended with */
} liar;

/* Below each node one or two draws from a row that depends on the text's last token. */
static wg_status liar_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    (void)err;
    for (int i = 0; i < n; i++) {
        const wg_seq *s = seq[i];
        const int deep = wg_seq_room(s) + (now == DEEP) < 2 ? wg_seq_room(s) + (now == DEEP) : 2;
        double row[3] = { 0.5, 0.3, 0.2 };
        int at = s->token[s->n - 1] % 3;
        if (now == REMEMBERS) at = (at + ((liar *)d)->last) % 3;
        if (now == RANDOM) at = (at + calls++) % 3;
        if (now == LOOKS_ASIDE) at = (at + n) % 3;
        wg_tree_reset(&out[i], s->token[s->n - 1], WG_LAW_IID);
        for (int node = 0, level = 0; level < deep; level++, node = out[i].n - 1) {
            const int r = wg_rows_push(q), number = out[i].n;
            for (int x = 0; x < 3; x++) wg_rows_at(q, r)[x] = row[(x + at) % 3];
            const int children = level == 0 ? 2 : 1;
            int first = wg_chance_pick(&s->chance, now == PEEKS ? WG_DRAW_ACCEPT : WG_DRAW_DRAFT, number, wg_rows_at(q, r), 3);
            wg_tree_group(&out[i], node, now == COUNTS_DRAWS && first == 0 ? 1 : children);
            if (now == DROPS && first == 1) break;
            wg_tree_push(&out[i], node, first, now == NO_ROW ? -1 : r);
            if (out[i].group[node] < 2) continue;
            wg_tree_push(&out[i], node, wg_chance_pick(&s->chance, WG_DRAW_DRAFT, number + 1, wg_rows_at(q, r), 3), r);
        }
    }
    return WG_OK;
}

static void liar_observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    (void)tree, (void)path, (void)target;
    ((liar *)d)->last = seq->token[seq->n - 1];
}

static void liar_forget(wg_drafter *d, const wg_seq *seq)
{
    (void)seq;
    if (now != REMEMBERS) ((liar *)d)->last = 0;
}

/* Each fault is found by its own check, and by those that its consequences break; the honest drafter passes all. */
Test(prove_drafter, each_fault_has_its_check)
{
    static const wg_drafter_class class = { .name = "liar",
                                            .doc = "for this test",
                                            .size = sizeof(liar),
                                            .laws = WG_LAW_IID,
                                            .propose = liar_propose,
                                            .observe = liar_observe,
                                            .forget = liar_forget };
    static const struct {
        wg_drafter_check check;
        const char *says;
    } wants[FAULTS] = {
        [DROPS] = { WG_CHECK_DRAWS, "tokens are drawn with" },
        [DEEP] = { WG_CHECK_ROOM, "a draft of 2 levels, where 1 more can be emitted" },
        [PEEKS] = { WG_CHECK_LOOKAHEAD, "a draw has the address of another" },
        [COUNTS_DRAWS] = { WG_CHECK_GROUPS, "with other draws it has, or declares, another number" },
        [REMEMBERS] = { WG_CHECK_FORGET, "other drafts after another request in its place" },
        [RANDOM] = { WG_CHECK_SEED, "the same seed gives other drafts the second time" },
        [LOOKS_ASIDE] = { WG_CHECK_BATCH, "other drafts beside another sequence in the batch" },
        [NO_ROW] = { WG_CHECK_TREES, "has no q row; give the row it was drawn from" },
    };
    for (now = NONE; now < FAULTS; now++) {
        wg_prove_drafter_result r;
        wg_error err = { 0 };
        const wg_prove_drafter_options o = {
            .drafter = &class, .plugins = &wg_program_plugins, .vocab = 3, .length = 3, .cases = 2, .seed = 1
        };
        calls = 0;
        cr_assert_eq(wg_prove_drafter(&o, &r, &err), WG_OK, "%s", err.text);
        cr_assert(now == NO_ROW || r.drawn > 20);
        const wg_drafter_finding *f = &r.finding[wants[now].check];
        if (now != NONE)
            cr_expect(f->verdict == WG_FAILS && strstr(f->example, wants[now].says), "%d: %s", (int)now, f->example);
        for (int i = 0; i < WG_DRAFTER_CHECKS && now == NONE; i++)
            cr_expect_eq(r.finding[i].verdict, WG_HOLDS, "%s: %s", wg_drafter_check_names[i], r.finding[i].example);
    }
    now = NONE;
    wg_prove_drafter_result r;
    wg_error err = { 0 };
    wg_prove_drafter_options o = { .drafter = &class, .plugins = &wg_program_plugins, .vocab = 9, .length = 3, .cases = 2 };
    cr_expect(wg_prove_drafter(&o, &r, &err) == WG_EINVAL &&
                  strstr(err.text, "prove: 9 tokens, texts of 3, 2 prompts; expected 2..8, 1..8, 1..19"),
              "%s", err.text);
    o.vocab = 3, o.rule = &wg_verifier_greedy;
    cr_expect(wg_prove_drafter(&o, &r, &err) == WG_EINVAL &&
                  strstr(err.text, "prove: rule greedy is not lossless above temperature 0; choose one"),
              "%s", err.text);
}

/* By hand: after 1 2 1 1 1 the token 1 was followed by 2 once and by 1 twice; LIE publishes the square roots. */
Test(prove_drafter, examples_of_plugins_and_a_lie)
{
    static const struct {
        const char *spec, *out, *err;
        int status;
    } cases[] = {
        { WG_TEST_PLUGINS "/libfollowers.so", "draws       holds  tokens are drawn from their rows of q\n", "", 0 },
        { WG_TEST_PLUGINS "/libbigram.so", "room        holds  no draft is deeper than the text that is left\n", "", 0 },
        { WG_TEST_PLUGINS "/libfollowers_lie_1.so",
          "draws       FAILS  tokens are drawn from their rows of q\n  after the text 1 2 1 1 1, draft empty: node 1, below "
          "node 0\n"
          "  tokens are drawn with 0 0.6667 0.3333\n  its row of q says       0 0.5858 0.4142\n",
          "wager prove: 2 of the checks above fail\n", 1 },
        { "ngram:k=3", "output      holds  the law of texts is that of plain decoding\n", "", 0 },
        { "none", "draws       -      it drafted nothing", "wager prove: nothing was drafted that could be compared; another",
          1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[] = "/tmp/wg-prove-XXXXXX", text[4096] = "";
        const int out = mkstemp(name), old = dup(STDOUT_FILENO), old_err = dup(STDERR_FILENO);
        char *argv[] = { "prove",    "--drafter",       (char *)(uintptr_t)cases[i].spec, "--cases", i == 3 ? "1" : "6",
                         "--length", i == 3 ? "2" : "4" };
        fflush(stdout);
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
        const int status = wg_cmd_prove(3, argv);
        fflush(stdout);
        dup2(old, STDOUT_FILENO);
        dup2(old_err, STDERR_FILENO);
        close(old);
        close(old_err);
        cr_assert_gt(pread(out, text, sizeof text - 1, 0), 0);
        close(out);
        unlink(name);
        cr_expect_eq(status, cases[i].status, "%s", cases[i].spec);
        cr_expect(strstr(text, cases[i].out) && strstr(text, cases[i].err), "%s:\n%s", cases[i].spec, text);
    }
}
