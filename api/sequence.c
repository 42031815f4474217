/* SPDX-License-Identifier: MIT
 * Sequences: texts and tokens in, rounds out. */
#include <limits.h>
#include <string.h>

#include "api/api_impl.h"
#include "core/base/mem.h"
#include "core/setup/conversation.h"

static wg_chat chat_of(const wg_session *s) { return wg_setup_chat(&s->setup.prompts, s->target->weights); }

/* ---- opening and closing ------------------------------------------------------------------------------------------- */

void wg_sequence_close(wg_sequence *q)
{
    if (!q) return;
    if (q->before) q->before->after = q->after;
    else if (q->session->first == q) q->session->first = q->after;
    if (q->after) q->after->before = q->before;
    wg_seq_close(q->session->engine, q->seq);
    for (int i = 0; i < q->questions; i++) wg_free((char *)q->question[i].s);
    wg_free(q->question);
    wg_free(q->text);
    wg_free(q->node);
    wg_free(q);
}

/* The text of a round: the most tokens that one emits. */
static wg_status open_text(wg_sequence *q, wg_error *err)
{
    const wg_tokenizer *t = q->session->target ? q->session->target->tokenizer : NULL;
    q->room = t ? (WG_TREE_MAX + 1) * wg_tokenizer_room(t) + 1 : 1;
    q->stream.started = true;
    if (!(q->text = wg_calloc(q->room, 1))) return wg_nomem(err, q->room, "the text of a round");
    return WG_OK;
}

static wg_status open_seq(wg_session *s, wg_sequence *q, const int32_t *token, size_t n, const wg_sequence_options *opt,
                          wg_error *err)
{
    wg_sequence_options o = { .request = s->opened };
    if (opt) WG_TRY(wg_struct_in(&o, sizeof o, opt, WG_SIZE_TO(wg_sequence_options, max_tokens), "wg_sequence_options", err));
    if (n > INT_MAX) return wg_fail(err, WG_ECONTEXT, "the prompt has %zu tokens", n);
    q->max_tokens = o.max_tokens ? o.max_tokens : s->kind == WG_SESSION_DRAFTER ? INT_MAX / 2 : s->setup.top.max_tokens;
    WG_TRY(open_text(q, err));
    WG_TRY(wg_seq_open(s->engine, &q->seq, o.request, token, (int)n, q->max_tokens, err));
    q->seen = q->seq->n;
    return WG_OK;
}

/* Takes over `q` and puts it into the session's list, or closes it. */
static wg_status finish_open(wg_session *s, wg_sequence *q, wg_status status, wg_sequence **out)
{
    if (status) {
        wg_sequence_close(q);
        return status;
    }
    q->after = s->first;
    if (s->first) s->first->before = q;
    s->first = q;
    s->opened++;
    *out = q;
    return WG_OK;
}

static wg_status new_sequence(wg_session *s, wg_sequence **out, wg_error *err)
{
    if (!(*out = wg_calloc(1, sizeof **out))) return wg_nomem(err, sizeof **out, "a sequence");
    (*out)->session = s;
    return WG_OK;
}

wg_status wg_sequence_open_tokens(wg_session *s, wg_sequence **out, const int32_t *token, int n, const wg_sequence_options *opt,
                                  wg_error *err)
{
    wg_sequence *q;
    if (!s || !out) return wg_missing("wg_sequence_open_tokens", s ? "out" : "the session", err);
    if (!token && n > 0) return wg_missing("wg_sequence_open_tokens", "token", err);
    WG_TRY(new_sequence(s, &q, err));
    return finish_open(s, q, open_seq(s, q, token, n < 0 ? 0 : (size_t)n, opt, err), out);
}

/* Keeps a copy of a question, for templates that read all of them. */
static wg_status keep_question(wg_sequence *q, const char *text, size_t bytes, wg_error *err)
{
    wg_text *more = wg_realloc(q->question, (size_t)q->questions + 1, sizeof *more);
    char *copy = more ? wg_alloc(bytes + 1, 1) : NULL;
    if (more) q->question = more;
    if (!copy) return wg_nomem(err, bytes, "a question");
    if (bytes) memcpy(copy, text, bytes);
    q->question[q->questions++] = (wg_text){ copy, bytes };
    return WG_OK;
}

static wg_status need_tokenizer(const wg_session *s, const char *function, wg_error *err)
{
    if (s->target) return WG_OK;
    return wg_fail(err, WG_EUNSUPPORTED, "%s: this session has no tokenizer, because its target is not a file; use tokens",
                   function);
}

static wg_status open_question(wg_session *s, wg_sequence *q, const char *text, size_t bytes, const wg_sequence_options *opt,
                               wg_error *err)
{
    const wg_chat chat = chat_of(s);
    const wg_tokenizer *t = s->target->tokenizer;
    int32_t *ids = NULL;
    size_t n = 0;
    WG_TRY(keep_question(q, text, bytes, err));
    WG_TRY(chat.family ? wg_chat_encode(t, &chat, q->question, 1, &ids, &n, err)
                       : wg_tokenizer_encode(t, text, bytes, true, true, &ids, &n, err));
    const wg_status status = open_seq(s, q, ids, n, opt, err);
    wg_free(ids);
    return status;
}

wg_status wg_sequence_open(wg_session *s, wg_sequence **out, const char *text, size_t bytes, const wg_sequence_options *opt,
                           wg_error *err)
{
    wg_sequence *q;
    if (!s || !out) return wg_missing("wg_sequence_open", s ? "out" : "the session", err);
    if (!text && bytes) return wg_missing("wg_sequence_open", "text", err);
    WG_TRY(need_tokenizer(s, "wg_sequence_open", err));
    WG_TRY(new_sequence(s, &q, err));
    return finish_open(s, q, open_question(s, q, text ? text : "", bytes, opt, err), out);
}

/* ---- conversations ------------------------------------------------------------------------------------------------- */

static wg_status extend(wg_sequence *q, const wg_question *asked, int max_tokens, wg_error *err)
{
    const int most = max_tokens ? max_tokens : q->max_tokens;
    WG_TRY(wg_conversation_extend(q->session->engine, q->seq, asked, most, err));
    q->max_tokens = most;
    q->seen = q->seq->n;
    q->bytes = 0;
    q->stream = (wg_stream){ .started = true };
    return WG_OK;
}

wg_status wg_sequence_extend_tokens(wg_sequence *q, const int32_t *token, int n, int max_tokens, wg_error *err)
{
    if (!q || !token) return wg_missing("wg_sequence_extend_tokens", q ? "token" : "the sequence", err);
    const wg_question asked = { .token = (int32_t *)token, .n = n };
    return extend(q, &asked, max_tokens, err);
}

wg_status wg_sequence_extend(wg_sequence *q, const char *text, size_t bytes, int max_tokens, wg_error *err)
{
    if (!q || !text) return wg_missing("wg_sequence_extend", q ? "text" : "the sequence", err);
    WG_TRY(need_tokenizer(q->session, "wg_sequence_extend", err));
    const wg_chat chat = chat_of(q->session);
    wg_question asked = { 0 };
    size_t n = 0, closed = 0;
    if (q->questions == 0)
        return wg_fail(err, WG_EINVAL, "this sequence was opened with tokens; continue it with wg_sequence_extend_tokens");
    WG_TRY(keep_question(q, text, bytes, err));
    wg_status s =
        wg_chat_encode_next(q->session->target->tokenizer, &chat, q->question, q->questions, &asked.token, &n, &closed, err);
    asked.n = n > INT_MAX ? INT_MAX : (int)n;
    asked.closed = (int)closed;
    if (!s) s = extend(q, &asked, max_tokens, err);
    wg_free(asked.token);
    if (s) wg_free((char *)q->question[--q->questions].s);
    return s;
}

/* ---- rounds -------------------------------------------------------------------------------------------------------- */

/* The text of the tokens since `seen`, and what the stream held back when they were the last. */
static void take_text(wg_sequence *q)
{
    const wg_tokenizer *t = q->session->target ? q->session->target->tokenizer : NULL;
    q->bytes = 0;
    for (int i = q->seen; t && i < q->seq->n; i++)
        q->bytes += wg_stream_put(&q->stream, t, q->seq->token[i], q->text + q->bytes, q->room - 1 - q->bytes);
    if (t && q->seq->finish != WG_RUNNING) q->bytes += wg_stream_end(&q->stream, q->text + q->bytes, q->room - 1 - q->bytes);
    q->text[q->bytes] = '\0';
}

wg_status wg_session_round(wg_session *s, wg_sequence *const *q, int n, wg_error *err)
{
    wg_seq *running[256];
    int some = 0;
    if (!s || (!q && n > 0)) return wg_missing("wg_session_round", s ? "the sequences" : "the session", err);
    if (s->kind == WG_SESSION_DRAFTER)
        return wg_fail(err, WG_EUNSUPPORTED, "this session is a drafter alone and has no target; use wg_sequence_propose");
    for (int i = 0; i < n; i++) {
        if (!q[i] || q[i]->session != s)
            return wg_fail(err, WG_EINVAL, "wg_session_round: sequence %d is %s", i, q[i] ? "another session's" : "NULL");
        if (q[i]->seq->finish != WG_RUNNING) continue;
        if (some == s->setup.top.batch) /* at most 256 */
            return wg_fail(err, WG_EINVAL, "a round of %d sequences; expected 1..%d (batch)", n, s->setup.top.batch);
        running[some++] = q[i]->seq;
    }
    if (some) WG_TRY(wg_engine_rounds(s->engine, running, some, 1, NULL, NULL, err));
    for (int i = 0; i < n; i++) {
        q[i]->seen = q[i]->seq->n; /* of those that have ended; of the others set below */
        for (int k = 0; k < some; k++)
            if (running[k] == q[i]->seq) q[i]->seen -= q[i]->seq->last_emitted;
        q[i]->nodes = q[i]->seen < q[i]->seq->n ? q[i]->seq->last_nodes - 1 : 0;
        if (q[i]->seen < q[i]->seq->n) take_text(q[i]);
        else q[i]->bytes = 0, q[i]->text[0] = '\0';
    }
    return WG_OK;
}

wg_status wg_sequence_last(wg_sequence *q, wg_round *out, wg_error *err)
{
    static const wg_end ends[] = { [WG_RUNNING] = WG_END_NOT,
                                   [WG_FINISH_EOS] = WG_END_EOS,
                                   [WG_FINISH_LENGTH] = WG_END_LENGTH,
                                   [WG_FINISH_STOP] = WG_END_STOP };
    if (!q || !out) return wg_missing("wg_sequence_last", q ? "out" : "the sequence", err);
    const wg_round round = { .text = q->text,
                             .bytes = q->bytes,
                             .token = q->seq->token + q->seen,
                             .drafted = q->seq->drafted + q->seen,
                             .n = q->seq->n - q->seen,
                             .nodes = q->nodes,
                             .end = ends[q->seq->finish] };
    return wg_struct_out(out, &round, sizeof round, WG_SIZE_TO(wg_round, end), "wg_round", err);
}

wg_status wg_sequence_next(wg_sequence *q, wg_round *out, wg_error *err)
{
    wg_round check = { .size = out ? out->size : 0 };
    if (!q || !out) return wg_missing("wg_sequence_next", q ? "out" : "the sequence", err);
    WG_TRY(wg_sequence_last(q, &check, err)); /* its size, before anything happens */
    WG_TRY(wg_session_round(q->session, &q, 1, err));
    return wg_sequence_last(q, out, err);
}

wg_status wg_sequence_stats(const wg_sequence *q, wg_stats *out, wg_error *err)
{
    if (!q || !out) return wg_missing("wg_sequence_stats", q ? "out" : "the sequence", err);
    const wg_counts *c = &q->seq->counts;
    const wg_stats stats = { .prompt = q->seq->prompt,
                             .emitted = c->emitted,
                             .passes = c->passes,
                             .drafted = c->drafted,
                             .accepted = c->accepted,
                             .lossless = wg_setup_lossless(&q->session->setup) };
    return wg_struct_out(out, &stats, sizeof stats, WG_SIZE_TO(wg_stats, lossless), "wg_stats", err);
}
