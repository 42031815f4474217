/* SPDX-License-Identifier: MIT
 * Pages: report.html, embedded by the build, with a JSON document in it from which the page's script builds the page. A page
 * needs no other file and no network. A document has "kind" ("run", "compare", "load", "training", "index"), the data of
 * that kind (its function in report.html reads them) and, where there are drawings, "figures". */
#ifndef WG_EXPERIMENTS_REPORT_REPORT_PAGE_H
#define WG_EXPERIMENTS_REPORT_REPORT_PAGE_H

#include <jansson.h>
#include <stdio.h>

#include "core/base/error.h"

extern const char wg_report_page[]; /* report.html, NUL-terminated */

/* Writes the light value of a colour of the page's style sheet ("ink", "s0"), as #rrggbb. */
void wg_page_colour(FILE *f, const char *name);

/* Writes the page of a document, atomically. Every '<' of the document is written as an escape of JSON, so no text of a user
 * ends the element that it stands in. Errors: EIO, ENOENT, ENOMEM. */
wg_status wg_page_save(const char *path, const json_t *document, wg_error *err);

#endif
