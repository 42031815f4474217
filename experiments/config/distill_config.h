/* SPDX-License-Identifier: MIT
 * The file of a distillation (docs/distillation.md): the sections of a training run (train_config.h) beside `target`,
 * `distill`, `conversations`, `students` and `seeds`. A student inherits what it omits from the sections of the file; the list
 * has every student once per seed. */
#ifndef WG_EXPERIMENTS_CONFIG_DISTILL_CONFIG_H
#define WG_EXPERIMENTS_CONFIG_DISTILL_CONFIG_H

#include "core/file/head_file.h"
#include "draft/train/distill_feed.h"
#include "draft/train/loss.h"
#include "experiments/config/config.h"
#include "experiments/config/train_config.h"

enum { WG_DISTILL_NAME = 80, WG_DISTILL_LAYERS = 64 };

enum { WG_ROWS_SEQUENCE, WG_ROWS_KEPT };
typedef struct wg_distill_options {
    double temperature;
    int rows; /* WG_ROWS_...: how the target's rows of the text are made */
    wg_source_options source;
    int documents;               /* documents of the final evaluation; 0: none */
    int keep;                    /* tokens that students propose; 0: all */
    int tap[WG_HEAD_TAPS], taps; /* hidden states that heads read; 0: those of EAGLE-3 */
    bool predict;
    char trace[WG_OPTION_STRING]; /* file or result folder */
} wg_distill_options;
extern const wg_option wg_distill_table[], wg_source_table[], wg_conversations_table[];

/* What the target writes into data.conversations before the training. */
enum { WG_TEMPERATURES = 16 };
typedef struct wg_conversations_options {
    int tokens; /* of answers; 0: nothing is written */
    int question, prompt, answer, batch, seed;
    double magpie, question_temperature, top_p;
    char seeds[WG_OPTION_STRING], temperature[WG_OPTION_STRING], system[WG_OPTION_STRING];
    double temperatures[WG_TEMPERATURES]; /* (n_temperatures) those of `temperature` */
    int n_temperatures;
} wg_conversations_options;

/* The source of a student's embedding and head. */
enum { WG_HEAD_OWN, WG_HEAD_COPIED, WG_HEAD_FROZEN };

/* A language model, or a head over hidden states of the target, for the drafter `eagle`. */
enum { WG_STUDENT_MODEL, WG_STUDENT_EAGLE3 };

typedef struct wg_distill_student {
    char name[WG_DISTILL_NAME]; /* with several seeds NAME-SEED */
    char family_name[WG_DISTILL_NAME];
    int family, seed; /* family: number in the list */
    wg_train_model shape;
    int head;                                  /* WG_HEAD_... */
    double norm_scale;                         /* of the last norm that it takes from the target, at the beginning */
    int kind, steps;                           /* WG_STUDENT_...; of a head: the tokens of the drafts that it is trained over */
    int layer[WG_DISTILL_LAYERS], from_target; /* layers of the target that it begins with; their number, 0: none */
    wg_loss_spec loss;
    wg_optimiser_options optimiser;
    wg_schedule_options schedule;
} wg_distill_student;

typedef struct wg_distill_config {
    wg_setup_target target;
    wg_distill_options distill;
    wg_conversations_options conversations;
    wg_train_config train;       /* sections that all students share; `model`, `optimiser`, `schedule` are their defaults */
    wg_distill_student *student; /* (students), family by family, seed by seed; owned */
    int students, families, seeds;
    char *resolved; /* itself a valid config; owned */
} wg_distill_config;

/* set: as of wg_train_config_open. ECONFIG: all problems at once, each with its place. ENOMEM. */
wg_status wg_distill_config_open(wg_distill_config *out, const char *path, const char *const *set, int n_set, wg_error *err);
void wg_distill_config_close(wg_distill_config *c); /* zeroed is fine */

#endif
