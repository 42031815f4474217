/* SPDX-License-Identifier: MIT
 * Programs as drafters: the example, and programs that hang, exit, or write something else. After each the engine continues,
 * and no process is left. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/draft/composed.h"

enum { V = 40 };

static void open_all(void) { open_target(V); }
TestSuite(process, .init = open_all, .fini = close_target);

static const int32_t prompt[] = { 1, 2, 3, 1, 2, 4, 1 };

static void expect_no_child(void) { cr_assert(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "a child is left"); }

static wg_engine *engine(const char *options, int batch)
{
    const law_setup setup = { .target = &target, .drafter = "process", .options = options, .rule = "match", .batch = batch };
    return law_engine(&setup);
}

Test(process, the_example_decodes_as_without_it)
{
    const law_request r[] = { { prompt, 7, 60 }, { prompt + 1, 6, 30 }, { prompt + 3, 4, 45 } };
    law_output plain[3] = { 0 }, got[3] = { 0 };
    for (int batch = 1; batch <= 3; batch += 2) {
        wg_counts counts = { 0 };
        law_setup setup = {
            .target = &target, .drafter = "none", .rule = "match", .sampling = WG_SAMPLING(1, 4, 1, 0), .batch = batch
        };
        law_decode(&setup, r, 3, plain, &counts);
        setup.drafter = "process";
        setup.options = "command=python3 examples/process-drafter/bigram.py 3,timeout_ms=60000";
        counts = (wg_counts){ 0 };
        law_decode(&setup, r, 3, got, &counts);
        cr_assert_eq(law_compare("process", plain, got, 3), 0);
        cr_assert_gt(counts.drafted, 50);
        cr_assert_gt(counts.accepted, 0);
        law_free(plain, 3);
        law_free(got, 3);
    }
    expect_no_child();
}

/* The tree of the first step of a fresh sequence; the status of the step. */
static wg_status first_step(wg_engine *e, wg_tree *tree, wg_error *out)
{
    wg_seq *s;
    wg_error err = { 0 };
    LAW_TRY(wg_seq_open(e, &s, 5, prompt, 7, 30, &err));
    const wg_status status = wg_engine_step(e, &s, 1, &err);
    *out = err;
    *tree = wg_engine_last_step(e).tree[0];
    if (status) cr_assert(s->n == 7 && wg_kv_tail(s->kv) == 0 && wg_kv_len(s->kv) <= 6);
    wg_seq_close(e, s);
    return status;
}

static wg_engine *script_engine(const char *name, const char *script, int timeout_ms)
{
    char options[1200];
    const char *path = temp_at(&folder, name);
    file_write(path, script, strlen(script));
    snprintf(options, sizeof options, "command=exec sh %s,timeout_ms=%d", path, timeout_ms);
    return engine(options, 1);
}

Test(process, what_is_sent_and_what_trees_mean)
{
    wg_error err;
    wg_tree t;
    char script[2000], *log;
    snprintf(script, sizeof script,
             "while read l; do echo \"$l\" >>%s; echo ' { \"parents\" : [-1, 0,-1] , \"tokens\":[ 9,8, 7 ]} '; done\n",
             temp_at(&folder, "log"));
    wg_engine *e = script_engine("tree.sh", script, 20000);
    cr_assert_eq(first_step(e, &t, &err), WG_OK, "%s", err.text);
    cr_assert(t.n == 4 && t.parent[1] == 0 && t.parent[2] == 1 && t.parent[3] == 0);
    cr_assert(t.token[1] == 9 && t.token[2] == 8 && t.token[3] == 7 && t.law == WG_LAW_FIXED);
    wg_engine_close(e); /* gives the program time to read the last line */
    expect_no_child();
    log = file_read(temp_at(&folder, "log"), NULL);
    char want[200];
    snprintf(want, sizeof want, "{\"request\":5,\"room\":29,\"nodes\":%d,\"tokens\":[1,2,3,1,2,4,1]}\n{\"forget\":5}\n",
             WG_TREE_MAX - 1);
    cr_assert(log && strcmp(log, want) == 0, "%s", log ? log : "nothing was sent");
    free(log);
}

Test(process, a_long_text_is_sent_in_parts)
{
    static int32_t text[90];
    wg_error err;
    for (int i = 0; i < 90; i++) text[i] = i % V;
    wg_engine *e = engine("command=python3 examples/process-drafter/bigram.py,timeout_ms=60000", 1);
    wg_seq *s;
    LAW_TRY(wg_seq_open(e, &s, 1, text, 90, 5, &err));
    while (s->finish == WG_RUNNING) LAW_TRY(wg_engine_step(e, &s, 1, &err));
    wg_seq_close(e, s);
    wg_engine_close(e);
    expect_no_child();
}

/* Each ends the step with a message; the next step starts the program again, and nothing is left behind. */
Test(process, faults_cost_the_request_and_not_the_run)
{
    const struct {
        const char *name, *script, *says;
        int timeout_ms;
        wg_status status;
    } bad[] = {
        { "hang.sh", "while read l; do sleep 1000; done\n", "did not answer within 200 ms (option timeout_ms)", 200, WG_EIO },
        { "deaf.sh", "sleep 1000\n", "did not answer within 200 ms", 200, WG_EIO },
        { "half.sh", "read l; printf '{\"tokens\":[1'; sleep 1000\n", "did not answer within 200 ms", 200, WG_EIO },
        { "end.sh", "read l; exit 3\n", "ended with status 3 before it answered", 20000, WG_EIO },
        { "gone.sh", "exit 0\n", "ended with status 0 before it answered", 20000, WG_EIO },
        { "none.sh", "exec 2>/dev/null; exec /nowhere/no-such-program\n",
          "ended with status 127 before it answered (no such command?)", 20000, WG_EIO },
        { "crash.sh", "read l; kill -KILL $$\n", "was ended by signal 9 (Killed) or closed its output before it answered",
          20000, WG_EIO },
        { "closed.sh", "exec >&-; sleep 1000\n", "closed its output before it answered", 20000, WG_EIO },
        { "words.sh", "while read l; do echo hello; done\n", "answered 'hello'; expected {\"tokens\":[...]}", 20000,
          WG_EFORMAT },
        { "key.sh", "while read l; do echo '{\"token\":[1]}'; done\n", "expected {\"tokens\":[...]}", 20000, WG_EFORMAT },
        { "twice.sh", "while read l; do echo '{\"tokens\":[1],\"tokens\":[1]}'; done\n", "expected {", 20000, WG_EFORMAT },
        { "comma.sh", "while read l; do echo '{\"tokens\":[1,]}'; done\n", "expected {", 20000, WG_EFORMAT },
        { "real.sh", "while read l; do echo '{\"tokens\":[1.5]}'; done\n", "expected {", 20000, WG_EFORMAT },
        { "tail.sh", "while read l; do echo '{\"tokens\":[1]} x'; done\n", "expected {", 20000, WG_EFORMAT },
        { "range.sh", "while read l; do echo '{\"tokens\":[1,40]}'; done\n", "proposed token 40; the vocabulary is 0..39",
          20000, WG_EFORMAT },
        { "minus.sh", "while read l; do echo '{\"tokens\":[-1]}'; done\n", "proposed token -1", 20000, WG_EFORMAT },
        { "huge.sh", "while read l; do echo '{\"tokens\":[99999999999999999999]}'; done\n", "proposed token 9", 20000,
          WG_EFORMAT },
        { "parent.sh", "while read l; do echo '{\"tokens\":[1,2],\"parents\":[-1,1]}'; done\n",
          "named 1 the parent of token 1; expected -1 (the text's last token) or an earlier one, 0..0", 20000, WG_EFORMAT },
        { "count.sh", "while read l; do echo '{\"tokens\":[1,2],\"parents\":[-1]}'; done\n",
          "2 tokens and 1 parents; expected a parent for each token", 20000, WG_EFORMAT },
        { "double.sh", "while read l; do printf '{\"tokens\":[1]}\\n{\"tokens\":[2]}\\n'; done\n",
          "wrote '{\"tokens\":[2]}', which no request asked for; expected one line to each", 20000, WG_EFORMAT },
        { "long.sh", "read l; while :; do printf 'xxxxxxxxxxxxxxxx'; done\n", "answered with a line of more than 8192 bytes",
          20000, WG_EFORMAT },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wg_error err = { 0 };
        wg_tree t;
        wg_engine *e = script_engine(bad[i].name, bad[i].script, bad[i].timeout_ms);
        for (int again = 0; again < 2; again++) {
            const wg_status s = first_step(e, &t, &err);
            cr_assert_eq(s, bad[i].status, "%s: %s: %s", bad[i].name, wg_status_name(s), err.text);
            cr_assert(strstr(err.text, bad[i].says), "%s: %s", bad[i].name, err.text);
            cr_assert(!strncmp(err.text, "drafter process: the program 'exec sh ", 38), "%s", err.text);
        }
        wg_engine_close(e);
        expect_no_child();
    }
}

/* A second line that comes later is found before it, or one behind it, is taken for an answer many times. */
Test(process, a_late_second_line_is_found)
{
    wg_error err = { 0 };
    wg_tree t;
    int steps = 0;
    wg_engine *e = script_engine("late.sh",
                                 "while read l; do case $l in *forget*) ;; *) echo '{\"tokens\":[1]}'; sleep 0.02; echo "
                                 "'{\"tokens\":[2]}';; esac; done\n",
                                 20000);
    while (steps < 20 && first_step(e, &t, &err) == WG_OK) steps++;
    cr_assert(steps > 0 && steps < 20 && strstr(err.text, "which no request asked for"), "%d steps: %s", steps, err.text);
    wg_engine_close(e);
    expect_no_child();
}

/* The answer is bad at the first request only: the same engine decodes the next ones. */
Test(process, the_run_goes_on)
{
    wg_error err;
    wg_tree t;
    char script[1500];
    const char *mark = temp_at(&folder, "mark");
    snprintf(script, sizeof script,
             "if [ ! -e %s ]; then touch %s; exit 1; fi\n"
             "while read l; do case $l in *forget*) ;; *) echo '{\"tokens\":[1,2,3]}';; esac; done\n",
             mark, mark);
    wg_engine *e = script_engine("once.sh", script, 20000);
    cr_assert_eq(first_step(e, &t, &err), WG_EIO);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(first_step(e, &t, &err), WG_OK, "%s", err.text);
        cr_assert_eq(t.n, 4);
    }
    wg_engine_close(e);
    expect_no_child();
}

/* Programs that the program started end with it. */
Test(process, ends_what_the_program_started)
{
    wg_error err;
    wg_tree t;
    char script[1500];
    snprintf(script, sizeof script, "sleep 1000 & echo $! >%s; while read l; do sleep 1000; done\n", temp_at(&folder, "pid"));
    wg_engine *e = script_engine("group.sh", script, 300);
    cr_assert_eq(first_step(e, &t, &err), WG_EIO);
    char *text = file_read(temp_at(&folder, "pid"), NULL);
    cr_assert(text);
    const pid_t pid = (pid_t)atol(text);
    free(text);
    cr_assert_gt(pid, 1);
    bool gone = false;
    for (int i = 0; i < 2000 && !gone; i++) { /* reaped by init, sooner or later; a zombie counts as gone */
        char path[64], *stat;
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        stat = file_read(path, NULL);
        gone = !stat || strstr(stat, ") Z") || strstr(stat, ") X");
        free(stat);
        if (!gone) usleep(1000);
    }
    cr_assert(gone);
    wg_engine_close(e);
    expect_no_child();
}

Test(process, an_answer_is_no_larger_than_the_tree)
{
    wg_error err = { 0 };
    wg_tree t;
    char want[700], script[200];
    snprintf(script, sizeof script,
             "while read l; do printf '{\"tokens\":[1'; i=1; while [ $i -lt %d ]; do printf ',1'; i=$((i+1)); "
             "done; echo ']}'; done\n",
             WG_TREE_MAX);
    wg_engine *e = script_engine("many.sh", script, 20000);
    cr_assert_eq(first_step(e, &t, &err), WG_EFORMAT);
    snprintf(want, sizeof want, "the program 'exec sh %s' answered %d tokens; the request allows %d (nodes)",
             temp_at(&folder, "many.sh"), WG_TREE_MAX, WG_TREE_MAX - 1);
    cr_assert(strstr(err.text, want), "%s", err.text);
    wg_engine_close(e);
    expect_no_child();
}

Test(process, needs_a_command)
{
    const char *text = refusal(&target, "process", "timeout_ms=5", true);
    cr_assert(text && strstr(text, "drafter process: no program is named; set its option command=COMMAND"), "%s",
              text ? text : "it opens");
    fail_every_allocation(&target, "process", "command=cat");
    expect_no_child();
}
