/* SPDX-License-Identifier: MIT
 * Prompts: a JSONL file, one object a line, with `prompt` (plain prompts, HumanEval), `question` (GSM8K) or `turns`
 * (Spec-Bench, MT-Bench: the questions of a conversation), and optionally `id`, `question_id` or `task_id`, and `category`.
 * Blank lines are skipped; any other line that is no such object is an error. */
#ifndef WG_EXPERIMENTS_CONFIG_DATASET_H
#define WG_EXPERIMENTS_CONFIG_DATASET_H

#include <stdint.h>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/setup/conversation.h"
#include "core/setup/setup.h"

/* A question of a conversation: UTF-8, may contain NUL bytes, ends with one. Owned. */
typedef struct wg_turn {
    char *text;
    size_t bytes;
} wg_turn;

typedef struct wg_prompt {
    char *text, *id, *category; /* owned; text: the first question; id falls back to the line number, category to "" */
    size_t bytes;               /* of text, as in wg_turn */
    wg_turn *later;             /* (turns - 1) the questions after the first; each follows the answer to the one before */
    int turns;                  /* 1 or more */
    int before;                 /* turns of all prompts before it: questions of a data set are numbered consecutively */
    int line;                   /* in the file, from 1 */
    uint64_t key;               /* its sort key in a shuffled order */
} wg_prompt;

typedef struct wg_dataset {
    char *path;
    wg_prompt *prompt;
    int n;
    int turns, questions;       /* the largest number of turns of a prompt; the turns of all prompts */
    char sha256[WG_SHA256_HEX]; /* of the whole file, for any options */
} wg_dataset;

/* Opens a file of prompts and selects from it, in this order: categories are renamed by `merge`
 * ("chat=writing|coding;other=qa"; what it does not list keeps its name), prompts of other categories than `category` are
 * dropped, the rest is shuffled (a function of the seed `shuffle`; 0: as in the file), the first `per_category` of each
 * category are kept, the first `limit` of all are kept. Of a text the last `keep_bytes` bytes are kept, from a character
 * boundary on; of a conversation the first `turns` questions. 0 or "" changes nothing. `file`, `chat`, `system` and `date`
 * are not read.
 *
 * from NULL: all prompts. The whole file is checked in any case. Errors: ENOENT, EIO; EFORMAT with "file:line: what"; EINVAL
 * when no prompt is left, or `merge` cannot be parsed. */
wg_status wg_dataset_open(wg_dataset **out, const char *path, const wg_setup_prompts *from, wg_error *err);
void wg_dataset_close(wg_dataset *d); /* NULL is fine */

/* wg_prompt_turn: the question of a turn, from 0. wg_prompt_digest: the digest of all questions of a conversation; with one
 * turn, the digest of its text. */
wg_turn wg_prompt_turn(const wg_prompt *p, int turn);
void wg_prompt_digest(const wg_prompt *p, char hex[WG_SHA256_HEX]);

/* wg_conversation_encode of its questions. out: (p->turns). ENOMEM, and errors of the template. */
wg_status wg_prompt_encode(wg_question *out, const wg_tokenizer *t, const wg_chat *chat, const wg_prompt *p, wg_error *err);

/* The prompt of this id whose digest begins with `hash` , which is not ""; NULL: there is none, or no data set. */
const wg_prompt *wg_dataset_find(const wg_dataset *d, const char *id, const char *hash);

/* The number of questions of n prompts from `first` on. */
int wg_dataset_questions(const wg_dataset *d, int first, int n);

#endif
