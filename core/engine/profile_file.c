/* SPDX-License-Identifier: MIT
 * Profiles as JSON, and the user's cache of them (profile.h). */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/make_path.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/base/save.h"
#include "core/engine/profile_impl.h"

static const char format[] = "wager profile 1";
static const char *const kinds[] = { "target", "draft", "row", NULL };

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static json_t *model_json(const wg_lm_identity *of)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i}", "name", of->name, "weights", of->weights, "part", of->part, "device",
                     of->device, "threads", of->threads);
}

static json_t *entry_json(const wg_price_entry *e)
{
    json_t *rows = json_array(), *seconds = json_array();
    for (int i = 0; i < e->price.n; i++) {
        json_array_append_new(rows, json_integer(e->price.rows[i]));
        json_array_append_new(seconds, json_real(e->price.seconds[i]));
    }
    json_t *v = json_pack("{s:s, s:o, s:o, s:o, s:f, s:f}", "kind", kinds[e->key.kind], "target", model_json(&e->key.target),
                          "rows", rows, "seconds", seconds, "spread", e->price.spread, "others", e->others);
    if (e->key.kind == WG_PRICE_DRAFT) json_object_set_new(v, "draft", model_json(&e->key.draft));
    if (e->key.kind == WG_PRICE_ROW) json_object_set_new(v, "chain", json_string(e->key.chain));
    return v;
}

json_t *wg_profile_json(const wg_profile *p, bool used)
{
    json_t *entries = json_array();
    for (int i = 0; i < p->entries; i++)
        if (p->entry[i].used || !used) json_array_append_new(entries, entry_json(&p->entry[i]));
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:o}", "format", format, "wager", p->machine.wager, "cpu", p->machine.cpu,
                     "level", p->machine.level, "ranks", p->machine.ranks, "entries", entries);
}

wg_status wg_profile_save(const wg_profile *p, const char *path, wg_error *err)
{
    json_t *v = wg_profile_json(p, true);
    const wg_status s = v ? wg_json_save(v, path, err) : wg_nomem(err, 1, "a profile");
    json_decref(v);
    return s;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct reading {
    const char *name;
    int entry; /* from 1; 0: of the whole */
    wg_error *err;
} reading;

static wg_status wrong(const reading *r, const char *expected)
{
    if (r->entry)
        return wg_fail(r->err, WG_EFORMAT, "%s: entry %d of this profile is damaged: expected %s", r->name, r->entry, expected);
    return wg_fail(r->err, WG_EFORMAT, "%s: this is no profile of wager: expected %s", r->name, expected);
}

static wg_status read_text(const reading *r, const json_t *object, const char *key, char *out, size_t size)
{
    const json_t *v = json_object_get(object, key);
    const char *text = json_string_value(v);
    char expected[80];
    snprintf(expected, sizeof expected, "\"%s\" with a text of less than %zu bytes", key, size);
    if (!text || strlen(text) >= size || strlen(text) != json_string_length(v)) return wrong(r, expected);
    memcpy(out, text, strlen(text) + 1);
    return WG_OK;
}

static wg_status read_count(const reading *r, const json_t *object, const char *key, int least, int most, int *out)
{
    const json_t *v = json_object_get(object, key);
    const json_int_t n = json_is_integer(v) ? json_integer_value(v) : -1;
    char expected[80];
    snprintf(expected, sizeof expected, "\"%s\" with a number %d..%d", key, least, most);
    if (n < least || n > most) return wrong(r, expected);
    *out = (int)n;
    return WG_OK;
}

static wg_status read_real(const reading *r, const json_t *object, const char *key, double least, double *out)
{
    const json_t *v = json_object_get(object, key);
    const double x = json_is_number(v) ? json_number_value(v) : NAN;
    char expected[80];
    snprintf(expected, sizeof expected, "\"%s\" with a number from %g on", key, least);
    if (!(x >= least && x < 1e6)) return wrong(r, expected);
    *out = x;
    return WG_OK;
}

static wg_status read_model(const reading *r, const json_t *v, wg_lm_identity *out)
{
    if (!json_is_object(v) || json_object_size(v) != 5) return wrong(r, "a model: name, weights, part, device, threads");
    WG_TRY(read_text(r, v, "name", out->name, sizeof out->name));
    WG_TRY(read_text(r, v, "weights", out->weights, sizeof out->weights));
    WG_TRY(read_text(r, v, "part", out->part, sizeof out->part));
    WG_TRY(read_text(r, v, "device", out->device, sizeof out->device));
    return read_count(r, v, "threads", 0, 1 << 16, &out->threads);
}

static wg_status read_prices(const reading *r, const json_t *object, wg_prices *out)
{
    const json_t *rows = json_object_get(object, "rows"), *seconds = json_object_get(object, "seconds");
    const size_t n = json_array_size(rows);
    if (n < 1 || n > WG_PRICE_SIZES || json_array_size(seconds) != n)
        return wrong(r, "as many \"seconds\" as \"rows\", at most 24");
    for (size_t i = 0; i < n; i++) {
        const json_t *at = json_array_get(rows, i), *took = json_array_get(seconds, i);
        const json_int_t row = json_is_integer(at) ? json_integer_value(at) : 0;
        const double s = json_is_number(took) ? json_number_value(took) : NAN;
        const json_int_t before = i ? out->rows[i - 1] : 0;
        if (row <= before || row > 1 << 16 || (i == 0 && row != 1)) return wrong(r, "\"rows\" that rise from 1");
        if (!(s > 0 && s < 1e6) || (i && s < out->seconds[i - 1])) return wrong(r, "positive \"seconds\" that do not fall");
        out->rows[i] = (int)row;
        out->seconds[i] = s;
    }
    out->n = (int)n;
    return read_real(r, object, "spread", 0, &out->spread);
}

static wg_status read_entry(const reading *r, const json_t *v, wg_price_entry *e)
{
    const char *kind = json_string_value(json_object_get(v, "kind"));
    int k = 0;
    while (kind && kinds[k] && strcmp(kinds[k], kind) != 0) k++;
    if (!kind || !kinds[k]) return wrong(r, "\"kind\": target, draft or row");
    *e = (wg_price_entry){ .key.kind = (wg_price_kind)k };
    if (json_object_size(v) != (k == WG_PRICE_TARGET ? 6 : 7)) return wrong(r, "no other members");
    WG_TRY(read_model(r, json_object_get(v, "target"), &e->key.target));
    if (k == WG_PRICE_DRAFT) WG_TRY(read_model(r, json_object_get(v, "draft"), &e->key.draft));
    if (k == WG_PRICE_ROW) WG_TRY(read_text(r, v, "chain", e->key.chain, sizeof e->key.chain));
    WG_TRY(read_prices(r, v, &e->price));
    return read_real(r, v, "others", -1, &e->others);
}

static wg_status read_machine(const reading *r, const json_t *root, wg_profile_machine *m)
{
    const char *is = json_string_value(json_object_get(root, "format"));
    if (!is || strcmp(is, format) != 0) return wrong(r, "\"format\": \"wager profile 1\"");
    WG_TRY(read_text(r, root, "wager", m->wager, sizeof m->wager));
    WG_TRY(read_text(r, root, "cpu", m->cpu, sizeof m->cpu));
    WG_TRY(read_text(r, root, "level", m->level, sizeof m->level));
    return read_count(r, root, "ranks", 1, 1 << 20, &m->ranks);
}

/* All entries, or none. */
static wg_status take(wg_profile *p, reading *r, const json_t *root, wg_profile_machine *m)
{
    const json_t *entries = json_object_get(root, "entries");
    const int before = p->entries;
    WG_TRY(read_machine(r, root, m));
    if (!json_is_array(entries) || json_array_size(entries) > WG_PROFILE_ENTRIES || json_object_size(root) != 6)
        return wrong(r, "\"entries\" with at most 1024 of them, and no other members");
    wg_status s = WG_OK;
    for (size_t i = 0; !s && i < json_array_size(entries); i++) {
        wg_price_entry e;
        r->entry = (int)i + 1;
        s = read_entry(r, json_array_get(entries, i), &e);
        for (int k = 0; !s && k < p->entries; k++)
            if (wg_price_key_same(&p->entry[k].key, &e.key, true)) e.key.kind = (wg_price_kind)-1; /* p has it */
        if (!s && (int)e.key.kind >= 0) s = wg_profile_add(p, &e, r->err);
    }
    if (s) p->entries = before;
    return s;
}

wg_status wg_profile_parse(wg_profile *p, const char *name, const char *text, size_t n, wg_profile_machine *machine,
                           wg_error *err)
{
    wg_json *doc;
    reading r = { .name = name, .err = err };
    WG_TRY(wg_json_parse(&doc, name, text, n, err));
    const wg_status s = take(p, &r, wg_json_root(doc), machine);
    wg_json_close(doc);
    return s;
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

char *wg_profile_user_folder(char *why, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool own = cache && *cache == '/';
    char path[4096];
    if (!own && !(home && *home == '/')) {
        snprintf(why, size, "there is no folder for them: HOME is not set");
        return NULL;
    }
    snprintf(path, sizeof path, "%s%s/wager/profiles", own ? cache : home, own ? "" : "/.cache");
    return wg_strdup(path);
}

/* The file of a target on this machine, with its key's digest as its name. */
static void path_of(const wg_profile *p, const wg_lm_identity *of, char *out, size_t size)
{
    char key[1024], hex[WG_SHA256_HEX];
    const wg_profile_machine *m = &p->machine;
    snprintf(key, sizeof key, "%s|%s|%s|%d|%s|%s|%s|%d", m->wager, m->cpu, m->level, m->ranks, of->weights, of->part,
             of->device, of->threads);
    wg_sha256(key, strlen(key), hex);
    snprintf(out, size, "%s/%.16s.json", p->folder, hex);
}

static bool same_machine(const wg_profile_machine *a, const wg_profile_machine *b)
{
    return !strcmp(a->wager, b->wager) && !strcmp(a->cpu, b->cpu) && !strcmp(a->level, b->level) && a->ranks == b->ranks;
}

/* Adds what a file of the cache has to p, all or nothing. */
static wg_status read_cached(wg_profile *p, const char *path, wg_error *err)
{
    enum { MOST = 4 << 20 };
    char *text;
    size_t n;
    wg_profile_machine of;
    const int before = p->entries;
    WG_TRY(wg_read_file(path, MOST, &text, &n, err));
    wg_status s = wg_profile_parse(p, path, text, n, &of, err);
    wg_free(text);
    if (!s && !same_machine(&of, &p->machine)) {
        p->entries = before;
        s = wg_fail(err, WG_EFORMAT, "%s: it is of another machine or version of wager (%s, kernels %s, wager %s)", path,
                    of.cpu, of.level, of.wager);
    }
    return s;
}

wg_status wg_profile_load(wg_profile *p, const wg_lm_identity *target, wg_error *err)
{
    char path[4096];
    path_of(p, target, path, sizeof path);
    wg_error why;
    const wg_status s = read_cached(p, path, &why);
    if (s == WG_OK || s == WG_ENOENT || s == WG_EIO) return WG_OK; /* what cannot be read is said when it is to be written */
    if (s == WG_ENOMEM) return wg_fail(err, s, "%s", why.text);
    if (!p->refused) wg_profile_say(p, true, "%s; measuring anew", why.text);
    p->refused = true;
    return WG_OK;
}

bool wg_profile_lock(wg_profile *p)
{
    enum { TRIES = 1000 };
    bool made;
    if (p->lock > 0 || !wg_make_path(p->folder, &made)) return false;
    p->lock = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; p->lock > 0 && i < TRIES && flock(p->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    return p->lock > 0;
}

void wg_profile_unlock(wg_profile *p)
{
    if (p->lock > 0) close(p->lock);
    p->lock = 0;
}

wg_status wg_profile_store(wg_profile *p, const wg_lm_identity *target, char *path, size_t size, wg_error *err)
{
    wg_profile all = { .folder = p->folder, .machine = p->machine };
    wg_error unused;
    path_of(p, target, path, size);
    wg_status s = wg_make_parents(path, err);
    for (int i = 0; !s && i < p->entries; i++)
        if (wg_profile_is_of(&p->entry[i], target)) s = wg_profile_add(&all, &p->entry[i], err);
    if (!s && read_cached(&all, path, &unused) == WG_ENOMEM) s = wg_nomem(err, 1, "a profile");
    json_t *v = s ? NULL : wg_profile_json(&all, false);
    if (!s) s = v ? wg_json_save(v, path, err) : wg_nomem(err, 1, "a profile");
    json_decref(v);
    wg_free(all.entry);
    return s;
}
