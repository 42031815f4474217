/* SPDX-License-Identifier: MIT
 * Generates the schema from the option tables. The options of a drafter or rule have a definition of their own, selected by
 * `kind` or `rule`. */
#include "experiments/config/schema.h"
#include "core/base/json_number.h"

#include <math.h>
#include <string.h>

#include "verify/rule_plugin.h"

static void set_range(json_t *s, const wg_option *o)
{
    if (o->min == 0 && o->max == 0) return;
    if (isfinite(o->min)) json_object_set_new(s, "minimum", wg_json_plain(o->min));
    if (isfinite(o->max)) json_object_set_new(s, "maximum", wg_json_plain(o->max));
}

static json_t *words(const wg_option *o)
{
    json_t *list = json_array();
    for (int i = 0; o->choices[i]; i++) json_array_append_new(list, json_string(o->choices[i]));
    return list;
}

/* A number with names for some of its values: the constraints in `s` apply to numbers only. */
static json_t *or_words(json_t *s, const wg_option *o)
{
    json_object_del(s, "type");
    json_object_set_new(s, "anyOf", json_pack("[{s:s}, {s:o}]", "type", "integer", "enum", words(o)));
    return s;
}

static json_t *option_schema(const wg_option *o)
{
    json_t *s = json_object();
    json_object_set_new(s, "description", json_string(o->doc));
    switch (o->type) {
    case WG_OPT_INT:
    case WG_OPT_FLOAT:
        json_object_set_new(s, "type", json_string(o->type == WG_OPT_INT ? "integer" : "number"));
        set_range(s, o);
        json_object_set_new(s, "default", wg_json_plain(o->def));
        if (o->choices) s = or_words(s, o);
        break;
    case WG_OPT_BOOL:
        json_object_set_new(s, "type", json_string("boolean"));
        json_object_set_new(s, "default", json_boolean(o->def != 0));
        break;
    case WG_OPT_STRING:
        json_object_set_new(s, "type",
                            strcmp(o->name, "json_schema") ? json_string("string") : json_pack("[ss]", "string", "object"));
        json_object_set_new(s, "maxLength", json_integer(WG_OPTION_STRING - 1));
        json_object_set_new(s, "default", json_string(o->def_string ? o->def_string : ""));
        break;
    case WG_OPT_ENUM:
        json_object_set_new(s, "enum", words(o));
        json_object_set_new(s, "default", json_string(o->choices[(int)o->def]));
        break;
    }
    return s;
}

static json_t *closed_object(json_t *properties, const char *doc)
{
    return json_pack("{s:s, s:s, s:o, s:{s:{}}, s:b}", "type", "object", "description", doc, "properties", properties,
                     "patternProperties", "^//", "additionalProperties", 0); /* comments: wg_setup_uncomment */
}

static json_t *properties_of(const wg_option *table)
{
    json_t *p = json_object();
    for (const wg_option *o = table; o && o->name; o++) json_object_set_new(p, o->name, option_schema(o));
    return p;
}

/* ---- sections selected by a name --------------------------------------------------------------------------------- */

typedef struct named {
    const char *name, *doc;
    const wg_option *table;
} named;

static bool class_at(const wg_plugins *p, const wg_setup_section *s, int i, named *out)
{
    if (!strcmp(s->name, "draft")) {
        const wg_drafter_class *d = p->drafters[i];
        if (d) *out = (named){ d->name, d->doc, d->options };
        return d;
    }
    int n = 0;
    while (p->verifiers[n]) n++;
    const wg_verifier_class *v = i == n ? &wg_plugin_rule : i < n ? p->verifiers[i] : NULL;
    if (v) *out = (named){ v->name, v->doc, v->options };
    return v;
}

static json_t *chosen_section(json_t *defs, const wg_plugins *p, const wg_setup_section *s)
{
    json_t *names = json_array(), *rules = json_array();
    named c;
    for (int i = 0; class_at(p, s, i, &c); i++) {
        char def[128], ref[160];
        snprintf(def, sizeof def, "%s.%s", s->name, c.name);
        snprintf(ref, sizeof ref, "#/$defs/%s", def);
        json_t *properties = properties_of(c.table);
        json_object_set_new(properties, s->selector, json_pack("{s:s}", "const", c.name));
        if (!strcmp(s->name, "draft"))
            json_object_set_new(properties, wg_setup_label_table->name, option_schema(wg_setup_label_table));
        json_object_set_new(defs, def, closed_object(properties, c.doc));
        json_array_append_new(names, json_string(c.name));
        json_array_append_new(rules, json_pack("{s:{s:{s:{s:s}}, s:[s]}, s:{s:s}}", "if", "properties", s->selector, "const",
                                               c.name, "required", s->selector, "then", "$ref", ref));
    }
    return json_pack("{s:s, s:s, s:{s:{s:o}}, s:o}", "type", "object", "description", s->doc, "properties", s->selector, "enum",
                     names, "allOf", rules);
}

/* ---- the sweep --------------------------------------------------------------------------------------------------- */

static void add_axis(json_t *axes, const char *section, const char *option, json_t *schema)
{
    char path[300];
    snprintf(path, sizeof path, "%s%s%s", section, *section && *option ? "." : "", option);
    json_t *have = json_object_get(json_object_get(json_object_get(axes, path), "items"), "anyOf");
    if (!have) {
        json_object_set_new(axes, path, json_pack("{s:s, s:i, s:{s:[]}}", "type", "array", "minItems", 1, "items", "anyOf"));
        have = json_object_get(json_object_get(json_object_get(axes, path), "items"), "anyOf");
    }
    json_array_append_new(have, schema);
}

static json_t *grid_schema(const wg_plugins *p)
{
    json_t *axes = json_object();
    for (const wg_setup_section *s = wg_setup_sections; s->name; s++) {
        named c;
        for (const wg_option *o = s->table; o && o->name; o++)
            if (*s->name || !wg_config_of_all_cells(o->name)) add_axis(axes, s->name, o->name, option_schema(o));
        if (s->selector) {
            json_t *names = json_array();
            for (int i = 0; class_at(p, s, i, &c); i++) {
                json_array_append_new(names, json_string(c.name));
                for (const wg_option *o = c.table; o && o->name; o++) add_axis(axes, s->name, o->name, option_schema(o));
            }
            add_axis(axes, s->name, s->selector, json_pack("{s:o}", "enum", names));
            if (!strcmp(s->name, "draft"))
                add_axis(axes, s->name, wg_setup_label_table->name, option_schema(wg_setup_label_table));
        }
        if (*s->name) add_axis(axes, s->name, "", json_pack("{s:o}", "$ref", json_sprintf("#/properties/%s", s->name)));
    }
    return closed_object(axes, "lists of values by dotted path; the grid is their product");
}

/* A section, or a reference in its place. */
static json_t *or_part(json_t *section)
{
    return json_pack("{s:[o, {s:s, s:s, s:s}]}", "anyOf", section, "type", "string", "pattern", "^@[^/]+/[^/]+$", "description",
                     "a named part: @folder/name is the object in folder/name.json, beside the config or one level up");
}

json_t *wg_config_schema(const wg_plugins *plugins)
{
    static const char grid[] = "#/$defs/grid";
    json_t *defs = json_object(), *properties = NULL;
    for (const wg_setup_section *s = wg_setup_sections; s->name; s++) {
        if (!*s->name) properties = properties_of(s->table);
        else
            json_object_set_new(
                properties, s->name,
                or_part(s->selector ? chosen_section(defs, plugins, s) : closed_object(properties_of(s->table), s->doc)));
    }
    json_object_set_new(defs, "grid", grid_schema(plugins));
    json_object_set_new(properties, "sweep",
                        json_pack("{s:[{s:s}, {s:s, s:i, s:i, s:{s:s}, s:s}]}", "anyOf", "$ref", grid, "type", "array",
                                  "minItems", 1, "maxItems", 16, "items", "$ref", grid, "description",
                                  "several grids, one behind the other"));
    json_t *o =
        closed_object(properties, "An experiment of wager; wager check CONFIG says more about a file than this schema can.");
    json_object_set_new(o, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
    json_object_set_new(o, "title", json_string("wager experiment"));
    json_object_set_new(o, "$defs", defs);
    json_object_set_new(o, "required", json_pack("[s,s,s]", "name", "target", "prompts"));
    return o;
}
