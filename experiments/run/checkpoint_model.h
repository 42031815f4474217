/* SPDX-License-Identifier: MIT
 * The model in a checkpoint of `wager train` (docs/training.md has the form of the file). */
#ifndef WG_EXPERIMENTS_RUN_CHECKPOINT_MODEL_H
#define WG_EXPERIMENTS_RUN_CHECKPOINT_MODEL_H

#include "core/model/arch.h"

/* Whether a path has the name of a checkpoint, *.wgc. */
bool wg_is_checkpoint(const char *path);

/* Writes the model as a GGUF file in f32, with the tokenizer that its config names (relative to the run's working directory).
 * Loads OpenBLAS, as training does. Errors: those of reading and of the files that the config names; EFORMAT: the file is
 * damaged, or does not fit the config's model; EUNSUPPORTED: it belongs to a distillation, which writes its students as files
 * itself. */
wg_status wg_checkpoint_model(const char *checkpoint, const char *out, wg_error *err);

#endif
