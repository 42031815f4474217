/* SPDX-License-Identifier: MIT
 * wager distill: trains draft models, the students, for a target, as a config says, and writes them as GGUF files. */
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "experiments/cli/cli.h"
#include "experiments/cli/commands.h"
#include "experiments/cli/signals.h"
#include "experiments/cli/training_flags.h"
#include "experiments/report/training_plots.h"
#include "experiments/run/distill_run.h"

/* The text of a number at a path of two keys, or of a key and an index; "-": none. */
static const char *decimals(const json_t *o, const char *part, const char *key, size_t index, char text[32])
{
    const json_t *v = part ? json_object_get(json_object_get(o, part), key) : json_object_get(o, key);
    if (json_is_array(v)) v = json_array_get(v, index);
    if (json_is_number(v)) snprintf(text, 32, "%.4f", json_number_value(v));
    else snprintf(text, 32, "-");
    return text;
}

/* Explains why there are no results on held-out documents, and how to get them. */
static void explain_empty(const wg_distill_config *c)
{
    const wg_train_data *d = &c->train.data;
    fputs("held out, alpha, tau(4) and predicted need held-out documents: ", stdout);
    if (c->distill.documents == 0) puts("distill.documents is 0, so students are compared on none");
    else if (*d->tokens)
        puts(*d->held ? "those of data.held are shorter than a sequence" : "name a token file of some with data.held");
    else if (d->held_out == 0) puts("data.held_out is 0: no document is held out; 10 holds out one in ten");
    else
        printf(
            "of the text none is, or none as long as a sequence, by data.held_out %d (one in so many). Lower it, such as to 5, "
            "give more documents, or divide the text into more with data.separator\n",
            d->held_out);
}

static void print(const wg_distill_config *c, json_t *result, const char *folder, bool json)
{
    size_t i;
    json_t *s;
    if (json) {
        wg_json_put_line(json_incref(result), 0);
        return;
    }
    printf("%-20s %10s %9s %9s %9s %9s %9s\n", "student", "parameters", "loss", "held out", "alpha", "tau(4)", "predicted");
    json_array_foreach(json_object_get(result, "students"), i, s) {
        const bool written = json_object_get(s, "target_text");
        char text[5][32];
        printf("%-20s %10lld %9s %9s %9s %9s %9s\n", json_string_value(json_object_get(s, "name")),
               (long long)json_integer_value(json_object_get(s, "parameters")), decimals(s, NULL, "loss", 0, text[0]),
               decimals(s, NULL, "held_out", 0, text[1]), decimals(s, written ? "target_text" : NULL, "alpha", 0, text[2]),
               decimals(s, "target_text", "tau", 3, text[3]), decimals(s, "predicted", "speedup", 0, text[4]));
    }
    if (!json_integer_value(json_object_get(result, "documents"))) explain_empty(c);
    printf("%lld steps, %lld tokens of each student in %.1f s\nwrote %s/distill.json\n",
           (long long)json_integer_value(json_object_get(result, "steps")),
           (long long)json_integer_value(json_object_get(result, "tokens")),
           json_number_value(json_object_get(result, "seconds")), folder);
}

int wg_cmd_distill(int argc, char **argv)
{
    wg_training_flags f;
    const int done = wg_training_flags_parse(&f, "distill", "those of the config", argc, argv);
    if (done >= 0) return done;
    wg_error err;
    wg_distill_config c;
    json_t *result;
    int status = WG_EXIT_OK;
    if (wg_distill_config_open(&c, f.config, f.set.item, f.set.n, &err)) return wg_cli_fail(&err);
    const wg_distill_run_options o = { .folder = f.out,
                                       .threads = (int)f.threads,
                                       .device = f.device,
                                       .resume = f.resume,
                                       .progress = wg_cli_terminal(STDERR_FILENO),
                                       .stop = wg_cli_catch_signals() };
    wg_status s = wg_distill_run(&c, &o, &result, &err);
    if (s == WG_OK) s = wg_training_plot_files(f.out, &err);
    if (s) status = wg_cli_fail(&err);
    else print(&c, result, f.out, f.json);
    if (s == WG_EINTERRUPTED) fprintf(stderr, "to go on: the same command with --resume\n");
    json_decref(result);
    wg_distill_config_close(&c);
    return status;
}
