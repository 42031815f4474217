/* SPDX-License-Identifier: MIT
 * Writing a result folder. */
#include "experiments/record/run_writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/make_path.h"
#include "core/base/mem.h"
#include "experiments/record/fields.h"
#include "experiments/record/line_sum.h"
#include "experiments/record/resume_cursor.h"
#include "core/trace/trace.h"

/* A file of lines; `end`: offset after the last complete line. */
typedef struct lines {
    char *path;
    int fd;
    off_t end;
} lines;

struct wg_run_writer {
    char *dir;
    lines requests, steps, rounds; /* rounds: trace.wgt, in records */
    bool trace, probs;
    double traced; /* seconds spent on writing steps */
    wg_resume_cursor kept;
    json_t *machine; /* of a resumed run that has written nothing yet; else NULL */
};

/* ---- the folder -------------------------------------------------------------------------------------------------- */

/* A file that a killed process left half-written (core/base/save.c). */
static bool is_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && !strcmp(dot, ".part") && (strstr(name, ".json.") || strstr(name, ".jsonl."));
}

/* Checks that the folder is empty, or with `resume` that a run of this config, killed before its first request, left it. */
static wg_status must_be_empty(const char *path, const wg_config *resume, wg_error *err)
{
    DIR *d = opendir(path);
    if (!d)
        return wg_fail(err, WG_EIO, "%s: cannot open this folder: %s; choose another with --out DIR", path, strerror(errno));
    const struct dirent *e;
    bool empty = true, run = false;
    while ((e = readdir(d))) {
        const char *name = e->d_name;
        const bool ours = resume && (is_part(name) || (!strcmp(name, "config.json") && wg_resume_same_config(path, resume)));
        empty = empty && (!strcmp(name, ".") || !strcmp(name, "..") || ours);
        run = run || !strcmp(name, "requests.jsonl");
    }
    closedir(d);
    if (run && !resume)
        return wg_fail(err, WG_EINVAL, "%s: there is a run in this folder; --resume goes on with it, --out DIR begins another",
                       path);
    return empty ? WG_OK : wg_fail(err, WG_EINVAL, "%s: the folder is not empty; a run needs one of its own (--out DIR)", path);
}

static char *default_folder(const wg_config *c)
{
    char host[256] = "", utc[64], path[1024], shard[WG_SHARD_TEXT + 8] = "";
    if (c->shard.count) snprintf(shard, sizeof shard, "-%dof%d", c->shard.index, c->shard.count);
    if (gethostname(host, sizeof host - 1) || !*host) snprintf(host, sizeof host, "localhost");
    for (char *p = host; *p; p++)
        if (*p == '/' || *p == '.') *p = '_';
    snprintf(path, sizeof path, "results/%s/%s-%s%s-%s", c->top.name, c->hash, host, shard, wg_clock_utc(utc, sizeof utc));
    return wg_strdup(path);
}

static char *join(const char *dir, const char *file)
{
    const size_t n = strlen(dir) + strlen(file) + 2;
    char *s = wg_alloc(n, 1);
    if (s) snprintf(s, n, "%s/%s", dir, file);
    return s;
}

typedef wg_status save_json(const json_t *v, const char *path, wg_error *err);

static wg_status save_as(const wg_run_writer *r, const char *file, const json_t *v, save_json *write, wg_error *err)
{
    char *path = join(r->dir, file);
    if (!path) return wg_nomem(err, 1, "a path");
    const wg_status s = write(v, path, err);
    wg_free(path);
    return s;
}

static wg_status save(const wg_run_writer *r, const char *file, const json_t *v, wg_error *err)
{
    return save_as(r, file, v, wg_json_save, err);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Opens and locks a file; the lock prevents two processes from writing one folder. fresh: it must not exist yet. */
static wg_status lines_open(lines *l, const char *dir, const char *file, bool fresh, wg_error *err)
{
    l->path = join(dir, file);
    if (!l->path) return wg_nomem(err, 1, "a path");
    l->fd = open(l->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (fresh ? O_EXCL : 0), 0666);
    if (l->fd < 0) return wg_fail(err, WG_EIO, "%s: cannot create: %s", l->path, strerror(errno));
    if (flock(l->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return WG_OK;
    return wg_fail(err, WG_EINVAL, "%s: another process is writing this run; wait for it, or stop it", l->path);
}

/* Cuts off the bytes after `end`. */
static wg_status lines_cut(lines *l, off_t end, wg_error *err)
{
    l->end = end;
    return ftruncate(l->fd, end) == 0 ? WG_OK : wg_fail(err, WG_EIO, "%s: cannot cut: %s", l->path, strerror(errno));
}

/* Appends the whole text, or nothing. */
static wg_status lines_append(lines *l, const char *text, size_t n, wg_error *err)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t w = write(l->fd, text + done, n - done);
        if (w < 0 && errno == EINTR) continue;
        if (w <= 0) {
            const int why = w < 0 ? errno : ENOSPC;
            /* the incomplete line stays, since readers skip a last line without an end */
            if (ftruncate(l->fd, l->end)) done = 0;
            return wg_fail(err, WG_EIO,
                           "%s: cannot write: %s; the requests before this one are kept, there is no summary. Free some "
                           "space (or raise the limit), or write elsewhere with --out DIR",
                           l->path, strerror(why));
        }
        done += (size_t)w;
    }
    l->end += (off_t)n;
    return WG_OK;
}

static void lines_close(lines *l)
{
    if (l->path && l->fd >= 0) close(l->fd);
    wg_free(l->path);
}

/* Removes the incomplete files that a killed process left. */
static void sweep_out(const char *dir)
{
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d));) {
        char *path = is_part(e->d_name) ? join(dir, e->d_name) : NULL;
        if (path) unlink(path);
        wg_free(path);
    }
    if (d) closedir(d);
}

static wg_status no_folder(const char *dir, wg_error *err)
{
    return wg_fail(err, WG_EIO, "%s: cannot make this folder: %s; choose another with --out DIR", dir, strerror(errno));
}

wg_status wg_run_writer_check(const char *dir, bool resume, wg_error *err)
{
    struct stat st;
    if (!dir) return WG_OK;
    if (!*dir) return wg_fail(err, WG_EINVAL, "--out: the name of the folder is empty");
    if (resume) return WG_OK;
    if (stat(dir, &st) == 0) return must_be_empty(dir, NULL, err);
    return wg_can_make_path(dir) ? WG_OK : no_folder(dir, err);
}

static wg_run_writer *make_record(const wg_config *config)
{
    wg_run_writer *r = wg_calloc(1, sizeof *r);
    if (!r) return NULL;
    r->trace = config->top.trace;
    r->probs = config->top.trace == WG_TRACE_PROBS;
    r->requests.fd = r->steps.fd = r->rounds.fd = -1;
    return r;
}

static wg_status begin(wg_run_writer **out, const char *dir, const wg_config *config, const json_t *machine, bool resume,
                       wg_error *err)
{
    wg_run_writer *r = make_record(config);
    if (!r) return wg_nomem(err, sizeof *r, "a result folder");
    r->dir = dir ? wg_strdup(dir) : default_folder(config);
    bool made = false;
    wg_status s = r->dir ? WG_OK : wg_nomem(err, 1, "a path");
    if (s == WG_OK && !wg_make_path(r->dir, &made)) s = no_folder(r->dir, err);
    if (s == WG_OK && !made) s = must_be_empty(r->dir, resume ? config : NULL, err);
    if (s == WG_OK && resume) sweep_out(r->dir);
    if (s == WG_OK) s = save(r, "config.json", config->resolved, err);
    if (s == WG_OK) s = save(r, "machine.json", machine, err);
    if (s == WG_OK) s = lines_open(&r->requests, r->dir, "requests.jsonl", true, err);
    if (s == WG_OK && r->trace) s = lines_open(&r->steps, r->dir, "steps.jsonl", true, err);
    if (s == WG_OK && r->probs) s = lines_open(&r->rounds, r->dir, "trace.wgt", true, err);
    if (s == WG_OK) *out = r;
    else wg_run_writer_close(r);
    return s;
}

wg_status wg_run_writer_open(wg_run_writer **out, const char *dir, const wg_config *config, const json_t *machine,
                             wg_error *err)
{
    return begin(out, dir, config, machine, false, err);
}

static bool is_file(const char *dir, const char *file)
{
    char *path = join(dir, file);
    const bool yes = path && access(path, F_OK) == 0;
    wg_free(path);
    return yes;
}

/* Cuts the files off after the first n requests. */
static wg_status cut_to(wg_run_writer *r, int n, wg_error *err)
{
    const wg_resume_end end = wg_resume_cursor_end(&r->kept, n);
    WG_TRY(lines_cut(&r->requests, end.requests, err));
    if (r->trace) WG_TRY(lines_cut(&r->steps, end.steps, err));
    return r->probs ? lines_cut(&r->rounds, end.trace, err) : WG_OK;
}

static wg_status reopen(wg_run_writer *r, const wg_config *config, const json_t *machine, wg_error *err)
{
    WG_TRY(wg_resume_check(r->dir, config, machine, err));
    WG_TRY(lines_open(&r->requests, r->dir, "requests.jsonl", false, err));
    sweep_out(r->dir);
    WG_TRY(wg_resume_cursor_open(&r->kept, r->dir, r->trace, r->probs, err));
    if (r->trace) WG_TRY(lines_open(&r->steps, r->dir, "steps.jsonl", false, err));
    if (r->probs) WG_TRY(lines_open(&r->rounds, r->dir, "trace.wgt", false, err));
    WG_TRY(cut_to(r, r->kept.n, err));
    r->machine = json_incref((json_t *)machine);
    return WG_OK;
}

wg_status wg_run_writer_resume(wg_run_writer **out, const char *dir, const wg_config *config, const json_t *machine,
                               wg_error *err)
{
    char *found = NULL;
    if (!dir) WG_TRY(wg_resume_find(&found, config, err));
    const char *at = dir ? dir : found;
    wg_status s = WG_OK;
    if (!is_file(at, "machine.json")) { /* the run had not begun */
        s = begin(out, at, config, machine, true, err);
    } else {
        wg_run_writer *r = make_record(config);
        if (r) r->dir = wg_strdup(at);
        s = r && r->dir ? reopen(r, config, machine, err) : wg_nomem(err, 1, "a result folder");
        if (s) wg_run_writer_close(r);
        else *out = r;
    }
    wg_free(found);
    return s;
}

int wg_run_writer_left(const wg_run_writer *r) { return r->kept.n - r->kept.next; }

wg_status wg_run_writer_take(wg_run_writer *r, wg_request *q, wg_error *err) { return wg_resume_cursor_take(&r->kept, q, err); }

wg_status wg_run_writer_cut(wg_run_writer *r, wg_error *err)
{
    if (!r->machine) return WG_OK;
    WG_TRY(wg_resume_note(r->dir, r->machine, err));
    json_decref(r->machine);
    r->machine = NULL;
    r->kept.n = r->kept.next;
    return cut_to(r, r->kept.n, err);
}

void wg_run_writer_close(wg_run_writer *r)
{
    if (!r) return;
    wg_resume_cursor_close(&r->kept);
    json_decref(r->machine);
    lines_close(&r->requests);
    lines_close(&r->steps);
    lines_close(&r->rounds);
    wg_free(r->dir);
    wg_free(r);
}

const char *wg_run_writer_path(const wg_run_writer *r) { return r->dir; }

wg_status wg_run_writer_lines(wg_run_writer *r, bool steps, const char *text, size_t n, wg_error *err)
{
    return lines_append(steps ? &r->steps : &r->requests, text, n, err);
}

json_t *wg_run_writer_machine(const char *dir) { return wg_json_load(dir, "machine.json"); }

json_t *wg_run_writer_known_costs(const wg_run_writer *r)
{
    json_t *v = wg_json_load(r->dir, "cost.json");
    if (json_is_array(v)) return v;
    json_decref(v);
    return json_array();
}

wg_status wg_run_writer_costs(wg_run_writer *r, const json_t *groups, wg_error *err)
{
    return save(r, "cost.json", groups, err);
}

wg_status wg_run_writer_summary(wg_run_writer *r, const json_t *summary, wg_error *err)
{
    return save_as(r, "summary.json", summary, wg_json_save_rows, err);
}

/* ---- a request as JSON ------------------------------------------------------------------------------------------- */

/* Alternating counts of bytes of the text that were drafted and that the target chose, for marking the parts. */
static json_t *drafted_bytes(const wg_request *q, const wg_tokenizer *tokenizer, wg_error *err)
{
    json_t *list = json_array();
    size_t done = 0;
    if (!list) wg_nomem(err, 1, "a text");
    for (int i = 0, token = 0; i < 2 * q->steps && list; i++) { /* the drafted tokens of a step come before the target's */
        const wg_step_record *t = &q->step[i / 2];
        token += i % 2 == 0 ? t->accepted : t->emitted - t->accepted;
        char *text;
        size_t n;
        if (wg_tokenizer_decode(tokenizer, q->token, (size_t)token, true, &text, &n, err)) {
            json_decref(list);
            return NULL;
        }
        wg_free(text);
        json_array_append_new(list, json_integer(n > done ? (json_int_t)(n - done) : 0));
        done = n > done ? n : done;
    }
    return list;
}

/* The members that need the tokenizer. */
static wg_status put_text(json_t *v, const wg_request *q, const wg_tokenizer *tokenizer, wg_error *err)
{
    char *text;
    size_t n;
    WG_TRY(wg_tokenizer_decode(tokenizer, q->token, (size_t)q->n, true, &text, &n, err));
    json_t *s = json_stringn(text, n); /* NULL: the bytes are not UTF-8; the ids remain */
    json_object_set_new(v, "text", s ? s : json_null());
    wg_free(text);
    if (!q->step) return WG_OK;
    json_t *bytes = drafted_bytes(q, tokenizer, err);
    if (!bytes) return WG_ENOMEM;
    json_object_set_new(v, "drafted_bytes", bytes);
    return WG_OK;
}

static wg_status request_json(json_t **out, const wg_request *q, const wg_tokenizer *tokenizer, wg_error *err)
{
    const unsigned ended = q->step ? WG_FIELD_OK | WG_FIELD_STEPPED : WG_FIELD_OK;
    json_t *v = *out = json_object();
    wg_fields_put(v, wg_request_fields, WG_FIELD_ADDRESS | WG_FIELD_ALWAYS | (q->status ? WG_FIELD_FAILED : ended), q);
    return q->status || !tokenizer ? WG_OK : put_text(v, q, tokenizer, err);
}

static wg_status append(lines *l, json_t *v, wg_error *err)
{
    char *text = wg_json_canonical(v, false);
    json_decref(v);
    if (!text) return wg_nomem(err, 1, "a line");
    size_t n;
    char *line = wg_line_sum_add(text, strlen(text), &n);
    const wg_status s = line ? lines_append(l, line, n, err) : wg_nomem(err, strlen(text), "a line");
    wg_free(line);
    wg_free(text);
    return s;
}

double wg_run_writer_traced(const wg_run_writer *r) { return r->traced; }

long long wg_run_writer_trace_end(const wg_run_writer *r) { return r->rounds.end; }

wg_status wg_run_writer_trace(wg_run_writer *r, const void *bytes, size_t n, wg_error *err)
{
    return lines_append(&r->rounds, bytes, n, err);
}

wg_status wg_run_writer_request(wg_run_writer *r, const wg_request *q, const wg_tokenizer *tokenizer, wg_error *err)
{
    const double start = wg_clock_now();
    for (int i = 0; r->trace && i < q->steps; i++) { /* before the request's line: so a request in the file has all its steps */
        json_t *v = json_object();
        wg_fields_put(v, wg_request_fields, WG_FIELD_ADDRESS, q);
        json_object_set_new(v, "step", json_integer(i));
        wg_fields_put(v, wg_step_fields, WG_FIELD_STEP, &q->step[i]);
        WG_TRY(append(&r->steps, v, err));
    }
    r->traced += wg_clock_now() - start;
    json_t *v;
    const wg_status s = request_json(&v, q, tokenizer, err);
    if (!s && r->probs) json_object_set_new(v, "trace_end", json_integer(r->rounds.end));
    if (s) json_decref(v);
    return s ? s : append(&r->requests, v, err);
}
