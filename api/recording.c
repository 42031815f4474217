/* SPDX-License-Identifier: MIT
 * Traces for the caller: requests, rounds and their rows, read as `wager replay` reads them. */
#include <stdlib.h>
#include <string.h>

#include "api/api_impl.h"
#include "core/base/mem.h"
#include "lab/replay.h"

struct wg_recording {
    wg_trace *trace;
    char *header;       /* its JSON text */
    wg_replay **replay; /* (cells) opened when a row is asked for; else NULL */
    int cells;
    wg_trace_round round; /* read last */
    wg_draft draft;
    int32_t token[WG_TREE_MAX], parent[WG_TREE_MAX], qrow[WG_TREE_MAX], node[WG_TREE_MAX];
};

wg_status wg_recording_open(wg_recording **out, const char *path, wg_error *err)
{
    if (!out || !path) return wg_missing("wg_recording_open", out ? "path" : "out", err);
    wg_recording *r = wg_calloc(1, sizeof *r);
    if (!r) return wg_nomem(err, sizeof *r, "a trace");
    wg_status s = wg_trace_open(&r->trace, path, err);
    if (!s) {
        r->cells = (int)json_array_size(r->trace->cells);
        r->replay = wg_calloc((size_t)r->cells + 1, sizeof *r->replay);
        r->header = json_dumps(r->trace->header, JSON_COMPACT | JSON_REAL_PRECISION(17));
        if (!r->replay || !r->header) s = wg_nomem(err, 1, "a trace");
    }
    if (s) wg_recording_close(r);
    else *out = r;
    return s;
}

void wg_recording_close(wg_recording *r)
{
    if (!r) return;
    for (int i = 0; r->replay && i < r->cells; i++) wg_replay_close(r->replay[i]);
    wg_trace_close(r->trace);
    wg_free(r->replay);
    free(r->header);
    wg_free(r);
}

wg_status wg_recording_about_get(const wg_recording *r, wg_recording_about *out, wg_error *err)
{
    if (!r || !out) return wg_missing("wg_recording_about_get", r ? "out" : "the recording", err);
    const wg_recording_about about = {
        .requests = r->trace->requests, .rounds = r->trace->rounds, .header = r->header, .damage = r->trace->damage
    };
    return wg_struct_out(out, &about, sizeof about, WG_SIZE_TO(wg_recording_about, damage), "wg_recording_about", err);
}

wg_status wg_recording_request(const wg_recording *r, int i, wg_recorded_request *out, wg_error *err)
{
    if (!r || !out) return wg_missing("wg_recording_request", r ? "out" : "the recording", err);
    if (i < 0 || i >= r->trace->requests) return wg_fail(err, WG_EINVAL, "request %d; the trace has %d", i, r->trace->requests);
    const wg_trace_request *q = &r->trace->request[i];
    const wg_recorded_request request = { .token = q->token,
                                          .n = q->n,
                                          .prompt_tokens = q->asked.prompt_tokens,
                                          .limit = q->asked.limit,
                                          .address = q->asked.address,
                                          .prompt = q->asked.prompt,
                                          .repeat = q->asked.repeat,
                                          .vocab = r->trace->group[q->asked.group].vocab,
                                          .cell = q->asked.cell,
                                          .rounds = q->rounds,
                                          .ended = q->ended };
    return wg_struct_out(out, &request, sizeof request, WG_SIZE_TO(wg_recorded_request, ended), "wg_recorded_request", err);
}

static wg_status check_round(const wg_recording *r, int i, wg_error *err)
{
    if (i >= 0 && i < r->trace->rounds) return WG_OK;
    return wg_fail(err, WG_EINVAL, "round %d; the trace has %d", i, r->trace->rounds);
}

/* The tree and the path as arrays of the border's types. */
static void show_tree(wg_recording *r, const wg_trace_round *o)
{
    for (int i = 0; i < o->tree.n; i++) {
        r->token[i] = o->tree.token[i];
        r->parent[i] = i ? o->tree.parent[i] : -1;
        r->qrow[i] = i ? o->tree.qrow[i] : -1;
    }
    for (int i = 0; i < o->path.n; i++) r->node[i] = o->path.node[i];
    r->draft = (wg_draft){ .size = sizeof r->draft,
                           .n = o->tree.n,
                           .token = r->token,
                           .parent = r->parent,
                           .qrow = r->qrow,
                           .q_rows = o->n_q,
                           .law = wg_law_name(o->tree.law),
                           .score = o->tree.score };
}

wg_status wg_recording_round(wg_recording *r, int i, wg_recorded_round *out, wg_error *err)
{
    if (!r || !out) return wg_missing("wg_recording_round", r ? "out" : "the recording", err);
    WG_TRY(check_round(r, i, err));
    WG_TRY(wg_trace_get(r->trace, i, &r->round, err));
    show_tree(r, &r->round);
    const wg_trace_facts *f = &r->round.facts;
    const wg_recorded_round round = { .request = r->trace->round[i].request,
                                      .draft = &r->draft,
                                      .n = r->round.path.n,
                                      .node = r->node,
                                      .next = r->round.path.next,
                                      .batch = f->batch,
                                      .seconds = f->seconds,
                                      .draft_seconds = f->draft,
                                      .verify_seconds = f->verify,
                                      .accept_seconds = f->accept,
                                      .kv_seconds = f->kv,
                                      .step = (int)f->step,
                                      .position = (int)f->position,
                                      .end = (wg_end)f->finish };
    return wg_struct_out(out, &round, sizeof round, WG_SIZE_TO(wg_recorded_round, end), "wg_recorded_round", err);
}

static void copy_rows(wg_rows *rows, int n, double *out)
{
    const size_t vocab = (size_t)rows->vocab;
    for (int i = 0; out && i < n; i++) {
        double *to = out + (size_t)i * vocab;
        const double *from = wg_rows_dense(rows, i, to);
        if (from != to) memcpy(to, from, vocab * sizeof *to);
    }
}

wg_status wg_recording_rows(wg_recording *r, int i, double *p, double *q, double *error, wg_error *err)
{
    if (!r) return wg_missing("wg_recording_rows", "the recording", err);
    WG_TRY(check_round(r, i, err));
    const int cell = r->trace->request[r->trace->round[i].request].asked.cell;
    if (!r->replay[cell]) WG_TRY(wg_replay_open(&r->replay[cell], r->trace, cell, -1, err));
    wg_replay *from = r->replay[cell];
    WG_TRY(wg_replay_load(from, i, err));
    copy_rows(&from->p, from->round.tree.n, p);
    copy_rows(&from->q, from->round.n_q, q);
    if (error) *error = from->error;
    return WG_OK;
}
