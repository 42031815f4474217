/* SPDX-License-Identifier: MIT
 * Joules by RAPL, the counters of x86 processors that Linux shows as files (Documentation/power/powercap): a folder
 * intel-rapl:N per package, also on AMD, and below it intel-rapl:N:M per part; each with `name`, `energy_uj` and the value it
 * wraps at, `max_energy_range_uj`. Counted are the packages and their memory (`dram`, which a package does not include): all
 * that runs there, not this program alone. Since 2020 the files are root's unless an administrator opens them. */
#ifndef WG_EXPERIMENTS_BASE_ENERGY_H
#define WG_EXPERIMENTS_BASE_ENERGY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { WG_ENERGY_DOMAINS = 16 };

#define WG_ENERGY_ROOT "/sys/class/powercap"

typedef struct wg_energy_domain {
    int fd;
    char name[64];        /* "package-0", "package-0/dram" */
    uint64_t last, range; /* microjoules; range: the counter's greatest value, 0 when unknown */
} wg_energy_domain;

typedef struct wg_energy {
    int n; /* 0: nothing can be read, and `why` says what is in the way */
    wg_energy_domain domain[WG_ENERGY_DOMAINS];
    double joules; /* so far */
    char why[200];
} wg_energy;

/* Looks for counters below `root`. When a package is there and cannot be read there are none at all: part of a machine's energy
 * would pass for all of it. */
void wg_energy_open(wg_energy *e, const char *root);
void wg_energy_close(wg_energy *e);

/* Joules since the opening; NaN without counters, and from the first one that fails on. Right as long as no counter wraps twice
 * between two calls (minutes to hours). */
double wg_energy_joules(wg_energy *e);

/* {"domains": ["package-0", ...]}; without counters {"domains": [], "why": "..."}. */
json_t *wg_energy_json(const wg_energy *e);

#endif
