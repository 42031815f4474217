/* SPDX-License-Identifier: MIT
 * The normal forms NFC, NFD, NFKC and NFKD (Unicode Standard Annex 15) with the data of Unicode 9.0. Private to core/text. */
#ifndef WG_CORE_TEXT_NORMAL_FORM_H
#define WG_CORE_TEXT_NORMAL_FORM_H

#include "core/text/normal.h"

typedef struct wg_normal_form {
    bool composes, compatible; /* the C and the K of a form's name */
} wg_normal_form;

/* The image of a character under the runs of a table (normal_table.h); 0: it is in none. */
struct wg_normal_run;
uint32_t wg_normal_run_of(const struct wg_normal_run *run, int n, uint32_t cp);

/* Room for n bytes in text[k], of which `used` are kept. ENOMEM; EUNSUPPORTED beyond r->most. */
wg_status wg_normal_reserve(wg_normal_room *r, int k, size_t n, size_t used, wg_error *err);

/* *out: the normal form of t, in text[k], or t itself where nothing changes. Bytes that are not UTF-8 stay as they are. */
wg_status wg_normal_form_apply(wg_normal_form form, wg_text t, wg_normal_room *r, int k, wg_text *out, wg_error *err);

/* The number of leading bytes of n that are their own normal form whatever follows. */
size_t wg_normal_form_sure(wg_normal_form form, const char *s, size_t n);

#endif
