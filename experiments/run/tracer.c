/* SPDX-License-Identifier: MIT
 * Converts the steps of a run to the records of its trace. */
#include "experiments/run/tracer.h"

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/engine/seq_rows.h"
#include "lab/replay.h"

/* The header: the data needed to verify the rounds again without the models. */
static json_t *header_of(const wg_config *c, const json_t *machine)
{
    json_t *h = json_object(), *cells = json_array();
    for (int i = 0; i < c->n; i++) {
        json_t *cell = json_object();
        json_object_set(cell, "cell", c->cell[i].swept);
        json_object_set(cell, "config", c->cell[i].config);
        json_object_set_new(cell, "group", json_integer(c->cell[i].group));
        if (wg_setup_law_only(&c->cell[i].setup)) json_object_set_new(cell, "law_only", json_true());
        json_array_append_new(cells, cell);
    }
    json_object_set_new(h, "name", json_string(c->top.name));
    json_object_set_new(h, "question", json_string(c->top.question));
    json_object_set_new(h, "config_sha256", json_string(c->sha256));
    json_object_set(h, "files_sha256", json_object_get(machine, "files_sha256"));
    json_object_set(h, "program", json_object_get(machine, "program"));
    json_object_set_new(h, "tree_nodes", json_integer(WG_TREE_MAX));
    json_object_set_new(h, "replays", wg_replay_rules_json());
    json_object_set_new(h, "cells", cells);
    json_object_set_new(h, "groups", json_array());
    return h;
}

wg_status wg_tracer_open(wg_tracer **out, const wg_config *config, const json_t *machine, wg_run_writer *record, wg_error *err)
{
    wg_tracer *t = wg_calloc(1, sizeof *t);
    if (!t) return wg_nomem(err, sizeof *t, "a trace");
    *out = t;
    t->record = record;
    t->header = header_of(config, machine);
    t->writer = wg_calloc((size_t)config->groups, sizeof *t->writer);
    return t->writer && t->header ? WG_OK : wg_nomem(err, sizeof *t->writer, "a trace");
}

wg_status wg_tracer_add_group(wg_tracer *t, const wg_config *config, int vocab, const wg_tokenizer *tokenizer, wg_error *err)
{
    json_t *eog = json_array();
    for (int32_t i = 0; tokenizer && i < vocab; i++)
        if (wg_tokenizer_is_eog(tokenizer, i)) json_array_append_new(eog, json_integer(i));
    json_t *g = json_object();
    json_object_set_new(g, "vocab", json_integer(vocab));
    json_object_set_new(g, "eog", eog);
    json_array_append_new(json_object_get(t->header, "groups"), g);
    return wg_trace_writer_open(&t->writer[t->groups++], config->top.trace_rows, config->top.trace_top, vocab, err);
}

void wg_tracer_close(wg_tracer *t)
{
    if (!t) return;
    for (int i = 0; i < t->groups; i++) wg_trace_writer_close(&t->writer[i]);
    wg_free(t->writer);
    json_decref(t->header);
    wg_free(t);
}

static wg_status write_out(wg_tracer *t, const wg_trace_writer *w, double start, wg_error *err)
{
    const wg_status s = wg_run_writer_trace(t->record, w->byte, w->n, err);
    t->seconds += wg_clock_now() - start;
    return s;
}

wg_status wg_tracer_begin(wg_tracer *t, wg_request *q, const wg_seq *s, wg_error *err)
{
    wg_trace_writer *w = &t->writer[q->group];
    const double start = wg_clock_now();
    if (wg_run_writer_trace_end(t->record) == 0) { /* a new run, also one resumed in a folder without requests */
        WG_TRY(wg_trace_put_header(w, t->header, err));
        WG_TRY(write_out(t, w, start, err));
    }
    q->trace_at = wg_run_writer_trace_end(t->record);
    const wg_trace_asked a = { .address = s->request,
                               .cell = q->cell,
                               .group = q->group,
                               .prompt = q->prompt,
                               .repeat = q->repeat,
                               .limit = s->limit,
                               .prompt_tokens = s->prompt };
    WG_TRY(wg_trace_put_request(w, &a, s->token, err));
    return write_out(t, w, start, err);
}

wg_status wg_tracer_round(wg_tracer *t, const wg_request *q, int step, const wg_seq *s, wg_engine *e, const wg_tree *tree,
                          wg_error *err)
{
    wg_trace_writer *w = &t->writer[q->group];
    const wg_step_record *r = &q->step[step];
    const double start = wg_clock_now();
    const wg_drafter *d = wg_engine_drafter(e);
    const wg_last_step last = wg_engine_last_step(e);
    wg_trace_facts f = {
        .request = (uint64_t)q->trace_at,
        .step = (uint32_t)step,
        .position = (uint32_t)r->position,
        .left = s->limit - r->position,
        .batch = r->batch,
        .finish = (int)s->finish,
        .seconds = r->seconds,
        .draft = r->phases.draft,
        .verify = r->phases.verify,
        .accept = r->phases.accept,
        .kv = r->phases.kv,
    };
    if (d->class->policy) f.n_policy = d->class->policy(d, s, f.policy, WG_TRACE_POLICY);
    WG_TRY(wg_trace_put_round(w, &f, tree, &s->path, last.p, last.q, wg_seq_has_rows(s) ? NULL : last.logits,
                              err)); /* rows are stored if p is not a function of logits alone */
    return write_out(t, w, start, err);
}

wg_status wg_tracer_end(wg_tracer *t, const wg_request *q, const wg_seq *s, wg_error *err)
{
    wg_trace_writer *w = &t->writer[q->group];
    const double start = wg_clock_now();
    WG_TRY(wg_trace_put_end(w, (uint64_t)q->trace_at, s->n - s->prompt, (int)s->finish, err));
    return write_out(t, w, start, err);
}
