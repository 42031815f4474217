/* SPDX-License-Identifier: MIT
 * The retokenizer (retokenizer.h). */
#include "draft/lm/retokenizer.h"

#include <string.h>

#include "core/base/mem.h"

#ifdef WG_HARD
enum { WINDOW = 1024 };
#else
enum { WINDOW = 4096 };
#endif
enum { CUT_FROM = WINDOW / 32, LONGER = 8 };

wg_status wg_retokenizer_open(wg_retokenizer *r, const wg_env *env, const wg_tokenizer *to, const wg_vocab_map *map, wg_lm *lm,
                              wg_error *err)
{
    const size_t n = (size_t)env->max_batch, token = wg_tokenizer_room(env->tokenizer), part = WG_PART_ROOM(WINDOW + token);
    const long shared = (long)wg_kv_pages(env->kv) * wg_kv_page_slots(env->kv) / env->max_batch;
    const int page = 16;
    r->from = env->tokenizer;
    r->token = token;
    r->to = to;
    r->map = map;
    r->slots = env->max_batch;
    /* texts rarely need LONGER model tokens per target token */
    r->room = shared < lm->context / LONGER ? (int)shared * LONGER : lm->context;
    const int slots = r->room + WG_TREE_MAX, pages = (slots + page - 1) / page;
    r->ids.v = wg_alloc(part, sizeof *r->ids.v);
    r->ids.capacity = part;
    r->text = wg_calloc(n, sizeof *r->text);
    if (!r->ids.v || !r->text) return wg_nomem(err, part * sizeof *r->ids.v, "reading in another vocabulary");
    WG_TRY(wg_merger_begin(&r->merger, part, err));
    WG_TRY(wg_merger_text(&r->merger, part, err));
    WG_TRY(wg_kv_open(&r->kv, page, pages * env->max_batch, slots, err));
    WG_TRY(wg_lm_attach(lm, r->kv, err));
    for (size_t i = 0; i < n; i++) {
        wg_retokenizer_text *t = &r->text[i];
        t->begins = true;
        t->own = wg_alloc((size_t)r->room, sizeof *t->own);
        t->pending = wg_alloc(WINDOW + token, 1);
        if (!t->own || !t->pending) return wg_nomem(err, (size_t)r->room * sizeof *t->own, "a text in another vocabulary");
        WG_TRY(wg_kv_seq_open(r->kv, &t->kv, err));
    }
    return WG_OK;
}

void wg_retokenizer_close(wg_retokenizer *r)
{
    for (int i = 0; r->text && i < r->slots; i++) {
        wg_free(r->text[i].own);
        wg_free(r->text[i].pending);
        wg_kv_seq_close(r->text[i].kv);
    }
    wg_free(r->text);
    wg_free(r->ids.v);
    wg_merger_free(&r->merger);
    wg_kv_close(r->kv);
    *r = (wg_retokenizer){ 0 };
}

void wg_retokenizer_forget(wg_retokenizer *r, const wg_seq *s)
{
    if (!r->text) return;
    wg_retokenizer_text *t = &r->text[s->slot];
    wg_kv_rollback(t->kv);
    wg_kv_truncate(t->kv, 0);
    *t = (wg_retokenizer_text){ .own = t->own, .pending = t->pending, .kv = t->kv, .begins = true };
}

/* ---- the text */

/* Replaces the model's tokens from `at` on by these. */
static void write(const wg_retokenizer *r, wg_retokenizer_text *t, int at, const int32_t *id, size_t n)
{
    if (n > (size_t)(r->room - at)) {
        t->full = true;
        return;
    }
    for (int i = 0; i < (int)n; i++) {
        if (at + i < t->kept && t->own[at + i] != id[i]) t->kept = at + i;
        t->own[at + i] = id[i];
    }
    t->n = at + (int)n;
}

/* The first `bytes` of the pending text as ids. */
static wg_status encode(wg_retokenizer *r, const wg_retokenizer_text *t, int bytes, wg_error *err)
{
    r->ids.n = 0;
    return wg_tokenizer_encode_part(r->to, t->pending, (size_t)bytes, t->begins, &r->merger, &r->ids, err);
}

/* Encodes the first `bytes` of the pending text finally: no later text changes their tokens. */
static wg_status finish_tokens(wg_retokenizer *r, wg_retokenizer_text *t, int bytes, wg_error *err)
{
    if (bytes == 0 || t->full) return WG_OK;
    WG_TRY(encode(r, t, bytes, err));
    write(r, t, t->final, r->ids.v, r->ids.n);
    t->final = t->n;
    t->bytes -= bytes;
    memmove(t->pending, t->pending + bytes, (size_t)t->bytes);
    t->begins = false;
    return WG_OK;
}

/* Encodes the text before the last cut finally, or all of it when there is no cut and no more room. */
static wg_status cut(wg_retokenizer *r, wg_retokenizer_text *t, wg_error *err)
{
    const int at = (int)wg_tokenizer_cut(r->to, t->pending, (size_t)t->bytes);
    return finish_tokens(r, t, at == 0 && t->bytes >= WINDOW ? t->bytes : at, err);
}

/* Translates a control token of the target. */
static wg_status read_control(wg_retokenizer *r, wg_retokenizer_text *t, int32_t token, bool beginning, wg_error *err)
{
    const int32_t own = token < r->map->a ? r->map->to_b[token] : -1;
    WG_TRY(finish_tokens(r, t, t->bytes, err));
    t->begins = true;
    if (beginning && token == wg_tokenizer_bos(r->from)) return WG_OK; /* every sequence already begins with the model's own */
    if (own >= 0 && !t->full) write(r, t, t->final, &own, 1);
    t->final = t->n;
    return WG_OK;
}

static wg_status read_token(wg_retokenizer *r, wg_retokenizer_text *t, int32_t token, bool beginning, wg_error *err)
{
    if (wg_tokenizer_is_control(r->from, token)) return read_control(r, t, token, beginning, err);
    char *at = t->pending + t->bytes;
    t->bytes += (int)wg_tokenizer_decode_one(r->from, token, !t->spoken, false, at, r->token);
    t->spoken = true;
    while (t->bytes >= WINDOW && !t->full) WG_TRY(cut(r, t, err));
    return WG_OK;
}

static wg_status read_on(wg_retokenizer *r, wg_retokenizer_text *t, const wg_seq *s, wg_error *err)
{
    const int32_t bos = wg_tokenizer_bos(r->to);
    if (t->read == 0 && wg_tokenizer_add_bos(r->to)) {
        write(r, t, 0, &bos, 1);
        t->final = t->n;
    }
    for (; t->read < s->n && !t->full; t->read++) WG_TRY(read_token(r, t, s->token[t->read], t->read == 0, err));
    if (t->full) return WG_OK;
    if (t->bytes >= CUT_FROM) WG_TRY(cut(r, t, err));
    WG_TRY(encode(r, t, t->bytes, err));
    write(r, t, t->final, r->ids.v, r->ids.n);
    return WG_OK;
}

/* ---- the cache */

/* The nodes of the last draft that are now text; the last token of the text is never among them. */
static int drafted_path(const wg_retokenizer_text *t, int old, int16_t path[WG_TREE_MAX])
{
    const int most = t->n - old, tail = wg_kv_tail(t->kv);
    int n = 0;
    for (int node = 0; node >= 0 && node < tail && n < most;) {
        path[n++] = (int16_t)node;
        node = wg_tree_find(&t->tree, node, t->own[old + n - 1]);
    }
    return n;
}

/* Trims the cache, which held own[0 .. old-2] and the draft in its tail, to the `kept` unchanged tokens and drafted ones. */
static wg_status trim_cache(wg_retokenizer_text *t, int old, wg_error *err)
{
    int16_t path[WG_TREE_MAX];
    const bool goes_on = t->tree.n > 0 && t->kept == old && wg_kv_len(t->kv) == old - 1;
    const int n = goes_on ? drafted_path(t, old, path) : 0, same = t->kept < t->n - 1 ? t->kept : t->n - 1;
    if (n > 0) wg_kv_commit(t->kv, path, n);
    else wg_kv_rollback(t->kv);
    if (n == 0 && same < wg_kv_len(t->kv)) wg_kv_truncate(t->kv, same > 0 ? same : 0);
    t->tree.n = 0;
    for (int left; !t->full && (left = t->n - 1 - wg_kv_len(t->kv)) > 0;) { /* tokens for the next pass */
        const int some = left < WG_KV_TAIL_MAX ? left : WG_KV_TAIL_MAX;
        WG_TRY(wg_kv_reserve(t->kv, some, err));
        wg_kv_commit_chain(t->kv, some);
    }
    return WG_OK;
}

wg_status wg_retokenizer_follow(wg_retokenizer *r, const wg_seq *s, wg_retokenizer_text **out, wg_error *err)
{
    wg_retokenizer_text *t = *out = &r->text[s->slot];
    const int old = t->n;
    t->kept = old;
    WG_TRY(read_on(r, t, s, err));
    if (t->kept > t->n) t->kept = t->n;
    return trim_cache(t, old, err);
}
