/* SPDX-License-Identifier: MIT
 * Token files, mapped into memory: the tokens of a corpus, the places where its documents begin, and how many tokens of each
 * are a prompt, which no row has to predict; and the packed sequences that training cuts from them. docs/training.md has the
 * layout of the file. */
#ifndef WG_DRAFT_TRAIN_TOKENS_H
#define WG_DRAFT_TRAIN_TOKENS_H

#include "core/text/tokenizer.h"
#include "draft/train/net.h"

typedef struct wg_tokens wg_tokens; /* read-only; may be shared between threads */

/* digest: of the tokenizer that must have made the ids (wg_tokenizer_digest); NULL: any. Errors: ENOENT, EIO, EFORMAT (what and
 * where), EVOCAB (another tokenizer). */
wg_status wg_tokens_open(wg_tokens **out, const char *path, const char *digest, wg_error *err);
void wg_tokens_close(wg_tokens *t); /* NULL is fine */
size_t wg_tokens_count(const wg_tokens *t);
size_t wg_tokens_documents(const wg_tokens *t);
const char *wg_tokens_path(const wg_tokens *t);
int32_t wg_tokens_id(const wg_tokens *t, size_t at);
/* The first token of document i, and its number of tokens. */
void wg_tokens_document(const wg_tokens *t, size_t i, size_t *first, size_t *n);
bool wg_tokens_has_prompts(const wg_tokens *t);
size_t wg_tokens_prompt(const wg_tokens *t, size_t i); /* tokens of document i's prompt; 0: it has none */

/* Writes n ids; start: (documents) ascending, start[0] is 0; prompt: (documents) tokens of their prompts, NULL: none has one.
 * Atomic. Errors: EIO, ENOMEM. */
wg_status wg_tokens_write(const char *path, const wg_tokenizer *tokenizer, const int32_t *id, size_t n, const uint64_t *start,
                          const uint64_t *prompt, size_t documents, wg_error *err);

/* Options and results of wg_corpus_write, which encodes texts into two token files: documents to train on and held-out ones. A
 * document is a file, or the text between two `separator`s in one (NULL, "": none); bos and eos of the tokenizer enclose it. A
 * document is held out when the SHA-256 of (file name, number) modulo held_out is 0; held_out 0: none is. path: files, or
 * folders whose *.txt and *.md files are taken in the order of their names. */
typedef struct wg_corpus {
    const char *path, *separator;
    int held_out;
    size_t documents[2], tokens[2], bytes[2]; /* results: training, held out */
} wg_corpus;
/* Errors: those of reading, encoding, writing; EINVAL: no document is left to train on; the message has the path and the
 * numbers. */
wg_status wg_corpus_write(wg_corpus *c, const wg_tokenizer *t, const char *train, const char *held, wg_error *err);

/* The same from conversations (docs/distillation.md has their form): path is a file, or a folder whose *.jsonl files are taken
 * in the order of their names; a document is a line, and nothing is added before or behind its ids. separator is not used.
 * Errors: EIO, EFORMAT (which line, what was expected), EVOCAB (another tokenizer), EINVAL: as of wg_corpus_write. */
wg_status wg_conversations_tokens(wg_corpus *c, const wg_tokenizer *t, const char *train, const char *held, wg_error *err);

/* The sequences (windows) of a training run: number n depends on the file, this struct and n alone. Each epoch shifts the grid
 * of windows and visits them in another order. */
typedef struct wg_windows {
    const wg_tokens *tokens; /* borrowed */
    int length, vocab;
    int32_t bos;      /* -1: none */
    double bos_share; /* share of windows whose first token becomes bos, as texts in use begin with it */
    uint64_t seed;
    size_t count;    /* windows of an epoch */
    uint64_t epoch;  /* the epoch of `order` */
    uint32_t *order; /* (count) */
} wg_windows;
/* EINVAL: the file is shorter than one sequence. */
wg_status wg_windows_open(wg_windows *w, wg_error *err);
void wg_windows_close(wg_windows *w);

/* Arrays of `length` elements for wg_windows_get, which writes sequence n into them. straight: the nth window of the file
 * without shuffling, for held-out text. EFORMAT: an id is outside the vocabulary. */
typedef struct wg_window_out {
    int32_t *token, *target, *start, *position;
} wg_window_out;
wg_status wg_windows_get(wg_windows *w, uint64_t n, bool straight, const wg_window_out *out, wg_error *err);
size_t wg_windows_first(wg_windows *w, uint64_t n); /* first token, in the file, of shuffled sequence n */

#endif
