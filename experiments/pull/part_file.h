/* SPDX-License-Identifier: MIT
 * A file that arrives in pieces, in any order and over several starts: NAME.part, a sparse file, and NAME.part.done, the
 * numbers of complete pieces. A piece is recorded after its bytes were written, so a killed process loses only incomplete
 * pieces. A lock excludes a second process. */
#ifndef WG_EXPERIMENTS_PULL_PART_FILE_H
#define WG_EXPERIMENTS_PULL_PART_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum { WG_PART_BYTES = 4 << 20 }; /* bytes of a piece; the last one may be shorter */

typedef struct wg_part_file {
    char to[PATH_MAX], part[PATH_MAX], record[PATH_MAX];
    int fd, log;    /* -1: closed */
    int64_t bytes;  /* of the whole file; -1: unknown, and no piece is recorded */
    uint8_t *whole; /* (pieces) 1: the piece is complete */
    int pieces;
    int64_t arrived; /* bytes of complete pieces */
} wg_part_file;

/* Opens NAME.part of the file `to` with the pieces of an earlier start for the same file (equal bytes and digest); other pieces
 * are dropped. digest: the whole file's, "": unknown. Makes the folder. Errors: EIO, ENOMEM; EINVAL: another process has it. */
wg_status wg_part_open(wg_part_file *p, const char *to, int64_t bytes, const char *digest, wg_error *err);

/* Sets the size of a file that was opened without one. ENOMEM, EIO. */
wg_status wg_part_size(wg_part_file *p, int64_t bytes, const char *digest, wg_error *err);

static inline int64_t wg_part_begin(int piece) { return (int64_t)piece * WG_PART_BYTES; }
static inline int64_t wg_part_end(const wg_part_file *p, int piece)
{
    const int64_t end = wg_part_begin(piece) + WG_PART_BYTES;
    return end < p->bytes ? end : p->bytes;
}

wg_status wg_part_write(wg_part_file *p, int64_t at, const void *bytes, size_t n,
                        wg_error *err); /* EIO; the message names a full
                                                                                                   * disk */
wg_status wg_part_record(wg_part_file *p, int piece, wg_error *err);

/* commit renames the file to `to`; drop removes its pieces. Both close it. */
wg_status wg_part_commit(wg_part_file *p, wg_error *err);
void wg_part_drop(wg_part_file *p);
void wg_part_close(wg_part_file *p); /* pieces stay for the next start; a closed one is fine */

#endif
