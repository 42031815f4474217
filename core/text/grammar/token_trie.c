/* SPDX-License-Identifier: MIT
 * The trie of a vocabulary (token_trie.h). */
#include "core/text/grammar/token_trie.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"

void wg_token_trie_close(wg_token_trie *t)
{
    if (!t) return;
    wg_free(t->node);
    wg_free(t->token);
    wg_free(t->at);
    wg_free(t->bytes);
    wg_free(t);
}

static int by_bytes(const void *pa, const void *pb, void *trie)
{
    const int32_t a = *(const int32_t *)pa, b = *(const int32_t *)pb;
    const int order = wg_text_order(wg_token_bytes(trie, a), wg_token_bytes(trie, b));
    return order ? order : a < b ? -1 : 1;
}

/* How many first bytes two tokens share. */
static int shared(wg_text a, wg_text b)
{
    int n = 0;
    while ((size_t)n < a.n && (size_t)n < b.n && a.s[n] == b.s[n]) n++;
    return n;
}

/* The nodes of the sorted tokens; open[d]: the node at depth d of the token before. */
static void build(wg_token_trie *t, int tokens)
{
    int32_t open[WG_TRIE_DEPTH];
    wg_text last = { NULL, 0 };
    for (int k = 0; k < tokens; k++) {
        const wg_text text = wg_token_bytes(t, t->token[k]);
        const int same = shared(last, text);
        for (size_t d = (size_t)same; d < last.n; d++) t->node[open[d]].end = t->n;
        for (size_t d = (size_t)same; d < text.n; d++) {
            t->node[t->n] = (wg_trie_node){ .byte = (uint8_t)text.s[d], .depth = (uint8_t)d, .first = k };
            open[d] = t->n++;
        }
        last = text;
    }
    for (size_t d = 0; d < last.n; d++) t->node[open[d]].end = t->n;
    t->node[t->n] = (wg_trie_node){ .end = t->n, .first = tokens };
}

wg_status wg_token_trie_open(wg_token_trie **out, const wg_text *text, int vocab, wg_error *err)
{
    size_t bytes = 0;
    int tokens = 0;
    for (int i = 0; i < vocab; i++) bytes += text[i].n <= WG_TRIE_DEPTH ? text[i].n : 0;
    wg_token_trie *t = wg_calloc(1, sizeof *t);
    if (t) {
        t->vocab = vocab;
        t->node = wg_alloc(bytes + 1, sizeof *t->node);
        t->token = wg_alloc((size_t)vocab, sizeof *t->token);
        t->at = wg_alloc((size_t)vocab + 1, sizeof *t->at);
        t->bytes = wg_alloc(bytes, 1);
    }
    if (!t || !t->node || !t->token || !t->at || !t->bytes || bytes > INT32_MAX) {
        wg_token_trie_close(t);
        return wg_nomem(err, bytes * sizeof *t->node, "the trie of a vocabulary");
    }
    bytes = 0;
    for (int i = 0; i < vocab; i++) {
        t->at[i] = (uint32_t)bytes;
        if (text[i].n == 0 || text[i].n > WG_TRIE_DEPTH) continue;
        memcpy(t->bytes + bytes, text[i].s, text[i].n);
        bytes += text[i].n;
        t->token[tokens++] = i;
    }
    t->at[vocab] = (uint32_t)bytes;
    qsort_r(t->token, (size_t)tokens, sizeof *t->token, by_bytes, t);
    build(t, tokens);
    *out = t;
    return WG_OK;
}

wg_status wg_token_trie_of(wg_token_trie **out, const wg_tokenizer *t, int vocab, wg_error *err)
{
    const size_t room = wg_tokenizer_room(t), n = (size_t)vocab;
    size_t bytes = 0;
    wg_text *text = wg_calloc(n, sizeof *text);
    char *all = NULL, *one = wg_alloc(room, 1);
    for (int id = 0; id < vocab && text && one; id++)
        if (id < wg_tokenizer_size(t)) bytes += text[id].n = wg_tokenizer_decode_one(t, id, false, false, one, room);
    if (text && one) all = wg_alloc(bytes + room, 1);
    wg_status status = all ? WG_OK : wg_nomem(err, n * sizeof *text + bytes, "the texts of a vocabulary");
    bytes = 0;
    for (int id = 0; id < vocab && !status; id++) {
        text[id].s = all + bytes;
        if (text[id].n > 0) bytes += wg_tokenizer_decode_one(t, id, false, false, all + bytes, room);
    }
    if (!status) status = wg_token_trie_open(out, text, vocab, err);
    wg_free(all);
    wg_free(one);
    wg_free(text);
    return status;
}

int32_t wg_token_longest(const wg_token_trie *t, const char *bytes, size_t n)
{
    int32_t best = -1;
    for (int32_t i = 0, stop = t->n; n > 0 && i < stop;) {
        const wg_trie_node *x = &t->node[i];
        if (x->byte != (uint8_t)*bytes) {
            i = x->end;
            continue;
        }
        if (t->node[i + 1].first > x->first) best = t->token[x->first];
        stop = x->end;
        i++, bytes++, n--;
    }
    return best;
}
