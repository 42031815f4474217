/* SPDX-License-Identifier: MIT
 * What a cell of summary.json says, a number a line: the one list from which the terminal's table, Markdown, CSV and the page
 * are drawn, so that they cannot differ. CSV has all of it, the others a part. */
#ifndef WG_EXPERIMENTS_REPORT_COLUMNS_H
#define WG_EXPERIMENTS_REPORT_COLUMNS_H

#include <jansson.h>
#include <stdbool.h>

#include "core/base/error.h"

/* Where a column is shown. WG_IN_TABLE: the terminal's, which has to be narrow. */
enum {
    WG_IN_TABLE = 1,
    WG_IN_WIDE = 2,
    WG_IN_MARKDOWN = 4,
    WG_IN_PAGE = 8,
    WG_IN_NAMES = 16,   /* the page's acceptance by its names, */
    WG_IN_PHASES = 32,  /* phases */
    WG_IN_USE = 64,     /* use and waste, */
    WG_IN_LOSSES = 256, /* and who loses what */
    WG_SHORT = 128,     /* in the terminal's table without its interval */
};

enum { WG_COLUMN_TEXT = 128 }; /* bytes of what people read of one */

typedef struct wg_column {
    const char *name, *head, *unit; /* in CSV (vLLM's where it has one); for people; of the value, "" for none */
    unsigned shown;
    const char *path;                                         /* where the value stands: keys with dots between */
    const char *interval;                                     /* where its [lo, hi] stands, or NULL */
    const char *format;                                       /* for people, of the value; NULL: */
    void (*text)(const json_t *cell, char *buf, size_t size); /* its words; NULL: a string as it is, or a list */
    const char *doc;
} wg_column;

/* Each ends with a NULL name. Of a cell; of an element of its "categories", "turns" and "parts"; of a depth, where paths lead
 * to lists. */
extern const wg_column wg_columns[], wg_category_columns[], wg_turn_columns[], wg_part_columns[], wg_position_columns[];

/* The value at a path, or NULL. */
const json_t *wg_column_value(const json_t *o, const char *path);

/* Written into buf for people: the value, "-" where it is unknown; its interval as "[lo, hi]", or "". */
void wg_column_text(const wg_column *c, const json_t *o, char *buf, size_t size);
void wg_column_brackets(const wg_column *c, const json_t *o, char *buf, size_t size);

bool wg_column_is_words(const wg_column *c); /* to the left, not to the right as numbers */

enum { WG_COLUMNS_MOST = 160 };
typedef struct wg_column_choice {
    const wg_column *column[WG_COLUMNS_MOST];
    int n;
} wg_column_choice;

/* Those of a list that are shown in one of these places, in its order; 0: all. */
void wg_columns_of(const wg_column *list, unsigned shown, wg_column_choice *out);

/* Those of "NAME,NAME,..." in that order: columns or sets of them (WG_COLUMNS_DOC). EINVAL names what there is not, and the
 * nearest. */
wg_status wg_columns_named(const char *list, wg_column_choice *out, wg_error *err);

#define WG_COLUMNS_DOC "NAME,...: columns or sets of them (table, wide, md, page, acceptance, phases, use, losses, all)"

#endif
