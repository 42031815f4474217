/* SPDX-License-Identifier: MIT
 * Training of networks on packed sequences: passes with accumulated gradients, an optimiser under a schedule, held-out loss,
 * checkpoints. Several networks, the students, may be trained on one stream of rows, each with its own loss and optimiser. A
 * run depends on its options, the weights at the start and its token files, not on the number of threads; a run that goes on
 * from a checkpoint has the bits of one that was never interrupted. Losses that are plugged in (net.h) and a feed make a
 * distiller of it (distiller.h). */
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
    const char *name; /* for messages; NULL: it is the only one */
} wg_train_student;

/* The rows that students are trained on, where they are not those of the text alone. Any function may be NULL. Passes are
 * counted from 0 over the whole run; a pass is `micro` sequences. */
typedef struct wg_train_feed {
    /* Whether the rows of the pass differ between students. */
    bool (*own)(void *ctx, uint64_t pass);
    /* Writes the sequences of a pass for this student, or for all (-1). */
    wg_status (*fill)(void *ctx, uint64_t pass, int student, const wg_window_out *out, wg_error *err);
    /* Called with rows before losses of any student are computed on them: a target runs here. */
    wg_status (*prepare)(void *ctx, const wg_train_rows *rows, wg_error *err);
    /* Called before a step, and after checkpoints are read: what the feed derives from the students' weights. */
    wg_status (*begin)(void *ctx, long step, wg_error *err);
    /* What checkpoints keep for the feed: arrays of (n) floats, from i = 0 on; false behind the last. */
    bool (*state)(void *ctx, int i, float **p, size_t *n);
    void *ctx;
} wg_train_feed;

/* What training is made of. Everything is borrowed. */
typedef struct wg_train_parts {
    const wg_train_student *student;
    int students;              /* of one vocabulary */
    const wg_train_feed *feed; /* NULL: windows of the text */
    wg_pool *pool;
    const wg_tokens *train, *held; /* held NULL: no held-out loss */
    int bos;                       /* token, -1: none */
    const wg_train_options *options;
    const char *folder;                /* of checkpoints; NULL: none are written */
    const char *settings;              /* text that a checkpoint must carry to be gone on from: the config */
    const volatile sig_atomic_t *stop; /* not 0: save a checkpoint and stop; NULL: never */
} wg_train_parts;

/* One step of a student, or its held-out loss. */
typedef struct wg_train_report {
    int student;
    long step, steps;  /* done */
    double loss;       /* nats per row; of the step's rows before its update */
    double alpha;      /* mean of the loss's own alpha, where it has one, else 0 */
    double norm, rate; /* of the gradients before clipping; factor of the learning rates */
    long rows;         /* with a loss, in this step */
    double seconds;    /* that the step took, of all students */
    bool held_out;     /* of the held-out text: norm and rate are not set */
} wg_train_report;
/* Told of every step and held-out loss, student by student; a failure stops the run. */
typedef wg_status wg_train_report_fn(void *user, const wg_train_report *r, wg_error *err);

typedef struct wg_trainer wg_trainer;

/* Errors: EINVAL (micro does not divide batch, text too short), ENOMEM. */
wg_status wg_trainer_open(wg_trainer **out, const wg_train_parts *parts, wg_error *err);
void wg_trainer_close(wg_trainer *t); /* NULL is fine */

/* Continues from the newest checkpoint of the folder that is whole. *log_bytes: as told to wg_trainer_log_is. Errors: ENOENT
 * (there is none), EINVAL (of other settings, and which), EFORMAT (none is whole: what is wrong with the last). */
wg_status wg_trainer_resume(wg_trainer *t, uint64_t *log_bytes, wg_error *err);
long wg_trainer_step(const wg_trainer *t); /* steps done */

/* The length of the log, which the next checkpoint keeps, so that a resumed run cuts off what came later. */
void wg_trainer_log_is(wg_trainer *t, uint64_t bytes);

/* All steps that are left, reports and checkpoints; at the end one of each. Errors: EMODEL (the loss is not finite: at which
 * step, and what to do), EINTERRUPTED (after a checkpoint), EIO, those of the loss. The last checkpoint is always whole. */
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
    } * array; /* weights and state, in order; owned */
    int arrays, room;
} wg_checkpoint;

/* Adds an array; the weights of a network tensor by tensor and then its optimiser's state. ENOMEM. */
wg_status wg_checkpoint_add(wg_checkpoint *c, float *p, size_t n, wg_error *err);
wg_status wg_checkpoint_add_net(wg_checkpoint *c, wg_net *net, wg_optimiser *o, wg_error *err);
void wg_checkpoint_close(wg_checkpoint *c);

/* FOLDER/checkpoint-STEP.wgc: the arrays, written beside it, synced and renamed; then all but the last two are removed. */
wg_status wg_checkpoint_save(const char *folder, const wg_checkpoint *c, wg_error *err);
/* Reads into the arrays, and sets step and log_bytes. Errors as wg_trainer_resume. On failure the arrays are as they were. */
wg_status wg_checkpoint_load(const char *folder, wg_checkpoint *c, wg_error *err);

/* ---- weights in and out (weights_io.c) */

/* Random weights that depend on the seed alone: matrices of deviation 1 / sqrt(columns), embedding and head 0.02, norms 1; the
 * last matrices of attention and MLP are zero, so that every block begins as the identity. */
void wg_net_randomise(wg_net *n, uint64_t seed);
/* From a file of the same shape, of any type that can be converted to f32. EMODEL: a tensor is missing or has another shape. */
wg_status wg_net_read(wg_net *n, const wg_weights *w, wg_error *err);
/* From a file of another depth and the same shape otherwise: layer i from its layer layer[i]; embedding, last norm and
 * head. layer NULL: these alone, the layers keep their values. Errors as wg_net_read. */
wg_status wg_net_read_parts(wg_net *n, const wg_weights *w, const int *layer, wg_error *err);
/* Of wg_net_weights: a GGUF file with the tokenizer of `tokenizer` (all its keys tokenizer.*), matrices of this type
 * (q8_2of4: those of layers, embedding and head are q8_0). EIO, ENOMEM. */
wg_status wg_net_write(wg_net *n, const char *path, const char *name, const wg_weights *tokenizer, int type, wg_error *err);

#endif
