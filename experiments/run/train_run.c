/* SPDX-License-Identifier: MIT */
#include "experiments/run/train_run.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/mem.h"
#include "core/base/number.h"
#include "core/base/save.h"
#include "core/file/tokenizer_file.h"
#include "core/model/model.h"

enum { PATH_ROOM = 2 * WG_OPTION_STRING + 64, EVERY = 20 }; /* lines of a log without a terminal */

typedef struct run {
    const wg_train_config *c;
    const wg_train_run_options *o;
    wg_train_result *result;
    wg_weights *init, *source; /* source: of the tokenizer; may be init */
    wg_tokenizer *tokenizer;
    wg_tokens *train, *held;
    wg_arch arch;
    wg_pool *pool;
    wg_net *net;
    wg_trainer *trainer;
    int length, log;
    uint64_t log_bytes;
    double start, shown, seconds, rows; /* seconds and rows of steps: for the rate */
} run;

static const char *in_folder(const run *r, const char *name, char path[PATH_ROOM])
{
    snprintf(path, PATH_ROOM, "%.511s/%s", r->o->folder, name);
    return path;
}

/* ---- model and tokenizer */

static void set_shape(run *r)
{
    const wg_train_model *m = &r->c->model;
    r->arch = (wg_arch){ .layers = m->layers,
                         .dim = m->dim,
                         .heads = m->heads,
                         .kv_heads = m->kv_heads,
                         .head_dim = m->head_dim,
                         .hidden = m->hidden,
                         .vocab = wg_tokenizer_size(r->tokenizer),
                         .context = m->context,
                         .n_rot = m->head_dim,
                         .rope_adjacent = true,
                         .rope_base = m->rope_base,
                         .rope_scale = 1,
                         .rope_magnitude = 1,
                         .eps = (float)m->eps,
                         .tied = m->tied,
                         .activation = WG_SWIGLU,
                         .embedding_scale = 1,
                         .attention_scale = 1.0f / sqrtf((float)m->head_dim) };
    strcpy(r->arch.family, "llama");
    snprintf(r->arch.name, sizeof r->arch.name, "%.90s", r->c->output.name);
}

static wg_status open_model(run *r, wg_error *err)
{
    const wg_train_model *m = &r->c->model;
    if (*m->init) {
        WG_TRY(wg_weights_open(&r->init, m->init, err));
        WG_TRY(wg_model_check(r->init, &(wg_model_options){ 0 }, &r->arch, err));
        WG_TRY(wg_net_check(&r->arch, m->init, err));
    }
    WG_TRY(*m->tokenizer ? wg_tokenizer_file_open(&r->source, m->tokenizer, err) : WG_OK);
    if (!r->source) r->source = r->init;
    WG_TRY(wg_tokenizer_open(&r->tokenizer, r->source, err));
    if (!r->init) set_shape(r);
    r->length = r->c->train.length ? r->c->train.length : r->arch.context;
    if (r->length > r->arch.context)
        return wg_fail(err, WG_EINVAL, "train.length is %d: the context of %s is %d", r->length, m->init, r->arch.context);
    if (wg_tokenizer_size(r->tokenizer) <= r->arch.vocab) return WG_OK;
    return wg_fail(err, WG_EVOCAB, "%s has %d tokens, the embedding of %s %d; give the model's own tokenizer", m->tokenizer,
                   wg_tokenizer_size(r->tokenizer), m->init, r->arch.vocab);
}

/* ---- text */

static wg_status open_tokens(run *r, wg_error *err)
{
    const wg_train_data *d = &r->c->data;
    char digest[WG_SHA256_HEX], train[PATH_ROOM], held[PATH_ROOM];
    wg_tokenizer_digest(r->tokenizer, digest);
    in_folder(r, "train.tokens", train), in_folder(r, "held.tokens", held);
    if (*d->tokens) {
        WG_TRY(wg_tokens_open(&r->train, d->tokens, digest, err));
        return *d->held ? wg_tokens_open(&r->held, d->held, digest, err) : WG_OK;
    }
    if (!r->o->resume || access(train, F_OK) != 0) {
        wg_corpus corpus = { .path = d->text, .separator = d->separator, .held_out = d->held_out };
        unlink(held);
        WG_TRY(wg_corpus_write(&corpus, r->tokenizer, train, held, err));
    }
    WG_TRY(wg_tokens_open(&r->train, train, digest, err));
    return access(held, F_OK) == 0 ? wg_tokens_open(&r->held, held, digest, err) : WG_OK;
}

/* A held-out text that is shorter than a sequence is left aside. */
static void check_held(run *r)
{
    if (!r->held || wg_tokens_count(r->held) > (size_t)r->length) return;
    wg_log(WG_LOG_WARN, "%s: %zu tokens are less than a sequence of %d: there is no held-out loss", wg_tokens_path(r->held),
           wg_tokens_count(r->held), r->length);
    wg_tokens_close(r->held);
    r->held = NULL;
}

/* ---- folder and log */

static wg_status open_log(run *r, wg_error *err)
{
    char path[PATH_ROOM];
    struct stat st;
    in_folder(r, "train.jsonl", path);
    if (mkdir(r->o->folder, 0777) != 0 && errno != EEXIST)
        return wg_fail(err, WG_EIO, "%s: cannot make the folder: %s", r->o->folder, strerror(errno));
    if (!r->o->resume && stat(path, &st) == 0 && st.st_size > 0) /* steps were made */
        return wg_fail(err, WG_EINVAL, "%s: holds a training run; go on with it with --resume, or train into another folder",
                       r->o->folder);
    r->log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (r->log < 0) return wg_fail(err, WG_EIO, "%s: cannot create: %s", path, strerror(errno));
    if (flock(r->log, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return WG_OK;
    return wg_fail(err, WG_EINVAL, "%s: another process is training into this folder; wait for it, or stop it", path);
}

static wg_status cut_log(run *r, wg_error *err)
{
    char path[PATH_ROOM];
    if (ftruncate(r->log, (off_t)r->log_bytes) == 0) return WG_OK;
    return wg_fail(err, WG_EIO, "%s: cannot cut: %s", in_folder(r, "train.jsonl", path), strerror(errno));
}

static wg_status append(run *r, const char *line, size_t n, wg_error *err)
{
    for (size_t done = 0; done < n;) {
        const ssize_t w = write(r->log, line + done, n - done);
        if (w < 0 && errno == EINTR) continue;
        if (w <= 0)
            return wg_fail(
                err, WG_EIO,
                "%s/train.jsonl: cannot write: %s; the last checkpoint is kept. Free some space, then go on with --resume",
                r->o->folder, strerror(w < 0 ? errno : ENOSPC));
        done += (size_t)w;
    }
    r->log_bytes += n;
    wg_trainer_log_is(r->trainer, r->log_bytes);
    return WG_OK;
}

static void show(run *r, const wg_train_report *t)
{
    const double now = wg_clock_now(), rate = r->rows / r->seconds;
    const double left = (now - r->start) / (double)(t->step - r->result->step) * (double)(t->steps - t->step);
    char alpha[32] = "";
    if (t->alpha > 0) snprintf(alpha, sizeof alpha, ", alpha %.4f", t->alpha);
    if (r->o->progress ? now - r->shown < 0.2 : t->step % (t->steps / EVERY + 1) != 0) return;
    r->shown = now;
    fprintf(stderr, "%sstep %ld/%ld: loss %.4f%s%s, %.0f tok/s, %d:%02d:%02d left%s", r->o->progress ? "\r\x1b[K" : "", t->step,
            t->steps, t->loss, alpha, t->norm > 0 ? "" : " (no gradient)", rate, (int)left / 3600, (int)left / 60 % 60,
            (int)left % 60, r->o->progress ? "" : "\n");
    fflush(stderr);
}

static wg_status report(void *user, const wg_train_report *t, wg_error *err)
{
    run *r = user;
    char line[512], number[4][WG_NUMBER_TEXT];
    int n;
    if (t->held_out) {
        r->result->held = t->loss;
        n = snprintf(line, sizeof line, "{\"held_out\":%s,\"rows\":%ld,\"seconds\":%.3f,\"step\":%ld}\n",
                     wg_number_text(t->loss, number[0], WG_NUMBER_TEXT), t->rows, t->seconds, t->step);
    } else {
        r->seconds += t->seconds;
        r->rows += (double)t->rows;
        r->result->loss = t->loss;
        r->result->rows += t->rows;
        n = snprintf(line, sizeof line,
                     "{\"alpha\":%s,\"loss\":%s,\"norm\":%s,\"rate\":%s,\"rows\":%ld,\"seconds\":%.3f,\"step\":%ld}\n",
                     t->alpha > 0 ? wg_number_text(t->alpha, number[0], WG_NUMBER_TEXT) : "null",
                     wg_number_text(t->loss, number[1], WG_NUMBER_TEXT), wg_number_text(t->norm, number[2], WG_NUMBER_TEXT),
                     wg_number_text(t->rate, number[3], WG_NUMBER_TEXT), t->rows, t->seconds, t->step);
        show(r, t);
    }
    return append(r, line, (size_t)n, err);
}

/* ---- the run */

static wg_status open_trainer(run *r, wg_error *err)
{
    const wg_train_config *c = r->c;
    WG_TRY(wg_pool_open(&r->pool, r->o->threads, err));
    WG_TRY(wg_net_open(&r->net, wg_ops_f32(), &r->arch, c->train.micro, r->length, r->pool, err));
    if (r->init) WG_TRY(wg_net_read(r->net, r->init, err));
    else wg_net_randomise(r->net, (uint64_t)c->train.seed);
    const wg_train_parts parts = { .net = r->net,
                                   .pool = r->pool,
                                   .train = r->train,
                                   .held = r->held,
                                   .bos = wg_tokenizer_bos(r->tokenizer),
                                   .loss = r->o->loss,
                                   .options = &c->train,
                                   .optimiser = &c->optimiser,
                                   .schedule = &c->schedule,
                                   .folder = r->o->folder,
                                   .settings = c->resolved,
                                   .stop = r->o->stop };
    WG_TRY(wg_trainer_open(&r->trainer, &parts, err));
    r->result->parameters = wg_arch_parameters(&r->arch);
    r->result->steps = c->train.steps;
    if (r->o->resume) WG_TRY(wg_trainer_resume(r->trainer, &r->log_bytes, err));
    r->result->step = wg_trainer_step(r->trainer);
    return cut_log(r, err);
}

static wg_status save_config(const run *r, wg_error *err)
{
    char path[PATH_ROOM];
    wg_save *f;
    WG_TRY(wg_save_open(&f, in_folder(r, "config.json", path), err));
    const wg_status s = wg_save_write(f, r->c->resolved, strlen(r->c->resolved), err);
    if (s == WG_OK) return wg_save_commit(f, err);
    wg_save_abort(f);
    return s;
}

static wg_status write_model(run *r, wg_error *err)
{
    char name[WG_OPTION_STRING + 8], path[PATH_ROOM];
    snprintf(name, sizeof name, "%s.gguf", r->c->output.name);
    WG_TRY(wg_net_write(r->net, in_folder(r, name, path), r->c->output.name, r->source, wg_type_parse(r->c->output.type), err));
    snprintf(r->result->model, sizeof r->result->model, "%s", path);
    return WG_OK;
}

static wg_status go(run *r, wg_error *err)
{
    WG_TRY(wg_blas_open(err)); /* before text is read for minutes */
    WG_TRY(open_model(r, err));
    WG_TRY(open_log(r, err));
    WG_TRY(open_tokens(r, err));
    check_held(r);
    WG_TRY(open_trainer(r, err));
    WG_TRY(save_config(r, err));
    r->start = wg_clock_now();
    const wg_status s = wg_trainer_run(r->trainer, report, r, err);
    if (r->o->progress) fputs("\r\x1b[K", stderr);
    r->result->step = wg_trainer_step(r->trainer);
    r->result->seconds = wg_clock_now() - r->start;
    return s ? s : write_model(r, err);
}

wg_status wg_train_run(const wg_train_config *c, const wg_train_run_options *o, wg_train_result *out, wg_error *err)
{
    *out = (wg_train_result){ .held = NAN };
    run r = { .c = c, .o = o, .result = out, .log = -1 };
    const wg_status s = go(&r, err);
    wg_trainer_close(r.trainer);
    wg_net_close(r.net);
    wg_pool_close(r.pool);
    wg_tokens_close(r.train);
    wg_tokens_close(r.held);
    wg_tokenizer_close(r.tokenizer);
    if (r.source != r.init) wg_weights_close(r.source);
    wg_weights_close(r.init);
    if (r.log >= 0) close(r.log);
    return s;
}
