/* SPDX-License-Identifier: MIT
 * Summing requests into the results of a cell (runner.h). */
#include "experiments/run/runner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "draft/draft.h"
#include "experiments/base/stats.h"
#include "experiments/run/runner_batch.h"

void wg_request_digest(wg_request *q)
{
    wg_sha256_state sha;
    wg_sha256_begin(&sha);
    for (int i = 0; i < q->n; i++) {
        const uint32_t x = (uint32_t)q->token[i];
        const unsigned char bytes[4] = { (unsigned char)x, (unsigned char)(x >> 8), (unsigned char)(x >> 16),
                                         (unsigned char)(x >> 24) };
        wg_sha256_add(&sha, bytes, sizeof bytes);
    }
    wg_sha256_end(&sha, q->sha256);
}

bool wg_request_same_output(const wg_request *a, const wg_request *b)
{
    return a->n == b->n && memcmp(a->token, b->token, (size_t)a->n * sizeof *a->token) == 0;
}

void wg_result_add_coverage(wg_result *o, const wg_engine *e, const wg_request *q)
{
    wg_overlap v;
    wg_coverage *c = &o->coverage;
    bool slides;
    c->context = wg_drafter_context(wg_engine_drafter(e), &slides);
    if (q->status || !wg_drafter_overlap(wg_engine_drafter(e), &v)) return;
    c->shared = v.shared;
    c->vocab = v.vocab;
    c->text += q->n;
    for (int i = 0; i < q->n; i++) c->covered += q->token[i] < v.n && v.own[q->token[i]] >= 0;
}

static void add_to(wg_pairs *p, int i, const wg_request *q, const wg_request *base)
{
    p->seconds[i] += q->decode;
    p->tokens[i] += q->n;
    p->passes[i] += (double)q->counts.passes;
    p->drafted[i] += (double)q->counts.drafted;
    p->accepted[i] += (double)q->counts.accepted;
    p->base_seconds[i] += base->decode;
    p->base_tokens[i] += base->n;
    p->base_passes[i] += (double)base->counts.passes;
    p->base_phases[i] += base->phases.draft + base->phases.verify + base->phases.accept + base->phases.kv;
}

/* The block of the run's time that a request belongs to: by repeat, then by prompt. */
static int block_of(const wg_result *o, const wg_request *q)
{
    return (int)(((long)q->repeat * o->pairs.n + q->prompt) * WG_RUN_BLOCKS / ((long)o->repeats * o->pairs.n));
}

/* Adds the work of both sides and the times of the cell's tokens. */
static wg_status add_efforts(wg_result *o, const wg_request *q, const wg_request *base, wg_error *err)
{
    wg_run_work *to[2] = { &o->work, &o->base_work };
    const wg_request *from[2] = { q, base };
    for (int i = 0; i < 2; i++) {
        wg_pass_stats_add(&to[i]->pass_stats, &from[i]->pass_stats);
        to[i]->forward += from[i]->forward;
        to[i]->decode += from[i]->decode;
        to[i]->prefill += from[i]->prefill;
        to[i]->joules += from[i]->joules;
        to[i]->passes += (double)from[i]->counts.passes;
        to[i]->tokens += from[i]->n;
        to[i]->drafted += (double)from[i]->counts.drafted;
        to[i]->accepted += (double)from[i]->counts.accepted;
    }
    return wg_events_spread(&q->events, &o->itl, &o->itl_token, err);
}

wg_status wg_result_add_pair(wg_result *o, const wg_request *q, const wg_request *base, int questions, wg_error *err)
{
    if (q->status || base->status) {
        const wg_request *bad = q->status ? q : base;
        wg_audit_add(&o->counts.audit, &q->counts.audit);
        if (o->failed++ == 0) snprintf(o->first_failure, sizeof o->first_failure, "%.100s: %.380s", q->source->id, bad->error);
        return WG_OK;
    }
    const int question = q->source->before + q->turn;
    o->requests++;
    o->equal += wg_request_same_output(q, base);
    add_to(&o->pairs, q->prompt, q, base);
    if (o->turns.n) add_to(&o->turns, question, q, base);
    add_to(&o->blocks, block_of(o, q), q, base);
    o->base_seconds[q->repeat] += base->decode;
    o->base_tokens[q->repeat] += base->n;
    wg_counts_add(&o->counts, &q->counts);
    if (q->repeat == 0) o->taught = (wg_taught){ o->taught.sum + q->taught.sum, o->taught.n + q->taught.n };
    o->on_device.verified += q->on_device.verified;
    o->on_device.decoded += q->on_device.decoded;
    wg_composite_totals_add(&o->composite, &q->composite);
    wg_phases_add(&o->phases, &q->phases, 1);
    o->decode += q->decode;
    o->forward += q->forward;
    o->context += (double)q->counts.passes * (q->prompt_tokens + q->n / 2.0);
    o->ttft[o->n_ttft++] = q->ttft;
    if (!isnan(q->tpot)) o->tpot[o->n_tpot++] = q->tpot;
    memcpy(o->sha256[q->repeat * questions + question], q->sha256, sizeof q->sha256);
    return add_efforts(o, q, base, err);
}

static double *series(int n) { return wg_calloc((size_t)n, sizeof(double)); }

static bool open_pairs(wg_pairs *p, int n)
{
    double **all[] = {
        &p->seconds,      &p->tokens,      &p->passes,      &p->drafted,     &p->accepted,
        &p->base_seconds, &p->base_tokens, &p->base_passes, &p->base_phases,
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ok = (*all[i] = series(n)) && ok;
    p->n = n;
    return ok;
}

static void close_pairs(wg_pairs *p)
{
    double *all[] = {
        p->seconds,      p->tokens,      p->passes,      p->drafted,     p->accepted,
        p->base_seconds, p->base_tokens, p->base_passes, p->base_phases,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) wg_free(all[i]);
}

wg_status wg_result_open(wg_result *o, const wg_dataset *d, int repeats, wg_error *err)
{
    const bool ok = open_pairs(&o->pairs, d->n) && (d->turns == 1 || open_pairs(&o->turns, d->questions)) &&
                    open_pairs(&o->blocks, WG_RUN_BLOCKS);
    o->outputs = d->questions * repeats;
    o->repeats = repeats;
    o->base_seconds = series(repeats);
    o->base_tokens = series(repeats);
    o->ttft = series(o->outputs);
    o->tpot = series(o->outputs);
    o->sha256 = wg_calloc((size_t)o->outputs, sizeof *o->sha256);
    return ok && o->base_seconds && o->base_tokens && o->ttft && o->tpot && o->sha256
               ? WG_OK
               : wg_nomem(err, (size_t)o->outputs * 8, "results");
}

void wg_run_free(wg_run *r)
{
    for (int i = 0; r->result && i < r->config->n; i++) {
        wg_result *o = &r->result[i];
        close_pairs(&o->pairs);
        close_pairs(&o->turns);
        close_pairs(&o->blocks);
        wg_free(o->base_seconds);
        wg_free(o->base_tokens);
        wg_free(o->ttft);
        wg_free(o->tpot);
        wg_free(o->sha256);
        wg_free(o->itl.v);
        wg_free(o->itl_token.v);
    }
    wg_free(r->result);
    r->result = NULL;
}
