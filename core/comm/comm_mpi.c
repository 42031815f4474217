/* SPDX-License-Identifier: MIT
 * Ranks that are processes of MPI, over the module libwager-mpi.so. Every call is messages between two ranks, each behind a
 * header with the kind and number of the call; a rank that gets another header than it expects ends all ranks with an error
 * that names both calls. (Collective functions of MPI would wait for ever in its place.) Waiting ranks give the processor to
 * others, and after a while sleep between looks. */
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/comm/comm.h"
#include "core/comm/mpi_module.h"
#include "core/comm/mpi_watch.h"

enum { TURNS = 4000, NAP_NS = 100000, WHY = 512, HEADER = 64 };

typedef enum call { CALL_ORDER, CALL_JOIN, CALL_JOIN_AMONG, CALL_ROWS } call;
static const char *const call_names[] = { "an order", "a join of columns", "a join among some ranks", "rows" };

typedef struct header {
    uint64_t step;
    int32_t what, rows;
    uint64_t width; /* of a join: of all ranks together */
} header;

typedef struct mpi_comm {
    wg_comm comm; /* first */
    const wg_mpi_module *module;
    wg_mpi_watch *watch;
    uint64_t step, step_among, step_post, step_take; /* numbers of calls */
    char *out, *in, *heard, *rows;                   /* a message each: HEADER bytes, then its bytes; rows: that of post */
    size_t out_room, in_room, heard_room, rows_room;
} mpi_comm;

static mpi_comm *world; /* of the whole process; the program opens it, the library never */

wg_comm *wg_comm_mpi_open(void) { return world && world->module ? &world->comm : NULL; }

/* Ends the processes of all ranks: an error that is not that of one request, after which no rank can go on. */
static void mpi_fail(wg_comm *c, const char *why)
{
    fprintf(stderr, "wager: rank %d of %d: %s\n", c->rank, c->ranks, why);
    fflush(NULL);
    ((mpi_comm *)c)->module->abort(1);
}

static wg_status lost(mpi_comm *m, const char *text, wg_error *err)
{
    char why[WHY];
    snprintf(why, sizeof why, "MPI failed: %.*s", WG_MPI_TEXT, text);
    m->comm.class->fail(&m->comm, why);
    return wg_fail(err, WG_EIO, "ranks: %s", why);
}

static void wait_a_turn(long *turn)
{
    if (++*turn < TURNS) sched_yield();
    else nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
}

/* Sends the header and `bytes` bytes behind it; m->out is free when finish_sending returns. */
static wg_status send_to(mpi_comm *m, int to, size_t bytes, wg_error *err)
{
    char text[WG_MPI_TEXT];
    return m->module->send(to, m->out, HEADER + bytes, text) ? lost(m, text, err) : WG_OK;
}

static wg_status finish_sending(mpi_comm *m, wg_error *err)
{
    char text[WG_MPI_TEXT];
    int done = 0;
    for (long turn = 0; !done; wait_a_turn(&turn))
        if (m->module->all_sent(&done, text)) return lost(m, text, err);
    return WG_OK;
}

static wg_status fill(char **to, size_t *room, const header *h, const void *data, size_t bytes, wg_error *err)
{
    WG_TRY(wg_grow((void **)to, room, HEADER + bytes, 1, "a message between ranks", err));
    memset(*to, 0, HEADER);
    memcpy(*to, h, sizeof *h);
    if (bytes) memcpy(*to + HEADER, data, bytes);
    return WG_OK;
}

static wg_status prepare(mpi_comm *m, const header *h, const void *data, size_t bytes, wg_error *err)
{
    return fill(&m->out, &m->out_room, h, data, bytes, err);
}

/* The next message of a rank, into m->in; *bytes without its header. */
static wg_status receive(mpi_comm *m, int from, const header *want, size_t *bytes, wg_error *err)
{
    char text[WG_MPI_TEXT], why[WHY];
    header got = { 0 };
    int there = 0;
    size_t n = 0;
    for (long turn = 0; !there; wait_a_turn(&turn))
        if (m->module->probe(from, &there, &n, text)) return lost(m, text, err);
    WG_TRY(wg_grow((void **)&m->in, &m->in_room, n, 1, "a message between ranks", err));
    if (m->module->receive(from, m->in, n, text)) return lost(m, text, err);
    if (n >= HEADER) memcpy(&got, m->in, sizeof got);
    if (n >= HEADER && got.step == want->step && got.what == want->what && got.rows == want->rows && got.width == want->width) {
        *bytes = n - HEADER;
        return WG_OK;
    }
    snprintf(why, sizeof why,
             "rank %d is at call %llu, %s (%d rows of %llu bytes), and rank %d at call %llu, %s (%d rows of %llu bytes): the "
             "ranks have diverged; this is an error of the program",
             from, (unsigned long long)got.step, call_names[got.what & 3], got.rows, (unsigned long long)got.width,
             m->comm.rank, (unsigned long long)want->step, call_names[want->what], want->rows, (unsigned long long)want->width);
    m->comm.class->fail(&m->comm, why);
    return wg_fail(err, WG_EIO, "ranks: %s", why);
}

static wg_status mpi_tell(wg_comm *c, const void *data, size_t bytes, wg_error *err)
{
    mpi_comm *m = (mpi_comm *)c;
    WG_TRY(prepare(m, &(header){ .step = ++m->step, .what = CALL_ORDER }, data, bytes, err));
    for (int r = 1; r < c->ranks; r++) WG_TRY(send_to(m, r, bytes, err));
    return finish_sending(m, err);
}

static wg_status mpi_hear(wg_comm *c, void **data, size_t *bytes, wg_error *err)
{
    mpi_comm *m = (mpi_comm *)c;
    WG_TRY(receive(m, 0, &(header){ .step = ++m->step, .what = CALL_ORDER }, bytes, err));
    char *message = m->in; /* joins receive into the other buffer while it is read */
    const size_t room = m->in_room;
    m->in = m->heard;
    m->in_room = m->heard_room;
    m->heard = message;
    m->heard_room = room;
    *data = message + HEADER;
    return WG_OK;
}

static void place_columns(char *to, const char *from, int rows, size_t width, size_t sum)
{
    for (int i = 0; i < rows && width; i++) memcpy(to + (size_t)i * sum, from + (size_t)i * width, width);
}

static wg_status mpi_join(wg_comm *c, const wg_comm_span *among, const void *mine, int rows, const size_t *width, void *all,
                          int to, wg_error *err)
{
    mpi_comm *m = (mpi_comm *)c;
    const int first = among ? among->first : 0, n = among ? among->n : c->ranks;
    size_t sum = 0, at = 0, bytes;
    for (int r = 0; r < n; r++) sum += width[r];
    const header h = {
        .step = among ? ++m->step_among : ++m->step, .what = among ? CALL_JOIN_AMONG : CALL_JOIN, .rows = rows, .width = sum
    };
    const size_t own = (size_t)rows * width[c->rank - first];
    WG_TRY(prepare(m, &h, mine, own, err));
    for (int r = first; r < first + n; r++)
        if (r != c->rank && (to < 0 || r == to)) WG_TRY(send_to(m, r, own, err));
    for (int r = 0; r < n && (to < 0 || to == c->rank); at += width[r++]) {
        if (first + r == c->rank) {
            place_columns((char *)all + at, mine, rows, width[r], sum);
            continue;
        }
        WG_TRY(receive(m, first + r, &h, &bytes, err));
        wg_assert(bytes == (size_t)rows * width[r]); /* rows and width are the header's */
        place_columns((char *)all + at, m->in + HEADER, rows, width[r], sum);
    }
    return finish_sending(m, err);
}

static wg_status mpi_post(wg_comm *c, int to, const void *data, size_t bytes, wg_error *err)
{
    mpi_comm *m = (mpi_comm *)c;
    char text[WG_MPI_TEXT];
    int done = 0;
    for (long turn = 0; !done; wait_a_turn(&turn)) /* the message before */
        if (m->module->posted(&done, text)) return lost(m, text, err);
    const header h = { .step = ++m->step_post, .what = CALL_ROWS, .width = bytes };
    WG_TRY(fill(&m->rows, &m->rows_room, &h, data, bytes, err));
    return m->module->post(to, m->rows, HEADER + bytes, text) ? lost(m, text, err) : WG_OK;
}

static wg_status mpi_take(wg_comm *c, int from, void *data, size_t bytes, wg_error *err)
{
    mpi_comm *m = (mpi_comm *)c;
    size_t got;
    WG_TRY(receive(m, from, &(header){ .step = ++m->step_take, .what = CALL_ROWS, .width = bytes }, &got, err));
    wg_assert(got == bytes); /* the header's */
    memcpy(data, m->in + HEADER, bytes);
    return WG_OK;
}

static void mpi_close(wg_comm *c) { (void)c; } /* of the process: at its end */

static const wg_comm_class mpi_class = { .name = "mpi",
                                         .tell = mpi_tell,
                                         .hear = mpi_hear,
                                         .join = mpi_join,
                                         .post = mpi_post,
                                         .take = mpi_take,
                                         .fail = mpi_fail,
                                         .close = mpi_close };

int wg_comm_mpi_started(void)
{
    const char *n = getenv("OMPI_COMM_WORLD_SIZE");
    const int ranks = n ? atoi(n) : 0;
    return ranks > 1 ? ranks : 0;
}

int wg_comm_mpi_rank(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    return rank ? atoi(rank) : 0;
}

void wg_comm_mpi_stop(void)
{
    wg_mpi_watch_end(world->watch);
    world->module->stop();
    world->module = NULL;
}

static const wg_mpi_module *load(wg_error *err)
{
    char path[4096];
    const char *given = getenv("WAGER_MPI");
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof WG_MPI_MODULE_FILE);
    char *name = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;
    strcpy(name ? name + 1 : path, WG_MPI_MODULE_FILE);
    void *object = dlopen(given ? given : path, RTLD_NOW | RTLD_GLOBAL);
    if (!object && !given) object = dlopen(WG_MPI_MODULE_FILE, RTLD_NOW | RTLD_GLOBAL);
    const char *why = object ? NULL : dlerror();
    const wg_mpi_module *m = object ? dlsym(object, WG_MPI_MODULE_SYMBOL) : NULL;
    if (m && m->version == WG_MPI_MODULE_VERSION) return m;
    wg_fail(err, WG_EUNSUPPORTED,
            "ranks mpi: " WG_MPI_MODULE_FILE
            " cannot be opened (%s); install Open MPI (libopenmpi-dev), build wager again, and "
            "keep the module beside the program, or name it in WAGER_MPI; ranks threads:N need none",
            why ? why
            : m ? "of another version of wager"
                : "it is no module of wager");
    if (object) dlclose(object);
    return NULL;
}

wg_status wg_comm_mpi(wg_comm **out, wg_error *err)
{
    char text[WG_MPI_TEXT];
    int rank, ranks;
    if (!world) {
        const wg_mpi_module *module = load(err);
        if (!module) return WG_EUNSUPPORTED;
        mpi_comm *m = wg_calloc(1, sizeof *m);
        if (!m) return wg_nomem(err, sizeof *m, "ranks");
        *m = (mpi_comm){ .comm.class = &mpi_class, .module = module };
        wg_status s = wg_mpi_watch_open(&m->watch, module, err);
        if (!s && module->start(&rank, &ranks, text)) s = wg_fail(err, WG_EIO, "ranks mpi: %s", text);
        if (s) return s; /* the process ends; the thread of a watch waits in vain until then */
        wg_mpi_watch_begin(m->watch, m->comm.rank = rank, m->comm.ranks = ranks);
        world = m;
    }
    *out = wg_comm_mpi_open();
    if (*out) return WG_OK;
    return wg_fail(err, WG_EUNSUPPORTED, "ranks mpi: MPI has ended in this process, and starts once only; start a new process");
}
