/* SPDX-License-Identifier: MIT
 * wager completion: the script with which a shell completes commands, flags and values. wager help: the text of a command's
 * --help, or its manual page. */
#include <string.h>

#include "experiments/cli/commands.h"
#include "experiments/cli/completion.h"

int wg_cmd_completion(int argc, char **argv)
{
    const char *shell;
    const wg_flag flags[] = { { 0 } };
    const int done = wg_cli_parse("completion", flags, argc, argv, &shell, 1, 1);
    if (done >= 0) return done;
    (*shell == 'b' ? wg_completion_bash : *shell == 'z' ? wg_completion_zsh : wg_completion_fish)(stdout);
    return WG_EXIT_OK;
}

int wg_cmd_help(int argc, char **argv)
{
    const char *word[2] = { NULL, NULL };
    bool man = false;
    const wg_flag flags[] = {
        { "man", 0, WG_FLAG_BOOL, &man, NULL, "the manual page, for man -l", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("help", flags, argc, argv, word, 0, 2);
    if (done >= 0) return done;
    const wg_command *c = word[0] ? wg_cli_command(word[0]) : NULL;
    if (word[0] && !c) return WG_EXIT_USAGE;
    if (man) wg_manual_page(stdout, c);
    else if (!c) wg_cli_usage(stdout);
    else {
        char help[] = "--help", *with[] = { (char *)(uintptr_t)c->name, help, NULL };
        if (word[1] && c->words && wg_cli_check_word(c, word[1]) >= 0) return WG_EXIT_USAGE;
        if (!word[1] || c->words) return c->run(2, with);
        fprintf(stderr, "wager help: '%s' has no forms, such as '%s'; see wager help %s\n", c->name, word[1], c->name);
        return WG_EXIT_USAGE;
    }
    return WG_EXIT_OK;
}
