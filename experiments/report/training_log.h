/* SPDX-License-Identifier: MIT
 * The folder of a training run (`wager train`, `wager distill`), finished or not: its config, the log as a curve for each
 * student over the tokens that it was trained on, and the result of a distillation. */
#ifndef WG_EXPERIMENTS_REPORT_TRAINING_LOG_H
#define WG_EXPERIMENTS_REPORT_TRAINING_LOG_H

#include <jansson.h>
#include <stdbool.h>

#include "core/base/error.h"

/* A line of the log: loss and alpha (NaN: not in the log) of a step, or of the held-out text after it. tokens: rows with a
 * loss so far. */
typedef struct wg_training_point {
    double step, tokens, loss, alpha;
} wg_training_point;

typedef struct wg_training_curve {
    wg_training_point *point;
    int n;
} wg_training_curve;

typedef struct wg_training_student {
    char name[96];
    int family, seed; /* index of its family; index of its seed within the family */
    wg_training_curve steps, held_out;
    const json_t *result; /* its entry in distill.json, or NULL */
} wg_training_student;

/* Students of a family stand together; its seeds are in the same order in every family. A `wager train` has one. */
typedef struct wg_training_log {
    bool distilled;
    json_t *config, *result; /* result: distill.json; NULL: not finished, or of `wager train` */
    wg_training_student *student;
    int students, families, seeds;
    int steps, planned; /* steps that all students have made; steps of the config */
    double seconds;     /* time of the steps of all students together */
    bool alone;         /* each family has one student, so its name has no seed */
} wg_training_log;

/* Whether the folder has a log of training. */
bool wg_training_is_run(const char *folder);

/* EIO, EFORMAT (its config or result is damaged), ENOMEM. Lines that cannot be read, such as the last one of a run that was
 * killed, are skipped. */
wg_status wg_training_log_open(wg_training_log *out, const char *folder, wg_error *err);
void wg_training_log_close(wg_training_log *l); /* zeroed is fine */

/* The name of a family, borrowed. */
const char *wg_training_family(const wg_training_log *l, int family);
/* The entry of a family in the result; NULL: there is none. */
const json_t *wg_training_family_result(const wg_training_log *l, int family);

/* A point for each evaluation that all students have: the tokens, and the family's value (alpha, or the loss) as the mean
 * over its seeds with the least and the most of them (NaN for a single seed). less: a family whose value is subtracted, seed
 * by seed; -1: none. Returns the number of points, at most `room`. */
typedef struct wg_training_mean {
    double tokens, value, least, most;
} wg_training_mean;
int wg_training_means(const wg_training_log *l, int family, int less, bool alpha, wg_training_mean *out, int room);

#endif
