/* SPDX-License-Identifier: MIT
 * Base64 (RFC 4648, the alphabet with + and /), with padding and without line ends. */
#ifndef WG_CORE_BASE_BASE64_H
#define WG_CORE_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Decodes n characters into out, which has room for n / 4 * 3 bytes; *n_out: their number. False: the text is not base64. */
bool wg_base64_decode(const char *s, size_t n, char *out, size_t *n_out);

/* Writes (n + 2) / 3 * 4 characters, without a NUL; returns their number. */
size_t wg_base64_encode(const char *bytes, size_t n, char *out);

#endif
