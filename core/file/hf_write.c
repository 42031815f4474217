/* SPDX-License-Identifier: MIT
 * A Hugging Face folder of open weights: first the small files, then the tensors in shards, one tensor in memory at a time. The
 * names and the changes of tensors are those of hf_names.c. */
#include "core/file/hf_write.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/mem.h"
#include "core/base/save.h"
#include "core/file/format.h"
#include "core/file/hf_names.h"
#include "core/file/hf_paired.h"
#include "core/file/safetensors.h"

enum { PATH = WG_SAVE_FOLDER_PATH };

/* A tensor of the folder. */
typedef struct item {
    const wg_tensor *from;
    char name[WG_HF_FULL_NAME];
    wg_hf_change change;
    int type, shard;
    int expert;          /* of a tensor of all; -1: the tensor is no such */
    wg_hf_paired paired; /* step 0: it is none of these; of step 2 it is made of `from` and */
    const wg_tensor *second;
    size_t bytes;
} item;

typedef struct folder {
    const wg_weights *w;
    const wg_hf_config *config;
    const char *part; /* where it is written */
    item *item;
    size_t n, room;
    int shards;
    char *data; /* a tensor of the folder */
    float *row;
    wg_error *err;
} folder;

/* ---- what there is to write */

static bool is_float(int type) { return type == WG_F32 || type == WG_F16 || type == WG_BF16; }

static int type_of(const wg_tensor *t, const wg_hf_change *change, int wanted)
{
    if (change->plus_one || !is_float(t->type)) return t->n_dims > 1 && wanted >= 0 ? wanted : WG_F32;
    return t->n_dims > 1 && wanted >= 0 ? wanted : t->type;
}

/* Experts as gpt-oss's; those of up stand with those of gate. */
static wg_status add_paired(folder *f, const wg_tensor *t, const wg_hf_paired *p, const char *name, int wanted)
{
    char up[WG_HF_NAME];
    if (p->first > 0) return WG_OK;
    snprintf(up, sizeof up, "blk.%d.ffn_up_exps.%s", p->layer, p->bias ? "bias" : "weight");
    const wg_tensor *second = p->step == 2 ? wg_weights_find(f->w, up) : NULL;
    if (p->step == 2 && (!second || memcmp(second->dim, t->dim, sizeof t->dim) != 0))
        return wg_fail(f->err, WG_EMODEL, "%s: tensor '%s' has no tensor '%s' of the same shape beside it",
                       wg_weights_path(f->w), t->name, up);
    WG_TRY(wg_grow((void **)&f->item, &f->room, f->n + 1, sizeof *f->item, "a list of tensors", f->err));
    item *i = &f->item[f->n++];
    *i = (item){ .from = t, .second = second, .expert = -1, .paired = *p };
    snprintf(i->name, sizeof i->name, "%s", name);
    i->type = type_of(t, &i->change, p->bias ? -1 : wanted);
    i->bytes = wg_type_size(wg_type_get(i->type), (size_t)(t->dim[0] * t->dim[1] * t->dim[2] * p->step));
    return WG_OK;
}

/* Experts are a tensor each. */
static wg_status add_tensor(folder *f, const wg_tensor *t, int wanted)
{
    const int experts = strstr(t->name, "_exps.") ? (int)t->dim[2] : 1;
    float none;
    wg_hf_paired paired;
    char name[WG_HF_FULL_NAME];
    if (strncmp(t->name, "rope_", 5) == 0) return WG_OK; /* what config.json says */
    if (wg_row_to_f32(t->type, t->data, &none, 0) != 0)
        return wg_fail(f->err, WG_EUNSUPPORTED,
                       "%s: tensor '%s' is %s, which cannot be converted to a type that such folders have",
                       wg_weights_path(f->w), t->name, wg_type_name(t->type));
    if (wg_hf_paired_name_of(f->config, t->name, &paired, name)) return add_paired(f, t, &paired, name, wanted);
    for (int e = 0; e < experts; e++) {
        WG_TRY(wg_grow((void **)&f->item, &f->room, f->n + 1, sizeof *f->item, "a list of tensors", f->err));
        item *i = &f->item[f->n++];
        *i = (item){ .from = t, .expert = experts > 1 ? e : -1 };
        const wg_hf_name *as = experts > 1 ? NULL : wg_hf_name_of(f->config, t->name, i->name);
        if (!(experts > 1 ? wg_hf_expert_of(f->config, t->name, e, i->name) : as != NULL))
            return wg_fail(f->err, WG_EUNSUPPORTED, "%s: tensor '%s' has no name in Hugging Face folders of %s models",
                           wg_weights_path(f->w), t->name, f->config->family);
        if (as) i->change = wg_hf_change_of(f->config, as, t->n_dims);
        i->type = type_of(t, &i->change, wanted);
        i->bytes = wg_type_size(wg_type_get(i->type), (size_t)(t->dim[0] * t->dim[1] * (experts > 1 ? 1 : t->dim[2])));
    }
    return WG_OK;
}

/* Shards in the order of the tensors; one that is larger than a shard has one to itself. */
static wg_status list_tensors(folder *f, const wg_hf_write_options *opt)
{
    const size_t most = opt->shard_bytes ? opt->shard_bytes : (size_t)WG_HF_SHARD_BYTES * 1000000000;
    size_t room = 0, largest = 0, k = 0;
    for (int i = 0; i < wg_weights_count(f->w); i++) WG_TRY(add_tensor(f, wg_weights_at(f->w, i), opt->type));
    for (size_t i = 0; i < f->n; i++) {
        item *it = &f->item[i];
        if (i == 0 || it->bytes > room) f->shards++, room = most;
        room -= it->bytes < room ? it->bytes : room;
        it->shard = f->shards - 1;
        largest = it->bytes > largest ? it->bytes : largest;
        k = (size_t)it->from->dim[0] > k ? (size_t)it->from->dim[0] : k;
    }
    f->data = wg_alloc(largest, 1);
    f->row = wg_alloc(k, sizeof *f->row);
    return f->data && f->row ? WG_OK : wg_nomem(f->err, largest, "the largest tensor");
}

/* ---- a tensor */

/* The row of the folder, or the element of a vector, that row r of the GGUF file is; `width` of a head. */
static int64_t row_of(const folder *f, const item *i, int64_t r, int64_t width)
{
    return i->change.grouped ? wg_hf_grouped_row(f->config, r) : width ? wg_hf_row(r, width) : r;
}

static void convert_paired(folder *f, const item *i)
{
    const size_t each = wg_type_size(wg_type_get(i->type), 1);
    for (int k = 0; k < i->paired.step; k++) {
        const wg_tensor *t = k ? i->second : i->from;
        const size_t in = wg_type_size(wg_type_get(t->type), (size_t)t->dim[0]);
        wg_hf_paired p = i->paired;
        p.first = k;
        for (int64_t r = 0; r < t->dim[1] * t->dim[2]; r++) {
            wg_row_to_f32(t->type, (const char *)t->data + (size_t)r * in, f->row, (size_t)t->dim[0]);
            for (int64_t c = 0; c < t->dim[0]; c++)
                wg_row_from_f32(i->type, f->row + c, f->data + wg_hf_paired_at(&p, t, r, c) * each, 1);
        }
    }
}

static void convert(folder *f, const item *i)
{
    const wg_tensor *t = i->from;
    const int64_t k = t->dim[0], rows = t->dim[1] * (i->expert < 0 ? t->dim[2] : 1),
                  first = i->expert < 0 ? 0 : i->expert * rows;
    const size_t in = wg_type_size(wg_type_get(t->type), (size_t)k), out = wg_type_size(wg_type_get(i->type), (size_t)k);
    const size_t each = wg_type_size(wg_type_get(i->type), 1);
    const bool vector = t->n_dims == 1;
    const int64_t width = i->change.heads ? (vector ? k : rows) / i->change.heads : 0;
    for (int64_t r = 0; r < rows; r++) {
        wg_row_to_f32(t->type, (const char *)t->data + (size_t)(first + r) * in, f->row, (size_t)k);
        for (int64_t c = 0; i->change.plus_one && c < k; c++) f->row[c] -= 1.0f;
        if (i->change.turned || ((width || i->change.grouped) && vector)) {
            for (int64_t c = 0; c < k; c++)
                wg_row_from_f32(i->type, f->row + c, f->data + (size_t)(vector ? row_of(f, i, c, width) : c * rows + r) * each,
                                1);
            continue;
        }
        wg_row_from_f32(i->type, f->row, f->data + (size_t)row_of(f, i, r, width) * out, (size_t)k);
    }
}

static wg_status write_tensors(folder *f, wg_safetensors_writer *w, int shard)
{
    for (size_t i = 0; i < f->n; i++) {
        const item *it = &f->item[i];
        if (it->shard != shard) continue;
        if (it->expert <= 0) WG_TRY(wg_weights_need(f->w, it->from, f->err));
        if (it->second) WG_TRY(wg_weights_need(f->w, it->second, f->err));
        if (it->paired.step) convert_paired(f, it);
        else convert(f, it);
        WG_TRY(wg_safetensors_write(w, f->data, it->bytes, f->err));
        const bool last = i + 1 == f->n || f->item[i + 1].from != it->from;
        if (last) wg_weights_release(f->w, it->from);
        if (it->second) wg_weights_release(f->w, it->second);
    }
    return WG_OK;
}

static void name_shard(const folder *f, int shard, char name[64])
{
    if (f->shards == 1) snprintf(name, 64, "model.safetensors");
    else snprintf(name, 64, "model-%05d-of-%05d.safetensors", shard + 1, f->shards);
}

static void shape_paired(const item *i, wg_safetensors_entry *e)
{
    const int64_t *d = i->from->dim, step = i->paired.step;
    if (i->paired.bias) e->dim[0] = d[1], e->dim[1] = d[0] * step;
    else e->dim[0] = d[2], e->dim[1] = d[0], e->dim[2] = d[1] * step;
}

static wg_status write_shard(folder *f, int shard)
{
    char path[PATH + 80], name[64];
    int n = 0;
    wg_safetensors_entry *entry = wg_calloc(f->n, sizeof *entry);
    if (!entry) return wg_nomem(f->err, f->n * sizeof *entry, "a list of tensors");
    for (size_t i = 0; i < f->n; i++) {
        const item *it = &f->item[i];
        const wg_tensor *t = it->from;
        if (it->shard != shard) continue;
        wg_safetensors_entry *e = &entry[n++];
        *e = (wg_safetensors_entry){ .name = it->name,
                                     .dtype = it->type == WG_F32   ? "F32"
                                              : it->type == WG_F16 ? "F16"
                                                                   : "BF16",
                                     .n_dims = it->expert < 0 ? t->n_dims : 2 };
        if (it->paired.step) shape_paired(it, e);
        for (int d = 0; d < e->n_dims && !it->paired.step; d++) e->dim[d] = t->dim[it->change.turned ? d : e->n_dims - 1 - d];
    }
    name_shard(f, shard, name);
    snprintf(path, sizeof path, "%s/%s", f->part, name);
    json_t *meta = json_pack("{s:s}", "format", "pt");
    wg_safetensors_writer *w = wg_safetensors_create(path, entry, n, meta, f->err);
    json_decref(meta);
    wg_free(entry);
    if (!w) return f->err ? f->err->code : WG_EIO;
    const wg_status s = write_tensors(f, w, shard);
    if (s == WG_OK) return wg_safetensors_finish(w, f->err);
    wg_safetensors_abandon(w);
    return s;
}

/* ---- the other files */

static wg_status save(const folder *f, const char *name, json_t *value)
{
    char path[PATH + 80];
    snprintf(path, sizeof path, "%s/%s", f->part, name);
    const wg_status s = value ? wg_json_save(value, path, f->err) : wg_nomem(f->err, 1, name);
    json_decref(value);
    return s;
}

static wg_status write_index(const folder *f)
{
    char name[64];
    size_t total = 0;
    json_t *map = json_object();
    if (f->shards == 1) return json_decref(map), WG_OK;
    for (size_t i = 0; i < f->n; i++) {
        name_shard(f, f->item[i].shard, name);
        total += f->item[i].bytes;
        json_object_set_new(map, f->item[i].name, json_string(name));
    }
    return save(f, "model.safetensors.index.json",
                json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)total, "weight_map", map));
}

/* The type that most elements have. */
static int main_type(const folder *f)
{
    const item *most = f->item;
    for (size_t i = 0; i < f->n; i++)
        if (f->item[i].bytes > most->bytes) most = &f->item[i];
    return most->type;
}

static wg_status write_small(folder *f, wg_hf_config *c)
{
    json_t *config, *tokenizer, *ids = wg_hf_ids_json(f->w);
    WG_TRY(wg_hf_config_json(c, wg_weights_path(f->w), main_type(f), &config, f->err));
    static const char *const roles[] = { "bos_token_id", "eos_token_id",
                                         "pad_token_id" }; /* model types have defaults for them */
    for (int i = 0; i < 3; i++) {
        json_t *id = json_object_get(ids, roles[i]);
        json_object_set_new(config, roles[i], id ? json_incref(id) : json_null());
    }
    wg_status s = save(f, "config.json", config);
    if (s == WG_OK) s = save(f, "generation_config.json", json_incref(ids));
    json_decref(ids);
    if (s == WG_OK) s = wg_hf_tokenizer_json(f->w, &tokenizer, f->err);
    if (s != WG_OK || !tokenizer) return s;
    WG_TRY(save(f, "tokenizer.json", tokenizer));
    return save(f, "tokenizer_config.json", wg_hf_tokenizer_config_json(f->w, c->context));
}

/* ---- the folder */

static wg_status write_all(folder *f, wg_hf_config *c, const wg_hf_write_options *opt)
{
    {
        json_t *unused; /* decides what tensors are called, and refuses before the weights are read */
        WG_TRY(wg_hf_config_json(c, wg_weights_path(f->w), WG_F32, &unused, f->err));
        json_decref(unused);
    }
    WG_TRY(list_tensors(f, opt));
    WG_TRY(write_small(f, c));
    for (int i = 0; i < f->shards; i++) WG_TRY(write_shard(f, i));
    WG_TRY(write_index(f));
    return opt->check ? opt->check(opt->user, f->part, f->err) : WG_OK;
}

static wg_status write_atomically(folder *f, wg_hf_config *c, const char *out, const wg_hf_write_options *opt)
{
    struct stat st;
    wg_save_folder *part;
    if (stat(out, &st) == 0 && !S_ISDIR(st.st_mode))
        return wg_fail(f->err, WG_EINVAL,
                       "%s: is a file; a Hugging Face model is a folder: name one, or a file that ends in .gguf", out);
    WG_TRY(wg_save_folder_open(&part, out, f->err));
    f->part = wg_save_folder_part(part);
    const wg_status s = write_all(f, c, opt);
    if (s == WG_OK) return wg_save_folder_commit(part, f->err);
    wg_save_folder_abort(part);
    return s;
}

wg_status wg_hf_write(const wg_weights *w, wg_hf_config *c, const char *out, const wg_hf_write_options *opt, wg_error *err)
{
    wg_error own;
    folder *f = wg_calloc(1, sizeof *f);
    if (!f) return wg_nomem(err, sizeof *f, "a folder");
    f->w = w;
    f->config = c;
    f->err = err ? err : &own;
    const wg_status s = write_atomically(f, c, out, opt);
    wg_free(f->item);
    wg_free(f->data);
    wg_free(f->row);
    wg_free(f);
    return s;
}
