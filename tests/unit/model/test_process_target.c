/* SPDX-License-Identifier: MIT
 * Programs as targets: one that answers, and ones that hang, die, or answer anything else. Each fault fails one pass with a
 * message; the next pass starts the program again, and no process is left. */
#include "core/model/external/process_target.h"
#include "core/model/taps.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { V = 40, CONTEXT = 500, LAYERS = 2, DIM = 4 };

static void expect_no_child(void) { cr_assert(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "a child is left"); }

static wg_status open_peer(wg_lm **lm, const char *arguments, int timeout_ms, wg_error *err)
{
    char command[1000];
    snprintf(command, sizeof command, "exec '%s' %s", ROW_PEER, arguments);
    const wg_process_target o = { .command = command, .timeout_ms = timeout_ms, .start_ms = timeout_ms };
    return wg_process_target_open(lm, &o, err);
}

/* A pass of three tokens, of which the last two have logits; nothing stays in the cache. taps may be NULL. */
static wg_status pass_with(wg_lm *lm, wg_kv_seq *s, float *logits, wg_taps *taps, wg_error *err)
{
    static const int32_t token[] = { 3, 1, 4 };
    wg_batch b;
    cr_assert(!wg_batch_open(&b, 8, NULL) && !wg_kv_reserve(s, 3, NULL));
    wg_batch_chain(&b, s, 0, token, 3, 2);
    b.taps = taps;
    const wg_status status = wg_lm_forward(lm, &b, logits, err);
    wg_kv_rollback(s);
    wg_batch_close(&b);
    return status;
}

static wg_status pass(wg_lm *lm, wg_kv_seq *s, float *logits, wg_error *err) { return pass_with(lm, s, logits, NULL, err); }

static void expect_rows(const float *logits)
{
    for (int k = 0; k < V; k++) {
        cr_assert_eq(logits[k], (float)((1 * 31 + 1 * 7 + k * 5) % 13));
        cr_assert_eq(logits[V + k], (float)((4 * 31 + 2 * 7 + k * 5) % 13));
    }
}

typedef struct bench {
    wg_lm *lm;
    wg_kv *kv;
    wg_kv_seq *s;
} bench;

static void start(bench *b)
{
    cr_assert(!wg_kv_open(&b->kv, 16, 10, 100, NULL) && !wg_lm_attach(b->lm, b->kv, NULL) &&
              !wg_kv_seq_open(b->kv, &b->s, NULL));
}

static void stop(bench *b)
{
    wg_kv_seq_close(b->s);
    wg_kv_close(b->kv);
    b->lm->class->close(b->lm);
    expect_no_child();
}

Test(process_target, an_honest_program_answers)
{
    float logits[2 * V];
    wg_error err;
    bench b;
    cr_assert_eq(open_peer(&b.lm, "none", 20000, &err), WG_OK, "%s", err.text);
    cr_assert(b.lm->vocab == V && b.lm->context == CONTEXT && b.lm->class->law_only);
    start(&b);
    for (int i = 0; i < 3; i++) {
        memset(logits, 0, sizeof logits);
        cr_assert_eq(pass(b.lm, b.s, logits, &err), WG_OK, "%s", err.text);
        expect_rows(logits);
    }
    stop(&b);
}

typedef struct fault {
    const char *arguments, *says;
    int timeout_ms;
    wg_status status;
} fault;

/* In the first answer: the target does not open. */
Test(process_target, faults_of_the_start)
{
    static const fault bad[] = {
        { "deaf -1", "did not answer within 200 ms (option start_ms)", 200, WG_EIO },
        { "hang -1", "did not answer within 200 ms (option start_ms)", 200, WG_EIO },
        { "exit -1", "ended with status 7 before it answered", 20000, WG_EIO },
        { "crash -1", "was ended by signal 9 (Killed) or closed its output before it answered", 20000, WG_EIO },
        { "cut -1", "ended with status 0 before it answered", 20000, WG_EIO },
        { "print -1", "an answer begins with the word 0x64616f6c; expected 0x53574f52 (does the program print to its standard",
          20000, WG_EFORMAT },
        { "magic -1", "an answer begins with the word 0x53574f53; expected 0x53574f52", 20000, WG_EFORMAT },
        { "kind -1", "an answer of kind 9; expected 1, the request's, or 4", 20000, WG_EFORMAT },
        { "serial -1", "an answer to request 0; expected one to request 1", 20000, WG_EFORMAT },
        { "words -1", "an answer of 1073741824 words; expected 0..1024", 20000, WG_EFORMAT },
        { "minus -1", "an answer of -1 words; expected 0..1024", 20000, WG_EFORMAT },
        { "fail -1", "it says: out of ?luck", 20000, WG_EIO },
        { "version -1", "the program speaks version 2 of the row protocol; expected 1", 20000, WG_EFORMAT },
        { "vocabulary -1", "a vocabulary of 1073741824 and a context of 500 tokens; expected 1..16777216 and 2..16777216",
          20000, WG_EFORMAT },
        { "context -1", "a vocabulary of 40 and a context of -5 tokens; expected", 20000, WG_EFORMAT },
        { "width -1", "hidden states of 3 layers and 0 numbers; expected 1..4096 and 1..1048576, or 0 and 0: there are none",
          20000, WG_EFORMAT },
        { "'short hello' -1", "an answer to HELLO of 4 words; expected 5: version, vocabulary, context, layers, width", 20000,
          WG_EFORMAT },
        { "open -1", "an answer to OPEN of 1 words; expected none", 20000, WG_EFORMAT },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wg_error err = { 0 };
        wg_lm *lm;
        const wg_status s = open_peer(&lm, bad[i].arguments, bad[i].timeout_ms, &err);
        cr_assert_eq(s, bad[i].status, "%s: %s: %s", bad[i].arguments, wg_status_name(s), err.text);
        cr_assert(strstr(err.text, bad[i].says) && !strncmp(err.text, "target process: ", 16), "%s: %s", bad[i].arguments,
                  err.text);
        expect_no_child();
    }
}

/* After one good pass: the second fails, the third is that of a new program and as good as the first. */
Test(process_target, faults_cost_the_pass_and_not_the_run)
{
    static const fault bad[] = {
        { "hang 1", "did not answer within 300 ms (option timeout_ms)", 300, WG_EIO },
        { "half 1", "did not answer within 300 ms (option timeout_ms)", 300, WG_EIO },
        { "exit 1", "ended with status 7 before it answered", 20000, WG_EIO },
        { "crash 1", "was ended by signal 9", 20000, WG_EIO },
        { "cut 1", "ended with status 0 before it answered", 20000, WG_EIO },
        { "magic 1", "an answer begins with the word", 20000, WG_EFORMAT },
        { "serial 1", "an answer to request 3; expected one to request 4", 20000, WG_EFORMAT },
        { "fail 1", "it says: out of ?luck", 20000, WG_EIO },
        { "count 1", "3 rows of logits and 0 of taps; 2 and 0 were asked", 20000, WG_EFORMAT },
        { "many 1", "1073741824 rows of logits and 0 of taps; 2 and 0 were asked", 20000, WG_EFORMAT },
        { "taps 1", "2 rows of logits and 1 of taps; 2 and 0 were asked", 20000, WG_EFORMAT },
        { "answer 1", "an answer to ASK of 3 words; expected 2: rows of logits, rows of taps", 20000, WG_EFORMAT },
        { "nan 1", "row 0 of logits has nan at 39; expected finite numbers", 20000, WG_EFORMAT },
        { "infinity 1", "row 0 of logits has -inf at 3; expected finite numbers", 20000, WG_EFORMAT },
        { "shrink 1", "the shared memory ends before 2 rows of logits; the program made it shorter", 20000, WG_EFORMAT },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wg_error err = { 0 };
        bench b;
        cr_assert_eq(open_peer(&b.lm, bad[i].arguments, bad[i].timeout_ms, &err), WG_OK, "%s: %s", bad[i].arguments, err.text);
        start(&b);
        for (int k = 0; k < 3; k++) {
            float logits[2 * V] = { 0 };
            const wg_status s = pass(b.lm, b.s, logits, &err);
            cr_assert_eq(s, k == 1 ? bad[i].status : WG_OK, "%s, pass %d: %s: %s", bad[i].arguments, k, wg_status_name(s),
                         s ? err.text : "");
            if (k == 1) cr_assert(strstr(err.text, bad[i].says), "%s: %s", bad[i].arguments, err.text);
            else expect_rows(logits);
        }
        stop(&b);
    }
}

/* ---- hidden states */

/* Of a pass's three rows. */
static void expect_states(const wg_taps *t, const int *tap, int n)
{
    static const int token[] = { 3, 1, 4 };
    float x[3 * 2 * DIM];
    cr_assert(wg_taps_rows(t) == 3 && wg_taps_count(t) == n && wg_taps_dim(t) == DIM && !wg_taps_read(t, 0, 3, x, NULL));
    for (int r = 0; r < 3; r++)
        for (int k = 0; k < n * DIM; k++)
            cr_assert_eq(x[r * n * DIM + k], (float)((token[r] * 31 + r * 7 + tap[k / DIM] * 3 + k % DIM) % 11));
}

/* Lists that change from pass to pass: the program is told of each. */
Test(process_target, hidden_states)
{
    static const int few[] = { 1 }, more[] = { 3, 0 }, wrong[] = { 4 };
    float logits[2 * V];
    wg_error err;
    wg_taps *a, *c;
    bench b;
    cr_assert_eq(open_peer(&b.lm, "none", 20000, &err), WG_OK, "%s", err.text);
    start(&b);
    cr_assert_eq(wg_taps_open(&a, b.lm, wrong, 1, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "tap 4: a model of 2 layers has taps 0"), "%s", err.text);
    cr_assert(!wg_taps_open(&a, b.lm, few, 1, &err) && !wg_taps_open(&c, b.lm, more, 2, &err));
    for (int i = 0; i < 9; i++) {
        wg_taps *t = i % 3 == 0 ? NULL : i % 2 ? a : c;
        memset(logits, 0, sizeof logits);
        cr_assert_eq(pass_with(b.lm, b.s, logits, t, &err), WG_OK, "%s", err.text);
        expect_rows(logits);
        if (t) expect_states(t, t == a ? few : more, t == a ? 1 : 2);
    }
    wg_taps_close(a);
    wg_taps_close(c);
    stop(&b);
}

/* The second pass wants others than the first and fails; the third is that of a new program, which is told of them at once. */
Test(process_target, faults_of_hidden_states)
{
    static const fault bad[] = {
        { "taps 1", "2 rows of logits and 4 of taps; 2 and 3 were asked", 20000, WG_EFORMAT },
        { "'nan state' 1", "row 1 of hidden states has nan at 7; expected finite numbers", 20000, WG_EFORMAT },
        { "'shrink states' 1", "the shared memory ends before 3 rows of hidden states; the program made it shorter", 20000,
          WG_EFORMAT },
        { "reopen", "an answer to OPEN of 1 words; expected none", 20000, WG_EFORMAT },
        { "exit 1", "ended with status 7 before it answered", 20000, WG_EIO },
    };
    static const int few[] = { 1 }, more[] = { 3, 0 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const bool reopens = !strcmp(bad[i].arguments, "reopen");
        wg_error err = { 0 };
        wg_taps *first, *then;
        bench b;
        cr_assert_eq(open_peer(&b.lm, bad[i].arguments, bad[i].timeout_ms, &err), WG_OK, "%s: %s", bad[i].arguments, err.text);
        start(&b);
        cr_assert(!wg_taps_open(&first, b.lm, few, 1, &err) && !wg_taps_open(&then, b.lm, more, 2, &err));
        for (int k = 0; k < 3; k++) {
            float logits[2 * V] = { 0 };
            wg_taps *t = k ? then : reopens ? NULL : first;
            const wg_status s = pass_with(b.lm, b.s, logits, t, &err);
            cr_assert_eq(s, k == 1 ? bad[i].status : WG_OK, "%s, pass %d: %s: %s", bad[i].arguments, k, wg_status_name(s),
                         s ? err.text : "");
            if (k == 1) {
                cr_assert(strstr(err.text, bad[i].says), "%s: %s", bad[i].arguments, err.text);
                cr_assert_eq(wg_taps_rows(then), 0);
                continue;
            }
            expect_rows(logits);
            if (t) expect_states(t, k ? more : few, k ? 2 : 1);
        }
        wg_taps_close(first);
        wg_taps_close(then);
        stop(&b);
    }
}

Test(process_target, a_program_without_hidden_states)
{
    static const int tap[] = { 0 };
    wg_error err;
    wg_taps *t;
    wg_lm *lm;
    cr_assert_eq(open_peer(&lm, "stateless -1", 20000, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_taps_open(&t, lm, tap, 1, &err), WG_EUNSUPPORTED);
    cr_assert_str_eq(err.text,
                     "the target gives no hidden states (it is: external); expected a transformer of this program, or "
                     "a process that says how many layers it has");
    lm->class->close(lm);
    expect_no_child();
}

Test(process_target, what_is_not_started)
{
    wg_error err;
    wg_lm *lm;
    const wg_process_target none = { .command = "exec /nowhere/no-such-program 2>/dev/null",
                                     .timeout_ms = 9000,
                                     .start_ms = 9000 };
    cr_assert_eq(wg_process_target_open(&lm, &none, &err), WG_EIO);
    cr_assert_str_eq(err.text,
                     "target process: the program 'exec /nowhere/no-such-program 2>/dev/null' ended with status 127 before "
                     "it answered (no such command?)");
    expect_no_child();
}
