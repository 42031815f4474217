/* SPDX-License-Identifier: MIT
 * Merging (merge_shards.h). A shard's lines are in the order of its units, so for each unit of the whole run the next lines of
 * its owner are copied byte for byte. Lines are checked when they are summed. */
#include "experiments/run/merge_shards.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/program.h"
#include "experiments/base/json_diff.h"
#include "experiments/record/resume_cursor.h"
#include "experiments/run/runner.h"
#include "core/trace/trace.h"

typedef struct part {
    const char *dir;
    json_t *machine;
    wg_shard shard;
    wg_resume_cursor kept; /* offsets of its lines */
} part;

typedef struct merger {
    part *part; /* (n) ordered by number after the check; n is their count */
    int n;
    wg_config *config;
    wg_run_writer *record;
    wg_coverage *coverage; /* (config->n) */
    char *room;
    size_t size;
} merger;

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static wg_status open_part(part *p, const char *dir, wg_error *err)
{
    p->dir = dir;
    p->machine = wg_json_load(dir, "machine.json");
    const char *shard = json_string_value(json_object_get(p->machine, "shard"));
    if (!p->machine) return wg_fail(err, WG_EINVAL, "%s: no machine.json; expected the folder of a shard", dir);
    if (!shard || wg_shard_parse(&p->shard, shard, NULL) || !p->shard.count)
        return wg_fail(err, WG_EINVAL, "%s: this is a whole run, not a shard (machine.json has no \"shard\")", dir);
    if (!wg_resume_finished(dir))
        return wg_fail(err, WG_EINVAL, "%s: shard %s is not finished; %s run CONFIG --resume --shard %s --out '%s' goes on",
                       dir, shard, wg_program(), shard, dir);
    return WG_OK;
}

/* Checks that one member of machine.json is equal in both. */
static wg_status same(const part *a, const part *b, const char *what, const char *key, wg_error *err)
{
    char text[700];
    json_t *x = json_pack("{s:O?}", key, json_object_get(a->machine, key));
    json_t *y = json_pack("{s:O?}", key, json_object_get(b->machine, key));
    const json_t *both[2] = { y, x };
    json_t *diff = wg_json_diff(both, 2);
    const bool equal = diff && json_array_size(diff) == 0;
    if (diff) wg_json_diff_text(diff, text, sizeof text);
    json_decref(diff);
    json_decref(x);
    json_decref(y);
    if (!diff) return wg_nomem(err, 1, "a comparison");
    return equal ? WG_OK
                 : wg_fail(err, WG_EINVAL, "%s and %s are not parts of one run: %s differ: %s", a->dir, b->dir, what, text);
}

/* Sorts the shards by number; missing and duplicate ones are reported. */
static wg_status order(merger *m, wg_error *err)
{
    const int count = m->part[0].shard.count;
    char missing[300] = "";
    part *sorted = wg_calloc((size_t)count, sizeof *sorted);
    if (!sorted) return wg_nomem(err, (size_t)count * sizeof *sorted, "shards");
    wg_status s = WG_OK;
    for (int i = 0; i < m->n && !s; i++) {
        const part *p = &m->part[i];
        part *to = p->shard.count == count ? &sorted[p->shard.index - 1] : NULL;
        if (!to)
            s = wg_fail(err, WG_EINVAL, "%s is shard %d/%d, but %s is one of %d", p->dir, p->shard.index, p->shard.count,
                        m->part[0].dir, count);
        else if (to->dir)
            s = wg_fail(err, WG_EINVAL, "shard %d/%d is there twice: %s and %s", p->shard.index, count, to->dir, p->dir);
        else *to = *p;
    }
    int lost = 0;
    for (int i = 0; i < count && !s; i++) {
        if (sorted[i].dir) continue;
        const size_t at = strlen(missing);
        if (lost++ < 40) snprintf(missing + at, sizeof missing - at, "%s%d", at ? ", " : "", i + 1);
    }
    if (!s && lost)
        s = wg_fail(err, WG_EINVAL, "%d of %d shards missing: %s%s", lost, count, missing, lost > 40 ? ", ..." : "");
    if (s) {
        wg_free(sorted);
        return s;
    }
    wg_free(m->part);
    m->part = sorted;
    return WG_OK;
}

/* Checks everything on which results depend. */
static wg_status same_run(const part *a, const part *b, wg_error *err)
{
    WG_TRY(same(a, b, "configs", "config_sha256", err));
    WG_TRY(same(a, b, "programs", "program", err));
    return same(a, b, "files (by SHA-256)", "files_sha256", err);
}

static wg_status check_parts(merger *m, const char *const *dir, wg_error *err)
{
    for (int i = 0; i < m->n; i++) WG_TRY(open_part(&m->part[i], dir[i], err));
    for (int i = 1; i < m->n; i++) WG_TRY(same_run(&m->part[0], &m->part[i], err));
    return order(m, err);
}

/* Opens the config, which must resolve to the one that the shards ran. */
static wg_status open_config(merger *m, const wg_plugins *plugins, wg_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/config.json", m->part[0].dir);
    WG_TRY(wg_config_open(&m->config, path, NULL, 0, plugins, err));
    part here = { .dir = "this machine", .machine = wg_machine_json(m->config, NULL) };
    const wg_status s = here.machine ? same_run(&m->part[0], &here, err) : wg_nomem(err, 1, "machine.json");
    json_decref(here.machine);
    if (!s && m->config->top.trace == WG_TRACE_PROBS)
        return wg_fail(err, WG_EINVAL, "%s: traces of probabilities are not merged", path);
    return s;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Copies bytes from .. to-1 of a shard's file, which is opened each time, since there may be more shards than open files
 * allowed. */
static wg_status copy(merger *m, const part *p, bool steps, off_t from, off_t to, wg_error *err)
{
    char path[4096];
    size_t n = (size_t)(to - from), done = 0;
    if (n == 0) return WG_OK;
    if (n > m->size) {
        char *grown = wg_realloc(m->room, n, 1);
        if (!grown) return wg_nomem(err, n, "a line");
        m->room = grown;
        m->size = n;
    }
    snprintf(path, sizeof path, "%s/%s", p->dir, steps ? "steps.jsonl" : "requests.jsonl");
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    errno = fd < 0 ? errno : 0;
    for (ssize_t got = 1; fd >= 0 && done < n && got > 0; done += got > 0 ? (size_t)got : 0)
        got = pread(fd, m->room + done, n - done, from + (off_t)done);
    if (done < n) wg_fail(err, WG_EIO, "%s: cannot read: %s", path, errno ? strerror(errno) : "it became shorter");
    if (fd >= 0) close(fd);
    return done < n ? WG_EIO : wg_run_writer_lines(m->record, steps, m->room, n, err);
}

static wg_status copy_requests(merger *m, part *p, int n, wg_error *err)
{
    wg_resume_cursor *k = &p->kept;
    if (k->next + n > k->n) return wg_fail(err, WG_EFORMAT, "%s: requests are missing: there are %d whole ones", p->dir, k->n);
    const wg_resume_end from = wg_resume_cursor_end(k, k->next), to = wg_resume_cursor_end(k, k->next += n);
    WG_TRY(copy(m, p, false, from.requests, to.requests, err));
    return copy(m, p, true, from.steps, to.steps, err);
}

static wg_status deal(merger *m, wg_error *err)
{
    const wg_config *c = m->config;
    for (int g = 0; g < c->groups; g++) {
        const wg_group_shape shape = wg_group_shape_of(c, g);
        for (int repeat = 0; repeat < c->top.repeats; repeat++)
            for (int unit = 0; unit < shape.units; unit++) {
                part *p = &m->part[wg_shard_owner(&shape, g, unit, m->n) - 1];
                WG_TRY(copy_requests(m, p, wg_unit_requests(&shape, unit) * shape.arms, err));
            }
    }
    for (int i = 0; i < m->n; i++)
        if (m->part[i].kept.next != m->part[i].kept.n)
            return wg_fail(err, WG_EFORMAT, "%s: there are %d requests more than its share", m->part[i].dir,
                           m->part[i].kept.n - m->part[i].kept.next);
    return WG_OK;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

/* Whether all shards used the same prices, or none. */
static bool one_profile(const merger *m)
{
    const char *first = wg_json_word(m->part[0].machine, "profile");
    for (int i = 1; i < m->n; i++)
        if (strcmp(first, wg_json_word(m->part[i].machine, "profile")) != 0) return false;
    return true;
}

/* Copies profile.json of the first shard, if it is that of all. */
static wg_status copy_profile(const merger *m, const char *out, wg_error *err)
{
    char path[4096];
    json_t *v = one_profile(m) ? wg_json_load(m->part[0].dir, "profile.json") : NULL;
    snprintf(path, sizeof path, "%s/profile.json", out);
    const wg_status s = v ? wg_json_save(v, path, err) : WG_OK;
    json_decref(v);
    return s;
}

/* machine.json of the first shard, with the members that differ between machines listed. */
static json_t *merged_machine(const merger *m)
{
    json_t *v = json_copy(m->part[0].machine), *list = json_array();
    for (int i = 0; i < m->n; i++) {
        json_t *one = json_object();
        static const char *const keys[] = { "shard", "started", "resumed", "system", "cpu", "environment", "profile" };
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            json_t *its = json_object_get(m->part[i].machine, keys[k]);
            if (its) json_object_set(one, keys[k], its);
        }
        json_array_append_new(list, one);
    }
    json_object_del(v, "shard");
    if (!one_profile(m)) json_object_set_new(v, "profile", json_string("several"));
    json_object_set_new(v, "shards", list);
    return v;
}

/* Takes for each group the calibration of the first shard that has one. */
static json_t *merged_costs(const merger *m)
{
    json_t *all = json_array();
    for (int g = 0; g < m->config->groups; g++)
        for (int i = 0, found = 0; i < m->n && !found; i++) {
            json_t *costs = wg_json_load(m->part[i].dir, "cost.json"), *v;
            size_t k;
            json_array_foreach(costs, k, v)
                if (!found && json_integer_value(json_object_get(v, "group")) == g) found = json_array_append(all, v) == 0;
            json_decref(costs);
        }
    return all;
}

/* Adds a cell's coverage in one shard to the total. */
static bool add_coverage(wg_coverage *to, const json_t *overlap)
{
    const long long most = 1LL << 48; /* limit of tokens in all shards together */
    const json_int_t shared = json_integer_value(json_object_get(overlap, "shared")),
                     vocab = json_integer_value(json_object_get(overlap, "vocabulary")),
                     covered = json_integer_value(json_object_get(overlap, "text_shared")),
                     text = json_integer_value(json_object_get(overlap, "text_tokens"));
    if (shared < 0 || shared > vocab || vocab < 1 || vocab > INT32_MAX) return false;
    if (covered < 0 || covered > text || text > most) return false;
    if (to->vocab && (to->vocab != vocab || to->shared != shared)) return false;
    to->shared = (int)shared;
    to->vocab = (int)vocab;
    to->covered += covered;
    to->text += text;
    return to->text <= most;
}

static bool set_context(wg_coverage *to, const json_t *cell)
{
    const json_int_t context = wg_json_int(cell, "draft_context");
    if (context < 0 || context > INT32_MAX) return false;
    if (context) to->context = (int)context;
    return true;
}

/* Reads coverage from the shards, since only an open drafter knows its vocabulary and context, and none is opened here. */
static wg_status read_coverage(merger *m, wg_error *err)
{
    m->coverage = wg_calloc((size_t)m->config->n, sizeof *m->coverage);
    if (!m->coverage) return wg_nomem(err, (size_t)m->config->n * sizeof *m->coverage, "cells");
    for (int i = 0; i < m->n; i++) {
        json_t *summary = wg_json_load(m->part[i].dir, "summary.json");
        const json_t *cells = json_object_get(summary, "cells");
        bool ok = json_array_size(cells) == (size_t)m->config->n;
        for (int k = 0; k < m->config->n && ok; k++) {
            const json_t *cell = json_array_get(cells, (size_t)k), *overlap = json_object_get(cell, "overlap");
            ok = set_context(&m->coverage[k], cell) && (!overlap || add_coverage(&m->coverage[k], overlap));
        }
        json_decref(summary);
        if (!ok)
            return wg_fail(err, WG_EFORMAT,
                           "%s/summary.json is not what this config's shards write (cells, overlap, draft_context)",
                           m->part[i].dir);
    }
    return WG_OK;
}

static wg_status write_folder(merger *m, const char *out, wg_error *err)
{
    json_t *machine = merged_machine(m), *costs = merged_costs(m);
    wg_status s = wg_run_writer_open(&m->record, out, m->config, machine, err);
    if (!s) s = copy_profile(m, out, err);
    if (!s && json_array_size(costs)) s = wg_run_writer_costs(m->record, costs, err);
    json_decref(machine);
    json_decref(costs);
    for (int i = 0; i < m->n && !s; i++) {
        wg_resume_cursor *k = &m->part[i].kept;
        s = wg_resume_cursor_open(k, m->part[i].dir, m->config->top.trace, false, err);
        if (k->file) fclose(k->file);
        k->file = NULL;
    }
    if (!s) s = deal(m, err);
    wg_run_writer_close(m->record);
    m->record = NULL;
    return s;
}

static void remove_folder(const char *out)
{
    static const char *const files[] = { "config.json",    "machine.json", "profile.json", "cost.json",
                                         "requests.jsonl", "steps.jsonl",  "summary.json" };
    char path[4096];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", out, files[i]);
        unlink(path);
    }
    rmdir(out);
}

static void close_merger(merger *m)
{
    for (int i = 0; m->part && i < m->n; i++) {
        json_decref(m->part[i].machine);
        wg_resume_cursor_close(&m->part[i].kept);
    }
    wg_free(m->part);
    wg_free(m->coverage);
    wg_free(m->room);
    wg_config_close(m->config);
}

wg_status wg_merge(const char *out, const char *const *dir, int n, const wg_plugins *plugins, wg_error *err)
{
    merger m = { .part = wg_calloc((size_t)n, sizeof *m.part), .n = n };
    wg_run run = { 0 };
    char *path = NULL;
    wg_status s = m.part ? check_parts(&m, dir, err) : wg_nomem(err, (size_t)n * sizeof *m.part, "shards");
    if (!s) s = open_config(&m, plugins, err);
    if (!s) s = read_coverage(&m, err);
    if (!s && access(out, F_OK) == 0) s = wg_fail(err, WG_EINVAL, "%s is there already; merge into a new folder", out);
    if (!s) {
        s = write_folder(&m, out, err);
        const wg_run_options add_up = { .out = out, .resume = true, .recorded = m.coverage };
        if (!s) s = wg_run_config(m.config, &add_up, &run, &path, err);
        if (s) remove_folder(out);
        wg_run_free(&run);
        wg_free(path);
    }
    close_merger(&m);
    return s;
}
