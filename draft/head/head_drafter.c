/* SPDX-License-Identifier: MIT
 * Drafters over a head (head_drafter.h). Between two drafts the features of the accepted tokens come from the target's own
 * states; what was drafted is dropped (head.h). */
#include "draft/head/head_drafter.h"

#include <string.h>

#include "core/base/mem.h"

const char *const wg_head_types[] = { "no", "q8_0", "q6_k", "q4_k", "q4_0", NULL };

wg_status wg_head_drafter_absorb(wg_head_drafter *e, const wg_seq *seq, wg_error *err)
{
    const bool idle = wg_kv_tail(seq->kv) == 0;
    wg_status s = WG_OK;
    if (wg_tap_feed_rows(e->feed, seq) == 0) return WG_OK;
    wg_assert(wg_tap_feed_first(e->feed, seq) == wg_kv_valid(seq->kv, wg_head_features(e->head)));
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

static wg_status absorb(void *user, const wg_seq *seq, wg_error *err) { return wg_head_drafter_absorb(user, seq, err); }

static wg_status check_kind(const wg_drafter_class *c, const wg_head_file *f, wg_error *err)
{
    const wg_head_kind kind = wg_head_file_spec(f)->kind;
    if (strcmp(c->name, wg_head_kind_drafter(kind)) == 0) return WG_OK;
    return wg_fail(err, WG_EUNSUPPORTED, "drafter %s: %s is %s head, which another drafter runs: take %s", c->name,
                   wg_head_file_path(f), wg_head_kind_name(kind), wg_head_kind_drafter(kind));
}

wg_status wg_head_drafter_check_model(const wg_drafter_class *c, const char *path, wg_error *err)
{
    wg_head_file *f;
    WG_TRY(wg_head_file_open(&f, path, err));
    const wg_status s = check_kind(c, f, err);
    wg_head_file_close(f);
    return s;
}

static wg_status open_head(wg_head_drafter *e, const wg_head_file *f, const wg_env *env, wg_error *err)
{
    int tap[WG_HEAD_TAPS];
    const wg_head_spec *s = wg_head_file_spec(f);
    const wg_tap_reader reader = { .tap = tap, .n = s->n_taps, .absorb = absorb, .user = e };
    WG_TRY(check_kind(e->m.base.class, f, err));
    WG_TRY(wg_head_file_taps(f, env->target->hidden.layers, tap, err));
    WG_TRY(wg_tap_feed_open(&e->feed, env->feeds, &reader, err));
    WG_TRY(wg_head_open(&e->head, f, env, wg_kv_type_ids[e->opt.kv_type], wg_type_parse(wg_head_types[e->opt.quantize]), err));
    const size_t floats = (size_t)WG_HEAD_ROWS * (size_t)s->n_taps * (size_t)wg_tap_feed_dim(e->feed);
    e->taps = wg_alloc(floats, sizeof *e->taps);
    return e->taps ? WG_OK : wg_nomem(err, floats * sizeof *e->taps, "rows of hidden states");
}

wg_status wg_head_drafter_open(wg_head_drafter *e, const wg_env *env, wg_error *err)
{
    wg_head_file *f;
    const char *name = e->m.base.class->name;
    if (!*e->opt.model) return wg_fail(err, WG_ECONFIG, "drafter %s: no head is named; set its option model=FOLDER", name);
    WG_TRY(wg_lm_drafter_begin(&e->m, &e->opt.growth, env, err));
    if (!env->feeds || !env->target->hidden.device)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "drafter %s: reads hidden states of the target, and %s gives none; take a target that this program "
                       "computes",
                       name, env->target_name ? env->target_name : "the target");
    WG_TRY(wg_head_file_open(&f, e->opt.model, err));
    const wg_status s = open_head(e, f, env, err);
    wg_head_file_close(f);
    WG_TRY(s);
    e->m.words = wg_head_words(e->head);
    e->m.outputs = wg_head_outputs(e->head);
    return WG_OK;
}

wg_status wg_head_drafter_open_chain(wg_head_drafter *e, const wg_env *env, wg_error *err)
{
    WG_TRY(wg_head_drafter_open(e, env, err));
    e->m.begins = 1;
    e->m.states = wg_head_features(e->head);
    return wg_lm_drafter_open(&e->m, wg_head_lm(e->head), WG_DRAFT_ROWS, err);
}

wg_status wg_head_drafter_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    wg_head_drafter *e = (wg_head_drafter *)d;
    for (int i = 0; i < n; i++) WG_TRY(wg_head_drafter_absorb(e, seq[i], err));
    WG_TRY(wg_lm_drafter_propose(d, seq, n, out, q, err)); /* after a failure the engine rolls the caches back */
    for (int i = 0; i < n; i++) wg_head_drop(e->head, seq[i]->kv);
    return WG_OK;
}

void wg_head_drafter_close(wg_drafter *d)
{
    wg_head_drafter *e = (wg_head_drafter *)d;
    wg_lm_drafter_close(&e->m);
    wg_head_close(e->head);
    wg_free(e->taps);
}

bool wg_head_drafter_overlap(const wg_drafter *d, wg_overlap *out)
{
    const wg_draft_vocab *v = ((const wg_lm_drafter *)d)->words;
    if (v) *out = (wg_overlap){ v->n, v->target_vocab, v->target_vocab, v->own };
    return v != NULL;
}
