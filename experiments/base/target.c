/* SPDX-License-Identifier: MIT
 * Opening a target: its members in the order of their dependencies. */
#include "experiments/base/target.h"

#include "core/base/mem.h"
#include "experiments/base/spec.h"

/* The tokenizer is optional unless `needed`: synthetic models for timing have none. */
static wg_status open_tokenizer(wg_target *t, bool needed, wg_error *err)
{
    wg_text kind;
    if (wg_meta_string(t->weights, "tokenizer.ggml.model", &kind)) return wg_tokenizer_open(&t->tokenizer, t->weights, err);
    if (!needed) return WG_OK;
    return wg_fail(err, WG_EMODEL,
                   "%s: no tokenizer in this file (key tokenizer.ggml.model); "
                   "add one with: wager convert IN --tokenizer FILE --out OUT.gguf",
                   t->path);
}

static wg_status open_parts(wg_target *t, const wg_target_options *opt, wg_error *err)
{
    WG_TRY(wg_weights_open(&t->weights, t->path, err));
    WG_TRY(open_tokenizer(t, opt->need_tokenizer, err));
    WG_TRY(wg_pool_open(&t->pool, opt->threads, err));
    if (opt->pin) WG_TRY(wg_pool_pin(t->pool, err));
    WG_TRY(wg_device_open(&t->device, opt->device ? opt->device : "cpu", t->pool, err));
    t->ops = t->device.ops;
    WG_TRY(wg_model_open(&t->model, t->weights, &t->device, &opt->model, err));
    t->lm = wg_model_lm(t->model);
    return WG_OK;
}

wg_status wg_target_open(wg_target **out, const char *path, const wg_target_options *opt, wg_error *err)
{
    static const wg_target_options defaults = { .model = { .kv_type = WG_F16 } };
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
    wg_model_close(t->model);
    wg_device_close(&t->device);
    wg_pool_close(t->pool);
    wg_tokenizer_close(t->tokenizer);
    wg_weights_close(t->weights);
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

wg_status wg_target_probe(const char *path, wg_arch *out, wg_error *err)
{
    wg_weights *w;
    WG_TRY(wg_weights_open(&w, path, err));
    const wg_status s = wg_arch_read(w, out, err);
    wg_weights_close(w);
    return s;
}
