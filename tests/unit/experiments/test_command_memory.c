/* SPDX-License-Identifier: MIT
 * Commands that print JSON, with each of jansson's allocations failing in turn: the output is whole, or the command does not
 * end well, and no line is empty. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "experiments/cli/cli.h"
#include "scene.h"

static scene s;
static void setup(void) { scene_make(&s); }
static void teardown(void) { scene_remove(&s); }
TestSuite(command_memory, .init = setup, .fini = teardown, .timeout = 120);

enum { INCOMPLETE = 77, MOST = 2000 };
static long left; /* allocations until one fails; negative: none does */

static void *failing(size_t n)
{
    if (left == 0) {
        left = -1;
        return NULL;
    }
    if (left > 0) left--;
    return malloc(n);
}

/* The command in a process of its own, whose allocation `nth` fails; its output is the file "out". Returns the
 * status that main() gives it. */
static int run(int (*command)(int, char **), char *const *words, long nth)
{
    const pid_t child = fork();
    if (child == 0) {
        char *argv[16];
        int argc = 0, status;
        for (; words[argc]; argc++) argv[argc] = words[argc];
        argv[argc] = NULL;
        if (!freopen("out", "w", stdout) || !freopen("said", "w", stderr)) _exit(99);
        left = nth;
        json_set_alloc_funcs(failing, free);
        wg_json_watch_memory();
        status = command(argc, argv);
        fflush(stdout);
        _exit(status ? status : wg_json_incomplete() ? INCOMPLETE : 0);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status), "allocation %ld: signal %d", nth, WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* The names of the members of all lines, in order, and the number of lines. */
static void members(const char *text, char *out, size_t room)
{
    size_t n = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        const char *key;
        json_t *v = json_loadb(line, (size_t)(strchr(line, '\n') - line), 0, NULL), *inner;
        cr_assert(json_is_object(v), "%s", text);
        json_object_foreach(v, key, inner) n += (size_t)snprintf(out + n, room - n, "%s ", key);
        n += (size_t)snprintf(out + n, room - n, "\n");
        cr_assert_lt(n, room);
        json_decref(v);
    }
}

static void expect(int (*command)(int, char **), char *const *words)
{
    static char want[1 << 14], got[1 << 14];
    cr_assert_eq(run(command, words, -1), 0);
    char *text = file_read("out", NULL);
    members(text, want, sizeof want);
    cr_assert_gt(strlen(want), 1);
    free(text);
    int status = -1;
    long nth = 0;
    for (; nth < MOST && status != 0; nth++) {
        status = run(command, words, nth);
        text = file_read("out", NULL);
        cr_assert(*text != '\n' && !strstr(text, "\n\n"), "allocation %ld: an empty line in: %s", nth, text);
        if (status == 0) {
            members(text, got, sizeof got);
            cr_assert_str_eq(got, want, "allocation %ld", nth);
        }
        free(text);
    }
    cr_assert(status == 0 && nth > 5, "%ld allocations", nth);
}

#define WORDS(...) ((char *[]){ __VA_ARGS__, NULL })
Test(command_memory, generate)
{
    expect(wg_cmd_generate, WORDS("generate", "target.gguf", "-n", "3", "-p", "A cat", "--json"));
}
Test(command_memory, quantize)
{
    expect(wg_cmd_quantize, WORDS("quantize", "target.gguf", "/dev/null", "--type", "q8_0", "--json"));
}
Test(command_memory, tokenize) { expect(wg_cmd_tokenize, WORDS("tokenize", "target.gguf", "A cat", "--json")); }
Test(command_memory, logits) { expect(wg_cmd_logits, WORDS("logits", "target.gguf", "--tokens", "1,2", "--json")); }
Test(command_memory, tree) { expect(wg_cmd_tree, WORDS("tree", "--json")); }
Test(command_memory, prove)
{
    expect(wg_cmd_prove, WORDS("prove", "--rule", "match", "--vocab", "2", "--depth", "1", "--cases", "1", "--json"));
}
Test(command_memory, columns) { expect(wg_cmd_columns, WORDS("columns", "--json")); }
