/* SPDX-License-Identifier: MIT
 * A pass on a CUDA device, from its first copy to its wait. It begins with one copy: the positions that its rows attend to,
 * the rows with logits, and the page tables of their sequences. Stages only launch; the pass ends with a wait. Failures on
 * the way (a launch, lost memory) are reported by the wait, and no slot then counts as written.
 *
 * Passes of up to WG_GRAPH_ROWS rows are rounded up (added rows store nothing and attend to nothing), so that equal passes
 * have equal launches: they are recorded when they occur again and replayed from then on (graphs.h). Larger ones are
 * launched unrounded. */
#include <string.h>

#include "core/base/log.h"
#include "core/base/mem.h"
#include "core/model/cuda/device_cuda.h"

/* Where the table of a row's sequence begins; the tables of new sequences are appended. */
static int table_of(const wg_row *row, int i, int space, const wg_gpu_row *done, int32_t *tables, int *used)
{
    for (int k = i - 1; k >= 0; k--)
        if (row[k].kv == row[i].kv) return done[k].table;
    const wg_kv_view view = wg_kv_view_of(row[i].kv, space, 0);
    const int slots = wg_kv_len(row[i].kv) + wg_kv_tail(row[i].kv), n = (slots + view.page_slots - 1) / view.page_slots;
    memcpy(tables + *used, view.page, (size_t)n * sizeof *tables);
    *used += n;
    return *used - n;
}

/* Rounds the pass up, where it is one to be recorded. */
static void round_up(wg_cuda *s, const wg_pass *pass)
{
    const int room = pass->max_rows, rows = wg_graph_rows(pass->rows), asked = wg_graph_rows(pass->asked);
    s->all = pass->rows, s->asked = pass->asked;
    if (s->mode & WG_CUDA_EAGER || pass->rows > WG_GRAPH_ROWS) return;
    s->all = rows < room ? rows : room;
    if (pass->asked == pass->rows) s->asked = s->all;
    else if (pass->asked > 0) s->asked = asked < s->all ? asked : s->all;
}

/* The next stage is the first one. */
static void from_the_start(wg_cuda *s)
{
    s->rows = s->all;
    s->row = (const wg_gpu_row *)(const void *)s->pass.device;
    s->within = s->now.within ? s->row + s->all : NULL;
    s->kept = false;
}

/* Whether a pass like this one has been recorded, or is to be. */
static void find_graph(wg_cuda *s)
{
    const wg_pass *p = &s->now;
    wg_graph_key key;
    s->stage_mode = WG_CUDA_LAUNCH;
    s->first = false;
    memset(&key, 0, sizeof key);
    if (s->mode & WG_CUDA_EAGER || p->rows > WG_GRAPH_ROWS || !s->small || !wg_graph_plan(&key, p->plan)) return;
    s->most = wg_graph_spans(s->most) * WG_GPU_SPAN;
    key.model = p->model;
    key.taps = p->taps;
    key.pool = wg_kv_view_of(p->row[0].kv, p->space, 0).pool;
    key.rows = s->all;
    key.asked = p->asked == p->rows ? -1 : s->asked;
    key.spans = wg_cuda_exact(s) ? 0 : wg_gpu_spans(s->most);
    s->graph = wg_graphs_find(&s->graphs, &key, &s->first);
    if (!s->first) s->stage_mode = s->graph->ready ? WG_CUDA_REPLAY : WG_CUDA_RECORD;
}

/* The descriptors of a row, whose page table begins at `table`. */
static wg_gpu_row describe(const wg_row *r, int table)
{
    wg_gpu_row to = { .token = r->token,
                      .position = r->position,
                      .slot = r->slot,
                      .prefix = r->prefix,
                      .tail = r->tail,
                      .sinks = r->sinks,
                      .gap = r->gap,
                      .keys = r->prefix - r->gap + wg_mask_count(&r->anc),
                      .table = table };
    memcpy(to.anc, r->anc.w, sizeof to.anc);
    return to;
}

/* Descriptors, the numbers of rows that asked, page tables, in one piece. */
void wg_cuda_begin(wg_device *d, const wg_pass *pass)
{
    wg_cuda *s = wg_cuda_of(d);
    const wg_cuda_staging *p = &s->pass;
    round_up(s, pass);
    const int views = pass->within ? 2 : 1;
    wg_gpu_row *to = (wg_gpu_row *)(void *)p->host, *within = to + s->all;
    int32_t *from = (int32_t *)(void *)(p->host + wg_cuda_from_at(views * s->all)), *tables = from + s->asked;
    int used = 0, asked = 0;
    wg_assert(s->all <= p->rows);
    s->now = *pass;
    s->most = 0;
    for (int i = 0; i < pass->rows; i++) {
        const wg_row *r = &pass->row[i];
        to[i] = describe(r, table_of(pass->row, i, pass->space, to, tables, &used));
        if (pass->within) within[i] = describe(&pass->within[i], to[i].table);
        s->most = to[i].keys > s->most ? to[i].keys : s->most;
        if (r->logits >= 0) from[asked++] = i;
    }
    for (int v = 0; v < views; v++)
        for (int i = pass->rows; i < s->all; i++) to[v * s->all + i] = (wg_gpu_row){ .slot = -1 };
    while (asked < s->asked) from[asked++] = -1;
    wg_assert(used <= p->tables);
    s->from = (const int32_t *)(const void *)(p->device + wg_cuda_from_at(views * s->all));
    s->tables = s->from + s->asked;
    s->small = (size_t)s->asked * (size_t)pass->width * sizeof(float) <= s->logits_bytes;
    s->gpu.api->put(&s->gpu, p->device, p->host, wg_cuda_tables_at(views * s->all, s->asked) + (size_t)used * sizeof *tables);
    if (pass->verify) wg_cuda_verify_send(&s->verify, &s->gpu, pass->width, pass->verify);
    from_the_start(s);
    find_graph(s);
}

bool wg_cuda_again(wg_device *d)
{
    wg_cuda *s = wg_cuda_of(d);
    const wg_cuda_stage_mode turn = s->stage_mode;
    char why[WG_GPU_WHY];
    s->stage_mode = WG_CUDA_DONE;
    if (turn == WG_CUDA_LAUNCH) {
        s->first ? s->made.first++ : s->made.launched++;
        return true;
    }
    if (turn == WG_CUDA_RECORD) {
        s->gpu.api->record(&s->gpu);
        s->stage_mode = WG_CUDA_RECORDING;
        return true;
    }
    if (turn == WG_CUDA_RECORDING && !(s->graph->ready = s->gpu.api->recorded(&s->gpu, why))) {
        wg_log(WG_LOG_WARN, "%s (%s): a pass could not be recorded, launches are made one by one: %s", s->name, s->gpu.card,
               why);
        s->mode |= WG_CUDA_EAGER;
        s->made.launched++;
        from_the_start(s);
        return true;
    }
    if (turn == WG_CUDA_DONE) return false;
    if (turn == WG_CUDA_RECORDING) s->graph->best = s->verify.best;
    s->verify.best = s->graph->best;
    s->gpu.api->replay(&s->gpu, s->graph->ready);
    s->made.replayed++;
    s->kept = s->now.asked > 0;
    return false;
}

void wg_cuda_keep_logit_rows(wg_device *d)
{
    wg_cuda *s = wg_cuda_of(d);
    s->rows = s->asked;
    if (s->rows == 0) return;
    s->gpu.api->gather_rows(&s->gpu, s->row, s->from, s->narrowed, s->rows);
    s->row = s->narrowed;
    if (!s->within) return;
    wg_gpu_row *to = s->narrowed + s->pass.rows;
    s->gpu.api->gather_rows(&s->gpu, s->within, s->from, to, s->rows);
    s->within = to;
}

wg_status wg_cuda_verify_open(wg_device *d, wg_rule_kind rule, int vocab, int trees, int *rows, wg_error *err)
{
    wg_cuda *s = wg_cuda_of(d);
    wg_graphs_clear(&s->graphs); /* loops point into the room, which may move */
    return wg_verify_buffers_open(&s->verify, &s->gpu, rule, vocab, trees, rows, err);
}

void wg_cuda_use_logits(wg_cuda *s, int first, int n)
{
    const wg_pass *p = &s->now;
    const size_t width = (size_t)p->width;
    if (p->verify) wg_cuda_verify_sample(&s->verify, &s->gpu, p->width, p->verify, s->logits, first, n);
    else if (p->logits)
        s->gpu.api->get(&s->gpu, p->logits + (size_t)first * width, s->logits, (size_t)n * width * sizeof(float));
}

wg_status wg_cuda_finish(wg_device *d, wg_error *err)
{
    wg_cuda *s = wg_cuda_of(d);
    char why[WG_GPU_WHY];
    if (s->kept) wg_cuda_use_logits(s, 0, s->now.asked);
    if (s->now.verify) wg_cuda_verify_finish(&s->verify, &s->gpu, s->now.width, s->now.verify);
    s->kept = false;
    if (s->gpu.api->wait(&s->gpu, why) == 0) return WG_OK;
    return wg_fail(err, WG_EIO, "%s (%s): %s", s->name, s->gpu.card, why);
}

wg_passes_made wg_cuda_made(const wg_device *d) { return wg_cuda_of(d)->made; }
