/* SPDX-License-Identifier: MIT
 * JSONL prompts, line by line. */
#include "experiments/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"

static void prompt_free(wg_prompt *p)
{
    wg_free(p->text);
    wg_free(p->id);
    wg_free(p->category);
}

void wg_dataset_close(wg_dataset *d)
{
    if (!d) return;
    for (int i = 0; i < d->n; i++) prompt_free(&d->prompt[i]);
    wg_free(d->prompt);
    wg_free(d->path);
    wg_free(d);
}

/* The text of a line: `prompt`, or the first of `turns`. */
static wg_status prompt_text(const json_t *line, const char *where, const json_t **out, wg_error *err)
{
    const json_t *text = json_object_get(line, "prompt");
    const char *key = "prompt";
    if (!text) {
        const json_t *turns = json_object_get(line, "turns");
        if (!turns)
            return wg_fail(err, WG_EFORMAT, "%s: expected a key \"prompt\" (text) or \"turns\" (a list of texts)", where);
        text = json_array_get(turns, 0);
        key = "turns";
    }
    if (!json_is_string(text))
        return wg_fail(err, WG_EFORMAT, "%s: \"%s\" must be %s", where, key, *key == 'p' ? "text" : "a list of texts");
    if (json_string_length(text) == 0)
        return wg_fail(err, WG_EFORMAT, "%s: \"%s\" is empty; remove the line or give it a text", where, key);
    *out = text;
    return WG_OK;
}

/* A text or number that names something, as text; `fallback` when the key is absent. */
static char *label(const json_t *v, const char *fallback)
{
    char number[32];
    if (json_is_string(v)) return wg_strdup(json_string_value(v));
    if (!json_is_integer(v)) return wg_strdup(fallback);
    snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    return wg_strdup(number);
}

static wg_status push(wg_dataset *d, int *cap, const json_t *line, const json_t *text, int number, wg_error *err)
{
    if (d->n == *cap) {
        const int more = *cap ? *cap * 2 : 32;
        wg_prompt *grown = wg_realloc(d->prompt, (size_t)more, sizeof *grown);
        if (!grown) return wg_nomem(err, (size_t)more * sizeof *grown, "prompts");
        d->prompt = grown;
        *cap = more;
    }
    char fallback[32];
    snprintf(fallback, sizeof fallback, "line-%d", number);
    const json_t *id = json_object_get(line, "id");
    wg_prompt p = {
        .text = wg_strndup(json_string_value(text), json_string_length(text)),
        .id = label(id ? id : json_object_get(line, "question_id"), fallback),
        .category = label(json_object_get(line, "category"), ""),
        .bytes = json_string_length(text),
        .line = number,
    };
    if (!p.text || !p.id || !p.category) {
        prompt_free(&p);
        return wg_nomem(err, p.bytes, "a prompt");
    }
    d->prompt[d->n++] = p;
    return WG_OK;
}

static wg_status take_line(wg_dataset *d, int *cap, const char *bytes, size_t n, int number, int limit, const char *category,
                           wg_error *err)
{
    char where[600];
    snprintf(where, sizeof where, "%s:%d", d->path, number);
    json_error_t e;
    json_t *line = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &e);
    const json_t *text = NULL;
    wg_status s = WG_OK;
    if (!line)
        s = wg_fail(err, WG_EFORMAT, "%s:%d: %s; a prompt file has one JSON object on each line", where,
                    e.column < 1 ? 1 : e.column, e.text);
    else if (!json_is_object(line)) s = wg_fail(err, WG_EFORMAT, "%s: expected a JSON object with a \"prompt\"", where);
    if (s == WG_OK) s = prompt_text(line, where, &text, err);
    if (s == WG_OK) {
        const char *has = json_string_value(json_object_get(line, "category"));
        const bool wanted = !category || !category[0] || (has && !strcmp(has, category));
        if (wanted && (limit == 0 || d->n < limit)) s = push(d, cap, line, text, number, err);
    }
    json_decref(line);
    return s;
}

static wg_status read_lines(wg_dataset *d, FILE *f, int limit, const char *category, wg_error *err)
{
    char *line = NULL; /* getline's own, not ours to count */
    size_t size = 0;
    ssize_t n;
    int cap = 0, number = 0;
    wg_status s = WG_OK;
    wg_sha256_state sha;
    wg_sha256_begin(&sha);
    while (s == WG_OK && (n = getline(&line, &size, f)) >= 0) {
        number++;
        wg_sha256_add(&sha, line, (size_t)n);
        if (strspn(line, " \t\r\n") < (size_t)n) s = take_line(d, &cap, line, (size_t)n, number, limit, category, err);
    }
    if (s == WG_OK && ferror(f)) s = wg_fail(err, WG_EIO, "%s: cannot read: %s", d->path, strerror(errno));
    free(line);
    wg_sha256_end(&sha, d->sha256);
    return s;
}

wg_status wg_dataset_open(wg_dataset **out, const char *path, int limit, const char *category, wg_error *err)
{
    wg_dataset *d = wg_calloc(1, sizeof *d);
    if (!d) return wg_nomem(err, sizeof *d, "a prompt set");
    d->path = wg_strdup(path);
    FILE *f = d->path ? fopen(path, "rbe") : NULL;
    wg_status s;
    if (!d->path) s = wg_nomem(err, 1, "a path");
    else if (!f) s = wg_fail(err, errno == ENOENT ? WG_ENOENT : WG_EIO, "%s: cannot open: %s", path, strerror(errno));
    else s = read_lines(d, f, limit, category, err);
    if (f) fclose(f);
    if (s == WG_OK && d->n == 0)
        s = wg_fail(err, WG_EINVAL, category && category[0] ? "%s: no prompt of category \"%s\"" : "%s: no prompts%s", path,
                    category && category[0] ? category : "");
    if (s == WG_OK) *out = d;
    else wg_dataset_close(d);
    return s;
}
