/* SPDX-License-Identifier: MIT
 * Encodes texts into token files (tokens.h). */
#include <dirent.h>
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
    uint64_t *start;
    size_t n, room, documents, document_room;
} part;

typedef struct builder {
    wg_corpus *c;
    const wg_tokenizer *t;
    part part[2]; /* training, held out */
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

static wg_status append(part *p, const wg_tokenizer *t, const int32_t *id, size_t n, wg_error *err)
{
    const int bos = wg_tokenizer_bos(t), eos = wg_tokenizer_eos(t);
    int32_t *ids = reserve(p->id, &p->room, p->n + n + 2, sizeof *ids);
    if (ids) p->id = ids;
    uint64_t *start = ids ? reserve(p->start, &p->document_room, p->documents + 1, sizeof *start) : NULL;
    if (!start) return wg_nomem(err, (p->n + n + 2) * sizeof *ids, "the tokens of the texts");
    p->start = start;
    p->start[p->documents++] = p->n;
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

static wg_status add_file(builder *b, const char *path, wg_error *err)
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

static int is_text(const struct dirent *e)
{
    const char *dot = strrchr(e->d_name, '.');
    return dot && dot != e->d_name && (!strcmp(dot, ".txt") || !strcmp(dot, ".md"));
}

static wg_status add_path(builder *b, const char *path, wg_error *err)
{
    struct stat st;
    struct dirent **list;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) return add_file(b, path, err);
    const int n = scandir(path, &list, is_text, alphasort);
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
    if (c->documents[0] == 0)
        return wg_fail(
            err, WG_EINVAL,
            "%s: no text to train on: %d files, %zu documents held out; expected a text file, or a folder with *.txt "
            "or *.md files",
            c->path, b->files, c->documents[1]);
    WG_TRY(wg_tokens_write(train, b->t, b->part[0].id, b->part[0].n, b->part[0].start, b->part[0].documents, err));
    if (c->documents[1] == 0) return WG_OK;
    return wg_tokens_write(held, b->t, b->part[1].id, b->part[1].n, b->part[1].start, b->part[1].documents, err);
}

wg_status wg_corpus_write(wg_corpus *c, const wg_tokenizer *t, const char *train, const char *held, wg_error *err)
{
    builder b = { .c = c, .t = t };
    memset(c->bytes, 0, sizeof c->bytes);
    wg_status s = add_path(&b, c->path, err);
    if (s == WG_OK) s = write_parts(&b, train, held, err);
    for (int i = 0; i < 2; i++) wg_free(b.part[i].id), wg_free(b.part[i].start);
    return s;
}
