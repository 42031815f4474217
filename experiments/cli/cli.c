/* SPDX-License-Identifier: MIT
 * Flags from tables. The parser is not getopt_long because the same rows also print the help and the nearest spelling. */
#include "experiments/cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/option.h"
#include "core/kv/kv.h"
#include "kernels/types.h"

int wg_cli_status(wg_status s)
{
    switch (s) {
    case WG_OK: return WG_EXIT_OK;
    case WG_EINVAL:
    case WG_ECONFIG:
    case WG_ELAW: return WG_EXIT_USAGE;
    case WG_EINTERRUPTED: return WG_EXIT_INTERRUPTED;
    default: return WG_EXIT_FAILED;
    }
}

int wg_cli_fail(const wg_error *err)
{
    fputs("wager: ", stderr);
    for (const char *p = err->text; *p; p++) /* names in it may contain any bytes; a terminal gets no control sequences */
        fputc((unsigned char)*p < ' ' && *p != '\n' && *p != '\t' ? '?' : *p, stderr);
    fputc('\n', stderr);
    return wg_cli_status(err->code);
}

static const wg_command *find_command(const char *name)
{
    for (const wg_command *c = wg_commands; c->name; c++)
        if (!strcmp(c->name, name)) return c;
    return NULL;
}

static void print_help(const char *command, const wg_flag *flags)
{
    const wg_command *c = find_command(command);
    printf("usage: wager %s\n\n%s\n", c ? c->usage : command, c ? c->doc : "");
    if (flags->name) puts("\nflags:");
    for (const wg_flag *f = flags; f->name; f++) {
        char left[64];
        const char *dash = f->name[1] ? "--" : "-";
        if (f->letter)
            snprintf(left, sizeof left, "-%c, --%s%s%s", f->letter, f->name, f->value ? " " : "", f->value ? f->value : "");
        else snprintf(left, sizeof left, "%s%s%s%s", dash, f->name, f->value ? " " : "", f->value ? f->value : "");
        printf("  %-28s %s", left, f->doc);
        if (f->type == WG_FLAG_INT) printf(" [%ld]", *(long *)f->to);
        if (f->type == WG_FLAG_FLOAT) printf(" [%g]", *(double *)f->to);
        if (f->type == WG_FLAG_STRING && *(const char **)f->to) printf(" [%s]", *(const char **)f->to);
        puts("");
    }
}

static int complain(const char *command, const char *text, const char *word, const char *hint)
{
    fprintf(stderr, "wager %s: %s '%s'%s%s%s; see wager %s --help\n", command, text, word, hint ? " (did you mean '" : "",
            hint ? hint : "", hint ? "'?)" : "", command);
    return WG_EXIT_USAGE;
}

static const char *nearest_flag(const wg_flag *flags, const char *word)
{
    const char *names[64];
    int n = 0;
    for (const wg_flag *f = flags; f->name && n < 63; f++) names[n++] = f->name;
    names[n] = NULL;
    return wg_nearest(word, names);
}

static int set_number(const char *command, const wg_flag *f, const char *value)
{
    char *end;
    errno = 0;
    const double v = strtod(value, &end);
    const bool whole = f->type == WG_FLAG_FLOAT || v == floor(v);
    const bool inside = (f->min == 0 && f->max == 0) || (v >= f->min && v <= f->max);
    if (end == value || *end || errno || !isfinite(v) || !whole || !inside) {
        fprintf(stderr, "wager %s: --%s %s: expected %s", command, f->name, value,
                f->type == WG_FLAG_INT ? "an integer" : "a number");
        if (f->min != 0 || f->max != 0) fprintf(stderr, " %.10g..%.10g", f->min, f->max);
        fprintf(stderr, "\n");
        return WG_EXIT_USAGE;
    }
    if (f->type == WG_FLAG_FLOAT) *(double *)f->to = v;
    else *(long *)f->to = (long)strtoll(value, NULL, 10);
    return -1;
}

static int set_value(const char *command, const wg_flag *f, const char *value)
{
    if (f->type == WG_FLAG_STRING) {
        *(const char **)f->to = value;
        return -1;
    }
    if (f->type == WG_FLAG_LIST) {
        wg_flag_list *list = f->to;
        if (list->n == WG_FLAG_LIST_MAX) return complain(command, "too many of flag", f->name, NULL);
        list->item[list->n++] = value;
        return -1;
    }
    return set_number(command, f, value);
}

/* The flag of a word: "--name", "--name=value", "-n", "-n value". *value points after '=' or is NULL. */
static const wg_flag *match_flag(const wg_flag *flags, const char *word, const char **value)
{
    const char *name = word + (word[1] == '-' ? 2 : 1), *eq = strchr(name, '=');
    const size_t n = eq ? (size_t)(eq - name) : strlen(name);
    *value = eq ? eq + 1 : NULL;
    for (const wg_flag *f = flags; f->name; f++) {
        if (strlen(f->name) == n && !strncmp(f->name, name, n)) return f;
        if (word[1] != '-' && n == 1 && f->letter == name[0]) return f;
    }
    return NULL;
}

int wg_cli_parse(const char *command, const wg_flag *flags, int argc, char **argv, const char **positional, int min, int max)
{
    int n = 0;
    bool flags_end = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value;
        if (!flags_end && !strcmp(word, "--")) {
            flags_end = true;
            continue;
        }
        if (flags_end || word[0] != '-' || !word[1]) {
            if (n == max) return complain(command, "unexpected word", word, NULL);
            positional[n++] = word;
            continue;
        }
        if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
            print_help(command, flags);
            return WG_EXIT_OK;
        }
        const wg_flag *f = match_flag(flags, word, &value);
        if (!f) return complain(command, "unknown flag", word, nearest_flag(flags, word + (word[1] == '-' ? 2 : 1)));
        if (f->type == WG_FLAG_BOOL) {
            if (value) return complain(command, "this flag takes no value:", word, NULL);
            *(bool *)f->to = true;
            continue;
        }
        if (!value && i + 1 < argc) value = argv[++i];
        if (!value) return complain(command, "a value is missing after", word, NULL);
        const int bad = set_value(command, f, value);
        if (bad >= 0) return bad;
    }
    if (n < min) {
        const wg_command *c = find_command(command);
        fprintf(stderr, "wager %s: something is missing; usage: wager %s\n", command, c ? c->usage : command);
        return WG_EXIT_USAGE;
    }
    return -1;
}

int wg_cli_weight_type(const char *command, const char *name)
{
    const int type = wg_type_parse(name);
    if (type >= 0 && wg_type_get(type)->writable) return type;
    fprintf(stderr, "wager %s: --type %s: expected " WG_WRITABLE_TYPES "\n", command, name);
    return -1;
}

wg_status wg_cli_read_ints(const char *flag, const char *text, wg_cli_ints *out, wg_error *err)
{
    size_t room = 1;
    for (const char *c = text; *c; c++) room += *c == ',';
    out->n = 0;
    if (!(out->v = wg_calloc(room, sizeof *out->v))) return wg_nomem(err, room * sizeof *out->v, flag);
    for (const char *at = text;;) {
        char *end;
        errno = 0;
        const long v = strtol(at, &end, 10);
        if (end == at || errno || v < -1 || v > INT32_MAX || (*end && *end != ','))
            return wg_fail(err, WG_EINVAL, "--%s: expected integers with commas between, found '%s'", flag, at);
        out->v[out->n++] = (int32_t)v;
        if (!*end) return WG_OK;
        at = end + 1;
    }
}

bool wg_cli_terminal(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) && !(term && !strcmp(term, "dumb"));
}

int wg_cli_width(int fd)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    const long n = columns ? strtol(columns, NULL, 10) : 0;
    if (n >= 20 && n < 10000) return (int)n;
    return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool wg_cli_chat(const char *command, const char *name, const char *system, wg_chat *out)
{
    *out = (wg_chat){ .family = WG_CHAT_NONE, .system = system };
    for (int i = 0; name && wg_chat_names[i]; i++)
        if (!strcmp(name, wg_chat_names[i])) out->family = i;
    if (name && strcmp(name, wg_chat_names[out->family]) != 0)
        fprintf(stderr, "wager %s: --chat %s: expected none, model, llama-2, llama-3, chatml, zephyr or vicuna\n", command,
                name);
    else if (system && *system && out->family == WG_CHAT_NONE)
        fprintf(stderr, "wager %s: --system: needs --chat, the template that says it\n", command);
    else return true;
    return false;
}

int wg_cli_kv_type(const char *command, const char *name)
{
    for (int i = 0; name && wg_kv_type_names[i]; i++)
        if (!strcmp(name, wg_kv_type_names[i])) return wg_kv_type_ids[i];
    if (!name) return WG_F16;
    fprintf(stderr, "wager %s: --kv-type %s: expected f32, f16, bf16 or q8\n", command, name);
    return -1;
}

void wg_cli_say_profile(void *unused, bool warning, const char *text)
{
    (void)unused;
    fprintf(stderr, "wager: %s%s\n", warning ? "warning: " : "", text);
}
