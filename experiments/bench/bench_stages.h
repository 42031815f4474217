/* SPDX-License-Identifier: MIT
 * A device that measures: every stage of the forward pass goes to another device, with the clock running. */
#ifndef WG_EXPERIMENTS_BENCH_BENCH_STAGES_H
#define WG_EXPERIMENTS_BENCH_BENCH_STAGES_H

#include "core/model/device.h"

enum { WG_FORWARD_STAGES = 9 };
extern const char *const wg_stage_names[WG_FORWARD_STAGES];

typedef struct wg_stages {
    wg_device_class class; /* first: a device's class pointer leads back here */
    const wg_device_class *inner;
    double seconds[WG_FORWARD_STAGES];
    wg_status failed; /* of a device that works on after a call: what a wait told; err says it */
    wg_error err;
} wg_stages;

/* d becomes a device that adds its times to s; s must outlive everything opened on it. */
void wg_stages_wrap(wg_stages *s, wg_device *d);

#endif
