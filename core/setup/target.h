/* SPDX-License-Identifier: MIT
 * A target that is ready to run: the open weights file, its tokenizer, a thread pool, a device, and the model on the device, or
 * an external model. Every command that computes opens one and passes its members to an engine. */
#ifndef WG_CORE_SETUP_TARGET_H
#define WG_CORE_SETUP_TARGET_H

#include "core/engine/engine.h"
#include "core/model/model.h"
#include "core/model/ranks.h"
#include "core/text/tokenizer.h"

/* Where the target's rows come from: the option `kind`. */
typedef enum wg_target_kind { WG_TARGET_MODEL, WG_TARGET_PROCESS, WG_TARGET_LLAMACPP } wg_target_kind;
extern const char *const wg_target_kinds[]; /* "model", "process", "llamacpp", NULL */

/* Options of a target that this program does not compute (core/model/external/). */
typedef struct wg_target_external {
    wg_target_kind kind;
    const char *command;      /* command line of a process; borrowed */
    int timeout_ms, start_ms; /* as in wg_process_target */
    const char *library;      /* path of llama.cpp's library; borrowed */
    int sequences;            /* sequences that run at once; 0: 8 */
} wg_target_external;

typedef struct wg_target_options {
    const char *device;   /* as in core/model/device.h; NULL: cpu */
    int threads;          /* 0: the cores this process may run on; of each of several ranks, one */
    bool pin;             /* wg_pool_pin */
    const char *quantize; /* as in core/file/quantize.h: weights are converted while they are loaded; NULL, "": they are not */
    const char *ranks;    /* as in core/comm/comm.h; NULL, "": as target_ranks.h says */
    int tensor;           /* number of ranks that share each matrix; 0: as many as there are */
    int pipeline;         /* number of stages of layers, each of such ranks; 0: as ranks says, or one */
    bool need_tokenizer;  /* a file without a tokenizer is EMODEL; else its tokenizer is NULL */
    wg_model_options model;
    wg_target_external
        external; /* kind WG_TARGET_MODEL: there is none, and the file is the model. Of another kind the file has the
                                  * tokenizer and the chat template; its weights are not read */
} wg_target_options;

/* model.max_rows for which a step of `sequences` trees with ride_rows prompt tokens is one pass. */
static inline int wg_target_step_rows(int sequences, int ride_rows)
{
    const int rows = sequences * WG_TREE_MAX + ride_rows;
    return rows > WG_MODEL_ROWS ? rows : 0;
}

/* All members are owned by the target and live until wg_target_close. */
typedef struct wg_target {
    char *path;
    wg_weights *weights;     /* stays open for metadata in reports */
    wg_tokenizer *tokenizer; /* NULL when the file has none */
    wg_pool *pool;
    wg_rank_threads *ranks; /* NULL: one rank, or ranks of MPI */
    bool starts_mpi;        /* and ends it */
    wg_device device;
    const wg_ops *ops; /* the device's */
    wg_model *model;   /* NULL: an external target */
    wg_lm *lm;         /* the model's, or the external one */
} wg_target;

/* opt may be NULL (all defaults, tokenizer not required). Errors: those of opening its members, with the file's name. */
wg_status wg_target_open(wg_target **out, const char *path, const wg_target_options *opt, wg_error *err);
void wg_target_close(wg_target *t); /* engines over it must be closed. NULL and half-open are fine */

/* The engine parts that the target provides; the caller adds drafter and verifier. */
wg_engine_parts wg_target_engine_parts(const wg_target *t);

/* Checks, without loading weights, what opening with these options would refuse (format, family, tensors, tokenizer), except
 * values of weights, memory, devices and answers of external targets. It is cheap enough for `wager check`. opt NULL: all
 * defaults. For an external target *out has only a context: opt's, or the longest possible. */
wg_status wg_target_probe(const char *path, const wg_target_options *opt, wg_arch *out, wg_error *err);
/* The requirement on a file's own tokenizer: none; readable if present; present and readable. */
typedef enum wg_tokenizer_check { WG_TOKENIZER_UNREAD, WG_TOKENIZER_IF_THERE, WG_TOKENIZER_NEEDED } wg_tokenizer_check;

/* Checks that an open file can run, with a context that it allows and with its tokenizer. */
wg_status wg_target_check(const wg_weights *w, wg_tokenizer_check tokenizer, wg_error *err);

/* The number of tokens of a text of n whose keys and values the cache holds at once: n, unless every layer has a window, since
 * a page holds the slots of all layers. */
int wg_target_held(const wg_arch *a, int n);

#endif
