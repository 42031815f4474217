/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as a head: a GGUF file, or a folder: config.json, a zero byte, model.safetensors. What is accepted has
 * tensors of the sizes of its spec, inside the file; what is refused says why. */
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/file/head_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

enum { TOKENS = 1 << 12 };

static void check(const wg_head_file *f, size_t n)
{
    const wg_head_spec *s = wg_head_file_spec(f);
    const wg_safetensor *t = wg_head_file_find(f, "fc.weight");
    int32_t token[TOKENS];
    int tap[WG_HEAD_TAPS];
    wg_error err = { 0 };
    const int64_t in = wg_head_joins(s) ? 2 * (int64_t)s->dim : (int64_t)s->n_taps * s->target_dim;
    if (!t || t->dim[0] != s->dim || t->dim[1] != in || t->bytes > n) abort();
    const bool selects = s->markov == WG_MARKOV_SELECTOR;
    t = wg_head_file_find(f, selects ? "candidate_selector.successor_codebook" : "markov_head.markov_w2.weight");
    if (s->markov && (!t || t->dim[0] != s->draft_vocab || t->dim[1] != s->markov_rank || t->bytes > n)) abort();
    t = wg_head_file_find(f, "confidence_head.proj.weight");
    if (s->confidence && (!t || t->dim[1] != s->dim + (s->confidence_markov ? s->markov_rank : 0) || t->bytes > n)) abort();
    if (s->layers < 1 || s->layers > WG_HEAD_LAYERS || s->draft_vocab > s->vocab || s->n_assumed > WG_HEAD_ASSUMED) abort();
    if (wg_head_file_taps(f, 30, tap, &err) != WG_OK && err.text[0] == '\0') abort();
    if (!wg_head_file_find(f, "d2t") || s->draft_vocab > TOKENS) return;
    if (wg_head_file_tokens(f, token, &err) != WG_OK) return;
    for (int i = 0; i < s->draft_vocab; i++)
        if (token[i] < 0 || token[i] >= s->vocab) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    const uint8_t *end = memchr(bytes, 0, n);
    wg_json *config = NULL;
    wg_error err = { 0 };
    const bool gguf = n >= 4 && memcmp(bytes, "GGUF", 4) == 0;
    if (!gguf && (!end || wg_json_parse_foreign(&config, "input", (const char *)bytes, (size_t)(end - bytes), &err))) return 0;
    wg_head_file *f;
    const uint8_t *from = gguf ? bytes : end + 1;
    const size_t rest = n - (size_t)(from - bytes);
    err = (wg_error){ 0 };
    if (wg_head_file_read(&f, "input", gguf ? NULL : wg_json_root(config), from, rest, &err) == WG_OK) {
        check(f, rest);
        wg_head_file_close(f);
    } else if (err.text[0] == '\0') abort();
    wg_json_close(config);
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
