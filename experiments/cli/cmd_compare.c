/* SPDX-License-Identifier: MIT
 * wager compare: compares result folders. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/cli/cli.h"
#include "experiments/analysis/compare.h"
#include "experiments/base/stats.h"
#include "experiments/report/report_page.h"

/* Opens "DIR" or "DIR:CELL". */
static wg_status open_run(wg_compared *r, wg_run_reader **folder, const char *name, wg_error *err)
{
    struct stat st;
    char dir[4096], *end = NULL;
    const char *colon = strrchr(name, ':');
    long cell = -1;
    snprintf(dir, sizeof dir, "%s", name);
    if (colon && colon[1] && stat(name, &st) != 0) {
        cell = strtol(colon + 1, &end, 10);
        if (*end || cell < 0) return wg_fail(err, WG_EINVAL, "%s: expected DIR or DIR:CELL, the number of a cell", name);
        snprintf(dir, sizeof dir, "%.*s", (int)(colon - name), name);
    }
    WG_TRY(wg_run_reader_open_result(folder, dir, err));
    const long cells = (long)json_array_size((*folder)->cells);
    if (cell >= cells) return wg_fail(err, WG_EINVAL, "%s: this run has the cells 0 to %ld", name, cells - 1);
    *r = (wg_compared){ *folder, (int)cell };
    return WG_OK;
}

/* Parses "3%" or "0.03"; negative: another text. */
static double share_of(const char *text)
{
    char *end;
    double v = strtod(text, &end);
    if (end != text && !strcmp(end, "%")) v /= 100, end++;
    return end == text || *end || !(v >= 0 && v < 1) ? -1 : v;
}

/* The exit status under --fail-if-slower; a cell without a verdict fails. */
static int judge(const json_t *result, double share, const char *limit, int status)
{
    int unknown;
    const int slower = wg_compare_slower(result, share, &unknown), all = (int)json_array_size(json_object_get(result, "pairs"));
    if (slower) fprintf(stderr, "wager compare: %d of %d cells are slower by more than %s\n", slower, all, limit);
    if (unknown)
        fprintf(stderr,
                "wager compare: %d of %d cells have no verdict; --fail-if-slower needs at least %d prompts in both runs, with "
                "their baselines\n",
                unknown, all, WG_INTERVAL_PROMPTS);
    return slower || unknown ? WG_EXIT_FAILED : status;
}

static wg_status write_page(const char *path, const json_t *comparison, bool drawings, wg_error *err)
{
    json_t *document = wg_compare_document(comparison, drawings);
    const wg_status s = wg_page_save(path, document, err);
    json_decref(document);
    return s;
}

int wg_cmd_compare(int argc, char **argv)
{
    const char *dir[WG_COMPARE_MOST] = { NULL }, *limit = NULL, *html = NULL;
    bool json = false, md = false, plain = false;
    const wg_flag flags[] = {
        { "fail-if-slower", 0, WG_FLAG_STRING, &limit, "3%",
          "exit with status 1 when a cell's verdict is slower, by more than this share", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &json, NULL, "one JSON object", 0, 0 },
        { "md", 0, WG_FLAG_BOOL, &md, NULL, "Markdown", 0, 0 },
        { "html", 0, WG_FLAG_STRING, &html, "FILE", "writes a page with drawings, and prints its name", 0, 0 },
        { "no-drawings", 0, WG_FLAG_BOOL, &plain, NULL, "a page of tables only, even where gnuplot is there", 0, 0 },
        { NULL, 0, WG_FLAG_BOOL, NULL, NULL, NULL, 0, 0 },
    };
    const int bad = wg_cli_parse("compare", flags, argc, argv, dir, 2, WG_COMPARE_MOST);
    if (bad >= 0) return bad;
    const double share = limit ? share_of(limit) : 0;
    if (share < 0) return wg_cli_refuse("compare", "--fail-if-slower %s: expected a share such as 3%% or 0.03", limit);
    wg_run_reader *folder[WG_COMPARE_MOST] = { NULL };
    wg_compared run[WG_COMPARE_MOST];
    wg_error err;
    json_t *result = NULL;
    wg_status s = WG_OK;
    int n = 0, status = WG_EXIT_OK;
    for (; n < WG_COMPARE_MOST && dir[n] && s == WG_OK; n++) s = open_run(&run[n], &folder[n], dir[n], &err);
    if (s == WG_OK) s = wg_compare(&result, run, n, &err);
    if (s == WG_OK && html) s = write_page(html, result, !plain, &err);
    if (s != WG_OK) status = wg_cli_fail(&err);
    if (json && result) wg_cli_put_json(json_incref(result), false);
    else if (result && html && !md && s == WG_OK) puts(html);
    else if (result && s == WG_OK) wg_compare_print(stdout, result, md);
    if (result && limit && s == WG_OK) status = judge(result, share, limit, status);
    json_decref(result);
    for (int i = 0; i < WG_COMPARE_MOST; i++) wg_run_reader_close(folder[i]);
    return status;
}
