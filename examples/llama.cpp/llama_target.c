/* SPDX-License-Identifier: MIT
 * llama.cpp's library as the target of wager's engine: drafts, rules and sampling are wager's, the logits libllama's. Its bits
 * are not wager's, so the text has the law of plain decoding over libllama's rows, and equal bits are not promised.
 *
 *     cc llama_target.c $(pkg-config --cflags --libs wager) -o llama_target
 *     ./llama_target libllama.so MODEL.gguf "Once upon a time" '"draft": {"kind": "suffix", "tree": true}, "max_tokens": 64'
 *
 * libllama.so is loaded when the session opens, without its header, and refused when it lacks a function or has other
 * parameters than are known; so are models with a recurrent state, which cannot go back. A draft tree is one batch with a
 * sequence id for every leaf: how is in core/model/external/llamacpp.h. The last argument has further keys of the config. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wager.h>

static int fail(const wg_error *err) { return fprintf(stderr, "llama_target: %s\n", err->text), 1; }

static int generate(wg_session *session, const char *prompt)
{
    wg_session_about about = { .size = sizeof about };
    wg_round round = { .size = sizeof round };
    wg_stats stats = { .size = sizeof stats };
    wg_sequence *text = NULL;
    wg_error err;
    if (wg_sequence_open(session, &text, prompt, strlen(prompt), NULL, &err)) return fail(&err);
    while (round.end == WG_END_NOT) {
        if (wg_sequence_next(text, &round, &err)) return fail(&err);
        fwrite(round.text, 1, round.bytes, stdout);
    }
    if (wg_sequence_stats(text, &stats, &err) || wg_session_about_get(session, &about, &err)) return fail(&err);
    fprintf(stderr, "%ld tokens in %ld passes of libllama%s\n", (long)stats.emitted, (long)stats.passes,
            about.law_only ? " (law only)" : "");
    return 0;
}

int main(int argc, char **argv)
{
    static const char form[] = "{\"target\": {\"kind\": \"llamacpp\", \"library\": \"%s\", \"model\": \"%s\"}%s%s}";
    wg_session *session = NULL;
    wg_error err;
    if (argc < 4) return fprintf(stderr, "usage: llama_target LIBLLAMA.so MODEL.gguf PROMPT [KEYS]\n"), 2;
    const char *comma = argc > 4 ? ", " : "", *keys = argc > 4 ? argv[4] : "";
    const size_t room = sizeof form + strlen(argv[1]) + strlen(argv[2]) + strlen(keys) + 2;
    char *config = malloc(room);
    if (!config) return 1;
    snprintf(config, room, form, argv[1], argv[2], comma, keys);
    const int failed = wg_session_open(&session, config, &err) ? fail(&err) : generate(session, argv[3]);
    wg_session_close(session);
    free(config);
    return failed;
}
