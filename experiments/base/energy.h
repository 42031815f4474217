/* SPDX-License-Identifier: MIT
 * Energy in joules from RAPL, the counters of x86 processors that Linux presents as files (Documentation/power/powercap): a
 * folder intel-rapl:N per package, also on AMD, and below it intel-rapl:N:M per domain; each with `name`, `energy_uj` and the
 * value at which it wraps, `max_energy_range_uj`. Packages and their memory (`dram`, which a package excludes) are counted, for
 * everything that runs on the machine, not this program alone. Since 2020 only root can read the files unless an administrator
 * changes their mode. */
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
    uint64_t last, range; /* microjoules; range: largest value of the counter, 0: unknown */
} wg_energy_domain;

typedef struct wg_energy {
    int n; /* 0: no counter can be read; `why` gives the reason */
    wg_energy_domain domain[WG_ENERGY_DOMAINS];
    double joules; /* counted so far */
    char why[200];
} wg_energy;

/* Finds counters below `root`. If some package cannot be read, no counter is used, since a part of the energy would look like
 * the whole. */
void wg_energy_open(wg_energy *e, const char *root);
void wg_energy_close(wg_energy *e);

/* Joules since wg_energy_open; NaN without counters, and after a counter has failed. Correct as long as no counter wraps
 * twice between two calls (minutes to hours). */
double wg_energy_joules(wg_energy *e);

/* {"domains": ["package-0", ...]}; without counters {"domains": [], "why": "..."}. */
json_t *wg_energy_json(const wg_energy *e);

#endif
