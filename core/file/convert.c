/* SPDX-License-Identifier: MIT
 * Conversion: metadata first, then the tensors in their order, row by row through f32. */
#include "core/file/convert.h"

#include <string.h>

#include "core/base/read_file.h"
#include "core/base/log.h"
#include "core/base/mem.h"
#include "core/file/format.h"
#include "core/file/gguf_write.h"

enum { TOKENIZER_MOST = 64 << 20 };

typedef struct job {
    const wg_weights *in;
    float *row; /* the longest row */
    size_t row_room;
} job;

/* Weight matrices are what a forward pass multiplies with; learned positions are added, and routers choose, so these keep their
 * precision. */
static bool is_matrix(const wg_tensor *t)
{
    const size_t n = strlen(t->name);
    const bool weight = n > 7 && strcmp(t->name + n - 7, ".weight") == 0;
    return weight && t->n_dims >= 2 && t->dim[1] > 1 && strcmp(t->name, "position_embd.weight") != 0 &&
           !strstr(t->name, "ffn_gate_inp");
}

/* The type of a tensor in the output. */
static int target_type(const wg_tensor *t, int type)
{
    if (type < 0 || !is_matrix(t)) return t->type;
    const wg_type_info *info = wg_type_get(type), *from = wg_type_get(t->type);
    if (t->dim[0] % info->block == 0) return type;
    const int keep = from->block == 1 ? t->type : WG_F16;
    wg_log(WG_LOG_WARN, "tensor '%s' has rows of %lld elements, not a multiple of %d: it becomes %s instead of %s", t->name,
           (long long)t->dim[0], info->block, wg_type_name(keep), info->name);
    return keep;
}

/* Checks before hours of work that every tensor can be converted. */
static wg_status check_types(const wg_weights *in, int type, wg_error *err)
{
    for (int i = 0; i < wg_weights_count(in); i++) {
        const wg_tensor *t = wg_weights_at(in, i);
        float none;
        if (type < 0 || !is_matrix(t) || t->type == type || wg_row_to_f32(t->type, t->data, &none, 0) == 0) continue;
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%s: tensor '%s' is %s, which cannot be converted to %s; start from an f32, f16, bf16 or q8_0 file",
                       wg_weights_path(in), t->name, wg_type_name(t->type), wg_type_name(type));
    }
    return WG_OK;
}

static wg_status fill(void *user, const wg_tensor *t, void *dst, wg_error *err)
{
    job *j = user;
    const wg_tensor *from = wg_weights_find(j->in, t->name);
    WG_TRY(wg_weights_need(j->in, from, err));
    if (from->type == t->type) {
        memcpy(dst, from->data, t->bytes);
    } else {
        const size_t k = (size_t)t->dim[0], rows = t->bytes / wg_type_size(wg_type_get(t->type), k);
        const size_t in = wg_type_size(wg_type_get(from->type), k), out = t->bytes / rows;
        for (size_t r = 0; r < rows; r++) {
            const int bad = wg_row_to_f32(from->type, (const char *)from->data + r * in, j->row, k) |
                            wg_row_from_f32(t->type, j->row, (char *)dst + r * out, k);
            wg_assert(!bad); /* check_types */
        }
    }
    wg_weights_release(j->in, from);
    return WG_OK;
}

static bool starts(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }

static wg_status set_metadata(wg_gguf_writer *g, const wg_weights *in, const char *tokenizer, int type, wg_error *err)
{
    for (int i = 0; i < wg_meta_count(in); i++) {
        const char *key = wg_meta_key(in, i);
        if (type >= 0 && (strcmp(key, "general.file_type") == 0 || strcmp(key, "general.quantization_version") == 0)) continue;
        if (tokenizer && starts(key, "tokenizer.")) continue;
        wg_gguf_copy_meta(g, in, i);
    }
    if (type >= 0) wg_gguf_set_u32(g, "general.file_type", wg_gguf_file_type(type));
    if (type >= 0 && wg_type_get(type)->block > 1) wg_gguf_set_u32(g, "general.quantization_version", 2);
    if (!tokenizer) {
        wg_text kind;
        if (!wg_meta_string(in, "tokenizer.ggml.model", &kind))
            wg_log(WG_LOG_WARN, "%s has no tokenizer; the result works with token ids only (give one with --tokenizer)",
                   wg_weights_path(in));
        return WG_OK;
    }
    const wg_tensor *embedding = wg_weights_find(in, "token_embd.weight");
    if (!embedding)
        return wg_fail(err, WG_EMODEL,
                       "%s: there is no tensor 'token_embd.weight' to take the vocabulary size from; "
                       "leave out --tokenizer",
                       wg_weights_path(in));
    char *bytes;
    size_t n;
    WG_TRY(wg_read_file(tokenizer, TOKENIZER_MOST, &bytes, &n, err));
    const wg_status s = wg_llama2c_tokenizer(g, tokenizer, bytes, n, embedding->dim[1], err);
    wg_free(bytes);
    return s;
}

static wg_status write(wg_gguf_writer *g, job *j, const char *tokenizer, int type, wg_error *err)
{
    const wg_weights *in = j->in;
    wg_status s = set_metadata(g, in, tokenizer, type, err);
    for (int i = 0; i < wg_weights_count(in) && s == WG_OK; i++) {
        wg_tensor t = *wg_weights_at(in, i);
        t.type = target_type(&t, type);
        if (t.type != wg_weights_at(in, i)->type && (size_t)t.dim[0] > j->row_room) j->row_room = (size_t)t.dim[0];
        wg_gguf_add(g, &t, fill, j);
    }
    if (s == WG_OK && j->row_room > 0) {
        j->row = wg_alloc(j->row_room, sizeof *j->row);
        if (!j->row) s = wg_nomem(err, j->row_room * sizeof *j->row, "a row of weights");
    }
    if (s != WG_OK) wg_gguf_writer_abort(g);
    else s = wg_gguf_writer_finish(g, err);
    wg_free(j->row);
    return s;
}

wg_status wg_convert(const char *in, const char *tokenizer, const char *out, int type, wg_error *err)
{
    if (type >= 0 && !(wg_type_get(type) && wg_type_get(type)->writable))
        return wg_fail(err, WG_EINVAL, "cannot convert to %s; expected " WG_WRITABLE_TYPES, wg_type_name(type));
    job j = { 0 };
    wg_weights *w;
    wg_gguf_writer *g;
    WG_TRY(wg_weights_open(&w, in, err));
    j.in = w;
    wg_status s = check_types(w, type, err);
    if (s == WG_OK) s = wg_gguf_writer_open(&g, out, err);
    if (s == WG_OK) s = write(g, &j, tokenizer, type, err);
    wg_weights_close(w);
    return s;
}
