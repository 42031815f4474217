/* SPDX-License-Identifier: MIT
 * The folder of a training run (`wager train`, `wager distill`), of an unfinished one too: its config, its log as curves of
 * every student over the tokens that it has learnt from, and the result of a distillation. */
#ifndef WG_EXPERIMENTS_REPORT_TRAINING_LOG_H
#define WG_EXPERIMENTS_REPORT_TRAINING_LOG_H

#include <jansson.h>
#include <stdbool.h>

#include "core/base/error.h"

/* A line of the log: loss and alpha (NaN: the log has none) of a step, or of the held-out text after it. tokens: rows with a
 * loss up to this step. */
typedef struct wg_training_point {
    double step, tokens, loss, alpha;
} wg_training_point;

typedef struct wg_training_curve {
    wg_training_point *point;
    int n;
} wg_training_curve;

typedef struct wg_training_student {
    char name[96];
    int family, seed; /* their numbers, from 0 on */
    wg_training_curve steps, held_out;
    const json_t *result; /* its entry in distill.json, or NULL */
} wg_training_student;

/* Students of a family stand together; its seeds are in the same order in every family. A `wager train` has one. */
typedef struct wg_training_log {
    bool distilled;
    json_t *config, *result; /* result: distill.json; NULL: not finished, or of `wager train` */
    wg_training_student *student;
    int students, families, seeds;
    int steps, planned; /* made by all students; of the config */
    double seconds;     /* of steps, all students together */
    bool alone;         /* no line has a seed's name: one student each family */
} wg_training_log;

/* Whether the folder has a log of training. */
bool wg_training_is_run(const char *folder);

/* EIO, EFORMAT (its config or result is damaged), ENOMEM. A line that cannot be read, as the last one of a run that was killed,
 * is passed over. */
wg_status wg_training_log_open(wg_training_log *out, const char *folder, wg_error *err);
void wg_training_log_close(wg_training_log *l); /* zeroed is fine */

/* The name of a family, borrowed. */
const char *wg_training_family(const wg_training_log *l, int family);
/* The entry of a family in the result; NULL: there is none. */
const json_t *wg_training_family_result(const wg_training_log *l, int family);

/* A point for each evaluation that all students have: x the tokens, the value (alpha, or the loss) of the family as the mean
 * over its seeds, with the least and the most of them (NaN for a single seed). less: a family whose value is subtracted, seed
 * by seed; -1: none. Returns the number of points, at most `room`. */
typedef struct wg_training_mean {
    double tokens, value, least, most;
} wg_training_mean;
int wg_training_means(const wg_training_log *l, int family, int less, bool alpha, wg_training_mean *out, int room);

#endif
