/* SPDX-License-Identifier: MIT
 * The body of a request of a load test. */
#ifndef WG_EXPERIMENTS_LOAD_REQUEST_BODY_H
#define WG_EXPERIMENTS_LOAD_REQUEST_BODY_H

#include "experiments/load/load_test.h"

/* The JSON body of request `number`, or of warm-up -1 - number; released by free(). NULL: out of memory, or a prompt is not
 * UTF-8. */
char *wg_request_body(const wg_load_test *t, const char *model, int number);

#endif
