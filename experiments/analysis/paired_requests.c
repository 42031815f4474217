/* SPDX-License-Identifier: MIT
 * Common prompts by sorted keys; requests by merging sorted rows. */
#include "experiments/analysis/paired_requests.h"

#include <stdlib.h>

#include "core/base/mem.h"

/* ---- prompts in common ------------------------------------------------------------------------------------------- */

static int by_key(const void *x, const void *y)
{
    return wg_prompt_key_compare(*(const wg_prompt_key *const *)x, *(const wg_prompt_key *const *)y);
}

static const wg_prompt_key **sorted(const wg_run_reader *f)
{
    const wg_prompt_key **v = wg_alloc((size_t)f->n_asked, sizeof *v);
    for (int i = 0; v && i < f->n_asked; i++) v[i] = &f->asked[i];
    if (v) qsort(v, (size_t)f->n_asked, sizeof *v, by_key);
    return v;
}

/* Removes the common prompts that this run lacks. */
static bool keep(wg_common_prompts *c, const wg_run_reader *f)
{
    const wg_prompt_key **own = sorted(f);
    int kept = 0;
    for (int i = 0; own && i < c->n; i++)
        if (bsearch(&c->prompt[i], own, (size_t)f->n_asked, sizeof *own, by_key)) c->prompt[kept++] = c->prompt[i];
    c->n = kept;
    wg_free(own);
    return own;
}

static int *number_all(const wg_common_prompts *c, const wg_run_reader *f)
{
    int *number = wg_alloc((size_t)f->n_asked, sizeof *number);
    for (int i = 0; number && i < f->n_asked; i++) {
        const wg_prompt_key *key = &f->asked[i], **at = bsearch(&key, c->prompt, (size_t)c->n, sizeof *c->prompt, by_key);
        number[i] = at ? (int)(at - c->prompt) : -1;
    }
    return number;
}

bool wg_common_prompts_open(wg_common_prompts *c, const wg_run_sample *a, const wg_run_sample *b)
{
    const wg_run_sample *const sample[2] = { a, b };
    *c = (wg_common_prompts){ .prompt = sorted(a->run[0].folder), .n = a->run[0].folder->n_asked };
    bool ok = c->prompt;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < sample[k]->n && ok; i++) ok = keep(c, sample[k]->run[i].folder);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < sample[k]->n && ok; i++) ok = (c->number[k][i] = number_all(c, sample[k]->run[i].folder));
    c->only_a = a->run[0].folder->n_asked - c->n;
    c->only_b = b->run[0].folder->n_asked - c->n;
    return ok;
}

void wg_common_prompts_close(wg_common_prompts *c)
{
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < WG_COMPARE_MOST; i++) wg_free(c->number[k][i]);
    wg_free(c->prompt);
}

/* ---- requests in common ------------------------------------------------------------------------------------------ */

typedef struct row {
    int prompt, repeat, turn;
    const wg_entry *e;
} row;

typedef struct rows {
    row *row;
    int n, at; /* at: position of a merge */
} rows;

static int by_row(const void *x, const void *y)
{
    const row *a = x, *b = y;
    return a->prompt != b->prompt   ? (a->prompt > b->prompt) - (a->prompt < b->prompt)
           : a->repeat != b->repeat ? (a->repeat > b->repeat) - (a->repeat < b->repeat)
                                    : (a->turn > b->turn) - (a->turn < b->turn);
}

int wg_group_of_cell(const wg_run_reader *f, int cell)
{
    for (int i = 0; i < f->n; i++)
        if (f->entry[i].cell == cell) return f->entry[i].group;
    return -1;
}

/* The requests of a cell, or with cell -1 of a group's baseline, in order. */
static rows rows_of(const wg_run_reader *f, int cell, int group, const int *number)
{
    rows r = { .row = wg_alloc((size_t)f->n, sizeof *r.row) };
    for (int i = 0; r.row && i < f->n; i++) {
        const wg_entry *e = &f->entry[i];
        if (e->cell == cell && (cell >= 0 || e->group == group) && number[e->prompt] >= 0)
            r.row[r.n++] = (row){ number[e->prompt], e->repeat, e->turn, e };
    }
    if (r.row) qsort(r.row, (size_t)r.n, sizeof *r.row, by_row);
    return r;
}

/* The request with the same address; advances along the sorted rows. */
static const wg_entry *beside(rows *r, const row *want)
{
    while (r->at < r->n && by_row(&r->row[r->at], want) < 0) r->at++;
    return r->at < r->n && by_row(&r->row[r->at], want) == 0 && r->row[r->at].e->ok ? r->row[r->at].e : NULL;
}

/* Appends the pairs of one run of either sample. of: A's cell, B's, A's baseline, B's. */
static void merge(wg_paired_requests *p, rows of[4], int run)
{
    rows *x = &of[0], *y = &of[1];
    while (x->at < x->n || y->at < y->n) {
        const row *a = &x->row[x->at], *b = &y->row[y->at];
        const int order = x->at == x->n ? 1 : y->at == y->n ? -1 : by_row(a, b);
        if (order == 0 && a->e->ok && b->e->ok) {
            const wg_entry *base_a = beside(&of[2], a), *base_b = beside(&of[3], a);
            const bool both = base_a && base_b;
            p->pair[p->n++] = (wg_request_pair){ .prompt = a->prompt,
                                                 .run = run,
                                                 .a = a->e,
                                                 .b = b->e,
                                                 .base_a = both ? base_a : NULL,
                                                 .base_b = both ? base_b : NULL };
        } else if (order == 0) p->failed++;
        else p->unpaired++;
        x->at += order <= 0;
        y->at += order >= 0;
    }
}

static int by_prompt(const void *x, const void *y)
{
    const wg_request_pair *a = x, *b = y;
    return a->prompt != b->prompt ? (a->prompt > b->prompt) - (a->prompt < b->prompt)
           : a->run != b->run     ? (a->run > b->run) - (a->run < b->run)
                                  : (a->a->at > b->a->at) - (a->a->at < b->a->at);
}

bool wg_pair_requests(wg_paired_requests *p, const wg_common_prompts *c, const wg_run_sample *a, const wg_run_sample *b,
                      const int cell[2])
{
    size_t most = 0;
    for (int i = 0; i < a->n; i++) most += (size_t)a->run[i].folder->n;
    *p = (wg_paired_requests){ .pair = wg_alloc(most, sizeof *p->pair) };
    bool ok = p->pair;
    for (int i = 0; i < a->n && i < b->n && ok; i++) {
        const wg_run_reader *x = a->run[i].folder, *y = b->run[i].folder;
        const int *of_x = c->number[0][i], *of_y = c->number[1][i];
        rows of[4] = { rows_of(x, cell[0], 0, of_x), rows_of(y, cell[1], 0, of_y),
                       rows_of(x, -1, wg_group_of_cell(x, cell[0]), of_x), rows_of(y, -1, wg_group_of_cell(y, cell[1]), of_y) };
        for (int k = 0; k < 4; k++) ok = of[k].row && ok;
        if (ok) merge(p, of, i);
        for (int k = 0; k < 4; k++) wg_free(of[k].row);
    }
    if (ok && a->n > 1 && b->n > 1) qsort(p->pair, (size_t)p->n, sizeof *p->pair, by_prompt);
    return ok;
}
