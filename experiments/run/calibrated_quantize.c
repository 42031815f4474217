/* SPDX-License-Identifier: MIT
 * Calibrated quantisation (calibrated_quantize.h). */
#include "experiments/run/calibrated_quantize.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/model/model.h"
#include "draft/train/trainer.h"

enum { LENGTH = 512 }; /* most tokens of a window */

struct wg_calibrated {
    wg_gptq q;
    wg_prune prune; /* for layers' matrices; q.prune is the present matrix's */
    wg_pool *pool;
    wg_tokenizer *tokenizer;
    wg_tokens *tokens;
    wg_net *net;
    wg_calibration *inputs; /* NULL: plain rounding */
};

static wg_status check(wg_calibrated *c, int type, const wg_calibrated_options *o, wg_error *err)
{
    if (!wg_gptq_can(type))
        return wg_fail(err, WG_EINVAL, "%s cannot be calibrated, nor have fewer bits: expected " WG_GPTQ_TYPES,
                       wg_type_name(type));
    const int most = wg_gptq_bits(type);
    c->q = (wg_gptq){ .type = type, .bits = o->bits ? o->bits : most, .damp = o->damp };
    c->prune = o->prune;
    if (type == WG_Q8_2OF4 && wg_prune_any(&o->prune) && (o->prune.keep != 2 || o->prune.of != 4))
        return wg_fail(err, WG_EINVAL, "q8_2of4 keeps 2 of every 4 weights: leave the pruning out, or expected 2:4");
    if (c->q.bits >= WG_GPTQ_BITS && c->q.bits <= most) return WG_OK;
    return wg_fail(err, WG_EINVAL, "%d bits do not fit %s: expected %d to %d", c->q.bits, wg_type_name(type), (int)WG_GPTQ_BITS,
                   most);
}

static wg_status open_text(wg_calibrated *c, const wg_calibrated_options *o, wg_error *err)
{
    char digest[WG_SHA256_HEX];
    const size_t n = strlen(o->text);
    wg_tokenizer_digest(c->tokenizer, digest);
    if (n > 7 && strcmp(o->text + n - 7, ".tokens") == 0) return wg_tokens_open(&c->tokens, o->text, digest, err);
    wg_corpus corpus = { .path = o->text };
    WG_TRY(wg_corpus_write(&corpus, c->tokenizer, o->scratch, NULL, err));
    const wg_status s = wg_tokens_open(&c->tokens, o->scratch, digest, err);
    unlink(o->scratch); /* the mapping stays valid */
    return s;
}

static wg_status run_text(wg_calibrated *c, const wg_weights *w, const wg_calibrated_options *o, wg_error *err)
{
    wg_arch arch;
    WG_TRY(wg_model_check(w, &(wg_model_options){ 0 }, &arch, err));
    WG_TRY(wg_net_check(&arch, wg_weights_path(w), err));
    const int length = arch.context < LENGTH ? arch.context : LENGTH;
    WG_TRY(wg_tokenizer_open(&c->tokenizer, w, err));
    WG_TRY(open_text(c, o, err));
    WG_TRY(wg_net_open(&c->net, wg_ops_f32(), &arch, 1, length, c->pool, err));
    WG_TRY(wg_net_read(c->net, w, err));
    return wg_calibration_open(&c->inputs, c->net, c->tokens, length, o->windows, c->pool, err);
}

wg_status wg_calibrated_open(wg_calibrated **out, const wg_weights *w, int type, const wg_calibrated_options *o, wg_pool *pool,
                             wg_error *err)
{
    wg_calibrated *c = wg_calloc(1, sizeof *c);
    if (!c) return wg_nomem(err, sizeof *c, "a calibration");
    c->pool = pool;
    wg_status s = check(c, type, o, err);
    if (s == WG_OK && o->text) s = run_text(c, w, o, err);
    wg_tokenizer_close(c->tokenizer);
    c->tokenizer = NULL;
    if (s) wg_calibrated_close(c);
    else *out = c;
    return s;
}

void wg_calibrated_close(wg_calibrated *c)
{
    if (!c) return;
    wg_calibration_close(c->inputs);
    wg_net_close(c->net);
    wg_tokens_close(c->tokens);
    wg_tokenizer_close(c->tokenizer);
    wg_free(c);
}

long wg_calibrated_tokens(const wg_calibrated *c) { return c->inputs ? wg_calibration_rows(c->inputs) : 0; }

/* Rounds rows without calibrated inputs. */
static wg_status round_rows(const wg_calibrated *c, const wg_tensor *from, const wg_tensor *to, char *dst, wg_error *err)
{
    const size_t k = (size_t)to->dim[0], in = wg_type_size(wg_type_get(from->type), k);
    const size_t bytes = wg_type_size(wg_type_get(to->type), k), rows = to->bytes / bytes;
    float *row = wg_alloc(k, sizeof *row);
    double *room = wg_alloc(k, sizeof *room), sum = 0;
    for (size_t r = 0; row && room && r < rows; r++) {
        const int failed = wg_row_to_f32(from->type, (const char *)from->data + r * in, row, k);
        wg_assert(!failed); /* the view checked the type */
        for (size_t i = 0; i < k; i++) sum += (double)row[i] * 0;
        wg_gptq_row(&c->q, row, (int)k, NULL, room, dst + r * bytes);
    }
    const bool ok = row && room;
    wg_free(row);
    wg_free(room);
    if (!ok) return wg_nomem(err, k * (sizeof *row + sizeof *room), "a row");
    return sum == 0 ? WG_OK : wg_fail(err, WG_EMODEL, "tensor '%s' holds NaN or infinity", from->name);
}

static int tensor_of(const wg_net *n, const char *name)
{
    for (int i = 0; i < wg_net_tensors(n); i++)
        if (strcmp(wg_net_tensor_at(n, i)->name, name) == 0) return i;
    return -1;
}

wg_status wg_calibrated_make(void *user, const wg_tensor *from, const wg_tensor *to, void *dst, wg_quantize_result *r,
                             bool *made, wg_error *err)
{
    wg_calibrated *c = user;
    wg_gptq_loss loss[2];
    if (to->type != c->q.type) return WG_OK;
    c->q.prune = strncmp(to->name, "blk.", 4) == 0 ? c->prune : (wg_prune){ 0 };
    if (to->type == WG_Q8_2OF4) c->q.prune = (wg_prune){ .keep = 2, .of = 4 };
    const int i = c->inputs ? tensor_of(c->net, to->name) : -1;
    if (i >= 0 && wg_calibration_has(c->inputs, i)) {
        WG_TRY(wg_calibration_quantize(c->inputs, i, &c->q, dst, loss, err));
        r->lost = loss[0].whole > 0 ? loss[0].error / loss[0].whole : 0;
        r->lost_rounded = loss[1].whole > 0 ? loss[1].error / loss[1].whole : 0;
    } else {
        WG_TRY(round_rows(c, from, to, dst, err));
    }
    *made = true;
    return WG_OK;
}
