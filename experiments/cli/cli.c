/* SPDX-License-Identifier: MIT
 * Flags from tables. The parser is not getopt_long because the same rows also print the help and the nearest spelling. */
#include "experiments/cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/given.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/option.h"
#include "core/file/quantize.h"
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

static wg_given given; /* the flags of the command, for messages */

int wg_cli_fail(const wg_error *err)
{
    int n;
    const char *flag = wg_given_option(&given, err->text, &n);
    fputs("wager: ", stderr);
    if (flag) fprintf(stderr, "%.*s ", n, flag);
    for (const char *p = err->text; *p; p++) /* names may contain any bytes, but a terminal must get no control sequences */
        fputc((unsigned char)*p < ' ' && *p != '\n' && *p != '\t' ? '?' : *p, stderr);
    fputc('\n', stderr);
    return wg_cli_status(err->code);
}

int wg_cli_refuse(const char *command, const char *format, ...)
{
    va_list list;
    fprintf(stderr, "wager %s: ", command);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return WG_EXIT_USAGE;
}

bool wg_cli_put_json(json_t *v, bool indented)
{
    char *text = v ? wg_json_canonical(v, indented) : NULL;
    if (text) fputs(text, stdout);
    if (text && !indented) putchar('\n');
    json_decref(v);
    wg_free(text);
    return text != NULL;
}

void wg_cli_usage(FILE *f)
{
    fputs("wager: speculative decoding, measured and proved\n\ncommands:\n", f);
    for (const wg_command *c = wg_commands; c->name; c++) fprintf(f, "  %-12s %s\n", c->name, c->doc);
    fputs("\nwager help COMMAND explains one. First steps: ./quickstart.sh, then wager generate.\n", f);
}

static const wg_command *find_command(const char *name)
{
    for (const wg_command *c = wg_commands; c->name; c++)
        if (!strcmp(c->name, name)) return c;
    return NULL;
}

/* " (did you mean 'x'?)", or "". */
static const char *hint_of(const char *dashes, const char *near, char out[96])
{
    *out = '\0';
    if (near) snprintf(out, 96, " (did you mean '%s%s'?)", dashes, near);
    return out;
}

const wg_command *wg_cli_command(const char *name)
{
    const char *names[64];
    char hint[96];
    int n = 0;
    const wg_command *found = find_command(name);
    if (found) return found;
    for (const wg_command *c = wg_commands; c->name; c++) names[n++] = c->name;
    names[n] = NULL;
    fprintf(stderr, "wager: there is no command '%s'%s; wager --help lists them%s\n", name,
            hint_of("", wg_nearest(name, names), hint), *name == '-' ? ", and flags stand behind one" : "");
    return NULL;
}

/* ---- help and other readers of the tables ------------------------------------------------------------------------- */

static struct {
    wg_flag_reader *read; /* NULL: commands run */
    void *user;
} reader;

bool wg_cli_reads_flags(void) { return reader.read; }

void wg_cli_read_flags(const wg_command *command, wg_flag_reader *read, void *user)
{
    char *argv[] = { (char *)(uintptr_t)command->name, NULL };
    reader.read = read, reader.user = user;
    command->run(1, argv);
    reader.read = NULL;
}

static void print_help(const wg_command *c, const wg_flag *flags)
{
    printf("usage: wager %s\n\n%s\n", c->usage, c->doc);
    if (flags->name) puts("\nflags:");
    for (const wg_flag *f = flags; f->name; f++) {
        char left[128], letter[8] = "";
        if (wg_flag_letter(f)) snprintf(letter, sizeof letter, "-%c, ", f->letter);
        snprintf(left, sizeof left, "%s%s%s%s%s", letter, wg_flag_dashes(f), f->name, f->value ? " " : "",
                 f->value ? f->value : "");
        printf("  %-28s %s", left, f->doc);
        if (f->type == WG_FLAG_INT) printf(" [%ld]", *(long *)f->to);
        if (f->type == WG_FLAG_FLOAT) printf(" [%g]", *(double *)f->to);
        if ((f->type == WG_FLAG_STRING || f->type == WG_FLAG_CHOICE) && *(const char **)f->to)
            printf(" [%s]", *(const char **)f->to);
        puts("");
    }
}

/* ---- flags --------------------------------------------------------------------------------------------------------- */

enum { FLAGS_MOST = 64 }; /* most flags of a command */

static int complain(const char *command, const char *text, const char *word, const char *hint)
{
    fprintf(stderr, "wager %s: %s '%s'%s; see wager %s --help\n", command, text, word, hint, command);
    return WG_EXIT_USAGE;
}

static int unknown_flag(const char *command, const wg_flag *flags, const char *word)
{
    const char *names[FLAGS_MOST];
    char hint[96], name[WG_NEAREST_WORD + 1];
    int n = 0;
    for (const wg_flag *f = flags; f->name && n < FLAGS_MOST - 2; f++) names[n++] = f->name;
    names[n++] = "help";
    names[n] = NULL;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + strspn(word, "-"), "="), word + strspn(word, "-"));
    return complain(command, "unknown flag", word, hint_of("--", name[1] ? wg_nearest(name, names) : NULL, hint));
}

static int set_number(const char *command, const wg_flag *f, const char *value)
{
    char *end;
    errno = 0;
    const double v = strtod(value, &end);
    const bool whole = f->type == WG_FLAG_FLOAT || (v == floor(v) && fabs(v) < 9.2e18); /* a long can hold it */
    const bool inside = (f->min == 0 && f->max == 0) || (v >= f->min && v <= f->max);
    if (end == value || *end || errno || !isfinite(v) || !whole || !inside) {
        fprintf(stderr, "wager %s: %s%s %s: expected %s", command, wg_flag_dashes(f), f->name, value,
                f->type == WG_FLAG_INT ? "an integer" : "a number");
        if (f->min != 0 || f->max != 0) fprintf(stderr, " %.10g..%.10g", f->min, f->max);
        fprintf(stderr, "\n");
        return WG_EXIT_USAGE;
    }
    if (f->type == WG_FLAG_FLOAT) {
        *(double *)f->to = v;
        return -1;
    }
    const long digits = strtol(value, &end, 10); /* digits are read exactly, other forms such as 1e3 as a real */
    *(long *)f->to = *end ? (long)v : digits;
    return -1;
}

/* Splits "a|b|c" into words, stored in `text`; returns their number. */
static int split_choices(const char *value, char text[256], const char *word[WG_FLAG_LIST_MAX])
{
    int n = 0;
    char *save;
    snprintf(text, 256, "%s", value);
    for (char *w = strtok_r(text, "|", &save); w && n < WG_FLAG_LIST_MAX - 1; w = strtok_r(NULL, "|", &save)) word[n++] = w;
    word[n] = NULL;
    return n;
}

static int set_choice(const char *command, const wg_flag *f, const char *value)
{
    char text[256], hint[96];
    const char *word[WG_FLAG_LIST_MAX];
    const int n = split_choices(f->value, text, word);
    *(const char **)f->to = value;
    for (int i = 0; i < n; i++)
        if (!strcmp(word[i], value)) return -1;
    fprintf(stderr, "wager %s: %s%s %s: expected one of: ", command, wg_flag_dashes(f), f->name, value);
    for (int i = 0; i < n; i++) fprintf(stderr, "%s%s", i ? ", " : "", word[i]);
    fprintf(stderr, "%s\n", hint_of("", wg_nearest(value, word), hint));
    return WG_EXIT_USAGE;
}

static int two_models(const char *command, const char *a, const char *b)
{
    fprintf(stderr, "wager %s: two models, '%s' and '%s': name one, as -m MODEL or as a word\n", command, a, b);
    return WG_EXIT_USAGE;
}

static int set_value(const char *command, const wg_flag *f, const char *value)
{
    const char **text = f->to;
    wg_flag_list *list = f->to;
    static char hub[512]; /* a second name would be a second model */
    char name[sizeof hub];
    switch (f->type) {
    case WG_FLAG_HUB:
        if ((size_t)snprintf(name, sizeof name, "hf:%s", value) >= sizeof name)
            return complain(command, "this is no name of a repository:", value, "");
        if (*text && strcmp(*text, name) != 0) return two_models(command, *text, name);
        *text = strcpy(hub, name);
        return -1;
    case WG_FLAG_MODEL:
    case WG_FLAG_MODEL_IF:
        if (*text && strcmp(*text, value) != 0) return two_models(command, *text, value);
        *text = value;
        return -1;
    case WG_FLAG_STRING: *text = value; return -1;
    case WG_FLAG_CHOICE: return set_choice(command, f, value);
    case WG_FLAG_LIST:
        if (list->n == WG_FLAG_LIST_MAX) return complain(command, "too many of flag", f->name, "");
        list->item[list->n++] = value;
        return -1;
    default: return set_number(command, f, value);
    }
}

/* Finds the flag of a word: "--name", "--name=value", "-n". *value points after '=' or is NULL. */
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

/* Reads the flag at argv[*at] with its value, perhaps the next word. seen: (flags) whether each was read before. Returns -1 or
 * an exit status. */
static int read_flag(const char *command, const wg_flag *flags, bool *seen, int argc, char **argv, int *at)
{
    const char *word = argv[*at], *value, *other;
    const wg_flag *f = match_flag(flags, word, &value);
    if (!f) return unknown_flag(command, flags, word);
    const bool may_repeat = f->type == WG_FLAG_LIST || f->type == WG_FLAG_BOOL || f->type == WG_FLAG_MODEL ||
                            f->type == WG_FLAG_MODEL_IF || f->type == WG_FLAG_HUB;
    if (seen[f - flags] && !may_repeat) return complain(command, "this flag takes one value and is given twice:", word, "");
    seen[f - flags] = true;
    if (f->type == WG_FLAG_BOOL) {
        if (value) return complain(command, "this flag takes no value:", word, "");
        *(bool *)f->to = true;
        return -1;
    }
    if (!value && *at + 1 < argc) {
        value = argv[*at + 1];
        if (!strncmp(value, "--", 2) && (!value[2] || match_flag(flags, value, &other))) value = NULL; /* it is the next flag */
        else ++*at;
    }
    if (!value) {
        char kind[96];
        snprintf(kind, sizeof kind, ": %.80s", f->value);
        return complain(command, "a value is missing after", word, kind);
    }
    wg_given_add(&given, word, value);
    return set_value(command, f, value);
}

/* ---- words --------------------------------------------------------------------------------------------------------- */

int wg_cli_check_word(const wg_command *c, const char *word)
{
    char hint[96];
    for (int i = 0; c->words[i]; i++)
        if (!strcmp(c->words[i], word)) return -1;
    fprintf(stderr, "wager %s: there is no '%s'%s; there %s: ", c->name, word, hint_of("", wg_nearest(word, c->words), hint),
            c->words[1] ? "are" : "is");
    for (int i = 0; c->words[i]; i++) fprintf(stderr, "%s%s", i ? ", " : "", c->words[i]);
    fputc('\n', stderr);
    return WG_EXIT_USAGE;
}

/* The word number n of a command's usage that is no flag, in `what`, as "DIR is missing". model: a word was taken for the
 * model's, which may be another one. */
static const char *missing_word(const wg_command *c, int n, bool model, char what[96])
{
    const char *at = c->usage + strcspn(c->usage, " ");
    size_t length = 0;
    for (; *at && n >= 0; at += length) {
        at += strspn(at, " ");
        length = *at == '[' ? strcspn(at, "]") + 1 : strcspn(at, " ");
        if (*at == '|' && length == 1) break; /* another form of the command */
        if (*at != '-' && *at != '[') n--;
    }
    if (n >= 0 || length == 0) snprintf(what, 96, "something is missing");
    else snprintf(what, 96, "%.*s%s is missing", (int)(length < 60 ? length : 60), at - length, model ? " or the model" : "");
    return what;
}

static int missing(const wg_command *c, const char *what)
{
    fprintf(stderr, "wager %s: %s; usage: wager %s\n", c->name, what, c->usage);
    return WG_EXIT_USAGE;
}

/* Takes the model's path from the n words: without -m the first one after `lead` words, if the command needs a model or has no
 * other use for a word; with -m a surplus one is an error. Returns the number of remaining words, or -1 after a message. */
static int take_model(const char *command, const wg_flag *model, char **word, int n, int lead, int max)
{
    const char **path = model->to;
    const bool is_word = n > max || (!*path && model->type == WG_FLAG_MODEL);
    if (!is_word || n <= lead) return n;
    if (*path && strcmp(*path, word[lead]) != 0) {
        two_models(command, *path, word[lead]);
        return -1;
    }
    *path = word[lead];
    memmove(word + lead, word + lead + 1, (size_t)(n - lead - 1) * sizeof *word);
    return n - 1;
}

static int take_words(const wg_command *c, const wg_flag *flags, char **all, int n, const char **word, int min, int max)
{
    const wg_flag *model = flags;
    const bool lead = c->words && n > 0;
    while (model->name && model->type != WG_FLAG_MODEL && model->type != WG_FLAG_MODEL_IF) model++;
    if (lead && wg_cli_check_word(c, all[0]) >= 0) return WG_EXIT_USAGE;
    const int given = n;
    if (model->name && (n = take_model(c->name, model, all, n, lead, max)) < 0) return WG_EXIT_USAGE;
    if (n > max) return complain(c->name, "unexpected word", all[max], "");
    if (model->type == WG_FLAG_MODEL && model->name && !*(const char **)model->to && n >= min - 1 && !(c->words && !n))
        return missing(c, "the model is missing: give -m MODEL, or its path as a word");
    char what[96];
    if (n < min) return missing(c, missing_word(c, n + (model->name && *(const char **)model->to), n < given, what));
    for (int i = 0; i < n; i++) word[i] = all[i];
    return -1;
}

int wg_cli_parse(const char *command, const wg_flag *flags, int argc, char **argv, const char **word, int min, int max)
{
    const wg_command *c = find_command(command);
    int n = 0;
    bool flags_end = false, seen[FLAGS_MOST] = { false };
    if (reader.read) {
        reader.read(c, flags, reader.user);
        return WG_EXIT_OK;
    }
    for (int i = 1; i < argc; i++) {
        if (!flags_end && !strcmp(argv[i], "--")) flags_end = true;
        else if (flags_end || argv[i][0] != '-' || !argv[i][1]) argv[1 + n++] = argv[i];
        else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            print_help(c, flags);
            return WG_EXIT_OK;
        } else {
            const int bad = read_flag(command, flags, seen, argc, argv, &i);
            if (bad >= 0) return bad;
        }
    }
    return take_words(c, flags, argv + 1, n, word, min, max);
}

int wg_cli_weight_type(const char *command, const char *name)
{
    char hint[WG_QUANTIZE_HINT];
    const int type = wg_type_parse(name);
    if (type >= 0 && wg_type_get(type)->writable) return type;
    fprintf(stderr, "wager %s: --type %s: expected " WG_WRITABLE_TYPES "%s\n", command, name,
            wg_quantize_near(name, strlen(name), hint));
    return -1;
}

bool wg_cli_is_input(const char *command, const char *what, const char *const *in, int n, const char *out)
{
    struct stat a, b;
    for (int i = 0; i < n && stat(out, &b) == 0; i++) {
        if (stat(in[i], &a) || !S_ISREG(a.st_mode) || a.st_dev != b.st_dev || a.st_ino != b.st_ino) continue;
        fprintf(stderr, "wager %s: %s is the %s itself, which would be lost; name another file to write\n", command, out, what);
        return true;
    }
    return false;
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
    if (!system || !*system || out->family != WG_CHAT_NONE) return true;
    fprintf(stderr, "wager %s: --system: needs --chat, the template that it becomes part of\n", command);
    return false;
}

int wg_cli_kv_type(const char *name)
{
    for (int i = 0; name && wg_kv_type_names[i]; i++)
        if (!strcmp(name, wg_kv_type_names[i])) return wg_kv_type_ids[i];
    return WG_F16;
}

void wg_cli_say_profile(void *unused, bool warning, const char *text)
{
    (void)unused;
    fprintf(stderr, "wager: %s%s\n", warning ? "warning: " : "", text);
}

/* ---- signals */

/* A signal handler can only write to a global. */
static volatile sig_atomic_t stop;
static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

const volatile sig_atomic_t *wg_cli_catch_signals(void)
{
    struct sigaction a = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART };
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    signal(SIGXFSZ, SIG_IGN);
    return &stop;
}
