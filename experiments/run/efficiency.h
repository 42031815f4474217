/* SPDX-License-Identifier: MIT
 * How well a cell's passes used the machine, and what was for nothing: model bandwidth and FLOPs utilisation (MBU, MFU), work
 * on draft tokens that were rejected, cache slots that held nothing, joules. Derived from what the passes were made of (load.h)
 * and the model's shape; rates are held against what the machine gave in the same run. */
#ifndef WG_EXPERIMENTS_RUN_EFFICIENCY_H
#define WG_EXPERIMENTS_RUN_EFFICIENCY_H

#include "experiments/record/pass_stats.h"
#include "experiments/base/target.h"

/* What a target's passes need. Bytes each once, as if a pass met empty caches (bench_forward.h). */
typedef struct wg_pass_cost {
    double weight_bytes; /* of a pass: layers and head */
    double slot_bytes;   /* keys and values of a token, all layers */
    double row_macs;     /* multiply-adds of a row, attention left out; of a row and a key it sees */
    double key_macs;
} wg_pass_cost;
wg_pass_cost wg_pass_cost_of(const wg_model *m, int kv_type);
json_t *wg_pass_cost_json(const wg_pass_cost *d);

/* What the machine gives at best (bench_machine.h): bytes and multiply-adds a second. 0: not measured. */
typedef struct wg_roofline {
    double bytes, macs;
} wg_roofline;

/* Measures both in less than half a second, with up to 256 MB. A target on a device of its own has other memory: both are 0. */
wg_status wg_roofline_measure(wg_roofline *p, const wg_target *t, wg_error *err);
json_t *wg_roofline_json(const wg_roofline *p);

/* Both, as cost.json has them under "demand" and "machine" of its groups; all 0 where it has none. */
void wg_machine_of(const json_t *groups, int group, wg_pass_cost *d, wg_roofline *p);

/* What one side of a cell's pairs took. */
typedef struct wg_run_work {
    wg_pass_stats pass_stats;
    double forward, decode, prefill; /* seconds in the target's passes, in steps, in reading prompts */
    double joules;                   /* of the steps; NaN: not measured */
    double passes;                   /* of one sequence each; load.passes counts shared ones once */
    double tokens, accepted, drafted;
} wg_run_work;

/* Sets "efficiency", "rejected", "kv_slots" and "energy" of a cell of summary.json (results/README.md). */
void wg_add_efficiency(json_t *cell, const wg_run_work *own, const wg_run_work *base, const wg_pass_cost *d,
                       const wg_roofline *p);

#endif
