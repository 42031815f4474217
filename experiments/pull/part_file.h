/* SPDX-License-Identifier: MIT
 * A file that arrives in pieces, in any order and over several starts: NAME.part, which is sparse, and NAME.part.done, the
 * numbers of the pieces that are whole. A piece is recorded after its bytes were written, so a process that is killed loses the
 * pieces under way and nothing else. A lock keeps a second process out. */
#ifndef WG_EXPERIMENTS_PULL_PART_FILE_H
#define WG_EXPERIMENTS_PULL_PART_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum { WG_PART_BYTES = 4 << 20 }; /* of a piece; the last one has what remains */

typedef struct wg_part_file {
    char to[PATH_MAX], part[PATH_MAX], record[PATH_MAX];
    int fd, log;    /* -1: closed */
    int64_t bytes;  /* of the whole file; -1: not known, and no piece is recorded */
    uint8_t *whole; /* (pieces): 1 where a piece is there */
    int pieces;
    int64_t arrived; /* bytes of whole pieces */
} wg_part_file;

/* Opens NAME.part of the file `to` with the pieces that an earlier start of the same file (bytes and digest equal) has left;
 * others are dropped. digest: of the whole file, "" where none is known. The folder is made. Errors: EIO, ENOMEM; EINVAL while
 * another process has it. */
wg_status wg_part_open(wg_part_file *p, const char *to, int64_t bytes, const char *digest, wg_error *err);

/* Sets the size of a file that was opened without one. ENOMEM, EIO. */
wg_status wg_part_size(wg_part_file *p, int64_t bytes, const char *digest, wg_error *err);

static inline int64_t wg_part_begin(int piece) { return (int64_t)piece * WG_PART_BYTES; }
static inline int64_t wg_part_end(const wg_part_file *p, int piece)
{
    const int64_t end = wg_part_begin(piece) + WG_PART_BYTES;
    return end < p->bytes ? end : p->bytes;
}

wg_status wg_part_write(wg_part_file *p, int64_t at, const void *bytes, size_t n, wg_error *err); /* EIO, a full disk named */
wg_status wg_part_record(wg_part_file *p, int piece, wg_error *err);

/* Gives the file its name, or removes what has arrived. Both close it. */
wg_status wg_part_commit(wg_part_file *p, wg_error *err);
void wg_part_drop(wg_part_file *p);
void wg_part_close(wg_part_file *p); /* what has arrived stays for the next start; closed is fine */

#endif
