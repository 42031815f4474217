/* SPDX-License-Identifier: MIT
 * The JSON Schema (2020-12) of a config, generated from the tables that check it: for editors and other programs. */
#ifndef WG_EXPERIMENTS_CONFIG_SCHEMA_H
#define WG_EXPERIMENTS_CONFIG_SCHEMA_H

#include "experiments/config/config.h"

/* NULL when out of memory. The schema checks less than `wager check`: no files, no laws, no relations between options. */
json_t *wg_config_schema(const wg_plugins *plugins);

#endif
