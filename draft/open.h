/* SPDX-License-Identifier: MIT
 * Opening a drafter whose options are text: "name=value;name=value". Braces enclose a value that contains separators, and
 * nest. Used by composite drafters (compose/composite.h) and plug-ins (external/drafter_plugin.h). */
#ifndef WG_DRAFT_OPEN_H
#define WG_DRAFT_OPEN_H

#include "core/engine/drafter.h"

/* Sibling laws of components that a composite may pass on. */
enum { WG_COMPONENT_LAWS = WG_LAW_FIXED | WG_LAW_IID };

/* Opens a drafter of a class with options "name=value;..." over the defaults (NULL: none). On failure *out is NULL. Errors:
 * those of wg_drafter_set and of the class's open; ENOMEM. */
wg_status wg_drafter_make(wg_drafter **out, const wg_drafter_class *class, const wg_env *env, const char *options,
                          wg_error *err);
void wg_drafter_free(wg_drafter *d); /* NULL is fine */

/* Sets options "name=value;..." (NULL: none) in the class's option struct at o. ECONFIG, EINVAL. */
wg_status wg_drafter_set(const wg_drafter_class *class, void *o, const char *options, wg_error *err);

/* The name of a drafter with these options in tables, logs and JSON: its class's and, in parentheses, those of the drafters in
 * its option `of`, such as "auto (model, ngram)". Writes into buf and returns it. */
const char *wg_drafter_title(const wg_drafter_class *class, const void *options, char *buf, size_t size);

/* The length of the first item of `text`, up to a separator outside braces; -1: the braces do not match. */
int wg_spec_item(const char *text, char separator);
/* Copies an item of n bytes, without the braces that enclose all of it. ECONFIG: it is longer than size - 1. */
wg_status wg_spec_copy(char *to, size_t size, const char *from, int n, wg_error *err);
wg_status wg_spec_bad_braces(const char *text, wg_error *err); /* the error for -1 of wg_spec_item */

#endif
