/* SPDX-License-Identifier: MIT
 * wager quantize: converts a model to a GGUF file of smaller weights and prints the error of each tensor. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "core/base/pool.h"
#include "core/base/save.h"
#include "core/file/convert.h"
#include "core/file/quantize.h"
#include "core/model/model.h"
#include "core/setup/target.h"
#include "draft/train/gptq.h"
#include "draft/train/trainer.h"
#include "experiments/cli/cli.h"

typedef struct request {
    const char *in, *out, *type, *prune;
    const char *calibrate;
    wg_flag_list keep;
    long threads, windows, bits;
    double damp;
    bool json, verbose;
} request;

/* ---- --calibrate and --bits: matrices of a view of quantised weights, made by GPTQ (draft/train/gptq.h) over a text, or
 * rounded to fewer codes than their type has */

typedef struct calibration_options {
    const char *text;    /* a text file, a folder of them or a token file (docs/training.md); NULL: plain rounding */
    const char *scratch; /* path of a temporary token file of the text */
    int windows;         /* windows of the text, each as long as the context, at most 512 tokens */
    int bits;            /* of a weight; 0: the type's */
    double damp;
    wg_prune prune; /* of layers' matrices */
} calibration_options;

enum { LENGTH = 512 }; /* most tokens of a window */

typedef struct calibrated {
    wg_gptq q;
    wg_prune prune; /* for layers' matrices; q.prune is the present matrix's */
    wg_pool *pool;
    wg_tokenizer *tokenizer;
    wg_tokens *tokens;
    wg_net *net;
    wg_calibration *inputs; /* NULL: plain rounding */
} calibrated;

static wg_status check_type(calibrated *c, int type, const calibration_options *o, wg_error *err)
{
    if (!wg_gptq_can(type))
        return wg_fail(err, WG_EINVAL, "%s cannot be calibrated, nor have fewer bits: expected " WG_GPTQ_TYPES,
                       wg_type_name(type));
    const int most = wg_gptq_bits(type);
    c->q = (wg_gptq){ .type = type, .bits = o->bits ? o->bits : most, .damp = o->damp };
    c->prune = o->prune;
    if (type == WG_Q8_2OF4 && wg_prune_any(&o->prune) && (o->prune.keep != 2 || o->prune.of != 4))
        return wg_fail(err, WG_EINVAL, "q8_2of4 keeps 2 of every 4 weights: leave the pruning out, or give 2:4");
    if (c->q.bits >= WG_GPTQ_BITS && c->q.bits <= most) return WG_OK;
    return wg_fail(err, WG_EINVAL, "%d bits do not fit %s: expected %d to %d", c->q.bits, wg_type_name(type), (int)WG_GPTQ_BITS,
                   most);
}

static wg_status open_text(calibrated *c, const calibration_options *o, wg_error *err)
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

static wg_status run_text(calibrated *c, const wg_weights *w, const calibration_options *o, wg_error *err)
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

static void calibrated_close(calibrated *c)
{
    if (!c) return;
    wg_calibration_close(c->inputs);
    wg_net_close(c->net);
    wg_tokens_close(c->tokens);
    wg_tokenizer_close(c->tokenizer);
    wg_free(c);
}

/* Opens the maker; with a text it loads the model for training (families of wg_net_check) and runs the text. w and pool are
 * borrowed until close. type: that of most matrices. Errors: EINVAL (a type or bits that cannot be had, a text that is too
 * short), EUNSUPPORTED, EMODEL, those of files, ENOMEM. */
static wg_status calibrated_open(calibrated **out, const wg_weights *w, int type, const calibration_options *o, wg_pool *pool,
                                 wg_error *err)
{
    calibrated *c = wg_calloc(1, sizeof *c);
    if (!c) return wg_nomem(err, sizeof *c, "a calibration");
    c->pool = pool;
    wg_status s = check_type(c, type, o, err);
    if (s == WG_OK && o->text) s = run_text(c, w, o, err);
    wg_tokenizer_close(c->tokenizer);
    c->tokenizer = NULL;
    if (s) calibrated_close(c);
    else *out = c;
    return s;
}

/* Without inputs: each row by itself. */
static wg_status round_rows(const calibrated *c, const wg_tensor *from, const wg_tensor *to, char *dst, wg_error *err)
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

/* The view's maker (wg_quantize.by), with the calibrated as `user`. It makes matrices of that type; the view makes the
 * others. */
static wg_status make_calibrated(void *user, const wg_tensor *from, const wg_tensor *to, void *dst, wg_quantize_result *r,
                                 bool *made, wg_error *err)
{
    calibrated *c = user;
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

/* ---- the command */

/* Prints a line for a tensor. */
static void print_tensor(void *user, const wg_quantize_result *r)
{
    const request *q = user;
    const bool same = r->stayed;
    if (q->json) {
        json_t *o = json_pack("{s:s, s:s, s:s, s:I}", "tensor", r->name, "from", wg_type_name(r->from), "to",
                              wg_type_name(r->to), "elements", (json_int_t)r->elements);
        if (!same) {
            json_object_set_new(o, "rms", json_real(r->rms));
            json_object_set_new(o, "rms_error", json_real(r->error));
            json_object_set_new(o, "relative_error", json_real(r->rms > 0 ? r->error / r->rms : 0));
        }
        if (r->lost > 0) {
            json_object_set_new(o, "output_error", json_real(sqrt(r->lost)));
            json_object_set_new(o, "output_error_rounded", json_real(sqrt(r->lost_rounded)));
        }
        wg_json_put_line(o, 0);
    } else if (same) {
        printf("%-32s %-8s stays\n", r->name, wg_type_name(r->from));
    } else {
        printf("%-32s %-8s to %-8s relative error %.5f", r->name, wg_type_name(r->from), wg_type_name(r->to),
               r->rms > 0 ? r->error / r->rms : 0);
        if (r->lost > 0) printf("; of outputs %.5f, rounded %.5f", sqrt(r->lost), sqrt(r->lost_rounded));
        putchar('\n');
    }
}

static wg_status parse(const request *r, wg_quantize *q, wg_error *err)
{
    WG_TRY(wg_quantize_parse(q, r->type, err));
    if (r->prune && wg_prune_parse(&q->prune, r->prune, strlen(r->prune), err)) return wg_fail_in(err, WG_EINVAL, "--prune");
    for (int i = 0; i < r->keep.n; i++)
        if (wg_quantize_keep(q, r->keep.item[i], err)) return wg_fail_in(err, WG_EINVAL, "--keep");
    return WG_OK;
}

/* Converts to r->out, after a check that the result could run. */
static wg_status convert(const request *r, wg_weights *w, size_t *bytes, wg_error *err)
{
    for (int i = 0; i < wg_weights_count(w); i++) *bytes += wg_weights_at(w, i)->bytes;
    if (r->json || r->verbose) wg_quantize_report(w, print_tensor, (void *)(uintptr_t)r);
    WG_TRY(wg_target_check(w, WG_TOKENIZER_IF_THERE, err));
    return wg_convert_weights(w, NULL, r->out, err);
}

static wg_status write_file(const request *r, wg_quantize *q, wg_pool *pool, size_t *bytes, wg_error *err)
{
    char scratch[4096];
    wg_weights *w;
    calibrated *by = NULL;
    WG_TRY(wg_weights_open(&w, r->in, err));
    snprintf(scratch, sizeof scratch, "%s.tokens", r->out);
    const calibration_options o = { .text = r->calibrate,
                                    .scratch = scratch,
                                    .windows = (int)r->windows,
                                    .bits = (int)r->bits,
                                    .damp = r->damp,
                                    .prune = q->prune };
    if (r->calibrate || r->bits) {
        const wg_status s = calibrated_open(&by, w, q->type, &o, pool, err);
        if (s) {
            wg_weights_close(w);
            return s;
        }
        q->by = make_calibrated, q->user = by;
    }
    wg_status s = wg_quantize_open(&w, w, q, pool, err);
    if (s == WG_OK) {
        s = convert(r, w, bytes, err);
        wg_weights_close(w);
    }
    calibrated_close(by);
    return s;
}

int wg_cmd_quantize(int argc, char **argv)
{
    request r = { .windows = 128, .damp = 0.01 };
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL, &r.in, "the model to quantize, a file or a folder"),
        { "type", 0, WG_FLAG_STRING, &r.type, "TYPE", WG_WRITABLE_TYPES " (needed)", 0, 0 },
        { "keep", 0, WG_FLAG_LIST, &r.keep, "PATTERN=TYPE",
          "another type for matrices whose names match, such as output.weight=f16", 0, 0 },
        { "prune", 0, WG_FLAG_STRING, &r.prune, "SPEC", "prune the layers before: " WG_PRUNE_DOC, 0, 0 },
        { "calibrate", 0, WG_FLAG_STRING, &r.calibrate, "TEXT",
          "a text file, a folder or a token file: GPTQ, which keeps outputs over this text (" WG_GPTQ_TYPES ")", 0, 0 },
        { "windows", 0, WG_FLAG_INT, &r.windows, "N", "number of windows of that text, each of up to 512 tokens", 1, 1 << 20 },
        { "damp", 0, WG_FLAG_FLOAT, &r.damp, "X", "dampening of GPTQ: added to the inputs' squares, as a share of their mean",
          0, 10 },
        { "bits", 0, WG_FLAG_INT, &r.bits, "N",
          "use 2^N codes of the type only, such as 2 or 3 bits of q4_0, for experiments; 0: all", 0, 8 },
        { "threads", 0, WG_FLAG_INT, &r.threads, "N", "number of threads; 0: all cores", 0, 256 },
        { "verbose", 'v', WG_FLAG_BOOL, &r.verbose, NULL, "print a line for each tensor: its types and its rounding error", 0,
          0 },
        { "json", 0, WG_FLAG_BOOL, &r.json, NULL, "print a JSON object for each tensor, then one for the model", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("quantize", flags, argc, argv, &r.out, 1, 1);
    if (done >= 0) return done;
    if (!r.type) return wg_cli_refuse("quantize", "--type is missing: " WG_WRITABLE_TYPES);
    if (wg_cli_is_input("quantize", "model", &r.in, 1, r.out)) return WG_EXIT_USAGE;
    wg_error err;
    wg_quantize q;
    wg_pool *pool;
    size_t bytes = 0;
    if (parse(&r, &q, &err)) return wg_cli_fail(&err);
    if (wg_save_check(r.out, &err) || wg_pool_open(&pool, (int)r.threads, &err)) return wg_cli_fail(&err);
    const double begin = wg_clock_now();
    const wg_status s = write_file(&r, &q, pool, &bytes, &err);
    const double seconds = wg_clock_now() - begin;
    const int threads = wg_pool_threads(pool);
    wg_pool_close(pool);
    if (s) return wg_cli_fail(&err);
    if (r.json) printf("{\"seconds\":%.6f,\"threads\":%d,\"weight_bytes\":%zu}\n", seconds, threads, bytes);
    else printf("wrote %s: %.3f GB of weights\n", r.out, (double)bytes / 1e9);
    return WG_EXIT_OK;
}
