/* SPDX-License-Identifier: MIT
 * One answer while it grows: its tokens, its text, and its rounds. The text is settled up to a byte that only moves forward;
 * the text behind that byte may still turn out to be a stop string. */
#ifndef WG_SERVE_ANSWER_H
#define WG_SERVE_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "serve/buffer.h"
#include "serve/stop_strings.h"

/* A token with the natural logarithms of its own probability and of those of the `tops` most probable tokens. */
typedef struct wgs_token {
    int32_t id;
    bool drafted; /* an accepted draft token */
    bool scored;  /* logprob and the top tokens are set */
    double logprob;
    int tops, top_at; /* number and first index of its entries in wgs_answer.top_token and top_logprob */
    size_t end;       /* offset in bytes at which its text ends */
} wgs_token;

/* A round emits its accepted draft tokens and one more token. Tokens that a stop string has cut off are not counted: the last
 * round has the tokens that the text keeps, and a round that keeps none is removed. */
typedef struct wgs_round {
    int tokens;            /* tokens of the answer at the end of the round */
    int drafted, accepted; /* draft tokens that were verified; those that were accepted */
    size_t settled;        /* bytes of settled text at the end of the round */
    double gap;            /* seconds since the previous round; 0 in the first round */
} wgs_round;

typedef enum wgs_finish { WGS_RUNS, WGS_STOP, WGS_LENGTH, WGS_ABORT, WGS_ERROR } wgs_finish;
extern const char *const wgs_finish_names[]; /* values of finish_reason; NULL for WGS_RUNS */

/* Times on one clock, in seconds; 0: the event has not happened. */
typedef struct wgs_times {
    double submitted, started, first, last;
} wgs_times;

typedef struct wgs_answer {
    const wgs_stops *stops;
    bool include_stop;                        /* the stop string stays in the text */
    int prompt_tokens, cached_tokens, echoed; /* echoed: number of leading tokens that repeat the prompt (`echo`) */
    wgs_buffer text;
    size_t settled, text_from; /* bytes that are settled; offset at which the text behind the echoed prompt begins */
    wgs_token *token;
    int tokens, token_room;
    int32_t *top_token; /* (tops) */
    double *top_logprob;
    int tops, top_room;
    wgs_round *round;
    int rounds, round_room, told;              /* told: rounds that wgs_answer_settled has returned */
    int64_t drafted, accepted, passes, drafts; /* sums over the rounds; drafts: passes that verified a draft */
    wgs_finish finish;
    wgs_times times;
    bool failed;     /* memory ran out: a part of the answer is missing */
    int http;        /* with WGS_ERROR: the HTTP status */
    char error[512]; /* with WGS_ERROR: the message */
} wgs_answer;

/* Appends a token with its n bytes and its t.tops alternatives, the most probable first. Returns whether the text has reached a
 * stop string; then the text is cut there, tokens that begin behind it are dropped, and the answer has finished.
 * wgs_answer_echo appends a token of the prompt, in which no stop string is looked for. */
bool wgs_answer_token(wgs_answer *a, wgs_token t, const char *bytes, size_t n, const int32_t *top_token,
                      const double *top_logprob);
void wgs_answer_echo(wgs_answer *a, wgs_token t, const char *bytes, size_t n, const int32_t *top_token,
                     const double *top_logprob);

/* Ends a round. */
void wgs_answer_round(wgs_answer *a, int drafted, int accepted, double gap);

/* The next round whose text is settled; *tokens: its number of tokens. NULL: there is none yet. */
const wgs_round *wgs_answer_settled(wgs_answer *a, int *tokens);

/* Ends the answer, unless a stop string has ended it before, and settles all of its text. bytes: (n) the beginning of an
 * incomplete character with which its last token ends. */
void wgs_answer_end(wgs_answer *a, wgs_finish why, const char *bytes, size_t n);

/* The number of tokens without those of the echoed prompt. */
int wgs_answer_new_tokens(const wgs_answer *a);

void wgs_answer_free(wgs_answer *a);

#endif
