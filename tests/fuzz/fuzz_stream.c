/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as a stream of completions: server-sent events and the chunks in them; the events do not depend on the pieces
 * in which the bytes arrive. The first byte chooses the pieces. And the same bytes as the counters of a server. */
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "experiments/load/answer_stream.h"
#include "experiments/load/server_counters.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static bool read_chunk(void *user, const char *data, size_t n)
{
    uint64_t *digest = user;
    wg_completion_chunk c;
    *digest = wg_hash64(*digest, data, n);
    if (!wg_completion_chunk_read(&c, data, n) && (c.text || c.error || c.done)) abort();
    if (c.text && strlen(c.text) > c.text_n) abort();
    if (c.reasoning && strlen(c.reasoning) > c.reasoning_n) abort();
    wg_completion_chunk_close(&c);
    return true;
}

static uint64_t stream(const uint8_t *bytes, size_t n, size_t piece, wg_sse_state *state)
{
    wg_sse s;
    uint64_t digest = WG_HASH_START;
    wg_sse_init(&s, 1 << 16);
    *state = WG_SSE_OK;
    for (size_t at = 0; at < n; at += piece)
        *state = wg_sse_feed(&s, (const char *)bytes + at, n - at < piece ? n - at : piece, read_chunk, &digest);
    wg_sse_close(&s);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    if (n == 0) return 0;
    wg_sse_state whole, pieces;
    if (stream(bytes + 1, n - 1, n, &whole) != stream(bytes + 1, n - 1, bytes[0] % 7 + 1u, &pieces) || whole != pieces) abort();
    wg_server_counters c;
    wg_server_counters_read(&c, (const char *)bytes + 1, n - 1);
    if (c.positions < 0 || c.positions > WG_COUNTED_POSITIONS) abort();
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
