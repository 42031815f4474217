/* SPDX-License-Identifier: MIT
 * The command wager load --sweep (load_sweep_command.h). */
#include "experiments/cli/load_sweep_command.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/json_number.h"
#include "experiments/cli/cli.h"
#include "experiments/cli/signals.h"
#include "experiments/load/load_sweep.h"

static void show(void *user, int done, int all, const char *server, const wg_swept_load *load)
{
    (void)user;
    if (load->clients) fprintf(stderr, "\r\033[K%d of %d tests done; %s, %d clients", done, all, server, load->clients);
    else fprintf(stderr, "\r\033[K%d of %d tests done; %s, %g requests a second", done, all, server, load->rate);
}

/* Prints the servers of the config that are not tested. */
static void print_left_out(const json_t *left_out)
{
    for (size_t i = 0; i < json_array_size(left_out); i++) {
        const json_t *o = json_array_get(left_out, i);
        fprintf(stderr, "wager load: SKIPPED: the server '%s' needs %s, which is not there\n", wg_json_word(o, "server"),
                wg_json_word(o, "needs"));
    }
}

static void print_summary(const char *folder)
{
    json_t *summary = wg_json_load(folder, "summary.json");
    const json_t *cells = json_object_get(summary, "cells");
    puts("load          tokens/s  TTFT p99   TPOT p50  over best other         server");
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = json_array_get(cells, i);
        const double best = wg_json_measured(c, "over_best_other");
        const double low = wg_json_item(c, "over_best_other_ci", 0), high = wg_json_item(c, "over_best_other_ci", 1);
        char load[40], ratio[60] = "-";
        if (wg_json_int(c, "clients")) snprintf(load, sizeof load, "%lld clients", (long long)wg_json_int(c, "clients"));
        else snprintf(load, sizeof load, "%g/s", wg_json_real(c, "rate"));
        if (isfinite(low)) snprintf(ratio, sizeof ratio, "%.3f (%.3f..%.3f)", best, low, high);
        else if (isfinite(best)) snprintf(ratio, sizeof ratio, "%.3f", best);
        printf("%-12s %9.1f %9.1f  %9.2f  %-22s %s\n", load, wg_json_measured(c, "output_throughput"),
               wg_json_measured(c, "p99_ttft_ms"), wg_json_measured(c, "median_tpot_ms"), ratio, wg_json_word(c, "server"));
    }
    printf("\n%s/report.html\n", folder);
    json_decref(summary);
}

int wg_load_sweep_command(const char *config, const char *folder, bool resume)
{
    wg_load_sweep *s;
    wg_error err;
    char program[4096];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    if (wg_load_sweep_open(&s, config, &err)) return wg_cli_fail(&err);
    print_left_out(s->left_out);
    const bool terminal = wg_cli_terminal(STDERR_FILENO);
    const wg_sweep_run run = { .folder = folder,
                               .program = program,
                               .resume = resume,
                               .stop = wg_cli_catch_signals(),
                               .progress = terminal ? show : NULL };
    const wg_status status = wg_load_sweep_run(s, &run, &err);
    wg_load_sweep_close(s);
    if (terminal) fputs("\r\033[K", stderr);
    if (!status) print_summary(folder);
    return status ? wg_cli_fail(&err) : WG_EXIT_OK;
}
