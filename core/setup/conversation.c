/* SPDX-License-Identifier: MIT
 * Conversations (conversation.h). */
#include "core/setup/conversation.h"

#include "core/base/mem.h"
#include "core/setup/constrained.h"

enum { TOKENS_MAX = 1 << 28 }; /* larger than any context; sums of turns fit a long */

static int count(size_t n) { return n > TOKENS_MAX ? TOKENS_MAX : (int)n; }

wg_status wg_conversation_encode(wg_question *out, const wg_tokenizer *t, const wg_chat *chat, const wg_text *asked, int turns,
                                 wg_error *err)
{
    wg_status s = WG_OK;
    for (int i = 0; i < turns && !s; i++) {
        size_t n = 0, closed = 0;
        s = i ? wg_chat_encode_next(t, chat, asked, i + 1, &out[i].token, &n, &closed, err)
              : wg_chat_encode(t, chat, asked, 1, &out[i].token, &n, err);
        out[i].n = count(n);
        out[i].closed = count(closed);
    }
    return s;
}

void wg_conversation_free(wg_question *q, int turns)
{
    for (int i = 0; q && i < turns; i++) wg_free(q[i].token);
}

long wg_conversation_most(const wg_question *q, int turns, int max_new)
{
    long n = 0;
    for (int i = 0; i < turns; i++) n += q[i].n + (long)max_new;
    return n;
}

wg_status wg_conversation_ask(wg_engine *e, wg_seq **s, const wg_question *q, int turn, uint32_t request, int max_new,
                              wg_acceptor *by, wg_error *err)
{
    q += turn;
    if (turn == 0) {
        wg_seq *opened;
        const wg_seq_sampling how = { .acceptor = by, .forced = wg_drafts_forced(e) };
        WG_TRY(wg_seq_open(e, &opened, request, q->token, q->n, max_new, err));
        const wg_status status = by ? wg_seq_sample(e, opened, &how, err) : WG_OK;
        if (status) wg_seq_close(e, opened);
        else *s = opened;
        return status;
    }
    return wg_conversation_extend(e, *s, q, max_new, err);
}

wg_status wg_conversation_extend(wg_engine *e, wg_seq *s, const wg_question *q, int max_new, wg_error *err)
{
    const bool said = q->closed && s->token[s->n - 1] == q->token[q->closed - 1];
    const int skip = said ? q->closed : 0;
    return wg_seq_extend(e, s, q->token + skip, q->n - skip, max_new, err);
}
