/* SPDX-License-Identifier: MIT
 * Writes a script to a file, reads the drawing from a pipe, and removes what a page does not need. */
#include "experiments/report/plot.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/json_number.h"
#include "experiments/report/report_page.h"

/* gnuplot writes colours, but the page uses names of its style sheet; so each of these colours stands for a name. */
static const char *const colour[WG_PLOT_SERIES] = { "#100000", "#100001", "#100002", "#100003",
                                                    "#100004", "#100005", "#100006", "#100007" };
static const struct {
    int point;
    const char *symbol;
} mark[] = {
    { 7, "\u25CF" }, { 5, "\u25A0" }, { 9, "\u25B2" }, { 13, "\u25C6" }, { 11, "\u25BC" },
    { 6, "\u25CB" }, { 4, "\u25A1" }, { 8, "\u25B3" }, { 12, "\u25C7" }, { 10, "\u25BD" },
};
enum { MARKS = sizeof mark / sizeof *mark };

const char *wg_plot_colour(int series) { return colour[series % WG_PLOT_SERIES]; }
int wg_plot_point(int series) { return mark[series % MARKS].point; }
const char *wg_plot_symbol(int series) { return mark[series % MARKS].symbol; }

bool wg_plot_available(wg_plot_form form)
{
    return system(form == WG_PLOT_PDF ? "gnuplot -e 'set terminal pdfcairo' >/dev/null 2>&1"
                                      : "gnuplot -e 'set terminal svg' >/dev/null 2>&1") == 0;
}

void wg_plot_look(FILE *script)
{
    fputs("set encoding utf8\nset termoption noenhanced\nset border 3 lc rgb '#100008'\nset grid lc rgb '#100009' lw 0.5\n"
          "set tics nomirror\nset key off\n",
          script);
}

void wg_plot_label(FILE *script, const char *text, int most)
{
    int n = 0, all = 0;
    for (const char *p = text; *p; p++) all += ((unsigned char)*p & 0xC0) != 0x80;
    fputc('\'', script); /* in single quotes gnuplot expands nothing */
    for (const char *p = text; *p; p++) {
        const unsigned char c = (unsigned char)*p;
        n += (c & 0xC0) != 0x80;
        if (all > most && n == most) break;
        if (c == '\'') fputs("''", script);
        else fputc(c < 32 || strchr("\"\\`", c) ? ' ' : c, script);
    }
    fputs(all > most ? "\u2026'" : "'", script);
}

void wg_plot_note(FILE *script, const char *format, ...)
{
    char text[400];
    va_list a;
    va_start(a, format);
    const int n = vsnprintf(text, sizeof text, format, a);
    va_end(a);
    if (n >= (int)sizeof text) /* the cut must not split a character */
        for (size_t end = sizeof text - 1; end > 0 && ((unsigned char)text[--end] & 0xC0) != 0;) text[end] = '\0';
    fputs(" \"", script);
    for (const char *p = text; *p; p++) fputc((unsigned char)*p < 32 || strchr("'\"\\`", *p) ? ' ' : *p, script);
    fputc('"', script);
}

/* ---- converting gnuplot's SVG ------------------------------------------------------------------------------------ */

static bool begins(const char *p, const char *with) { return strncmp(p, with, strlen(with)) == 0; }

static const char *past(const char *p, const char *what)
{
    const char *at = strstr(p, what);
    return at ? at + strlen(what) : p + strlen(p);
}

/* The end of the text at p that the page does not need; p where it needs the text. */
static const char *skip(const char *p)
{
    if (begins(p, "<filter")) return past(p, "</filter>");
    if (begins(p, "<title>")) return past(p, "</title>");
    if (begins(p, " stroke-linecap=\"butt\" stroke-linejoin=\"miter\"")) return past(p, "miter\""); /* the default values */
    if (begins(p, " id=\"gnuplot")) return past(p + 5, "\"");
    if (begins(p, " font-family=\"sans-serif\"")) return past(p + 14, "\"");
    if (*p == '\t') return p + 1;
    if (begins(p, "<g ")) { /* an empty group */
        const char *end = past(p, ">");
        end += strspn(end, " \n\t");
        if (begins(end, "</g>")) return end + 4;
    }
    return p;
}

static const char says[] = "<g onmousemove=\"gnuplot_svg.showHypertext(evt,'", said[] = "')\" onmouseout=";

/* Replaces a point that has a tooltip, because gnuplot's form needs gnuplot's scripts. */
static size_t replace_note(FILE *f, const char *p)
{
    const char *text = p + strlen(says), *end = strstr(text, said), *past_title = end ? strstr(end, "</title>") : NULL;
    if (!past_title) return 0;
    fprintf(f, "<g class=\"pt\" role=\"img\"><title>%.*s</title>", (int)(end - text), text);
    return (size_t)(past_title + strlen("</title>") - p);
}

/* Writes a colour of the style sheet as an attribute: by its name, or in an SVG file its light value. */
static void put_colour(const wg_plot_out *to, const char *name)
{
    fputc('\'', to->f);
    if (to->form == WG_PLOT_SVG) wg_page_colour(to->f, name);
    else fprintf(to->f, "var(--%s)", name);
    fputc('\'', to->f);
}

/* Writes the replacement of the text at p and returns the length of the text that it replaces, or 0. Symbols get ids that
 * only this drawing has, because a hidden drawing must not define them for a visible one. */
static size_t replace(const wg_plot_out *to, const char *p, int id)
{
    FILE *f = to->f;
    int series, n = 0;
    const bool colour_at = begins(p + 1, "rgb("); /* tested first, since sscanf measures the whole rest of the text */
    if (colour_at &&
        (sscanf(p, "'rgb( 16, 0, %d)'%n", &series, &n) == 1 || sscanf(p, "\"rgb(16,0,%d)\"%n", &series, &n) == 1) && n > 0) {
        char name[16];
        snprintf(name, sizeof name, "s%d", series);
        put_colour(to, series < WG_PLOT_SERIES ? name : series == WG_PLOT_SERIES ? "soft" : "line");
        return (size_t)n;
    }
    if (begins(p, says)) return replace_note(f, p);
    if (begins(p, "'black'") || begins(p, "\"black\"")) return fputs("\"currentColor\"", f), 7;
    if (begins(p, "'#gp") || begins(p, "'gp")) return fprintf(f, p[1] == '#' ? "'#d%d" : "'d%d", id), p[1] == '#' ? 2 : 1;
    return 0;
}

static void inlined(const wg_plot_out *to, const char *svg, int id)
{
    char last = '\n';
    for (const char *p = svg; *p && !begins(p, "</svg>");) {
        const char *next = skip(p);
        const size_t n = next == p ? replace(to, p, id) : (size_t)(next - p);
        if (n == 0 && (*p != '\n' || last != '\n')) fputc(last = *p, to->f);
        p += n ? n : 1;
    }
}

/* Runs gnuplot and returns its standard output, *got bytes and a NUL (free); NULL: it failed. */
static char *run(const char *script, size_t n, size_t *got)
{
    char path[] = "/tmp/wager-plot-XXXXXX", command[128], chunk[4096], *text = NULL;
    size_t part;
    *got = 0;
    const int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f) return NULL;
    const bool all = fwrite(script, 1, n, f) == n, written = fclose(f) == 0 && all;
    snprintf(command, sizeof command, "gnuplot %s 2>/dev/null", path);
    FILE *pipe = written ? popen(command, "r") : NULL, *to = pipe ? open_memstream(&text, got) : NULL;
    while (to && (part = fread(chunk, 1, sizeof chunk, pipe)) > 0) fwrite(chunk, 1, part, to);
    const bool kept = to && fclose(to) == 0;
    const bool ok = pipe && pclose(pipe) == 0 && kept && *got > 0 && (strstr(text, "</svg>") || begins(text, "%PDF"));
    unlink(path);
    if (!ok) free(text);
    return ok ? text : NULL;
}

enum { KEY_HEIGHT = 18, KEY_ROOM = 8, PIXELS_PER_INCH = 96 }; /* of an entry of a file's legend, one below the other */

/* Writes a script with the light colours of the style sheet in place of the encoded names. */
static void put_light(FILE *f, const char *script)
{
    for (const char *p = script; *p;) {
        int series, n = 0;
        char name[16];
        if (sscanf(p, "#1%5d'%n", &series, &n) == 1 && n == 8) {
            snprintf(name, sizeof name, "s%d", series);
            wg_page_colour(f, series < WG_PLOT_SERIES ? name : series == WG_PLOT_SERIES ? "soft" : "line");
            p += n - 1;
        } else fputc(*p++, f);
    }
}

/* Pixels of the legend below a drawing; a page has it as a list instead. */
static int legend_room(const wg_plot *p, wg_plot_form form)
{
    int keys = 0;
    wg_plot_key key;
    while (form != WG_PLOT_PAGE && p->legend && p->legend(p->arg, keys, &key)) keys++;
    return keys ? keys * KEY_HEIGHT + KEY_ROOM : 0;
}

/* Writes the terminal's settings and the legend. all: height in pixels, legend included. */
static void put_head(FILE *f, const wg_plot *p, wg_plot_form form, int width, int all)
{
    wg_plot_key key;
    const int room = legend_room(p, form);
    if (form == WG_PLOT_PDF)
        fprintf(f, "set terminal pdfcairo size %.4f,%.4f font 'sans-serif,9.75' fontscale 1\n", (double)width / PIXELS_PER_INCH,
                (double)all / PIXELS_PER_INCH);
    else fprintf(f, "set terminal svg size %d,%d font 'sans-serif,13'\n", width, all);
    fprintf(f, "set encoding utf8\nset termoption noenhanced\nbelow = %.6f\nset origin 0, below\nset size 1, 1 - below\n",
            (double)room / all);
    for (int i = 0; room && p->legend(p->arg, i, &key); i++) {
        int m = 0;
        while (m < MARKS - 1 && strcmp(mark[m].symbol, key.symbol) != 0) m++;
        fputs("set label ", f);
        wg_plot_label(f, key.name, width / 8);
        fprintf(f, " at screen %.4f, %.6f left point pt %d ps 0.8 lc rgb '%s' offset 1, 0\n", 18. / width,
                (room - (i + 0.5) * KEY_HEIGHT) / all, mark[m].point, wg_plot_colour(key.series));
    }
}

/* The drawing as gnuplot writes it (free), or NULL. *height: in pixels, with the legend of a file. */
static char *drawn(const wg_plot *p, wg_plot_form form, int width, int *height, size_t *size)
{
    char *body = NULL, *whole = NULL, *out = NULL;
    size_t n = 0, all = 0;
    FILE *f = open_memstream(&body, &n);
    *height = f ? p->draw(f, width, p->arg) : 0;
    if (f) fclose(f);
    if (*height > 0) *height += legend_room(p, form);
    f = *height > 0 ? open_memstream(&whole, &all) : NULL;
    if (f) put_head(f, p, form, width, *height);
    if (f) fputs(body, f);
    if (f) fclose(f);
    free(body);
    if (f && form == WG_PLOT_PDF && (f = open_memstream(&body, &n))) {
        put_light(f, whole);
        fclose(f);
        free(whole);
        whole = body, all = n;
    }
    out = f ? run(whole, all, size) : NULL;
    free(whole);
    return out;
}

static const char *canvas_of(const char *svg)
{
    const char *canvas = strstr(svg, "<g id=\"gnuplot_canvas\">");
    return canvas ? canvas : "";
}

/* ---- a drawing of a page ----------------------------------------------------------------------------------------- */

/* The caption with the sentence that ends every caption (json_decref). */
static json_t *caption_of(const wg_plot_out *to, const wg_plot *p)
{
    json_t *text = json_sprintf("%s%s%s", p->caption, to->about ? " " : "", to->about ? to->about : "");
    return text ? text : wg_json_text(p->caption); /* `about` has a name that is not UTF-8 */
}

/* One width of a drawing, with ids that no other drawing of the page has; NULL where gnuplot failed or nothing is drawn. */
static json_t *drawn_once(const wg_plot_out *to, const wg_plot *p, int width, int id)
{
    int height;
    size_t n;
    char *svg = drawn(p, to->form, width, &height, &n), *inner = NULL;
    wg_plot_out as = *to;
    if (svg && (as.f = open_memstream(&inner, &n))) {
        inlined(&as, canvas_of(svg), id);
        fclose(as.f);
    }
    json_t *one = inner ? json_pack("{s:i, s:i, s:s}", "width", width, "height", height, "svg", inner) : NULL;
    free(svg);
    free(inner);
    return one;
}

static bool add_to_page(const wg_plot_out *to, const wg_plot *p)
{
    const int id = 2 * (int)json_array_size(to->page);
    json_t *broad = drawn_once(to, p, WG_PLOT_BROAD, id), *slim = broad ? drawn_once(to, p, WG_PLOT_SLIM, id + 1) : NULL;
    json_t *legend = json_array();
    wg_plot_key key;
    for (int i = 0; p->legend && p->legend(p->arg, i, &key); i++)
        json_array_append_new(
            legend, json_pack("{s:o, s:s, s:i}", "name", wg_json_text(key.name), "symbol", key.symbol, "series", key.series));
    if (broad && slim)
        return json_array_append_new(to->page, json_pack("{s:s, s:o, s:o, s:o, s:o}", "title", p->title, "caption",
                                                         caption_of(to, p), "legend", legend, "broad", broad, "slim", slim)) ==
               0;
    json_decref(legend);
    json_decref(broad);
    return false;
}

/* ---- a file of its own ------------------------------------------------------------------------------------------- */

static void put_text(FILE *f, const char *s)
{
    for (; s && *s; s++) {
        if (*s == '&') fputs("&amp;", f);
        else if (*s == '<') fputs("&lt;", f);
        else fputc((unsigned char)*s < 32 ? ' ' : *s, f);
    }
}

static void put_svg(const wg_plot_out *to, const wg_plot *p, const char *svg, int height)
{
    fprintf(to->f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\" color=",
            WG_PLOT_BROAD, height, WG_PLOT_BROAD, height);
    put_colour(to, "ink");
    fputs(">\n<title>", to->f);
    put_text(to->f, p->title);
    fputs("</title>\n<desc>", to->f);
    put_text(to->f, p->caption);
    if (to->about) fputc(' ', to->f);
    put_text(to->f, to->about);
    fputs("</desc>\n<rect width=\"100%\" height=\"100%\" fill=", to->f);
    put_colour(to, "back");
    fputs("/>\n", to->f);
    inlined(to, canvas_of(svg), 0);
    fputs("</svg>\n", to->f);
}

static bool write_file(const wg_plot_out *to, const wg_plot *p)
{
    int height;
    size_t n;
    char *text = drawn(p, to->form, WG_PLOT_BROAD, &height, &n);
    if (!text) return false;
    if (to->form == WG_PLOT_SVG) put_svg(to, p, text, height);
    else fwrite(text, 1, n, to->f);
    free(text);
    return true;
}

bool wg_plot_figure(const wg_plot_out *to, const wg_plot *p)
{
    const bool ok = to->form == WG_PLOT_PAGE ? add_to_page(to, p) : write_file(to, p);
    if (ok && to->captions) fprintf(to->captions, "%s%s%s\n", p->caption, to->about ? " " : "", to->about ? to->about : "");
    return ok;
}
