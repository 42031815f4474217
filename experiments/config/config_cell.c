/* SPDX-License-Identifier: MIT
 * Checks of whole cells. All problems are collected; none stops the checks. */
#include "experiments/config/config_cell.h"

#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/trace/trace.h"

enum { REQUESTS_MAX = 1 << 24 }; /* most requests of a cell, each of which needs memory for its digest */

bool wg_config_of_all_cells(const char *option)
{
    static const char *const names[] = { "name",  "question",    "repeats", "trace",   "trace_rows", "trace_top",
                                         "alpha", "second_pass", "audit",   "profile", NULL };
    int i = 0;
    while (names[i] && strcmp(names[i], option) != 0) i++;
    return names[i] != NULL;
}

static bool same_prompts(const wg_setup_prompts *a, const wg_setup_prompts *b)
{
    return !strcmp(a->file, b->file) && !strcmp(a->category, b->category) && !strcmp(a->merge, b->merge) &&
           a->limit == b->limit && a->per_category == b->per_category && a->shuffle == b->shuffle &&
           a->keep_bytes == b->keep_bytes && a->turns == b->turns;
}

static void check_prompts(wg_checker *c, wg_cell *cell, wg_config *owner)
{
    const wg_setup_prompts *p = &cell->setup.prompts;
    char once[2000];
    for (wg_cell *o = owner->cell; o < cell; o++) {
        if (o->dataset < 0 || !same_prompts(&o->setup.prompts, p)) continue;
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
}

void wg_check_cell(wg_checker *c, wg_cell *cell, wg_config *owner)
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
