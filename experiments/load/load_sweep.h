/* SPDX-License-Identifier: MIT
 * The throughput-latency curve of servers: every server of a config is tested at every load, either started anew for each test,
 * or beside the others in turns, repeated so that a slow moment of the machine affects all of them (docs/load.md). */
#ifndef WG_EXPERIMENTS_LOAD_LOAD_SWEEP_H
#define WG_EXPERIMENTS_LOAD_LOAD_SWEEP_H

#include <jansson.h>
#include <signal.h>

#include "core/base/json.h"
#include "experiments/config/dataset.h"
#include "core/base/option.h"

/* PAIRS: the most tests of a server at a load. */
enum { WG_SWEEP_SERVERS = 64, WG_SWEEP_LOADS = 64, WG_SWEEP_COMMAND = 4096, WG_SWEEP_NAME = 200, WG_SWEEP_PAIRS = 1000 };

/* The scalar members of a config. */
typedef struct wg_sweep_options {
    char name[WG_OPTION_STRING], question[WG_OPTION_STRING], prompts[WG_OPTION_STRING], model[WG_OPTION_STRING];
    int words, words_range, requests, requests_per_client, warmups, max_tokens, seed, repeats, turns, endpoint;
    double temperature, burstiness, ready_seconds, timeout, goal_ttft, goal_tpot, goal_e2el;
    bool ignore_eos;
} wg_sweep_options;
extern const wg_option wg_sweep_option_rows[];

/* A server: a shell command in which {port}, {wager} (this program) and the names of `vary` are replaced. */
typedef struct wg_swept_server {
    char name[WG_SWEEP_NAME];  /* unique: its own name with the labels of varied members */
    char group[WG_SWEEP_NAME]; /* equal for servers that differ only in the last member of `vary` */
    char command[WG_SWEEP_COMMAND];
    json_t *labels; /* owned: {"server": .., each name of `vary`: its label} */
} wg_swept_server;

/* A load: a number of clients, or a rate (clients 0). */
typedef struct wg_swept_load {
    int clients;
    double rate;
} wg_swept_load;

typedef struct wg_load_sweep {
    wg_json *doc;
    wg_sweep_options opt;
    wg_swept_server server[WG_SWEEP_SERVERS];
    wg_swept_load load[WG_SWEEP_LOADS];
    int servers, loads;
    json_t *left_out; /* owned: [{"server": .., "needs": the missing program}, ..] */
    json_t *extra;    /* borrowed from doc; NULL: none */
    wg_dataset *prompts;
} wg_load_sweep;

/* Reads and checks a config; ECONFIG lists all problems with file, line and column. prompts are relative to the config. */
wg_status wg_load_sweep_open(wg_load_sweep **out, const char *path, wg_error *err);
void wg_load_sweep_close(wg_load_sweep *s); /* NULL is fine */

/* Runs the sweep into a new folder, or with `resume` continues one: config.json, machine.json, points.jsonl (a line per test,
 * written when it has ended), servers/NAME.log, then summary.json and report.html. program: this process's, for {wager}.
 * progress (may be NULL) is called before each test. Errors: EINTERRUPTED; EIO: a server does not start (with its log). A test
 * in which all requests fail is a line of the result, not an error. */
typedef struct wg_sweep_run {
    const char *folder, *program;
    bool resume;
    const volatile sig_atomic_t *stop;
    void (*progress)(void *user, int done, int all, const char *server, const wg_swept_load *load);
    void *user;
} wg_sweep_run;
wg_status wg_load_sweep_run(const wg_load_sweep *s, const wg_sweep_run *run, wg_error *err);

int wg_load_sweep_tests(const wg_load_sweep *s); /* number of tests */

/* Summarises the lines: medians over the tests of each server at each load, and its throughput over that of the best other
 * server of its group at the same load, as a ratio of totals over repeats and turns, with the 95 % jackknife interval. */
json_t *wg_load_sweep_summary(const wg_load_sweep *s, const json_t *points);

/* Writes the page of a summary. machine: the contents of machine.json. */
wg_status wg_load_sweep_page(const char *path, const wg_load_sweep *s, const json_t *summary, const json_t *machine,
                             wg_error *err);

/* ---- a server under test */

typedef struct wg_server_under_test wg_server_under_test;

/* Starts the command in a process group of its own, on a free port, with its output in the file `log`, and waits until it is
 * ready. EIO, with the end of the log: it ended, or was not ready in time. */
wg_status wg_server_start(wg_server_under_test **out, const char *command, const char *program, const char *log, double seconds,
                          const volatile sig_atomic_t *stop, wg_error *err);
const char *wg_server_url(const wg_server_under_test *s);
void wg_server_stop(wg_server_under_test *s); /* SIGTERM, and after ten seconds SIGKILL; NULL is fine */

#endif
