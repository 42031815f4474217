/* SPDX-License-Identifier: MIT
 * The drawings of a report: all for its page, or each as a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/make_path.h"
#include "core/base/mem.h"
#include "core/base/save.h"
#include "experiments/report/report_parts.h"
#include "experiments/report/table.h"

/* The drawings. Users find files by these names, so names must not change. */
static const struct {
    const char *name;
    void (*draw)(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells);
} figure[] = {
    { "speedups", wg_report_plot_speedups },
    { "predicted", wg_report_plot_predicted },
    { "lengths", wg_report_plot_lengths },
    { "positions", wg_report_plot_positions },
    { "categories", wg_report_plot_categories },
    { "drafters", wg_report_plot_drafters },
    { "temperatures", wg_report_plot_temperatures },
    { "batches", wg_report_plot_batches },
    { "ttft", wg_report_plot_ttft },
    { "tpot", wg_report_plot_tpot },
};
enum { FIGURES = sizeof figure / sizeof *figure, NAME_MOST = 40 };

json_t *wg_report_drawings(const wg_run_reader *run, const json_t *cells)
{
    char *about = wg_run_reader_about(run);
    const wg_plot_out to = { .about = about, .page = json_array() };
    for (int i = 0; i < FIGURES; i++) {
        const size_t before = json_array_size(to.page);
        figure[i].draw(&to, run, cells);
        json_object_set_new(json_array_get(to.page, before), "name", json_string(figure[i].name));
    }
    free(about);
    return to.page;
}

static wg_status save(const char *folder, const char *name, const char *text, size_t n, wg_error *err)
{
    const size_t size = strlen(folder) + NAME_MOST + 2;
    char *path = wg_alloc(size, 1);
    if (!path) return wg_nomem(err, size, "a path");
    snprintf(path, size, "%s/%s", folder, name);
    const wg_status s = wg_save_all(path, text, n, err);
    wg_free(path);
    return s;
}

/* Writes a LaTeX figure; caption ends with a line end. */
static void put_figure(FILE *f, const char *folder, const wg_run_reader *run, int i, const char *caption)
{
    const char *name = json_string_value(json_object_get(run->config, "name"));
    fprintf(f, "\n\\begin{figure}\n\\centering\n\\includegraphics[width=\\linewidth]{%s/%s}\n\\caption{", folder,
            figure[i].name);
    wg_table_put_latex(f, caption);
    fputs("}\n\\label{fig:", f);
    wg_table_put_label(f, name ? name : "run");
    fprintf(f, "-%s}\n\\end{figure}\n", figure[i].name);
}

/* Writes drawing i if the run has data for it; *made: whether it was written. */
static wg_status one(const char *folder, const wg_run_reader *run, const json_t *cells, int i, const wg_plot_out *as,
                     bool *made, wg_error *err)
{
    char *text = NULL, *caption = NULL, name[NAME_MOST];
    size_t n = 0, length = 0;
    wg_plot_out to = {
        .f = open_memstream(&text, &n), .form = as->form, .about = as->about, .captions = open_memstream(&caption, &length)
    };
    wg_status s = to.f && to.captions ? WG_OK : wg_nomem(err, 1, "a drawing");
    if (s == WG_OK) figure[i].draw(&to, run, cells);
    if (to.f && fclose(to.f) != 0 && s == WG_OK) s = wg_nomem(err, n, "a drawing");
    if (to.captions) fclose(to.captions);
    *made = s == WG_OK && n > 0;
    snprintf(name, sizeof name, "%s.%s", figure[i].name, as->form == WG_PLOT_PDF ? "pdf" : "svg");
    if (*made) s = save(folder, name, text, n, err);
    if (*made && s == WG_OK) fprintf(as->captions, "%s: %s", name, caption);
    if (*made && s == WG_OK && as->f) put_figure(as->f, folder, run, i, caption);
    free(text);
    free(caption);
    return s;
}

wg_status wg_report_figures(const char *folder, const wg_run_reader *run, wg_plot_form form, FILE *latex, int *files,
                            wg_error *err)
{
    const json_t *cells;
    *files = 0;
    WG_TRY(wg_run_reader_cells(run, &cells, err));
    if (!wg_plot_available(form))
        return wg_fail(err, WG_EINVAL, "--figures needs gnuplot with %s; install gnuplot-nox",
                       form == WG_PLOT_PDF ? "its PDF terminal" : "its SVG terminal");
    bool there;
    if (!wg_make_path(folder, &there))
        return wg_fail(err, WG_EIO, "%s: cannot make this folder: %s; choose another with --figures FOLDER", folder,
                       strerror(errno));
    char *captions = NULL, *about = wg_run_reader_about(run);
    size_t n = 0;
    const wg_plot_out to = { .f = latex, .form = form, .about = about, .captions = open_memstream(&captions, &n) };
    wg_status s = about && to.captions ? WG_OK : wg_nomem(err, 1, "captions");
    for (int i = 0; i < FIGURES && s == WG_OK; i++) {
        bool made;
        s = one(folder, run, cells, i, &to, &made, err);
        *files += made && s == WG_OK;
    }
    if (to.captions && fclose(to.captions) != 0 && s == WG_OK) s = wg_nomem(err, n, "captions");
    if (s == WG_OK && *files) s = save(folder, "captions.txt", captions, n, err);
    if (s == WG_OK && !*files) s = wg_fail(err, WG_EINVAL, "%s has nothing to draw: no cell has a number", run->path);
    free(captions);
    free(about);
    return s;
}
