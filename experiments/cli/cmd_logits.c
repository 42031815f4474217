/* SPDX-License-Identifier: MIT
 * wager logits: the logits of a model for a token sequence or tree: the top five and a digest per row, or every row in a
 * file. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/base/save.h"
#include "core/file/quantize.h"
#include "experiments/cli/cli.h"
#include "experiments/config/config.h"

enum { TOP = 5, PASS_ROWS = 64 };

/* The command line's request. */
typedef struct request {
    const char *path, *kind, *device, *ranks, *quantize; /* kind: an external target's, or NULL */
    wg_cli_ints tokens, parents;                         /* parents.v NULL: a sequence */
    wg_save *out;                                        /* NULL: to standard output */
    int threads, kv_type;
    bool json, allow_nan;
} request;

/* Adds tokens[first .. first+n) as nodes of a tree given by parents. */
static void add_tree(wg_batch *b, wg_kv_seq *kv, const wg_cli_ints *tokens, const wg_cli_ints *parents)
{
    wg_mask anc[WG_TREE_NODES];
    int depth[WG_TREE_NODES];
    for (int i = 0; i < tokens->n; i++) {
        const int p = parents->v[i];
        anc[i] = p < 0 ? wg_mask_bit(i) : wg_mask_with(anc[p], i);
        depth[i] = p < 0 ? 0 : depth[p] + 1;
        wg_batch_node(b, kv, i, depth[i], anc[i], tokens->v[i], true);
    }
}

static wg_status check_parents(const wg_cli_ints *tokens, const wg_cli_ints *parents, wg_error *err)
{
    if (parents->n != tokens->n)
        return wg_fail(err, WG_EINVAL, "--parents has %d numbers for %d tokens; give one per token, -1 for a root", parents->n,
                       tokens->n);
    if (tokens->n > WG_TREE_NODES)
        return wg_fail(err, WG_EINVAL, "--parents: a tree has at most %d nodes, this one has %d", WG_TREE_NODES, tokens->n);
    for (int i = 0; i < parents->n; i++)
        if (parents->v[i] >= i)
            return wg_fail(err, WG_EINVAL, "--parents: node %d has parent %d; parents come before children", i, parents->v[i]);
    return WG_OK;
}

static int32_t best_below(const float *x, int n, const int32_t *taken, int n_taken)
{
    int32_t best = -1;
    for (int32_t i = 0; i < n; i++) {
        bool used = false;
        for (int k = 0; k < n_taken; k++) used |= taken[k] == i;
        if (!used && (best < 0 || x[i] > x[best])) best = i;
    }
    return best;
}

static void print_row(const wg_target *t, int row, int32_t token, const float *x, bool json)
{
    int32_t top[TOP];
    const int n = t->lm->vocab < TOP ? t->lm->vocab : TOP;
    for (int k = 0; k < n; k++) top[k] = best_below(x, t->lm->vocab, top, k);
    const uint64_t hash = wg_hash64(WG_HASH_START, x, (size_t)t->lm->vocab * sizeof *x);
    char hex[24];
    snprintf(hex, sizeof hex, "%016" PRIx64, hash);
    if (json) {
        json_t *list = json_array();
        for (int k = 0; k < n; k++)
            json_array_append_new(list, json_pack("{s:i, s:f}", "id", (int)top[k], "logit", (double)x[top[k]]));
        json_t *o = json_pack("{s:i, s:i, s:s, s:o}", "row", row, "token", (int)token, "hash", hex, "top", list);
        wg_json_put_line(o, 0);
        return;
    }
    printf("row %d  token %" PRId32 "  hash %s ", row, token, hex);
    for (int k = 0; k < n; k++) {
        printf("  %" PRId32, top[k]);
        if (t->tokenizer) {
            const wg_text piece = wg_tokenizer_piece(t->tokenizer, top[k]);
            printf(" '%.*s'", (int)piece.n, piece.s);
        }
        printf(" %.4f", (double)x[top[k]]);
    }
    putchar('\n');
}

/* Runs passes of at most PASS_ROWS rows; the logits of every row are printed or written to the file. */
static wg_status run_passes(const request *r, const wg_target *t, wg_kv_seq *kv, wg_batch *b, float *logits, wg_error *err)
{
    const wg_cli_ints *tokens = &r->tokens, *parents = &r->parents;
    for (int first = 0; first < tokens->n;) {
        const int left = tokens->n - first, n = parents->v || left < PASS_ROWS ? left : PASS_ROWS;
        WG_TRY(wg_kv_reserve(kv, n, err));
        wg_batch_clear(b);
        if (parents->v) add_tree(b, kv, tokens, parents);
        else wg_batch_chain(b, kv, first, tokens->v + first, n, n);
        WG_TRY(wg_lm_forward(t->lm, b, logits, err));
        for (int i = 0; i < n; i++) {
            const float *x = logits + (size_t)i * (size_t)t->lm->vocab;
            if (!r->out) print_row(t, first + i, tokens->v[first + i], x, r->json);
            else WG_TRY(wg_save_write(r->out, x, (size_t)t->lm->vocab * sizeof *x, err));
        }
        if (!parents->v) wg_kv_commit_chain(kv, n);
        first += n;
    }
    wg_kv_rollback(kv);
    return WG_OK;
}

static wg_status logits_run(const request *r, wg_error *err)
{
    wg_target *t = NULL;
    wg_kv *kv = NULL;
    wg_kv_seq *seq = NULL;
    wg_batch b = { 0 };
    float *logits = NULL;
    wg_target_options want = { .device = r->device,
                               .ranks = r->ranks,
                               .threads = r->threads,
                               .quantize = r->quantize,
                               .model = { .kv_type = r->kv_type, .allow_nan = r->allow_nan } };
    wg_setup_target external;
    if (r->kind) {
        WG_TRY(wg_target_parse(&external, r->kind, err));
        want.external = wg_setup_target_options(&external).external;
    }
    wg_status s = wg_target_open(&t, r->path, &want, err);
    if (!s && r->tokens.n > t->lm->context)
        s = wg_fail(err, WG_ECONTEXT, "%s: %d tokens are more than the model\'s context of %d; give fewer", r->path,
                    r->tokens.n, t->lm->context);
    const int room = r->tokens.n + 1;
    if (!s) s = wg_kv_open(&kv, 16, (room + 15) / 16 + 1 + (PASS_ROWS + 15) / 16, room + PASS_ROWS, err);
    if (!s) s = wg_lm_attach(t->lm, kv, err);
    if (!s) s = wg_kv_seq_open(kv, &seq, err);
    if (!s) s = wg_batch_open(&b, PASS_ROWS, err);
    if (!s && !(logits = wg_alloc((size_t)PASS_ROWS * (size_t)t->lm->vocab, sizeof *logits)))
        s = wg_nomem(err, (size_t)PASS_ROWS * (size_t)t->lm->vocab * sizeof *logits, "logits");
    if (!s) s = run_passes(r, t, seq, &b, logits, err);
    wg_free(logits);
    wg_batch_close(&b);
    wg_kv_seq_close(seq);
    wg_kv_close(kv);
    wg_target_close(t);
    return s;
}

int wg_cmd_logits(int argc, char **argv)
{
    const char *path = NULL, *token_text = NULL, *parent_text = NULL, *out_path = NULL, *device = NULL, *kv_name = NULL,
               *quantize = NULL, *kind = NULL, *ranks = NULL;
    long threads = 0;
    bool json = false, allow_nan = false;
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL, &path, "the model"),
        { "tokens", 0, WG_FLAG_STRING, &token_text, "1,2,3", "token ids", 0, 0 },
        { "target", 0, WG_FLAG_STRING, &kind, "KIND:k=v,...",
          "a target that another program computes, such as process:command=PROGRAM", 0, 0 },
        { "parents", 0, WG_FLAG_STRING, &parent_text, "-1,0,1",
          "the tokens are a tree: index of each token's parent, -1 for a root", 0, 0 },
        { "out", 'o', WG_FLAG_STRING, &out_path, "FILE", "write all rows to FILE, f32, row-major", 0, 0 },
        { "device", 0, WG_FLAG_STRING, &device, "DEVICE", "where it runs: " WG_DEVICE_NAMES, 0, 0 },
        { "ranks", 0, WG_FLAG_STRING, &ranks, "RANKS", WG_RANKS_DOC, 0, 0 },
        { "threads", 0, WG_FLAG_INT, &threads, "N", "number of threads; 0: all cores", 0, 256 },
        { "kv-type", 0, WG_FLAG_CHOICE, &kv_name, WG_KV_TYPE_VALUES, WG_KV_TYPE_DOC " (f16)", 0, 0 },
        { "quantize", 0, WG_FLAG_STRING, &quantize, "T[,P=T]...", WG_QUANTIZE_DOC, 0, 0 },
        { "allow-nan", 0, WG_FLAG_BOOL, &allow_nan, NULL, "accept NaN and infinities in weights", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &json, NULL, "one JSON object per row", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("logits", flags, argc, argv, NULL, 0, 0);
    if (done >= 0) return done;
    const int kv_type = wg_cli_kv_type(kv_name);
    if (!token_text)
        return wg_cli_refuse("logits", "--tokens is missing: token ids with commas between (wager tokenize gives them)");
    if (out_path && json)
        return wg_cli_refuse("logits", "--json is a form of what is printed, and --out FILE prints nothing; give one of them");
    if (out_path && wg_cli_is_input("logits", "model", &path, 1, out_path)) return WG_EXIT_USAGE;
    request r = { .path = path,
                  .kind = kind,
                  .device = device,
                  .ranks = ranks,
                  .quantize = quantize,
                  .threads = (int)threads,
                  .kv_type = kv_type,
                  .json = json,
                  .allow_nan = allow_nan };
    wg_error err;
    wg_status s = wg_cli_read_ints("tokens", token_text, &r.tokens, &err);
    if (!s && parent_text) s = wg_cli_read_ints("parents", parent_text, &r.parents, &err);
    if (!s && parent_text) s = check_parents(&r.tokens, &r.parents, &err);
    if (!s && out_path) s = wg_save_open(&r.out, out_path, &err);
    if (!s) s = logits_run(&r, &err);
    if (s) wg_save_abort(r.out);
    else if (r.out) s = wg_save_commit(r.out, &err);
    wg_free(r.tokens.v);
    wg_free(r.parents.v);
    return s ? wg_cli_fail(&err) : WG_EXIT_OK;
}
