/* SPDX-License-Identifier: MIT
 * wager train: trains a language model as a config says, and writes it as a GGUF file. wager distill: trains draft models, the
 * students, for a target. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "experiments/cli/cli.h"
#include "experiments/report/training_plots.h"
#include "experiments/run/distill.h"
#include "experiments/run/train_run.h"

/* The flags of both commands. */
typedef struct training_flags {
    const char *config;       /* the file */
    const char *out, *device; /* device NULL: not given */
    wg_flag_list set;
    long threads; /* 0: not given */
    bool resume, json, write_only;
} training_flags;

/* Parses like wg_cli_parse and returns its result: -1 to continue. threads_0: the meaning of 0 threads, for --help. distill:
 * that command's own flags too. */
static int parse_flags(training_flags *f, const char *command, bool distill, const char *threads_0, int argc, char **argv)
{
    char threads[80];
    snprintf(threads, sizeof threads, "number of threads; 0: %s; results do not depend on it", threads_0);
    *f = (training_flags){ .out = NULL };
    const wg_flag flags[] = {
        { "out", 'o', WG_FLAG_STRING, &f->out, "DIR", "the folder of the run (needed)", 0, 0 },
        { "set", 0, WG_FLAG_LIST, &f->set, "A.B=V", "override a value of the file (JSON, or text); may be repeated", 0, 0 },
        { "resume", 'r', WG_FLAG_BOOL, &f->resume, NULL, "continue from the last checkpoint in the folder", 0, 0 },
        { "threads", 't', WG_FLAG_INT, &f->threads, "N", threads, 0, 256 },
        { "device", 0, WG_FLAG_STRING, &f->device, "DEVICE", "the device that trains: cpu, cuda:0 (1, ...) or auto", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &f->json, NULL, "print the result as a JSON object", 0, 0 },
        { distill ? "write-only" : NULL, 0, WG_FLAG_BOOL, &f->write_only, NULL,
          "only have the target write data.conversations (conversations.tokens), or go on with it", 0, 0 },
        { NULL, 0, WG_FLAG_BOOL, NULL, NULL, NULL, 0, 0 },
    };
    const int done = wg_cli_parse(command, flags, argc, argv, &f->config, 1, 1);
    if (done >= 0 || f->out || f->write_only) return done;
    return wg_cli_refuse(command, "--out DIR is missing: the folder of the run");
}

/* ---- train */

static void print_model(const wg_train_result *r, bool json)
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
    training_flags f;
    const int done = parse_flags(&f, "train", false, "all cores", argc, argv);
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
    else print_model(&result, f.json);
    if (s == WG_EINTERRUPTED) fprintf(stderr, "to go on: the same command with --resume\n");
    wg_train_config_close(&c);
    return status;
}

/* ---- distill */

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

static void print_students(const wg_distill_config *c, json_t *result, const char *folder, bool json)
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

static void print_written(const wg_distill_config *c, json_t *result, bool json)
{
    if (json) {
        wg_json_put_line(json_incref(result), 0);
        return;
    }
    printf("%s: %lld conversations, %lld tokens of answers\n", c->train.data.conversations,
           (long long)json_integer_value(json_object_get(result, "conversations")),
           (long long)json_integer_value(json_object_get(result, "tokens")));
}

int wg_cmd_distill(int argc, char **argv)
{
    training_flags f;
    const int done = parse_flags(&f, "distill", true, "those of the config", argc, argv);
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
                                       .write_only = f.write_only,
                                       .progress = wg_cli_terminal(STDERR_FILENO),
                                       .stop = wg_cli_catch_signals() };
    wg_status s = wg_distill_run(&c, &o, &result, &err);
    if (s == WG_OK && !f.write_only) s = wg_training_plot_files(f.out, &err);
    if (s) status = wg_cli_fail(&err);
    else if (f.write_only) print_written(&c, result, f.json);
    else print_students(&c, result, f.out, f.json);
    if (s == WG_EINTERRUPTED) fprintf(stderr, "to go on: the same command%s\n", f.write_only ? "" : " with --resume");
    json_decref(result);
    wg_distill_config_close(&c);
    return status;
}
