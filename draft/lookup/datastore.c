/* SPDX-License-Identifier: MIT
 * Opening a datastore, and lookups in it. */
#include "draft/lookup/datastore.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "draft/lookup/datastore_file.h"

/* ---- the file */

#define BUILD "wager datastore build --model MODEL --out FILE TEXT..."
static const char again[] = "build it again with: " BUILD, make[] = "make one with: " BUILD;

static wg_status check_size(const header *h, const char *name, size_t n, wg_error *err)
{
    const uint64_t ids_end = sizeof *h + 4 * h->tokens, end = ids_end + 4 * h->suffixes;
    if (n == end) return WG_OK;
    if (n > end)
        return wg_fail(err, WG_EFORMAT, "%s: %zu bytes follow the suffix array; expected %llu bytes in all; %s", name,
                       n - (size_t)end, (unsigned long long)end, again);
    return wg_fail(err, WG_EFORMAT, "%s: the file ends in its %s: it has %zu bytes, its header states %llu; %s", name,
                   n < ids_end ? "tokens" : "suffix array", n, (unsigned long long)end, again);
}

wg_status wg_datastore_view(wg_datastore *out, const char *name, const void *bytes, size_t n, wg_error *err)
{
    header h;
    if (n < sizeof h.magic || memcmp(bytes, DATASTORE_MAGIC, sizeof h.magic) != 0)
        return wg_fail(err, WG_EFORMAT, "%s: not a datastore (it does not begin with WAGERDS); %s", name, make);
    if (n < sizeof h)
        return wg_fail(err, WG_EFORMAT, "%s: the file ends in its header: it has %zu bytes, a header has %zu; %s", name, n,
                       sizeof h, again);
    memcpy(&h, bytes, sizeof h);
    if (h.version != DATASTORE_VERSION)
        return wg_fail(err, WG_EUNSUPPORTED, "%s: datastore version %u; this program reads version %d; %s", name,
                       (unsigned)h.version, DATASTORE_VERSION, again);
    if (h.check != wg_hash64(WG_HASH_START, &h, offsetof(header, check)))
        return wg_fail(err, WG_EFORMAT, "%s: the header is damaged (its checksum differs); %s", name, again);
    if (h.vocab < 1 || h.vocab > DATASTORE_VOCAB_MAX || h.tokens > INT32_MAX || h.suffixes < 1 || h.suffixes > h.tokens)
        return wg_fail(err, WG_EFORMAT, "%s: %llu suffixes of %llu tokens, vocabulary %u: not possible; %s", name,
                       (unsigned long long)h.suffixes, (unsigned long long)h.tokens, (unsigned)h.vocab, again);
    WG_TRY(check_size(&h, name, n, err));
    *out = (wg_datastore){ .tokens = (int64_t)h.tokens, .suffixes = (int64_t)h.suffixes, .vocab = (int)h.vocab };
    out->token = (const int32_t *)((const char *)bytes + sizeof h);
    out->suffix = (const uint32_t *)(out->token + h.tokens);
    memcpy(out->digest, h.digest, sizeof h.digest);
    return WG_OK;
}

static wg_status map_file(const char *path, void **map, size_t *n, wg_error *err)
{
    struct stat st;
    *map = NULL;
    *n = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return wg_fail(err, errno == ENOENT ? WG_ENOENT : WG_EIO, "%s: cannot open the datastore: %s; %s", path,
                       strerror(errno), make);
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            *map = p;
            *n = (size_t)st.st_size;
        }
    }
    close(fd);
    return WG_OK; /* a file too short for a header is refused below */
}

static wg_status check_tokenizer(const wg_datastore *d, const char *path, const char *drafter, const wg_env *env, wg_error *err)
{
    const char *target = env->target_name ? env->target_name : "the target";
    char digest[WG_SHA256_HEX];
    if (!env->tokenizer)
        return wg_fail(err, WG_EMODEL, "drafter %s: %s has no tokenizer, so it is unknown whether %s was built for it", drafter,
                       target, path);
    wg_tokenizer_digest(env->tokenizer, digest);
    if (!strcmp(digest, d->digest)) return WG_OK;
    return wg_fail(err, WG_EVOCAB,
                   "drafter %s: %s was built for another tokenizer (digest %.12s, that of %s is %.12s), so its ids mean other "
                   "texts; build it again with: wager datastore build --model %s --out FILE TEXT...",
                   drafter, path, d->digest, target, digest, target);
}

wg_status wg_datastore_open(wg_datastore **out, const char *path, const char *drafter, const wg_env *env, wg_error *err)
{
    wg_datastore *d = wg_calloc(1, sizeof *d);
    void *map;
    size_t n;
    if (!d) return wg_nomem(err, sizeof *d, "a datastore");
    wg_status s = map_file(path, &map, &n, err);
    if (!s) s = wg_datastore_view(d, path, map, n, err);
    d->map = map;
    d->map_bytes = n;
    if (!s) s = check_tokenizer(d, path, drafter, env, err);
    if (s) wg_datastore_close(d);
    else *out = d;
    return s;
}

void wg_datastore_close(wg_datastore *d)
{
    if (!d) return;
    if (d->map) munmap(d->map, d->map_bytes);
    wg_free(d);
}

/* ---- looking up */

/* Compares the suffix at `at` with the key, over the key's length: -1, 0 or 1. */
static int compare(const wg_datastore *d, uint32_t at, const int32_t *key, int n)
{
    for (int i = 0; i < n; i++) {
        const int32_t x = wg_datastore_token(d, (int64_t)at + i);
        if (x != key[i]) return x < key[i] ? -1 : 1;
    }
    return 0;
}

/* The first suffix that is not before the key (side 0) or is after it (side 1). */
static int64_t bound(const wg_datastore *d, const int32_t *key, int n, int side)
{
    int64_t low = 0, high = d->suffixes;
    while (low < high) {
        const int64_t mid = low + (high - low) / 2;
        if (compare(d, d->suffix[mid], key, n) < side) low = mid + 1;
        else high = mid;
    }
    return low;
}

void wg_datastore_find(const wg_datastore *d, const int32_t *key, int n, int64_t *low, int64_t *high)
{
    *low = bound(d, key, n, 0);
    *high = bound(d, key, n, 1);
    if (*high < *low) *high = *low; /* only in a damaged file */
}
