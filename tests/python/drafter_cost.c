/* SPDX-License-Identifier: MIT
 * The rounds of drafter_cost.py in C: prints nanoseconds of a round.
 * usage: drafter_cost KIND TOKENS ROUNDS */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "wager.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    const int n = argc > 2 ? atoi(argv[2]) : 1, rounds = argc > 3 ? atoi(argv[3]) : 2000;
    static int32_t text[1 << 20];
    char config[256];
    wg_session *s;
    wg_sequence *q;
    wg_draft d = { .size = sizeof d };
    wg_error err;
    for (int i = 0; i < 1 << 20; i++) text[i] = (int32_t)((unsigned)(i * 7 + (i >> 4) * 3) % 97);
    snprintf(config, sizeof config, "{\"draft\": {\"kind\": \"%s\", \"k\": 4}}", argc > 1 ? argv[1] : "suffix");
    if (wg_session_open_drafter(&s, 1000, 64 + n * rounds + 64, config, &err) ||
        wg_sequence_open_tokens(s, &q, text, 64, NULL, &err))
        return fprintf(stderr, "%s\n", err.text), 1;
    const double start = now();
    for (int i = 0; i < rounds; i++)
        if (wg_sequence_advance(q, text + 64 + i * n, n, &d, &err)) return fprintf(stderr, "%s\n", err.text), 1;
    printf("%.1f\n", (now() - start) / rounds);
    wg_session_close(s);
}
