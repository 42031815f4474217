/* SPDX-License-Identifier: MIT
 * Functions that configs of training and distillation share: opening the file, sections, checks. Internal to the files of
 * config. */
#ifndef WG_EXPERIMENTS_CONFIG_TRAIN_CHECK_H
#define WG_EXPERIMENTS_CONFIG_TRAIN_CHECK_H

#include "core/setup/setup_check.h"
#include "experiments/config/train_config.h"

/* Reads the root of a config into out; problems go to the checker. */
typedef void wg_check_root(wg_checker *c, const json_t *root, void *out);

/* Opens a config of one object, applies overrides ("section.option=value") and reports all problems of `check` at once.
 * example: shown for a file that is not an object. Errors: ECONFIG, those of reading. */
wg_status wg_train_file_open(const char *path, const char *const *set, int n_set, const char *example, wg_check_root *check,
                             void *out, wg_error *err);

void wg_train_defaults(wg_train_config *out);
/* Reads a section by its name. False: no such section. */
bool wg_train_check_section(wg_checker *c, const char *name, const json_t *v, wg_train_config *out);
int wg_train_section_names(const char **names); /* their number; names has room for 16 */

/* Derives omitted members of a shape and checks it. section: its place; length: of training sequences. */
void wg_train_check_shape(wg_checker *c, const char *section, wg_train_model *m, int length);
/* Checks the sections data, train and output. */
void wg_train_check_rest(wg_checker *c, const wg_train_config *o);
/* Checks a name that becomes a file's. */
void wg_train_check_name(wg_checker *c, const char *path, const char *name);

/* An object with every option of a table and its value. */
json_t *wg_train_options_json(const wg_option *table, const void *o);

#endif
