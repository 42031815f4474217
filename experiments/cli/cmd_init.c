/* SPDX-License-Identifier: MIT
 * wager init: writes a first experiment with comments and paths relative to its file. It is checked as by `wager check`, and
 * removed if the check fails. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/make_path.h"
#include "core/base/mem.h"
#include "core/base/program.h"
#include "core/base/save.h"
#include "core/file/model_name.h"
#include "core/setup/spec.h"
#include "experiments/base/shell_word.h"
#include "experiments/cli/cli.h"
#include "experiments/cli/quickstart_prompts.h"
#include "experiments/run/runner.h"

typedef struct init {
    const char *file, *target, *draft, *prompts; /* prompts NULL: the built-in ones are written beside the file */
    char own[PATH_MAX];                          /* their path */
} init;

/* The folder of a path; ".": it has none. */
static void folder_of(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    snprintf(out, PATH_MAX, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
}

static wg_status readable(const char *file, wg_error *err)
{
    if (access(file, R_OK) == 0) return WG_OK;
    return wg_fail(err, WG_ENOENT, "%s: cannot be read: %s", file, strerror(errno));
}

/* The path of a file that exists as seen from a folder; absolute where they have only the root in common. Folders are taken
 * without symbolic links, for ".." to be right; the file may be one. */
static wg_status path_from(const char *folder, const char *file, char out[PATH_MAX], wg_error *err)
{
    char from[PATH_MAX], to[PATH_MAX], in[PATH_MAX];
    size_t same = 0, n = 0;
    const char *slash = strrchr(file, '/');
    folder_of(file, in);
    WG_TRY(readable(file, err));
    if (!realpath(in, to)) return wg_fail(err, WG_ENOENT, "%s: there is no such folder: %s", in, strerror(errno));
    if (!realpath(folder, from)) return wg_fail(err, WG_ENOENT, "%s: there is no such folder: %s", folder, strerror(errno));
    snprintf(to + strlen(to), sizeof to - strlen(to), "%s%s", strcmp(to, "/") ? "/" : "", slash ? slash + 1 : file);
    strncat(from, strcmp(from, "/") ? "/" : "", sizeof from - strlen(from) - 1);
    for (size_t i = 0; from[i] && from[i] == to[i]; i++)
        if (from[i] == '/') same = i + 1;
    if (same <= 1) {
        memcpy(out, to, sizeof to);
        return WG_OK;
    }
    *out = '\0';
    for (const char *s = from + same; (s = strchr(s, '/')); s++) n += (size_t)snprintf(out + n, PATH_MAX - n, "../");
    snprintf(out + n, PATH_MAX - n, "%s", to + same);
    return WG_OK;
}

/* The model as the experiment names it: its path from the folder, or the name by which `wager pull` fetched it. */
static wg_status model_from(const char *folder, const char *model, char out[PATH_MAX], wg_error *err)
{
    if (!wg_is_model_name(model)) return path_from(folder, model, out, err);
    snprintf(out, PATH_MAX, "%s", model);
    return WG_OK;
}

/* The name of the experiment: the file's, with characters that a folder's name may have. */
static void name_of(const char *file, char out[64])
{
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    size_t n = 0;
    for (; *base && strcmp(base, ".json") != 0 && n < 63; base++) {
        const bool letter = (*base >= 'a' && *base <= 'z') || (*base >= 'A' && *base <= 'Z') || (*base >= '0' && *base <= '9');
        out[n] = letter || (n > 0 && strchr("._-", *base)) ? *base : '_';
        n++;
    }
    out[n] = '\0';
    if (n == 0) strcpy(out, "experiment");
}

/* Prints `"key": "path"` as JSON. */
static void put_path(FILE *f, const char *key, const char *path)
{
    json_t *v = json_string(path);
    char *text = v ? json_dumps(v, JSON_ENCODE_ANY) : NULL;
    fprintf(f, "\"%s\": %s", key, text ? text : "\"\"");
    free(text); /* allocated by jansson */
    json_decref(v);
}

static void put_draft(FILE *f, const char *draft)
{
    fputs("  \"// draft\": \"what proposes tokens: `wager list drafters`. The sweep below sets some of it.\",\n  \"draft\": {",
          f);
    if (!draft) fputs("\"kind\": \"ngram\", \"k\": 4},\n\n", f);
    else {
        fputs("\"kind\": \"model\", ", f);
        put_path(f, "model", draft);
        fputs(", \"length\": 4},\n\n", f);
    }
}

static void put_experiment(FILE *f, const char *name, const char *target, const char *draft, const char *prompts)
{
    fprintf(f,
            "{\n  \"//\": \"Keys that begin with // are comments. `wager check` explains this file, `wager run` runs it, "
            "`wager list "
            "--schema` has every key. Paths are relative to this file.\",\n"
            "  \"name\": \"%s\",\n"
            "  \"question\": \"Which draft length is the fastest, greedy and sampled?\",\n"
            "  \"seed\": 1,\n\n"
            "  \"// target\": \"the model whose output is wanted; threads 0: all cores\",\n  \"target\": {",
            name);
    put_path(f, "model", target);
    fputs(", \"threads\": 0},\n\n", f);
    put_draft(f, draft);
    fputs("  \"// verify\": \"what decides which proposed tokens are kept: `wager list rules`\",\n"
          "  \"verify\": {\"rule\": \"rejection\"},\n\n"
          "  \"// sampling\": \"temperature 0 is greedy; top_k, top_p and min_p truncate\",\n"
          "  \"sampling\": {\"temperature\": 0},\n\n"
          "  \"// prompts\": \"one JSON object a line, with prompt, question or turns; limit 0: all\",\n  \"prompts\": {",
          f);
    put_path(f, "file", prompts);
    fprintf(f,
            ", \"limit\": 12},\n"
            "  \"max_tokens\": 64,\n"
            "  \"repeats\": 3,\n\n"
            "  \"// sweep\": \"every combination of these lists is a cell, beside plain decoding of the same prompts\",\n"
            "  \"sweep\": {\"draft.%s\": [2, 4, 8], \"sampling.temperature\": [0, 0.8]}\n}\n",
            draft ? "length" : "k");
}

/* Writes a file with this text, which must not exist. */
static wg_status save_new(const char *path, const char *text, wg_error *err)
{
    if (access(path, F_OK) == 0) return wg_fail(err, WG_EINVAL, "%s is there already; name another file, or remove it", path);
    return wg_save_all(path, text, strlen(text), err);
}

/* Writes the built-in prompts beside FILE.json, as FILE-prompts.jsonl. */
static wg_status write_prompts(init *o, wg_error *err)
{
    const size_t n = strlen(o->file), stem = n > 5 && !strcmp(o->file + n - 5, ".json") ? n - 5 : n;
    const int length = snprintf(o->own, sizeof o->own, "%.*s-prompts.jsonl", (int)stem, o->file);
    if (length < 0 || (size_t)length >= sizeof o->own)
        return wg_fail(err, WG_EINVAL, "a path of %zu bytes; expected a shorter one", n);
    WG_TRY(save_new(o->own, wg_quickstart_prompts, err));
    o->prompts = o->own;
    return WG_OK;
}

static wg_status write_file(init *o, wg_error *err)
{
    char folder[PATH_MAX], target[PATH_MAX], draft[PATH_MAX] = "", prompts[PATH_MAX], name[64];
    folder_of(o->file, folder);
    if (!wg_is_model_name(o->target)) WG_TRY(readable(o->target, err));
    if (o->draft && !wg_is_model_name(o->draft)) WG_TRY(readable(o->draft, err));
    if (o->prompts) WG_TRY(readable(o->prompts, err));
    WG_TRY(wg_make_parents(o->file, err));
    WG_TRY(model_from(folder, o->target, target, err));
    if (o->draft) WG_TRY(model_from(folder, o->draft, draft, err));
    if (!o->prompts) WG_TRY(write_prompts(o, err));
    WG_TRY(path_from(folder, o->prompts, prompts, err));
    name_of(o->file, name);
    char *text = NULL; /* allocated by open_memstream */
    size_t n;
    FILE *f = open_memstream(&text, &n);
    if (!f) return wg_nomem(err, 1, "an experiment");
    put_experiment(f, name, target, o->draft ? draft : NULL, prompts);
    fclose(f);
    const wg_status s = save_new(o->file, text, err);
    free(text);
    return s;
}

/* Checks the file like `wager check`. */
static wg_status check_file(const char *file, wg_error *err)
{
    wg_config *c;
    WG_TRY(wg_config_open(&c, file, NULL, 0, &wg_program_plugins, err));
    const wg_status s = wg_run_open(c, stderr, "warning: ", NULL, err);
    wg_config_close(c);
    return s;
}

int wg_cmd_init(int argc, char **argv)
{
    static const char target[] = "models/story-target-q8_0.gguf", draft[] = "models/story-draft-q8_0.gguf",
                      prompts[] = "configs/prompts/quickstart.jsonl";
    init o = { 0 };
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL_IF, &o.target, "the target; without it the bundled pair of models"),
        { "draft-model", 'd', WG_FLAG_STRING, &o.draft, "FILE",
          "the draft model; without it, with -m, the drafter is a lookup in the text", 0, 0 },
        { "prompts", 'p', WG_FLAG_STRING, &o.prompts, "FILE",
          "prompts (JSONL); else the bundled ones, copied beside FILE outside of the checkout", 0, 0 },
        { NULL, 0, WG_FLAG_BOOL, NULL, NULL, NULL, 0, 0 },
    };
    const int bad = wg_cli_parse("init", flags, argc, argv, &o.file, 1, 1);
    if (bad >= 0) return bad;
    if (!o.target && !o.draft && access(draft, F_OK) == 0) o.draft = draft;
    if (!o.target && access(target, F_OK) == 0) o.target = target;
    if (!o.prompts && access(prompts, F_OK) == 0) o.prompts = prompts;
    if (!o.target) return wg_cli_refuse("init", "-m MODEL is missing: the target; there is no %s here", target);
    wg_error err;
    wg_status s = write_file(&o, &err);
    if (!s && (s = check_file(o.file, &err))) unlink(o.file);
    if (s && o.prompts == o.own) unlink(o.own);
    if (s) return wg_cli_fail(&err);
    if (o.prompts == o.own) printf("wrote %s: prompts to begin with\n", o.own);
    printf("wrote %s; next: %s check ", o.file, wg_program());
    wg_put_shell_word(stdout, o.file);
    printf(", then %s run ", wg_program());
    wg_put_shell_word(stdout, o.file);
    puts(" --out DIR");
    return WG_EXIT_OK;
}
