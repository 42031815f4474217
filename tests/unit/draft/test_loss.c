/* SPDX-License-Identifier: MIT
 * Losses of a student: gradients against finite differences, values that are known in closed form, values and gradients of
 * another implementation, and what happens where p or q is 0. That the losses for a rule have the
 * expectation of its own code stands in test_loss_rule.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "tests/unit/draft/losses.h"

enum { V = 7, ROWS = 8 };

typedef struct scene {
    double z[ROWS * V], p[ROWS * V];
    wg_loss_target t[ROWS];
} scene;

/* Random rows; of every four cases one is peaked, one is one-hot, and one has zeros. */
static void make(scene *x, int c)
{
    for (int i = 0; i < ROWS; i++) {
        double sum = 0, *p = x->p + i * V;
        const int text = (int)(uniform(c, i, 0, 2) * V);
        for (int v = 0; v < V; v++) {
            x->z[i * V + v] = (uniform(c, i, v, 0) - 0.5) * (c % 4 == 1 ? 12 : 4);
            p[v] = pow(uniform(c, i, v, 1), c % 4 == 1 ? 8 : 1) + 1e-3;
            if (c % 4 == 2) p[v] = v == text ? 1 : 0;
            if (c % 4 == 3 && v % 2 && v != text) p[v] = 0;
            sum += p[v];
        }
        for (int v = 0; v < V; v++) p[v] /= sum;
        x->t[i] = (wg_loss_target){ .p = p, .text = text, .begins = c % 3 == 1 && i == 2, .left_out = c % 5 == 4 && i == 4 };
    }
}

static wg_loss_value loss_of(const char *json, double temperature, const scene *x, const double *z, double *dz)
{
    wg_loss *l;
    wg_loss_value out;
    double unread[ROWS * V];
    const wg_loss_spec spec = spec_of(json);
    cr_assert_eq(wg_loss_open(&l, &spec, temperature, ROWS, V, &err), WG_OK, "%s", err.text);
    wg_loss_rows_double(l, x->t, ROWS, z, dz ? dz : unread, &out);
    wg_loss_close(l);
    return out;
}

static void check_gradient(const char *json, double temperature, scene *x, int c)
{
    const double step = 1e-5;
    double dz[ROWS * V], z[ROWS * V];
    memcpy(z, x->z, sizeof z);
    cr_assert(isfinite(loss_of(json, temperature, x, z, dz).loss));
    for (int k = 0; k < ROWS * V; k++) {
        z[k] = x->z[k] + step;
        const double up = loss_of(json, temperature, x, z, NULL).loss;
        z[k] = x->z[k] - step;
        const double down = loss_of(json, temperature, x, z, NULL).loss;
        z[k] = x->z[k];
        const double want = (up - down) / (2 * step);
        cr_assert_float_eq(dz[k], want, 1e-7 * (1 + fabs(want)), "%s, case %d, row %d, token %d: %.12g, differences %.12g",
                           json, c, k / V, k % V, dz[k], want);
    }
}

/* ---- gradients */

Test(loss, gradients_are_those_of_finite_differences)
{
    static const char *const specs[] = {
        "{\"kl\": 1}",
        "{\"reverse_kl\": 1, \"floor\": 1e-4}",
        "{\"jsd\": 1, \"jsd_beta\": 0.3}",
        "{\"tv\": 1}",
        "{\"nla\": 1}",
        "{\"ce\": 1}",
        "{\"tv\": 0.5, \"kl\": 0.25, \"reverse_kl\": 0.125, \"ce\": 0.1, \"nla\": 0.2, \"jsd\": 2}",
        "{\"kl\": 1, \"tv\": 1, \"positions\": \"decay\", \"length\": 3, \"decay\": 2}",
        "{\"rejection\": 1, \"length\": 3}",
        "{\"block\": 1, \"length\": 3}",
        "{\"rejection\": 1, \"length\": 3, \"prefix\": \"any\"}",
        "{\"block\": 1, \"length\": 3, \"prefix\": \"any\"}",
        "{\"block\": 0.5, \"rejection\": 0.25, \"kl\": 1, \"length\": 5}",
    };
    scene x;
    for (int c = 0; c < 12; c++)
        for (size_t k = 0; k < sizeof specs / sizeof *specs; k++) {
            make(&x, c);
            check_gradient(specs[k], k % 3 == 1 ? 0.6 : 1, &x, c);
        }
}

/* Weights that are not differentiated: the rows' own gradients, weighed by hand. */
Test(loss, weights_are_held_fixed)
{
    scene x;
    double kl[ROWS * V], tv[ROWS * V], lk[ROWS * V], mean[ROWS * V], pace[ROWS * V];
    make(&x, 5);
    const double alpha = loss_of("{\"kl\": 1}", 1, &x, x.z, kl).alpha;
    loss_of("{\"tv\": 1}", 1, &x, x.z, tv);
    loss_of("{\"lk\": 1, \"lk_decay\": 2}", 1, &x, x.z, lk);
    loss_of("{\"lk\": 1, \"lk_decay\": 2, \"lk_mean\": true}", 1, &x, x.z, mean);
    loss_of("{\"kl\": 1, \"positions\": \"dpace\", \"length\": 4, \"dpace_least\": 0.3}", 1, &x, x.z, pace);
    for (int i = 0; i < ROWS; i++) {
        double own = 0, sum = 0, q[V], weight = 0, product = 1;
        for (int v = 0; v < V; v++) sum += q[v] = exp(x.z[i * V + v]);
        for (int v = 0; v < V; v++) own += fmin(q[v] / sum, x.p[i * V + v]);
        const double w = exp(-2 * own), all = exp(-2 * alpha / ROWS);
        for (int j = i / 4 * 4; j < i / 4 * 4 + 4; j++) { /* prod over m <= j of 0.7 q(text) + 0.3, summed over j >= i */
            sum = 0;
            for (int v = 0; v < V; v++) sum += exp(x.z[j * V + v]);
            product *= 0.7 * exp(x.z[j * V + x.t[j].text]) / sum + 0.3;
            if (j >= i) weight += product;
        }
        for (int v = i * V; v < i * V + V; v++) {
            cr_assert_float_eq(lk[v], w * kl[v] + (1 - w) * tv[v], 1e-14);
            cr_assert_float_eq(mean[v], all * kl[v] + (1 - all) * tv[v], 1e-14);
            cr_assert_float_eq(pace[v], weight * kl[v], 1e-14);
        }
    }
}

/* ---- values */

static void check_term(const char *name, double want)
{
    static const double p[] = { 0.5, 0.25, 0.25, 0 },
                        z[] = { 0, 0.69314718055994530942, 0, -INFINITY }; /* q = 1/4, 1/2, 1/4, 0 */
    const wg_loss_target t = { .p = p, .text = 1 };
    char json[64];
    wg_loss *l;
    wg_loss_value out;
    double dz[4];
    snprintf(json, sizeof json, "{\"%s\": 2, \"length\": 1}", name);
    const wg_loss_spec spec = spec_of(json);
    cr_assert_eq(wg_loss_open(&l, &spec, 1, 1, 4, &err), WG_OK);
    wg_loss_rows_double(l, &t, 1, z, dz, &out);
    wg_loss_close(l);
    cr_assert_float_eq(out.loss, 2 * want, 1e-15, "%s: %.17g, expected %.17g", name, out.loss, 2 * want);
    cr_assert_float_eq(out.alpha, 0.75, 1e-15);
    cr_assert_eq(dz[3], 0);
    cr_assert_float_eq(dz[0] + dz[1] + dz[2], 0, 1e-15);
}

Test(loss, has_known_values)
{
    const double log2 = log(2), m0 = 3. / 8, m1 = 3. / 8;
    check_term("kl", 0.5 * log2 - 0.25 * log2);
    check_term("reverse_kl", -0.25 * log2 + 0.5 * log2);
    check_term("jsd",
               0.5 * (0.5 * log(0.5 / m0) + 0.25 * log(0.25 / m1)) + 0.5 * (0.25 * log(0.25 / m0) + 0.5 * log(0.5 / m1)));
    check_term("tv", 0.25);
    check_term("nla", -log(0.75));
    check_term("lk", exp(-3 * 0.75) * 0.25 * log2 + (1 - exp(-3 * 0.75)) * 0.25);
    check_term("ce", log2);
    check_term("rejection", -1.75);
    check_term("block", -1.75);
}

/* Two positions by hand: p = (1/2, 1/2), q = (3/4, 1/4) and (1/4, 3/4); alpha is 3/4. The text's first token has q/p = 1/2 or
 * 3/2. Under rejection the second row counts min(1, ratio) alpha; under block the sum of min(A p, B q). */
Test(loss, of_a_rule_by_hand)
{
    static const double p[] = { 0.5, 0.5 };
    const double z[] = { log(3), 0, 0, log(3) };
    const struct {
        int32_t text;
        const char *spec;
        double want;
    } cases[] = {
        { 1, "{\"rejection\": 1}", 1 + 0.75 + 0.5 * 0.75 },
        { 0, "{\"rejection\": 1}", 1 + 0.75 + 1 * 0.75 },
        { 1, "{\"block\": 1}", 1 + 0.75 + 0.5 * 0.75 },
        { 0, "{\"block\": 1}", 1 + 0.75 + fmin(0.5, 1.5 / 4) + fmin(0.5, 1.5 * 3 / 4) },
        { 1, "{\"rejection\": 1, \"prefix\": \"draft\"}", 1 + 0.75 + 1 * 0.75 },
        { 0, "{\"rejection\": 1, \"prefix\": \"draft\"}", 1 + 0.75 + 2. / 3 * 0.75 },
        { 0, "{\"block\": 1, \"prefix\": \"draft\"}", 1 + 0.75 + fmin(1. / 3, 1. / 4) + fmin(1. / 3, 3. / 4) },
        { 0, "{\"rejection\": 1, \"prefix\": \"any\"}", 1 + 0.75 + 0.75 * 0.75 },
        { 0, "{\"block\": 1, \"prefix\": \"any\"}", 1 + 0.75 + 0.75 * (fmin(0.5, 1.5 / 4) + fmin(0.5, 1.5 * 3 / 4)) },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const wg_loss_target t[] = { { .p = p, .text = cases[i].text }, { .p = p, .text = 0 } };
        const wg_loss_spec spec = spec_of(cases[i].spec);
        wg_loss *l;
        wg_loss_value out;
        double dz[4];
        cr_assert_eq(wg_loss_open(&l, &spec, 1, 2, 2, &err), WG_OK);
        wg_loss_rows_double(l, t, 2, z, dz, &out);
        wg_loss_close(l);
        cr_assert_float_eq(-out.loss / 2, cases[i].want, 1e-15, "%s, text %d: %.17g", cases[i].spec, (int)cases[i].text,
                           -out.loss / 2);
    }
}

/* A token that the target cannot emit ends the block, whoever wrote the text; so does a row without text. */
Test(loss, of_a_rule_ends_where_the_text_does)
{
    static const double p[] = { 0, 1, 0.5, 0.5, 0.5, 0.5 };
    const double z[] = { 0, 0, 0, 0, 0, 0 };
    const char *const specs[] = { "rejection", "block" }, *const prefixes[] = { "target", "draft", "any" };
    for (int k = 0; k < 18; k++) {
        const int32_t texts[][3] = { { 0, 0, 0 }, { -1, 0, 0 }, { 1, 0, 0 } };
        const int32_t *text = texts[k / 6];
        const wg_loss_target t[] = { { .p = p, .text = text[0] },
                                     { .p = p + 2, .text = text[1] },
                                     { .p = p + 4, .text = text[2] } };
        char json[80];
        wg_loss *l;
        wg_loss_value out;
        double dz[6];
        snprintf(json, sizeof json, "{\"%s\": 1, \"prefix\": \"%s\"}", specs[k % 2], prefixes[k % 6 / 2]);
        const wg_loss_spec spec = spec_of(json);
        cr_assert_eq(wg_loss_open(&l, &spec, 1, 3, 2, &err), WG_OK);
        wg_loss_rows_double(l, t, 3, z, dz, &out);
        wg_loss_close(l);
        const double row = k % 6 < 2 || k % 6 > 3 ? 0.5 : 1; /* the first token's min(1, q/p), or min(1, p/q) */
        const double want[] = { 3 * 1.5, 1.5 + 2 * 3, 3 * (1.5 + 2 * row) };
        cr_assert_float_eq(-out.loss, want[k / 6], 1e-14, "%s, text %d: %.17g", json, (int)text[0], -out.loss);
        for (int v = 0; v < 6; v++) cr_assert(isfinite(dz[v]) && (k >= 6 || v < 2 || dz[v] == 0), "%s: %g", json, dz[v]);
    }
}

static const char everything[] = "{\"kl\": 1, \"reverse_kl\": 1, \"jsd\": 1, \"tv\": 1, \"nla\": 1, \"lk\": 1, \"ce\": 1, "
                                 "\"rejection\": 1, \"block\": 1, \"length\": 3}";

/* ---- edges */

Test(loss, is_finite_where_p_or_q_is_zero)
{
    scene x;
    double dz[ROWS * V];
    for (int c = 0; c < 12; c++) {
        make(&x, c);
        for (int i = 0; i < ROWS; i++)
            for (int v = 0; v < V; v++) {
                double *z = &x.z[i * V + v];
                const bool overlaps = x.p[i * V + v] > 0;
                if (c / 4 % 3 == 0) *z = overlaps ? -3e4 : *z; /* q has next to nothing where p has mass */
                else if (c / 4 % 3 == 1) *z = overlaps && v != 3 ? -INFINITY : *z;
                else *z *= 1e5;
            }
        const wg_loss_value out = loss_of(everything, 1, &x, x.z, dz);
        cr_assert(isfinite(out.loss), "case %d: %g", c, out.loss);
        cr_assert_float_eq(out.term[WG_LOSS_TV], out.rows - out.alpha, 1e-13);
        for (int k = 0; k < ROWS * V; k++)
            cr_assert(isfinite(dz[k]) && (x.z[k] > -INFINITY || dz[k] == 0), "case %d, row %d, token %d: %g", c, k / V, k % V,
                      dz[k]);
        for (int i = 0; i < ROWS; i++) { /* probabilities keep their sum */
            double sum = 0, most = 1;
            for (int v = 0; v < V; v++) sum += dz[i * V + v], most = fmax(most, fabs(dz[i * V + v]));
            cr_assert_float_eq(sum, 0, 1e-10 * most, "case %d, row %d: %g", c, i, sum);
        }
    }
}

/* -log alpha has a gradient where p and q hardly overlap: that of -log q(y) for a one-hot p. */
Test(loss, of_no_overlap_still_points_somewhere)
{
    static const double p[] = { 0, 1, 0 }, z[] = { 0, -2000, 1 };
    const wg_loss_target t = { .p = p, .text = 1 };
    const wg_loss_spec spec = spec_of("{\"nla\": 1}");
    wg_loss *l;
    wg_loss_value out;
    double dz[3];
    cr_assert_eq(wg_loss_open(&l, &spec, 0, 1, 3, &err), WG_OK);
    wg_loss_rows_double(l, &t, 1, z, dz, &out);
    wg_loss_close(l);
    cr_assert_float_eq(out.loss, 2001 + log(1 + exp(-1)), 1e-9);
    cr_assert_float_eq(dz[1], -1, 1e-15);
    cr_assert_float_eq(dz[2], 1 / (1 + exp(-1)), 1e-15);
}

Test(loss, of_a_nan_is_a_nan)
{
    scene x;
    static const double bad[] = { NAN, INFINITY };
    for (int k = 0; k < WG_LOSS_TERMS; k++)
        for (int i = 0; i < 2; i++) {
            char json[64];
            snprintf(json, sizeof json, "{\"%s\": 1}", wg_loss_names[k]);
            make(&x, 0);
            x.z[3 * V + 2] = bad[i];
            cr_assert(isnan(loss_of(json, 1, &x, x.z, NULL).loss), "%s of %g", json, bad[i]);
        }
}

/* A large vocabulary: values against sums of higher precision, and a gradient that sums to 0. */
Test(loss, of_a_large_vocabulary)
{
    enum { MANY = 1 << 18 };
    double *p = wg_alloc(3 * MANY, sizeof *p), *z = p + MANY, *dz = z + MANY;
    long double sum[2] = { 0, 0 }, kl = 0, alpha = 0, all = 0;
    for (int v = 0; v < MANY; v++) {
        z[v] = 12 * uniform(0, v, 0, 0);
        sum[0] += p[v] = exp(10 * uniform(0, v, 1, 0));
        sum[1] += expl(z[v]);
    }
    for (int v = 0; v < MANY; v++) p[v] = (double)(p[v] / sum[0]);
    for (int v = 0; v < MANY; v++) {
        const long double q = expl(z[v]) / sum[1];
        kl += p[v] * logl(p[v] / q);
        alpha += p[v] < q ? p[v] : q;
    }
    const wg_loss_target t = { .p = p, .text = 5 };
    const wg_loss_spec spec = spec_of(everything);
    wg_loss *l;
    wg_loss_value out;
    cr_assert_eq(wg_loss_open(&l, &spec, 1, 1, MANY, &err), WG_OK);
    wg_loss_rows_double(l, &t, 1, z, dz, &out);
    wg_loss_close(l);
    for (int v = 0; v < MANY; v++) all += dz[v];
    cr_assert_float_eq(out.term[WG_LOSS_KL], (double)kl, 1e-12);
    cr_assert_float_eq(out.alpha, (double)alpha, 1e-12);
    cr_assert_float_eq((double)all, 0, 1e-12);
    wg_free(p);
}

/* Rows left out have no gradient, and split blocks; single precision has the same numbers, in place too. */
Test(loss, of_rows_in_single_precision)
{
    scene x;
    double dz[ROWS * V];
    float z[ROWS * V];
    wg_loss *l;
    wg_loss_value out;
    const wg_loss_spec spec = spec_of(everything);
    make(&x, 3);
    x.t[4].left_out = x.t[2].begins = x.t[7].begins = true;
    for (int k = 0; k < ROWS * V; k++) x.z[k] = z[k] = (float)x.z[k];
    const wg_loss_value want = loss_of(everything, 1, &x, x.z, dz);
    cr_assert(want.rows == ROWS - 1 && want.blocks == 4, "%d rows, %d blocks", want.rows, want.blocks);
    cr_assert_eq(wg_loss_open(&l, &spec, 1, ROWS, V, &err), WG_OK);
    wg_loss_rows(l, x.t, ROWS, z, z, &out);
    wg_loss_close(l);
    cr_assert_eq(memcmp(&out, &want, sizeof out), 0);
    for (int k = 0; k < ROWS * V; k++) cr_assert(z[k] == (float)dz[k] && (k / V != 4 || z[k] == 0));
}

static void check_refused(const char *json, const char *want)
{
    wg_loss_spec spec;
    json_t *o = json_loads(json, JSON_DECODE_ANY, NULL);
    cr_assert_eq(wg_loss_read(&spec, o, &err), WG_EINVAL, "%s", json);
    cr_assert(strstr(err.text, want), "%s: %s", json, err.text);
    json_decref(o);
}

Test(loss, refuses_what_is_no_loss)
{
    wg_loss *l;
    check_refused("[1]", "loss: expected an object of terms and weights, such as {\"kl\": 1}");
    check_refused("{\"length\": 4}",
                  "loss: no term has a weight: expected one or more of kl, reverse_kl, jsd, tv, nla, lk, ce");
    check_refused("{\"kl\": 0, \"tv\": 0}", "loss: no term has a weight");
    check_refused("{\"klx\": 1}", "loss: unknown option 'klx'; did you mean 'kl'?");
    check_refused("{\"kl\": -1}", "loss: option 'kl' = '-1': expected number 0..");
    check_refused("{\"kl\": 1, \"prefix\": \"targt\"}", "expected one of: target, draft, any; did you mean 'target'?");
    const wg_loss_spec spec = spec_of("{\"kl\": 1}");
    cr_assert_eq(wg_loss_open(&l, &spec, -1, 1, 1, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "loss: temperature -1, 1 rows of 1 tokens: expected a temperature >= 0, one row and"));
}

Test(loss, frees_what_it_could_not_open)
{
    wg_loss *l;
    const wg_loss_spec spec = spec_of("{\"kl\": 1}");
    for (int n = 1; n <= 3; n++) {
        wg_mem_fail_at((uint64_t)n, false);
        cr_assert_eq(wg_loss_open(&l, &spec, 1, 2, 8, &err), WG_ENOMEM);
        cr_assert(strstr(err.text, "for a loss"));
        wg_mem_fail_at(0, false);
    }
}

/* ---- another implementation */

static void read_numbers(const json_t *list, double *out, size_t n)
{
    cr_assert_eq(json_array_size(list), n);
    for (size_t i = 0; i < n; i++) out[i] = json_number_value(json_array_get(list, i));
}

/* Values and gradients by automatic differentiation (tests/conformance/make_losses.py). */
Test(loss, is_that_of_another_implementation)
{
    char path[320];
    const char *root = getenv("WG_ROOT"), *name;
    json_t *one;
    snprintf(path, sizeof path, "%.256s/tests/conformance/losses.json", root ? root : ".");
    json_t *file = json_load_file(path, 0, NULL), *terms = json_object_get(file, "terms");
    cr_assert(file, "%s", path);
    scene x;
    double dz[ROWS * V], want[ROWS * V];
    make(&x, 0);
    read_numbers(json_object_get(file, "z"), x.z, ROWS * V);
    read_numbers(json_object_get(file, "p"), x.p, ROWS * V);
    for (int i = 0; i < ROWS; i++)
        x.t[i].text = (int32_t)json_integer_value(json_array_get(json_object_get(file, "text"), (size_t)i));
    cr_assert_geq(json_object_size(terms), 10);
    json_object_foreach(terms, name, one) {
        const wg_loss_value out = loss_of(name, json_number_value(json_object_get(file, "temperature")), &x, x.z, dz);
        cr_assert_float_eq(out.loss, ROWS * json_number_value(json_object_get(one, "loss")), 1e-11, "%s: %.17g", name,
                           out.loss);
        read_numbers(json_object_get(one, "gradient"), want, ROWS * V);
        for (int k = 0; k < ROWS * V; k++)
            cr_assert_float_eq(dz[k], ROWS * want[k], 1e-11, "%s: %.17g, %.17g", name, dz[k], want[k]);
    }
    json_decref(file);
}
