/* SPDX-License-Identifier: MIT
 * HTML primitives of the reports. */
#ifndef WG_EXPERIMENTS_REPORT_HTML_H
#define WG_EXPERIMENTS_REPORT_HTML_H

#include <stddef.h>
#include <stdio.h>

#include "core/base/error.h"

void wg_html_begin(FILE *f, const char *title); /* head with the style sheet, and <main> */
void wg_html_end(FILE *f);

/* Writes the light value of a colour of the style sheet ("ink", "s0"), as #rrggbb. */
void wg_html_colour(FILE *f, const char *name);

void wg_html_text(FILE *f, const char *s, size_t n); /* escaped; control characters become U+FFFD, but for newlines and tabs */
void wg_html_puts(FILE *f, const char *s);           /* a string, escaped; NULL writes nothing */
void wg_html_name(FILE *f, const char *s);           /* a name, escaped; long names may break between their components */

/* Writes a page, built in memory by `write`, atomically to a file. Errors: those of `write`; EIO, ENOENT, ENOMEM. */
typedef wg_status wg_html_write(FILE *f, void *arg, wg_error *err);
wg_status wg_html_save(const char *path, wg_html_write *write, void *arg, wg_error *err);

/* wg_html_table writes a table's beginning, up to its caption, in a box that scrolls sideways, also by keyboard;
 * wg_html_table_end writes its end, from </tbody> on. */
void wg_html_table(FILE *f, const char *caption);
void wg_html_table_end(FILE *f);

#endif
