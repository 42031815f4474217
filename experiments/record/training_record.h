/* SPDX-License-Identifier: MIT
 * The record of a trained model in its run's folder: config, and the end of the log. */
#ifndef WG_EXPERIMENTS_RECORD_TRAINING_RECORD_H
#define WG_EXPERIMENTS_RECORD_TRAINING_RECORD_H

#include <jansson.h>

/* Of a model file that `wager train` wrote, FOLDER/NAME.gguf with output.name = NAME in FOLDER/config.json; or a checkpoint of
 * it (lines of the log up to its step); or of `wager distill`, a student of FOLDER/distill.json:
 *
 *   config                              the resolved config
 *   steps, tokens, seconds, loss        steps made, rows with a loss and seconds of all of them, loss of the last (nats)
 *   held_out, held_out_step             the last held-out loss; null: there is none
 *   student                             of a distillation: its entry in distill.json; otherwise null
 *
 * NULL: the file is not the model of such a run. Unreadable lines of the log are skipped. */
json_t *wg_training_record(const char *model);

#endif
