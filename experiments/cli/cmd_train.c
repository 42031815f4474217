/* SPDX-License-Identifier: MIT
 * wager train: trains a language model as a config says, and writes it as a GGUF file. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "experiments/cli/cli.h"
#include "experiments/cli/commands.h"
#include "experiments/cli/signals.h"
#include "experiments/run/train_run.h"

static void print(const wg_train_result *r, bool json)
{
    if (json) {
        json_t *o = json_pack("{s:s, s:I, s:I, s:I, s:f, s:f, s:o}", "model", r->model, "parameters", (json_int_t)r->parameters,
                              "steps", (json_int_t)r->step, "tokens", (json_int_t)r->rows, "loss", r->loss, "seconds",
                              r->seconds, "held_out", isnan(r->held) ? json_null() : json_real(r->held));
        json_dumpf(o, stdout, JSON_SORT_KEYS | JSON_COMPACT);
        putchar('\n');
        json_decref(o);
        return;
    }
    printf("%lld parameters, %ld steps, %ld tokens in %.1f s: loss %.4f", (long long)r->parameters, r->step, r->rows,
           r->seconds, r->loss);
    if (!isnan(r->held)) printf(", held out %.4f", r->held);
    printf("\nwrote %s\n", r->model);
}

int wg_cmd_train(int argc, char **argv)
{
    wg_flag_list set = { .n = 0 };
    const char *path, *out = NULL, *device = NULL;
    long threads = 0;
    bool resume = false, json = false;
    const wg_flag flags[] = {
        { "out", 'o', WG_FLAG_STRING, &out, "DIR", "the folder of the run (needed)", 0, 0 },
        { "set", 0, WG_FLAG_LIST, &set, "A.B=V", "override a value of the file (JSON, or text); may be repeated", 0, 0 },
        { "resume", 'r', WG_FLAG_BOOL, &resume, NULL, "go on from the last checkpoint in the folder", 0, 0 },
        { "threads", 't', WG_FLAG_INT, &threads, "N", "0: all cores; results do not depend on it", 0, 256 },
        { "device", 0, WG_FLAG_STRING, &device, "D", "where it is trained: cpu, cuda:0 (1, ...) or auto", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &json, NULL, "the result as a JSON object", 0, 0 },
        { NULL, 0, WG_FLAG_BOOL, NULL, NULL, NULL, 0, 0 },
    };
    const int bad = wg_cli_parse("train", flags, argc, argv, &path, 1, 1);
    if (bad >= 0) return bad;
    if (!out) {
        fputs("wager train: --out DIR is missing: the folder of the run\n", stderr);
        return WG_EXIT_USAGE;
    }
    wg_error err;
    wg_train_config c;
    wg_train_result result;
    int status = WG_EXIT_OK;
    if (wg_train_config_open(&c, path, set.item, set.n, &err)) return wg_cli_fail(&err);
    const wg_train_run_options o = { .folder = out,
                                     .threads = (int)threads,
                                     .device = device,
                                     .resume = resume,
                                     .progress = wg_cli_terminal(STDERR_FILENO),
                                     .stop = wg_cli_catch_signals() };
    const wg_status s = wg_train_run(&c, &o, &result, &err);
    if (s) status = wg_cli_fail(&err);
    else print(&result, json);
    if (s == WG_EINTERRUPTED) fprintf(stderr, "to go on: the same command with --resume\n");
    wg_train_config_close(&c);
    return status;
}
