/* SPDX-License-Identifier: MIT
 * References of a config: "target": "@models/story" is replaced by the object in models/story.json. The folder is searched
 * beside the config, then one level up, so that configs/experiments/x.json finds configs/models/story.json. A referenced
 * object is a whole section: it inherits nothing and contains no reference. Problems in it are reported with a position in
 * its own file. */
#include "core/setup/setup_check.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"

enum { PATH_ROOM = 1024, NAME_ROOM = 64, LISTED = 32 };

/* Whether the text is "@folder/name" with safe characters only, so that no other path can be formed. */
static bool legal(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const size_t folder = strspn(text + 1, letters), name = text[1 + folder] == '/' ? strspn(text + 2 + folder, letters) : 0;
    return folder > 0 && name > 0 && folder < NAME_ROOM && name < NAME_ROOM && text[1] != '.' && text[2 + folder] != '.' &&
           text[2 + folder + name] == '\0';
}

/* "dir/" of the config, or "dir/../" one level up; false when it is too long. */
static bool base_of(const wg_checker *c, int up, char *buf, size_t size)
{
    const char *path = wg_json_name(c->doc), *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    return (size_t)snprintf(buf, size, "%.*s%s", (int)n, path, up ? "../" : "") < size;
}

/* Lists the referable files in a folder by name, at most LISTED; returns their number, -1 without such a folder. */
static int list_parts(const char *folder, char names[][NAME_ROOM])
{
    DIR *d = opendir(folder);
    if (!d) return -1;
    int n = 0;
    for (const struct dirent *e; (e = readdir(d)) && n < LISTED;) {
        const char *end = strrchr(e->d_name, '.');
        if (!end || strcmp(end, ".json") != 0 || end == e->d_name || end - e->d_name >= NAME_ROOM) continue;
        char name[NAME_ROOM];
        snprintf(name, sizeof name, "%.*s", (int)(end - e->d_name), e->d_name);
        int i = n++;
        for (; i > 0 && strcmp(names[i - 1], name) > 0; i--) memcpy(names[i], names[i - 1], NAME_ROOM);
        memcpy(names[i], name, NAME_ROOM);
    }
    closedir(d);
    return n;
}

/* Reports a missing file with the names that exist in the first folder of that name. */
static void unknown(wg_checker *c, const char *place, const char *text)
{
    char names[LISTED][NAME_ROOM], folder[PATH_ROOM], hint[512] = "";
    const char *list[LISTED + 1];
    const int length = (int)strcspn(text + 1, "/");
    int n = -1;
    for (int up = 0; up < 2 && n < 0; up++) {
        if (!base_of(c, up, folder, sizeof folder - NAME_ROOM)) continue;
        snprintf(folder + strlen(folder), NAME_ROOM, "%.*s", length, text + 1);
        n = list_parts(folder, names);
    }
    if (n < 0)
        wg_problem(c, place, false, "%s: no part \"%s\": no folder \"%.*s\" beside the config or one level up", place, text,
                   length, text + 1);
    else if (n == 0) wg_problem(c, place, false, "%s: no part \"%s\": no JSON file in \"%.200s\"", place, text, folder);
    for (int i = 0; i < n; i++) list[i] = names[i];
    if (n <= 0) return;
    list[n] = NULL;
    size_t at = 0;
    for (int i = 0; i < n && at < sizeof hint; i++)
        at += (size_t)snprintf(hint + at, sizeof hint - at, "%s@%.*s/%s", i ? ", " : "", length, text + 1, list[i]);
    wg_problem(c, place, false, "%s: no part \"%s\"; there are: %.300s", place, text, hint);
}

static wg_status remember(wg_checker *c, const char *place, wg_json *doc, wg_error *err)
{
    const wg_status s = wg_grow((void **)&c->part, &c->cap_part, (size_t)c->n_part + 1, sizeof *c->part, "named parts", err);
    if (s) {
        wg_json_close(doc);
        return s;
    }
    wg_part *p = &c->part[c->n_part++];
    *p = (wg_part){ .doc = doc };
    snprintf(p->place, sizeof p->place, "%s", place);
    return WG_OK;
}

/* The object that a value refers to; NULL with WG_OK when there is none and the problem has been reported. */
static wg_status find_part(wg_checker *c, const char *place, const char *text, json_t **out, wg_error *err)
{
    char path[PATH_ROOM];
    bool found = false;
    *out = NULL;
    if (!legal(text)) {
        wg_problem(c, place, false, "%s: \"%.80s\" names no part; expected \"@folder/name\", such as \"@models/story\"", place,
                   text);
        return WG_OK;
    }
    for (int up = 0; up < 2 && !found; up++) {
        if (!base_of(c, up, path, sizeof path - 2 * NAME_ROOM - 8)) continue;
        snprintf(path + strlen(path), 2 * NAME_ROOM + 8, "%s.json", text + 1);
        found = access(path, F_OK) == 0;
    }
    if (!found) {
        unknown(c, place, text);
        return WG_OK;
    }
    wg_json *doc;
    WG_TRY(wg_setup_document(&doc, path, err));
    WG_TRY(remember(c, place, doc, err));
    json_t *root = wg_json_root(doc);
    if (json_is_object(root)) {
        *out = json_deep_copy(root);
        wg_setup_uncomment(*out);
        return *out ? WG_OK : wg_nomem(err, 1, "a named part");
    }
    wg_problem(c, place, false, "a part is an object, such as {\"model\": \"story.gguf\"}");
    return WG_OK;
}

static wg_status open_part(wg_checker *c, const char *place, const char *text, json_t **out, wg_error *err)
{
    WG_TRY(find_part(c, place, text, out, err));
    c->no_part = c->no_part || !*out;
    return WG_OK;
}

static const char *name_of(const json_t *v)
{
    const char *text = json_string_value(v);
    return text && *text == '@' ? text : NULL;
}

wg_status wg_parts_put_lists(wg_checker *c, json_t *object, const char *at, wg_error *err)
{
    json_t *put;
    for (const wg_setup_section *s = wg_setup_sections + 1; s->name; s++) {
        json_t *list = json_object_get(object, s->name);
        for (size_t i = 0; i < json_array_size(list); i++) {
            char place[64];
            const char *text = name_of(json_array_get(list, i));
            snprintf(place, sizeof place, "%s.%s[%zu]", at, s->name, i);
            if (text) WG_TRY(open_part(c, place, text, &put, err));
            if (text && put) json_array_set_new(list, i, put);
        }
    }
    return WG_OK;
}

wg_status wg_parts_put(wg_checker *c, json_t *root, wg_error *err)
{
    json_t *put;
    for (const wg_setup_section *s = wg_setup_sections + 1; s->name; s++) {
        const char *text = name_of(json_object_get(root, s->name));
        if (text) WG_TRY(open_part(c, s->name, text, &put, err));
        if (text && put) json_object_set_new(root, s->name, put);
    }
    return WG_OK;
}

void wg_parts_forget(wg_checker *c, const char *path)
{
    for (int i = 0; i < c->n_part; i++) /* the document stays open, since problems may refer to it */
        if (wg_path_inside(c->part[i].place, path)) c->part[i].replaced = true;
}
