/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as a DeepSpec cache: the lengths of a manifest and of an index (16 bits each), these two, and a shard that
 * stands for all shards. Every sample is read to the last row, or refused with a message. */
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/tap_dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static volatile float sink;

static void read_rows(const wg_dump_sample *s)
{
    float *row = malloc((size_t)s->dim * sizeof *row);
    for (int64_t i = 0; i < s->n; i++) {
        if (wg_dump_token(s, i) < 0) abort();
        for (int k = -1; k < s->taps; k++) wg_dump_row(s, i, k, row), sink += row[s->dim - 1];
        sink += s->loss[i];
    }
    free(row);
}

static void read_cache(const wg_dump_cache *c, const uint8_t *index, size_t index_bytes, const uint8_t *shard, size_t n)
{
    for (int64_t i = 0; i < c->samples; i++) {
        wg_dump_record r;
        wg_dump_sample s;
        wg_error err = { 0 };
        wg_status status = wg_dump_read_record(c, "samples.idx", index, index_bytes, i, &r, &err);
        if (!status) status = wg_dump_place(c, &r, c->shard[r.shard], shard, n, &s, &err);
        if (status && err.text[0] == '\0') abort();
        if (status) break;
        read_rows(&s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    uint16_t length[2];
    wg_json *doc;
    wg_dump_cache c;
    wg_error err = { 0 };
    if (n < sizeof length) return 0;
    memcpy(length, bytes, sizeof length);
    bytes += sizeof length, n -= sizeof length;
    const size_t manifest = length[0] < n ? length[0] : n, index = length[1] < n - manifest ? length[1] : n - manifest;
    if (wg_json_parse(&doc, "manifest.json", (const char *)bytes, manifest, &err) != WG_OK) return 0;
    if (wg_dump_read_manifest(&c, doc, &err) == WG_OK) {
        read_cache(&c, bytes + manifest, index, bytes + manifest + index, n - manifest - index);
        wg_dump_cache_free(&c);
    } else if (err.text[0] == '\0') {
        abort();
    }
    wg_json_close(doc);
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
