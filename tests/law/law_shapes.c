/* SPDX-License-Identifier: MIT
 * Draft trees by their shape: the laws of texts (engine_law.h) of trees whose drafted nodes have siblings below them. Every
 * shape is drafted with every way to choose siblings and verified by every lossless rule that accepts it, in a batch of two:
 * one sequence is enumerated, the other drafts a tree of its own, before or behind it. A text is so long that the whole shape
 * is drafted in its first step.
 *
 * law_exact runs all drafters in few shapes; this test runs one drafter, whose growth (draft/lm/lm_draft.c) is that of all
 * that grow trees, in many. Standard output is the table in results/laws.md. */
#include <unistd.h>

#include "core/file/synth.h"
#include "draft/draft.h"
#include "tests/law/engine_law.h"

enum { PROMPT = 6, SEED = 3, MOST_RUNS = 100000 };
static const double bound = 1e-12;
static int failures;
static double worst;

/* Levels: of the shape. Vocabulary: of the target; `two`: the sampler chain leaves two tokens of it. `rules`: the names of
 * those that verify it; NULL: all that accept it. Large shapes take few, for the enumeration's length. */
static const struct {
    const char *what, *text; /* the option `tree`: children by depth, or the list of parents of a file */
    int levels, vocab;
    bool two;
    const char *rules;
} shapes[] = {
    { "three siblings", "3", 1, 4, false, NULL },
    { "siblings below siblings", "2-2", 2, 4, true, NULL },
    { "siblings below the first", "[-1,0,0,1,1]", 2, 3, false, "rejection without_replacement coupled" },
    { "siblings below the second", "[-1,0,0,2,2]", 2, 3, false, "traversal coupled" },
    { "three siblings below the first", "[-1,0,0,1,1,1]", 2, 4, true, "rejection traversal" },
    { "ragged: the second of three a leaf", "[-1,0,0,0,1,3,3]", 2, 4, true, "rejection traversal" },
    { "siblings at each of three levels", "[-1,0,0,2,2,3,3]", 3, 4, true, "traversal" },
    { "siblings below chains, by races", "1-1-2", 3, 3, false, "coupled" },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Ways to choose siblings, as options of the drafter. */
static const char *const choices[] = { "iid", "without_replacement", "coupled", "most probable" };
enum { IID, WITHOUT, COUPLED, FIXED, CHOICES };

typedef struct counts {
    int rules[CHOICES];
    long runs, drafted, accepted;
} counts;

static char dir[] = "/tmp/wg-shapes-XXXXXX", tree_path[64], draft_path[2][64];

static void remove_files(void) { remove(tree_path), remove(draft_path[0]), remove(draft_path[1]), remove(dir); }

static void write_files(void)
{
    wg_error err;
    if (!mkdtemp(dir)) exit((perror(dir), 1));
    atexit(remove_files);
    snprintf(tree_path, sizeof tree_path, "%s/tree.json", dir);
    for (int i = 0; i < 2; i++) {
        const wg_synth_shape s = { .layers = 1, .dim = 32, .heads = 2, .hidden = 32, .vocab = 3 + i, .context = EXACT_CONTEXT };
        snprintf(draft_path[i], sizeof draft_path[i], "%s/%d.gguf", dir, 3 + i);
        LAW_TRY(wg_synth_write(&s, WG_F32, 2, draft_path[i], &err));
    }
}

/* The drafter's options for a shape and a choice of siblings. */
static void options_of(int shape, int choice, char *out, size_t size)
{
    const bool file = shapes[shape].text[0] == '[';
    FILE *f = file ? fopen(tree_path, "w") : NULL;
    if (file && (!f || fputs(shapes[shape].text, f) < 0 || fclose(f))) exit((perror(tree_path), 1));
    snprintf(out, size, "model=%s,%stree=%s,%s%s", draft_path[shapes[shape].vocab - 3], file ? "grow=file," : "",
             file ? tree_path : shapes[shape].text,
             choice == FIXED ? "temperature=0" : "siblings=", choice == FIXED ? "" : choices[choice]);
}

/* Enumerates one shape, choice and rule, with the other sequence before and behind the enumerated one in turn. */
static void run_rule(int shape, const char *options, const wg_verifier_class *rule, const char *rule_options,
                     exact_target *target, bool after, counts *c)
{
    static const int32_t prompt[PROMPT] = { 1, 2, 0, 2, 1, 1 };
    exact_run x = { .setup = { .drafter = "model",
                               .options = options,
                               .rule_class = rule,
                               .rule = rule->name,
                               .rule_options = *rule_options ? rule_options : NULL,
                               .sampling = WG_SAMPLING(1, shapes[shape].two ? 2 : 0, 1, 0),
                               .seed = SEED },
                    .other = 11,
                    .after = after,
                    .prompt = prompt,
                    .n = PROMPT,
                    .length = shapes[shape].levels + 1,
                    .most = MOST_RUNS };
    exact_law_of(&x, target);
    c->runs += x.runs, c->drafted += x.drafted, c->accepted += x.accepted;
    worst = fmax(worst, x.deviation);
    const bool whole = x.heights[shapes[shape].levels] & 1u << shapes[shape].levels;
    if (x.deviation <= bound && x.reused == 0 && !x.cut && !x.beyond && whole && x.accepted > 0) return;
    fprintf(stderr, "FAILED model:%s, rule %s %s: the law is off by %g; %ld addresses asked twice, %ld accepted%s%s%s\n",
            options, rule->name, rule_options, x.deviation, x.reused, x.accepted, x.cut ? "; not all outcomes" : "",
            x.beyond ? "; a joint law of races is not known" : "", whole ? "" : "; the whole shape was not drafted");
    failures++;
}

/* Whether a rule verifies a shape here. The joint law of races is computed for whole rows, and for nine runners: one for each
 * token and list (core/dist/race.h). */
static bool runs(int shape, int choice, const char *options, const wg_verifier_class *rule, const char *rule_options)
{
    const wg_sampling hot = WG_SAMPLING(1, 0, 1, 0);
    if (!rule->lossless || rule->zero_only || rule->chains) return false;
    if (shapes[shape].rules && (!strstr(shapes[shape].rules, rule->name) || (rule->races && choice != COUPLED))) return false;
    if (choice == COUPLED && rule->races && (shapes[shape].two || (*rule_options && shapes[shape].vocab > 3))) return false;
    return law_legal("model", options, &hot, rule);
}

static void run_shape(int shape, exact_target *target, bool thin)
{
    counts c = { 0 };
    for (int choice = 0; choice < CHOICES; choice++) {
        char options[256];
        int seen = 0;
        options_of(shape, choice, options, sizeof options);
        for (const wg_verifier_class *const *v = wg_verifiers; *v; v++)
            for (const char *const *text = (*v)->test_options; *text; text++) {
                if (!runs(shape, choice, options, *v, *text) || (thin && seen++ % 4)) continue;
                run_rule(shape, options, *v, *text, target, c.rules[choice] % 2, &c);
                c.rules[choice]++;
            }
    }
    printf("%-35s %-17s %2d %2d   %4d %4d %4d %4d %7ld %8ld %7ld\n", shapes[shape].what, shapes[shape].text,
           shapes[shape].two ? 2 : shapes[shape].vocab, shapes[shape].levels + 1, c.rules[IID], c.rules[WITHOUT],
           c.rules[COUPLED], c.rules[FIXED], c.runs, c.drafted, c.accepted);
    if (!c.rules[COUPLED] && !(c.rules[IID] && c.rules[WITHOUT] && c.rules[FIXED])) {
        fprintf(stderr, "FAILED %s: a choice of siblings that no rule verified\n", shapes[shape].what);
        failures++;
    }
}

int main(int argc, char **argv)
{
    const bool thin = argc > 1 && !strcmp(argv[1], "--thin");
    const double start = wg_clock_now();
    exact_target target[2];
    write_files();
    for (int i = 0; i < 2; i++) exact_table(&target[i], 3 + i, 3, 17 + (uint64_t)i, 1.2);
    printf("%-35s %-17s %2s %2s   %4s %4s %4s %4s %7s %8s %7s\n", "shape", "tree", "V", "n", "iid", "wor", "coup", "top",
           "runs", "drafted", "kept");
    for (int i = 0; i < SHAPES; i++) run_shape(i, &target[shapes[i].vocab - 3], thin);
    for (int i = 0; i < 2; i++) exact_target_close(&target[i]);
    fprintf(stderr, "largest deviation %.2g; %.1f s\n", worst, wg_clock_now() - start);
    if (failures) fprintf(stderr, "%d failures\n", failures);
    return failures != 0;
}
