/* SPDX-License-Identifier: MIT
 * A killed and resumed run ends in the files of an uninterrupted one, timings apart: killed at random moments, cut at random
 * bytes; and a folder that cannot be resumed is refused with the reason. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/cli/cli.h"
#include "experiments/base/json_diff.h"
#include "experiments/run/runner.h"
#include "core/trace/trace.h"
#include "kernels/philox.h"
#include "experiments/record/run_reader.h"
#include "masked.h"
#include "scene.h"

static scene s;

static void setup(void)
{
    scene_make(&s);
    put("prompts.jsonl", SCENE_PROMPTS "{\"id\": \"old\", \"turns\": [\"Once upon\", \"and then\"]}\n");
}
static void teardown(void) { scene_remove(&s); }
TestSuite(resume, .init = setup, .fini = teardown, .timeout = 240);

/* Two groups, two rules each, a prompt that fails, one of two turns, two repeats. */
#define CONFIG(more)                                                                                                           \
    "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1},"                                              \
    "\"prompts\": {\"file\": \"prompts.jsonl\", \"turns\": \"all\"},"                                                          \
    "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 3}, \"max_tokens\": 12, \"repeats\": 2,"          \
    "\"sweep\": {\"sampling.temperature\": [0, 1], \"verify.rule\": [\"match\", \"rejection\"]}, " more "}"
#define TRACED CONFIG("\"trace\": \"probs\"")

static size_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (size_t)st.st_size : 0;
}

/* `wager run config.json --out DIR`, or with --resume. Killed after so many seconds when >= 0, or once requests.jsonl has
 * `kill_size` bytes when > 0. */
static int child_until(const char *out, bool resume, double kill_after, size_t kill_size)
{
    const pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = { "run", "config.json", "--out", (char *)out, resume ? "--resume" : NULL, NULL };
        const int to = open("stderr", O_WRONLY | O_CREAT | O_TRUNC, 0666), null = open("/dev/null", O_WRONLY);
        dup2(to, STDERR_FILENO);
        dup2(null, STDOUT_FILENO);
        _exit(wg_cmd_run(resume ? 5 : 4, argv));
    }
    if (kill_after >= 0) {
        nanosleep(&(struct timespec){ (time_t)kill_after, (long)((kill_after - (double)(time_t)kill_after) * 1e9) }, NULL);
        kill(pid, SIGKILL);
    }
    int status = 0;
    char path[64];
    snprintf(path, sizeof path, "%s/requests.jsonl", out);
    for (; kill_size > 0; nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL)) {
        if (waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        if (size_of(path) < kill_size) continue;
        kill(pid, SIGKILL);
        break;
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int child(const char *out, bool resume, double kill_after) { return child_until(out, resume, kill_after, 0); }

/* trace.wgt without its times and sums: the records of rounds have five times behind 28 bytes (docs/traces.md). */
static char *timeless(const char *dir, size_t *n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/trace.wgt", dir);
    char *text = file_read(path, n);
    cr_assert_not_null(text, "%s", path);
    for (size_t at = 16; at < *n;) {
        uint32_t head[2];
        cr_assert_geq(*n - at, 16, "%s: cut at %zu", path, at);
        memcpy(head, text + at, 8);
        cr_assert_geq(*n - at - 16, head[0], "%s: cut at %zu", path, at);
        if (head[1] == WG_RECORD_ROUND) memset(text + at + 8 + 28, 0, 40);
        if (head[1] == WG_RECORD_ROUND) memset(text + at + 8 + head[0], 0, 8);
        at += head[0] + 16;
    }
    return text;
}

static void same_trace(const char *a, const char *b, int trial)
{
    size_t n, m;
    char *x = timeless(a, &n), *y = timeless(b, &m);
    cr_assert(n == m && memcmp(x, y, n) == 0, "trial %d: trace.wgt differs", trial);
    free(x);
    free(y);
}

static void same_folder(const char *a, const char *b, bool traced, int trial)
{
    static const char *const files[] = { "config.json",    "machine.json", "cost.json",
                                         "requests.jsonl", "summary.json", "steps.jsonl" };
    cr_assert_eq(dir_count(b), traced ? 7 : 5, "trial %d: files left over", trial);
    if (traced) same_trace(a, b, trial);
    for (int i = 0; i < 5 + traced; i++) {
        char *x = masked(a, files[i]), *y = masked(b, files[i]);
        cr_assert_str_eq(x, y, "trial %d: %s differs", trial, files[i]);
        free(x);
        free(y);
    }
}

static double uniform(int trial, int what)
{
    const wg_philox x = wg_philox_at(11, (uint32_t)trial, (uint32_t)what, 0, 0);
    return wg_philox_double(x.v[0], x.v[1]);
}

/* Every other run is killed at a moment, the others at a size: however busy the machine, those meet the measured part. */
Test(resume, killed_at_fifty_moments)
{
    const int kills = getenv("WG_THIN") ? 12 : 50;
    char out[32];
    int killed = 0, by_size = 0;
    put("config.json", TRACED);
    double start = wg_clock_now();
    cr_assert_eq(child("whole", false, -1), 0);
    double time = wg_clock_now() - start; /* of a run: the shortest seen, since a busy machine makes some of them long */
    const double size = (double)size_of("whole/requests.jsonl");
    for (int trial = 0; killed < kills && trial < 400; trial++) {
        snprintf(out, sizeof out, "out-%d", trial);
        int status = -SIGKILL;
        for (int again = 0; status == -SIGKILL && again < 3; again++) { /* killed while it resumes, too */
            const double u = uniform(trial, again);
            start = wg_clock_now();
            if (trial % 2) status = child_until(out, true, -1, 1 + (size_t)(0.95 * u * size));
            else status = child(out, true, 1.2 * time * u);
            if (status == 0 && again == 0 && trial % 2 == 0) time = fmin(time, 0.9 * (wg_clock_now() - start));
            killed += status == -SIGKILL;
            by_size += status == -SIGKILL && trial % 2;
        }
        if (status != 0) status = child(out, true, -1);
        char *text = file_read("stderr", NULL);
        cr_assert_eq(status, 0, "trial %d: %s", trial, text);
        free(text);
        same_folder("whole", out, true, trial);
    }
    cr_assert_geq(killed, kills, "%d", killed);
    cr_assert_geq(by_size, kills / 5, "%d: the kills must meet the measured part", by_size);
}

/* What a machine that lost its power leaves: both files cut anywhere, apart from each other. */
static void cut_anywhere(const char *config, bool traced, int trials)
{
    wg_error err;
    wg_config *c = config_of(config);
    int resumed = 0;
    for (int trial = -1; trial < trials; trial++) {
        wg_run r;
        char *path;
        const wg_run_options o = { .out = trial < 0 ? "whole" : "part", .resume = true };
        if (trial >= 0) {
            cr_assert_eq(system("rm -rf part && cp -r whole part"), 0);
            if (trial % 3) unlink("part/summary.json");
            if (trial % 5) file_write("part/summary.json.12-0.part", "{", 1);
            const double at = uniform(trial, 1), other = trial % 2 ? at : uniform(trial, 2);
            if (truncate("part/requests.jsonl", (off_t)(at * (double)size_of("part/requests.jsonl")))) cr_assert_fail();
            if (traced && trial % 4 && truncate("part/steps.jsonl", (off_t)(other * (double)size_of("part/steps.jsonl"))))
                cr_assert_fail();
            if (traced && trial % 3 == 1 && truncate("part/trace.wgt", (off_t)(other * (double)size_of("part/trace.wgt"))))
                cr_assert_fail();
            if (trial == 7) unlink("part/requests.jsonl");
        }
        cr_assert_eq(wg_run_config(c, &o, &r, &path, &err), WG_OK, "trial %d: %s", trial, err.text);
        cr_assert(r.complete);
        resumed += r.resumed;
        wg_run_free(&r);
        wg_free(path);
        if (trial >= 0) same_folder("whole", "part", traced, trial);
    }
    cr_assert_gt(resumed, trials + trials / 5, "requests must have been read back");
    wg_config_close(c);
}

static int cuts(void) { return getenv("WG_THIN") ? 20 : 60; }
Test(resume, cut_at_any_byte) { cut_anywhere(TRACED, true, cuts()); }
Test(resume, cut_at_any_byte_of_a_batch) { cut_anywhere(CONFIG("\"batch\": 3, \"trace\": \"probs\""), true, cuts()); }

/* What a drafter learned from requests before the cut is learned again. */
Test(resume, cut_at_any_byte_with_a_drafter_that_remembers)
{
    static const char *const drafts[] = { "{\"kind\": \"best_of\", \"of\": \"ngram_cache|ngram\"}",
                                          "{\"kind\": \"recycle\", \"nodes\": 24}", "{\"kind\": \"suffix\", \"k\": 16}" };
    char text[1200];
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text,
                 "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": "
                 "\"prompts.jsonl\"}, \"draft\": %s, \"verify\": {\"rule\": \"match\"}, \"max_tokens\": 16, \"repeats\": 3, "
                 "\"sweep\": {\"sampling.temperature\": [0, 1]}}",
                 drafts[i]);
        cut_anywhere(text, false, 20);
        cr_assert_eq(system("rm -rf whole part"), 0);
    }
}

/* Nothing left to do: the files stay as they are, times included. */
Test(resume, a_finished_run_stays)
{
    put("config.json", TRACED);
    cr_assert_eq(child("out", true, -1), 0);
    char *before = file_read("out/summary.json", NULL);
    cr_assert_eq(child("out", true, -1), 0);
    char *after = file_read("out/summary.json", NULL), *text = file_read("stderr", NULL);
    cr_assert_str_eq(before, after);
    cr_assert(strstr(text, "resumed: 60 requests were there already"), "%s", text);
    free(before);
    free(after);
    free(text);
}

/* Without --out, the unfinished folder of this config is found. */
Test(resume, finds_its_folder)
{
    wg_error err = { 0 };
    wg_run r;
    char *path = NULL, *again = NULL;
    wg_config *c = config_of(TRACED);
    const wg_run_options first = { .out = NULL }, next = { .resume = true };
    cr_assert_eq(wg_run_config(c, &next, &r, &path, &err), WG_ENOENT);
    cr_assert(strstr(err.text, "results/t: no run of this config"), "%s", err.text);
    wg_run_free(&r);
    cr_assert_eq(wg_run_config(c, &first, &r, &path, &err), WG_OK, "%s", err.text);
    wg_run_free(&r);
    char file[1100];
    snprintf(file, sizeof file, "%s/summary.json", path);
    unlink(file);
    snprintf(file, sizeof file, "%s/requests.jsonl", path);
    if (truncate(file, 5000)) cr_assert_fail();
    cr_assert_eq(wg_run_config(c, &next, &r, &again, &err), WG_OK, "%s", err.text);
    cr_assert_str_eq(path, again);
    cr_assert_gt(r.resumed, 0);
    cr_assert_lt(r.resumed, 48);
    wg_run_free(&r);
    wg_config_close(c);
    wg_free(path);
    wg_free(again);
}

static void refused(const char *config, const char *why)
{
    put("config.json", config);
    cr_assert_eq(child("out", true, -1), 2);
    char *text = file_read("stderr", NULL);
    cr_assert(strstr(text, why), "'%s' not in: %s", why, text);
    free(text);
}

Test(resume, refuses_what_changed)
{
    put("config.json", TRACED);
    cr_assert_eq(child("out", false, -1), 0);
    char *before = masked("out", "requests.jsonl");
    refused(CONFIG("\"trace\": \"none\""), "because the config changed: trace is \"none\", was \"probs\"");
    put("prompts.jsonl", "{\"id\": \"cat\", \"prompt\": \"The cat sat\"}\n");
    refused(TRACED, "because a file (by SHA-256) changed: prompts.jsonl is \"");
    setup();
    wg_error err;
    if (chdir(s.before) || chdir(s.t.dir)) cr_assert_fail();
    put("config.json", TRACED);
    cr_assert_eq(child("out", false, -1), 0);
    cr_assert_eq(wg_synth_write(&scene_draft, WG_F32, 3, "draft.gguf", &err), WG_OK);
    refused(TRACED, "because a file (by SHA-256) changed: draft.gguf is \"");
    cr_assert_eq(wg_synth_write(&scene_draft, WG_F32, 2, "draft.gguf", &err), WG_OK);
    json_t *machine = json_load_file("out/machine.json", 0, NULL);
    json_object_set_new(json_object_get(machine, "program"), "version", json_string("0.0.9"));
    json_dump_file(machine, "out/machine.json", 0);
    refused(TRACED, "because the program changed: version is \"");
    json_decref(machine);
    char *after = masked("out", "requests.jsonl");
    cr_assert_str_eq(before, after, "a refusal changes nothing");
    free(before);
    free(after);
}

/* What a drafter reads beside its model is in no config's digest; its content is held against what it was. */
Test(resume, refuses_a_side_file_that_changed)
{
#define LOOKUP                                                                                                                 \
    "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": \"prompts.jsonl\"},"  \
    "\"draft\": {\"kind\": \"hybrid\", \"first\": \"ngram\", \"second\": \"model:model=draft.gguf;grow=file;tree=t\"}, "       \
    "\"max_tokens\": 8}"
    put("t", "[-1, 0, 1]");
    put("config.json", LOOKUP);
    cr_assert_eq(child("out", false, -1), 0);
    cr_assert_eq(child("out", true, -1), 0);
    put("t", "[-1, 0, 0]");
    refused(LOOKUP, "because a file (by SHA-256) changed: t is \"");
    put("t", "[-1, 0, 1]");
    cr_assert_eq(child("out", true, -1), 0, "it is what it was");
    cr_assert_eq(remove("t"), 0);
    cr_assert_eq(child("out", true, -1), 1, "the drafter says that it is missing");
}

/* Changes the digit behind `key` in the second line of a file, which stays JSON, and expects a refusal that changes nothing. */
static void refuses_damage(const char *file, const char *key, const char *expected)
{
    size_t n = 0;
    char *text = file_read(file, &n), *kept = file_read(file, NULL), *at = strstr(strchr(text, '\n'), key);
    cr_assert_not_null(at, "%s: no %s", file, key);
    at += strlen(key);
    *at = *at == '0' ? '1' : '0';
    file_write(file, text, n);
    cr_assert_eq(child("out", true, -1), 1);
    char *message = file_read("stderr", NULL), *after = file_read(file, NULL);
    cr_assert(strstr(message, expected), "%s", message);
    cr_assert_str_eq(after, text);
    file_write(file, kept, n);
    free(after);
    free(message);
    free(kept);
    free(text);
}

/* Damage that leaves a line as JSON: a token, a count of a step, the checksum itself, or none. */
Test(resume, refuses_damaged_lines)
{
    static const char damaged[] = ":2: this line is damaged: it is not the text of its checksum (\"sum\"); restore the file";
    char expected[200];
    wg_error err;
    wg_run_reader *reader;
    put("config.json", TRACED);
    cr_assert_eq(child("out", false, -1), 0);
    snprintf(expected, sizeof expected, "out/requests.jsonl%s", damaged);
    refuses_damage("out/requests.jsonl", "\"ids\":[", expected);
    refuses_damage("out/requests.jsonl", "\"sum\":\"", expected);
    refuses_damage(
        "out/requests.jsonl", "\"su",
        "out/requests.jsonl:2: this line has no checksum (\"sum\") at its end, as every line of a run has; restore the file");
    snprintf(expected, sizeof expected, "out/steps.jsonl%s", damaged);
    refuses_damage("out/steps.jsonl", "\"emitted\":", expected);
    cr_assert_eq(child("out", true, -1), 0, "it is what it was");
    size_t n = 0;
    char *text = file_read("out/requests.jsonl", &n), *at = strstr(strchr(text, '\n'), "\"tokens\":") + 9;
    *at = *at == '9' ? '8' : '9';
    file_write("out/requests.jsonl", text, n);
    cr_assert_eq(wg_run_reader_open(&reader, "out", &err), WG_EFORMAT);
    cr_assert(strstr(err.text, "out/requests.jsonl:2: this line is damaged"), "%s", err.text);
    free(text);
}

/* A line of another request where the first should be; steps that somebody deleted. Nothing is thrown away. */
Test(resume, refuses_files_that_were_changed)
{
    put("config.json", CONFIG("\"trace\": \"none\""));
    cr_assert_eq(child("out", false, -1), 0);
    size_t n = 0;
    char *text = file_read("out/requests.jsonl", &n), *first_end = strchr(text, '\n') + 1;
    file_write("out/requests.jsonl", first_end, n - (size_t)(first_end - text));
    const size_t size = size_of("out/requests.jsonl");
    cr_assert_eq(child("out", true, -1), 1);
    char *message = file_read("stderr", NULL);
    cr_assert(strstr(message, "out/requests.jsonl:1: expected prompt 0 (\"cat\"), turn 0, repeat 0 of the baseline: the file "
                              "was changed; start a new run with --out DIR"),
              "%s", message);
    cr_assert_eq(size_of("out/requests.jsonl"), size);
    free(text);
    free(message);
    put("config.json", TRACED);
    cr_assert_eq(child("traced", false, -1), 0);
    unlink("traced/steps.jsonl");
    cr_assert_eq(child("traced", true, -1), 1);
    message = file_read("stderr", NULL);
    cr_assert(strstr(message, "traced/steps.jsonl is missing; this run cannot go on without it"), "%s", message);
    free(message);
    cr_assert_eq(rename("traced/config.json", "kept.json"), 0);
    put("traced/config.json", "{");
    cr_assert_eq(child("traced", true, -1), 1);
    message = file_read("stderr", NULL);
    cr_assert(strstr(message, "traced: config.json cannot be read; this run cannot go on"), "%s", message);
    free(message);
    cr_assert_eq(rename("kept.json", "traced/config.json"), 0);
    put("traced/steps.jsonl", "");
    unlink("traced/trace.wgt");
    cr_assert_eq(symlink("trace.wgt", "traced/trace.wgt"), 0);
    cr_assert_eq(child("traced", true, -1), 1);
    message = file_read("stderr", NULL);
    cr_assert(strstr(message, "traced/trace.wgt: cannot look at it: "), "%s", message);
    free(message);
    put("config.json", CONFIG("\"trace\": \"none\"")); /* what cannot be cut: a device */
    unlink("out/requests.jsonl");
    cr_assert_eq(symlink("/dev/null", "out/requests.jsonl"), 0);
    cr_assert_eq(child("out", true, -1), 1);
    message = file_read("stderr", NULL);
    cr_assert(strstr(message, "out/requests.jsonl: cannot cut: Invalid argument"), "%s", message);
    free(message);
}

/* A folder that holds something else is left alone, config.json and all. */
Test(resume, never_touches_a_folder_of_others)
{
    put("config.json", TRACED);
    cr_assert_eq(child(".", true, -1), 2);
    char *text = file_read("stderr", NULL), *mine = file_read("config.json", NULL);
    cr_assert(strstr(text, "the folder is not empty"), "%s", text);
    cr_assert_str_eq(mine, TRACED);
    free(text);
    free(mine);
}

Test(resume, two_processes_never_write_one_folder)
{
    put("config.json", TRACED);
    cr_assert_eq(child("out", false, -1), 0);
    wg_error err = { 0 };
    wg_config *c = config_of(TRACED);
    wg_run_writer *a = NULL, *b = NULL;
    json_t *machine = wg_machine_json(c, NULL);
    cr_assert_eq(wg_run_writer_open(&a, "other", c, machine, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_run_writer_resume(&b, "other", c, machine, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "another process is writing this run"), "%s", err.text);
    wg_run_writer_close(a);
    cr_assert_eq(wg_run_writer_resume(&b, "other", c, machine, &err), WG_OK, "%s", err.text);
    wg_run_writer_close(b);
    json_decref(machine);
    wg_config_close(c);
}

/* Whatever allocation fails, nothing that was there is lost: the next attempt still ends in the same files. */
Test(resume, survives_failing_allocations)
{
    put("prompts.jsonl", "{\"id\": \"cat\", \"prompt\": \"The cat sat\"}\n");
    wg_config *c = config_of(TRACED);
    wg_status status = WG_ENOMEM;
    for (uint64_t nth = 0; status != WG_OK && nth < 20000; nth += 1 + nth / 20) {
        wg_error err = { 0 };
        wg_run r;
        char *path = NULL;
        const wg_run_options o = { .out = nth ? "part" : "whole", .resume = true };
        if (nth &&
            (system("rm -rf part && cp -r whole part") || truncate("part/requests.jsonl", 9000) || unlink("part/summary.json")))
            cr_assert_fail();
        const size_t before = wg_mem_read().live_blocks;
        wg_mem_fail_at(nth, true);
        status = wg_run_config(c, &o, &r, &path, &err);
        wg_mem_fail_at(0, false);
        cr_assert(status == WG_OK || err.text[0], "allocation %d: no message", (int)nth);
        const bool met = status == WG_OK && (nth == 0 || r.result[0].failed > 0); /* by a request: a result, and kept as one */
        wg_run_free(&r);
        wg_free(path);
        cr_assert_eq(wg_mem_read().live_blocks, before, "allocation %d: %s", (int)nth, err.text);
        cr_assert_geq(size_of("whole/requests.jsonl"), 9000);
        if (status != WG_OK) { /* again, with memory; requests that failed for want of it are results too, so only what is there
                                  is checked */
            const size_t kept = size_of("part/requests.jsonl");
            cr_assert_geq(kept, 5000, "allocation %d: requests were lost", (int)nth);
            cr_assert_eq(wg_run_config(c, &o, &r, &path, &err), WG_OK, "allocation %d: %s", (int)nth, err.text);
            cr_assert_geq(r.resumed, 4);
            wg_run_free(&r);
            wg_free(path);
        }
        if (met) status = WG_ENOMEM;
    }
    cr_assert_eq(status, WG_OK);
    wg_config_close(c);
}

Test(resume, diff_names_the_leaves)
{
    json_t *a = json_loads("{\"x\": {\"k\": 4, \"m\": [1]}, \"same\": 1, \"only\": true}", 0, NULL);
    json_t *b = json_loads("{\"x\": {\"k\": 5, \"m\": [1]}, \"same\": 1.0, \"new\": \"s\"}", 0, NULL);
    const json_t *both[2] = { a, b };
    json_t *d = wg_json_diff(both, 2);
    char text[256];
    cr_assert_str_eq(wg_json_diff_text(d, text, sizeof text),
                     "new is null, was \"s\"; only is true, was null; x.k is 4, was 5");
    json_decref(d);
    json_decref(a);
    json_decref(b);
}
