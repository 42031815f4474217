/* SPDX-License-Identifier: MIT
 * The normal forms NFC, NFD, NFKC and NFKD (Unicode Standard Annex 15) with the data of Unicode 9.0. Private to core/text. */
#ifndef WG_CORE_TEXT_NORMAL_FORM_H
#define WG_CORE_TEXT_NORMAL_FORM_H

#include <stdint.h>

#include "core/text/normal.h"

typedef struct wg_normal_form {
    bool composes, compatible; /* the C and the K of a form's name */
} wg_normal_form;

/* The image of a character under the runs of a table; 0: it is in none. */
struct wg_normal_run;
uint32_t wg_normal_run_of(const struct wg_normal_run *run, int n, uint32_t cp);

/* Room for n bytes in text[k], of which `used` are kept. ENOMEM; EUNSUPPORTED beyond r->most. */
wg_status wg_normal_reserve(wg_normal_room *r, int k, size_t n, size_t used, wg_error *err);

/* *out: the normal form of t, in text[k], or t itself where nothing changes. Bytes that are not UTF-8 stay as they are. */
wg_status wg_normal_form_apply(wg_normal_form form, wg_text t, wg_normal_room *r, int k, wg_text *out, wg_error *err);

/* The number of leading bytes of n that are their own normal form whatever follows. */
size_t wg_normal_form_sure(wg_normal_form form, const char *s, size_t n);

/* ---- tables (normal_table.c, generated) */

enum { WG_NORMAL_CLASSES = 333, WG_NORMAL_PAIRS = 2060, WG_NORMAL_JOINS = 940, WG_NORMAL_SECONDS = 23 };
enum {
    WG_NORMAL_COMPATIBLE = 86,
    WG_NORMAL_STRINGS = 2392,
    WG_NORMAL_CHARS = 2671,
    WG_NORMAL_LOWER = 185,
    WG_NORMAL_OTHER_MARKS = 88
};

typedef struct wg_normal_class {
    uint32_t first, last; /* characters of one combining class */
    uint32_t order;       /* the class */
} wg_normal_class;

typedef struct wg_normal_pair {
    uint32_t cp, a, b; /* cp decomposes into a and b; b == 0: into a alone */
} wg_normal_pair;

typedef struct wg_normal_run {
    uint32_t first, last, to, step; /* each step-th character of first .. last becomes the one as far behind `to` */
} wg_normal_run;

typedef struct wg_normal_string {
    uint32_t cp;
    uint16_t at, n; /* becomes wg_normal_chars[at .. at + n) */
} wg_normal_string;

extern const wg_normal_class wg_normal_classes[WG_NORMAL_CLASSES]; /* ascending */
extern const wg_normal_pair wg_normal_pairs[WG_NORMAL_PAIRS];      /* ascending by cp */
extern const uint16_t wg_normal_joins[WG_NORMAL_JOINS];            /* pairs that compose, ascending by (a, b) */
extern const uint32_t wg_normal_seconds[WG_NORMAL_SECONDS];        /* of class 0 that compose with one before them */
extern const wg_normal_run
    wg_normal_compatible[WG_NORMAL_COMPATIBLE];                     /* complete NFKD where many neighbours have one character */
extern const wg_normal_string wg_normal_strings[WG_NORMAL_STRINGS]; /* complete NFKD of others */
extern const uint16_t wg_normal_chars[WG_NORMAL_CHARS];
extern const wg_normal_run wg_normal_lower[WG_NORMAL_LOWER];           /* lower case, but that of U+0130 */
extern const uint32_t wg_normal_other_marks[WG_NORMAL_OTHER_MARKS][2]; /* marks of Unicode 9.0 or of 16.0, not of both */

#endif
