/* SPDX-License-Identifier: MIT
 * The results of a load test as text. */
#ifndef WG_EXPERIMENTS_LOAD_LOAD_TEXT_H
#define WG_EXPERIMENTS_LOAD_LOAD_TEXT_H

#include <jansson.h>
#include <stdio.h>

/* Writes the object of wg_load_result_json as a short table. */
void wg_load_print(FILE *f, const json_t *metrics);

#endif
