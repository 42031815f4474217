/* SPDX-License-Identifier: MIT
 * The page of a run on a tiny pair: its document has the numbers of summary.json and the texts of users unchanged, and the
 * page is well-formed and self-contained whatever they say. How it is shown: tests/program/page.sh. */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/report/report_page.h"
#include "experiments/report/plot.h"
#include "experiments/report/report_parts.h"
#include "experiments/report/table.h"
#include "experiments/report/table_notes.h"
#include "experiments/run/runner.h"
#include "dashed_line.h"
#include "scene.h"

static scene s;
static void setup(void)
{
    scene_make(&s);
    put("prompts.jsonl", "{\"id\": \"<cat>\", \"category\": \"a&b\", \"prompt\": \"The <b>cat</b></script><!-- sat\"}\n"
                         "{\"id\": \"dog\", \"category\": \"c\", \"prompt\": \"abababab\"}\n");
}
static void teardown(void) { scene_remove(&s); }
TestSuite(report, .init = setup, .fini = teardown, .timeout = 120);

static void run(const char *out, const char *more)
{
    char text[900];
    wg_error err;
    wg_run r;
    char *path;
    snprintf(
        text, sizeof text,
        "{\"name\": \"t\", \"question\": \"Is 1 < 2 & \\\"so\\\"?\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1},"
        "\"prompts\": {\"file\": \"prompts.jsonl\"}, \"max_tokens\": 24, \"draft\": {\"kind\": \"model\", \"model\": "
        "\"draft.gguf\", \"length\": 4}%s%s}",
        strstr(more, "\"trace\"") ? "" : ", \"trace\": \"steps\"", more);
    wg_config *c = config_of(text);
    const wg_run_options o = { .out = out };
    cr_assert_eq(wg_run_config(c, &o, &r, &path, &err), WG_OK, "%s", err.text);
    wg_run_free(&r);
    wg_free(path);
    wg_config_close(c);
}

static wg_run_reader *reader_of(const char *dir)
{
    wg_error err;
    wg_run_reader *f;
    cr_assert_eq(wg_run_reader_open(&f, dir, &err), WG_OK, "%s", err.text);
    return f;
}

static json_t *document(const char *dir, bool drawings)
{
    wg_error err;
    json_t *o = NULL;
    wg_run_reader *f = reader_of(dir);
    cr_assert_eq(wg_report_document(&o, f, drawings, &err), WG_OK, "%s", err.text);
    wg_run_reader_close(f);
    return o;
}

/* Every element that is opened is closed, in order; no bare < or & in between, but in style sheets and scripts. */
static void well_formed(const char *html)
{
    static const char *const empty[] = { "meta", "wbr", "!doctype" };
    char open[64][16];
    int depth = 0;
    for (const char *p = html; *p; p++) {
        if (*p == '&') cr_assert(strchr(p, ';') && strchr(p, ';') - p < 8, "a bare & at: %.40s", p);
        if (strncmp(p, "<!--", 4) == 0) p = strstr(p, "-->") + 2;
        if (*p != '<') continue;
        char name[16] = "";
        const bool close = p[1] == '/';
        size_t n = 0;
        for (p += 1 + close; (isalnum((unsigned char)*p) || *p == '!') && n < sizeof name - 1; p++) name[n++] = *p;
        cr_assert_gt(n, 0, "a bare < at: %.40s", p - 1);
        bool alone = false;
        for (size_t i = 0; i < 3; i++) alone = alone || !strcmp(name, empty[i]);
        if (close)
            cr_assert(depth > 0 && !strcmp(open[--depth], name), "</%s> closes <%s>", name, depth >= 0 ? open[depth] : "");
        else if (!alone && strchr(p, '>')[-1] != '/') { /* as parts of drawings are */ cr_assert_lt(depth, 64);
            strcpy(open[depth++], name);
        }
        if (!strcmp(name, "style") && !close) p = strstr(p, "</style>") - 1;
        else if (!strcmp(name, "script") && !close) p = strstr(p, "</script>") - 1;
        else p = strchr(p, '>');
    }
    cr_assert_eq(depth, 0, "<%s> is open", depth ? open[depth - 1] : "");
}

/* Drawings as files: `form` into `folder`; their number, or -1 where there is no gnuplot. */
static int figures(const wg_run_reader *f, const char *folder, wg_plot_form form)
{
    wg_error err;
    int files;
    const wg_status s = wg_report_figures(folder, f, form, NULL, &files, &err);
    cr_assert_eq(s, wg_plot_available(form) ? WG_OK : WG_EINVAL, "%s", err.text);
    if (s != WG_OK)
        cr_assert_str_eq(err.text, form == WG_PLOT_SVG ? "--figures needs gnuplot with its SVG terminal; install gnuplot-nox"
                                                       : "--figures needs gnuplot with its PDF terminal; install gnuplot-nox");
    return s == WG_OK ? files : -1;
}

/* What a caption has to name: the processor, its kernel level, the model, prompts and requests. */
static void says_what_ran(const wg_run_reader *f, const char *text)
{
    char want[64];
    const json_t *cpu = json_object_get(f->machine, "cpu");
    cr_assert(strstr(text, wg_json_word(cpu, "model")) && strstr(text, wg_json_word(cpu, "kernels")), "%s", text);
    snprintf(want, sizeof want, "; target.gguf; 2 prompts, %d requests.", f->n);
    cr_assert(strstr(text, want), "%s: %s", want, text);
}

/* Gives the cells numbers with intervals, which two prompts do not: speed-ups of 1.31, 2.31, 3.31 and 4.31. The last cell gets
 * another drafter, and the first two another temperature and batch. */
static void give_numbers(const wg_run_reader *f, const json_t *cells)
{
    size_t i;
    json_t *c;
    json_array_foreach((json_t *)cells, i, c) {
        json_t *config = json_object_get(json_array_get(f->cells, i), "config");
        json_object_set_new(c, "speedup", json_real(1.31 + (double)i));
        json_object_set_new(c, "speedup_ci", json_pack("[ff]", 1.11 + (double)i, 1.52 + (double)i));
        json_object_set_new(c, "predicted_speedup", json_real(1.25 + (double)i));
        json_object_set_new(c, "residual_percent", json_pack("{s:f}", "total", 2 + (double)i));
        json_object_set_new(c, "tau", json_real(2.25));
        json_object_set_new(c, "tau_ci", json_pack("[ff]", 2.0, 2.5));
        if (i < 2) json_object_set_new(json_object_get(config, "sampling"), "temperature", json_real(0.5));
        if (i < 2) json_object_set_new(config, "batch", json_integer(4));
        json_object_set_new(c, "attribution",
                            json_pack("{s:f, s:[ff], s:f, s:n}", "drafter_loss", 0.25, "drafter_loss_ci", 0.2, 0.3, "rule_loss",
                                      0.01 * (double)i, "rule_loss_ci"));
    }
    c = json_array_get(cells, 3);
    json_object_set_new(c, "drafter", json_string("other"));
    c = json_array_get(json_object_get(c, "categories"), 0);
    json_object_set_new(c, "speedup", json_real(1.75));
    json_object_set_new(c, "speedup_ci", json_pack("[ff]", 1.5, 2.0));
    c = json_array_get(json_object_get(json_array_get(cells, 3), "categories"), 1);
    json_object_set_new(c, "speedup", json_real(2.75));
}

/* A drawing that has no data writes nothing. */
static void nothing(void draw(const wg_plot_out *, const wg_run_reader *, const json_t *), const wg_run_reader *f)
{
    char *text = NULL;
    size_t n = 0;
    const wg_plot_out to = { .f = open_memstream(&text, &n), .form = WG_PLOT_SVG };
    draw(&to, f, json_object_get(f->summary, "cells"));
    fclose(to.f);
    cr_assert_eq(n, 0, "%.200s", text);
    free(text);
}

static void no_data_no_drawing(wg_run_reader *f)
{
    const int n = f->n;
    nothing(wg_report_plot_drafters, f);     /* one drafter */
    nothing(wg_report_plot_temperatures, f); /* one temperature */
    nothing(wg_report_plot_batches, f);
    f->n = 0;
    nothing(wg_report_plot_ttft, f);
    nothing(wg_report_plot_tpot, f);
    f->n = n;
}

/* The text of a drawing in a folder, well-formed, with a point that says this. */
static char *with_point(const char *path, const char *says)
{
    char *text = file_read(path, NULL);
    well_formed(text);
    cr_assert(strstr(text, says), "%s: no '%s'", path, says);
    return text;
}

/* The two requests of plain decoding at heights 0.5 and 1. */
static void distribution_of_plain(const wg_run_reader *f, const char *path, bool first_token)
{
    char note[120];
    double least = INFINITY, most = 0;
    for (int i = 0; i < f->n; i++) {
        const double v = first_token ? f->entry[i].ttft : f->entry[i].tpot;
        if (f->entry[i].cell >= 0) continue;
        least = fmin(least, v);
        most = fmax(most, v);
    }
    snprintf(note, sizeof note, ">plain decoding: share of requests 0.50 at %s in ms %g<", first_token ? "TTFT" : "TPOT",
             least);
    free(with_point(path, note));
    snprintf(note, sizeof note, ">plain decoding: share of requests 1.00 at %s in ms %g<", first_token ? "TTFT" : "TPOT", most);
    free(with_point(path, note));
}

/* The fastest cell of each temperature and batch is in the front, which is drawn last. */
static void front_of(const char *path, const char *rest, const char *best)
{
    char *text = with_point(path, rest);
    cr_assert(strstr(text, best) > strstr(text, rest), "%s: '%s' is not in the front", path, best);
    free(text);
}

static void no_text_on_the_lines(void)
{
    static const char *const path[] = { "figures/speedups.svg", "figures/predicted.svg", "figures/drafters.svg" };
    for (int i = 0; i < 3; i++) {
        char *svg = file_read(path[i], NULL);
        no_text_on_the_line(path[i], svg, i == 0 ? 2 : 1);
        free(svg);
    }
}

static void drawings_of_sweeps(const wg_run_reader *f)
{
    free(with_point("figures/drafters.svg", "3  length=3, rule=greedy, a&amp;b: 1.75x [1.50, 2.00]<"));
    free(with_point("figures/drafters.svg", "3  length=3, rule=greedy, c: 2.75x<"));
    front_of("figures/temperatures.svg", ": speed-up 1.31 [1.11, 1.52] at temperature 0.5<",
             ": speed-up 2.31 [2.11, 2.52] at temperature 0.5<");
    front_of("figures/batches.svg", ": speed-up 3.31 [3.11, 3.52] at batch 1<", ": speed-up 4.31 [4.11, 4.52] at batch 1<");
    distribution_of_plain(f, "figures/ttft.svg", true);
    distribution_of_plain(f, "figures/tpot.svg", false);
}

/* A file is alone: its namespace, its colours written out, the legend, the caption and the points' notes in it. */
static void drawings_alone(const char *dir)
{
    wg_error err;
    wg_run_reader *f = reader_of(dir);
    char note[120];
    int files;
    const json_t *cells = json_object_get(f->summary, "cells");
    no_data_no_drawing(f);
    give_numbers(f, cells);
    const int n = figures(f, "figures", WG_PLOT_SVG), pdf = figures(f, "pdf", WG_PLOT_PDF);
    if (n > 0) {
        char *text = file_read("figures/speedups.svg", NULL), *captions = file_read("figures/captions.txt", NULL);
        well_formed(text);
        cr_assert_null(strstr(text, "scale(0.00)"), "librsvg draws nothing of a file with such a matrix");
        cr_assert(strncmp(text, "<svg xmlns=\"http://www.w3.org/2000/svg\"", 38) == 0 && strstr(text, "</svg>\n"));
        cr_assert(!strstr(text, "var(") && !strstr(text, "rgb(") && strstr(text, "'#0072b2'"));
        cr_assert(strstr(text, ">measured</tspan>") || strstr(text, ">measured</text>"));
        for (size_t i = 0; i < json_array_size(cells); i++) {
            snprintf(note, sizeof note, ": measured %zu.31x [%zu.11, %zu.52]<", i + 1, i + 1, i + 1);
            cr_assert(strstr(text, note), "%s", note);
        }
        says_what_ran(f, strstr(text, "<desc>"));
        says_what_ran(f, strstr(captions, "lengths.svg: Tokens per pass"));
        free(text);
        free(captions);
        drawings_of_sweeps(f);
        no_text_on_the_lines();
    }
    if (pdf > 0) {
        char *text = file_read("pdf/lengths.pdf", NULL);
        cr_assert(strncmp(text, "%PDF-", 5) == 0);
        cr_assert_eq(pdf, n);
        free(text);
    }
    if (n > 0) { /* a folder in a file, and a run whose cells are gone */
        cr_assert_eq(wg_report_figures("out/config.json/x", f, WG_PLOT_SVG, NULL, &files, &err), WG_EIO);
        cr_assert_str_eq(err.text, "out/config.json/x: cannot make this folder: Not a directory; choose another with --figures "
                                   "FOLDER");
        json_array_clear(json_object_get(f->summary, "cells"));
        cr_assert_eq(wg_report_figures("none", f, WG_PLOT_SVG, NULL, &files, &err), WG_EINVAL);
        cr_assert_str_eq(err.text, "out has nothing to draw: no cell has a number");
        cr_assert(access("none/captions.txt", F_OK) != 0 && access("none/speedups.svg", F_OK) != 0);
    }
    json_object_del(f->summary, "cells");
    cr_assert_eq(wg_report_figures("none", f, WG_PLOT_SVG, NULL, &files, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "out: there is no summary.json: the run never came to its end; wager run --resume goes on");
    wg_run_reader_close(f);
}

static void latex(char **text, const wg_run_reader *f, const char *columns)
{
    wg_column_choice chosen;
    wg_error err;
    size_t n = 0;
    cr_assert_eq(wg_columns_named(columns, &chosen, &err), WG_OK);
    FILE *m = open_memstream(text, &n);
    cr_assert_eq(wg_report_latex(m, f, &chosen, &err), WG_OK);
    fclose(m);
}

/* The table of LaTeX: the chosen columns, the numbers of the summary, and no character that LaTeX would read. */
static void table_of_latex(const char *dir)
{
    char want[200];
    wg_run_reader *f = reader_of(dir);
    json_t *cell = json_array_get(json_object_get(f->summary, "cells"), 0);
    json_object_set_new(cell, "drafter", json_string("[a]_&%#{}$~^\\<"));
    json_object_set_new(cell, "rule", json_string("-1"));
    json_object_set_new(cell, "tau", json_real(2.25));
    json_object_set_new(cell, "tau_ci", json_pack("[ff]", 2.0, 2.5));
    json_object_set_new(cell, "draft_acceptance_rate", json_real(0.612));
    char *text = NULL;
    latex(&text, f, "tau,draft_acceptance_rate");
    cr_assert(strstr(text, "\\begin{tabular}{@{}lrlrrr@{}}\n\\toprule\ndrafter & length & rule & temp & tau & accepted "
                           "\\\\\n\\midrule\n"),
              "%s", text);
    strcpy(want,
           "\n{[}a]\\_\\&\\%\\#\\{\\}\\$\\textasciitilde{}\\textasciicircum{}\\textbackslash{}\\textless{} & 2 & $-$1 & 1 & "
           "2.25 [2.00, 2.50] & 61.2 \\% \\\\\n");
    cr_assert(strstr(text, want), "%s%s", want, text);
    cr_assert(strstr(text, "\\bottomrule\n\\end{tabular}\n\\end{table}\n") && strstr(text, "\\label{tab:t}"));
    cr_assert(strstr(text, "\\caption{Is 1 \\textless{} 2 \\& \\textquotedbl{}so\\textquotedbl{}? "), "%s", text);
    says_what_ran(f, strstr(text, "\\caption"));
    free(text);
    wg_run_reader_close(f);
}

static const char *const drawn[] = { "Speed-up of each cell, measured and predicted",
                                     "Speed-up measured against predicted",
                                     "Tau against draft length",
                                     "Acceptance by position in the draft",
                                     "Speed-up by category",
                                     "Time to first token, by request",
                                     "Time per output token, by request" };

/* A value of a table of the page, as its column writes it. */
static void shows(const json_t *o, const char *table, size_t row, const char *column, const char *format, ...)
{
    char want[64];
    va_list a;
    va_start(a, format);
    vsnprintf(want, sizeof want, format, a);
    va_end(a);
    size_t k;
    json_t *head;
    const json_t *t = json_object_get(json_object_get(o, "tables"), table);
    json_array_foreach(json_object_get(t, "heads"), k, head) {
        if (strcmp(wg_json_word(head, "name"), column) != 0) continue;
        const json_t *v = json_array_get(json_object_get(json_array_get(json_object_get(t, "rows"), row), "values"), k);
        cr_assert_str_eq(json_string_value(json_is_array(v) ? json_array_get(v, 0) : v), want, "%s, %s", table, column);
        return;
    }
    cr_assert_fail("no column %s in the table %s", column, table);
}

/* Every drawing that the run has data for, in both widths, with what ran, and with the colours of the style sheet only. */
static void drawings_of_page(const json_t *figures)
{
    size_t i;
    json_t *figure;
    wg_run_reader *f = reader_of("out");
    bool seen[sizeof drawn / sizeof *drawn] = { false }, points = false;
    cr_assert_eq(json_array_size(figures) != 0, wg_plot_available(WG_PLOT_PAGE));
    json_array_foreach((json_t *)figures, i, figure) {
        cr_assert(*wg_json_word(figure, "name"));
        says_what_ran(f, wg_json_word(figure, "caption"));
        for (size_t k = 0; k < sizeof drawn / sizeof *drawn; k++) seen[k] |= !strcmp(wg_json_word(figure, "title"), drawn[k]);
        for (int slim = 0; slim < 2; slim++) {
            const char *svg = wg_json_word(json_object_get(figure, slim ? "slim" : "broad"), "svg");
            well_formed(svg);
            cr_assert(*svg && !strstr(svg, "rgb(") && !strstr(svg, "gnuplot_svg") && !strstr(svg, "http"), "%.300s", svg);
            points |= strstr(svg, "length=3, rule=greedy: measured ") != NULL;
        }
    }
    for (size_t k = 0; i && k < sizeof drawn / sizeof *drawn; k++) cr_assert(seen[k], "%s", drawn[k]);
    cr_assert_eq(points, i > 0, "a point says its cell and value");
    wg_run_reader_close(f);
}

/* Every column of cells has its explanation, to which its head is a link. */
static void heads_are_explained(const json_t *o)
{
    static const char *const tables[] = { "page", "rounds", "names", "phases", "use" };
    for (size_t t = 0; t < 5; t++) {
        size_t k, w;
        json_t *head, *word;
        const json_t *heads = json_object_get(json_object_get(json_object_get(o, "tables"), tables[t]), "heads");
        cr_assert_gt(json_array_size(heads), 0, "%s", tables[t]);
        json_array_foreach(heads, k, head) {
            bool found = false;
            json_array_foreach(json_object_get(o, "words"), w, word)
                found |= !strcmp(wg_json_word(word, "name"), wg_json_word(head, "name")) && *wg_json_word(word, "doc");
            cr_assert(found, "%s", wg_json_word(head, "name"));
        }
    }
}

Test(report, says_what_the_summary_says)
{
    run("out", ", \"sweep\": {\"draft.length\": [2, 3], \"verify.rule\": [\"match\", \"greedy\"]}, \"sampling\": "
               "{\"temperature\": 1}");
    drawings_alone("out");
    table_of_latex("out");
    json_t *o = document("out", true), *sum = json_load_file("out/summary.json", 0, NULL),
           *cell = json_array_get(json_object_get(sum, "cells"), 2), *texts = json_object_get(o, "texts"),
           *answer = json_array_get(json_object_get(texts, "answers"), 0);
    cr_assert(json_equal(json_object_get(o, "summary"), sum));
    cr_assert_str_eq(wg_json_word(o, "question"), "Is 1 < 2 & \"so\"?");
    cr_assert_str_eq(wg_json_word(answer, "prompt"), "The <b>cat</b></script><!-- sat");
    cr_assert(!strcmp(wg_json_word(answer, "id"), "<cat>") && !strcmp(wg_json_word(answer, "category"), "a&b"));
    cr_assert_str_eq(json_string_value(json_array_get(json_object_get(texts, "drafters"), 0)), "model");
    cr_assert(strstr(json_string_value(json_array_get(json_object_get(o, "names"), 3)), "length=3, rule=greedy"));
    cr_assert_eq(json_is_true(json_object_get(o, "no_gnuplot")), !wg_plot_available(WG_PLOT_PAGE));
    drawings_of_page(json_object_get(o, "figures"));
    cr_assert_gt(json_number_value(json_object_get(sum, "trace_seconds")), 0, "steps were written");
    const json_t *names = json_object_get(cell, "acceptance"), *rejected = json_object_get(cell, "rejected");
    shows(o, "page", 3, "equals_baseline", "no (lossy)");
    shows(o, "page", 2, "tok_s", "%.1f", json_number_value(json_object_get(cell, "tok_s")));
    shows(o, "page", 2, "baseline_tok_s", "%.1f", json_number_value(json_object_get(cell, "baseline_tok_s")));
    shows(o, "names", 2, "verify_rate", "%.3f", json_number_value(json_object_get(names, "verify_rate")));
    shows(o, "names", 2, "drafted_fraction_of_output", "%.3f",
          json_number_value(json_object_get(names, "drafted_fraction_of_output")));
    shows(o, "use", 2, "rejected_flop_share", "%.0f %%", 100 * json_number_value(json_object_get(rejected, "flop_share")));
    shows(o, "use", 2, "rejected_byte_share", "%.2f %%", 100 * json_number_value(json_object_get(rejected, "byte_share")));
    heads_are_explained(o);
    json_decref(sum);
    json_decref(o);
    o = document("out", false);
    cr_assert(json_array_size(json_object_get(o, "figures")) == 0 && json_is_false(json_object_get(o, "no_gnuplot")));
    json_decref(o);
}

/* The page is report.html and the document, which comes back unchanged: no text of a user ends its element. */
Test(report, a_page_needs_nothing_else)
{
    wg_error err;
    run("out", ", \"sweep\": {\"draft.length\": [2, 3]}");
    json_t *o = document("out", false);
    cr_assert_eq(wg_page_save("out/report.html", o, &err), WG_OK, "%s", err.text);
    char *html = file_read("out/report.html", NULL), *from = strstr(html, "id=\"data\">") + strlen("id=\"data\">");
    well_formed(html);
    for (int i = 0; i < 6; i++) {
        static const char *const other[] = { "src=", "@import", "http:", "https:", "url(", "<link" };
        cr_assert_null(strstr(html, other[i]), "%s", other[i]);
    }
    cr_assert(strstr(html, "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\""));
    char *to = strchr(from, '<');
    cr_assert_eq(strncmp(to, "</script>", 9), 0, "%.60s", to);
    json_t *back = json_loadb(from, (size_t)(to - from), 0, NULL);
    cr_assert(json_equal(back, o), "%.*s", (int)(to - from), from);
    json_decref(back);
    json_decref(o);
    free(html);
    cr_assert_eq(wg_page_save("none/report.html", NULL, &err), WG_ENOMEM);
}

/* Cells without a number, of a run that was interrupted: none of them is called fastest, or 0 times as fast. */
Test(report, cells_that_did_not_run_are_no_answer)
{
    static const char cell[] = "{\"cell\": {\"draft.k\": %d}, \"drafter\": \"%s\", \"rule\": \"match\", \"temperature\": 0, "
                               "\"group\": 0, \"speedup\": %s, \"speedup_ci\": null, \"best_fixed\": %s}";
    char text[1200], *out = NULL;
    size_t n = 0;
    for (int measured = 0; measured < 3; measured++) {
        int at = 0;
        for (int i = 0; i < 3; i++) {
            at += snprintf(text + at, sizeof text - (size_t)at, i ? "," : "[");
            at += snprintf(text + at, sizeof text - (size_t)at, cell, i, i == 2 ? "auto" : "ngram",
                           i < measured ? "1.5" : "null", i == 2 ? "null" : "{}");
        }
        snprintf(text + at, sizeof text - (size_t)at, "]");
        json_t *cells = json_loads(text, 0, NULL);
        FILE *m = open_memstream(&out, &n);
        wg_table_learnt(m, cells);
        fclose(m);
        cr_assert_eq(*out != '\0', measured == 2, "%s", out);
        cr_assert(!strstr(out, "0.00x") && !strstr(out, "auto,") && !strstr(out, "of 3 cells"), "%s", out);
        json_decref(cells);
        free(out);
    }
}

/* The marks of a transcript cut the text where drafted tokens begin and end; together they are the text. */
Test(report, drafted_bytes_add_up)
{
    run("out", ", \"sampling\": {\"temperature\": 0}");
    char *text = file_read("out/requests.jsonl", NULL);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *v = json_loads(line, 0, NULL), *bytes = json_object_get(v, "drafted_bytes"), *t = json_object_get(v, "text");
        json_int_t sum = 0;
        size_t i;
        json_t *n;
        json_array_foreach(bytes, i, n) sum += json_integer_value(n);
        const json_t *spec = json_object_get(v, "speculative_decoding");
        cr_assert_eq(i, 2 * (size_t)json_integer_value(json_object_get(spec, "target_passes")));
        cr_assert_eq(json_array_size(json_object_get(spec, "per_step_accepted")), i / 2);
        if (json_is_string(t)) cr_assert_eq((size_t)sum, json_string_length(t), "%s", line);
        json_decref(v);
    }
    free(text);
}

/* Three steps of a chain: taken whole, refused, half kept; then the same as trees, where only a refusal is certain. */
Test(report, transcripts_tell_corrected_from_bonus)
{
    static const char line[] =
        "{\"arm\":\"cell\",\"cell\":0,\"group\":0,\"prompt\":0,\"repeat\":0,\"id\":\"dog\",\"category\":\"c\",\"prompt_"
        "sha256\":\"h\","
        "\"status\":\"ok\",\"prompt_tokens\":3,\"tokens\":6,\"decode_ms\":9,\"ttft_ms\":3,\"tpot_ms\":1,\"output_sha256\":\"%"
        "064x\","
        "\"ids\":[1],\"text\":\"abCDeFg\",\"drafted_bytes\":[2,1,0,1,1,1,0,1],\"speculative_decoding\":{\"num_spec_steps\":4,"
        "\"num_draft_tokens\":%d,\"num_accepted_draft_tokens\":3,\"offered_by_position\":[3,3],\"per_step_accepted\":[2,0,1,0],"
        "\"per_step_drafted\":[%d,2,2,0]}}\n";
    char text[1200];
    run("out", ", \"sampling\": {\"temperature\": 0}");
    for (int tree = 0; tree < 2; tree++) {
        snprintf(text, sizeof text, line, 0u, tree ? 7 : 6, tree ? 3 : 2);
        put("out/requests.jsonl", text);
        json_t *o = document("out", false),
               *want =
                   json_loads(tree ? "[[\"a\",\"ab\"],[\"\",\"C\"],[\"c\",\"D\"],[\"a\",\"e\"],[\"\",\"F\"],[\"\",\"g\"]]"
                                   : "[[\"a\",\"ab\"],[\"b\",\"C\"],[\"c\",\"D\"],[\"a\",\"e\"],[\"c\",\"F\"],[\"\",\"g\"]]",
                              0, NULL);
        const json_t *answers = json_object_get(json_object_get(o, "texts"), "answers");
        cr_assert(json_equal(json_object_get(json_array_get(answers, 0), "pieces"), want), "tree %d", tree);
        json_decref(want);
        json_decref(o);
    }
}

Test(report, a_run_without_a_summary_has_none)
{
    wg_error err = { 0 };
    wg_run_reader *f;
    run("out", "");
    unlink("out/summary.json");
    cr_assert_eq(wg_run_reader_open(&f, "out", &err), WG_OK);
    json_t *o = NULL;
    cr_assert_eq(wg_report_document(&o, f, true, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "out: there is no summary.json") && strstr(err.text, "--resume"), "%s", err.text);
    wg_run_reader_close(f);
}

Test(report, index_lists_the_runs)
{
    wg_error err = { 0 };
    json_t *o = NULL;
    if (mkdir("results", 0777) || mkdir("results/t", 0777)) cr_assert_fail();
    run("results/t/one", "");
    run("results/t/two", ", \"seed\": 2");
    put("results/t/one/report.html", "x");
    cr_assert_eq(wg_report_index(&o, "results", &err), WG_OK, "%s", err.text);
    const json_t *runs = json_object_get(o, "runs");
    cr_assert_eq(json_array_size(runs), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *r = json_array_get(runs, i);
        const bool one = !strcmp(wg_json_word(r, "path"), "t/one");
        json_t *sum = json_load_file(one ? "results/t/one/summary.json" : "results/t/two/summary.json", 0, NULL);
        cr_assert(one || !strcmp(wg_json_word(r, "path"), "t/two"));
        cr_assert_eq(json_is_true(json_object_get(r, "page")), one, "a link to a page that is there only");
        cr_assert(
            json_equal(json_object_get(r, "tau"), json_object_get(json_array_get(json_object_get(sum, "cells"), 0), "tau")));
        cr_assert(!strcmp(wg_json_word(r, "question"), wg_json_word(sum, "question")) &&
                  json_is_true(json_object_get(r, "complete")));
        json_decref(sum);
    }
    json_decref(o);
    cr_assert_eq(wg_report_index(&o, "results/t/one/none", &err), WG_ENOENT);
    if (mkdir("nothing", 0777)) cr_assert_fail();
    cr_assert_eq(wg_report_index(&o, "nothing", &err), WG_ENOENT);
}

/* The page has why a rule has no loss, and what confidences are worth. */
Test(report, losses_and_calibration)
{
    run("traced", ", \"trace\": \"probs\", \"sampling\": {\"temperature\": 1}, \"verify\": {\"rule\": \"block\"}");
    json_t *o = document("traced", false), *cell = json_array_get(json_object_get(json_object_get(o, "summary"), "cells"), 0);
    const json_t *of = json_object_get(cell, "attribution");
    cr_assert(strstr(wg_json_word(of, "rule_loss_unknown"), "rule block looks ahead"));
    cr_assert(*wg_json_word(json_object_get(of, "calibration"), "event"));
    shows(o, "losses", 0, "alpha_star", "%.3f", json_number_value(json_object_get(cell, "alpha_star")));
    json_decref(o);
    run("plain", "");
    o = document("plain", false);
    cr_assert_null(json_object_get(json_object_get(o, "tables"), "losses"), "no trace of probabilities");
    json_decref(o);
}
