/* SPDX-License-Identifier: MIT
 * A timing device: forwards every stage of the forward pass to another device and times it. */
#ifndef WG_EXPERIMENTS_BENCH_BENCH_STAGES_H
#define WG_EXPERIMENTS_BENCH_BENCH_STAGES_H

#include "core/model/device.h"

enum { WG_FORWARD_STAGES = 9 };
extern const char *const wg_stage_names[WG_FORWARD_STAGES];

typedef struct wg_stages {
    wg_device_class class; /* first: a device's class pointer leads back here */
    const wg_device_class *inner;
    double seconds[WG_FORWARD_STAGES];
    wg_status failed; /* error of an asynchronous device's wait; `err` has the message */
    wg_error err;
} wg_stages;

/* Turns d into a device that adds its times to s; s must outlive everything opened on d. */
void wg_stages_wrap(wg_stages *s, wg_device *d);

#endif
