/* SPDX-License-Identifier: MIT
 * Streams a text with speculation: the drafter `suffix` proposes what the text has had before, the target verifies it, and the
 * rule `match` keeps the text that plain decoding gives.
 *
 *     cc embed.c $(pkg-config --cflags --libs wager) -o embed && ./embed MODEL PROMPT */
#include <stdio.h>
#include <string.h>
#include <wager.h>

static int fail(const wg_error *err) { return fprintf(stderr, "embed: %s\n", err->text), 1; }

int main(int argc, char **argv)
{
    char config[1024];
    wg_session *session = NULL;
    wg_sequence *text = NULL;
    wg_error err;
    if (argc != 3) return fprintf(stderr, "usage: embed MODEL PROMPT\n"), 2;
    snprintf(config, sizeof config,
             "{\"target\": {\"model\": \"%s\"}, \"draft\": {\"kind\": \"suffix\", \"k\": 8}, \"verify\": {\"rule\": \"match\"},"
             " \"max_tokens\": 64}",
             argv[1]);
    if (wg_session_open(&session, config, &err)) return fail(&err);
    if (wg_sequence_open(session, &text, argv[2], strlen(argv[2]), NULL, &err)) return wg_session_close(session), fail(&err);
    for (wg_round round = { .size = sizeof round }; round.end == WG_END_NOT;) {
        if (wg_sequence_next(text, &round, &err)) return wg_session_close(session), fail(&err);
        fwrite(round.text, 1, round.bytes, stdout); /* a few tokens at once, where the draft was right */
    }
    wg_stats stats = { .size = sizeof stats };
    wg_sequence_stats(text, &stats, NULL);
    fprintf(stderr, "\n%ld tokens in %ld passes of the target: %ld of %ld drafted tokens were right\n", (long)stats.emitted,
            (long)stats.passes, (long)stats.accepted, (long)stats.drafted);
    wg_session_close(session);
    return 0;
}
