/* SPDX-License-Identifier: MIT
 * Opening an engine and its sequences. Everything that a step needs is allocated here; large buffers take memory only where
 * they are touched. */
#include "core/engine/build.h"
#include "core/engine/device_decode.h"
#include "core/engine/engine_impl.h"
#include "core/engine/profile.h"
#include "core/engine/device_verify.h"
#include "core/engine/seq_rows.h"

#include <string.h>

#include "core/base/mem.h"

/* ---- engine */

static wg_status check_options(wg_engine *e, const wg_engine_options *opt, wg_error *err)
{
    wg_engine_options *o = &e->opt;
    const int context = e->target->context;
    const int slots = 64 * (int)(sizeof e->slots / sizeof *e->slots), trees = (INT16_MAX + 1) / WG_TREE_MAX; /* wg_tree.qrow */
    const int most = slots < trees ? slots : trees;
    *o = *opt;
    if (o->max_tokens == 0) o->max_tokens = context;
    if (o->page_slots == 0) o->page_slots = WG_ENGINE_PAGE_SLOTS;
    if (o->prefill_rows == 0) o->prefill_rows = WG_ENGINE_PREFILL_ROWS;
#ifdef WG_HARD
    o->page_slots = 2; /* the cache doubles small pages, so the number of pages must fit */
    if (o->prefill_rows > 3) o->prefill_rows = 3;
    if (o->ride_rows > 3) o->ride_rows = 3;
#endif
    const int pass = e->target->most_rows;
    if (pass > 0 && o->prefill_rows > pass) o->prefill_rows = pass;
    if (pass > 0 && o->ride_rows > pass) o->ride_rows = pass;
    if (o->max_batch < 1 || o->max_batch > most)
        return wg_fail(err, WG_EINVAL, "max_batch %d; expected 1..%d", o->max_batch, most);
    if (o->step_batch == 0) o->step_batch = o->max_batch;
    if (o->max_tokens < 2 || o->max_tokens > context)
        return wg_fail(err, WG_EINVAL, "max_tokens %d; expected 2..%d, the context of the target", o->max_tokens, context);
    if (o->prefill_rows < 1 || o->prefill_rows > WG_KV_TAIL_MAX)
        return wg_fail(err, WG_EINVAL, "prefill_rows %d; expected 1..%d", o->prefill_rows, (int)WG_KV_TAIL_MAX);
    if (o->ride_rows < 0 || o->ride_rows > WG_KV_TAIL_MAX)
        return wg_fail(err, WG_EINVAL, "ride_rows %d; expected 0..%d", o->ride_rows, (int)WG_KV_TAIL_MAX);
    if (o->page_slots < 1 || o->page_slots > 256)
        return wg_fail(err, WG_EINVAL, "page_slots %d; expected 1..256", o->page_slots);
    if (o->pages < 0) return wg_fail(err, WG_EINVAL, "pages %d; expected 1 or more, or 0 for enough", o->pages);
    if (o->pages == 0) {
        const long each = ((long)o->max_tokens + WG_TREE_MAX + o->page_slots - 1) / o->page_slots, all = each * o->max_batch;
        if (all > INT32_MAX)
            return wg_fail(err, WG_EINVAL, "%d sequences of %d tokens: too many pages; lower one", o->max_batch, o->max_tokens);
        o->pages = (int)all;
    }
    return WG_OK;
}

static wg_status open_buffers(wg_engine *e, wg_error *err)
{
    const int rows = e->opt.step_batch * WG_TREE_MAX, vocab = e->target->vocab;
    const int threads = e->env.pool ? wg_pool_threads(e->env.pool) : 1, most = rows + e->opt.ride_rows;
    WG_TRY(wg_batch_open(&e->batch, most > e->opt.prefill_rows ? most : e->opt.prefill_rows, err));
    WG_TRY(wg_rows_open(&e->p, rows, vocab, err));
    WG_TRY(wg_rows_open(&e->q, rows, vocab, err));
    WG_TRY(wg_workspace_open(&e->work, vocab, err));
    const size_t logits = (size_t)e->batch.cap * (size_t)vocab * sizeof *e->logits;
    if (!(e->logits = wg_alloc(logits, 1))) return wg_nomem(err, logits, "the target's logits; lower max_batch?");
    if (!(e->tree = wg_calloc((size_t)e->opt.max_batch, sizeof *e->tree)))
        return wg_nomem(err, (size_t)e->opt.max_batch * sizeof *e->tree, "draft trees");
    if (!(e->path = wg_calloc((size_t)e->opt.max_batch, sizeof *e->path)))
        return wg_nomem(err, (size_t)e->opt.max_batch * sizeof *e->path, "accepted paths");
    if (!(e->sampler = wg_calloc((size_t)threads, sizeof *e->sampler)))
        return wg_nomem(err, (size_t)threads * sizeof *e->sampler, "samplers");
    for (; e->samplers < threads; e->samplers++)
        WG_TRY(wg_sampler_open(&e->sampler[e->samplers], &e->opt.sampling, e->env.ops, vocab, err));
    return WG_OK;
}

/* Copies the fields of an option table, without the padding between them. */
static void copy_options(const wg_option *table, void *to, const void *from)
{
    static const size_t size[] = {
        [WG_OPT_INT] = sizeof(int),         [WG_OPT_FLOAT] = sizeof(double), [WG_OPT_BOOL] = sizeof(bool),
        [WG_OPT_STRING] = WG_OPTION_STRING, [WG_OPT_ENUM] = sizeof(int),
    };
    for (; table && table->name; table++) memcpy((char *)to + table->at, (const char *)from + table->at, size[table->type]);
}

static wg_status open_plugins(wg_engine *e, const wg_engine_parts *parts, wg_error *err)
{
    const wg_drafter_class *d = parts->drafter;
    e->verifier = parts->verifier;
    e->rules = parts->rules;
    e->checks_answers = true;
    for (int i = 0; e->rules && e->rules[i]; i++)
        if (e->rules[i] == e->verifier) e->checks_answers = false;
    if (e->verifier->size) {
        if (!(e->verifier_opt = wg_calloc(1, e->verifier->size))) return wg_nomem(err, e->verifier->size, "a rule's options");
        wg_option_defaults(e->verifier->options, e->verifier_opt);
        if (parts->verifier_options) copy_options(e->verifier->options, e->verifier_opt, parts->verifier_options);
    }
    e->env.races = wg_verifier_races(e->verifier, e->verifier_opt);
    wg_assert(d->size >= sizeof *e->drafter);
    if (!(e->drafter = wg_calloc(1, d->size))) return wg_nomem(err, d->size, "a drafter");
    e->drafter->class = d;
    e->drafter->env = &e->env;
    char *options = (char *)e->drafter + d->options_at;
    wg_option_defaults(d->options, options);
    if (parts->drafter_options) copy_options(d->options, options, parts->drafter_options);
    WG_TRY(wg_check_laws(d, wg_drafter_laws(d, options, &e->opt.sampling), parts->verifier, parts->rules, err));
    return d->open ? d->open(e->drafter, &e->env, err) : WG_OK;
}

static bool tokenizer_says(const void *tokenizer, int32_t token) { return wg_tokenizer_is_eog(tokenizer, token); }

static wg_status open_engine(wg_engine *e, const wg_engine_parts *parts, const wg_engine_options *opt, wg_error *err)
{
    e->target = parts->target;
    WG_TRY(check_options(e, opt, err));
    e->feeds = (wg_tap_feeds){ .target = e->target, .sequences = e->opt.max_batch };
    e->is_eog = parts->is_eog ? parts->is_eog : parts->tokenizer ? tokenizer_says : NULL;
    e->is_eog_user = parts->is_eog ? parts->is_eog_user : parts->tokenizer;
    WG_TRY(wg_kv_open(&e->kv, e->opt.page_slots, e->opt.pages, e->opt.max_tokens + WG_TREE_MAX, err));
    WG_TRY(wg_lm_attach(e->target, e->kv, err));
    e->env = (wg_env){
        .target = e->target,
        .kv = e->kv,
        .pool = parts->pool,
        .ops = parts->ops,
        .sampling = &e->opt.sampling,
        .tokenizer = parts->tokenizer,
        .target_name = parts->target_name,
        .max_batch = e->opt.max_batch,
        .is_eog = e->is_eog,
        .is_eog_user = e->is_eog_user,
        .checks = parts->verifier->laws,
        .races = 1,
        .watches = &e->watched,
        .plugins = parts->plugins,
        .lengths = e->opt.lengths,
        .feeds = &e->feeds,
        .profile = parts->profile,
    };
    WG_TRY(open_buffers(e, err));
    e->env.logits = e->logits;
    WG_TRY(open_plugins(e, parts, err));
    WG_TRY(wg_device_verify_open(e, err));
    return wg_device_decode_open(e, err);
}

wg_status wg_engine_open(wg_engine **out, const wg_engine_parts *parts, const wg_engine_options *opt, wg_error *err)
{
    WG_TRY(wg_cpu_check(err));
    wg_engine *e = wg_calloc(1, sizeof *e);
    if (!e) return wg_nomem(err, sizeof *e, "an engine");
    const wg_status status = open_engine(e, parts, opt, err);
    wg_profile_keep(parts->profile);
    if (status) wg_engine_close(e);
    else *out = e;
    return status;
}

bool wg_engine_verifies_on_device(const wg_engine *e) { return e->device_verify != NULL; }

void wg_engine_measure(wg_engine *e, bool alpha, bool audit)
{
    wg_assert(!wg_engine_verifies_on_device(e));
    e->opt.measure_alpha = alpha;
    e->opt.audit = audit;
}

void wg_engine_close(wg_engine *e)
{
    if (!e) return;
    wg_device_decode_close(e);
    if (e->drafter && e->drafter->class->close) e->drafter->class->close(e->drafter);
    wg_free(e->drafter);
    wg_tap_feeds_close(&e->feeds);
    wg_device_verify_close(e);
    wg_free(e->verifier_opt);
    for (int i = 0; i < e->samplers; i++) wg_sampler_close(&e->sampler[i]);
    wg_free(e->sampler);
    wg_free(e->tree);
    wg_free(e->path);
    wg_free(e->logits);
    wg_workspace_close(&e->work);
    wg_rows_close(&e->q);
    wg_rows_close(&e->p);
    wg_batch_close(&e->batch);
    wg_kv_close(e->kv);
    wg_free(e);
}

/* ---- accessors */

wg_lm *wg_engine_target(const wg_engine *e) { return e->target; }
wg_drafter *wg_engine_drafter(const wg_engine *e) { return e->drafter; }
const wg_verifier_class *wg_engine_verifier(const wg_engine *e) { return e->verifier; }
const wg_engine_options *wg_engine_options_of(const wg_engine *e) { return &e->opt; }
wg_kv *wg_engine_kv(const wg_engine *e) { return e->kv; }
const wg_env *wg_engine_env(const wg_engine *e) { return &e->env; }
wg_tap_feeds *wg_engine_feeds(wg_engine *e) { return &e->feeds; }
bool wg_engine_decodes_on_device(const wg_engine *e) { return e->device_decode; }
long wg_engine_massless(const wg_engine *e) { return e->massless; }
const wg_phases *wg_engine_phases(const wg_engine *e) { return &e->phases; }
void wg_engine_phases_clear(wg_engine *e) { e->phases = (wg_phases){ 0 }; }

wg_last_step wg_engine_last_step(wg_engine *e)
{
    return (wg_last_step){ .tree = e->tree, .p = &e->p, .q = &e->q, .logits = e->logits, .work = &e->work };
}

void wg_engine_forget(wg_engine *e, const wg_seq *s)
{
    if (e->drafter->class->forget) e->drafter->class->forget(e->drafter, s);
}

void wg_seq_truncate(wg_engine *e, wg_seq *s, int len)
{
    wg_kv_truncate(s->kv, len);
    wg_tap_feeds_rewind(&e->feeds, s->slot, wg_kv_len(s->kv));
}

/* ---- sequences */

/* Takes the lowest free slot; -1 when there is none. */
static int take_slot(wg_engine *e)
{
    for (int i = 0; i < e->opt.max_batch; i++)
        if (!(e->slots[i / 64] >> i % 64 & 1)) {
            e->slots[i / 64] |= 1ull << i % 64;
            return i;
        }
    return -1;
}

/* Checks tokens that follow `before` others. */
static wg_status check_prompt(const wg_engine *e, int before, const int32_t *prompt, int n, int max_new, wg_error *err)
{
    if (n < 1) return wg_fail(err, WG_EINVAL, "an empty prompt; expected a token or more (a beginning-of-text token will do)");
    if (max_new < 1) return wg_fail(err, WG_EINVAL, "%d new tokens; expected at least 1", max_new);
    if (n >= e->opt.max_tokens && !before)
        return wg_fail(
            err, WG_ECONTEXT,
            "the prompt has %d tokens, but only %d fit, new ones included; shorten it%s (the target's context is %d)", n,
            e->opt.max_tokens, e->opt.max_tokens < e->target->context ? " or raise max_tokens" : "", e->target->context);
    if (n >= e->opt.max_tokens - before)
        return wg_fail(err, WG_ECONTEXT,
                       "the conversation has %d tokens and its next question %d, but only %d fit, new ones "
                       "included; use shorter answers%s (the target's context is %d)",
                       before, n, e->opt.max_tokens, e->opt.max_tokens < e->target->context ? " or raise max_tokens" : "",
                       e->target->context);
    for (int i = 0; i < n; i++)
        if (prompt[i] < 0 || prompt[i] >= e->target->vocab)
            return wg_fail(err, WG_EINVAL, "prompt token %d is %d; the vocabulary is 0..%d", i, (int)prompt[i],
                           e->target->vocab - 1);
    return WG_OK;
}

wg_status wg_seq_open(wg_engine *e, wg_seq **out, uint32_t request, const int32_t *prompt, int n, int max_new, wg_error *err)
{
    WG_TRY(check_prompt(e, 0, prompt, n, max_new, err));
    WG_TRY(wg_tap_feeds_start(&e->feeds, err));
    wg_seq *s = wg_calloc(1, sizeof *s);
    if (!s) return wg_nomem(err, sizeof *s, "a sequence");
    wg_status status = WG_OK;
    s->request = request;
    s->n = s->prompt = n;
    s->limit = s->cap = max_new < e->opt.max_tokens - n ? n + max_new : e->opt.max_tokens;
    s->chance = wg_chance_philox(e->opt.seed, request, (uint32_t)n);
    s->token = wg_calloc((size_t)s->cap, sizeof *s->token);
    s->drafted = wg_calloc((size_t)s->cap, sizeof *s->drafted);
    s->slot = take_slot(e);
    if (s->slot < 0)
        status = wg_fail(err, WG_EFULL, "all %d places are taken; close a sequence or raise max_batch", e->opt.max_batch);
    else if (!s->token || !s->drafted)
        status = wg_nomem(err, (size_t)s->cap * (sizeof *s->token + 1), "the tokens of a sequence");
    else status = wg_kv_seq_open(e->kv, &s->kv, err);
    if (status) {
        wg_seq_close(e, s);
        return status;
    }
    memcpy(s->token, prompt, (size_t)n * sizeof *prompt);
    *out = s;
    return WG_OK;
}

static wg_status make_room(wg_seq *s, int cap, wg_error *err)
{
    if (cap <= s->cap) return WG_OK;
    int32_t *token = wg_realloc(s->token, (size_t)cap, sizeof *token);
    if (token) s->token = token;
    uint8_t *drafted = token ? wg_realloc(s->drafted, (size_t)cap, sizeof *drafted) : NULL;
    if (!drafted) return wg_nomem(err, (size_t)cap * (sizeof *token + 1), "the tokens of a sequence");
    s->drafted = drafted;
    s->cap = cap;
    return WG_OK;
}

wg_status wg_seq_extend(wg_engine *e, wg_seq *s, const int32_t *token, int n, int max_new, wg_error *err)
{
    if (s->finish == WG_RUNNING)
        return wg_fail(err, WG_EINVAL, "request %u is running; it can be extended when it has finished", (unsigned)s->request);
    WG_TRY(check_prompt(e, s->n, token, n, max_new, err));
    const int prompt = s->n + n, limit = max_new < e->opt.max_tokens - prompt ? prompt + max_new : e->opt.max_tokens;
    WG_TRY(make_room(s, limit, err));
    memcpy(s->token + s->n, token, (size_t)n * sizeof *token);
    memset(s->drafted + s->n, 0, (size_t)n);
    s->asked = s->n;
    s->n = s->prompt = prompt;
    s->limit = limit;
    s->chance.position = (uint32_t)prompt;
    s->finish = WG_RUNNING;
    s->counts = (wg_counts){ 0 };
    s->on_device = (wg_device_passes){ 0 };
    return WG_OK;
}

wg_status wg_seq_share(wg_engine *e, wg_seq *s, wg_kv_seq *from, int len, wg_error *err)
{
    wg_kv_seq *kv;
    const int most = s->n - 1 - wg_tap_feeds_latest(&e->feeds);
    wg_assert(wg_kv_len(s->kv) == 0 && len >= 0 && len <= wg_kv_len(from));
    if (len > most) len = most > 0 ? most : 0;
    WG_TRY(wg_kv_fork(from, &kv, err));
    wg_kv_truncate(kv, len); /* to 0 if pages that the next token reads were freed */
    wg_kv_seq_close(s->kv);
    s->kv = kv;
    wg_tap_feeds_resume(&e->feeds, s->slot, wg_kv_len(kv));
    return WG_OK;
}

int wg_seq_shareable(const wg_engine *e, const wg_seq *s) { return wg_tap_feeds_read(&e->feeds, s->slot, wg_kv_len(s->kv)); }

wg_kv_seq *wg_seq_take_cache(wg_engine *e, wg_seq *s)
{
    wg_kv_seq *kv = s->kv;
    wg_engine_forget(e, s);
    s->kv = NULL;
    return kv;
}

void wg_seq_close(wg_engine *e, wg_seq *s)
{
    if (!s) return;
    if (s->kv) wg_engine_forget(e, s);
    if (e->proposed == s) e->proposed = NULL;
    wg_kv_seq_close(s->kv);
    if (s->slot >= 0) wg_tap_feeds_rewind(&e->feeds, s->slot, 0);
    if (s->slot >= 0) e->slots[s->slot / 64] &= ~(1ull << s->slot % 64);
    wg_seq_rows_close(s);
    wg_free(s->token);
    wg_free(s->drafted);
    wg_free(s);
}
