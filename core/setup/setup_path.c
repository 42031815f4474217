/* SPDX-License-Identifier: MIT
 * Paths in a config: as the options' tables declare them (wg_option_names), in the options of component drafters and in the
 * words of commands too. A path is rewritten as seen from the working directory, with "folder/.." taken out, so that an
 * experiment has one resolved form and one digest however its file is named. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file/model_name.h"
#include "draft/compose/composite.h"
#include "core/setup/setup_check.h"

/* The value that is rewritten: its path in the config, and the folder of its document. */
typedef struct place {
    wg_checker *c;
    const char *path, *folder; /* "" or "a/b/" */
} place;

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Whether "name/" at path[last, n) can be removed with the ".." behind it; not so for a symbolic link, whose ".." is its
 * target's parent. */
static bool is_left(char *path, size_t last, size_t n)
{
    struct stat st;
    if (n - last < 2 || !strncmp(path + last, "../", 3)) return false;
    path[n - 1] = '\0';
    const bool linked = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
    path[n - 1] = '/';
    return !linked;
}

/* Removes "." and "folder/.." from a path, in place. */
static void shorten(char *path)
{
    const size_t root = *path == '/';
    size_t n = root; /* bytes kept so far */
    for (const char *at = path + root; *at;) {
        const size_t k = strcspn(at, "/"), slash = at[k] == '/';
        size_t last = n;
        while (last > root && (last == n || path[last - 1] != '/')) last--;
        if (k == 2 && !strncmp(at, "..", 2) && is_left(path, last, n)) n = last;
        else if (k > 1 || (k == 1 && *at != '.')) {
            memmove(path + n, at, k + slash);
            n += k + slash;
        }
        at += k + slash;
    }
    if (n == 0) path[n++] = '.';
    path[n] = '\0';
}

/* Writes `file` as seen from the working directory; false: too long. */
static bool from_here(const place *p, const char *file, char out[WG_OPTION_STRING])
{
    if (snprintf(out, WG_OPTION_STRING, "%s%s", p->folder, file) >= WG_OPTION_STRING) return false;
    shorten(out);
    return true;
}

/* Reports a file that exists in the working directory alone. */
static void in_the_wrong_place(const place *p, const char *file, const char *here)
{
    wg_problem(
        p->c, p->path, false,
        "%s: no such file: \"%s\"; \"%s\" is in the working directory, but a path in a config is relative to the folder of "
        "its file",
        p->path, here, file);
    p->c->missing++;
}

static void too_long(const place *p, const char *text)
{
    wg_problem(p->c, p->path, false, "%s: \"%.60s...\" is too long with the folder of the config before it", p->path, text);
}

static void rewrite_file(const place *p, char *text)
{
    char here[WG_OPTION_STRING];
    if (!*text || *text == '/' || wg_is_model_name(text)) return;
    if (!from_here(p, text, here)) too_long(p, text);
    else if (access(here, F_OK) != 0 && access(text, F_OK) == 0) in_the_wrong_place(p, text, here);
    else memcpy(text, here, sizeof here);
}

/* Appends n bytes; false: no room. */
static bool append(char out[WG_OPTION_STRING], size_t *at, const char *text, size_t n)
{
    if (*at + n >= WG_OPTION_STRING) return false;
    memcpy(out + *at, text, n);
    out[ *at += n] = '\0';
    return true;
}

/* Rewrites a word of a command if it is a file beside the config, quoted so that the shell reads it as one word; `quoted`: it
 * is already. */
static bool rewrite_word(const place *p, const char *word, size_t n, bool quoted, char out[WG_OPTION_STRING], size_t *at)
{
    char file[WG_OPTION_STRING], here[WG_OPTION_STRING];
    if (n == 0 || n >= sizeof file || *word == '/') return append(out, at, word, n);
    snprintf(file, sizeof file, "%.*s", (int)n, word);
    const bool fits = from_here(p, file, here), there = fits && is_file(here);
    if (fits && !there && strchr(file, '/') && is_file(file)) in_the_wrong_place(p, file, here);
    const bool quotes = there && !quoted && strpbrk(here, " \t\n\"<>()&|;*?[$`\\") && !strchr(here, '\'');
    return append(out, at, "'", quotes) && append(out, at, there ? here : file, there ? strlen(here) : n) &&
           append(out, at, "'", quotes);
}

static void rewrite_command(const place *p, char *text)
{
    static const char between[] = " \t\n\"'<>()&|;=";
    char out[WG_OPTION_STRING] = "";
    size_t at = 0;
    bool fits = true;
    for (const char *s = text; fits && *s;) {
        const size_t gap = strspn(s, between), n = strcspn(s + gap, between);
        const bool quoted = gap > 0 && strchr("\"'", s[gap - 1]);
        fits = append(out, &at, s, gap) && rewrite_word(p, s + gap, n, quoted, out, &at);
        s += gap + n;
    }
    if (fits) memcpy(text, out, sizeof out);
    else too_long(p, text);
}

static void rewrite(const place *p, const wg_option *row, char *text);

/* Appends a component, KIND:option=value;option=value, with its values rewritten. Another text is appended unchanged;
 * wg_component_check reports it. */
static bool rewrite_component(const place *p, const char *spec, char out[WG_OPTION_STRING], size_t *at)
{
    const wg_env names = { .plugins = p->c->plugins };
    const wg_drafter_class *class;
    const char *options = NULL;
    if (wg_component_find(&names, "", "", spec, &class, &options, NULL) || !options) return append(out, at, spec, strlen(spec));
    bool fits = append(out, at, spec, (size_t)(options - spec));
    for (int n; fits && *options && (n = wg_spec_item(options, ';')) >= 0; options += n + (options[n] == ';')) {
        char item[WG_OPTION_STRING], value[WG_OPTION_STRING];
        snprintf(item, sizeof item, "%.*s", n, options);
        char *eq = strchr(item, '=');
        if (eq) *eq = '\0';
        const wg_option *row = eq ? wg_option_find(class->options, item) : NULL;
        if (eq) *eq = '=';
        if (row && !wg_spec_copy(value, sizeof value, eq + 1, (int)strlen(eq + 1), NULL)) {
            rewrite(p, row, value);
            const bool braces = eq[1] == '{' || strpbrk(value, ";|{}");
            fits = append(out, at, item, (size_t)(eq + 1 - item)) && (!braces || append(out, at, "{", 1)) &&
                   append(out, at, value, strlen(value)) && (!braces || append(out, at, "}", 1));
        } else fits = append(out, at, item, strlen(item));
        if (options[n]) fits = fits && append(out, at, ";", 1);
    }
    return fits;
}

static void rewrite_components(const place *p, char *text)
{
    char out[WG_OPTION_STRING] = "";
    size_t at = 0;
    bool fits = true;
    const char *s = text;
    for (int n; fits && *s && (n = wg_spec_item(s, '|')) >= 0; s += n + (s[n] == '|')) {
        char spec[WG_OPTION_STRING];
        const bool braces = *s == '{';
        if (wg_spec_copy(spec, sizeof spec, s, n, NULL)) break;
        fits = (!braces || append(out, &at, "{", 1)) && rewrite_component(p, spec, out, &at) &&
               (!braces || append(out, &at, "}", 1)) && append(out, &at, "|", s[n] == '|');
    }
    if (!fits) too_long(p, text);
    else if (!*s) memcpy(text, out, sizeof out);
}

static void rewrite(const place *p, const wg_option *row, char *text)
{
    if (wg_option_is(row, WG_NAMES_FILE)) rewrite_file(p, text);
    else if (wg_option_is(row, WG_NAMES_SHAPE) && text[strspn(text, "0123456789-")]) rewrite_file(p, text);
    else if (wg_option_is(row, WG_NAMES_OR_WORD) && text[strspn(text, "abcdefghijklmnopqrstuvwxyz")]) rewrite_file(p, text);
    else if (wg_option_is(row, WG_NAMES_COMMAND)) rewrite_command(p, text);
    else if (wg_option_is(row, WG_NAMES_DRAFTERS)) rewrite_components(p, text);
}

/* Whether a file is the config.json of a result folder, whose paths are relative to the run's working directory. */
static bool is_of_a_run(const char *name, size_t folder)
{
    static const char *const beside[] = { "summary.json", "requests.jsonl" };
    bool is = false;
    for (int i = 0; i < 2 && !strcmp(name + folder, "config.json"); i++) {
        char file[WG_OPTION_STRING];
        const int n = snprintf(file, sizeof file, "%.*s%s", (int)folder, name, beside[i]);
        is = is || (n < (int)sizeof file && access(file, F_OK) == 0);
    }
    return is;
}

void wg_setup_paths(wg_checker *c, const char *path, const wg_option *row, char *text)
{
    if (row->type != WG_OPT_STRING || row->def == WG_NAMES_NOTHING || !*text) return;
    const wg_json *doc = wg_source(c, path);
    const char *name = doc ? wg_json_name(doc) : "", *slash = strrchr(name, '/');
    const size_t n = slash ? (size_t)(slash - name) + 1 : 0;
    char folder[WG_OPTION_STRING];
    if (n == 0 || n >= sizeof folder || is_of_a_run(name, n)) return;
    snprintf(folder, sizeof folder, "%.*s", (int)n, name);
    const place p = { c, path, folder };
    rewrite(&p, row, text);
}
