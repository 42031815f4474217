/* SPDX-License-Identifier: MIT
 * wager report: a run as a page, as Markdown or as comma-separated values, or a folder of runs as an index. */
#include <stdio.h>
#include <unistd.h>

#include "experiments/cli.h"
#include "experiments/commands.h"
#include "experiments/html.h"
#include "experiments/report.h"
#include "experiments/table.h"

static bool is_run(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/requests.jsonl", dir);
    return access(path, F_OK) == 0;
}

typedef struct page { const char *dir; bool run, drawings; } page;

static wg_status write_page(FILE *f, void *arg, wg_error *err)
{
    int runs;
    wg_folder *folder;
    const page *p = arg;
    if (!p->run) return wg_report_index(f, p->dir, &runs, err);
    WG_TRY(wg_folder_open(&folder, p->dir, err));
    const wg_status s = wg_report_write(f, folder, p->drawings, err);
    wg_folder_close(folder);
    return s;
}

/* What is for a terminal, a paper or a spreadsheet goes to standard output. */
static wg_status print_run(const char *dir, bool csv, wg_error *err)
{
    wg_folder *run;
    WG_TRY(wg_folder_open(&run, dir, err));
    wg_status s = WG_OK;
    if (!csv) s = wg_report_markdown(stdout, run, err);
    else if (run->summary) wg_table_print_csv(stdout, run->summary);
    else s = wg_fail(err, WG_EINVAL, "%s: there is no summary.json: the run never came to its end; wager run --resume goes on", dir);
    wg_folder_close(run);
    if (s == WG_OK && (fflush(stdout) || ferror(stdout))) s = wg_fail(err, WG_EIO, "cannot write to standard output");
    return s;
}

int wg_cmd_report(int argc, char **argv)
{
    const char *dir, *out = NULL;
    bool plain = false, csv = false, markdown = false;
    const wg_flag flags[] = {
        { "out", 'o', WG_FLAG_STRING, &out, "FILE", "the page; else DIR/report.html, or DIR/index.html for a folder of runs", 0,
          0 },
        { "no-drawings", 0, WG_FLAG_BOOL, &plain, NULL, "tables only, even where gnuplot is there", 0, 0 },
        { "md", 0, WG_FLAG_BOOL, &markdown, NULL, "print the run as Markdown instead: question, answer, table", 0, 0 },
        { "csv", 0, WG_FLAG_BOOL, &csv, NULL, "print all numbers of all cells instead, comma-separated", 0, 0 },
        { NULL, 0, WG_FLAG_BOOL, NULL, NULL, NULL, 0, 0 },
    };
    const int bad = wg_cli_parse("report", flags, argc, argv, &dir, 1, 1);
    if (bad >= 0) return bad;
    wg_error problem;
    if (csv || markdown) return print_run(dir, csv, &problem) ? wg_cli_fail(&problem) : WG_EXIT_OK;
    page p = { dir, is_run(dir), !plain };
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, p.run ? "report.html" : "index.html");
    if (wg_html_save(out ? out : path, write_page, &p, &problem) != WG_OK) return wg_cli_fail(&problem);
    printf("%s\n", out ? out : path);
    return WG_EXIT_OK;
}
