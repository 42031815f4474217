/* SPDX-License-Identifier: MIT
 * Writing a datastore. The suffix array is sorted by libdivsufsort over bytes: every place becomes two or three bytes, id + 1
 * with the most significant first, so that bytes order as ids do, and only suffixes that begin at a place are kept. */
#include <divsufsort.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/save.h"
#include "draft/lookup/datastore.h"
#include "draft/lookup/datastore_file.h"

static wg_status check(const int32_t *token, size_t n, int vocab, size_t *suffixes, wg_error *err)
{
    *suffixes = 0;
    for (size_t i = 0; i < n; i++) {
        if (token[i] < -1 || token[i] >= vocab)
            return wg_fail(err, WG_EINVAL, "datastore: token %zu is %d; the vocabulary is 0..%d", i, (int)token[i], vocab - 1);
        *suffixes += token[i] >= 0;
    }
    if (*suffixes == 0) return wg_fail(err, WG_EINVAL, "datastore: the texts have no tokens; expected at least one");
    return WG_OK;
}

/* place[i]: where the ith suffix begins. */
static wg_status sort(const int32_t *token, size_t n, int width, uint32_t *place, wg_error *err)
{
    const size_t bytes = n * (size_t)width;
    uint8_t *text = wg_alloc(bytes, 1);
    saidx_t *order = wg_alloc(bytes, sizeof *order);
    wg_status s = WG_OK;
    if (!text || !order) s = wg_nomem(err, bytes * (1 + sizeof *order), "sorting a datastore; give it less text");
    for (size_t i = 0, to = 0; !s && i < n; i++)
        for (int k = width - 1; k >= 0; k--) text[to++] = (uint8_t)((uint32_t)(token[i] + 1) >> 8 * k);
    if (!s && divsufsort(text, order, (saidx_t)bytes)) s = wg_nomem(err, bytes, "sorting a datastore; give it less text");
    for (size_t i = 0, to = 0; !s && i < bytes; i++)
        if (order[i] % width == 0 && token[order[i] / width] >= 0) place[to++] = (uint32_t)(order[i] / width);
    wg_free(text);
    wg_free(order);
    return s;
}

static wg_status save(const char *path, const header *h, const int32_t *token, const uint32_t *place, wg_error *err)
{
    wg_save *f;
    WG_TRY(wg_save_open(&f, path, err));
    wg_status s = wg_save_write(f, h, sizeof *h, err);
    if (!s) s = wg_save_write(f, token, h->tokens * sizeof *token, err);
    if (!s) s = wg_save_write(f, place, h->suffixes * sizeof *place, err);
    if (!s) return wg_save_commit(f, err);
    wg_save_abort(f);
    return s;
}

wg_status wg_datastore_write(const char *path, const wg_tokenizer *t, const int32_t *token, size_t n, wg_error *err)
{
    const int vocab = wg_tokenizer_size(t), width = vocab < 1 << 16 ? 2 : 3;
    char digest[WG_SHA256_HEX];
    size_t suffixes;
    if (n > (size_t)INT32_MAX / (size_t)width)
        return wg_fail(err, WG_EINVAL, "datastore: %zu tokens; at most %d fit; give it less text", n, INT32_MAX / width);
    WG_TRY(check(token, n, vocab, &suffixes, err));
    uint32_t *place = wg_alloc(suffixes, sizeof *place);
    if (!place) return wg_nomem(err, suffixes * sizeof *place, "a suffix array");
    wg_status s = sort(token, n, width, place, err);
    header h = {
        .magic = DATASTORE_MAGIC, .version = DATASTORE_VERSION, .vocab = (uint32_t)vocab, .tokens = n, .suffixes = suffixes
    };
    wg_tokenizer_digest(t, digest);
    memcpy(h.digest, digest, sizeof h.digest);
    h.check = wg_hash64(WG_HASH_START, &h, offsetof(header, check));
    if (!s) s = save(path, &h, token, place, err);
    wg_free(place);
    return s;
}
