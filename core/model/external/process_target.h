/* SPDX-License-Identifier: MIT
 * A target model in another process (docs/process-target.md): a program that answers rows of logits over a pipe and a
 * shared-memory segment. One program serves all sequences.
 *
 * A program that hangs, ends, or writes a wrong answer fails the pass alone, with a message; it is ended (core/base/child.h),
 * and the next pass starts it again and sends it everything. Rows are copied out of the shared memory once, by pread, and
 * checked in the copy: the program can neither change them afterwards nor take the memory away. */
#ifndef WG_CORE_MODEL_EXTERNAL_PROCESS_TARGET_H
#define WG_CORE_MODEL_EXTERNAL_PROCESS_TARGET_H

#include "core/model/external/row_protocol.h"

typedef struct wg_process_target {
    const char *command;      /* for the shell; copied */
    int timeout_ms, start_ms; /* to answer a pass; to start, until the model is loaded */
    int sequences;            /* sequences that run at once; the program holds at least WG_EXTERNAL_SEQUENCES */
    int context;              /* as in wg_external_open */
} wg_process_target;

/* Starts the program. Errors: EIO, EFORMAT of its first answers; ENOMEM; ECONTEXT. */
wg_status wg_process_target_open(wg_lm **out, const wg_process_target *o, wg_error *err);

#endif
