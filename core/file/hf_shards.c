/* SPDX-License-Identifier: MIT
 * The safetensors files of a folder, mapped: model.safetensors, or the shards that an index names. */
#include "core/file/hf_shards.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/file/format.h"

enum { SHARDS_MOST = 1024, PATH = 4096 };

typedef struct reader {
    const char *path; /* of the folder */
    wg_hf_shards *to;
    wg_error *err;
} reader;

/* The path of a file of the folder, in `to`. */
static const char *path_of(const reader *f, const char *name, char to[PATH])
{
    snprintf(to, PATH, "%s/%s", f->path, name);
    return to;
}

static bool starts(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }

static wg_status add_shard(reader *f, const char *name)
{
    WG_TRY(wg_grow((void **)&f->to->at, &f->to->room, f->to->n + 1, sizeof *f->to->at, "a list of files", f->err));
    wg_hf_shard *s = &f->to->at[f->to->n++];
    char path[PATH];
    *s = (wg_hf_shard){ .path = wg_strdup(path_of(f, name, path)) };
    if (!s->path) return wg_nomem(f->err, 1, "a path");
    wg_status status = wg_map_file(s->path, "is no file with weights; download it again", &s->base, &s->bytes, f->err);
    if (status == WG_ENOENT) status = wg_fail(f->err, WG_ENOENT, "%s: there is no such file; is the folder complete?", s->path);
    WG_TRY(status);
    return wg_safetensors_read(&s->list, s->path, s->base, s->bytes, f->err);
}

/* Every tensor is in the shard that the index names, and the index names every tensor. */
static wg_status check_index(reader *f, const json_t *map_of)
{
    size_t seen = 0;
    char path[PATH];
    const char *index = path_of(f, "model.safetensors.index.json", path);
    for (size_t i = 0; i < f->to->n; i++)
        for (size_t k = 0; k < f->to->at[i].list.n; k++, seen++) {
            const char *name = f->to->at[i].list.tensor[k].name, *in = json_string_value(json_object_get(map_of, name));
            if (!in || strcmp(in, strrchr(f->to->at[i].path, '/') + 1) != 0)
                return wg_fail(f->err, WG_EFORMAT,
                               "%s: says that tensor '%.80s' is in %.80s, but it is in %s; is the folder complete?", index,
                               name, in ? in : "no file", f->to->at[i].path);
        }
    if (seen == json_object_size(map_of)) return WG_OK;
    return wg_fail(f->err, WG_EFORMAT, "%s: names %zu tensors, and its files have %zu; is the folder complete?", index,
                   json_object_size(map_of), seen);
}

static wg_status open_index(reader *f, const json_t *root, const char *index)
{
    const json_t *map_of = json_object_get(root, "weight_map");
    const char *tensor;
    json_t *file;
    if (!json_is_object(map_of))
        return wg_fail(f->err, WG_EFORMAT, "%s: key 'weight_map' is no object of tensors and files; download it again", index);
    json_object_foreach((json_t *)(uintptr_t)map_of, tensor, file) {
        const char *name = json_string_value(file);
        if (!name || !*name || strchr(name, '/') || f->to->n == SHARDS_MOST)
            return wg_fail(f->err, WG_EFORMAT, "%s: tensor '%.80s' is in no file of the folder, or in one of more than %d",
                           index, tensor, SHARDS_MOST);
        bool open = false;
        for (size_t i = 0; i < f->to->n; i++) open = open || strcmp(strrchr(f->to->at[i].path, '/') + 1, name) == 0;
        if (!open) WG_TRY(add_shard(f, name));
    }
    return check_index(f, map_of);
}

wg_status wg_hf_shards_open(wg_hf_shards *out, const char *folder, wg_error *err)
{
    wg_json *doc;
    char path[PATH];
    reader f = { folder, out, err };
    *out = (wg_hf_shards){ 0 };
    if (access(path_of(&f, "model.safetensors", path), F_OK) == 0) return add_shard(&f, "model.safetensors");
    if (access(path_of(&f, "model.safetensors.index.json", path), F_OK) != 0)
        return wg_fail(err, WG_ENOENT,
                       "%s: has neither model.safetensors nor model.safetensors.index.json; weights in other formats (.bin, "
                       ".pt, .pth, .onnx) "
                       "are not read: " WG_SAVE_SAFETENSORS,
                       folder);
    WG_TRY(wg_json_open_foreign(&doc, path, err));
    const wg_status s = open_index(&f, wg_json_root(doc), wg_json_name(doc));
    wg_json_close(doc);
    return s;
}

void wg_hf_shards_close(wg_hf_shards *s)
{
    for (size_t i = 0; i < s->n; i++) {
        wg_safetensors_free(&s->at[i].list);
        if (s->at[i].base) munmap(s->at[i].base, s->at[i].bytes);
        wg_free(s->at[i].path);
    }
    wg_free(s->at);
    *s = (wg_hf_shards){ 0 };
}

void wg_hf_shards_unwrap(wg_hf_shards *s)
{
    static const char *const before[][2] = { { "language_model.", "" }, { "model.language_model.", "model." } };
    static const char *const aside[] = { "vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                                         "model.multi_modal_projector." };
    for (size_t i = 0; i < s->n; i++) {
        wg_safetensors *list = &s->at[i].list;
        size_t kept = 0;
        for (size_t k = 0; k < list->n; k++) {
            wg_safetensor *t = &list->tensor[k];
            bool other = false;
            for (size_t a = 0; a < sizeof aside / sizeof aside[0]; a++) other = other || starts(t->name, aside[a]);
            if (other) {
                wg_free(t->name);
                s->aside++;
                continue;
            }
            for (size_t b = 0; b < sizeof before / sizeof before[0]; b++) {
                const size_t n = strlen(before[b][0]), to = strlen(before[b][1]);
                if (!starts(t->name, before[b][0])) continue;
                memcpy(t->name, before[b][1], to);
                memmove(t->name + to, t->name + n, strlen(t->name + n) + 1);
                break;
            }
            list->tensor[kept++] = *t;
        }
        list->n = kept;
    }
}
