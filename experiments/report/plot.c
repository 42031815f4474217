/* SPDX-License-Identifier: MIT
 * Writes a script to a file, reads the drawing from a pipe, and removes what HTML does not need. */
#include "experiments/report/plot.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/report/html.h"

/* gnuplot needs colours, the page names of its style sheet. So each colour here encodes a name. */
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

bool wg_plot_available(void) { return system("gnuplot --version >/dev/null 2>&1") == 0; }

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
        fputc(c < 32 || strchr("'\"\\`", c) ? ' ' : c, script);
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
    if (n >= (int)sizeof text) /* no half character at the end */
        for (size_t end = sizeof text - 1; end > 0 && ((unsigned char)text[--end] & 0xC0) != 0;) text[end] = '\0';
    fputs(" \"", script);
    for (const char *p = text; *p; p++) fputc((unsigned char)*p < 32 || strchr("'\"\\`", *p) ? ' ' : *p, script);
    fputc('"', script);
}

/* One tab stop per drawing; arrow keys move between its points. The text of a point is shown below its drawing, and is the
 * browser's tooltip for pointer users. */
void wg_plot_script(FILE *f)
{
    fputs("<script>\n"
          "for (const svg of document.querySelectorAll('figure svg')) {\n"
          "  const points = [...svg.querySelectorAll('.pt')], tip = svg.parentNode.querySelector('.tip')\n"
          "  const hint = 'Each mark says its cell and value: point at it, or reach it with Tab and the arrow keys.'\n"
          "  const say = p => tip.textContent = p ? p.querySelector('title').textContent : hint\n"
          "  const next = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }\n"
          "  if (points.length) say()\n"
          "  points.forEach((p, i) => {\n"
          "    p.tabIndex = i ? -1 : 0\n"
          "    p.onfocus = p.onmouseenter = () => say(p)\n"
          "    p.onblur = p.onmouseleave = () => say(points.find(o => o === document.activeElement))\n"
          "    p.onkeydown = e => {\n"
          "      const to = points[i + next[e.key]]\n"
          "      if (!to) return\n"
          "      e.preventDefault()\n"
          "      p.tabIndex = -1\n"
          "      to.tabIndex = 0\n"
          "      to.focus()\n"
          "    }\n"
          "  })\n"
          "}\n"
          "</script>\n",
          f);
}

/* ---- converting gnuplot's SVG ------------------------------------------------------------------------------------ */

static bool begins(const char *p, const char *with) { return strncmp(p, with, strlen(with)) == 0; }

static const char *past(const char *p, const char *what)
{
    const char *at = strstr(p, what);
    return at ? at + strlen(what) : p + strlen(p);
}

/* Skips text at p that is omitted; returns its end, or p itself where nothing is omitted. */
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

/* Replaces a point with a text: gnuplot's form needs its own scripts. */
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
    if (to->svg) wg_html_colour(to->f, name);
    else fprintf(to->f, "var(--%s)", name);
    fputc('\'', to->f);
}

/* Writes the replacement of the text at p; returns the length it replaces, or 0. Symbols get ids unique to this drawing: a
 * hidden drawing must not provide them to another. */
static size_t replace(const wg_plot_out *to, const char *p, int id)
{
    FILE *f = to->f;
    int series, n = 0;
    if ((sscanf(p, "'rgb( 16, 0, %d)'%n", &series, &n) == 1 || sscanf(p, "\"rgb(16,0,%d)\"%n", &series, &n) == 1) && n > 0) {
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

static char *run(const char *script, size_t n)
{
    char path[] = "/tmp/wager-plot-XXXXXX", command[128], chunk[4096], *text = NULL;
    size_t size = 0, got;
    const int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f) return NULL;
    const bool all = fwrite(script, 1, n, f) == n, written = fclose(f) == 0 && all;
    snprintf(command, sizeof command, "gnuplot %s 2>/dev/null", path);
    FILE *pipe = written ? popen(command, "r") : NULL, *to = pipe ? open_memstream(&text, &size) : NULL;
    while (to && (got = fread(chunk, 1, sizeof chunk, pipe)) > 0) fwrite(chunk, 1, got, to);
    const bool kept = to && fclose(to) == 0;
    const bool ok = pipe && pclose(pipe) == 0 && kept && size > 0 && strstr(text, "</svg>");
    unlink(path);
    if (!ok) free(text);
    return ok ? text : NULL;
}

/* gnuplot's drawing, from its canvas on, or NULL (free). */
static char *drawn(const wg_plot *p, int width, int *height)
{
    char *body = NULL, *whole = NULL;
    size_t n = 0, size = 0;
    FILE *f = open_memstream(&body, &n);
    *height = f ? p->draw(f, width, p->arg) : 0;
    if (f) fclose(f);
    f = *height > 0 ? open_memstream(&whole, &size) : NULL;
    if (f) fprintf(f, "set terminal svg size %d,%d font 'sans-serif,13'\n%s\n", width, *height, body);
    if (f) fclose(f);
    char *svg = f ? run(whole, size) : NULL;
    free(body);
    free(whole);
    return svg;
}

static const char *canvas_of(const char *svg)
{
    const char *canvas = strstr(svg, "<g id=\"gnuplot_canvas\">");
    return canvas ? canvas : "";
}

static void put(FILE *f, const wg_plot *p, const char *svg, int width, int height, const char *look, int id)
{
    fprintf(
        f,
        "<svg class=\"%s\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"xMinYMin\" role=\"group\" "
        "aria-labelledby=\"d%d-title "
        "d%d-text\">\n<title id=\"d%d-title\">",
        look, width, height, width, height, id, id, id);
    wg_html_puts(f, p->title);
    fprintf(f, "</title>\n<desc id=\"d%d-text\">", id);
    wg_html_puts(f, p->caption);
    fputs("</desc>\n", f);
    inlined(&(wg_plot_out){ f, false }, canvas_of(svg), id);
    fputs("</svg>\n", f);
}

static void legend_list(FILE *f, const wg_plot *p)
{
    wg_plot_key key;
    for (int i = 0; p->legend && p->legend(p->arg, i, &key); i++) {
        fprintf(f, "%s<li><span style=\"color:var(--s%d)\" aria-hidden=\"true\">%s</span> ", i ? "" : "<ul class=\"legend\">",
                key.series, key.symbol);
        wg_html_name(f, key.name);
        fputs("</li>", f);
    }
    if (p->legend && p->legend(p->arg, 0, &key)) fputs("</ul>\n", f);
}

/* ---- a file of its own ------------------------------------------------------------------------------------------- */

enum { KEY_HEIGHT = 18 }; /* pixels of an entry of the legend, one below the other */

static bool write_svg(const wg_plot_out *to, const wg_plot *p)
{
    int height, keys = 0;
    wg_plot_key key;
    char *svg = drawn(p, WG_PLOT_BROAD, &height);
    if (!svg) return false;
    while (p->legend && p->legend(p->arg, keys, &key)) keys++;
    const int whole = height + keys * KEY_HEIGHT + (keys ? 8 : 0);
    fprintf(to->f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\" color=",
            WG_PLOT_BROAD, whole, WG_PLOT_BROAD, whole);
    put_colour(to, "ink");
    fputs(">\n<title>", to->f);
    wg_html_puts(to->f, p->title);
    fputs("</title>\n<desc>", to->f);
    wg_html_puts(to->f, p->caption);
    fputs("</desc>\n<rect width=\"100%\" height=\"100%\" fill=", to->f);
    put_colour(to, "back");
    fputs("/>\n", to->f);
    inlined(to, canvas_of(svg), 0);
    for (int i = 0; i < keys && p->legend(p->arg, i, &key); i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", key.series);
        fprintf(to->f, "<text x=\"14\" y=\"%d\" fill=\"currentColor\"><tspan fill=", height + (i + 1) * KEY_HEIGHT - 5);
        put_colour(to, name);
        fprintf(to->f, ">%s</tspan> ", key.symbol);
        wg_html_puts(to->f, key.name);
        fputs("</text>\n", to->f);
    }
    fputs("</svg>\n", to->f);
    free(svg);
    return true;
}

bool wg_plot_figure(const wg_plot_out *to, const wg_plot *p)
{
    if (to->svg) return write_svg(to, p);
    FILE *f = to->f;
    int broad_height, slim_height;
    char *broad = drawn(p, WG_PLOT_BROAD, &broad_height), *slim = broad ? drawn(p, WG_PLOT_SLIM, &slim_height) : NULL;
    const bool ok = broad && slim;
    if (ok) {
        const int id = (int)(ftell(f) & 0x3FFFFFFF); /* the offset in the page is a unique id */
        fputs("<figure>\n", f);
        put(f, p, broad, WG_PLOT_BROAD, broad_height, "broad", id);
        put(f, p, slim, WG_PLOT_SLIM, slim_height, "slim", id + 1);
        fputs("<p class=\"tip soft\"></p>\n", f);
        legend_list(f, p);
        fputs("<figcaption>", f);
        wg_html_puts(f, p->caption);
        fputs("</figcaption>\n</figure>\n", f);
    }
    free(broad);
    free(slim);
    return ok;
}
