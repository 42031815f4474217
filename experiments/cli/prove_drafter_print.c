/* SPDX-License-Identifier: MIT
 * wager prove --drafter (prove_drafter_print.h). */
#include "experiments/cli/prove_drafter_print.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "lab/prove_drafter.h"
#include "core/setup/spec.h"
#include "experiments/cli/cli.h"

/* Chooses the drafter of a shared object, or of a specification as in --draft. */
static wg_status choose(const char *spec, wg_drafter_choice *out, wg_error *err)
{
    struct stat st;
    if (stat(spec, &st) || !S_ISREG(st.st_mode)) return wg_choose_drafter(spec, out, err);
    WG_TRY(wg_choose_drafter("plugin", out, err));
    const wg_status s = wg_option_set(out->class->options, out->options, "path", spec, err);
    if (s) wg_choice_close(out);
    return s;
}

static const char *const words[] = { [WG_HOLDS] = "holds", [WG_FAILS] = "FAILS", [WG_UNTESTED] = "-" };

static void print_json(const wg_prove_drafter_flags *g, const wg_prove_drafter_result *r)
{
    for (int i = 0; i < WG_DRAFTER_CHECKS; i++) {
        const wg_drafter_finding *f = &r->finding[i];
        json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:f}", "drafter", g->spec, "rule", r->rule->name,
                                "check", wg_drafter_check_names[i], "what", f->what, "verdict",
                                f->verdict == WG_UNTESTED ? "untested" : words[f->verdict], "runs", (json_int_t)r->runs,
                                "drafts", (json_int_t)r->drafts, "draws", (json_int_t)r->drawn, "deviation", f->deviation);
        if (f->verdict == WG_FAILS) json_object_set_new(row, "example", json_string(f->example));
        wg_json_put_line(row, 0);
    }
}

static void print_lines(const wg_prove_drafter_flags *g, const wg_prove_drafter_options *o, const wg_prove_drafter_result *r)
{
    printf("%s under rule %s; %d tokens, texts of %d after %d prompts: %ld runs, %ld different drafts, %ld draws\n", g->spec,
           r->rule->name, o->vocab, o->length, o->cases, r->runs, r->drafts, r->drawn);
    for (int i = 0; i < WG_DRAFTER_CHECKS; i++) {
        const wg_drafter_finding *f = &r->finding[i];
        printf("%-11s %-6s %s\n", wg_drafter_check_names[i], words[f->verdict], f->what);
        if (f->verdict == WG_FAILS) printf("  %s\n", f->example);
    }
}

/* Checks names and options, then runs the prover. */
static wg_status prove(const wg_prove_drafter_flags *g, const wg_drafter_choice *drafter, const wg_rule_choice *rule, int *bad,
                       wg_error *err)
{
    wg_prove_drafter_result r;
    const wg_prove_drafter_options o = { .drafter = drafter->class,
                                         .drafter_options = drafter->options,
                                         .plugins = &wg_program_plugins,
                                         .rule = rule->class,
                                         .rule_options = rule->options,
                                         .vocab = g->vocab ? (int)g->vocab : 3,
                                         .length = (int)g->length,
                                         .cases = g->cases ? (int)g->cases : 6,
                                         .seed = (uint64_t)g->seed };
    WG_TRY(wg_prove_drafter(&o, &r, err));
    if (g->json) print_json(g, &r);
    else print_lines(g, &o, &r);
    for (int i = 0; i < WG_DRAFTER_CHECKS; i++) *bad += r.finding[i].verdict == WG_FAILS;
    if (r.finding[WG_CHECK_DRAWS].verdict == WG_UNTESTED && !*bad) *bad = -1;
    return WG_OK;
}

int wg_prove_drafter_print(const wg_prove_drafter_flags *g)
{
    wg_error err;
    wg_drafter_choice drafter = { 0 };
    wg_rule_choice rule = { 0 };
    int bad = 0;
    wg_status s = choose(g->spec, &drafter, &err);
    if (!s && strcmp(g->rule, "all")) s = wg_choose_rule(g->rule, &rule, &err);
    if (!s) s = prove(g, &drafter, &rule, &bad, &err);
    wg_rule_choice_close(&rule);
    wg_choice_close(&drafter);
    if (s) return wg_cli_fail(&err);
    fflush(stdout);
    if (bad > 0) fprintf(stderr, "wager prove: %d of the checks above fail\n", bad);
    if (bad < 0)
        fprintf(stderr, "wager prove: nothing was drafted that could be compared; another --vocab, --length or --seed?\n");
    return bad ? WG_EXIT_FAILED : WG_EXIT_OK;
}
