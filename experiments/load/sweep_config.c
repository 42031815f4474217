/* SPDX-License-Identifier: MIT
 * Configs of load sweeps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "experiments/load/load_sweep.h"
#include "experiments/load/load_test.h"

static const char *const endpoints[] = { "completions", "chat", NULL };

#define TEXT(field, def, doc) WG_OPTION_STR(wg_sweep_options, field, def, doc)
#define INT(field, def, min, max, doc) WG_OPTION_INT(wg_sweep_options, field, def, min, max, doc)
#define NUMBER(field, def, min, max, doc) WG_OPTION_FLOAT(wg_sweep_options, field, def, min, max, doc)
const wg_option wg_sweep_option_rows[] = {
    TEXT(name, "load", "of the sweep"),
    TEXT(question, "", "what it is to answer"),
    WG_OPTION_NAME(wg_sweep_options, prompts, WG_NAMES_FILE, "", "prompts (JSONL), in turn; none: made-up ones"),
    TEXT(model, "", "the model asked for; none: the server's first"),
    INT(words, 64, 1, 1e6, "of a made-up prompt"),
    INT(words_range, 0, 0, 1e6, "so many words more or less"),
    INT(requests, 64, 1, 1e7, "of a test"),
    INT(requests_per_client, 0, 0, 1e6, "and at least so many for each client"),
    INT(warmups, 4, 0, 1e6, "requests before, which do not count"),
    INT(max_tokens, 64, 1, 1e6, "of an answer"),
    INT(seed, 1, 0, 2147483647, "of arrivals and made-up prompts; request i asks for seed + i"),
    INT(repeats, 3, 1, WG_SWEEP_PAIRS, "of every test"),
    INT(turns, 1, 1, WG_SWEEP_PAIRS, "more than one: in a repeat all servers run, and are tested so often, in turn"),
    WG_OPTION_ENUM(wg_sweep_options, endpoint, 0, endpoints, "that is asked"),
    NUMBER(temperature, 0, 0, 100, "0 is greedy"),
    NUMBER(burstiness, 1, 1e-3, 1e6, "of arrivals at a rate; below 1 in bursts"),
    NUMBER(ready_seconds, 120, 0.1, 1e5, "that a server has to start"),
    NUMBER(timeout, 600, 0.01, 1e6, "seconds after which a request is given up"),
    NUMBER(goal_ttft, 0, 0, 1e9, "ms, of a good request; 0: any"),
    NUMBER(goal_tpot, 0, 0, 1e9, "ms, of a good request; 0: any"),
    NUMBER(goal_e2el, 0, 0, 1e9, "ms, of a good request; 0: any"),
    WG_OPTION_BOOL(wg_sweep_options, ignore_eos, 1, "answers of exactly max_tokens, where the server can"),
    WG_OPTION_END,
};

/* ---- scalars ----------------------------------------------------------------------------------------------------- */

static wg_status set_scalar(wg_load_sweep *s, const char *key, const json_t *v, wg_error *err)
{
    wg_error why;
    wg_status status = WG_EINVAL;
    if (json_is_number(v)) {
        status = wg_option_set_number(wg_sweep_option_rows, &s->opt, key, json_number_value(v), json_is_integer(v), &why);
    } else if (json_is_boolean(v)) {
        status = wg_option_set(wg_sweep_option_rows, &s->opt, key, json_is_true(v) ? "true" : "false", &why);
    } else if (json_is_string(v)) {
        status = wg_option_set(wg_sweep_option_rows, &s->opt, key, json_string_value(v), &why);
    } else wg_fail(&why, WG_EINVAL, "%s: expected a number, a text, true or false", key);
    return status ? wg_json_problem(s->doc, key, false, err, "%s", why.text) : WG_OK;
}

static wg_status read_loads(wg_load_sweep *s, const char *key, const json_t *list, wg_error *err)
{
    const bool clients = !strcmp(key, "clients");
    if (!json_array_size(list)) return wg_json_problem(s->doc, key, false, err, "%s: expected a list of numbers", key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        const double x = json_number_value(v);
        char at[80];
        snprintf(at, sizeof at, "%s[%zu]", key, i);
        const bool good =
            clients ? json_is_integer(v) && x >= 1 && x <= WG_LOAD_CLIENTS : json_is_number(v) && x > 0 && x <= 1e6;
        if (!good || s->loads == WG_SWEEP_LOADS)
            return wg_json_problem(s->doc, at, false, err,
                                   "%s: expected up to %d loads: clients 1..%d, rates above 0 requests a second", at,
                                   WG_SWEEP_LOADS, WG_LOAD_CLIENTS);
        s->load[s->loads++] = clients ? (wg_swept_load){ .clients = (int)x } : (wg_swept_load){ .rate = x };
    }
    return WG_OK;
}

/* ---- servers ----------------------------------------------------------------------------------------------------- */

/* Replaces {name} in a command; false: it does not fit. */
static bool replace(char *command, const char *name, const char *by)
{
    char key[WG_SWEEP_NAME], made[WG_SWEEP_COMMAND];
    snprintf(key, sizeof key, "{%s}", name);
    for (char *at; (at = strstr(command, key));) {
        const int n = snprintf(made, sizeof made, "%.*s%s%s", (int)(at - command), command, by, at + strlen(key));
        if (n < 0 || (size_t)n >= sizeof made || strstr(by, key)) return false;
        memcpy(command, made, (size_t)n + 1);
    }
    return true;
}

/* The varied members, as an odometer over the labels of each. */
typedef struct wheel {
    const char *name, *label[WG_SWEEP_SERVERS], *text[WG_SWEEP_SERVERS];
    int n, at;
} wheel;
enum { WHEELS = 8 };

static wg_status read_wheels(wg_load_sweep *s, const char *place, const json_t *vary, wheel *w, int *n, wg_error *err)
{
    const char *name, *label;
    json_t *values, *text;
    *n = 0;
    json_object_foreach((json_t *)(uintptr_t)vary, name, values) {
        wheel *to = &w[(*n)++];
        *to = (wheel){ .name = name };
        json_object_foreach(values, label, text) {
            if (json_is_string(text) && to->n < WG_SWEEP_SERVERS)
                to->label[to->n] = label, to->text[to->n] = json_string_value(text);
            to->n++;
        }
        if (*n == WHEELS || to->n == 0 || to->n > WG_SWEEP_SERVERS || !to->text[to->n - 1])
            return wg_json_problem(
                s->doc, place, false, err,
                "%s: expected up to %d members such as {\"mode\": {\"static\": \"--mode static\"}}: labels, and "
                "the text that each puts into the command",
                place, WHEELS - 1);
    }
    return WG_OK;
}

static bool add_server(wg_load_sweep *s, const char *name, const char *command, const wheel *w, int n)
{
    wg_swept_server *to = &s->server[s->servers];
    char words[WG_SWEEP_NAME];
    if (s->servers == WG_SWEEP_SERVERS || strlen(command) >= sizeof to->command) return false;
    s->servers++;
    strcpy(to->command, command);
    to->labels = json_pack("{s:s}", "server", name);
    snprintf(words, sizeof words, "%.180s", name);
    strcpy(to->name, words);
    strcpy(to->group, words);
    for (int i = 0; i < n; i++) {
        if (!replace(to->command, w[i].name, w[i].text[w[i].at])) return false;
        json_object_set_new(to->labels, w[i].name, json_string(w[i].label[w[i].at]));
        if (i == n - 1) strcpy(to->group, to->name);
        snprintf(words, sizeof words, "%.90s, %.90s", to->name, w[i].label[w[i].at]);
        strcpy(to->name, words);
    }
    return true;
}

/* Whether the shell would find the program. */
static bool is_there(const char *program)
{
    char path[WG_SWEEP_COMMAND];
    const char *at = getenv("PATH");
    if (strchr(program, '/')) return access(program, X_OK) == 0;
    for (size_t n; at && *at; at += n + (at[n] == ':')) {
        n = strcspn(at, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)n, at, program);
        if (access(path, X_OK) == 0) return true;
    }
    return false;
}

static wg_status read_server(wg_load_sweep *s, int at, const json_t *v, wg_error *err)
{
    const char *name = json_string_value(json_object_get(v, "name")),
               *command = json_string_value(json_object_get(v, "command")),
               *needs = json_string_value(json_object_get(v, "needs"));
    const json_t *vary = json_object_get(v, "vary");
    wheel w[WHEELS];
    char place[40], inner[60];
    int n, digit;
    snprintf(place, sizeof place, "servers[%d]", at);
    snprintf(inner, sizeof inner, "%s.vary", place);
    if (!name || !*name || !command || !strstr(command, "{port}") || (vary && !json_is_object(vary)))
        return wg_json_problem(s->doc, place, false, err,
                               "%s: expected {\"name\": TEXT, \"command\": TEXT with {port} in it, \"vary\": {...}}", place);
    if (needs && !is_there(needs)) {
        json_array_append_new(s->left_out, json_pack("{s:s, s:s}", "server", name, "needs", needs));
        return WG_OK;
    }
    WG_TRY(read_wheels(s, inner, vary, w, &n, err));
    do {
        if (!add_server(s, name, command, w, n))
            return wg_json_problem(s->doc, place, false, err, "%s: more than %d servers, or a command of more than %d bytes",
                                   place, WG_SWEEP_SERVERS, WG_SWEEP_COMMAND - 1);
        for (digit = n - 1; digit >= 0 && ++w[digit].at == w[digit].n; digit--) w[digit].at = 0;
    } while (digit >= 0);
    return WG_OK;
}

static wg_status check_names(const wg_load_sweep *s, wg_error *err)
{
    for (int i = 0; i < s->servers; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(s->server[i].name, s->server[k].name))
                return wg_json_problem(s->doc, "servers", false, err, "two servers are called '%s'", s->server[i].name);
    return WG_OK;
}

/* ---- open -------------------------------------------------------------------------------------------------------- */

static wg_status read_member(wg_load_sweep *s, const char *key, json_t *v, wg_error *err)
{
    if (!strcmp(key, "clients") || !strcmp(key, "rates")) return read_loads(s, key, v, err);
    if (!strcmp(key, "extra") && json_is_object(v)) {
        s->extra = v;
        return WG_OK;
    }
    if (strcmp(key, "servers") != 0) return set_scalar(s, key, v, err);
    for (size_t i = 0; i < json_array_size(v); i++) WG_TRY(read_server(s, (int)i, json_array_get(v, i), err));
    return WG_OK;
}

static wg_status read_prompts(wg_load_sweep *s, const char *path, wg_error *err)
{
    char file[2 * WG_OPTION_STRING];
    const char *slash = strrchr(path, '/');
    if (!*s->opt.prompts) return WG_OK;
    const int folder = slash && *s->opt.prompts != '/' ? (int)(slash - path) + 1 : 0;
    snprintf(file, sizeof file, "%.*s%s", folder, path, s->opt.prompts);
    return wg_dataset_open(&s->prompts, file, NULL, err);
}

static wg_status read_config(wg_load_sweep *s, const char *path, wg_error *err)
{
    const char *key;
    json_t *v;
    WG_TRY(wg_json_open(&s->doc, path, err));
    wg_option_defaults(wg_sweep_option_rows, &s->opt);
    if (!(s->left_out = json_array())) return wg_nomem(err, 1, "a sweep");
    json_object_foreach(wg_json_root(s->doc), key, v) WG_TRY(read_member(s, key, v, err));
    WG_TRY(check_names(s, err));
    if (!s->servers && json_array_size(s->left_out))
        return wg_fail(err, WG_ECONFIG, "%s: no server is left: each one needs a program that is not there", path);
    if (!s->servers || !s->loads)
        return wg_fail(err, WG_ECONFIG, "%s: expected an object with `servers`, and with loads in `clients` or `rates`", path);
    if (s->opt.words_range >= s->opt.words)
        return wg_json_problem(s->doc, "words_range", false, err, "prompts of %d words, less %d, would have none", s->opt.words,
                               s->opt.words_range);
    if (s->opt.repeats * s->opt.turns > WG_SWEEP_PAIRS)
        return wg_json_problem(s->doc, "turns", false, err,
                               "%d repeats of %d turns are more than %d tests of a server at a load", s->opt.repeats,
                               s->opt.turns, WG_SWEEP_PAIRS);
    return read_prompts(s, path, err);
}

int wg_load_sweep_tests(const wg_load_sweep *s) { return s->opt.repeats * s->opt.turns * s->loads * s->servers; }

wg_status wg_load_sweep_open(wg_load_sweep **out, const char *path, wg_error *err)
{
    wg_load_sweep *s = wg_calloc(1, sizeof *s);
    if (!s) return wg_nomem(err, sizeof *s, "a sweep");
    const wg_status status = read_config(s, path, err);
    if (status) wg_load_sweep_close(s);
    else *out = s;
    return status;
}

void wg_load_sweep_close(wg_load_sweep *s)
{
    if (!s) return;
    for (int i = 0; i < s->servers; i++) json_decref(s->server[i].labels);
    json_decref(s->left_out);
    wg_dataset_close(s->prompts);
    wg_json_close(s->doc);
    wg_free(s);
}
