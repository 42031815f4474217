/* SPDX-License-Identifier: MIT
 * One style sheet for wide and narrow screens, light and dark, and for paper. Colour is never the only sign: a shape, an
 * underline or a word carries the same information. tests/unit/experiments/test_report.c checks its colours by WCAG 2.2
 * (AA). */
#include "experiments/report/html.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/save.h"

/* s0 to s7: series of a drawing; a, c, b: tints behind accepted, corrected and bonus tokens. */
static const char style[] =
    ":root{color-scheme:light dark;"
    "--back:#ffffff;--band:#f6f8fa;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--link:#0550ae;--good:#0a5c2b;--bad:#a40e26;"
    "--best:#eaf7ee;--warn:#fff1f1;--a:#d7f0df;--c:#fde3d3;--b:#dbe9fb;--s0:#0072b2;--s1:#b35900;--s2:#007a5a;--s3:#a8437f;"
    "--s4:#6e7781;--s5:#7d6300;--s6:#5b4fc7;--s7:#a40e26}\n"
    "@media screen and (prefers-color-scheme:dark){:root{"
    "--back:#0d1117;--band:#161b22;--ink:#e6edf3;--soft:#9ea7b1;--line:#353c45;--link:#79b8ff;--good:#6fdd8b;--bad:#ff8f8f;"
    "--best:#12301c;--warn:#3a1518;--a:#17432a;--c:#5a2f14;--b:#17365f;--s0:#58a6ff;--s1:#f0a050;--s2:#3fb98f;--s3:#e08cc8;"
    "--s4:#9ea7b1;--s5:#d4b53c;--s6:#a99cff;--s7:#ff8f8f}}\n"
    "*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}"
    "body{margin:0;color:var(--ink);background:var(--back);font:1rem/1.5 system-ui,sans-serif}"
    "main{max-width:76rem;margin:0 auto;padding:1rem 1.25rem 3rem}a{color:var(--link)}"
    ":focus-visible{outline:3px solid var(--link);outline-offset:2px}:target{background:var(--best)}"
    "h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0;text-wrap:pretty}"
    "h2{font-size:1.2rem;line-height:1.3;margin:2.5rem 0 .6rem;padding-bottom:.2rem;border-bottom:1px solid var(--line)}"
    "h3{font-size:1rem;margin:1.4rem 0 .3rem}h1,h2,h3,p,dd,li{overflow-wrap:anywhere}"
    ".answer{font-size:1.1rem;border-left:4px solid var(--good);background:var(--band);padding:.6rem 1rem;margin:1rem 0}"
    ".answer p{margin:.2rem 0}.warn{border-left:4px solid var(--bad);padding:.4rem 1rem;background:var(--warn)}"
    ".soft,caption,small,figcaption{color:var(--soft);font-size:.875rem}small{font-size:.8125rem;white-space:nowrap}"
    "td small,th small{display:block;line-height:1.2}.wide{overflow-x:auto;margin:.8rem 0 1.2rem}"
    "table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}"
    "caption{text-align:left;padding:.2rem 0 .4rem;max-width:min(44rem,calc(100vw - 2rem))}"
    "th,td{padding:.3rem .8rem .3rem 0;text-align:right;white-space:nowrap;vertical-align:top}"
    "th:last-child,td:last-child{padding-right:.3rem}thead th{vertical-align:bottom;white-space:normal;"
    "border-bottom:2px solid var(--line)}"
    "thead a{color:inherit;text-decoration-style:dotted;text-underline-offset:3px}"
    "th:first-child,.l{text-align:left}tbody th{font-weight:normal}"
    ".w{white-space:normal;overflow-wrap:anywhere;min-width:13rem}.no{color:var(--soft)}"
    "tbody tr{border-bottom:1px solid var(--line)}tbody tr.best{background:var(--best)}tr.best th{font-weight:600}"
    ".tip{margin:.2rem 0;min-height:1.5em}.tip:empty{display:none}.pt:focus-visible{outline-offset:4px}"
    "figure{margin:1.5rem 0}figure svg{display:block;max-width:100%;height:auto}figure svg.slim{display:none}"
    ".legend{list-style:none;margin:.3rem 0;padding:0;font-size:.875rem;display:flex;flex-wrap:wrap;gap:.1rem 1.2rem}"
    ".bar{display:flex;gap:1px;height:1.3rem;width:100%}.bar span{display:block;height:100%}"
    ".share{min-width:9rem;width:45%}.columns{columns:24rem}"
    ".p0{background:var(--s1)}.p1{background:var(--s0)}.p2{background:var(--s2)}.p3{background:var(--s3)}"
    ".p4{background:var(--s4)}.legend i{display:inline-block;width:.8em;height:.8em;margin-right:.4em}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--band);padding:.7rem;font-size:.875rem;line-height:1.7;"
    "margin:.3rem 0}.mono{font-family:monospace;overflow-wrap:anywhere}"
    ".a,.c,.b{padding:.1em 0;border-bottom:2px solid var(--s2);background:var(--a)}"
    ".c{border-bottom:2px dashed var(--s1);background:var(--c)}.b{border-bottom:4px double var(--s0);background:var(--b)}"
    ".by1{border-bottom-style:dotted}.by2{border-bottom:4px double var(--s2)}.by3{border-bottom:3px dotted var(--s2)}"
    ".by4{border-bottom:4px solid var(--s2)}.by5{border-bottom:3px dashed var(--s2)}"
    "dt{font-weight:600;margin-top:.4rem}dd{margin:0 0 0 1rem}"
    "th button{font:inherit;color:inherit;background:none;border:0;padding:.3rem 0;cursor:pointer;text-align:inherit}"
    "th button::after{content:\"\\2195\";color:var(--soft);padding-left:.3em}"
    "th[aria-sort=ascending] button::after{content:\"\\2191\";color:inherit}"
    "th[aria-sort=descending] button::after{content:\"\\2193\";color:inherit}\n"
    "@media(max-width:600px){main{padding:.6rem .75rem 2rem}h1{font-size:1.25rem}h2{font-size:1.1rem}.w{min-width:9rem}"
    "tbody th.w{position:sticky;left:0;background:var(--back);box-shadow:inset 0 -1px var(--line)}tbody tr.best "
    "th.w{background:var(--best)}"
    "th,td{padding-right:.6rem}figure svg.broad{display:none}figure svg.slim{display:block}}\n"
    "@media print{.tip{display:none}body{font-size:10pt}main{max-width:none;padding:0}h1{font-size:16pt}h2{font-size:12pt}"
    "h2,h3,caption"
    "{break-after:avoid}tr,figure,.bar,.answer{break-inside:avoid}thead{display:table-header-group}.wide{overflow:visible}"
    "table,table .mono{font-size:7.5pt}table "
    "small{font-size:6.5pt;white-space:normal}th,td{white-space:normal;padding-right:.5em}"
    ".w{min-width:6em}figure "
    "svg{width:auto;max-height:22cm}.share{min-width:6em;width:30%}a{color:inherit;text-decoration:none}th button::after"
    "{content:none!important}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}";

void wg_html_begin(FILE *f, const char *title)
{
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
          f);
    wg_html_puts(f, title);
    fprintf(f, "</title>\n<style>%s</style>\n</head>\n<body>\n<main>\n", style);
}

void wg_html_colour(FILE *f, const char *name)
{
    char key[16];
    snprintf(key, sizeof key, "--%s:", name);
    const char *at = strstr(style, key);
    if (at) fprintf(f, "%.7s", at + strlen(key));
}

void wg_html_end(FILE *f) { fputs("</main>\n</body>\n</html>\n", f); }

void wg_html_text(FILE *f, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)s[i];
        if (c == '&') fputs("&amp;", f);
        else if (c == '<') fputs("&lt;", f);
        else if (c == '>') fputs("&gt;", f);
        else if (c == '"') fputs("&quot;", f);
        else if ((c < 32 && c != '\n' && c != '\t') || c == 127) fputs("\xEF\xBF\xBD", f);
        else fputc(c, f);
    }
}

void wg_html_puts(FILE *f, const char *s)
{
    if (s) wg_html_text(f, s, strlen(s));
}

void wg_html_name(FILE *f, const char *s)
{
    for (size_t n; s && *s; s += n) {
        n = strcspn(s, "(/_") + 1;
        if (n > strlen(s)) n = strlen(s);
        wg_html_text(f, s, n);
        if (s[n]) fputs("<wbr>", f);
    }
}

wg_status wg_html_save(const char *path, wg_html_write *write, void *arg, wg_error *err)
{
    char *text = NULL;
    size_t n = 0;
    wg_save *to = NULL;
    FILE *f = open_memstream(&text, &n);
    wg_status s = f ? write(f, arg, err) : wg_nomem(err, 1, "a page");
    if (f && fclose(f) != 0 && s == WG_OK) s = wg_nomem(err, n, "a page");
    if (s == WG_OK) s = wg_save_open(&to, path, err);
    if (s == WG_OK) s = wg_save_write(to, text, n, err);
    if (s == WG_OK) s = wg_save_commit(to, err);
    else wg_save_abort(to);
    free(text);
    return s;
}

void wg_html_table(FILE *f, const char *caption)
{
    fputs("<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"", f);
    wg_html_puts(f, caption);
    fputs("\"><table>\n<caption>", f);
    wg_html_puts(f, caption);
    fputs("</caption>\n", f);
}

void wg_html_table_end(FILE *f) { fputs("</tbody></table></div>\n", f); }
