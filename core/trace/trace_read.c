/* SPDX-License-Identifier: MIT
 * Reading a trace. The contents are not trusted: lengths are checked against the file, checksums against the bytes, and
 * every round against the text of the rounds before it. Allocations are proportional to the bytes read. */
#include <errno.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/trace/trace.h"

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* Reads the record at the file's position into payload. *kind 0: there is none. An incomplete record or a wrong checksum is
 * noted as damage, and the file is treated as if it ended before it. */
static wg_status next_record(wg_trace *t, uint64_t at, uint32_t *kind, size_t *n, wg_error *err)
{
    unsigned char head[8], tail[8];
    uint64_t sum, want;
    *kind = 0;
    if (at == t->size) return WG_OK;
    if (t->size - at < 16 || fread(head, 1, 8, t->file) != 8) {
        snprintf(t->damage, sizeof t->damage, "the record at byte %llu is cut", (unsigned long long)at);
        return WG_OK;
    }
    uint32_t length, what;
    memcpy(&length, head, 4);
    memcpy(&what, head + 4, 4);
    if (length > t->size - at - 16) {
        snprintf(t->damage, sizeof t->damage, "the record at byte %llu says %u bytes, but the file has %llu more",
                 (unsigned long long)at, length, (unsigned long long)(t->size - at - 16));
        return WG_OK;
    }
    if (t->room < length) {
        unsigned char *more = wg_realloc(t->payload, length, 1);
        if (!more) return wg_nomem(err, length, "a trace record");
        t->payload = more;
        t->room = length;
    }
    if (fread(t->payload, 1, length, t->file) != length || fread(tail, 1, 8, t->file) != 8)
        return wg_fail(err, WG_EIO, "%s: cannot read at byte %llu: %s", t->name, (unsigned long long)at, strerror(errno));
    sum = wg_trace_sum(head, t->payload, length);
    memcpy(&want, tail, 8);
    if (sum != want || what == 0) { /* (kind 0: a hole in the file) */
        snprintf(t->damage, sizeof t->damage, "the record at byte %llu does not have the sum it ends with",
                 (unsigned long long)at);
        return WG_OK;
    }
    *kind = what;
    *n = length;
    return WG_OK;
}

/* A position in a payload. */
typedef struct cursor {
    const unsigned char *p;
    size_t left;
    bool bad;
} cursor;

static const unsigned char *take(cursor *c, size_t n)
{
    if (c->bad || n > c->left) {
        c->bad = true;
        return NULL;
    }
    const unsigned char *p = c->p;
    c->p += n;
    c->left -= n;
    return p;
}

static void get(cursor *c, void *to, size_t n)
{
    const unsigned char *p = take(c, n);
    if (p) memcpy(to, p, n);
    else memset(to, 0, n);
}

static int32_t get_i32(cursor *c)
{
    int32_t x;
    get(c, &x, 4);
    return x;
}

static wg_status bad(const wg_trace *t, uint64_t at, const char *why, wg_error *err)
{
    return wg_fail(err, WG_EFORMAT, "%s: the record at byte %llu: %s", t->name, (unsigned long long)at, why);
}

/* ---- header ------------------------------------------------------------------------------------------------------ */

static wg_status read_group(wg_trace_group *g, const json_t *v, wg_error *err)
{
    const json_t *eog = json_object_get(v, "eog");
    const json_int_t vocab = json_integer_value(json_object_get(v, "vocab"));
    if (vocab < 1 || vocab > WG_TRACE_VOCAB_MAX || !json_is_array(eog))
        return wg_fail(err, WG_EFORMAT, "its header has a group without a vocabulary of 1..%d tokens, or without \"eog\"",
                       (int)WG_TRACE_VOCAB_MAX);
    g->vocab = (int)vocab;
    if (!(g->eog = wg_calloc(json_array_size(eog), sizeof *g->eog))) return wg_nomem(err, 1, "a trace");
    for (size_t i = 0; i < json_array_size(eog); i++) g->eog[g->n_eog++] = (int32_t)json_integer_value(json_array_get(eog, i));
    return WG_OK;
}

static wg_status read_header(wg_trace *t, size_t n, wg_error *err)
{
    json_error_t e;
    t->header = json_loadb((const char *)t->payload, n, JSON_REJECT_DUPLICATES, &e);
    const json_t *groups = json_object_get(t->header, "groups");
    t->cells = json_object_get(t->header, "cells");
    if (!json_is_array(groups) || !json_is_array(t->cells))
        return wg_fail(err, WG_EFORMAT, "%s: its header is no JSON object with \"groups\" and \"cells\"", t->name);
    if (!(t->group = wg_calloc(json_array_size(groups), sizeof *t->group))) return wg_nomem(err, 1, "a trace");
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const wg_status s = read_group(&t->group[t->groups++], json_array_get(groups, i), err);
        if (s) return wg_fail_in(err, s, "%s", t->name);
    }
    return WG_OK;
}

bool wg_trace_is_eog(const wg_trace_group *g, int32_t token)
{
    for (int i = 0; i < g->n_eog; i++)
        if (g->eog[i] == token) return true;
    return false;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* Makes room for one more of n elements; the capacity doubles. */
static bool grow(void **list, int n, size_t size)
{
    if (n & (n - 1)) return true; /* n is 0 or a power of two: full */
    void *more = wg_realloc(*list, n ? 2 * (size_t)n : 1, size);
    if (more) *list = more;
    return more;
}

static wg_status add_request(wg_trace *t, uint64_t at, size_t n, wg_error *err)
{
    cursor c = { t->payload, n, false };
    wg_trace_asked a;
    get(&c, &a, sizeof a);
    const int cells = (int)json_array_size(t->cells);
    if (c.bad || a.prompt_tokens < 1 || (size_t)a.prompt_tokens * 4 != c.left) return bad(t, at, "it is no request", err);
    if (a.group < 0 || a.group >= t->groups || a.cell < 0 || a.cell >= cells || a.prompt < 0 || a.repeat < 0 ||
        a.limit <= a.prompt_tokens)
        return bad(t, at, "its request names a cell, group, prompt or limit that cannot be", err);
    if (!grow((void **)&t->request, t->requests, sizeof *t->request)) return wg_nomem(err, sizeof *t->request, "requests");
    wg_trace_request *r = &t->request[t->requests];
    *r = (wg_trace_request){ .at = at, .asked = a };
    int room = 1;
    while (room < a.prompt_tokens) room *= 2; /* the capacity that grow expects */
    if (!(r->token = wg_alloc((size_t)room, sizeof *r->token))) return wg_nomem(err, (size_t)room * 4, "a prompt");
    t->requests++;
    memcpy(r->token, c.p, c.left);
    r->n = a.prompt_tokens;
    for (int i = 0; i < r->n; i++)
        if (r->token[i] < 0 || r->token[i] >= t->group[a.group].vocab)
            return bad(t, at, "its prompt has a token outside the vocabulary", err);
    return WG_OK;
}

/* The index of the request whose record begins at `at`; -1: none. Requests are in the order of the file. */
static int find_request(const wg_trace *t, uint64_t at)
{
    int lo = 0, hi = t->requests;
    while (lo < hi) {
        const int mid = lo + (hi - lo) / 2;
        if (t->request[mid].at < at) lo = mid + 1;
        else hi = mid;
    }
    return lo < t->requests && t->request[lo].at == at ? lo : -1;
}

static wg_status end_request(wg_trace *t, uint64_t at, size_t n, wg_error *err)
{
    cursor c = { t->payload, n, false };
    uint64_t request;
    get(&c, &request, 8);
    const int32_t tokens = get_i32(&c), finish = get_i32(&c);
    const int i = find_request(t, request);
    if (c.bad || c.left || i < 0) return bad(t, at, "it is no end of a request", err);
    wg_trace_request *r = &t->request[i];
    if (r->ended || tokens != r->n - r->asked.prompt_tokens || (finish != WG_FINISH_EOS && finish != WG_FINISH_LENGTH))
        return bad(t, at, "it ends a request otherwise than its rounds do", err);
    r->ended = true;
    return WG_OK;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static wg_status get_tree(const wg_trace *t, uint64_t at, cursor *c, wg_tree *tree, wg_error *err)
{
    const int32_t stored = get_i32(c), n = get_i32(c);
    const bool declared = stored == WG_LAW_IID + WG_TRACE_DECLARED || stored == WG_LAW_WITHOUT_REPLACEMENT + WG_TRACE_DECLARED;
    const int32_t law = declared ? stored - WG_TRACE_DECLARED : stored;
    double score;
    get(c, &score, 8);
    if (c->bad || n < 1 || (size_t)n > c->left / 12) return bad(t, at, "its tree is cut", err);
    if (law != WG_LAW_FIXED && law != WG_LAW_IID && law != WG_LAW_WITHOUT_REPLACEMENT && law != WG_LAW_COUPLED)
        return bad(t, at, "its siblings have a law that is not known", err);
    if (n > WG_TREE_MAX)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%s: the record at byte %llu: a tree of %d nodes; this build takes %d "
                       "(cmake -DWG_TREE_NODES)",
                       t->name, (unsigned long long)at, n, (int)WG_TREE_MAX);
    const unsigned char *token = take(c, 4 * (size_t)n), *parent = take(c, 4 * (size_t)n), *qrow = take(c, 4 * (size_t)n);
    for (int i = 0; i < n; i++) {
        int32_t x, up, row;
        memcpy(&x, token + 4 * i, 4);
        memcpy(&up, parent + 4 * i, 4);
        memcpy(&row, qrow + 4 * i, 4);
        if (up < (i ? 0 : -1) || up >= (i ? i : 0)) return bad(t, at, "a node comes before its parent", err);
        if (row < -1 || row >= n) return bad(t, at, "a node is drawn from a row that is not there", err);
        if (i == 0) wg_tree_reset(tree, x, (wg_sibling_law)law);
        else wg_tree_push(tree, up, x, row);
        if (declared && i) wg_tree_group(tree, up, tree->group[up] < 0 ? 1 : tree->group[up] + 1);
    }
    tree->score = score;
    return WG_OK;
}

static wg_status get_path(const wg_trace *t, uint64_t at, cursor *c, const wg_tree *tree, int vocab, wg_path *path,
                          wg_error *err)
{
    path->n = get_i32(c);
    path->next = get_i32(c);
    if (c->bad || path->n < 1 || path->n > tree->n || path->next < 0 || path->next >= vocab)
        return bad(t, at, "its path is none of its tree", err);
    for (int i = 0; i < path->n; i++) {
        const int32_t node = get_i32(c);
        if (c->bad || node < 0 || node >= tree->n || tree->parent[node] != (i ? path->node[i - 1] : -1))
            return bad(t, at, "its path is none of its tree", err);
        path->node[i] = (int16_t)node;
    }
    return WG_OK;
}

static wg_status get_row(const wg_trace *t, uint64_t at, cursor *c, int vocab, bool of_p, wg_trace_row *row, wg_error *err)
{
    uint32_t kind;
    get(c, &kind, 4);
    get(c, &row->count, 4);
    get(c, &row->error, 8);
    row->overlap = -1;
    if (of_p && kind & WG_ROW_OVERLAP) {
        kind -= WG_ROW_OVERLAP;
        get(c, &row->overlap, 8);
        if (!(row->overlap >= 0 && row->overlap <= 1 + 1e-6)) return bad(t, at, "the overlap of a row is outside 0..1", err);
    }
    if (c->bad || kind >= WG_ROW_KINDS || (kind == WG_ROW_LOGITS && !of_p) ||
        (row->count > (uint32_t)vocab && kind != WG_ROW_DENSE && kind != WG_ROW_F16 && kind != WG_ROW_LOGITS))
        return bad(t, at, "it has a row of a kind that is not known", err);
    row->kind = (int)kind;
    row->data = take(c, wg_trace_row_bytes(row->kind, row->count, vocab));
    if (c->bad || !(row->error >= 0 && row->error <= 1)) return bad(t, at, "a row is cut, or says an impossible error", err);
    return WG_OK;
}

/* Decodes the round in the payload and checks its internal consistency. */
static wg_status decode(const wg_trace *t, uint64_t at, size_t n, wg_trace_round *out, wg_error *err)
{
    cursor c = { t->payload, n, false };
    wg_trace_facts *f = &out->facts;
    get(&c, &f->request, 8);
    get(&c, &f->step, 5 * 4);
    get(&c, &f->seconds, 5 * 8);
    f->n_policy = get_i32(&c);
    if (f->n_policy < 0 || f->n_policy > WG_TRACE_POLICY) return bad(t, at, "its policy has too many numbers", err);
    get(&c, f->policy, (size_t)f->n_policy * 8);
    const int of = find_request(t, f->request);
    if (c.bad || of < 0) return bad(t, at, "its round belongs to no request", err);
    const int vocab = t->group[t->request[of].asked.group].vocab;
    WG_TRY(get_tree(t, at, &c, &out->tree, err));
    WG_TRY(get_path(t, at, &c, &out->tree, vocab, &out->path, err));
    out->n_q = get_i32(&c);
    if (c.bad || out->n_q < 0 || out->n_q >= out->tree.n + (out->tree.n == 1))
        return bad(t, at, "it has too many rows of q", err);
    for (int i = 0; i < out->tree.n; i++) WG_TRY(get_row(t, at, &c, vocab, true, &out->p[i], err));
    for (int i = 0; i < out->n_q; i++) WG_TRY(get_row(t, at, &c, vocab, false, &out->q[i], err));
    if (c.left) return bad(t, at, "it is longer than its round", err);
    wg_error e;
    if (wg_tree_check(&out->tree, vocab, out->n_q, &e)) {
        char why[512];
        snprintf(why, sizeof why, "%.500s", e.text);
        return bad(t, at, why, err);
    }
    return WG_OK;
}

/* Adds a round, which must begin where the text of its request ends. */
static wg_status add_round(wg_trace *t, uint64_t at, const wg_trace_round *o, wg_error *err)
{
    const wg_trace_facts *f = &o->facts;
    const int of = find_request(t, f->request);
    wg_trace_request *r = &t->request[of];
    if (r->ended || f->position != (uint32_t)r->n || f->step != (uint32_t)r->rounds || f->left != r->asked.limit - r->n ||
        o->path.n > f->left || o->tree.token[0] != r->token[r->n - 1])
        return bad(t, at, "its round does not go on where the one before it ended", err);
    if (!grow((void **)&t->round, t->rounds, sizeof *t->round)) return wg_nomem(err, sizeof *t->round, "rounds");
    for (int i = 1; i <= o->path.n; i++) {
        if (!grow((void **)&r->token, r->n, sizeof *r->token)) return wg_nomem(err, (size_t)r->n * 8, "a text");
        r->token[r->n++] = i < o->path.n ? o->tree.token[o->path.node[i]] : o->path.next;
    }
    r->rounds++;
    t->round[t->rounds++] = (wg_trace_entry){ at, of };
    return WG_OK;
}

/* ---- a whole trace ----------------------------------------------------------------------------------------------- */

static wg_status read_magic(wg_trace *t, wg_error *err)
{
    unsigned char head[16];
    uint32_t version;
    if (fread(head, 1, 16, t->file) != 16 || memcmp(head, WG_TRACE_MAGIC, 8) != 0)
        return wg_fail(err, WG_EFORMAT, "%s: not a trace; expected the trace.wgt of a run with \"trace\": \"probs\"", t->name);
    memcpy(&version, head + 8, 4);
    if (version != WG_TRACE_VERSION)
        return wg_fail(err, WG_EFORMAT, "%s: version %u of the format; this program reads %d", t->name, version,
                       (int)WG_TRACE_VERSION);
    return WG_OK;
}

static wg_status scan(wg_trace *t, wg_trace_round *round, wg_error *err)
{
    WG_TRY(read_magic(t, err));
    uint64_t at = 16;
    for (uint32_t kind;;) {
        size_t n = 0;
        WG_TRY(next_record(t, at, &kind, &n, err));
        if (!kind) break;
        if ((kind == WG_RECORD_HEADER) != (at == 16)) return bad(t, at, "the header must come first, and once", err);
        if (kind == WG_RECORD_HEADER) WG_TRY(read_header(t, n, err));
        else if (kind == WG_RECORD_REQUEST) WG_TRY(add_request(t, at, n, err));
        else if (kind == WG_RECORD_END) WG_TRY(end_request(t, at, n, err));
        else if (kind == WG_RECORD_ROUND) {
            WG_TRY(decode(t, at, n, round, err));
            WG_TRY(add_round(t, at, round, err));
        } else return bad(t, at, "it is of a kind that this version does not know", err);
        at += n + 16;
        t->end = at;
    }
    if (t->header) return WG_OK;
    return wg_fail(err, WG_EFORMAT, "%s: no whole header%s%s; nothing in it can be used", t->name, *t->damage ? ": " : "",
                   t->damage);
}

wg_status wg_trace_read(wg_trace **out, const char *name, FILE *file, wg_error *err)
{
    wg_trace *t = wg_calloc(1, sizeof *t);
    wg_trace_round *round = wg_calloc(1, sizeof *round);
    wg_status s = t && round ? WG_OK : wg_nomem(err, sizeof *t, "a trace");
    if (t) t->file = file;
    else fclose(file);
    if (!s && !(t->name = wg_strdup(name))) s = wg_nomem(err, strlen(name), "a name");
    if (!s && (fseeko(file, 0, SEEK_END) || ftello(file) < 0))
        s = wg_fail(err, WG_EIO, "%s: cannot read: %s", name, strerror(errno));
    if (!s) {
        t->size = (uint64_t)ftello(file);
        rewind(file);
        s = scan(t, round, err);
    }
    wg_free(round);
    if (s) wg_trace_close(t);
    else *out = t;
    return s;
}

wg_status wg_trace_open(wg_trace **out, const char *path, wg_error *err)
{
    FILE *f = fopen(path, "rbe");
    if (!f)
        return wg_fail(err, errno == ENOENT ? WG_ENOENT : WG_EIO,
                       "%s: cannot open: %s; expected the trace.wgt of a run with "
                       "\"trace\": \"probs\"",
                       path, strerror(errno));
    return wg_trace_read(out, path, f, err);
}

void wg_trace_close(wg_trace *t)
{
    if (!t) return;
    for (int i = 0; i < t->groups; i++) wg_free(t->group[i].eog);
    for (int i = 0; i < t->requests; i++) wg_free(t->request[i].token);
    wg_free(t->group);
    wg_free(t->request);
    wg_free(t->round);
    wg_free(t->payload);
    json_decref(t->header);
    if (t->file) fclose(t->file);
    wg_free(t->name);
    wg_free(t);
}

wg_status wg_trace_get(wg_trace *t, int i, wg_trace_round *out, wg_error *err)
{
    const uint64_t at = t->round[i].at;
    uint32_t kind;
    size_t n = 0;
    if (fseeko(t->file, (off_t)at, SEEK_SET)) return wg_fail(err, WG_EIO, "%s: cannot read: %s", t->name, strerror(errno));
    WG_TRY(next_record(t, at, &kind, &n, err));
    if (kind != WG_RECORD_ROUND) return bad(t, at, "it was there before; the file changed", err);
    return decode(t, at, n, out, err);
}
