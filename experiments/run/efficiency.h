/* SPDX-License-Identifier: MIT
 * The efficiency of a cell's passes: model bandwidth and FLOPs utilisation (MBU, MFU), work on draft tokens that were rejected,
 * unused cache slots, joules. They follow from pass statistics (pass_stats.h) and the model's shape; rates are relative to the
 * machine's, measured in the same run. */
#ifndef WG_EXPERIMENTS_RUN_EFFICIENCY_H
#define WG_EXPERIMENTS_RUN_EFFICIENCY_H

#include "experiments/record/pass_stats.h"
#include "core/setup/target.h"

/* Pass cost: the bytes and operations of a target's pass. Each byte counts once, as if a pass began with cold caches
 * (bench_parts.h). */
typedef struct wg_pass_cost {
    double weight_bytes; /* bytes of layers and head, per pass */
    double slot_bytes;   /* bytes of a token's keys and values in all layers */
    double row_macs;     /* multiply-adds of a row, without attention */
    double key_macs;
} wg_pass_cost;
wg_pass_cost wg_pass_cost_of(const wg_model *m, int kv_type);
json_t *wg_pass_cost_json(const wg_pass_cost *d);

/* The machine's best rates (roofline.h): bytes and multiply-adds per second. 0: not measured. */
typedef struct wg_roofline {
    double bytes, macs;
} wg_roofline;

/* Measures both in less than half a second, with up to 256 MB. For a target on a device with its own memory both are 0. */
wg_status wg_roofline_measure(wg_roofline *p, const wg_target *t, wg_error *err);
json_t *wg_roofline_json(const wg_roofline *p);

/* Reads both from a group's "demand" and "machine" in cost.json; all 0 where they are missing. */
void wg_machine_of(const json_t *groups, int group, wg_pass_cost *d, wg_roofline *p);

/* The work of one side of a cell's pairs. */
typedef struct wg_run_work {
    wg_pass_stats pass_stats;
    double forward, decode, prefill; /* seconds in the target's passes, in steps, in reading prompts */
    double joules;                   /* of the steps; NaN: not measured */
    double passes;                   /* counted once per sequence; pass_stats.passes counts a shared pass once */
    double tokens, accepted, drafted;
} wg_run_work;

/* Sets "efficiency", "rejected", "kv_slots" and "energy" of a cell of summary.json (results/README.md). */
void wg_add_efficiency(json_t *cell, const wg_run_work *own, const wg_run_work *base, const wg_pass_cost *d,
                       const wg_roofline *p);

#endif
