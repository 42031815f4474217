/* SPDX-License-Identifier: MIT
 * How well a cell's passes used the machine, and what was for nothing: model bandwidth and FLOPs utilisation (MBU, MFU), work
 * on draft tokens that were rejected, cache slots that held nothing, joules. Derived from what the passes were made of (load.h)
 * and the model's shape; rates are held against what the machine gave in the same run. */
#ifndef WG_EXPERIMENTS_RUN_EFFICIENCY_H
#define WG_EXPERIMENTS_RUN_EFFICIENCY_H

#include "experiments/record/pass_stats.h"
#include "experiments/base/target.h"

/* What a target's passes need. Bytes each once, as if a pass met empty caches (bench_forward.h). */
typedef struct wg_demand {
    double weight_bytes;   /* of a pass: layers and head */
    double slot_bytes;     /* keys and values of a token, all layers */
    double row_macs;       /* multiply-adds of a row, attention left out; of a row and a key it sees */
    double key_macs;
} wg_demand;
wg_demand wg_demand_of(const wg_model *m, int kv_type);
json_t *wg_demand_json(const wg_demand *d);

/* What the machine gives at best (bench_machine.h): bytes and multiply-adds a second. 0: not measured. */
typedef struct wg_peaks { double bytes, macs; } wg_peaks;

/* Measures both in less than half a second, with up to 256 MB. A target on a device of its own has other memory: both are 0. */
wg_status wg_peaks_measure(wg_peaks *p, const wg_target *t, wg_error *err);
json_t *wg_peaks_json(const wg_peaks *p);

/* Both, as cost.json has them under "demand" and "machine" of its groups; all 0 where it has none. */
void wg_machine_of(const json_t *groups, int group, wg_demand *d, wg_peaks *p);

/* What one side of a cell's pairs took. */
typedef struct wg_effort {
    wg_load load;
    double forward, decode, prefill; /* seconds in the target's passes, in steps, in reading prompts */
    double joules;          /* of the steps; NaN: not measured */
    double passes;          /* of one sequence each; load.passes counts shared ones once */
    double tokens, accepted, drafted;
} wg_effort;

/* Sets "efficiency", "rejected", "kv_slots" and "energy" of a cell of summary.json (results/README.md). */
void wg_add_efficiency(json_t *cell, const wg_effort *own, const wg_effort *base, const wg_demand *d, const wg_peaks *p);

#endif
