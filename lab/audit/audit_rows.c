/* SPDX-License-Identifier: MIT
 * Reading rows (audit_rows.h). */
#include "lab/audit/audit_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"

static const double unlisted = 1e-6;  /* a smaller rest is rounding */
static const double tolerance = 1e-3; /* allowed error of a sum */

int32_t wg_audit_token(const wg_audit_tokens *t, json_int_t token)
{
    if (t->dense) return token >= 0 && token < t->vocab ? (int32_t)token : -1;
    int low = 0, high = t->vocab - 1;
    while (low < high) {
        const int mid = (low + high) / 2;
        if (t->listed[mid] < token) low = mid + 1;
        else high = mid;
    }
    return low < t->vocab - 1 && t->listed[low] == token ? low : t->vocab - 1;
}

wg_status wg_audit_list(wg_audit_listed *l, json_int_t token, wg_error *err)
{
    if (token < 0 || token > INT32_MAX)
        return wg_fail(err, WG_EFORMAT, "%lld is no token; expected an id from 0 on", (long long)token);
    if (l->n == l->room) {
        const int more = l->room ? 2 * l->room : 256;
        int32_t *grown = wg_realloc(l->token, (size_t)more, sizeof *grown);
        if (!grown) return wg_nomem(err, (size_t)more * sizeof *grown, "tokens of rows");
        l->token = grown;
        l->room = more;
    }
    l->token[l->n++] = (int32_t)token;
    return WG_OK;
}

wg_status wg_audit_list_row(wg_audit_listed *l, const json_t *row, wg_error *err)
{
    const json_t *tokens = json_object_get(row, "tokens"), *v;
    size_t i;
    if (json_is_integer(row)) return wg_audit_list(l, json_integer_value(row), err);
    if (json_is_array(row) && json_array_size(row)) {
        const int n = (int)json_array_size(row);
        if (l->vocab && l->vocab != n)
            return wg_fail(err, WG_EFORMAT, "a row has %d probabilities, another one %d; expected those of one vocabulary", n,
                           l->vocab);
        l->vocab = n;
        return WG_OK;
    }
    if (!json_is_array(tokens) || !json_is_array(json_object_get(row, "p")))
        return wg_fail(
            err, WG_EFORMAT,
            "a row is a list of probabilities, {\"tokens\": [...], \"p\": [...]}, or the token that has all the mass");
    json_array_foreach(tokens, i, v) {
        if (!json_is_integer(v)) return wg_fail(err, WG_EFORMAT, "a row lists something else than token ids");
        WG_TRY(wg_audit_list(l, json_integer_value(v), err));
    }
    return WG_OK;
}

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

void wg_audit_list_sort(wg_audit_listed *l)
{
    int n = 0;
    if (l->n) qsort(l->token, (size_t)l->n, sizeof *l->token, ascending);
    for (int i = 0; i < l->n; i++)
        if (n == 0 || l->token[n - 1] != l->token[i]) l->token[n++] = l->token[i];
    l->n = n;
}

static wg_status put(double *p, const json_t *v, double *sum, wg_error *err)
{
    const double x = json_number_value(v);
    if (!json_is_number(v) || !(x >= 0 && x <= 1 + unlisted))
        return wg_fail(err, WG_EFORMAT, "a probability is no number from 0 to 1; rows hold probabilities, after the sampler");
    *sum += *p = x;
    return WG_OK;
}

/* Reads a partial row; the rest goes to the token for all others, or evenly to the tokens not listed. */
static wg_status read_listed(const json_t *in, const wg_audit_tokens *t, double *p, double *rest, wg_error *err)
{
    const json_t *tokens = json_object_get(in, "tokens"), *mass = json_object_get(in, "p"), *v;
    double sum = 0;
    size_t i;
    int others = t->vocab;
    if (json_array_size(tokens) != json_array_size(mass))
        return wg_fail(err, WG_EFORMAT, "a row lists %d tokens and %d probabilities", (int)json_array_size(tokens),
                       (int)json_array_size(mass));
    for (int x = 0; x < t->vocab; x++) p[x] = -1;
    json_array_foreach(tokens, i, v) {
        const int32_t x = wg_audit_token(t, json_integer_value(v));
        if (x < 0)
            return wg_fail(err, WG_EFORMAT, "a row lists token %lld of a vocabulary of %d", (long long)json_integer_value(v),
                           t->vocab);
        if (p[x] >= 0) return wg_fail(err, WG_EFORMAT, "a row lists token %lld twice", (long long)json_integer_value(v));
        WG_TRY(put(&p[x], json_array_get(mass, i), &sum, err));
        others--;
    }
    if (!(sum <= 1 + tolerance)) return wg_fail(err, WG_EFORMAT, "a row sums to %.4g; expected 1 at most", sum);
    *rest = sum < 1 - unlisted ? 1 - sum : 0;
    if (*rest > 0 && t->dense && others == 0) return wg_fail(err, WG_EFORMAT, "a row sums to %.4g over all tokens", sum);
    for (int x = 0; x < t->vocab; x++)
        if (p[x] < 0) p[x] = !t->dense ? (x == t->vocab - 1 ? *rest : 0) : *rest / others;
    for (int x = 0; x < t->vocab; x++) p[x] /= sum + *rest;
    return WG_OK;
}

wg_status wg_audit_row_read(const json_t *in, const wg_audit_tokens *t, wg_rows *out, int row, double *rest, wg_error *err)
{
    double *p = wg_rows_at(out, row), sum = 0;
    const json_t *v;
    size_t i;
    *rest = 0;
    if (json_is_object(in)) return read_listed(in, t, p, rest, err);
    if (json_is_integer(in)) {
        const int32_t x = wg_audit_token(t, json_integer_value(in));
        if (x < 0)
            return wg_fail(err, WG_EFORMAT, "a row is token %lld of a vocabulary of %d", (long long)json_integer_value(in),
                           t->vocab);
        memset(p, 0, (size_t)t->vocab * sizeof *p);
        p[x] = 1;
        return WG_OK;
    }
    json_array_foreach(in, i, v) WG_TRY(put(&p[i], v, &sum, err));
    if (!(fabs(sum - 1) <= tolerance)) return wg_fail(err, WG_EFORMAT, "a row sums to %.4g; expected 1", sum);
    for (int x = 0; x < t->vocab; x++) p[x] /= sum;
    *rest = fabs(sum - 1) > unlisted ? fabs(sum - 1) : 0;
    return WG_OK;
}
