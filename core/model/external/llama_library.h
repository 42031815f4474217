/* SPDX-License-Identifier: MIT
 * The functions of libllama that a target uses, as its header declares them, without that header: versions differ in members
 * of the parameters, which are passed by value. Here they are bytes, of which the first four numbers have stood still and the
 * flag kv_unified is found behind its neighbours' defaults; a library where it is not found is refused. */
#ifndef WG_CORE_MODEL_EXTERNAL_LLAMA_LIBRARY_H
#define WG_CORE_MODEL_EXTERNAL_LLAMA_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* Larger than the parameters of any version. A function that returns or takes so many bytes by value does it in memory, where a
 * function with a smaller struct reads and writes the begin of it. */
typedef struct wg_llama_params {
    union {
        unsigned char byte[1024];
        uint32_t word[256]; /* of a context: n_ctx, n_batch, n_ubatch, n_seq_max, ... */
        void *align;
    };
} wg_llama_params;
enum { WG_LLAMA_N_CTX, WG_LLAMA_N_BATCH, WG_LLAMA_N_UBATCH, WG_LLAMA_N_SEQ_MAX };

typedef struct wg_llama_batch {
    int32_t n_tokens;
    int32_t *token;
    float *embd;
    int32_t *pos, *n_seq_id, **seq_id;
    int8_t *logits;
} wg_llama_batch;

/* result, name, parameters. Their first argument but for these of the library itself is an opaque pointer. */
/* clang-format off */
#define WG_LLAMA_FUNCTIONS(X) \
    X(void, llama_backend_init, (void)) \
    X(void, llama_log_set, (void (*log)(int level, const char *text, void *user), void *user)) \
    X(wg_llama_params, llama_model_default_params, (void)) \
    X(wg_llama_params, llama_context_default_params, (void)) \
    X(size_t, llama_max_parallel_sequences, (void)) \
    X(void *, llama_model_load_from_file, (const char *path, wg_llama_params p)) \
    X(void, llama_model_free, (void *model)) \
    X(const void *, llama_model_get_vocab, (const void *model)) \
    X(bool, llama_model_is_recurrent, (const void *model)) \
    X(int32_t, llama_model_n_ctx_train, (const void *model)) \
    X(void *, llama_init_from_model, (void *model, wg_llama_params p)) \
    X(void, llama_free, (void *context)) \
    X(void, llama_set_n_threads, (void *context, int32_t n, int32_t n_batch)) \
    X(int32_t, llama_vocab_n_tokens, (const void *vocab)) \
    X(void *, llama_get_memory, (const void *context)) \
    X(void, llama_memory_clear, (void *memory, bool data)) \
    X(bool, llama_memory_seq_rm, (void *memory, int32_t id, int32_t p0, int32_t p1)) \
    X(void, llama_memory_seq_cp, (void *memory, int32_t from, int32_t to, int32_t p0, int32_t p1)) \
    X(int32_t, llama_decode, (void *context, wg_llama_batch batch)) \
    X(float *, llama_get_logits_ith, (void *context, int32_t i))
/* clang-format on */

typedef struct wg_llama_library {
    void *object; /* of dlopen */
#define X(result, name, parameters) result(*name) parameters;
    WG_LLAMA_FUNCTIONS(X)
#undef X
    size_t kv_unified; /* where the flag is in the parameters of a context */
} wg_llama_library;

/* EUNSUPPORTED: it cannot be loaded, lacks a function, or has other parameters than are known. */
wg_status wg_llama_library_open(wg_llama_library *l, const char *path, wg_error *err);
void wg_llama_library_close(wg_llama_library *l);

#endif
