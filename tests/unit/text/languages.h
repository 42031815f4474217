/* SPDX-License-Identifier: MIT
 * Shared by the tests of grammars and of schemas: a language over the vocabulary of byte_vocab.h, and what must be refused. */
#ifndef WG_TESTS_UNIT_TEXT_LANGUAGES_H
#define WG_TESTS_UNIT_TEXT_LANGUAGES_H

#include <criterion/criterion.h>

#include "core/base/mem.h"
#include "tests/unit/text/byte_vocab.h"

typedef struct language {
    wg_token_trie *trie;
    wg_bnf *bnf;
    wg_acceptor *a;
} language;

static inline language language_of(const char *grammar)
{
    language l = { .trie = byte_vocab() };
    wg_error err = { 0 };
    cr_assert(wg_bnf_open(&l.bnf, "g", grammar, strlen(grammar), &err) == WG_OK, "%s\n%s", err.text, grammar);
    cr_assert(wg_acceptor_open(&l.a, l.bnf, l.trie, &err) == WG_OK, "%s", err.text);
    return l;
}

static inline void close_language(language *l)
{
    wg_acceptor_close(l->a);
    wg_bnf_close(l->bnf);
    wg_token_trie_close(l->trie);
}

/* A text that is refused, and how. */
typedef struct refusal {
    const char *text;
    wg_status code;
    const char *says;
} refusal;

/* open: opens a text, which must fail with nothing made, and no memory lost. */
static inline void expect_refusals(const refusal *r, size_t n, wg_status (*open)(const char *text, wg_error *err))
{
    for (size_t i = 0; i < n; i++) {
        wg_error err = { 0 };
        const size_t live = wg_mem_read().live_blocks;
        const wg_status status = open(r[i].text, &err);
        cr_assert(status == r[i].code && !strcmp(err.text, r[i].says), "%.80s: %s: %s", r[i].text, wg_status_name(status),
                  err.text);
        cr_assert(wg_mem_read().live_blocks == live);
    }
}

#endif
