/* SPDX-License-Identifier: MIT
 * Random models. Element e of a tensor comes from Philox at (seed; e / 2, hash of the tensor's name): a sum of four 16-bit
 * uniforms, scaled once in f32, so that the bits need no math library and no order of computation. */
#include "core/file/synth.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/base/nearest.h"
#include "core/base/option.h"
#include "core/base/pool.h"
#include "core/file/format.h"
#include "core/file/gguf_write.h"
#include "kernels/philox.h"

enum { SIZE_MOST = 1 << 24, SPECIALS = 3, BYTES = 256, TOKEN_TEXT = 16 };

static const wg_synth_shape shapes[] = {
    { "llama-3.2-1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072, 500000, true, 0, 0 },
    { "llama-3-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 8192, 500000, false, 0, 0 },
    { "llama-3.1-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 131072, 500000, false, 0, 0 },
    { "draft-124m", "llama", 12, 768, 12, 12, 64, 2048, 50257, 1024, 10000, true, 0, 0 }, /* as many weights as gpt2 */
    { "tinyllama-1.1b", "llama", 22, 2048, 32, 4, 64, 5632, 32000, 2048, 10000, false, 0, 0 },
    { "qwen2.5-0.5b", "qwen2", 24, 896, 14, 2, 64, 4864, 151936, 32768, 1000000, true, 0, 0 },
    { "qwen3-0.6b", "qwen3", 28, 1024, 16, 8, 128, 3072, 151936, 40960, 1000000, true, 0, 0 },
    { "qwen3-8b", "qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960, 1000000, false, 0, 0 },
    { "qwen3-30b-a3b", "qwen3moe", 48, 2048, 32, 4, 128, 768, 151936, 40960, 1000000, false, 128, 8 },
    { "gpt-oss-20b", "gpt-oss", 24, 2880, 64, 8, 64, 2880, 201088, 131072, 150000, false, 32, 4 },
    { "gpt2", "gpt2", 12, 768, 12, 12, 64, 3072, 50257, 1024, 0, true, 0, 0 },
    { "pythia-1.4b", "gptneox", 24, 2048, 16, 16, 128, 8192, 50304, 2048, 10000, false, 0, 0 },
    { "falcon-7b", "falcon", 32, 4544, 71, 1, 64, 18176, 65024, 2048, 10000, true, 0, 0 },
    { "mpt-7b", "mpt", 32, 4096, 32, 32, 128, 16384, 50432, 2048, 0, true, 0, 0 },
    { "tiny", "llama", 2, 32, 2, 1, 16, 64, 512, 256, 10000, true, 0, 0 },
    { NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, 0, 0 },
};

const wg_synth_shape *wg_synth_shapes(void) { return shapes; }

/* ---- the tensors of a family -------------------------------------------------------------------------------------- */

enum {
    LLAMA = 1,
    QWEN2 = 2,
    GPT2 = 4,
    QWEN3 = 8,
    MOE = 16,
    NEOX = 32,
    FALCON = 64,
    MPT = 128,
    OSS = 256,
    DENSE = LLAMA | QWEN2 | QWEN3,
    SPARSE = MOE | OSS,
    GATED = DENSE | SPARSE,
    BIASED = GPT2 | NEOX,
    UNGATED = BIASED | FALCON | MPT,
    ROTATED = GATED | NEOX | FALCON,
    ALL = GATED | UNGATED
};
typedef enum law { MATRIX, NORM, BIAS } law;

/* Sizes by letter: d model, q queries, k keys (= values), a all three, h head, n heads, f hidden, v vocabulary, c context, e
 * experts. */
typedef struct part {
    const char *name;
    int families;
    law law;
    char in, out; /* out 0: a vector; of a BIAS: a table */
    bool each;    /* one of each expert */
} part;

static const part head_parts[] = {
    { "token_embd.weight", ALL, MATRIX, 'd', 'v', false }, { "position_embd.weight", GPT2, MATRIX, 'd', 'c', false },
    { "output_norm.weight", ALL, NORM, 'd', 0, false },    { "output_norm.bias", BIASED | FALCON, BIAS, 'd', 0, false },
    { "output.weight", ALL, MATRIX, 'd', 'v', false },
};

static const part layer_parts[] = {
    { "attn_norm.weight", ALL, NORM, 'd', 0, false },
    { "attn_norm.bias", BIASED | FALCON, BIAS, 'd', 0, false },
    { "attn_q.weight", GATED, MATRIX, 'd', 'q', false },
    { "attn_q.bias", QWEN2 | OSS, BIAS, 'q', 0, false },
    { "attn_k.weight", GATED, MATRIX, 'd', 'k', false },
    { "attn_k.bias", QWEN2 | OSS, BIAS, 'k', 0, false },
    { "attn_v.weight", GATED, MATRIX, 'd', 'k', false },
    { "attn_v.bias", QWEN2 | OSS, BIAS, 'k', 0, false },
    { "attn_q_norm.weight", QWEN3 | MOE, NORM, 'h', 0, false },
    { "attn_k_norm.weight", QWEN3 | MOE, NORM, 'h', 0, false },
    { "attn_qkv.weight", UNGATED, MATRIX, 'd', 'a', false },
    { "attn_qkv.bias", BIASED, BIAS, 'a', 0, false },
    { "attn_output.weight", ALL, MATRIX, 'q', 'd', false },
    { "attn_sinks.weight", OSS, BIAS, 'n', 0, false },
    { "attn_output.bias", BIASED | OSS, BIAS, 'd', 0, false },
    { "post_attention_norm.weight", OSS, NORM, 'd', 0, false },
    { "ffn_norm.weight", ALL & ~FALCON & ~OSS, NORM, 'd', 0, false },
    { "ffn_norm.bias", BIASED, BIAS, 'd', 0, false },
    { "ffn_gate.weight", DENSE, MATRIX, 'd', 'f', false },
    { "ffn_up.weight", DENSE | UNGATED, MATRIX, 'd', 'f', false },
    { "ffn_up.bias", BIASED, BIAS, 'f', 0, false },
    { "ffn_down.weight", DENSE | UNGATED, MATRIX, 'f', 'd', false },
    { "ffn_gate_inp.weight", SPARSE, MATRIX, 'd', 'e', false },
    { "ffn_gate_inp.bias", OSS, BIAS, 'e', 0, false },
    { "ffn_gate_exps.weight", SPARSE, MATRIX, 'd', 'f', true },
    { "ffn_up_exps.weight", SPARSE, MATRIX, 'd', 'f', true },
    { "ffn_down_exps.weight", SPARSE, MATRIX, 'f', 'd', true },
    { "ffn_gate_exps.bias", OSS, BIAS, 'f', 'e', false },
    { "ffn_up_exps.bias", OSS, BIAS, 'f', 'e', false },
    { "ffn_down_exps.bias", OSS, BIAS, 'd', 'e', false },
    { "ffn_down.bias", BIASED, BIAS, 'd', 0, false },
};

enum {
    HEAD_PARTS = (int)(sizeof head_parts / sizeof head_parts[0]),
    LAYER_PARTS = (int)(sizeof layer_parts / sizeof layer_parts[0])
};

static int64_t size_of(const wg_synth_shape *s, char letter)
{
    const int64_t q = (int64_t)s->heads * s->head_dim, k = (int64_t)s->kv_heads * s->head_dim;
    switch (letter) {
    case 'd': return s->dim;
    case 'q': return q;
    case 'k': return k;
    case 'a': return q + 2 * k;
    case 'h': return s->head_dim;
    case 'n': return s->heads;
    case 'f': return s->hidden;
    case 'v': return s->vocab;
    case 'c': return s->context;
    case 'e': return s->experts;
    default: return 1;
    }
}

static int family_of(const char *arch)
{
    static const struct {
        const char *arch;
        int family;
    } row[] = { { "llama", LLAMA },  { "qwen2", QWEN2 },   { "qwen3", QWEN3 }, { "qwen3moe", MOE }, { "gpt2", GPT2 },
                { "gptneox", NEOX }, { "falcon", FALCON }, { "mpt", MPT },     { "gpt-oss", OSS } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (strcmp(arch, row[i].arch) == 0) return row[i].family;
    return 0;
}

/* ---- numbers ------------------------------------------------------------------------------------------------------ */

typedef struct job {
    uint64_t seed;
    wg_pool *pool;
    float *rows; /* (threads, row_room) */
    size_t row_room;
    /* the current tensor */
    const wg_tensor *t;
    char *dst;
    uint64_t hash;
    float scale, shift;
} job;

/* Elements [e, e + n): approximately normal with deviation `scale` around `shift`, at most 3.5 deviations away. */
static void draw(const job *j, uint64_t e, float *dst, size_t n)
{
    for (uint64_t block = e / 2; block <= (e + n - 1) / 2; block++) {
        const wg_philox r =
            wg_philox_at(j->seed, (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)j->hash, (uint32_t)(j->hash >> 32));
        for (int lane = 0; lane < 2; lane++) {
            const uint32_t a = r.v[2 * lane], b = r.v[2 * lane + 1];
            const int32_t sum = (int32_t)((a & 0xFFFF) + (a >> 16) + (b & 0xFFFF) + (b >> 16)) - 2 * 0xFFFF;
            const uint64_t i = 2 * block + (uint64_t)lane - e;
            if (i < n) dst[i] = (float)sum * j->scale + j->shift;
        }
    }
}

/* Types whose weights are random codes, not rounded numbers: the deviation of a block's weights when its scale is 1, and the
 * minimum for which their mean is 0, for random codes and small scales. */
typedef struct coded {
    int type;
    double spread, middle;
} coded;

static const coded *coded_of(int type)
{
    static const coded kind[] = {
        { WG_IQ4_NL, 66.7, 0 }, { WG_IQ4_XS, 1232.6, 0 }, { WG_MXFP4, 5.852, 0 },   { WG_Q2_K, 13.87, 1.5 },
        { WG_Q3_K, 43.34, 0 },  { WG_Q4_K, 258.2, 7.5 },  { WG_Q5_K, 526.7, 15.5 }, { WG_Q6_K, 1365.6, 0 },
    };
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
        if (kind[i].type == type) return &kind[i];
    return NULL;
}

static bool can_draw(int type) { return coded_of(type) || (wg_type_get(type) && wg_type_get(type)->writable); }

/* Fills a row of such codes with this deviation. */
static void draw_codes(const job *j, uint64_t row, uint8_t *dst, size_t n, double deviation)
{
    const coded *kind = coded_of(j->t->type);
    const wg_type_info *info = wg_type_get(j->t->type);
    const size_t bytes = wg_type_size(info, n);
    const float d = (float)(deviation / kind->spread);
    const uint16_t half = wg_f32_to_f16(d), min = wg_f32_to_f16(d * (float)kind->middle);
    for (size_t at = 0; at < bytes; at += sizeof(wg_philox)) {
        const wg_philox r =
            wg_philox_at(j->seed, (uint32_t)(at / sizeof r), (uint32_t)row, (uint32_t)j->hash, (uint32_t)(j->hash >> 32));
        memcpy(dst + at, &r, bytes - at < sizeof r ? bytes - at : sizeof r);
    }
    for (uint8_t *b = dst; b < dst + bytes; b += info->bytes) {
        if (info->scales == 0) b[0] = (uint8_t)(128 + (int)lround(log2((double)d))); /* mxfp4: 2^(b[0] - 128) */
        else memcpy(b + info->scale_at, &half, sizeof half);
        if (info->scales == 2) memcpy(b + info->scale_at + sizeof half, &min, sizeof min);
    }
}

static void draw_rows(void *arg, int thread, int threads)
{
    const job *j = arg;
    const size_t k = (size_t)j->t->dim[0];
    const int rows = (int)(j->t->dim[1] * j->t->dim[2]);
    const size_t row_bytes = j->t->bytes / (size_t)rows;
    float *row = j->rows + (size_t)thread * j->row_room;
    int lo, hi;
    wg_pool_share(rows, 1, thread, threads, &lo, &hi);
    for (int r = lo; r < hi; r++) {
        char *dst = j->dst + (size_t)r * row_bytes;
        if (coded_of(j->t->type)) {
            draw_codes(j, (uint64_t)r, (uint8_t *)dst, k, 1 / sqrt((double)k));
        } else {
            draw(j, (uint64_t)r * k, row, k);
            (void)wg_row_from_f32(j->t->type, row, dst, k);
        }
    }
}

static wg_status fill(void *user, const wg_tensor *t, void *dst, wg_error *err)
{
    (void)err;
    job *j = user;
    const size_t n = strlen(t->name);
    const bool bias = strcmp(t->name + n - 4, "bias") == 0 || strstr(t->name, "sinks"), norm = t->n_dims == 1 && !bias;
    const double deviation = t->n_dims == 1 || bias ? 0.1 : 1 / sqrt((double)t->dim[0]);
    j->t = t;
    j->dst = dst;
    j->hash = wg_hash64(WG_HASH_START, t->name, n);
    j->scale = (float)(deviation / (0x1p16 / sqrt(3))); /* four uniforms of width 2^16: variance 4/12 * 2^32 */
    j->shift = norm ? 1 : 0;
    wg_pool_run(j->pool, draw_rows, j);
    return WG_OK;
}

static void add_part(wg_gguf_writer *g, const wg_synth_shape *s, int type, const part *p, int layer, job *j)
{
    char name[64];
    if (!(p->families & family_of(s->arch))) return;
    if (s->tied && strcmp(p->name, "output.weight") == 0) return;
    if (layer < 0) snprintf(name, sizeof name, "%s", p->name);
    else snprintf(name, sizeof name, "blk.%d.%s", layer, p->name);
    wg_tensor t = { .name = name,
                    .type = WG_F32,
                    .n_dims = p->each  ? 3
                              : p->out ? 2
                                       : 1,
                    .dim = { size_of(s, p->in), size_of(s, p->out), p->each ? s->experts : 1, 1 } };
    if (p->law == MATRIX && p->out != 'c' && p->out != 'e') /* routers and learned positions are f32 */
        t.type = t.dim[0] % wg_type_get(type)->block == 0 ? type : WG_F16;
    if ((size_t)t.dim[0] > j->row_room) j->row_room = (size_t)t.dim[0];
    wg_gguf_add(g, &t, fill, j);
}

/* ---- the vocabulary ----------------------------------------------------------------------------------------------- */

/* Token `id` as SPM writes it: <unk>, <s>, </s>, the bytes, then made-up words: first every syllable (100 of them), with a
 * space in front, then every pair, every triple ... so that longer words are merges of shorter ones. */
static size_t token_text(int id, char dst[TOKEN_TEXT])
{
    static const char *const special[SPECIALS] = { "<unk>", "<s>", "</s>" };
    if (id < SPECIALS) return (size_t)snprintf(dst, TOKEN_TEXT, "%s", special[id]);
    id -= SPECIALS;
    if (id < BYTES) return (size_t)snprintf(dst, TOKEN_TEXT, "<0x%02X>", (unsigned)id);
    id -= BYTES;
    int syllables = 1, count = 100;
    for (; id >= 2 * count; syllables++, count *= 100) id -= 2 * count;
    size_t n = 0;
    if (id >= count) {
        memcpy(dst, "\xe2\x96\x81", 3);
        n = 3;
        id -= count;
    }
    for (int i = syllables; i > 0; i--, id /= 100) {
        dst[n + 2 * (size_t)i - 2] = "bcdfghjklmnpqrstvwxz"[id % 100 / 5];
        dst[n + 2 * (size_t)i - 1] = "aeiou"[id % 5];
    }
    return n + 2 * (size_t)syllables;
}

static wg_status set_vocabulary(wg_gguf_writer *g, int vocab, wg_error *err)
{
    const size_t n = (size_t)vocab;
    char *bytes = wg_alloc(n, TOKEN_TEXT);
    wg_text *text = wg_alloc(n, sizeof *text);
    float *score = wg_alloc(n, sizeof *score);
    int32_t *kind = wg_alloc(n, sizeof *kind);
    wg_status s = bytes && text && score && kind ? WG_OK : wg_nomem(err, n * TOKEN_TEXT, "a vocabulary");
    if (s == WG_OK) {
        for (int i = 0; i < vocab; i++) {
            char *p = bytes + (size_t)i * TOKEN_TEXT;
            text[i] = (wg_text){ p, token_text(i, p) };
            kind[i] = i == 0 ? 2 : i < SPECIALS ? 3 : i < SPECIALS + BYTES ? 6 : 1;
            score[i] = kind[i] == 1 ? -(float)(i - SPECIALS - BYTES) : 0;
        }
        wg_gguf_set_string(g, "tokenizer.ggml.model", "llama", 5);
        wg_gguf_set_strings(g, "tokenizer.ggml.tokens", text, n);
        wg_gguf_set_f32s(g, "tokenizer.ggml.scores", score, n);
        wg_gguf_set_i32s(g, "tokenizer.ggml.token_type", kind, n);
        wg_gguf_set_u32(g, "tokenizer.ggml.bos_token_id", 1);
        wg_gguf_set_u32(g, "tokenizer.ggml.eos_token_id", 2);
        wg_gguf_set_u32(g, "tokenizer.ggml.unknown_token_id", 0);
        wg_gguf_set_bool(g, "tokenizer.ggml.add_bos_token", true);
        wg_gguf_set_bool(g, "tokenizer.ggml.add_space_prefix", true);
    }
    wg_free(bytes);
    wg_free(text);
    wg_free(score);
    wg_free(kind);
    return s;
}

/* ---- the file ----------------------------------------------------------------------------------------------------- */

static void set_hyper(wg_gguf_writer *g, const wg_synth_shape *s, int type)
{
    char key[96];
    const struct {
        const char *name;
        int v;
        int families;
    } row[] = {
        { "vocab_size", s->vocab, ALL },
        { "context_length", s->context, ALL },
        { "embedding_length", s->dim, ALL },
        { "block_count", s->layers, ALL },
        { "feed_forward_length", s->hidden, ALL },
        { "attention.head_count", s->heads, ALL },
        { "attention.head_count_kv", s->kv_heads, ALL },
        { "attention.key_length", s->head_dim, ALL },
        { "attention.value_length", s->head_dim, ALL },
        { "rope.dimension_count", s->head_dim, ROTATED & ~NEOX },
        { "rope.dimension_count", (s->head_dim + 6) / 8 * 2, NEOX }, /* a quarter */
        { "expert_count", s->experts, SPARSE },
        { "expert_used_count", s->experts_used, SPARSE },
        { "expert_feed_forward_length", s->hidden, SPARSE },
        { "attention.sliding_window", 128, OSS },
        { "rope.scaling.original_context_length", s->context / 32 > 2 ? s->context / 32 : 2, OSS },
    };
    const int family = family_of(s->arch);
    wg_gguf_set_string(g, "general.architecture", s->arch, strlen(s->arch));
    wg_gguf_set_string(g, "general.name", s->name, strlen(s->name));
    wg_gguf_set_u32(g, "general.file_type", wg_gguf_file_type(type));
    if (wg_type_get(type)->block > 1) wg_gguf_set_u32(g, "general.quantization_version", 2);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (!(row[i].families & family)) continue;
        snprintf(key, sizeof key, "%s.%s", s->arch, row[i].name);
        wg_gguf_set_u32(g, key, (uint32_t)row[i].v);
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_%sepsilon", s->arch, family & UNGATED ? "" : "rms_");
    wg_gguf_set_f32(g, key, 1e-5f);
    snprintf(key, sizeof key, "%s.attention.max_alibi_bias", s->arch);
    if (family == MPT) wg_gguf_set_f32(g, key, 8);
    if (!(family & ROTATED)) return;
    snprintf(key, sizeof key, "%s.rope.freq_base", s->arch);
    wg_gguf_set_f32(g, key, (float)s->rope_base);
    if (family != OSS) return;
    snprintf(key, sizeof key, "%s.rope.scaling.type", s->arch);
    wg_gguf_set_string(g, key, "yarn", 4);
    snprintf(key, sizeof key, "%s.rope.scaling.factor", s->arch);
    wg_gguf_set_f32(g, key, 32);
}

/* Fills in the usual values and checks the rest. */
static wg_status check_shape(const wg_synth_shape *in, wg_synth_shape *s, wg_error *err)
{
    *s = *in;
    if (!s->name) s->name = "synthetic";
    if (!s->arch) s->arch = "llama";
    if (s->kv_heads == 0) s->kv_heads = s->heads;
    if (s->head_dim == 0 && s->heads > 0) s->head_dim = s->dim / s->heads;
    if (s->rope_base == 0) s->rope_base = 10000;
    const struct {
        const char *name;
        int v;
    } size[] = {
        { "layers", s->layers },     { "dim", s->dim },       { "heads", s->heads }, { "kv_heads", s->kv_heads },
        { "head_dim", s->head_dim }, { "hidden", s->hidden }, { "vocab", s->vocab }, { "context", s->context },
    };
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
        if (size[i].v < 1 || size[i].v > SIZE_MOST)
            return wg_fail(err, WG_EINVAL, "synthetic shape: %s is %d; expected 1..%d", size[i].name, size[i].v, SIZE_MOST);
    if (!family_of(s->arch))
        return wg_fail(
            err, WG_EINVAL,
            "synthetic shape: arch is '%s'; expected llama, qwen2, qwen3, qwen3moe, gpt2, gptneox, falcon, mpt or gpt-oss",
            s->arch);
    if (family_of(s->arch) & SPARSE &&
        (s->experts < 2 || s->experts > 512 || s->experts_used < 1 || s->experts_used > s->experts))
        return wg_fail(err, WG_EINVAL, "synthetic shape: %d of %d experts; expected 1 up to all of 2..512", s->experts_used,
                       s->experts);
    if (s->heads % s->kv_heads != 0)
        return wg_fail(err, WG_EINVAL, "synthetic shape: %d heads on %d key/value heads; expected a multiple", s->heads,
                       s->kv_heads);
    if (s->head_dim % 2 != 0)
        return wg_fail(err, WG_EINVAL, "synthetic shape: head_dim is %d; expected an even number", s->head_dim);
    if (!(s->rope_base > 1))
        return wg_fail(err, WG_EINVAL, "synthetic shape: rope_base is %g; expected more than 1", s->rope_base);
    return WG_OK;
}

/* Everything but the numbers. */
static wg_status describe(wg_gguf_writer *g, const wg_synth_shape *s, int type, job *j, wg_error *err)
{
    set_hyper(g, s, type);
    for (int i = 0; i < HEAD_PARTS - 1; i++) add_part(g, s, type, &head_parts[i], -1, j);
    for (int l = 0; l < s->layers; l++)
        for (int i = 0; i < LAYER_PARTS; i++) add_part(g, s, type, &layer_parts[i], l, j);
    add_part(g, s, type, &head_parts[HEAD_PARTS - 1], -1, j);
    return s->vocab >= SPECIALS + BYTES ? set_vocabulary(g, s->vocab, err) : WG_OK;
}

static wg_status job_open(job *j, wg_error *err)
{
    WG_TRY(wg_pool_open(&j->pool, 0, err));
    j->rows = wg_alloc((size_t)wg_pool_threads(j->pool), j->row_room * sizeof *j->rows);
    return j->rows ? WG_OK : wg_nomem(err, j->row_room * sizeof *j->rows, "rows of weights");
}

static void job_close(job *j)
{
    wg_free(j->rows);
    wg_pool_close(j->pool);
    j->rows = NULL, j->pool = NULL;
}

wg_status wg_synth_write(const wg_synth_shape *shape, int type, uint64_t seed, const char *out, wg_error *err)
{
    wg_synth_shape s;
    WG_TRY(check_shape(shape, &s, err));
    if (!can_draw(type))
        return wg_fail(err, WG_EINVAL, "cannot make weights of %s; expected " WG_COMPUTABLE_TYPES, wg_type_name(type));
    job j = { .seed = seed };
    wg_gguf_writer *g;
    WG_TRY(wg_gguf_writer_open(&g, out, err));
    wg_status st = describe(g, &s, type, &j, err);
    if (st == WG_OK) st = job_open(&j, err);
    if (st == WG_OK) st = wg_gguf_writer_finish(g, err);
    else wg_gguf_writer_abort(g);
    job_close(&j);
    return st;
}

static const wg_synth_shape *find_shape(const char *name, wg_error *err)
{
    char names[256] = "";
    const char *list[64];
    int n = 0;
    for (const wg_synth_shape *s = shapes; s->name; s++) {
        if (strcmp(s->name, name) == 0) return s;
        list[n++] = s->name;
        const size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", s->name);
    }
    list[n] = NULL;
    const char *near = wg_nearest(name, list);
    wg_fail(err, WG_EINVAL, "there is no shape '%s'; expected one of: %s%s%s%s", name, names, near ? " (did you mean '" : "",
            near ? near : "", near ? "'?)" : "");
    return NULL;
}

wg_status wg_synth(const char *like, int type, uint64_t seed, const char *out, wg_error *err)
{
    const wg_synth_shape *s = find_shape(like, err);
    return s ? wg_synth_write(s, type, seed, out, err) : WG_EINVAL;
}

/* ---- models without a file: the head is built at once, a tensor's bytes on demand ------------------------------------ */

typedef struct name_options {
    int layers, vocab, context, seed;
} name_options;

static const wg_option options[] = {
    WG_OPTION_INT(name_options, layers, 0, 0, 1024, "0: the shape's"),
    WG_OPTION_INT(name_options, vocab, 0, 0, 1 << 20, "0: the shape's"),
    WG_OPTION_INT(name_options, context, 0, 0, 1 << 20, "0: the shape's"),
    WG_OPTION_INT(name_options, seed, 1, 0, INT32_MAX, "another seed, another model"),
    WG_OPTION_END,
};

/* The next piece of a name between colons; false: it is too long for anything known. */
static bool take_word(const char **at, char *word, size_t size)
{
    const size_t n = strcspn(*at, ":");
    if (n >= size) return false;
    memcpy(word, *at, n);
    word[n] = '\0';
    *at += n + ((*at)[n] == ':');
    return true;
}

static wg_status parse(const char *name, wg_synth_shape *s, int *type, name_options *o, wg_error *err)
{
    char like[64], of[16];
    const char *at = name + strlen(WG_SYNTH_NAME);
    wg_option_defaults(options, o);
    if (!take_word(&at, like, sizeof like) || !take_word(&at, of, sizeof of) || !*like || !*of)
        return wg_fail(err, WG_EINVAL, "%.100s: expected " WG_SYNTH_NAMES, name);
    const wg_synth_shape *shape = find_shape(like, err);
    if (!shape) return wg_fail_in(err, WG_EINVAL, "%.100s", name);
    *type = wg_type_parse(of);
    if (!can_draw(*type))
        return wg_fail(err, WG_EINVAL, "%.100s: weights of type '%s': expected " WG_COMPUTABLE_TYPES, name, of);
    while (*at) {
        if (!take_word(&at, like, sizeof like)) return wg_fail(err, WG_EINVAL, "%.100s: expected " WG_SYNTH_NAMES, name);
        if (wg_option_set_list(options, o, sizeof *o, like, err)) return wg_fail_in(err, WG_EINVAL, "%.100s", name);
    }
    *s = *shape;
    if (o->layers) s->layers = o->layers;
    if (o->vocab) s->vocab = o->vocab;
    if (o->context) s->context = o->context;
    return check_shape(s, s, err);
}

/* The thread pool exists only while a tensor is generated, not while the model runs. */
static wg_status make(void *maker, const wg_tensor *t, void *dst, wg_error *err)
{
    job j = *(const job *)maker;
    wg_status s = job_open(&j, err);
    if (s == WG_OK) s = fill(&j, t, dst, err);
    job_close(&j);
    return s;
}

wg_status wg_synth_open(wg_weights **out, const char *name, wg_error *err)
{
    wg_synth_shape s;
    name_options o;
    int type = -1;
    wg_gguf_writer *g = NULL;
    WG_TRY(parse(name, &s, &type, &o, err));
    job *j = wg_calloc(1, sizeof *j);
    if (!j) return wg_nomem(err, sizeof *j, "a model without a file");
    j->seed = (uint64_t)o.seed;
    wg_status st = wg_gguf_writer_open(&g, NULL, err);
    if (st == WG_OK) st = describe(g, &s, type, j, err);
    if (st == WG_OK)
        return wg_weights_open_made(
            out, name, g, &(wg_maker){ .make = make, .close = wg_free, .user = j, .random = true, .seed = j->seed }, err);
    wg_gguf_writer_abort(g);
    wg_free(j);
    return st;
}
