/* SPDX-License-Identifier: MIT
 * The benchmarks of `wager bench`, each in a file of its own. */
#ifndef WG_EXPERIMENTS_BENCH_BENCH_PARTS_H
#define WG_EXPERIMENTS_BENCH_BENCH_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/model/device.h"
#include "core/setup/target.h"

/* ---- The cost of drafting for drafters without a model: no target is loaded. */

/* Times `spec` ("KIND[:k=v,...]") on a synthetic text of `history` tokens and prints one line. model: a file with the tokenizer
 * of the datastores, or NULL. EINVAL for drafters that run a model. */
wg_status wg_bench_draft(const char *spec, const char *model, int history, bool json, wg_error *err);

/* ---- wager bench forward: the time of passes of n rows at a context, compared with the machine's roofline: a read-only stream
 * and products from cache, measured in the same run. */

typedef struct wg_forward_bench {
    const char *rows, *context; /* "1,8,16" */
    int kv_type;                /* type of the cache with which the target was opened */
    int repeats;                /* 1..101; medians are over these */
    bool stages, json;          /* stages: also the time of each stage */
} wg_forward_bench;

/* Prints a line for each number of rows. `recorded` in JSON: true if each timed pass replayed a recorded graph, false if one
 * was launched anew (more than 64 rows, /eager, or a failed recording), null for devices without graphs. EINVAL: numbers;
 * ENOMEM. */
wg_status wg_bench_forward(const wg_forward_bench *b, wg_target *t, wg_error *err);

/* ---- wager bench kernels: the operations that dominate a pass, each alone, on this machine's kernel variant: products with
 * each weight type, the preparation of their inputs, and attention over each cache type. */

typedef struct wg_kernels_bench {
    const char *op;   /* "matmul", "prepare", "attention"; NULL: all */
    const char *type; /* type of weights or cache; NULL: all */
    const char *rows; /* "1,8,16" */
    int context;      /* keys of attention, at least 1 */
    int megabytes;    /* size of the weights; it must exceed the processor's caches */
    int threads;      /* 0: all cores */
    int repeats;      /* 1..WG_BENCH_REPEATS; medians are over these */
    bool pin, json;
} wg_kernels_bench;

/* Prints a line for each (op, type, rows). EINVAL: numbers, an unknown op or type; ENOMEM. */
wg_status wg_bench_kernels(const wg_kernels_bench *b, wg_error *err);

/* ---- The time of opening a model from disk, compared with reading its files once. */

/* Repeats: drops the files' pages from the system's cache, reads the files once in pieces, drops the pages again, opens the
 * model. Prints the medians of both times and their ratio, the bytes of the files, the largest resident memory during opening
 * and that afterwards, and the bytes that were still cached (0: the system dropped all). Errors: those of reading and opening;
 * EUNSUPPORTED for a model without a file. */
wg_status wg_bench_load(const char *model, const wg_target_options *want, int repeats, bool json, wg_error *err);

/* ---- wager bench perplexity: the perplexity of a model file on a text. It compares weight types of one model, not models. */

/* exp of the mean negative log probability of each token but the first of every window of 256 (or the model's context), over at
 * most `most` tokens of the file. EINVAL: no text, or too short; EMODEL: no tokenizer. */
wg_status wg_bench_perplexity(wg_target *t, const char *text, long most, bool json, wg_error *err);

/* ---- A timing device: forwards every stage of the forward pass to another device and times it. */

enum { WG_FORWARD_STAGES = 9 };
extern const char *const wg_stage_names[WG_FORWARD_STAGES];

typedef struct wg_stages {
    wg_device_class class; /* first: a device's class pointer leads back here */
    const wg_device_class *inner;
    double seconds[WG_FORWARD_STAGES];
    wg_status failed; /* error of an asynchronous device's wait; `err` has the message */
    wg_error err;
} wg_stages;

/* Turns d into a device that adds its times to s; s must outlive everything opened on d. */
void wg_stages_wrap(wg_stages *s, wg_device *d);

/* ---- The speed of a tokenizer on a text and on adversarial texts. No weights are read. */

/* Encodes and decodes, on one thread, the text of a file (NULL: none), and a megabyte of one long word, of spaces, of combining
 * marks, of digits and of beginnings of added tokens, each also at half the length: prints a line with MB/s for each, and the
 * ratio of the times; medians of `repeats`. Errors: those of opening the model and the text. */
wg_status wg_bench_tokenizer(const char *model, const char *text, int repeats, bool json, wg_error *err);

/* ---- The speed of training, compared with OpenBLAS (on a device cuBLAS) alone on products of the same sizes. */

/* model: a file, for its shape; length 0: its context; sequences: of a pass. Errors: those of opening; EUNSUPPORTED. */
typedef struct wg_bench_train_options {
    const char *model, *device; /* device: a name for wg_device_open; NULL: cpu */
    int threads, sequences, length, repeats;
    bool json;
} wg_bench_train_options;

/* Medians of repeats in which the arms alternate: the products of a pass forward and backward alone, each thread on its share
 * of the rows (a device: on all of them) with one call a product; the pass; an update by Muon. share: the pass's speed relative
 * to the products alone, counting only the multiply-adds of these products (no attention). step_share: the same for a step of
 * 12 sequences with its update, whose products (Newton-Schulz) do not count. */
wg_status wg_bench_train(const wg_bench_train_options *o, wg_error *err);

/* ---- wager bench verify: the cost of a step between the target's logits and the next root, without a model. */

typedef struct wg_verify_bench {
    int vocab, rows, repeats;  /* rows: rows of a chain, its root included */
    const char *rule;          /* a rule's name, or "all" */
    double temperature, top_p; /* of the sampled runs */
    uint64_t seed;
    bool json;
} wg_verify_bench;

/* Prints one line for each rule and kind of row: CPU time of this thread, medians. EINVAL: no such rule. */
wg_status wg_bench_verify(const wg_verify_bench *b, wg_error *err);

/* Latency and bandwidth between ranks; `ranks` as in core/comm/comm.h. EINVAL: one rank alone. */
wg_status wg_bench_comm(const char *ranks, int repeats, bool json, wg_error *err);

#endif
