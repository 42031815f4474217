/* SPDX-License-Identifier: MIT
 * wager train: trains a language model as a config says, and writes it as a GGUF file. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "experiments/cli/cli.h"
#include "experiments/cli/commands.h"
#include "experiments/cli/signals.h"
#include "experiments/cli/training_flags.h"
#include "experiments/run/train_run.h"

static void print(const wg_train_result *r, bool json)
{
    if (json) {
        json_t *o = json_pack("{s:s, s:I, s:I, s:I, s:f, s:f, s:o}", "model", r->model, "parameters", (json_int_t)r->parameters,
                              "steps", (json_int_t)r->step, "tokens", (json_int_t)r->rows, "loss", r->loss, "seconds",
                              r->seconds, "held_out", isnan(r->held) ? json_null() : json_real(r->held));
        wg_json_put_line(o, 0);
        return;
    }
    printf("%lld parameters, %ld steps, %ld tokens in %.1f s: loss %.4f", (long long)r->parameters, r->step, r->rows,
           r->seconds, r->loss);
    if (!isnan(r->held)) printf(", held out %.4f", r->held);
    printf("\nwrote %s\n", r->model);
}

int wg_cmd_train(int argc, char **argv)
{
    wg_training_flags f;
    const int done = wg_training_flags_parse(&f, "train", "all cores", argc, argv);
    if (done >= 0) return done;
    wg_error err;
    wg_train_config c;
    wg_train_result result;
    int status = WG_EXIT_OK;
    if (wg_train_config_open(&c, f.config, f.set.item, f.set.n, &err)) return wg_cli_fail(&err);
    const wg_train_run_options o = { .folder = f.out,
                                     .threads = (int)f.threads,
                                     .device = f.device,
                                     .resume = f.resume,
                                     .progress = wg_cli_terminal(STDERR_FILENO),
                                     .stop = wg_cli_catch_signals() };
    const wg_status s = wg_train_run(&c, &o, &result, &err);
    if (s) status = wg_cli_fail(&err);
    else print(&result, f.json);
    if (s == WG_EINTERRUPTED) fprintf(stderr, "to go on: the same command with --resume\n");
    wg_train_config_close(&c);
    return status;
}
