/* SPDX-License-Identifier: MIT
 * The target of a request. */
#include "serve/request_target.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void wgs_target_read(wgs_target *t, const char *uri)
{
    static const char *const schemes[] = { "http://", "https://" };
    const size_t bytes = strcspn(uri, "?");
    *t = (wgs_target){ .text = calloc(bytes + 2, 1) };
    if (!t->text) return;
    memcpy(t->text, uri, bytes);
    for (int i = 0; i < 2; i++) {
        const size_t n = strlen(schemes[i]);
        if (strncasecmp(t->text, schemes[i], n) != 0) continue;
        t->host = t->text + n;
        t->host_bytes = strcspn(t->host, "/");
        t->path = t->host + t->host_bytes;
        if (!*t->path) *t->path = '/';
    }
    if (!t->host && (t->text[0] == '/' || !strcmp(t->text, "*"))) t->path = t->text;
}

void wgs_target_free(wgs_target *t)
{
    free(t->text);
    *t = (wgs_target){ 0 };
}

static int digit(char c)
{
    const char low = (char)(c | 0x20);
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/* The byte of the escape at s, such as "%2F"; -1: no escape stands there. */
static int escaped(const char *s)
{
    if (s[0] != '%' || digit(s[1]) < 0 || digit(s[2]) < 0) return -1;
    return digit(s[1]) * 16 + digit(s[2]);
}

char *wgs_target_behind(char *path, const char *prefix)
{
    for (; *prefix; prefix++) {
        const int byte = escaped(path);
        if (byte == '/' || (byte >= 0 ? byte : (unsigned char)*path) != (unsigned char)*prefix) return NULL;
        path += byte >= 0 ? 3 : 1;
    }
    return path;
}

bool wgs_target_decode(char *s)
{
    char *to = s;
    for (; *s; s++) {
        const int byte = escaped(s);
        if (*s == '%' && byte <= 0) return false;
        *to++ = byte > 0 ? (char)byte : *s;
        if (byte > 0) s += 2;
    }
    *to = 0;
    return true;
}
