/* SPDX-License-Identifier: MIT
 * Writing dumps of hidden states. A shard of a cache is written at two places at once, the states of the taps and those behind
 * the final norm; both are known when a sample begins. */
#include <errno.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/make_path.h"
#include "core/base/mem.h"
#include "core/base/save.h"
#include "core/file/safetensors.h"
#include "core/file/tap_dump.h"

struct wg_dump_writer {
    char *dir, *file; /* file: room for a path in it */
    wg_dump_plan plan;
    uint8_t *row;                  /* of the largest: (columns, dim) in the type of the plan */
    wg_safetensors_writer *sample; /* vllm: of the running sample */
    wg_save *index, *shard;        /* deepspec */
    uint64_t shard_end, hidden_at, last_at;
    bool made;                    /* the folder: it goes where nothing is written */
    int samples, shards, n, done; /* n: tokens of the running sample, of which `done` were written; 0: none runs */
};

static const char *path_of(wg_dump_writer *w, const char *format, int i)
{
    const size_t room = strlen(w->dir) + 64;
    int n = snprintf(w->file, room, "%s/", w->dir);
    snprintf(w->file + n, room - (size_t)n, format, i);
    return w->file;
}

static wg_status check_plan(const wg_dump_plan *p, const char *dir, wg_error *err)
{
    bool ascends = p->tap[0] >= 0;
    if (p->layout != WG_DUMP_DEEPSPEC) return WG_OK;
    if (p->type != WG_BF16)
        return wg_fail(err, WG_EINVAL, "%s: a DeepSpec cache is of type bf16; leave the type out, or choose the layout vllm",
                       dir);
    for (int i = 1; i < p->taps; i++) ascends = ascends && p->tap[i] > p->tap[i - 1];
    if (ascends) return WG_OK;
    return wg_fail(err, WG_EINVAL, "%s: the taps of a DeepSpec cache must ascend, or choose the layout vllm", dir);
}

/* The folder, made or empty. */
static wg_status make_folder(const char *dir, bool *made, wg_error *err)
{
    if (!wg_make_path(dir, made)) return wg_fail(err, WG_EIO, "%s: cannot make the folder: %s", dir, strerror(errno));
    if (*made) return WG_OK;
    DIR *d = opendir(dir);
    int files = 0;
    for (struct dirent *e; d && (e = readdir(d));) files += e->d_name[0] != '.';
    if (!d) return wg_fail(err, WG_EIO, "%s: cannot write there: %s", dir, strerror(errno));
    closedir(d);
    if (files == 0) return WG_OK;
    return wg_fail(err, WG_EINVAL, "%s: is not empty; name a new folder for the dump", dir);
}

wg_status wg_dump_create(wg_dump_writer **out, const char *dir, const wg_dump_plan *plan, wg_error *err)
{
    const size_t columns = (size_t)plan->taps + 1, row = columns * (size_t)plan->dim * sizeof(float);
    WG_TRY(check_plan(plan, dir, err));
    wg_dump_writer *w = wg_calloc(1, sizeof *w);
    if (!w) return wg_nomem(err, sizeof *w, "a dump");
    w->plan = *plan;
    w->dir = wg_strdup(dir);
    w->file = wg_alloc(strlen(dir) + 64, 1);
    w->row = wg_alloc(row, 1);
    wg_status s = w->dir && w->file && w->row ? WG_OK : wg_nomem(err, row, "a row of hidden states");
    if (s == WG_OK) s = make_folder(dir, &w->made, err);
    if (s == WG_OK && plan->layout == WG_DUMP_DEEPSPEC) s = wg_save_open(&w->index, path_of(w, "samples.idx", 0), err);
    if (s == WG_OK) *out = w;
    else wg_dump_abandon(w);
    return s;
}

/* ---- a sample */

static wg_status begin_file(wg_dump_writer *w, const int32_t *token, int n, wg_error *err)
{
    const wg_dump_plan *p = &w->plan;
    const wg_safetensors_entry entry[] = {
        { "token_ids", "I64", 1, { n } },
        { "hidden_states", p->type == WG_F32 ? "F32" : "BF16", 3, { n, p->taps, p->dim } },
    };
    w->sample = wg_safetensors_create(path_of(w, "hs_%d.safetensors", w->samples), entry, 2, NULL, err);
    if (!w->sample) return err->code;
    for (int i = 0; i < n; i++) {
        const int64_t id = token[i];
        WG_TRY(wg_safetensors_write(w->sample, &id, sizeof id, err));
    }
    return WG_OK;
}

static wg_status close_shard(wg_dump_writer *w, wg_error *err)
{
    wg_save *shard = w->shard;
    w->shard = NULL;
    w->shard_end = 0;
    return shard ? wg_save_commit(shard, err) : WG_OK;
}

static wg_status begin_record(wg_dump_writer *w, const int32_t *token, const uint8_t *loss, int n, wg_error *err)
{
    const uint64_t tokens = (uint64_t)n, state = 2 * (uint64_t)w->plan.dim;
    const uint64_t bytes = tokens * (4 + 1 + 1 + state * ((uint64_t)w->plan.taps + 1));
    if (w->shard_end > 0 && w->shard_end + bytes > w->plan.shard_bytes) WG_TRY(close_shard(w, err));
    if (!w->shard) WG_TRY(wg_save_open(&w->shard, path_of(w, "shard-%05d.bin", w->shards++), err));
    const uint64_t at = w->shard_end, mask = at + 4 * tokens, loss_at = mask + tokens;
    w->hidden_at = loss_at + tokens;
    w->last_at = w->hidden_at + tokens * state * (uint64_t)w->plan.taps;
    w->shard_end = at + bytes;
    WG_TRY(wg_save_write_at(w->shard, at, token, 4 * (size_t)n, err));
    for (int i = 0, some; i < n; i += some) {
        uint8_t ones[4096];
        some = n - i < (int)sizeof ones ? n - i : (int)sizeof ones;
        memset(ones, 1, (size_t)some);
        WG_TRY(wg_save_write_at(w->shard, mask + (uint64_t)i, ones, (size_t)some, err));
        WG_TRY(wg_save_write_at(w->shard, loss_at + (uint64_t)i, loss ? loss + i : ones, (size_t)some, err));
    }
    const uint64_t sample = (uint64_t)w->samples, place[] = { at, mask, loss_at, w->hidden_at, w->last_at };
    const uint32_t where[] = { (uint32_t)w->shards - 1, (uint32_t)n };
    WG_TRY(wg_save_write(w->index, &sample, sizeof sample, err));
    WG_TRY(wg_save_write(w->index, where, sizeof where, err));
    return wg_save_write(w->index, place, sizeof place, err);
}

wg_status wg_dump_begin(wg_dump_writer *w, const int32_t *token, const uint8_t *loss, int n, wg_error *err)
{
    wg_assert(w->n == 0 && n > 0);
    w->n = n;
    w->done = 0;
    return w->plan.layout == WG_DUMP_VLLM ? begin_file(w, token, n, err) : begin_record(w, token, loss, n, err);
}

wg_status wg_dump_rows(wg_dump_writer *w, const float *x, int rows, wg_error *err)
{
    const wg_dump_plan *p = &w->plan;
    const bool cache = p->layout == WG_DUMP_DEEPSPEC;
    const size_t dim = (size_t)p->dim, floats = (size_t)(p->taps + cache) * dim;
    const size_t last = wg_type_size(wg_type_get(p->type), dim), hidden = last * (size_t)p->taps;
    wg_assert(w->done + rows <= w->n);
    for (int i = 0; i < rows; i++, x += floats) {
        wg_row_from_f32(p->type, x, w->row, floats);
        if (!cache) {
            WG_TRY(wg_safetensors_write(w->sample, w->row, hidden, err));
            continue;
        }
        WG_TRY(wg_save_write_at(w->shard, w->hidden_at, w->row, hidden, err));
        WG_TRY(wg_save_write_at(w->shard, w->last_at, w->row + hidden, last, err));
        w->hidden_at += hidden;
        w->last_at += last;
    }
    w->done += rows;
    return WG_OK;
}

wg_status wg_dump_end(wg_dump_writer *w, wg_error *err)
{
    wg_safetensors_writer *sample = w->sample;
    wg_assert(w->n > 0 && w->done == w->n);
    w->sample = NULL;
    w->n = 0;
    w->samples++;
    return sample ? wg_safetensors_finish(sample, err) : WG_OK;
}

/* ---- the end */

static json_t *manifest_of(const wg_dump_writer *w)
{
    const wg_dump_plan *p = &w->plan;
    json_t *layers = json_array(), *shards = json_array();
    char name[32];
    for (int i = 0; i < p->taps; i++) json_array_append_new(layers, json_integer(p->tap[i] - 1));
    for (int i = 0; i < w->shards; i++) {
        snprintf(name, sizeof name, "shard-%05d.bin", i);
        json_array_append_new(shards, json_pack("{s:i, s:s}", "shard_id", i, "file_name", name));
    }
    return json_pack("{s:i, s:i, s:i, s:o, s:i, s:s, s:s, s:s, s:i, s:o, s:s}", "version", 2, "num_samples", w->samples,
                     "num_shards", w->shards, "target_layer_ids", layers, "hidden_size", p->dim, "hidden_dtype", "bfloat16",
                     "token_dtype", "int32", "mask_dtype", "uint8", "index_record_size", (int)WG_DUMP_RECORD, "shards", shards,
                     "target_model_name_or_path", p->model ? p->model : "");
}

static wg_status finish_cache(wg_dump_writer *w, wg_error *err)
{
    wg_save *index = w->index;
    WG_TRY(close_shard(w, err));
    w->index = NULL;
    WG_TRY(wg_save_commit(index, err));
    json_t *manifest = manifest_of(w);
    const wg_status s = manifest ? wg_json_save(manifest, path_of(w, "manifest.json", 0), err)
                                 : wg_fail(err, WG_EINVAL, "%s: the name of the model is not UTF-8", w->dir);
    json_decref(manifest);
    return s;
}

wg_status wg_dump_finish(wg_dump_writer *w, wg_error *err)
{
    wg_assert(w->n == 0);
    const wg_status s = w->plan.layout == WG_DUMP_DEEPSPEC ? finish_cache(w, err) : WG_OK;
    wg_dump_abandon(w);
    return s;
}

void wg_dump_abandon(wg_dump_writer *w)
{
    if (!w) return;
    wg_safetensors_abandon(w->sample);
    wg_save_abort(w->shard);
    wg_save_abort(w->index);
    if (w->made) (void)!rmdir(w->dir); /* where it is empty */
    wg_free(w->dir);
    wg_free(w->file);
    wg_free(w->row);
    wg_free(w);
}
