/* SPDX-License-Identifier: MIT
 * EAGLE-3 (Li et al. 2025, EAGLE-3: Scaling up Inference Acceleration of Large Language Models via Training-Time Test): a head
 * of one or a few layers over hidden states of the target (head.h). It drafts better than a model of its size, and its passes
 * cost as much as its layers and its reduced vocabulary. It needs a head that was trained for this target.
 *
 * Between two drafts the features of the accepted tokens come from the target's own states; what was drafted is dropped. */
#include "draft/draft.h"

#include "core/base/mem.h"
#include "core/engine/tap_feed.h"
#include "draft/head/head.h"
#include "draft/lm/lm_draft.h"

typedef struct eagle_options {
    wg_growth growth; /* first */
    char model[WG_OPTION_STRING];
    int kv_type, quantize;
} eagle_options;

typedef struct eagle_drafter {
    wg_lm_drafter m;
    eagle_options opt;
    wg_head *head;
    wg_tap_feed *feed;
    size_t row;  /* floats of a row of taps */
    float *taps; /* (WG_HEAD_ROWS, row) */
} eagle_drafter;

static const char *const types[] = { "no", "q8_0", "q6_k", "q4_k", "q4_0", NULL };

static const wg_option options[] = {
    WG_OPTION_NAME(eagle_options, model, WG_NAMES_FILE, "",
                   "folder of the head, of SafeAILab's or speculators' layout (needed)"),
    WG_GROWTH_OPTIONS,
    WG_OPTION_ENUM(eagle_options, quantize, 0, types,
                   "the type that the head's matrices are converted to when it is loaded, where their rows are whole blocks"),
    WG_OPTION_ENUM(eagle_options, kv_type, 1, wg_kv_type_names, "element type of the head's cache"),
    WG_OPTION_END,
};

/* Makes features of all rows that wait. Pages that other sequences share become this one's own first. */
static wg_status absorb(void *user, const wg_seq *seq, wg_error *err)
{
    eagle_drafter *e = user;
    const bool idle = wg_kv_tail(seq->kv) == 0;
    wg_status s = WG_OK;
    if (wg_tap_feed_rows(e->feed, seq) == 0) return WG_OK;
    wg_assert(wg_tap_feed_first(e->feed, seq) == wg_kv_valid(seq->kv, wg_head_states(e->head)));
    WG_TRY(wg_kv_reserve(seq->kv, 1, err));
    for (int rows; !s && (rows = wg_tap_feed_rows(e->feed, seq)) > 0;) {
        if (rows > WG_HEAD_ROWS) rows = WG_HEAD_ROWS;
        s = wg_tap_feed_read(e->feed, seq, 0, rows, e->taps, err);
        if (s) break;
        wg_head_read(e->head, seq->kv, e->taps, rows);
        wg_tap_feed_drop(e->feed, seq, rows);
    }
    if (idle) wg_kv_rollback(seq->kv);
    return s;
}

static wg_status open_head(eagle_drafter *e, const wg_head_file *f, const wg_env *env, wg_error *err)
{
    int tap[WG_HEAD_TAPS];
    const int n = wg_head_file_spec(f)->n_taps;
    const wg_tap_reader reader = { .tap = tap, .n = n, .absorb = absorb, .user = e };
    WG_TRY(wg_head_file_taps(f, env->target->hidden.layers, tap, err));
    WG_TRY(wg_tap_feed_open(&e->feed, env->feeds, &reader, err));
    WG_TRY(wg_head_open(&e->head, f, env, wg_kv_type_ids[e->opt.kv_type], wg_type_parse(types[e->opt.quantize]), err));
    e->row = (size_t)n * (size_t)wg_tap_feed_dim(e->feed);
    e->taps = wg_alloc(WG_HEAD_ROWS * e->row, sizeof *e->taps);
    return e->taps ? WG_OK : wg_nomem(err, WG_HEAD_ROWS * e->row * sizeof *e->taps, "rows of hidden states");
}

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    eagle_drafter *e = (eagle_drafter *)d;
    wg_head_file *f;
    if (!*e->opt.model) return wg_fail(err, WG_ECONFIG, "drafter eagle: no head is named; set its option model=FOLDER");
    WG_TRY(wg_lm_drafter_begin(&e->m, &e->opt.growth, env, err));
    if (!env->feeds || !env->target->hidden.device)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "drafter eagle: reads hidden states of the target, and %s gives none; take a target that this program "
                       "computes",
                       env->target_name ? env->target_name : "the target");
    WG_TRY(wg_head_file_open(&f, e->opt.model, err));
    const wg_status s = open_head(e, f, env, err);
    wg_head_file_close(f);
    WG_TRY(s);
    e->m.words = wg_head_words(e->head);
    e->m.outputs = wg_head_outputs(e->head);
    e->m.begins = 1;
    e->m.states = wg_head_states(e->head);
    return wg_lm_drafter_open(&e->m, wg_head_lm(e->head), WG_DRAFT_ROWS, err);
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    eagle_drafter *e = (eagle_drafter *)d;
    for (int i = 0; i < n; i++) WG_TRY(absorb(e, seq[i], err));
    WG_TRY(wg_lm_drafter_propose(d, seq, n, out, q, err)); /* after a failure the engine rolls the caches back */
    for (int i = 0; i < n; i++) wg_head_drop(e->head, seq[i]->kv);
    return WG_OK;
}

static void close(wg_drafter *d)
{
    eagle_drafter *e = (eagle_drafter *)d;
    wg_lm_drafter_close(&e->m);
    wg_head_close(e->head);
    wg_free(e->taps);
}

static bool overlap(const wg_drafter *d, wg_overlap *out)
{
    const wg_draft_vocab *v = ((const wg_lm_drafter *)d)->words;
    if (v) *out = (wg_overlap){ v->n, v->target_vocab, v->target_vocab, v->own };
    return v != NULL;
}

const wg_drafter_class wg_drafter_eagle = {
    .name = "eagle",
    .doc = "a head over the target's hidden states: EAGLE-3",
    .size = sizeof(eagle_drafter),
    .options = options,
    .options_at = offsetof(eagle_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "model=$head,length=4" },
            { .options = WG_TREE_MAX > 8 ? "model=$head,tree=3-2-1" : "model=$head,tree=3-1", .siblings = true },
            { .options = "model=$head,grow=best_first,length=4,budget=7", .siblings = true },
            { .options = "model=$head,length=3,kv_type=f32,quantize=q8_0,temperature=1.3" },
            { .options = NULL },
        },
    WG_LM_DRAFTER_MEMBERS,
    .propose = propose,
    .close = close,
    .overlap = overlap,
};
