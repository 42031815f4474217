/* SPDX-License-Identifier: MIT
 * Messages for traces that contradict themselves: a complete trace of one request and one round, with one word changed at a
 * time and its checksums corrected. And rows that are no distributions. */
#include <math.h>

#include "core/base/mem.h"
#include "lab/replay.h"
#include "scene.h"

enum { V = 4, RECORDS = 4, MOST = 4096 };

/* Header, request, round, end; where each begins in `byte`. */
typedef struct trace {
    unsigned char byte[MOST];
    size_t n, at[RECORDS];
} trace;

static void put_bytes(trace *t, const void *from, size_t n)
{
    cr_assert_leq(t->n + n, sizeof t->byte);
    memcpy(t->byte + t->n, from, n);
    t->n += n;
}

static void put_words(trace *t, const int32_t *word, size_t n) { put_bytes(t, word, n * sizeof *word); }

static void seal(trace *t, size_t at)
{
    uint32_t n;
    memcpy(&n, t->byte + at, 4);
    const uint64_t sum = wg_trace_sum(t->byte + at, t->byte + at + 8, n);
    memcpy(t->byte + at + 8 + n, &sum, 8);
}

/* A record of kind `kind` from the words; `tail` bytes of zeros behind them. */
static void put_record(trace *t, int which, const void *payload, size_t n, size_t tail)
{
    const int32_t head[2] = { (int32_t)(n + tail), which + 1 };
    static const unsigned char zero[MOST];
    t->at[which] = t->n;
    put_words(t, head, 2);
    put_bytes(t, payload, n);
    put_bytes(t, zero, tail + 8);
    seal(t, t->at[which]);
}

#define HEADER(groups, config) "{\"groups\": " groups ", \"cells\": [{\"cell\": {}, \"group\": 0, \"config\": " config "}]}"
#define GOOD_HEADER HEADER("[{\"vocab\": 4, \"eog\": []}]", "{\"verify\": {\"rule\": \"match\"}}")

/* The words of the round that edits name. */
enum {
    STEP = 2,
    N_POLICY = 17,
    LAW = 18,
    NODES = 19,
    TOKENS = 22,
    PARENTS = 24,
    QROWS = 26,
    PATH = 28,
    NEXT = 29,
    NODE_0 = 30,
    NODE_1 = 31,
    N_Q = 32,
    KIND_P = 33,
    COUNT_P = 34,
    ERROR_P = 35,
    KIND_Q = 41,
    ROUND = 45
};

/* A root and its child, drawn from row 0 of q and accepted; rows are points. `tail`: bytes too many behind the round. */
static trace good(const char *header, size_t tail)
{
    trace t = { .n = 0 };
    const int32_t head[2] = { WG_TRACE_VERSION, 0 }, request[] = { 7, 0, 0, 0, 0, 9, 2, 3, 1 };
    put_bytes(&t, WG_TRACE_MAGIC, 8);
    put_words(&t, head, 2);
    put_record(&t, 0, header, strlen(header), 0);
    put_record(&t, 1, request, sizeof request, 0);
    int32_t round[ROUND] = { [STEP] = 0,
                             2,
                             7,
                             1,
                             0,
                             [LAW] = WG_LAW_IID,
                             2,
                             [TOKENS] = 1,
                             2,
                             [PARENTS] = -1,
                             0,
                             [QROWS] = -1,
                             0,
                             [PATH] = 2,
                             3,
                             0,
                             1,
                             [N_Q] = 1,
                             [COUNT_P] = 2,
                             [COUNT_P + 4] = 3,
                             [KIND_Q + 1] = 2 };
    memcpy(round, &t.at[1], 8);
    put_record(&t, 2, round, sizeof round, tail);
    int32_t end[4] = { 0, 0, 2, WG_FINISH_LENGTH };
    memcpy(end, &t.at[1], 8);
    put_record(&t, 3, end, sizeof end, 0);
    return t;
}

static wg_trace *open_bytes(const trace *t, wg_error *err)
{
    wg_trace *out = NULL;
    FILE *f = fmemopen((void *)(uintptr_t)t->byte, t->n, "rb");
    cr_assert_not_null(f);
    return wg_trace_read(&out, "t", f, err) ? NULL : out;
}

static void refused(const trace *t, wg_status code, const char *says)
{
    wg_error err = { 0 };
    const size_t before = wg_mem_read().live_blocks;
    cr_assert_null(open_bytes(t, &err), "taken: %s", says);
    cr_assert_str_eq(err.text, says);
    cr_assert_eq(err.code, code, "%s", says);
    cr_assert_eq(wg_mem_read().live_blocks, before, "%s", says);
}

Test(trace_messages, the_whole_one_is_read)
{
    wg_error err = { 0 };
    trace t = good(GOOD_HEADER, 0);
    wg_trace *in = open_bytes(&t, &err);
    cr_assert(in, "%s", err.text);
    cr_assert(in->rounds == 1 && in->requests == 1 && in->request[0].ended && !*in->damage && in->end == t.n, "%s", in->damage);
    cr_assert_eq(in->request[0].n, 4);
    wg_trace_close(in);
}

Test(trace_messages, a_word_that_contradicts)
{
    static const struct {
        int record, word;
        int32_t value;
        const char *says;
    } cases[] = {
        { 1, 6, 3, "it is no request" },
        { 1, 6, 0, "it is no request" },
        { 1, 1, 1, "its request names a cell, group, prompt or limit that cannot be" },
        { 1, 2, -1, "its request names a cell, group, prompt or limit that cannot be" },
        { 1, 5, 2, "its request names a cell, group, prompt or limit that cannot be" },
        { 1, 8, V, "its prompt has a token outside the vocabulary" },
        { 2, 0, 5, "its round belongs to no request" },
        { 2, STEP, 1, "its round does not go on where the one before it ended" },
        { 2, N_POLICY, WG_TRACE_POLICY + 1, "its policy has too many numbers" },
        { 2, LAW, 3, "its siblings have a law that is not known" },
        { 2, NODES, 0, "its tree is cut" },
        { 2, NODES, 1000000, "its tree is cut" },
        { 2, TOKENS, 3, "its round does not go on where the one before it ended" },
        { 2, PARENTS + 1, 1, "a node comes before its parent" },
        { 2, PARENTS, 0, "a node comes before its parent" },
        { 2, QROWS + 1, 2, "a node is drawn from a row that is not there" },
        { 2, PATH, 3, "its path is none of its tree" },
        { 2, NEXT, V, "its path is none of its tree" },
        { 2, NODE_0, 1, "its path is none of its tree" },
        { 2, NODE_1, 0, "its path is none of its tree" },
        { 2, N_Q, 2, "it has too many rows of q" },
        { 2, N_Q, -1, "it has too many rows of q" },
        { 2, KIND_P, WG_ROW_KINDS, "it has a row of a kind that is not known" },
        { 2, KIND_Q, WG_ROW_LOGITS, "it has a row of a kind that is not known" },
        { 2, COUNT_P, V + 1, "it has a row of a kind that is not known" },
        { 2, KIND_Q, WG_ROW_DENSE, "a row is cut, or says an impossible error" },
        { 2, ERROR_P + 1, 0x40000000, "a row is cut, or says an impossible error" }, /* 2 */
        { 2, QROWS + 1, -1, "draft tree: node 1 of a tree with law iid has no q row; give the row it was drawn from" },
        { 3, 0, 5, "it is no end of a request" },
        { 3, 2, 3, "it ends a request otherwise than its rounds do" },
        { 3, 3, 0, "it ends a request otherwise than its rounds do" },
        { 3, -1, 9, "it is of a kind that this version does not know" },
        { 3, -1, WG_RECORD_HEADER, "the header must come first, and once" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char want[300];
        trace t = good(GOOD_HEADER, 0);
        const size_t at = t.at[cases[i].record];
        snprintf(want, sizeof want, "t: the record at byte %zu: %s", at, cases[i].says);
        memcpy(t.byte + at + 8 + 4 * cases[i].word, &cases[i].value, 4);
        seal(&t, at);
        refused(&t, WG_EFORMAT, want);
    }
}

Test(trace_messages, overlaps)
{
    static const double wrong[] = { -0.5, 1.5, NAN };
    char want[300];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        trace t = good(GOOD_HEADER, 0);
        const int32_t kind = WG_ROW_OVERLAP;
        memcpy(t.byte + t.at[2] + 8 + 4 * KIND_P, &kind, 4);
        memcpy(t.byte + t.at[2] + 8 + 4 * (ERROR_P + 2), &wrong[i], 8);
        seal(&t, t.at[2]);
        snprintf(want, sizeof want, "t: the record at byte %zu: the overlap of a row is outside 0..1", t.at[2]);
        refused(&t, WG_EFORMAT, want);
    }
    trace t = good(GOOD_HEADER, 0);
    const int32_t kind = WG_ROW_OVERLAP;
    memcpy(t.byte + t.at[2] + 8 + 4 * KIND_Q, &kind, 4);
    seal(&t, t.at[2]);
    snprintf(want, sizeof want, "t: the record at byte %zu: it has a row of a kind that is not known", t.at[2]);
    refused(&t, WG_EFORMAT, want);
}

Test(trace_messages, rounds_of_another_size)
{
    char want[300];
    trace t = good(GOOD_HEADER, 4);
    snprintf(want, sizeof want, "t: the record at byte %zu: it is longer than its round", t.at[2]);
    refused(&t, WG_EFORMAT, want);
    const int32_t nodes = WG_TREE_MAX + 1;
    t = good(GOOD_HEADER, 12 * (size_t)nodes);
    memcpy(t.byte + t.at[2] + 8 + 4 * NODES, &nodes, 4);
    seal(&t, t.at[2]);
    snprintf(want, sizeof want, "t: the record at byte %zu: a tree of %d nodes; this build takes %d (cmake -DWG_TREE_NODES)",
             t.at[2], (int)nodes, (int)WG_TREE_MAX);
    refused(&t, WG_EUNSUPPORTED, want);
}

Test(trace_messages, headers)
{
    static const struct {
        const char *header, *says;
    } cases[] = {
        { "[]", "t: its header is no JSON object with \"groups\" and \"cells\"" },
        { "{\"groups\": []}", "t: its header is no JSON object with \"groups\" and \"cells\"" },
        { HEADER("[{\"vocab\": 0, \"eog\": []}]", "{}"),
          "t: its header has a group without a vocabulary of 1..1048576 tokens, or without \"eog\"" },
        { HEADER("[{\"vocab\": 4}]", "{}"),
          "t: its header has a group without a vocabulary of 1..1048576 tokens, or without \"eog\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const trace t = good(cases[i].header, 0);
        refused(&t, WG_EFORMAT, cases[i].says);
    }
    trace t = good(GOOD_HEADER, 0);
    t.byte[8] = 9;
    refused(&t, WG_EFORMAT, "t: version 9 of the format; this program reads 1");
    t.byte[0] = 'W';
    refused(&t, WG_EFORMAT, "t: not a trace; expected the trace.wgt of a run with \"trace\": \"probs\"");
    t = good(GOOD_HEADER, 0);
    t.n = 16 + 20;
    char want[300];
    snprintf(want, sizeof want,
             "t: no whole header: the record at byte 16 says %zu bytes, but the file has 4 more; nothing in "
             "it can be used",
             strlen(GOOD_HEADER));
    refused(&t, WG_EFORMAT, want);
}

/* What the scan takes and a replay of it cannot. */
Test(trace_messages, cells_that_cannot_be_settled)
{
    static const struct {
        const char *header, *says;
    } cases[] = {
        { HEADER("[{\"vocab\": 4, \"eog\": []}]", "{}"), "t: cell 0: its config names no rule" },
        { "{\"groups\": [{\"vocab\": 4, \"eog\": []}], \"cells\": [{\"cell\": {}, \"group\": 1}]}",
          "t: cell 0 belongs to no group" },
    };
    wg_error err = { 0 };
    wg_replay *r = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const trace t = good(cases[i].header, 0);
        wg_trace *in = open_bytes(&t, &err);
        cr_assert(in, "%s", err.text);
        cr_assert_eq(wg_replay_open(&r, in, 0, -1, &err), WG_EFORMAT, "taken: %s", cases[i].says);
        cr_assert_str_eq(err.text, cases[i].says);
        wg_trace_close(in);
    }
    const int32_t prompt = 1 << 25;
    trace t = good(GOOD_HEADER, 0);
    memcpy(t.byte + t.at[1] + 8 + 4 * 3, &prompt, 4);
    seal(&t, t.at[1]);
    wg_trace *in = open_bytes(&t, &err);
    cr_assert_eq(wg_replay_open(&r, in, 0, -1, &err), WG_OK, "%s", err.text);
    wg_replayed replayed = { .rule = r->rule.class, .options = r->rule.options };
    cr_assert_eq(wg_replay_all(r, &replayed, 1, &err), WG_EFORMAT);
    cr_assert_str_eq(err.text, "t: a request of prompt 33554432");
    wg_replayed_free(&replayed);
    wg_replay_close(r);
    wg_trace_close(in);
}

/* Drawn from a row that has nothing for it. */
Test(trace_messages, a_token_that_cannot_be_drawn)
{
    wg_error err = { 0 };
    wg_replay *r = NULL;
    char want[200];
    trace t = good(GOOD_HEADER, 0);
    const int32_t other = 1;
    memcpy(t.byte + t.at[2] + 8 + 4 * (KIND_Q + 1), &other, 4);
    seal(&t, t.at[2]);
    wg_trace *in = open_bytes(&t, &err);
    cr_assert_eq(wg_replay_open(&r, in, 0, -1, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_replay_load(r, 0, &err), WG_EFORMAT);
    snprintf(want, sizeof want, "t: the record at byte %zu: node 1 is token 2, which its row of q cannot draw", t.at[2]);
    cr_assert_str_eq(err.text, want);
    wg_replay_close(r);
    wg_trace_close(in);
}

/* The file becomes another one while it is read. */
Test(trace_messages, files_that_change)
{
    temp dir;
    wg_error err = { 0 };
    wg_trace *in = NULL;
    wg_trace_round *round = wg_calloc(1, sizeof *round);
    char path[300], want[600];
    trace t = good(GOOD_HEADER, 0);
    temp_make(&dir);
    snprintf(path, sizeof path, "%s/t", dir.dir);
    file_write(path, (const char *)t.byte, t.n);
    cr_assert_eq(wg_trace_open(&in, path, &err), WG_OK, "%s", err.text);
    setvbuf(in->file, NULL, _IONBF, 0);
    cr_assert_eq(wg_trace_get(in, 0, round, &err), WG_OK, "%s", err.text);
    t.byte[t.at[2] + 4] = WG_RECORD_END;
    seal(&t, t.at[2]);
    file_write(path, (const char *)t.byte, t.n);
    cr_assert_eq(wg_trace_get(in, 0, round, &err), WG_EFORMAT);
    snprintf(want, sizeof want, "%s: the record at byte %zu: it was there before; the file changed", path, t.at[2]);
    cr_assert_str_eq(err.text, want);
    file_write(path, (const char *)t.byte, t.at[2] + 30);
    cr_assert_eq(wg_trace_get(in, 0, round, &err), WG_EIO);
    snprintf(want, sizeof want, "%s: cannot read at byte %zu: ", path, t.at[2]);
    cr_assert(!strncmp(err.text, want, strlen(want)), "%s", err.text);
    wg_trace_close(in);
    wg_free(round);
    unlink(path);
    rmdir(dir.dir);
    int end[2];
    cr_assert_eq(pipe(end), 0);
    close(end[1]);
    cr_assert_eq(wg_trace_read(&in, "pipe", fdopen(end[0], "rb"), &err), WG_EIO);
    cr_assert_str_eq(err.text, "pipe: cannot read: Illegal seek");
}

Test(trace_messages, rows_that_are_no_distributions)
{
    typedef struct list {
        int32_t token[2];
        double mass[2];
    } list;
    static const list outside = { { 1, V }, { 0.5, 0.5 } }, twice = { { 1, 1 }, { 0.5, 0.5 } },
                      negative = { { 0, 1 }, { -0.5, 1 } }, short_of = { { 0, 1 }, { 0.5, 0.4 } };
    static const double dense_negative[V] = { -1, 1, 1, 0 }, dense_short[V] = { 0.5, 0, 0, 0 };
    static const uint16_t nothing[V] = { 0 };
    typedef struct top {
        int32_t token;
        float mass;
        double rest;
    } top;
    typedef struct gap {
        uint64_t each;
        uint32_t more;
    } __attribute__((packed)) gap;
    typedef struct cut {
        int32_t token[2];
        double mass[2];
        gap gap[3];
    } __attribute__((packed)) cut;
    const uint64_t one = (uint64_t)1 << 52, half = one / 2; /* steps */
    const cut cut_good = { { 0, 2 }, { 0.5, 0.25 }, { { 0, 0 }, { half / 4, 0 }, { half / 4, 0 } } };
    cut cut_order = cut_good, cut_negative = cut_good, cut_empty = cut_good, cut_more = cut_good, cut_much = cut_good,
        cut_short = cut_good, cut_rest = cut_good;
    cut_order.token[1] = 0, cut_negative.mass[1] = -0.25, cut_empty.gap[0].each = 1, cut_rest.gap[0].more = 1;
    cut_more.gap[1].more = 1, cut_much.gap[1].each = one + 1, cut_short.gap[2].each = 0;
    static const top no_rest = { 1, 0.5F, -0.5 }, no_token = { V, 0.5F, 0.5 };
    const struct {
        int kind;
        uint32_t count;
        const void *data;
        const char *says;
    } cases[] = {
        { WG_ROW_CUT, 2, &cut_order, "its tokens are not ascending in the vocabulary" },
        { WG_ROW_CUT, 0, &cut_good, "its tokens are not ascending in the vocabulary" },
        { WG_ROW_CUT, 2, &cut_negative, "a probability is outside 0..1" },
        { WG_ROW_CUT, 2, &cut_empty, "a gap has more mass than its tokens can have" },
        { WG_ROW_CUT, 2, &cut_rest, "a gap has more mass than its tokens can have" },
        { WG_ROW_CUT, 2, &cut_more, "a gap has more mass than its tokens can have" },
        { WG_ROW_CUT, 2, &cut_much, "a gap has more mass than its tokens can have" },
        { WG_ROW_CUT, 2, &cut_short, "the probabilities do not sum to 1" },
        { WG_ROW_ONE_HOT, V, NULL, "its token is outside the vocabulary" },
        { WG_ROW_LIST, 2, &outside, "its tokens are not ascending in the vocabulary" },
        { WG_ROW_LIST, 2, &twice, "its tokens are not ascending in the vocabulary" },
        { WG_ROW_LIST, 2, &negative, "a probability is outside 0..1" },
        { WG_ROW_LIST, 2, &short_of, "the probabilities do not sum to 1" },
        { WG_ROW_DENSE, 0, dense_negative, "a probability is outside 0..1" },
        { WG_ROW_DENSE, 0, dense_short, "the probabilities do not sum to 1" },
        { WG_ROW_F16, 0, nothing, "all probabilities are 0" },
        { WG_ROW_TOP, 1, &no_rest, "the mass of the rest is outside 0..1" },
        { WG_ROW_TOP, 1, &no_token, "its tokens are not ascending in the vocabulary" },
        { WG_ROW_LOGITS, 0, NULL, "it is of a kind that is not known" },
    };
    wg_rows rows;
    wg_error err = { 0 };
    cr_assert_eq(wg_rows_open(&rows, 1, V, &err), WG_OK);
    wg_rows_push(&rows);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char want[200];
        const wg_trace_row row = { .kind = cases[i].kind, .count = cases[i].count, .data = cases[i].data };
        snprintf(want, sizeof want, "a row is no distribution: %s", cases[i].says);
        cr_assert_eq(wg_trace_row_read(&row, &rows, 0, &err), WG_EFORMAT, "taken: %s", cases[i].says);
        cr_assert_str_eq(err.text, want);
    }
    const wg_trace_row row = { .kind = WG_ROW_CUT, .count = 2, .data = (const unsigned char *)&cut_good };
    cr_assert_eq(wg_trace_row_read(&row, &rows, 0, &err), WG_OK, "%s", err.text);
    cr_assert(wg_rows_prob(&rows, 0, 0) == 0.5 && wg_rows_prob(&rows, 0, 1) == 0.125 && wg_rows_prob(&rows, 0, 3) == 0.125);
    wg_rows_close(&rows);
}

/* Rows of traces of earlier versions: the rest is distributed over the tokens that are not listed. */
Test(trace_messages, top_rows_of_earlier_versions)
{
    const struct {
        int32_t token;
        float mass;
        double rest;
    } __attribute__((packed)) top = { 2, 0.25F, 0.75 };
    const wg_trace_row row = { .kind = WG_ROW_TOP, .count = 1, .data = (const unsigned char *)&top };
    wg_rows rows;
    wg_error err = { 0 };
    cr_assert_eq(wg_rows_open(&rows, 1, V, &err), WG_OK);
    wg_rows_push(&rows);
    cr_assert_eq(wg_trace_row_read(&row, &rows, 0, &err), WG_OK, "%s", err.text);
    for (int x = 0; x < V; x++) cr_assert_eq(wg_rows_prob(&rows, 0, x), 0.25);
    wg_rows_close(&rows);
}
