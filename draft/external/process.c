/* SPDX-License-Identifier: MIT
 * A drafter in any language: a program that reads requests from its standard input and writes drafts to its standard output,
 * one line of JSON each (docs/process-drafter.md). One program serves all sequences; one request is in progress at a time.
 *
 * A program that hangs, exits or writes anything else fails the current request alone, with a message; it is ended
 * (core/base/child.h), and the next request starts it again.
 *
 * The answer is read into a fixed buffer by a parser for this one form, so a step allocates nothing; only starting the program
 * again does (inside the C library). Law FIXED: the program must give the same draft for the same text. */
#include "draft/draft.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/child.h"
#include "core/base/mem.h"

enum { LINE = 8192, OUT = 4096, FORGET_MS = 100 };

typedef struct process_options {
    char command[WG_OPTION_STRING];
    int timeout_ms;
} process_options;

typedef struct process_drafter {
    wg_drafter base;
    process_options opt;
    wg_child child;
    int *sent; /* (max_batch) by slot: tokens of the text that the program has received */
    int in_n, out_n;
    char in[LINE + 1], out[OUT];
} process_drafter;

static const wg_option options[] = {
    WG_OPTION_NAME(process_options, command, WG_NAMES_COMMAND, "",
                   "shell command of the program (needed); see docs/process-drafter.md"),
    WG_OPTION_INT(process_options, timeout_ms, 1000, 1, 3600000, "milliseconds to take a request and answer it"),
    WG_OPTION_END,
};

/* ---- starting and ending the program */

/* Ends the program and forgets which tokens it has received. */
static void stop(process_drafter *p, int grace_ms)
{
    wg_child_stop(&p->child, grace_ms);
    memset(p->sent, 0, (size_t)p->base.env->max_batch * sizeof *p->sent);
    p->in_n = p->out_n = 0;
}

static wg_status start(process_drafter *p, wg_error *err)
{
    const wg_status s = wg_child_start(&p->child, -1, err);
    return s ? wg_fail_in(err, s, "drafter process") : WG_OK;
}

/* ---- checks before it starts */

static bool is_builtin(const char *word)
{
    static const char *const names[] = { ".",     ":",    "[",     "alias", "break", "cd",     "command", "continue",
                                         "echo",  "eval", "exit",  "false", "hash",  "printf", "read",    "set",
                                         "shift", "test", "trap",  "true",  "type",  "umask",  "unset",   "wait",
                                         "if",    "for",  "while", "case",  "until" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(word, names[i]) == 0) return true;
    return false;
}

/* Whether a folder of PATH has an executable file of this name. */
static bool on_path(const char *word)
{
    char file[2 * WG_OPTION_STRING];
    const char *path = getenv("PATH");
    for (const char *at = path ? path : "/usr/bin:/bin"; *at;) {
        const size_t n = strcspn(at, ":");
        const int k = snprintf(file, sizeof file, "%.*s/%s", (int)n, at, word);
        if (k > 0 && (size_t)k < sizeof file && access(file, X_OK) == 0) return true;
        at += n + (at[n] == ':');
    }
    return false;
}

/* Checks that the program exists if the command begins with a plain name; other commands are left to the shell. */
static wg_status check_program(const char *command, wg_error *err)
{
    char word[WG_OPTION_STRING];
    struct stat st;
    command += strspn(command, " \t");
    if (strncmp(command, "exec ", 5) == 0) command += 5 + strspn(command + 5, " \t");
    const bool quoted = *command == '\'';
    command += quoted;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(command, quoted ? "'" : " \t"), command);
    if (!*word || (!quoted && (strpbrk(word, "\"'`$&|;<>(){}*?[]~#=!\\\n") || is_builtin(word)))) return WG_OK;
    if (!strchr(word, '/')) {
        if (on_path(word)) return WG_OK;
        return wg_fail(err, WG_ENOENT, "drafter process: there is no program '%s' in the folders of PATH; give its path", word);
    }
    if (stat(word, &st) != 0)
        return wg_fail(err, WG_ENOENT, "drafter process: there is no program '%s': %s", word, strerror(errno));
    if (S_ISREG(st.st_mode) && access(word, X_OK) == 0) return WG_OK;
    return wg_fail(err, WG_EINVAL,
                   "drafter process: '%s' is not executable; make it so (chmod +x), or put its interpreter before it", word);
}

static wg_status open_process(wg_drafter *d, const wg_env *env, wg_error *err)
{
    process_drafter *p = (process_drafter *)d;
    const size_t n = (size_t)env->max_batch;
    wg_child_init(&p->child, p->opt.command);
    if (!*p->opt.command)
        return wg_fail(err, WG_ECONFIG, "drafter process: no program is named; set its option command=COMMAND");
    WG_TRY(check_program(p->opt.command, err));
    if (!(p->sent = wg_calloc(n, sizeof *p->sent))) return wg_nomem(err, n * sizeof *p->sent, "a process drafter");
    return start(p, err);
}

static void close_process(wg_drafter *d)
{
    process_drafter *p = (process_drafter *)d;
    if (p->sent) stop(p, WG_CHILD_GRACE_MS);
    wg_free(p->sent);
}

/* ---- writing and reading lines */

static wg_status flush(process_drafter *p, wg_error *err)
{
    const size_t n = (size_t)p->out_n;
    p->out_n = 0;
    return wg_child_send(&p->child, p->out, n, err);
}

static wg_status put(process_drafter *p, wg_error *err, const char *format, long number)
{
    if (p->out_n + 64 > OUT) WG_TRY(flush(p, err));
    p->out_n += snprintf(p->out + p->out_n, (size_t)(OUT - p->out_n), format, number);
    return WG_OK;
}

static wg_status send_request(process_drafter *p, const wg_seq *s, wg_error *err)
{
    int *sent = &p->sent[s->slot];
    WG_TRY(put(p, err, "{\"request\":%ld", (long)s->request));
    WG_TRY(put(p, err, ",\"room\":%ld", wg_seq_room(s)));
    WG_TRY(put(p, err, ",\"nodes\":%ld,\"tokens\":[", WG_TREE_MAX - 1));
    for (int i = *sent; i < s->n; i++) WG_TRY(put(p, err, i > *sent ? ",%ld" : "%ld", s->token[i]));
    WG_TRY(put(p, err, "]}\n", 0));
    WG_TRY(flush(p, err));
    *sent = s->n;
    return WG_OK;
}

/* Reads the next line, without its newline, into p->in; *rest: the bytes to remove afterwards, newline included. */
static wg_status read_line(process_drafter *p, int *rest, wg_error *err)
{
    for (;;) {
        char *end = memchr(p->in, '\n', (size_t)p->in_n);
        if (end) {
            *end = '\0';
            *rest = (int)(end - p->in) + 1;
            return WG_OK;
        }
        if (p->in_n == LINE)
            return wg_fail(err, WG_EFORMAT, "the program '%s' answered with a line of more than %d bytes", p->opt.command,
                           (int)LINE);
        size_t n;
        WG_TRY(wg_child_read(&p->child, p->in + p->in_n, (size_t)(LINE - p->in_n), &n, err));
        p->in_n += (int)n;
    }
}

/* ---- the answer: {"tokens":[1,2,3]} or {"tokens":[1,2,3],"parents":[-1,0,0]} */

typedef struct list {
    int n; /* -1: missing */
    long v[WG_TREE_MAX];
} list;

static const char *skip(const char *s) { return s + strspn(s, " \t\r"); }

/* Reads "[1,2,3]"; NULL: another text, or too long a list. */
static const char *read_list(const char *s, list *out)
{
    if (out->n >= 0 || *s++ != '[') return NULL;
    out->n = 0;
    for (s = skip(s); *s != ']';) {
        char *end;
        if (out->n == WG_TREE_MAX || (*s != '-' && (*s < '0' || *s > '9'))) return NULL;
        out->v[out->n++] = strtol(s, &end, 10);
        if (end == s) return NULL;
        s = skip(end);
        if (*s == ',') s = skip(s + 1);
        else if (*s != ']') return NULL;
        if (*s == ']' && s[-1] == ',') return NULL;
    }
    return skip(s + 1);
}

static bool read_answer(const char *s, list *tokens, list *parents)
{
    s = skip(s);
    if (*s++ != '{') return false;
    for (s = skip(s);;) {
        list *to;
        if (!strncmp(s, "\"tokens\"", 8)) to = tokens, s = skip(s + 8);
        else if (!strncmp(s, "\"parents\"", 9)) to = parents, s = skip(s + 9);
        else return false;
        if (*s++ != ':' || !(s = read_list(skip(s), to))) return false;
        if (*s == ',') {
            s = skip(s + 1);
            continue;
        }
        return *s == '}' && !*skip(s + 1) && tokens->n >= 0;
    }
}

static wg_status take_answer(const process_drafter *p, const wg_seq *s, wg_tree *t, wg_rows *q, wg_error *err)
{
    list tokens = { .n = -1 }, parents = { .n = -1 };
    const char *command = p->opt.command;
    if (!read_answer(p->in, &tokens, &parents))
        return wg_fail(err, WG_EFORMAT,
                       "the program '%s' answered '%.60s'; expected {\"tokens\":[...]} or "
                       "{\"tokens\":[...],\"parents\":[...]}",
                       command, p->in);
    if (parents.n >= 0 && parents.n != tokens.n)
        return wg_fail(err, WG_EFORMAT,
                       "the program '%s' answered %d tokens and %d parents; expected a parent for each "
                       "token",
                       command, tokens.n, parents.n);
    if (tokens.n > WG_TREE_MAX - 1)
        return wg_fail(err, WG_EFORMAT, "the program '%s' answered %d tokens; the request allows %d (nodes)", command, tokens.n,
                       WG_TREE_MAX - 1);
    for (int i = 0; i < tokens.n; i++) {
        const long parent = parents.n >= 0 ? parents.v[i] : i - 1;
        if (tokens.v[i] < 0 || tokens.v[i] >= p->base.env->target->vocab)
            return wg_fail(err, WG_EFORMAT, "the program '%s' proposed token %ld; the vocabulary is 0..%d", command,
                           tokens.v[i], p->base.env->target->vocab - 1);
        if (parent < -1 || parent >= i)
            return wg_fail(err, WG_EFORMAT,
                           "the program '%s' named %ld the parent of token %d; expected -1 (the text's last token) "
                           "or an earlier one, 0..%d",
                           command, parent, i, i - 1);
        const int row = wg_rows_push(q);
        if (row >= 0) q->point[row] = (int32_t)tokens.v[i];
        wg_tree_push(t, (int)parent + 1, (int32_t)tokens.v[i], row);
    }
    (void)s;
    return WG_OK;
}

/* ---- propose */

static wg_status exchange(process_drafter *p, const wg_seq *s, wg_tree *t, wg_rows *q, wg_error *err)
{
    int taken = 0;
    wg_child_begin(&p->child, p->opt.timeout_ms, "timeout_ms");
    WG_TRY(send_request(p, s, err));
    WG_TRY(read_line(p, &taken, err));
    WG_TRY(take_answer(p, s, t, q, err));
    memmove(p->in, p->in + taken, (size_t)(p->in_n -= taken));
    return WG_OK;
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    process_drafter *p = (process_drafter *)d;
    WG_TRY(start(p, err));
    for (int i = 0; i < n; i++) {
        wg_tree_reset(&out[i], seq[i]->token[seq[i]->n - 1], WG_LAW_FIXED);
        if (wg_seq_room(seq[i]) <= 0) continue;
        const wg_status s = exchange(p, seq[i], &out[i], q, err);
        if (!s) continue;
        stop(p, 0);
        return wg_fail_in(err, s, "drafter process");
    }
    return WG_OK;
}

/* Sends a message that has no answer; a program that does not read it is killed. */
static void forget(wg_drafter *d, const wg_seq *seq)
{
    process_drafter *p = (process_drafter *)d;
    if (p->child.pid == 0 || p->sent[seq->slot] == 0) return;
    p->sent[seq->slot] = 0;
    wg_child_begin(&p->child, FORGET_MS, "timeout_ms");
    if (put(p, NULL, "{\"forget\":%ld}\n", (long)seq->request) || flush(p, NULL)) stop(p, 0);
}

const wg_drafter_class wg_drafter_process = {
    .name = "process",
    .doc = "a program of your own that answers JSON lines",
    .size = sizeof(process_drafter),
    .options = options,
    .options_at = offsetof(process_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "command=python3 examples/process-drafter/bigram.py 3,timeout_ms=60000", .own_request = true },
            { .options = NULL },
        },
    .laws = WG_LAW_FIXED,
    .open = open_process,
    .propose = propose,
    .forget = forget,
    .close = close_process,
    .cross_request = true,
    .outside = true,
};
