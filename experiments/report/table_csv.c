/* SPDX-License-Identifier: MIT
 * CSV of a summary, for data frames: a row per observation, a column per variable of one type. Lists of a cell (positions,
 * categories, parts) go to a file of their own with the cell's number as the key. */
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/number.h"
#include "experiments/report/table.h"

/* Writes a field, quoted where RFC 4180 requires it. */
static void put(FILE *f, const char *s)
{
    const bool quote = strpbrk(s, ",\"\n\r") != NULL;
    if (quote) fputc('"', f);
    for (; *s; s++) {
        if (*s == '"') fputc('"', f);
        fputc(*s, f);
    }
    if (quote) fputc('"', f);
}

static void put_value(FILE *f, const json_t *v)
{
    char number[40];
    fputc(',', f);
    if (json_is_string(v)) put(f, json_string_value(v));
    else if (json_is_real(v)) put(f, wg_number_text(json_real_value(v), number, sizeof number));
    else if (v && !json_is_null(v)) {
        char *text = wg_json_canonical(v, false);
        put(f, text ? text : "");
        wg_free(text);
    }
}

/* items: the columns of a list, the number of its elements in the cell that has most; 0: no cell has a list there. */
static void put_names(FILE *f, const wg_column *c, size_t items)
{
    for (size_t i = 1; i <= items; i++) fprintf(f, ",%s_%zu", c->name, i);
    if (items) return;
    const int stem = (int)strlen(c->name);
    fprintf(f, ",%s", c->name);
    if (c->interval) fprintf(f, ",%.*s_lo,%.*s_hi", stem, c->name, stem, c->name);
}

static void put_values(FILE *f, const wg_column *c, size_t items, const json_t *o)
{
    const json_t *v = wg_column_value(o, c->path), *ci = c->interval ? wg_column_value(o, c->interval) : NULL;
    for (size_t i = 0; i < items; i++) put_value(f, json_array_get(v, i));
    if (items) return;
    put_value(f, json_is_array(v) ? NULL : v);
    if (c->interval) put_value(f, json_array_get(ci, 0)), put_value(f, json_array_get(ci, 1));
}

/* Writes the row of a draft position; only the histogram has a value for position 0. */
static void put_depth(FILE *f, const json_t *cell, size_t depth)
{
    for (const wg_column *c = wg_position_columns; c->name; c++) {
        const bool from_none = !strcmp(c->name, "acceptance_histogram");
        const json_t *list = wg_column_value(cell, c->path);
        put_value(f, depth || from_none ? json_array_get(list, from_none ? depth : depth - 1) : NULL);
    }
}

static void begin_row(FILE *f, const json_t *cells, size_t cell, const json_t *swept)
{
    const json_t *of = json_object_get(json_array_get(cells, cell), "cell");
    const char *key;
    json_t *v;
    fprintf(f, "%zu", cell);
    json_object_foreach((json_t *)swept, key, v) put_value(f, json_object_get(of, key));
}

static void put_cells(FILE *f, const json_t *cells, const json_t *swept, const wg_column_choice *chosen)
{
    size_t items[WG_COLUMNS_MOST] = { 0 };
    for (int k = 0; k < chosen->n; k++) {
        for (size_t i = 0; i < json_array_size(cells); i++) {
            const size_t n = json_array_size(wg_column_value(json_array_get(cells, i), chosen->column[k]->path));
            items[k] = n > items[k] ? n : items[k];
        }
        put_names(f, chosen->column[k], items[k]);
    }
    fputc('\n', f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        begin_row(f, cells, i, swept);
        for (int k = 0; k < chosen->n; k++) put_values(f, chosen->column[k], items[k], json_array_get(cells, i));
        fputc('\n', f);
    }
}

static void put_depths(FILE *f, const json_t *cells, const json_t *swept)
{
    fputs(",position", f);
    for (const wg_column *c = wg_position_columns; c->name; c++) put_names(f, c, 0);
    fputc('\n', f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *cell = json_array_get(cells, i);
        const size_t n = json_array_size(json_object_get(cell, "acceptance_by_position"));
        for (size_t depth = 0; depth <= n; depth++) {
            begin_row(f, cells, i, swept);
            fprintf(f, ",%zu", depth);
            put_depth(f, cell, depth);
            fputc('\n', f);
        }
    }
}

static void put_elements(FILE *f, const json_t *cells, const json_t *swept, const char *list, const wg_column *columns)
{
    for (const wg_column *c = columns; c->name; c++) put_names(f, c, 0);
    fputc('\n', f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *elements = json_object_get(json_array_get(cells, i), list);
        for (size_t e = 0; e < json_array_size(elements); e++) {
            begin_row(f, cells, i, swept);
            for (const wg_column *c = columns; c->name; c++) put_values(f, c, 0, json_array_get(elements, e));
            fputc('\n', f);
        }
    }
}

void wg_table_print_csv(FILE *f, const json_t *summary, wg_csv_rows rows, const wg_column_choice *chosen)
{
    const json_t *cells = json_object_get(summary, "cells");
    wg_column_choice all;
    json_t *swept = json_object(), *v;
    const char *key;
    for (size_t i = 0; i < json_array_size(cells); i++)
        json_object_update(swept, json_object_get(json_array_get(cells, i), "cell"));
    wg_columns_of(wg_columns, 0, &all);
    fputs("cell", f);
    json_object_foreach(swept, key, v) fputc(',', f), put(f, key);
    if (rows == WG_CSV_CELLS) put_cells(f, cells, swept, chosen ? chosen : &all);
    else if (rows == WG_CSV_POSITIONS) put_depths(f, cells, swept);
    else if (rows == WG_CSV_CATEGORIES) put_elements(f, cells, swept, "categories", wg_category_columns);
    else if (rows == WG_CSV_TURNS) put_elements(f, cells, swept, "turns", wg_turn_columns);
    else put_elements(f, cells, swept, "parts", wg_part_columns);
    json_decref(swept);
}
