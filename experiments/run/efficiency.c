/* SPDX-License-Identifier: MIT
 * The efficiency of passes (efficiency.h). */
#include "experiments/run/efficiency.h"

#include <math.h>

#include "experiments/base/roofline.h"
#include "core/base/json_number.h"

enum { TIMES_MEASURED = 5, TIMES_MOST = 50, LEAST = 1 << 20 };

/* ---- pass cost and roofline -------------------------------------------------------------------------------------- */

wg_pass_cost wg_pass_cost_of(const wg_model *m, int kv_type)
{
    if (!m) return (wg_pass_cost){ 0 };
    const wg_arch *a = wg_model_arch(m);
    return (wg_pass_cost){ .weight_bytes = (double)wg_model_pass_bytes(m, 1),
                           .slot_bytes = (double)wg_kv_token_bytes(kv_type, a->layers, a->kv_heads, a->head_dim),
                           .row_macs = (double)wg_arch_macs(a),
                           .key_macs = 2.0 * a->heads * a->head_dim * a->layers };
}

/* Takes the best of a few measurements, since slower ones include other load. The stream is as long as a pass's weights, so
 * that weights in a cache are compared with the cache's rate. */
wg_status wg_roofline_measure(wg_roofline *p, const wg_target *t, wg_error *err)
{
    wg_machine_bench b;
    *p = (wg_roofline){ 0 };
    if (t->device.class->finish || !t->model) return WG_OK;
    const double pass = fmin(fmax((double)wg_model_pass_bytes(t->model, 1), LEAST), WG_MACHINE_STREAM);
    const wg_status s = wg_machine_bench_open(&b, t->pool, t->ops, wg_machine_type(t->weights), (int)pass, err);
    const double readings = s ? 0 : fmin(TIMES_MOST, TIMES_MEASURED * (WG_MACHINE_STREAM / pass));
    for (int i = 0; i < readings; i++) p->bytes = fmax(p->bytes, wg_machine_stream(&b));
    for (int i = 0; i < TIMES_MEASURED && !s; i++) p->macs = fmax(p->macs, wg_machine_products(&b));
    wg_machine_bench_close(&b);
    return s;
}

json_t *wg_roofline_json(const wg_roofline *p)
{
    return json_pack("{s:f, s:f}", "stream_gb_s", p->bytes / 1e9, "peak_gflop_s", 2 * p->macs / 1e9);
}

json_t *wg_pass_cost_json(const wg_pass_cost *d)
{
    return json_pack("{s:f, s:f, s:f, s:f}", "weight_bytes", d->weight_bytes, "slot_bytes", d->slot_bytes, "row_macs",
                     d->row_macs, "key_macs", d->key_macs);
}

void wg_machine_of(const json_t *groups, int group, wg_pass_cost *d, wg_roofline *p)
{
    const json_t *entry = NULL;
    for (size_t i = 0; i < json_array_size(groups) && !entry; i++)
        if (json_integer_value(json_object_get(json_array_get(groups, i), "group")) == group) entry = json_array_get(groups, i);
    const json_t *need = json_object_get(entry, "demand"), *give = json_object_get(entry, "machine");
    *d = (wg_pass_cost){ wg_json_real(need, "weight_bytes"), wg_json_real(need, "slot_bytes"), wg_json_real(need, "row_macs"),
                         wg_json_real(need, "key_macs") };
    *p = (wg_roofline){ wg_json_real(give, "stream_gb_s") * 1e9, wg_json_real(give, "peak_gflop_s") / 2 * 1e9 };
}

/* ---- a cell's numbers -------------------------------------------------------------------------------------------- */

static double bytes_of(const wg_run_work *e, const wg_pass_cost *d)
{
    return e->pass_stats.passes * d->weight_bytes + e->pass_stats.cached * d->slot_bytes;
}

static double macs_of(const wg_run_work *e, const wg_pass_cost *d)
{
    return e->pass_stats.rows * d->row_macs + e->pass_stats.seen * d->key_macs;
}

static void add_rates(json_t *v, const wg_run_work *e, const wg_pass_cost *d, const wg_roofline *p, const char *const key[4])
{
    json_object_set_new(v, key[0], wg_json_ratio(bytes_of(e, d), e->forward * p->bytes));
    json_object_set_new(v, key[1], wg_json_ratio(macs_of(e, d), e->forward * p->macs));
    json_object_set_new(v, key[2], wg_json_ratio(bytes_of(e, d) / 1e9, e->forward));
    json_object_set_new(v, key[3], wg_json_ratio(2 * macs_of(e, d) / 1e9, e->forward));
}

static json_t *efficiency(const wg_run_work *own, const wg_run_work *base, const wg_pass_cost *d, const wg_roofline *p)
{
    static const char *const mine[] = { "mbu", "mfu", "gb_s", "gflop_s" }, *const theirs[] = { "baseline_mbu", "baseline_mfu",
                                                                                               "baseline_gb_s",
                                                                                               "baseline_gflop_s" };
    json_t *v = json_object();
    add_rates(v, own, d, p, mine);
    add_rates(v, base, d, p, theirs);
    json_object_set_new(v, "stream_gb_s", p->bytes > 0 ? json_real(p->bytes / 1e9) : json_null());
    json_object_set_new(v, "peak_gflop_s", p->macs > 0 ? json_real(2 * p->macs / 1e9) : json_null());
    return v;
}

/* The work on verified and rejected draft tokens. Their bytes are keys and values only, since weights are read in any case. */
static json_t *rejected(const wg_run_work *e, const wg_pass_cost *d)
{
    const double rows = e->drafted - e->accepted, macs = rows * d->row_macs + e->pass_stats.seen_rejected * d->key_macs;
    json_t *v = json_object();
    json_object_set_new(v, "tokens", json_integer((json_int_t)rows));
    json_object_set_new(v, "gflop", wg_json_number(2 * macs / 1e9));
    json_object_set_new(v, "flop_share", wg_json_ratio(macs, macs_of(e, d)));
    json_object_set_new(v, "kv_mb", wg_json_number(rows * d->slot_bytes / 1e6));
    json_object_set_new(v, "byte_share",
                        wg_json_ratio(rows * d->slot_bytes, bytes_of(e, d) + e->pass_stats.rows * d->slot_bytes));
    return v;
}

static json_t *slots(const wg_run_work *e, double passes)
{
    const wg_pass_stats *l = &e->pass_stats;
    json_t *v = json_object();
    json_object_set_new(v, "held", wg_json_ratio(l->held, passes));
    json_object_set_new(v, "unused", wg_json_ratio(l->unused, passes));
    json_object_set_new(v, "rolled_back", wg_json_ratio(l->dropped, passes));
    json_object_set_new(v, "waste", wg_json_ratio(l->unused + l->dropped, l->held));
    return v;
}

static json_t *energy(const wg_run_work *own, const wg_run_work *base)
{
    if (!isfinite(own->joules) || !isfinite(base->joules) || !(own->tokens > 0)) return json_null();
    json_t *v = json_object();
    json_object_set_new(v, "joules_per_token", wg_json_ratio(own->joules, own->tokens));
    json_object_set_new(v, "baseline_joules_per_token", wg_json_ratio(base->joules, base->tokens));
    json_object_set_new(v, "watts", wg_json_ratio(own->joules, own->decode));
    json_object_set_new(v, "baseline_watts", wg_json_ratio(base->joules, base->decode));
    return v;
}

void wg_add_efficiency(json_t *cell, const wg_run_work *own, const wg_run_work *base, const wg_pass_cost *d,
                       const wg_roofline *p)
{
    const bool known = d->row_macs > 0; /* without a calibration the pass cost is unknown */
    json_object_set_new(cell, "efficiency", known ? efficiency(own, base, d, p) : json_null());
    json_object_set_new(cell, "rejected", known ? rejected(own, d) : json_null());
    json_object_set_new(cell, "kv_slots", slots(own, own->passes));
    json_object_set_new(cell, "energy", energy(own, base));
}
