/* SPDX-License-Identifier: MIT
 * The acceptor (acceptor.h). Tables only grow between two clearings, and in a walk over the trie beyond half of them what was
 * added is taken away again in reverse order; so chains of a hash table begin with what was added last. */
#include "core/text/grammar/acceptor.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/text/vocab.h"

enum {
    STACKS = 1 << 19,
    STATES = 1 << 16,
    PLACES = 1 << 21, /* of all states */
    HEADS = 1 << 16,
    STEPS = 1 << 16,     /* remembered transitions */
    SEEN = 1 << 15,      /* looked at for one state: half of it at most */
    MASK_BYTES = 1 << 25 /* of remembered sets of tokens */
};

typedef uint64_t place; /* node << 32 | stack */

typedef struct stack {
    int32_t node, below;  /* where the caller goes on; its own stack */
    int32_t depth, chain; /* chain: the next one's number + 1; 0: none. So cleared memory is an empty table */
} stack;                  /* number 0: empty */

typedef struct state {
    int32_t first, n;    /* of place[] */
    int32_t chain, mask; /* chain: as above */
    uint32_t head;
    bool accepts;
} state;

typedef struct step {
    int32_t from, to; /* from: + 1; 0: none */
    uint8_t byte;
} step;

struct wg_acceptor {
    const wg_bnf *g;
    const wg_token_trie *trie;
    void *tables; /* one block with the tables up to `seen_by` and the masks; NULL: freed by wg_acceptor_rest */
    stack *stack;
    state *state;
    place *place;
    int stacks, states, places;
    int32_t *stack_head, *state_head; /* (HEADS) as chains */
    step *step;                       /* (STEPS) */
    /* the state that is being made */
    place *seen, *todo;
    uint32_t *seen_by, turn;
    place next[WG_ACCEPTOR_PLACES];
    int n_next, n_seen;
    bool accepts, wide, full;
    long work;
    uint32_t age;
    bool over; /* the tables are more than half full: since then nothing is remembered, and what came then can go again */
    int kept_states, kept_stacks; /* when that began */
    uint64_t *mask;
    int *allowed; /* (masks) how many tokens */
    int masks, mask_room;
};

static size_t words(const wg_acceptor *m) { return ((size_t)m->trie->vocab + 63) / 64; }

static uint32_t mix(uint64_t x)
{
    x *= 0x9E3779B97F4A7C15u;
    return (uint32_t)(x >> 40);
}

/* ---- stacks */

static int32_t push(wg_acceptor *m, int32_t node, int32_t below)
{
    const uint32_t head = mix((uint64_t)(uint32_t)node << 32 | (uint32_t)below) % HEADS;
    for (int32_t i = m->stack_head[head] - 1; i >= 0; i = m->stack[i].chain - 1)
        if (m->stack[i].node == node && m->stack[i].below == below) return i;
    if (m->stacks == STACKS) {
        m->full = true;
        return 0;
    }
    m->stack[m->stacks] = (stack){ node, below, m->stack[below].depth + 1, m->stack_head[head] };
    return (m->stack_head[head] = ++m->stacks) - 1;
}

static void pop_stacks(wg_acceptor *m, int to)
{
    while (m->stacks > to) {
        const stack *s = &m->stack[--m->stacks];
        m->stack_head[mix((uint64_t)(uint32_t)s->node << 32 | (uint32_t)s->below) % HEADS] = s->chain;
    }
}

/* ---- states */

/* Whether the place is new to the state that is being made. */
static bool see(wg_acceptor *m, place p)
{
    uint32_t i = mix(p) % SEEN;
    for (; m->seen_by[i] == m->turn; i = (i + 1) % SEEN)
        if (m->seen[i] == p) return false;
    m->seen[i] = p;
    m->seen_by[i] = m->turn;
    m->work++;
    return true;
}

static void visit(wg_acceptor *m, int32_t node, int32_t under, int *todo)
{
    const place p = (place)(uint32_t)node << 32 | (uint32_t)under;
    if (m->n_seen == SEEN / 2) m->wide = true;
    if (m->wide || m->full || node < 0 || !see(m, p)) return;
    m->n_seen++;
    m->todo[(*todo)++] = p;
}

/* All places that are reached from this one without a byte. */
static void reach(wg_acceptor *m, int32_t node, int32_t under)
{
    int todo = 0;
    visit(m, node, under, &todo);
    while (todo > 0) {
        const place p = m->todo[--todo];
        const wg_bnf_node *x = &m->g->node[p >> 32];
        under = (int32_t)(uint32_t)p;
        switch ((wg_bnf_op)x->op) {
        case WG_BNF_BYTE:
            if (m->n_next == WG_ACCEPTOR_PLACES) m->wide = true;
            else m->next[m->n_next++] = p;
            break;
        case WG_BNF_SPLIT:
            visit(m, x->other, under, &todo);
            visit(m, x->next, under, &todo);
            break;
        case WG_BNF_CALL:
            if (m->stack[under].depth < WG_ACCEPTOR_DEPTH) visit(m, m->g->start[x->other], push(m, x->next, under), &todo);
            break;
        case WG_BNF_TAIL: visit(m, m->g->start[x->other], under, &todo); break;
        case WG_BNF_END:
            if (under == 0) m->accepts = true;
            else visit(m, m->stack[under].node, m->stack[under].below, &todo);
            break;
        case WG_BNF_DEAD: break;
        }
    }
}

static void begin(wg_acceptor *m)
{
    if (++m->turn == 0) {
        memset(m->seen_by, 0, SEEN * sizeof *m->seen_by);
        m->turn = 1;
    }
    m->n_next = m->n_seen = 0;
    m->accepts = m->wide = false;
}

static int by_number(const void *a, const void *b)
{
    const place x = *(const place *)a, y = *(const place *)b;
    return (x > y) - (x < y);
}

/* The number of the state that was made. */
static int32_t finish(wg_acceptor *m)
{
    if (m->full) return WG_ACCEPTOR_FULL;
    if (m->wide || (m->n_next == 0 && !m->accepts)) return WG_ACCEPTOR_DEAD;
    const size_t bytes = (size_t)m->n_next * sizeof *m->next;
    if (m->n_next > 1) qsort(m->next, (size_t)m->n_next, sizeof *m->next, by_number);
    const uint32_t head = mix(wg_hash64(WG_HASH_START, (const char *)m->next, bytes)) % HEADS;
    for (int32_t i = m->state_head[head] - 1; i >= 0; i = m->state[i].chain - 1) {
        const state *s = &m->state[i];
        if (s->n == m->n_next && s->accepts == m->accepts && !memcmp(m->place + s->first, m->next, bytes)) return i;
    }
    if (m->states == STATES || m->places > PLACES - m->n_next) {
        m->full = true;
        return WG_ACCEPTOR_FULL;
    }
    m->state[m->states] = (state){
        .first = m->places, .n = m->n_next, .chain = m->state_head[head], .mask = -1, .head = head, .accepts = m->accepts
    };
    memcpy(m->place + m->places, m->next, bytes);
    m->places += m->n_next;
    return (m->state_head[head] = ++m->states) - 1;
}

static void pop_states(wg_acceptor *m, int to)
{
    while (m->states > to) {
        const state *s = &m->state[--m->states];
        m->state_head[s->head] = s->chain;
        m->places = s->first;
    }
}

static bool half_full(const wg_acceptor *m)
{
    return m->states > STATES / 2 || m->places > PLACES / 2 || m->stacks > STACKS / 2;
}

/* The state after one more byte. */
static int32_t advance(wg_acceptor *m, int32_t from, uint8_t byte)
{
    step *known = &m->step[mix((uint64_t)(uint32_t)from << 8 | byte) % STEPS];
    if (known->from == from + 1 && known->byte == byte) return known->to;
    if (m->work > WG_ACCEPTOR_WORK) m->full = true;
    if (m->full) return WG_ACCEPTOR_FULL;
    begin(m);
    for (int i = 0; i < m->state[from].n; i++) {
        const place p = m->place[m->state[from].first + i];
        const wg_bnf_node *x = &m->g->node[p >> 32];
        if (byte >= x->lo && byte <= x->hi) reach(m, x->next, (int32_t)(uint32_t)p);
    }
    m->work += m->state[from].n;
    const int32_t to = finish(m);
    if (!m->over && half_full(m)) {
        m->over = true;
        m->kept_states = m->states;
        m->kept_stacks = m->stacks;
    }
    if (to != WG_ACCEPTOR_FULL && !m->over) *known = (step){ from + 1, to, byte };
    return to;
}

/* ---- questions */

static void ask(wg_acceptor *m)
{
    m->work = 0;
    m->full = false;
}

int32_t wg_acceptor_start(const wg_acceptor *m)
{
    (void)m;
    return 0;
}

static int32_t after(wg_acceptor *m, int32_t state, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n && state >= 0; i++) state = advance(m, state, (uint8_t)bytes[i]);
    return state;
}

int32_t wg_acceptor_bytes(wg_acceptor *m, int32_t state, const char *bytes, size_t n)
{
    ask(m);
    return after(m, state, bytes, n);
}

int32_t wg_acceptor_token(wg_acceptor *m, int32_t state, int32_t token)
{
    const wg_text text = token >= 0 && token < m->trie->vocab ? wg_token_bytes(m->trie, token) : (wg_text){ NULL, 0 };
    return text.n == 0 ? WG_ACCEPTOR_DEAD : wg_acceptor_bytes(m, state, text.s, text.n);
}

bool wg_acceptor_accepts(const wg_acceptor *m, int32_t state) { return m->state[state].accepts; }

typedef struct mark {
    int states, stacks;
} mark;

/* What came after the mark goes, as far as nothing remembers it. */
static void go_back(wg_acceptor *m, mark to)
{
    if (!m->over) return;
    pop_states(m, to.states > m->kept_states ? to.states : m->kept_states);
    pop_stacks(m, to.stacks > m->kept_stacks ? to.stacks : m->kept_stacks);
}

/* One walk over the trie; open[d]: the state after d bytes of the path. */
static int walk(wg_acceptor *m, int32_t from, uint64_t *mask)
{
    const wg_token_trie *t = m->trie;
    int32_t open[WG_TRIE_DEPTH + 1];
    mark before[WG_TRIE_DEPTH];
    int count = 0;
    open[0] = from;
    for (int i = 0, last = -1; i < t->n && !m->full;) {
        const wg_trie_node *x = &t->node[i];
        const int depth = x->depth;
        if (depth <= last) go_back(m, before[depth]);
        before[last = depth] = (mark){ m->states, m->stacks };
        open[depth + 1] = advance(m, open[depth], x->byte);
        if (open[depth + 1] < 0) {
            i = x->end;
            continue;
        }
        for (int32_t k = x->first; k < t->node[i + 1].first; k++, count++) mask[t->token[k] / 64] |= 1ull << t->token[k] % 64;
        i++;
    }
    return count;
}

const uint64_t *wg_acceptor_allowed(wg_acceptor *m, int32_t from, int *n)
{
    state *s = &m->state[from];
    if (s->mask < 0) {
        ask(m);
        if (m->masks == m->mask_room) { /* all are forgotten */
            for (int i = 0; i < m->states; i++) m->state[i].mask = -1;
            m->masks = 0;
        }
        uint64_t *mask = m->mask + (size_t)m->masks * words(m);
        memset(mask, 0, words(m) * sizeof *mask);
        m->allowed[m->masks] = walk(m, from, mask);
        if (m->full) return NULL;
        s->mask = m->masks++;
    }
    *n = m->allowed[s->mask];
    return m->mask + (size_t)s->mask * words(m);
}

/* The only byte that leads on from a state; -1: there are none, or several. */
static int only_byte(const wg_acceptor *m, int32_t at)
{
    const state *s = &m->state[at];
    int byte = -1;
    for (int i = 0; i < s->n; i++) {
        const wg_bnf_node *x = &m->g->node[m->place[s->first + i] >> 32];
        if (x->lo != x->hi || (byte >= 0 && byte != x->lo)) return -1;
        byte = x->lo;
    }
    return byte;
}

size_t wg_acceptor_forced(wg_acceptor *m, int32_t at, char *out, size_t size)
{
    size_t n = 0;
    ask(m);
    while (n < size && at >= 0 && !m->state[at].accepts) {
        const int byte = only_byte(m, at);
        if (byte < 0) break;
        out[n++] = (char)byte;
        at = advance(m, at, (uint8_t)byte);
    }
    return n;
}

/* ---- tables */

/* The start, in tables that are empty. */
static int32_t begin_text(wg_acceptor *m)
{
    m->stack[0] = (stack){ -1, -1, 0, 0 };
    m->stacks = 1;
    m->states = m->places = m->masks = 0;
    m->over = false;
    m->age++;
    ask(m);
    begin(m);
    reach(m, m->g->start[m->g->root], 0);
    return finish(m);
}

static void clear(wg_acceptor *m)
{
    memset(m->stack_head, 0, HEADS * sizeof *m->stack_head);
    memset(m->state_head, 0, HEADS * sizeof *m->state_head);
    memset(m->step, 0, STEPS * sizeof *m->step);
    begin_text(m);
}

void wg_acceptor_tidy(wg_acceptor *m)
{
    if (half_full(m)) clear(m);
}

uint32_t wg_acceptor_age(const wg_acceptor *m) { return m->age; }
const wg_token_trie *wg_acceptor_trie(const wg_acceptor *m) { return m->trie; }

enum { FIXED = HEADS * 8 + STEPS * (int)sizeof(step) + SEEN * 20 }; /* bytes of tables that fill at any place */

/* Lays the tables out from `base` on. Returns their bytes. */
static size_t lay_out(wg_acceptor *m, char *base)
{
    const size_t mask = words(m) * sizeof *m->mask, masks = MASK_BYTES / mask;
    size_t at = 0;
    m->mask_room = masks < 16 ? 16 : masks > STATES ? STATES : (int)masks;
    m->stack = wg_carve(base, &at, STACKS, sizeof *m->stack);
    m->state = wg_carve(base, &at, STATES, sizeof *m->state);
    m->place = wg_carve(base, &at, PLACES, sizeof *m->place);
    m->stack_head = wg_carve(base, &at, HEADS, sizeof *m->stack_head);
    m->state_head = wg_carve(base, &at, HEADS, sizeof *m->state_head);
    m->step = wg_carve(base, &at, STEPS, sizeof *m->step);
    m->seen = wg_carve(base, &at, SEEN, sizeof *m->seen);
    m->todo = wg_carve(base, &at, SEEN, sizeof *m->todo);
    m->seen_by = wg_carve(base, &at, SEEN, sizeof *m->seen_by);
    m->mask = wg_carve(base, &at, (size_t)m->mask_room, mask);
    m->allowed = wg_carve(base, &at, (size_t)m->mask_room, sizeof *m->allowed);
    return at;
}

/* Makes the tables, with the start in them. *start: its number. */
static wg_status open_tables(wg_acceptor *m, int32_t *start, wg_error *err)
{
    const size_t bytes = lay_out(m, NULL);
    void *tables = wg_map(bytes, 1);
    if (!tables) return wg_nomem(err, bytes, "the states of a grammar");
    m->tables = tables;
    lay_out(m, tables);
    m->turn = 0;
    *start = begin_text(m);
    return WG_OK;
}

void wg_acceptor_rest(wg_acceptor *m)
{
    wg_free(m->tables);
    m->tables = NULL;
    lay_out(m, NULL);
}

wg_status wg_acceptor_ready(wg_acceptor *m, wg_error *err)
{
    int32_t start;
    return m->tables ? WG_OK : open_tables(m, &start, err);
}

size_t wg_acceptor_size(const wg_acceptor *m)
{
    if (!m->tables) return 0;
    return FIXED + (size_t)m->stacks * sizeof *m->stack + (size_t)m->states * sizeof *m->state +
           (size_t)m->places * sizeof *m->place + (size_t)m->masks * words(m) * sizeof *m->mask;
}

wg_status wg_acceptor_open(wg_acceptor **out, const wg_bnf *grammar, const wg_token_trie *trie, wg_error *err)
{
    wg_acceptor *m = wg_calloc(1, sizeof *m);
    int32_t start = 0;
    if (!m) return wg_nomem(err, sizeof *m, "the states of a grammar");
    m->g = grammar;
    m->trie = trie;
    wg_status status = open_tables(m, &start, err);
    if (!status && start != 0)
        status = wg_fail(err, WG_EINVAL,
                         "the grammar begins with more than %d choices; use rules and sets of characters instead of lists",
                         (int)WG_ACCEPTOR_PLACES);
    if (status) wg_acceptor_close(m);
    else *out = m;
    return status;
}

void wg_acceptor_close(wg_acceptor *m)
{
    if (!m) return;
    wg_free(m->tables);
    wg_free(m);
}
