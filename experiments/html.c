/* SPDX-License-Identifier: MIT
 * One style sheet for wide and narrow screens and for paper. Colour is never the only sign: drafted text is underlined too. */
#include "experiments/html.h"

#include <string.h>

static const char style[] =
    ":root{--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--back:#fff;--band:#f6f8fa;--good:#0a5c2b;--bad:#a40e26}"
    "*{box-sizing:border-box}body{margin:0;color:var(--ink);background:var(--back);font:16px/1.5 system-ui,sans-serif}"
    "main{max-width:1100px;margin:0 auto;padding:1rem}h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.2rem;margin:2rem 0 "
    ".5rem;"
    "border-bottom:1px solid var(--line)}h3{font-size:1rem;margin:1rem 0 .3rem}.answer{font-size:1.1rem;border-left:4px solid "
    "#0a5c2b;background:var(--band);padding:.6rem 1rem;margin:1rem 0}.answer p{margin:.2rem 0}.warn{border-left:4px solid "
    "var(--bad);padding:.4rem 1rem;background:#fff5f5}.soft{color:var(--soft);font-size:.9rem}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;font-size:.92rem;margin:.5rem 0}caption{text-align:left;color:var(--soft);padding:.2rem 0}"
    "th,td{padding:.25rem .7rem .25rem "
    "0;text-align:right;white-space:nowrap;vertical-align:top}th:first-child,td:first-child,.l"
    "{text-align:left}td.w{white-space:normal;overflow-wrap:anywhere;min-width:13rem}thead th{border-bottom:2px solid "
    "var(--line)}"
    "tbody tr{border-bottom:1px solid var(--line)}tbody tr.best{background:#eaf7ee}figure{margin:1rem 0}img{max-width:100%;"
    "height:auto;border:1px solid var(--line)}.bar{display:flex;height:1.4rem;width:100%;border:1px solid var(--line)}"
    ".bar span{display:block;height:100%}.p0{background:#e69f00}.p1{background:#0072b2}.p2{background:#009e73}.p3{background:"
    "#cc79a7}.p4{background:#999}.key i{display:inline-block;width:.9em;height:.9em;margin:0 .3em 0 "
    "1em}pre{white-space:pre-wrap;"
    "overflow-wrap:anywhere;background:var(--band);padding:.7rem;font-size:.85rem;margin:.3rem 0}.d{color:var(--good);"
    "text-decoration:underline;text-decoration-thickness:2px;text-underline-offset:3px}.mono{font-family:monospace;"
    "overflow-wrap:anywhere}@media(max-width:600px){main{padding:.6rem}body{font-size:15px}td.w{min-width:10rem}}@media "
    "print{body{font-size:10pt}"
    "main{max-width:none;padding:0}h2{break-after:avoid}tr,figure,.bar,pre{break-inside:avoid}.wide{overflow:visible}"
    "th,td{white-space:normal}.bar span,.key i,tr.best{print-color-adjust:exact;-webkit-print-color-adjust:exact}}";

void wg_html_begin(FILE *f, const char *title)
{
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>", f);
    wg_html_puts(f, title);
    fprintf(f, "</title>\n<style>%s</style>\n</head>\n<body>\n<main>\n", style);
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
