/* SPDX-License-Identifier: MIT
 * Option tables. A row declares an option once: field, type, range, default, doc. JSON configs, `key=value` lists, `--help`,
 * the manual (`wager list`) and error messages all read the same row. */
#ifndef WG_CORE_BASE_OPTION_H
#define WG_CORE_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/error.h"
#include "core/base/nearest.h"

typedef enum wg_option_type { WG_OPT_INT, WG_OPT_FLOAT, WG_OPT_BOOL, WG_OPT_STRING, WG_OPT_ENUM } wg_option_type;

/* INT -> int, FLOAT -> double, BOOL -> bool, STRING -> char[WG_OPTION_STRING], ENUM -> int (index into choices). */
enum { WG_OPTION_STRING = 512 };

/* The things that the text of a STRING option names. Files are relative to the working directory, except in a config. */
typedef enum wg_option_names {
    WG_NAMES_NOTHING,
    WG_NAMES_FILE,
    WG_NAMES_SHAPE,    /* a file, unless it has digits and dashes only */
    WG_NAMES_OR_WORD,  /* a file, unless it has letters only */
    WG_NAMES_COMMAND,  /* a shell command, whose words may be files */
    WG_NAMES_DRAFTERS, /* SPEC|SPEC|... (draft/compose/composite.h), whose options may name files */
} wg_option_names;

typedef struct wg_option {
    const char *name, *doc;
    wg_option_type type;
    size_t at;                  /* offset of the field in the options struct */
    double def, min, max;       /* numbers; BOOL and ENUM use def; STRING: def is a wg_option_names */
    const char *def_string;     /* STRING */
    const char *const *choices; /* ENUM: NULL-terminated; INT: words for 0, 1 ..., or NULL */
} wg_option;

/* clang-format off */
#define WG_OPTION_INT(T, field, def, min, max, doc) \
    { #field, doc, WG_OPT_INT, offsetof(T, field), def, min, max, NULL, NULL }
/* An integer whose values 0, 1 ... may also be written as words. */
#define WG_OPTION_COUNT(T, field, def, min, max, words, doc) \
    { #field, doc, WG_OPT_INT, offsetof(T, field), def, min, max, NULL, words }
#define WG_OPTION_FLOAT(T, field, def, min, max, doc) \
    { #field, doc, WG_OPT_FLOAT, offsetof(T, field), def, min, max, NULL, NULL }
#define WG_OPTION_BOOL(T, field, def, doc)             { #field, doc, WG_OPT_BOOL, offsetof(T, field), def, 0, 1, NULL, NULL }
#define WG_OPTION_STR(T, field, def, doc)              { #field, doc, WG_OPT_STRING, offsetof(T, field), 0, 0, 0, def, NULL }
/* A text that names files: `what` is a wg_option_names. */
#define WG_OPTION_NAME(T, field, what, def, doc)       { #field, doc, WG_OPT_STRING, offsetof(T, field), what, 0, 0, def, NULL }
#define WG_OPTION_ENUM(T, field, def, choices, doc) \
    { #field, doc, WG_OPT_ENUM, offsetof(T, field), def, 0, 0, NULL, choices }
#define WG_OPTION_END                                  { NULL, NULL, WG_OPT_INT, 0, 0, 0, 0, NULL, NULL }
/* clang-format on */

/* Sets every field of the struct at `o` to its default. A NULL table is an empty table (everywhere here). */
void wg_option_defaults(const wg_option *table, void *o);

/* Sets one field from text. EINVAL names the option, the value, what was expected and, for an unknown name, the nearest
 * legal spelling. On failure the struct is unchanged. */
wg_status wg_option_set(const wg_option *table, void *o, const char *name, const char *value, wg_error *err);

/* Sets several fields from "k=8,p_min=0.3". Not atomic: on failure the fields before the bad one are set. */
wg_status wg_option_set_list(const wg_option *table, void *o, size_t size, const char *list, wg_error *err);

/* Sets one field from a number that came from JSON (INT and FLOAT rows; range-checked), or a bool. */
wg_status wg_option_set_number(const wg_option *table, void *o, const char *name, double value, bool is_integer, wg_error *err);

/* Whether the row's text names things of this kind. */
static inline bool wg_option_is(const wg_option *row, wg_option_names what)
{
    return row->type == WG_OPT_STRING && row->def == what;
}

/* The row called `name`, or NULL. */
const wg_option *wg_option_find(const wg_option *table, const char *name);

/* The legal values of the row, in words: "integer 1..64", "integer 0..9, all or first", "number 0..1", "true or false",
 * "one of: a, b". Writes into buf. */
const char *wg_option_expects(const wg_option *row, char *buf, size_t size);

/* The value of a field as text (numbers with the fewest digits that read back the same). Writes into buf. */
const char *wg_option_value(const wg_option *row, const void *o, char *buf, size_t size);

#endif
