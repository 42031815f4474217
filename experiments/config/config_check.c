/* SPDX-License-Identifier: MIT
 * Checks of values against option tables, and of whole cells. All problems are collected; none stops the checks. */
#include "experiments/config/config_check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/number.h"
#include "core/file/quantize.h"
#include "core/model/device.h"
#include "draft/compose/composite.h"
#include "verify/rule_plugin.h"
#include "experiments/base/constrained.h"
#include "experiments/base/target.h"

enum { REQUESTS_MAX = 1 << 24 }; /* of a cell: each has room in memory for its digest */

static const char *const traces[] = { "none", "steps", "probs", NULL };
static const char *const trace_rows[] = { "exact", "logits", "f16", "top", NULL };

static const char *const second_passes[] = { "auto", "always", NULL };
static const wg_option top_options[] = {
    WG_OPTION_STR(wg_config_top, name, "", "names the result folder: letters, digits, '.', '_' and '-' (needed)"),
    WG_OPTION_STR(wg_config_top, question, "", "what the experiment is to find out"),
    WG_OPTION_INT(wg_config_top, seed, 1, 0, 2147483647, "of all randomness"),
    WG_OPTION_INT(wg_config_top, max_tokens, 128, 1, 1000000, "new tokens of a request"),
    WG_OPTION_NAME(wg_config_top, grammar, WG_NAMES_FILE, "",
                   "every answer is a text of this grammar, a file in GBNF (docs/constrained.md); empty: answers are free"),
    WG_OPTION_NAME(wg_config_top, json_schema, WG_NAMES_FILE, "",
                   "every answer is JSON that is valid under this schema: a file, or in a config the schema itself"),
    WG_OPTION_INT(wg_config_top, repeats, 1, 1, 10000, "runs of each prompt, each with randomness of its own"),
    WG_OPTION_INT(wg_config_top, batch, 1, 1, 256, "sequences of one step"),
    WG_OPTION_ENUM(wg_config_top, trace, 0, traces,
                   "steps: a line per step in steps.jsonl; probs: also trees and rows of p and q, in trace.wgt (wager replay)"),
    WG_OPTION_ENUM(wg_config_top, trace_rows, 0, trace_rows,
                   "rows of trace.wgt: exact, in the shortest form; logits: of the target always, for replay at other "
                   "temperatures; f16; top: the `trace_top` most probable tokens and the mass of the rest"),
    WG_OPTION_INT(wg_config_top, trace_top, 64, 1, 1 << 20, "tokens of a row with trace_rows=top"),
    WG_OPTION_BOOL(wg_config_top, alpha, 1,
                   "measure alpha, analytic_alpha, alpha_star and independent_acceptance, outside of every clock"),
    WG_OPTION_ENUM(
        wg_config_top, second_pass, WG_SECOND_PASS_AUTO, second_passes,
        "what needs the target's rows (alpha, trace=probs) comes, auto: from a second, untimed pass where the target's "
        "device verifies, else from between the steps; always: from a second pass on every target"),
    WG_OPTION_NAME(wg_config_top, profile, WG_NAMES_OR_WORD, "", WG_PROFILE_DOC),
    WG_OPTION_BOOL(wg_config_top, audit, 0,
                   "test whether drafts were drawn from the declared rows of q, outside of every clock; those of plug-ins and "
                   "processes are tested with \"alpha\", too"),
    WG_OPTION_END,
};

bool wg_config_of_all_cells(const char *option)
{
    static const char *const names[] = { "name",  "question",    "repeats", "trace",   "trace_rows", "trace_top",
                                         "alpha", "second_pass", "audit",   "profile", NULL };
    int i = 0;
    while (names[i] && strcmp(names[i], option) != 0) i++;
    return names[i] != NULL;
}

const wg_option wg_config_label_table[] = {
    WG_OPTION_STR(wg_config_label, label, "", "the cell's name in tables, drawings, pages and LaTeX; empty: by what it runs"),
    WG_OPTION_END,
};

const wg_option wg_config_target_table[] = {
    WG_OPTION_NAME(wg_config_target, model, WG_NAMES_FILE, "", "weights file (needed)"),
    WG_OPTION_STR(wg_config_target, device, "cpu", "where it runs: " WG_DEVICE_NAMES),
    WG_OPTION_INT(wg_config_target, threads, 0, 0, 256, "0: the cores this process may run on"),
    WG_OPTION_BOOL(wg_config_target, pin, 0, "bind each worker thread to a processor of its own"),
    WG_OPTION_ENUM(wg_config_target, kv_type, 1, wg_kv_type_names, "element type of the target's cache"),
    WG_OPTION_INT(wg_config_target, context, 0, 0, 1 << 24, "longest sequence; 0: the file's"),
    WG_OPTION_STR(wg_config_target, quantize, "", WG_QUANTIZE_DOC),
    WG_OPTION_BOOL(wg_config_target, allow_nan, 0, "accept NaN and infinities in weights"),
    WG_OPTION_ENUM(
        wg_config_target, kind, WG_TARGET_MODEL, wg_target_kinds,
        "model: wager runs the file; process: a program of your own does (docs/process-target.md), and the file has the "
        "tokenizer; llamacpp: llama.cpp's library does. Results of the last two are equal in law only"),
    WG_OPTION_NAME(wg_config_target, command, WG_NAMES_COMMAND, "", "shell command of a process (needed there)"),
    WG_OPTION_INT(wg_config_target, timeout_ms, 60000, 1, 3600000, "milliseconds that a process has to answer a pass"),
    WG_OPTION_INT(wg_config_target, start_ms, 300000, 1, 3600000, "milliseconds that a process has to load its model"),
    WG_OPTION_NAME(wg_config_target, library, WG_NAMES_COMMAND, "libllama.so",
                   "llama.cpp's library: a path, or a name that the loader finds"),
    WG_OPTION_END,
};
static const char *const turn_words[] = { "all", "first", NULL };
static const wg_option prompt_options[] = {
    WG_OPTION_NAME(wg_config_prompts, file, WG_NAMES_FILE, "",
                   "JSONL with `prompt`, `question`, `turns` or `messages` (needed)"),
    WG_OPTION_COUNT(wg_config_prompts, turns, 1, 0, WG_TURNS_MAX, turn_words,
                    "questions of `turns` that are used, each after the answer to the one before; 0: all"),
    WG_OPTION_INT(wg_config_prompts, limit, 0, 0, 1 << 24, "the first prompts only; 0: all"),
    WG_OPTION_INT(wg_config_prompts, per_category, 0, 0, 1 << 24, "the first prompts of each category only; 0: all"),
    WG_OPTION_STR(wg_config_prompts, category, "", "prompts of this category only; empty: any"),
    WG_OPTION_STR(wg_config_prompts, merge, "", "new names of categories, such as chat=writing|coding;other=qa"),
    WG_OPTION_INT(wg_config_prompts, shuffle, 0, 0, 2147483647,
                  "seed of their order, before any are left out; 0: as in the file"),
    WG_OPTION_INT(wg_config_prompts, keep_bytes, 0, 0, 1 << 30, "longer prompts keep their end of so many bytes; 0: all of it"),
    WG_OPTION_ENUM(
        wg_config_prompts, chat, WG_CHAT_NONE, wg_chat_names,
        "the template that the target was trained with (model: the one in its file): a prompt is a question, and its "
        "answer is wanted"),
    WG_OPTION_STR(wg_config_prompts, system, "", "what the template says before the question; needs `chat`"),
    WG_OPTION_STR(wg_config_prompts, date, "", "today for a model's own template, such as 2026-01-31; empty: it has no date"),
    WG_OPTION_END,
};

const wg_config_section wg_config_sections[] = {
    { "", "the experiment", NULL, top_options, offsetof(wg_cell, top) },
    { "target", "the model whose output is wanted", NULL, wg_config_target_table, offsetof(wg_cell, target) },
    { "draft", "the drafter, by kind, and its options", "kind", NULL, offsetof(wg_cell, draft) },
    { "verify", "the verification rule and its options", "rule", NULL, offsetof(wg_cell, verify) },
    { "sampling", "how logits become a distribution", NULL, wg_sampling_options, offsetof(wg_cell, sampling) },
    { "prompts", "what is continued", NULL, prompt_options, offsetof(wg_cell, prompts) },
    { NULL, NULL, NULL, NULL, 0 },
};

const void *wg_cell_section(const wg_cell *cell, const wg_config_section *s)
{
    const char *at = (const char *)cell + s->at;
    return s->selector ? *(void *const *)at : at;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* The value as quoted in messages: 'text "8"', 'number 0.5', 'a list'. */
static const char *got(const json_t *v, char *buf, size_t size)
{
    char number[WG_NUMBER_TEXT];
    switch (json_typeof(v)) {
    case JSON_STRING: snprintf(buf, size, "text \"%.60s\"", json_string_value(v)); break;
    case JSON_INTEGER: snprintf(buf, size, "%" JSON_INTEGER_FORMAT, json_integer_value(v)); break;
    case JSON_REAL: snprintf(buf, size, "%s", wg_number_text(json_real_value(v), number, sizeof number)); break;
    case JSON_OBJECT: snprintf(buf, size, "an object"); break;
    case JSON_ARRAY: snprintf(buf, size, "a list"); break;
    case JSON_TRUE: snprintf(buf, size, "true"); break;
    case JSON_FALSE: snprintf(buf, size, "false"); break;
    case JSON_NULL: snprintf(buf, size, "null"); break;
    }
    return buf;
}

static bool is_word(const wg_option *row, const json_t *v)
{
    bool found = false;
    for (int i = 0; row->choices && row->choices[i] && json_is_string(v); i++)
        found = found || !strcmp(row->choices[i], json_string_value(v));
    return found;
}

/* Sets one field; false when the value does not have the row's type or range. */
static bool set_value(const wg_option *row, const json_t *v, void *o)
{
    const wg_option one[] = { *row, WG_OPTION_END };
    switch (row->type) {
    case WG_OPT_INT:
        if (is_word(row, v)) break;
        return json_is_integer(v) && !wg_option_set_number(one, o, row->name, (double)json_integer_value(v), true, NULL);
    case WG_OPT_FLOAT: return json_is_number(v) && !wg_option_set_number(one, o, row->name, json_number_value(v), false, NULL);
    case WG_OPT_BOOL: return json_is_boolean(v) && !wg_option_set_number(one, o, row->name, json_is_true(v), true, NULL);
    case WG_OPT_STRING:
    case WG_OPT_ENUM: break;
    }
    return json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v) &&
           !wg_option_set(one, o, row->name, json_string_value(v), NULL);
}

/* A schema that stands in the config is kept as its text. False: the value is no such schema. */
static bool set_schema(wg_checker *c, const char *path, const wg_option *row, const json_t *v, void *o)
{
    char text[WG_OPTION_STRING];
    if (strcmp(path, "json_schema") != 0) return false;
    if (json_is_string(v) && *json_string_value(v) == '{') return set_value(row, v, o);
    if (!json_is_object(v)) return false;
    const size_t n = json_dumpb(v, text, sizeof text - 1, JSON_COMPACT);
    if (n >= sizeof text)
        wg_problem(c, path, false, "%s: a schema of %zu bytes; one of more than %d stands in a file of its own, named here",
                   path, n, WG_OPTION_STRING - 1);
    else {
        text[n] = '\0';
        memcpy((char *)o + row->at, text, n + 1);
    }
    return true;
}

static void check_value(wg_checker *c, const char *path, const wg_option *row, const json_t *v, void *o)
{
    char expects[512], is[128], hint[256] = "";
    if (set_schema(c, path, row, v, o)) return;
    if (set_value(row, v, o)) {
        wg_config_paths(c, path, row, (char *)o + row->at);
        return;
    }
    if (row->choices && json_is_string(v)) {
        const char *near = wg_nearest(json_string_value(v), row->choices);
        if (near) snprintf(hint, sizeof hint, "; did you mean \"%s\"?", near);
    }
    wg_problem(c, path, false, "%s: expected %s, got %s%s", path, wg_option_expects(row, expects, sizeof expects),
               got(v, is, sizeof is), hint);
}

static int table_names(const wg_option *table, const char **names, int n, int max)
{
    for (const wg_option *r = table; r && r->name && n < max; r++) names[n++] = r->name;
    names[n] = NULL;
    return n;
}

void wg_check_members(wg_checker *c, const json_t *object, const char *section, const char *of, const wg_option *table,
                      const char *selector, void *o)
{
    enum { MANY = 96 };
    const char *names[MANY + 1];
    int n = 0;
    const bool draft = selector && !strcmp(section, "draft");
    if (selector) names[n++] = selector;
    if (draft) names[n++] = wg_config_label_table->name;
    table_names(table, names, n, MANY);
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)object, key, v) {
        char path[256], hint[512];
        if ((selector && !strcmp(key, selector)) || (draft && !strcmp(key, wg_config_label_table->name))) continue;
        const wg_option *row = wg_option_find(table, key);
        snprintf(path, sizeof path, "%s.%s", section, key);
        if (row) check_value(c, path, row, v, o);
        else
            wg_problem(c, path, true, "unknown key \"%.60s\" in \"%s\"%s%s", key, section, of,
                       wg_suggestion(key, names, hint, sizeof hint));
    }
}

/* `draft` and `verify`: the class by its name, then its options. object == NULL: the section is absent, which means its
 * defaults. */
static void check_kind(wg_checker *c, const wg_config_section *s, const json_t *object, wg_cell *cell)
{
    const bool drafter = *s->selector == 'k';
    const json_t *v = json_object_get(object, s->selector);
    const char *name = drafter ? "none" : "rejection";
    char path[64], of[96], is[128];
    wg_error e;
    if (!v && !c->in_cell && json_object_size(object) > 0) return; /* the sweep sets the kind whose options these are */
    snprintf(path, sizeof path, "%s.%s", s->name, s->selector);
    if (v && !json_is_string(v)) {
        wg_problem(c, path, false, "%s: expected a name, got %s", path, got(v, is, sizeof is));
        return;
    }
    if (v) name = json_string_value(v);
    if (drafter ? wg_find_drafter(c->plugins, name, &cell->drafter, &e) : wg_find_rule(c->plugins, name, &cell->named, &e)) {
        wg_problem(c, path, false, "%s: %s", path, e.text);
        return;
    }
    const wg_option *table = drafter ? cell->drafter->options : cell->named->options;
    const size_t size = drafter ? cell->drafter->size : cell->named->size; /* a drafter's options lie inside its instance */
    void **o = drafter ? &cell->draft : &cell->verify;
    *o = wg_calloc(1, size + 1);
    if (!*o) {
        c->failed = wg_nomem(&c->err, size, "options");
        return;
    }
    wg_option_defaults(table, *o);
    const json_t *label = drafter ? json_object_get(object, wg_config_label_table->name) : NULL;
    if (label) check_value(c, "draft.label", wg_config_label_table, label, &cell->named_by);
    snprintf(of, sizeof of, " of %s \"%s\"", drafter ? "drafter" : "rule", name);
    if (object) wg_check_members(c, object, s->name, of, table, s->selector, *o);
}

static const wg_config_section *find_section(const char *name)
{
    for (const wg_config_section *s = wg_config_sections + 1; s->name; s++)
        if (!strcmp(s->name, name)) return s;
    return NULL;
}

void wg_check_values(wg_checker *c, const json_t *root, wg_cell *cell)
{
    const char *names[32], *key;
    char is[128], hint[512];
    int n = table_names(top_options, names, 0, 16);
    for (const wg_config_section *s = wg_config_sections; s->name; s++) {
        if (s->table) wg_option_defaults(s->table, (char *)cell + s->at);
        if (*s->name) names[n++] = s->name;
    }
    names[n++] = "sweep";
    names[n] = NULL;
    json_t *v;
    json_object_foreach((json_t *)root, key, v) {
        const wg_config_section *s = find_section(key);
        const wg_option *row = wg_option_find(top_options, key);
        if (row) check_value(c, key, row, v, &cell->top);
        else if (s && json_is_string(v) && *json_string_value(v) == '@')
            continue; /* an unresolved reference, already
                                                                                    * reported */
        else if (s && !json_is_object(v))
            wg_problem(c, key, false, "%s: expected an object, got %s", key, got(v, is, sizeof is));
        else if (s && s->selector) check_kind(c, s, v, cell);
        else if (s) wg_check_members(c, v, s->name, "", s->table, NULL, (char *)cell + s->at);
        else if (strcmp(key, "sweep") != 0)
            wg_problem(c, key, true, "unknown key \"%.60s\"%s", key, wg_suggestion(key, names, hint, sizeof hint));
    }
    for (const wg_config_section *s = wg_config_sections; s->name; s++)
        if (s->selector && !json_object_get(root, s->name)) check_kind(c, s, NULL, cell);
}

/* ---- whole cells ------------------------------------------------------------------------------------------------- */

static void check_model_file(wg_checker *c, const char *path, const char *file, const wg_target_options *opt, const char *what)
{
    char once[2 * WG_OPTION_STRING + 64];
    snprintf(once, sizeof once, "%d %d %d %s %s", (int)opt->external.kind, opt->need_tokenizer, opt->model.context,
             opt->quantize ? opt->quantize : "", file);
    if (!wg_first_time(c, "model", once)) return;
    wg_error e;
    wg_arch arch;
    const wg_status s = wg_target_probe(file, opt, &arch, &e);
    if (s == WG_ENOENT) {
        if (wg_is_of_option(c, path)) wg_problem(c, path, false, "%s: %s", path, e.text);
        else wg_problem(c, path, false, "%s: no such file: \"%s\" (%s; " WG_CONFIG_PATHS ")", path, file, what);
        c->missing++;
    } else if (s == WG_ENOMEM) c->failed = s, c->err = e;
    else if (s) wg_problem(c, path, false, "%s: %s", path, e.text);
}

/* A drafter with an option `model` requires it: the path of another weights file. */
static void check_draft_model(wg_checker *c, const wg_cell *cell)
{
    const wg_option *row = wg_option_find(cell->drafter->options, "model");
    if (!row || row->type != WG_OPT_STRING) return;
    const char *file = (const char *)cell->draft + row->at;
    const wg_option *how = wg_option_find(cell->drafter->options, "quantize");
    const wg_target_options as_draft = { .model = { .kv_type = WG_F16 },
                                         .quantize = how ? (const char *)cell->draft + how->at : NULL };
    if (*file) check_model_file(c, "draft.model", file, &as_draft, "the draft model");
    else wg_problem(c, "draft", false, "draft: drafter \"%s\" needs \"model\": %s", cell->drafter->name, row->doc);
}

/* Checks component drafters, which are specified inside options. */
static void check_inner(wg_checker *c, const wg_cell *cell)
{
    for (const wg_option *o = cell->drafter->options; o && o->name; o++) {
        const char *value = (const char *)cell->draft + o->at;
        char path[64];
        wg_error e;
        if (!wg_option_is(o, WG_NAMES_DRAFTERS) || !wg_first_time(c, "inner", value)) continue;
        snprintf(path, sizeof path, "draft.%s", o->name);
        const wg_status s = wg_component_check(c->plugins, cell->drafter->name, o->name, value, &e);
        if (s == WG_ENOMEM) c->failed = s, c->err = e;
        else if (s) wg_problem(c, *value ? path : "draft", false, "draft: %s", e.text);
    }
}

static bool same_prompts(const wg_config_prompts *a, const wg_config_prompts *b)
{
    return !strcmp(a->file, b->file) && !strcmp(a->category, b->category) && !strcmp(a->merge, b->merge) &&
           a->limit == b->limit && a->per_category == b->per_category && a->shuffle == b->shuffle &&
           a->keep_bytes == b->keep_bytes && a->turns == b->turns;
}

static void check_prompts(wg_checker *c, wg_cell *cell, wg_config *owner)
{
    const wg_config_prompts *p = &cell->prompts;
    char once[2000];
    for (wg_cell *o = owner->cell; o < cell; o++) {
        if (o->dataset < 0 || !same_prompts(&o->prompts, p)) continue;
        cell->dataset = o->dataset;
        return;
    }
    snprintf(once, sizeof once, "%s\n%s\n%s\n%d %d %d %d %d", p->file, p->category, p->merge, p->limit, p->per_category,
             p->shuffle, p->keep_bytes, p->turns);
    if (!wg_first_time(c, "prompts", once)) return;
    wg_error e;
    wg_dataset *d = NULL;
    const wg_dataset_options o = wg_prompt_options(p);
    const wg_status s = wg_dataset_open(&d, p->file, &o, &e);
    if (s == WG_ENOENT)
        wg_problem(c, "prompts.file", false, "prompts.file: no such file: \"%s\" (" WG_CONFIG_PATHS ")", p->file);
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

/* The vocabulary must have all tokens of the chat template; a model's own one must render, and with `turns` a second
 * question. */
void wg_check_chat(wg_checker *c, const wg_cell *cell, bool turns)
{
    char once[2 * WG_OPTION_STRING + 64];
    wg_chat chat = wg_prompt_chat(&cell->prompts, NULL);
    wg_weights *w = NULL;
    wg_tokenizer *t = NULL;
    wg_error e;
    if (chat.family == WG_CHAT_NONE) {
        if (*chat.system) wg_problem(c, "prompts.system", false, "prompts.system: needs \"chat\", the template that says it");
        return;
    }
    snprintf(once, sizeof once, "%d %d %s %s", chat.family, turns, cell->target.model, chat.date);
    if (!*cell->target.model || !wg_first_time(c, "chat", once)) return;
    if (wg_weights_open(&w, cell->target.model, &e) != WG_OK) return; /* reported where the file was checked */
    chat.model = w;
    wg_status s = wg_tokenizer_open(&t, w, &e);
    if (s == WG_OK) s = wg_chat_check(t, &chat, turns, &e);
    if (s == WG_ENOMEM) c->failed = s, c->err = e;
    else if (s) wg_problem(c, "prompts.chat", false, "prompts.chat: %s: %s", cell->target.model, e.text);
    wg_tokenizer_close(t);
    wg_weights_close(w);
}

/* A grammar or schema must open with the target's vocabulary. */
static void check_constraint(wg_checker *c, const wg_cell *cell)
{
    const wg_config_top *o = &cell->top;
    const char *key = *o->grammar ? "grammar" : "json_schema";
    char once[3 * WG_OPTION_STRING];
    wg_constrained by;
    wg_weights *w = NULL;
    wg_tokenizer *t = NULL;
    wg_error e;
    if (!*o->grammar && !*o->json_schema) return;
    if (*o->grammar && *o->json_schema) wg_problem(c, key, false, "grammar: give grammar or json_schema, not both");
    if (o->trace && !strcmp(trace_rows[o->trace_rows], "logits"))
        wg_problem(c, "trace_rows", false, "trace_rows: \"logits\" are those before the grammar; use \"exact\" with %s", key);
    snprintf(once, sizeof once, "%s\n%s\n%s", o->grammar, o->json_schema, cell->target.model);
    if (!*cell->target.model || !wg_first_time(c, "constraint", once)) return;
    if (wg_weights_open(&w, cell->target.model, &e) != WG_OK) return; /* reported where the file was checked */
    wg_status s = wg_tokenizer_open(&t, w, &e);
    if (s == WG_OK) {
        s = wg_constrained_open(&by, o->grammar, o->json_schema, t, wg_tokenizer_size(t), &e);
        wg_constrained_close(&by);
        if (s == WG_ENOMEM) c->failed = s, c->err = e;
        else if (s) wg_problem(c, key, false, "%s: %s", key, e.text);
    }
    wg_tokenizer_close(t);
    wg_weights_close(w);
}

static void check_name(wg_checker *c, const char *name)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (!*name) wg_problem(c, "name", false, "name: missing; it names the result folder");
    else if (*name == '.' || *name == '-' || name[strspn(name, legal)])
        wg_problem(c, "name", false, "name: \"%.60s\" cannot name a folder; expected letters, digits, '.', '_' and '-'", name);
}

/* The rule that runs: of `plugin` the object's, which is loaded. */
static void load_rule(wg_checker *c, wg_cell *cell)
{
    cell->verifier = cell->named;
    cell->verifier_options = cell->verify;
    if (cell->named != &wg_plugin_rule) return;
    wg_error e;
    wg_rule_choice *l = &cell->loaded;
    const wg_status s = wg_verifier_plugin_open(cell->verify, &l->class, &l->options, &l->object, &e);
    cell->verifier = s ? NULL : l->class;
    cell->verifier_options = l->options;
    if (s == WG_ENOMEM) c->failed = s, c->err = e;
    else if (s) wg_problem(c, "verify", false, "verify: %s", e.text);
}

static void check_target(wg_checker *c, const wg_cell *cell)
{
    wg_error device, kind;
    if (wg_target_kind_check(&cell->target, &kind)) wg_problem(c, "target", false, "%s", kind.text);
    if (wg_device_name_check(cell->target.device, &device)) wg_problem(c, "target.device", false, "target.%s", device.text);
    const wg_target_options as_target = { .quantize = cell->target.quantize,
                                          .need_tokenizer = true,
                                          .model = { .kv_type = WG_F16, .context = cell->target.context },
                                          .external = { .kind = (wg_target_kind)cell->target.kind } };
    if (*cell->target.model) check_model_file(c, "target.model", cell->target.model, &as_target, "the target");
    else wg_problem(c, "target", false, "target.model: missing; it names the target's weights file");
}

void wg_check_engine(wg_checker *c, wg_cell *cell, bool target)
{
    if (target) check_target(c, cell);
    if (cell->drafter) check_draft_model(c, cell);
    if (cell->drafter) check_inner(c, cell);
    if (cell->named) load_rule(c, cell);
    if (cell->drafter && cell->verifier) {
        wg_error e;
        const unsigned laws = wg_drafter_laws(cell->drafter, cell->draft, &cell->sampling);
        const wg_status s = wg_check_laws(cell->drafter, laws, cell->verifier, c->plugins->verifiers, &e);
        if (s) wg_problem(c, "verify.rule", false, "verify.rule: %s", e.text);
    }
}

void wg_check_cell(wg_checker *c, wg_cell *cell, wg_config *owner)
{
    check_name(c, cell->top.name);
    wg_check_engine(c, cell, true);
    cell->dataset = -1;
    if (*cell->prompts.file) check_prompts(c, cell, owner);
    else wg_problem(c, "prompts", false, "prompts.file: missing; it names a JSONL file of prompts");
    if (wg_cell_law_only(cell) && cell->top.second_pass == WG_SECOND_PASS_ALWAYS)
        wg_problem(
            c, "second_pass", false,
            "second_pass: \"always\" compares two passes token by token, and a target of kind %s is equal in law only; leave "
            "it out",
            wg_target_kinds[cell->target.kind]);
    check_constraint(c, cell);
    wg_check_chat(c, cell, cell->dataset >= 0 && owner->dataset[cell->dataset]->turns > 1);
    if (cell->dataset >= 0 && (long)owner->dataset[cell->dataset]->questions * cell->top.repeats > REQUESTS_MAX)
        wg_problem(c, "repeats", false, "repeats: %d prompts x %d repeats are more than %d requests of a cell",
                   owner->dataset[cell->dataset]->questions, cell->top.repeats, REQUESTS_MAX);
}
