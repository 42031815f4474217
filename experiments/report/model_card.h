/* SPDX-License-Identifier: MIT
 * The model card of an exported student: README.md with what it is, its measured acceptance, the command lines of the engines
 * that can draft with it, and its training. */
#ifndef WG_EXPERIMENTS_REPORT_MODEL_CARD_H
#define WG_EXPERIMENTS_REPORT_MODEL_CARD_H

#include <jansson.h>

#include "core/base/error.h"

/* card: the object that `wager export --json` prints (docs/students.md lists its keys). The card says nothing else.
 * Errors: EIO, ENOMEM. */
wg_status wg_model_card_save(const char *path, const json_t *card, wg_error *err);

#endif
