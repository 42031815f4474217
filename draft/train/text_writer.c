/* SPDX-License-Identifier: MIT
 * Writing training texts with a model (text_writer.h). */
#include "draft/train/text_writer.h"

#include "core/base/mem.h"

enum { BLOCK = 64, PAGE = 16 }; /* BLOCK: rows of a pass over a prompt */

struct wg_text_writer {
    wg_text_writer_options o;
    wg_kv *kv;
    wg_kv_seq **seq; /* (sequences) */
    wg_batch batch;
    wg_sampler sampler;
    wg_rows p;     /* one row */
    float *logits; /* (sequences, vocab) */
};

static wg_status open_all(wg_text_writer *w, wg_error *err)
{
    const wg_text_writer_options *o = &w->o;
    const size_t n = (size_t)o->sequences, vocab = (size_t)o->lm->vocab;
    const wg_sampling sampling = WG_SAMPLING(o->temperature, 0, 1, 0);
    if (o->length > o->lm->context)
        return wg_fail(err, WG_EINVAL, "texts of %d tokens, but the context of their writer is %d: lower train.length",
                       o->length, o->lm->context);
    WG_TRY(wg_kv_open(&w->kv, PAGE, (int)n * ((o->length + PAGE - 1) / PAGE + 2), o->length, err));
    WG_TRY(wg_lm_attach(o->lm, w->kv, err));
    w->seq = wg_calloc(n, sizeof *w->seq);
    w->logits = wg_alloc(n * vocab, sizeof *w->logits);
    if (!w->seq || !w->logits) return wg_nomem(err, n * vocab * sizeof *w->logits, "logits");
    for (size_t i = 0; i < n; i++) WG_TRY(wg_kv_seq_open(w->kv, &w->seq[i], err));
    WG_TRY(wg_batch_open(&w->batch, o->sequences > BLOCK ? o->sequences : BLOCK, err));
    WG_TRY(wg_rows_open(&w->p, 1, o->lm->vocab, err));
    return wg_sampler_open(&w->sampler, &sampling, o->ops, o->lm->vocab, err);
}

wg_status wg_text_writer_open(wg_text_writer **out, const wg_text_writer_options *o, wg_error *err)
{
    wg_text_writer *w = wg_calloc(1, sizeof *w);
    if (!w) return wg_nomem(err, sizeof *w, "a writer of texts");
    w->o = *o;
    const wg_status s = open_all(w, err);
    if (s) wg_text_writer_close(w);
    else *out = w;
    return s;
}

void wg_text_writer_close(wg_text_writer *w)
{
    if (!w) return;
    for (int i = 0; w->seq && i < w->o.sequences; i++) wg_kv_seq_close(w->seq[i]);
    wg_kv_close(w->kv);
    wg_batch_close(&w->batch);
    wg_sampler_close(&w->sampler);
    wg_rows_close(&w->p);
    wg_free(w->seq);
    wg_free(w->logits);
    wg_free(w);
}

/* Adds row `at` of a sequence to the pass. */
static void add_row(wg_text_writer *w, const wg_window_out *rows, int sequence, int at, bool logits)
{
    const size_t row = (size_t)sequence * (size_t)w->o.length + (size_t)at;
    const int from = w->batch.n;
    wg_batch_chain(&w->batch, w->seq[sequence], at, rows->token + row, 1, logits);
    if (rows->start[row] > 0) wg_batch_rebase(&w->batch, from, rows->start[row]);
}

/* Reads all but the last token of each sequence's prompt into the cache. */
static wg_status read_prompt(wg_text_writer *w, const wg_window_out *rows, int sequence, int n, wg_error *err)
{
    for (int first = 0, take; first < n; first += take) {
        take = n - first < BLOCK ? n - first : BLOCK;
        WG_TRY(wg_kv_reserve(w->seq[sequence], take, err));
        wg_batch_clear(&w->batch);
        for (int i = 0; i < take; i++) add_row(w, rows, sequence, first + i, false);
        WG_TRY(wg_lm_forward(w->o.lm, &w->batch, w->logits, err));
        wg_kv_commit_chain(w->seq[sequence], take);
    }
    return WG_OK;
}

/* Draws the token at `at` from the logits of the token before it, and sets the arrays of its rows. */
static void put_token(wg_text_writer *w, const wg_window_out *rows, int sequence, int at, uint64_t address)
{
    const size_t row = (size_t)sequence * (size_t)w->o.length + (size_t)at;
    const int32_t bos = wg_tokenizer_bos(w->o.tokenizer);
    if (bos >= 0 && wg_tokenizer_is_eog(w->o.tokenizer, rows->token[row - 1])) {
        rows->token[row] = bos;
        rows->start[row] = at;
        rows->target[row - 1] = -1;
    } else {
        const wg_chance c = wg_chance_philox(w->o.seed, (uint32_t)address, (uint32_t)at);
        wg_sampler_row(&w->sampler, w->logits + (size_t)sequence * (size_t)w->o.lm->vocab, &w->p, 0);
        rows->token[row] = wg_rows_pick(&w->p, 0, &c, WG_DRAW_NEXT, (int)(address >> 32));
        rows->start[row] = rows->start[row - 1];
        rows->target[row - 1] = rows->token[row];
    }
    rows->position[row] = at - rows->start[row];
    rows->target[row] = -1; /* set when the next token is known */
}

static wg_status write_all(wg_text_writer *w, uint64_t first, int prompt, const wg_window_out *rows, wg_error *err)
{
    const int n = w->o.sequences, length = w->o.length;
    for (int s = 0; s < n; s++) {
        for (int i = 0; i < prompt; i++) rows->target[s * length + i] = -1;
        WG_TRY(read_prompt(w, rows, s, prompt - 1, err));
    }
    for (int at = prompt; at < length; at++) {
        wg_batch_clear(&w->batch);
        for (int s = 0; s < n; s++) {
            WG_TRY(wg_kv_reserve(w->seq[s], 1, err));
            add_row(w, rows, s, at - 1, true);
        }
        WG_TRY(wg_lm_forward(w->o.lm, &w->batch, w->logits, err));
        for (int s = 0; s < n; s++) {
            wg_kv_commit_chain(w->seq[s], 1);
            put_token(w, rows, s, at, first + (uint64_t)s);
        }
    }
    return WG_OK;
}

wg_status wg_text_writer_continue(wg_text_writer *w, uint64_t first, int prompt, const wg_window_out *rows, wg_error *err)
{
    wg_rows_clear(&w->p);
    wg_rows_push(&w->p);
    const wg_status s = write_all(w, first, prompt, rows, err);
    for (int i = 0; i < w->o.sequences; i++) {
        wg_kv_rollback(w->seq[i]);
        wg_kv_truncate(w->seq[i], 0);
    }
    return s;
}
