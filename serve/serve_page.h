/* SPDX-License-Identifier: MIT
 * The page at "/": page.html, embedded by the build. */
#ifndef WG_SERVE_SERVE_PAGE_H
#define WG_SERVE_SERVE_PAGE_H

extern const char wgs_page[]; /* HTML, NUL-terminated */

#endif
