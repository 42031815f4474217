/* SPDX-License-Identifier: MIT
 * A drafter alone: proposals and observations. */
#include "api/api_impl.h"
#include "core/base/mem.h"

static wg_status check_kind(const wg_sequence *q, const char *function, wg_error *err)
{
    if (!q) return wg_missing(function, "the sequence", err);
    if (q->session->kind == WG_SESSION_DRAFTER) return WG_OK;
    return wg_fail(err, WG_EUNSUPPORTED,
                   "%s: this session has a target, which drafts and verifies by wg_sequence_next; a "
                   "drafter alone is opened by wg_session_open_drafter",
                   function);
}

wg_status wg_sequence_propose(wg_sequence *q, wg_draft *out, wg_error *err)
{
    WG_TRY(check_kind(q, "wg_sequence_propose", err));
    if (!out) return wg_missing("wg_sequence_propose", "out", err);
    const size_t bytes = 3 * WG_TREE_MAX * sizeof *q->node;
    if (!q->node && !(q->node = wg_alloc(bytes, 1))) return wg_nomem(err, bytes, "a draft");
    wg_draft d = { .size = out->size };
    WG_TRY(wg_struct_out(&d, &d, sizeof d, WG_SIZE_TO(wg_draft, law), "wg_draft", err)); /* its size, first */
    WG_TRY(wg_engine_propose(q->session->engine, q->seq, err));
    const wg_last_step last = wg_engine_last_step(q->session->engine);
    int32_t *token = q->node, *parent = token + WG_TREE_MAX, *qrow = parent + WG_TREE_MAX;
    int parents = 1, rows = 1; /* whether those of node i are i - 1 */
    for (int i = 0; i < last.tree->n; i++) {
        token[i] = last.tree->token[i];
        parent[i] = i ? last.tree->parent[i] : -1;
        qrow[i] = i ? last.tree->qrow[i] : -1;
        parents &= parent[i] == i - 1;
        rows &= qrow[i] == (last.q->n ? i - 1 : -1);
    }
    d = (wg_draft){ .n = last.tree->n,
                    .token = token,
                    .parent = parent,
                    .qrow = qrow,
                    .q_rows = last.q->n,
                    .law = wg_law_name(last.tree->law),
                    .score = last.tree->score,
                    .chain = parents && rows };
    return wg_struct_out(out, &d, sizeof d, WG_SIZE_TO(wg_draft, law), "wg_draft", err);
}

wg_status wg_sequence_q(wg_sequence *q, int row, double *out, wg_error *err)
{
    WG_TRY(check_kind(q, "wg_sequence_q", err));
    if (!out) return wg_missing("wg_sequence_q", "out", err);
    wg_rows *rows = wg_engine_last_step(q->session->engine).q;
    if (row < 0 || row >= rows->n) return wg_fail(err, WG_EINVAL, "row %d of q; the last draft has %d rows", row, rows->n);
    const double *from = wg_rows_dense(rows, row, out);
    for (int i = 0; from != out && i < rows->vocab; i++) out[i] = from[i];
    return WG_OK;
}

wg_status wg_sequence_observe(wg_sequence *q, const int32_t *token, int n, wg_error *err)
{
    WG_TRY(check_kind(q, "wg_sequence_observe", err));
    if (!token) return wg_missing("wg_sequence_observe", "token", err);
    return wg_engine_observe(q->session->engine, q->seq, token, n, err);
}

wg_status wg_sequence_advance(wg_sequence *q, const int32_t *token, int n, wg_draft *out, wg_error *err)
{
    if (!out) return wg_missing("wg_sequence_advance", "out", err);
    if (n != 0) WG_TRY(wg_sequence_observe(q, token, n, err));
    return wg_sequence_propose(q, out, err);
}

void wg_sequence_finish(wg_sequence *q)
{
    if (q && q->seq->finish == WG_RUNNING) q->seq->finish = WG_FINISH_EOS; /* what drafters ask when they forget it */
    wg_sequence_close(q);
}
