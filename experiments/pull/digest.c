/* SPDX-License-Identifier: MIT
 * Digests of git objects (digest.h). */
#include "experiments/pull/digest.h"

#include <errno.h>
#include <sha1.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

wg_status wg_git_digest(const char *path, char hex[WG_SHA256_HEX], wg_error *err)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) != 0) {
        if (f) fclose(f);
        return wg_fail(err, WG_EIO, "%s: cannot read: %s", path, strerror(errno));
    }
    char head[40];
    unsigned char bytes[16384];
    SHA1_CTX c;
    SHA1Init(&c);
    SHA1Update(&c, (const uint8_t *)head, (size_t)snprintf(head, sizeof head, "blob %lld", (long long)st.st_size) + 1);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, f)) > 0;) SHA1Update(&c, bytes, n);
    const bool read = !ferror(f);
    fclose(f);
    SHA1End(&c, hex);
    return read ? WG_OK : wg_fail(err, WG_EIO, "%s: cannot read: %s", path, strerror(errno));
}
