/* SPDX-License-Identifier: MIT
 * Loading libllama (llama_library.h). */
#include "core/model/external/llama_library.h"

#include <dlfcn.h>
#include <string.h>

/* The end of a context's parameters by default: the types of keys and values (f16), a callback and its argument, then
 * embeddings, offload_kqv, no_perf, op_offload, swa_full and kv_unified. */
static const unsigned char end_of_params[] = { 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                               0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0 };

/* Where kv_unified stands; 0: it was not found, or twice. */
static size_t find_kv_unified(const wg_llama_params *p)
{
    const size_t n = sizeof end_of_params;
    size_t found = 0, times = 0;
    for (size_t at = 16; at + n <= sizeof p->byte; at += 4)
        if (!memcmp(p->byte + at, end_of_params, n)) found = at + n - 1, times++;
    return times == 1 ? found : 0;
}

wg_status wg_llama_library_open(wg_llama_library *l, const char *path, wg_error *err)
{
    *l = (wg_llama_library){ .object = dlopen(path, RTLD_NOW | RTLD_LOCAL) };
    if (!l->object) return wg_fail(err, WG_EUNSUPPORTED, "%s; name libllama.so of llama.cpp", dlerror());
#define X(result, name, parameters)                                                                                            \
    if (!(*(void **)&l->name = dlsym(l->object, #name)))                                                                       \
        return wg_fail(err, WG_EUNSUPPORTED, "%s has no %s; it is another library, or of another version", path, #name);
    WG_LLAMA_FUNCTIONS(X)
#undef X
    wg_llama_params p;
    memset(&p, 0, sizeof p);
    p = l->llama_context_default_params();
    l->kv_unified = find_kv_unified(&p);
    if (l->kv_unified && p.word[WG_LLAMA_N_SEQ_MAX] == 1 && p.word[WG_LLAMA_N_BATCH] >= 1 &&
        p.word[WG_LLAMA_N_BATCH] <= 1 << 20)
        return WG_OK;
    return wg_fail(err, WG_EUNSUPPORTED, "%s has other parameters than are known here; use another version of llama.cpp", path);
}

void wg_llama_library_close(wg_llama_library *l)
{
    if (l->object) dlclose(l->object);
    l->object = NULL;
}
