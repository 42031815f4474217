/* SPDX-License-Identifier: MIT
 * The rules on the device against verify/: over random trees of every law and rows of every kind each decision, that is the
 * path and the next token, must be the host's. */
#include "core/engine/verifier.h"
#include "tests/accept.h"
#include "tests/simt/simt_check.h"
#include "verify/verify.h"

enum { TREES = 30, NODES = 10, VOCAB = 1500, P_ROWS = TREES * NODES, Q_ROWS = 40 };

static uint32_t drawn;
static uint32_t word(void) { return wg_philox_at(77, drawn++, 3, 1, 4).v[0]; }
static int below(int n) { return (int)(word() % (uint32_t)n); }
static double unit(void) { return word() * 0x1p-32; }

typedef struct bed {
    int vocab;
    wg_rows p, q;
    wg_tree tree[TREES];
    wg_chance chance[TREES];
    wg_rule_tree *d_tree;
    double *d_p, *d_q, *d_scratch;
    int32_t *d_p_one_hot, *d_q_one_hot;
    wg_rule_path *d_path;
} bed;

/* Flat, peaked, truncated, with long gaps, a point; or what another row has, so that p and q are equal or nearly. */
static void draw_row(wg_rows *r, wg_rows *like)
{
    const int others = like->n, row = wg_rows_push(r), V = r->vocab, kind = below(8);
    double *p = wg_rows_at(r, row), sum = 0;
    if (kind == 0) r->point[row] = below(V);
    if (kind == 1 && others) {
        const double *other = wg_rows_dense(like, below(others), p);
        if (other != p) memcpy(p, other, (size_t)V * sizeof *p);
        return;
    }
    const int from = kind == 2 ? 0 : kind == 3 ? V / 2 : 0, to = kind == 2 ? (V + 1) / 2 : V; /* often disjoint */
    for (int x = 0; x < V; x++) {
        const double u = unit();
        p[x] = x < from || x >= to ? 0 : kind == 4 ? 1 : kind == 5 ? u * u * u * u * u * u : kind == 6 ? (u < 0.1) * u : u;
        sum += p[x];
    }
    if (!(sum > 0)) sum = p[below(V)] = 1;
    for (int x = 0; x < V; x++) p[x] /= sum;
}

static int32_t draw_token(wg_rows *q, int row)
{
    if (q->point[row] >= 0) return q->point[row];
    double at = unit();
    int last = 0;
    for (int x = 0; x < q->vocab; x++) {
        if (!(wg_rows_prob(q, row, x) > 0)) continue;
        last = x;
        if ((at -= wg_rows_prob(q, row, x)) < 0) break;
    }
    return last;
}

static void draw_tree(bed *b, int i, wg_sibling_law law, bool chain)
{
    wg_tree *t = &b->tree[i];
    const int n = i == 0 ? 1 : 2 + below(NODES - 1);
    int qrow[NODES];
    for (int k = 0; k < NODES; k++) qrow[k] = below(b->q.n);
    wg_tree_reset(t, below(b->vocab), law);
    t->row = i * NODES;
    while (t->n < n) {
        const int wide = i % 4 == 1 ? 2 : t->n; /* many siblings, or all shapes */
        const int parent = chain ? t->n - 1 : t->n < 3 ? 0 : below(wide);
        const int row = qrow[parent];
        const int32_t x = law == WG_LAW_FIXED && below(2) ? below(b->vocab) : draw_token(&b->q, row);
        if (law == WG_LAW_WITHOUT_REPLACEMENT && wg_tree_find(t, parent, x) >= 0) {
            if (below(4) == 0) break;
            continue;
        }
        wg_tree_push(t, parent, x, law == WG_LAW_FIXED ? -1 : row);
    }
    b->chance[i] = wg_chance_philox(11 + (uint64_t)below(3) * 0x100000001u, (uint32_t)below(1000), (uint32_t)below(1000));
}

static void send(const bed *b)
{
    wg_rule_tree t[TREES];
    gpu()->api->put(gpu(), b->d_p, b->p.p, (size_t)b->p.n * (size_t)b->vocab * sizeof(double));
    gpu()->api->put(gpu(), b->d_q, b->q.p, (size_t)b->q.n * (size_t)b->vocab * sizeof(double));
    gpu()->api->put(gpu(), b->d_p_one_hot, b->p.point, (size_t)b->p.n * sizeof(int32_t));
    gpu()->api->put(gpu(), b->d_q_one_hot, b->q.point, (size_t)b->q.n * sizeof(int32_t));
    for (int i = 0; i < TREES; i++) {
        const wg_tree *from = &b->tree[i];
        t[i] = (wg_rule_tree){ .seed = b->chance[i].seed,
                               .request = b->chance[i].request,
                               .position = b->chance[i].position,
                               .n = from->n,
                               .row = from->row,
                               .law = (int32_t)from->law };
        memcpy(t[i].token, from->token, (size_t)from->n * sizeof *from->token);
        memcpy(t[i].parent, from->parent, (size_t)from->n * sizeof *from->parent);
        memcpy(t[i].qrow, from->qrow, (size_t)from->n * sizeof *from->qrow);
    }
    gpu()->api->put(gpu(), b->d_tree, t, sizeof t);
    char why[WG_GPU_WHY];
    cr_assert_eq(gpu()->api->wait(gpu(), why), 0); /* before t goes */
}

/* How many nodes were kept in all; *corrected: in how many trees not all that could be. */
static int compare(bed *b, const wg_verifier_class *v, const void *opt, int *corrected)
{
    static wg_rule_path got[TREES];
    const wg_rule rule = wg_verifier_device(v, opt);
    int kept = 0;
    const wg_gpu_laws laws = { .p = b->d_p, .q = b->d_q, .p_one_hot = b->d_p_one_hot, .q_one_hot = b->d_q_one_hot };
    gpu()->api->verify(gpu(), &rule, b->d_tree, TREES, b->vocab, &laws, b->d_scratch, b->d_path);
    from_device(got, b->d_path, sizeof got);
    for (int i = 0; i < TREES; i++) {
        wg_path want;
        accept_alone(v, opt, &b->tree[i], &b->p, &b->q, &b->chance[i], &want);
        const wg_rule_path *g = &got[i];
        cr_assert(g->n == want.n && g->next == want.next && memcmp(g->node, want.node, (size_t)want.n * sizeof *want.node) == 0,
                  "%s, law %s, %d tokens, tree %d of %d nodes: %d nodes and %d, not %d and %d", v->name,
                  wg_law_name(b->tree[i].law), b->vocab, i, b->tree[i].n, g->n, g->next, want.n, want.next);
        kept += want.n - 1;
        *corrected += wg_tree_child(&b->tree[i], want.node[want.n - 1], want.node[want.n - 1]) >= 0;
    }
    return kept;
}

static void open_bed(bed *b, int vocab)
{
    *b = (bed){ .vocab = vocab };
    const size_t row = (size_t)vocab * sizeof(double);
    cr_assert_eq(wg_rows_open(&b->p, P_ROWS, vocab, NULL), WG_OK);
    cr_assert_eq(wg_rows_open(&b->q, Q_ROWS, vocab, NULL), WG_OK);
    b->d_tree = to_device(NULL, TREES * sizeof *b->d_tree);
    b->d_p = to_device(NULL, P_ROWS * row);
    b->d_q = to_device(NULL, Q_ROWS * row);
    b->d_scratch = to_device(NULL, TREES * wg_gpu_verify_cells(WG_RULE_MULTIPATH, vocab) * sizeof(double));
    b->d_p_one_hot = to_device(NULL, P_ROWS * sizeof(int32_t));
    b->d_q_one_hot = to_device(NULL, Q_ROWS * sizeof(int32_t));
    b->d_path = to_device(NULL, TREES * sizeof *b->d_path);
}

static void close_bed(bed *b)
{
    device_free(b->d_tree), device_free(b->d_p), device_free(b->d_q), device_free(b->d_scratch), device_free(b->d_p_one_hot);
    device_free(b->d_q_one_hot), device_free(b->d_path);
    wg_rows_close(&b->p);
    wg_rows_close(&b->q);
}

static void check_rule(const wg_verifier_class *v, const char *options, int vocab, int rounds, int *kept, int *corrected)
{
    static bed b;
    wg_error err;
    char opt[64] __attribute__((aligned(16))) = { 0 };
    cr_assert_leq(v->size, sizeof opt);
    if (v->options) wg_option_defaults(v->options, opt);
    if (*options) { cr_assert_eq(wg_option_set_list(v->options, opt, v->size, options, &err), WG_OK, "%s", err.text); }
    open_bed(&b, vocab);
    for (int round = 0; round < rounds; round++)
        for (unsigned law = 1; law <= WG_LAW_WITHOUT_REPLACEMENT; law *= 2) {
            if (!(v->laws & law)) continue;
            simt_order_set((simt_order)(round % SIMT_ORDERS));
            wg_rows_clear(&b.p);
            wg_rows_clear(&b.q);
            while (b.q.n < Q_ROWS) draw_row(&b.q, &b.q);
            while (b.p.n < P_ROWS) draw_row(&b.p, &b.q);
            for (int i = 0; i < TREES; i++) draw_tree(&b, i, (wg_sibling_law)law, v->chains || i % 4 == 3);
            send(&b);
            *kept += compare(&b, v, opt, corrected);
        }
    close_bed(&b);
}

static void check(const wg_verifier_class *v, const char *options)
{
    int kept = 0, corrected = 0;
    check_rule(v, options, 5, 10, &kept, &corrected);
    check_rule(v, options, 97, 3, &kept, &corrected);
    check_rule(v, options, VOCAB, 1, &kept, &corrected);
    cr_assert(kept > 100 && corrected > 100, "%s, %s: kept %d, turned back %d times", v->name, options, kept, corrected);
}

Test(gpu_verify, decisions_of_the_host)
{
    bool used[WG_RULES] = { false };
    for (int i = 0; wg_verifiers[i]; i++) {
        const wg_verifier_class *v = wg_verifiers[i];
        if (v->device == WG_RULE_HOST) continue;
        used[v->device] = true;
        cr_assert(v->test_options && *v->test_options, "%s has no test options", v->name);
        for (const char *const *t = v->test_options; *t; t++) check(v, *t);
    }
    for (int kind = WG_RULE_HOST + 1; kind < WG_RULES; kind++) cr_assert(used[kind], "no rule has the kernel of kind %d", kind);
}

/* A draw from a row so long that its notes on the way are some rounds apart, from all over it. */
Test(gpu_verify, a_long_row)
{
    enum { LONG = 140003, DRAWS = 12 };
    const wg_rule rule = { .kind = WG_RULE_MATCH };
    wg_rule_tree t[DRAWS];
    wg_rule_path got[DRAWS];
    wg_rows p;
    int32_t least = LONG, most = 0;
    cr_assert_eq(wg_rows_open(&p, 1, LONG, NULL), WG_OK);
    wg_rows_push(&p);
    for (int x = 0; x < LONG; x++) wg_rows_at(&p, 0)[x] = x % 3 == 0 ? 0 : unit();
    memset(t, 0, sizeof t);
    for (int i = 0; i < DRAWS; i++) t[i] = (wg_rule_tree){ .seed = 5, .request = (uint32_t)i, .n = 1, .parent = { -1 } };
    wg_rule_tree *d_tree = to_device(t, sizeof t);
    double *d_p = to_device(p.p, LONG * sizeof *p.p), *scratch = to_device(NULL, 2 * DRAWS * LONG * sizeof *scratch);
    int32_t *point = to_device(p.point, sizeof *point);
    wg_rule_path *path = to_device(NULL, sizeof got);
    gpu()->api->verify(gpu(), &rule, d_tree, DRAWS, LONG, &(wg_gpu_laws){ .p = d_p, .p_one_hot = point }, scratch, path);
    from_device(got, path, sizeof got);
    for (int i = 0; i < DRAWS; i++) {
        const wg_chance c = wg_chance_philox(5, (uint32_t)i, 0);
        const int32_t want = wg_rows_pick(&p, 0, &c, WG_DRAW_NEXT, 0);
        cr_assert_eq(got[i].next, want, "draw %d: %d, not %d", i, got[i].next, want);
        least = want < least ? want : least;
        most = want > most ? want : most;
    }
    cr_assert(least < LONG / 4 && most > LONG * 3 / 4);
    device_free(d_tree), device_free(d_p), device_free(scratch), device_free(point), device_free(path);
    wg_rows_close(&p);
}

/* Races whose times differ by a part in 2^40 only: every word of a time counts, of even tokens and of odd ones. */
Test(gpu_verify, races_that_are_nearly_ties)
{
    enum { RACES = 24, FEW = 4 };
    wg_rule_tree t[RACES] = { 0 };
    wg_rule_path got[RACES];
    wg_rows p;
    int opt[4] = { 0 };
    wg_option_defaults(wg_verifier_coupled.options, opt);
    const wg_rule rule = wg_verifier_device(&wg_verifier_coupled, opt);
    cr_assert_eq(wg_rows_open(&p, RACES, FEW, NULL), WG_OK);
    for (int i = 0; i < RACES; i++) {
        double *row = wg_rows_at(&p, wg_rows_push(&p)), sum = 0;
        for (uint32_t x = 0; x < FEW; x++) {
            const wg_philox w = wg_philox_at(5, x >> 1, WG_DRAW_COUPLED, 3, (uint32_t)i);
            const double u = x & 1 ? wg_philox_double(w.v[2], w.v[3]) : wg_philox_double(w.v[0], w.v[1]);
            sum += row[x] = wg_philox_exponential(u) * (1 + ((int)x == i % FEW ? 0x1p-40 : 0));
        }
        for (int x = 0; x < FEW; x++) row[x] /= sum;
        t[i] = (wg_rule_tree){ .seed = 5, .request = (uint32_t)i, .position = 3, .n = 1, .row = i, .parent = { -1 } };
    }
    wg_rule_tree *d_tree = to_device(t, sizeof t);
    double *d_p = to_device(p.p, RACES * FEW * sizeof *p.p);
    double *scratch = to_device(NULL, RACES * wg_gpu_verify_cells(WG_RULE_COUPLED, FEW) * sizeof *scratch);
    int32_t *point = to_device(p.point, RACES * sizeof *point);
    wg_rule_path *path = to_device(NULL, sizeof got);
    gpu()->api->verify(gpu(), &rule, d_tree, RACES, FEW, &(wg_gpu_laws){ .p = d_p, .p_one_hot = point }, scratch, path);
    from_device(got, path, sizeof got);
    for (int i = 0; i < RACES; i++) cr_assert_eq(got[i].next, i % FEW, "race %d: %d, not %d", i, got[i].next, i % FEW);
    device_free(d_tree), device_free(d_p), device_free(scratch), device_free(point), device_free(path);
    wg_rows_close(&p);
}
