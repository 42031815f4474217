/* SPDX-License-Identifier: MIT
 * What the arithmetic units give at most: f32 fused multiply-adds, and 8-bit dot products (VNNI) where there are any, in
 * registers, nothing loaded. Multiply-adds a second of all threads, the best of a few; one line of JSON. A measuring stick
 * for the comparison with peers: `peaks THREADS`, built for the level that is compared. */
#include <immintrin.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef __AVX512F__
enum { CHAINS = 24 };
#else
enum { CHAINS = 12 }; /* 16 registers */
#endif
enum { TIMES = 1 << 22, REPEATS = 5, THREADS_MAX = 64 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define ALL _Pragma("GCC unroll 24") /* or the sums leave the registers */

#if defined(__AVX512F__)
typedef __m512 wide;
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define FILL(x) _mm512_set1_ps(x)
#elif defined(__FMA__)
typedef __m256 wide;
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define FILL(x) _mm256_set1_ps(x)
#else
#error "peaks.c knows processors with AVX-512 or FMA"
#endif

static void *run_fma(void *sink)
{
    wide s[CHAINS], a = FILL(0.999f), b = FILL(0.001f);
    ALL for (int i = 0; i < CHAINS; i++) s[i] = FILL(1.0f);
    for (int t = 0; t < TIMES; t++) ALL for (int i = 0; i < CHAINS; i++)
        {
            s[i] = FMA(a, b, s[i]);
            __asm__ volatile("" : "+v"(s[i]));
        }
    ALL for (int i = 1; i < CHAINS; i++) s[0] += s[i];
    *(float *)sink = s[0][0];
    return NULL;
}

#if defined(__AVX512VNNI__)
enum { DOT = 64 };
static void *run_dot(void *sink)
{
    __m512i s[CHAINS], a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-2);
    ALL for (int i = 0; i < CHAINS; i++) s[i] = _mm512_setzero_si512();
    for (int t = 0; t < TIMES; t++) ALL for (int i = 0; i < CHAINS; i++)
        {
            s[i] = _mm512_dpbusd_epi32(s[i], a, b);
            __asm__ volatile("" : "+v"(s[i]));
        }
    ALL for (int i = 1; i < CHAINS; i++) s[0] = _mm512_add_epi32(s[0], s[i]);
    *(float *)sink = (float)_mm512_reduce_add_epi32(s[0]);
    return NULL;
}
#else
enum { DOT = 0 };
static void *run_dot(void *sink)
{
    *(float *)sink = 0;
    return NULL;
}
#endif

static double rate(void *(*f)(void *), int threads, int width)
{
    double best = 0;
    float sink[THREADS_MAX];
    pthread_t id[THREADS_MAX];
    for (int r = 0; r < REPEATS; r++) {
        const double start = now();
        for (int i = 1; i < threads; i++)
            if (pthread_create(&id[i], NULL, f, &sink[i])) exit(1);
        f(&sink[0]);
        for (int i = 1; i < threads; i++) pthread_join(id[i], NULL);
        const double x = (double)CHAINS * TIMES * width * threads / (now() - start);
        if (x > best) best = x;
    }
    return best;
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    if (threads < 1 || threads > THREADS_MAX) return fputs("peaks: THREADS in 1..64\n", stderr), 2;
    const double fma = rate(run_fma, threads, (int)(sizeof(wide) / sizeof(float))), dot = DOT ? rate(run_dot, threads, DOT) : 0;
    printf("{\"threads\":%d,\"fma_gmac_s\":%.1f,\"dot8_gmac_s\":%.1f}\n", threads, fma / 1e9, dot / 1e9);
    return 0;
}
