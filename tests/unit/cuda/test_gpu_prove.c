/* SPDX-License-Identifier: MIT
 * Every rule of a device is proved, not sampled: all outcomes of all decisions that its block makes are enumerated, and the
 * law of the text is the target's to 1e-12 (verify/proof/prove_device.h). A lossy rule's law is the one it has on
 * the host. Emulated devices only: a GPU runs the same source with Philox draws. */
#include "verify/proof/prove.h"
#include "verify/proof/prove_device.h"
#include "tests/simt/simt_check.h"
#include "verify/verify.h"

typedef struct shape {
    int vocab, depth, width[3], cases, steps;
} shape;

/* Chains, siblings at the root and below, more children than tokens, two steps (whose addresses must differ). */
static const shape shapes[] = {
    { 3, 2, { 1, 1 }, 7, 1 }, { 4, 1, { 2 }, 4, 1 },    { 2, 3, { 1, 1, 1 }, 3, 1 }, { 3, 2, { 2, 1 }, 2, 1 },
    { 3, 1, { 3 }, 4, 1 },    { 2, 2, { 2, 2 }, 2, 1 }, { 2, 1, { 4 }, 2, 1 },       { 2, 1, { 1 }, 7, 2 },
};

static wg_prove_result prove(const wg_verifier_class *rule, const void *options, const shape *s, wg_sibling_law law,
                             bool device)
{
    static wg_prove_device *d;
    static int vocab;
    wg_prove_rule on_device;
    wg_prove_result r = { 0 };
    wg_error err = { 0 };
    wg_prove_options o = { .vocab = s->vocab,
                           .depth = s->depth,
                           .width = s->width,
                           .law = law,
                           .cases = s->cases,
                           .steps = s->steps,
                           .greedy = rule->zero_only,
                           .seed = 5,
                           .rule_options = options };
    if (!device) {
        cr_assert_eq(wg_prove(rule, &o, &r, &err), WG_OK, "%s: %s", rule->name, err.text);
        return r;
    }
    if (!d || vocab != s->vocab) {
        wg_prove_device_close(d);
        cr_assert_eq(wg_prove_device_open(&d, vocab = s->vocab, &err), WG_OK, "%s", err.text);
    }
    cr_assert_eq(wg_prove_device_rule(d, rule, options, &on_device, &err), WG_OK, "%s", err.text);
    o.rule_options = &on_device.of;
    cr_assert_eq(wg_prove(&on_device.class, &o, &r, &err), WG_OK, "%s: %s", rule->name, err.text);
    return r;
}

/* All laws and shapes that the rule checks; the rule with options on trees of independent draws only, where they show. */
static void check(const wg_verifier_class *rule, const char *text)
{
    static const wg_sibling_law laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_COUPLED };
    char options[64] __attribute__((aligned(16))) = { 0 };
    wg_error err;
    long runs = 0;
    if (rule->options) {
        wg_option_defaults(rule->options, options);
        cr_assert_eq(wg_option_set_list(rule->options, options, rule->size, text, &err), WG_OK, "%s", err.text);
    }
    for (int l = 0; l < 4; l++)
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
            const shape *s = &shapes[k];
            const bool siblings = s->width[0] > 1 || s->width[1] > 1;
            if (!(rule->laws & laws[l]) || (siblings && rule->chains) || (*text && laws[l] != WG_LAW_IID)) continue;
            simt_order_set((simt_order)(k % SIMT_ORDERS));
            const wg_prove_result got = prove(rule, options, s, laws[l], true), want = prove(rule, options, s, laws[l], false);
            if (rule->lossless)
                cr_assert(got.deviation <= 1e-12, "%s %s on the device, shape %zu, law %s: deviation %g in case %d", rule->name,
                          text, k, wg_law_name(laws[l]), got.deviation, got.worst);
            cr_assert(fabs(got.deviation - want.deviation) <= 1e-12 && fabs(got.tau - want.tau) <= 1e-12 &&
                          got.reused == want.reused,
                      "%s %s, shape %zu, law %s: deviation %g, %g tokens, on the host %g, %g", rule->name, text, k,
                      wg_law_name(laws[l]), got.deviation, got.tau, want.deviation, want.tau);
            runs += got.runs;
        }
    cr_assert_gt(runs, 100);
}

Test(gpu_prove, every_rule)
{
    for (int i = 0; wg_verifiers[i]; i++)
        if (wg_verifiers[i]->device != WG_RULE_HOST) check(wg_verifiers[i], "");
}

Test(gpu_prove, options)
{
    check(&wg_verifier_coupled, "races=2");
    check(&wg_verifier_multipath, "select=ratio");
    check(&wg_verifier_lenience, "factor=1");
    check(&wg_verifier_typical, "epsilon=0.5,delta=0.9");
}

Test(gpu_prove, refuses_rules_of_the_host)
{
    static const wg_verifier_class mine = { .name = "mine", .laws = WG_LAW_IID };
    wg_prove_device *d;
    wg_prove_rule out;
    wg_error err = { 0 };
    cr_assert_eq(wg_prove_device_open(&d, 2, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_prove_device_rule(d, &mine, NULL, &out, &err), WG_EUNSUPPORTED);
    cr_assert(strstr(err.text, "rule mine has no text for devices") != NULL, "%s", err.text);
    wg_prove_device_close(d);
}
