/* SPDX-License-Identifier: MIT
 * Rounds of any engine as a trace (docs/traces.md): the caller's trees, rows and paths, checked as a reader of the file will
 * check them, so that what was recorded can be replayed. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/api_impl.h"
#include "core/base/mem.h"
#include "core/trace/trace.h"
#include "lab/replay.h"

enum { PROMPTS = 1 << 24 }; /* of a trace that can be replayed */

typedef struct request {
    uint64_t at; /* its record */
    int32_t last;
    int n, prompt, limit, rounds;
    wg_finish finish;
    bool ended;
} request;

struct wg_recorder {
    char *path;
    FILE *file;
    uint64_t at; /* the end of what is written */
    wg_trace_writer writer;
    wg_trace_group group; /* owns eog */
    request *request;     /* (room) */
    int requests, room;
    wg_tree tree; /* of the round that is being written */
    wg_rows p, q;
};

/* ---- the file -------------------------------------------------------------------------------------------------------- */

/* Appends the writer's record, or nothing. */
static wg_status append(wg_recorder *r, wg_error *err)
{
    const wg_trace_writer *w = &r->writer;
    if (fwrite(w->byte, 1, w->n, r->file) == w->n && fflush(r->file) == 0) {
        r->at += w->n;
        return WG_OK;
    }
    const wg_status s =
        wg_fail(err, WG_EIO, "%s: cannot write at byte %llu: %s", r->path, (unsigned long long)r->at, strerror(errno));
    clearerr(r->file);
    if (ftruncate(fileno(r->file), (off_t)r->at) == 0) fseeko(r->file, (off_t)r->at, SEEK_SET);
    return s;
}

/* ---- the header ------------------------------------------------------------------------------------------------------ */

/* Checks the keys that an engine has, all but `draft`, which names a drafter of anyone's. */
static wg_status check_config(json_t *config, wg_error *err)
{
    json_t *rest = json_copy(config);
    json_object_del(rest, "draft");
    char *text = rest ? json_dumps(rest, JSON_COMPACT) : NULL;
    wg_setup setup = { 0 };
    wg_status s = text ? WG_OK : wg_nomem(err, 1, "a config");
    const wg_engine_text as = { .name = "config", .json = text };
    if (!s) s = wg_engine_text_open(&setup, &as, &wg_program_plugins, err);
    if (!s && !json_object_get(config, "verify")) /* what a replay reads is written, also where it is the default */
        json_object_set_new(config, "verify", json_pack("{ss}", "rule", setup.named->name));
    if (!s && !json_object_get(config, "seed")) json_object_set_new(config, "seed", json_integer((json_int_t)setup.top.seed));
    if (!s) wg_setup_close(&setup);
    free(text);
    json_decref(rest);
    return s;
}

static wg_status read_config(const char *text, json_t **out, wg_error *err)
{
    json_error_t e;
    json_t *config = json_loads(text ? text : "{}", JSON_REJECT_DUPLICATES, &e);
    if (!json_is_object(config)) {
        json_decref(config);
        return wg_fail(err, WG_ECONFIG,
                       "config: expected a JSON object, such as {\"seed\": 1, \"verify\": {\"rule\": \"rejection\"}}");
    }
    const wg_status s = check_config(config, err);
    if (s) json_decref(config);
    else *out = config;
    return s;
}

static json_t *header_of(const wg_recorder *r, const wg_recorder_options *o, const json_t *config)
{
    json_t *eog = json_array(), *name = json_object_get(config, "name");
    for (int i = 0; i < r->group.n_eog; i++) json_array_append_new(eog, json_integer(r->group.eog[i]));
    return json_pack("{s:O?, s:s, s:i, s:o, s:[{s:{}, s:O, s:i}], s:[{s:i, s:o}]}", "name", name, "program",
                     o->engine ? o->engine : "libwager " WG_VERSION, "tree_nodes", (int)WG_TREE_MAX, "replays",
                     wg_replay_rules_json(), "cells", "cell", "config", config, "group", 0, "groups", "vocab", r->group.vocab,
                     "eog", eog);
}

static wg_status write_header(wg_recorder *r, const wg_recorder_options *o, wg_error *err)
{
    json_t *config = NULL;
    WG_TRY(read_config(o->config, &config, err));
    json_t *header = header_of(r, o, config);
    wg_status s = header ? wg_trace_put_header(&r->writer, header, err)
                         : wg_fail(err, WG_EINVAL, "wg_recorder_options: engine is not text in UTF-8");
    if (!s) s = append(r, err);
    json_decref(header);
    json_decref(config);
    return s;
}

static wg_status rows_in(const char *name, int *rows, wg_error *err)
{
    *rows = !name || !strcmp(name, "exact") ? WG_TRACE_EXACT : !strcmp(name, "f16") ? WG_TRACE_F16 : WG_TRACE_TOP;
    if (*rows != WG_TRACE_TOP || !strcmp(name, "top")) return WG_OK;
    return wg_fail(err, WG_EINVAL, "wg_recorder_options: rows \"%s\"; expected exact, f16 or top", name);
}

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static wg_status check_options(const wg_recorder_options *o, int *rows, wg_error *err)
{
    if (o->vocab < 1 || o->vocab > WG_TRACE_VOCAB_MAX)
        return wg_fail(err, WG_EINVAL, "wg_recorder_options: a vocabulary of %d tokens; expected 1..%d", o->vocab,
                       (int)WG_TRACE_VOCAB_MAX);
    if (o->eogs < 0 || o->eogs > o->vocab || (o->eogs && !o->eog))
        return wg_fail(err, WG_EINVAL, "wg_recorder_options: %d tokens that end a text, of %d", o->eogs, o->vocab);
    for (int i = 0; i < o->eogs; i++)
        if (o->eog[i] < 0 || o->eog[i] >= o->vocab)
            return wg_fail(err, WG_EINVAL, "wg_recorder_options: eog[%d] is %d; the vocabulary is 0..%d", i, (int)o->eog[i],
                           o->vocab - 1);
    if (o->top < 0) return wg_fail(err, WG_EINVAL, "wg_recorder_options: top is %d; expected 0 or more", o->top);
    return rows_in(o->rows, rows, err);
}

static wg_status open_recorder(wg_recorder *r, const char *path, const wg_recorder_options *o, int rows, wg_error *err)
{
    const size_t eogs = (size_t)o->eogs;
    r->path = wg_strdup(path);
    r->group = (wg_trace_group){ .vocab = o->vocab, .n_eog = o->eogs, .eog = wg_alloc(eogs + 1, sizeof *o->eog) };
    if (!r->path || !r->group.eog) return wg_nomem(err, eogs * sizeof *o->eog, "a trace");
    if (eogs) memcpy(r->group.eog, o->eog, eogs * sizeof *o->eog);
    qsort(r->group.eog, eogs, sizeof *o->eog, ascending);
    WG_TRY(wg_trace_writer_open(&r->writer, rows, o->top ? o->top : 64, o->vocab, err));
    json_t *config = NULL; /* before a file of that name is replaced */
    WG_TRY(read_config(o->config, &config, err));
    json_decref(config);
    if (!(r->file = fopen(path, "wbe"))) return wg_fail(err, WG_EIO, "%s: cannot write: %s", path, strerror(errno));
    return write_header(r, o, err);
}

static void free_recorder(wg_recorder *r)
{
    if (r->file) fclose(r->file);
    if (r->p.p) wg_rows_close(&r->p);
    if (r->q.p) wg_rows_close(&r->q);
    wg_trace_writer_close(&r->writer);
    wg_free(r->group.eog);
    wg_free(r->request);
    wg_free(r->path);
    wg_free(r);
}

wg_status wg_recorder_open(wg_recorder **out, const char *path, const wg_recorder_options *opt, wg_error *err)
{
    wg_recorder_options o = { 0 };
    int rows;
    if (!out || !path || !opt) return wg_missing("wg_recorder_open", !out ? "out" : !path ? "path" : "opt", err);
    WG_TRY(wg_struct_in(&o, sizeof o, opt, WG_SIZE_TO(wg_recorder_options, top), "wg_recorder_options", err));
    WG_TRY(check_options(&o, &rows, err));
    wg_recorder *r = wg_calloc(1, sizeof *r);
    if (!r) return wg_nomem(err, sizeof *r, "a trace");
    const wg_status s = open_recorder(r, path, &o, rows, err);
    if (s) free_recorder(r);
    else *out = r;
    return s;
}

wg_status wg_recorder_close(wg_recorder *r, wg_error *err)
{
    if (!r) return WG_OK;
    wg_status s = WG_OK;
    if (fclose(r->file))
        s = wg_fail(err, WG_EIO, "%s: cannot write at byte %llu: %s", r->path, (unsigned long long)r->at, strerror(errno));
    r->file = NULL;
    free_recorder(r);
    return s;
}

/* ---- requests -------------------------------------------------------------------------------------------------------- */

static wg_status check_request(const wg_recorder *r, const wg_recorded_request *q, wg_error *err)
{
    if (!q->token) return wg_missing("wg_recorded_request", "token", err);
    if (q->n < 1 || q->limit <= q->n)
        return wg_fail(err, WG_EINVAL, "a request of %d tokens with the limit %d; expected 1 or more, and a limit above them",
                       q->n, q->limit);
    if (q->prompt < 0 || q->prompt >= PROMPTS || q->repeat < 0)
        return wg_fail(err, WG_EINVAL, "prompt %d, repeat %d; expected 0..%d, and 0 or more", q->prompt, q->repeat,
                       PROMPTS - 1);
    for (int i = 0; i < q->n; i++)
        if (q->token[i] < 0 || q->token[i] >= r->group.vocab)
            return wg_fail(err, WG_EINVAL, "prompt token %d is %d; the vocabulary is 0..%d", i, (int)q->token[i],
                           r->group.vocab - 1);
    return WG_OK;
}

wg_status wg_recorder_request(wg_recorder *r, const wg_recorded_request *request_, int *number, wg_error *err)
{
    wg_recorded_request q = { 0 };
    if (!r || !request_ || !number)
        return wg_missing("wg_recorder_request", !r ? "the recorder" : !request_ ? "q" : "number", err);
    WG_TRY(wg_struct_in(&q, sizeof q, request_, WG_SIZE_TO(wg_recorded_request, ended), "wg_recorded_request", err));
    WG_TRY(check_request(r, &q, err));
    if (r->requests == r->room) {
        const int room = r->room ? 2 * r->room : 16;
        request *more = wg_realloc(r->request, (size_t)room, sizeof *more);
        if (!more) return wg_nomem(err, (size_t)room * sizeof *more, "requests");
        r->request = more;
        r->room = room;
    }
    const wg_trace_asked a = {
        .address = q.address, .prompt = q.prompt, .repeat = q.repeat, .limit = q.limit, .prompt_tokens = q.n
    };
    const uint64_t at = r->at;
    WG_TRY(wg_trace_put_request(&r->writer, &a, q.token, err));
    WG_TRY(append(r, err));
    r->request[r->requests] = (request){ .at = at, .last = q.token[q.n - 1], .n = q.n, .prompt = q.n, .limit = q.limit };
    *number = r->requests++;
    return WG_OK;
}

static wg_status find(const wg_recorder *r, int number, request **out, wg_error *err)
{
    if (number < 0 || number >= r->requests)
        return wg_fail(err, WG_EINVAL, "request %d; the trace has %d", number, r->requests);
    *out = &r->request[number];
    return (*out)->ended ? wg_fail(err, WG_EINVAL, "request %d has ended", number) : WG_OK;
}

/* ---- rounds ---------------------------------------------------------------------------------------------------------- */

/* Rows as a reader of the trace accepts them: they sum to 1 more exactly than rows that are only verified. */
static wg_status take_rows(const double *from, int n, int vocab, const char *name, wg_rows *rows, wg_error *err)
{
    static const double SLACK = 1e-6;
    if (rows->cap < n || !rows->p) {
        if (rows->p) wg_rows_close(rows);
        WG_TRY(wg_rows_open(rows, n ? n : 1, vocab, err));
    }
    wg_rows_clear(rows);
    WG_TRY(wg_rows_in(from, n, vocab, name, rows, err));
    for (int r = 0; r < n; r++) {
        double sum = 0;
        for (int i = 0; i < vocab; i++) sum += from[(size_t)r * (size_t)vocab + (size_t)i];
        if (!(fabs(sum - 1) < SLACK))
            return wg_fail(err, WG_EINVAL, "row %d of %s sums to %.9g; a trace needs 1 within %g: normalise it in double", r,
                           name, sum, SLACK);
    }
    return WG_OK;
}

static wg_status take_draft(wg_recorder *r, const wg_recorded_round *o, wg_error *err)
{
    const int vocab = r->group.vocab;
    wg_draft d = { 0 };
    WG_TRY(wg_struct_in(&d, sizeof d, o->draft, WG_SIZE_TO(wg_draft, law), "wg_draft", err));
    if (!o->p || (!o->q && d.q_rows > 0)) return wg_missing("wg_recorded_round", o->p ? "q" : "p", err);
    WG_TRY(wg_tree_in(&d, vocab, &r->tree, err));
    WG_TRY(take_rows(o->p, r->tree.n, vocab, "p", &r->p, err));
    WG_TRY(take_rows(o->q, d.q_rows, vocab, "q", &r->q, err));
    const wg_tree *t = &r->tree;
    for (int i = 1; i < t->n; i++)
        if (t->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT) && !(wg_rows_prob(&r->q, t->qrow[i], t->token[i]) > 0))
            return wg_fail(err, WG_EINVAL, "node %d is token %d, which row %d of q cannot draw", i, (int)t->token[i],
                           t->qrow[i]);
    return WG_OK;
}

static wg_status take_path(const wg_recorder *r, const wg_recorded_round *o, wg_path *path, wg_error *err)
{
    const wg_tree *t = &r->tree;
    if (!o->node) return wg_missing("wg_recorded_round", "node", err);
    if (!wg_is_path(t, r->group.vocab, o->node, o->n, o->next))
        return wg_fail(
            err, WG_EINVAL,
            "%d accepted nodes and the token %d are no path of the tree: expected node 0, then a child of the node before "
            "each, and a token of the vocabulary",
            o->n, (int)o->next);
    path->n = o->n;
    path->next = o->next;
    for (int i = 0; i < o->n; i++) path->node[i] = (int16_t)o->node[i];
    return WG_OK;
}

/* As wg_seq_append cuts: at a token that ends the text, and at the limit. */
static wg_finish cut(const wg_recorder *r, const request *q, wg_path *path)
{
    for (int i = 1; i <= path->n; i++) {
        const int32_t token = i < path->n ? r->tree.token[path->node[i]] : path->next;
        const bool over = wg_trace_is_eog(&r->group, token), full = q->n + i == q->limit;
        if (!over && !full) continue;
        path->n = i;
        path->next = token;
        return over ? WG_FINISH_EOS : WG_FINISH_LENGTH;
    }
    return WG_RUNNING;
}

wg_status wg_recorder_round(wg_recorder *r, const wg_recorded_round *round, int *emitted, wg_end *end, wg_error *err)
{
    wg_recorded_round o = { 0 };
    wg_path path;
    request *q = NULL;
    if (!r || !round) return wg_missing("wg_recorder_round", r ? "round" : "the recorder", err);
    WG_TRY(wg_struct_in(&o, sizeof o, round, WG_SIZE_TO(wg_recorded_round, end), "wg_recorded_round", err));
    if (!o.draft) return wg_missing("wg_recorded_round", "draft", err);
    WG_TRY(find(r, o.request, &q, err));
    if (q->finish != WG_RUNNING) return wg_fail(err, WG_EINVAL, "the text of request %d has ended", o.request);
    WG_TRY(take_draft(r, &o, err));
    if (r->tree.token[0] != q->last)
        return wg_fail(err, WG_EINVAL, "the tree's node 0 is token %d; the text of request %d ends with %d",
                       (int)r->tree.token[0], o.request, (int)q->last);
    WG_TRY(take_path(r, &o, &path, err));
    const wg_finish finish = cut(r, q, &path);
    const wg_trace_facts f = { .request = q->at,
                               .step = (uint32_t)q->rounds,
                               .position = (uint32_t)q->n,
                               .left = q->limit - q->n,
                               .batch = o.batch > 0 ? o.batch : 1,
                               .finish = (int32_t)finish,
                               .seconds = o.seconds,
                               .draft = o.draft_seconds,
                               .verify = o.verify_seconds,
                               .accept = o.accept_seconds,
                               .kv = o.kv_seconds };
    WG_TRY(wg_trace_put_round(&r->writer, &f, &r->tree, &path, &r->p, &r->q, NULL, err));
    WG_TRY(append(r, err));
    q->rounds++;
    q->n += path.n;
    q->last = path.next;
    q->finish = finish;
    if (emitted) *emitted = path.n;
    if (end) *end = (wg_end)finish;
    return WG_OK;
}

wg_status wg_recorder_end(wg_recorder *r, int number, wg_error *err)
{
    request *q = NULL;
    if (!r) return wg_missing("wg_recorder_end", "the recorder", err);
    WG_TRY(find(r, number, &q, err));
    const wg_finish finish = q->finish == WG_RUNNING ? WG_FINISH_LENGTH : q->finish;
    WG_TRY(wg_trace_put_end(&r->writer, q->at, q->n - q->prompt, (int)finish, err));
    WG_TRY(append(r, err));
    q->ended = true;
    return WG_OK;
}
