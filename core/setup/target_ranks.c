/* SPDX-License-Identifier: MIT
 * The ranks of a target (target_ranks.h). */
#include "core/setup/target_ranks.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/file/quantize.h"

/* What ranks cannot share. */
static wg_status check_shared(const wg_target_options *opt, const wg_comm_spec *where, wg_error *err)
{
    const int ranks = where->ranks;
    if (opt->external.kind != WG_TARGET_MODEL)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%d ranks of a target of kind %s: wager does not compute it; expected one rank, or kind model", ranks,
                       wg_target_kinds[opt->external.kind]);
    if (opt->device && strcmp(opt->device, "cpu") != 0)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%d ranks on the device %s: expected the device cpu, the only one that ranks share", ranks, opt->device);
    if (opt->pin && where->kind == WG_COMM_THREADS)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "pin: the threads of %d ranks of one process would be bound to the same processors; leave pin out, or "
                       "start the ranks by mpirun, which gives each its own",
                       ranks);
    return WG_OK;
}

wg_status wg_target_ranks(const wg_target_options *opt, wg_comm_spec *out, wg_error *err)
{
    const int mpi = wg_comm_mpi_open() ? wg_comm_mpi_open()->ranks : 0, started = wg_comm_mpi_started();
    const bool named = opt->ranks && *opt->ranks;
    const int pipeline = opt->pipeline ? opt->pipeline : 1, ranks = (opt->tensor ? opt->tensor : 1) * pipeline;
    *out = (wg_comm_spec){ .kind = ranks > 1 ? WG_COMM_THREADS : WG_COMM_SELF, .ranks = ranks, .pipeline = pipeline };
    if (ranks > WG_RANKS_MOST)
        return wg_fail(err, WG_EINVAL, "tensor = %d in a pipeline of %d: %d ranks; expected at most %d", opt->tensor, pipeline,
                       ranks, (int)WG_RANKS_MOST);
    if (named) WG_TRY(wg_comm_parse(out, opt->ranks, err));
    else if (mpi) out->kind = WG_COMM_MPI;
    if (out->kind == WG_COMM_MPI && !mpi && !started)
        return wg_fail(err, WG_EINVAL,
                       "ranks mpi: this process was not started beside others; expected mpirun -n N before the command, or "
                       "ranks threads:N");
    const int there = mpi ? mpi : started;
    if (out->kind == WG_COMM_MPI && out->ranks && named && out->ranks != there)
        return wg_fail(err, WG_EINVAL, "ranks %s: mpirun started %d processes; expected %d", opt->ranks, there, out->ranks);
    if (out->kind == WG_COMM_MPI) out->ranks = there;
    else if (mpi)
        return wg_fail(err, WG_EINVAL,
                       "ranks %s: mpirun started %d processes, which would wait in vain; leave ranks out, or mpirun",
                       opt->ranks, mpi);
    if (opt->pipeline && named && opt->pipeline != out->pipeline)
        return wg_fail(err, WG_EINVAL, "pipeline = %d, but ranks %s are %d stages; expected as many", opt->pipeline, opt->ranks,
                       out->pipeline);
    if (opt->tensor && opt->tensor * out->pipeline != out->ranks)
        return wg_fail(err, WG_EINVAL, "tensor = %d, but the ranks are %d (%s)%s; expected as many", opt->tensor, out->ranks,
                       named ? opt->ranks : "mpirun -n", out->pipeline > 1 ? " in a pipeline" : "");
    return out->ranks > 1 ? check_shared(opt, out, err) : WG_OK;
}

/* What rank 0 tells the others of a target; behind it the path and the text of quantize, each with its NUL. */
typedef struct target_order {
    int32_t kv_type, max_rows, context, threads;
    int32_t allow_nan, pin;
} target_order;

/* A rank's members, in the order of their opening. */
typedef struct held {
    wg_pool *pool;
    wg_weights *weights;
    wg_device device;
} held;

static void close_held(void *at)
{
    held *h = at;
    if (!h) return;
    wg_device_close(&h->device);
    wg_weights_close(h->weights);
    wg_pool_close(h->pool);
    wg_free(h);
}

static wg_status open_parts(held *h, const target_order *o, const wg_model_ranks *in, wg_model **out, wg_error *err)
{
    const wg_model_options opt = {
        .kv_type = o->kv_type, .max_rows = o->max_rows, .context = o->context, .allow_nan = o->allow_nan, .ranks = *in
    };
    const char *path = (const char *)(o + 1), *quantize = path + strlen(path) + 1;
    WG_TRY(wg_pool_open(&h->pool, o->threads, err));
    if (o->pin) WG_TRY(wg_pool_pin(h->pool, err));
    WG_TRY(wg_quantize_open_file(&h->weights, path, quantize, h->pool, err));
    WG_TRY(wg_device_cpu(&h->device, h->pool, err));
    return wg_model_open(out, h->weights, &h->device, &opt, err);
}

static wg_status open_rank(void *user, const void *what, size_t bytes, const wg_model_ranks *in, wg_model **out, void **at,
                           wg_error *err)
{
    (void)user;
    wg_assert(bytes > sizeof(target_order));
    held *h = wg_calloc(1, sizeof *h);
    if (!h) return wg_nomem(err, sizeof *h, "a rank");
    const wg_status s = open_parts(h, what, in, out, err);
    if (s) close_held(h);
    else *at = h;
    return s;
}

const wg_rank_opener wg_target_rank_opener = { .open = open_rank, .close = close_held };

/* Rank 0 of a program that has not started MPI itself; wg_target_close ends it. */
static wg_status start_mpi(wg_target *t, wg_error *err)
{
    wg_comm *c;
    if (wg_comm_mpi_open()) return WG_OK;
    if (wg_comm_mpi_rank())
        return wg_fail(err, WG_EINVAL,
                       "ranks mpi: rank %d would decide, too; expected `wager serve` on all ranks, of which rank 0 starts "
                       "wager-serve, or --ranks mpi among the arguments of `wager run`",
                       wg_comm_mpi_rank());
    WG_TRY(wg_comm_mpi(&c, err));
    t->starts_mpi = true;
    return wg_ranks_meet(c, WG_RANKS_SESSION, err);
}

void wg_target_close_ranked(wg_target *t)
{
    wg_rank_threads_close(t->ranks);
    if (!t->starts_mpi) return;
    wg_ranks_quit(wg_comm_mpi_open());
    wg_comm_mpi_stop();
}

wg_status wg_target_open_ranked(wg_target *t, const wg_target_options *opt, const wg_comm_spec *where, wg_error *err)
{
    wg_model_options mine = opt->model;
    mine.ranks.pipeline = where->pipeline;
    const char *quantize = opt->quantize ? opt->quantize : "";
    const size_t path = strlen(t->path) + 1, text = strlen(quantize) + 1, bytes = sizeof(target_order) + path + text;
    if (where->kind == WG_COMM_MPI) WG_TRY(start_mpi(t, err));
    if (where->kind == WG_COMM_THREADS) WG_TRY(wg_rank_threads_open(&t->ranks, where->ranks, &wg_target_rank_opener, err));
    wg_comm *c = t->ranks ? wg_rank_threads_comm(t->ranks) : wg_comm_mpi_open();
    target_order *o = wg_calloc(bytes, 1);
    if (!o) return wg_nomem(err, bytes, "an order");
    *o = (target_order){ .kv_type = opt->model.kv_type,
                         .max_rows = opt->model.max_rows,
                         .context = opt->model.context,
                         .allow_nan = opt->model.allow_nan,
                         .threads = wg_pool_threads(t->pool),
                         .pin = opt->pin };
    memcpy(o + 1, t->path, path);
    memcpy((char *)(o + 1) + path, quantize, text);
    wg_status s = wg_ranks_tell_open(c, o, bytes, &mine.ranks, err);
    wg_free(o);
    WG_TRY(s);
    s = wg_model_open(&t->model, t->weights, &t->device, &mine, err);
    return wg_ranks_agree(c, s, t->model, err);
}
