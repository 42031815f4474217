/* SPDX-License-Identifier: MIT
 * Writes token files (tokens.h) from texts, which are encoded, and from conversations, whose ids are taken as they are. */
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "draft/train/tokens.h"

enum { TEXT_MAX = 256 << 20, PATH_ROOM = 4096 };

typedef struct part {
    int32_t *id;
    uint64_t *start, *prompt; /* (documents) */
    size_t n, room, documents, start_room, prompt_room;
    size_t asked; /* tokens of prompts */
} part;

typedef struct builder {
    wg_corpus *c;
    const wg_tokenizer *t;
    part part[2]; /* training, held out */
    bool prompts; /* documents have prompts */
    int files;
} builder;

/* Grows p to room for n elements if needed; NULL: out of memory, p is unchanged. */
static void *reserve(void *p, size_t *room, size_t n, size_t size)
{
    if (n <= *room) return p;
    const size_t more = n + n / 2 + 64;
    void *q = wg_realloc(p, more, size);
    if (q) *room = more;
    return q;
}

/* Begins a document that is to have n tokens, the first `prompt` of which are its prompt. */
static wg_status begin(part *p, size_t n, size_t prompt, wg_error *err)
{
    int32_t *ids = reserve(p->id, &p->room, p->n + n, sizeof *ids);
    if (ids) p->id = ids;
    uint64_t *start = reserve(p->start, &p->start_room, p->documents + 1, sizeof *start);
    if (start) p->start = start;
    uint64_t *prompts = reserve(p->prompt, &p->prompt_room, p->documents + 1, sizeof *prompts);
    if (prompts) p->prompt = prompts;
    if (!ids || !start || !prompts) return wg_nomem(err, (p->n + n) * sizeof *ids, "the tokens of the texts");
    p->start[p->documents] = p->n;
    p->prompt[p->documents++] = prompt;
    p->asked += prompt;
    return WG_OK;
}

static wg_status append(part *p, const wg_tokenizer *t, const int32_t *id, size_t n, wg_error *err)
{
    const int bos = wg_tokenizer_bos(t), eos = wg_tokenizer_eos(t);
    WG_TRY(begin(p, n + 2, 0, err));
    if (bos >= 0) p->id[p->n++] = bos;
    memcpy(p->id + p->n, id, n * sizeof *id);
    p->n += n;
    if (eos >= 0) p->id[p->n++] = eos;
    return WG_OK;
}

static bool is_held_out(const wg_corpus *c, const char *file, size_t number)
{
    char name[PATH_ROOM + 32], hex[WG_SHA256_HEX], first[16] = "";
    const char *slash = strrchr(file, '/');
    if (c->held_out < 1) return false;
    const int n = snprintf(name, sizeof name, "%s/%zu", slash ? slash + 1 : file, number);
    wg_sha256(name, (size_t)n, hex);
    memcpy(first, hex, 15);
    return strtoull(first, NULL, 16) % (unsigned)c->held_out == 0;
}

static wg_status add_document(builder *b, const char *file, size_t number, wg_text text, wg_error *err)
{
    int32_t *id = NULL;
    size_t n;
    while (text.n > 0 && (text.s[0] == '\n' || text.s[0] == '\r')) text.s++, text.n--;
    if (text.n == 0) return WG_OK;
    const int which = is_held_out(b->c, file, number);
    WG_TRY(wg_tokenizer_encode(b->t, text.s, text.n, false, false, &id, &n, err));
    const wg_status s = append(&b->part[which], b->t, id, n, err);
    b->c->bytes[which] += text.n;
    wg_free(id);
    return s;
}

static wg_status add_text(builder *b, const char *path, wg_error *err)
{
    const char *separator = b->c->separator && *b->c->separator ? b->c->separator : NULL;
    char *text;
    size_t bytes, number = 0;
    WG_TRY(wg_read_file(path, TEXT_MAX, &text, &bytes, err));
    wg_status s = WG_OK;
    for (const char *at = text, *end = text + bytes; s == WG_OK && at < end; number++) {
        const char *cut = separator ? memmem(at, (size_t)(end - at), separator, strlen(separator)) : NULL;
        s = add_document(b, path, number, (wg_text){ at, (size_t)((cut ? cut : end) - at) }, err);
        at = cut ? cut + strlen(separator) : end;
    }
    wg_free(text);
    b->files++;
    return s;
}

/* ---- conversations */

/* The place of a line, for messages. */
typedef struct place {
    const char *path;
    long line;
} place;

static wg_status expected(const place *at, const char *what, wg_error *err)
{
    return wg_fail(err, WG_EFORMAT, "%s:%ld: expected %s; docs/distillation.md has the form of conversations", at->path,
                   at->line, what);
}

/* The first line of a file: what wrote it, with the digest of the tokenizer of its ids. */
static wg_status check_header(const builder *b, const place *at, const json_t *line, wg_error *err)
{
    char digest[WG_SHA256_HEX];
    const char *own = json_string_value(json_object_get(line, "tokenizer"));
    if (json_integer_value(json_object_get(line, "schema")) != 1 || !own)
        return expected(at, "{\"schema\": 1, \"tokenizer\": digest, ...} as the first line", err);
    wg_tokenizer_digest(b->t, digest);
    if (!strcmp(own, digest)) return WG_OK;
    return wg_fail(err, WG_EVOCAB,
                   "%s: written by a model with another tokenizer (digest %.12s, expected %.12s); name conversations "
                   "of this target in data.conversations",
                   at->path, own, digest);
}

static wg_status add_conversation(builder *b, const place *at, const json_t *line, wg_error *err)
{
    const json_t *ids = json_object_get(line, "ids"), *prompt = json_object_get(line, "prompt");
    const size_t n = json_array_size(ids), number = (size_t)at->line - 2;
    const json_int_t asked = json_is_integer(prompt) ? json_integer_value(prompt) : -1;
    const int vocab = wg_tokenizer_size(b->t);
    if (!json_is_array(ids) || asked < 0 || (size_t)asked > n)
        return expected(at, "{\"ids\": [tokens], \"prompt\": how many of them are the prompt, ...}", err);
    if (n == 0) return WG_OK; /* a number that yielded no conversation */
    part *p = &b->part[is_held_out(b->c, at->path, number)];
    WG_TRY(begin(p, n, (size_t)asked, err));
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(ids, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= vocab)
            return expected(at, "ids of the tokenizer's tokens", err);
        p->id[p->n++] = (int32_t)json_integer_value(v);
    }
    return WG_OK;
}

/* Adds the whole lines of a file; a last line without its end is still being written. */
static wg_status add_conversations(builder *b, const char *path, wg_error *err)
{
    char *text;
    size_t bytes;
    place at = { path, 0 };
    WG_TRY(wg_read_file(path, TEXT_MAX, &text, &bytes, err));
    wg_status s = WG_OK;
    for (char *line = text, *end; s == WG_OK && (end = memchr(line, '\n', bytes - (size_t)(line - text))); line = end + 1) {
        json_t *v = json_loadb(line, (size_t)(end - line), JSON_REJECT_DUPLICATES, NULL);
        at.line++;
        if (!json_is_object(v)) s = expected(&at, "a JSON object", err);
        else s = at.line == 1 ? check_header(b, &at, v, err) : add_conversation(b, &at, v, err);
        json_decref(v);
    }
    wg_free(text);
    b->files++;
    return s;
}

/* ---- files and folders */

static bool has_suffix(const struct dirent *e, const char *suffix)
{
    const char *dot = strrchr(e->d_name, '.');
    return dot && dot != e->d_name && !strcmp(dot, suffix);
}
static int is_text(const struct dirent *e) { return has_suffix(e, ".txt") || has_suffix(e, ".md"); }
static int is_conversations(const struct dirent *e) { return has_suffix(e, ".jsonl"); }

static wg_status add_path(builder *b, const char *path, wg_error *err)
{
    struct stat st;
    struct dirent **list;
    wg_status (*const add_file)(builder *, const char *, wg_error *) = b->prompts ? add_conversations : add_text;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) return add_file(b, path, err);
    const int n = scandir(path, &list, b->prompts ? is_conversations : is_text, alphasort);
    if (n < 0) return wg_fail(err, WG_EIO, "%s: cannot read the folder", path);
    wg_status s = WG_OK;
    for (int i = 0; i < n; i++) {
        char file[PATH_ROOM];
        if (s == WG_OK && snprintf(file, sizeof file, "%s/%s", path, list[i]->d_name) < PATH_ROOM) s = add_file(b, file, err);
        free(list[i]);
    }
    free(list);
    return s;
}

static wg_status write_parts(builder *b, const char *train, const char *held, wg_error *err)
{
    wg_corpus *c = b->c;
    for (int i = 0; i < 2; i++) c->documents[i] = b->part[i].documents, c->tokens[i] = b->part[i].n;
    if (b->prompts && c->documents[0] > 0 && b->part[0].asked == b->part[0].n)
        return wg_fail(err, WG_EINVAL,
                       "%s: all %zu tokens of its conversations are prompts, which have no loss: there is nothing to learn",
                       c->path, b->part[0].n);
    if (c->documents[0] == 0)
        return wg_fail(err, WG_EINVAL,
                       "%s: no %s to train on: %d files, %zu documents held out; expected a %s file, or a folder with %s files",
                       c->path, b->prompts ? "conversation" : "text", b->files, c->documents[1], b->prompts ? "JSONL" : "text",
                       b->prompts ? "*.jsonl" : "*.txt or *.md");
    for (int i = 0; i < 2 && c->documents[i] > 0; i++) {
        const part *p = &b->part[i];
        WG_TRY(
            wg_tokens_write(i ? held : train, b->t, p->id, p->n, p->start, b->prompts ? p->prompt : NULL, p->documents, err));
    }
    return WG_OK;
}

static wg_status write_all(wg_corpus *c, const wg_tokenizer *t, bool prompts, const char *train, const char *held,
                           wg_error *err)
{
    builder b = { .c = c, .t = t, .prompts = prompts };
    memset(c->bytes, 0, sizeof c->bytes);
    wg_status s = add_path(&b, c->path, err);
    if (s == WG_OK) s = write_parts(&b, train, held, err);
    for (int i = 0; i < 2; i++) wg_free(b.part[i].id), wg_free(b.part[i].start), wg_free(b.part[i].prompt);
    return s;
}

wg_status wg_corpus_write(wg_corpus *c, const wg_tokenizer *t, const char *train, const char *held, wg_error *err)
{
    return write_all(c, t, false, train, held, err);
}

wg_status wg_conversations_tokens(wg_corpus *c, const wg_tokenizer *t, const char *train, const char *held, wg_error *err)
{
    return write_all(c, t, true, train, held, err);
}
