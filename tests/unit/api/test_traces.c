/* SPDX-License-Identifier: MIT
 * Traces through the public header alone: what is recorded is read back, decisions included, and what cannot be replayed is
 * refused before a byte is written. */
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/temp.h"
#include "wager.h"

#define SAYS(err, part) cr_assert(strstr((err).text, part), "'%s' does not say '%s'", (err).text, part)
#define OK(call) cr_assert((call) == WG_OK, "%s", err.text)

enum { VOCAB = 3, END = 2 };
static const int32_t tokens[] = { 0, 1, 1 }, parents[] = { -1, 0, 1 }, qrows[] = { -1, 0, 1 }, ends[] = { END };
static const double p_rows[] = { 0.25, 0.5, 0.25, 0.125, 0.625, 0.25, 0.5, 0.25, 0.25 },
                    q_rows[] = { 0.5, 0.25, 0.25, 0, 1, 0 };
static const wg_draft draft = {
    .size = sizeof draft, .n = 3, .token = tokens, .parent = parents, .qrow = qrows, .q_rows = 2, .law = "iid", .score = 1.5
};
static const wg_recorded_round whole = { .size = sizeof whole,
                                         .draft = &draft,
                                         .n = 3,
                                         .node = (const int32_t[]){ 0, 1, 2 },
                                         .p = p_rows,
                                         .q = q_rows,
                                         .seconds = 0.5,
                                         .verify_seconds = 0.25,
                                         .batch = 2 };
static const wg_recorder_options options = { .size = sizeof options,
                                             .vocab = VOCAB,
                                             .eog = ends,
                                             .eogs = 1,
                                             .config = "{\"seed\": 7, \"draft\": {\"kind\": \"of theirs\"}}",
                                             .engine = "theirs 1.0" };
static const wg_recorded_request asked = {
    .size = sizeof asked, .token = (const int32_t[]){ 1, 0 }, .n = 2, .limit = 9, .address = 5
};

static temp folder;
static void make(void) { temp_make(&folder); }
static void remove_all(void) { temp_remove(&folder); }
TestSuite(traces, .init = make, .fini = remove_all);

static const char *file(void) { return temp_at(&folder, "trace.wgt"); }

static wg_recorder *begin(const char *path)
{
    wg_error err;
    wg_recorder *r = NULL;
    int number = -1;
    OK(wg_recorder_open(&r, path, &options, &err));
    OK(wg_recorder_request(r, &asked, &number, &err));
    cr_assert(number == 0);
    return r;
}

Test(traces, what_is_recorded_is_read)
{
    wg_error err;
    wg_recorder *r = begin(file());
    wg_recorded_round o = whole;
    wg_end end;
    int other, n;
    OK(wg_recorder_request(r, &(wg_recorded_request){ .size = sizeof asked, .token = tokens, .n = 1, .limit = 3, .prompt = 1 },
                           &other, &err));
    OK(wg_recorder_round(r, &o, &n, &end, &err)); /* 1 1 0 */
    cr_assert(end == WG_END_NOT && other == 1 && n == 3);
    o.n = 1, o.next = END;
    OK(wg_recorder_round(r, &o, &n, &end, &err));
    cr_assert(end == WG_END_EOS);
    o.request = 1, o.n = 3, o.next = 0; /* room for two tokens: the second is `next` */
    OK(wg_recorder_round(r, &o, &n, &end, &err));
    cr_assert(end == WG_END_LENGTH && n == 2);
    OK(wg_recorder_end(r, 0, &err));
    OK(wg_recorder_end(r, 1, &err));
    OK(wg_recorder_close(r, &err));

    wg_recording *t = NULL;
    wg_recording_about a = { .size = sizeof a };
    wg_recorded_request q = { .size = sizeof q };
    wg_recorded_round got = { .size = sizeof got };
    double p[9], row[6], off = -1;
    OK(wg_recording_open(&t, file(), &err));
    OK(wg_recording_about_get(t, &a, &err));
    cr_assert(a.requests == 2 && a.rounds == 3 && !*a.damage);
    cr_assert(strstr(a.header, "\"rule\":\"match\"") || strstr(a.header, "\"rule\":\"rejection\""), "%s", a.header);
    cr_assert(strstr(a.header, "\"seed\":7") && strstr(a.header, "of theirs") && strstr(a.header, "theirs 1.0"), "%s",
              a.header);
    OK(wg_recording_request(t, 0, &q, &err));
    cr_assert(q.n == 6 && q.prompt_tokens == 2 && q.address == 5 && q.limit == 9 && q.rounds == 2 && q.ended &&
              q.vocab == VOCAB);
    cr_assert(!memcmp(q.token, (const int32_t[]){ 1, 0, 1, 1, 0, END }, sizeof *q.token * 6));
    OK(wg_recording_round(t, 0, &got, &err));
    cr_assert(got.request == 0 && got.n == 3 && got.next == 0 && got.position == 2 && got.step == 0 && got.batch == 2);
    cr_assert(got.seconds == 0.5 && got.verify_seconds == 0.25 && got.end == WG_END_NOT && !got.p);
    cr_assert(got.draft->n == 3 && got.draft->q_rows == 2 && !strcmp(got.draft->law, "iid"));
    cr_assert(!memcmp(got.draft->token, tokens, sizeof tokens) && !memcmp(got.draft->parent, parents, sizeof parents));
    cr_assert(!memcmp(got.draft->qrow, qrows, sizeof qrows) && got.draft->score == 1.5);
    OK(wg_recording_rows(t, 0, p, row, &off, &err));
    cr_assert(!memcmp(p, p_rows, sizeof p) && !memcmp(row, q_rows, sizeof row) && off == 0);
    OK(wg_recording_round(t, 2, &got, &err));
    cr_assert(got.request == 1 && got.n == 2 && got.next == 1 && got.end == WG_END_LENGTH, "cut at the limit");
    cr_assert(wg_recording_round(t, 3, &got, &err) == WG_EINVAL);
    SAYS(err, "round 3; the trace has 3");
    cr_assert(wg_recording_request(t, -1, &q, &err) == WG_EINVAL);
    SAYS(err, "request -1; the trace has 2");
    wg_recording_close(t);
}

/* Compact rows say how far they are from the true ones. */
Test(traces, compact_rows_have_their_error)
{
    wg_error err;
    wg_recorder *r = NULL;
    wg_recording *t = NULL;
    wg_recorder_options o = options;
    static const double given[] = { 0.3, 0.5, 0.2, 0.1, 0.7, 0.2, 0.3, 0.3, 0.4 };
    wg_recorded_round x = whole;
    double p[9], off = -1, far = 0;
    int number;
    o.rows = "f16", x.p = given;
    OK(wg_recorder_open(&r, file(), &o, &err));
    OK(wg_recorder_request(r, &asked, &number, &err));
    OK(wg_recorder_round(r, &x, NULL, NULL, &err));
    OK(wg_recorder_close(r, &err)); /* without an end */
    OK(wg_recording_open(&t, file(), &err));
    OK(wg_recording_rows(t, 0, p, NULL, &off, &err));
    for (int i = 0; i < VOCAB; i++) far += fabs(p[3 + i] - given[3 + i]) / 2;
    cr_assert(off > 0 && far > 0 && far <= off + 1e-9, "%g, said %g", far, off);
    wg_recording_close(t);
}

/* A cut row is exact where no gap has two tokens. */
Test(traces, cut_rows)
{
    wg_error err;
    wg_recorder *r = NULL;
    wg_recording *t = NULL;
    wg_recorder_options o = options;
    wg_recording_about about = { .size = sizeof about };
    double p[9], off = -1;
    int number;
    o.rows = "top", o.top = 1;
    OK(wg_recorder_open(&r, file(), &o, &err));
    OK(wg_recorder_request(r, &asked, &number, &err));
    OK(wg_recorder_round(r, &whole, NULL, NULL, &err));
    OK(wg_recorder_close(r, &err));
    OK(wg_recording_open(&t, file(), &err));
    OK(wg_recording_about_get(t, &about, &err));
    cr_assert(strstr(about.header, "\"replays\":") && strstr(about.header, "\"trees\":[\"greedy\",\"match\",\"topk\"]"), "%s",
              about.header);
    OK(wg_recording_rows(t, 0, p, NULL, &off, &err));
    cr_assert(off == 0 && !memcmp(p, p_rows, sizeof p));
    wg_recording_close(t);
}

static void refused(wg_recorder *r, const wg_recorded_round *o, const char *part)
{
    wg_error err = { .text = "" };
    wg_end end = (wg_end)7;
    cr_assert(wg_recorder_round(r, o, NULL, &end, &err) == WG_EINVAL && end == (wg_end)7, "%s", err.text);
    SAYS(err, part);
}

Test(traces, rounds_that_are_refused)
{
    wg_error err;
    wg_recorder *r = begin(file());
    wg_recorded_round o = whole;
    wg_draft d = draft;
    o.n = 4;
    refused(r, &o, "4 accepted nodes and the token 0 are no path of the tree: expected node 0, then a child");
    o = whole, o.request = 1;
    refused(r, &o, "request 1; the trace has 1");
    o = whole, o.p = NULL;
    refused(r, &o, "wg_recorded_round: p is NULL");
    o = whole, o.p = (const double[]){ 0.2501, 0.5, 0.25, 0.125, 0.625, 0.25, 0.5, 0.25, 0.25 };
    refused(r, &o, "row 0 of p sums to 1.0001; a trace needs 1 within 1e-06: normalise it in double");
    o = whole, o.q = (const double[]){ 0.5, 0.25, 0.25, 1, 0, 0 };
    refused(r, &o, "node 2 is token 1, which row 1 of q cannot draw");
    d.token = (const int32_t[]){ 1, 1, 1 };
    o = whole, o.draft = &d;
    refused(r, &o, "the tree's node 0 is token 1; the text of request 0 ends with 0");
    d = draft, d.parent = (const int32_t[]){ -1, 0, 2 };
    refused(r, &o, "the parent of node 2 is 2");
    o = whole, o.n = 1, o.next = END;
    OK(wg_recorder_round(r, &o, NULL, NULL, &err));
    refused(r, &o, "the text of request 0 has ended");
    OK(wg_recorder_end(r, 0, &err));
    refused(r, &o, "request 0 has ended");
    cr_assert(wg_recorder_end(r, 0, &err) == WG_EINVAL);
    OK(wg_recorder_close(r, &err));
    wg_recording *t = NULL;
    wg_recording_about a = { .size = sizeof a };
    OK(wg_recording_open(&t, file(), &err));
    OK(wg_recording_about_get(t, &a, &err));
    cr_assert(a.rounds == 1 && !*a.damage, "what was refused left nothing: %s", a.damage);
    wg_recording_close(t);
}

static void not_opened(const wg_recorder_options *o, wg_status code, const char *part)
{
    wg_error err = { .text = "" };
    wg_recorder *r = NULL;
    cr_assert(wg_recorder_open(&r, file(), o, &err) == code && !r, "%s", err.text);
    SAYS(err, part);
    cr_assert(access(file(), F_OK) != 0, "no file is made");
}

Test(traces, options_that_are_refused)
{
    wg_recorder_options o = options;
    o.vocab = 0;
    not_opened(&o, WG_EINVAL, "wg_recorder_options: a vocabulary of 0 tokens; expected 1..1048576");
    o = options, o.eogs = 4;
    not_opened(&o, WG_EINVAL, "wg_recorder_options: 4 tokens that end a text, of 3");
    o = options, o.eog = (const int32_t[]){ 3 };
    not_opened(&o, WG_EINVAL, "wg_recorder_options: eog[0] is 3; the vocabulary is 0..2");
    o = options, o.rows = "all";
    not_opened(&o, WG_EINVAL, "wg_recorder_options: rows \"all\"; expected exact, f16 or top");
    o = options, o.top = -1;
    not_opened(&o, WG_EINVAL, "wg_recorder_options: top is -1; expected 0 or more");
    o = options, o.config = "[]";
    not_opened(&o, WG_ECONFIG, "config: expected a JSON object, such as {\"seed\": 1, \"verify\"");
    o = options, o.config = "{\"verify\": {\"rule\": \"rejektion\"}}";
    not_opened(&o, WG_ECONFIG, "did you mean \"rejection\"?");
}

Test(traces, files_and_requests_that_are_refused)
{
    wg_error err;
    wg_recorder *r = NULL;
    wg_recording *t = NULL;
    int number;
    wg_recorder_options o = options;
    o.engine = "\xff";
    cr_assert(wg_recorder_open(&r, file(), &o, &err) == WG_EINVAL && !r);
    SAYS(err, "wg_recorder_options: engine is not text in UTF-8");
    cr_assert(wg_recorder_open(&r, "no/such/folder/x.wgt", &options, &err) == WG_EIO && !r);
    SAYS(err, "no/such/folder/x.wgt: cannot write: No such file");
    cr_assert(wg_recorder_open(&r, "/dev/full", &options, &err) == WG_EIO && !r);
    SAYS(err, "/dev/full: cannot write at byte 0: No space left");
    cr_assert(wg_recording_open(&t, "tests/CMakeLists.txt", &err) == WG_EFORMAT && !t);
    r = begin(file());
    wg_recorded_request q = asked;
    q.limit = 2;
    cr_assert(wg_recorder_request(r, &q, &number, &err) == WG_EINVAL);
    SAYS(err, "a request of 2 tokens with the limit 2; expected 1 or more, and a limit above them");
    q = asked, q.prompt = 1 << 24;
    cr_assert(wg_recorder_request(r, &q, &number, &err) == WG_EINVAL);
    SAYS(err, "prompt 16777216, repeat 0; expected 0..16777215, and 0 or more");
    q = asked, q.token = (const int32_t[]){ 0, 3 };
    cr_assert(wg_recorder_request(r, &q, &number, &err) == WG_EINVAL);
    SAYS(err, "prompt token 1 is 3; the vocabulary is 0..2");
    OK(wg_recorder_close(r, &err));
    OK(wg_recorder_close(NULL, &err));
}

/* A write that fails in its middle leaves the rounds before it, and no piece of its own. */
Test(traces, a_full_disk_leaves_whole_records)
{
    wg_error err;
    wg_recorder *r = begin(file());
    wg_recording *t = NULL;
    wg_recording_about a = { .size = sizeof a };
    OK(wg_recorder_round(r, &whole, NULL, NULL, &err));
    size_t size = 0;
    free(file_read(file(), &size));
    const struct rlimit most = { size + 100, RLIM_INFINITY };
    signal(SIGXFSZ, SIG_IGN);
    cr_assert(setrlimit(RLIMIT_FSIZE, &most) == 0);
    cr_assert(wg_recorder_round(r, &whole, NULL, NULL, &err) == WG_EIO);
    SAYS(err, "trace.wgt: cannot write at byte ");
    cr_assert(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }) == 0);
    OK(wg_recording_open(&t, file(), &err));
    OK(wg_recording_about_get(t, &a, &err));
    cr_assert(a.rounds == 1 && !*a.damage, "%s", a.damage);
    wg_recording_close(t);
    OK(wg_recorder_round(r, &whole, NULL, NULL, &err)); /* nothing has changed: the next call goes on */
    OK(wg_recorder_close(r, &err));
    OK(wg_recording_open(&t, file(), &err));
    OK(wg_recording_about_get(t, &a, &err));
    cr_assert(a.rounds == 2 && !*a.damage, "%s", a.damage);
    wg_recording_close(t);
}

Test(traces, ten_thousand_lives_leak_nothing)
{
    wg_error err;
    for (int i = 0; i < 10000; i++) {
        wg_recorder *r = NULL;
        wg_recording *t = NULL;
        int number;
        OK(wg_recorder_open(&r, file(), &options, &err));
        if (i % 3 == 0) OK(wg_recorder_request(r, &asked, &number, &err));
        if (i % 6 == 0) OK(wg_recorder_round(r, &whole, NULL, NULL, &err));
        OK(wg_recorder_close(r, &err));
        if (i % 2) continue;
        OK(wg_recording_open(&t, file(), &err));
        if (i % 6 == 0) OK(wg_recording_rows(t, 0, NULL, NULL, NULL, &err));
        wg_recording_close(t);
    }
}
