/* SPDX-License-Identifier: MIT
 * The folder of a training run: the log, whose length checkpoints store, token files made from the text, and files written
 * atomically. */
#ifndef WG_EXPERIMENTS_RUN_TRAIN_FOLDER_H
#define WG_EXPERIMENTS_RUN_TRAIN_FOLDER_H

#include "core/model/arch.h"
#include "experiments/config/train_config.h"

enum { WG_TRAIN_PATH = 2 * WG_OPTION_STRING + 64 };

typedef struct wg_train_folder {
    const char *path, *log_name; /* borrowed */
    bool resume;
    int log; /* file descriptor; -1: closed */
    uint64_t log_bytes;
    wg_tokens *train, *held; /* held NULL: there is no held-out text */
} wg_train_folder;

const char *wg_train_folder_at(const wg_train_folder *f, const char *name, char path[WG_TRAIN_PATH]);

/* Makes the folder, opens the log and locks it. The caller has set path, log_name and resume. Errors: EIO; EINVAL: it holds a
 * run and resume is not set, or another process has the lock. */
wg_status wg_train_folder_open(wg_train_folder *f, wg_error *err);
void wg_train_folder_close(wg_train_folder *f); /* a zeroed one with log = -1 is fine */

/* Opens the token files of `data`, which it writes from the text unless a resumed run has them. A held-out text shorter than
 * `length` tokens is ignored with a warning. Errors: those of the text and the files. */
wg_status wg_train_folder_tokens(wg_train_folder *f, const wg_train_data *data, const wg_tokenizer *t, int length,
                                 wg_error *err);

/* cut: truncates the log to log_bytes. append: appends n bytes to it. EIO. */
wg_status wg_train_folder_cut(wg_train_folder *f, wg_error *err);
wg_status wg_train_folder_append(wg_train_folder *f, const char *line, size_t n, wg_error *err);

/* Sets the shape that a config describes, of the family llama. */
void wg_train_arch(wg_arch *out, const wg_train_model *m, int vocab, const char *name);

/* Writes a file with this text. EIO. */
wg_status wg_train_folder_save(const wg_train_folder *f, const char *name, const char *text, wg_error *err);

#endif
