/* SPDX-License-Identifier: MIT
 * Stop strings: found wherever the pieces of a text are cut, held back while undecided, and decided alike for all cuts. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "serve/answer.h"
#include "serve/stop_strings.h"

static wgs_stops stops_of(const char *const *s)
{
    wgs_stops all = { 0 };
    for (; *s; s++) all.at[all.n++] = (wgs_stop){ (char *)*s, strlen(*s) };
    return all;
}

#define STOPS(...) stops_of((const char *const[]){ __VA_ARGS__, NULL })

static size_t settle(const wgs_stops *s, const char *text, size_t from, size_t *found)
{
    return wgs_stops_settle(s, text, from, strlen(text), found);
}

Test(stop_strings, the_beginning_of_one_is_held_back)
{
    const wgs_stops s = STOPS("END", "\n\n");
    size_t found;
    cr_assert(settle(&s, "text", 0, &found) == 4 && !found);
    cr_assert(settle(&s, "text E", 0, &found) == 5 && !found);
    cr_assert(settle(&s, "text EN", 5, &found) == 5 && !found);
    cr_assert(settle(&s, "text ENE", 5, &found) == 7 && !found, "the last E may begin one");
    cr_assert(settle(&s, "text ENEND!", 7, &found) == 7 && found == 3);
    cr_assert(settle(&s, "a\nb\n", 0, &found) == 3 && !found);
    cr_assert(settle(&s, "a\nb\n\n", 3, &found) == 3 && found == 2);
}

Test(stop_strings, the_first_to_be_complete_decides_and_of_those_the_longest)
{
    const wgs_stops s = STOPS("abcd", "bc", "c");
    size_t found;
    cr_assert(settle(&s, "xabcd", 0, &found) == 2 && found == 2, "bc and c end at the same byte, abcd later");
    const wgs_stops none = { 0 };
    cr_assert(settle(&none, "xabcd", 0, &found) == 5 && !found);
}

/* Every way of cutting a text into three pieces gives the same answer, the same tokens and the same settled text in the end. */
Test(stop_strings, pieces_do_not_matter)
{
    static const char *const texts[] = { "one two ENND END three", "aaab", "aab", "no stop here EN", "\n\n", "E\nEN\n\nEND" };
    const wgs_stops s = STOPS("END", "aab", "\n\n");
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        const size_t n = strlen(texts[k]);
        wgs_answer whole = { .stops = &s };
        wgs_answer_token(&whole, (wgs_token){ .id = 1 }, texts[k], n, NULL, NULL);
        wgs_answer_end(&whole, WGS_LENGTH, "", 0);
        for (size_t a = 0; a <= n; a++)
            for (size_t b = a; b <= n; b++) {
                wgs_answer cut = { .stops = &s };
                const size_t at[] = { 0, a, b, n };
                size_t settled = 0;
                for (int i = 0; i < 3; i++) {
                    wgs_answer_token(&cut, (wgs_token){ .id = i }, texts[k] + at[i], at[i + 1] - at[i], NULL, NULL);
                    wgs_answer_round(&cut, 0, 0, 0);
                    cr_assert(cut.settled >= settled, "what is settled stays so");
                    settled = cut.settled;
                }
                wgs_answer_end(&cut, WGS_LENGTH, "", 0);
                cr_assert(cut.text.n == whole.text.n && !memcmp(cut.text.s, whole.text.s, whole.text.n), "%s at %zu, %zu",
                          texts[k], a, b);
                cr_assert(cut.finish == whole.finish && cut.settled == cut.text.n);
                for (int i = 0; i < cut.tokens; i++)
                    cr_assert((i ? cut.token[i - 1].end : 0) < cut.text.n || cut.token[i].end == (i ? cut.token[i - 1].end : 0),
                              "a token behind the stop string is left");
                wgs_answer_free(&cut);
            }
        wgs_answer_free(&whole);
    }
}

Test(stop_strings, the_string_stays_where_it_is_asked_for)
{
    const wgs_stops s = STOPS("END");
    wgs_answer a = { .stops = &s, .include_stop = true };
    cr_assert(!wgs_answer_token(&a, (wgs_token){ .id = 1 }, "x E", 3, NULL, NULL));
    cr_assert(wgs_answer_token(&a, (wgs_token){ .id = 2 }, "ND y", 4, NULL, NULL));
    cr_assert(a.finish == WGS_STOP && a.text.n == 5 && !memcmp(a.text.s, "x END", 5) && a.tokens == 2 && a.token[1].end == 5);
    wgs_answer_free(&a);
}

/* A stop string in the prompt, or begun in it, is none of the answer. */
Test(stop_strings, not_in_an_echoed_prompt)
{
    const wgs_stops s = STOPS("END");
    wgs_answer a = { .stops = &s };
    wgs_answer_echo(&a, (wgs_token){ .id = 1 }, "the END EN", 10, NULL, NULL);
    cr_assert(!wgs_answer_token(&a, (wgs_token){ .id = 2 }, "D x ", 4, NULL, NULL));
    cr_assert(wgs_answer_token(&a, (wgs_token){ .id = 3 }, "END", 3, NULL, NULL));
    cr_assert(a.text.n == 14 && a.tokens == 2 && wgs_answer_new_tokens(&a) == 1 && a.echoed == 1);
    wgs_answer_free(&a);
}

/* n tokens of one letter each, as a round with `drafted` draft tokens of which n - 1 were accepted. */
static void put_round(wgs_answer *a, const char *letters, int drafted)
{
    const int n = (int)strlen(letters);
    for (int i = 0; i < n && a->finish == WGS_RUNS; i++)
        wgs_answer_token(a, (wgs_token){ .id = i, .drafted = i < n - 1 }, letters + i, 1, NULL, NULL);
    wgs_answer_round(a, drafted, n - 1, 0.5);
}

/* What the text does not keep counts nowhere: rounds are told when no stop string can shorten them any more. */
Test(stop_strings, rounds_count_what_the_text_keeps)
{
    const wgs_stops s = STOPS("cdef");
    for (int more = 0; more < 2; more++) {
        wgs_answer a = { .stops = &s };
        int n;
        put_round(&a, "a", 0);
        const wgs_round *r = wgs_answer_settled(&a, &n);
        cr_assert(r && n == 1 && r->drafted == 0 && !wgs_answer_settled(&a, &n));
        put_round(&a, "bcd", 3); /* 'cd' may begin the stop string */
        put_round(&a, "e", 4);
        cr_assert(!wgs_answer_settled(&a, &n), "its last two tokens are undecided");
        put_round(&a, more ? "x" : "fgh", 5);
        r = wgs_answer_settled(&a, &n);
        cr_assert(r && r->drafted == 3 && r->gap == 0.5 && n == (more ? 3 : 1) && r->accepted == (more ? 2 : 0));
        for (int i = 0; i < 2 && more; i++) cr_assert((r = wgs_answer_settled(&a, &n)) && n == 1 && r->drafted == 4 + i);
        cr_assert(!wgs_answer_settled(&a, &n), "rounds without a token that is kept are none");
        cr_assert(a.passes == (more ? 4 : 2) && a.drafts == (more ? 3 : 1) && a.drafted == (more ? 12 : 3));
        cr_assert(a.accepted == (more ? 2 : 0) && wgs_answer_new_tokens(&a) == a.accepted + a.passes);
        wgs_answer_free(&a);
    }
}
