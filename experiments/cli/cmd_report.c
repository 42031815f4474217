/* SPDX-License-Identifier: MIT
 * wager report: a run as a page, a table, Markdown, LaTeX, comma-separated values or drawings, or a folder of runs as an
 * index; a run of `wager train` or `wager distill` as a page or Markdown. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "experiments/cli/cli.h"
#include "experiments/report/report_page.h"
#include "experiments/report/report.h"
#include "experiments/report/table.h"
#include "experiments/report/training_page.h"

static bool is_run(const char *dir) { return wg_run_reader_is_run(dir) || wg_run_reader_is_published(dir); }

/* The document of a folder's page: of a run, of a training run, or of the index of a folder of runs. */
static wg_status document_of(json_t **out, const char *dir, bool drawings, wg_error *err)
{
    wg_run_reader *folder;
    wg_training_log log;
    if (wg_training_is_run(dir)) {
        WG_TRY(wg_training_log_open(&log, dir, err));
        *out = wg_training_document(&log, dir, drawings);
        wg_training_log_close(&log);
        return WG_OK;
    }
    if (!is_run(dir)) return wg_report_index(out, dir, err);
    WG_TRY(wg_run_reader_open_result(&folder, dir, err));
    const wg_status s = wg_report_document(out, folder, drawings, err);
    wg_run_reader_close(folder);
    return s;
}

/* The form of the output. */
typedef struct form {
    bool table, csv, markdown, latex;
    const char *figures, *format; /* folder and format ("svg", "pdf") of drawings; NULL: none */
    wg_plot_form drawing;
    const char *by; /* kind of CSV rows, or NULL */
    wg_csv_rows rows;
    const wg_column_choice *columns;
} form;

/* Writes drawings. With LaTeX, table and figures go to standard output and the message to stderr. */
static wg_status print_figures(const form *as, const wg_run_reader *run, wg_error *err)
{
    int files;
    const char *folder = as->figures;
    if (as->latex) WG_TRY(wg_report_latex(stdout, run, as->columns, err));
    WG_TRY(wg_report_figures(folder, run, as->drawing, as->latex ? stdout : NULL, &files, err));
    fprintf(as->latex ? stderr : stdout, "%s: %d drawing%s, and captions.txt\n", folder, files, files == 1 ? "" : "s");
    return WG_OK;
}

static wg_status print_run(const char *dir, const form *as, wg_error *err)
{
    wg_run_reader *run;
    const json_t *cells;
    wg_status s = WG_OK;
    if (wg_training_is_run(dir)) {
        wg_training_log log;
        WG_TRY(wg_training_log_open(&log, dir, err));
        wg_training_markdown(stdout, &log, dir);
        wg_training_log_close(&log);
        return WG_OK;
    }
    WG_TRY(wg_run_reader_open_result(&run, dir, err));
    if (as->figures) s = print_figures(as, run, err);
    else if (as->latex) s = wg_report_latex(stdout, run, as->columns, err);
    else if (as->markdown) s = wg_report_markdown(stdout, run, as->columns, err);
    else if ((s = wg_run_reader_cells(run, &cells, err))) cells = NULL;
    else if (as->csv) wg_table_print_csv(stdout, run->summary, as->rows, as->columns);
    else wg_table_print(stdout, run->summary, as->columns, wg_cli_width(STDOUT_FILENO));
    wg_run_reader_close(run);
    return s;
}

/* Checks the combination of flags: one form; columns of cells only. */
static wg_status check_form(form *as, const char *dir, const char *out, wg_error *err)
{
    static const char *const rows[] = { "cell", "position", "category", "turn", "part", NULL }; /* wg_csv_rows */
    if (as->table + as->csv + as->markdown + as->latex + (as->figures && !as->latex) > 1)
        return wg_fail(err, WG_EINVAL,
                       "one of --table, --md, --latex, --csv and --figures at a time, or --latex with --figures");
    if (as->format && !as->figures) return wg_fail(err, WG_EINVAL, "--format needs --figures: it is the format of their files");
    if (as->latex && as->format && strcmp(as->format, "pdf") != 0)
        return wg_fail(err, WG_EINVAL, "--format %s: LaTeX includes pdf; leave --format out beside --latex", as->format);
    if (as->latex) as->format = "pdf";
    as->drawing = as->format && !strcmp(as->format, "pdf") ? WG_PLOT_PDF : WG_PLOT_SVG;
    if (as->by && !as->csv) return wg_fail(err, WG_EINVAL, "--by needs --csv: it says what has a row of the table");
    for (int k = 0; as->by && rows[k]; k++)
        if (!strcmp(as->by, rows[k])) as->rows = (wg_csv_rows)k;
    if (as->rows && as->columns)
        return wg_fail(err, WG_EINVAL, "--columns chooses columns of cells; the rows of --by have columns of their own");
    if (out) return wg_fail(err, WG_EINVAL, "--out is for the page; anything else goes to standard output: > '%s'", out);
    if (wg_training_is_run(dir))
        return as->markdown && !as->columns
                   ? WG_OK
                   : wg_fail(err, WG_EINVAL, "'%s' is a training run: it has a page, and Markdown (--md)", dir);
    if (!is_run(dir))
        return wg_fail(err, WG_EINVAL,
                       "'%s' is no result folder of a run: it has no requests.jsonl, and no config.json beside a summary.json",
                       dir);
    return WG_OK;
}

int wg_cmd_report(int argc, char **argv)
{
    const char *dir, *out = NULL, *list = NULL;
    bool plain = false;
    form as = { .table = false };
    wg_column_choice chosen;
    const wg_flag flags[] = {
        { "out", 'o', WG_FLAG_STRING, &out, "FILE",
          "the page to write; else DIR/report.html, or DIR/index.html for a folder of runs", 0, 0 },
        { "no-drawings", 0, WG_FLAG_BOOL, &plain, NULL, "tables only, even where gnuplot is there", 0, 0 },
        { "table", 0, WG_FLAG_BOOL, &as.table, NULL, "print the table that the run ended with instead", 0, 0 },
        { "md", 0, WG_FLAG_BOOL, &as.markdown, NULL, "print the run as Markdown instead: question, answer, table", 0, 0 },
        { "csv", 0, WG_FLAG_BOOL, &as.csv, NULL, "print all numbers of all cells instead, comma-separated", 0, 0 },
        { "latex", 0, WG_FLAG_BOOL, &as.latex, NULL, "print the table as LaTeX instead (booktabs), with --figures also these",
          0, 0 },
        { "figures", 0, WG_FLAG_STRING, &as.figures, "FOLDER", "write each drawing to a file of FOLDER, and captions.txt", 0,
          0 },
        { "format", 0, WG_FLAG_CHOICE, &as.format, "svg|pdf", "form of the files of --figures (svg)", 0, 0 },
        { "by", 0, WG_FLAG_CHOICE, &as.by, "cell|position|category|turn|part", "with --csv: what a row stands for (cell)", 0,
          0 },
        { "columns", 0, WG_FLAG_STRING, &list, "COLUMNS", WG_COLUMNS_DOC, 0, 0 },
        { NULL, 0, WG_FLAG_BOOL, NULL, NULL, NULL, 0, 0 },
    };
    const int bad = wg_cli_parse("report", flags, argc, argv, &dir, 1, 1);
    if (bad >= 0) return bad;
    wg_error problem;
    if (list && wg_columns_named(list, &chosen, &problem)) return wg_cli_fail(&problem);
    as.columns = list ? &chosen : NULL;
    if (list && !as.csv && !as.markdown && !as.latex) as.table = true;
    if (as.table || as.csv || as.markdown || as.latex || as.figures || as.format || as.by)
        return check_form(&as, dir, out, &problem) || print_run(dir, &as, &problem) ? wg_cli_fail(&problem) : WG_EXIT_OK;
    char path[4096];
    json_t *document = NULL;
    snprintf(path, sizeof path, "%s/%s", dir, is_run(dir) || wg_training_is_run(dir) ? "report.html" : "index.html");
    wg_status s = document_of(&document, dir, !plain, &problem);
    if (s == WG_OK) s = wg_page_save(out ? out : path, document, &problem);
    json_decref(document);
    if (s != WG_OK) return wg_cli_fail(&problem);
    printf("%s\n", out ? out : path);
    return WG_EXIT_OK;
}
