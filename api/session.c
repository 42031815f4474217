/* SPDX-License-Identifier: MIT
 * Sessions: a target, a drafter and a rule from a config, opened as the program opens them. */
#include <stdio.h>
#include <string.h>

#include "api/api_impl.h"
#include "core/base/mem.h"
#include "draft/open.h"
#include "kernels/cpu.h"

static int place_of(const void *user, const wg_kv_seq *kv)
{
    const wg_session *s = user;
    for (const wg_sequence *q = s->first; q; q = q->after)
        if (q->seq && q->seq->kv == kv) return q->seq->slot;
    return -1;
}

static bool scorer_ends(const void *user, int32_t token)
{
    const wg_scorer *s = user;
    return s->is_end(s->user, token) != 0;
}

static wg_status open_target(wg_session *s, wg_engine_parts *parts, wg_error *err)
{
    wg_target_options o = wg_setup_target_options(&s->setup.target);
    o.need_tokenizer = true;
    o.model.max_rows = wg_target_step_rows(s->opt.step_batch, s->opt.ride_rows);
    o.external.sequences = s->opt.max_batch;
    WG_TRY(wg_target_open(&s->target, s->setup.target.model, &o, err));
    *parts = wg_target_engine_parts(s->target);
    return WG_OK;
}

static wg_status open_scorer(wg_session *s, wg_engine_parts *parts, wg_error *err)
{
    WG_TRY(wg_pool_open(&s->pool, 1, err));
    WG_TRY(wg_scorer_lm_open(&s->lm, &s->scorer, s->setup.top.batch, place_of, s, err));
    *parts = (wg_engine_parts){ .target = wg_scorer_lm_of(s->lm),
                                .pool = s->pool,
                                .ops = wg_ops_for(wg_cpu_chosen()),
                                .is_eog = s->scorer.is_end ? scorer_ends : NULL,
                                .is_eog_user = &s->scorer,
                                .target_name = s->scorer.name,
                                .rules = wg_program_plugins.verifiers,
                                .plugins = &wg_program_plugins };
    return WG_OK;
}

static void take_note(void *session, bool warning, const char *text)
{
    char *notes = ((wg_session *)session)->profile_notes;
    const size_t n = strlen(notes), room = sizeof((wg_session *)session)->profile_notes;
    snprintf(notes + n, room - n, "%s%s%s", n ? "\n" : "", warning ? "warning: " : "", text);
}

/* Passes of a target that is no file are only timed where the config asks for it: they are calls of the caller's. */
static wg_status open_profile(wg_session *s, wg_error *err)
{
    const char *use = s->setup.top.profile;
    const wg_profile_options o = { .use = !*use && s->kind != WG_SESSION_MODEL ? "nominal" : use, .say = take_note, .user = s };
    return wg_profile_open(&s->profile, &o, err);
}

const char *wg_session_profile(wg_session *s)
{
    char hex[WG_SHA256_HEX];
    snprintf(s->profile_name, sizeof s->profile_name, "%s", wg_profile_name(s->profile, hex));
    return s->profile_name;
}

static wg_status open_session(wg_session *s, const wg_engine_text *text, wg_error *err)
{
    const bool serves = s->opt.ride_rows > 0;
    WG_TRY(wg_engine_text_open(&s->setup, text, &wg_program_plugins, err));
    if (s->opt.step_batch == 0)
        s->opt.step_batch = s->kind == WG_SESSION_DRAFTER ? 1 : s->setup.top.batch; /* it proposes for
                                                                                                            * one at a time */
    s->opt.max_batch = serves ? 2 * s->opt.step_batch : s->setup.top.batch;
    if (s->opt.max_batch > 256) s->opt.max_batch = 256;
    s->opt.seed = (uint64_t)s->setup.top.seed;
    s->opt.sampling = s->setup.sampling;
    wg_engine_parts parts;
    WG_TRY(s->kind == WG_SESSION_MODEL ? open_target(s, &parts, err) : open_scorer(s, &parts, err));
    parts.drafter = s->setup.drafter;
    parts.drafter_options = s->setup.draft;
    parts.verifier = s->setup.verifier;
    parts.verifier_options = s->setup.verifier_options;
    WG_TRY(open_profile(s, err));
    parts.profile = s->profile;
    wg_drafter_title(parts.drafter, parts.drafter_options, s->drafter, sizeof s->drafter);
    return wg_engine_open(&s->engine, &parts, &s->opt, err);
}

static wg_status open_new(wg_session **out, wg_session with, const wg_engine_text *text, wg_error *err)
{
    wg_session *s = wg_calloc(1, sizeof *s);
    if (!s) return wg_nomem(err, sizeof *s, "a session");
    *s = with;
    const wg_status status = open_session(s, text, err);
    if (status) wg_session_close(s);
    else *out = s;
    return status;
}

wg_status wg_session_make(wg_session **out, const wg_engine_text *text, const wg_scorer *scorer, wg_session_kind kind,
                          wg_error *err)
{
    return open_new(out, (wg_session){ .kind = kind, .scorer = scorer ? *scorer : (wg_scorer){ 0 } }, text, err);
}

wg_status wg_session_make_serving(wg_session **out, const wg_engine_text *text, const wg_engine_options *serving, wg_error *err)
{
    return open_new(out, (wg_session){ .kind = WG_SESSION_MODEL, .opt = *serving }, text, err);
}

wg_status wg_session_open(wg_session **out, const char *config, wg_error *err)
{
    if (!out || !config) return wg_missing("wg_session_open", out ? "config" : "out", err);
    const wg_engine_text text = { .name = "config", .json = config, .target = true };
    return wg_session_make(out, &text, NULL, WG_SESSION_MODEL, err);
}

static wg_status check_shape(const char *what, int vocab, int context, wg_error *err)
{
    if (vocab >= 1 && vocab <= 1 << 24 && context >= 2 && context <= 1 << 24) return WG_OK;
    return wg_fail(err, WG_EINVAL, "%s: a vocabulary of %d and a context of %d tokens; expected 1..%d and 2..%d", what, vocab,
                   context, 1 << 24, 1 << 24);
}

wg_status wg_session_open_scorer(wg_session **out, const wg_scorer *target, const char *config, wg_error *err)
{
    wg_scorer s = { 0 };
    if (!out || !target) return wg_missing("wg_session_open_scorer", out ? "target" : "out", err);
    WG_TRY(wg_struct_in(&s, sizeof s, target, WG_SIZE_TO(wg_scorer, user), "wg_scorer", err));
    if (!s.name) s.name = "of the caller";
    if (!s.score) return wg_missing("wg_session_open_scorer", "target->score", err);
    WG_TRY(check_shape(s.name, s.vocab, s.context, err));
    const wg_engine_text text = { .name = "config", .json = config ? config : "{}" };
    return wg_session_make(out, &text, &s, WG_SESSION_SCORER, err);
}

static int no_target(void *user, const wg_score_rows *rows, int n, char *message, size_t room)
{
    (void)user, (void)rows, (void)n, (void)message, (void)room;
    return -1;
}

wg_status wg_session_open_drafter(wg_session **out, int vocab, int context, const char *config, wg_error *err)
{
    wg_session *s = NULL;
    if (!out) return wg_missing("wg_session_open_drafter", "out", err);
    WG_TRY(check_shape("a drafter alone", vocab, context, err));
    const wg_scorer none = { .size = sizeof none, .name = "(none)", .vocab = vocab, .context = context, .score = no_target };
    const wg_engine_text text = { .name = "config", .json = config ? config : "{}" };
    WG_TRY(wg_session_make(&s, &text, &none, WG_SESSION_DRAFTER, err));
    const wg_status status = wg_engine_proposes(s->engine, err);
    if (status) wg_session_close(s);
    else *out = s;
    return status;
}

void wg_session_close(wg_session *s)
{
    if (!s) return;
    while (s->first) wg_sequence_close(s->first);
    wg_engine_close(s->engine);
    wg_profile_close(s->profile);
    wg_scorer_lm_close(s->lm);
    wg_pool_close(s->pool);
    wg_target_close(s->target);
    wg_setup_close(&s->setup);
    wg_free(s);
}

wg_status wg_session_about_get(const wg_session *s, wg_session_about *out, wg_error *err)
{
    if (!s || !out) return wg_missing("wg_session_about_get", s ? "out" : "the session", err);
    const wg_lm *lm = wg_engine_target(s->engine);
    const wg_session_about about = { .vocab = lm->vocab,
                                     .context = lm->context,
                                     .batch = s->setup.top.batch,
                                     .lossless = wg_setup_lossless(&s->setup),
                                     .law_only = lm->class->law_only,
                                     .drafter = s->drafter,
                                     .rule = wg_engine_verifier(s->engine)->name,
                                     .profile = wg_session_profile((wg_session *)(uintptr_t)s),
                                     .profile_notes = s->profile_notes };
    return wg_struct_out(out, &about, sizeof about, WG_SIZE_TO(wg_session_about, rule), "wg_session_about", err);
}

wg_status wg_session_seconds(const wg_session *s, wg_seconds *out, wg_error *err)
{
    if (!s || !out) return wg_missing("wg_session_seconds", s ? "out" : "the session", err);
    const wg_phases *p = wg_engine_phases(s->engine);
    const wg_seconds now = { .draft = p->draft, .verify = p->verify, .accept = p->accept, .kv = p->kv, .prefill = p->prefill };
    return wg_struct_out(out, &now, sizeof now, WG_SIZE_TO(wg_seconds, prefill), "wg_seconds", err);
}
