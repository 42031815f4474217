/* SPDX-License-Identifier: MIT
 * The weight types that kernels multiply with. Names, tables, instances of templates and tests are generated from these
 * lists. A row is
 *     TYPE(id, name, number, block, bytes, written, bits, zero, run, minimum, d)
 * number     in a GGUF file                                    written    1: wg_row_from_f32 writes it
 * block      elements of a block                               bytes      of a block in a file
 * and of quantised types, 0 of the others:
 * bits       of a code, as it is packed                        zero       the code of the value 0; of types whose values are
 * run        elements that share a scale                                  in a table (with 128 added), 128
 * minimum    1: element = value * scale + minimum
 * d          offset of the f16 scale in a block; with minima the f16 of the minima follows. mxfp4 has no f16, but a byte;
 *            iq1_m has its bits in four places, the highest ones in the four bytes from d on
 * q8_2of4 keeps two codes of four and their places (types.h). quant_blocks.c and codebooks.c read the blocks of a file,
 * types.c and quantize_k.c write them; everything else follows from the row. */
#ifndef WG_KERNELS_TYPE_LIST_H
#define WG_KERNELS_TYPE_LIST_H

#define WG_FLOAT_TYPES(TYPE) TYPE(F32, f32, 0, 1, 4, 1, 0, 0, 0, 0, 0) WG_HALF_TYPES(TYPE)
#define WG_HALF_TYPES(TYPE)                                                                                                    \
    TYPE(F16, f16, 1, 1, 2, 1, 0, 0, 0, 0, 0)                                                                                  \
    TYPE(BF16, bf16, 30, 1, 2, 1, 0, 0, 0, 0, 0)

/* Codes of floats with an f32 scale before each 128 of them; the number is this project's. */
#define WG_SCALED_FLOAT_TYPES(TYPE) TYPE(F8_E4M3, f8_e4m3, 0xF8E43, 128, 132, 1, 0, 0, 0, 0, 0)

/* q8_0 with two of every four codes, 2:4 sparse; the number is this project's. */
#define WG_SPARSE_TYPES(TYPE) TYPE(Q8_2OF4, q8_2of4, 0x80204, 32, 22, 1, 8, 128, 32, 0, 0)

/* Code books and ternary digits, read as 4-bit codes (codebooks.c). */
#define WG_CODEBOOK_TYPES(TYPE)                                                                                                \
    TYPE(IQ1_S, iq1_s, 19, 256, 50, 0, 4, 128, 32, 0, 0)                                                                       \
    TYPE(IQ1_M, iq1_m, 29, 256, 56, 0, 4, 128, 16, 0, 52)                                                                      \
    TYPE(IQ2_XXS, iq2_xxs, 16, 256, 66, 0, 4, 128, 32, 0, 0)                                                                   \
    TYPE(IQ2_XS, iq2_xs, 17, 256, 74, 0, 4, 128, 16, 0, 0)                                                                     \
    TYPE(IQ2_S, iq2_s, 22, 256, 82, 0, 4, 128, 16, 0, 0)                                                                       \
    TYPE(IQ3_XXS, iq3_xxs, 18, 256, 98, 0, 4, 128, 32, 0, 0)                                                                   \
    TYPE(IQ3_S, iq3_s, 21, 256, 110, 0, 4, 128, 32, 0, 0)                                                                      \
    TYPE(TQ1_0, tq1_0, 34, 256, 54, 0, 4, 1, 32, 0, 52)                                                                        \
    TYPE(TQ2_0, tq2_0, 35, 256, 66, 0, 4, 1, 32, 0, 64)

/* Those that devices multiply with too, and all. The last type is separate: messages print "or" before it. */
#define WG_DEVICE_QUANT_TYPES(TYPE) WG_SPARSE_TYPES(TYPE) WG_GGUF_QUANT_TYPES(TYPE)
#define WG_QUANT_TYPES(TYPE) WG_SPARSE_TYPES(TYPE) WG_CODEBOOK_TYPES(TYPE) WG_GGUF_QUANT_TYPES(TYPE)
#define WG_GGUF_QUANT_TYPES(TYPE) WG_QUANT_TYPES_BUT_LAST(TYPE) WG_LAST_QUANT_TYPE(TYPE)
#define WG_QUANT_TYPES_BUT_LAST(TYPE)                                                                                          \
    TYPE(Q8_0, q8_0, 8, 32, 34, 1, 8, 128, 32, 0, 0)                                                                           \
    TYPE(Q4_0, q4_0, 2, 32, 18, 1, 4, 8, 32, 0, 0)                                                                             \
    TYPE(Q4_1, q4_1, 3, 32, 20, 1, 4, 0, 32, 1, 0)                                                                             \
    TYPE(Q5_0, q5_0, 6, 32, 22, 1, 5, 16, 32, 0, 0)                                                                            \
    TYPE(Q5_1, q5_1, 7, 32, 24, 1, 5, 0, 32, 1, 0)                                                                             \
    TYPE(IQ4_NL, iq4_nl, 20, 32, 18, 0, 4, 128, 32, 0, 0)                                                                      \
    TYPE(IQ4_XS, iq4_xs, 23, 256, 136, 0, 4, 128, 32, 0, 0)                                                                    \
    TYPE(MXFP4, mxfp4, 39, 32, 17, 0, 4, 128, 32, 0, 0)                                                                        \
    TYPE(Q2_K, q2_k, 10, 256, 84, 0, 4, 0, 16, 1, 80)                                                                          \
    TYPE(Q3_K, q3_k, 11, 256, 110, 0, 4, 4, 16, 0, 108)                                                                        \
    TYPE(Q4_K, q4_k, 12, 256, 144, 1, 4, 0, 32, 1, 0)                                                                          \
    TYPE(Q5_K, q5_k, 13, 256, 176, 0, 5, 0, 32, 1, 0)
#define WG_LAST_QUANT_TYPE(TYPE) TYPE(Q6_K, q6_k, 14, 256, 210, 1, 6, 32, 16, 0, 208)

#define WG_WEIGHT_TYPES(TYPE) WG_FLOAT_TYPES(TYPE) WG_SCALED_FLOAT_TYPES(TYPE) WG_QUANT_TYPES(TYPE)

/* The ids, for arrays. */
#define WG_TYPE_ID(id, ...) WG_##id,

#endif
