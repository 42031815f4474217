/* SPDX-License-Identifier: MIT
 * Completion scripts (completion.h). Words of the tables are quoted for the shell that reads them. */
#include "experiments/cli/completion.h"

#include <string.h>

#include "experiments/cli/flag_values.h"

/* Calls `each` for every command's flags, with the file as its argument. */
static void each_command(FILE *f, wg_flag_reader *each)
{
    for (const wg_command *c = wg_commands; c->name; c++) wg_cli_read_flags(c, each, f);
}

/* Copies a text, with a backslash before each of `special`. */
static void put_escaped(FILE *f, const char *text, const char *special)
{
    for (; *text; text++) {
        if (strchr(special, *text)) fputc('\\', f);
        fputc(*text, f);
    }
}

/* Prints a text in single quotes, for bash and zsh. */
static void put_quoted(FILE *f, const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'') fputs("'\\''", f);
        else {
            if (strchr(special, *text)) fputc('\\', f);
            fputc(*text, f);
        }
    }
}

/* Whether the first word of a command is a subcommand or, for `help`, a command. */
static bool has_first_words(const wg_command *c) { return c->words || !strcmp(c->name, "help"); }

static void put_first_words(FILE *f, const wg_command *c)
{
    for (int i = 0; c->words && c->words[i]; i++) fprintf(f, "%s%s", i ? " " : "", c->words[i]);
    for (const wg_command *o = wg_commands; !c->words && has_first_words(c) && o->name; o++)
        fprintf(f, "%s%s", o == wg_commands ? "" : " ", o->name);
}

/* ---- bash */

static void bash_flags(const wg_command *c, const wg_flag *flags, void *user)
{
    FILE *f = user;
    fprintf(f, "    %s)\n      flags='", c->name);
    for (const wg_flag *o = flags; o->name; o++) {
        fprintf(f, "%s%s ", wg_flag_dashes(o), o->name);
        if (wg_flag_letter(o)) fprintf(f, "-%c ", o->letter);
    }
    fputs("--help'\n      words='", f);
    put_first_words(f, c);
    fputs("'\n      case $previous in\n", f);
    for (const wg_flag *o = flags; o->name; o++) {
        wg_flag_values v;
        if (o->type == WG_FLAG_BOOL) continue;
        wg_flag_values_of(o, &v);
        fprintf(f, "        %s%s", wg_flag_dashes(o), o->name);
        if (wg_flag_letter(o)) fprintf(f, "|-%c", o->letter);
        fputs(") values='", f);
        for (int i = 0; i < v.n; i++) fprintf(f, "%s%s", i ? " " : "", v.word[i]);
        fputs("'; valued=1;;\n", f);
    }
    fputs("      esac;;\n", f);
}

void wg_completion_bash(FILE *f)
{
    fputs("# bash completion of wager and wager-serve; written by `wager completion bash`.\n"
          "_wager() {\n"
          "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} at=1\n"
          "  local flags='' words='' values='' valued=''\n  local commands='",
          f);
    for (const wg_command *c = wg_commands; c->name; c++) fprintf(f, "%s ", c->name);
    fputs("'\n"
          "  if [[ ${COMP_WORDS[0]##*/} == wager-serve ]]; then command=serve at=0\n"
          "  elif ((COMP_CWORD == 1)); then\n"
          "    COMPREPLY=($(compgen -W \"$commands --help --version\" -- \"$current\"))\n"
          "    return\n"
          "  fi\n"
          "  case $command in\n",
          f);
    each_command(f, bash_flags);
    fputs("  esac\n"
          "  if [[ $valued ]]; then COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
          "  elif [[ $current == -* ]]; then COMPREPLY=($(compgen -W \"$flags\" -- \"$current\"))\n"
          "  elif ((COMP_CWORD == at + 1)); then COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
          "  else COMPREPLY=()\n"
          "  fi\n"
          "}\n"
          "complete -o default -F _wager wager wager-serve\n",
          f);
}

/* ---- zsh */

static void zsh_flag(FILE *f, const wg_flag *o, const char *name, const char *dash)
{
    wg_flag_values v;
    wg_flag_values_of(o, &v);
    fprintf(f, "        '%s%s%s[", o->type == WG_FLAG_LIST ? "*" : "", dash, name);
    put_quoted(f, o->doc, "[]\\");
    fputc(']', f);
    if (o->type != WG_FLAG_BOOL) {
        fputc(':', f);
        put_quoted(f, o->value, ":\\");
        fputs(v.n ? ":(" : ":_files", f);
        for (int i = 0; i < v.n; i++) {
            if (i) fputc(' ', f);
            put_quoted(f, v.word[i], ":\\");
        }
        if (v.n) fputc(')', f);
    }
    fputs("' \\\n", f);
}

static void zsh_flags(const wg_command *c, const wg_flag *flags, void *user)
{
    FILE *f = user;
    fprintf(f, "    %s)\n      _arguments \\\n", c->name);
    for (const wg_flag *o = flags; o->name; o++) {
        char letter[2] = { o->letter, '\0' };
        zsh_flag(f, o, o->name, wg_flag_dashes(o));
        if (wg_flag_letter(o)) zsh_flag(f, o, letter, "-");
    }
    if (has_first_words(c)) {
        fputs("        '1:word:(", f);
        put_first_words(f, c);
        fputs(")' \\\n", f);
    }
    fputs("        '--help[explains the command]' \\\n        '*:file:_files';;\n", f);
}

void wg_completion_zsh(FILE *f)
{
    fputs("#compdef wager wager-serve\n# zsh completion; written by `wager completion zsh`.\n"
          "_wager() {\n  local command\n  local -a commands\n  commands=(\n",
          f);
    for (const wg_command *c = wg_commands; c->name; c++) {
        fprintf(f, "    '%s:", c->name);
        put_quoted(f, c->doc, ":\\");
        fputs("'\n", f);
    }
    fputs("  )\n"
          "  if [[ $service == wager-serve ]]; then command=serve\n"
          "  elif (( CURRENT == 2 )); then\n    _describe command commands\n    return\n"
          "  else\n    command=$words[2]\n    shift words\n    (( CURRENT-- ))\n  fi\n"
          "  case $command in\n",
          f);
    each_command(f, zsh_flags);
    fputs("  esac\n}\nif [[ $funcstack[1] == _wager ]]; then _wager \"$@\"; else compdef _wager wager wager-serve; fi\n", f);
}

/* ---- fish */

/* Prints the lines of a command's flags for the program that `where` names. */
static void fish_rows(FILE *f, const char *where, const wg_flag *flags)
{
    for (const wg_flag *o = flags; o->name; o++) {
        wg_flag_values v;
        wg_flag_values_of(o, &v);
        fprintf(f, "complete %s -%c %s", where, wg_flag_dashes(o)[1] ? 'l' : 's', o->name);
        if (wg_flag_letter(o)) fprintf(f, " -s %c", o->letter);
        if (o->type != WG_FLAG_BOOL) fputs(v.n ? " -x" : " -r -F", f);
        if (v.n) fputs(" -a '", f);
        for (int i = 0; i < v.n; i++) fprintf(f, "%s%s", i ? " " : "", v.word[i]);
        fputs(v.n ? "' -d '" : " -d '", f);
        put_escaped(f, o->doc, "'\\");
        fputs("'\n", f);
    }
}

static void fish_flags(const wg_command *c, const wg_flag *flags, void *user)
{
    FILE *f = user;
    char where[128];
    snprintf(where, sizeof where, "-c wager -n '__fish_seen_subcommand_from %s'", c->name);
    fprintf(f, "complete -c wager -n '__fish_use_subcommand' -f -a %s -d '", c->name);
    put_escaped(f, c->doc, "'\\");
    fputs("'\n", f);
    if (!strcmp(c->name, "serve")) fish_rows(f, "-c wager-serve", flags);
    fish_rows(f, where, flags);
    fprintf(f, "complete %s -l help -d 'explains the command'\n", where);
    if (!has_first_words(c)) return;
    fprintf(f, "complete %s -a '", where);
    put_first_words(f, c);
    fputs("'\n", f);
}

void wg_completion_fish(FILE *f)
{
    fputs("# fish completion of wager and wager-serve; written by `wager completion fish`.\n", f);
    each_command(f, fish_flags);
}
