/* SPDX-License-Identifier: MIT
 * Audits as JSON (audit_json.h). */
#include "experiments/record/audit_json.h"

#include <math.h>

#include "core/base/json_number.h"

static json_t *list_of(const double *v, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, wg_json_number(v[i]));
    return list;
}

static void read_list(double *to, int n, const json_t *list)
{
    for (int i = 0; i < n; i++) to[i] = json_number_value(json_array_get(list, (size_t)i));
}

json_t *wg_audit_sums_json(const wg_audit *a)
{
    if (wg_audit_is_empty(a)) return NULL;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "draws", (json_int_t)a->draws, "massless", (json_int_t)a->massless,
                     "unscaled", (json_int_t)a->unscaled, "roots", (json_int_t)a->roots, "undeclared",
                     (json_int_t)a->undeclared, "bets", list_of(a->bet, a->draws ? WG_AUDIT_BETS : 0), "kept",
                     list_of(a->kept, a->roots ? WG_AUDIT_SHARES : 0));
}

void wg_audit_sums_read(wg_audit *a, const json_t *sums)
{
    a->draws = (long)wg_json_int(sums, "draws");
    a->massless = (long)wg_json_int(sums, "massless");
    a->unscaled = (long)wg_json_int(sums, "unscaled");
    a->roots = (long)wg_json_int(sums, "roots");
    a->undeclared = (long)wg_json_int(sums, "undeclared");
    read_list(a->bet, WG_AUDIT_BETS, json_object_get(sums, "bets"));
    read_list(a->kept, WG_AUDIT_SHARES, json_object_get(sums, "kept"));
}

static json_t *digits(double log10) { return wg_json_number(round(log10 * 1e3) / 1e3); }

json_t *wg_audit_verdict_json(const wg_audit *a)
{
    char words[200];
    const char *found = wg_audit_draws_found(a, words, sizeof words);
    if (!found) found = wg_audit_kept_found(a, words, sizeof words);
    return json_pack("{s:I, s:o, s:I, s:I, s:I, s:o, s:o}", "draws", (json_int_t)a->draws, "draws_log10_e",
                     a->draws ? digits(wg_audit_draws_log10(a)) : json_null(), "massless", (json_int_t)a->massless,
                     "unscaled_rows", (json_int_t)a->unscaled, "steps", (json_int_t)a->roots, "kept_log10_e",
                     a->roots && !a->undeclared ? digits(wg_audit_kept_log10(a)) : json_null(), "found",
                     found ? json_string(found) : json_null());
}
