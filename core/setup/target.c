/* SPDX-License-Identifier: MIT
 * Opening a target: its members in the order of their dependencies. */
#include "core/setup/target.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/file/quantize.h"
#include "core/file/tokenizer_file.h"
#include "core/model/external/llamacpp.h"
#include "core/model/external/process_target.h"
#include "core/model/split.h"
#include "core/setup/spec.h"
#include "core/setup/target_ranks.h"

const char *const wg_target_kinds[] = { "model", "process", "llamacpp", NULL };

static const wg_target_options defaults = { .model = { .kv_type = WG_F16 } };

/* The tokenizer is optional unless `needed`: synthetic models for timing have none. */
static wg_status open_tokenizer(wg_tokenizer **out, const wg_weights *w, bool needed, wg_error *err)
{
    wg_text kind;
    if (wg_meta_string(w, "tokenizer.ggml.model", &kind)) return wg_tokenizer_open(out, w, err);
    if (!needed) return WG_OK;
    WG_TRY(wg_model_check_alone(w, err));
    if (strncmp(wg_weights_format(w), "safetensors", 11) == 0)
        return wg_fail(err, WG_EMODEL,
                       "%s: no tokenizer in this folder; copy the model's tokenizer.json or tokenizer.model into it",
                       wg_weights_path(w));
    return wg_fail(err, WG_EMODEL,
                   "%s: no tokenizer in this file (key tokenizer.ggml.model); "
                   "add one with: wager convert IN --tokenizer FILE --out OUT.gguf",
                   wg_weights_path(w));
}

static wg_status open_process(wg_target *t, const wg_target_options *opt, wg_error *err)
{
    const wg_target_external *x = &opt->external;
    const wg_process_target o = { .command = x->command,
                                  .timeout_ms = x->timeout_ms,
                                  .start_ms = x->start_ms,
                                  .sequences = x->sequences,
                                  .context = opt->model.context };
    return wg_process_target_open(&t->lm, &o, err);
}

static wg_status open_llamacpp(wg_target *t, const wg_target_options *opt, wg_error *err)
{
    const wg_llamacpp_target o = { .library = opt->external.library,
                                   .model = t->path,
                                   .threads = opt->threads,
                                   .sequences = opt->external.sequences,
                                   .context = opt->model.context };
    return wg_llamacpp_open(&t->lm, &o, err);
}

/* Opens an external model and checks that it knows every token of the tokenizer. */
static wg_status open_external(wg_target *t, const wg_target_options *opt, wg_error *err)
{
    WG_TRY(opt->external.kind == WG_TARGET_PROCESS ? open_process(t, opt, err) : open_llamacpp(t, opt, err));
    const int tokens = t->tokenizer ? wg_tokenizer_size(t->tokenizer) : 0;
    if (tokens <= t->lm->vocab) return WG_OK;
    return wg_fail(err, WG_EVOCAB,
                   "%s: its tokenizer has %d tokens, the external model a vocabulary of %d; name the file of that model",
                   t->path, tokens, t->lm->vocab);
}

static wg_status open_parts(wg_target *t, const wg_target_options *opt, wg_error *err)
{
    wg_comm_spec where;
    const bool external = opt->external.kind != WG_TARGET_MODEL;
    WG_TRY(wg_target_ranks(opt, &where, err));
    WG_TRY(wg_pool_open(&t->pool, opt->threads == 0 && where.ranks > 1 ? 1 : opt->threads, err));
    WG_TRY(external ? wg_tokenizer_file_open(&t->weights, t->path, err)
                    : wg_quantize_open_file(&t->weights, t->path, opt->quantize, t->pool, err));
    WG_TRY(open_tokenizer(&t->tokenizer, t->weights, opt->need_tokenizer, err));
    if (opt->pin) WG_TRY(wg_pool_pin(t->pool, err));
    WG_TRY(wg_device_open(&t->device, opt->device ? opt->device : "cpu", t->pool, err));
    t->ops = t->device.ops;
    if (external) return open_external(t, opt, err);
    if (where.ranks > 1) WG_TRY(wg_target_open_ranked(t, opt, &where, err));
    else WG_TRY(wg_model_open(&t->model, t->weights, &t->device, &opt->model, err));
    t->lm = wg_model_lm(t->model);
    return WG_OK;
}

wg_status wg_target_open(wg_target **out, const char *path, const wg_target_options *opt, wg_error *err)
{
    wg_target *t = wg_calloc(1, sizeof *t);
    if (!t) return wg_nomem(err, sizeof *t, "a target");
    t->path = wg_strdup(path);
    wg_status s = t->path ? open_parts(t, opt ? opt : &defaults, err) : wg_nomem(err, 1, "a path");
    if (s == WG_OK) *out = t;
    else wg_target_close(t);
    return s;
}

void wg_target_close(wg_target *t)
{
    if (!t) return;
    if (t->lm && !t->model) t->lm->class->close(t->lm);
    wg_model_close(t->model);
    wg_target_close_ranked(t);
    wg_device_close(&t->device);
    wg_tokenizer_close(t->tokenizer);
    wg_weights_close(t->weights);
    wg_pool_close(t->pool);
    wg_free(t->path);
    wg_free(t);
}

wg_engine_parts wg_target_engine_parts(const wg_target *t)
{
    return (wg_engine_parts){ .target = t->lm,
                              .pool = t->pool,
                              .ops = t->ops,
                              .tokenizer = t->tokenizer,
                              .target_name = t->path,
                              .rules = wg_program_plugins.verifiers,
                              .plugins = &wg_program_plugins };
}

static wg_status check_tokenizer(const wg_weights *w, bool needed, wg_error *err)
{
    wg_tokenizer *t = NULL;
    const wg_status s = open_tokenizer(&t, w, needed, err);
    wg_tokenizer_close(t);
    return s;
}

wg_status wg_target_check(const wg_weights *w, wg_tokenizer_check tokenizer, wg_error *err)
{
    wg_arch a;
    wg_model_options opt = defaults.model;
    WG_TRY(wg_arch_read(w, &a, err));
    if (a.window && a.window < a.context) opt.context = a.window;
    WG_TRY(wg_model_check(w, &opt, &a, err));
    return tokenizer == WG_TOKENIZER_UNREAD ? WG_OK : check_tokenizer(w, tokenizer == WG_TOKENIZER_NEEDED, err);
}

wg_status wg_target_probe(const char *path, const wg_target_options *opt, wg_arch *out, wg_error *err)
{
    wg_weights *w;
    if (!opt) opt = &defaults;
    WG_TRY(wg_quantize_open_file(&w, path, opt->quantize, NULL, err));
    wg_status s = WG_OK;
    wg_rank_part part;
    wg_comm_spec where;
    if (opt->external.kind == WG_TARGET_MODEL) s = wg_model_check(w, &opt->model, out, err);
    else *out = (wg_arch){ .context = opt->model.context ? opt->model.context : 1 << 24 };
    const bool ranked =
        (opt->tensor > 1 || opt->pipeline > 1 || (opt->ranks && *opt->ranks)) && opt->external.kind == WG_TARGET_MODEL;
    if (!s && ranked) s = wg_target_ranks(opt, &where, err);
    if (!s && ranked) s = wg_rank_part_of(&part, out, out->vocab, 0, where.ranks, where.pipeline, err);
    if (!s) s = check_tokenizer(w, opt->need_tokenizer, err);
    wg_weights_close(w);
    return s;
}

int wg_target_held(const wg_arch *a, int n)
{
    bool all = a->window > 0 && !a->window_unknown;
    for (int i = 0; i < a->layers && all; i++) all = wg_arch_windowed(a, i);
    const int most = all ? wg_kv_window_slots(a->window, WG_ENGINE_PREFILL_ROWS, WG_ENGINE_PAGE_SLOTS) : n;
    return most < n ? most : n;
}
