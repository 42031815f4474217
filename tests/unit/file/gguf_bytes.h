/* SPDX-License-Identifier: MIT
 * A small valid GGUF file composed by hand, with the offsets of its fields, so that tests can break any of them. It does not
 * use the project's writer: the two must agree. */
#ifndef WG_TESTS_GGUF_BYTES_H
#define WG_TESTS_GGUF_BYTES_H

#include <stdint.h>
#include <string.h>

typedef enum mark {
    AT_MAGIC,
    AT_VERSION,
    AT_TENSORS,
    AT_METAS,
    AT_KEY_LENGTH,
    AT_KEY,
    AT_VALUE_TYPE,
    AT_STRING_LENGTH,
    AT_ALIGNMENT_TYPE,
    AT_ALIGNMENT,
    AT_BOOL,
    AT_ARRAY_TYPE,
    AT_ARRAY_COUNT,
    AT_ARRAY_STRING,
    AT_BOOLS,
    AT_SECOND_KEY,
    AT_NAME_LENGTH,
    AT_NAME,
    AT_DIMS,
    AT_DIM0,
    AT_DIM1,
    AT_TYPE,
    AT_SECOND_NAME,
    AT_OFFSET,
    AT_DATA,
    AT_LAST_DATA,
    AT_END,
    MARKS
} mark;

typedef struct gguf_bytes {
    uint8_t b[4096];
    size_t n, at[MARKS];
} gguf_bytes;

static inline void gb_put(gguf_bytes *g, const void *p, size_t n)
{
    memcpy(g->b + g->n, p, n);
    g->n += n;
}

static inline void gb_u32(gguf_bytes *g, uint32_t v) { gb_put(g, &v, 4); }
static inline void gb_u64(gguf_bytes *g, uint64_t v) { gb_put(g, &v, 8); }

static inline void gb_string(gguf_bytes *g, const char *s)
{
    gb_u64(g, strlen(s));
    gb_put(g, s, strlen(s));
}

static inline void gb_key(gguf_bytes *g, const char *key, uint32_t type)
{
    gb_string(g, key);
    gb_u32(g, type);
}

static inline void gb_mark(gguf_bytes *g, mark m) { g->at[m] = g->n; }

static inline void gb_metadata(gguf_bytes *g)
{
    gb_mark(g, AT_KEY_LENGTH);
    g->at[AT_KEY] = g->n + 8;
    g->at[AT_VALUE_TYPE] = g->n + 8 + strlen("general.architecture");
    gb_key(g, "general.architecture", 8);
    gb_mark(g, AT_STRING_LENGTH);
    gb_string(g, "llama");
    g->at[AT_SECOND_KEY] = g->n + 8;
    g->at[AT_ALIGNMENT_TYPE] = g->n + 8 + strlen("general.alignment");
    gb_key(g, "general.alignment", 4), gb_mark(g, AT_ALIGNMENT), gb_u32(g, 32);
    gb_key(g, "a.u8", 0), gb_put(g, "\xff", 1);
    gb_key(g, "a.i8", 1), gb_put(g, "\xff", 1);
    gb_key(g, "a.u16", 2), gb_put(g, "\xfe\xff", 2);
    gb_key(g, "a.i16", 3), gb_put(g, "\xfe\xff", 2);
    gb_key(g, "a.i32", 5), gb_u32(g, (uint32_t)-7);
    gb_key(g, "a.f32", 6), gb_put(g, &(float){ 0.5f }, 4);
    gb_key(g, "a.bool", 7), gb_mark(g, AT_BOOL), gb_put(g, "\1", 1);
    gb_key(g, "a.u64", 10), gb_u64(g, UINT64_MAX);
    gb_key(g, "a.i64", 11), gb_u64(g, (uint64_t)-9);
    gb_key(g, "a.f64", 12), gb_put(g, &(double){ 0.25 }, 8);
    gb_key(g, "a.ints", 9), gb_u32(g, 5), gb_u64(g, 3), gb_u32(g, 1), gb_u32(g, 2), gb_u32(g, (uint32_t)-3);
    gb_key(g, "a.floats", 9), gb_u32(g, 6), gb_u64(g, 2), gb_put(g, (float[]){ 1.5f, -2 }, 8);
    gb_key(g, "a.bools", 9), gb_u32(g, 7), gb_u64(g, 2), gb_mark(g, AT_BOOLS), gb_put(g, "\0\1", 2);
    gb_key(g, "a.empty", 9), gb_u32(g, 8), gb_u64(g, 0);
    gb_key(g, "a.words", 9), gb_mark(g, AT_ARRAY_TYPE), gb_u32(g, 8), gb_mark(g, AT_ARRAY_COUNT), gb_u64(g, 3);
    gb_string(g, "one"), gb_mark(g, AT_ARRAY_STRING), gb_string(g, ""), gb_string(g, "three");
}

enum { GB_METAS = 17, GB_TENSORS = 3 };

static inline void gb_pad(gguf_bytes *g)
{
    while (g->n % 32) g->b[g->n++] = 0;
}

/* Tensors: "norm" f32 {8}, "mat" q8_0 {64,2}, "small" f16 {3,2}; data bytes count up. */
static inline gguf_bytes gguf_valid(void)
{
    gguf_bytes g = { .n = 0 };
    gb_mark(&g, AT_MAGIC), gb_put(&g, "GGUF", 4);
    gb_mark(&g, AT_VERSION), gb_u32(&g, 3);
    gb_mark(&g, AT_TENSORS), gb_u64(&g, GB_TENSORS);
    gb_mark(&g, AT_METAS), gb_u64(&g, GB_METAS);
    gb_metadata(&g);
    gb_mark(&g, AT_NAME_LENGTH);
    g.at[AT_NAME] = g.n + 8;
    gb_string(&g, "norm"), gb_mark(&g, AT_DIMS), gb_u32(&g, 1), gb_u64(&g, 8), gb_u32(&g, 0), gb_u64(&g, 0);
    g.at[AT_SECOND_NAME] = g.n + 8;
    gb_string(&g, "mat"), gb_u32(&g, 2), gb_mark(&g, AT_DIM0), gb_u64(&g, 64), gb_mark(&g, AT_DIM1), gb_u64(&g, 2);
    gb_mark(&g, AT_TYPE), gb_u32(&g, 8), gb_mark(&g, AT_OFFSET), gb_u64(&g, 32);
    gb_string(&g, "small"), gb_u32(&g, 2), gb_u64(&g, 3), gb_u64(&g, 2), gb_u32(&g, 1), gb_u64(&g, 192);
    gb_pad(&g);
    gb_mark(&g, AT_DATA);
    static const size_t size[GB_TENSORS] = { 32, 136, 12 };
    for (int t = 0; t < GB_TENSORS; t++) {
        if (t == GB_TENSORS - 1) gb_mark(&g, AT_LAST_DATA);
        for (size_t i = 0; i < size[t]; i++) g.b[g.n++] = (uint8_t)(i + 1);
        gb_pad(&g);
    }
    gb_mark(&g, AT_END);
    return g;
}

#endif
