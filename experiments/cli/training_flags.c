/* SPDX-License-Identifier: MIT
 * Flags of training (training_flags.h). */
#include "experiments/cli/training_flags.h"

int wg_training_flags_parse(wg_training_flags *f, const char *command, const char *threads_0, int argc, char **argv)
{
    char threads[80];
    snprintf(threads, sizeof threads, "number of threads; 0: %s; results do not depend on it", threads_0);
    *f = (wg_training_flags){ .out = NULL };
    const wg_flag flags[] = {
        { "out", 'o', WG_FLAG_STRING, &f->out, "DIR", "the folder of the run (needed)", 0, 0 },
        { "set", 0, WG_FLAG_LIST, &f->set, "A.B=V", "override a value of the file (JSON, or text); may be repeated", 0, 0 },
        { "resume", 'r', WG_FLAG_BOOL, &f->resume, NULL, "continue from the last checkpoint in the folder", 0, 0 },
        { "threads", 't', WG_FLAG_INT, &f->threads, "N", threads, 0, 256 },
        { "device", 0, WG_FLAG_STRING, &f->device, "DEVICE", "the device that trains: cpu, cuda:0 (1, ...) or auto", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &f->json, NULL, "print the result as a JSON object", 0, 0 },
        { NULL, 0, WG_FLAG_BOOL, NULL, NULL, NULL, 0, 0 },
    };
    const int done = wg_cli_parse(command, flags, argc, argv, &f->config, 1, 1);
    if (done >= 0 || f->out) return done;
    fprintf(stderr, "wager %s: --out DIR is missing: the folder of the run\n", command);
    return WG_EXIT_USAGE;
}
