/* SPDX-License-Identifier: MIT
 * llama.cpp's library as the target of wager's engine: drafts, rules and sampling are wager's, the logits libllama's. Its bits
 * are not wager's, so the text has the law of plain decoding over libllama's rows, and equal bits are not promised.
 *
 * A draft tree is decoded in one batch: every leaf has a sequence id of its own, a node carries the ids of the leaves below it,
 * and its position is its depth, so it sees its own path and nothing of its siblings. Afterwards the accepted path's cells are
 * given to the sequence that holds the text, and the leaves are dropped. What the text's sequence holds is compared with the
 * prefix of every call, so it is never trusted.
 *
 *     cc llama_target.c -I LLAMA/include -I LLAMA/ggml/include $(pkg-config --cflags --libs wager) -ldl -o llama_target
 *     ./llama_target libllama.so MODEL.gguf "Once upon a time" '{"draft": {"kind": "suffix"}, "max_tokens": 64}'
 *
 * libllama.so is loaded when the program runs, and refused when it lacks a function that the header has or when its defaults
 * are not where the header says. Models with a recurrent state cannot go back, and are refused. */
#include <dlfcn.h>
#include <llama.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wager.h>

/* A tree's nodes have cells of their own beside those of a whole text: siblings share a position, not a cell. */
enum { LEAVES = 63, ROWS = 2048, CONTEXT = 2048, TREE = 256 };

/* clang-format off */
#define FUNCTIONS(X) \
    X(llama_log_set) X(llama_backend_init) X(llama_model_default_params) X(llama_context_default_params) \
    X(llama_model_load_from_file) X(llama_model_free) X(llama_model_get_vocab) X(llama_model_is_recurrent) \
    X(llama_model_n_ctx_train) X(llama_init_from_model) X(llama_free) X(llama_vocab_n_tokens) \
    X(llama_vocab_is_eog) X(llama_tokenize) X(llama_token_to_piece) X(llama_get_memory) X(llama_memory_seq_rm) \
    X(llama_memory_seq_cp) X(llama_decode) X(llama_get_logits_ith)
/* clang-format on */

typedef struct llama {
#define X(name) __typeof__(&name) name;
    FUNCTIONS(X)
#undef X
    struct llama_model *model;
    struct llama_context *context;
    const struct llama_vocab *vocab;
    int held;   /* tokens of sequence 0's cache: the text */
    int leaves; /* sequences of the last call */
    int32_t text[CONTEXT];
    int n, from; /* the rows of the last call: nodes, and the position of the first */
    int32_t token[ROWS], parent[ROWS], depth[ROWS], leaf[ROWS]; /* leaf: a leaf below the node, 1 .., 0: none has an id */
    llama_pos pos[ROWS];
    int32_t ids[ROWS];
    llama_seq_id *id[ROWS], room[ROWS * 8];
    int8_t wanted[ROWS];
} llama;

static int load(llama *l, const char *path)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) return fprintf(stderr, "llama_target: %s\n", dlerror()), 1;
#define X(name)                                                                                                                \
    if (!(*(void **)&l->name = dlsym(object, #name)))                                                                          \
        return fprintf(stderr, "llama_target: %s has no %s; it is older or younger than the header\n", path, #name), 1;
    FUNCTIONS(X)
#undef X
    const struct llama_context_params p = l->llama_context_default_params();
    if (p.n_seq_max != 1 || p.n_ctx > 1 << 20 || p.n_batch < 1 || p.n_batch > 1 << 20)
        return fprintf(stderr, "llama_target: %s has other parameters than the header; use the header of that version\n", path),
               1;
    return 0;
}

static void say_errors(enum ggml_log_level level, const char *text, void *user)
{
    (void)user;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static int open_model(llama *l, const char *path)
{
    struct llama_context_params p = l->llama_context_default_params();
    l->llama_log_set(say_errors, NULL);
    l->llama_backend_init();
    l->model = l->llama_model_load_from_file(path, l->llama_model_default_params());
    if (!l->model) return fprintf(stderr, "llama_target: libllama cannot load %s\n", path), 1;
    if (l->llama_model_is_recurrent(l->model))
        return fprintf(stderr, "llama_target: %s has a recurrent state, which rejected drafts cannot be taken out of\n", path),
               1;
    const int trained = l->llama_model_n_ctx_train(l->model);
    p.n_ctx = (uint32_t)(trained < CONTEXT ? trained : CONTEXT) + TREE;
    p.n_batch = ROWS;
    p.n_seq_max = LEAVES + 1;
    p.n_threads = p.n_threads_batch = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
    p.kv_unified = true; /* leaves share the cells of the text */
    l->context = l->llama_init_from_model(l->model, p);
    l->vocab = l->llama_model_get_vocab(l->model);
    return l->context ? 0 : (fprintf(stderr, "llama_target: libllama cannot open a context of %u tokens\n", p.n_ctx), 1);
}

/* Keeps what the last call decoded of the prefix, and drops the rest: afterwards sequence 0 holds `held` tokens of it. */
static void settle(llama *l, const wg_score_rows *r)
{
    llama_memory_t memory = l->llama_get_memory(l->context);
    int same = 0, node = -1;
    while (same < l->held && same < r->prefix_n && l->text[same] == r->prefix[same]) same++;
    if (same == l->held && l->held == l->from) /* then down the tree, a child that the text has at a time */
        for (int i = 0; i < l->n && same < r->prefix_n; i++)
            if (l->parent[i] == node && l->token[i] == r->prefix[same]) {
                l->text[same++] = l->token[i];
                node = i;
            }
    if (node >= 0 && l->leaf[node]) l->llama_memory_seq_cp(memory, l->leaf[node], 0, l->from, same);
    for (int k = 1; k <= l->leaves; k++) l->llama_memory_seq_rm(memory, k, -1, -1);
    l->llama_memory_seq_rm(memory, 0, same, -1);
    l->held = same;
    l->n = l->leaves = 0;
}

/* Gives every node the ids of the leaves below it: in a chain sequence 0 itself. False: more leaves than ids. */
static int give_ids(llama *l, const wg_score_rows *r)
{
    llama_memory_t memory = l->llama_get_memory(l->context);
    int used = 0, chain = 1;
    for (int i = 0; i < r->n; i++) {
        chain = chain && r->parent[i] == i - 1;
        l->ids[i] = 0;
        l->leaf[i] = 0;
    }
    for (int i = 0; i < r->n && !chain; i++) {
        int children = 0;
        for (int k = i + 1; k < r->n; k++) children += r->parent[k] == i;
        if (children) continue;
        if (l->leaves == LEAVES) return 0;
        l->llama_memory_seq_cp(memory, 0, ++l->leaves, -1, -1);
        for (int k = i; k >= 0; k = r->parent[k]) l->ids[k]++, l->leaf[k] = l->leaves;
    }
    for (int i = 0; i < r->n; i++) {
        l->id[i] = l->room + used;
        used += chain ? 1 : l->ids[i];
        if (used > ROWS * 8) return 0;
        if (chain) l->ids[i] = 1, *l->id[i] = 0;
        else l->ids[i] = 0;
    }
    for (int i = 0, k = 0; i < r->n && !chain; i++) {
        int children = 0;
        for (int j = i + 1; j < r->n; j++) children += r->parent[j] == i;
        if (children) continue;
        for (int j = (k++, i); j >= 0; j = r->parent[j]) l->id[j][l->ids[j]++] = k;
    }
    return 1;
}

static struct llama_batch batch_of(llama *l, int n)
{
    return (struct llama_batch){
        .n_tokens = n, .token = l->token, .pos = l->pos, .n_seq_id = l->ids, .seq_id = l->id, .logits = l->wanted
    };
}

/* Decodes tokens of the text that are not held yet, which nobody reads. */
static int catch_up(llama *l, const wg_score_rows *r)
{
    llama_seq_id text = 0;
    const int n = r->prefix_n - l->held;
    for (int i = 0; i < n; i++) {
        l->token[i] = l->text[l->held + i] = r->prefix[l->held + i];
        l->pos[i] = l->held + i;
        l->ids[i] = 1;
        l->id[i] = &text;
        l->wanted[i] = 0;
    }
    const struct llama_batch batch = batch_of(l, n);
    if (n > 0 && l->llama_decode(l->context, batch)) return 1;
    l->held = r->prefix_n;
    return 0;
}

static int score(void *user, const wg_score_rows *r, int n, char *message, size_t room)
{
    llama *l = user;
    if (n != 1 || r->n > ROWS || r->prefix_n > CONTEXT) return snprintf(message, room, "one sequence, as it was opened"), 1;
    settle(l, r);
    if (catch_up(l, r)) return snprintf(message, room, "llama_decode failed on the text"), 1;
    if (!give_ids(l, r)) return snprintf(message, room, "a tree of more than %d leaves; draft fewer nodes", LEAVES), 1;
    for (int i = 0; i < r->n; i++) {
        l->token[i] = r->token[i];
        l->parent[i] = r->parent[i];
        l->depth[i] = r->parent[i] < 0 ? 0 : l->depth[r->parent[i]] + 1;
        l->pos[i] = r->prefix_n + l->depth[i];
        l->wanted[i] = r->logits[i] != NULL;
    }
    const struct llama_batch batch = batch_of(l, r->n);
    const int failed = l->llama_decode(l->context, batch);
    if (failed) return snprintf(message, room, "llama_decode returned %d", failed), 1;
    const size_t bytes = sizeof(float) * (size_t)l->llama_vocab_n_tokens(l->vocab);
    for (int i = 0; i < r->n; i++)
        if (r->logits[i]) memcpy(r->logits[i], l->llama_get_logits_ith(l->context, i), bytes);
    l->from = r->prefix_n;
    l->n = r->n;
    return 0;
}

static int is_end(void *user, int32_t token)
{
    const llama *l = user;
    return l->llama_vocab_is_eog(l->vocab, token);
}

static int generate(llama *l, const char *prompt, const char *config)
{
    static int32_t ids[CONTEXT];
    const int n = l->llama_tokenize(l->vocab, prompt, (int32_t)strlen(prompt), ids, CONTEXT, true, true);
    const int trained = l->llama_model_n_ctx_train(l->model);
    const wg_scorer target = { .size = sizeof target,
                               .name = "llama.cpp",
                               .vocab = l->llama_vocab_n_tokens(l->vocab),
                               .context = trained < CONTEXT ? trained : CONTEXT,
                               .score = score,
                               .is_end = is_end,
                               .user = l };
    wg_session *session = NULL;
    wg_sequence *text = NULL;
    wg_round round = { .size = sizeof round };
    wg_stats stats = { .size = sizeof stats };
    wg_error err;
    int failed =
        wg_session_open_scorer(&session, &target, config, &err) || wg_sequence_open_tokens(session, &text, ids, n, NULL, &err);
    while (!failed && round.end == WG_END_NOT) {
        failed = wg_sequence_next(text, &round, &err) != WG_OK;
        for (int i = 0; !failed && i < round.n; i++) {
            char piece[256];
            const int bytes = l->llama_token_to_piece(l->vocab, round.token[i], piece, sizeof piece, 0, false);
            fwrite(piece, 1, bytes > 0 ? (size_t)bytes : 0, stdout);
        }
    }
    if (failed) fprintf(stderr, "llama_target: %s\n", err.text);
    else if (!wg_sequence_stats(text, &stats, &err))
        fprintf(stderr, "%ld tokens in %ld passes of libllama (law only)\n", (long)stats.emitted, (long)stats.passes);
    wg_session_close(session);
    return failed;
}

int main(int argc, char **argv)
{
    static llama l;
    if (argc < 4) return fprintf(stderr, "usage: llama_target LIBLLAMA.so MODEL.gguf PROMPT [CONFIG]\n"), 2;
    int failed = load(&l, argv[1]) || open_model(&l, argv[2]);
    if (!failed) failed = generate(&l, argv[3], argc > 4 ? argv[4] : "{}");
    if (l.context) l.llama_free(l.context);
    if (l.model) l.llama_model_free(l.model);
    return failed;
}
