/* SPDX-License-Identifier: MIT
 * Pass statistics, and the numbers computed from them, against numbers computed by hand. */
#include <math.h>

#include "core/base/mem.h"
#include "experiments/run/efficiency.h"
#include "core/setup/target.h"
#include "scene.h"

static scene s;
static void setup(void) { scene_make(&s); }
static void teardown(void) { scene_remove(&s); }

static double real(const json_t *v, const char *key) { return json_number_value(json_object_get(v, key)); }

static void near(const json_t *v, const char *key, double want)
{
    cr_assert(json_is_number(json_object_get(v, key)), "%s", key);
    cr_assert_float_eq(real(v, key), want, 1e-9 * fabs(want) + 1e-15, "%s: %.12g, expected %.12g", key, real(v, key), want);
}

/* A tree 0 - 1 - 2 and 0 - 3 with a probe below 3, after 9 tokens of which the last is the root: 8 are in the cache. Kept:
 * 1, and `next`. Keys: 9 (root), 10, 11, 10, and 11 of the probe. Rejected: 11 + 10. 13 slots are 4 pages of 4; 3 are
 * unused, and of 5 rows 2 stay. */
Test(efficiency, a_step)
{
    int32_t token[16] = { 0 };
    uint8_t drafted[16] = { 0 };
    wg_tree t;
    wg_pass_stats l = { 0 };
    wg_seq seq = { .token = token, .drafted = drafted, .n = 11, .prompt = 9, .path = { .n = 2 }, .last_emitted = 2 };
    drafted[9] = 1;
    wg_tree_reset(&t, 5, WG_LAW_FIXED);
    wg_tree_push(&t, 0, 1, -1);
    wg_tree_push(&t, 1, 2, -1);
    wg_tree_push(&t, 0, 3, -1);
    wg_tree_probe(&t, 3, 4);
    wg_pass_stats_step(&l, &seq, &t, 2, 4);
    const wg_pass_stats want = { .passes = 0.5,
                                 .rows = 5,
                                 .cached = 8,
                                 .seen = 9 + 10 + 11 + 10 + 11,
                                 .seen_rejected = 11 + 10,
                                 .held = 16,
                                 .unused = 3,
                                 .dropped = 3 };
    json_t *got = wg_pass_stats_json(&l), *expected = wg_pass_stats_json(&want);
    cr_assert(json_equal(got, expected), "%s", json_dumps(got, 0));

    /* A plain step after it: 10 in the cache, one row that sees 11 keys; 11 slots are 3 pages, one unused, none given back. */
    seq.n = 12, seq.path.n = 1, seq.last_emitted = 1;
    wg_tree_reset(&t, 5, WG_LAW_FIXED);
    wg_pass_stats_step(&l, &seq, &t, 1, 4);
    const wg_pass_stats both = {
        .passes = 1.5, .rows = 6, .cached = 18, .seen = 51 + 11, .seen_rejected = 21, .held = 28, .unused = 4, .dropped = 3
    };
    json_t *two = wg_pass_stats_json(&l), *sum = wg_pass_stats_json(&both);
    cr_assert(json_equal(two, sum), "%s", json_dumps(two, 0));
    wg_pass_stats back;
    wg_pass_stats_read(&back, two);
    cr_assert_arr_eq(&back, &both, sizeof back);
    json_decref(got), json_decref(expected), json_decref(two), json_decref(sum);
}

/* Events of 3, 1 and 2 tokens after 60, 10 and 40 ms: tokens at 20 20 20 10 20 20. */
Test(efficiency, events)
{
    wg_error err;
    wg_events e, copy;
    wg_series gaps = { 0 }, tokens = { 0 };
    cr_assert_eq(wg_events_open(&e, 3, &err), WG_OK);
    cr_assert_eq(wg_events_open(&copy, 3, &err), WG_OK);
    wg_event_add(&e, 0.06, 3);
    wg_event_add(&e, 0.01, 1);
    wg_event_add(&e, 0.04, 2);
    wg_event_add(&e, 9, 9); /* past the room */
    json_t *v = json_object();
    json_object_set_new(v, "itl_ms", wg_events_gaps(&e));
    json_object_set_new(v, "itl_tokens", wg_events_tokens(&e));
    wg_events_read(&copy, v);
    static const double want[] = { 0.02, 0.02, 0.02, 0.01, 0.02, 0.02 };
    for (int round = 1; round <= 2; round++) {
        cr_assert_eq(wg_events_spread(round == 1 ? &e : &copy, &gaps, &tokens, &err), WG_OK);
        cr_assert_eq(gaps.n, 3 * round);
        cr_assert_eq(tokens.n, 6 * round);
        for (int i = 0; i < tokens.n; i++) cr_assert_float_eq(tokens.v[i], want[i % 6], 1e-12);
        cr_assert_float_eq(gaps.v[3 * round - 3], 0.06, 1e-12);
        cr_assert_float_eq(gaps.v[3 * round - 1], 0.04, 1e-12);
    }
    json_decref(v);
    wg_free(gaps.v);
    wg_free(tokens.v);
    wg_events_close(&e);
    wg_events_close(&copy);
}

/* 10 passes of 2 GB and 1000 cached tokens of 1 MB: 21 GB in 3 s are 7 GB/s, half of 14. 40 rows of 1 GMAC and 5000 keys of 2
 * MMAC: 50 GMAC. */
static const wg_pass_cost demand = { .weight_bytes = 2e9, .slot_bytes = 1e6, .row_macs = 1e9, .key_macs = 2e6 };
static const wg_roofline peaks = { .bytes = 14e9, .macs = 100e9 };
static const wg_run_work own = {
    .pass_stats = { .passes = 10,
                    .rows = 40,
                    .cached = 1000,
                    .seen = 5000,
                    .seen_rejected = 1500,
                    .held = 1600,
                    .unused = 100,
                    .dropped = 60 },
    .passes = 20,
    .forward = 3,
    .decode = 4,
    .joules = 50,
    .tokens = 25,
    .accepted = 5,
    .drafted = 15,
};
static const wg_run_work base = { .pass_stats = { .passes = 25, .rows = 25, .cached = 1000, .seen = 1025 },
                                  .passes = 25,
                                  .forward = 6,
                                  .decode = 6.25,
                                  .joules = 100,
                                  .tokens = 25 };

Test(efficiency, arithmetic)
{
    json_t *c = json_object();
    wg_add_efficiency(c, &own, &base, &demand, &peaks);
    const json_t *e = json_object_get(c, "efficiency"), *r = json_object_get(c, "rejected"),
                 *k = json_object_get(c, "kv_slots"), *j = json_object_get(c, "energy");
    near(e, "gb_s", 7);
    near(e, "mbu", 0.5);
    near(e, "gflop_s", 2 * 50 / 3.);
    near(e, "mfu", 50 / 3. / 100);
    near(e, "baseline_gb_s", 51 / 6.);
    near(e, "baseline_mbu", 51 / 6. / 14);
    near(e, "baseline_mfu", 27.05 / 6 / 100);
    near(e, "stream_gb_s", 14);
    near(e, "peak_gflop_s", 200);
    near(r, "tokens", 10);
    near(r, "gflop", 2 * (10 + 3));
    near(r, "flop_share", 13 / 50.);
    near(r, "kv_mb", 10);
    near(r, "byte_share", 0.01 / (21 + 0.04));
    near(k, "held", 80);
    near(k, "unused", 5);
    near(k, "rolled_back", 3);
    near(k, "waste", 0.1);
    near(j, "joules_per_token", 2);
    near(j, "baseline_joules_per_token", 4);
    near(j, "watts", 12.5);
    near(j, "baseline_watts", 16);
    json_decref(c);
}

Test(efficiency, what_was_not_measured_is_null)
{
    json_t *c = json_object();
    const wg_run_work none = { 0 };
    wg_run_work dark = own;
    dark.joules = NAN;
    wg_add_efficiency(c, &dark, &base, &demand, &(wg_roofline){ 0 });
    cr_assert(json_is_null(json_object_get(c, "energy")));
    const json_t *e = json_object_get(c, "efficiency");
    cr_assert(json_is_null(json_object_get(e, "mbu")) && json_is_null(json_object_get(e, "mfu")));
    cr_assert(json_is_null(json_object_get(e, "stream_gb_s")) && json_is_null(json_object_get(e, "peak_gflop_s")));
    near(e, "gb_s", 7);
    wg_add_efficiency(c, &none, &none, &demand, &peaks);
    cr_assert(json_is_null(json_object_get(c, "energy")));
    cr_assert(json_is_null(json_object_get(json_object_get(c, "efficiency"), "mbu")));
    cr_assert(json_is_null(json_object_get(json_object_get(c, "kv_slots"), "waste")));
    cr_assert(json_is_null(json_object_get(json_object_get(c, "rejected"), "flop_share")));
    wg_add_efficiency(c, &own, &base, &(wg_pass_cost){ 0 }, &peaks);
    cr_assert(json_is_null(json_object_get(c, "efficiency")) && json_is_null(json_object_get(c, "rejected")));
    json_decref(c);
}

/* The scene's target: 2 layers, dim 32, 2 heads of 16 and 1 for keys and values, hidden 64, vocabulary 320, f32. */
Test(efficiency, demand_and_peaks_of_a_model, .init = setup, .fini = teardown)
{
    wg_error err;
    wg_target *t;
    wg_roofline p, back;
    wg_pass_cost again;
    const wg_target_options o = { .threads = 1, .model = { .kv_type = WG_F16 } };
    cr_assert_eq(wg_target_open(&t, "target.gguf", &o, &err), WG_OK, "%s", err.text);
    const wg_pass_cost d = wg_pass_cost_of(t->model, WG_F16);
    const double layer = 32 * 32 + 2 * 32 * 16 + 32 * 32 + 3 * 32 * 64;
    cr_assert_eq(d.row_macs, 2 * layer + 32 * 320);
    cr_assert_eq(d.key_macs, 2 * 2 * 32);
    cr_assert_eq(d.slot_bytes, 2 * 2 * 2 * 16);
    cr_assert_geq(d.weight_bytes, 4 * d.row_macs); /* and norms, and panels */
    cr_assert_eq(wg_pass_cost_of(t->model, WG_F32).slot_bytes, 2 * d.slot_bytes);
    cr_assert_eq(wg_pass_cost_of(t->model, WG_KV_Q8).slot_bytes, 2 * 2 * (16 + sizeof(float))); /* one head, one scale */
    cr_assert_eq(wg_roofline_measure(&p, t, &err), WG_OK, "%s", err.text);
    cr_assert(p.bytes > 1e6 && p.macs > 1e6, "%g %g", p.bytes, p.macs);
    json_t *groups = json_pack("[{s:i, s:o, s:o}, {s:i}]", "group", 3, "demand", wg_pass_cost_json(&d), "machine",
                               wg_roofline_json(&p), "group", 4);
    wg_machine_of(groups, 3, &again, &back);
    cr_assert_float_eq(back.bytes, p.bytes, 1e-9 * p.bytes);
    cr_assert_float_eq(back.macs, p.macs, 1e-9 * p.macs);
    cr_assert_arr_eq(&again, &d, sizeof d);
    for (int group = 4; group <= 5; group++) {
        wg_machine_of(groups, group, &again, &back);
        cr_assert(again.row_macs == 0 && again.weight_bytes == 0 && back.bytes == 0 && back.macs == 0);
    }
    json_decref(groups);
    wg_target_close(t);
}
