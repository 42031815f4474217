/* SPDX-License-Identifier: MIT
 * Base64 (base64.h). */
#include "core/base/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The value of a character, or -1. */
static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool wg_base64_decode(const char *s, size_t n, char *out, size_t *n_out)
{
    const size_t padding = n > 0 ? (s[n - 1] == '=') + (n > 1 && s[n - 1] == '=' && s[n - 2] == '=') : 0;
    size_t used = 0;
    if (n % 4 != 0) return false;
    for (size_t i = 0; i < n; i += 4) {
        const size_t given = i + 4 == n ? 4 - padding : 4;
        uint32_t group = 0;
        for (size_t k = 0; k < 4; k++) {
            const int v = k < given ? value_of(s[i + k]) : 0;
            if (v < 0) return false;
            group = group << 6 | (uint32_t)v;
        }
        if (group & ((1u << 8 * (4 - given)) - 1)) return false; /* bits that no byte has */
        for (size_t k = 0; k + 1 < given; k++) out[used++] = (char)(group >> (16 - 8 * k));
    }
    *n_out = used;
    return true;
}

size_t wg_base64_encode(const char *bytes, size_t n, char *out)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i += 3) {
        const size_t given = n - i < 3 ? n - i : 3;
        uint32_t group = 0;
        for (size_t k = 0; k < 3; k++) group = group << 8 | (k < given ? (unsigned char)bytes[i + k] : 0);
        for (size_t k = 0; k < 4; k++) out[used++] = k <= given ? digits[group >> (18 - 6 * k) & 63] : '=';
    }
    return used;
}
