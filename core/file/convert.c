/* SPDX-License-Identifier: MIT
 * Conversion: metadata first, then the tensors in their order. */
#include "core/file/convert.h"

#include <string.h>

#include "core/base/log.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/file/format.h"
#include "core/file/gguf_write.h"
#include "core/file/quantize.h"

enum { TOKENIZER_MOST = 64 << 20 };

static wg_status fill(void *user, const wg_tensor *t, void *dst, wg_error *err)
{
    const wg_weights *in = user;
    const wg_tensor *from = wg_weights_find(in, t->name);
    WG_TRY(wg_weights_need(in, from, err));
    memcpy(dst, from->data, t->bytes);
    wg_weights_release(in, from);
    return WG_OK;
}

static bool starts(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }

static wg_status set_metadata(wg_gguf_writer *g, const wg_weights *in, const char *tokenizer, wg_error *err)
{
    for (int i = 0; i < wg_meta_count(in); i++)
        if (!tokenizer || !starts(wg_meta_key(in, i), "tokenizer.")) wg_gguf_copy_meta(g, in, i);
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

wg_status wg_convert_weights(const wg_weights *in, const char *tokenizer, const char *out, wg_error *err)
{
    wg_gguf_writer *g;
    WG_TRY(wg_gguf_writer_open(&g, out, err));
    const wg_status s = set_metadata(g, in, tokenizer, err);
    for (int i = 0; i < wg_weights_count(in) && s == WG_OK; i++)
        wg_gguf_add(g, wg_weights_at(in, i), fill, (void *)(uintptr_t)in);
    if (s == WG_OK) return wg_gguf_writer_finish(g, err);
    wg_gguf_writer_abort(g);
    return s;
}

wg_status wg_convert(const char *in, const char *tokenizer, const char *out, int type, wg_error *err)
{
    if (type >= 0 && !(wg_type_get(type) && wg_type_get(type)->writable))
        return wg_fail(err, WG_EINVAL, "cannot convert to %s; expected " WG_WRITABLE_TYPES, wg_type_name(type));
    wg_weights *w;
    WG_TRY(wg_weights_open(&w, in, err));
    if (type >= 0) WG_TRY(wg_quantize_open(&w, w, &(wg_quantize){ .type = type }, NULL, err));
    const wg_status s = wg_convert_weights(w, tokenizer, out, err);
    wg_weights_close(w);
    return s;
}
