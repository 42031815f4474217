/* SPDX-License-Identifier: MIT
 * wager quantize: converts a model to a GGUF file of smaller weights and prints the error of each tensor. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/clock.h"
#include "core/base/pool.h"
#include "core/base/save.h"
#include "core/file/convert.h"
#include "core/file/quantize.h"
#include "core/setup/target.h"
#include "experiments/cli/cli.h"
#include "experiments/cli/commands.h"
#include "experiments/run/calibrated_quantize.h"

typedef struct request {
    const char *in, *out, *type, *prune;
    const char *calibrate;
    wg_flag_list keep;
    long threads, windows, bits;
    double damp;
    bool json, verbose;
} request;

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

static wg_status write(const request *r, wg_quantize *q, wg_pool *pool, size_t *bytes, wg_error *err)
{
    char scratch[4096];
    wg_weights *w;
    wg_calibrated *by = NULL;
    WG_TRY(wg_weights_open(&w, r->in, err));
    snprintf(scratch, sizeof scratch, "%s.tokens", r->out);
    const wg_calibrated_options o = { .text = r->calibrate,
                                      .scratch = scratch,
                                      .windows = (int)r->windows,
                                      .bits = (int)r->bits,
                                      .damp = r->damp,
                                      .prune = q->prune };
    if (r->calibrate || r->bits) {
        const wg_status s = wg_calibrated_open(&by, w, q->type, &o, pool, err);
        if (s) {
            wg_weights_close(w);
            return s;
        }
        q->by = wg_calibrated_make, q->user = by;
    }
    wg_status s = wg_quantize_open(&w, w, q, pool, err);
    if (s == WG_OK) {
        s = convert(r, w, bytes, err);
        wg_weights_close(w);
    }
    wg_calibrated_close(by);
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
    if (!r.type) {
        fputs("wager quantize: --type is missing: " WG_WRITABLE_TYPES "\n", stderr);
        return WG_EXIT_USAGE;
    }
    if (wg_cli_is_input("quantize", r.in, r.out)) return WG_EXIT_USAGE;
    wg_error err;
    wg_quantize q;
    wg_pool *pool;
    size_t bytes = 0;
    if (parse(&r, &q, &err)) return wg_cli_fail(&err);
    if (wg_save_check(r.out, &err) || wg_pool_open(&pool, (int)r.threads, &err)) return wg_cli_fail(&err);
    const double begin = wg_clock_now();
    const wg_status s = write(&r, &q, pool, &bytes, &err);
    const double seconds = wg_clock_now() - begin;
    const int threads = wg_pool_threads(pool);
    wg_pool_close(pool);
    if (s) return wg_cli_fail(&err);
    if (r.json) printf("{\"seconds\":%.6f,\"threads\":%d,\"weight_bytes\":%zu}\n", seconds, threads, bytes);
    else printf("wrote %s: %.3f GB of weights\n", r.out, (double)bytes / 1e9);
    return WG_EXIT_OK;
}
