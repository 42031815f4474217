/* SPDX-License-Identifier: MIT
 * The feed of distillation (distill_feed.h). A student writes with the weights of its last refresh, which checkpoints keep, so
 * that a run resumed between two refreshes writes the same texts. */
#include "draft/train/distill_feed.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "kernels/philox.h"

enum { SOURCE = 11, SOURCE_WORD = 0x736f7572 }; /* purpose of the draws of sources, unlike those of windows */

/* A student that writes texts. */
typedef struct author {
    float *kept; /* (elements) its weights at the last refresh */
    wg_model *model;
    wg_text_writer *writer;
} author;

struct wg_distill_feed {
    wg_distill_feed_parts p;
    wg_windows text, trace;
    wg_text_writer *target;
    author *author; /* (students); NULL: no student writes */
    size_t *first;  /* (micro) where the sequences of the pass that `fill` wrote last begin in the text */
    bool recalls;   /* that pass has rows of the text, and `prepare` has not been called since */
};

wg_text_source wg_distill_source(const wg_source_options *o, uint64_t seed, uint64_t pass)
{
    const wg_philox x = wg_philox_at(seed, (uint32_t)pass, (uint32_t)(pass >> 32), SOURCE, SOURCE_WORD);
    double all = 0, u = wg_philox_double(x.v[0], x.v[1]);
    int last = WG_SOURCE_TEXT;
    for (int i = 0; i < WG_SOURCES; i++) all += o->share[i];
    for (int i = 0; i < WG_SOURCES; i++) {
        if (o->share[i] <= 0) continue;
        last = i;
        if (u * all < o->share[i]) break;
        u -= o->share[i] / all;
    }
    return (wg_text_source)last;
}

/* ---- opening */

static wg_text_writer_options writer_of(const wg_distill_feed *f, wg_lm *lm, uint64_t number)
{
    return (wg_text_writer_options){ .lm = lm,
                                     .ops = f->p.ops,
                                     .temperature = f->p.temperature,
                                     .sequences = f->p.micro,
                                     .length = f->p.length,
                                     .tokenizer = f->p.tokenizer,
                                     .seed = f->p.seed + (number << 32) };
}

static wg_status open_windows(wg_distill_feed *f, wg_windows *w, const wg_tokens *tokens, double bos_share, wg_error *err)
{
    *w = (wg_windows){ .tokens = tokens,
                       .length = f->p.length,
                       .vocab = f->p.target->vocab,
                       .bos = wg_tokenizer_bos(f->p.tokenizer),
                       .bos_share = bos_share,
                       .seed = f->p.seed };
    return wg_windows_open(w, err);
}

static wg_status open_all(wg_distill_feed *f, wg_error *err)
{
    const double *share = f->p.options->share;
    WG_TRY(open_windows(f, &f->text, f->p.text, f->p.bos_share, err));
    f->first = wg_calloc((size_t)f->p.micro, sizeof *f->first);
    if (!f->first) return wg_nomem(err, (size_t)f->p.micro * sizeof *f->first, "the sequences of a pass");
    if (f->p.trace) WG_TRY(open_windows(f, &f->trace, f->p.trace, 0, err));
    if (share[WG_SOURCE_TARGET] > 0) {
        const wg_text_writer_options o = writer_of(f, f->p.target, 1);
        WG_TRY(wg_text_writer_open(&f->target, &o, err));
    }
    if (share[WG_SOURCE_STUDENT] == 0) return WG_OK;
    f->author = wg_calloc((size_t)f->p.students, sizeof *f->author);
    if (!f->author) return wg_nomem(err, (size_t)f->p.students * sizeof *f->author, "students that write");
    for (int i = 0; i < f->p.students; i++) {
        const size_t n = wg_net_elements(f->p.student[i]);
        f->author[i].kept = wg_calloc(n, sizeof(float));
        if (!f->author[i].kept) return wg_nomem(err, n * sizeof(float), "the weights that a student writes with");
    }
    return WG_OK;
}

wg_status wg_distill_feed_open(wg_distill_feed **out, const wg_distill_feed_parts *parts, wg_error *err)
{
    wg_distill_feed *f = wg_calloc(1, sizeof *f);
    if (!f) return wg_nomem(err, sizeof *f, "the rows of students");
    f->p = *parts;
    const wg_status s = open_all(f, err);
    if (s) wg_distill_feed_close(f);
    else *out = f;
    return s;
}

static void rest(author *a)
{
    wg_text_writer_close(a->writer);
    wg_model_close(a->model);
    a->writer = NULL;
    a->model = NULL;
}

void wg_distill_feed_close(wg_distill_feed *f)
{
    if (!f) return;
    for (int i = 0; f->author && i < f->p.students; i++) {
        rest(&f->author[i]);
        wg_free(f->author[i].kept);
    }
    wg_free(f->author);
    wg_free(f->first);
    wg_text_writer_close(f->target);
    wg_windows_close(&f->text);
    wg_windows_close(&f->trace);
    wg_free(f);
}

/* ---- students that write */

static void swap(float *a, float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float x = a[i];
        a[i] = b[i];
        b[i] = x;
    }
}

/* Loads a student with its kept weights into the inference engine. */
static wg_status load(wg_distill_feed *f, int k, wg_error *err)
{
    char path[4096];
    author *a = &f->author[k];
    wg_net *net = f->p.student[k];
    wg_weights *w;
    snprintf(path, sizeof path, "%s/writes.gguf", f->p.folder);
    rest(a);
    swap(a->kept, wg_net_weights(net), wg_net_elements(net));
    wg_status s = wg_net_write(net, path, "writes", f->p.tokenizer_file, WG_F32, err);
    swap(a->kept, wg_net_weights(net), wg_net_elements(net));
    WG_TRY(s);
    s = wg_weights_open(&w, path, err);
    unlink(path); /* the open file stays readable */
    WG_TRY(s);
    s = wg_model_open(&a->model, w, f->p.device, &(wg_model_options){ .kv_type = WG_F32 }, err);
    wg_weights_close(w);
    WG_TRY(s);
    const wg_text_writer_options o = writer_of(f, wg_model_lm(a->model), 2 + (uint64_t)k);
    return wg_text_writer_open(&a->writer, &o, err);
}

/* Copies the student's present weights to those that it writes with. */
static wg_status keep(const wg_distill_feed *f, int k, wg_error *err)
{
    wg_net *net = f->p.student[k];
    wg_net_fetch(net);
    WG_TRY(wg_ops_wait(wg_net_ops(net), err));
    memcpy(f->author[k].kept, wg_net_weights(net), wg_net_elements(net) * sizeof(float));
    return WG_OK;
}

static wg_status begin(void *ctx, long step, wg_error *err)
{
    wg_distill_feed *f = ctx;
    const bool due = step % f->p.options->refresh == 0;
    for (int k = 0; f->author && k < f->p.students; k++) {
        author *a = &f->author[k];
        if (due) WG_TRY(keep(f, k, err));
        if (due || !a->model) WG_TRY(load(f, k, err));
    }
    return WG_OK;
}

static bool state(void *ctx, int i, float **p, size_t *n)
{
    const wg_distill_feed *f = ctx;
    if (!f->author || i >= f->p.students) return false;
    *p = f->author[i].kept;
    *n = wg_net_elements(f->p.student[i]);
    return true;
}

/* ---- passes */

static bool own(void *ctx, uint64_t pass)
{
    const wg_distill_feed *f = ctx;
    return wg_distill_source(f->p.options, f->p.seed, pass) == WG_SOURCE_STUDENT;
}

/* Fills a pass with recorded texts; only rows that predict a token at which a draft was rejected keep their target. */
static wg_status fill_trace(wg_distill_feed *f, uint64_t n, const wg_window_out *out, wg_error *err)
{
    size_t first;
    WG_TRY(wg_windows_get(&f->trace, n, false, out, err));
    first = wg_windows_first(&f->trace, n);
    for (int i = 0; i < f->p.length; i++)
        if (!f->p.rejected[first + (size_t)i + 1]) out->target[i] = -1;
    return WG_OK;
}

static wg_status fill(void *ctx, uint64_t pass, int student, const wg_window_out *out, wg_error *err)
{
    wg_distill_feed *f = ctx;
    const wg_text_source source = wg_distill_source(f->p.options, f->p.seed, pass);
    const uint64_t first = pass * (uint64_t)f->p.micro;
    f->recalls = f->p.kept && source == WG_SOURCE_TEXT;
    for (int i = 0; i < f->p.micro; i++) {
        const size_t at = (size_t)i * (size_t)f->p.length;
        const wg_window_out o = { out->token + at, out->target + at, out->start + at, out->position + at };
        if (source == WG_SOURCE_TRACE) WG_TRY(fill_trace(f, first + (uint64_t)i, &o, err));
        else WG_TRY(wg_windows_get(&f->text, first + (uint64_t)i, false, &o, err));
        if (f->recalls) f->first[i] = wg_windows_first(&f->text, first + (uint64_t)i);
    }
    if (source == WG_SOURCE_TARGET) return wg_text_writer_continue(f->target, first, f->p.options->prompt, out, err);
    if (source == WG_SOURCE_STUDENT)
        return wg_text_writer_continue(f->author[student].writer, first, f->p.options->prompt, out, err);
    return WG_OK;
}

static wg_status prepare(void *ctx, const wg_train_rows *rows, wg_error *err)
{
    wg_distill_feed *f = ctx;
    const bool recalls = f->recalls;
    f->recalls = false; /* a held-out loss has rows of its own */
    if (recalls) return wg_kept_rows_give(f->p.kept, f->p.rows, rows, f->first, err);
    return wg_target_rows_compute(f->p.rows, rows, err);
}

static const float *hidden(void *ctx)
{
    const wg_distill_feed *f = ctx;
    return wg_target_rows_hidden(f->p.rows);
}

wg_train_feed wg_distill_feed_plug(wg_distill_feed *f)
{
    return (wg_train_feed){ .own = f->author ? own : NULL,
                            .fill = fill,
                            .prepare = prepare,
                            .hidden = hidden,
                            .begin = f->author ? begin : NULL,
                            .state = f->author ? state : NULL,
                            .ctx = f };
}
