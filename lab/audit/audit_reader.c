/* SPDX-License-Identifier: MIT
 * Reading records (audit_reader.h). */
#include "lab/audit/audit_reader.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "lab/audit/audit_rows.h"
#include "lab/audit/import.h"

#define FORMAT "wager-audit-1"

static const char *const header_keys[] = { "format", "stream", "rule", "law", "row_error", "engine", "extra", NULL };
static const char *const record_keys[] = { "stream",   "request", "draft",  "parents", "q",        "p",     "p_raw", "law",
                                           "accepted", "next",    "tokens", "plain",   "counters", "final", "extra", NULL };
static const double rounding = 1e-6; /* error of rows unless the header states it */

wg_status wg_audit_reader_open(wg_audit_reader *r, const char *name, wg_error *err)
{
    *r = (wg_audit_reader){ .name = wg_strdup(name), .header = { .row_error = rounding } };
    return r->name ? WG_OK : wg_nomem(err, strlen(name), "a name");
}

void wg_audit_reader_close(wg_audit_reader *r)
{
    if (r->p.p) wg_rows_close(&r->p);
    if (r->q.p) wg_rows_close(&r->q);
    if (r->raw.p) wg_rows_close(&r->raw);
    wg_free(r->listed);
    wg_free(r->name);
    *r = (wg_audit_reader){ 0 };
}

/* ---- members */

static wg_status check_keys(const json_t *o, const char *const *known, wg_error *err)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)o, key, v) {
        int i = 0;
        while (known[i] && strcmp(known[i], key) != 0) i++;
        if (known[i]) continue;
        char list[256];
        int at = 0;
        for (i = 0; known[i] && at < (int)sizeof list; i++)
            at += snprintf(list + at, sizeof list - (size_t)at, "%s%s", i ? ", " : "", known[i]);
        return wg_fail(err, WG_EFORMAT, "unknown member '%.60s'; expected one of: %s (\"extra\" holds anything)", key, list);
    }
    return WG_OK;
}

static wg_status read_name(const json_t *o, const char *key, char out[WG_AUDIT_NAME], wg_error *err)
{
    const json_t *v = json_object_get(o, key);
    if (!v) return WG_OK;
    if (!json_is_string(v) || json_string_length(v) >= WG_AUDIT_NAME)
        return wg_fail(err, WG_EFORMAT, "'%s' is no text of less than %d bytes", key, WG_AUDIT_NAME);
    memcpy(out, json_string_value(v), json_string_length(v) + 1);
    return WG_OK;
}

static wg_status read_law(const json_t *o, wg_sibling_law *law, wg_error *err)
{
    const json_t *v = json_object_get(o, "law");
    if (!v) return WG_OK;
    *law = (wg_sibling_law)(json_is_string(v) ? wg_law_named(json_string_value(v)) : 0);
    return *law ? WG_OK
                : wg_fail(err, WG_EFORMAT,
                          "'law' is none of: fixed, iid, without_replacement, coupled (how drafts were chosen)");
}

static wg_status read_header(wg_audit_reader *r, const json_t *o, wg_error *err)
{
    wg_audit_header h = { .row_error = rounding };
    const json_t *format = json_object_get(o, "format"), *error = json_object_get(o, "row_error");
    if (!json_is_string(format) || strcmp(json_string_value(format), FORMAT) != 0)
        return wg_fail(err, WG_EFORMAT, "'format' is not \"%s\", the one that this version reads", FORMAT);
    WG_TRY(check_keys(o, header_keys, err));
    WG_TRY(read_name(o, "stream", h.stream, err));
    WG_TRY(read_name(o, "rule", h.rule, err));
    WG_TRY(read_law(o, &h.law, err));
    if (error) h.row_error = json_number_value(error);
    if (error && (!json_is_number(error) || !(h.row_error >= 0 && h.row_error <= 1)))
        return wg_fail(err, WG_EFORMAT, "'row_error' is no number from 0 to 1: the total variation of a row from the engine's");
    r->header = h;
    return WG_OK;
}

/* Reads an array of at most `most` integers; *n: its length, -1: absent. */
static wg_status read_ints(const json_t *o, const char *key, json_int_t *out, int most, int *n, wg_error *err)
{
    const json_t *v = json_object_get(o, key), *item;
    size_t i;
    *n = v ? (int)json_array_size(v) : -1;
    if (v && !json_is_array(v)) return wg_fail(err, WG_EFORMAT, "'%s' is no list", key);
    if (*n > most)
        return wg_fail(err, WG_EUNSUPPORTED, "'%s' has %d items; this build reads trees of %d drafted tokens", key, *n, most);
    json_array_foreach(v, i, item) {
        if (!json_is_integer(item)) return wg_fail(err, WG_EFORMAT, "'%s' has an item that is no whole number", key);
        out[i] = json_integer_value(item);
    }
    return WG_OK;
}

/* ---- rows */

static const json_t *rows_of(const json_t *o, const char *key) { return json_object_get(o, key); }

static wg_status list_rows(wg_audit_listed *l, const json_t *rows, const char *key, wg_error *err)
{
    const json_t *row;
    size_t i;
    if (rows && !json_is_array(rows)) return wg_fail(err, WG_EFORMAT, "'%s' is no list of rows", key);
    json_array_foreach(rows, i, row) {
        const wg_status s = json_is_null(row) ? WG_OK : wg_audit_list_row(l, row, err);
        if (s) return wg_fail_in(err, s, "'%s', row %d", key, (int)i);
    }
    return WG_OK;
}

/* Finds the tokens of a record's rows; token: the drafted and emitted ones. */
static wg_status find_tokens(wg_audit_reader *r, const json_t *o, const json_int_t *token, int n, wg_audit_tokens *out,
                             wg_error *err)
{
    static const char *const keys[] = { "p", "q", "p_raw" };
    wg_audit_listed l = { .token = r->listed, .room = r->room };
    wg_status s = WG_OK;
    for (int i = 0; !s && i < n; i++) s = wg_audit_list(&l, token[i], err);
    for (int i = 0; !s && i < 3; i++) s = list_rows(&l, rows_of(o, keys[i]), keys[i], err);
    r->listed = l.token;
    r->room = l.room;
    if (s) return s;
    wg_audit_list_sort(&l);
    *out = (wg_audit_tokens){ .dense = l.vocab > 0, .vocab = l.vocab > 0 ? l.vocab : l.n + 1, .listed = l.token };
    for (int i = 0; out->dense && i < n; i++)
        if (token[i] >= l.vocab)
            return wg_fail(err, WG_EFORMAT, "token %lld is outside the vocabulary of the rows, %d", (long long)token[i],
                           l.vocab);
    return WG_OK;
}

static wg_status rows_room(wg_rows *rows, int n, int vocab, wg_error *err)
{
    enum { CELLS = 1 << 24 };
    if ((long)n * vocab > CELLS)
        return wg_fail(err, WG_EUNSUPPORTED, "%d rows over %d tokens; record rows as {\"tokens\", \"p\"}", n, vocab);
    if (!rows->p || rows->cap < n || rows->vocab != vocab) {
        if (rows->p) wg_rows_close(rows);
        WG_TRY(wg_rows_open(rows, n, vocab, err));
    }
    wg_rows_clear(rows);
    return WG_OK;
}

/* Reads n rows, none of which may be missing. */
static wg_status read_rows(const json_t *o, const char *key, int n, const wg_audit_tokens *t, wg_rows *out, double *error,
                           wg_error *err)
{
    const json_t *rows = rows_of(o, key), *row;
    size_t i;
    if ((int)json_array_size(rows) != n)
        return wg_fail(err, WG_EFORMAT, "'%s' has %d rows; expected %d", key, (int)json_array_size(rows), n);
    WG_TRY(rows_room(out, n, t->vocab, err));
    json_array_foreach(rows, i, row) {
        double rest = 0;
        const wg_status s = json_is_null(row) ? wg_fail(err, WG_EFORMAT, "it is null")
                                              : wg_audit_row_read(row, t, out, wg_rows_push(out), &rest, err);
        if (s) return wg_fail_in(err, s, "'%s', row %d", key, (int)i);
        if (error) error[i] = rest;
    }
    return WG_OK;
}

static double distance(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += fabs(a[i] - b[i]);
    return sum / 2;
}

/* Reads rows of q: the first sibling's entry is the row of all siblings; later entries are null or repeat it. */
static wg_status read_q(wg_audit_reader *r, const json_t *o, const wg_audit_tokens *t, wg_error *err)
{
    const double same = 1e-6;
    const json_t *rows = rows_of(o, "q"), *row;
    wg_tree *tree = &r->round.tree;
    const int n = (int)json_array_size(rows);
    size_t i;
    if (n != tree->n - 1 && !(n == tree->n && wg_tree_is_chain(tree)))
        return wg_fail(err, WG_EFORMAT, "'q' has %d rows; expected one for each of %d drafted tokens%s", n, tree->n - 1,
                       wg_tree_is_chain(tree) ? ", and perhaps the one behind them" : "");
    WG_TRY(rows_room(&r->q, n + 1, t->vocab, err));
    json_array_foreach(rows, i, row) {
        const int node = (int)i + 1 < tree->n ? (int)i + 1 : 0,
                  first = node ? wg_tree_child(tree, tree->parent[node], tree->parent[node]) : 0;
        double rest;
        if (json_is_null(row) && node && first == node && tree->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT))
            return wg_fail(err, WG_EFORMAT, "'q', row %d: it is null; expected the row that drafted token %d was drawn from",
                           (int)i, (int)i);
        if (first != node) tree->qrow[node] = tree->qrow[first];
        if (json_is_null(row)) continue;
        const int at = wg_rows_push(&r->q);
        const wg_status s = wg_audit_row_read(row, t, &r->q, at, &rest, err);
        if (s) return wg_fail_in(err, s, "'q', row %d", (int)i);
        r->round.q_error[at] = rest;
        if (!node) r->round.bonus_row = at;
        else if (first == node) tree->qrow[node] = (int16_t)at;
        else if (tree->qrow[node] < 0 || distance(wg_rows_at(&r->q, at), wg_rows_at(&r->q, tree->qrow[node]), t->vocab) > same)
            return wg_fail(err, WG_EFORMAT,
                           "'q', row %d: it is not the row of its first sibling, drafted token %d; expected that row, or null",
                           (int)i, first - 1);
    }
    return WG_OK;
}

/* ---- a round */

static wg_status read_tree(wg_audit_reader *r, const json_t *o, const json_int_t *draft, int n, const wg_audit_tokens *t,
                           wg_error *err)
{
    json_int_t parent[WG_TREE_MAX];
    int parents;
    wg_tree *tree = &r->round.tree;
    WG_TRY(read_ints(o, "parents", parent, WG_TREE_MAX - 1, &parents, err));
    if (parents >= 0 && parents != n)
        return wg_fail(err, WG_EFORMAT, "'parents' has %d items and 'draft' %d; expected as many", parents, n);
    for (int i = 0; i < n; i++) {
        if (parents < 0) parent[i] = i - 1;
        if (parent[i] < -1 || parent[i] >= i)
            return wg_fail(err, WG_EFORMAT,
                           "drafted token %d has the parent %lld; expected an earlier index of 'draft', or -1 for the root", i,
                           (long long)parent[i]);
        wg_tree_push(tree, (int)parent[i] + 1, wg_audit_token(t, draft[i]), -1);
    }
    for (int i = 0; i < tree->n; i++) {
        int children = 0;
        for (int c = i; (c = wg_tree_child(tree, i, c)) >= 0;) children++;
        if (children) wg_tree_group(tree, i, children);
    }
    return WG_OK;
}

/* Reads 'accepted': the number of tokens of a chain, or the accepted indices of a tree in order. */
static wg_status read_path(wg_audit_reader *r, const json_t *o, wg_error *err)
{
    const json_t *v = json_object_get(o, "accepted");
    const wg_tree *t = &r->round.tree;
    wg_path *path = &r->round.path;
    json_int_t node[WG_TREE_MAX];
    int n;
    path->n = 1;
    path->node[0] = 0;
    if (json_is_integer(v) && wg_tree_is_chain(t)) {
        if (json_integer_value(v) < 0 || json_integer_value(v) >= t->n)
            return wg_fail(err, WG_EFORMAT, "'accepted' is %lld; expected 0 to %d, the drafted tokens",
                           (long long)json_integer_value(v), t->n - 1);
        for (n = (int)json_integer_value(v); path->n <= n; path->n++) path->node[path->n] = (int16_t)path->n;
        return WG_OK;
    }
    if (!json_is_array(v))
        return wg_fail(err, WG_EFORMAT,
                       "'accepted' is neither the number of accepted tokens of a chain nor a list of indices of 'draft'");
    WG_TRY(read_ints(o, "accepted", node, WG_TREE_MAX - 1, &n, err));
    for (int i = 0; i < n; i++) {
        if (node[i] < 0 || node[i] >= t->n - 1 || t->parent[node[i] + 1] != path->node[path->n - 1])
            return wg_fail(err, WG_EFORMAT, "'accepted', item %d: %lld is no drafted token behind the one accepted before", i,
                           (long long)node[i]);
        path->node[path->n++] = (int16_t)(node[i] + 1);
    }
    return WG_OK;
}

static wg_status read_raw(wg_audit_reader *r, const json_t *o, int n, const wg_audit_tokens *t, wg_error *err)
{
    if (!rows_of(o, "p_raw")) return WG_OK;
    WG_TRY(read_rows(o, "p_raw", n, t, &r->raw, NULL, err));
    r->round.raw = &r->raw;
    return WG_OK;
}

static wg_status read_round(wg_audit_reader *r, const json_t *o, wg_error *err)
{
    json_int_t token[WG_TREE_MAX + 1];
    int n;
    wg_audit_tokens t;
    wg_audit_round *x = &r->round;
    const json_t *next = json_object_get(o, "next");
    const bool p = rows_of(o, "p") != NULL, q = rows_of(o, "q") != NULL;
    WG_TRY(read_ints(o, "draft", token, WG_TREE_MAX - 1, &n, err));
    const int drafted = n;
    if (p && !json_is_integer(next))
        return wg_fail(err, WG_EFORMAT, "'next' is no token: the one emitted behind the accepted ones");
    if (p) token[n++] = json_integer_value(next);
    WG_TRY(find_tokens(r, o, token, n, &t, err));
    wg_sibling_law law = r->header.law ? r->header.law : q ? WG_LAW_IID : WG_LAW_FIXED;
    WG_TRY(read_law(o, &law, err));
    wg_tree_reset(&x->tree, -1, law);
    x->dense = t.dense;
    x->evidence = p ? WG_EVIDENCE_ROUND : WG_EVIDENCE_DRAFTS;
    x->final = json_is_true(json_object_get(o, "final"));
    WG_TRY(read_tree(r, o, token, drafted, &t, err));
    if (law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT) && !q && drafted)
        return wg_fail(err, WG_EFORMAT, "drafts of law %s without 'q', the rows that they were drawn from", wg_law_name(law));
    if (q) {
        WG_TRY(read_q(r, o, &t, err));
        x->q = &r->q;
    }
    if (!p) return WG_OK;
    WG_TRY(read_rows(o, "p", drafted + 1, &t, &r->p, x->p_error, err));
    x->p = &r->p;
    WG_TRY(read_raw(r, o, drafted + 1, &t, err));
    x->path.next = wg_audit_token(&t, json_integer_value(next));
    return read_path(r, o, err);
}

/* ---- tokens */

static wg_status read_plain(wg_audit_reader *r, const json_t *tokens, const json_t *plain, wg_error *err)
{
    if (!json_is_array(plain))
        return wg_fail(err, WG_EFORMAT, "'plain' is no list: the tokens of plain decoding at temperature 0");
    const size_t n = json_array_size(tokens), m = json_array_size(plain);
    r->plain = true;
    for (size_t i = 0; r->differs < 0 && i < (n > m ? n : m); i++)
        if (!json_equal(json_array_get(tokens, i), json_array_get(plain, i))) r->differs = (long)i;
    return WG_OK;
}

/* Reads emitted tokens, with or without the row before each. */
static wg_status read_tokens(wg_audit_reader *r, const json_t *o, wg_error *err)
{
    const json_t *tokens = json_object_get(o, "tokens"), *plain = json_object_get(o, "plain"), *v;
    wg_audit_round *x = &r->round;
    json_int_t token[WG_TREE_MAX];
    wg_audit_tokens t;
    size_t i;
    int n;
    if (!json_is_array(tokens)) return wg_fail(err, WG_EFORMAT, "'tokens' is no list of emitted tokens");
    json_array_foreach(tokens, i, v)
        if (!json_is_integer(v)) return wg_fail(err, WG_EFORMAT, "'tokens', item %d is no token", (int)i);
    r->tokens = (long)json_array_size(tokens);
    x->evidence = WG_EVIDENCE_TOKENS;
    if (plain) return read_plain(r, tokens, plain, err);
    if (!rows_of(o, "p")) return WG_OK;
    WG_TRY(read_ints(o, "tokens", token, WG_TREE_MAX, &n, err));
    if (n == 0) return wg_fail(err, WG_EFORMAT, "'tokens' is empty");
    WG_TRY(find_tokens(r, o, token, n, &t, err));
    wg_tree_reset(&x->tree, -1, WG_LAW_FIXED);
    x->path.n = 1;
    x->path.node[0] = 0;
    for (int k = 0; k + 1 < n; k++)
        x->path.node[x->path.n++] = (int16_t)wg_tree_push(&x->tree, k, wg_audit_token(&t, token[k]), -1);
    x->path.next = wg_audit_token(&t, token[n - 1]);
    x->dense = t.dense;
    x->evidence = WG_EVIDENCE_TEXT;
    WG_TRY(read_rows(o, "p", n, &t, &r->p, x->p_error, err));
    x->p = &r->p;
    return read_raw(r, o, n, &t, err);
}

/* ---- a line */

static wg_status read_record(wg_audit_reader *r, const json_t *o, wg_error *err)
{
    memset(&r->round.p_error, 0, sizeof r->round.p_error);
    memset(&r->round.q_error, 0, sizeof r->round.q_error);
    r->round.p = r->round.q = r->round.raw = NULL;
    r->round.bonus_row = -1;
    r->round.final = false;
    r->round.rounding = r->header.row_error;
    r->differs = -1;
    r->plain = false;
    r->tokens = 0;
    memcpy(r->stream, r->header.stream, sizeof r->stream);
    if (wg_import_counters(o, &r->counters)) {
        r->round.evidence = WG_EVIDENCE_COUNTERS;
        return WG_OK;
    }
    WG_TRY(check_keys(o, record_keys, err));
    WG_TRY(read_name(o, "stream", r->stream, err));
    if (json_object_get(o, "draft")) return read_round(r, o, err);
    if (json_object_get(o, "tokens")) return read_tokens(r, o, err);
    return wg_fail(err, WG_EFORMAT, "a record has 'draft', 'tokens' or 'counters', and this line none of them");
}

wg_status wg_audit_read_value(wg_audit_reader *r, const json_t *o, wg_audit_line *out, wg_error *err)
{
    *out = json_object_get(o, "format") ? WG_AUDIT_HEADER : WG_AUDIT_RECORD;
    if (!json_is_object(o)) return wg_fail(err, WG_EFORMAT, "no JSON object; expected one a line");
    return *out == WG_AUDIT_HEADER ? read_header(r, o, err) : read_record(r, o, err);
}

static wg_status read_object(wg_audit_reader *r, const char *text, size_t n, wg_audit_line *out, wg_error *err)
{
    json_error_t why;
    json_t *o = wg_json_load_foreign(text, n, JSON_REJECT_DUPLICATES, &why);
    if (!o && !*why.text) return wg_nomem(err, n, "a record");
    const wg_status s = o ? wg_audit_read_value(r, o, out, err)
                          : wg_fail(err, WG_EFORMAT, "no JSON: %s (column %d)", wg_json_why(&why), why.column);
    json_decref(o);
    return s;
}

wg_status wg_audit_read_line(wg_audit_reader *r, const char *text, size_t n, wg_audit_line *out, wg_error *err)
{
    size_t i = 0;
    r->line++;
    while (i < n && strchr(" \t\r\n", text[i]) && text[i]) i++;
    *out = WG_AUDIT_NOTHING;
    if (i == n) return WG_OK;
    const wg_status s = read_object(r, text, n, out, err);
    return s ? wg_fail_in(err, s, "%s:%ld", r->name, r->line) : WG_OK;
}

wg_status wg_audit_next_line(wg_audit_reader *r, FILE *f, char **text, size_t *room, long *n, wg_error *err)
{
    size_t at = 0;
    int c;
    while ((c = getc_unlocked(f)) != EOF && c != '\n') {
        if (at == *room) {
            const size_t more = *room ? 2 * *room : 4096;
            if (at >= WG_AUDIT_LINE_MAX)
                return wg_fail(err, WG_EFORMAT, "%s:%ld: longer than %d MB; expected a round a line", r->name, r->line + 1,
                               WG_AUDIT_LINE_MAX >> 20);
            char *grown = wg_realloc(*text, more, 1);
            if (!grown) return wg_nomem(err, more, "a line");
            *text = grown;
            *room = more;
        }
        (*text)[at++] = (char)c;
    }
    if (ferror(f)) return wg_fail(err, WG_EIO, "%s: cannot be read: %s", r->name, strerror(errno));
    *n = at || c == '\n' ? (long)at : -1;
    return WG_OK;
}
