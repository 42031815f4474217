/* SPDX-License-Identifier: MIT
 * `wager plan --student`: which size of student pays for a target on this machine, and what training it costs, before the
 * first step. Passes of target and students (random weights of the same shapes) are timed, acceptance comes from a fit through
 * measured students (scaling_fit.h), or there is none. */
#ifndef WG_EXPERIMENTS_CLI_PLAN_STUDENT_H
#define WG_EXPERIMENTS_CLI_PLAN_STUDENT_H

#include "experiments/cli/cli.h"

typedef struct wg_plan_student {
    const char *model, *shapes, *text; /* shapes NULL: those that fit the target; text NULL: "TEXT" in the config */
    const wg_flag_list *points;        /* distill.json and result folders */
    double tokens, temperature;        /* of training; NaN: any one */
    int length, context, threads, kv_type;
    const char *quantize;
    bool pin, json;
} wg_plan_student;

/* Prints the plan. Errors: those of the target and of points; EINVAL (a shape). */
wg_status wg_plan_students(const wg_plan_student *o, wg_error *err);

/* LAYERSxWIDTH[xHEADS][h], h: with the head of the target. False: it is none. */
typedef struct wg_student_shape {
    int layers, dim, heads; /* heads 0: the usual number */
    bool target_head;
} wg_student_shape;
bool wg_student_shape_parse(const char *text, size_t n, wg_student_shape *out);

#endif
