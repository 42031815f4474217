/* SPDX-License-Identifier: MIT
 * The contents of the files that a run reads, which resume and merge compare before they continue. A config names files; the
 * config's own digest covers their names, not their contents. */
#ifndef WG_EXPERIMENTS_CONFIG_INPUT_FILES_H
#define WG_EXPERIMENTS_CONFIG_INPUT_FILES_H

#include "experiments/config/config.h"

/* {"path": SHA-256 in hex}: targets, prompts, and the side files of drafters. Owned by the caller.
 *
 * Of a model in a folder all files in it that end in .json or .safetensors are counted.
 *
 * A side file is a regular file that a string option of a drafter names: draft models, pruned vocabularies, trees, datastores,
 * plug-ins; also in the options of component drafters ("hybrid" with second=model:model=F;prune=F) and in the words of a
 * command, except a file to which the command's output is redirected. Side files are found by testing names, not declared, so a
 * new option or drafter cannot omit one. A word that happens to be a file's name counts, too: an unnecessary refusal is better
 * than mixed inputs in one run. null: a model that can no longer be read. */
json_t *wg_files_json(const wg_config *c);

#endif
