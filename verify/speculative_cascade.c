/* SPDX-License-Identifier: MIT
 * Speculative cascades (Narasimhan et al. 2025, arXiv 2405.19261): a deferral rule chooses at each position between the draft
 * model and the target, and rejection verifies against what it chose. (The drafter `cascade` is another thing: a middle model
 * that is drafted for.) LOSSY, with a law that is known: a token for which a draft was made has the law pi, any other p.
 *
 *     defer=chow    pi = q, but p where max q < 1 - alpha
 *     defer=diff    pi = q, but p where max q < max p - alpha
 *     defer=opt     pi = q, but p where max q < max p - alpha TV(p, q)
 *     defer=token   pi(x) = q(x) [p(x) >= (1 - alpha) max p] + p(x) q{y: p(y) < (1 - alpha) max p} */
#include "verify/stated_law.h"
#include "verify/verify.h"

enum { CHOW, DIFF, OPT, TOKEN };
static const char *const rules[] = { "chow", "diff", "opt", "token", NULL };

typedef struct speculative_cascade_options {
    int defer;
    double alpha;
} speculative_cascade_options;

static const wg_option options[] = {
    WG_OPTION_ENUM(speculative_cascade_options, defer, OPT, rules, "the rule that defers a position to the target"),
    WG_OPTION_FLOAT(speculative_cascade_options, alpha, 0.1, 0, 1, "how much it leans to the draft model"),
    WG_OPTION_END,
};

static double largest(const double *row, int vocab)
{
    double most = row[0];
    for (int x = 1; x < vocab; x++) most = row[x] > most ? row[x] : most;
    return most;
}

static double distance(const double *p, const double *q, int vocab)
{
    double tv = 0;
    for (int x = 0; x < vocab; x++) tv += wg_positive(p[x] - q[x]);
    return tv;
}

static void law_row(const void *opt, const double *p, const double *q, int vocab, double *out)
{
    const speculative_cascade_options *o = opt;
    const double most_q = largest(q, vocab), most_p = largest(p, vocab);
    if (o->defer == TOKEN) {
        double refused = 0;
        for (int x = 0; x < vocab; x++) refused += p[x] < (1 - o->alpha) * most_p ? q[x] : 0;
        for (int x = 0; x < vocab; x++) out[x] = (p[x] < (1 - o->alpha) * most_p ? 0 : q[x]) + p[x] * refused;
        return;
    }
    const double least = o->defer == CHOW   ? 1 - o->alpha
                         : o->defer == DIFF ? most_p - o->alpha
                                            : most_p - o->alpha * distance(p, q, vocab);
    const double *chosen = most_q < least ? p : q;
    for (int x = 0; x < vocab; x++) out[x] = chosen[x];
}

static void accept(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance, wg_workspace *work,
                   wg_path *out)
{
    wg_stated_law_accept(&wg_verifier_speculative_cascade, opt, tree, p, q, chance, work, out);
}

const wg_verifier_class wg_verifier_speculative_cascade = {
    .name = "speculative_cascade",
    .doc = "rejection against p or q, or a mixture by token, as a deferral rule chooses at each position",
    .guarantee = "p or q by position, or a mixture by token, where drafted",
    .paper = "Narasimhan et al. 2025",
    .size = sizeof(speculative_cascade_options),
    .options = options,
    .test_options = (const char *const[]){ "", "defer=chow,alpha=0.3", "defer=diff,alpha=0.02", "defer=token,alpha=0.5", NULL },
    .laws = WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT,
    .lossless = false,
    .accept = accept,
    .law_row = law_row,
    .reads_q = true,
};
