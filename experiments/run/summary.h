/* SPDX-License-Identifier: MIT
 * Writes results as the JSON of summary.json (results/README.md). The terminal's table reads the same JSON. */
#ifndef WG_EXPERIMENTS_RUN_SUMMARY_H
#define WG_EXPERIMENTS_RUN_SUMMARY_H

#include "experiments/run/runner.h"

/* {"schema": WG_SUMMARY_SCHEMA, "cells": [...], ...}; NULL when out of memory. */
json_t *wg_summary_json(const wg_run *run);

#endif
