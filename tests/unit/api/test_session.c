/* SPDX-License-Identifier: MIT
 * Sessions of libwager through the public header alone: texts, rounds, conversations, batches, errors, leaks. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bundled.h"
#include "wager.h"

#define MODEL BUNDLED_DRAFT
#define PLAIN "{\"target\": {\"model\": \"" MODEL "\", \"threads\": 1}, \"max_tokens\": 40}"
#define DRAFTED(more)                                                                                                          \
    "{\"target\": {\"model\": \"" MODEL "\", \"threads\": 1}, \"draft\": {\"kind\": \"ngram\", \"k\": 4}, \"verify\": "        \
    "{\"rule\": \"match\"}, \"max_tokens\": 40" more "}"
#define WARM ", \"sampling\": {\"temperature\": 0.9}, \"seed\": 5"

enum { ROOM = 1 << 14 };

static wg_session *open_session(const char *config)
{
    wg_error err;
    wg_session *s = NULL;
    cr_assert(wg_session_open(&s, config, &err) == WG_OK, "%s", err.text);
    return s;
}

static wg_sequence *open_sequence(wg_session *s, const char *text, const wg_sequence_options *opt)
{
    wg_error err;
    wg_sequence *q = NULL;
    cr_assert(wg_sequence_open(s, &q, text, strlen(text), opt, &err) == WG_OK, "%s", err.text);
    return q;
}

/* Reads a sequence to its end; returns its rounds. */
static int read_all(wg_sequence *q, char out[ROOM])
{
    wg_error err;
    wg_round r = { .size = sizeof r };
    int rounds = 0;
    for (*out = '\0'; r.end == WG_END_NOT; rounds++) {
        cr_assert(wg_sequence_next(q, &r, &err) == WG_OK, "%s", err.text);
        cr_assert(r.n >= 1 && r.text[r.bytes] == '\0' && strlen(out) + r.bytes < ROOM);
        strcat(out, r.text);
    }
    return rounds;
}

static void generate(const char *config, const char *prompt, char out[ROOM])
{
    wg_session *s = open_session(config);
    read_all(open_sequence(s, prompt, NULL), out);
    wg_session_close(s);
}

Test(session, speculation_gives_the_text_of_plain_decoding)
{
    char plain[ROOM], drafted[ROOM], warm[ROOM], warm_drafted[ROOM];
    generate(PLAIN, "Once upon a time", plain);
    generate(DRAFTED(""), "Once upon a time", drafted);
    cr_assert_str_eq(plain, drafted);
    generate("{\"target\": {\"model\": \"" MODEL "\"}, \"verify\": {\"rule\": \"match\"}, \"max_tokens\": 40" WARM "}",
             "Once upon a time", warm);
    generate(DRAFTED(WARM), "Once upon a time", warm_drafted);
    cr_assert_str_eq(warm, warm_drafted);
    cr_assert(strlen(plain) > 20 && strcmp(plain, warm));
}

Test(session, one_call_is_a_session)
{
    char plain[ROOM], *text = NULL;
    wg_error err;
    generate(PLAIN, "Lily had", plain);
    cr_assert(wg_generate(MODEL, "Lily had", "{\"max_tokens\": 40}", &text, &err) == WG_OK, "%s", err.text);
    cr_assert_str_eq(plain, text);
    wg_text_free(text);
    text = NULL;
    cr_assert(wg_generate(NULL, "Lily had", DRAFTED(""), &text, &err) == WG_OK, "%s", err.text);
    cr_assert_str_eq(plain, text);
    wg_text_free(text);
}

Test(session, counts_and_what_it_is)
{
    char text[ROOM];
    wg_session *s = open_session(DRAFTED(""));
    wg_sequence *q = open_sequence(s, "The cat sat. The cat sat. The cat", NULL);
    const int rounds = read_all(q, text);
    wg_stats c = { .size = sizeof c };
    cr_assert(wg_sequence_stats(q, &c, NULL) == WG_OK);
    cr_assert(c.passes == rounds && c.emitted <= 40 && c.emitted > 0 && c.accepted <= c.drafted && c.drafted > 0 && c.lossless);
    cr_assert(c.emitted == c.passes + c.accepted, "a pass emits what was accepted and one more");
    wg_session_about a = { .size = sizeof a };
    cr_assert(wg_session_about_get(s, &a, NULL) == WG_OK);
    cr_assert(a.vocab > 100 && a.context > 100 && a.batch == 1 && a.lossless && !a.law_only);
    cr_assert_str_eq(a.drafter, "ngram");
    cr_assert_str_eq(a.rule, "match");
    wg_seconds t = { .size = sizeof t };
    cr_assert(wg_session_seconds(s, &t, NULL) == WG_OK && t.verify > 0 && t.prefill > 0);
    wg_session_close(s);
}

Test(session, a_batch_changes_no_text)
{
    static const char *const prompts[] = { "Once upon a time", "Tom and Sue", "The dog" };
    char alone[3][ROOM], together[3][ROOM] = { "", "", "" };
    wg_error err;
    wg_sequence *q[3];
    for (uint32_t i = 0; i < 3; i++) {
        const wg_sequence_options opt = { .size = sizeof opt, .request = i };
        wg_session *s = open_session(DRAFTED(WARM));
        read_all(open_sequence(s, prompts[i], &opt), alone[i]);
        wg_session_close(s);
    }
    wg_session *s = open_session(DRAFTED(WARM ", \"batch\": 3"));
    for (int i = 0; i < 3; i++) q[i] = open_sequence(s, prompts[i], NULL);
    for (int running = 3; running;) {
        cr_assert(wg_session_round(s, q, 3, &err) == WG_OK, "%s", err.text);
        running = 0;
        for (int i = 0; i < 3; i++) {
            wg_round r = { .size = sizeof r };
            cr_assert(wg_sequence_last(q[i], &r, &err) == WG_OK);
            strcat(together[i], r.text);
            running += r.end == WG_END_NOT;
        }
    }
    for (int i = 0; i < 3; i++) cr_assert_str_eq(alone[i], together[i]);
    wg_session_close(s);
}

/* A conversation is one sequence; the second answer is that of the whole text as a prompt. */
/* All tokens that were asked for; or fewer, because the model ended the text. */
static bool has_ended(const wg_round *r, int64_t tokens, int64_t asked)
{
    return r->end == WG_END_EOS ? tokens > 0 && tokens <= asked : r->end == WG_END_LENGTH && tokens == asked;
}

Test(session, a_conversation_goes_on)
{
    char first[ROOM], second[ROOM];
    wg_error err;
    wg_session *s = open_session(DRAFTED(WARM));
    wg_sequence *q = open_sequence(s, "Once upon a time", NULL);
    wg_stats before = { .size = sizeof before }, after = { .size = sizeof after };
    wg_round r = { .size = sizeof r };
    cr_assert(wg_sequence_extend(q, " But", 4, 0, &err) == WG_EINVAL, "it has not ended");
    read_all(q, first);
    wg_sequence_stats(q, &before, NULL);
    cr_assert(wg_sequence_next(q, &r, &err) == WG_OK && r.n == 0 && has_ended(&r, before.emitted, 40), "it has ended");
    cr_assert(wg_sequence_extend(q, " But then", 9, 12, &err) == WG_OK, "%s", err.text);
    read_all(q, second);
    wg_sequence_stats(q, &after, NULL);
    cr_assert(after.prompt > before.prompt + before.emitted && *second);
    cr_assert(wg_sequence_next(q, &r, &err) == WG_OK && r.n == 0 && has_ended(&r, after.emitted, 12), "%d tokens",
              (int)after.emitted);
    wg_session_close(s);
}

/* ---- what goes wrong */

static wg_status refused(const char *config, const char *part)
{
    wg_error err = { .text = "" };
    wg_session *s = NULL;
    const wg_status code = wg_session_open(&s, config, &err);
    cr_assert(code != WG_OK && s == NULL, "%s was accepted", config);
    cr_assert(err.code == code && strstr(err.text, part), "'%s' does not say '%s'", err.text, part);
    return code;
}

Test(session, errors_are_those_of_the_program)
{
    cr_assert(refused("{\"target\": {\"model\": \"missing.gguf\"}}", "target.model: no such file: \"missing.gguf\"") ==
              WG_ENOENT);
    cr_assert(refused("{\"target\": {\"model\": \"missing.gguf\"}, \"seed\": 1.5}", "no such file") == WG_ECONFIG);
    refused("{\n  \"tarqet\": {}}", "config:2:3: unknown key \"tarqet\"; did you mean \"target\"?");
    refused("{\"target\": {\"model\": \"" MODEL "\"}, \"draft\": {\"kind\": \"ngrma\"}}", "did you mean \"ngram\"");
    refused("{\"target\": {\"model\": \"" MODEL "\"}, \"repeats\": 2}",
            "\"repeats\" is a key of experiments (wager run); an engine alone has no use for it, leave it out");
    refused("{\"target\": {\"model\": \"" MODEL "\"}, \"prompts\": {\"file\": \"x\"}}",
            "\"prompts.file\" is a key of experiments");
    refused("{\"target\": {\"model\": \"" MODEL "\"}, \"sweep\": {}}", "\"sweep\" is a key of experiments");
    refused("{}", "target.model: missing");
    refused("[]", "config: expected an object: {\"target\": ..., \"draft\": ...}");
    refused("{", "config:1:");
    refused("{\"target\": {\"model\": \"" MODEL "\"}, \"draft\": {\"kind\": \"model\"}}", "drafter \"model\" needs \"model\"");
    refused("{\"target\": {\"model\": \"README.md\"}}", "README.md");
    refused("{\"target\": {\"model\": \"" MODEL "\"}, \"prompts\": {\"chat\": \"llama-3\"}}", "prompts.chat");
}

/* A program that makes a config of its options is understood by who gave the options: "//from" names them. */
Test(session, errors_name_the_option_that_a_value_came_from)
{
#define FROM(path, text) "\"//from\": {\"" path "\": \"" text "\"}, \"target\": {\"model\": \"" MODEL "\"}"
    cr_assert(refused("{\"//from\": {\"target.model\": \"-m models/story-targt-q8_0.gguf\"},"
                      " \"target\": {\"model\": \"models/story-targt-q8_0.gguf\"}}",
                      "-m models/story-targt-q8_0.gguf: models/story-targt-q8_0.gguf: there is no such file (did you mean "
                      "'models/story-target-q8_0.gguf'?)") == WG_ENOENT);
    refused("{" FROM("draft", "--draft sufix") ", \"draft\": {\"kind\": \"sufix\"}}", "--draft sufix: kind: unknown drafter");
    refused("{" FROM("draft.kind", "--draft sufix") ", \"draft\": {\"kind\": \"sufix\"}}", "--draft sufix: unknown drafter");
    refused("{" FROM("", "--config x.json") ", \"seed\": \"no\"}", "--config x.json: seed: expected integer");
    refused("{" FROM("verify", "--rule x") ", \"seed\": \"no\"}", "config:1:"); /* of another section */
    refused("{\"//from\": {\"seed\": 7}, \"target\": {\"model\": \"" MODEL "\"}, \"seed\": \"no\"}", "config:1:");
}

Test(session, arguments_are_checked)
{
    wg_error err;
    wg_session *s = NULL;
    char *text = NULL;
    cr_assert(wg_session_open(NULL, PLAIN, &err) == WG_EINVAL);
    cr_assert_str_eq(err.text, "wg_session_open: out is NULL");
    setenv("WG_CPU", "scalar", 1);
    cr_assert(wg_session_open(&s, PLAIN, &err) == WG_EINVAL && s == NULL);
    cr_assert(strstr(err.text, "the environment variable WG_CPU is 'scalar'; expected a level of kernels: ref, "), "%s",
              err.text);
    unsetenv("WG_CPU");
    cr_assert(wg_session_open(&s, NULL, NULL) == WG_EINVAL, "err may be NULL");
    cr_assert(wg_generate(MODEL, NULL, NULL, &text, &err) == WG_EINVAL && !text);
    wg_session_close(NULL), wg_sequence_close(NULL), wg_text_free(NULL);

    s = open_session(PLAIN);
    wg_sequence *q = open_sequence(s, "Once", NULL), *more = NULL;
    wg_round r = { .size = 0 };
    cr_assert(wg_sequence_next(q, &r, &err) == WG_EINVAL);
    cr_assert(strstr(err.text, "wg_round.size is 0; set it to sizeof(wg_round)"), "%s", err.text);
    cr_assert(wg_sequence_open(s, &more, "Two", 3, NULL, &err) == WG_EFULL && !more, "batch is 1");
    cr_assert(strstr(err.text, "all 1 places are taken"), "%s", err.text);
    cr_assert(wg_sequence_propose(q, &(wg_draft){ .size = sizeof(wg_draft) }, &err) == WG_EUNSUPPORTED);
    cr_assert_str_eq(err.text, "wg_sequence_propose: this session has a target, which drafts and verifies by wg_sequence_next; "
                               "a drafter alone is opened by wg_session_open_drafter");
    cr_assert(wg_session_round(s, &more, 1, &err) == WG_EINVAL);
    cr_assert_str_eq(err.text, "wg_session_round: sequence 0 is NULL");
    wg_session *second = open_session(PLAIN);
    cr_assert(wg_session_round(second, &q, 1, &err) == WG_EINVAL);
    cr_assert_str_eq(err.text, "wg_session_round: sequence 0 is another session's");
    wg_session_close(second);
    wg_sequence *twice[300];
    for (int i = 0; i < 300; i++) twice[i] = q;
    cr_assert(wg_session_round(s, twice, 300, &err) == WG_EINVAL);
    cr_assert_str_eq(err.text, "a round of 300 sequences; expected 1..1 (batch)");
    cr_assert(wg_session_round(s, twice, 2, &err) == WG_EINVAL && wg_session_round(s, NULL, 0, &err) == WG_OK);
    wg_sequence_close(q);
    cr_assert(wg_sequence_open(s, &more, "Two", 3, NULL, &err) == WG_OK, "its place is free again");
    wg_sequence_close(more);
    cr_assert(wg_sequence_open_tokens(s, &more, (const int32_t[]){ 1, 2 }, 2, NULL, &err) == WG_OK);
    while (r.size = sizeof r, wg_sequence_next(more, &r, &err) == WG_OK && r.end == WG_END_NOT) continue;
    cr_assert(wg_sequence_extend(more, "x", 1, 0, &err) == WG_EINVAL);
    cr_assert_str_eq(err.text, "this sequence was opened with tokens; continue it with wg_sequence_extend_tokens");
    cr_assert(wg_sequence_extend_tokens(more, (const int32_t[]){ 5 }, 1, 3, &err) == WG_OK, "%s", err.text);
    cr_assert(wg_generate("\xff.gguf", "x", NULL, &text, &err) == WG_EINVAL);
    cr_assert_str_eq(err.text, "the model's path is not text in UTF-8");
    wg_session_close(s);
}

/* A caller that is newer than the library: members that it sets and the library does not know are refused, zeros are not. */
Test(session, structs_may_grow)
{
    wg_error err;
    struct {
        wg_sequence_options known;
        size_t later;
    } opt = { .known = { .size = sizeof opt, .request = 3 } };
    wg_session *s = open_session(PLAIN);
    wg_sequence *q = NULL;
    cr_assert(wg_sequence_open(s, &q, "Once", 4, &opt.known, &err) == WG_OK, "%s", err.text);
    wg_sequence_close(q);
    opt.later = 1;
    cr_assert(wg_sequence_open(s, &q, "Once", 4, &opt.known, &err) == WG_EUNSUPPORTED);
    cr_assert(strstr(err.text, "wg_sequence_options has a member at byte 16 that libwager "), "%s", err.text);
    cr_assert(strstr(err.text, " does not know; use a newer libwager"), "%s", err.text);
    struct {
        wg_session_about known;
        char later[64];
    } about;
    memset(&about, 7, sizeof about);
    about.known.size = sizeof about;
    cr_assert(wg_session_about_get(s, &about.known, &err) == WG_OK && about.later[0] == 7, "bytes behind its own stay");
    wg_session_close(s);
}

Test(session, opening_and_closing_leaks_nothing)
{
    for (int i = 0; i < 20; i++) {
        wg_session *s = open_session(DRAFTED(""));
        wg_sequence *q = open_sequence(s, "Once", NULL);
        wg_round r = { .size = sizeof r };
        if (i % 2) wg_sequence_next(q, &r, NULL);
        wg_session_close(s); /* with its sequence */
    }
}

/* What drafts are decided by: nothing asks, constants, the machine's prices; a file is used again, and repeats the text above
 * temperature 0. A drafter alone has nothing to be timed. */
Test(session, decides_by_a_profile)
{
#define DECIDED(profile)                                                                                                       \
    "{\"target\": {\"model\": \"" BUNDLED_TARGET "\", \"threads\": 1}, \"draft\": {\"kind\": \"auto\", \"of\": "               \
    "\"model:model=" BUNDLED_DRAFT ";length=8\"}, \"verify\": {\"rule\": \"rejection\"}, \"max_tokens\": 40" WARM profile "}"
    static const char *const config[] = { PLAIN, DECIDED(", \"profile\": \"nominal\""), DECIDED(", \"profile\": \"new\"") };
    static const char *const name[] = { "", "nominal", NULL };
    wg_error err;
    for (int i = 0; i < 3; i++) {
        wg_session *s = open_session(config[i]);
        wg_session_about a = { .size = sizeof a };
        cr_assert(wg_session_about_get(s, &a, &err) == WG_OK);
        if (name[i]) cr_assert(!strcmp(a.profile, name[i]) && !*a.profile_notes, "%s: %s", a.profile, a.profile_notes);
        else cr_assert(strlen(a.profile) == 64 && strstr(a.profile_notes, "measuring what passes cost"), "%s", a.profile_notes);
        wg_session_close(s);
    }
    wg_session *s = NULL;
    cr_assert(wg_session_open(&s, DECIDED(", \"profile\": \"./nowhere.json\""), &err) == WG_ENOENT, "%s", err.text);
    wg_session_about a = { .size = sizeof a };
    const char *alone = "{\"draft\": {\"kind\": \"auto\", \"of\": \"ngram\"}, \"verify\": {\"rule\": \"match\"}}";
    cr_assert(wg_session_open_drafter(&s, 100, 100, alone, &err) == WG_OK, "%s", err.text);
    cr_assert(wg_session_about_get(s, &a, &err) == WG_OK && !strcmp(a.profile, "nominal"), "%s", a.profile);
    wg_session_close(s);
}
