/* SPDX-License-Identifier: MIT
 * wager list: prints drafters, rules, kernel levels, commands and columns, a line each; one drafter or rule with its options;
 * or all options. The source are the tables that the program uses. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "core/base/json_line.h"
#include "core/engine/build.h"
#include "draft/draft.h"
#include "draft/length/length.h"
#include "draft/lm/lm_draft.h"
#include "experiments/cli/cli.h"
#include "experiments/record/fields.h"
#include "experiments/report/columns.h"
#include "core/setup/spec.h"
#include "experiments/config/distill_config.h"
#include "experiments/config/schema.h"
#include "experiments/config/train_config.h"
#include "kernels/cpu.h"
#include "verify/verify.h"

enum { WIDTH = 100 };

/* ---- options ------------------------------------------------------------------------------------------------------ */

/* Options that several drafters share, documented once. A row of a drafter's table belongs to the first group that has it. */
static const struct {
    const char *name;
    const wg_option *rows;
} groups[] = { { "length policy", wg_length_option_rows }, { "draft tree", wg_growth_option_rows } };
enum { GROUPS = sizeof groups / sizeof *groups, OWN = GROUPS };

static int group_of(const wg_option *o)
{
    for (int g = 0; g < GROUPS; g++) {
        const wg_option *row = wg_option_find(groups[g].rows, o->name);
        if (row && !strcmp(row->doc, o->doc)) return g;
    }
    return OWN;
}

static bool has_group(const wg_option *table, int g)
{
    for (const wg_option *o = table; o && o->name; o++)
        if (group_of(o) == g) return true;
    return false;
}

/* Prints a text, indented, in lines of WIDTH columns. */
static void wrapped(const char *text, int indent)
{
    int column = 0;
    for (const char *p = text; *p;) {
        const int n = (int)strcspn(p, " ");
        if (column && column + 1 + n > WIDTH) column = 0, putchar('\n');
        column += column ? printf(" %.*s", n, p) : printf("%*s%.*s", indent, "", n, p);
        p += n + strspn(p + n, " ");
    }
    putchar('\n');
}

static void option_row(const char *of, const wg_option *o, bool json)
{
    char expects[512], value[WG_OPTION_STRING];
    wg_option_expects(o, expects, sizeof expects);
    if (o->type == WG_OPT_STRING) snprintf(value, sizeof value, "%s", o->def_string ? o->def_string : "");
    else if (o->type == WG_OPT_ENUM) snprintf(value, sizeof value, "%s", o->choices[(int)o->def]);
    else if (o->type == WG_OPT_BOOL) snprintf(value, sizeof value, "%s", o->def != 0 ? "true" : "false");
    else snprintf(value, sizeof value, "%g", o->def);
    if (!json) {
        printf("  %s: %s; default %s\n", o->name, expects, value[0] ? value : "\"\"");
        wrapped(o->doc, 6);
        return;
    }
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s}", "option", o->name, "of", of, "expects", expects, "default", value,
                            "doc", o->doc);
    if (group_of(o) != OWN) json_object_set_new(row, "group", json_string(groups[group_of(o)].name));
    wg_json_put_line(row, 0);
}

/* Prints the rows of one group, or with OWN those of none. */
static void options(const char *of, const wg_option *table, int group, bool json)
{
    for (const wg_option *o = table; o && o->name; o++)
        if (group_of(o) == group || json) option_row(of, o, json);
}

/* ---- a line each -------------------------------------------------------------------------------------------------- */

/* more: further members of a JSON line, whose reference is taken; NULL: none */
static void item_with(const char *kind, const char *name, const char *doc, const char *laws, const char *note, json_t *more)
{
    json_t *row = json_pack("{s:s, s:s, s:s}", "kind", kind, "name", name, "doc", doc);
    if (laws) json_object_set_new(row, "laws", json_string(laws));
    if (note) json_object_set_new(row, "note", json_string(note));
    json_object_update(row, more);
    wg_json_put_line(row, 0);
    json_decref(more);
}

static void item(const char *kind, const char *name, const char *doc, const char *laws, const char *note, bool json)
{
    if (json) {
        item_with(kind, name, doc, laws, note, NULL);
        return;
    }
    printf("  %-19s %s%s%s%s%s%s\n", name, doc, laws && *laws ? " [" : "", laws ? laws : "", laws && *laws ? "]" : "",
           note ? "; " : "", note ? note : "");
}

static void drafter_line(const wg_drafter_class *d, bool json)
{
    char laws[96];
    wg_law_list(d->laws, laws, sizeof laws);
    json_t *tests = json ? json_array() : NULL;
    for (const wg_drafter_test *t = d->test_options; tests && t && t->options; t++)
        json_array_append_new(tests, json_string(t->options));
    if (json) item_with("drafter", d->name, d->doc, laws, NULL, json_pack("{s:o}", "tests", tests));
    else item("drafter", d->name, d->doc, laws, NULL, false);
}

static void rule_line(const wg_verifier_class *v, bool json)
{
    char laws[96];
    const char *note = !v->lossless ? "LOSSY" : v->zero_only ? "lossless at temperature 0, else LOSSY" : "lossless";
    wg_law_list(v->laws, laws, sizeof laws);
    json_t *tests = json ? json_array() : NULL;
    for (const char *const *t = v->test_options; tests && t && *t; t++) json_array_append_new(tests, json_string(*t));
    if (json) item_with("rule", v->name, v->doc, laws, note, json_pack("{s:b, s:o}", "chains", v->chains, "tests", tests));
    else item("rule", v->name, v->doc, laws, note, false);
}

/* A row of the table of rules. */
static void rule_row(const wg_verifier_class *v)
{
    static const struct {
        unsigned law;
        const char *name;
    } short_names[] = {
        { WG_LAW_FIXED, "fixed" }, { WG_LAW_IID, "iid" }, { WG_LAW_WITHOUT_REPLACEMENT, "wor" }, { WG_LAW_COUPLED, "coupled" }
    };
    char laws[64] = "";
    for (size_t i = 0, n = 0; i < sizeof short_names / sizeof *short_names; i++)
        if (v->laws & short_names[i].law)
            n += (size_t)snprintf(laws + n, sizeof laws - n, "%s%s", n ? ", " : "", short_names[i].name);
    if ((v->laws & WG_LAWS) == WG_LAWS) snprintf(laws, sizeof laws, "all");
    printf("| `%s` | %s%s | %s%s%s | %s | %s | %s |\n", v->name, laws, v->chains ? "; chains" : "",
           !v->lossless   ? "**no**"
           : v->zero_only ? "at temperature 0"
                          : "yes",
           !v->guarantee ? ""
           : v->lossless ? "; "
                         : ": ",
           v->guarantee ? v->guarantee : "", v->reads_q ? "yes" : "no", v->optimal_among ? v->optimal_among : "-",
           v->paper ? v->paper : "-");
}

/* The table of docs/verification.md, which docs/verification.sh writes there. */
static int rules_table(const char *list)
{
    if (!list || strcmp(list, "rules") != 0)
        return wg_cli_refuse("list", "--md is for the list of rules: wager list rules --md");
    puts("| rule | laws | lossless | q rows | optimal among | paper |\n|---|---|---|---|---|---|");
    for (int i = 0; wg_verifiers[i]; i++) rule_row(wg_verifiers[i]);
    return WG_EXIT_OK;
}

static void list_drafters(bool json)
{
    if (!json) puts("drafters [sibling laws they declare]; options: wager list drafter NAME");
    for (int i = 0; wg_drafters[i]; i++) {
        drafter_line(wg_drafters[i], json);
        if (json) options(wg_drafters[i]->name, wg_drafters[i]->options, OWN, true);
    }
}

static void list_rules(bool json)
{
    if (!json) puts("verification rules [sibling laws they check]; options: wager list rule NAME");
    for (int i = 0; wg_verifiers[i]; i++) {
        rule_line(wg_verifiers[i], json);
        if (json) options(wg_verifiers[i]->name, wg_verifiers[i]->options, OWN, true);
    }
}

/* ---- one drafter or rule, with its options ----------------------------------------------------------------------- */

/* Prints a group and the drafters that have it. */
static void group_head(int g)
{
    char text[512] = "";
    for (int i = 0, n = 0; wg_drafters[i]; i++)
        if (has_group(wg_drafters[i]->options, g))
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", n ? ", " : "", wg_drafters[i]->name);
    printf("\n%s (%s):\n", groups[g].name, text);
}

static void with_options(const char *form, const char *name, const wg_option *table)
{
    printf("\n%s\n", form);
    if (!table || !table->name) puts("It has no options.");
    options(name, table, OWN, false);
    for (int g = GROUPS - 1; g >= 0; g--) {
        if (!has_group(table, g)) continue;
        group_head(g);
        options(name, table, g, false);
    }
}

static int no_such(const char *what, const char *name, const char *const *names)
{
    const char *near = wg_nearest(name, names);
    fprintf(stderr, "wager list: there is no %s '%s'%s%s%s; wager list %ss has them all\n", what, name,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", what);
    return WG_EXIT_USAGE;
}

static int one_drafter(const char *name, bool json)
{
    const char *names[64] = { NULL };
    char form[256];
    for (int i = 0; wg_drafters[i] && i < 63; i++) {
        const wg_drafter_class *d = wg_drafters[i];
        names[i] = d->name;
        if (strcmp(d->name, name) != 0) continue;
        drafter_line(d, json);
        snprintf(form, sizeof form, "\"draft\": {\"kind\": \"%s\", \"OPTION\": VALUE}   or   --draft %s:OPTION=VALUE,...", name,
                 name);
        if (json) options(name, d->options, OWN, true);
        else with_options(form, name, d->options);
        return WG_EXIT_OK;
    }
    return no_such("drafter", name, names);
}

static int one_rule(const char *name, bool json)
{
    const char *names[64] = { NULL };
    char form[256];
    for (int i = 0; wg_verifiers[i] && i < 63; i++) {
        const wg_verifier_class *v = wg_verifiers[i];
        names[i] = v->name;
        if (strcmp(v->name, name) != 0) continue;
        rule_line(v, json);
        snprintf(form, sizeof form, "\"verify\": {\"rule\": \"%s\", \"OPTION\": VALUE}   or   --rule %s:OPTION=VALUE,...", name,
                 name);
        if (json) options(name, v->options, OWN, true);
        else with_options(form, name, v->options);
        return WG_EXIT_OK;
    }
    return no_such("rule", name, names);
}

/* Lists every option of every drafter, those of a group once. */
static void list_options(bool json)
{
    if (json) return; /* drafters and rules list them */
    for (int i = 0; wg_drafters[i]; i++) {
        const wg_option *table = wg_drafters[i]->options;
        if (!table || !table->name) continue;
        printf("%s%s:", i ? "\n" : "", wg_drafters[i]->name);
        for (int g = GROUPS - 1; g >= 0; g--)
            if (has_group(table, g)) printf(" (and %s, below)", groups[g].name);
        putchar('\n');
        options(wg_drafters[i]->name, table, OWN, false);
    }
    for (int g = GROUPS - 1; g >= 0; g--) {
        group_head(g);
        for (const wg_option *o = groups[g].rows; o->name; o++)
            if (group_of(o) == g) option_row("", o, false);
    }
}

static void list_sampling(bool json)
{
    if (!json) puts("sampling (\"sampling\": {option: value}), applied in the order that `order` says:");
    options("sampling", wg_sampling_options, OWN, json);
}

/* Every key of wager train, then those that wager distill adds, by section. */
static void list_training(bool json)
{
    const wg_train_section own[] = { { "distill", "what students are trained for", wg_distill_table, 0 },
                                     { "distill.sources", "what students are trained on, by shares", wg_source_table, 0 },
                                     { "conversations", "what the target writes into data.conversations first",
                                       wg_conversations_table, 0 },
                                     { 0 } };
    const wg_train_section *const lists[] = { wg_train_sections, own };
    for (int i = 0; i < 2; i++)
        for (const wg_train_section *s = lists[i]; s->name; s++) {
            if (!json) printf("%s%s: %s\n", s == wg_train_sections ? "" : "\n", s->name, s->doc);
            options(s->name, s->table, OWN, json);
        }
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
        wg_json_put_line(row, 0);
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
        wg_json_put_line(row, 0);
    }
}

static void list_fields(bool json)
{
    list_lines("requests.jsonl", wg_request_fields, json);
    list_lines("steps.jsonl", wg_step_fields, json);
}

int wg_cmd_list(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(bool json);
        bool asked; /* listed only on request */
    } list[] = { { "drafters", list_drafters, false }, { "rules", list_rules, false },
                 { "sampling", list_sampling, false }, { "kernels", list_kernels, false },
                 { "commands", list_commands, false }, { "columns", list_columns, false },
                 { "fields", list_fields, true },      { "options", list_options, true },
                 { "training", list_training, true } };
    enum { LISTS = sizeof list / sizeof *list };
    bool json = false, schema = false, markdown = false;
    const char *word[2] = { NULL, NULL };
    const wg_flag flags[] = { { "json", 0, WG_FLAG_BOOL, &json, NULL, "one JSON object a line, options too", 0, 0 },
                              { "schema", 0, WG_FLAG_BOOL, &schema, NULL, "the JSON Schema of a config instead, for editors", 0,
                                0 },
                              { "md", 0, WG_FLAG_BOOL, &markdown, NULL, "with rules: as a table in Markdown", 0, 0 },
                              { 0 } };
    const int done = wg_cli_parse("list", flags, argc, argv, word, 0, 2);
    if (done >= 0) return done;
    if (schema) return wg_cli_put_json(wg_config_schema(&wg_program_plugins), true) ? WG_EXIT_OK : WG_EXIT_FAILED;
    if (markdown) return rules_table(word[0]);
    if (word[1] && !strcmp(word[0], "drafter")) return one_drafter(word[1], json);
    if (word[1] && !strcmp(word[0], "rule")) return one_rule(word[1], json);
    bool any = false;
    for (int i = 0; i < LISTS && !word[1]; i++) {
        if (word[0] ? strcmp(word[0], list[i].name) != 0 : list[i].asked) continue;
        if (any && !json) putchar('\n');
        list[i].print(json);
        any = true;
    }
    if (any) return WG_EXIT_OK;
    fprintf(stderr, "wager list %s: %s\n", word[0],
            word[1] ? "a name is for drafter and rule only"
                    : "expected a name behind it; wager list drafters, or rules, has them all");
    return WG_EXIT_USAGE;
}
