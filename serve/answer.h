/* SPDX-License-Identifier: MIT
 * One answer while it grows: its tokens, its text, and its rounds. The text is settled up to a place that moves forward alone:
 * what stands behind it may still turn out to be a stop string. */
#ifndef WG_SERVE_ANSWER_H
#define WG_SERVE_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "serve/buffer.h"
#include "serve/stop_strings.h"

/* A token, and natural logarithms of probabilities: its own, and those of the `tops` most probable tokens. */
typedef struct wgs_token {
    int32_t id;
    bool drafted; /* an accepted draft token */
    bool scored;  /* the logarithms are there */
    double logprob;
    int tops, top_at; /* of wgs_answer.top_token and top_logprob */
    size_t end;       /* of its text */
} wgs_token;

/* A round emits its accepted draft tokens and one more. What a stop string has cut off counts nowhere: of the last round those
 * tokens are left that the text keeps, and rounds without any are none. */
typedef struct wgs_round {
    int tokens;            /* of the answer, at the end of the round */
    int drafted, accepted; /* draft tokens that were verified, and accepted */
    size_t settled;        /* bytes of text, at the end of the round */
    double gap;            /* seconds since the round before; 0: the first */
} wgs_round;

typedef enum wgs_finish { WGS_RUNS, WGS_STOP, WGS_LENGTH, WGS_ABORT, WGS_ERROR } wgs_finish;
extern const char *const wgs_finish_names[]; /* as finish_reason; of WGS_RUNS NULL */

/* Seconds of one clock; 0: has not happened. */
typedef struct wgs_times {
    double submitted, started, first, last;
} wgs_times;

typedef struct wgs_answer {
    const wgs_stops *stops;
    bool include_stop;                        /* the stop string stays in the text */
    int prompt_tokens, cached_tokens, echoed; /* echoed: the first tokens, which are the prompt's */
    wgs_buffer text;
    size_t settled, text_from; /* text_from: where the text that is not the prompt's begins */
    wgs_token *token;
    int tokens, token_room;
    int32_t *top_token; /* (tops) */
    double *top_logprob;
    int tops, top_room;
    wgs_round *round;
    int rounds, round_room, told;              /* told: by wgs_answer_settled */
    int64_t drafted, accepted, passes, drafts; /* of the rounds; drafts: passes that had a draft */
    wgs_finish finish;
    wgs_times times;
    bool failed;     /* out of memory: something is missing */
    int http;        /* of WGS_ERROR: the status that says it */
    char error[512]; /* of WGS_ERROR */
} wgs_answer;

/* Appends a token with its bytes. tops: (t.tops) alternatives, most probable first. Returns whether the text has reached a stop
 * string: it is cut there, tokens that begin behind it are dropped, and the answer has finished. A prompt's tokens (`echo`) are
 * no place for stop strings. */
bool wgs_answer_token(wgs_answer *a, wgs_token t, const char *bytes, size_t n, const int32_t *top_token,
                      const double *top_logprob);
void wgs_answer_echo(wgs_answer *a, wgs_token t, const char *bytes, size_t n, const int32_t *top_token,
                     const double *top_logprob);

/* Ends a round. */
void wgs_answer_round(wgs_answer *a, int drafted, int accepted, double gap);

/* The next round that no stop string can shorten any more; *tokens: how many it has. NULL: there is none yet. */
const wgs_round *wgs_answer_settled(wgs_answer *a, int *tokens);

/* The answer has ended, unless a stop string ended it before: all of its text is settled. bytes: (n) what its last token has of
 * a character without an end. */
void wgs_answer_end(wgs_answer *a, wgs_finish why, const char *bytes, size_t n);

/* Tokens of the answer without the prompt's. */
int wgs_answer_new_tokens(const wgs_answer *a);

void wgs_answer_free(wgs_answer *a);

#endif
