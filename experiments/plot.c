/* SPDX-License-Identifier: MIT
 * A script into a file, the drawing out of a pipe. */
#include "experiments/plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"

bool wg_plot_available(void)
{
    return system("gnuplot --version >/dev/null 2>&1") == 0;
}

static char *base64(const unsigned char *v, size_t n, const char *prefix)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t head = strlen(prefix);
    char *out = wg_alloc(head + (n + 2) / 3 * 4 + 1, 1), *p = out;
    if (!out) return NULL;
    memcpy(p, prefix, head);
    p += head;
    for (size_t i = 0; i < n; i += 3) {
        const unsigned x = (unsigned)v[i] << 16 | (i + 1 < n ? (unsigned)v[i + 1] << 8 : 0) | (i + 2 < n ? v[i + 2] : 0);
        *p++ = digit[x >> 18];
        *p++ = digit[x >> 12 & 63];
        *p++ = i + 1 < n ? digit[x >> 6 & 63] : '=';
        *p++ = i + 2 < n ? digit[x & 63] : '=';
    }
    *p = '\0';
    return out;
}

static char *run(const char *path)
{
    char command[128], chunk[4096], *text = NULL;
    size_t n = 0, got;
    snprintf(command, sizeof command, "gnuplot %s 2>/dev/null", path);
    FILE *pipe = popen(command, "r"), *to = pipe ? open_memstream(&text, &n) : NULL;
    while (to && (got = fread(chunk, 1, sizeof chunk, pipe)) > 0) fwrite(chunk, 1, got, to);
    if (to) fclose(to);
    const bool ok = pipe && pclose(pipe) == 0 && n > 0 && strstr(text, "</svg>");
    char *out = ok ? base64((unsigned char *)text, n, "data:image/svg+xml;base64,") : NULL;
    free(text);
    return out;
}

char *wg_plot_svg(const char *script, int width, int height)
{
    char path[] = "/tmp/wager-plot-XXXXXX";
    const int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f) return NULL;
    fprintf(f, "set terminal svg size %d,%d font 'sans-serif,14' background '#ffffff'\n%s\n", width, height, script);
    const bool written = fclose(f) == 0;
    char *out = written ? run(path) : NULL;
    unlink(path);
    return out;
}
