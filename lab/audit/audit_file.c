/* SPDX-License-Identifier: MIT
 * Reading files of records (audit_file.h). */
#include "lab/audit/audit_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "lab/replay.h"

/* ---- JSON lines */

static wg_status add_record(wg_auditor *a, const wg_audit_reader *r, const char *rule, wg_error *err)
{
    int stream;
    const wg_status s = wg_auditor_stream(a, r->stream, *r->header.rule ? r->header.rule : rule, &stream, err);
    if (s) return s;
    if (r->round.evidence == WG_EVIDENCE_COUNTERS) wg_auditor_counters(a, stream, &r->counters);
    else if (r->round.evidence == WG_EVIDENCE_TOKENS) wg_auditor_tokens(a, stream, r);
    else return wg_auditor_round(a, stream, &r->round, err);
    return WG_OK;
}

static wg_status read_lines(wg_auditor *a, wg_audit_reader *r, FILE *f, const char *rule, wg_error *err)
{
    char *text = NULL;
    size_t room = 0;
    long n = 0, records = 0;
    wg_status s = WG_OK;
    while (!s && !(s = wg_audit_next_line(r, f, &text, &room, &n, err)) && n >= 0) {
        wg_audit_line kind;
        const size_t mark = r->line == 0 ? wg_byte_order_mark(text, (size_t)n) : 0;
        s = wg_audit_read_line(r, text + mark, (size_t)n - mark, &kind, err);
        if (s || kind != WG_AUDIT_RECORD) continue;
        records++;
        s = add_record(a, r, rule, err);
        if (s) s = wg_fail_in(err, s, "%s:%ld", r->name, r->line);
    }
    wg_free(text);
    if (!s && !records) s = wg_fail(err, WG_EFORMAT, "%s: there are no records in it; docs/audit.md has the format", r->name);
    return s;
}

/* ---- one document */

/* The list of records in a document; NULL: it is a record itself. */
static const json_t *records_of(const json_t *doc)
{
    const json_t *list = json_is_array(doc) ? doc : json_object_get(doc, "results");
    return json_is_array(list) ? list : NULL;
}

/* Whether the first nonempty line begins a JSON document, or is one, instead of a record. */
static wg_status begins_document(wg_audit_reader *r, FILE *f, bool *is, wg_error *err)
{
    char *text = NULL;
    size_t room = 0, blank = 0;
    long n = 0;
    wg_status s;
    *is = false;
    while (!(s = wg_audit_next_line(r, f, &text, &room, &n, err)) && n >= 0) {
        const size_t mark = wg_byte_order_mark(text, (size_t)n);
        for (blank = mark; blank < (size_t)n && strchr(" \t\r", text[blank]) && text[blank];) blank++;
        if (blank == (size_t)n) continue;
        json_t *first = wg_json_load_foreign(text + blank, (size_t)n - blank, 0, NULL);
        *is = strchr("{[", text[blank]) && text[blank] && (!first || records_of(first));
        json_decref(first);
        break;
    }
    wg_free(text);
    rewind(f);
    return s;
}

/* Loads the document of a file; NULL: it is not one document, or too large, and is read as lines. */
static wg_status load_document(const char *path, json_t **doc, wg_error *err)
{
    char *bytes;
    size_t n;
    const wg_status s = wg_read_file(path, WG_AUDIT_LINE_MAX, &bytes, &n, err);
    if (s) return s == WG_EFORMAT ? WG_OK : s;
    const size_t mark = wg_byte_order_mark(bytes, n);
    *doc = wg_json_load_foreign(bytes + mark, n - mark, JSON_REJECT_DUPLICATES, NULL);
    wg_free(bytes);
    return WG_OK;
}

static wg_status audit_values(wg_auditor *a, wg_audit_reader *r, const json_t *doc, const char *rule, wg_error *err)
{
    const json_t *list = records_of(doc);
    const size_t n = list ? json_array_size(list) : 1;
    if (n == 0) return wg_fail(err, WG_EFORMAT, "%s: there are no records in it; docs/audit.md has the format", r->name);
    for (size_t i = 0; i < n; i++) {
        wg_audit_line kind;
        wg_status s = wg_audit_read_value(r, list ? json_array_get(list, i) : doc, &kind, err);
        if (!s && kind == WG_AUDIT_RECORD) s = add_record(a, r, rule, err);
        if (s) return wg_fail_in(err, s, "%s: record %zu of the document", r->name, i);
    }
    return WG_OK;
}

static wg_status audit_json(wg_auditor *a, const char *path, FILE *f, const char *rule, wg_error *err)
{
    wg_audit_reader r;
    json_t *doc = NULL;
    bool document;
    WG_TRY(wg_audit_reader_open(&r, path, err));
    wg_status s = begins_document(&r, f, &document, err);
    if (!s && document) s = load_document(path, &doc, err);
    if (!s) s = doc ? audit_values(a, &r, doc, rule, err) : read_lines(a, &r, f, rule, err);
    json_decref(doc);
    wg_audit_reader_close(&r);
    return s;
}

/* ---- a trace */

/* Makes a row of a replay dense; one-hot rows and rows with a known support are not. */
static void plain_row(wg_rows *rows, int row)
{
    const int32_t token = wg_rows_one_hot(rows, row);
    rows->point[row] = -1;
    rows->supported[row] = -1;
    if (token < 0) return;
    double *p = wg_rows_at(rows, row);
    memset(p, 0, (size_t)rows->vocab * sizeof *p);
    p[token] = 1;
}

static void round_of(const wg_replay *r, wg_audit_round *x)
{
    const double rounding = 1e-12;
    const wg_trace_round *o = &r->round;
    *x = (wg_audit_round){
        .evidence = WG_EVIDENCE_ROUND, .tree = o->tree, .path = o->path, .p = (wg_rows *)&r->p, .bonus_row = -1
    };
    x->q = o->n_q ? (wg_rows *)&r->q : NULL;
    x->final = o->facts.finish != 0;
    x->dense = true;
    x->rounding = rounding;
    for (int i = 0; i < o->tree.n; i++) x->p_error[i] = o->p[i].error;
    for (int i = 0; i < o->n_q; i++) x->q_error[i] = o->q[i].error;
}

/* Writes the recorded rule as "NAME:k=v,...". */
static void rule_of(const wg_replay *r, const json_t *config, char *out, size_t size)
{
    const json_t *verify = json_object_get(config, "verify");
    const char *key, *between = ":";
    json_t *v;
    int at = snprintf(out, size, "%s", r->rule.class->name);
    json_object_foreach((json_t *)verify, key, v) {
        if (!strcmp(key, "rule") || at >= (int)size) continue;
        char *text =
            json_is_string(v) ? wg_strdup(json_string_value(v)) : json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
        at += snprintf(out + at, size - (size_t)at, "%s%s=%s", between, key, text ? text : "");
        if (json_is_string(v)) wg_free(text);
        else free(text);
        between = ",";
    }
}

static wg_status audit_cell(wg_auditor *a, wg_trace *t, int cell, wg_error *err)
{
    wg_replay *r = NULL;
    char name[WG_AUDIT_NAME], rule[WG_AUDIT_NAME];
    int stream = 0;
    WG_TRY(wg_replay_open(&r, t, cell, -1, err));
    rule_of(r, json_object_get(json_array_get(t->cells, (size_t)cell), "config"), rule, sizeof rule);
    snprintf(name, sizeof name, "cell %d", cell);
    wg_status s = wg_auditor_stream(a, name, rule, &stream, err);
    for (int i = 0; !s && i < t->rounds; i++) {
        wg_audit_round x;
        if (t->request[t->round[i].request].asked.cell != cell || (s = wg_replay_load(r, i, err))) continue;
        for (int k = 0; k < r->p.n; k++) plain_row(&r->p, k);
        for (int k = 0; k < r->q.n; k++) plain_row(&r->q, k);
        round_of(r, &x);
        s = wg_auditor_round(a, stream, &x, err);
    }
    wg_replay_close(r);
    return s;
}

static wg_status audit_trace(wg_auditor *a, const char *path, wg_error *err)
{
    wg_trace *t;
    WG_TRY(wg_trace_open(&t, path, err));
    wg_status s = t->rounds ? WG_OK : wg_fail(err, WG_EFORMAT, "%s: there are no rounds in it", t->name);
    for (int c = 0; !s && c < (int)json_array_size(t->cells); c++) s = audit_cell(a, t, c, err);
    wg_trace_close(t);
    return s;
}

wg_status wg_audit_file(wg_auditor *a, const char *path, const char *rule, wg_error *err)
{
    char in_folder[4096], magic[sizeof WG_TRACE_MAGIC] = "";
    snprintf(in_folder, sizeof in_folder, "%s/trace.wgt", path);
    FILE *f = fopen(in_folder, "rb");
    if (f) path = in_folder;
    else f = fopen(path, "rb");
    if (!f)
        return wg_fail(err, WG_ENOENT, "%s: %s; expected records (docs/audit.md), a trace.wgt or its folder", path,
                       strerror(errno));
    const size_t n = fread(magic, 1, sizeof magic - 1, f);
    const bool trace = n == sizeof magic - 1 && !memcmp(magic, WG_TRACE_MAGIC, n);
    wg_status s = WG_OK;
    if (!trace && ferror(f)) s = wg_fail(err, WG_EIO, "%s: cannot be read: %s", path, strerror(errno));
    rewind(f);
    if (!s) s = trace ? audit_trace(a, path, err) : audit_json(a, path, f, rule, err);
    fclose(f);
    return s;
}
