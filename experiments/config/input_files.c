/* SPDX-License-Identifier: MIT
 * Files that a run reads (input_files.h). */
#include "experiments/config/input_files.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/file/model_name.h"

/* Adds the digest of a file, or null when it cannot be read. Each path is added once. */
static void add(json_t *files, const char *path)
{
    char hex[WG_SHA256_HEX];
    if (!*path || json_object_get(files, path)) return;
    json_object_set_new(files, path, wg_sha256_file(path, hex, NULL) == WG_OK ? json_string(hex) : json_null());
}

static bool ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);
    return n > k && strcmp(name + n - k, end) == 0;
}

/* Adds the files of a model's folder; false: not a folder. */
static bool add_folder(json_t *files, const char *path)
{
    char file[PATH_MAX];
    DIR *d = opendir(path);
    snprintf(file, sizeof file, "%s/config.json", path);
    const bool model = d && access(file, F_OK) == 0;
    for (struct dirent *e; model && (e = readdir(d));) {
        if (!ends_in(e->d_name, ".json") && !ends_in(e->d_name, ".safetensors")) continue;
        const int n = snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        if (n > 0 && (size_t)n < sizeof file) add(files, file);
    }
    if (d) closedir(d);
    return model;
}

static void add_model(json_t *files, const char *name)
{
    char path[PATH_MAX];
    if (wg_model_path(name, path, NULL) != WG_OK) snprintf(path, sizeof path, "%s", name); /* missing, which its digest shows */
    if (!*path || !add_folder(files, path)) add(files, path);
}

static void add_if_file(json_t *files, const char *path)
{
    struct stat st;
    if (stat(path, &st) || access(path, R_OK)) return;
    if (S_ISREG(st.st_mode)) add(files, path);
    else if (S_ISDIR(st.st_mode)) add_folder(files, path);
}

/* Whether the word at `at` is the target of an output redirection. */
static bool written_to(const char *text, const char *at)
{
    while (at > text && (at[-1] == ' ' || at[-1] == '\t')) at--;
    return at > text && at[-1] == '>';
}

/* Adds every piece of an option's value between any of these characters. */
static void add_pieces(json_t *files, const char *text, const char *between)
{
    for (const char *at = text; *at; at += strspn(at, between)) {
        char piece[WG_OPTION_STRING];
        const size_t n = strcspn(at, between);
        if (n > 0 && n < sizeof piece && !written_to(text, at)) {
            memcpy(piece, at, n);
            piece[n] = '\0';
            add_if_file(files, piece);
        }
        at += n;
    }
}

/* Adds the value itself; its pieces as a component drafter, KIND:option=FILE;option=value (draft/compose/composite.h), where
 * file names may have spaces; its pieces as a command. */
static void add_value(json_t *files, const char *text)
{
    static const char *const between[] = { "", "{}|;=", "{}|;= \t\n\"'<>()&" };
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) add_pieces(files, text, between[i]);
}

json_t *wg_files_json(const wg_config *c)
{
    json_t *files = json_object();
    for (int i = 0; i < c->n; i++) {
        const wg_cell *cell = &c->cell[i];
        add_model(files, cell->setup.target.model);
        add_value(files, cell->setup.target.command);
        add(files, cell->setup.top.grammar);
        if (*cell->setup.top.json_schema != '{') add(files, cell->setup.top.json_schema);
        for (const wg_option *o = cell->setup.drafter->options; o && o->name; o++) {
            if (o->type != WG_OPT_STRING) continue;
            const char *value = (const char *)cell->setup.draft + o->at;
            if (!strcmp(o->name, "model")) add_model(files, value);
            else add_value(files, value);
        }
        for (const wg_option *o = cell->setup.named->options; o && o->name; o++)
            if (o->type == WG_OPT_STRING) add_value(files, (const char *)cell->setup.verify + o->at);
    }
    for (int i = 0; i < c->datasets; i++) json_object_set_new(files, c->dataset[i]->path, json_string(c->dataset[i]->sha256));
    return files;
}
