/* SPDX-License-Identifier: MIT
 * llama.cpp as a target (llamacpp.h). */
#include "core/model/external/llamacpp.h"

#include <dlfcn.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/external/row_protocol.h"

enum { ROWS = WG_EXTERNAL_ROWS, IDS_MOST = 256, IDS_OF_ROWS = 8 * ROWS };

/* ---- the library
 *
 * Its functions as its header declares them, without that header: versions differ in members of the parameters, which are
 * passed by value. Here they are bytes, of which the first four numbers have stood still and the flag kv_unified is found
 * behind its neighbours' defaults; a library where it is not found is refused. */

/* Larger than the parameters of any version. A function that returns or takes so many bytes by value does it in memory, where a
 * function with a smaller struct reads and writes the begin of it. */
typedef struct llama_params {
    union {
        unsigned char byte[1024];
        uint32_t word[256]; /* of a context: n_ctx, n_batch, n_ubatch, n_seq_max, ... */
        void *align;
    };
} llama_params;
enum { N_CTX, N_BATCH, N_UBATCH, N_SEQ_MAX };

typedef struct llama_batch {
    int32_t n_tokens;
    int32_t *token;
    float *embd;
    int32_t *pos, *n_seq_id, **seq_id;
    int8_t *logits;
} llama_batch;

/* result, name, parameters. Their first argument but for these of the library itself is an opaque pointer. */
/* clang-format off */
#define LLAMA_FUNCTIONS(X) \
    X(void, llama_backend_init, (void)) \
    X(void, llama_log_set, (void (*log)(int level, const char *text, void *user), void *user)) \
    X(llama_params, llama_model_default_params, (void)) \
    X(llama_params, llama_context_default_params, (void)) \
    X(size_t, llama_max_parallel_sequences, (void)) \
    X(void *, llama_model_load_from_file, (const char *path, llama_params p)) \
    X(void, llama_model_free, (void *model)) \
    X(const void *, llama_model_get_vocab, (const void *model)) \
    X(bool, llama_model_is_recurrent, (const void *model)) \
    X(int32_t, llama_model_n_ctx_train, (const void *model)) \
    X(void *, llama_init_from_model, (void *model, llama_params p)) \
    X(void, llama_free, (void *context)) \
    X(void, llama_set_n_threads, (void *context, int32_t n, int32_t n_batch)) \
    X(int32_t, llama_vocab_n_tokens, (const void *vocab)) \
    X(void *, llama_get_memory, (const void *context)) \
    X(void, llama_memory_clear, (void *memory, bool data)) \
    X(bool, llama_memory_seq_rm, (void *memory, int32_t id, int32_t p0, int32_t p1)) \
    X(void, llama_memory_seq_cp, (void *memory, int32_t from, int32_t to, int32_t p0, int32_t p1)) \
    X(int32_t, llama_decode, (void *context, llama_batch batch)) \
    X(float *, llama_get_logits_ith, (void *context, int32_t i))
/* clang-format on */

typedef struct llama_library {
    void *object; /* of dlopen */
#define X(result, name, parameters) result(*name) parameters;
    LLAMA_FUNCTIONS(X)
#undef X
    size_t kv_unified; /* where the flag is in the parameters of a context */
} llama_library;

/* The end of a context's parameters by default: the types of keys and values (f16), a callback and its argument, then
 * embeddings, offload_kqv, no_perf, op_offload, swa_full and kv_unified. */
static const unsigned char end_of_params[] = { 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                               0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0 };

/* Where kv_unified stands; 0: it was not found, or twice. */
static size_t find_kv_unified(const llama_params *p)
{
    const size_t n = sizeof end_of_params;
    size_t found = 0, times = 0;
    for (size_t at = 16; at + n <= sizeof p->byte; at += 4)
        if (!memcmp(p->byte + at, end_of_params, n)) found = at + n - 1, times++;
    return times == 1 ? found : 0;
}

/* EUNSUPPORTED: it cannot be loaded, lacks a function, or has other parameters than are known. */
static wg_status open_library(llama_library *l, const char *path, wg_error *err)
{
    *l = (llama_library){ .object = dlopen(path, RTLD_NOW | RTLD_LOCAL) };
    if (!l->object) return wg_fail(err, WG_EUNSUPPORTED, "%s; name libllama.so of llama.cpp", dlerror());
#define X(result, name, parameters)                                                                                            \
    if (!(*(void **)&l->name = dlsym(l->object, #name)))                                                                       \
        return wg_fail(err, WG_EUNSUPPORTED, "%s has no %s; it is another library, or of another version", path, #name);
    LLAMA_FUNCTIONS(X)
#undef X
    llama_params p;
    memset(&p, 0, sizeof p);
    p = l->llama_context_default_params();
    l->kv_unified = find_kv_unified(&p);
    if (l->kv_unified && p.word[N_SEQ_MAX] == 1 && p.word[N_BATCH] >= 1 && p.word[N_BATCH] <= 1 << 20) return WG_OK;
    return wg_fail(err, WG_EUNSUPPORTED, "%s has other parameters than are known here; use another version of llama.cpp", path);
}

static void close_library(llama_library *l)
{
    if (l->object) dlclose(l->object);
    l->object = NULL;
}

/* ---- the target */

/* A sequence: its text has the id of its number. */
typedef struct held_text {
    int text, rows;        /* tokens of the text; rows of its last request, behind it */
    int32_t leaf[ROWS];    /* an id of a leaf below the row, or that of the text in a chain */
    uint8_t own[IDS_MOST]; /* ids that its leaves have */
    int leaves;
} held_text;

typedef struct llama_server {
    wg_row_server base; /* first */
    llama_library lib;
    void *model, *context, *memory;
    int ids;         /* sequence ids, of texts and leaves */
    held_text *held; /* (sequences) */
    bool taken[IDS_MOST];
    int32_t token[ROWS], pos[ROWS], ids_of[ROWS], *id[ROWS], room[IDS_OF_ROWS];
    int8_t wanted[ROWS];
} llama_server;

/* ---- sequence ids */

static void drop_leaves(llama_server *s, held_text *h)
{
    for (int i = 0; i < h->leaves; i++) {
        s->lib.llama_memory_seq_rm(s->memory, h->own[i], -1, -1);
        s->taken[h->own[i]] = false;
    }
    h->leaves = 0;
}

/* Keeps the tokens and rows that the part names, and drops the rest of its sequence. */
static wg_status settle(llama_server *s, const wg_asked_part *p, wg_error *err)
{
    held_text *h = &s->held[p->sequence];
    const int text = p->kept + p->path_n, id = p->path_n ? h->leaf[p->path[p->path_n - 1]] : p->sequence;
    if (id != p->sequence) s->lib.llama_memory_seq_cp(s->memory, id, p->sequence, h->text, text);
    drop_leaves(s, h);
    h->text = text;
    h->rows = 0;
    if (s->lib.llama_memory_seq_rm(s->memory, p->sequence, text, -1)) return WG_OK;
    return wg_fail(err, WG_EUNSUPPORTED, "libllama cannot take rejected drafts out of this model's memory");
}

static bool is_chain(const wg_asked_part *p)
{
    for (int i = 0; i < p->n; i++)
        if (p->row[i].parent != i - 1) return false;
    return true;
}

static bool is_leaf(const wg_asked_part *p, int row)
{
    for (int i = row + 1; i < p->n; i++)
        if (p->row[i].parent == row) return false;
    return true;
}

/* Takes a free id and gives it the cells of the text; -1: all are taken. */
static int take_id(llama_server *s, const wg_asked_part *p)
{
    held_text *h = &s->held[p->sequence];
    int id = s->base.sequences;
    while (id < s->ids && s->taken[id]) id++;
    if (id == s->ids) return -1;
    s->taken[id] = true;
    h->own[h->leaves++] = (uint8_t)id;
    s->lib.llama_memory_seq_cp(s->memory, p->sequence, id, -1, -1);
    return id;
}

/* Gives every row the ids of the leaves below it, or in a chain that of the text. */
static wg_status give_ids(llama_server *s, const wg_asked_part *p, wg_error *err)
{
    held_text *h = &s->held[p->sequence];
    const bool chain = is_chain(p);
    int32_t leaf_id[ROWS];
    int used = 0;
    for (int i = 0; i < p->n; i++) {
        s->ids_of[i] = chain;
        h->leaf[i] = leaf_id[i] = chain ? p->sequence : -1;
    }
    for (int i = 0; i < p->n && !chain; i++) {
        if (!is_leaf(p, i)) continue;
        if ((leaf_id[i] = take_id(s, p)) < 0)
            return wg_fail(err, WG_EUNSUPPORTED, "more leaves of trees than the %d ids that libllama has; draft fewer nodes",
                           s->ids - s->base.sequences);
        for (int k = i; k >= 0; k = p->row[k].parent) s->ids_of[k]++, h->leaf[k] = leaf_id[i];
    }
    for (int i = 0; i < p->n; i++) {
        s->id[i] = s->room + used;
        used += s->ids_of[i];
        if (used > IDS_OF_ROWS)
            return wg_fail(err, WG_EUNSUPPORTED, "a tree of too many paths for libllama; draft fewer nodes");
        if (chain) *s->id[i] = p->sequence;
        else s->ids_of[i] = 0;
    }
    for (int i = 0; i < p->n && !chain; i++)
        for (int k = leaf_id[i] < 0 ? -1 : i; k >= 0; k = p->row[k].parent) s->id[k][s->ids_of[k]++] = leaf_id[i];
    return WG_OK;
}

/* ---- passes */

static wg_status pass(llama_server *s, const wg_asked_part *p, float *logits, wg_error *err)
{
    const size_t vocab = (size_t)s->base.vocab;
    WG_TRY(settle(s, p, err));
    WG_TRY(give_ids(s, p, err));
    for (int i = 0; i < p->n; i++) {
        s->token[i] = p->row[i].token;
        s->pos[i] = p->row[i].position;
        s->wanted[i] = p->row[i].logits >= 0;
    }
    const llama_batch batch = {
        .n_tokens = p->n, .token = s->token, .pos = s->pos, .n_seq_id = s->ids_of, .seq_id = s->id, .logits = s->wanted
    };
    const int failed = s->lib.llama_decode(s->context, batch);
    if (failed)
        return wg_fail(err, WG_EIO, "llama_decode returned %d for %d rows behind %d tokens", failed, p->n,
                       s->held[p->sequence].text);
    s->held[p->sequence].rows = p->n;
    for (int i = 0; i < p->n; i++) {
        if (!s->wanted[i]) continue;
        float *to = logits + (size_t)p->row[i].logits * vocab;
        const float *row = s->lib.llama_get_logits_ith(s->context, i);
        if (!row) return wg_fail(err, WG_EIO, "libllama has no logits of row %d", i);
        memcpy(to, row, vocab * sizeof *to);
        WG_TRY(wg_rows_check_finite(to, 1, s->base.vocab, "logits", err));
    }
    return WG_OK;
}

static wg_status answer(wg_row_server *base, const wg_asked *asked, float *logits, float *taps, wg_error *err)
{
    llama_server *s = (llama_server *)base;
    wg_status status = WG_OK;
    (void)taps;
    for (int i = 0; i < asked->parts && !status; i++) status = pass(s, &asked->part[i], logits, err);
    if (!status) return WG_OK;
    s->lib.llama_memory_clear(s->memory, true);
    memset(s->held, 0, (size_t)s->base.sequences * sizeof *s->held);
    memset(s->taken, 0, sizeof s->taken);
    return status;
}

static void close_server(wg_row_server *base)
{
    llama_server *s = (llama_server *)base;
    if (s->context) s->lib.llama_free(s->context);
    if (s->model) s->lib.llama_model_free(s->model);
    close_library(&s->lib);
    wg_free(s->held);
    wg_free(s);
}

static const wg_row_server_class llamacpp_class = { .name = "llamacpp", .answer = answer, .close = close_server };

/* ---- opening */

static void say_nothing(int level, const char *text, void *user) { (void)level, (void)text, (void)user; }

static wg_status load_model(llama_server *s, const char *path, wg_error *err)
{
    s->lib.llama_log_set(say_nothing, NULL);
    s->lib.llama_backend_init();
    s->model = s->lib.llama_model_load_from_file(path, s->lib.llama_model_default_params());
    if (!s->model) return wg_fail(err, WG_EMODEL, "libllama cannot load %s", path);
    if (!s->lib.llama_model_is_recurrent(s->model)) return WG_OK;
    return wg_fail(err, WG_EUNSUPPORTED, "%s has a recurrent state, which rejected drafts cannot be taken out of", path);
}

static wg_status open_context(llama_server *s, const wg_llamacpp_target *o, wg_error *err)
{
    const int trained = s->lib.llama_model_n_ctx_train(s->model), n = o->sequences > 0 ? o->sequences : 1;
    const size_t most = s->lib.llama_max_parallel_sequences();
    llama_params p = s->lib.llama_context_default_params();
    s->base.context = o->context ? o->context : trained < WG_LLAMACPP_CONTEXT ? trained : WG_LLAMACPP_CONTEXT;
    s->base.sequences = n;
    s->ids = most < IDS_MOST ? (int)most : IDS_MOST;
    if (n >= s->ids)
        return wg_fail(err, WG_EUNSUPPORTED, "%d sequences at once; libllama has %d ids, of which trees need some", n, s->ids);
    if (s->base.context > trained)
        return wg_fail(err, WG_ECONTEXT, "context is %d; the model was trained for %d tokens", s->base.context, trained);
    p.word[N_CTX] = (uint32_t)n * (uint32_t)(s->base.context + 4 * WG_TREE_NODES);
    p.word[N_BATCH] = ROWS;
    p.word[N_SEQ_MAX] = (uint32_t)s->ids;
    p.byte[s->lib.kv_unified] = true; /* leaves share the cells of the text */
    s->context = s->lib.llama_init_from_model(s->model, p);
    if (!s->context)
        return wg_fail(err, WG_ENOMEM, "libllama cannot open a context of %u cells; lower target.context", p.word[0]);
    s->memory = s->lib.llama_get_memory(s->context);
    if (o->threads) s->lib.llama_set_n_threads(s->context, o->threads, o->threads);
    s->base.vocab = s->lib.llama_vocab_n_tokens(s->lib.llama_model_get_vocab(s->model));
    s->held = wg_calloc((size_t)n, sizeof *s->held);
    return s->held ? WG_OK : wg_nomem(err, (size_t)n * sizeof *s->held, "a target of llama.cpp");
}

wg_status wg_llamacpp_open(wg_lm **out, const wg_llamacpp_target *o, wg_error *err)
{
    llama_server *s = wg_calloc(1, sizeof *s);
    if (!s) return wg_nomem(err, sizeof *s, "a target of llama.cpp");
    s->base.class = &llamacpp_class;
    wg_status status = open_library(&s->lib, o->library, err);
    if (!status) status = load_model(s, o->model, err);
    if (!status) status = open_context(s, o, err);
    if (!status) return wg_external_open(out, &s->base, 0, err);
    close_server(&s->base);
    return wg_fail_in(err, status, "target llamacpp");
}
