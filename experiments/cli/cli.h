/* SPDX-License-Identifier: MIT
 * The command line: a command declares its flags in a table, from which parsing, --help and messages are generated. */
#ifndef WG_EXPERIMENTS_CLI_CLI_H
#define WG_EXPERIMENTS_CLI_CLI_H

#include <jansson.h>
#include <signal.h>
#include <stdio.h>

#include "core/base/error.h"
#include "core/text/chat.h"

/* Exit statuses of the program. */
enum { WG_EXIT_OK = 0, WG_EXIT_FAILED = 1, WG_EXIT_USAGE = 2, WG_EXIT_INTERRUPTED = 130 };

typedef enum wg_flag_type {
    WG_FLAG_BOOL,
    WG_FLAG_INT,
    WG_FLAG_FLOAT,
    WG_FLAG_STRING,
    WG_FLAG_LIST,
    WG_FLAG_CHOICE,   /* a text that is one of those in `value`, "a|b|c" */
    WG_FLAG_MODEL,    /* the path of the command's model, which a word may name as well; the command needs one */
    WG_FLAG_MODEL_IF, /* the same, of a command that does not always need one */
    WG_FLAG_HUB,      /* the same path, from the name of a repository: "hf:" is put before it */
} wg_flag_type;

enum { WG_FLAG_LIST_MAX = 64 };
typedef struct wg_flag_list {
    const char *item[WG_FLAG_LIST_MAX];
    int n;
} wg_flag_list; /* the values of a flag that may be repeated */

typedef struct wg_flag {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    wg_flag_type type;
    void *to;          /* bool, long, double, const char *, wg_flag_list; holds the default */
    const char *value; /* name of the value in the help; cmd_completion.c has the legal words of some */
    const char *doc;
    double min, max; /* range of numbers; both 0: any */
} wg_flag;

/* The dashes before a name ("-" for one letter), and whether the flag has a letter besides its name. */
static inline const char *wg_flag_dashes(const wg_flag *f) { return f->name[1] ? "--" : "-"; }
static inline bool wg_flag_letter(const wg_flag *f) { return f->letter && f->name[1]; }

/* The rows of a command's model: -m MODEL, --model MODEL, or the first word (behind that which says what the command does);
 * or -hf OWNER/REPO, as llama.cpp has it. */
#define WG_MODEL_ROW(type, to, doc)                                                                                            \
    { "model", 'm', type, to, "MODEL", doc "; -m may be left out", 0, 0 },                                                     \
    {                                                                                                                          \
        "hf", 0, WG_FLAG_HUB, to, "OWNER/REPO[:QUANT]", "a model of a hub: as -m hf:OWNER/REPO[:QUANT] (wager pull)", 0, 0     \
    }

typedef struct wg_command {
    const char *name, *usage, *doc;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit status */
    const char *const *words;          /* the legal first words, NULL-terminated; NULL: any */
} wg_command;
extern const wg_command wg_commands[]; /* ends with a NULL name */

/* The commands, of cmd_<name>.c: argv begins with the name; each returns the exit status. */
int wg_cmd_run(int argc, char **argv);
int wg_cmd_init(int argc, char **argv);
int wg_cmd_check(int argc, char **argv);
int wg_cmd_compare(int argc, char **argv);
int wg_cmd_report(int argc, char **argv);
int wg_cmd_replay(int argc, char **argv);
int wg_cmd_audit(int argc, char **argv);
int wg_cmd_generate(int argc, char **argv);
int wg_cmd_logits(int argc, char **argv);
int wg_cmd_taps(int argc, char **argv);
int wg_cmd_tokenize(int argc, char **argv);
int wg_cmd_tokenizer(int argc, char **argv);
int wg_cmd_template(int argc, char **argv);
int wg_cmd_inspect(int argc, char **argv);
int wg_cmd_convert(int argc, char **argv);
int wg_cmd_export(int argc, char **argv);
int wg_cmd_quantize(int argc, char **argv);
int wg_cmd_pull(int argc, char **argv);
int wg_cmd_datastore(int argc, char **argv);
int wg_cmd_vocab(int argc, char **argv);
int wg_cmd_synth(int argc, char **argv);
int wg_cmd_prove(int argc, char **argv);
int wg_cmd_merge(int argc, char **argv);
int wg_cmd_plan(int argc, char **argv);
int wg_cmd_tree(int argc, char **argv);
int wg_cmd_distill(int argc, char **argv);
int wg_cmd_train(int argc, char **argv);
int wg_cmd_skip_search(int argc, char **argv);
int wg_cmd_load(int argc, char **argv);
int wg_cmd_bench(int argc, char **argv);
int wg_cmd_columns(int argc, char **argv);
int wg_cmd_serve(int argc, char **argv);
int wg_cmd_list(int argc, char **argv);
int wg_cmd_completion(int argc, char **argv);
int wg_cmd_help(int argc, char **argv);

/* Prints the program's purpose and its commands. */
void wg_cli_usage(FILE *f);

/* Finds a command by name; NULL: unknown, after a message on stderr with the nearest name. */
const wg_command *wg_cli_command(const char *name);

/* Checks the first word of a command that has `words`: -1: legal; else the exit status, after a message on stderr. */
int wg_cli_check_word(const wg_command *c, const char *word);

/* Parses flags (before, between and after words; "--" ends them) into their fields. Returns -1 to continue; otherwise the exit
 * status to return at once (0 after --help, 2 after a usage error, which has been printed on stderr). `word` receives between
 * min and max words, without the model's path. Words of argv are moved to its front. */
int wg_cli_parse(const char *command, const wg_flag *flags, int argc, char **argv, const char **word, int min, int max);

/* Passes the flags of a command to `read` without running the command: wg_cli_parse, which every command calls first, passes
 * them and makes the command return. */
typedef void wg_flag_reader(const wg_command *command, const wg_flag *flags, void *user);
void wg_cli_read_flags(const wg_command *command, wg_flag_reader *read, void *user);
bool wg_cli_reads_flags(void); /* whether wg_cli_read_flags is running */

/* Prints "wager: message" on stderr, before a message that begins with the value of a flag also the flag ("-d a.gguf: there is
 * no such file"). Returns the exit status of the code: 2 for usage and configuration, 130 when interrupted, else 1. */
int wg_cli_fail(const wg_error *err);
int wg_cli_status(wg_status s);

/* Installs handlers: the first Ctrl-C or SIGTERM sets the returned number, the second ends the process. A file over the size
 * limit becomes an error of write() instead of a signal. */
const volatile sig_atomic_t *wg_cli_catch_signals(void);

/* Prints "wager COMMAND: message" on stderr; returns the exit status of usage errors. */
__attribute__((format(printf, 2, 3))) int wg_cli_refuse(const char *command, const char *format, ...);

/* Prints v on stdout, in the text of wg_json_canonical, and releases it. False: it is NULL, or memory is short. */
bool wg_cli_put_json(json_t *v, bool indented);

/* Whether a descriptor is a terminal with escape sequences, which TERM=dumb excludes. */
bool wg_cli_terminal(int fd);

/* The width of tables in columns: COLUMNS, or the terminal's; 0: unlimited, for a file or a pipe. */
int wg_cli_width(int fd);

/* Whether the output file is one of the n input files; if so, a message on stderr says so. what: "model", or what they are. */
bool wg_cli_is_input(const char *command, const char *what, const char *const *in, int n, const char *out);

/* Parses the integers >= -1 of a flag's value, separated by commas; v is allocated (wg_free), also on failure. */
typedef struct wg_cli_ints {
    int32_t *v;
    int n;
} wg_cli_ints;
wg_status wg_cli_read_ints(const char *flag, const char *text, wg_cli_ints *out, wg_error *err);

/* Finds a writable weight type by name; -1: none, after a message on stderr. */
int wg_cli_weight_type(const char *command, const char *name);

/* The element type of the cache for a name of WG_KV_TYPE_VALUES (NULL: f16). */
int wg_cli_kv_type(const char *name);
#define WG_KV_TYPE_VALUES "f32|f16|bf16|q8"
#define WG_KV_TYPE_DOC "element type of the cache"

/* Prints wg_profile_options.say on stderr. */
void wg_cli_say_profile(void *unused, bool warning, const char *text);

/* Sets the chat template of --chat (one of WG_CHAT_VALUES) and --system TEXT (each may be NULL); false: unknown, after a
 * message on stderr. */
bool wg_cli_chat(const char *command, const char *name, const char *system, wg_chat *out);
#define WG_CHAT_VALUES "none|model|llama-2|llama-3|chatml|zephyr|vicuna"
#define WG_CHAT_DOC "chat template of the prompts; model: the one in its file"
#define WG_DATE_DOC "date that a model's own template reads, such as 2026-01-31; without it the template has none"
#define WG_SYSTEM_DOC "system text of the template"

/* Prints a description of a config's run, for `wager check`: question, files, number of cells, requests, tokens and passes,
 * memory and disk, warnings, then a line per cell. seconds < 0: no estimate of the time. open: everything is opened as for a
 * run; on an error nothing is printed. Otherwise warnings are the config's alone. */
struct wg_config;
wg_status wg_cli_print_plan(FILE *f, const struct wg_config *c, double seconds, bool open, wg_error *err);

#endif
