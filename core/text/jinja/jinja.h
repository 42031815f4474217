/* SPDX-License-Identifier: MIT
 * Chat templates in Jinja: the subset that published chat templates use, with the environment of the transformers library
 * (trim_blocks, lstrip_blocks, loop controls, sandboxed access, immutable lists and dictionaries) and Python's semantics of
 * truth, strings, numbers and order. docs/models.md lists the subset.
 *
 * A template and its input are untrusted: output, memory, work and nesting are limited, and each limit is an error by name.
 * Every error has the line and the column of the template. Each byte of the output carries a mark that says whether it comes
 * from the input or from the template. */
#ifndef WG_CORE_TEXT_JINJA_JINJA_H
#define WG_CORE_TEXT_JINJA_JINJA_H

#include <jansson.h>
#include <time.h>

#include "core/base/error.h"

typedef struct wg_jinja wg_jinja; /* a parsed template; read-only after open; may be shared between threads */

/* Parses n bytes, which are copied; `name` stands for the template in messages and is copied. Errors: ENOMEM; EMODEL with
 * line and column, what was found and what was expected; EUNSUPPORTED (a statement outside the subset, by name). */
wg_status wg_jinja_open(wg_jinja **out, const char *name, const char *text, size_t n, wg_error *err);
void wg_jinja_close(wg_jinja *t); /* NULL is fine */

typedef struct wg_jinja_input {
    const json_t *data; /* an object: variables whose texts and keys are marked as data, roles by well-known names excepted */
    const json_t *trusted; /* an object: variables whose texts count as the template's (bos_token, eos_token); NULL: none */
    const struct tm *now;  /* what strftime_now prints; NULL: there is no function strftime_now */
} wg_jinja_input;

typedef struct wg_rendered {
    char *text;          /* (n) owned: wg_rendered_free; NUL-terminated */
    unsigned char *data; /* (n) 1: the byte comes from the input's data, 0: from the template or its trusted variables */
    size_t n;
} wg_rendered;

/* Renders the template. Errors: ENOMEM; EMODEL: with line and column, the template's own message (raise_exception), a mistake
 * as Python and Jinja define it, or a limit. *out is written on success only. */
wg_status wg_jinja_render(const wg_jinja *t, const wg_jinja_input *in, wg_rendered *out, wg_error *err);
void wg_rendered_free(wg_rendered *r);

#endif
