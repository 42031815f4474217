/* SPDX-License-Identifier: MIT
 * wager check: reads an experiment like `run` and prints the plan of its run. It is also the dry run of `run`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/model/device.h"
#include "core/model/split.h"
#include "experiments/cli/cli.h"
#include "experiments/run/estimate.h"
#include "core/setup/spec.h"
#include "core/setup/target_ranks.h"
#include "experiments/run/preflight.h"

/* Prints the drafters that `auto` chooses among. */
static void print_choices(FILE *f, const wg_cell *cell)
{
    const wg_option *of = strcmp(cell->setup.drafter->name, "auto") ? NULL : wg_option_find(cell->setup.drafter->options, "of");
    if (of) fprintf(f, " (auto: at each round no draft, or one of: %s)", (const char *)cell->setup.draft + of->at);
}

/* "draft.length=4 verify.rule=match", or the drafter and rule of a config without a sweep. */
static void print_cell(FILE *f, int i, const wg_cell *cell)
{
    const char *key;
    json_t *v;
    fprintf(f, "  %3d ", i);
    if (json_object_size(cell->swept) == 0)
        fprintf(f, " draft.kind=%s verify.rule=%s", cell->setup.drafter->name, cell->setup.named->name);
    json_object_foreach(cell->swept, key, v) {
        char *text = json_is_string(v) ? wg_strdup(json_string_value(v)) : wg_json_canonical(v, false);
        fprintf(f, " %s=%s", key, text ? text : "?");
        wg_free(text);
    }
    print_choices(f, cell);
    fputc('\n', f);
}

/* What each rank of the first cell's target has. */
static void print_ranks(FILE *f, const wg_config *c, const wg_memory *m, const wg_run_held *held)
{
    const wg_setup_target *t = &c->cell[0].setup.target;
    const wg_target_options opt = wg_setup_target_options(t);
    wg_arch a;
    wg_rank_part part;
    wg_comm_spec where;
    if (held->ranks < 2 || wg_target_ranks(&opt, &where, NULL) || wg_target_probe(t->model, &opt, &a, NULL)) return;
    for (int r = 0; r < held->ranks; r++) {
        if (wg_rank_part_of(&part, &a, a.vocab, r, held->ranks, where.pipeline, NULL)) return;
        const int from = wg_rank_part_from(&part, WG_SPLIT_HEADS), n = wg_rank_part_n(&part, WG_SPLIT_HEADS);
        const int keys = wg_rank_part_kv(&part);
        const double cache = m->cache * keys / a.kv_heads * (part.layer_to - part.layer_from) / a.layers;
        fprintf(f, "rank %-4d layers %d to %d of %d, heads %d to %d of %d, %d of %d of keys\n", r, part.layer_from,
                part.layer_to - 1, a.layers, from, from + n - 1, a.heads, keys, a.kv_heads);
        fprintf(f, "          weights %.1f MB, of which a pass reads %.1f MB, caches at most %.1f MB\n",
                (double)held->rank[r].weights / 1e6, (double)held->rank[r].pass / 1e6, cache / 1e6);
    }
}

static void print_costs(FILE *f, const wg_config *c, double seconds, const wg_run_held *held)
{
    wg_memory m;
    if (wg_estimate_memory(&m, c, NULL) == WG_OK) {
        fprintf(f, "memory    weights %.1f MB", m.target / 1e6);
        if (m.draft > 0) fprintf(f, " and %.1f MB of draft models", m.draft / 1e6);
        fprintf(f, ", caches at most %.1f MB\ndisk      about %.1f MB\n", m.cache / 1e6, m.disk / 1e6);
        if (m.trace > 0) fprintf(f, "trace     at most %.1f MB\n", m.trace / 1e6);
        print_ranks(f, c, &m, held);
    }
    if (seconds >= 0)
        fprintf(f, "time      about %d:%02d:%02d, by a probe of two prompts\n", (int)seconds / 3600, (int)seconds / 60 % 60,
                (int)seconds % 60);
}

static void print_plan(FILE *f, const wg_config *c, double seconds, const wg_run_held *held, const char *warnings)
{
    int64_t requests = 0, tokens = 0;
    for (int i = 0; i < c->n; i++) {
        const int64_t n = (int64_t)c->dataset[c->cell[i].dataset]->questions * c->top.repeats;
        bool first = true; /* first cell of its group: the baseline runs once per group */
        for (int k = 0; k < i; k++) first = first && c->cell[k].group != c->cell[i].group;
        requests += n * (first ? 2 : 1);
        tokens += n * (first ? 2 : 1) * c->cell[i].setup.top.max_tokens;
    }
    fprintf(f, "%s (%s)\n", c->top.name, c->hash);
    if (*c->top.question) fprintf(f, "%s\n", c->top.question);
    fprintf(f, "\ntarget    %s, %.1f MB\n", c->cell[0].setup.target.model,
            wg_model_file_bytes(c->cell[0].setup.target.model) / 1e6);
    for (int i = 0; i < c->datasets; i++) {
        const wg_dataset *d = c->dataset[i];
        fprintf(f, "prompts   %s: %d", d->path, d->n);
        if (d->questions > d->n) fprintf(f, ", %d questions in up to %d turns", d->questions, d->turns);
        fputc('\n', f);
    }
    fprintf(f, "runs      %d cell%s, %d baseline%s, %d repeat%s: %" PRId64 " requests, at most %" PRId64 " tokens and passes\n",
            c->n, c->n == 1 ? "" : "s", c->groups, c->groups == 1 ? "" : "s", c->top.repeats, c->top.repeats == 1 ? "" : "s",
            requests, tokens);
    print_costs(f, c, seconds, held);
    fputs(warnings, f);
    fputs("\ncells\n", f);
    for (int i = 0; i < c->n; i++) print_cell(f, i, &c->cell[i]);
}

wg_status wg_cli_print_plan(FILE *f, const wg_config *c, double seconds, bool open, wg_error *err)
{
    static const char before[] = "warning   ";
    wg_run_held held = { 0 };
    char *text = NULL;
    size_t n;
    FILE *m = open_memstream(&text, &n);
    if (!m) return wg_nomem(err, 1, "warnings");
    wg_preflight *own = open ? NULL : wg_calloc(1, sizeof *own);
    const wg_status s = open ? wg_run_open(c, m, before, &held, err) : own ? WG_OK : wg_nomem(err, sizeof *own, "warnings");
    if (own) wg_preflight_config(own, c), wg_preflight_print(m, own, before);
    wg_free(own);
    fclose(m);
    if (!s) print_plan(f, c, seconds, &held, text);
    free(text); /* allocated by open_memstream */
    return s;
}

int wg_cmd_check(int argc, char **argv)
{
    wg_flag_list set = { .n = 0 };
    bool json = false, probe = false, headers = false;
    const wg_flag flags[] = {
        { "probe", 0, WG_FLAG_BOOL, &probe, NULL, "run a few tokens of every cell and estimate the time of the experiment", 0,
          0 },
        { "headers", 0, WG_FLAG_BOOL, &headers, NULL, "read headers of models only; open no model, drafter or device", 0, 0 },
        { "set", 0, WG_FLAG_LIST, &set, "A.B=V", "override a value of the file (JSON, or text); may be repeated", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &json, NULL, "print the resolved config", 0, 0 },
        { NULL, 0, WG_FLAG_BOOL, NULL, NULL, NULL, 0, 0 },
    };
    const char *path;
    const int bad = wg_cli_parse("check", flags, argc, argv, &path, 1, 1);
    if (bad >= 0) return bad;
    wg_error err;
    wg_config *c;
    if (wg_config_open(&c, path, set.item, set.n, &wg_program_plugins, &err)) return wg_cli_fail(&err);
    double seconds = -1;
    int status = WG_EXIT_OK;
    if (probe && !json && wg_estimate_time(&seconds, c, path, set.item, set.n, &err)) status = wg_cli_fail(&err);
    if (json && !headers && wg_run_open(c, stderr, "warning: ", NULL, &err)) status = wg_cli_fail(&err);
    else if (json) wg_cli_put_json(json_incref(c->resolved), true);
    else if (status == WG_EXIT_OK && wg_cli_print_plan(stdout, c, seconds, !headers, &err)) status = wg_cli_fail(&err);
    wg_config_close(c);
    return status;
}
