/* SPDX-License-Identifier: MIT
 * One answer while it grows. */
#include "serve/answer.h"

#include <stdlib.h>

const char *const wgs_finish_names[] = { NULL, "stop", "length", "abort", "error" };

/* Room for one more of n things of `size` bytes. */
static bool grow(wgs_answer *a, void **at, int n, int *room, size_t size)
{
    if (n < *room) return true;
    const int more = *room ? *room * 2 : 16;
    void *p = realloc(*at, (size_t)more * size);
    if (!p) return !(a->failed = true);
    *at = p;
    *room = more;
    return true;
}

static bool append(wgs_answer *a, wgs_token t, const char *bytes, size_t n, const int32_t *top_token, const double *top_logprob)
{
    if (!grow(a, (void **)&a->token, a->tokens, &a->token_room, sizeof *a->token)) return false;
    if (a->tops + t.tops > a->top_room) {
        const int room = 2 * (a->tops + t.tops);
        int32_t *token = realloc(a->top_token, (size_t)room * sizeof *token);
        if (token) a->top_token = token;
        double *logprob = realloc(a->top_logprob, (size_t)room * sizeof *logprob);
        if (logprob) a->top_logprob = logprob;
        if (!token || !logprob) return !(a->failed = true);
        a->top_room = room;
    }
    t.top_at = a->tops;
    for (int i = 0; i < t.tops; i++) {
        a->top_token[a->tops] = top_token[i];
        a->top_logprob[a->tops++] = top_logprob[i];
    }
    wgs_buffer_put(&a->text, bytes, n);
    t.end = a->text.n;
    a->token[a->tokens++] = t;
    return !(a->failed |= a->text.failed);
}

/* Cuts the text at `at`; the tokens that begin behind it are dropped. */
static void cut(wgs_answer *a, size_t at)
{
    a->text.n = at;
    while (a->tokens > a->echoed && (a->tokens > 1 ? a->token[a->tokens - 2].end : 0) >= at && a->token[a->tokens - 1].end > at)
        a->tokens--;
    if (a->tokens && a->token[a->tokens - 1].end > at) a->token[a->tokens - 1].end = at;
}

bool wgs_answer_token(wgs_answer *a, wgs_token t, const char *bytes, size_t n, const int32_t *top_token,
                      const double *top_logprob)
{
    size_t found = 0;
    if (a->finish != WGS_RUNS || !append(a, t, bytes, n, top_token, top_logprob)) return a->finish != WGS_RUNS;
    a->settled = wgs_stops_settle(a->stops, a->text.s, a->settled, a->text.n, &found);
    if (!found) return false;
    cut(a, a->include_stop ? a->settled + found : a->settled);
    a->finish = WGS_STOP;
    a->settled = a->text.n;
    return true;
}

void wgs_answer_echo(wgs_answer *a, wgs_token t, const char *bytes, size_t n, const int32_t *top_token,
                     const double *top_logprob)
{
    if (!append(a, t, bytes, n, top_token, top_logprob)) return;
    a->echoed = a->tokens;
    a->settled = a->text_from = a->text.n;
}

static void add_round(wgs_answer *a, const wgs_round *r, int sign)
{
    a->passes += sign;
    a->drafts += sign * (r->drafted > 0);
    a->drafted += sign * r->drafted;
    a->accepted += sign * r->accepted;
}

/* Removes from the rounds the tokens that a stop string has cut off. */
static void cut_rounds(wgs_answer *a)
{
    while (a->rounds) {
        wgs_round *r = &a->round[a->rounds - 1];
        const int before = a->rounds > 1 ? r[-1].tokens : a->echoed;
        add_round(a, r, -1);
        a->rounds--;
        if (before >= a->tokens) continue;
        if (r->accepted > a->tokens - before - 1) r->accepted = a->tokens - before - 1;
        a->token[a->tokens - 1].drafted =
            false; /* the last token that is kept counts as the round's own, not as a draft token */
        r->tokens = a->tokens;
        a->rounds++;
        add_round(a, r, 1);
        return;
    }
}

void wgs_answer_round(wgs_answer *a, int drafted, int accepted, double gap)
{
    if (!grow(a, (void **)&a->round, a->rounds, &a->round_room, sizeof *a->round)) return;
    const wgs_round r = { .tokens = a->tokens, .drafted = drafted, .accepted = accepted, .settled = a->settled, .gap = gap };
    a->round[a->rounds++] = r;
    add_round(a, &r, 1);
    if (a->finish == WGS_STOP) cut_rounds(a);
}

const wgs_round *wgs_answer_settled(wgs_answer *a, int *tokens)
{
    if (a->told >= a->rounds) return NULL;
    const wgs_round *r = &a->round[a->told];
    if (a->finish == WGS_RUNS && r->tokens > 0 && a->token[r->tokens - 1].end > a->settled) return NULL;
    *tokens = r->tokens - (a->told ? r[-1].tokens : a->echoed);
    a->told++;
    return r;
}

void wgs_answer_end(wgs_answer *a, wgs_finish why, const char *bytes, size_t n)
{
    if (a->finish != WGS_RUNS) return;
    a->finish = why;
    wgs_buffer_put(&a->text, bytes, n);
    if (a->tokens > a->echoed) a->token[a->tokens - 1].end = a->text.n;
    a->settled = a->text.n;
}

int wgs_answer_new_tokens(const wgs_answer *a) { return a->tokens - a->echoed; }

void wgs_answer_free(wgs_answer *a)
{
    wgs_buffer_free(&a->text);
    free(a->token);
    free(a->top_token);
    free(a->top_logprob);
    free(a->round);
    *a = (wgs_answer){ 0 };
}
