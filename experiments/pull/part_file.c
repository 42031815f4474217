/* SPDX-License-Identifier: MIT
 * Files in pieces (part_file.h). */
#include "experiments/pull/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/make_path.h"
#include "core/base/mem.h"

static wg_status failed(const wg_part_file *p, const char *what, wg_error *err)
{
    return wg_fail(err, WG_EIO, "%s: cannot %s: %s%s", p->part, what, strerror(errno),
                   errno == ENOSPC || errno == EDQUOT ? "; make room and start again: what has arrived is kept" : "");
}

/* Writes the first line of the record, which identifies the file. */
static int head_of(const wg_part_file *p, const char *digest, char *line, size_t room)
{
    return snprintf(line, room, "wager-part 1 %lld %d %s\n", (long long)p->bytes, (int)WG_PART_BYTES, *digest ? digest : "-");
}

/* Reads the pieces of the record if it is this file's; else begins a new record. */
static wg_status read_record(wg_part_file *p, const char *digest, wg_error *err)
{
    char head[256], there[256];
    uint8_t number[4];
    const int n = head_of(p, digest, head, sizeof head);
    p->pieces = (int)((p->bytes + WG_PART_BYTES - 1) / WG_PART_BYTES);
    if (!(p->whole = wg_calloc((size_t)p->pieces + 1, 1))) return wg_nomem(err, (size_t)p->pieces, "the pieces of a file");
    const bool same = pread(p->log, there, (size_t)n, 0) == n && memcmp(head, there, (size_t)n) == 0;
    off_t at = n;
    for (; same && pread(p->log, number, 4, at) == 4; at += 4) {
        const int piece = (int)(number[0] | number[1] << 8 | number[2] << 16 | (unsigned)number[3] << 24);
        if (piece < 0 || piece >= p->pieces || p->whole[piece]) continue;
        p->whole[piece] = 1;
        p->arrived += wg_part_end(p, piece) - wg_part_begin(piece);
    }
    if (same && ftruncate(p->log, at) == 0 && lseek(p->log, at, SEEK_SET) == at) return WG_OK;
    memset(p->whole, 0, (size_t)p->pieces);
    p->arrived = 0;
    if (ftruncate(p->fd, 0) || ftruncate(p->log, 0) || lseek(p->log, 0, SEEK_SET) || write(p->log, head, (size_t)n) != n)
        return failed(p, "write its record", err);
    return WG_OK;
}

wg_status wg_part_open(wg_part_file *p, const char *to, int64_t bytes, const char *digest, wg_error *err)
{
    *p = (wg_part_file){ .fd = -1, .log = -1, .bytes = bytes };
    if (snprintf(p->to, sizeof p->to, "%s", to) >= (int)sizeof p->to - 16)
        return wg_fail(err, WG_EINVAL, "%.60s...: this path is too long", to);
    snprintf(p->part, sizeof p->part, "%.*s.part", PATH_MAX - 16, to);
    snprintf(p->record, sizeof p->record, "%.*s.part.done", PATH_MAX - 16, to);
    WG_TRY(wg_make_parents(to, err));
    p->fd = open(p->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (p->fd < 0) return failed(p, "open", err);
    if (flock(p->fd, LOCK_EX | LOCK_NB) != 0) {
        wg_part_close(p);
        return wg_fail(err, WG_EINVAL, "%s: another process is fetching this file; wait for it", to);
    }
    struct stat mine, named;
    if (fstat(p->fd, &mine) || stat(p->part, &named) || mine.st_ino != named.st_ino) { /* another process renamed it */
        wg_part_close(p);
        return wg_fail(err, WG_EINVAL, "%s: another process has just fetched this file; start again", to);
    }
    p->log = open(p->record, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    wg_status s = p->log < 0 ? failed(p, "open its record", err) : WG_OK;
    if (!s && bytes >= 0) s = read_record(p, digest, err);
    if (s) wg_part_close(p);
    return s;
}

wg_status wg_part_size(wg_part_file *p, int64_t bytes, const char *digest, wg_error *err)
{
    wg_assert(p->bytes < 0 && bytes >= 0);
    p->bytes = bytes;
    return read_record(p, digest, err);
}

wg_status wg_part_write(wg_part_file *p, int64_t at, const void *bytes, size_t n, wg_error *err)
{
    for (size_t done = 0; done < n;) {
        const ssize_t k = pwrite(p->fd, (const char *)bytes + done, n - done, (off_t)(at + (int64_t)done));
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return failed(p, "write", err);
        done += (size_t)k;
    }
    return WG_OK;
}

wg_status wg_part_record(wg_part_file *p, int piece, wg_error *err)
{
    const uint8_t number[4] = { (uint8_t)piece, (uint8_t)(piece >> 8), (uint8_t)(piece >> 16), (uint8_t)(piece >> 24) };
    if (p->whole[piece]) return WG_OK;
    if (fdatasync(p->fd) != 0) return failed(p, "write", err); /* bytes reach the disk before the record */
    if (write(p->log, number, 4) != 4) return failed(p, "write its record", err);
    p->whole[piece] = 1;
    p->arrived += wg_part_end(p, piece) - wg_part_begin(piece);
    return WG_OK;
}

wg_status wg_part_commit(wg_part_file *p, wg_error *err)
{
    if (fsync(p->fd) != 0 || rename(p->part, p->to) != 0) {
        const wg_status s = failed(p, "give it its name", err);
        wg_part_close(p);
        return s;
    }
    unlink(p->record);
    wg_part_close(p);
    return WG_OK;
}

void wg_part_drop(wg_part_file *p)
{
    unlink(p->part);
    unlink(p->record);
    wg_part_close(p);
}

void wg_part_close(wg_part_file *p)
{
    if (p->log >= 0) close(p->log);
    if (p->fd >= 0) close(p->fd);
    p->fd = p->log = -1;
    wg_free(p->whole);
    p->whole = NULL;
}
