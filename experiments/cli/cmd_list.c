/* SPDX-License-Identifier: MIT
 * wager list: every drafter, rule, kernel level and option, printed from the tables that the program itself uses. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/engine/build.h"
#include "draft/draft.h"
#include "experiments/cli/cli.h"
#include "experiments/record/fields.h"
#include "experiments/report/columns.h"
#include "experiments/cli/commands.h"
#include "experiments/base/spec.h"
#include "experiments/config/schema.h"
#include "kernels/cpu.h"
#include "kernels/ops.h"
#include "verify/verify.h"

static void option_row(const char *of, const wg_option *o, bool json)
{
    char expects[512], value[WG_OPTION_STRING];
    wg_option_expects(o, expects, sizeof expects);
    if (o->type == WG_OPT_STRING)
        snprintf(value, sizeof value, "%s", o->def_string ? o->def_string : "");
    else if (o->type == WG_OPT_ENUM)
        snprintf(value, sizeof value, "%s", o->choices[(int)o->def]);
    else if (o->type == WG_OPT_BOOL)
        snprintf(value, sizeof value, "%s", o->def != 0 ? "true" : "false");
    else
        snprintf(value, sizeof value, "%g", o->def);
    if (!json) {
        printf("      %-14s %-24s default %-10s %s\n", o->name, expects, value[0] ? value : "\"\"", o->doc);
        return;
    }
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s}", "option", o->name, "of", of, "expects", expects, "default", value,
                            "doc", o->doc);
    json_dumpf(row, stdout, JSON_SORT_KEYS | JSON_COMPACT);
    putchar('\n');
    json_decref(row);
}

static void item(const char *kind, const char *name, const char *doc, const char *laws, const char *note, bool json)
{
    if (!json) {
        printf("  %-12s %s%s%s%s%s\n", name, doc, laws ? "; laws: " : "", laws ? laws : "", note ? "; " : "", note ? note : "");
        return;
    }
    json_t *row = json_pack("{s:s, s:s, s:s}", "kind", kind, "name", name, "doc", doc);
    if (laws) json_object_set_new(row, "laws", json_string(laws));
    if (note) json_object_set_new(row, "note", json_string(note));
    json_dumpf(row, stdout, JSON_SORT_KEYS | JSON_COMPACT);
    putchar('\n');
    json_decref(row);
}

static void options(const char *of, const wg_option *table, bool json)
{
    for (const wg_option *o = table; o && o->name; o++) option_row(of, o, json);
}

static void list_drafters(bool json)
{
    if (!json) puts("drafters (\"draft\": {\"kind\": NAME, option: value}):");
    for (int i = 0; wg_drafters[i]; i++) {
        char laws[96];
        item("drafter", wg_drafters[i]->name, wg_drafters[i]->doc, wg_law_list(wg_drafters[i]->laws, laws, sizeof laws), NULL,
             json);
        options(wg_drafters[i]->name, wg_drafters[i]->options, json);
    }
}

static void list_verifiers(bool json)
{
    if (!json) puts("verification rules (\"verify\": {\"rule\": NAME}):");
    for (int i = 0; wg_verifiers[i]; i++) {
        char laws[96];
        item("verifier", wg_verifiers[i]->name, wg_verifiers[i]->doc, wg_law_list(wg_verifiers[i]->laws, laws, sizeof laws),
             !wg_verifiers[i]->lossless    ? "LOSSY"
             : wg_verifiers[i]->zero_only ? "lossless at temperature 0, else LOSSY"
                                          : "lossless", json);
        options(wg_verifiers[i]->name, wg_verifiers[i]->options, json);
    }
}

static void list_sampling(bool json)
{
    if (!json) puts("sampling (\"sampling\": {option: value}), applied in the order that `order` says:");
    options("sampling", wg_sampling_options, json);
}

static void list_kernels(bool json)
{
    if (!json) puts("kernel levels (WG_CPU=NAME lowers the choice; all give the same bits):");
    for (int l = WG_CPU_REF; l <= (int)wg_cpu_best(); l++) {
        if (!wg_cpu_has((wg_cpu_level)l)) continue;
        item("kernels", wg_cpu_name((wg_cpu_level)l),
             l == WG_CPU_REF ? "scalar reference, the specification" : "vector variant", NULL,
             l == (int)wg_cpu_chosen() ? "in use" : NULL, json);
    }
}

static void list_commands(bool json)
{
    if (!json) puts("commands:");
    for (const wg_command *c = wg_commands; c->name; c++) item("command", c->name, c->doc, NULL, NULL, json);
}

static void list_columns(bool json)
{
    if (!json) puts("columns of tables (wager run, wager report --columns NAME,...):");
    for (const wg_column *c = wg_columns; c->name; c++) {
        if (!json) {
            printf("  %-32s %-9s %s\n", c->name, c->unit, c->doc);
            continue;
        }
        json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s}", "kind", "column", "name", c->name, "unit", c->unit, "path",
                                c->path, "doc", c->doc);
        json_dumpf(row, stdout, JSON_SORT_KEYS | JSON_COMPACT);
        putchar('\n');
        json_decref(row);
    }
}

static void list_lines(const char *file, const wg_field *table, bool json)
{
    if (!json) printf("members of a line of %s:\n", file);
    for (const wg_field *f = table; f->name; f++) {
        if (!json) {
            printf("  %-46s %-7s %s\n", f->name, f->unit, f->doc);
            continue;
        }
        json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s}", "kind", "field", "file", file, "name", f->name, "unit", f->unit,
                                "doc", f->doc);
        json_dumpf(row, stdout, JSON_SORT_KEYS | JSON_COMPACT);
        putchar('\n');
        json_decref(row);
    }
}

static void list_fields(bool json)
{
    list_lines("requests.jsonl", wg_request_fields, json);
    list_lines("steps.jsonl", wg_step_fields, json);
}

static int print_schema(void)
{
    json_t *v = wg_config_schema(&wg_program_plugins);
    char *text = v ? wg_json_canonical(v, true) : NULL;
    if (text) fputs(text, stdout);
    json_decref(v);
    wg_free(text);
    return text ? WG_EXIT_OK : WG_EXIT_FAILED;
}

int wg_cmd_list(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(bool json);
    } part[] = {
        { "drafters", list_drafters }, { "verifiers", list_verifiers }, { "sampling", list_sampling },
        { "kernels", list_kernels },   { "commands", list_commands },   { "columns", list_columns },
        { "fields", list_fields },
    };
    enum { PARTS = sizeof part / sizeof *part };
    bool json = false, schema = false;
    const char *word = NULL;
    const wg_flag flags[] = { { "json", 0, WG_FLAG_BOOL, &json, NULL, "one JSON object a line", 0, 0 },
                              { "schema", 0, WG_FLAG_BOOL, &schema, NULL, "the JSON Schema of a config instead, for editors", 0,
                                0 },
                              { 0 } };
    const int done = wg_cli_parse("list", flags, argc, argv, &word, 0, 1);
    if (done >= 0) return done;
    if (schema) return print_schema();
    bool any = false;
    for (int i = 0; i < PARTS; i++) {
        if (word && strcmp(word, part[i].name)) continue;
        if (any && !json) putchar('\n');
        part[i].print(json);
        any = true;
    }
    if (any) return WG_EXIT_OK;
    fprintf(stderr, "wager list: there is no list '%s'; there are: drafters, verifiers, sampling, kernels, commands,"
                    " columns, fields\n", word);
    return WG_EXIT_USAGE;
}
