/* SPDX-License-Identifier: MIT
 * An error for a client: the HTTP status and the body of the answer, in the shape of the OpenAI API. */
#ifndef WG_SERVE_PROBLEM_H
#define WG_SERVE_PROBLEM_H

#include <jansson.h>
#include <stdbool.h>

typedef struct wgs_problem {
    int http;          /* 400, 401, 403, 404, 405, 413, 414, 415, 429, 431, 500, 503, 504 */
    const char *code;  /* a word that programs can test, or NULL; static */
    char param[80];    /* the field of the request, or "" */
    char message[640]; /* what happened, what was expected, how to fix it */
} wgs_problem;

/* Fills *p and returns false. param: the field, or NULL. */
__attribute__((format(printf, 4, 5))) bool wgs_refuse(wgs_problem *p, int http, const char *param, const char *format, ...);

/* {"error": {message, type, param, code}}; the type follows from the status. NULL: out of memory. */
json_t *wgs_problem_json(const wgs_problem *p);

#endif
