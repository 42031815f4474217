/* SPDX-License-Identifier: MIT
 * wager merge: merges the shards of a run. */
#include <stdio.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/cli/cli.h"
#include "experiments/run/merge_shards.h"
#include "core/setup/spec.h"
#include "experiments/report/table.h"

int wg_cmd_merge(int argc, char **argv)
{
    bool json = false;
    const wg_flag flags[] = {
        { "json", 0, WG_FLAG_BOOL, &json, NULL, "one JSON object a line per cell instead of the table", 0, 0 },
        { NULL, 0, WG_FLAG_BOOL, NULL, NULL, NULL, 0, 0 },
    };
    const char **word = wg_calloc((size_t)argc + 1, sizeof *word); /* a run may have any number of shards */
    wg_error err;
    if (!word) return wg_nomem(&err, (size_t)argc * sizeof *word, "names"), wg_cli_fail(&err);
    const int bad = wg_cli_parse("merge", flags, argc, argv, word, 2, argc);
    int n = 0, status = bad;
    while (word[n]) n++;
    if (bad < 0 && wg_merge(word[0], word + 1, n - 1, &wg_program_plugins, &err)) status = wg_cli_fail(&err);
    else if (bad < 0) {
        json_t *summary = wg_json_load(word[0], "summary.json");
        if (json) wg_table_print_json(stdout, summary);
        else wg_table_print(stdout, summary, NULL, wg_cli_width(STDOUT_FILENO));
        json_decref(summary);
        fprintf(stderr, "results: %s\n", word[0]);
        status = WG_EXIT_OK;
    }
    wg_free(word);
    return status;
}
