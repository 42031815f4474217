/* SPDX-License-Identifier: MIT
 * String-level exact match (SLEM, Timor et al. 2025; universal assisted generation): a draft model with any tokenizer continues
 * the text in its own tokens, greedily; this text, encoded into the target's tokens, is the draft. No token has to be common,
 * and the draft may have words that the draft model spells in parts; it has no q.
 *
 * Borders. The text so far ends at the end of the target's last token and is not encoded again. The new text is encoded by
 * itself, as a continuation, because the target continues from this border. The draft model reads the whole text in its own
 * tokens (retokenizer.h): when a later token joins the last ones, these are encoded again. An incomplete character at the end
 * is dropped, because the target would encode it otherwise with the rest. A token that ends a text for the draft model becomes
 * the target's, as the last token.
 *
 * Law FIXED: greedy, a function of the text; rows of q are one-hot. `length` counts the draft model's tokens, in passes of all
 * sequences together. Nothing is allocated after open. */
#include <string.h>

#include "core/base/mem.h"
#include "core/text/unicode.h"
#include "draft/draft.h"
#include "draft/one_hot.h"
#include "draft/lm/retokenizer.h"
#include "draft/lm/second_model.h"

#ifdef WG_HARD
enum { PASS_ROWS = 5 };
#else
enum { PASS_ROWS = 256 };
#endif
enum { TEXT = 2048 }; /* largest text of a draft in bytes */

typedef struct slem_options {
    char model[WG_OPTION_STRING], quantize[WG_OPTION_STRING], device[WG_OPTION_STRING];
    int length, kv_type;
    double p_min;
} slem_options;

/* The draft of one sequence in the model's tokens. */
typedef struct writing {
    wg_retokenizer_text *text; /* NULL: nothing is drafted */
    int n, most;               /* the model's tokens so far; most of them */
    wg_no_draft no_draft;      /* the reason, if there is nothing to draft */
    int32_t end;               /* the target's token that ends the text, or -1 */
    int bytes;
    char s[TEXT];
} writing;

typedef struct slem_drafter {
    wg_drafter base;
    slem_options opt;
    wg_model *model;
    wg_lm *lm;
    wg_tokenizer *tokenizer;
    wg_vocab_map map;
    wg_retokenizer reader;
    writing *writing; /* (max_batch) */
    wg_batch batch;
    int *logit_row; /* (batch.cap) the sequence of each logit row */
    float *logits;  /* (max_batch, lm->vocab) */
    double *weight; /* (lm->vocab) for p_min; else NULL */
} slem_drafter;

static const wg_option options[] = {
    WG_OPTION_NAME(slem_options, model, WG_NAMES_FILE, "",
                   "weights file of the draft model, with a tokenizer of any kind (needed)"),
    WG_OPTION_INT(slem_options, length, 5, 1, WG_DRAFT_MAX, "tokens that the draft model writes (5: assisted generation)"),
    WG_OPTION_FLOAT(slem_options, p_min, 0, 0, 1, "the draft ends where the most probable next token is below this"),
    WG_OPTION_STR(slem_options, quantize, "", WG_SECOND_MODEL_QUANTIZE),
    WG_OPTION_STR(slem_options, device, "cpu", "where that model runs: " WG_DEVICE_NAMES),
    WG_OPTION_ENUM(slem_options, kv_type, 1, wg_kv_type_names, "element type of the draft model's cache"),
    WG_OPTION_END,
};

/* ---- open */

static wg_status open_buffers(slem_drafter *d, const wg_env *env, wg_error *err)
{
    const size_t n = (size_t)env->max_batch, vocab = (size_t)d->lm->vocab, asking = n < PASS_ROWS ? n : PASS_ROWS;
    WG_TRY(wg_batch_open(&d->batch, PASS_ROWS, err));
    d->logit_row = wg_calloc(PASS_ROWS, sizeof *d->logit_row);
    d->writing = wg_calloc(n, sizeof *d->writing);
    d->logits = wg_calloc(asking * vocab, sizeof *d->logits);
    if (d->opt.p_min > 0) d->weight = wg_calloc(vocab, sizeof *d->weight);
    if (d->logit_row && d->writing && d->logits && (d->weight || d->opt.p_min <= 0)) return WG_OK;
    return wg_nomem(err, asking * vocab * sizeof *d->logits, "the logits of a draft model");
}

static wg_status open(wg_drafter *base, const wg_env *env, wg_error *err)
{
    slem_drafter *d = (slem_drafter *)base;
    if (!*d->opt.model) return wg_fail(err, WG_ECONFIG, "drafter slem: no draft model is named; set its option model=FILE");
    if (!env->tokenizer)
        return wg_fail(err, WG_EMODEL, "drafter slem: %s has no tokenizer, so text cannot become its tokens",
                       env->target_name ? env->target_name : "the target");
    const wg_second_model_spec spec = { .path = d->opt.model,
                                        .quantize = d->opt.quantize,
                                        .device = d->opt.device,
                                        .kv_type = d->opt.kv_type,
                                        .max_rows = PASS_ROWS };
    WG_TRY(wg_second_model_open_foreign(&d->model, &d->tokenizer, env, &spec, err));
    d->lm = wg_model_lm(d->model);
    WG_TRY(wg_vocab_map_open(&d->map, env->tokenizer, d->tokenizer, err));
    WG_TRY(wg_retokenizer_open(&d->reader, env, d->tokenizer, &d->map, d->lm, err));
    return open_buffers(d, env, err);
}

static void close(wg_drafter *base)
{
    slem_drafter *d = (slem_drafter *)base;
    wg_retokenizer_close(&d->reader);
    wg_vocab_map_close(&d->map);
    wg_tokenizer_close(d->tokenizer);
    wg_batch_close(&d->batch);
    wg_free(d->logit_row);
    wg_free(d->writing);
    wg_free(d->logits);
    wg_free(d->weight);
    wg_model_close(d->model);
}

/* ---- writing in the model's tokens */

/* Whether the model's next token is probable enough to be drafted. */
static bool is_sure(const slem_drafter *d, const float *logits)
{
    return !d->weight || d->base.env->ops->softmax64(logits, d->lm->vocab, 1, d->weight) * d->opt.p_min <= 1;
}

/* Appends the most probable token; the draft ends at a token that ends a text, is no text, or has no room. */
static void write(slem_drafter *d, writing *w, const float *logits)
{
    const int32_t x = d->base.env->ops->argmax(logits, d->lm->vocab);
    wg_tree *t = &w->text->tree;
    if (x < 0 || !is_sure(d, logits)) {
        w->no_draft = WG_NO_DRAFT_POLICY;
        w->most = w->n;
        return;
    }
    const size_t left = (size_t)(TEXT - w->bytes),
                 n = wg_tokenizer_decode_one(d->tokenizer, x, false, false, w->s + w->bytes, left);
    if (wg_tokenizer_is_control(d->tokenizer, x) || n > left) {
        if (wg_tokenizer_is_eog(d->tokenizer, x)) w->end = d->map.to_a[x];
        w->most = w->n;
        return;
    }
    w->bytes += (int)n;
    wg_tree_push(t, t->n - 1, x, -1);
    w->n++;
}

static wg_status flush(slem_drafter *d, wg_error *err)
{
    if (d->batch.n == 0) return WG_OK;
    WG_TRY(wg_lm_forward(d->lm, &d->batch, d->logits, err));
    for (int i = 0; i < d->batch.logits; i++)
        write(d, &d->writing[d->logit_row[i]], d->logits + (size_t)i * (size_t)d->lm->vocab);
    wg_batch_clear(&d->batch);
    return WG_OK;
}

/* Adds the tokens of a text that the model has not read. */
static wg_status feed_text(slem_drafter *d, int i, wg_error *err)
{
    const wg_retokenizer_text *t = d->writing[i].text;
    for (int at = wg_kv_valid(t->kv, d->lm->space); at < t->n;) {
        if (d->batch.n == d->batch.cap) WG_TRY(flush(d, err));
        const int room = d->batch.cap - d->batch.n, left = t->n - at, take = left < room ? left : room;
        const int row = wg_batch_chain(&d->batch, t->kv, at, t->own + at, take, take == left);
        if (row >= 0) d->logit_row[row] = i;
        at += take;
    }
    return WG_OK;
}

/* Adds the token written last. */
static wg_status feed_node(slem_drafter *d, int i, wg_error *err)
{
    const wg_retokenizer_text *t = d->writing[i].text;
    const int node = t->tree.n - 1;
    if (d->batch.n == d->batch.cap) WG_TRY(flush(d, err));
    d->logit_row[wg_batch_node(&d->batch, t->kv, node, node, t->tree.anc[node], t->tree.token[node], true)] = i;
    return WG_OK;
}

static wg_status begin(slem_drafter *d, const wg_seq *s, int i, wg_error *err)
{
    writing *w = &d->writing[i];
    wg_retokenizer_text *t;
    *w = (writing){ .end = -1 };
    if (wg_one_hot_depth(s, d->opt.length) == 0) return WG_OK;
    WG_TRY(wg_retokenizer_follow(&d->reader, s, &t, err));
    const int room = d->lm->context - t->n + 1;
    w->most = d->opt.length < room ? d->opt.length : room;
    if (w->most > WG_TREE_MAX - 1) w->most = WG_TREE_MAX - 1;
    if (t->full || w->most <= 0) w->no_draft = WG_NO_DRAFT_CONTEXT;
    if (t->full || t->n == 0 || w->most <= 0) return WG_OK;
    for (int k = wg_kv_valid(t->kv, d->lm->space); k < t->n; k++)
        if (t->own[k] >= d->lm->vocab) return WG_OK;
    WG_TRY(wg_kv_reserve(t->kv, w->most, err));
    w->text = t;
    wg_tree_reset(&t->tree, t->own[t->n - 1], WG_LAW_FIXED);
    return WG_OK;
}

/* ---- the draft, in the target's tokens */

static void translate(slem_drafter *d, const wg_seq *s, const writing *w, wg_tree *t, wg_rows *q)
{
    const wg_tokenizer *target = d->base.env->tokenizer;
    wg_ids *ids = &d->reader.ids;
    const int depth = wg_one_hot_depth(s, WG_TREE_MAX - 1);
    const size_t n = (size_t)w->bytes - wg_utf8_open_tail(w->s, (size_t)w->bytes);
    ids->n = 0;
    /* it cannot fail, since the retokenizer's memory has room for more than TEXT bytes */
    if (wg_tokenizer_encode_part(target, w->s, n, false, &d->reader.merger, ids, NULL)) return;
    for (size_t i = 0; i < ids->n && t->n <= depth; i++) wg_one_hot_push(t, t->n - 1, ids->v[i], q);
    if (w->end >= 0 && n == (size_t)w->bytes && t->n <= depth && t->n == 1 + (int)ids->n)
        wg_one_hot_push(t, t->n - 1, w->end, q);
}

static wg_status propose(wg_drafter *base, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    slem_drafter *d = (slem_drafter *)base;
    wg_batch_clear(&d->batch);
    for (int i = 0; i < n; i++) {
        wg_tree_reset(&out[i], seq[i]->token[seq[i]->n - 1], WG_LAW_FIXED);
        WG_TRY(begin(d, seq[i], i, err));
        if (d->writing[i].text) WG_TRY(feed_text(d, i, err));
    }
    WG_TRY(flush(d, err));
    for (int depth = 1; depth < d->opt.length; depth++) {
        for (int i = 0; i < n; i++)
            if (d->writing[i].text && d->writing[i].n == depth && depth < d->writing[i].most) WG_TRY(feed_node(d, i, err));
        WG_TRY(flush(d, err));
    }
    for (int i = 0; i < n; i++) {
        out[i].no_draft = d->writing[i].no_draft;
        if (d->writing[i].text) translate(d, seq[i], &d->writing[i], &out[i], q);
    }
    return WG_OK;
}

static void forget(wg_drafter *base, const wg_seq *s) { wg_retokenizer_forget(&((slem_drafter *)base)->reader, s); }

static int context(const wg_drafter *base, bool *slides)
{
    *slides = false;
    return ((const slem_drafter *)base)->lm->context;
}

static bool overlap(const wg_drafter *base, wg_overlap *out)
{
    const slem_drafter *d = (const slem_drafter *)base;
    *out = (wg_overlap){ d->map.shared, base->env->target->vocab, d->map.a, d->map.to_b };
    return true;
}

const wg_drafter_class wg_drafter_slem = {
    .name = "slem",
    .doc = "a language model with any tokenizer: its text becomes the draft (string-level exact match)",
    .size = sizeof(slem_drafter),
    .options = options,
    .options_at = offsetof(slem_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "model=$other,length=5" },
            { .options = "model=$other,p_min=0.001" },
            { .options = NULL },
        },
    .laws = WG_LAW_FIXED,
    .open = open,
    .propose = propose,
    .forget = forget,
    .close = close,
    .overlap = overlap,
    .context = context,
};
