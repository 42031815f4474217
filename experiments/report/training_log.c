/* SPDX-License-Identifier: MIT */
#include "experiments/report/training_log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/json_number.h"

enum { PATH = 1200, STUDENTS = 1024 };

static const char *at(const char *folder, const char *name, char path[PATH])
{
    snprintf(path, PATH, "%.1100s/%s", folder, name);
    return path;
}

bool wg_training_is_run(const char *folder)
{
    char path[PATH];
    return access(at(folder, "distill.jsonl", path), F_OK) == 0 || access(at(folder, "train.jsonl", path), F_OK) == 0;
}

/* ---- config and result */

static wg_status open_json(json_t **out, const char *path, wg_error *err)
{
    wg_json *doc;
    WG_TRY(wg_json_open(&doc, path, err));
    *out = json_incref(wg_json_root(doc));
    wg_json_close(doc);
    return WG_OK;
}

static const json_t *families_of(const wg_training_log *l) { return json_object_get(l->config, "students"); }

const char *wg_training_family(const wg_training_log *l, int family)
{
    if (!l->distilled) return wg_json_word(json_object_get(l->config, "output"), "name");
    return wg_json_word(json_array_get(families_of(l), (size_t)family), "name");
}

/* The entry of a list whose `name` is that. */
static const json_t *named(const json_t *list, const char *name)
{
    size_t i;
    json_t *o;
    json_array_foreach((json_t *)(uintptr_t)list, i, o)
        if (strcmp(wg_json_word(o, "name"), name) == 0) return o;
    return NULL;
}

const json_t *wg_training_family_result(const wg_training_log *l, int family)
{
    return named(json_object_get(l->result, "families"), wg_training_family(l, family));
}

static wg_status list_students(wg_training_log *l, const char *folder, wg_error *err)
{
    const json_t *seeds = json_object_get(l->config, "seeds");
    l->families = l->distilled ? (int)json_array_size(families_of(l)) : 1;
    l->alone = json_array_size(seeds) <= 1; /* as wg_distill_config names students */
    l->seeds = l->alone ? 1 : (int)json_array_size(seeds);
    l->students = l->families * l->seeds;
    l->planned = (int)wg_json_int(json_object_get(l->config, "train"), "steps");
    if (l->students < 1 || l->students > STUDENTS)
        return wg_fail(err, WG_EFORMAT, "%s/config.json: expected the resolved config of a training run, with 1 to %d students",
                       folder, (int)STUDENTS);
    l->student = wg_calloc((size_t)l->students, sizeof *l->student);
    if (!l->student) return wg_nomem(err, (size_t)l->students * sizeof *l->student, "a training log");
    for (int i = 0; i < l->students; i++) {
        wg_training_student *s = &l->student[i];
        const char *family = wg_training_family(l, i / l->seeds);
        s->family = i / l->seeds, s->seed = i % l->seeds;
        if (l->alone) snprintf(s->name, sizeof s->name, "%.80s", family);
        else
            snprintf(s->name, sizeof s->name, "%.70s-%lld", family,
                     (long long)json_integer_value(json_array_get(seeds, (size_t)s->seed)));
        s->result = named(json_object_get(l->result, "students"), s->name);
    }
    return WG_OK;
}

/* ---- the log */

static wg_training_student *student_of(const wg_training_log *l, const char *name)
{
    if (!l->distilled) return &l->student[0];
    for (int i = 0; i < l->students; i++)
        if (strcmp(l->student[i].name, name) == 0) return &l->student[i];
    return NULL;
}

static bool add(wg_training_curve *c, wg_training_point p)
{
    const int n = c->n;
    if ((n & (n - 1)) == 0) { /* room for 1, 2, 4 ... points */
        wg_training_point *more = wg_realloc(c->point, n ? 2 * (size_t)n : 1, sizeof *more);
        if (!more) return false;
        c->point = more;
    }
    c->point[c->n++] = p;
    return true;
}

static bool take_line(wg_training_log *l, const json_t *o)
{
    wg_training_student *s = student_of(l, wg_json_word(o, "student"));
    const bool held = json_object_get(o, "held_out") != NULL;
    wg_training_point p = { wg_json_measured(o, "step"), 0, wg_json_measured(o, held ? "held_out" : "loss"),
                            wg_json_measured(o, "alpha") };
    if (!s || !isfinite(p.step)) return true;
    const wg_training_curve *before = &s->steps;
    p.tokens = before->n ? before->point[before->n - 1].tokens : 0;
    if (held) return add(&s->held_out, p);
    p.tokens += wg_json_real(o, "rows");
    if (s == l->student) l->seconds += wg_json_real(o, "seconds");
    return add(&s->steps, p);
}

static wg_status read_log(wg_training_log *l, const char *path, wg_error *err)
{
    char line[4096];
    bool fits = true;
    FILE *f = fopen(path, "re");
    if (!f) return wg_fail(err, WG_EIO, "%s: cannot read: %s", path, strerror(errno));
    while (fits && fgets(line, sizeof line, f)) {
        json_t *o = json_loads(line, 0, NULL);
        if (o) fits = take_line(l, o);
        json_decref(o);
    }
    fclose(f);
    l->steps = l->student[0].steps.n;
    for (int i = 0; i < l->students; i++)
        if (l->student[i].steps.n < l->steps) l->steps = l->student[i].steps.n;
    return fits ? WG_OK : wg_nomem(err, sizeof(wg_training_point), "a training log");
}

wg_status wg_training_log_open(wg_training_log *out, const char *folder, wg_error *err)
{
    char path[PATH];
    wg_training_log l = { .distilled = access(at(folder, "distill.jsonl", path), F_OK) == 0 };
    wg_status s = open_json(&l.config, at(folder, "config.json", path), err);
    if (s == WG_OK && l.distilled && access(at(folder, "distill.json", path), F_OK) == 0) s = open_json(&l.result, path, err);
    if (s == WG_OK) s = list_students(&l, folder, err);
    if (s == WG_OK) s = read_log(&l, at(folder, l.distilled ? "distill.jsonl" : "train.jsonl", path), err);
    if (s) wg_training_log_close(&l);
    else *out = l;
    return s;
}

void wg_training_log_close(wg_training_log *l)
{
    for (int i = 0; i < l->students && l->student; i++) {
        wg_free(l->student[i].steps.point);
        wg_free(l->student[i].held_out.point);
    }
    wg_free(l->student);
    json_decref(l->config);
    json_decref(l->result);
    *l = (wg_training_log){ 0 };
}

int wg_training_means(const wg_training_log *l, int family, int less, bool alpha, wg_training_mean *out, int room)
{
    int n = room;
    for (int i = 0; i < l->students; i++)
        if (l->student[i].held_out.n < n) n = l->student[i].held_out.n;
    for (int k = 0; k < n; k++) {
        wg_training_mean m = { l->student[family * l->seeds].held_out.point[k].tokens, 0, INFINITY, -INFINITY };
        for (int seed = 0; seed < l->seeds; seed++) {
            const wg_training_point *a = &l->student[family * l->seeds + seed].held_out.point[k];
            double v = alpha ? a->alpha : a->loss;
            if (less >= 0) {
                const wg_training_point *b = &l->student[less * l->seeds + seed].held_out.point[k];
                v -= alpha ? b->alpha : b->loss;
            }
            m.value += v / l->seeds;
            m.least = fmin(m.least, v), m.most = fmax(m.most, v);
        }
        if (l->seeds == 1) m.least = m.most = NAN;
        out[k] = m;
    }
    return n;
}
