/* SPDX-License-Identifier: MIT
 * The meaning of a tokenizer's ids: its digest, and the check that a draft model may propose ids to a target (every id must
 * mean the same text to both). */
#include <stdio.h>
#include <string.h>

#include "core/text/tokenizer.h"
#include "core/text/vocab.h"

enum { SHOWN = 10, LINE = 160 };

/* A row that only pads the embedding matrix, and is never the output of a trained model. */
static bool is_padding(wg_text t)
{
    return t.n == 0 || (t.n > 4 && memcmp(t.s, "[PAD", 4) == 0) || (t.n > 4 && memcmp(t.s, "<pad", 4) == 0);
}

static bool id_differs(const wg_tokenizer *target, const wg_tokenizer *draft, int32_t id)
{
    const wg_text p = wg_tokenizer_piece(target, id), q = wg_tokenizer_piece(draft, id);
    if (id >= wg_tokenizer_size(draft)) return !is_padding(p);
    return id >= wg_tokenizer_size(target) || p.n != q.n || memcmp(p.s, q.s, p.n) != 0;
}

/* A token for the list: its text in quotes, or "none" beyond the end of a vocabulary. */
static void shown(const wg_tokenizer *t, int32_t id, char *buf, size_t size)
{
    if (id < wg_tokenizer_size(t)) wg_vocab_quote(wg_tokenizer_piece(t, id), buf, size);
    else snprintf(buf, size, "none");
}

wg_status wg_tokenizer_same(const wg_tokenizer *target, const wg_tokenizer *draft, const char *target_name,
                            const char *draft_name, wg_error *err)
{
    const int np = wg_tokenizer_size(target), nq = wg_tokenizer_size(draft);
    const bool flags = strcmp(wg_tokenizer_kind(target), wg_tokenizer_kind(draft)) == 0 &&
                       wg_tokenizer_bos(target) == wg_tokenizer_bos(draft) &&
                       wg_tokenizer_eos(target) == wg_tokenizer_eos(draft);
    char list[SHOWN * LINE] = "", p[52], q[52];
    size_t at = 0;
    int differ = 0;
    for (int32_t id = 0; id < (np > nq ? np : nq); id++) {
        if (!id_differs(target, draft, id) || differ++ >= SHOWN) continue;
        shown(target, id, p, sizeof p);
        shown(draft, id, q, sizeof q);
        at += (size_t)snprintf(list + at, sizeof list - at, "\n  id %d: target %s, draft %s", id, p, q);
    }
    if (flags && differ == 0) return WG_OK;
    return wg_fail(
        err, WG_EVOCAB,
        "target %.60s (%s, %d tokens, bos %d, eos %d) and draft %.60s (%s, %d tokens, bos %d, eos %d) do not share "
        "a vocabulary, %d texts differ%s; take a draft that was trained with the target's tokenizer, or draft across "
        "vocabularies: model with vocabulary=intersection, or slem%s",
        target_name, wg_tokenizer_kind(target), np, wg_tokenizer_bos(target), wg_tokenizer_eos(target), draft_name,
        wg_tokenizer_kind(draft), nq, wg_tokenizer_bos(draft), wg_tokenizer_eos(draft), differ,
        differ > SHOWN ? " (the first 10 are shown)" : "", list);
}

void wg_tokenizer_digest(const wg_tokenizer *t, char hex[WG_SHA256_HEX])
{
    wg_sha256_state s;
    const int32_t ids[] = { wg_tokenizer_size(t), wg_tokenizer_bos(t), wg_tokenizer_eos(t) };
    const char *kind = wg_tokenizer_kind(t);
    wg_sha256_begin(&s);
    wg_sha256_add(&s, kind, strlen(kind) + 1);
    wg_sha256_add(&s, ids, sizeof ids);
    for (int i = 0; i < ids[0]; i++) {
        const wg_text piece = wg_tokenizer_piece(t, i);
        const uint32_t n = (uint32_t)piece.n;
        wg_sha256_add(&s, &n, sizeof n);
        wg_sha256_add(&s, piece.s, piece.n);
    }
    wg_sha256_end(&s, hex);
}
