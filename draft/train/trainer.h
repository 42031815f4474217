/* SPDX-License-Identifier: MIT
 * Training of networks on packed sequences: passes with accumulated gradients, an optimiser under a schedule, held-out loss,
 * checkpoints. Several networks, the students, may be trained on one stream of rows, each with its own loss and optimiser. The
 * result depends on the options, the initial weights and the token files, not on the number of threads; a run resumed from a
 * checkpoint gives the bits of an uninterrupted one. With plugged-in losses (net.h) and a feed it distils (distill_feed.h). */
#ifndef WG_DRAFT_TRAIN_TRAINER_H
#define WG_DRAFT_TRAIN_TRAINER_H

#include <signal.h>

#include "draft/train/optimiser.h"
#include "draft/train/tokens.h"

typedef struct wg_train_options {
    int steps, batch, micro, length, seed, checkpoint, evaluate, held_out;
    double bos_share;
    bool keep_zeros;
} wg_train_options;
extern const wg_option wg_train_table[];

/* A network that is trained. */
typedef struct wg_train_student {
    wg_net *net;               /* f32, opened for options.micro sequences of options.length */
    const wg_train_loss *loss; /* NULL: cross-entropy */
    const wg_optimiser_options *optimiser;
    const wg_schedule_options *schedule;
    const char *name; /* for messages; NULL: the only student */
} wg_train_student;

/* A source of rows other than the text alone. Any function may be NULL. Passes are counted from 0 over the whole run; a pass
 * has `micro` sequences. */
typedef struct wg_train_feed {
    /* Whether the rows of the pass differ between students. */
    bool (*own)(void *ctx, uint64_t pass);
    /* Writes the sequences of a pass for this student, or for all (-1). */
    wg_status (*fill)(void *ctx, uint64_t pass, int student, const wg_window_out *out, wg_error *err);
    /* Called with rows before any student's loss on them is computed; a target runs here. */
    wg_status (*prepare)(void *ctx, const wg_train_rows *rows, wg_error *err);
    /* The target's hidden states of those rows (wg_train_rows.hidden). */
    const float *(*hidden)(void *ctx);
    /* Called before a step and after a checkpoint is read: the feed updates what it derives from the students' weights. */
    wg_status (*begin)(void *ctx, long step, wg_error *err);
    /* State of the feed for checkpoints: array i of n floats, from 0 on; false behind the last. */
    bool (*state)(void *ctx, int i, float **p, size_t *n);
    void *ctx;
} wg_train_feed;

/* The parts of a training run, all borrowed. */
typedef struct wg_train_parts {
    const wg_train_student *student;
    int students;              /* they share a vocabulary */
    const wg_train_feed *feed; /* NULL: windows of the text */
    wg_pool *pool;
    const wg_tokens *train, *held; /* held NULL: no held-out loss */
    int bos;                       /* beginning-of-text token; -1: none */
    const wg_train_options *options;
    const char *folder;                /* folder of checkpoints; NULL: none are written */
    const char *settings;              /* the config, as a text; only a checkpoint with the same text is resumed */
    const volatile sig_atomic_t *stop; /* nonzero: save a checkpoint and stop; may be NULL */
} wg_train_parts;

/* The report of a step of one student, or of its held-out loss. */
typedef struct wg_train_report {
    int student;
    long step, steps;  /* steps done; steps in all */
    double loss;       /* nats per row, on the step's rows before the update */
    double alpha;      /* mean alpha, if the loss computes it; else 0 */
    double norm, rate; /* norm of the gradients before clipping; factor of the learning rates */
    long rows;         /* rows with a loss in this step */
    double seconds;    /* duration of the step, all students together */
    bool held_out;     /* a held-out loss: norm and rate are not set */
} wg_train_report;
/* Called for every step and held-out loss, student by student; a failure stops the run. */
typedef wg_status wg_train_report_fn(void *user, const wg_train_report *r, wg_error *err);

typedef struct wg_trainer wg_trainer;

/* Errors: EINVAL (micro does not divide batch, text too short), ENOMEM. */
wg_status wg_trainer_open(wg_trainer **out, const wg_train_parts *parts, wg_error *err);
void wg_trainer_close(wg_trainer *t); /* NULL is fine */

/* Continues from the newest intact checkpoint of the folder. *log_bytes: the value set by wg_trainer_log_is. Errors: ENOENT (no
 * checkpoint), EINVAL (other settings; says which), EFORMAT (none is intact; says what is wrong with the newest). */
wg_status wg_trainer_resume(wg_trainer *t, uint64_t *log_bytes, wg_error *err);
long wg_trainer_step(const wg_trainer *t); /* steps done */

/* Sets the length of the log, which the next checkpoint stores, so that a resumed run cuts off later lines. */
void wg_trainer_log_is(wg_trainer *t, uint64_t bytes);

/* Runs the remaining steps with reports and checkpoints, one of each at the end. Errors: EMODEL (the loss is not finite; says
 * at which step and what to do), EINTERRUPTED (after a checkpoint), EIO, those of the loss. The last checkpoint is always
 * intact. */
wg_status wg_trainer_run(wg_trainer *t, wg_train_report_fn *report, void *user, wg_error *err);

/* Mean losses (students) of up to `windows` sequences of the held-out text. */
wg_status wg_trainer_held_out(wg_trainer *t, int windows, wg_train_report *out, wg_error *err);

/* ---- checkpoints (checkpoint.c) */

typedef struct wg_checkpoint {
    uint64_t step, log_bytes;
    const char *settings;
    struct {
        float *p; /* borrowed */
        size_t n;
    } * array; /* weights and state, in order; the list is owned */
    int arrays;
    size_t room;
} wg_checkpoint;

/* add: adds an array. add_net: adds a network's weights that are not frozen tensor by tensor, then its optimiser's state.
 * ENOMEM. */
wg_status wg_checkpoint_add(wg_checkpoint *c, float *p, size_t n, wg_error *err);
wg_status wg_checkpoint_add_net(wg_checkpoint *c, wg_net *net, wg_optimiser *o, wg_error *err);
void wg_checkpoint_close(wg_checkpoint *c);

/* Writes FOLDER/checkpoint-STEP.wgc under a temporary name, syncs and renames it, then removes all but the last two. */
wg_status wg_checkpoint_save(const char *folder, const wg_checkpoint *c, wg_error *err);
/* Reads into the arrays, and sets step and log_bytes. Errors: as of wg_trainer_resume. On failure the arrays are unchanged. */
wg_status wg_checkpoint_load(const char *folder, wg_checkpoint *c, wg_error *err);

/* ---- weights in and out (weights_io.c) */

/* Sets random weights that depend on the seed alone: standard deviation 1 / sqrt(columns) for matrices, 0.02 for embedding and
 * head; norms are 1. The output matrices of attention and MLP are zero, so every block begins as the identity. */
void wg_net_randomise(wg_net *n, uint64_t seed);
/* Reads the weights of a file of the same shape, of any type that converts to f32. EMODEL: a tensor is missing or has another
 * shape. */
wg_status wg_net_read(wg_net *n, const wg_weights *w, wg_error *err);
/* Reads from a file that differs only in depth: layer i from the file's layer layer[i], and embedding, last norm and head.
 * layer NULL: the latter alone; layers keep their values. Errors: as of wg_net_read. */
wg_status wg_net_read_parts(wg_net *n, const wg_weights *w, const int *layer, wg_error *err);
/* Writes wg_net_weights as a GGUF file with the keys tokenizer.* of `tokenizer` and matrices of this type (with q8_2of4,
 * embedding and head are q8_0). EIO, ENOMEM. */
wg_status wg_net_write(wg_net *n, const char *path, const char *name, const wg_weights *tokenizer, int type, wg_error *err);
/* The same as a student cut to what its target lacks (core/model/student.h): without tokenizer and frozen tensors, its head the
 * kept rows. */
typedef struct wg_net_cut {
    const char *name;
    const int32_t *token;           /* (kept) as for wg_net_keep */
    const char *target, *tokenizer; /* the target's name; digest of its tokenizer */
} wg_net_cut;
wg_status wg_net_write_cut(wg_net *n, const char *path, const wg_net_cut *cut, int type, wg_error *err);

#endif
