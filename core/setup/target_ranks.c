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
    const wg_comm *mpi = wg_comm_mpi_open();
    const bool named = opt->ranks && *opt->ranks;
    const int tensor = opt->tensor ? opt->tensor : 1;
    *out = (wg_comm_spec){ .kind = tensor > 1 ? WG_COMM_THREADS : WG_COMM_SELF, .ranks = tensor };
    if (named) WG_TRY(wg_comm_parse(out, opt->ranks, err));
    else if (mpi) out->kind = WG_COMM_MPI;
    if (out->kind == WG_COMM_MPI && !mpi)
        return wg_fail(err, WG_EINVAL,
                       "ranks mpi: this process was not started beside others; expected mpirun -n N before the command, or "
                       "ranks threads:N");
    if (out->kind == WG_COMM_MPI) out->ranks = mpi->ranks;
    else if (mpi)
        return wg_fail(err, WG_EINVAL,
                       "ranks %s: mpirun started %d processes, which would wait in vain; leave ranks out, or mpirun",
                       opt->ranks, mpi->ranks);
    if (opt->tensor && opt->tensor != out->ranks)
        return wg_fail(err, WG_EINVAL, "tensor = %d, but the ranks are %d (%s); expected as many", opt->tensor, out->ranks,
                       named ? opt->ranks : "mpirun -n");
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

wg_status wg_target_open_ranked(wg_target *t, const wg_target_options *opt, const wg_comm_spec *where, wg_error *err)
{
    wg_model_options mine = opt->model;
    const char *quantize = opt->quantize ? opt->quantize : "";
    const size_t path = strlen(t->path) + 1, text = strlen(quantize) + 1, bytes = sizeof(target_order) + path + text;
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
