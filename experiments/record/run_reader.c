/* SPDX-License-Identifier: MIT
 * Reading a result folder. */
#include "experiments/record/run_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/number.h"
#include "experiments/record/fields.h"
#include "experiments/record/line_sum.h"
#include "core/base/json_number.h"
#include "experiments/config/sweep.h"

/* ---- a line ------------------------------------------------------------------------------------------------------ */

static int hex(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0; }

bool wg_entry_read(const json_t *line, wg_entry *e)
{
    const json_t *cell = json_object_get(line, "cell");
    const char *sha = wg_json_word(line, "output_sha256");
    *e = (wg_entry){ .at = e->at,
                     .cell = json_is_integer(cell) ? (int32_t)json_integer_value(cell) : -1,
                     .ok = strcmp(wg_json_word(line, "status"), "ok") == 0 };
    for (size_t i = 0; i < sizeof e->sha && sha[2 * i] && sha[2 * i + 1]; i++)
        e->sha[i] = (unsigned char)(hex(sha[2 * i]) << 4 | hex(sha[2 * i + 1]));
    wg_fields_read_entry(e, line);
    return json_is_string(json_object_get(line, "id"));
}

/* ---- prompts by key ---------------------------------------------------------------------------------------------- */

/* The index of a line's prompt in f->asked, which gets it when it is new. known: indices by id and hash. */
static wg_status intern(wg_run_reader *f, json_t *known, const json_t *line, int32_t *out, wg_error *err)
{
    const char *id = wg_json_word(line, "id"), *hash = wg_json_word(line, "prompt_sha256");
    const int n = f->n_asked;
    json_t *key = json_sprintf("%s\n%s", id, hash);
    const json_t *number = key ? json_object_get(known, json_string_value(key)) : NULL;
    bool ok = key;
    *out = number ? (int32_t)json_integer_value(number) : n;
    if (ok && !number && (n & (n - 1)) == 0) { /* room for 1, 2, 4 ... prompts */
        wg_prompt_key *grown = wg_realloc(f->asked, n ? 2 * (size_t)n : 1, sizeof *grown);
        if (grown) f->asked = grown;
        ok = grown;
    }
    if (ok && !number) {
        wg_prompt_key *p = &f->asked[f->n_asked++];
        *p = (wg_prompt_key){ wg_strdup(id), wg_strdup(wg_json_word(line, "category")), wg_strdup(hash),
                              (int)wg_json_int(line, "prompt_tokens") };
        ok = p->id && p->category && p->hash && json_object_set_new(known, json_string_value(key), json_integer(n)) == 0;
    }
    json_decref(key);
    return ok ? WG_OK : wg_nomem(err, strlen(id), "a prompt");
}

int wg_prompt_key_compare(const wg_prompt_key *a, const wg_prompt_key *b)
{
    const int c = strcmp(a->id, b->id);
    return c ? c : strcmp(a->hash, b->hash);
}

/* ---- the files --------------------------------------------------------------------------------------------------- */

static wg_status add_line(wg_run_reader *f, json_t *known, const char *path, const char *line, size_t n, off_t at,
                          wg_error *err)
{
    if ((f->n & (f->n - 1)) == 0) { /* room for 1, 2, 4 ... requests */
        wg_entry *grown = wg_realloc(f->entry, f->n ? 2 * (size_t)f->n : 1, sizeof *grown);
        if (!grown) return wg_nomem(err, (size_t)f->n * sizeof *grown, "requests");
        f->entry = grown;
    }
    wg_entry *e = &f->entry[f->n++];
    e->at = at;
    WG_TRY(wg_line_sum_require(path, f->n, line, n, false, err));
    json_t *v = json_loadb(line, n, JSON_ALLOW_NUL, NULL);
    const wg_status s = wg_entry_read(v, e) ? intern(f, known, v, &e->prompt, err)
                                            : wg_fail(err, WG_EFORMAT, "%s:%d: this is not the line of a request", path, f->n);
    json_decref(v);
    f->failed += !e->ok;
    return s;
}

static wg_status read_lines(wg_run_reader *f, const char *path, wg_error *err)
{
    char *line = NULL; /* allocated by getline */
    size_t size = 0;
    ssize_t n;
    off_t at = 0;
    json_t *known = json_object();
    wg_status s = WG_OK;
    for (; s == WG_OK && (n = getline(&line, &size, f->file)) > 0 && line[n - 1] == '\n'; at += n)
        s = add_line(f, known, path, line, (size_t)n - 1, at, err);
    if (s == WG_OK && ferror(f->file)) s = wg_fail(err, WG_EIO, "%s: cannot read: %s", path, strerror(errno));
    free(line);
    json_decref(known);
    return s;
}

json_t *wg_run_reader_line(const wg_run_reader *f, const wg_entry *e)
{
    char *line = NULL;
    size_t size = 0;
    json_t *v = NULL;
    if (fseeko(f->file, e->at, SEEK_SET) == 0) {
        const ssize_t n = getline(&line, &size, f->file);
        if (n > 0) v = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL);
    }
    free(line);
    return v;
}

/* ---- cells, from the config -------------------------------------------------------------------------------------- */

static const char *text_at(const json_t *config, const char *section, const char *key, const char *fallback)
{
    const char *s = json_string_value(json_object_get(json_object_get(config, section), key));
    return s ? s : fallback;
}

static void put_plain(FILE *m, const json_t *v)
{
    const char *s = json_string_value(v), *slash = s ? strrchr(s, '/') : NULL;
    char number[40], *text = s || json_is_real(v) ? NULL : wg_json_canonical(v, false);
    if (json_is_real(v)) wg_number_text(json_real_value(v), number, sizeof number);
    fputs(json_is_real(v) ? number : slash && slash[1] ? slash + 1 : s ? s : text ? text : "?", m);
    wg_free(text);
}

/* Writes a swept value; a section as "model(length=4)": its kind and its distinguishing members. */
static void put_value(FILE *m, const json_t *v, const json_t *tells, const char *path)
{
    const char *key, *selector = wg_sweep_selector(path), *between = "(";
    json_t *inner;
    if (!json_is_object(v)) put_plain(m, v);
    else fputs(wg_json_word(v, selector), m);
    json_object_foreach((json_t *)v, key, inner) {
        if (!strcmp(key, selector) || !strcmp(key, "label") || !wg_sweep_tells_member(tells, path, v, key)) continue;
        fprintf(m, "%s%s=", between, key);
        put_plain(m, inner);
        between = ", ";
    }
    if (*between == ',') fputc(')', m);
}

char *wg_run_reader_cell_name(const wg_run_reader *f, int cell)
{
    char *text = NULL;
    size_t n = 0;
    const json_t *c = json_array_get(f->cells, (size_t)cell), *config = json_object_get(c, "config"),
                 *tells = json_object_get(c, "tells");
    FILE *m = open_memstream(&text, &n);
    if (!m) return NULL;
    const char *key, *label = wg_json_word(json_object_get(config, "draft"), "label");
    json_t *v;
    bool first = !*label;
    fputs(label, m);
    json_object_foreach(json_object_get(c, "cell"), key, v) {
        const char *dot = strrchr(key, '.');
        if (!wg_sweep_tells_path(tells, key) || (*label && (!strcmp(key, "draft") || !strcmp(key, "draft.label")))) continue;
        fprintf(m, "%s%s=", first ? "" : ", ", dot ? dot + 1 : key);
        put_value(m, v, tells, key);
        first = false;
    }
    if (first) fprintf(m, "%s, %s", text_at(config, "draft", "kind", "none"), text_at(config, "verify", "rule", "match"));
    fclose(m);
    char *copy = wg_strdup(text);
    free(text);
    return copy;
}

/* ---- a whole folder ---------------------------------------------------------------------------------------------- */

/* Checks the members that every reader of a summary uses; a missing number was not measured. */
bool wg_summary_is_sound(const json_t *summary)
{
    const json_t *cells = json_object_get(summary, "cells"), *parts;
    bool ok = json_is_object(summary) && (!cells || json_is_array(cells));
    for (size_t i = 0; ok && i < json_array_size(cells); i++) {
        const json_t *c = json_array_get(cells, i);
        ok = json_is_object(json_object_get(c, "cell")) && json_is_string(json_object_get(c, "drafter")) &&
             json_is_string(json_object_get(c, "rule"));
        parts = json_object_get(c, "categories");
        for (size_t k = 0; ok && k < json_array_size(parts); k++)
            ok = json_is_string(json_object_get(json_array_get(parts, k), "category"));
    }
    return ok;
}

/* Sets numbers of an earlier schema with another definition to null. */
static void forget_redefined(json_t *summary)
{
    size_t i;
    json_t *cell;
    if (wg_json_int(summary, "schema") >= WG_SUMMARY_SCHEMA) return;
    json_array_foreach(json_object_get(summary, "cells"), i, cell) {
        json_t *acceptance = json_object_get(cell, "acceptance");
        json_object_set_new(cell, "spec_decode_num_drafts", json_null());
        json_object_set_new(cell, "mean_acceptance_length", json_null());
        if (!acceptance) continue;
        json_object_set_new(acceptance, "acceptance_histogram", json_null());
        json_object_set_new(acceptance, "conditional_by_position", json_null());
    }
}

static bool has_file(const char *dir, const char *name)
{
    char path[4096];
    return (size_t)snprintf(path, sizeof path, "%s/%s", dir, name) < sizeof path && access(path, F_OK) == 0;
}

static wg_status check_documents(wg_run_reader *f, wg_error *err)
{
    if (!json_is_object(f->config))
        return wg_fail(err, WG_EFORMAT, "%s/config.json is missing or damaged; expected the folder of a run", f->path);
    if (has_file(f->path, "summary.json") && !wg_summary_is_sound(f->summary))
        return wg_fail(err, WG_EFORMAT,
                       "%s/summary.json is not what a run writes; remove it, and wager run --resume makes it again", f->path);
    forget_redefined(f->summary);
    f->cells = wg_sweep_cells(f->config);
    return f->cells ? WG_OK : wg_nomem(err, 1, "cells");
}

static wg_status open_folder(wg_run_reader **out, const char *dir, bool requests, wg_error *err)
{
    char path[4096];
    wg_run_reader *f = wg_calloc(1, sizeof *f);
    if (!f) return wg_nomem(err, sizeof *f, "a result folder");
    f->path = wg_strdup(dir);
    f->config = wg_json_load(dir, "config.json");
    f->machine = wg_json_load(dir, "machine.json");
    f->summary = wg_json_load(dir, "summary.json");
    f->complete = json_is_true(json_object_get(f->summary, "complete"));
    snprintf(path, sizeof path, "%s/requests.jsonl", dir);
    if (requests) f->file = fopen(path, "rbe");
    wg_status s = WG_OK;
    if (!f->path) s = wg_nomem(err, 1, "a path");
    else if (requests && !f->file)
        s = wg_fail(err, errno == ENOENT ? WG_ENOENT : WG_EIO, "%s: cannot open: %s; expected the folder of a run", path,
                    strerror(errno));
    if (s == WG_OK) s = check_documents(f, err);
    if (s == WG_OK && requests) s = read_lines(f, path, err);
    if (s == WG_OK) *out = f;
    else wg_run_reader_close(f);
    return s;
}

wg_status wg_run_reader_open(wg_run_reader **out, const char *dir, wg_error *err) { return open_folder(out, dir, true, err); }

bool wg_run_reader_is_run(const char *dir) { return has_file(dir, "requests.jsonl"); }

bool wg_run_reader_is_published(const char *dir)
{
    return !wg_run_reader_is_run(dir) && has_file(dir, "summary.json") && has_file(dir, "config.json");
}

wg_status wg_run_reader_open_result(wg_run_reader **out, const char *dir, wg_error *err)
{
    const bool published = wg_run_reader_is_published(dir);
    WG_TRY(open_folder(out, dir, !published, err));
    (*out)->published = published;
    return WG_OK;
}

wg_status wg_run_reader_open_documents(wg_run_reader **out, const char *dir, wg_error *err)
{
    return open_folder(out, dir, false, err);
}

wg_status wg_run_reader_cells(const wg_run_reader *f, const json_t **cells, wg_error *err)
{
    *cells = json_object_get(f->summary, "cells");
    if (json_is_array(*cells)) return WG_OK;
    return wg_fail(err, WG_EINVAL, "%s: there is no summary.json: the run never came to its end; wager run --resume goes on",
                   f->path);
}

void wg_run_reader_close(wg_run_reader *f)
{
    if (!f) return;
    for (int i = 0; i < f->n_asked; i++) {
        wg_free(f->asked[i].id);
        wg_free(f->asked[i].category);
        wg_free(f->asked[i].hash);
    }
    wg_free(f->asked);
    wg_free(f->entry);
    json_decref(f->config);
    json_decref(f->machine);
    json_decref(f->summary);
    json_decref(f->cells);
    if (f->file) fclose(f->file);
    wg_free(f->path);
    wg_free(f);
}
