/* SPDX-License-Identifier: MIT
 * The search for counterexamples (counterexample.h): in order of size, the prover enumerates every candidate. */
#include "verify/proof/counterexample.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"

enum { V_MOST = WG_COUNTER_VOCAB, TABLE = 8192, GRAIN_MOST = 4 };

static const struct {
    const char *tree;
    int depth, width[3];
} shapes[] = { { "1", 1, { 1 } },      { "2", 1, { 2 } },           { "1-1", 2, { 1, 1 } }, { "3", 1, { 3 } },
               { "1-2", 2, { 1, 2 } }, { "1-1-1", 3, { 1, 1, 1 } }, { "2-1", 2, { 2, 1 } } };
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Sets row to composition number `which` of `grain` into V parts, as a distribution; false: there are fewer. */
static bool row_of(int which, int grain, int V, double *row)
{
    for (int a = 0; a <= grain; a++)
        for (int b = 0; b <= (V == 3 ? grain - a : 0); b++) {
            if (which-- > 0) continue;
            const int part[V_MOST] = { a, V == 3 ? b : grain - a, grain - a - b };
            for (int x = 0; x < V; x++) row[x] = (double)part[x] / grain;
            return true;
        }
    return false;
}

static bool has_siblings(int shape)
{
    for (int d = 0; d < shapes[shape].depth; d++)
        if (shapes[shape].width[d] > 1) return true;
    return false;
}

/* Proves one pair of rows, the same after every text; table: room for the rows of p, then for those of q. */
static bool convicts(const wg_verifier_class *rule, const wg_prove_options *o, double bound, double *table,
                     wg_counterexample *c)
{
    double *p = table, *q = table + TABLE;
    wg_prove_result r = { 0 };
    const int texts = wg_prove_texts(o);
    if (texts < 0 || texts * o->vocab > TABLE) return false;
    for (int i = 0; i < texts * o->vocab; i++) {
        p[i] = c->p[i % o->vocab];
        q[i] = c->q[i % o->vocab];
    }
    const wg_prove_tables t = { p, q, true };
    if (wg_prove_case(rule, o, &t, &r, NULL) || (r.deviation <= bound && r.reused == 0)) return false;
    c->reused = r.reused;
    c->got = r.worst_text.got;
    c->want = r.worst_text.want;
    c->n = 0;
    for (int i = r.worst_text.number; i > 0 && c->n < WG_COUNTER_LENGTH; i = (i - 1) / o->vocab) c->n++;
    for (int i = r.worst_text.number, k = c->n; k > 0; i = (i - 1) / o->vocab) c->text[--k] = (i - 1) % o->vocab;
    return true;
}

static bool search_rows(const wg_verifier_class *rule, const wg_prove_options *o, double bound, double *table,
                        wg_counterexample *c)
{
    for (int grain = 2; grain <= GRAIN_MOST; grain++)
        for (int i = 0; row_of(i, grain, o->vocab, c->p); i++)
            for (int k = 0; row_of(k, grain, o->vocab, c->q); k++)
                if (convicts(rule, o, bound, table, c)) return true;
    return false;
}

bool wg_counterexample_find(const wg_verifier_class *rule, const wg_prove_options *like, double bound, wg_counterexample *out)
{
    bool found = false;
    double *table = wg_alloc(2 * TABLE, sizeof *table);
    for (int s = 0; table && !found && s < SHAPES; s++)
        for (int V = 2; !found && V <= V_MOST; V++) {
            if (rule->chains && has_siblings(s)) continue;
            const wg_prove_options o = { .vocab = V,
                                         .depth = shapes[s].depth,
                                         .width = shapes[s].width,
                                         .steps = like->steps,
                                         .law = like->law,
                                         .greedy = like->greedy,
                                         .max_runs = 100000,
                                         .rule_options = like->rule_options };
            *out = (wg_counterexample){ .tree = shapes[s].tree, .law = o.law, .vocab = V, .steps = o.steps > 0 ? o.steps : 1 };
            found = search_rows(rule, &o, bound, table, out);
        }
    wg_free(table);
    return found;
}

static void put_row(FILE *f, const char *name, const double *row, int V)
{
    fprintf(f, "  %s =", name);
    for (int x = 0; x < V; x++) fprintf(f, " %.4g", row[x]);
    fputc('\n', f);
}

void wg_counterexample_print(FILE *f, const wg_verifier_class *rule, const wg_counterexample *c)
{
    fprintf(f, "smallest counterexample of %s: siblings %s, tree %s, %d tokens, %d step%s; after every text\n", rule->name,
            wg_law_name(c->law), c->tree, c->vocab, c->steps, c->steps > 1 ? "s" : "");
    put_row(f, "p", c->p, c->vocab);
    put_row(f, "q", c->q, c->vocab);
    if (c->n) {
        fputs("  text", f);
        for (int i = 0; i < c->n; i++) fprintf(f, " %d", c->text[i]);
        fprintf(f, ": chance %.6g, should be %.6g\n", c->got, c->want);
    }
    if (c->reused) fprintf(f, "  %ld times a random address is used twice\n", c->reused);
}
