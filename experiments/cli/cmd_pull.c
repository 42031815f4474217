/* SPDX-License-Identifier: MIT
 * wager pull NAME: fetches a model so that `-m NAME` finds it (experiments/pull/). */
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/file/model_name.h"
#include "experiments/cli/cli.h"
#include "experiments/pull/fetch.h"
#include "experiments/pull/pull.h"

static int list(void)
{
    char path[PATH_MAX];
    for (const wg_published_model *m = wg_published_models; m->name; m++)
        printf("%-22s %4.0f MB  %-18s %s%s\n", m->name, (double)m->bytes / 1e6, m->license, m->what,
               wg_model_path(m->name, path, NULL) == WG_OK ? "; is here" : "");
    return WG_EXIT_OK;
}

static int print_json(const char *name, const wg_pull_result *r)
{
    json_t *o = json_pack("{s:s, s:s, s:I, s:I, s:s, s:s}", "name", name, "path", r->path, "bytes", (json_int_t)r->bytes,
                          "fetched", (json_int_t)r->fetched, "license", r->license, "revision", r->revision);
    if (wg_cli_put_json(o, false)) return WG_EXIT_OK;
    fputs("wager pull: out of memory for the result; the model is there\n", stderr);
    return WG_EXIT_FAILED;
}

int wg_cmd_pull(int argc, char **argv)
{
    const char *word[1] = { NULL };
    bool accept = false, names = false, json = false;
    long connections = 4;
    const wg_flag flags[] = {
        { "accept", 0, WG_FLAG_BOOL, &accept, NULL, "accept the terms of the model", 0, 0 },
        { "connections", 0, WG_FLAG_INT, &connections, "N", "number of connections over which a hub's file is fetched", 1,
          WG_FETCH_CONNECTIONS },
        { "list", 0, WG_FLAG_BOOL, &names, NULL, "print the models that have a name of their own", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &json, NULL, "print the result as a JSON object", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("pull", flags, argc, argv, word, 0, 1);
    if (done >= 0) return done;
    if (names) return list();
    if (!word[0])
        return wg_cli_refuse("pull", "NAME is missing: a model of `wager pull --list`, or hf:OWNER/REPO[:FILE|QUANT]");
    const wg_pull_options o = { .accept = accept,
                                .progress = !json && wg_cli_terminal(STDERR_FILENO),
                                .connections = (int)connections };
    wg_error err;
    wg_pull_result *r = wg_calloc(1, sizeof *r);
    if (!r) return wg_cli_fail((wg_nomem(&err, sizeof *r, "the result"), &err));
    const wg_status s = wg_pull(word[0], &o, r, &err);
    int status = s ? wg_cli_fail(&err) : WG_EXIT_OK;
    if (!s && json) status = print_json(word[0], r);
    else if (!s) puts(r->path);
    wg_free(r);
    return status;
}
