/* SPDX-License-Identifier: MIT
 * A small llama2.c v0 checkpoint and tokenizer, composed by hand. Float i of the file (header included) is i / 16. */
#ifndef WG_TESTS_LLAMA2C_BYTES_H
#define WG_TESTS_LLAMA2C_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct llama2c_shape {
    int dim, hidden, layers, heads, kv_heads, vocab, context;
} llama2c_shape;

static const llama2c_shape llama2c_small = {
    .dim = 32, .hidden = 48, .layers = 2, .heads = 4, .kv_heads = 2, .vocab = 262, .context = 10
};

/* From malloc. vocab < 0: with its own head. */
static inline float *llama2c_bytes(const llama2c_shape *s, size_t *n)
{
    const int d = s->dim, f = s->hidden, kv = d / s->heads * s->kv_heads, L = s->layers, half = d / s->heads / 2;
    const int vocab = s->vocab < 0 ? -s->vocab : s->vocab;
    size_t floats = 7 + (size_t)vocab * d + (size_t)L * (d + d * d + 2 * d * kv + d * d + d + 3 * d * f) + d +
                    2 * (size_t)s->context * half;
    if (s->vocab < 0) floats += (size_t)vocab * d;
    float *p = malloc(floats * 4);
    for (size_t i = 0; i < floats; i++) p[i] = (float)i / 16;
    memcpy(p, s, 7 * 4);
    *n = floats * 4;
    return p;
}

/* <unk>, <s>, </s>, 256 bytes, then " a", "b", "c d" ...; from malloc. */
static inline char *llama2c_vocabulary(int vocab, size_t *n)
{
    char *p = malloc(64 + (size_t)vocab * 32);
    *n = 4;
    memcpy(p, &(uint32_t){ 7 }, 4);
    for (int i = 0; i < vocab; i++) {
        char text[24];
        static const char *const special[] = { "<unk>", "\n<s>\n", "\n</s>\n" }, *const word[] = { " a", "b", "c d", " " };
        if (i < 3) strcpy(text, special[i]);
        else if (i < 259) sprintf(text, "<0x%02X>", i - 3);
        else strcpy(text, word[i % 4]);
        const float score = -(float)i;
        const uint32_t len = (uint32_t)strlen(text);
        memcpy(p + *n, &score, 4), memcpy(p + *n + 4, &len, 4), memcpy(p + *n + 8, text, len);
        *n += 8 + len;
    }
    return p;
}

#endif
