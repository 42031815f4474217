/* SPDX-License-Identifier: MIT
 * The drafter `model`: a second, smaller language model (draft/lm/lm_draft.c describes laws and passes). It has a space in the
 * target's cache or, with another vocabulary, a cache of its own (retokenizer.h). */
#include "draft/draft.h"

#include "draft/lm/lm_draft.h"
#include "draft/lm/second_model.h"

typedef struct second_options {
    wg_growth growth; /* first */
    char model[WG_OPTION_STRING], quantize[WG_OPTION_STRING], device[WG_OPTION_STRING], prune[WG_OPTION_STRING];
    int kv_type, vocabulary, text_tokens;
} second_options;

typedef struct second_drafter {
    wg_lm_drafter m;
    second_options opt;
    wg_model *model;
    wg_draft_vocab words;
    wg_text_words added;
    wg_retokenizer reader;
} second_drafter;

enum { SAME, INTERSECTION };
static const char *const vocabularies[] = { "same", "intersection", NULL };

static const wg_option options[] = {
    WG_OPTION_NAME(second_options, model, WG_NAMES_FILE, "", "weights file of the draft model (needed)"),
    WG_GROWTH_OPTIONS,
    WG_OPTION_ENUM(second_options, vocabulary, SAME, vocabularies,
                   "same: the target's, others are refused; intersection: any, of which the tokens that both have are drafted"),
    WG_OPTION_NAME(second_options, prune, WG_NAMES_FILE, "",
                   "only the tokens in this file are drafted (wager vocab prune); empty: all"),
    WG_OPTION_INT(second_options, text_tokens, 128, 0, 1 << 16,
                  "most different tokens of the request's text that a cut student or a pruned model drafts beside its own"),
    WG_OPTION_STR(second_options, quantize, "", WG_SECOND_MODEL_QUANTIZE),
    WG_OPTION_STR(second_options, device, "cpu", "where that model runs: " WG_DEVICE_NAMES),
    WG_OPTION_ENUM(second_options, kv_type, 1, wg_kv_type_names, "element type of the draft model's cache"),
    WG_OPTION_END,
};

static wg_second_model_spec spec_of(const second_options *o)
{
    return (wg_second_model_spec){
        .path = o->model, .quantize = o->quantize, .device = o->device, .kv_type = o->kv_type, .max_rows = WG_DRAFT_ROWS
    };
}

/* Completes a part of the vocabulary, under the target's ids, with tokens of texts, where their rows are there. */
static wg_status open_added(second_drafter *s, const wg_env *env, wg_error *err)
{
    const wg_matrix *rows = wg_text_words_rows(s->model, env->target);
    if (!s->words.n || !rows || s->opt.text_tokens == 0) return WG_OK;
    s->m.added = &s->added;
    return wg_text_words_open(&s->added, s->model, rows, &s->words, s->opt.text_tokens, env, err);
}

/* Opens a model that proposes a part of the vocabulary, or has another one. */
static wg_status open_part(second_drafter *s, const wg_env *env, wg_error *err)
{
    const second_options *o = &s->opt;
    const wg_second_model_spec spec = spec_of(o);
    WG_TRY(wg_second_model_open_part(&s->model, &s->words, o->vocabulary == INTERSECTION, o->prune, env, &spec, err));
    if (s->words.n) s->m.words = &s->words;
    s->m.outputs = wg_model_head_rows(s->model);
    if (!s->words.tokenizer) {
        WG_TRY(open_added(s, env, err));
        return wg_lm_attach(wg_model_lm(s->model), env->kv, err);
    }
    s->m.reader = &s->reader;
    return wg_retokenizer_open(&s->reader, env, s->words.tokenizer, &s->words.map, wg_model_lm(s->model), err);
}

static wg_status open_whole(second_drafter *s, const wg_env *env, wg_error *err)
{
    const wg_second_model_spec spec = spec_of(&s->opt);
    WG_TRY(wg_second_model_open(&s->model, env, &spec, err));
    return wg_lm_attach(wg_model_lm(s->model), env->kv, err);
}

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    second_drafter *s = (second_drafter *)d;
    bool cut = false;
    if (!*s->opt.model) return wg_fail(err, WG_ECONFIG, "drafter model: no draft model is named; set its option model=FILE");
    WG_TRY(wg_lm_drafter_begin(&s->m, &s->opt.growth, env, err));
    WG_TRY(wg_second_model_is_cut(&cut, s->opt.model, err));
    const bool whole = s->opt.vocabulary == SAME && !*s->opt.prune && !cut;
    WG_TRY((whole ? open_whole : open_part)(s, env, err));
    return wg_lm_drafter_open(&s->m, wg_model_lm(s->model), WG_DRAFT_ROWS, err);
}

static void close(wg_drafter *d)
{
    second_drafter *s = (second_drafter *)d;
    wg_lm_drafter_close(&s->m);
    wg_retokenizer_close(&s->reader);
    wg_text_words_close(&s->added);
    wg_draft_vocab_close(&s->words);
    wg_model_close(s->model);
}

static bool overlap(const wg_drafter *d, wg_overlap *out)
{
    const wg_draft_vocab *v = &((const second_drafter *)d)->words;
    *out = (wg_overlap){ v->n, v->target_vocab, v->target_vocab, v->own };
    return v->n > 0;
}

const wg_drafter_class wg_drafter_model = {
    .name = "model",
    .doc = "a smaller language model: chains and trees",
    .size = sizeof(second_drafter),
    .options = options,
    .options_at = offsetof(second_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "model=$near,length=5", .keeps = 0.5 },
            { .options = WG_TREE_MAX > 8 ? "model=$near,tree=3-2-1" : "model=$near,tree=3-1", .siblings = true },
            { .options = WG_TREE_MAX > 8 ? "model=$near,grow=best_first,length=5,budget=12"
                                         : "model=$near,grow=best_first,length=5,budget=7",
              .siblings = true },
            { .options = WG_TREE_MAX > 8 ? "model=$other,vocabulary=intersection,tree=3-2-1"
                                         : "model=$other,vocabulary=intersection,tree=3-1",
              .siblings = true },
            { .options = "model=$near,prune=$list,length=4" },
            { .options = "model=$far,prune=$list,length=3" },
            { .options = "model=$target,kv_type=f32,length=3", .keeps = 1 },
            { .options = "model=$target,kv_type=f32,tree=2-1-1", .siblings = true, .keeps = 0.4 },
            { .options = "model=$near,length=6,p_min=0.05,kv_type=bf16" },
            { .options = "model=$near,length=4,truncate=false" },
            { .options = "model=$near,quantize=q4_0,length=4" },
            { .options = WG_TREE_MAX > 8 ? "model=$near,temperature=0,tree=3-1-1" : "model=$near,temperature=0,tree=2-2",
              .siblings = true },
            { .options = "model=$near,grow=sequoia,accept=0.4/0.2/0.1,budget=7,length=4", .siblings = true },
            { .options = "model=$far,length=2,temperature=1.5" },
            { .options = "model=$short,length=7", .keeps = 0.15 },
            { .options = "model=$near,length=5,siblings=coupled" },
            { .options = WG_TREE_MAX > 8 ? "model=$near,siblings=coupled,tree=3-2-1" : "model=$near,siblings=coupled,tree=3-1",
              .siblings = true },
            { .options = "model=$other,vocabulary=intersection,length=4" },
            { .options = "model=$other,vocabulary=intersection,length=3,siblings=coupled" },
            { .options = NULL },
        },
    WG_LM_DRAFTER_MEMBERS,
    .propose = wg_lm_drafter_propose,
    .close = close,
    .overlap = overlap,
    .device_chain = wg_lm_drafter_device_chain,
};
