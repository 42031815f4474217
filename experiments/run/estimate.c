/* SPDX-License-Identifier: MIT
 * Memory from shapes, time from a probe. */
#include "experiments/run/estimate.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/file/model_name.h"
#include "experiments/base/once.h"
#include "experiments/run/runner.h"
#include "experiments/run/teacher_pass.h"
#include "experiments/run/trace_size.h"
#include "core/trace/trace.h"
#include "core/setup/target.h"

enum { REQUEST_BYTES = 1100, TOKEN_BYTES = 10, STEP_BYTES = 260 };

/* ---- memory ------------------------------------------------------------------------------------------------------ */

double wg_model_file_bytes(const char *model)
{
    struct stat st;
    char path[PATH_MAX];
    if (wg_model_path(model, path, NULL) || stat(path, &st)) return 0;
    DIR *d = S_ISDIR(st.st_mode) ? opendir(path) : NULL;
    if (!d) return (double)st.st_size;
    double sum = 0;
    for (const struct dirent *e; (e = readdir(d));) {
        char file[PATH_MAX];
        const int n = strstr(e->d_name, ".safetensors") ? snprintf(file, sizeof file, "%s/%s", path, e->d_name) : 0;
        if (n > 0 && (size_t)n < sizeof file && stat(file, &st) == 0) sum += (double)st.st_size;
    }
    closedir(d);
    return sum;
}

static const char *draft_model(const wg_cell *cell)
{
    const wg_option *row = wg_option_find(cell->setup.drafter->options, "model");
    return row && row->type == WG_OPT_STRING ? (const char *)cell->setup.draft + row->at : "";
}

/* What the cells before have seen: models of targets, groups, and pairs of models, for each of which teacher forcing opens an
 * engine that later cells of the group share (teacher_pass.h). */
typedef struct seen {
    json_t *target, *group, *pair;
} seen;

static seen seen_open(void) { return (seen){ json_object(), json_object(), json_object() }; }

static void seen_close(seen *s)
{
    json_decref(s->target);
    json_decref(s->group);
    json_decref(s->pair);
}

static bool first_of_group(seen *s, const wg_cell *cell)
{
    char key[16];
    snprintf(key, sizeof key, "%d", cell->group);
    return wg_once(s->group, key);
}

static bool first_pair(seen *s, const wg_cell *cell)
{
    char key[WG_OPTION_STRING + 64];
    snprintf(key, sizeof key, "%d %p %s", cell->group, (const void *)cell->setup.drafter, draft_model(cell));
    return !wg_teacher_unknown(cell) && wg_once(s->pair, key);
}

static double cache_bytes(const wg_arch *a, const wg_cell *cell, int longest)
{
    const int type = wg_kv_type_ids[cell->setup.target.kv_type];
    return (double)wg_kv_token_bytes(type, a->layers, a->kv_heads, a->head_dim) * wg_target_held(a, longest) *
           cell->setup.top.batch;
}

/* The bytes of the chat template, for an upper bound: a prompt has at most as many tokens as bytes, with the beginning token
 * and the template; a turn adds its answer. */
static size_t template_bytes(const wg_cell *cell)
{
    wg_weights *w = NULL;
    const bool own = cell->setup.prompts.chat == WG_CHAT_MODEL;
    if (own && wg_weights_open(&w, cell->setup.target.model, NULL) != WG_OK) return 0;
    const wg_chat chat = wg_setup_chat(&cell->setup.prompts, w);
    const size_t n = wg_chat_bytes(&chat);
    wg_weights_close(w);
    return n;
}

static int longest_sequence(const wg_config *c, const wg_cell *cell, const wg_arch *a)
{
    const wg_dataset *d = c->dataset[cell->dataset];
    const int context =
        cell->setup.target.context && cell->setup.target.context < a->context ? cell->setup.target.context : a->context;
    const size_t around = template_bytes(cell);
    double most = 1;
    for (int i = 0; i < d->n; i++) {
        double all = 1;
        for (int k = 0; k < d->prompt[i].turns; k++)
            all += (double)(wg_prompt_turn(&d->prompt[i], k).bytes + around) + cell->setup.top.max_tokens;
        most = fmax(most, all);
    }
    return most < context ? (int)most : context;
}

wg_status wg_estimate_memory(wg_memory *out, const wg_config *c, wg_error *err)
{
    seen before = seen_open();
    wg_arch target, draft = { 0 };
    const wg_cell *like = NULL; /* the cell whose target was read last */
    const char *drafted = "";   /* the draft model that was read last */
    wg_status s = WG_OK;
    *out = (wg_memory){ 0 };
    for (int i = 0; i < c->n && s == WG_OK; i++) {
        const wg_cell *cell = &c->cell[i];
        const double requests = (double)c->dataset[cell->dataset]->questions * c->top.repeats;
        const int arms = first_of_group(&before, cell) ? 2 : 1, pairs = first_pair(&before, cell); /* the baseline too */
        if (!like || memcmp(&like->setup.target, &cell->setup.target, sizeof like->setup.target) != 0)
            s = wg_target_probe(cell->setup.target.model,
                                &(wg_target_options){ .model = { .kv_type = WG_F16, .context = cell->setup.target.context },
                                                      .external = { .kind = (wg_target_kind)cell->setup.target.kind } },
                                &target, err);
        if (s) break;
        like = cell;
        const int longest = longest_sequence(c, cell, &target);
        if (wg_once(before.target, cell->setup.target.model) && !wg_setup_law_only(&cell->setup))
            out->target += wg_model_file_bytes(cell->setup.target.model);
        out->cache += (arms + pairs) * cache_bytes(&target, cell, longest);
        if (strcmp(draft_model(cell), drafted) != 0) {
            drafted = draft_model(cell);
            if (wg_target_probe(drafted, NULL, &draft, NULL)) draft = (wg_arch){ 0 };
        }
        if (*drafted && cell->setup.drafter->check_model) out->draft += (1 + pairs) * wg_model_file_bytes(drafted);
        else if (*drafted && draft.layers) {
            out->draft += (1 + pairs) * wg_model_file_bytes(draft_model(cell));
            out->cache += (1 + pairs) * cache_bytes(&draft, cell, longest);
        }
        out->disk += arms * requests *
                     (REQUEST_BYTES + (TOKEN_BYTES + (c->top.trace ? STEP_BYTES : 0)) * (double)cell->setup.top.max_tokens);
        if (c->top.trace == WG_TRACE_PROBS) /* a round emits a token at least */
            out->trace += requests * cell->setup.top.max_tokens * (STEP_BYTES + wg_trace_round_most(cell, target.vocab));
    }
    seen_close(&before);
    return s;
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static void remove_folder(const char *path)
{
    char file[512];
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));) {
        snprintf(file, sizeof file, "%.200s/%.255s", path, e->d_name);
        if (e->d_name[0] != '.') unlink(file);
    }
    if (d) closedir(d);
    rmdir(path);
}

/* Seconds per token of the cell and of its baseline, times the tokens of the whole run. */
static double extrapolate(const wg_config *c, const wg_run *run)
{
    /* taught, to_teach: tokens of a repeat's texts in the probe, and in the run */
    double seconds = 0, taught = 0, to_teach = 0, decode = 0, requests = 0, whole = 0;
    seen before = seen_open();
    for (int i = 0; i < c->n; i++) {
        const wg_result *r = &run->result[i];
        double own = 0, base = 0, tokens = 0, base_tokens = 0;
        for (int k = 0; k < r->pairs.n; k++) {
            own += r->pairs.seconds[k];
            tokens += r->pairs.tokens[k];
            base += r->pairs.base_seconds[k];
            base_tokens += r->pairs.base_tokens[k];
        }
        const wg_cell *cell = &c->cell[i];
        const double all = (double)c->dataset[cell->dataset]->questions * c->top.repeats * cell->setup.top.max_tokens;
        if (tokens > 0) seconds += own / tokens * all;
        const int arms = first_of_group(&before, cell) ? 2 : 1;
        if (base_tokens > 0 && arms == 2) seconds += base / base_tokens * all;
        if (first_pair(&before, cell)) taught += base_tokens, to_teach += all / c->top.repeats;
        for (int k = 0; k < r->pairs.n; k++) decode += r->pairs.seconds[k] + (arms == 2 ? r->pairs.base_seconds[k] : 0);
        requests += arms * (double)r->outputs;
        whole += arms * (double)c->dataset[cell->dataset]->questions * c->top.repeats;
    }
    seen_close(&before);
    if (taught > 0) seconds += run->teacher_pass / taught * to_teach;
    /* the seconds of the probe outside decoding, mostly prefill, per request; / 2: half of it is the warm-up */
    return seconds + fmax(0, (run->seconds - run->teacher_pass) / 2 - decode) / fmax(1, requests) * whole;
}

wg_status wg_estimate_time(double *seconds, const wg_config *c, const char *path, const char *const *set, int n_set,
                           wg_error *err)
{
    enum { MOST = 80 };
    static const char *const smaller[] = { "prompts.limit=2", "repeats=1", "max_tokens=16", "trace=none", "batch=1" };
    const char *all[MOST];
    int n = 0;
    for (int i = 0; i < n_set && n < MOST - 5; i++) all[n++] = set[i];
    for (int i = 0; i < 5; i++) all[n++] = smaller[i];
    wg_config *probe = NULL;
    if (wg_config_open(&probe, path, all, n, c->plugins, NULL) != WG_OK || probe->n != c->n) {
        wg_config_close(probe);
        return wg_fail(err, WG_EUNSUPPORTED,
                       "no estimate of the time: the sweep sets what a probe makes smaller (prompts, batch or length)");
    }
    const char *tmp = getenv("TMPDIR");
    char dir[200], *made = NULL;
    wg_run run;
    snprintf(dir, sizeof dir, "%.160s/wager-probe-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    wg_status s = mkdtemp(dir) ? WG_OK
                               : wg_fail(err, WG_EIO, "%s: cannot make a folder for the probe: %s; set TMPDIR to one with room",
                                         dir, strerror(errno));
    if (s == WG_OK) {
        const wg_run_options o = { .out = dir };
        s = wg_run_config(probe, &o, &run, &made, err);
        if (s == WG_OK) *seconds = extrapolate(c, &run);
        wg_run_free(&run);
        wg_free(made);
        remove_folder(dir);
    }
    wg_config_close(probe);
    return s;
}
