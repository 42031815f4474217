/* SPDX-License-Identifier: MIT
 * Files of a repository on a hub, by its HTTP interface: api/models/REPO/revision/REV lists the files of a commit,
 * REPO/resolve/COMMIT/FILE has their bytes. They are stored as the hub's own library stores them, so that other programs find
 * them: models--OWNER--REPO/blobs/DIGEST, snapshots/COMMIT/FILE -> the blob, refs/REV with the commit. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/make_path.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/base/save.h"
#include "core/file/model_name.h"
#include "experiments/pull/fetch.h"
#include "experiments/pull/part_file.h"
#include "experiments/pull/pull.h"

enum { FILES_MAX = 4096, ANSWER_MAX = 32 << 20, URL_MAX = 2048 };

typedef struct hub {
    wg_hub_name name;
    const char *endpoint;
    char token[1001]; /* "": none */
    char repo[PATH_MAX], commit[64];
    wg_json *doc;
    json_t *files; /* of the commit; borrowed */
} hub;

/* Reads the token: HF_TOKEN, or the file of the hub's login. */
static wg_status read_token(hub *h, wg_error *err)
{
    const char *token = getenv("HF_TOKEN"), *named = getenv("HF_TOKEN_PATH");
    char path[PATH_MAX], folder[PATH_MAX], *text = NULL;
    size_t n;
    if (!token && named) snprintf(path, sizeof path, "%s", named);
    else if (!token && (wg_hub_folder(folder, NULL) || snprintf(path, sizeof path, "%s/../token", folder) >= (int)sizeof path))
        return WG_OK;
    if (!token && wg_read_file(path, sizeof h->token - 1, &text, &n, NULL) == WG_OK) token = text;
    const size_t length = token ? strcspn(token, " \t\r\n") : 0;
    if (length < sizeof h->token) snprintf(h->token, sizeof h->token, "%.*s", (int)length, token ? token : "");
    wg_free(text);
    if (length < sizeof h->token) return WG_OK;
    return wg_fail(err, WG_EINVAL, "HF_TOKEN is longer than 1000 bytes; expected a token of the hub");
}

/* Appends a path to an address, with %XX where a byte has a meaning in addresses. */
static bool append(char url[URL_MAX], const char *path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    size_t at = strlen(url);
    for (; *path; path++) {
        if (at + 4 > URL_MAX) return false;
        if (strchr(plain, *path)) url[at++] = *path;
        else at += (size_t)sprintf(url + at, "%%%02X", (unsigned char)*path);
    }
    url[at] = '\0';
    return true;
}

static wg_status address(const hub *h, const char *middle, const char *last, char url[URL_MAX], wg_error *err)
{
    const int n = snprintf(url, URL_MAX, "%.*s%s", (int)(strlen(h->endpoint) - (h->endpoint[strlen(h->endpoint) - 1] == '/')),
                           h->endpoint, middle);
    if (n < URL_MAX && append(url, last)) return WG_OK;
    return wg_fail(err, WG_EINVAL, "%s: the address of '%s' is too long", h->name.repo, last);
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text ? text : "";
}

static bool is_hex(const char *text, size_t n) { return strlen(text) == n && strspn(text, "0123456789abcdef") == n; }

/* Reads and checks the list of files of the revision: names stay in the folder, digests have the right form. */
static wg_status read_list(hub *h, wg_error *err)
{
    char middle[512], url[URL_MAX], *text;
    size_t n;
    snprintf(middle, sizeof middle, "/api/models/%s/revision/", h->name.repo);
    WG_TRY(address(h, middle, h->name.revision, url, err));
    if (strlen(url) + 12 >= sizeof url) return wg_fail(err, WG_EINVAL, "%s: its address is too long", h->name.repo);
    strcat(url, "?blobs=true");
    WG_TRY(wg_fetch_text(url, *h->token ? h->token : NULL, ANSWER_MAX, &text, &n, err));
    const wg_status s = wg_json_parse(&h->doc, url, text, n, err);
    wg_free(text);
    WG_TRY(s);
    json_t *root = wg_json_root(h->doc);
    h->files = json_object_get(root, "siblings");
    snprintf(h->commit, sizeof h->commit, "%s", text_of(root, "sha"));
    if (!is_hex(h->commit, 40) || !json_is_array(h->files) || json_array_size(h->files) > FILES_MAX)
        return wg_fail(err, WG_EFORMAT, "%s: no list of files of a commit: expected \"sha\" and \"siblings\"", url);
    for (size_t i = 0; i < json_array_size(h->files); i++) {
        const char *file = text_of(json_array_get(h->files, i), "rfilename");
        if (!wg_hub_file_is_safe(file) || strlen(file) > 512)
            return wg_fail(err, WG_EFORMAT, "%s: the file name '%.60s' would leave its folder; nothing was fetched", url, file);
    }
    return WG_OK;
}

/* A file of the list: its digests and its size. */
typedef struct listed {
    const char *file, *sha256, *git;
    int64_t bytes;
} listed;

static wg_status read_file(const hub *h, size_t i, listed *out, wg_error *err)
{
    const json_t *o = json_array_get(h->files, i), *lfs = json_object_get(o, "lfs");
    *out = (listed){ .file = text_of(o, "rfilename"), .bytes = -1 };
    const char *sha256 = text_of(lfs, "sha256"), *git = text_of(o, "blobId");
    const json_t *size = json_is_object(lfs) ? json_object_get(lfs, "size") : json_object_get(o, "size");
    if (!*sha256) sha256 = text_of(lfs, "oid");
    if (json_is_integer(size) && json_integer_value(size) >= 0) out->bytes = json_integer_value(size);
    if (json_is_object(lfs) && is_hex(sha256, 64)) out->sha256 = sha256;
    else if (!json_is_object(lfs) && is_hex(git, 40)) out->git = git;
    else return wg_fail(err, WG_EFORMAT, "%s: the hub names no digest of '%s'; nothing was fetched", h->name.repo, out->file);
    return WG_OK;
}

static void license_of(const hub *h, char out[128])
{
    json_t *root = wg_json_root(h->doc), *tags = json_object_get(root, "tags");
    snprintf(out, 128, "%s", text_of(json_object_get(root, "cardData"), "license"));
    for (size_t i = 0; !*out && i < json_array_size(tags); i++) {
        const char *tag = json_string_value(json_array_get(tags, i));
        if (tag && !strncmp(tag, "license:", 8)) snprintf(out, 128, "%s", tag + 8);
    }
    for (char *c = out; *c; c++) *c = (unsigned char)*c < 32 ? ' ' : *c; /* the text is printed */
}

static wg_status place(const hub *h, const char *a, const char *b, const char *c, char path[PATH_MAX], wg_error *err)
{
    const int n = snprintf(path, PATH_MAX, "%s/%s%s%s", h->repo, a, b, c);
    return n < PATH_MAX - 16 ? WG_OK : wg_fail(err, WG_EINVAL, "%.60s...: the path of the hub's folder is too long", h->repo);
}

/* Links a file's name in the snapshot of its commit to its blob. */
static wg_status link_file(const hub *h, const listed *f, wg_error *err)
{
    char path[PATH_MAX], to[PATH_MAX] = "";
    char commit[80];
    snprintf(commit, sizeof commit, "%s/", h->commit);
    WG_TRY(place(h, "snapshots/", commit, f->file, path, err));
    for (const char *c = f->file; *c; c++)
        if (*c == '/') strcat(to, "../");
    strcat(to, "../../blobs/");
    strcat(to, f->sha256 ? f->sha256 : f->git);
    WG_TRY(wg_make_parents(path, err));
    if (symlink(to, path) == 0 || errno == EEXIST) return WG_OK;
    return wg_fail(err, WG_EIO, "%s: cannot make this link: %s", path, strerror(errno));
}

static bool is_there(const char *blob, int64_t bytes)
{
    struct stat st;
    return stat(blob, &st) == 0 && S_ISREG(st.st_mode) && (bytes < 0 || st.st_size == bytes);
}

static wg_status fetch_one(const hub *h, const listed *f, const wg_pull_options *o, wg_pull_result *out, wg_error *err)
{
    char blob[PATH_MAX], middle[512], url[URL_MAX];
    WG_TRY(place(h, "blobs/", f->sha256 ? f->sha256 : f->git, "", blob, err));
    if (!is_there(blob, f->bytes)) {
        snprintf(middle, sizeof middle, "/%s/resolve/%s/", h->name.repo, h->commit);
        WG_TRY(address(h, middle, f->file, url, err));
        const wg_fetch get = { .url = url,
                               .token = *h->token ? h->token : NULL,
                               .to = blob,
                               .bytes = f->bytes,
                               .sha256 = f->sha256,
                               .git = f->git,
                               .name = f->file,
                               .connections = o->connections,
                               .progress = o->progress };
        WG_TRY(wg_fetch_file(&get, err));
        out->fetched += f->bytes > 0 ? f->bytes : 0;
    }
    return link_file(h, f, err);
}

static wg_status write_ref(const hub *h, wg_error *err)
{
    char path[PATH_MAX];
    if (strcmp(h->name.revision, h->commit) == 0) return WG_OK;
    WG_TRY(place(h, "refs/", h->name.revision, "", path, err));
    WG_TRY(wg_make_parents(path, err));
    return wg_save_all(path, h->commit, strlen(h->commit), err);
}

/* Chooses files, prints what they are, checks the room, fetches them. */
static wg_status fetch_all(hub *h, const wg_pull_options *o, wg_pull_result *out, wg_error *err)
{
    const int n = (int)json_array_size(h->files);
    const char **name = wg_calloc((size_t)n + 1, sizeof *name);
    bool *chosen = wg_calloc((size_t)n + 1, sizeof *chosen);
    int first = -1, files = 0;
    listed f;
    wg_status s = name && chosen ? WG_OK : wg_nomem(err, (size_t)n * sizeof *name, "a list of files");
    for (int i = 0; !s && i < n; i++) name[i] = text_of(json_array_get(h->files, (size_t)i), "rfilename");
    if (!s) s = wg_hub_pick(h->name.repo, name, n, h->name.pick, chosen, &first, err);
    for (int i = 0; !s && i < n; i++) {
        if (!chosen[i]) continue;
        s = read_file(h, (size_t)i, &f, err);
        out->bytes += f.bytes > 0 ? f.bytes : 0;
        files++;
    }
    if (!s) {
        license_of(h, out->license);
        snprintf(out->revision, sizeof out->revision, "%s", h->commit);
        fprintf(stderr, "%s: %s, revision %.12s\n", h->name.repo, first < 0 ? "its folder" : name[first], h->commit);
        fprintf(stderr, "%.1f MB in %d file%s, licence: %s\n", (double)out->bytes / 1e6, files, files == 1 ? "" : "s",
                *out->license ? out->license : "none is named");
        s = wg_pull_room(h->repo, out->bytes, err);
    }
    for (int i = 0; !s && i < n; i++)
        if (chosen[i] && !(s = read_file(h, (size_t)i, &f, err))) s = fetch_one(h, &f, o, out, err);
    if (!s) s = write_ref(h, err);
    char commit[80];
    snprintf(commit, sizeof commit, "%s/", h->commit);
    if (!s) s = place(h, "snapshots/", commit, first < 0 ? "" : name[first], out->path, err);
    wg_free(name);
    wg_free(chosen);
    return s;
}

wg_status wg_pull_hub(const char *name, const wg_pull_options *o, wg_pull_result *out, wg_error *err)
{
    hub *h = wg_calloc(1, sizeof *h);
    if (!h) return wg_nomem(err, sizeof *h, "a hub");
    const char *endpoint = getenv("HF_ENDPOINT");
    h->endpoint = endpoint && *endpoint ? endpoint : "https://huggingface.co";
    wg_status s = wg_hub_name_parse(&h->name, name, err);
    if (!s) s = wg_hub_repo_folder(&h->name, h->repo, err);
    if (!s) s = read_token(h, err);
    if (!s) s = read_list(h, err);
    if (!s) s = fetch_all(h, o, out, err);
    wg_json_close(h->doc);
    wg_free(h);
    return s;
}
