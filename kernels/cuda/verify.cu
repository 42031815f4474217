/* SPDX-License-Identifier: MIT
 * The rules of kernels/rule over rows that stay on the device: a block verifies a tree, and a path of some bytes is all that
 * leaves. The text of a rule is the host's; what differs is in rule_block.h. */
#include "kernels/cuda/rule_block.h"

#include "kernels/rule/kseq.h"
#include "kernels/rule/multipath.h"
#include "kernels/rule/optimal.h"
#include "kernels/rule/relaxed.h"
#include "kernels/rule/sampled.h"
#include "kernels/rule/typical.h"

template <int KIND
> WG_DEVICE void verify_tree(const wg_rule_block *b, const wg_rule *o)
{
    switch (KIND) {
    case WG_RULE_GREEDY: wg_verify_greedy(b); break;
    case WG_RULE_MATCH: wg_verify_match(b); break;
    case WG_RULE_COUPLED: wg_verify_coupled(b, o->races); break;
    case WG_RULE_ROUNDS: wg_verify_rounds(b, o->factor); break;
    case WG_RULE_TOPK: wg_verify_topk(b); break;
    case WG_RULE_KSEQ: wg_verify_kseq(b); break;
    case WG_RULE_BLOCK: wg_verify_block(b); break;
    case WG_RULE_TRAVERSAL: wg_verify_traversal(b); break;
    case WG_RULE_RELAXED: wg_verify_relaxed(b, o->top, o->factor); break;
    case WG_RULE_TYPICAL: wg_verify_typical(b, o->epsilon, o->delta); break;
    case WG_RULE_MULTIPATH: wg_verify_multipath(b, o->ratio != 0); break;
    case WG_RULE_OPTIMAL: wg_verify_optimal(b); break;
    }
}

template <int KIND
> WG_KERNEL WG_LAUNCH_BOUNDS(WG_BLOCK_THREADS, 1)
        verify_tree(wg_rule rule, const wg_rule_tree *tree, int vocab, wg_gpu_laws laws, double *scratch, wg_rule_path *path)
{
    wg_depend();
    WG_SHARED(wg_block, block, 1);
    WG_SHARED(wg_rule_tree, here, 1);
    WG_SHARED(wg_rule_state, state, 1);
    WG_SHARED(wg_rule_notes, notes, 1);
    const int32_t *from = (const int32_t *)(tree + blockIdx.x);
    for (int i = (int)threadIdx.x; i < (int)(sizeof *tree / 4); i += WG_BLOCK_THREADS) ((int32_t *)here)[i] = from[i];
    __syncthreads();
    double *mine = scratch + wg_gpu_verify_cells((wg_rule_kind)KIND, vocab) * blockIdx.x;
    wg_rule_block b;
    b.block = block;
    b.tree = here;
    b.state = state;
    b.notes = notes;
    b.vocab = vocab;
    b.p = laws.p;
    b.q = laws.q;
    b.p_one_hot = laws.p_one_hot;
    b.q_one_hot = laws.q_one_hot;
    b.rest = mine;
    b.drawn = mine + vocab;
    b.order = (wg_ratio_test *)b.drawn;
    b.taken = (wg_score_block *)(b.drawn + 2 * wg_gpu_sorted(vocab));
    b.out = path + blockIdx.x;
    verify_tree < KIND
    > (&b, &rule);
}

extern "C" void WG_GPU(verify)(wg_gpu *g, const wg_rule *rule, const wg_rule_tree *tree, int trees, int vocab,
                               const wg_gpu_laws *laws, double *scratch, wg_rule_path *path)
{
    void (*kernel)(wg_rule, const wg_rule_tree *, int, wg_gpu_laws, double *, wg_rule_path *) = NULL;
    switch (rule->kind) {
    case WG_RULE_GREEDY: kernel = verify_tree<WG_RULE_GREEDY>; break;
    case WG_RULE_MATCH: kernel = verify_tree<WG_RULE_MATCH>; break;
    case WG_RULE_COUPLED: kernel = verify_tree<WG_RULE_COUPLED>; break;
    case WG_RULE_ROUNDS: kernel = verify_tree<WG_RULE_ROUNDS>; break;
    case WG_RULE_TOPK: kernel = verify_tree<WG_RULE_TOPK>; break;
    case WG_RULE_KSEQ: kernel = verify_tree<WG_RULE_KSEQ>; break;
    case WG_RULE_TRAVERSAL: kernel = verify_tree<WG_RULE_TRAVERSAL>; break;
    case WG_RULE_BLOCK: kernel = verify_tree<WG_RULE_BLOCK>; break;
    case WG_RULE_RELAXED: kernel = verify_tree<WG_RULE_RELAXED>; break;
    case WG_RULE_TYPICAL: kernel = verify_tree<WG_RULE_TYPICAL>; break;
    case WG_RULE_MULTIPATH: kernel = verify_tree<WG_RULE_MULTIPATH>; break;
    case WG_RULE_OPTIMAL: kernel = verify_tree<WG_RULE_OPTIMAL>; break;
    default: return;
    }
    WG_LAUNCH(kernel, trees, WG_BLOCK_THREADS, 0, g->stream, *rule, tree, vocab, *laws, scratch, path);
}
