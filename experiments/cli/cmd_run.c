/* SPDX-License-Identifier: MIT
 * wager run: runs an experiment's file, and writes its result folder and table. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/model/device.h"
#include "experiments/cli/cli.h"
#include "core/setup/spec.h"
#include "core/setup/target_ranks.h"
#include "experiments/run/runner.h"
#include "experiments/run/summary.h"
#include "experiments/report/table.h"

/* Whether some cell has no successful request, which fails the command. */
static bool some_cell_is_empty(const wg_run *run)
{
    for (int i = 0; i < run->config->n && !run->config->shard.count; i++) /* a shard may have none of a cell's requests */
        if (run->result[i].requests == 0) return true;
    return false;
}

static int run(const wg_config *c, const char *out, bool resume, bool json, const wg_column_choice *columns)
{
    wg_error err;
    wg_run result;
    char *path = NULL;
    const wg_run_options o = { .out = out,
                               .stop = wg_cli_catch_signals(),
                               .progress = wg_cli_terminal(STDERR_FILENO),
                               .resume = resume,
                               .warnings = stderr };
    const double load = wg_machine_load();
    const wg_status s = wg_run_config(c, &o, &result, &path, &err);
    json_t *summary = !s || s == WG_EINTERRUPTED ? wg_summary_json(&result) : NULL;
    if (summary && json) wg_table_print_json(stdout, summary);
    else if (summary) {
        if (!columns) wg_machine_line(stdout, load);
        wg_table_print(stdout, summary, columns, wg_cli_width(STDOUT_FILENO));
    }
    json_decref(summary);
    fflush(stdout); /* a log of both streams has whole lines */
    int status = s ? wg_cli_fail(&err) : some_cell_is_empty(&result) ? WG_EXIT_FAILED : WG_EXIT_OK;
    if (result.resumed) fprintf(stderr, "resumed: %d requests were there already\n", result.resumed);
    if (s == WG_EINTERRUPTED && path) fprintf(stderr, "to go on: the same command with --resume --out '%s'\n", path);
    if (path) fprintf(stderr, "results: %s\n", path);
    wg_free(path);
    wg_run_free(&result);
    return status;
}

enum { RANKS_SETS = 3, RANKS_TEXT = 32 }; /* overrides of --ranks, each a text of so many bytes */

/* --ranks replaces all that the file says of ranks; but the number of processes is mpirun's, and `mpi` leaves the rest. */
static void set_ranks(wg_flag_list *set, const char *ranks, const wg_comm_spec *where, char text[][RANKS_TEXT])
{
    if (where->kind == WG_COMM_MPI && !strchr(ranks, ':')) return;
    snprintf(text[0], RANKS_TEXT, "target.tensor=%d", where->ranks / where->pipeline);
    snprintf(text[1], RANKS_TEXT, "target.pipeline=%d", where->pipeline > 1 ? where->pipeline : 0);
    snprintf(text[2], RANKS_TEXT, "target.ranks=");
    for (int i = where->kind == WG_COMM_MPI; i < RANKS_SETS; i++) set->item[set->n++] = text[i];
}

int wg_cmd_run(int argc, char **argv)
{
    wg_flag_list set = { .n = 0 };
    const char *out = NULL, *device = NULL, *shard = NULL, *from = NULL, *list = NULL, *profile = NULL, *ranks = NULL, *path;
    char ranks_set[RANKS_SETS][RANKS_TEXT], threads_set[64], device_set[64], profile_set[WG_OPTION_STRING];
    long threads = -1;
    bool dry = false, json = false, resume = false;
    const wg_flag flags[] = {
        { "out", 'o', WG_FLAG_STRING, &out, "DIR", "the result folder; else results/<name>/<hash>-<host>-<utc>", 0, 0 },
        { "set", 0, WG_FLAG_LIST, &set, "A.B=V", "override a value of the file (JSON, or text); may be repeated", 0, 0 },
        { "resume", 'r', WG_FLAG_BOOL, &resume, NULL, "continue --out DIR, or the latest run of this config", 0, 0 },
        { "shard", 0, WG_FLAG_STRING, &shard, "I/N",
          "run part I of N; else the part that a Slurm array or MPI names; all: the whole experiment", 0, 0 },
        { "dry-run", 0, WG_FLAG_BOOL, &dry, NULL, "check and show what would run; write nothing", 0, 0 },
        { "device", 0, WG_FLAG_STRING, &device, "DEVICE", "--set target.device=D: " WG_DEVICE_NAMES, 0, 0 },
        { "threads", 't', WG_FLAG_INT, &threads, "N", "--set target.threads=N (0: all cores); -1: as the file says", -1, 256 },
        { "ranks", 0, WG_FLAG_STRING, &ranks, "RANKS", "--set target.tensor=N, target.pipeline=P: " WG_RANKS_DOC, 0, 0 },
        { "profile", 0, WG_FLAG_STRING, &profile, "FILE|new|nominal", "--set profile=P: " WG_PROFILE_DOC, 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &json, NULL, "one JSON object a line per cell instead of the table", 0, 0 },
        { "columns", 0, WG_FLAG_STRING, &list, "COLUMNS", "of the table; " WG_COLUMNS_DOC, 0, 0 },
        { NULL, 0, WG_FLAG_BOOL, NULL, NULL, NULL, 0, 0 },
    };
    const int bad = wg_cli_parse("run", flags, argc, argv, &path, 1, 1);
    if (bad >= 0) return bad;
    const int more = (threads >= 0) + (device != NULL) + (profile != NULL) + (ranks ? RANKS_SETS : 0);
    if (set.n + more > WG_FLAG_LIST_MAX)
        return wg_cli_refuse("run", "%d overrides by --set and the flags that stand for it; expected at most %d", set.n + more,
                             (int)WG_FLAG_LIST_MAX);
    if (threads >= 0) {
        snprintf(threads_set, sizeof threads_set, "target.threads=%ld", threads);
        set.item[set.n++] = threads_set;
    }
    if (device) {
        snprintf(device_set, sizeof device_set, "target.device=%.40s", device);
        set.item[set.n++] = device_set;
    }
    if (profile) {
        snprintf(profile_set, sizeof profile_set, "profile=%s", profile);
        set.item[set.n++] = profile_set;
    }
    wg_error err;
    wg_config *c;
    wg_column_choice chosen;
    wg_comm_spec where;
    if (ranks && wg_target_ranks(&(wg_target_options){ .ranks = ranks }, &where, &err)) return wg_cli_fail(&err);
    if (ranks) set_ranks(&set, ranks, &where, ranks_set);
    if (list && wg_columns_named(list, &chosen, &err)) return wg_cli_fail(&err);
    if (wg_config_open(&c, path, set.item, set.n, &wg_program_plugins, &err)) return wg_cli_fail(&err);
    int status = WG_EXIT_OK;
    const char *part = !shard && wg_comm_mpi_open() ? "all" : shard; /* its processes are ranks then */
    if (part ? wg_shard_parse(&c->shard, part, &err) : wg_shard_of_environment(&c->shard, &from, &err)) {
        wg_config_close(c);
        return wg_cli_fail(&err);
    }
    if (from) fprintf(stderr, "shard %d of %d, by %s\n", c->shard.index, c->shard.count, from);
    if (dry) status = wg_cli_print_plan(stdout, c, -1, true, &err) ? wg_cli_fail(&err) : WG_EXIT_OK;
    else status = run(c, out, resume, json, list ? &chosen : NULL);
    wg_config_close(c);
    return status;
}
