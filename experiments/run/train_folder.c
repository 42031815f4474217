/* SPDX-License-Identifier: MIT
 * The folder of a training run (train_folder.h). */
#include "experiments/run/train_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/make_path.h"
#include "core/base/save.h"

const char *wg_train_folder_at(const wg_train_folder *f, const char *name, char path[WG_TRAIN_PATH])
{
    snprintf(path, WG_TRAIN_PATH, "%.511s/%s", f->path, name);
    return path;
}

void wg_train_arch(wg_arch *out, const wg_train_model *m, int vocab, const char *name)
{
    *out = (wg_arch){ .layers = m->layers,
                      .dim = m->dim,
                      .heads = m->heads,
                      .kv_heads = m->kv_heads,
                      .head_dim = m->head_dim,
                      .hidden = m->hidden,
                      .vocab = vocab,
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
                      .residual_scale = 1,
                      .logit_scale = 1,
                      .attention_scale = 1.0f / sqrtf((float)m->head_dim) };
    strcpy(out->family, "llama");
    snprintf(out->name, sizeof out->name, "%.90s", name);
}

/* ---- text */

static wg_status open_tokens(wg_train_folder *f, const wg_train_data *d, const wg_tokenizer *t, wg_error *err)
{
    char digest[WG_SHA256_HEX], train[WG_TRAIN_PATH], held[WG_TRAIN_PATH];
    wg_tokenizer_digest(t, digest);
    wg_train_folder_at(f, "train.tokens", train), wg_train_folder_at(f, "held.tokens", held);
    if (*d->tokens) {
        WG_TRY(wg_tokens_open(&f->train, d->tokens, digest, err));
        return *d->held ? wg_tokens_open(&f->held, d->held, digest, err) : WG_OK;
    }
    if (!f->resume || access(train, F_OK) != 0) {
        wg_corpus corpus = { .separator = d->separator, .held_out = d->held_out };
        corpus.path = *d->conversations ? d->conversations : d->text;
        unlink(held);
        WG_TRY((*d->conversations ? wg_conversations_tokens : wg_corpus_write)(&corpus, t, train, held, err));
    }
    WG_TRY(wg_tokens_open(&f->train, train, digest, err));
    return access(held, F_OK) == 0 ? wg_tokens_open(&f->held, held, digest, err) : WG_OK;
}

wg_status wg_train_folder_tokens(wg_train_folder *f, const wg_train_data *data, const wg_tokenizer *t, int length,
                                 wg_error *err)
{
    WG_TRY(open_tokens(f, data, t, err));
    if (!f->held || wg_tokens_count(f->held) > (size_t)length) return WG_OK;
    wg_log(WG_LOG_WARN, "%s: %zu tokens are less than a sequence of %d: there is no held-out loss", wg_tokens_path(f->held),
           wg_tokens_count(f->held), length);
    wg_tokens_close(f->held);
    f->held = NULL;
    return WG_OK;
}

/* ---- folder and log */

wg_status wg_train_folder_open(wg_train_folder *f, wg_error *err)
{
    char path[WG_TRAIN_PATH];
    struct stat st;
    wg_train_folder_at(f, f->log_name, path);
    bool made;
    if (!wg_make_path(f->path, &made))
        return wg_fail(err, WG_EIO, "%s: cannot make this folder: %s; choose another with --out DIR", f->path, strerror(errno));
    if (!f->resume && stat(path, &st) == 0 && st.st_size > 0) /* it already has steps */
        return wg_fail(err, WG_EINVAL, "%s: holds a training run; go on with it with --resume, or train into another folder",
                       f->path);
    f->log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (f->log < 0) return wg_fail(err, WG_EIO, "%s: cannot create: %s", path, strerror(errno));
    if (flock(f->log, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return WG_OK;
    return wg_fail(err, WG_EINVAL, "%s: another process is training into this folder; wait for it, or stop it", path);
}

void wg_train_folder_close(wg_train_folder *f)
{
    wg_tokens_close(f->train);
    wg_tokens_close(f->held);
    if (f->log >= 0) close(f->log);
    f->train = f->held = NULL;
    f->log = -1;
}

wg_status wg_train_folder_cut(wg_train_folder *f, wg_error *err)
{
    char path[WG_TRAIN_PATH];
    if (ftruncate(f->log, (off_t)f->log_bytes) == 0) return WG_OK;
    return wg_fail(err, WG_EIO, "%s: cannot cut: %s", wg_train_folder_at(f, f->log_name, path), strerror(errno));
}

wg_status wg_train_folder_append(wg_train_folder *f, const char *line, size_t n, wg_error *err)
{
    for (size_t done = 0; done < n;) {
        const ssize_t w = write(f->log, line + done, n - done);
        if (w < 0 && errno == EINTR) continue;
        if (w <= 0)
            return wg_fail(err, WG_EIO,
                           "%s/%s: cannot write: %s; the last checkpoint is kept. Free some space, then go on with --resume",
                           f->path, f->log_name, strerror(w < 0 ? errno : ENOSPC));
        done += (size_t)w;
    }
    f->log_bytes += n;
    return WG_OK;
}

wg_status wg_train_folder_save(const wg_train_folder *f, const char *name, const char *text, wg_error *err)
{
    char path[WG_TRAIN_PATH];
    return wg_save_all(wg_train_folder_at(f, name, path), text, strlen(text), err);
}
