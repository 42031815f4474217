/* SPDX-License-Identifier: MIT
 * wager bench compare: a baseline and CELLS cells over synthetic prompts of eight categories, each request an answer of
 * TOKENS tokens in steps of one to five. Lengths, times and every twentieth text differ between the runs, so intervals,
 * categories and the first divergence are all computed. A comparison runs in a child process, whose peak resident size is
 * reported. */
#include "experiments/cli/bench_compare.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "experiments/base/timing.h"
#include "experiments/cli/cli.h"
#include "experiments/cli/commands.h"
#include "experiments/record/run_writer.h"
#include "kernels/philox.h"

enum { CELLS = 4, TOKENS = 128, FOLDERS = 2, PATH_MOST = 512 };

typedef struct bench {
    char dir[PATH_MOST - 64]; /* temporary folder */
    int prompts;
    double written, size;                   /* seconds; bytes of both folders' requests */
    double seconds[WG_BENCH_REPEATS], peak; /* peak: bytes */
} bench;

static void path_in(const bench *b, char *out, int folder, const char *file)
{
    snprintf(out, PATH_MOST, "%s/%d%s%s", b->dir, folder, *file ? "/" : "", file);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* A pseudo-random number of this request, equal in every run of the benchmark. */
static uint32_t draw(int folder, const wg_request *q, int i, int what)
{
    return wg_philox_at(5, (uint32_t)q->prompt, (uint32_t)(q->cell + 1), (uint32_t)i, (uint32_t)(FOLDERS * what + folder)).v[0];
}

static void make_request(wg_request *q, int folder, int cell, int prompt)
{
    q->cell = cell;
    q->prompt = prompt;
    q->prompt_tokens = 8 << prompt % 6;
    q->events.n = 0;
    q->counts = (wg_counts){ 0 };
    const int deepest = cell < 0 ? 1 : cell + 2;
    const int speaker = prompt % 20 ? 0 : folder; /* every twentieth text differs between the runs */
    q->decode = 0;
    for (q->n = 0; q->n < TOKENS;) {
        const int room = TOKENS - q->n, drawn = 1 + (int)(draw(folder, q, q->n, 0) % (uint32_t)deepest);
        const int n = drawn < room ? drawn : room;
        const double ms = 6 + draw(folder, q, q->n, 1) % 1000 / 1000.;
        q->counts.passes++;
        q->counts.drafted += deepest - 1;
        q->counts.accepted += n - 1;
        for (int d = 1; d < deepest; d++) q->counts.offered_at[d]++;
        for (int d = 1; d <= n && d < deepest; d++) q->counts.tried_at[d]++;
        for (int d = 1; d < n; d++) q->counts.accepted_at[d]++;
        q->counts.without_draft[WG_NO_DRAFT_NOTHING] += deepest == 1;
        for (int i = 0; i < n; i++, q->n++) q->token[q->n] = (int32_t)(draw(speaker, q, q->n, 2) % 32000);
        if (q->decode > 0) wg_event_add(&q->events, ms / 1e3, n);
        q->decode += ms / 1e3;
    }
    q->counts.emitted = q->n;
    q->prefill = q->prompt_tokens * 1e-3;
    q->ttft = q->prefill + 6e-3;
    q->tpot = q->decode / q->n;
    q->forward = 0.9 * q->decode;
    q->phases = (wg_phases){ .verify = q->forward };
    wg_sha256(q->token, (size_t)q->n * sizeof *q->token, q->sha256);
}

/* Writes a baseline and the cells, prompt by prompt in the order of a run. */
static wg_status write_requests(const bench *b, wg_run_writer *r, int folder, wg_error *err)
{
    static char *const categories[] = { "writing", "coding", "maths", "stories", "questions", "lists", "letters", "tables" };
    char id[32], text[64];
    int32_t token[TOKENS];
    wg_prompt p = { .id = id, .text = text, .turns = 1 };
    wg_request q = { .source = &p, .token = token, .finish = WG_FINISH_LENGTH, .joules = NAN, .equals = -1 };
    wg_status s = wg_events_open(&q.events, TOKENS, err);
    for (int prompt = 0; prompt < b->prompts && !s; prompt++) {
        snprintf(id, sizeof id, "prompt-%d", prompt);
        p.bytes = (size_t)snprintf(text, sizeof text, "The %dth question of a made-up set", prompt);
        p.category = categories[prompt % 8];
        for (int cell = -1; cell < CELLS && !s; cell++) {
            make_request(&q, folder, cell, prompt);
            s = wg_run_writer_request(r, &q, NULL, err);
        }
    }
    wg_events_close(&q.events);
    return s;
}

static wg_status write_folder(bench *b, int folder, wg_error *err)
{
    char path[PATH_MOST];
    wg_run_writer *r = NULL;
    wg_config c = { .resolved = json_pack("{s:s, s:{s:s}, s:{s:s}, s:{s:[i, i, i, i]}}", "name", "synthetic", "draft", "kind",
                                          "model", "verify", "rule", "match", "sweep", "draft.length", 1, 2, 3, 4) };
    json_t *machine = json_pack("{s:s}", "started", "synthetic"), *summary = json_pack("{s:b, s:[]}", "complete", 1, "cells");
    path_in(b, path, folder, "");
    wg_status s = c.resolved && machine && summary ? WG_OK : wg_nomem(err, 1, "a run");
    if (!s) s = wg_run_writer_open(&r, path, &c, machine, err);
    if (!s) s = write_requests(b, r, folder, err);
    if (!s) s = wg_run_writer_summary(r, summary, err);
    wg_run_writer_close(r);
    json_decref(c.resolved);
    json_decref(machine);
    json_decref(summary);
    struct stat st;
    path_in(b, path, folder, "requests.jsonl");
    if (!s && stat(path, &st) == 0) b->size += (double)st.st_size;
    return s;
}

static void remove_all(const bench *b)
{
    static const char *const file[] = { "requests.jsonl", "config.json", "machine.json", "summary.json", "" };
    char path[PATH_MOST];
    for (int folder = 0; folder < FOLDERS; folder++)
        for (int i = 0; i < 5; i++) {
            path_in(b, path, folder, file[i]);
            remove(path);
        }
    path_in(b, path, FOLDERS, "");
    unlink(path);
    rmdir(b->dir);
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

/* Runs `wager compare A B --json` with its output in the file `out`. Does not return. */
_Noreturn static void compare(char *a, char *b, const char *out)
{
    char name[] = "compare", json[] = "--json";
    char *argv[] = { name, a, b, json, NULL };
    const int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0) _exit(WG_EXIT_FAILED);
    const int status = wg_cmd_compare(4, argv);
    _exit(fflush(stdout) ? WG_EXIT_FAILED : status);
}

/* Whether all written requests were paired. */
static bool whole(const bench *b, const char *out)
{
    json_t *o = json_load_file(out, 0, NULL);
    const json_t *pairs = json_object_get(o, "pairs");
    bool ok = json_array_size(pairs) == CELLS;
    for (size_t i = 0; i < json_array_size(pairs); i++)
        ok = ok && json_integer_value(json_object_get(json_array_get(pairs, i), "requests")) == b->prompts;
    json_decref(o);
    return ok;
}

static wg_status time_one(bench *b, double *seconds, wg_error *err)
{
    char one[PATH_MOST], other[PATH_MOST], out[PATH_MOST];
    struct rusage used;
    int status = -1;
    path_in(b, one, 0, "");
    path_in(b, other, 1, "");
    path_in(b, out, FOLDERS, "");
    fflush(stdout);
    const double start = wg_clock_now();
    const pid_t child = fork();
    if (child == 0) compare(one, other, out);
    if (child < 0) return wg_fail(err, WG_EIO, "bench compare: cannot start a process: %s", strerror(errno));
    while (wait4(child, &status, 0, &used) < 0 && errno == EINTR) continue;
    *seconds = wg_clock_now() - start;
    b->peak = fmax(b->peak, (double)used.ru_maxrss * 1024);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != WG_EXIT_OK || !whole(b, out))
        return wg_fail(err, WG_EINVAL, "bench compare: the comparison of %s and %s did not pair all requests", one, other);
    return WG_OK;
}

static void print(bench *b, int repeats, bool json)
{
    const int requests = b->prompts * (1 + CELLS);
    const double seconds = wg_bench_median(b->seconds, repeats), rate = FOLDERS * requests / seconds, mb = 1e6;
    if (!json) {
        printf("folders   2 of %d requests: %d prompts, plain decoding and %d cells, %d tokens each; %.1f MB together\n",
               requests, b->prompts, CELLS, TOKENS, b->size / mb);
        printf("written   in %.2f s, %.0f requests/s\n", b->written, FOLDERS * requests / b->written);
        printf("compared  in %.3f s (median of %d), %.0f requests/s, at most %.1f MB resident\n", seconds, repeats, rate,
               b->peak / mb);
        return;
    }
    json_t *o = json_pack("{s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f}", "requests", requests, "prompts", b->prompts, "cells",
                          CELLS, "megabytes", b->size / mb, "write_s", b->written, "compare_s", seconds, "requests_s", rate,
                          "peak_mb", b->peak / mb);
    wg_json_put_line(o, 0);
}

wg_status wg_bench_compare(int requests, int repeats, bool json, wg_error *err)
{
    bench b = { .prompts = (requests + CELLS) / (1 + CELLS) };
    const char *tmp = getenv("TMPDIR");
    snprintf(b.dir, sizeof b.dir, "%.400s/wager-compare-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(b.dir))
        return wg_fail(err, WG_EIO, "%s: cannot make a folder for the runs: %s; set TMPDIR to one with room", b.dir,
                       strerror(errno));
    wg_status s = WG_OK;
    const double start = wg_clock_now();
    for (int i = 0; i < FOLDERS && !s; i++) s = write_folder(&b, i, err);
    b.written = wg_clock_now() - start;
    for (int i = 0; i < repeats && !s; i++) s = time_one(&b, &b.seconds[i], err);
    if (!s) print(&b, repeats, json);
    remove_all(&b);
    return s;
}
