/* SPDX-License-Identifier: MIT
 * From a file and --set texts to cells: override, check, expand the sweep, resolve. */
#include "experiments/config/config.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/device.h"
#include "core/setup/setup_check.h"
#include "core/trace/trace.h"
#include "draft/compose/composite.h"
#include "experiments/config/sweep.h"

typedef struct cell_checker {
    wg_checker c; /* first member, since wg_checker.origin of a cell casts it */
    wg_grid grid[WG_GRIDS];
    int n_grids;
    const wg_grid *now; /* the grid of the checked cell, and */
    int at[WG_AXES];    /* the index of its value on each axis */
} cell_checker;

/* ---- --set ------------------------------------------------------------------------------------------------------- */

wg_status wg_override_open(wg_override *o, const char *text, wg_error *err)
{
    const char *eq = strchr(text, '=');
    if (!eq || eq == text) return wg_fail(err, WG_EINVAL, "--set %s: expected path=value, such as --set draft.length=8", text);
    char name[300];
    snprintf(name, sizeof name, "--set %.280s", text);
    o->text = wg_strndup(text, (size_t)(eq - text));
    if (!o->text) return wg_nomem(err, strlen(text), "a --set");
    o->path = o->text;
    return wg_json_parse(&o->doc, name, "{}", 2, err);
}

/* A --set of a member ("draft.policy") of a section that the sweep varies sets it in each object of the section's lists, and in
 * the section itself, unless every grid replaces that. */
static bool set_value(json_t *root, wg_override *o, json_t *value)
{
    char section[256];
    const char *rest = wg_path_key(o->path, section, sizeof section);
    bool set = true, replaced = rest != NULL;
    size_t k;
    json_t *object;
    for (size_t i = 0; rest && (i == 0 || wg_sweep_grid(root, i)); i++) {
        json_t *list = json_object_get(wg_sweep_grid(root, i), section);
        replaced = replaced && json_array_size(list) > 0;
        json_array_foreach(list, k, object) {
            if (!json_is_object(object)) continue;
            o->reaches = true;
            set = set && wg_path_set(object, rest, json_deep_copy(value));
        }
    }
    return set && ((replaced && o->reaches) || wg_path_set(root, o->path, json_incref(value)));
}

void wg_override_apply(wg_checker *c, json_t *root, wg_override *o, const char *value)
{
    json_t *v = json_loads(value, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    if (!v) v = json_string(value);
    wg_setup_uncomment(v);
    if (!v) wg_problem_in_set(c, o, "the value is not text in UTF-8");
    else if (!set_value(root, o, v)) wg_problem_in_set(c, o, "the path leads into a value that is not an object");
    else wg_parts_forget(c, o->path);
    json_decref(v);
}

/* Replaces references of sections, and those in the lists of the sweep. */
static wg_status put_parts(wg_checker *c, json_t *root, wg_error *err)
{
    json_t *sweep = json_object_get(root, "sweep");
    WG_TRY(wg_parts_put(c, root, err));
    if (!json_is_array(sweep)) return wg_parts_put_lists(c, sweep, "sweep", err);
    for (size_t i = 0; i < json_array_size(sweep); i++) {
        char place[32];
        snprintf(place, sizeof place, "sweep[%zu]", i);
        WG_TRY(wg_parts_put_lists(c, json_array_get(sweep, i), place, err));
    }
    return WG_OK;
}

/* Applies overrides in their order and resolves the references that they introduce after each: a later override may change a
 * value that an earlier one set. */
static wg_status override(wg_checker *c, wg_override *all, json_t *root, const char *const *set, wg_error *err)
{
    WG_TRY(put_parts(c, root, err));
    for (int i = 0; i < c->n_set; i++) {
        wg_override_apply(c, root, &all[i], set[i] + strlen(all[i].path) + 1);
        /* its objects were replaced */
        for (int k = 0; k < i && wg_path_inside(all[i].path, "sweep"); k++) all[k].reaches = false;
        WG_TRY(put_parts(c, root, err));
    }
    return WG_OK;
}

/* ---- the sweep --------------------------------------------------------------------------------------------------- */

/* Whether a sweep key names an option or a section. */
static bool legal_axis(const char *path)
{
    char first[256], second[256];
    const char *rest = wg_path_key(path, first, sizeof first);
    if (rest && wg_path_key(rest, second, sizeof second)) return false;
    for (const wg_setup_section *s = wg_setup_sections; s->name; s++) {
        if (*s->name && !strcmp(s->name, first)) return true; /* the option's existence is checked per cell */
        if (!*s->name && !rest && wg_option_find(s->table, first)) return !wg_config_of_all_cells(first);
    }
    return false;
}

static void axis_problem(cell_checker *k, const wg_grid *g, const char *key, const char *text)
{
    char path[600];
    size_t n = (size_t)snprintf(path, sizeof path, "%s.", g->place);
    for (const char *p = key; *p && n + 3 < sizeof path; p++) {
        if (*p == '.' || *p == '[' || *p == '\\') path[n++] = '\\';
        path[n++] = *p;
    }
    path[n] = '\0';
    wg_problem(&k->c, path, true, "sweep: \"%.80s\" %s", key, text);
}

/* A --set of a swept value would have no effect, unless it reaches into swept objects: reports it. */
static void check_sets(cell_checker *k, const char *key)
{
    for (int i = 0; i < k->c.n_set; i++) {
        const char *rest = wg_path_inside(k->c.set[i].path, key);
        if (!rest || (*rest && k->c.set[i].reaches)) continue;
        char text[400];
        snprintf(text, sizeof text, "the sweep sets \"%.200s\"; --set sweep={} drops the sweep", key);
        if (!wg_first_time(&k->c, k->c.set[i].path, text)) continue; /* several grids may have this axis */
        wg_problem_in_set(&k->c, &k->c.set[i], text);
    }
}

/* Reads the axes of one object of the sweep; NULL: there is no sweep, and one cell. */
static void read_grid(cell_checker *k, const json_t *object, const char *place)
{
    wg_grid *g = &k->grid[k->n_grids++];
    const char *key;
    json_t *v;
    snprintf(g->place, sizeof g->place, "%s", place);
    if (object && !json_is_object(object))
        wg_problem(&k->c, place, false, "%s: expected an object from paths to lists, such as {\"draft.length\": [2, 4]}",
                   place);
    json_object_foreach((json_t *)object, key, v) {
        if (!legal_axis(key))
            axis_problem(k, g, key, "cannot be swept; expected a path such as draft.length, or a section such as draft");
        else if (!json_is_array(v) || json_array_size(v) == 0) axis_problem(k, g, key, "expected a list of at least one value");
        else if (g->n_axes == WG_AXES) axis_problem(k, g, key, "is one key too many; at most 16 can be swept");
        else wg_grid_add(g, key, v);
        check_sets(k, key);
    }
    const wg_grid *before = k->n_grids > 1 ? g - 1 : NULL;
    g->first = before ? before->first + before->n : 0;
    wg_grid_count(g);
}

/* Reads one grid, or a list of grids. Returns the number of cells, 0 when there are too many. */
static int read_sweep(cell_checker *k, const json_t *root)
{
    const json_t *sweep = json_object_get(root, "sweep");
    const size_t list = json_array_size(sweep);
    if (list > WG_GRIDS) wg_problem(&k->c, "sweep", true, "sweep: a list of %zu grids; at most %d", list, WG_GRIDS);
    if (json_is_array(sweep) && list == 0) wg_problem(&k->c, "sweep", false, "sweep: expected a list of at least one grid");
    if (list == 0) read_grid(k, json_is_array(sweep) ? NULL : sweep, "sweep");
    for (size_t i = 0; i < list && i < WG_GRIDS; i++) {
        char place[16];
        snprintf(place, sizeof place, "sweep[%d]", (int)i);
        read_grid(k, json_array_get(sweep, i), place);
    }
    const wg_grid *last = &k->grid[k->n_grids - 1];
    const int n = last->first + last->n;
    if (n > WG_CELLS_MAX) wg_problem(&k->c, "sweep", true, "sweep: more than %d cells", WG_CELLS_MAX);
    return n > WG_CELLS_MAX ? 0 : n;
}

/* ---- resolved JSON ----------------------------------------------------------------------------------------------- */

/* Whether a key is omitted: without a constraint or a profile of its own an experiment has the digest of versions that lack
 * these keys. */
static bool is_left_out(const wg_setup *setup, const wg_option *row)
{
    return (!strcmp(row->name, "grammar") && !*setup->top.grammar) ||
           (!strcmp(row->name, "json_schema") && !*setup->top.json_schema) ||
           (!strcmp(row->name, "profile") && !*setup->top.profile);
}

/* Every option with its value. A section whose kind is not known yet is copied from the file. */
static json_t *setup_json(const wg_setup *setup, const json_t *raw)
{
    json_t *root = json_object();
    for (const wg_setup_section *s = wg_setup_sections; s->name; s++) {
        const wg_option *table = s->table;
        json_t *into = *s->name ? json_object() : json_incref(root);
        if (s->selector) {
            const bool drafter = *s->selector == 'k';
            const char *name = NULL;
            if (drafter && setup->drafter) name = setup->drafter->name, table = setup->drafter->options;
            if (!drafter && setup->named) name = setup->named->name, table = setup->named->options;
            if (name) json_object_set_new(into, s->selector, json_string(name));
            if (name && drafter && *setup->named_by.label)
                json_object_set_new(into, wg_setup_label_table->name, json_string(setup->named_by.label));
            if (!name) json_object_update(into, json_object_get(raw, s->name));
        }
        for (const wg_option *r = table; r && r->name; r++)
            if (!wg_target_leaves_out(setup, s, r) && !is_left_out(setup, r))
                json_object_set_new(into, r->name, wg_option_json(r, wg_setup_options(setup, s)));
        if (*s->name) json_object_set_new(root, s->name, into);
        else json_decref(into);
    }
    return root;
}

/* The grid of a cell, and the index of the cell's value on each axis. */
static const wg_grid *place_of(const cell_checker *k, int index, int at[WG_AXES])
{
    const wg_grid *g = k->grid;
    while (index >= g->first + g->n) g++;
    wg_grid_at(g, index - g->first, at);
    return g;
}

/* Value k of an axis with its defaults filled in: read from the cell whose other axes are at index 0. */
static json_t *resolved_value(const wg_grid *g, const wg_config *o, int axis, int k)
{
    int stride = 1;
    for (int j = axis + 1; j < g->n_axes; j++) stride *= (int)json_array_size(g->axis[j].list);
    return wg_path_get(o->cell[g->first + k * stride].config, g->axis[axis].path);
}

/* Whether a path is a label, which does not identify a cell. */
static bool is_label(const char *path) { return !strcmp(path, "draft.label"); }

/* The members of the swept keys: an option unchanged, a section reduced to its distinguishing members. */
static json_t *swept_json(const cell_checker *k, const wg_config *o, const json_t *tells, int index)
{
    json_t *out = json_object();
    int at[WG_AXES];
    const wg_grid *g = place_of(k, index, at);
    for (int i = 0; i < g->n_axes; i++) {
        const char *axis = g->axis[i].path, *key;
        json_t *now = wg_path_get(o->cell[index].config, axis), *v;
        if (is_label(axis)) continue;
        if (!json_is_object(now)) {
            json_object_set(out, axis, now);
            continue;
        }
        json_object_foreach(now, key, v) {
            char path[600];
            snprintf(path, sizeof path, "%s.%s", axis, key);
            if (!is_label(path) && wg_sweep_tells_member(json_array_get(tells, (size_t)(g - k->grid)), axis, now, key))
                json_object_set(out, path, v);
        }
    }
    return out;
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

enum { REQUESTS_MAX = 1 << 24 }; /* most requests of a cell, each of which needs memory for its digest */

bool wg_config_of_all_cells(const char *option)
{
    static const char *const names[] = { "name",  "question",    "repeats", "trace",   "trace_rows", "trace_top",
                                         "alpha", "second_pass", "audit",   "profile", NULL };
    int i = 0;
    while (names[i] && strcmp(names[i], option) != 0) i++;
    return names[i] != NULL;
}

/* What selects the prompts, as text: all keys of the section but those of the chat template. */
static void selection(const wg_setup_prompts *p, char *out, size_t size)
{
    size_t n = 0;
    for (const wg_option *o = wg_setup_prompts_table; o->name && n < size; o++) {
        char value[WG_OPTION_STRING];
        if (!strcmp(o->name, "chat") || !strcmp(o->name, "system") || !strcmp(o->name, "date")) continue;
        n += (size_t)snprintf(out + n, size - n, "%s\n", wg_option_value(o, p, value, sizeof value));
    }
}

static void check_prompts(wg_checker *c, wg_cell *cell, wg_config *owner)
{
    const wg_setup_prompts *p = &cell->setup.prompts;
    char once[sizeof *p], other[sizeof *p];
    selection(p, once, sizeof once);
    for (wg_cell *o = owner->cell; o < cell; o++) {
        selection(&o->setup.prompts, other, sizeof other);
        if (o->dataset < 0 || strcmp(once, other) != 0) continue;
        cell->dataset = o->dataset;
        return;
    }
    if (!wg_first_time(c, "prompts", once)) return;
    wg_error e;
    wg_dataset *d = NULL;
    const wg_status s = wg_dataset_open(&d, p->file, p, &e);
    if (s == WG_ENOENT)
        wg_problem(c, "prompts.file", false, "prompts.file: no such file: \"%s\" (" WG_SETUP_PATHS ")", p->file);
    else if (s == WG_ENOMEM) c->failed = s, c->err = e;
    else if (s == WG_EINVAL && !strncmp(e.text, "merge: ", 7)) wg_problem(c, "prompts.merge", false, "prompts.%s", e.text);
    else if (s) wg_problem(c, "prompts.file", false, "prompts.file: %s", e.text);
    if (s) return;
    wg_dataset **more = wg_realloc(owner->dataset, (size_t)owner->datasets + 1, sizeof(wg_dataset *));
    if (!more) {
        wg_dataset_close(d);
        c->failed = wg_nomem(&c->err, sizeof *more, "prompts");
        return;
    }
    owner->dataset = more;
    cell->dataset = owner->datasets;
    owner->dataset[owner->datasets++] = d;
}

static void check_name(wg_checker *c, const char *name)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (!*name) wg_problem(c, "name", false, "name: missing; it names the result folder");
    else if (*name == '.' || *name == '-' || name[strspn(name, legal)])
        wg_problem(c, "name", false, "name: \"%.60s\" cannot name a folder; expected letters, digits, '.', '_' and '-'", name);
    else if (strlen(name) > NAME_MAX)
        wg_problem(c, "name", false, "name: \"%.60s...\" has %zu letters; the name of a folder has at most %d", name,
                   strlen(name), NAME_MAX);
}

/* Checks of a whole cell: required values, rule against drafter, files. Fills cell->dataset through the owner's `dataset`. */
static void check_cell(wg_checker *c, wg_cell *cell, wg_config *owner)
{
    const wg_setup_top *top = &cell->setup.top;
    check_name(c, top->name);
    wg_check_engine(c, &cell->setup, true);
    cell->dataset = -1;
    if (*cell->setup.prompts.file) check_prompts(c, cell, owner);
    else wg_problem(c, "prompts", false, "prompts.file: missing; it names a JSONL file of prompts");
    if (wg_setup_law_only(&cell->setup) && top->second_pass == WG_SECOND_PASS_ALWAYS)
        wg_problem(
            c, "second_pass", false,
            "second_pass: \"always\" compares two passes token by token, and a target of kind %s is equal in law only; leave "
            "it out",
            wg_target_kinds[cell->setup.target.kind]);
    wg_check_constraint(c, &cell->setup);
    if ((*top->grammar || *top->json_schema) && top->trace && top->trace_rows == WG_TRACE_LOGITS)
        wg_problem(c, "trace_rows", false, "trace_rows: \"logits\" are those before the grammar; use \"exact\" with %s",
                   *top->grammar ? "grammar" : "json_schema");
    wg_check_chat(c, &cell->setup, cell->dataset >= 0 && owner->dataset[cell->dataset]->turns > 1);
    if (cell->dataset >= 0 && (long)owner->dataset[cell->dataset]->questions * top->repeats > REQUESTS_MAX)
        wg_problem(c, "repeats", false, "repeats: %d prompts x %d repeats are more than %d requests of a cell",
                   owner->dataset[cell->dataset]->questions, top->repeats, REQUESTS_MAX);
}

static void close_cell(wg_cell *cell)
{
    json_decref(cell->swept);
    json_decref(cell->config);
    wg_setup_close(&cell->setup);
    wg_choice_close(&cell->lone);
}

/* The source of a cell's value at `path`: the longest axis that covers it, or the path itself. */
static void cell_origin(const wg_checker *c, const char *path, bool *key, char *buf, size_t size)
{
    const cell_checker *k = (const cell_checker *)c;
    const wg_axis *axis = k->now->axis;
    int best = -1;
    for (int i = 0; i < k->now->n_axes; i++)
        if (wg_path_inside(path, axis[i].path) && (best < 0 || strlen(axis[i].path) > strlen(axis[best].path))) best = i;
    if (best < 0) {
        snprintf(buf, size, "%s", path);
        return;
    }
    const char *rest = wg_path_inside(path, axis[best].path);
    size_t n = (size_t)snprintf(buf, size, "%s.", k->now->place);
    for (const char *at = axis[best].path; *at && n + 2 < size; at++) {
        if (*at == '.' || *at == '[' || *at == '\\') buf[n++] = '\\';
        buf[n++] = *at;
    }
    snprintf(buf + n, size - n, "[%d]%s", k->at[best], rest);
    if (!*rest) *key = false;
}

static void open_cell(cell_checker *k, const json_t *root, wg_config *owner, int index)
{
    wg_cell *cell = &owner->cell[index];
    k->now = place_of(k, index, k->at);
    json_t *raw = wg_grid_config(k->now, k->at, root);
    k->c.is_whole = true;
    k->c.origin = cell_origin;
    wg_check_values(&k->c, raw, "sweep", &cell->setup);
    check_cell(&k->c, cell, owner);
    if (wg_is_clean(&k->c)) k->c.failed = wg_choose_lone(cell->setup.drafter, cell->setup.draft, &cell->lone, &k->c.err);
    if (wg_is_clean(&k->c)) cell->config = setup_json(&cell->setup, raw);
    json_decref(raw);
}

/* Cells that differ in draft and verify only get the same group number. */
static wg_status number_groups(wg_config *o, wg_error *err)
{
    json_t *number = json_object(); /* by the text of the other options */
    bool ok = number;
    for (int i = 0; i < o->n && ok; i++) {
        json_t *rest = json_copy(o->cell[i].config);
        json_object_del(rest, "draft");
        json_object_del(rest, "verify");
        char *text = wg_json_canonical(rest, false);
        json_decref(rest);
        const json_t *known = text ? json_object_get(number, text) : NULL;
        o->cell[i].group = known ? (int)json_integer_value(known) : o->groups++;
        ok = text && (known || json_object_set_new(number, text, json_integer(o->cell[i].group)) == 0);
        wg_free(text);
    }
    json_decref(number);
    return ok ? WG_OK : wg_nomem(err, (size_t)o->n, "groups");
}

static json_t *resolved_grid(const wg_grid *g, const wg_config *o)
{
    json_t *grid = json_object();
    for (int i = 0; i < g->n_axes; i++) {
        json_t *list = json_array();
        for (int k = 0; k < (int)json_array_size(g->axis[i].list); k++) json_array_append(list, resolved_value(g, o, i, k));
        json_object_set_new(grid, g->axis[i].path, list);
    }
    return grid;
}

/* The sweep as resolved: a list stays a list, an object one. */
static json_t *resolved_sweep(const cell_checker *k, const wg_config *o, bool list)
{
    if (!list) return resolved_grid(k->grid, o);
    json_t *sweep = json_array();
    for (int i = 0; i < k->n_grids; i++) json_array_append_new(sweep, resolved_grid(&k->grid[i], o));
    return sweep;
}

static wg_status finish(cell_checker *k, wg_config *o, wg_setup *base, const json_t *root, wg_error *err)
{
    WG_TRY(number_groups(o, err));
    o->top = base->top;
    o->resolved = setup_json(base, root);
    const bool list = json_is_array(json_object_get(root, "sweep"));
    if (list || k->grid->n_axes) json_object_set_new(o->resolved, "sweep", resolved_sweep(k, o, list));
    json_t *tells = wg_sweep_tells(o->resolved);
    bool ok = tells;
    for (int i = 0; i < o->n && ok; i++) ok = (o->cell[i].swept = swept_json(k, o, tells, i));
    json_decref(tells);
    if (!ok) return wg_nomem(err, 1, "cells");
    char *text = wg_json_canonical(o->resolved, false);
    if (!text) return wg_nomem(err, 1, "the resolved config");
    wg_sha256(text, strlen(text), o->sha256);
    wg_free(text);
    memcpy(o->hash, o->sha256, sizeof o->hash - 1);
    return WG_OK;
}

/* Makes a checked config from a parsed file. */
static wg_status resolve(cell_checker *k, wg_config *o, wg_override *over, json_t *root, const char *const *set, wg_error *err)
{
    WG_TRY(override(&k->c, over, root, set, err));
    wg_setup base = { 0 };
    wg_check_values(&k->c, root, "sweep", &base);
    const int cells = read_sweep(k, root), n = k->c.no_part ? 0 : cells;
    wg_status s = WG_OK;
    o->cell = wg_calloc((size_t)n, sizeof *o->cell);
    if (!o->cell) s = wg_nomem(err, (size_t)n * sizeof *o->cell, "cells");
    for (o->n = 0; s == WG_OK && o->n < n;) { /* o->n counts opened cells: a cell reads those before it */
        open_cell(k, root, o, o->n);
        o->n++;
    }
    if (s == WG_OK) s = wg_problems_report(&k->c, err);
    if (s == WG_OK) s = finish(k, o, &base, root, err);
    wg_setup_close(&base);
    return s;
}

wg_status wg_config_open(wg_config **out, const char *path, const char *const *set, int n_set, const wg_plugins *plugins,
                         wg_error *err)
{
    wg_json *doc;
    WG_TRY(wg_setup_document(&doc, path, err));
    wg_override *over = wg_calloc((size_t)n_set, sizeof *over);
    wg_config *o = wg_calloc(1, sizeof *o);
    json_t *root = json_deep_copy(wg_json_root(doc));
    cell_checker k = { .c = { .doc = doc, .plugins = plugins, .set = over, .n_set = n_set } };
    wg_status s = over && o && root ? WG_OK : wg_nomem(err, sizeof *o, "a config");
    for (int i = 0; i < n_set && s == WG_OK; i++) s = wg_override_open(&over[i], set[i], err);
    if (s == WG_OK && !json_is_object(root))
        s = wg_fail(err, WG_ECONFIG, "%s: expected an object: {\"name\": ..., \"target\": ...}", path);
    wg_setup_uncomment(root);
    if (s == WG_OK) {
        o->plugins = plugins;
        s = resolve(&k, o, over, root, set, err);
    }
    for (int i = 0; over && i < n_set; i++) {
        wg_json_close(over[i].doc);
        wg_free(over[i].text);
    }
    wg_free(over);
    wg_checker_close(&k.c);
    json_decref(root);
    wg_json_close(doc);
    if (s == WG_OK) *out = o;
    else wg_config_close(o);
    return s;
}

void wg_config_close(wg_config *c)
{
    if (!c) return;
    for (int i = 0; i < c->n; i++) close_cell(&c->cell[i]);
    for (int i = 0; i < c->datasets; i++) wg_dataset_close(c->dataset[i]);
    json_decref(c->resolved);
    wg_free(c->cell);
    wg_free(c->dataset);
    wg_free(c);
}

const char *wg_config_fast(const wg_config *c)
{
    for (int i = 0; i < c->n; i++)
        if (wg_device_is_fast(c->cell[i].setup.target.device)) return c->cell[i].setup.target.device;
    return NULL;
}
