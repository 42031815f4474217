/* SPDX-License-Identifier: MIT
 * Dumps of hidden states in memory, for tests of their readers. */
#ifndef WG_TESTS_UNIT_FILE_DUMP_BYTES_H
#define WG_TESTS_UNIT_FILE_DUMP_BYTES_H

#include <stdint.h>
#include <string.h>

/* A record of samples.idx. */
static inline void dump_record(uint8_t to[56], uint64_t sample, uint32_t shard, uint32_t n, const uint64_t at[5])
{
    memcpy(to, &sample, 8);
    memcpy(to + 8, &shard, 4);
    memcpy(to + 12, &n, 4);
    memcpy(to + 16, at, 40);
}

#endif
