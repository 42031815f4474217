/* SPDX-License-Identifier: MIT
 * Random words in bulk by cuRAND's Philox4_32_10, for weights drawn on the card. The library is looked for when it is first
 * needed, so that a program built with it starts, and draws with our own kernel, where it is not. Private to runtime.cu. */
#ifndef WG_KERNELS_CUDA_CURAND_H
#define WG_KERNELS_CUDA_CURAND_H

#include "kernels/cuda/gpu.h"

#if defined(__CUDACC__) && defined(__has_include) && __has_include(<curand.h>)
#include <curand.h>
#include <dlfcn.h>
#include <stdio.h>

typedef struct wg_curand {
    decltype(&curandCreateGenerator) create;
    decltype(&curandDestroyGenerator) destroy;
    decltype(&curandSetStream) set_stream;
    decltype(&curandSetPseudoRandomGeneratorSeed) set_seed;
    decltype(&curandGenerate) generate;
    bool there;
} wg_curand;

static wg_curand wg_curand_find()
{
    wg_curand c = {};
    char name[32];
    snprintf(name, sizeof name, "libcurand.so.%d", CURAND_VER_MAJOR);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL); /* stays open */
    if (!library) return c;
    c.create = (decltype(c.create))dlsym(library, "curandCreateGenerator");
    c.destroy = (decltype(c.destroy))dlsym(library, "curandDestroyGenerator");
    c.set_stream = (decltype(c.set_stream))dlsym(library, "curandSetStream");
    c.set_seed = (decltype(c.set_seed))dlsym(library, "curandSetPseudoRandomGeneratorSeed");
    c.generate = (decltype(c.generate))dlsym(library, "curandGenerate");
    c.there = c.create && c.destroy && c.set_stream && c.set_seed && c.generate;
    return c;
}

static const wg_curand &wg_curand_there()
{
    static const wg_curand c = wg_curand_find();
    return c;
}

/* n words, ordered like all else by the stream. 0, or -1: not drawn. */
static int wg_curand_words(wg_gpu *g, uint64_t seed, void *to, size_t n)
{
    const wg_curand &c = wg_curand_there();
    curandGenerator_t made = NULL;
    if (!c.there) return -1;
    if (!g->random) {
        if (c.create(&made, CURAND_RNG_PSEUDO_PHILOX4_32_10) != CURAND_STATUS_SUCCESS) return -1;
        g->random = made;
    }
    made = (curandGenerator_t)g->random;
    return c.set_stream(made, (cudaStream_t)g->stream.at) == CURAND_STATUS_SUCCESS &&
                   c.set_seed(made, seed) == CURAND_STATUS_SUCCESS &&
                   c.generate(made, (unsigned *)to, n) == CURAND_STATUS_SUCCESS
               ? 0
               : -1;
}

static void wg_curand_close(wg_gpu *g)
{
    if (g->random) wg_curand_there().destroy((curandGenerator_t)g->random);
    g->random = NULL;
}
#else
static int wg_curand_words(wg_gpu *, uint64_t, void *, size_t) { return -1; }
static void wg_curand_close(wg_gpu *) {}
#endif

#endif
