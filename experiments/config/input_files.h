/* SPDX-License-Identifier: MIT
 * Which files a run reads, by content: what resume and merge hold against each other before they go on. A config names them;
 * the config's own digest has their names, not what is in them. */
#ifndef WG_EXPERIMENTS_CONFIG_INPUT_FILES_H
#define WG_EXPERIMENTS_CONFIG_INPUT_FILES_H

#include "experiments/config/config.h"

/* {"path": SHA-256 in hex}: targets, prompts, and the side files of drafters. Owned by the caller.
 *
 * A side file is whatever a text option of a drafter names that is a regular file now: draft models, pruned vocabularies,
 * trees, datastores, plug-ins; in the options of drafters inside it ("hybrid" with second=model:model=F;prune=F) and in the
 * words of a command, but for what the command's output is sent to. It is found by looking, not declared, so that a new option
 * or drafter cannot forget to. A word that happens to be a file's name is counted too: better one refusal too many than two
 * texts in one run. null: a model that cannot be read (it could when the config was checked). */
json_t *wg_files_json(const wg_config *c);

#endif
