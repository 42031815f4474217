/* SPDX-License-Identifier: MIT
 * The memory functions of tables of operations, and the table of a CUDA device: kernels/cuda/train.cu, with products by
 * cuBLAS. */
#include <string.h>

#include "core/base/mem.h"
#include "core/model/cuda/device_cuda.h"
#include "core/model/device.h"
#include "draft/train/train_ops.h"

wg_status wg_train_ops_of(wg_train_ops *out, wg_device *d, wg_error *err)
{
    char why[WG_GPU_WHY] = "";
    wg_cuda *cuda = d->class->cuda ? d->class->cuda(d) : NULL;
    *out = *wg_ops_f32();
    if (!cuda) return wg_blas_open(err);
    if (cuda->mode & (WG_CUDA_EXACT | WG_CUDA_FAST))
        return wg_fail(err, WG_EINVAL, "device %s: training knows one way of computing there; name it without /exact and /fast",
                       cuda->name);
    if (cuda->gpu.api->blas(&cuda->gpu, why))
        return wg_fail(err, WG_EUNSUPPORTED, "training on %s (%s): %s", cuda->name, cuda->gpu.card, why);
    *out = (wg_train_ops){ .name = "f32 cuda", .size = sizeof(float), .gpu = &cuda->gpu };
    return WG_OK;
}

size_t wg_ops_available(const wg_train_ops *op) { return op->gpu ? op->gpu->api->room(op->gpu) : wg_mem_available(); }

void *wg_ops_alloc(const wg_train_ops *op, size_t bytes)
{
    if (!op->gpu) return wg_calloc(bytes, 1);
    void *p = op->gpu->api->alloc(op->gpu, bytes);
    if (p) op->gpu->api->clear(op->gpu, p, bytes);
    return p;
}

void wg_ops_free(const wg_train_ops *op, void *p)
{
    if (op->gpu) op->gpu->api->free(op->gpu, p);
    else wg_free(p);
}

void wg_ops_clear(const wg_train_ops *op, void *p, size_t bytes)
{
    if (op->gpu) op->gpu->api->clear(op->gpu, p, bytes);
    else memset(p, 0, bytes);
}

void wg_ops_copy(const wg_train_ops *op, void *to, const void *from, size_t bytes)
{
    if (op->gpu) op->gpu->api->copy(op->gpu, to, from, bytes);
    else memcpy(to, from, bytes);
}

void wg_ops_put(const wg_train_ops *op, void *to, const void *from, size_t bytes)
{
    if (op->gpu) op->gpu->api->put(op->gpu, to, from, bytes);
    else if (to != from) memcpy(to, from, bytes);
}

void wg_ops_get(const wg_train_ops *op, void *to, const void *from, size_t bytes)
{
    if (op->gpu) op->gpu->api->get(op->gpu, to, from, bytes);
    else if (to != from) memcpy(to, from, bytes);
}

wg_status wg_ops_wait(const wg_train_ops *op, wg_error *err)
{
    char why[WG_GPU_WHY];
    if (!op->gpu || op->gpu->api->wait(op->gpu, why) == 0) return WG_OK;
    return wg_fail(err, WG_EIO, "training on %s failed: %s", op->gpu->card, why);
}
