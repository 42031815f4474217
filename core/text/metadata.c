/* SPDX-License-Identifier: MIT
 * Getters of metadata. Each failure names the key, the value found, the expected one, and how to repair the file. */
#include "core/text/metadata.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"

static int index_of(const wg_weights *w, const char *key)
{
    for (int i = 0; i < wg_meta_count(w); i++)
        if (strcmp(wg_meta_key(w, i), key) == 0) return i;
    return -1;
}

bool wg_key_present(const wg_weights *w, const char *key) { return index_of(w, key) >= 0; }

static const char *const one[] = {
    [WG_META_INT] = "an integer",  [WG_META_FLOAT] = "a float",  [WG_META_BOOL] = "a bool",
    [WG_META_STRING] = "a string", [WG_META_ARRAY] = "an array",
};
static const char *const many[] = {
    [WG_META_INT] = "an array of integers",   [WG_META_FLOAT] = "an array of floats", [WG_META_BOOL] = "an array of bools",
    [WG_META_STRING] = "an array of strings", [WG_META_ARRAY] = "an array of arrays",
};

static wg_status wrong(const wg_weights *w, const char *key, const char *expected, wg_error *err)
{
    const int i = index_of(w, key);
    wg_meta_kind of;
    const char *is = "missing";
    if (i >= 0) is = wg_meta_array(w, key, &of) >= 0 ? many[of] : one[wg_meta_kind_of(w, i)];
    return wg_fail(err, WG_EMODEL, "%s: %s is %s, expected %s; convert the model again, with its tokenizer", wg_weights_path(w),
                   key, is, expected);
}

wg_status wg_key_string(const wg_weights *w, const char *key, wg_text *out, wg_error *err)
{
    return wg_meta_string(w, key, out) ? WG_OK : wrong(w, key, one[WG_META_STRING], err);
}

wg_status wg_key_array(const wg_weights *w, const char *key, wg_meta_kind of, int64_t *n, wg_error *err)
{
    wg_meta_kind is;
    const int64_t len = wg_meta_array(w, key, &is);
    if (len < 0 || is != of) return wrong(w, key, many[of], err);
    *n = len;
    return WG_OK;
}

wg_status wg_key_bool(const wg_weights *w, const char *key, bool *out, wg_error *err)
{
    if (wg_meta_bool(w, key, out) || !wg_key_present(w, key)) return WG_OK;
    return wrong(w, key, one[WG_META_BOOL], err);
}

wg_status wg_key_id(const wg_weights *w, const char *key, int n, int32_t *out, wg_error *err)
{
    int64_t v;
    if (!wg_meta_int(w, key, &v)) return wg_key_present(w, key) ? wrong(w, key, one[WG_META_INT], err) : WG_OK;
    if (v < 0 || v >= n)
        return wg_fail(err, WG_EMODEL, "%s: %s is %" PRId64 ", expected the id of a token, 0..%d; correct the key",
                       wg_weights_path(w), key, v, n - 1);
    *out = (int32_t)v;
    return WG_OK;
}

wg_status wg_key_words(const wg_weights *w, const char *key, wg_text **out, size_t *n, wg_error *err)
{
    int64_t count = 0;
    size_t bytes = 0;
    *out = NULL;
    *n = 0;
    if (!wg_key_present(w, key)) return WG_OK;
    WG_TRY(wg_key_array(w, key, WG_META_STRING, &count, err));
    wg_text word = { 0 };
    for (int64_t i = 0; i < count && wg_meta_array_string(w, key, i, &word); i++) bytes += word.n;
    bytes += (size_t)count * sizeof **out;
    *out = wg_alloc(bytes, 1);
    if (!*out) return wg_nomem(err, bytes, "a list of words");
    char *at = (char *)(*out + count);
    for (int64_t i = 0; i < count; i++, at += word.n) {
        const bool there = wg_meta_array_string(w, key, i, &word);
        wg_assert(there); /* counted, and strings */
        memcpy(at, word.s, word.n);
        (*out)[i] = (wg_text){ at, word.n };
    }
    *n = (size_t)count;
    return WG_OK;
}

wg_status wg_key_ids(const wg_weights *w, const char *key, int n, int32_t *out, int most, int *n_out, wg_error *err)
{
    int64_t count, v = -1;
    *n_out = 0;
    if (!wg_key_present(w, key)) return WG_OK;
    WG_TRY(wg_key_array(w, key, WG_META_INT, &count, err));
    if (count > most)
        return wg_fail(err, WG_EUNSUPPORTED, "%s: %s has %" PRId64 " tokens, at most %d are implemented", wg_weights_path(w),
                       key, count, most);
    for (int64_t i = 0; i < count; i++) {
        if (!wg_meta_array_int(w, key, i, &v) || v < 0 || v >= n)
            return wg_fail(err, WG_EMODEL,
                           "%s: %s[%" PRId64 "] is %" PRId64 ", expected the id of a token, 0..%d; correct the key",
                           wg_weights_path(w), key, i, v, n - 1);
        out[i] = (int32_t)v;
    }
    *n_out = (int)count;
    return WG_OK;
}
