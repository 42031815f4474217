/* SPDX-License-Identifier: MIT
 * Problems of a config: the position of the value that caused each, and their list as a message. */
#include "core/setup/setup_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/mem.h"

bool wg_first_time(wg_checker *c, const char *what, const char *text)
{
    const uint64_t h = wg_hash64(wg_hash64(WG_HASH_START, what, strlen(what) + 1), text, strlen(text));
    for (int i = 0; i < c->n_seen; i++)
        if (c->seen[i] == h) return false;
    wg_error none; /* out of memory: a repeated report is better than none */
    if (!wg_grow((void **)&c->seen, &c->cap_seen, (size_t)c->n_seen + 1, sizeof *c->seen, "what was said", &none))
        c->seen[c->n_seen++] = h;
    return true;
}

const char *wg_path_inside(const char *path, const char *prefix)
{
    const size_t n = strlen(prefix);
    if (strncmp(path, prefix, n) != 0) return NULL;
    return n == 0 || path[n] == '\0' || path[n] == '.' || path[n] == '[' ? path + n : NULL;
}

static void add_problem(wg_checker *c, const wg_json *doc, const char *path, bool key, const char *text)
{
    const wg_status s =
        wg_grow((void **)&c->found, &c->cap_found, (size_t)c->n_found + 1, sizeof *c->found, "a list of problems", &c->err);
    if (s) {
        c->failed = s;
        return;
    }
    wg_found *f = &c->found[c->n_found++];
    *f = (wg_found){ .doc = doc, .key = key };
    snprintf(f->path, sizeof f->path, "%s", path);
    snprintf(f->text, sizeof f->text, "%s", text);
    if (!wg_json_where(doc, path, key, &f->line, &f->column)) f->line = f->column = 0;
}

/* The source of a value: a referenced file, a --set, or the config (both NULL); and its path there. */
typedef struct source {
    const wg_part *part;
    const wg_override *set;
    char from[512];
    const char *at;
} source;

static void find_source(const wg_checker *c, const char *path, bool *key, source *s)
{
    /* The last --set of the value has it, or a reference at its path or further inside; a reference set by a --set is inside
     * that --set. */
    size_t most = 0; /* bytes of its path, and the end */
    s->part = NULL;
    s->set = NULL;
    if (c->origin) c->origin(c, path, key, s->from, sizeof s->from);
    else snprintf(s->from, sizeof s->from, "%s", path);
    for (int i = 0; i < c->n_set; i++)
        if (c->set[i].doc && wg_path_inside(s->from, c->set[i].path)) s->set = &c->set[i];
    if (s->set) most = strlen(s->set->path) + 1;
    for (int i = 0; i < c->n_part; i++)
        if (!c->part[i].replaced && wg_path_inside(s->from, c->part[i].place) && strlen(c->part[i].place) + 1 >= most)
            s->part = &c->part[i], most = strlen(s->part->place) + 1;
    for (int i = 0; i < c->n_set && strcmp(s->from, path) != 0; i++) /* in the sweep a --set that reaches there is the last */
        if (c->set[i].doc && c->set[i].reaches && wg_path_inside(path, c->set[i].path)) s->set = &c->set[i], s->part = NULL;
    s->at = s->part ? wg_path_inside(s->from, s->part->place) : s->from;
    s->at += s->part && *s->at == '.';
}

const wg_json *wg_source(const wg_checker *c, const char *path)
{
    source s;
    bool key = false;
    find_source(c, path, &key, &s);
    return s.part ? s.part->doc : s.set ? NULL : c->doc;
}

bool wg_is_of_option(const wg_checker *c, const char *path)
{
    source s;
    bool key = false;
    find_source(c, path, &key, &s);
    return s.set && !s.part && s.set->option;
}

/* A message without the path of the option's value, with which it may begin. */
static const char *without_path(const char *text, const char *path)
{
    const size_t n = strlen(path);
    if (n == 0 || strncmp(text, path, n) != 0 || !text[n] || !strchr(":. ", text[n])) return text;
    return text + n + 1 + (text[n] == ':');
}

void wg_problem(wg_checker *c, const char *path, bool key, const char *fmt, ...)
{
    char text[512], once[2200];
    source s;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    find_source(c, path, &key, &s);
    if (s.set && !s.part)
        snprintf(once, sizeof once, "%s: %s", wg_json_name(s.set->doc), text); /* once for all cells that it reaches */
    else snprintf(once, sizeof once, "%s: %s: %s", s.part ? wg_json_name(s.part->doc) : "", s.at, text);
    if (!wg_first_time(c, "problem", once)) return;
    if (s.part) add_problem(c, s.part->doc, s.at, key && *s.at, text);
    else if (s.set) wg_problem_in_set(c, s.set, s.set->option ? without_path(text, s.set->path) : text);
    else add_problem(c, c->doc, s.from, key, text);
}

void wg_problem_in_set(wg_checker *c, const wg_override *set, const char *text)
{
    add_problem(c, set->doc, "nowhere", false, text);
}

/* The rank of a document: the config, then referenced files in the order of opening, then --sets. */
static int rank(const wg_checker *c, const wg_json *doc)
{
    if (doc == c->doc) return 0;
    for (int i = 0; i < c->n_part; i++)
        if (doc == c->part[i].doc) return 1 + i;
    return 1 + c->n_part;
}

/* Reports the problems without source lines, which would not fit. */
static void report_briefly(const wg_checker *c, wg_error *all)
{
    enum { ROOM = 32 }; /* kept free for a count */
    size_t n = 0;
    for (int i = 0; i < c->n_found; i++) {
        const wg_found *f = &c->found[i];
        wg_error one = { 0 };
        wg_json_problem(f->doc, f->path, f->key, &one, "%s", f->text);
        const size_t length = strcspn(one.text, "\n");
        if (n + length + 1 + ROOM > sizeof all->text) {
            snprintf(all->text + n, sizeof all->text - n, "\n... and %d more", c->n_found - i);
            return;
        }
        n += (size_t)snprintf(all->text + n, sizeof all->text - n, "%s%.*s", i ? "\n" : "", (int)length, one.text);
    }
}

wg_status wg_problems_report(wg_checker *c, wg_error *err)
{
    if (c->failed) {
        if (err) *err = c->err;
        return c->failed;
    }
    for (int i = 1; i < c->n_found; i++) /* by insertion: stable, and there are few */
        for (int k = i; k > 0; k--) {
            wg_found *a = &c->found[k - 1], *b = &c->found[k], swap = *a;
            const int a_rank = rank(c, a->doc), b_rank = rank(c, b->doc);
            if (a_rank != b_rank ? a_rank < b_rank : a->line != b->line ? a->line < b->line : a->column <= b->column) break;
            *a = *b;
            *b = swap;
        }
    wg_error all = { 0 };
    for (int i = 0; i < c->n_found; i++) {
        const wg_found *f = &c->found[i];
        wg_json_problem(f->doc, f->path, f->key, &all, "%s", f->text);
    }
    if (strstr(all.text, "\n... and ")) report_briefly(c, &all);
    if (c->n_found && err) *err = all;
    return c->n_found ? WG_ECONFIG : WG_OK;
}

const char *wg_suggestion(const char *word, const char *const *names, char *buf, size_t size)
{
    const char *near = wg_nearest(word, names);
    buf[0] = '\0';
    if (near) {
        snprintf(buf, size, "; did you mean \"%s\"?", near);
        return buf;
    }
    size_t n = 0;
    for (int i = 0; names[i] && n < size; i++)
        n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? ", " : "; known: ", names[i]);
    return buf;
}

void wg_checker_close(wg_checker *c)
{
    for (int i = 0; i < c->n_part; i++) wg_json_close(c->part[i].doc);
    wg_free(c->part);
    wg_free(c->seen);
    wg_free(c->found);
}
