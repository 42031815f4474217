/* SPDX-License-Identifier: MIT
 * A short report, for a README, and the table for a paper: every sentence is generated from summary.json. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/json_number.h"
#include "experiments/report/report_parts.h"
#include "experiments/report/table.h"
#include "experiments/report/table_notes.h"

static void put_interval(FILE *f, const json_t *cell, const char *key)
{
    char ci[64];
    snprintf(ci, sizeof ci, "%s_ci", key);
    fprintf(f, "%.2fx", wg_json_measured(cell, key));
    if (json_is_array(json_object_get(cell, ci)))
        fprintf(f, " [%.2f, %.2f]", wg_json_item(cell, ci, 0), wg_json_item(cell, ci, 1));
}

static void put_column(FILE *f, const wg_column *c, const json_t *o)
{
    char text[2 * WG_COLUMN_TEXT], ci[WG_COLUMN_TEXT];
    wg_column_text(c, o, text, sizeof text);
    wg_column_brackets(c, o, ci, sizeof ci);
    if (*ci) snprintf(text + strlen(text), sizeof text - strlen(text), " %s", ci);
    wg_table_put_markdown(f, text);
}

void wg_report_answer(FILE *f, const wg_run_reader *run, const json_t *cells)
{
    const int best = wg_report_best(cells), n = (int)json_array_size(cells);
    const wg_tally t = wg_report_tally(cells);
    if (best < 0) {
        fputs("Nothing ended well on both sides.\n", f);
        return;
    }
    const json_t *c = json_array_get(cells, (size_t)best);
    char *name = wg_run_reader_cell_name(run, best);
    fprintf(f, "%s `%s` decodes at ", n > 1 ? "Fastest:" : "The cell", name ? name : "");
    wg_free(name);
    put_interval(f, c, "speedup");
    fprintf(f,
            " the speed of plain decoding, with %.2f tokens per pass%s. Beyond chance %d of %d cells %s faster than plain "
            "decoding, %d slower, %d undecided.",
            wg_json_measured(c, "tau"), json_is_true(json_object_get(c, "lossless")) ? "" : " (not lossless)", t.faster, n,
            t.faster == 1 ? "is" : "are", t.slower, t.undecided);
    if (t.unequal) fprintf(f, " **%d of %d cells that must repeat plain decoding do not.**", t.unequal, t.must_equal);
    else if (t.must_equal) fprintf(f, " All %d cells that must repeat plain decoding's text do.", t.must_equal);
    if (t.failed) fprintf(f, " %d pairs of requests failed and count on neither side.", t.failed);
    if (!run->complete) fputs(" **The run was interrupted; these are the numbers of its finished part.**", f);
    fputc('\n', f);
}

/* Writes a table with a row for each element of the list `of` of each cell. */
static void elements(FILE *f, const wg_run_reader *run, const json_t *cells, const char *of, const wg_column *columns,
                     const char *title)
{
    bool any = false;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *list = json_object_get(json_array_get(cells, i), of);
        char *name = wg_run_reader_cell_name(run, (int)i);
        if (!any && json_array_size(list)) {
            any = true;
            fprintf(f, "\n%s:\n\n| cell |", title);
            for (const wg_column *c = columns; c->name; c++)
                if (c->shown & WG_IN_MARKDOWN) wg_table_put_markdown(f, c->head);
            fputs("\n|---|", f);
            for (const wg_column *c = columns; c->name; c++)
                if (c->shown & WG_IN_MARKDOWN) fputs(wg_column_is_words(c) ? "---|" : "--:|", f);
            fputc('\n', f);
        }
        for (size_t k = 0; k < json_array_size(list); k++) {
            fputc('|', f);
            wg_table_put_markdown(f, name ? name : "");
            for (const wg_column *c = columns; c->name; c++)
                if (c->shown & WG_IN_MARKDOWN) put_column(f, c, json_array_get(list, k));
            fputc('\n', f);
        }
        wg_free(name);
    }
}

wg_status wg_report_markdown(FILE *f, const wg_run_reader *run, const wg_column_choice *columns, wg_error *err)
{
    const json_t *cells;
    const char *question = json_string_value(json_object_get(run->config, "question")),
               *cpu = json_string_value(json_object_get(json_object_get(run->machine, "cpu"), "model")),
               *when = json_string_value(json_object_get(run->machine, "started"));
    WG_TRY(wg_run_reader_cells(run, &cells, err));
    if (question && *question) fprintf(f, "*%s*\n\n", question);
    wg_report_answer(f, run, cells);
    fputc('\n', f);
    wg_table_print_markdown(f, run->summary, columns);
    wg_table_overlap(f, cells, "\n", ".");
    wg_table_draft_contexts(f, cells, "\nWarning: ", ".");
    elements(f, run, cells, "categories", wg_category_columns, "By category");
    elements(f, run, cells, "turns", wg_turn_columns, "By turn");
    elements(f, run, cells, "parts", wg_part_columns, "By the drafter that drafted");
    wg_table_intervals(f, cells, "\n", "\n");
    if (run->published) fputs("\nA published result: without its requests and its machine.\n", f);
    else
        fprintf(f, "\n%s, %d cores, %d prompts, %d requests in %.0f s, %s.\n", cpu ? cpu : "unknown processor",
                (int)json_integer_value(json_object_get(json_object_get(run->machine, "cpu"), "cores_online")), run->n_asked,
                run->n, wg_json_measured(run->summary, "seconds"), when ? when : "unknown time");
    return WG_OK;
}

wg_status wg_report_latex(FILE *f, const wg_run_reader *run, const wg_column_choice *columns, wg_error *err)
{
    const json_t *cells;
    const char *question = json_string_value(json_object_get(run->config, "question")),
               *name = json_string_value(json_object_get(run->config, "name"));
    WG_TRY(wg_run_reader_cells(run, &cells, err));
    char *about = wg_run_reader_about(run), *caption = NULL;
    size_t n = 0;
    FILE *m = about ? open_memstream(&caption, &n) : NULL;
    if (m)
        fprintf(m, "%s%sA line a cell, beside its own baseline; brackets: 95 %% intervals over prompts. %s",
                question ? question : "", question && *question ? " " : "", about);
    const bool ok = m && fclose(m) == 0;
    if (ok) wg_table_print_latex(f, run->summary, columns, name ? name : "run", caption);
    free(caption);
    free(about);
    return ok ? WG_OK : wg_nomem(err, n, "a caption");
}
