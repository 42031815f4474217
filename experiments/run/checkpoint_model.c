/* SPDX-License-Identifier: MIT
 * Models from checkpoints (checkpoint_model.h). */
#include "experiments/run/checkpoint_model.h"

#include <jansson.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/file/tokenizer_file.h"
#include "core/model/model.h"
#include "draft/train/trainer.h"
#include "core/base/json_number.h"
#include "experiments/run/train_folder.h"

enum { HEADER = 48 };
#define MOST ((size_t)1 << 36) /* most bytes of a file */

/* A checkpoint in memory. */
typedef struct file {
    const char *path;
    char *bytes;
    size_t n, floats;
    json_t *config;
    const char *numbers; /* (floats) f32, not aligned */
} file;

/* The config's description of the model. */
typedef struct source {
    wg_weights *init, *tokens; /* tokens: the tokenizer's file, may be init */
    wg_tokenizer *tokenizer;
    wg_arch arch;
} source;

bool wg_is_checkpoint(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".wgc") == 0;
}

/* ---- the file */

static uint64_t word(const char *bytes, size_t at)
{
    uint64_t v;
    memcpy(&v, bytes + at, sizeof v);
    return v;
}

static wg_status damaged(const file *f, wg_error *err)
{
    return wg_fail(err, WG_EFORMAT, "%s: the checkpoint is damaged: its size or its checksum is wrong; take the one before it",
                   f->path);
}

static wg_status read_file(file *f, wg_error *err)
{
    WG_TRY(wg_read_file(f->path, MOST, &f->bytes, &f->n, err));
    if (f->n < HEADER + 8 || memcmp(f->bytes, "WAGERCP\n\1\0\0\0\0\0\0", 16) != 0) return damaged(f, err);
    const uint64_t settings = word(f->bytes, 32), floats = word(f->bytes, 40);
    if (settings > f->n - HEADER - 8 || floats > (f->n - HEADER - 8 - settings) / 4 ||
        HEADER + settings + 4 * floats + 8 != f->n || wg_hash64(WG_HASH_START, f->bytes, f->n - 8) != word(f->bytes, f->n - 8))
        return damaged(f, err);
    f->floats = (size_t)floats;
    f->numbers = f->bytes + HEADER + settings;
    f->config = json_loadb(f->bytes + HEADER, (size_t)settings, 0, NULL);
    if (json_object_get(f->config, "students"))
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%s: is a checkpoint of a distillation; its folder has the students as GGUF files when it is done",
                       f->path);
    return json_is_object(json_object_get(f->config, "model")) ? WG_OK : damaged(f, err);
}

/* ---- the model */

static bool shape_of(const file *f, source *s)
{
    const json_t *m = json_object_get(f->config, "model");
    const int heads = (int)wg_json_int(m, "heads"), layers = (int)wg_json_int(m, "layers"), dim = (int)wg_json_int(m, "dim");
    if (heads < 1 || layers < 1 || layers > WG_LAYERS_MAX || dim < heads) return false;
    const wg_train_model shape = { .layers = layers,
                                   .dim = dim,
                                   .heads = heads,
                                   .kv_heads = (int)wg_json_int(m, "kv_heads"),
                                   .head_dim = (int)wg_json_int(m, "head_dim"),
                                   .hidden = (int)wg_json_int(m, "hidden"),
                                   .context = (int)wg_json_int(m, "context"),
                                   .tied = json_is_true(json_object_get(m, "tied")),
                                   .rope_base = wg_json_real(m, "rope_base"),
                                   .eps = wg_json_real(m, "eps") };
    if (shape.kv_heads < 1 || shape.head_dim < 1 || shape.hidden < 1 || shape.context < 2) return false;
    wg_train_arch(&s->arch, &shape, wg_tokenizer_size(s->tokenizer),
                  wg_json_word(json_object_get(f->config, "output"), "name"));
    return true;
}

static wg_status open_source(const file *f, source *s, wg_error *err)
{
    const json_t *m = json_object_get(f->config, "model");
    const char *init = wg_json_word(m, "init"), *tokenizer = wg_json_word(m, "tokenizer");
    if (*init) {
        WG_TRY(wg_weights_open(&s->init, init, err));
        WG_TRY(wg_model_check(s->init, &(wg_model_options){ 0 }, &s->arch, err));
    }
    if (*tokenizer) WG_TRY(wg_tokenizer_file_open(&s->tokens, tokenizer, err));
    else s->tokens = s->init;
    if (!s->tokens) return damaged(f, err);
    WG_TRY(wg_tokenizer_open(&s->tokenizer, s->tokens, err));
    return s->init || shape_of(f, s) ? WG_OK : damaged(f, err);
}

/* Copies the weights, which precede the optimiser's state, tensor by tensor. */
static wg_status take(const file *f, wg_net *net, wg_error *err)
{
    size_t at = 0;
    for (int i = 0; i < wg_net_tensors(net); i++) {
        const wg_net_tensor *t = wg_net_tensor_at(net, i);
        const size_t n = (size_t)t->rows * (size_t)t->columns;
        if (n > f->floats - at)
            return wg_fail(
                err, WG_EFORMAT,
                "%s: has %zu numbers, which the model of its config does not fit; is its tokenizer still the one that it "
                "was trained with?",
                f->path, f->floats);
        memcpy((float *)wg_net_weights(net) + t->at, f->numbers + 4 * at, 4 * n);
        at += n;
    }
    return WG_OK;
}

static wg_status write_model(const file *f, const source *s, const char *out, wg_error *err)
{
    wg_pool *pool = NULL;
    wg_net *net = NULL;
    wg_status st = wg_pool_open(&pool, 1, err);
    if (st == WG_OK) st = wg_net_open(&net, wg_ops_f32(), &s->arch, 1, 2, pool, err);
    if (st == WG_OK) st = take(f, net, err);
    if (st == WG_OK)
        st = wg_net_write(net, out, wg_json_word(json_object_get(f->config, "output"), "name"), s->tokens, WG_F32, err);
    wg_net_close(net);
    wg_pool_close(pool);
    return st;
}

wg_status wg_checkpoint_model(const char *checkpoint, const char *out, wg_error *err)
{
    file f = { .path = checkpoint };
    source s = { 0 };
    wg_status st = read_file(&f, err);
    if (st == WG_OK) st = open_source(&f, &s, err);
    if (st == WG_OK) st = write_model(&f, &s, out, err);
    wg_tokenizer_close(s.tokenizer);
    if (s.tokens != s.init) wg_weights_close(s.tokens);
    wg_weights_close(s.init);
    json_decref(f.config);
    wg_free(f.bytes);
    return st;
}
