/* SPDX-License-Identifier: MIT
 * The document of a run's page. Numbers are formatted by the list of columns; report.html formats the few lists that are not
 * columns. */
#include "experiments/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/json_number.h"
#include "experiments/report/report_parts.h"
#include "experiments/report/table.h"
#include "experiments/report/table_notes.h"

int wg_report_best(const json_t *cells)
{
    int best = -1;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const double v = wg_json_measured(json_array_get(cells, i), "speedup");
        if (isfinite(v) && (best < 0 || v > wg_json_measured(json_array_get(cells, (size_t)best), "speedup"))) best = (int)i;
    }
    return best;
}

wg_tally wg_report_tally(const json_t *cells)
{
    wg_tally t = { 0 };
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = json_array_get(cells, i), *equal = json_object_get(c, "equals_baseline");
        const double lo = wg_json_item(c, "speedup_ci", 0), hi = wg_json_item(c, "speedup_ci", 1);
        t.faster += lo > 1;
        t.slower += hi < 1;
        t.undecided += !(lo > 1) && !(hi < 1);
        const bool lossless = json_is_true(json_object_get(c, "lossless"));
        t.lossy += !lossless;
        t.must_equal += lossless && json_is_boolean(equal);
        t.unequal += lossless && json_is_false(equal);
        t.failed += (int)json_integer_value(json_object_get(c, "failed"));
    }
    return t;
}

/* A text as a string of JSON; frees it. */
static json_t *string_of(char *text)
{
    json_t *s = wg_json_text(text);
    free(text);
    return s;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* The columns of a list that are shown in one of these places, with their texts: a row a cell, or a row for each element of the
 * list `of` that cells have. {"heads": [{"name", "head", "left"}], "rows": [{"cell", "values": [text or [text, interval]]}]};
 * NULL without rows. */
static json_t *table(const json_t *cells, const wg_column *list, unsigned shown, const char *of)
{
    wg_column_choice c;
    json_t *heads = json_array(), *rows = json_array();
    char text[WG_COLUMN_TEXT], interval[WG_COLUMN_TEXT];
    wg_columns_of(list, shown, &c);
    for (int k = 0; k < c.n; k++)
        json_array_append_new(heads, json_pack("{s:s, s:s, s:b}", "name", c.column[k]->name, "head", c.column[k]->head, "left",
                                               wg_column_is_words(c.column[k])));
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *cell = json_array_get(cells, i), *elements = of ? json_object_get(cell, of) : NULL;
        for (size_t e = 0; e < (of ? json_array_size(elements) : 1); e++) {
            json_t *values = json_array();
            const json_t *o = of ? json_array_get(elements, e) : cell;
            for (int k = 0; k < c.n; k++) {
                wg_column_text(c.column[k], o, text, sizeof text);
                if (!of && !strcmp(c.column[k]->name, "speedup") && json_is_true(json_object_get(o, "disturbed")))
                    strncat(text, "*", sizeof text - strlen(text) - 1); /* wg_table_disturbed */
                wg_column_brackets(c.column[k], o, interval, sizeof interval);
                json_array_append_new(values, *interval ? json_pack("[o, o]", wg_json_text(text), wg_json_text(interval))
                                                        : wg_json_text(text));
            }
            json_array_append_new(rows, json_pack("{s:i, s:o}", "cell", (int)i, "values", values));
        }
    }
    if (json_array_size(rows)) return json_pack("{s:o, s:o}", "heads", heads, "rows", rows);
    json_decref(heads);
    json_decref(rows);
    return NULL;
}

static bool any_has(const json_t *cells, const char *key)
{
    for (size_t i = 0; i < json_array_size(cells); i++)
        if (json_is_object(json_object_get(json_array_get(cells, i), key))) return true;
    return false;
}

static json_t *tables(const json_t *cells)
{
    return json_pack(
        "{s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}", "page", table(cells, wg_columns, WG_IN_PAGE, NULL), "rounds",
        table(cells, wg_columns, WG_IN_ROUNDS, NULL), "names", table(cells, wg_columns, WG_IN_NAMES, NULL), "phases",
        table(cells, wg_columns, WG_IN_PHASES, NULL), "losses",
        any_has(cells, "attribution") ? table(cells, wg_columns, WG_IN_LOSSES, NULL) : NULL, "use",
        any_has(cells, "efficiency") ? table(cells, wg_columns, WG_IN_USE, NULL) : NULL, "categories",
        table(cells, wg_category_columns, WG_IN_PAGE, "categories"), "turns",
        table(cells, wg_turn_columns, WG_IN_PAGE, "turns"), "parts", table(cells, wg_part_columns, WG_IN_PAGE, "parts"));
}

/* The columns with their descriptions, for the page. */
static json_t *words(void)
{
    enum { ON_PAGE = WG_IN_PAGE | WG_IN_NAMES | WG_IN_PHASES | WG_IN_USE | WG_IN_LOSSES | WG_IN_ROUNDS };
    json_t *all = json_array();
    for (const wg_column *c = wg_columns; c->name; c++)
        if (c->shown & ON_PAGE)
            json_array_append_new(all, json_pack("{s:s, s:s, s:s}", "name", c->name, "head", c->head, "doc", c->doc));
    return all;
}

/* ---- the document ------------------------------------------------------------------------------------------------- */

/* Sentences below the main table, a line each. */
static json_t *notes(const json_t *cells)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return NULL;
    wg_table_overlap(f, cells, "", ".\n");
    wg_table_draft_contexts(f, cells, "Warning: ", ".\n");
    wg_table_intervals(f, cells, "", "\n");
    wg_table_disturbed(f, cells);
    fclose(f);
    return string_of(text);
}

static json_t *answer(const wg_run_reader *run, const json_t *cells)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return NULL;
    wg_report_answer(f, run, cells);
    fclose(f);
    return string_of(text);
}

static json_t *names(const wg_run_reader *run, const json_t *cells)
{
    json_t *all = json_array();
    for (size_t i = 0; i < json_array_size(cells); i++) {
        char *name = wg_run_reader_cell_name(run, (int)i);
        json_array_append_new(all, wg_json_text(name));
        wg_free(name);
    }
    return all;
}

wg_status wg_report_document(json_t **out, const wg_run_reader *run, bool drawings, wg_error *err)
{
    const json_t *cells;
    const bool drawn = drawings && wg_plot_available(WG_PLOT_PAGE);
    WG_TRY(wg_run_reader_cells(run, &cells, err));
    char *config = wg_json_canonical(run->config, true);
    *out = json_pack("{s:s, s:o, s:o, s:b, s:b, s:i, s:i, s:i, s:O, s:O?, s:o, s:o, s:o, s:o, s:o, s:o, s:o*, s:b, s:o}",
                     "kind", "run", "name", wg_json_text(json_string_value(json_object_get(run->config, "name"))), "question",
                     wg_json_text(json_string_value(json_object_get(run->config, "question"))), "published", run->published,
                     "complete", run->complete, "requests", run->n, "prompts", run->n_asked, "best", wg_report_best(cells),
                     "summary", run->summary, "machine", run->machine, "config", wg_json_text(config), "names",
                     names(run, cells), "answer", answer(run, cells), "notes", notes(cells), "tables", tables(cells), "words",
                     words(), "texts", run->published ? NULL : wg_report_texts(run, wg_report_best(cells)), "no_gnuplot",
                     drawings && !drawn, "figures", drawn ? wg_report_drawings(run, cells) : json_array());
    wg_free(config);
    return *out ? WG_OK : wg_nomem(err, 1, "a page");
}
