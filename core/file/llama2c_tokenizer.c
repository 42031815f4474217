/* SPDX-License-Identifier: MIT
 * The llama2.c tokenizer.bin as GGUF metadata: u32 longest token, then per token f32 score, u32 length, bytes. It holds an
 * SPM vocabulary whose U+2581 was replaced by a space and whose <s> and </s> stand between newlines; both are undone here.
 * It does not hold kinds: ids 0, 1, 2 are <unk>, <s>, </s> and "<0xNN>" is a byte, as in every SPM model it came from. */
#include <string.h>

#include "core/base/mem.h"
#include "core/file/format.h"
#include "core/file/gguf_write.h"

enum { SPACE_BYTES = 3, UNKNOWN = 0, BOS = 1, EOS = 2 };
enum { KIND_NORMAL = 1, KIND_UNKNOWN = 2, KIND_CONTROL = 3, KIND_BYTE = 6 };

typedef struct vocab {
    wg_text *text;
    float *score;
    int32_t *kind;
    char *bytes; /* the bytes that `text` points into */
} vocab;

static bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); }

static int32_t kind_of(int64_t id, const char *s, size_t n)
{
    if (id == UNKNOWN) return KIND_UNKNOWN;
    if (id == BOS || id == EOS) return KIND_CONTROL;
    return n == 6 && memcmp(s, "<0x", 3) == 0 && is_hex(s[3]) && is_hex(s[4]) && s[5] == '>' ? KIND_BYTE : KIND_NORMAL;
}

/* Token text with its spaces restored; returns the bytes written. */
static size_t restore(int64_t id, const char *s, size_t n, char *dst)
{
    if ((id == BOS || id == EOS) && n >= 2 && s[0] == '\n' && s[n - 1] == '\n') s++, n -= 2;
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == ' ') memcpy(dst + k, "\xe2\x96\x81", SPACE_BYTES), k += SPACE_BYTES;
        else dst[k++] = s[i];
    }
    return k;
}

static wg_status truncated(const char *path, size_t at, int64_t id, int64_t n, wg_error *err)
{
    return wg_fail(err, WG_EFORMAT,
                   "%s: byte %zu: the file ends inside token %lld of %lld; expected a llama2.c tokenizer.bin with as many "
                   "tokens as the model: is it the tokenizer of another model, or truncated?",
                   path, at, (long long)id, (long long)n);
}

static wg_status parse(const char *path, const char *p, size_t n, int64_t count, vocab *v, wg_error *err)
{
    size_t at = 4, fill = 0;
    for (int64_t id = 0; id < count; id++) {
        uint32_t len;
        if (n < 8 || at > n - 8) return truncated(path, at, id, count, err);
        memcpy(&v->score[id], p + at, 4);
        memcpy(&len, p + at + 4, 4);
        at += 8;
        if (len > n - at) return truncated(path, at, id, count, err);
        const size_t k = restore(id, p + at, len, v->bytes + fill);
        v->text[id] = (wg_text){ v->bytes + fill, k };
        v->kind[id] = kind_of(id, p + at, len);
        fill += k;
        at += len;
    }
    if (at != n)
        return wg_fail(err, WG_EFORMAT,
                       "%s: byte %zu: %zu bytes follow the last of %lld tokens; it is the tokenizer of a model with another "
                       "vocabulary",
                       path, at, n - at, (long long)count);
    return WG_OK;
}

static void set(wg_gguf_writer *g, const vocab *v, size_t n)
{
    wg_gguf_set_string(g, "tokenizer.ggml.model", "llama", 5);
    wg_gguf_set_strings(g, "tokenizer.ggml.tokens", v->text, n);
    wg_gguf_set_f32s(g, "tokenizer.ggml.scores", v->score, n);
    wg_gguf_set_i32s(g, "tokenizer.ggml.token_type", v->kind, n);
    wg_gguf_set_u32(g, "tokenizer.ggml.bos_token_id", BOS);
    wg_gguf_set_u32(g, "tokenizer.ggml.eos_token_id", EOS);
    wg_gguf_set_u32(g, "tokenizer.ggml.unknown_token_id", UNKNOWN);
    wg_gguf_set_bool(g, "tokenizer.ggml.add_bos_token", true);
    wg_gguf_set_bool(g, "tokenizer.ggml.add_eos_token", false);
    wg_gguf_set_bool(g, "tokenizer.ggml.add_space_prefix", true);
}

wg_status wg_llama2c_tokenizer(wg_gguf_writer *g, const char *name, const char *bytes, size_t n, int64_t count, wg_error *err)
{
    if (count < 3 || (uint64_t)count > n / 8)
        return wg_fail(err, WG_EFORMAT,
                       "%s: %zu bytes cannot hold the %lld tokens of the model; expected a llama2.c tokenizer.bin", name, n,
                       (long long)count);
    vocab v = {
        .text = wg_calloc((size_t)count, sizeof *v.text),
        .score = wg_calloc((size_t)count, sizeof *v.score),
        .kind = wg_calloc((size_t)count, sizeof *v.kind),
        .bytes = wg_alloc(n, SPACE_BYTES),
    };
    const bool ok = v.text && v.score && v.kind && v.bytes;
    wg_status s = ok ? parse(name, bytes, n, count, &v, err) : wg_nomem(err, n * SPACE_BYTES, "a vocabulary");
    if (s == WG_OK) set(g, &v, (size_t)count);
    wg_free(v.text);
    wg_free(v.score);
    wg_free(v.kind);
    wg_free(v.bytes);
    return s;
}
