/* SPDX-License-Identifier: MIT
 * The parts of a distillation run. */
#ifndef WG_EXPERIMENTS_RUN_DISTILL_H
#define WG_EXPERIMENTS_RUN_DISTILL_H

#include <signal.h>

#include "core/setup/target.h"
#include "draft/train/loss.h"
#include "draft/train/target_rows.h"
#include "draft/train/text_writer.h"
#include "draft/train/tokens.h"
#include "experiments/analysis/cost.h"
#include "experiments/config/distill_config.h"

/* ---- A recorded trace as training text: each request (prompt and output) is a document, and positions of rejected drafts are
 * marked. */

typedef struct wg_rejections {
    wg_tokens *text;
    uint8_t *at; /* (tokens) 1: a draft was rejected at this position */
    long rejected;
} wg_rejections;

/* Writes the token file `tokens` and opens it. Errors: those of the trace; EVOCAB: it has another vocabulary than the target;
 * EINVAL: no draft was rejected. */
wg_status wg_rejections_open(wg_rejections *out, const char *trace, const char *tokens, const wg_target *target, wg_error *err);
void wg_rejections_close(wg_rejections *r); /* zeroed is fine */

/* ---- The network of a student: its shape, and the weights that it begins with. */

/* The shape of a student of this target: the config's, its `init` file's, or the target's with fewer layers. Errors: those of
 * reading; EVOCAB: another tokenizer than the target's; EINVAL: a layer that the target lacks, another width than the head's, a
 * context shorter than `length`; EUNSUPPORTED (wg_net_check). */
wg_status wg_distill_arch(wg_arch *out, const wg_distill_student *s, const wg_target *target, int length, wg_error *err);

/* The hidden states that the heads among the students read: those of the config, or EAGLE-3's; *n 0: there is no head. EINVAL:
 * the target has not all of them, or one is named twice. */
wg_status wg_distill_taps(const wg_distill_config *c, const wg_target *target, int tap[WG_HEAD_TAPS], int *n, wg_error *err);

/* Sets the weights of a network of that shape. kept: the tokens of its head, if not all (wg_net_keep). */
wg_status wg_distill_begin(wg_net *net, const wg_distill_student *s, const int32_t *kept, const wg_target *target,
                           wg_error *err);

/* Chooses the n tokens that students propose: those that rows of the text have to predict most often, and those that end a
 * text. Writes them to `list`, a file for the option `prune` of the drafter model. token: (n), ascending. Errors: EINVAL (as of
 * wg_vocabulary_frequent), EIO, ENOMEM. */
wg_status wg_distill_vocabulary(int32_t *token, int n, const wg_tokens *text, const wg_target *target, const char *list,
                                wg_error *err);

/* ---- The evaluation of students on held-out documents: losses and alpha on the documents' text; alpha and exact rounds on
 * continuations that the target writes from the documents' beginnings, the kind of text that drafts meet. Sums are kept by
 * document, for intervals. */

enum { WG_TAU_LENGTHS = 8 }; /* longest draft, in tokens */

/* Sums of one student over one document. */
typedef struct wg_held_sums {
    double rows, alpha, term[WG_LOSS_TERMS]; /* on the document's text; terms kl, reverse_kl, jsd, tv, nla and ce are set */
    double tokens, written_alpha;            /* on the target's continuation */
    double drafts[WG_TAU_LENGTHS], alphas[WG_TAU_LENGTHS]; /* there, of a head: rows of its drafts by depth, and their alpha */
    double rounds[WG_TAU_LENGTHS]; /* expected rounds of the rule `rejection` with chains of 1, 2, ... tokens
                                              * (exact.h) */
} wg_held_sums;

/* Everything is borrowed. */
typedef struct wg_distill_eval_parts {
    wg_net *const *student; /* opened for writer.sequences of writer.length */
    int students;
    wg_target_rows *rows;
    wg_pool *pool;
    const wg_tokens *held;
    int documents, prompt;         /* most documents; tokens before a continuation */
    wg_text_writer_options writer; /* options of the target's writer */
} wg_distill_eval_parts;

/* The number of documents long enough for a continuation, at most parts->documents. */
int wg_distill_eval_documents(const wg_distill_eval_parts *p);

/* out: (students, wg_distill_eval_documents). Errors: those of the target, ENOMEM. */
wg_status wg_distill_evaluate(const wg_distill_eval_parts *p, wg_held_sums *out, wg_error *err);

/* ---- The result of a distillation (distill.json). For every student, and for every family over its seeds, it has held-out
 * losses, alpha and tau with intervals over documents, paired differences from training on text only, and the speed-up
 * predicted from measured pass costs. */

/* Pass costs of students and target, measured at the end on the target's device. */
typedef struct wg_distill_costs {
    wg_cost target, *student; /* (families) */
    double row;               /* seconds to sample a row */
    int context;
} wg_distill_costs;

typedef struct wg_distill_outcome {
    const wg_distill_config *c;
    const wg_held_sums *sums;      /* (students, documents) */
    int documents;                 /* 0: there is no held-out text */
    const wg_distill_costs *costs; /* NULL: not measured */
} wg_distill_outcome;

/* Adds the results to the objects of `students` (one each), and families and the baseline's name to root. ENOMEM. */
wg_status wg_distill_result(json_t *root, json_t *students, const wg_distill_outcome *o, wg_error *err);

/* ---- A distillation in a folder: config.json, token files made from the text, distill.jsonl, checkpoints, and at the end a
 * model NAME.gguf for each student and distill.json. All students are trained together on one stream of rows, for which the
 * target runs once. docs/distillation.md describes the files. */

typedef struct wg_distill_run_options {
    const char *folder;
    int threads;           /* 0: the config's */
    const char *device;    /* device of the students (wg_device_open); NULL: cpu */
    bool resume, progress; /* progress: an updated line on stderr */
    bool write_only;       /* only the conversations are written (conversations.h): no folder, no training */
    const volatile sig_atomic_t *stop;
} wg_distill_run_options;

/* *result: the object of distill.json, owned by the caller, or with write_only the numbers of conversations and of tokens.
 * Errors: those of config, files, target and training; EINVAL: the folder has a run and resume is not set. After EINTERRUPTED
 * the run can be resumed. */
wg_status wg_distill_run(const wg_distill_config *c, const wg_distill_run_options *o, json_t **result, wg_error *err);

#endif
