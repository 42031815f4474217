/* SPDX-License-Identifier: MIT
 * The device of core/model over a runtime with injected failures: every allocation fails in turn and leaves nothing behind;
 * a pass that fails on the device writes nothing; a pass allocates nothing; the last close releases everything. */
#include "core/model/cuda/device_cuda.h"
#include "tests/unit/cuda/passes.h"

static struct {
    wg_gpu_api api;
    int allocations, fail_at;
    bool fail_wait, closed;
} faulty;

static void *faulty_alloc(wg_gpu *g, size_t bytes)
{
    return ++faulty.allocations == faulty.fail_at ? NULL : wg_gpu_simt()->alloc(g, bytes);
}

static void *faulty_alloc_weights(wg_gpu *g, size_t bytes)
{
    return ++faulty.allocations == faulty.fail_at ? NULL : wg_gpu_simt()->alloc_weights(g, bytes);
}

static void *faulty_pin(wg_gpu *g, size_t bytes)
{
    return ++faulty.allocations == faulty.fail_at ? NULL : wg_gpu_simt()->pin(g, bytes);
}

static int faulty_wait(wg_gpu *g, char why[WG_GPU_WHY])
{
    if (!faulty.fail_wait) return wg_gpu_simt()->wait(g, why);
    faulty.fail_wait = false;
    strcpy(why, "the card has fallen off the bus");
    return -1;
}

static void faulty_close(wg_gpu *g)
{
    wg_gpu_simt()->close(g);
    faulty.closed = true;
}

static wg_device device_open(void)
{
    wg_device d;
    memset(&faulty, 0, sizeof faulty);
    faulty.api = *wg_gpu_simt();
    faulty.api.alloc = faulty_alloc;
    faulty.api.alloc_weights = faulty_alloc_weights;
    faulty.api.pin = faulty_pin;
    faulty.api.wait = faulty_wait;
    faulty.api.close = faulty_close;
    cr_assert_eq(wg_device_cuda(&d, &faulty.api, 0, 0, NULL, &err), WG_OK, "%s", err.text);
    return d;
}

Test(gpu_device, code_books_are_refused_by_name)
{
    static const uint8_t rows[110];
    wg_matrix m;
    wg_device d = device_open();
    cr_assert_eq(wg_cuda_matrix(&d, WG_IQ2_XS, 1, 256, rows, &m, &err), WG_EUNSUPPORTED);
    cr_assert_str_eq(err.text,
                     "weights of type iq2_xs are not computed with on a CUDA device: take device cpu, or convert them "
                     "when they are loaded (--quantize q4_k)");
    wg_device_close(&d);
}

Test(gpu_device, every_failed_allocation_leaves_nothing)
{
    wg_weights *w = weights();
    const size_t host = wg_mem_read().live_blocks;
    int nth = 1;
    for (bool ok = false; !ok; nth++) {
        setup s;
        wg_device d = device_open();
        faulty.fail_at = nth;
        const wg_status status = setup_open(&s, &d, w);
        ok = status == WG_OK;
        cr_assert(ok || (status == WG_ENOMEM && strstr(err.text, "out of memory")), "allocation %d: %s", nth, err.text);
        wg_device_close(&d);
        setup_close(&s);
        cr_assert(faulty.closed && simt_stats_read().live == 0, "allocation %d: %zu bytes of the device are still held", nth,
                  simt_stats_read().live);
        cr_assert_eq(wg_mem_read().live_blocks, host, "allocation %d", nth);
    }
    cr_assert_gt(nth, 30); /* matrices, vectors, scratch, pages and the room of a pass */
    wg_weights_close(w);
}

Test(gpu_device, a_failed_pass_has_written_nothing)
{
    wg_weights *w = weights();
    setup s;
    float want[VOCAB], got[VOCAB];
    wg_device d = device_open();
    cr_assert_eq(setup_open(&s, &d, w), WG_OK, "%s", err.text);
    wg_device_close(&d); /* the model and the cache hold it */
    cr_assert(!faulty.closed);
    cr_assert_eq(pass(&s, 5, 1, want), WG_OK, "%s", err.text);
    wg_kv_rollback(s.seq);
    faulty.fail_wait = true;
    cr_assert_eq(pass(&s, 5, 1, got), WG_EIO);
    cr_assert(strstr(err.text, "cuda:0 (emulated): the card has fallen off the bus"), "%s", err.text);
    for (int i = 0; i < 5; i++) cr_assert(!wg_kv_holds(s.seq, wg_model_lm(s.m)->space, i));
    wg_kv_rollback(s.seq);
    cr_assert_eq(pass(&s, 5, 1, got), WG_OK);
    cr_assert_arr_eq(got, want, sizeof want);
    setup_close(&s);
    cr_assert(faulty.closed && simt_stats_read().live == 0);
    wg_weights_close(w);
}

/* A chain of two nodes behind a token, of which the target's most probable ones are wanted. */
static wg_status verify(setup *s, wg_rule_path *path)
{
    const int32_t token[] = { 3, 1, 2 };
    const wg_rule_tree tree = { .n = 2, .law = WG_RULE_FIXED, .token = { 1, 2 }, .parent = { -1, 0 }, .qrow = { -1, -1 } };
    const wg_verify_spec how = { .top_p = 1, .rule = { WG_RULE_GREEDY, 1, 1 }, .tree = &tree, .trees = 1, .path = path };
    WG_TRY(wg_kv_reserve(s->seq, 3, &err));
    wg_batch_clear(&s->b);
    wg_batch_chain(&s->b, s->seq, 0, token, 3, 2);
    return wg_lm_verify(wg_model_lm(s->m), &s->b, &how, &err);
}

Test(gpu_device, a_failed_settling_has_written_nothing)
{
    wg_weights *w = weights();
    setup s;
    float logits[2 * VOCAB];
    wg_rule_path path;
    wg_device d = device_open();
    cr_assert_eq(setup_open(&s, &d, w), WG_OK, "%s", err.text);
    wg_device_close(&d);
    faulty.fail_wait = true;
    cr_assert_eq(verify(&s, &path), WG_EIO);
    for (int i = 0; i < 3; i++) cr_assert(!wg_kv_holds(s.seq, wg_model_lm(s.m)->space, i));
    wg_kv_rollback(s.seq);
    const int allocations = faulty.allocations;
    for (int again = 0; again < 3; again++) { /* launched, recorded, replayed */
        memset(&path, 0, sizeof path);
        cr_assert_eq(verify(&s, &path), WG_OK, "%s", err.text);
        cr_assert_eq(wg_lm_forward(wg_model_lm(s.m), &s.b, logits, &err), WG_OK, "%s", err.text); /* the same rows */
        const int first = ref()->argmax(logits, VOCAB), second = ref()->argmax(logits + VOCAB, VOCAB), kept = first == 2;
        cr_assert(path.n == 1 + kept && path.next == (kept ? second : first));
        wg_kv_rollback(s.seq);
    }
    cr_assert_eq(faulty.allocations, allocations);
    setup_close(&s);
    wg_weights_close(w);
}

/* A prompt longer than a span in one pass, in parts, and by single tokens at its end: the same bits, and no memory taken. */
Test(gpu_device, passes_take_no_memory_and_chunks_do_not_show)
{
    static const int parts[][4] = { { 300, 0 }, { 7, 250, 43, 0 }, { 256, 42, 2, 0 } };
    static float all[3][VOCAB], many[ROWS * VOCAB];
    wg_weights *w = weights();
    for (int i = 0; i < 3; i++) {
        setup s;
        wg_device d = device_open();
        cr_assert_eq(setup_open(&s, &d, w), WG_OK, "%s", err.text);
        const int taken = faulty.allocations;
        const uint64_t calls = wg_mem_read().calls;
        for (int p = 0; parts[i][p]; p++) {
            cr_assert_eq(pass(&s, parts[i][p], i == 1 ? parts[i][p] : 1, many), WG_OK, "%s", err.text);
            memcpy(all[i], many + (i == 1 ? parts[i][p] - 1 : 0) * VOCAB, sizeof all[i]);
            wg_kv_commit_chain(s.seq, parts[i][p]);
        }
        for (int n = 0; n < 2; n++) {
            cr_assert_eq(pass(&s, 1, 1, all[i]), WG_OK);
            wg_kv_commit_chain(s.seq, 1);
        }
        cr_assert_eq(faulty.allocations, taken);
        cr_assert_eq(wg_mem_read().calls, calls);
        cr_assert_arr_eq(all[i], all[0], sizeof all[0], "parts %d", i);
        setup_close(&s);
        wg_device_close(&d);
    }
    wg_weights_close(w);
}

/* Rows of a tree after a long prefix, of which the last is a path of six: what six single tokens give. */
Test(gpu_device, a_tree_equals_its_path)
{
    wg_weights *w = weights();
    setup s;
    float tree[6 * VOCAB], chain[6 * VOCAB];
    const int32_t token[12] = { 3, 9, 1, 4, 8, 22, 5, 6, 7, 30, 2, 11 };
    const int parent[12] = { -1, 0, 0, 2, 1, 3, 5, 5, 6, 8, 8, 9 }, path[6] = { 0, 2, 3, 5, 6, 8 };
    wg_device d = device_open();
    cr_assert_eq(setup_open(&s, &d, w), WG_OK, "%s", err.text);
    cr_assert_eq(pass(&s, 290, 0, NULL), WG_OK);
    wg_kv_commit_chain(s.seq, 290);
    cr_assert_eq(wg_kv_reserve(s.seq, 12, &err), WG_OK);
    wg_batch_clear(&s.b);
    wg_mask anc[12];
    int depth[12], asked = 0;
    for (int i = 0; i < 12; i++) {
        anc[i] = i ? wg_mask_with(anc[parent[i]], i) : wg_mask_bit(0);
        depth[i] = i ? depth[parent[i]] + 1 : 0;
        const bool on_path = asked < 6 && path[asked] == i;
        asked += on_path;
        wg_batch_node(&s.b, s.seq, i, depth[i], anc[i], token[i], on_path);
    }
    cr_assert_eq(wg_lm_forward(wg_model_lm(s.m), &s.b, tree, &err), WG_OK);
    wg_kv_rollback(s.seq);
    for (int i = 0; i < 6; i++) {
        cr_assert_eq(wg_kv_reserve(s.seq, 1, &err), WG_OK);
        wg_batch_clear(&s.b);
        wg_batch_chain(&s.b, s.seq, wg_kv_len(s.seq), &token[path[i]], 1, 1);
        cr_assert_eq(wg_lm_forward(wg_model_lm(s.m), &s.b, chain + i * VOCAB, &err), WG_OK);
        wg_kv_commit_chain(s.seq, 1);
    }
    cr_assert_arr_eq(tree, chain, sizeof chain);
    setup_close(&s);
    wg_device_close(&d);
    wg_weights_close(w);
}
