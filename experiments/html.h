/* SPDX-License-Identifier: MIT
 * The little HTML that reports are made of. */
#ifndef WG_EXPERIMENTS_HTML_H
#define WG_EXPERIMENTS_HTML_H

#include <stddef.h>
#include <stdio.h>

void wg_html_begin(FILE *f, const char *title); /* head with the style sheet, and <main> */
void wg_html_end(FILE *f);
void wg_html_text(FILE *f, const char *s, size_t n); /* escaped; control characters become U+FFFD, but for newlines and tabs */
void wg_html_puts(FILE *f, const char *s);           /* the same of a string; NULL writes nothing */

#endif
