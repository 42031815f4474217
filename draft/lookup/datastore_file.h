/* SPDX-License-Identifier: MIT
 * The header of a datastore file, for its reader and its writer. */
#ifndef WG_DRAFT_LOOKUP_DATASTORE_FILE_H
#define WG_DRAFT_LOOKUP_DATASTORE_FILE_H

#include <stdint.h>

#define DATASTORE_MAGIC "WAGERDS\n"
enum { DATASTORE_VERSION = 1, DATASTORE_VOCAB_MAX = 1 << 24 };

typedef struct header {
    char magic[8];
    uint32_t version, vocab;
    uint64_t tokens, suffixes;
    char digest[64];
    uint8_t zero[24];
    uint64_t check;
} header;
_Static_assert(sizeof(header) == 128, "the file's header");

#endif
