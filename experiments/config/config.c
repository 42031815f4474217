/* SPDX-License-Identifier: MIT
 * From a file and --set texts to cells: override, check, expand the sweep, resolve. */
#include "experiments/config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/device.h"
#include "draft/compose/composite.h"
#include "experiments/config/config_check.h"

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

void wg_config_uncomment(json_t *v)
{
    const char *key;
    json_t *inner;
    void *next;
    size_t i;
    json_array_foreach(v, i, inner) wg_config_uncomment(inner);
    json_object_foreach_safe(v, next, key, inner) {
        if (!strncmp(key, "//", 2)) json_object_del(v, key);
        else wg_config_uncomment(inner);
    }
}

void wg_override_apply(wg_checker *c, json_t *root, wg_override *o, const char *value)
{
    json_t *v = json_loads(value, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    if (!v) v = json_string(value);
    wg_config_uncomment(v);
    if (!v) wg_problem_in_set(c, o, "the value is not text in UTF-8");
    else if (!set_value(root, o, v)) wg_problem_in_set(c, o, "the path leads into a value that is not an object");
    else wg_parts_forget(c, o->path);
    json_decref(v);
}

/* Applies overrides in their order and resolves the references that they introduce after each: a later override may change a
 * value that an earlier one set. */
static wg_status override(wg_checker *c, wg_override *all, json_t *root, const char *const *set, wg_error *err)
{
    WG_TRY(wg_parts_put(c, root, err));
    for (int i = 0; i < c->n_set; i++) {
        wg_override_apply(c, root, &all[i], set[i] + strlen(all[i].path) + 1);
        for (int k = 0; k < i && wg_path_inside(all[i].path, "sweep"); k++) all[k].reaches = false; /* other objects now */
        WG_TRY(wg_parts_put(c, root, err));
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
    for (const wg_config_section *s = wg_config_sections; s->name; s++) {
        if (*s->name && !strcmp(s->name, first)) return true; /* the option's existence is checked per cell */
        if (!*s->name && !rest && wg_option_find(s->table, first)) return !wg_config_of_all_cells(first);
    }
    return false;
}

static void axis_problem(wg_checker *c, const wg_grid *g, const char *key, const char *text)
{
    char path[600];
    size_t n = (size_t)snprintf(path, sizeof path, "%s.", g->place);
    for (const char *p = key; *p && n + 3 < sizeof path; p++) {
        if (*p == '.' || *p == '[' || *p == '\\') path[n++] = '\\';
        path[n++] = *p;
    }
    path[n] = '\0';
    wg_problem(c, path, true, "sweep: \"%.80s\" %s", key, text);
}

/* A --set of a swept value would have no effect, unless it reaches into swept objects: reports it. */
static void check_sets(wg_checker *c, const char *key)
{
    for (int i = 0; i < c->n_set; i++) {
        const char *rest = wg_path_inside(c->set[i].path, key);
        if (!rest || (*rest && c->set[i].reaches)) continue;
        char text[400];
        snprintf(text, sizeof text, "the sweep sets \"%.200s\"; --set sweep={} drops the sweep", key);
        if (!wg_first_time(c, c->set[i].path, text)) continue; /* several grids may have this axis */
        wg_problem_in_set(c, &c->set[i], text);
    }
}

/* Reads the axes of one object of the sweep; NULL: there is no sweep, and one cell. */
static void read_grid(wg_checker *c, const json_t *object, const char *place)
{
    wg_grid *g = &c->grid[c->n_grids++];
    const char *key;
    json_t *v;
    snprintf(g->place, sizeof g->place, "%s", place);
    if (object && !json_is_object(object))
        wg_problem(c, place, false, "%s: expected an object from paths to lists, such as {\"draft.length\": [2, 4]}", place);
    json_object_foreach((json_t *)object, key, v) {
        if (!legal_axis(key))
            axis_problem(c, g, key, "cannot be swept; expected a path such as draft.length, or a section such as draft");
        else if (!json_is_array(v) || json_array_size(v) == 0) axis_problem(c, g, key, "expected a list of at least one value");
        else if (g->n_axes == WG_AXES) axis_problem(c, g, key, "is one key too many; at most 16 can be swept");
        else wg_grid_add(g, key, v);
        check_sets(c, key);
    }
    const wg_grid *before = c->n_grids > 1 ? g - 1 : NULL;
    g->first = before ? before->first + before->n : 0;
    wg_grid_count(g);
}

/* Reads one grid, or a list of grids. Returns the number of cells, 0 when there are too many. */
static int read_sweep(wg_checker *c, const json_t *root)
{
    const json_t *sweep = json_object_get(root, "sweep");
    const size_t list = json_array_size(sweep);
    if (list > WG_GRIDS) wg_problem(c, "sweep", true, "sweep: a list of %zu grids; at most %d", list, WG_GRIDS);
    if (json_is_array(sweep) && list == 0) wg_problem(c, "sweep", false, "sweep: expected a list of at least one grid");
    if (list == 0) read_grid(c, json_is_array(sweep) ? NULL : sweep, "sweep");
    for (size_t i = 0; i < list && i < WG_GRIDS; i++) {
        char place[16];
        snprintf(place, sizeof place, "sweep[%d]", (int)i);
        read_grid(c, json_array_get(sweep, i), place);
    }
    const wg_grid *last = &c->grid[c->n_grids - 1];
    const int n = last->first + last->n;
    if (n > WG_CELLS_MAX) wg_problem(c, "sweep", true, "sweep: more than %d cells", WG_CELLS_MAX);
    return n > WG_CELLS_MAX ? 0 : n;
}

/* ---- resolved JSON ----------------------------------------------------------------------------------------------- */

json_t *wg_option_json(const wg_option *row, const void *o)
{
    char text[WG_OPTION_STRING];
    const void *f = (const char *)o + row->at;
    switch (row->type) {
    case WG_OPT_INT: return json_integer(*(const int *)f);
    case WG_OPT_FLOAT: return json_real(*(const double *)f);
    case WG_OPT_BOOL: return json_boolean(*(const bool *)f);
    default: return json_string(wg_option_value(row, o, text, sizeof text));
    }
}

/* An experiment without a constraint or a profile of its own has the digest that it had before there were any. */
static bool is_left_out(const wg_cell *cell, const wg_option *row)
{
    return (!strcmp(row->name, "grammar") && !*cell->top.grammar) ||
           (!strcmp(row->name, "json_schema") && !*cell->top.json_schema) ||
           (!strcmp(row->name, "profile") && !*cell->top.profile);
}

/* Every option of a cell with its value. A section whose kind is not known yet is copied from the file. */
static json_t *cell_json(const wg_cell *cell, const json_t *raw)
{
    json_t *root = json_object();
    for (const wg_config_section *s = wg_config_sections; s->name; s++) {
        const wg_option *table = s->table;
        json_t *into = *s->name ? json_object() : json_incref(root);
        if (s->selector) {
            const bool drafter = *s->selector == 'k';
            const char *name = NULL;
            if (drafter && cell->drafter) name = cell->drafter->name, table = cell->drafter->options;
            if (!drafter && cell->named) name = cell->named->name, table = cell->named->options;
            if (name) json_object_set_new(into, s->selector, json_string(name));
            if (name && drafter && *cell->named_by.label)
                json_object_set_new(into, wg_config_label_table->name, json_string(cell->named_by.label));
            if (!name) json_object_update(into, json_object_get(raw, s->name));
        }
        for (const wg_option *r = table; r && r->name; r++)
            if (!wg_target_leaves_out(cell, s, r) && !is_left_out(cell, r))
                json_object_set_new(into, r->name, wg_option_json(r, wg_cell_section(cell, s)));
        if (*s->name) json_object_set_new(root, s->name, into);
        else json_decref(into);
    }
    return root;
}

/* The grid of a cell, and the index of the cell's value on each axis. */
static const wg_grid *place_of(const wg_checker *c, int index, int at[WG_AXES])
{
    const wg_grid *g = c->grid;
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

static bool same_member(const json_t *a, const json_t *b, const char *key)
{
    const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
    return x && y ? json_equal(x, y) : !x && !y;
}

/* Whether this member distinguishes a section from the other values of this axis: its kind does, and so does a member that
 * differs among sections of that kind. */
static bool tells_from(const wg_grid *g, const wg_config *o, int axis, const json_t *section, const char *key)
{
    const wg_config_section *s = wg_config_sections;
    while (strcmp(s->name, g->axis[axis].path) != 0) s++;
    const bool name = s->selector && !strcmp(key, s->selector);
    for (int k = 0; k < (int)json_array_size(g->axis[axis].list); k++) {
        const json_t *other = resolved_value(g, o, axis, k);
        const bool comparable = name || !s->selector || same_member(section, other, s->selector);
        if (comparable && !same_member(section, other, key)) return true;
    }
    return false;
}

/* Whether it distinguishes the section from those of the same path in any grid. */
static bool tells(const wg_checker *c, const wg_config *o, const char *path, const json_t *section, const char *key)
{
    for (const wg_grid *g = c->grid; g < c->grid + c->n_grids; g++)
        for (int i = 0; i < g->n_axes; i++)
            if (!strcmp(g->axis[i].path, path) && tells_from(g, o, i, section, key)) return true;
    return false;
}

/* A label is no value that a cell is known by. */
static bool is_label(const char *path) { return !strcmp(path, "draft.label"); }

/* The members of the swept keys: an option unchanged, a section reduced to its distinguishing members. */
static json_t *swept_json(const wg_checker *c, const wg_config *o, int index)
{
    json_t *out = json_object();
    int at[WG_AXES];
    const wg_grid *g = place_of(c, index, at);
    for (int i = 0; i < g->n_axes; i++) {
        json_t *now = wg_path_get(o->cell[index].config, g->axis[i].path);
        if (is_label(g->axis[i].path)) continue;
        if (!json_is_object(now)) {
            json_object_set(out, g->axis[i].path, now);
            continue;
        }
        const json_t *section = resolved_value(g, o, i, at[i]);
        const char *key;
        json_t *v;
        json_object_foreach(now, key, v) {
            char path[600];
            snprintf(path, sizeof path, "%s.%s", g->axis[i].path, key);
            if (!is_label(path) && tells(c, o, g->axis[i].path, section, key)) json_object_set(out, path, v);
        }
    }
    return out;
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

void wg_cell_close(wg_cell *cell)
{
    json_decref(cell->swept);
    json_decref(cell->config);
    wg_free(cell->draft);
    wg_choice_close(&cell->lone);
    wg_free(cell->verify);
    wg_rule_choice_close(&cell->loaded);
}

static void open_cell(wg_checker *c, const json_t *root, wg_config *owner, int index)
{
    wg_cell *cell = &owner->cell[index];
    c->now = place_of(c, index, c->at);
    json_t *raw = wg_grid_config(c->now, c->at, root);
    c->in_cell = true;
    wg_check_values(c, raw, cell);
    wg_check_cell(c, cell, owner);
    if (wg_is_clean(c)) c->failed = wg_choose_lone(cell->drafter, cell->draft, &cell->lone, &c->err);
    if (wg_is_clean(c)) cell->config = cell_json(cell, raw);
    json_decref(raw);
}

/* Cells that differ in draft and verify only get the same group number. */
static wg_status number_groups(wg_config *o, wg_error *err)
{
    char **key = wg_calloc((size_t)o->n, sizeof *key);
    wg_status s = key ? WG_OK : wg_nomem(err, (size_t)o->n * sizeof *key, "groups");
    for (int i = 0; i < o->n && s == WG_OK; i++) {
        json_t *rest = json_copy(o->cell[i].config);
        json_object_del(rest, "draft");
        json_object_del(rest, "verify");
        char *text = wg_json_canonical(rest, false);
        json_decref(rest);
        if (!text) {
            s = wg_nomem(err, 1, "groups");
            break;
        }
        int g = 0;
        while (g < o->groups && strcmp(key[g], text) != 0) g++;
        o->cell[i].group = g;
        if (g < o->groups) wg_free(text);
        else key[o->groups++] = text;
    }
    for (int g = 0; g < o->groups && key; g++) wg_free(key[g]);
    wg_free(key);
    return s;
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
static json_t *resolved_sweep(const wg_checker *c, const wg_config *o, bool list)
{
    if (!list) return resolved_grid(c->grid, o);
    json_t *sweep = json_array();
    for (int i = 0; i < c->n_grids; i++) json_array_append_new(sweep, resolved_grid(&c->grid[i], o));
    return sweep;
}

static wg_status finish(wg_checker *c, wg_config *o, wg_cell *base, const json_t *root, wg_error *err)
{
    for (int i = 0; i < o->n; i++)
        if (!(o->cell[i].swept = swept_json(c, o, i))) return wg_nomem(err, 1, "cells");
    WG_TRY(number_groups(o, err));
    o->top = base->top;
    o->resolved = cell_json(base, root);
    const bool list = json_is_array(json_object_get(root, "sweep"));
    if (list || c->grid->n_axes) json_object_set_new(o->resolved, "sweep", resolved_sweep(c, o, list));
    char *text = wg_json_canonical(o->resolved, false);
    if (!text) return wg_nomem(err, 1, "the resolved config");
    wg_sha256(text, strlen(text), o->sha256);
    wg_free(text);
    memcpy(o->hash, o->sha256, sizeof o->hash - 1);
    return WG_OK;
}

/* Everything between a parsed file and a checked config. */
static wg_status resolve(wg_checker *c, wg_config *o, wg_override *over, json_t *root, const char *const *set, wg_error *err)
{
    WG_TRY(override(c, over, root, set, err));
    wg_cell base = { 0 };
    wg_check_values(c, root, &base);
    const int cells = read_sweep(c, root), n = c->no_part ? 0 : cells;
    wg_status s = WG_OK;
    o->cell = wg_calloc((size_t)n, sizeof *o->cell);
    if (!o->cell) s = wg_nomem(err, (size_t)n * sizeof *o->cell, "cells");
    for (o->n = 0; s == WG_OK && o->n < n;) { /* o->n counts opened cells: a cell reads those before it */
        open_cell(c, root, o, o->n);
        o->n++;
    }
    if (s == WG_OK) s = wg_problems_report(c, err);
    if (s == WG_OK) s = finish(c, o, &base, root, err);
    wg_cell_close(&base);
    return s;
}

/* The bytes of a line that can be printed; 0: it is not text. */
static int shown_bytes(const char *source, size_t most)
{
    size_t n = strcspn(source, "\r\n");
    if (n > most)
        for (n = most; n > 0 && ((unsigned char)source[n] & 0xC0) == 0x80;) n--;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)source[i] < ' ' && source[i] != '\t') return 0;
    json_t *text = json_stringn(source, n); /* NULL where it is not UTF-8 */
    const int shown = text ? (int)n : 0;
    json_decref(text);
    return shown;
}

/* Appends the line of a file, with a caret under a column, to a message. */
static void append_excerpt(char *text, size_t size, const char *path, int line, int column)
{
    enum { SHOWN = 160 };
    char *source = NULL; /* allocated by getline */
    size_t cap = 0;
    FILE *f = fopen(path, "re");
    bool found = f != NULL && column <= SHOWN;
    for (int i = 0; found && i < line; i++) found = getline(&source, &cap, f) >= 0;
    const int n = found ? shown_bytes(source, SHOWN) : 0;
    const size_t at = strlen(text);
    if (n) snprintf(text + at, size - at, "\n  %.*s\n  %*s^", n, source, column - 1, "");
    free(source);
    if (f) fclose(f);
}

/* Three frequent causes have a hint. */
wg_status wg_config_document(wg_json **doc, const char *path, wg_error *err)
{
    wg_error e;
    int line = 0, column = 0;
    const wg_status s = wg_json_open(doc, path, &e);
    if (s == WG_OK) return WG_OK;
    const char *hint = "";
    if (strstr(e.text, "near '/") || strstr(e.text, "near '#"))
        hint = " (JSON has no comments; a key that begins with \"//\" is one)";
    else if (strstr(e.text, "near '\"@")) hint = " (a part is an object; it cannot name another part)";
    else if (strstr(e.text, "expected near '}'") || strstr(e.text, "near ']'")) hint = " (a comma before a closing bracket?)";
    snprintf(e.text + strlen(e.text), sizeof e.text - strlen(e.text), "%s", hint);
    if (s == WG_EFORMAT && sscanf(e.text + strlen(path), ":%d:%d:", &line, &column) == 2)
        append_excerpt(e.text, sizeof e.text, path, line, column);
    return wg_fail(err, s == WG_ENOMEM ? s : WG_ECONFIG, "%s", e.text);
}

void wg_checker_close(wg_checker *c)
{
    for (int i = 0; i < c->n_part; i++) wg_json_close(c->part[i].doc);
    wg_free(c->part);
    wg_free(c->seen);
    wg_free(c->found);
}

wg_status wg_config_open(wg_config **out, const char *path, const char *const *set, int n_set, const wg_plugins *plugins,
                         wg_error *err)
{
    wg_json *doc;
    WG_TRY(wg_config_document(&doc, path, err));
    wg_override *over = wg_calloc((size_t)n_set, sizeof *over);
    wg_config *o = wg_calloc(1, sizeof *o);
    json_t *root = json_deep_copy(wg_json_root(doc));
    wg_checker c = { .doc = doc, .plugins = plugins, .set = over, .n_set = n_set };
    wg_status s = over && o && root ? WG_OK : wg_nomem(err, sizeof *o, "a config");
    for (int i = 0; i < n_set && s == WG_OK; i++) s = wg_override_open(&over[i], set[i], err);
    if (s == WG_OK && !json_is_object(root))
        s = wg_fail(err, WG_ECONFIG, "%s: expected an object: {\"name\": ..., \"target\": ...}", path);
    wg_config_uncomment(root);
    if (s == WG_OK) {
        o->plugins = plugins;
        s = resolve(&c, o, over, root, set, err);
    }
    for (int i = 0; over && i < n_set; i++) {
        wg_json_close(over[i].doc);
        wg_free(over[i].text);
    }
    wg_free(over);
    wg_checker_close(&c);
    json_decref(root);
    wg_json_close(doc);
    if (s == WG_OK) *out = o;
    else wg_config_close(o);
    return s;
}

void wg_config_close(wg_config *c)
{
    if (!c) return;
    for (int i = 0; i < c->n; i++) wg_cell_close(&c->cell[i]);
    for (int i = 0; i < c->datasets; i++) wg_dataset_close(c->dataset[i]);
    json_decref(c->resolved);
    wg_free(c->cell);
    wg_free(c->dataset);
    wg_free(c);
}

bool wg_cell_lossless(const wg_cell *cell)
{
    return wg_verifier_lossless(cell->verifier, cell->sampling.temperature) && !wg_device_is_fast(cell->target.device);
}

bool wg_cell_is_outside(const wg_config *c, const wg_cell *cell)
{
    return wg_component_is_outside(c->plugins, cell->drafter, cell->draft);
}

const char *wg_cell_rests_on(const wg_config *c, const wg_cell *cell)
{
    if (!wg_cell_lossless(cell)) return NULL;
    return wg_law_rests_on(cell->verifier, cell->loaded.object, cell->sampling.temperature, wg_cell_is_outside(c, cell));
}

const char *wg_config_fast(const wg_config *c)
{
    for (int i = 0; i < c->n; i++)
        if (wg_device_is_fast(c->cell[i].target.device)) return c->cell[i].target.device;
    return NULL;
}

bool wg_cell_law_only(const wg_cell *cell) { return cell->target.kind != WG_TARGET_MODEL; }

bool wg_cell_repeats_plain(const wg_cell *cell)
{
    return wg_cell_lossless(cell) && !wg_cell_law_only(cell) &&
           (cell->sampling.temperature == 0 || !strcmp(cell->verifier->name, "match"));
}
