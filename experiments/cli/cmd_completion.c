/* SPDX-License-Identifier: MIT
 * wager completion: the script with which a shell completes commands, subcommands, flags and values of `wager` and
 * `wager-serve`. wager help: the text of a command's --help, or a manual page. Both read the tables of commands and flags. */
#include <ctype.h>
#include <string.h>

#include "core/file/synth.h"
#include "core/setup/target.h"
#include "draft/draft.h"
#include "experiments/cli/cli.h"
#include "experiments/report/columns.h"
#include "experiments/report/engine_metrics.h"
#include "kernels/types.h"
#include "verify/verify.h"

/* ---- values */

/* The legal words of a flag's values, found by the value's name in the help: drafters, rules, weight types, devices, columns,
 * and choices. */
enum { VALUES_MOST = 256 };

typedef struct values {
    const char *word[VALUES_MOST]; /* of static tables, or in `text` */
    int n;                         /* 0: any text, which may be the path of a file */
    bool files;                    /* or the path of a file */
    char text[256];
} values;

static void add(values *v, const char *word)
{
    if (v->n < VALUES_MOST) v->word[v->n++] = word;
}

static void add_drafters(values *v)
{
    for (int i = 0; wg_drafters[i]; i++) add(v, wg_drafters[i]->name);
}

static void add_rules(values *v)
{
    for (int i = 0; wg_verifiers[i]; i++) add(v, wg_verifiers[i]->name);
}

static void add_types(values *v)
{
#define TYPE(id, ...)                                                                                                          \
    if (wg_type_get(WG_##id)->writable) add(v, wg_type_get(WG_##id)->name);
    WG_WEIGHT_TYPES(TYPE)
#undef TYPE
}

static void add_devices(values *v)
{
    static const char *const names[] = { "cpu", "cuda:0", "auto", NULL };
    for (int i = 0; names[i]; i++) add(v, names[i]);
}

static void add_targets(values *v)
{
    for (int i = WG_TARGET_MODEL + 1; wg_target_kinds[i]; i++) add(v, wg_target_kinds[i]);
}

static void add_columns(values *v)
{
    for (int i = 0; wg_column_set(i); i++) add(v, wg_column_set(i));
    for (const wg_column *c = wg_columns; c->name; c++) add(v, c->name);
}

static void add_shapes(values *v)
{
    for (const wg_synth_shape *s = wg_synth_shapes(); s->name; s++) add(v, s->name);
}

static void add_engines(values *v)
{
    for (const wg_engine_metric *m = wg_engine_metrics; m->engine; m++)
        if (!v->n || strcmp(v->word[v->n - 1], m->engine) != 0) add(v, m->engine);
}

static void values_of(const wg_flag *f, values *out)
{
    static const struct {
        const char *value;
        void (*add)(values *v);
    } kinds[] = { { "KIND[:k=v,...]", add_drafters }, { "FILE|KIND", add_drafters }, { "RULE", add_rules },
                  { "RULE|all", add_rules },          { "TYPE", add_types },         { "DEVICE", add_devices },
                  { "KIND:k=v,...", add_targets },    { "COLUMNS", add_columns },    { "SHAPE", add_shapes },
                  { "ENGINE", add_engines } };
    char *save;
    *out = (values){ .n = 0 };
    out->files = f->value && !strncmp(f->value, "FILE|", 5);
    const char *words = f->type == WG_FLAG_CHOICE || (out->files && strcmp(f->value, "FILE|KIND") != 0) ? f->value : NULL;
    if (words) {
        snprintf(out->text, sizeof out->text, "%s", words + (out->files ? 5 : 0));
        for (char *w = strtok_r(out->text, "|", &save); w; w = strtok_r(NULL, "|", &save)) add(out, w);
    }
    for (size_t i = 0; f->value && f->type != WG_FLAG_CHOICE && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].value, f->value)) kinds[i].add(out);
}

/* ---- scripts. Words of the tables are quoted for the shell that reads them. */

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

/* Whether the second word of a command is a name, of a drafter or a rule as the first one says. */
static bool has_second_words(const wg_command *c) { return !strcmp(c->name, "list"); }

static void put_drafters(FILE *f)
{
    for (int i = 0; wg_drafters[i]; i++) fprintf(f, "%s%s", i ? " " : "", wg_drafters[i]->name);
}

static void put_rules(FILE *f)
{
    for (int i = 0; wg_verifiers[i]; i++) fprintf(f, "%s%s", i ? " " : "", wg_verifiers[i]->name);
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
    fputs("'\n", f);
    if (has_second_words(c)) {
        fputs("      case $previous in drafter) words='", f);
        put_drafters(f);
        fputs("'; second=1;; rule) words='", f);
        put_rules(f);
        fputs("'; second=1;; esac\n", f);
    }
    fputs("      case $previous in\n", f);
    for (const wg_flag *o = flags; o->name; o++) {
        values v;
        if (o->type == WG_FLAG_BOOL) continue;
        values_of(o, &v);
        fprintf(f, "        %s%s", wg_flag_dashes(o), o->name);
        if (wg_flag_letter(o)) fprintf(f, "|-%c", o->letter);
        fputs(") values='", f);
        for (int i = 0; i < v.n; i++) fprintf(f, "%s%s", i ? " " : "", v.word[i]);
        fprintf(f, "'; valued=1%s;;\n", v.files ? " files=1" : "");
    }
    fputs("      esac;;\n", f);
}

static void complete_bash(FILE *f)
{
    fputs("# bash completion of wager and wager-serve; written by `wager completion bash`.\n"
          "_wager() {\n"
          "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} at=1\n"
          "  local flags='' words='' values='' valued='' files='' second=''\n  local commands='",
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
          "    [[ $files ]] && COMPREPLY+=($(compgen -f -- \"$current\"))\n"
          "  elif [[ $current == -* ]]; then COMPREPLY=($(compgen -W \"$flags\" -- \"$current\"))\n"
          "  elif ((COMP_CWORD == at + 1)) || [[ $second ]]; then COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
          "  else COMPREPLY=()\n"
          "  fi\n"
          "}\n"
          "complete -o default -F _wager wager wager-serve\n",
          f);
}

/* ---- zsh */

static void zsh_flag(FILE *f, const wg_flag *o, const char *name, const char *dash)
{
    values v;
    values_of(o, &v);
    fprintf(f, "        '%s%s%s[", o->type == WG_FLAG_LIST ? "*" : "", dash, name);
    put_quoted(f, o->doc, "[]\\");
    fputc(']', f);
    if (o->type != WG_FLAG_BOOL) {
        fputc(':', f);
        put_quoted(f, o->value, ":\\");
        fputs(!v.n ? ":_files" : v.files ? ":{_files; compadd -- " : ":(", f);
        for (int i = 0; i < v.n; i++) {
            if (i) fputc(' ', f);
            put_quoted(f, v.word[i], ":\\");
        }
        if (v.n) fputc(v.files ? '}' : ')', f);
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
    if (has_second_words(c)) {
        fputs("        '2:name:(", f);
        put_drafters(f), fputc(' ', f), put_rules(f);
        fputs(")' \\\n", f);
    }
    fputs("        '--help[explains the command]' \\\n        '*:file:_files';;\n", f);
}

static void complete_zsh(FILE *f)
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
        values v;
        values_of(o, &v);
        fprintf(f, "complete %s -%c %s", where, wg_flag_dashes(o)[1] ? 'l' : 's', o->name);
        if (wg_flag_letter(o)) fprintf(f, " -s %c", o->letter);
        if (o->type != WG_FLAG_BOOL) fputs(v.n && !v.files ? " -x" : " -r -F", f);
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
    if (!has_second_words(c)) return;
    fputs("complete -c wager -n '__fish_seen_subcommand_from list; and __fish_seen_subcommand_from drafter' -a '", f);
    put_drafters(f);
    fputs("'\ncomplete -c wager -n '__fish_seen_subcommand_from list; and __fish_seen_subcommand_from rule' -a '", f);
    put_rules(f);
    fputs("'\n", f);
}

static void complete_fish(FILE *f)
{
    fputs("# fish completion of wager and wager-serve; written by `wager completion fish`.\n", f);
    each_command(f, fish_flags);
}

/* ---- manual pages, in the macros of man(7) */

/* Prints a text with roff requests, escapes and typographic dashes neutralised. */
static void put_roff(FILE *f, const char *text)
{
    bool begins = true;
    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\'')) fputs("\\&", f);
        if (*text == '\\') fputs("\\e", f);
        else if (*text == '-') fputs("\\-", f);
        else fputc(*text, f);
        begins = *text == '\n';
    }
}

static void put_flag(FILE *f, const wg_flag *o)
{
    values v;
    values_of(o, &v);
    fputs(".TP\n\\fB", f);
    if (wg_flag_letter(o)) fprintf(f, "\\-%c\\fR, \\fB", o->letter);
    put_roff(f, wg_flag_dashes(o));
    put_roff(f, o->name);
    fputs("\\fR", f);
    if (o->value) {
        fputs(" \\fI", f);
        put_roff(f, o->value);
        fputs("\\fR", f);
    }
    fputc('\n', f);
    put_roff(f, o->doc);
    if (o->type == WG_FLAG_INT) fprintf(f, " (default %ld)", *(long *)o->to);
    if (o->type == WG_FLAG_FLOAT) fprintf(f, " (default %g)", *(double *)o->to);
    if ((o->type == WG_FLAG_STRING || o->type == WG_FLAG_CHOICE) && o->to && *(const char **)o->to) {
        fputs(" (default ", f);
        put_roff(f, **(const char **)o->to ? *(const char **)o->to : "empty");
        fputc(')', f);
    }
    fputc('\n', f);
    if (!v.n || o->type == WG_FLAG_CHOICE) return;
    fputs(".br\nOne of: ", f);
    for (int i = 0; i < v.n; i++) {
        if (i) fputs(", ", f);
        put_roff(f, v.word[i]);
    }
    fputs(".\n", f);
}

static void put_flags(const wg_command *c, const wg_flag *flags, void *user)
{
    (void)c;
    for (const wg_flag *o = flags; o->name; o++) put_flag(user, o);
}

/* Prints the head of a page: its title in capitals and the version. */
static void put_head(FILE *f, const char *command)
{
    fputs(".TH WAGER", f);
    if (command) fputs("\\-", f);
    for (const char *s = command ? command : ""; *s; s++) {
        if (*s == '-') fputc('\\', f);
        fputc(toupper((unsigned char)*s), f);
    }
    fputs(" 1 \"\" \"wager " WG_VERSION "\" \"User Commands\"\n", f);
}

static void put_exit_status(FILE *f)
{
    fputs(".SH EXIT STATUS\n0 done, 1 the work failed, 2 usage or configuration, 130 interrupted\n", f);
}

static void put_program(FILE *f)
{
    put_head(f, NULL);
    fputs(".SH NAME\nwager \\- speculative decoding, measured and proved\n.SH SYNOPSIS\n.B wager\n.I COMMAND\n[arguments]\n"
          ".SH DESCRIPTION\nA laboratory and engine for speculative decoding. A page for each command: wager\\-COMMAND(1).\n"
          ".SH COMMANDS\n",
          f);
    for (const wg_command *c = wg_commands; c->name; c++) {
        fputs(".TP\n\\fB", f);
        put_roff(f, c->name);
        fputs("\\fR\n", f);
        put_roff(f, c->doc);
        fputc('\n', f);
    }
    put_exit_status(f);
    fputs(".SH SEE ALSO\n", f);
    for (const wg_command *c = wg_commands; c->name; c++) {
        fputs(".BR wager\\-", f);
        put_roff(f, c->name);
        fputs(" (1),\n", f);
    }
    fputs(".BR wager.h (3)\n", f);
}

static void manual_page(FILE *f, const wg_command *c)
{
    if (!c) {
        put_program(f);
        return;
    }
    put_head(f, c->name);
    fputs(".SH NAME\nwager\\-", f);
    put_roff(f, c->name);
    fputs(" \\- ", f);
    for (const char *s = c->doc; *s; s++) { /* the name line has no full stop */
        const char one[2] = { s == c->doc ? (char)tolower((unsigned char)*s) : *s, '\0' };
        if (*s != '.' || s[1]) put_roff(f, one);
    }
    fputs("\n.SH SYNOPSIS\nwager ", f);
    put_roff(f, c->usage);
    fputs("\n.SH DESCRIPTION\n", f);
    put_roff(f, c->doc);
    fputs("\n.SH OPTIONS\n", f);
    wg_cli_read_flags(c, put_flags, f);
    fputs(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nExplains the command.\n", f);
    put_exit_status(f);
    fputs(".SH SEE ALSO\n.BR wager (1)\n", f);
}

/* ---- the commands */

int wg_cmd_completion(int argc, char **argv)
{
    const char *shell;
    const wg_flag flags[] = { { 0 } };
    const int done = wg_cli_parse("completion", flags, argc, argv, &shell, 1, 1);
    if (done >= 0) return done;
    (*shell == 'b' ? complete_bash : *shell == 'z' ? complete_zsh : complete_fish)(stdout);
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
    if (man) manual_page(stdout, c);
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
