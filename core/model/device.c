/* SPDX-License-Identifier: MIT
 * Opening devices by name. Only `auto` tries another device than the named one. */
#include "core/model/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/option.h"
#include "kernels/cpu.h"
#include "kernels/cuda/gpu.h"

/* "cuda:12/exact/eager": the number and the mode, its words in this order; false for anything else. */
static bool parse_cuda(const char *name, int *ordinal, unsigned *mode)
{
    if (strncmp(name, "cuda:", 5) != 0) return false;
    const char *at = name + 5;
    int n = 0, digits = 0;
    for (; *at >= '0' && *at <= '9' && digits < 4; at++, digits++) n = 10 * n + (*at - '0');
    *ordinal = n;
    *mode = 0;
    if (strncmp(at, "/exact", 6) == 0) *mode |= WG_CUDA_EXACT, at += 6;
    else if (strncmp(at, "/fast", 5) == 0) *mode |= WG_CUDA_FAST, at += 5;
    if (strncmp(at, "/eager", 6) == 0) *mode |= WG_CUDA_EAGER, at += 6;
    if (strncmp(at, "/serial", 7) == 0) *mode |= WG_CUDA_SERIAL, at += 7;
    return digits > 0 && *at == '\0';
}

wg_status wg_device_name_check(const char *name, wg_error *err)
{
    int ordinal;
    unsigned mode;
    if (strcmp(name, "cpu") == 0 || strcmp(name, "auto") == 0 || parse_cuda(name, &ordinal, &mode)) return WG_OK;
    return wg_fail(err, WG_EINVAL, "device \"%.60s\" is unknown; expected " WG_DEVICE_NAMES, name);
}

bool wg_device_is_fast(const char *name)
{
    int ordinal;
    unsigned mode;
    return parse_cuda(name, &ordinal, &mode) && mode & WG_CUDA_FAST;
}

static wg_status open_cuda(wg_device *out, int ordinal, unsigned mode, wg_pool *pool, wg_error *err)
{
    const wg_gpu_api *api = wg_gpu_cuda();
    if (!api)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "device cuda:%d%s: this build is without CUDA; build it with the CUDA toolkit and "
                       "cmake -DWG_CUDA=ON, or take device cpu",
                       ordinal, mode & WG_CUDA_FAST ? "/fast" : "");
    return wg_device_cuda(out, api, ordinal, mode, pool, err);
}

wg_status wg_cpu_check(wg_error *err)
{
    const char *level[WG_CPU_LEVELS + 1] = { NULL }, *unknown = wg_cpu_unknown();
    char list[64] = "";
    if (!unknown) {
        const char *want = getenv("WG_CPU"), *has = wg_cpu_name(wg_cpu_chosen());
        if (want && *want && strcmp(want, has) != 0)
            wg_log(WG_LOG_WARN, "WG_CPU is '%s', which this processor or build does not have: %s is used", want, has);
        return WG_OK;
    }
    for (int l = 0; l < WG_CPU_LEVELS; l++) {
        level[l] = wg_cpu_name((wg_cpu_level)l);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", l ? ", " : "", level[l]);
    }
    const char *near = wg_nearest(unknown, level);
    return wg_fail(err, WG_EINVAL,
                   "the environment variable WG_CPU is '%s'; expected a level of kernels: %s%s%s%s. Unset, it is the highest "
                   "that the processor has",
                   unknown, list, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

wg_status wg_device_open(wg_device *out, const char *name, wg_pool *pool, wg_error *err)
{
    int ordinal;
    unsigned mode;
    WG_TRY(wg_device_name_check(name, err));
    if (parse_cuda(name, &ordinal, &mode)) return open_cuda(out, ordinal, mode, pool, err);
    if (strcmp(name, "auto") == 0) {
        wg_error why;
        if (open_cuda(out, 0, 0, pool, &why) == WG_OK) return WG_OK;
        wg_log(WG_LOG_INFO, "device auto: the CPU (%s)", why.text);
    }
    return wg_device_cpu(out, pool, err);
}

size_t wg_device_attention_floats(const wg_device *d, int heads)
{
    return d->class->attention_floats ? d->class->attention_floats(d, heads) : 0;
}

void wg_device_retain(wg_device *d)
{
    if (d->class->retain) d->class->retain(d);
}

void wg_device_close(wg_device *d)
{
    if (d->class && d->class->close) d->class->close(d);
    *d = (wg_device){ 0 };
}
