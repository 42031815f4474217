/* SPDX-License-Identifier: MIT
 * The `wager` program: a table of commands. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "core/base/option.h"
#include "experiments/cli.h"
#include "experiments/commands.h"

const wg_command wg_commands[] = {
    { "run", "run CONFIG [--out DIR] [--set a.b=c]... [--dry-run] [--threads N] [--json]",
      "Runs the experiment of a JSON file beside its own baseline and writes a result folder.", wg_cmd_run },
    { "check", "check CONFIG [--set a.b=c]...", "Checks an experiment file and shows what it would run.", wg_cmd_check },
    { "generate", "generate -m TARGET [-d DRAFT | --draft KIND[:k=v,...]] -p TEXT -n N [flags]",
      "Continues a text; accepted draft tokens are coloured on a terminal.", wg_cmd_generate },
    { "logits", "logits MODEL --tokens 1,2,3 [--parents -1,0,1] [--out FILE.f32]",
      "Logits of a token sequence or tree: top five and a digest per row, or all of them in a file.", wg_cmd_logits },
    { "tokenize", "tokenize MODEL TEXT", "The tokens of a text.", wg_cmd_tokenize },
    { "inspect", "inspect MODEL", "What is in a model file.", wg_cmd_inspect },
    { "convert", "convert IN [--tokenizer FILE] --out OUT.gguf [--type q8_0]",
      "Any model file to GGUF, optionally in another weight type.", wg_cmd_convert },
    { "synth", "synth --like SHAPE --type T --seed S --out OUT.gguf",
      "A random model of a known shape, for tests and speed measurements.", wg_cmd_synth },
    { "prove", "prove [--rule R|all] [--vocab V] [--depth D] [--cases N]",
      "Enumerates a verification rule's production code and compares its exact output law with the target's.", wg_cmd_prove },
    { "bench", "bench round -m TARGET [-d DRAFT] [flags]", "Times plain decoding and speculative rounds, interleaved.", wg_cmd_bench },
    { "list", "list [drafters|verifiers|sampling|kernels|commands]", "Every drafter, rule, kernel level and option.", wg_cmd_list },
    { NULL, NULL, NULL, NULL },
};

static void usage(FILE *f)
{
    fputs("wager: speculative decoding, measured and proved\n\ncommands:\n", f);
    for (const wg_command *c = wg_commands; c->name; c++) fprintf(f, "  %-10s %s\n", c->name, c->doc);
    fputs("\nwager COMMAND --help explains one. First steps: ./quickstart.sh, then wager generate.\n", f);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is an error of write(), not a death */
    if (argc < 2) {
        usage(stderr);
        return WG_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        usage(stdout);
        return WG_EXIT_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        puts("wager " WG_VERSION);
        return WG_EXIT_OK;
    }
    const char *names[32];
    int n = 0;
    for (const wg_command *c = wg_commands; c->name; c++) {
        if (!strcmp(c->name, argv[1])) return c->run(argc - 1, argv + 1);
        names[n++] = c->name;
    }
    names[n] = NULL;
    const char *near = wg_nearest(argv[1], names);
    fprintf(stderr, "wager: there is no command '%s'%s%s%s; wager --help lists them\n", argv[1], near ? " (did you mean '" : "", near ? near : "",
            near ? "'?)" : "");
    return WG_EXIT_USAGE;
}
