/* SPDX-License-Identifier: MIT
 * A rule in a shared object is proved like a built-in one; an object that is no rule is refused with the reason. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/cli/commands.h"
#include "experiments/analysis/counterexample.h"
#include "experiments/analysis/prove.h"
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
