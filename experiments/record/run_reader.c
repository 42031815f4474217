/* SPDX-License-Identifier: MIT
 * Reading a result folder. */
#include "experiments/record/run_reader.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/number.h"
#include "experiments/record/fields.h"
#include "experiments/record/line_sum.h"
#include "core/base/json_number.h"
#include "experiments/config/sweep.h"

/* ---- a line ------------------------------------------------------------------------------------------------------ */

static int whole(wg_span v, int fallback)
{
    double x;
    return wg_span_number(v, &x) && x >= -1 && x < 2147483648.0 ? (int)x : fallback;
}

static double real(wg_span v)
{
    double x;
    return wg_span_number(v, &x) ? x : NAN;
}

static int hex(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0; }

static void read_sha(wg_entry *e, wg_span text)
{
    for (size_t i = 0; i < sizeof e->sha && 2 * i + 1 < text.n; i++)
        e->sha[i] = (unsigned char)(hex(text.s[2 * i]) << 4 | hex(text.s[2 * i + 1]));
}

/* Reads a field of an entry. `path`: of the object that has the member, "" or "a.". */
static bool read_field(wg_entry *e, const char *path, wg_span key, wg_span v)
{
    const size_t n = strlen(path);
    for (const wg_field *f = wg_request_fields; f->name; f++) {
        if (f->entry < 0 || strncmp(f->name, path, n) != 0 || !wg_span_is(key, f->name + n)) continue;
        void *at = (char *)e + f->entry;
        if (f->type == WG_FIELD_MS || f->type == WG_FIELD_REAL) *(double *)at = real(v);
        else *(int32_t *)at = whole(v, 0);
        return true;
    }
    return false;
}

static void read_speculation(wg_entry *e, wg_span object)
{
    wg_json_scan s = wg_json_scan_open(object);
    wg_span key, v;
    while (wg_json_scan_next(&s, &key, &v))
        if (!read_field(e, "speculative_decoding.", key, v) && wg_span_is(key, "num_spec_steps") && !e->passes)
            e->passes = whole(v, 0); /* as wg_fields_passes: of earlier versions */
}

static void read_member(wg_entry *e, wg_prompt_key_span *a, wg_span key, wg_span v)
{
    const wg_span text = wg_span_text(v);
    if (wg_span_is(key, "speculative_decoding")) read_speculation(e, v);
    else if (read_field(e, "", key, v)) return;
    else if (wg_span_is(key, "cell")) e->cell = whole(v, -1);
    else if (wg_span_is(key, "status")) e->ok = wg_span_is(text, "ok");
    else if (wg_span_is(key, "output_sha256")) read_sha(e, text);
    else if (wg_span_is(key, "prompt_tokens")) a->tokens = whole(v, 0);
    else if (wg_span_is(key, "id")) a->id = text;
    else if (wg_span_is(key, "prompt_sha256")) a->hash = text;
    else if (wg_span_is(key, "category")) a->category = text;
}

bool wg_entry_read(const char *line, size_t n, wg_entry *e, wg_prompt_key_span *asked)
{
    wg_json_scan s = wg_json_scan_open((wg_span){ line, n });
    wg_span key, v;
    const off_t at = e->at;
    *asked = (wg_prompt_key_span){ .tokens = 0 };
    *e = (wg_entry){ .at = at, .cell = -1, .decode = NAN, .prefill = NAN, .ttft = NAN, .tpot = NAN };
    while (wg_json_scan_next(&s, &key, &v)) read_member(e, asked, key, v);
    return !s.bad && asked->id.s;
}

/* ---- prompts by key ---------------------------------------------------------------------------------------------- */

typedef struct table {
    int *slot;
    size_t size;
} table; /* slot: index + 1; 0: free */

static uint64_t identity(const char *id, size_t id_n, const char *hash, size_t hash_n)
{
    return wg_hash64(wg_hash64(wg_hash64(WG_HASH_START, id, id_n), "\n", 1), hash, hash_n);
}

static bool is(const char *text, const char *s, size_t n) { return strlen(text) == n && memcmp(text, s ? s : "", n) == 0; }

/* The slot of a prompt key in the table: its own, or the free one where it belongs. */
static int *find_slot(const table *t, const wg_run_reader *f, const wg_prompt_key_span *a)
{
    for (size_t i = identity(a->id.s, a->id.n, a->hash.s ? a->hash.s : "", a->hash.n);; i++) {
        int *slot = &t->slot[i & (t->size - 1)];
        if (*slot == 0) return slot;
        const wg_prompt_key *p = &f->asked[*slot - 1];
        if (is(p->id, a->id.s, a->id.n) && is(p->hash, a->hash.s, a->hash.n)) return slot;
    }
}

static wg_status grow_table(table *t, const wg_run_reader *f, wg_error *err)
{
    const table bigger = { .size = t->size ? 4 * t->size : 1024, .slot = wg_calloc(t->size ? 4 * t->size : 1024, sizeof(int)) };
    if (!bigger.slot) return wg_nomem(err, bigger.size * sizeof(int), "prompts");
    for (int i = 0; i < f->n_asked; i++) {
        const wg_prompt_key *p = &f->asked[i];
        const wg_prompt_key_span a = { .id = { p->id, strlen(p->id) }, .hash = { p->hash, strlen(p->hash) } };
        *find_slot(&bigger, f, &a) = i + 1;
    }
    wg_free(t->slot);
    *t = bigger;
    return WG_OK;
}

static wg_status intern(wg_run_reader *f, table *t, int *room, const wg_prompt_key_span *a, int32_t *out, wg_error *err)
{
    if (2 * (size_t)f->n_asked >= t->size) WG_TRY(grow_table(t, f, err));
    int *slot = find_slot(t, f, a);
    if (*slot == 0) {
        if (f->n_asked == *room) {
            const int more = *room ? 2 * *room : 256;
            wg_prompt_key *grown = wg_realloc(f->asked, (size_t)more, sizeof *grown);
            if (!grown) return wg_nomem(err, (size_t)more * sizeof *grown, "prompts");
            f->asked = grown;
            *room = more;
        }
        wg_prompt_key *p = &f->asked[f->n_asked];
        *p = (wg_prompt_key){ wg_strndup(a->id.s, a->id.n), wg_strndup(a->category.s ? a->category.s : "", a->category.n),
                              wg_strndup(a->hash.s ? a->hash.s : "", a->hash.n), a->tokens };
        f->n_asked++;
        if (!p->id || !p->category || !p->hash) return wg_nomem(err, a->id.n, "a prompt");
        *slot = f->n_asked;
    }
    *out = *slot - 1;
    return WG_OK;
}

int wg_prompt_key_compare(const wg_prompt_key *a, const wg_prompt_key *b)
{
    const int c = strcmp(a->id, b->id);
    return c ? c : strcmp(a->hash, b->hash);
}

/* ---- the files --------------------------------------------------------------------------------------------------- */

static wg_status read_lines(wg_run_reader *f, const char *path, wg_error *err)
{
    char *line = NULL; /* allocated by getline */
    size_t size = 0;
    ssize_t n;
    off_t at = 0;
    int room = 0, rooms = 0, number = 0;
    table t = { 0 };
    wg_status s = WG_OK;
    while (s == WG_OK && (n = getline(&line, &size, f->file)) > 0 && line[n - 1] == '\n') {
        if (f->n == room) {
            const int more = room ? 2 * room : 1024;
            wg_entry *grown = wg_realloc(f->entry, (size_t)more, sizeof *grown);
            if (!grown) s = wg_nomem(err, (size_t)more * sizeof *grown, "requests");
            if (!grown) break;
            f->entry = grown;
            room = more;
        }
        wg_entry *e = &f->entry[f->n];
        wg_prompt_key_span asked;
        e->at = at;
        number++;
        s = wg_line_sum_require(path, number, line, (size_t)n - 1, false, err);
        if (s) break;
        if (!wg_entry_read(line, (size_t)n - 1, e, &asked))
            s = wg_fail(err, WG_EFORMAT, "%s:%d: this is not the line of a request", path, number);
        else s = intern(f, &t, &rooms, &asked, &e->prompt, err);
        f->failed += !e->ok;
        f->n++;
        at += n;
    }
    if (s == WG_OK && ferror(f->file)) s = wg_fail(err, WG_EIO, "%s: cannot read: %s", path, strerror(errno));
    free(line);
    wg_free(t.slot);
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

/* Whether this member distinguishes the sections of one kind at the path `swept`. */
static bool tells(const json_t *config, const char *swept, const json_t *section, const char *key)
{
    for (size_t g = 0; wg_sweep_grid(config, g); g++) {
        size_t i;
        json_t *other;
        json_array_foreach(json_object_get(wg_sweep_grid(config, g), swept), i, other)
            if (json_equal(json_object_get(other, "kind"), json_object_get(section, "kind")) &&
                !json_equal(json_object_get(other, key), json_object_get(section, key)))
                return true;
    }
    return false;
}

/* Writes a swept value; a section as "model(length=4)": its kind and its distinguishing members. */
static void put_value(FILE *m, const json_t *v, const json_t *config, const char *swept)
{
    const char *key, *kind = json_string_value(json_object_get(v, "kind"));
    json_t *inner;
    bool first = true;
    if (!json_is_object(v)) put_plain(m, v);
    else fputs(kind ? kind : "", m);
    json_object_foreach((json_t *)v, key, inner) {
        if (!strcmp(key, "kind") || !strcmp(key, "label") || !tells(config, swept, v, key)) continue;
        fprintf(m, "%s%s=", first ? "(" : ", ", key);
        put_plain(m, inner);
        first = false;
    }
    if (!first) fputc(')', m);
}

char *wg_run_reader_cell_name(const wg_run_reader *f, int cell)
{
    char *text = NULL;
    size_t n = 0;
    const json_t *c = json_array_get(f->cells, (size_t)cell), *swept = json_object_get(c, "cell"),
                 *config = json_object_get(c, "config");
    FILE *m = open_memstream(&text, &n);
    if (!m) return NULL;
    const char *key;
    json_t *v;
    const char *label = text_at(config, "draft", "label", "");
    bool first = !*label;
    fputs(label, m);
    if (json_object_size(swept) == 0 && first)
        fprintf(m, "%s, %s", text_at(config, "draft", "kind", "none"), text_at(config, "verify", "rule", "match"));
    json_object_foreach((json_t *)swept, key, v) {
        const char *dot = strrchr(key, '.');
        if (*label && (!strcmp(key, "draft") || !strcmp(key, "draft.label"))) continue;
        fprintf(m, "%s%s=", first ? "" : ", ", dot ? dot + 1 : key);
        put_value(m, v, f->config, key);
        first = false;
    }
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
