/* SPDX-License-Identifier: MIT
 * Ranks that are threads: orders and joins arrive whole, and ranks that make different calls get an error that names both,
 * within the test's time limit. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "core/comm/comm.h"

enum { RANKS = 4, ROWS = 3, ROUNDS = 200 };

typedef struct rank {
    wg_comm *comm;
    int mistake; /* of this rank, in round ROUNDS / 2: 1: it leaves out an order; 2: has other rows; 3: ends; 4: fails */
    int rounds;  /* whole ones */
    wg_status status;
    wg_error err;
    bool wrong;
} rank;

/* Rank r has r bytes of a row, so rank 0 has none; byte i of row k is made of round, rank, row and i. */
static unsigned char byte_of(int round, int r, int row, int i) { return (unsigned char)(round * 31 + r * 7 + row * 3 + i); }

static wg_status join_round(rank *me, int round, int rows)
{
    wg_comm *c = me->comm;
    size_t width[RANKS];
    unsigned char own[ROWS * RANKS], all[ROWS * RANKS * RANKS];
    int sum = 0, at = 0;
    for (int r = 0; r < RANKS; r++) sum += (int)(width[r] = (size_t)r);
    for (int k = 0; k < rows; k++)
        for (int i = 0; i < c->rank; i++) own[k * c->rank + i] = byte_of(round, c->rank, k, i);
    const int to = round % 2 ? -1 : round / 2 % RANKS;
    const wg_status s = c->class->join(c, NULL, own, rows, width, to < 0 || to == c->rank ? all : NULL, to, &me->err);
    if (s || (to >= 0 && to != c->rank)) return s;
    for (int k = 0; k < rows; k++)
        for (int r = 0; r < RANKS; r++)
            for (int i = 0; i < r; i++) me->wrong = me->wrong || all[at++] != byte_of(round, r, k, i);
    me->wrong = me->wrong || at != rows * sum;
    return WG_OK;
}

static wg_status order_round(rank *me, int round)
{
    wg_comm *c = me->comm;
    char text[5000];
    void *heard;
    size_t n = (size_t)(round * 97 % 5000);
    memset(text, round, sizeof text);
    if (c->rank == 0) return c->class->tell(c, text, n, &me->err);
    const size_t want = n;
    const wg_status s = c->class->hear(c, &heard, &n, &me->err);
    if (!s) me->wrong = me->wrong || n != want || memcmp(heard, text, n) != 0;
    return s;
}

static void *live(void *arg)
{
    rank *me = arg;
    for (int i = 0; i < ROUNDS && !me->status; i++) {
        const int mistake = i == ROUNDS / 2 ? me->mistake : 0;
        if (mistake == 3) break;
        if (mistake == 4) me->comm->class->fail(me->comm, "its disk is full");
        if (mistake != 1) me->status = order_round(me, i);
        if (!me->status) me->status = join_round(me, i, mistake == 2 ? ROWS - 1 : ROWS);
        if (!me->status) me->rounds++;
    }
    if (me->mistake == 3) me->comm->class->close(me->comm);
    return NULL;
}

/* All ranks live, one with a mistake. */
static void run(rank *all, int who, int mistake)
{
    wg_error err;
    wg_comm *comm[RANKS];
    pthread_t thread[RANKS];
    cr_assert_eq(wg_comm_threads(comm, RANKS, &err), WG_OK);
    for (int r = 0; r < RANKS; r++) all[r] = (rank){ .comm = comm[r], .mistake = r == who ? mistake : 0 };
    for (int r = 0; r < RANKS; r++) pthread_create(&thread[r], NULL, live, &all[r]);
    for (int r = 0; r < RANKS; r++) pthread_join(thread[r], NULL);
    for (int r = 0; r < RANKS; r++)
        if (r != who || mistake != 3) comm[r]->class->close(comm[r]);
}

Test(comm, orders_and_joins_arrive, .timeout = 60)
{
    rank all[RANKS];
    run(all, -1, 0);
    for (int r = 0; r < RANKS; r++) cr_assert(!all[r].status && !all[r].wrong && all[r].rounds == ROUNDS, "rank %d", r);
}

Test(comm, a_rank_that_goes_another_way_is_named, .timeout = 60)
{
    static const struct {
        int mistake;
        const char *first, *then;
    } want[] = {
        { 1, "rank 0 is at call 201, an order", "rank 2 at call 201, a join of columns" },
        { 2, "rank 0 is at call 202, a join of columns (3 rows", "rank 2 at call 202, a join of columns (2 rows" },
        { 3, "rank 2 of 4 has ended", "" },
        { 4, "rank 2 of 4 failed: its disk is full", "" },
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        rank all[RANKS];
        run(all, 2, want[i].mistake);
        for (int r = 0; r < RANKS; r++) {
            if (r == 2 && want[i].mistake == 3) continue;
            cr_assert_eq(all[r].status, WG_EIO, "mistake %d, rank %d", want[i].mistake, r);
            cr_assert(all[r].rounds == ROUNDS / 2 && strstr(all[r].err.text, want[i].first) &&
                          strstr(all[r].err.text, want[i].then),
                      "mistake %d, rank %d: %s", want[i].mistake, r, all[r].err.text);
        }
    }
}

/* Two stages of two ranks: joins among a stage's ranks, while rows go round. */
static void *live_in_stages(void *arg)
{
    rank *me = arg;
    wg_comm *c = me->comm;
    const wg_comm_span stage = { c->rank / 2 * 2, 2 };
    const size_t width[2] = { 1, 2 };
    for (int i = 0; i < ROUNDS && !me->status; i++) {
        unsigned char own[2] = { byte_of(i, c->rank, 0, 0), byte_of(i, c->rank, 0, 1) }, all[3], got[3];
        if (me->mistake && i == ROUNDS / 2) { /* it takes what nobody sends */
            for (int k = 0; k < 2 && !me->status; k++)
                me->status = c->class->take(c, (c->rank + 2) % RANKS, got, sizeof got, &me->err);
            break;
        }
        me->status = c->class->join(c, &stage, own, 1, width, all, -1, &me->err);
        if (!me->status) me->status = c->class->post(c, (c->rank + 2) % RANKS, all, sizeof all, &me->err);
        if (!me->status) me->status = c->class->take(c, (c->rank + 2) % RANKS, got, sizeof got, &me->err);
        if (me->status) break;
        const int other = (c->rank + 2) % RANKS / 2 * 2;
        me->wrong = me->wrong || got[0] != byte_of(i, other, 0, 0) || got[1] != byte_of(i, other + 1, 0, 0) ||
                    got[2] != byte_of(i, other + 1, 0, 1);
        me->rounds++;
    }
    return NULL;
}

static void run_in_stages(rank *all, int who)
{
    wg_error err;
    wg_comm *comm[RANKS];
    pthread_t thread[RANKS];
    cr_assert_eq(wg_comm_threads(comm, RANKS, &err), WG_OK);
    for (int r = 0; r < RANKS; r++) all[r] = (rank){ .comm = comm[r], .mistake = r == who };
    for (int r = 0; r < RANKS; r++) pthread_create(&thread[r], NULL, live_in_stages, &all[r]);
    for (int r = 0; r < RANKS; r++) pthread_join(thread[r], NULL);
    for (int r = 0; r < RANKS; r++) comm[r]->class->close(comm[r]);
}

Test(comm, rows_go_round_and_ranks_that_all_wait_are_named, .timeout = 60)
{
    rank all[RANKS];
    run_in_stages(all, -1);
    for (int r = 0; r < RANKS; r++) cr_assert(!all[r].status && !all[r].wrong && all[r].rounds == ROUNDS, "rank %d", r);
    run_in_stages(all, 3);
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(all[r].status, WG_EIO, "rank %d", r);
        cr_assert(strstr(all[r].err.text, "the ranks have diverged"), "%s", all[r].err.text);
    }
}

Test(comm, names_of_ranks)
{
    wg_comm_spec s;
    wg_error err;
    cr_assert(wg_comm_parse(&s, "self", &err) == WG_OK && s.kind == WG_COMM_SELF && s.ranks == 1);
    cr_assert(wg_comm_parse(&s, "threads:1", &err) == WG_OK && s.kind == WG_COMM_SELF && s.ranks == 1);
    cr_assert(wg_comm_parse(&s, "threads:64", &err) == WG_OK && s.kind == WG_COMM_THREADS && s.ranks == 64);
    cr_assert(wg_comm_parse(&s, "mpi", &err) == WG_OK && s.kind == WG_COMM_MPI && s.ranks == 0 && s.pipeline == 1);
    cr_assert(wg_comm_parse(&s, "threads:2x3", &err) == WG_OK && s.kind == WG_COMM_THREADS && s.ranks == 6 && s.pipeline == 3);
    cr_assert(wg_comm_parse(&s, "mpi:1x2", &err) == WG_OK && s.kind == WG_COMM_MPI && s.ranks == 2 && s.pipeline == 2);
    static const char *const bad[] = { "threads",    "threads:0",     "threads:65", "threads:2x", "threads:-1",  "threads: 2",
                                       "threads:+2", "threads:0002",  "2",          "",           "threads:8x9", "threads:2x",
                                       "threads:x2", "threads:1x2x3", "mpi:",       "mpi:0" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_eq(wg_comm_parse(&s, bad[i], &err), WG_EINVAL, "%s", bad[i]);
        cr_assert(strstr(err.text, "expected self, threads:N with N from 1 to 64, or mpi;"));
    }
    cr_assert_eq(wg_comm_parse(&s, "nccl", &err), WG_EUNSUPPORTED);
    cr_assert(strstr(err.text, "this build has no ranks on CUDA devices"));
}
