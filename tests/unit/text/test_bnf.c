/* SPDX-License-Identifier: MIT
 * Grammars: what they accept, what follows, how they fail, and what hostile ones may cost. */
#include <stdio.h>
#include <time.h>

#include "core/base/mem.h"
#include "core/text/grammar/constraint.h"
#include "tests/unit/text/languages.h"

/* 0: no text begins so; 1: one does; 2: it is a whole one. */
static int stands(language *l, const char *text)
{
    const int32_t state = wg_acceptor_bytes(l->a, wg_acceptor_start(l->a), text, strlen(text));
    return state < 0 ? 0 : 1 + wg_acceptor_accepts(l->a, state);
}

Test(bnf, languages)
{
    static const struct {
        const char *grammar, *whole[6], *begun[6], *not [6];
    } cases[] = {
        { "root ::= \"ab\" | \"abba\"", { "ab", "abba" }, { "", "a", "abb" }, { "b", "aba", "abbaa" } },
        { "root ::= [a-c]+ # some\n", { "a", "cab" }, { "" }, { "d", "ad" } },
        { "root ::= [^a-c\\n]",
          { "d", "\xC3\xA9", "\xF0\x9F\x98\x80", "\x01" },
          { "", "\xC3", "\xF0\x9F" },
          { "a", "\n", "dd", "\xC0", "\xED\xA0" } },
        { "root ::= .", { "x", "\xE2\x82\xAC", "\xF4\x8F\xBF\xBF" }, { "\xE2" }, { "\xF4\x90", "\xFF", "\xE0\x80" } },
        { "root ::= \"\\x41\\u00e9\\U0001F600\\t\\\"\\\\\"", { "A\xC3\xA9\xF0\x9F\x98\x80\t\"\\" }, { "A" }, { "\xE9" } },
        { "root ::= \"a\"{2} \"b\"{1,} \"c\"{0,2} \"d\"{0} \"e\"?",
          { "aab", "aabbbcce", "aabe" },
          { "aa", "" },
          { "ab", "aabccc", "aabd" } },
        { "root ::= (\"a\" | \"b\")* \"c\"", { "c", "abbac" }, { "ab" }, { "ca" } },
        { "root ::= (\"x\"?)* \"y\"", { "y", "xxy" }, { "x" }, { "z" } },
        { "root ::= (\"\")* (\"\" | \"a\")+ ", { "", "aa" }, { NULL }, { "b" } },
        { "root ::= pair\npair ::= (\"(\" pair \")\")*", { "", "(())()" }, { "((" }, { ")", "(]" } },
        { "list ::= \"a\" list | \"\"\nroot ::= list\n  | \"b\"\n", { "", "aaaa", "b" }, { NULL }, { "ab" } },
        { "root ::=\n \"a\"\n\n# end\nunused ::= \"b\"", { "a" }, { "" }, { "b" } },
        { "root ::= (\n \"a\" |\n \"b\"\n)", { "a", "b" }, { "" }, { "c" } },
        { "root ::= \"a\" loop | \"b\"\nloop ::= \"x\" loop", { "b" }, { "" }, { "a" } }, /* loop has no finite text */
        { "root ::= [-a^\\]] [a-]", { "-a", "]-", "^a" }, { "a" }, { "b" } },
        { "root ::= [] | \"a\"", { "a" }, { "" }, { "b" } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        language l = language_of(cases[i].grammar);
        for (int k = 0; k < 6 && cases[i].whole[k]; k++)
            cr_assert(stands(&l, cases[i].whole[k]) == 2, "%s: \"%s\"", cases[i].grammar, cases[i].whole[k]);
        for (int k = 0; k < 6 && cases[i].begun[k]; k++)
            cr_assert(stands(&l, cases[i].begun[k]) == 1, "%s: \"%s\"", cases[i].grammar, cases[i].begun[k]);
        for (int k = 0; k < 6 && cases[i].not [k]; k++)
            cr_assert(stands(&l, cases[i].not [k]) == 0, "%s: \"%s\"", cases[i].grammar, cases[i].not [k]);
        close_language(&l);
    }
}

/* The tokens that may follow are those whose bytes do, whatever was asked before. */
Test(bnf, allowed_tokens_are_those_whose_bytes_follow)
{
    static const char *const grammars[] = { "root ::= (\"ab\" | \"aba\" [1-3]* | \"true\")+",
                                            "root ::= \"\\\"\" [^\\\"]* \"\\\": \" root?", "root ::= . . [a-c]",
                                            "root ::= \"(\" root \")\" | \"ab\"" };
    for (size_t g = 0; g < sizeof grammars / sizeof *grammars; g++) {
        language l = language_of(grammars[g]);
        int32_t state = wg_acceptor_start(l.a);
        uint32_t random = 7;
        for (int step = 0; step < 60; step++) {
            int n, count = 0, pick = -1;
            const uint64_t *set = wg_acceptor_allowed(l.a, state, &n);
            uint64_t copy[(BYTE_VOCAB + 63) / 64];
            cr_assert(set != NULL);
            memcpy(copy, set, sizeof copy);
            for (int x = 0; x < BYTE_VOCAB; x++) {
                const bool may = wg_acceptor_token(l.a, state, x) >= 0;
                cr_assert(may == token_in(copy, x), "%s: token %d", grammars[g], x);
                count += may;
                random = random * 1664525 + 1013904223;
                if (may && (pick < 0 || random >> 28 == 0)) pick = x;
            }
            cr_assert(count == n);
            state = pick < 0 ? wg_acceptor_start(l.a) : wg_acceptor_token(l.a, state, pick);
        }
        close_language(&l);
    }
}

Test(bnf, forced_bytes_and_the_longest_token)
{
    language l = language_of("root ::= \"a\" (\"true\" | \"tru\") [xy] | \"b\"");
    char out[16];
    int32_t s = wg_acceptor_bytes(l.a, wg_acceptor_start(l.a), "a", 1);
    cr_assert(wg_acceptor_forced(l.a, wg_acceptor_start(l.a), out, sizeof out) == 0);
    cr_assert(wg_acceptor_forced(l.a, s, out, sizeof out) == 3 && !memcmp(out, "tru", 3));
    cr_assert(wg_acceptor_forced(l.a, s, out, 2) == 2);
    cr_assert(wg_token_longest(l.trie, "true", 4) == 259 && wg_token_longest(l.trie, "trux", 4) == 258);
    cr_assert(wg_token_longest(l.trie, "tr", 2) == 't' && wg_token_longest(l.trie, "", 0) == -1);
    s = wg_acceptor_bytes(l.a, wg_acceptor_start(l.a), "b", 1);
    cr_assert(wg_acceptor_accepts(l.a, s) && wg_acceptor_forced(l.a, s, out, sizeof out) == 0);
    cr_assert(wg_acceptor_token(l.a, s, BYTE_VOCAB - 1) == WG_ACCEPTOR_DEAD, "a token without a text");
    close_language(&l);
}

static wg_status open_grammar(const char *text, wg_error *err)
{
    wg_bnf *b = NULL;
    const wg_status s = wg_bnf_open(&b, "g", text, strlen(text), err);
    cr_assert(!b, "%s", text);
    return s;
}

Test(bnf, messages)
{
    char deep[200] = "root ::= ";
    for (int i = 0; i < 70; i++) strcat(deep, "(");
    const refusal refused[] = {
        { "", WG_EFORMAT, "g: there is no rule root, where a text begins" },
        { "x ::= \"a\"", WG_EFORMAT, "g: there is no rule root, where a text begins" },
        { "root ::= y\n", WG_EFORMAT, "g:1:10: a rule that is nowhere defined" },
        { "root ::= \"a\nb ::= \"c\"", WG_EFORMAT, "g:1:10: a text in quotes that does not end on its line; expected \"" },
        { "root ::= [a-", WG_EFORMAT, "g:1:10: a set that does not end on its line; expected ]" },
        { "root ::= [b-a]", WG_EFORMAT, "g:1:14: a range whose end is before its beginning" },
        { "root ::= \"\\q\"", WG_EFORMAT,
          "g:1:11: expected an escape: \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\xHH \\uHHHH \\UHHHHHHHH, of a character" },
        { "root ::= \"\\ud800\"", WG_EFORMAT,
          "g:1:11: expected an escape: \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\xHH \\uHHHH \\UHHHHHHHH, of a character" },
        { "root ::= \"\\x4\"", WG_EFORMAT,
          "g:1:14: expected hexadecimal digits: two after \\x, four after \\u, eight after \\U" },
        { "root ::= \"\xC3(\"", WG_EFORMAT, "g:1:11: expected UTF-8" },
        { "root = \"a\"", WG_EFORMAT, "g:1:6: expected ::= after a rule's name" },
        { "root ::= \"a\"\nroot ::= \"b\"", WG_EFORMAT, "g:2:1: a rule that is there already; expected each once" },
        { "%", WG_EFORMAT, "g:1:1: expected a rule's name: letters, digits, - and _" },
        { "root ::= (\"a\"", WG_EFORMAT, "g:1:14: expected )" },
        { "root ::= \"a\"{x}", WG_EFORMAT, "g:1:14: expected a number of repetitions, as in {2,5}" },
        { "root ::= \"a\"{2;", WG_EFORMAT, "g:1:15: expected } after the number of repetitions" },
        { "root ::= \"a\"{3,2}", WG_EFORMAT, "g:1:17: a repetition whose most is below its least" },
        { "root ::= \"a\" ) ", WG_EFORMAT,
          "g:1:14: expected \"text\", [set], ., (choices), a rule's name, | or the end of the line" },
        { deep, WG_EFORMAT, "g:1:75: parentheses inside more than 64 others" },
        { "root ::= root \"a\" | \"b\"", WG_EUNSUPPORTED,
          "g: rule root calls itself before its first character (left recursion); write the repetition with * or with the "
          "call last" },
        { "root ::= a\na ::= \"\" b \"x\" | \"c\"\nb ::= e a\ne ::= \"q\"?", WG_EUNSUPPORTED,
          "g: rule b calls itself before its first character (left recursion); write the repetition with * or with the call "
          "last" },
        { "root ::= \"a\" root", WG_EFORMAT, "g: no text has this grammar: every choice of root goes on for ever" },
        { "root ::= \"abcdefgh\"{1000}{1000}", WG_EINVAL,
          "g: the grammar is larger than 131072 nodes, repetitions such as {0,1000} written out; repeat less often" },
    };
    expect_refusals(refused, sizeof refused / sizeof *refused, open_grammar);
}

Test(bnf, limits)
{
    static char big[WG_BNF_TEXT + 2];
    wg_bnf *b = NULL;
    wg_error err = { 0 };
    memset(big, ' ', sizeof big);
    cr_assert(wg_bnf_open(&b, "g", big, WG_BNF_TEXT + 1, &err) == WG_EINVAL);
    cr_assert(!strcmp(err.text, "g: a grammar of 1048577 bytes; expected 1048576 at most"));
    size_t n = 0;
    for (int i = 0; i < 8193; i++) n += (size_t)sprintf(big + n, "r%d::=\"\"\n", i);
    cr_assert(wg_bnf_open(&b, "g", big, n, &err) == WG_EINVAL && !strcmp(err.text, "g: the grammar has more than 8192 rules"));
    n = (size_t)sprintf(big, "root ::= [");
    for (int i = 0; i < 257; i++) n += (size_t)sprintf(big + n, "\\u%04x", 0x100 + 2 * i);
    cr_assert(wg_bnf_open(&b, "g", big, n, &err) == WG_EFORMAT && !strcmp(err.text, "g:1:10: a set of more than 256 ranges"));
    n = (size_t)sprintf(big, "root ::= \"\"");
    for (int i = 0; i < 2100; i++) n += (size_t)sprintf(big + n, "|\"x%d\"", i);
    wg_token_trie *trie = byte_vocab();
    wg_acceptor *a = NULL;
    cr_assert(wg_bnf_open(&b, "g", big, n, &err) == WG_OK && wg_acceptor_open(&a, b, trie, &err) == WG_EINVAL);
    cr_assert(
        !strcmp(err.text, "the grammar begins with more than 2048 choices; use rules and sets of characters instead of lists"));
    wg_bnf_close(b);
    wg_token_trie_close(trie);
}

/* What is checked of a grammar takes a time like its size; by the square of it, this one of 27 bytes took 14 s. */
Test(bnf, empty_texts_in_a_row)
{
    const clock_t start = clock();
    language l = language_of("root ::= \"a\" \"\"{131000} \"b\"");
    cr_assert(clock() - start < 3 * CLOCKS_PER_SEC);
    cr_assert(stands(&l, "a") == 1 && stands(&l, "ab") == 2 && stands(&l, "b") == 0);
    close_language(&l);
}

/* An acceptor that rests has no tables; ready again, it says the same, and its states are others. */
Test(bnf, acceptors_rest)
{
    language l = language_of("root ::= \"(\" root \")\" | \"x\"");
    wg_error err;
    cr_assert(stands(&l, "((x") == 1 && wg_acceptor_size(l.a) > 0);
    const uint32_t age = wg_acceptor_age(l.a);
    const size_t live = wg_mem_read().live_bytes;
    wg_acceptor_rest(l.a);
    wg_acceptor_rest(l.a);
    cr_assert(wg_acceptor_size(l.a) == 0 && wg_mem_read().live_bytes < live);
    wg_mem_fail_at(1, false);
    cr_assert(wg_acceptor_ready(l.a, &err) == WG_ENOMEM && wg_acceptor_size(l.a) == 0);
    cr_assert(wg_acceptor_ready(l.a, &err) == WG_OK && wg_acceptor_ready(l.a, &err) == WG_OK);
    cr_assert(stands(&l, "((x") == 1 && stands(&l, "(x)") == 2 && stands(&l, "x(") == 0 && wg_acceptor_age(l.a) != age);
    close_language(&l);
}

/* A text with too many open calls does not go on; its beginning does. */
Test(bnf, depth_is_bounded)
{
    language l = language_of("root ::= \"(\" root \")\" | \"\"");
    char text[2000];
    memset(text, '(', sizeof text);
    int32_t s = wg_acceptor_bytes(l.a, wg_acceptor_start(l.a), text, WG_ACCEPTOR_DEPTH - 1);
    cr_assert(s >= 0);
    cr_assert(wg_acceptor_bytes(l.a, wg_acceptor_start(l.a), text, sizeof text) == WG_ACCEPTOR_DEAD);
    close_language(&l);
}

/* Hostile grammars: the tables stay as they are, and after tidy a text stands where it stood. */
Test(bnf, hostile_grammars_are_bounded)
{
    static const char *const grammars[] = {
        "root ::= s{0,40}\ns ::= \"a\"{0,30} | \"b\"{0,30} | (\"a\" | \"b\"){0,20}",
        "root ::= x x x x x x\nx ::= y y y y | \"\"\ny ::= [ab] y [ab] | [ab]? | \"a\" x \"b\"",
        "root ::= ([ab] root [ab]?) | [ab]",
    };
    for (size_t g = 0; g < sizeof grammars / sizeof *grammars; g++) {
        language l = language_of(grammars[g]);
        char text[400];
        const size_t live = wg_mem_read().live_bytes;
        int stood[400];
        uint32_t random = 3;
        for (int i = 0; i < 400; i++) text[i] = (char)('a' + ((random = random * 1664525 + 1013904223) >> 31));
        for (int turn = 0; turn < 2; turn++) {
            int32_t s = wg_acceptor_start(l.a);
            for (int i = 0; i < 400 && s >= 0; i++) {
                int n;
                s = wg_acceptor_bytes(l.a, s, text + i, 1);
                const int now = s < 0 ? s : wg_acceptor_accepts(l.a, s);
                if (turn == 0) stood[i] = now;
                else if (now != WG_ACCEPTOR_FULL) cr_assert(stood[i] == now || stood[i] == WG_ACCEPTOR_FULL);
                if (s >= 0 && i % 100 == 0) wg_acceptor_allowed(l.a, s, &n);
            }
            wg_acceptor_tidy(l.a);
        }
        cr_assert(wg_mem_read().live_bytes == live);
        close_language(&l);
    }
}

/* A vocabulary that has no text of a grammar, nor the beginning of one, is told so; what begins and does not go on is not. */
Test(bnf, a_vocabulary_without_a_beginning)
{
    static const wg_text tokens[] = { { "a", 1 }, { "bc", 2 }, { "", 0 } };
    static const struct {
        const char *grammar;
        bool begins;
    } cases[] = { { "root ::= \"ax\"", true },
                  { "root ::= \"b\" [c-d]", true },
                  { "root ::= \"x\"?", true }, /* nothing is a text of it */
                  { "root ::= \"x\" | \"bd\" | \"ca\"", false } };
    wg_token_trie *trie;
    wg_error err = { 0 };
    cr_assert(wg_token_trie_open(&trie, tokens, 3, &err) == WG_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_constraint c;
        const char *g = cases[i].grammar;
        const wg_status s = wg_constraint_open(&c, WG_CONSTRAINT_GBNF, "g.gbnf", g, strlen(g), trie, &err);
        cr_assert(s == (cases[i].begins ? WG_OK : WG_EINVAL), "%s", g);
        if (!cases[i].begins)
            cr_assert_str_eq(err.text, "g.gbnf: no token of the model begins a text of this grammar; its characters are not in "
                                       "the vocabulary");
        wg_constraint_close(&c);
    }
    wg_token_trie_close(trie);
}
