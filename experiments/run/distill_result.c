/* SPDX-License-Identifier: MIT
 * The result of a distillation (distill.h). */
#include "experiments/run/distill.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "experiments/analysis/bootstrap.h"

/* A metric of a student: a ratio of two members of wg_held_sums over documents. */
typedef struct metric {
    const char *name;
    size_t a, c;
} metric;
#define AT(member) offsetof(wg_held_sums, member)
#define TERM(which) (offsetof(wg_held_sums, term) + (which) * sizeof(double))
static const metric of_text[] = {
    { "ce", TERM(WG_LOSS_CE), AT(rows) },
    { "kl", TERM(WG_LOSS_KL), AT(rows) },
    { "reverse_kl", TERM(WG_LOSS_REVERSE_KL), AT(rows) },
    { "jsd", TERM(WG_LOSS_JSD), AT(rows) },
    { "nla", TERM(WG_LOSS_NLA), AT(rows) },
    { "alpha", AT(alpha), AT(rows) },
};
enum { OF_TEXT = sizeof of_text / sizeof of_text[0], SEEDS = 64 };
static const metric of_writing = { "alpha", AT(written_alpha), AT(tokens) };

static metric tau_of(int length)
{
    return (metric){ "tau", AT(tokens), offsetof(wg_held_sums, rounds) + (size_t)(length - 1) * sizeof(double) };
}

typedef struct result {
    const wg_distill_outcome *o;
    wg_bootstrap boot;
    int baseline; /* family trained on the text alone; -1: none */
} result;

/* Students [first, first + n): one, or the seeds of a family. */
typedef struct group {
    int first, n;
} group;

static wg_boot_value value_of(const result *r, const metric *m, group g, const group *base)
{
    const double *a[2][SEEDS], *c[2][SEEDS];
    const size_t stride = sizeof(wg_held_sums) / sizeof(double);
    const group both[2] = { g, base ? *base : g };
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < both[side].n; k++) {
            const wg_held_sums *s = r->o->sums + (size_t)(both[side].first + k) * (size_t)r->o->documents;
            a[side][k] = (const double *)((const char *)s + m->a);
            c[side][k] = (const double *)((const char *)s + m->c);
        }
    const wg_boot_ratio x = { a[0], c[0], g.n, stride }, y = { a[1], c[1], both[1].n, stride };
    return wg_bootstrap_ratio(&r->boot, &x, base ? &y : NULL);
}

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }
static json_t *interval(double lo, double hi)
{
    return isfinite(lo) && isfinite(hi) ? json_pack("[f, f]", lo, hi) : json_null();
}

static wg_boot_value put(json_t *o, const result *r, const metric *m, group g, const group *base)
{
    char name[32];
    const wg_boot_value v = value_of(r, m, g, base);
    snprintf(name, sizeof name, "%s_ci", m->name);
    json_object_set_new(o, m->name, number(v.value));
    json_object_set_new(o, name, interval(v.lo, v.hi));
    return v;
}

/* Adds tau of chains of 1 .. WG_TAU_LENGTHS tokens. */
static void put_taus(json_t *o, const result *r, group g, const group *base)
{
    json_t *tau = json_array(), *ci = json_array();
    for (int k = 1; k <= WG_TAU_LENGTHS; k++) {
        const metric m = tau_of(k);
        const wg_boot_value v = value_of(r, &m, g, base);
        json_array_append_new(tau, number(v.value));
        json_array_append_new(ci, interval(v.lo, v.hi));
    }
    json_object_set_new(o, "tau", tau);
    json_object_set_new(o, "tau_ci", ci);
}

/* Adds a head's alpha by the place in a draft. */
static void put_alphas(json_t *o, const result *r, group g)
{
    const wg_distill_student *s = &r->o->c->student[g.first];
    json_t *list = json_array();
    for (int k = 0; k < s->steps; k++) {
        const size_t at = (size_t)k * sizeof(double);
        const metric m = { "alpha", AT(alphas) + at, AT(drafts) + at };
        json_array_append_new(list, number(value_of(r, &m, g, NULL).value));
    }
    json_object_set_new(o, "alpha_by_depth", list);
}

static json_t *total(const result *r, group g, size_t member)
{
    double sum = 0;
    const wg_held_sums *s = r->o->sums + (size_t)g.first * (size_t)r->o->documents;
    for (int i = 0; i < r->o->documents; i++) sum += *(const double *)((const char *)(s + i) + member);
    return json_integer((json_int_t)sum);
}

/* Adds the metrics of a group, or their differences from the baseline's. */
static void put_group(json_t *o, const result *r, group g, const group *base)
{
    json_t *text = json_object(), *written = json_object();
    for (int i = 0; i < OF_TEXT; i++) put(text, r, &of_text[i], g, base);
    put(written, r, &of_writing, g, base);
    put_taus(written, r, g, base);
    if (!base && r->o->c->student[g.first].kind == WG_STUDENT_EAGLE3) put_alphas(written, r, g);
    if (!base) json_object_set_new(text, "rows", total(r, g, AT(rows)));
    if (!base) json_object_set_new(written, "rows", total(r, g, AT(tokens)));
    json_object_set_new(o, "held_out_text", text);
    json_object_set_new(o, "target_text", written);
}

/* Adds the best chain by the cost model of `wager plan`: a level of the draft costs a pass of the student and a sampled row. */
static void put_prediction(json_t *o, const result *r, group g, int family)
{
    const wg_distill_costs *c = r->o->costs;
    const wg_cost *draft = &c->student[family];
    const double pass = wg_cost_pass(draft, 1, c->context, 1);
    const wg_step_cost plain = { 0, wg_cost_pass(&c->target, 1, c->context, 1), c->row };
    wg_predicted best = { 0 };
    int length = 0;
    for (int k = 1; k <= WG_TAU_LENGTHS; k++) {
        const metric m = tau_of(k);
        const wg_step_cost step = { k * (pass + c->row), wg_cost_pass(&c->target, k + 1, c->context, 1), c->row * (k + 1) };
        const wg_predicted p =
            wg_cost_speedup(value_of(r, &m, g, NULL).value, &step, &plain, fmax(c->target.error, draft->error), draft->error);
        if (length == 0 || p.speedup > best.speedup) best = p, length = k;
    }
    json_object_set_new(o, "cost",
                        json_pack("{s:f, s:f, s:f, s:f}", "student_ms", pass * 1e3, "target_ms", plain.verify * 1e3, "ratio",
                                  pass / plain.verify, "row_ms", c->row * 1e3));
    json_object_set_new(
        o, "predicted",
        json_pack("{s:i, s:f, s:o}", "length", length, "speedup", best.speedup, "speedup_ci", interval(best.lo, best.hi)));
}

static int find_baseline(const wg_distill_config *c)
{
    for (int i = 0; i < c->families; i++) {
        const double *w = c->student[i * c->seeds].loss.weight;
        bool alone = w[WG_LOSS_CE] > 0;
        for (int k = 0; k < WG_LOSS_TERMS; k++) alone = alone && (k == WG_LOSS_CE || w[k] == 0);
        if (alone) return i;
    }
    return -1;
}

static void put_all(json_t *o, const result *r, group g, int family, group base)
{
    put_group(o, r, g, NULL);
    if (r->baseline >= 0 && r->baseline != family) {
        json_t *less = json_object();
        put_group(less, r, g, &base);
        json_object_set_new(o, "less_text_only", less);
    }
    if (r->o->costs && r->o->c->student[g.first].kind == WG_STUDENT_MODEL) put_prediction(o, r, g, family);
}

wg_status wg_distill_result(json_t *root, json_t *students, const wg_distill_outcome *o, wg_error *err)
{
    const wg_distill_config *c = o->c;
    result r = { .o = o, .baseline = find_baseline(c) };
    json_t *families = json_array();
    json_object_set_new(root, "documents", json_integer(o->documents));
    json_object_set_new(root, "families", families);
    if (o->documents == 0) return WG_OK;
    WG_TRY(wg_bootstrap_open(&r.boot, o->documents, (uint64_t)c->train.train.seed, err));
    for (int f = 0; f < c->families; f++) {
        const group all = { f * c->seeds, c->seeds }, base = { r.baseline * c->seeds, c->seeds };
        json_t *family = json_pack("{s:s, s:i}", "name", c->student[all.first].family_name, "seeds", c->seeds);
        for (int k = 0; k < c->seeds; k++) {
            const group one = { all.first + k, 1 }, same_seed = { base.first + k, 1 };
            put_all(json_array_get(students, (size_t)one.first), &r, one, f, same_seed);
        }
        put_all(family, &r, all, f, base);
        json_array_append_new(families, family);
    }
    if (r.baseline >= 0) json_object_set_new(root, "text_only", json_string(c->student[r.baseline * c->seeds].family_name));
    wg_bootstrap_close(&r.boot);
    return WG_OK;
}
