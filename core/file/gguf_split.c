/* SPDX-License-Identifier: MIT
 * Models in several GGUF files, STEM-00001-of-00003.gguf and so on, as llama-gguf-split writes them. Every part has the keys
 * split.no (from 0), split.count and split.tensors.count (of the whole model); the first one has all others, and any part
 * may have tensors. Each part is mapped and checked by itself; its tensors then stand behind those of the parts before it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/format.h"

enum { MOST_PARTS = 65535, NAME_END = 32 };

#define ALL_PARTS "download all files of the model again, or join them with llama-gguf-split --merge"

typedef struct joint {
    const char *given; /* the path that was opened */
    size_t stem;       /* of it: what all parts' names begin with */
    int count;
    int64_t tensors;
    wg_error *err;
} joint;

static void name_end(char end[NAME_END], int no, int count) { snprintf(end, NAME_END, "-%05d-of-%05d.gguf", no + 1, count); }

/* What a part says of itself, against what is known: its place, and the numbers of parts and tensors. */
static wg_status check_part(const joint *j, const wg_weights *w, int no)
{
    int64_t number = -1, count = -1, tensors = -1;
    wg_meta_int(w, "split.count", &count);
    wg_meta_int(w, "split.no", &number);
    wg_meta_int(w, "split.tensors.count", &tensors);
    if (count != j->count)
        return wg_fail(j->err, WG_EFORMAT,
                       "%s: split.count is %" PRId64 ", but %d in %s: these are files of different models; " ALL_PARTS, w->path,
                       count, j->count, j->given);
    if (number != no)
        return wg_fail(j->err, WG_EFORMAT,
                       "%s: split.no is %" PRId64 "; expected %d by the name of the file: it was renamed; " ALL_PARTS, w->path,
                       number, no);
    if (tensors != j->tensors)
        return wg_fail(j->err, WG_EFORMAT,
                       "%s: split.tensors.count is %" PRId64 ", but %" PRId64
                       " in %s: these are files of different models; " ALL_PARTS,
                       w->path, tensors, j->tensors, j->given);
    return WG_OK;
}

/* NULL on failure. */
static wg_status open_part(const joint *j, int no, wg_weights **part)
{
    char end[NAME_END], *path = wg_alloc(j->stem + NAME_END, 1);
    if (!path) return wg_nomem(j->err, j->stem + NAME_END, "the name of a part");
    name_end(end, no, j->count);
    memcpy(path, j->given, j->stem);
    memcpy(path + j->stem, end, strlen(end) + 1);
    wg_status s = wg_weights_open_file(part, path, j->err);
    wg_free(path);
    if (s) return wg_fail_in(j->err, s, "%s: file %d of the model's %d", j->given, no + 1, j->count);
    s = check_part(j, *part, no);
    if (s == WG_OK) return WG_OK;
    wg_weights_close(*part);
    *part = NULL;
    return s;
}

/* Keys that a part repeats must say what the first part says. */
static wg_status check_keys(const joint *j, const wg_weights *first, const wg_weights *part)
{
    for (int i = 0; i < part->n_meta; i++) {
        const wg_meta *m = &part->meta[i], *same = wg_weights_meta(first, m->key);
        if (strncmp(m->key, "split.", 6) == 0 || strcmp(m->key, "general.alignment") == 0) continue;
        if (!same || same->type != m->type || same->element != m->element || same->bytes != m->bytes ||
            memcmp(same->value, m->value, m->bytes) != 0)
            return wg_fail(j->err, WG_EFORMAT,
                           "%s: key '%.80s' has another value than in %s: these are files of different models; " ALL_PARTS,
                           part->path, m->key, first->path);
    }
    return WG_OK;
}

/* Appends a part's tensors; it becomes first's, also on failure. */
static wg_status add_part(const joint *j, wg_weights *first, wg_weights *part)
{
    first->part[first->n_parts++] = part;
    WG_TRY(check_keys(j, first, part));
    for (int i = 0; i < part->n_tensors; i++) {
        const wg_tensor *t = &part->tensor[i];
        for (int p = 0; p < first->n_parts; p++) {
            const wg_weights *before = p ? first->part[p - 1] : first;
            if (wg_weights_find(before, t->name))
                return wg_fail(j->err, WG_EFORMAT, "%s: tensor '%s' is in %s, too; " ALL_PARTS, part->path, t->name,
                               before->path);
        }
        char *name = wg_strdup(t->name);
        wg_tensor *to = wg_weights_add_tensor(first, name);
        if (!to) return wg_nomem(j->err, sizeof *to, "the tensor list");
        *to = *t;
        to->name = name;
    }
    return WG_OK;
}

/* The whole has no keys of a part. */
static void drop_keys(wg_weights *w)
{
    int n = 0;
    for (int i = 0; i < w->n_meta; i++) {
        if (strncmp(w->meta[i].key, "split.", 6) != 0) {
            w->meta[n++] = w->meta[i];
            continue;
        }
        wg_free((char *)w->meta[i].key);
        wg_free(w->meta[i].start);
    }
    w->n_meta = n;
}

static wg_status join(const joint *j, wg_weights *first)
{
    for (int no = 1; no < j->count; no++) {
        wg_weights *part;
        WG_TRY(open_part(j, no, &part));
        wg_weights **grown = wg_realloc(first->part, (size_t)no, sizeof *grown);
        if (!grown) {
            wg_weights_close(part);
            return wg_nomem(j->err, (size_t)no * sizeof *grown, "the parts of a model");
        }
        first->part = grown;
        WG_TRY(add_part(j, first, part));
    }
    if (first->n_tensors != j->tensors)
        return wg_fail(j->err, WG_EFORMAT,
                       "%s: the model's %d files have %d tensors, but split.tensors.count is %" PRId64 "; " ALL_PARTS, j->given,
                       j->count, first->n_tensors, j->tensors);
    drop_keys(first);
    snprintf(first->format + strlen(first->format), sizeof first->format - strlen(first->format), " in %d files", j->count);
    return wg_weights_index(first, j->err);
}

int64_t wg_gguf_split_count(const wg_weights *w)
{
    int64_t count = 1;
    wg_meta_int(w, "split.count", &count);
    return count;
}

wg_status wg_gguf_join(wg_weights **out, wg_weights *w, const char *path, wg_error *err)
{
    const int64_t count = wg_gguf_split_count(w);
    joint j = { .given = path, .count = (int)count, .err = err };
    char end[NAME_END];
    int64_t no = -1;
    wg_status s = WG_OK;
    *out = w;
    if (count == 0 || count == 1) return WG_OK;
    wg_meta_int(w, "split.tensors.count", &j.tensors);
    if (count < 0 || count > MOST_PARTS || !wg_meta_int(w, "split.no", &no) || no < 0 || no >= count) {
        s = wg_fail(err, WG_EFORMAT,
                    "%s: split.no is %" PRId64 " and split.count %" PRId64
                    "; expected a part from 0 on of at most %d; " ALL_PARTS,
                    path, no, count, MOST_PARTS);
    } else {
        name_end(end, (int)no, j.count);
        const size_t n = strlen(path), of_end = strlen(end);
        j.stem = n > of_end ? n - of_end : 0;
        if (n < of_end || strcmp(path + n - of_end, end) != 0)
            s = wg_fail(err, WG_EFORMAT,
                        "%s: this is one of the %d files of a model, whose names tell their places: expected a name that ends "
                        "in %s; rename it, or join the files with llama-gguf-split --merge",
                        path, j.count, end);
        else if (no == 0) s = check_part(&j, w, 0);
    }
    if (s == WG_OK && no != 0) {
        wg_weights_close(w);
        w = NULL;
        s = open_part(&j, 0, &w);
    }
    if (s == WG_OK) s = join(&j, w);
    if (s != WG_OK) wg_weights_close(w);
    *out = s == WG_OK ? w : NULL;
    return s;
}
