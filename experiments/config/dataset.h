/* SPDX-License-Identifier: MIT
 * Prompts: a JSONL file, one object a line, with `prompt` (plain prompts, HumanEval), `question` (GSM8K) or `turns`
 * (Spec-Bench, MT-Bench: the questions of a conversation), and optionally `id`, `question_id` or `task_id`, and `category`.
 * Blank lines are skipped; any other line that is not such an object is an error. */
#ifndef WG_EXPERIMENTS_CONFIG_DATASET_H
#define WG_EXPERIMENTS_CONFIG_DATASET_H

#include <stdint.h>

#include "core/base/error.h"
#include "core/base/hash.h"

enum { WG_TURNS_MAX = 1024 };

/* A question of a conversation: any UTF-8 but no NUL beyond its end. Owned. */
typedef struct wg_turn {
    char *text;
    size_t bytes;
} wg_turn;

typedef struct wg_prompt {
    char *text, *id, *category; /* owned; text: the first question; id falls back to the line number, category to "" */
    size_t bytes;               /* of text, as in wg_turn */
    wg_turn *later;             /* (turns - 1) the questions after the first, each asked behind the answer to the one before */
    int turns;                  /* 1 or more */
    int before;                 /* turns of the prompts before it: the questions of a set are numbered through */
    int line;                   /* in the file, from 1 */
    uint64_t key;               /* its place in a shuffled order */
} wg_prompt;

typedef struct wg_dataset {
    char *path;
    wg_prompt *prompt;
    int n;
    int turns, questions;       /* the most turns of a prompt; the turns of all of them */
    char sha256[WG_SHA256_HEX]; /* of the whole file, whatever the options say */
} wg_dataset;

/* What is taken of a file, in this order: categories get their new names, those of one category stay, the rest is put in an
 * order of its own (a function of the seed), each category keeps its first, all keep the first. Texts may be NULL for "". */
typedef struct wg_dataset_options {
    const char *merge;    /* new names of categories: "chat=writing|coding;other=qa"; those it does not name keep theirs */
    const char *category; /* of this category only (by its new name); "": any */
    int shuffle;          /* seed of the order; 0: as in the file */
    int per_category;     /* at most so many of each category; 0: any */
    int limit;            /* at most so many; 0: all */
    int keep_bytes;       /* longer texts keep their end: at most so many bytes, whole characters; 0: all */
    int turns;            /* at most so many questions of a conversation; 0: all */
} wg_dataset_options;

/* opt NULL: everything. The whole file is checked all the same. Errors: ENOENT, EIO; EFORMAT with "file:line: what"; EINVAL
 * when nothing is left, or `merge` is no such text. */
wg_status wg_dataset_open(wg_dataset **out, const char *path, const wg_dataset_options *opt, wg_error *err);
void wg_dataset_close(wg_dataset *d); /* NULL is fine */

/* The question of a turn, from 0. Digest of all questions, which tells conversations apart: of one text the text's own. */
wg_turn wg_prompt_turn(const wg_prompt *p, int turn);
void wg_prompt_digest(const wg_prompt *p, char hex[WG_SHA256_HEX]);

/* Questions of n prompts from `first` on. */
int wg_dataset_questions(const wg_dataset *d, int first, int n);

#endif
