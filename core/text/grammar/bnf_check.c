/* SPDX-License-Identifier: MIT
 * What a network must be before it is used. Two properties of nodes are least fixed points, found by a queue in linear time: a
 * node is empty if the end of its rule is reached from it without a byte, and live if it is reached by some text. */
#include <string.h>

#include "core/base/mem.h"
#include "core/text/grammar/bnf_impl.h"

/* For each node those that wait for it: next, other, the start of the rule that they call. */
typedef struct reverse {
    int32_t *first, *from; /* (n + 1), (edges) */
} reverse;

static int32_t called(const wg_bnf *b, const wg_bnf_node *x) { return x->op == WG_BNF_CALL ? b->start[x->other] : -1; }

static wg_status open_reverse(const wg_bnf *b, reverse *r, wg_error *err)
{
    const size_t n = (size_t)b->n;
    r->first = wg_calloc(n + 2, sizeof *r->first);
    r->from = wg_alloc(3 * n + 1, sizeof *r->from);
    if (!r->first || !r->from) return wg_nomem(err, 5 * n * sizeof *r->from, "the check of a grammar");
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < b->n; i++) {
            const wg_bnf_node *x = &b->node[i];
            const int32_t to[] = { x->next, x->op == WG_BNF_SPLIT ? x->other : -1, called(b, x) };
            for (int k = 0; k < 3; k++) {
                if (to[k] < 0) continue;
                if (pass == 0) r->first[to[k] + 2]++;
                else r->from[r->first[to[k] + 1]++] = i;
            }
        }
        for (size_t i = 2; i < n + 2 && pass == 0; i++) r->first[i] += r->first[i - 1];
    }
    return WG_OK;
}

/* Whether a node has the property, now that some of those that it waits for have it. */
static bool holds(const wg_bnf *b, const uint8_t *has, const wg_bnf_node *x, bool bytes)
{
    switch ((wg_bnf_op)x->op) {
    case WG_BNF_BYTE: return bytes && x->next >= 0 && has[x->next];
    case WG_BNF_SPLIT: return (x->next >= 0 && has[x->next]) || (x->other >= 0 && has[x->other]);
    case WG_BNF_CALL: return x->next >= 0 && has[x->next] && has[b->start[x->other]];
    case WG_BNF_END: return true;
    default: return false;
    }
}

/* has[i]: the end is reached from node i, with bytes or without them. queue: (n). */
static void reach_end(const wg_bnf *b, const reverse *r, bool bytes, uint8_t *has, int32_t *queue)
{
    int head = 0, tail = 0;
    memset(has, 0, (size_t)b->n);
    for (int32_t i = 0; i < b->n; i++)
        if (b->node[i].op == WG_BNF_END) has[queue[tail++] = i] = 1;
    for (; head < tail; head++)
        for (int32_t k = r->first[queue[head]]; k < r->first[queue[head] + 1]; k++) {
            const int32_t i = r->from[k];
            if (!has[i] && holds(b, has, &b->node[i], bytes)) has[queue[tail++] = i] = 1;
        }
}

/* ---- left recursion: a cycle of rules, each called before a byte of the one before it. `visit` follows edges without a
 * byte; a node is on the path while state is 1. Iterative: a grammar may have a hundred thousand nodes in a row. */

typedef struct frame {
    int32_t node;
    int at;
} frame;

static int32_t edge(const wg_bnf *b, const uint8_t *empty, int32_t i, int k)
{
    const wg_bnf_node *x = &b->node[i];
    if (x->op == WG_BNF_SPLIT) return k == 0 ? x->next : k == 1 ? x->other : -2;
    if (x->op == WG_BNF_CALL) return k == 0 ? b->start[x->other] : k == 1 && empty[b->start[x->other]] ? x->next : -2;
    return -2;
}

/* The number of a rule on a cycle; -1: there is none. A loop inside a rule (a repetition of what may be empty) is harmless. */
static int left_recursive(const wg_bnf *b, const uint8_t *empty, const int32_t *owner, uint8_t *state, frame *stack)
{
    memset(state, 0, (size_t)b->n);
    for (int rule = 0; rule < b->rules; rule++) {
        int depth = 0;
        if (state[b->start[rule]]) continue;
        stack[depth++] = (frame){ b->start[rule], 0 };
        state[b->start[rule]] = 1;
        while (depth > 0) {
            frame *f = &stack[depth - 1];
            const int32_t to = edge(b, empty, f->node, f->at++);
            if (to == -2) {
                state[f->node] = 2;
                depth--;
            } else if (to >= 0 && state[to] == 0) {
                state[to] = 1;
                stack[depth++] = (frame){ to, 0 };
            } else if (to >= 0 && state[to] == 1) {
                for (int k = depth - 1; k >= 0 && stack[k].node != to; k--) /* does the cycle call a rule? */
                    if (b->node[stack[k].node].op == WG_BNF_CALL && stack[k].at == 1) return owner[stack[k].node];
                for (int k = depth - 1; k >= 0; k--)
                    if (stack[k].node == to) {
                        if (b->node[to].op == WG_BNF_CALL && stack[k].at == 1) return owner[to];
                        break;
                    }
            }
        }
    }
    return -1;
}

/* ---- */

/* The first node from i on that is more than a way to another. All nodes before it lead to it from now on, so that a row of
 * empty texts is walked once and not once from each of them. */
static int32_t skip(wg_bnf *b, int32_t i)
{
    int32_t end = i;
    while (end >= 0 && b->node[end].op == WG_BNF_SPLIT && b->node[end].other < 0) end = b->node[end].next;
    while (i != end) {
        const int32_t next = b->node[i].next;
        b->node[i].next = end;
        i = next;
    }
    return end;
}

/* Choices lose nodes that no text gets past; a call whose rule's end is the end becomes a tail call, which needs no stack. */
static void simplify(wg_bnf *b, const uint8_t *live)
{
    for (int32_t i = 0; i < b->n; i++)
        if (!live[i]) b->node[i].op = WG_BNF_DEAD;
    for (int32_t i = 0; i < b->n; i++) {
        wg_bnf_node *x = &b->node[i];
        x->next = skip(b, x->next);
        if (x->op == WG_BNF_SPLIT) x->other = skip(b, x->other);
        if (x->op == WG_BNF_CALL && b->node[x->next].op == WG_BNF_END) x->op = WG_BNF_TAIL;
    }
    for (int i = 0; i < b->rules; i++) b->start[i] = skip(b, b->start[i]);
}

static wg_status judge(wg_bnf_builder *b, wg_bnf *out, const reverse *r, uint8_t *has, uint8_t *state, int32_t *queue,
                       frame *stack, wg_error *err)
{
    int32_t *owner = queue; /* of each node: its rule. Nodes of a rule end with its END */
    reach_end(out, r, false, has, queue);
    for (int32_t i = out->n - 1, rule = -1; i >= 0; i--) {
        if (out->node[i].op == WG_BNF_END) rule = out->node[i].other;
        owner[i] = rule;
    }
    const int bad = left_recursive(out, has, owner, state, stack);
    if (bad >= 0) {
        const wg_text rule = wg_byte_string_at(&b->rule, (size_t)bad);
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%s: rule %.*s calls itself before its first character (left recursion); write the repetition with * or "
                       "with the call last",
                       b->name, (int)rule.n, rule.s);
    }
    reach_end(out, r, true, has, queue);
    if (!has[out->start[out->root]])
        return wg_fail(err, WG_EFORMAT, "%s: no text has this grammar: every choice of root goes on for ever", b->name);
    simplify(out, has);
    return WG_OK;
}

wg_status wg_bnf_check(wg_bnf_builder *b, wg_bnf *out, wg_error *err)
{
    const size_t n = (size_t)out->n;
    reverse r = { 0 };
    uint8_t *has = wg_alloc(2 * n, 1);
    int32_t *queue = wg_alloc(n, sizeof *queue);
    frame *stack = wg_alloc(n + 1, sizeof *stack);
    wg_status status = open_reverse(out, &r, err);
    if (!status && (!has || !queue || !stack)) status = wg_nomem(err, n * sizeof *stack, "the check of a grammar");
    if (!status) status = judge(b, out, &r, has, has + n, queue, stack, err);
    wg_free(r.first);
    wg_free(r.from);
    wg_free(has);
    wg_free(queue);
    wg_free(stack);
    return status;
}
