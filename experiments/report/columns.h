/* SPDX-License-Identifier: MIT
 * The columns of a cell of summary.json: the one list from which the terminal's table, Markdown, CSV and the page are
 * written, so that they cannot differ. CSV has all columns, the others a subset. */
#ifndef WG_EXPERIMENTS_REPORT_COLUMNS_H
#define WG_EXPERIMENTS_REPORT_COLUMNS_H

#include <jansson.h>
#include <stdbool.h>

#include "core/base/error.h"

/* The places where a column is shown. WG_IN_TABLE: the terminal's table, which has to be narrow. */
enum {
    WG_IN_TABLE = 1,
    WG_IN_WIDE = 2,
    WG_IN_MARKDOWN = 4,
    WG_IN_PAGE = 8,
    WG_IN_NAMES = 16,   /* the page's table of acceptance definitions */
    WG_IN_PHASES = 32,  /* the page's table of phases */
    WG_IN_USE = 64,     /* the page's table of used and wasted work */
    WG_IN_LOSSES = 256, /* the page's table of the losses of drafter and rule */
    WG_IN_ROUNDS = 512, /* the page's table of passes with and without a draft */
    WG_IN_PAPER = 1024, /* LaTeX tables, as wide as a column of text */
    WG_SHORT = 128,     /* the terminal's table leaves out its interval */
};

enum { WG_COLUMN_TEXT = 128 }; /* bytes of a column's text */

typedef struct wg_column {
    const char *name, *head, *unit; /* name in CSV (vLLM's where it has one); heading in tables; unit, "" for none */
    unsigned shown;
    const char *path;                                         /* path of the value: keys with dots between */
    const char *interval;                                     /* path of its interval [lo, hi], or NULL */
    const char *format;                                       /* printf format of the value in tables; NULL: `text` formats
                                                               * it */
    void (*text)(const json_t *cell, char *buf, size_t size); /* formats the value as text; NULL: a string unchanged, or a
                                                               * list */
    const char *doc;
} wg_column;

/* Lists of columns, each ending with a NULL name: of a cell; of an element of its "categories", "turns" or "parts"; of a draft
 * position (paths lead to lists). */
extern const wg_column wg_columns[], wg_category_columns[], wg_turn_columns[], wg_part_columns[], wg_position_columns[];

/* The value at a path, or NULL. */
const json_t *wg_column_value(const json_t *o, const char *path);

/* wg_column_text writes the formatted value into buf, "-" where it is unknown; wg_column_brackets its interval as "[lo,
 * hi]", or "". */
void wg_column_text(const wg_column *c, const json_t *o, char *buf, size_t size);
void wg_column_brackets(const wg_column *c, const json_t *o, char *buf, size_t size);

bool wg_column_is_words(const wg_column *c); /* whether it holds text, which is aligned left; numbers are aligned right */

enum { WG_COLUMNS_MOST = 160 };
typedef struct wg_column_choice {
    const wg_column *column[WG_COLUMNS_MOST];
    int n;
} wg_column_choice;

/* The columns of a list that are shown in one of these places, in the list's order; 0: all. */
void wg_columns_of(const wg_column *list, unsigned shown, wg_column_choice *out);

/* The columns of "NAME,NAME,..." in that order: columns, by name or heading, or sets of them (WG_COLUMNS_DOC). EINVAL names an
 * unknown one and the nearest known. */
wg_status wg_columns_named(const char *list, wg_column_choice *out, wg_error *err);

/* The name of the ith set of columns; NULL behind the last one. */
const char *wg_column_set(int i);

#define WG_COLUMNS_DOC                                                                                                         \
    "NAME,...: columns, by name or heading, or sets of them (table, wide, paper, md, page, acceptance, phases, use, losses, "  \
    "rounds, "                                                                                                                 \
    "all)"

#endif
