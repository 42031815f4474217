/* SPDX-License-Identifier: MIT
 * Manual pages (completion.h): the tables of commands and flags in the macros of man(7). */
#include <ctype.h>
#include <string.h>

#include "experiments/cli/completion.h"
#include "experiments/cli/flag_values.h"

/* Prints a text with roff requests, escapes and typographic dashes neutralised. */
static void put(FILE *f, const char *text)
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
    wg_flag_values v;
    wg_flag_values_of(o, &v);
    fputs(".TP\n\\fB", f);
    if (wg_flag_letter(o)) fprintf(f, "\\-%c\\fR, \\fB", o->letter);
    put(f, wg_flag_dashes(o));
    put(f, o->name);
    fputs("\\fR", f);
    if (o->value) {
        fputs(" \\fI", f);
        put(f, o->value);
        fputs("\\fR", f);
    }
    fputc('\n', f);
    put(f, o->doc);
    if (o->type == WG_FLAG_INT) fprintf(f, " (default %ld)", *(long *)o->to);
    if (o->type == WG_FLAG_FLOAT) fprintf(f, " (default %g)", *(double *)o->to);
    if ((o->type == WG_FLAG_STRING || o->type == WG_FLAG_CHOICE) && o->to && *(const char **)o->to) {
        fputs(" (default ", f);
        put(f, **(const char **)o->to ? *(const char **)o->to : "empty");
        fputc(')', f);
    }
    fputc('\n', f);
    if (!v.n || o->type == WG_FLAG_CHOICE) return;
    fputs(".br\nOne of: ", f);
    for (int i = 0; i < v.n; i++) {
        if (i) fputs(", ", f);
        put(f, v.word[i]);
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
        put(f, c->name);
        fputs("\\fR\n", f);
        put(f, c->doc);
        fputc('\n', f);
    }
    put_exit_status(f);
    fputs(".SH SEE ALSO\n", f);
    for (const wg_command *c = wg_commands; c->name; c++) {
        fputs(".BR wager\\-", f);
        put(f, c->name);
        fputs(" (1),\n", f);
    }
    fputs(".BR wager.h (3)\n", f);
}

void wg_manual_page(FILE *f, const wg_command *c)
{
    if (!c) {
        put_program(f);
        return;
    }
    put_head(f, c->name);
    fputs(".SH NAME\nwager\\-", f);
    put(f, c->name);
    fputs(" \\- ", f);
    for (const char *s = c->doc; *s; s++) { /* the name line has no full stop */
        const char one[2] = { s == c->doc ? (char)tolower((unsigned char)*s) : *s, '\0' };
        if (*s != '.' || s[1]) put(f, one);
    }
    fputs("\n.SH SYNOPSIS\nwager ", f);
    put(f, c->usage);
    fputs("\n.SH DESCRIPTION\n", f);
    put(f, c->doc);
    fputs("\n.SH OPTIONS\n", f);
    wg_cli_read_flags(c, put_flags, f);
    fputs(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nExplains the command.\n", f);
    put_exit_status(f);
    fputs(".SH SEE ALSO\n.BR wager (1)\n", f);
}
