/* SPDX-License-Identifier: MIT
 * Reading dumps of hidden states. Layouts: vLLM's ExampleHiddenStatesConnector, and DeepSpec's target_cache_dataset.py
 * (records "<QIIQQQQQ"). */
#include "core/file/tap_dump.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/file/safetensors.h"

#define AGAIN "the file is damaged: dump it again"

const char *const wg_dump_layouts[] = { "vllm", "deepspec", NULL };

/* ---- a sample in a safetensors file */

static const wg_safetensor *find(const wg_safetensors *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->tensor[i].name, name) == 0) return &s->tensor[i];
    return NULL;
}

static wg_status check_tokens(const wg_dump_sample *s, const char *path, wg_error *err)
{
    for (int64_t i = 0; i < s->n; i++) {
        uint64_t v = 0;
        memcpy(&v, s->token + i * s->token_bytes, (size_t)s->token_bytes);
        if (v > INT32_MAX)
            return wg_fail(err, WG_EFORMAT, "%s: token %" PRId64 " of %" PRId64 " is no token id: expected 0..%d; " AGAIN, path,
                           i, s->n, INT32_MAX);
    }
    return WG_OK;
}

static wg_status place_tensors(const wg_safetensors *s, const char *path, wg_dump_sample *out, wg_error *err)
{
    const wg_safetensor *token = find(s, "token_ids"), *hidden = find(s, "hidden_states");
    if (!token || !hidden)
        return wg_fail(err, WG_EFORMAT,
                       "%s: there is no tensor '%s': expected token_ids and hidden_states, as vLLM's "
                       "extract_hidden_states writes them",
                       path, token ? "hidden_states" : "token_ids");
    const bool wide = strcmp(token->dtype, "I64") == 0;
    if (token->n_dims != 1 || token->dim[0] < 1 || (!wide && strcmp(token->dtype, "I32") != 0))
        return wg_fail(err, WG_EFORMAT, "%s: tensor 'token_ids' is no list of tokens: expected (n) of I64 or I32", path);
    if (hidden->n_dims != 3 || hidden->type < 0 || hidden->bytes == 0 || hidden->dim[1] > WG_DUMP_TAPS)
        return wg_fail(err, WG_EFORMAT,
                       "%s: tensor 'hidden_states' is %s of %d dimensions: expected (tokens, layers up to %d, "
                       "width) of F32, F16 or BF16",
                       path, hidden->dtype, hidden->n_dims, WG_DUMP_TAPS);
    if (hidden->dim[0] != token->dim[0])
        return wg_fail(err, WG_EFORMAT, "%s: hidden states of %" PRId64 " tokens, and %" PRId64 " tokens; " AGAIN, path,
                       hidden->dim[0], token->dim[0]);
    *out = (wg_dump_sample){ .n = token->dim[0],
                             .token = token->data,
                             .hidden = hidden->data,
                             .token_bytes = wide ? 8 : 4,
                             .type = hidden->type,
                             .taps = (int)hidden->dim[1],
                             .dim = hidden->dim[2] };
    return check_tokens(out, path, err);
}

wg_status wg_dump_read_sample(const char *path, const void *bytes, size_t n, wg_dump_sample *out, wg_error *err)
{
    wg_safetensors s;
    WG_TRY(wg_safetensors_read(&s, path, bytes, n, err));
    const wg_status status = place_tensors(&s, path, out, err);
    wg_safetensors_free(&s);
    return status;
}

int32_t wg_dump_token(const wg_dump_sample *s, int64_t i)
{
    int32_t v;
    memcpy(&v, s->token + i * s->token_bytes, sizeof v); /* little-endian: of eight bytes the lower four */
    return v;
}

void wg_dump_row(const wg_dump_sample *s, int64_t i, int t, float *out)
{
    enum { SOME = 256 };
    float aligned[SOME];
    const wg_type_info *type = wg_type_get(s->type);
    const uint8_t *row = t < 0 ? s->last : s->hidden;
    const int64_t first = t < 0 ? i * s->dim : (i * s->taps + t) * s->dim;
    for (int64_t at = 0, n; at < s->dim; at += n) {
        n = s->dim - at < SOME ? s->dim - at : SOME;
        memcpy(aligned, row + wg_type_size(type, (size_t)(first + at)), wg_type_size(type, (size_t)n));
        wg_row_to_f32(s->type, aligned, out + at, (size_t)n);
    }
}

/* ---- a cache */

static wg_status integer(const wg_json *doc, const char *key, int64_t least, int64_t most, int64_t *out, wg_error *err)
{
    const json_t *v = json_object_get(wg_json_root(doc), key);
    *out = json_integer_value(v);
    if (json_is_integer(v) && *out >= least && *out <= most) return WG_OK;
    return wg_fail(err, WG_EFORMAT, "%s: key '%s' is no integer from %" PRId64 " to %" PRId64 "; " AGAIN, wg_json_name(doc),
                   key, least, most);
}

static wg_status word(const wg_json *doc, const char *key, const char *expected, wg_error *err)
{
    const char *v = json_string_value(json_object_get(wg_json_root(doc), key));
    if (v && strcmp(v, expected) == 0) return WG_OK;
    return wg_fail(err, WG_EUNSUPPORTED, "%s: key '%s' is '%.40s', which is not read: expected %s", wg_json_name(doc), key,
                   v ? v : "", expected);
}

static wg_status read_layers(wg_dump_cache *c, const wg_json *doc, wg_error *err)
{
    const json_t *list = json_object_get(wg_json_root(doc), "target_layer_ids"), *v;
    const size_t n = json_array_size(list);
    size_t i;
    bool fine = n >= 1 && n <= WG_DUMP_TAPS;
    json_array_foreach(list, i, v) {
        const int64_t id = json_integer_value(v);
        fine = fine && json_is_integer(v) && id >= -1 && id < INT32_MAX - 1 && (i == 0 || id >= c->tap[i - 1]);
        if (!fine) break;
        c->tap[i] = (int)id + 1;
    }
    c->taps = (int)n;
    if (fine) return WG_OK;
    return wg_fail(err, WG_EFORMAT, "%s: key 'target_layer_ids' is no ascending list of 1 to %d layers from -1 on; " AGAIN,
                   wg_json_name(doc), WG_DUMP_TAPS);
}

static wg_status read_shards(wg_dump_cache *c, const wg_json *doc, wg_error *err)
{
    const json_t *list = json_object_get(wg_json_root(doc), "shards"), *v;
    int64_t n;
    size_t i;
    WG_TRY(integer(doc, "num_shards", 0, 1 << 20, &n, err));
    if (!json_is_array(list) || json_array_size(list) != (size_t)n)
        return wg_fail(err, WG_EFORMAT, "%s: %zu shards are listed, num_shards is %" PRId64 "; " AGAIN, wg_json_name(doc),
                       json_array_size(list), n);
    c->shard = wg_calloc((size_t)n, sizeof *c->shard);
    if (!c->shard) return wg_nomem(err, (size_t)n * sizeof *c->shard, "a list of shards");
    json_array_foreach(list, i, v) {
        const char *name = json_string_value(json_object_get(v, "file_name"));
        const json_t *id = json_object_get(v, "shard_id");
        if (!name || !*name || strchr(name, '/') || !json_is_integer(id) || json_integer_value(id) != (json_int_t)i)
            return wg_fail(err, WG_EFORMAT,
                           "%s: shard %zu: expected the 'shard_id' %zu and the 'file_name' of a file in the folder; " AGAIN,
                           wg_json_name(doc), i, i);
        if (!(c->shard[i] = wg_strdup(name))) return wg_nomem(err, strlen(name), "the name of a shard");
        c->shards++;
    }
    return WG_OK;
}

static wg_status read_manifest(wg_dump_cache *c, const wg_json *doc, wg_error *err)
{
    int64_t ignored;
    if (!json_is_object(wg_json_root(doc))) return wg_fail(err, WG_EFORMAT, "%s: is no JSON object; " AGAIN, wg_json_name(doc));
    WG_TRY(integer(doc, "version", 2, 2, &ignored, err));
    WG_TRY(integer(doc, "index_record_size", WG_DUMP_RECORD, WG_DUMP_RECORD, &ignored, err));
    WG_TRY(integer(doc, "num_samples", 0, INT32_MAX, &c->samples, err));
    WG_TRY(integer(doc, "hidden_size", 1, 1 << 24, &c->dim, err));
    WG_TRY(word(doc, "hidden_dtype", "bfloat16", err));
    WG_TRY(word(doc, "token_dtype", "int32", err));
    WG_TRY(word(doc, "mask_dtype", "uint8", err));
    WG_TRY(read_layers(c, doc, err));
    return read_shards(c, doc, err);
}

wg_status wg_dump_read_manifest(wg_dump_cache *out, const wg_json *doc, wg_error *err)
{
    *out = (wg_dump_cache){ 0 };
    const wg_status s = read_manifest(out, doc, err);
    if (s != WG_OK) wg_dump_cache_free(out);
    return s;
}

void wg_dump_cache_free(wg_dump_cache *c)
{
    for (int i = 0; i < c->shards; i++) wg_free(c->shard[i]);
    wg_free(c->shard);
    *c = (wg_dump_cache){ 0 };
}

wg_status wg_dump_read_record(const wg_dump_cache *c, const char *path, const void *index, size_t n, int64_t i,
                              wg_dump_record *out, wg_error *err)
{
    uint64_t sample;
    uint32_t shard_and_n[2];
    if (n != (size_t)c->samples * WG_DUMP_RECORD)
        return wg_fail(err, WG_EFORMAT, "%s: %zu bytes are not the records of %" PRId64 " samples, of %d bytes each; " AGAIN,
                       path, n, c->samples, WG_DUMP_RECORD);
    const char *at = (const char *)index + i * WG_DUMP_RECORD;
    memcpy(&sample, at, sizeof sample);
    memcpy(shard_and_n, at + 8, sizeof shard_and_n);
    memcpy(out->at, at + 16, sizeof out->at);
    if (sample != (uint64_t)i || shard_and_n[0] >= (uint32_t)c->shards || shard_and_n[1] < 1)
        return wg_fail(err, WG_EFORMAT,
                       "%s: record %" PRId64 " is of sample %" PRIu64 " with %u tokens in shard %u of %d; " AGAIN, path, i,
                       sample, (unsigned)shard_and_n[1], (unsigned)shard_and_n[0], c->shards);
    out->shard = (int)shard_and_n[0];
    out->n = shard_and_n[1];
    return WG_OK;
}

wg_status wg_dump_place(const wg_dump_cache *c, const wg_dump_record *r, const char *path, const void *shard, size_t n,
                        wg_dump_sample *out, wg_error *err)
{
    static const char *const name[] = { "input_ids", "attention_mask", "loss_mask", "target_hidden_states",
                                        "target_last_hidden_states" };
    const size_t each[] = { 4, 1, 1, 2 * (size_t)c->taps * (size_t)c->dim, 2 * (size_t)c->dim }; /* bytes of a token */
    const uint8_t *base = shard;
    for (int i = 0; i < 5; i++) {
        size_t bytes, end;
        if (!wg_size_mul((size_t)r->n, each[i], &bytes) || !wg_size_add((size_t)r->at[i], bytes, &end) || end > n)
            return wg_fail(err, WG_EFORMAT,
                           "%s: %s of %" PRId64 " tokens at byte %" PRIu64 " ends behind the file of %zu; " AGAIN, path,
                           name[i], r->n, r->at[i], n);
    }
    *out = (wg_dump_sample){ .n = r->n,
                             .token = base + r->at[0],
                             .loss = base + r->at[2],
                             .hidden = base + r->at[3],
                             .last = base + r->at[4],
                             .token_bytes = 4,
                             .type = WG_BF16,
                             .taps = c->taps,
                             .dim = c->dim };
    return check_tokens(out, path, err);
}

/* ---- files */

typedef struct mapped {
    char *path;
    void *base;
    size_t bytes;
} mapped;

struct wg_dump {
    char *folder; /* NULL: a file alone */
    wg_dump_layout layout;
    char **file; /* (samples) names of files of samples; NULL: a cache */
    int64_t files;
    size_t room; /* of `file` */
    wg_dump_cache cache;
    mapped index, now; /* now: the file of the last sample */
};

static void unmap(mapped *m)
{
    if (m->base) munmap(m->base, m->bytes);
    wg_free(m->path);
    *m = (mapped){ 0 };
}

/* Maps a file of the folder (NULL: of its own path), if it is not there already. */
static wg_status map(mapped *m, const char *folder, const char *name, wg_error *err)
{
    const size_t n = strlen(name) + (folder ? strlen(folder) : 0) + 2;
    char *path = wg_alloc(n, 1);
    if (!path) return wg_nomem(err, n, "a path");
    snprintf(path, n, "%s%s%s", folder ? folder : "", folder ? "/" : "", name);
    if (m->path && strcmp(m->path, path) == 0) {
        wg_free(path);
        return WG_OK;
    }
    unmap(m);
    m->path = path;
    return wg_map_file(path, "is no file with hidden states: it is empty, or a folder", &m->base, &m->bytes, err);
}

/* By the first number in the name, then by the name. */
static int by_number(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    const char *nx = x + strcspn(x, "0123456789"), *ny = y + strcspn(y, "0123456789");
    const unsigned long long i = strtoull(nx, NULL, 10), k = strtoull(ny, NULL, 10);
    return i != k ? (i > k) - (i < k) : strcmp(x, y);
}

static wg_status list_files(wg_dump *d, wg_error *err)
{
    static const char end[] = ".safetensors";
    DIR *dir = opendir(d->folder);
    wg_status s = dir ? WG_OK : wg_fail(err, WG_EIO, "%s: cannot open: %s", d->folder, strerror(errno));
    for (struct dirent *e; s == WG_OK && (e = readdir(dir));) {
        const size_t n = strlen(e->d_name);
        if (n < sizeof end || strcmp(e->d_name + n - (sizeof end - 1), end) != 0) continue;
        s = wg_grow((void **)&d->file, &d->room, (size_t)d->files + 1, sizeof *d->file, "a list of files", err);
        if (s == WG_OK && !(d->file[d->files++] = wg_strdup(e->d_name))) s = wg_nomem(err, n, "a list of files");
    }
    if (dir) closedir(dir);
    if (s == WG_OK && d->files == 0)
        s = wg_fail(err, WG_ENOENT,
                    "%s: has neither manifest.json (a DeepSpec cache) nor .safetensors files (vLLM's hidden states)",
                    d->folder);
    if (d->files > 1) qsort(d->file, (size_t)d->files, sizeof *d->file, by_number);
    return s;
}

static wg_status open_cache(wg_dump *d, const char *manifest, wg_error *err)
{
    wg_json *doc;
    wg_dump_record ignored;
    d->layout = WG_DUMP_DEEPSPEC;
    WG_TRY(wg_json_open_foreign(&doc, manifest, err));
    const wg_status s = wg_dump_read_manifest(&d->cache, doc, err);
    wg_json_close(doc);
    WG_TRY(s);
    if (d->cache.samples == 0) return WG_OK;
    WG_TRY(map(&d->index, d->folder, "samples.idx", err));
    return wg_dump_read_record(&d->cache, d->index.path, d->index.base, d->index.bytes, 0, &ignored, err);
}

static wg_status open_folder(wg_dump *d, wg_error *err)
{
    const size_t n = strlen(d->folder) + sizeof "/manifest.json";
    char *manifest = wg_alloc(n, 1);
    if (!manifest) return wg_nomem(err, n, "a path");
    snprintf(manifest, n, "%s/manifest.json", d->folder);
    const wg_status s = access(manifest, F_OK) == 0 ? open_cache(d, manifest, err) : list_files(d, err);
    wg_free(manifest);
    return s;
}

wg_status wg_dump_open(wg_dump **out, const char *path, wg_error *err)
{
    struct stat st;
    wg_dump_sample first;
    wg_dump *d = wg_calloc(1, sizeof *d);
    char *name = d ? wg_strdup(path) : NULL;
    if (!name) {
        wg_free(d);
        return wg_nomem(err, sizeof *d, "a dump of hidden states");
    }
    wg_status s;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        d->folder = name;
        s = open_folder(d, err);
    } else {
        d->file = wg_calloc(1, sizeof *d->file);
        if (d->file) d->file[d->files++] = name;
        else wg_free(name);
        s = d->file ? WG_OK : wg_nomem(err, sizeof *d->file, "a list of files");
    }
    if (s == WG_OK && d->files > 0) s = wg_dump_sample_at(d, 0, &first, err);
    if (s == WG_OK) *out = d;
    else wg_dump_close(d);
    return s;
}

void wg_dump_close(wg_dump *d)
{
    if (!d) return;
    for (int64_t i = 0; i < d->files; i++) wg_free(d->file[i]);
    wg_free(d->file);
    wg_dump_cache_free(&d->cache);
    unmap(&d->index);
    unmap(&d->now);
    wg_free(d->folder);
    wg_free(d);
}

wg_dump_layout wg_dump_layout_of(const wg_dump *d) { return d->layout; }
int64_t wg_dump_samples(const wg_dump *d) { return d->layout == WG_DUMP_VLLM ? d->files : d->cache.samples; }

int wg_dump_taps(const wg_dump *d, int tap[WG_DUMP_TAPS])
{
    memcpy(tap, d->cache.tap, sizeof d->cache.tap);
    return d->cache.taps;
}

wg_status wg_dump_sample_at(wg_dump *d, int64_t i, wg_dump_sample *out, wg_error *err)
{
    wg_dump_record r = { 0 };
    wg_assert(i >= 0 && i < wg_dump_samples(d));
    if (d->layout == WG_DUMP_VLLM) {
        WG_TRY(map(&d->now, d->folder, d->file[i], err));
        return wg_dump_read_sample(d->now.path, d->now.base, d->now.bytes, out, err);
    }
    WG_TRY(wg_dump_read_record(&d->cache, d->index.path, d->index.base, d->index.bytes, i, &r, err));
    WG_TRY(map(&d->now, d->folder, d->cache.shard[r.shard], err));
    return wg_dump_place(&d->cache, &r, d->now.path, d->now.base, d->now.bytes, out, err);
}
