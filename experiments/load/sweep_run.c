/* SPDX-License-Identifier: MIT
 * Running a sweep. The loops are, from the outside, over repeats, loads, turns and servers, so that compared tests run within
 * the same minutes, or with turns within the same seconds; the first server rotates with turn and load. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/make_path.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/base/json_number.h"
#include "experiments/load/load_sweep.h"
#include "experiments/load/load_test.h"
#include "experiments/record/run_writer.h"

enum { PATH_ROOM = 4096, POINTS_MOST = 1 << 30 };

typedef struct runner {
    const wg_load_sweep *s;
    const wg_sweep_run *run;
    json_t *points, *machine; /* owned */
    FILE *lines;
    wg_server_under_test *up[WG_SWEEP_SERVERS]; /* owned: the running servers */
} runner;

/* A test of each server: which one. */
typedef struct test {
    const wg_swept_load *load;
    int repeat, turn;
} test;

static void path_of(char *to, const runner *r, const char *file) { snprintf(to, PATH_ROOM, "%s/%s", r->run->folder, file); }

/* ---- one test ---------------------------------------------------------------------------------------------------- */

static wg_load_test test_of(const runner *r, const wg_swept_load *l, const char *url)
{
    const wg_sweep_options *o = &r->s->opt;
    const int least = o->requests_per_client * l->clients;
    return (wg_load_test){ .url = url,
                           .model = *o->model ? o->model : NULL,
                           .chat = o->endpoint == 1,
                           .prompts = r->s->prompts,
                           .input_words = o->words,
                           .input_range = o->words_range,
                           .requests = o->requests > least ? o->requests : least,
                           .warmups = o->warmups,
                           .clients = l->clients,
                           .rate = l->rate,
                           .burstiness = o->burstiness,
                           .max_tokens = o->max_tokens,
                           .temperature = o->temperature,
                           .seed = (uint64_t)o->seed,
                           .ignore_eos = o->ignore_eos,
                           .extra = r->s->extra,
                           .seconds = o->timeout,
                           .line_most = WG_LOAD_LINE,
                           .stop = r->run->stop };
}

static json_t *point_json(const wg_swept_server *server, const test *at, const wg_load_test *t, const wg_load_result *result,
                          const wg_sweep_options *o)
{
    static const double percentiles[] = { 90, 95, 99 };
    const wg_load_goals goals = { .ttft = o->goal_ttft, .tpot = o->goal_tpot, .e2el = o->goal_e2el };
    json_t *m = wg_load_result_json(t, result, &goals, percentiles, 3, false);
    if (!m) return NULL;
    json_object_set_new(m, "server", json_string(server->name));
    json_object_set(m, "labels", server->labels);
    json_object_set_new(m, "clients", json_integer(at->load->clients));
    json_object_set_new(m, "rate", at->load->clients ? json_null() : json_real(at->load->rate));
    json_object_set_new(m, "repeat", json_integer(at->repeat));
    json_object_set_new(m, "turn", json_integer(at->turn));
    json_object_set_new(m, "machine_load", wg_json_number(wg_machine_load()));
    return m;
}

static wg_status write_line(runner *r, json_t *point, wg_error *err)
{
    char *line = point ? wg_json_canonical(point, false) : NULL;
    if (!line) return wg_nomem(err, 1, "a line of a sweep");
    const bool good = fprintf(r->lines, "%s\n", line) > 0 && fflush(r->lines) == 0;
    wg_free(line);
    json_array_append(r->points, point);
    return good ? WG_OK : wg_fail(err, WG_EIO, "%s/points.jsonl: cannot write: %s", r->run->folder, strerror(errno));
}

static wg_status start(runner *r, int i, wg_error *err)
{
    char log[PATH_ROOM];
    const wg_swept_server *server = &r->s->server[i];
    const int n = snprintf(log, sizeof log, "%s/servers/%d-%s.log", r->run->folder, i, server->name);
    for (char *c = log + strlen(r->run->folder) + 9; n > 0 && *c; c++)
        if (*c == '/' || *c == '\'') *c = '-';
    return wg_server_start(&r->up[i], server->command, r->run->program, log, r->s->opt.ready_seconds, r->run->stop, err);
}

static void stop(runner *r, int i)
{
    wg_server_stop(r->up[i]);
    r->up[i] = NULL;
}

static wg_status run_test(runner *r, int i, const test *at, wg_error *err)
{
    wg_load_result result = { .n = 0 };
    const bool alone = !r->up[i];
    if (alone) WG_TRY(start(r, i, err));
    const wg_load_test t = test_of(r, at->load, wg_server_url(r->up[i]));
    wg_status s = wg_load_test_run(&t, &result, err);
    if (alone) stop(r, i);
    json_t *point = s ? NULL : point_json(&r->s->server[i], at, &t, &result, &r->s->opt);
    if (!s) s = write_line(r, point, err);
    json_decref(point);
    wg_load_result_close(&result);
    return s;
}

static bool is_done(const runner *r, int i, const test *at)
{
    for (size_t k = 0; k < json_array_size(r->points); k++) {
        const json_t *p = json_array_get(r->points, k);
        if (!strcmp(wg_json_word(p, "server"), r->s->server[i].name) && wg_json_int(p, "clients") == at->load->clients &&
            wg_json_real(p, "rate") == at->load->rate && wg_json_int(p, "repeat") == at->repeat &&
            wg_json_int(p, "turn") == at->turn)
            return true;
    }
    return false;
}

/* Tests every server once, beginning with `first`. */
static wg_status run_turn(runner *r, int first, const test *at, wg_error *err)
{
    const wg_load_sweep *s = r->s;
    for (int k = 0; k < s->servers; k++) {
        const int i = (first + k) % s->servers;
        if (is_done(r, i, at)) continue;
        if (r->run->progress)
            r->run->progress(r->run->user, (int)json_array_size(r->points), wg_load_sweep_tests(s), s->server[i].name,
                             at->load);
        if (r->run->stop && *r->run->stop) return wg_fail(err, WG_EINTERRUPTED, "interrupted");
        WG_TRY(run_test(r, i, at, err));
    }
    return WG_OK;
}

/* Runs a repeat of a load; with turns, servers run beside each other. Nothing is started if all tests are done. */
static wg_status run_load(runner *r, int repeat, int k, wg_error *err)
{
    const wg_load_sweep *s = r->s;
    wg_status status = WG_OK;
    bool done = true;
    for (int turn = 0; turn < s->opt.turns; turn++)
        for (int i = 0; i < s->servers; i++) done = done && is_done(r, i, &(test){ &s->load[k], repeat, turn });
    for (int i = 0; i < s->servers && s->opt.turns > 1 && !done && !status; i++) status = start(r, i, err);
    for (int turn = 0; turn < s->opt.turns && !status; turn++)
        status = run_turn(r, k + repeat + turn, &(test){ &s->load[k], repeat, turn }, err);
    for (int i = 0; i < s->servers; i++) stop(r, i);
    return status;
}

static wg_status run_all(runner *r, wg_error *err)
{
    for (int repeat = 0; repeat < r->s->opt.repeats; repeat++)
        for (int k = 0; k < r->s->loads; k++) WG_TRY(run_load(r, repeat, k, err));
    return WG_OK;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

/* Reads existing lines and drops one that a crash cut. */
static wg_status read_points(runner *r, wg_error *err)
{
    char path[PATH_ROOM], *text;
    size_t n;
    path_of(path, r, "points.jsonl");
    WG_TRY(wg_read_file(path, POINTS_MOST, &text, &n, err));
    size_t whole = 0;
    for (char *p = text, *end; (end = memchr(p, '\n', (size_t)(text + n - p))); p = end + 1) {
        json_t *point = json_loadb(p, (size_t)(end - p), 0, NULL);
        if (!json_is_object(point)) {
            json_decref(point);
            break;
        }
        json_array_append_new(r->points, point);
        whole = (size_t)(end + 1 - text);
    }
    wg_free(text);
    if (truncate(path, (off_t)whole) == 0) return WG_OK;
    return wg_fail(err, WG_EIO, "%s: cannot cut a half line: %s", path, strerror(errno));
}

static wg_status resume(runner *r, wg_error *err)
{
    json_t *was = wg_json_load(r->run->folder, "config.json");
    const bool same = was && json_equal(was, wg_json_root(r->s->doc));
    json_decref(was);
    if (!same)
        return wg_fail(err, WG_EINVAL,
                       "%s: cannot be resumed: it is no folder of this config; choose another --out, without --resume",
                       r->run->folder);
    r->machine = wg_json_load(r->run->folder, "machine.json");
    return read_points(r, err);
}

static wg_status begin(runner *r, wg_error *err)
{
    char path[PATH_ROOM];
    if (strlen(r->run->folder) > PATH_ROOM - 400) return wg_fail(err, WG_EINVAL, "--out: the path of the folder is too long");
    WG_TRY(wg_make_parents(r->run->folder, err));
    if (mkdir(r->run->folder, 0777) != 0)
        return wg_fail(err, WG_EIO, "%s: cannot make the folder: %s; --resume goes on with one that is there", r->run->folder,
                       strerror(errno));
    path_of(path, r, "servers");
    if (mkdir(path, 0777) != 0) return wg_fail(err, WG_EIO, "%s: cannot make the folder: %s", path, strerror(errno));
    r->machine = wg_machine_facts_json();
    path_of(path, r, "machine.json");
    WG_TRY(wg_json_save(r->machine, path, err));
    path_of(path, r, "config.json");
    return wg_json_save(wg_json_root(r->s->doc), path, err);
}

static wg_status finish(runner *r, wg_error *err)
{
    char path[PATH_ROOM];
    json_t *summary = wg_load_sweep_summary(r->s, r->points);
    path_of(path, r, "summary.json");
    wg_status s = summary ? wg_json_save_rows(summary, path, err) : wg_nomem(err, 1, "a summary");
    path_of(path, r, "report.html");
    if (!s) s = wg_load_sweep_page(path, r->s, summary, r->machine, err);
    json_decref(summary);
    return s;
}

wg_status wg_load_sweep_run(const wg_load_sweep *sweep, const wg_sweep_run *run, wg_error *err)
{
    char path[PATH_ROOM];
    runner r = { .s = sweep, .run = run, .points = json_array() };
    wg_status s = run->resume ? resume(&r, err) : begin(&r, err);
    path_of(path, &r, "points.jsonl");
    if (!s && !(r.lines = fopen(path, "ae"))) s = wg_fail(err, WG_EIO, "%s: cannot write: %s", path, strerror(errno));
    if (!s) s = run_all(&r, err);
    if (r.lines && fclose(r.lines) != 0 && !s) s = wg_fail(err, WG_EIO, "%s: cannot write: %s", path, strerror(errno));
    if ((!s || s == WG_EINTERRUPTED) && r.lines) { /* reports the completed tests */
        wg_error other;
        const wg_status told = finish(&r, s ? &other : err);
        if (!s) s = told;
    }
    json_decref(r.points);
    json_decref(r.machine);
    return s;
}
