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
#include "core/base/mem.h"
#include "experiments/record/acceptance.h"
#include "experiments/record/resume_cursor.h"
#include "experiments/record/trace.h"

enum { PROMPT_DIGITS = 16 }; /* of the digest that tells prompts of several runs apart */

/* A file of lines: where the last whole line ends. */
typedef struct lines { char *path; int fd; off_t end; } lines;

struct wg_record {
    char *dir;
    lines requests, steps, rounds; /* rounds: trace.wgt, in records */
    bool trace, probs;
    double traced; /* seconds it took to write steps */
    wg_kept kept;
    json_t *machine; /* of a resumed run that has not recorded anything yet; else NULL */
};

/* ---- the folder -------------------------------------------------------------------------------------------------- */

/* mkdir -p. *made: the last part was not there before. */
static wg_status make_path(char *path, bool *made, wg_error *err)
{
    for (char *p = path + 1;; p++) {
        if (*p && *p != '/') continue;
        const char was = *p;
        *p = '\0';
        *made = mkdir(path, 0777) == 0;
        if (!*made && errno != EEXIST) {
            wg_fail(err, WG_EIO, "%s: cannot make this folder: %s; choose another with --out DIR", path, strerror(errno));
            return WG_EIO;
        }
        *p = was;
        if (!was) return WG_OK;
    }
}

/* A file that a killed process left half-written (core/base/save.c). */
static bool is_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && !strcmp(dot, ".part") && (strstr(name, ".json.") || strstr(name, ".jsonl."));
}

/* Empty, or with `resume` as a run of this config leaves it that was killed before its first request. */
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

static wg_status save(const wg_record *r, const char *file, const json_t *v, wg_error *err)
{
    char *path = join(r->dir, file);
    if (!path) return wg_nomem(err, 1, "a path");
    const wg_status s = wg_json_save(v, path, err);
    wg_free(path);
    return s;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* fresh: the file must not be there yet. The lock goes with the process: two of them never write one folder. */
static wg_status lines_open(lines *l, const char *dir, const char *file, bool fresh, wg_error *err)
{
    l->path = join(dir, file);
    if (!l->path) return wg_nomem(err, 1, "a path");
    l->fd = open(l->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (fresh ? O_EXCL : 0), 0666);
    if (l->fd < 0) return wg_fail(err, WG_EIO, "%s: cannot create: %s", l->path, strerror(errno));
    if (flock(l->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return WG_OK;
    return wg_fail(err, WG_EINVAL, "%s: another process is writing this run; wait for it, or stop it", l->path);
}

/* Everything behind `end` goes. */
static wg_status lines_cut(lines *l, off_t end, wg_error *err)
{
    l->end = end;
    return ftruncate(l->fd, end) == 0 ? WG_OK : wg_fail(err, WG_EIO, "%s: cannot cut: %s", l->path, strerror(errno));
}

/* All of text or nothing of it. */
static wg_status lines_append(lines *l, const char *text, size_t n, wg_error *err)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t w = write(l->fd, text + done, n - done);
        if (w < 0 && errno == EINTR) continue;
        if (w <= 0) {
            const int why = w < 0 ? errno : ENOSPC;
            if (ftruncate(l->fd, l->end)) done = 0; /* the half line stays: readers skip a last line without an end */
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

/* Files that a killed process left half-written go. */
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

static wg_record *make_record(const wg_config *config)
{
    wg_record *r = wg_calloc(1, sizeof *r);
    if (!r) return NULL;
    r->trace = config->top.trace;
    r->probs = config->top.trace == WG_TRACE_PROBS;
    r->requests.fd = r->steps.fd = r->rounds.fd = -1;
    return r;
}

static wg_status begin(wg_record **out, const char *dir, const wg_config *config, const json_t *machine, bool resume,
                       wg_error *err)
{
    wg_record *r = make_record(config);
    if (!r) return wg_nomem(err, sizeof *r, "a result folder");
    r->dir = dir ? wg_strdup(dir) : default_folder(config);
    bool made = false;
    wg_status s = !r->dir    ? wg_nomem(err, 1, "a path")
                  : !*r->dir ? wg_fail(err, WG_EINVAL, "--out: the name of the folder is empty")
                             : WG_OK;
    if (s == WG_OK) s = make_path(r->dir, &made, err);
    if (s == WG_OK && !made) s = must_be_empty(r->dir, resume ? config : NULL, err);
    if (s == WG_OK && resume) sweep_out(r->dir);
    if (s == WG_OK) s = save(r, "config.json", config->resolved, err);
    if (s == WG_OK) s = save(r, "machine.json", machine, err);
    if (s == WG_OK) s = lines_open(&r->requests, r->dir, "requests.jsonl", true, err);
    if (s == WG_OK && r->trace) s = lines_open(&r->steps, r->dir, "steps.jsonl", true, err);
    if (s == WG_OK && r->probs) s = lines_open(&r->rounds, r->dir, "trace.wgt", true, err);
    if (s == WG_OK) *out = r;
    else wg_record_close(r);
    return s;
}

wg_status wg_record_open(wg_record **out, const char *dir, const wg_config *config, const json_t *machine, wg_error *err)
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

static wg_status reopen(wg_record *r, const wg_config *config, const json_t *machine, wg_error *err)
{
    WG_TRY(wg_resume_check(r->dir, config, machine, err));
    WG_TRY(lines_open(&r->requests, r->dir, "requests.jsonl", false, err));
    sweep_out(r->dir);
    WG_TRY(wg_kept_open(&r->kept, r->dir, r->trace, r->probs, err));
    if (r->trace) WG_TRY(lines_open(&r->steps, r->dir, "steps.jsonl", false, err));
    if (r->probs) WG_TRY(lines_open(&r->rounds, r->dir, "trace.wgt", false, err));
    const int n = r->kept.n;
    r->requests.end = n ? r->kept.requests_end[n - 1] : 0;
    r->steps.end = n ? r->kept.steps_end[n - 1] : 0;
    WG_TRY(lines_cut(&r->requests, r->requests.end, err));
    if (r->trace) WG_TRY(lines_cut(&r->steps, r->steps.end, err));
    if (r->probs) WG_TRY(lines_cut(&r->rounds, n ? r->kept.trace_end[n - 1] : 0, err));
    r->machine = json_incref((json_t *)machine);
    return WG_OK;
}

wg_status wg_record_resume(wg_record **out, const char *dir, const wg_config *config, const json_t *machine, wg_error *err)
{
    char *found = NULL;
    if (!dir) WG_TRY(wg_resume_find(&found, config, err));
    const char *at = dir ? dir : found;
    wg_status s = WG_OK;
    if (!is_file(at, "machine.json")) { /* nothing had begun */
        s = begin(out, at, config, machine, true, err);
    } else {
        wg_record *r = make_record(config);
        if (r) r->dir = wg_strdup(at);
        s = r && r->dir ? reopen(r, config, machine, err) : wg_nomem(err, 1, "a result folder");
        if (s) wg_record_close(r);
        else *out = r;
    }
    wg_free(found);
    return s;
}

int wg_record_left(const wg_record *r) { return r->kept.n - r->kept.next; }

wg_status wg_record_take(wg_record *r, wg_request *q, int max_tokens, wg_error *err)
{
    return wg_kept_take(&r->kept, q, max_tokens, err);
}

wg_status wg_record_cut(wg_record *r, wg_error *err)
{
    if (!r->machine) return WG_OK;
    WG_TRY(wg_resume_note(r->dir, r->machine, err));
    json_decref(r->machine);
    r->machine = NULL;
    r->kept.n = r->kept.next;
    WG_TRY(lines_cut(&r->requests, wg_kept_requests_end(&r->kept), err));
    if (r->trace) WG_TRY(lines_cut(&r->steps, wg_kept_steps_end(&r->kept), err));
    return r->probs ? lines_cut(&r->rounds, wg_kept_trace_end(&r->kept), err) : WG_OK;
}

void wg_record_close(wg_record *r)
{
    if (!r) return;
    wg_kept_close(&r->kept);
    json_decref(r->machine);
    lines_close(&r->requests);
    lines_close(&r->steps);
    lines_close(&r->rounds);
    wg_free(r->dir);
    wg_free(r);
}

const char *wg_record_path(const wg_record *r) { return r->dir; }

wg_status wg_record_lines(wg_record *r, bool steps, const char *text, size_t n, wg_error *err)
{
    return lines_append(steps ? &r->steps : &r->requests, text, n, err);
}

json_t *wg_record_machine(const char *dir)
{
    char *path = join(dir, "machine.json");
    json_t *v = path ? json_load_file(path, JSON_REJECT_DUPLICATES, NULL) : NULL;
    wg_free(path);
    return v;
}

json_t *wg_record_known_costs(const wg_record *r)
{
    char *path = join(r->dir, "cost.json");
    json_t *v = path ? json_load_file(path, 0, NULL) : NULL;
    wg_free(path);
    if (json_is_array(v)) return v;
    json_decref(v);
    return json_array();
}

wg_status wg_record_costs(wg_record *r, const json_t *groups, wg_error *err) { return save(r, "cost.json", groups, err); }

wg_status wg_record_summary(wg_record *r, const json_t *summary, wg_error *err)
{
    return save(r, "summary.json", summary, err);
}

/* ---- a request as JSON ------------------------------------------------------------------------------------------- */

json_t *wg_json_ms(double seconds) { return isfinite(seconds) ? json_real(round(seconds * 1e6) / 1e3) : json_null(); }

/* What stands at the head of both kinds of line. */
static json_t *identity(const wg_request *q)
{
    json_t *v = json_object();
    json_object_set_new(v, "arm", json_string(q->cell < 0 ? "baseline" : "cell"));
    json_object_set_new(v, "cell", q->cell < 0 ? json_null() : json_integer(q->cell));
    json_object_set_new(v, "group", json_integer(q->group));
    json_object_set_new(v, "prompt", json_integer(q->prompt));
    json_object_set_new(v, "turn", json_integer(q->turn));
    json_object_set_new(v, "repeat", json_integer(q->repeat));
    return v;
}

static json_t *phases_json(const wg_phases *p, double seconds)
{
    json_t *v = json_object();
    json_object_set_new(v, "draft", wg_json_ms(p->draft));
    json_object_set_new(v, "verify", wg_json_ms(p->verify));
    json_object_set_new(v, "accept", wg_json_ms(p->accept));
    json_object_set_new(v, "kv", wg_json_ms(p->kv));
    json_object_set_new(v, "other", wg_json_ms(seconds - p->draft - p->verify - p->accept - p->kv));
    return v;
}

/* vLLM's names for one request (metrics.speculative_decoding). */
static json_t *speculation_json(const wg_counts *c)
{
    json_t *v = json_object(), *offered = json_array(), *accepted = json_array();
    for (int d = 1; d < WG_TREE_MAX && c->offered_at[d]; d++) {
        json_array_append_new(offered, json_integer(c->offered_at[d]));
        json_array_append_new(accepted, json_integer(c->accepted_at[d]));
    }
    json_object_set_new(v, "num_spec_steps", json_integer(c->passes));
    json_object_set_new(v, "num_draft_tokens", json_integer(c->drafted));
    json_object_set_new(v, "num_accepted_draft_tokens", json_integer(c->accepted));
    json_object_set_new(v, "mean_acceptance_length",
                        c->passes ? json_real(1 + (double)c->accepted / (double)c->passes) : json_null());
    json_object_set_new(v, "draft_acceptance_rate",
                        c->drafted ? json_real((double)c->accepted / (double)c->drafted) : json_null());
    json_object_set_new(v, "acceptance_histogram", wg_acceptance_histogram(c));
    json_object_set_new(v, "offered_by_position", offered); /* ours from here */
    json_object_set_new(v, "accepted_by_position", accepted);
    json_object_set_new(v, "num_probe_rows", json_integer(c->probes));
    json_object_set_new(v, "alpha_sum", json_real(c->alpha_sum));
    json_object_set_new(v, "alpha_n", json_integer(c->alpha_n));
    json_object_set_new(v, "independent_sum", json_real(c->independent_sum));
    json_object_set_new(v, "independent_n", json_integer(c->independent_n));
    json_object_set_new(v, "alpha_star_sum", json_real(c->alpha_star_sum));
    json_object_set_new(v, "alpha_star_n", json_integer(c->alpha_star_n));
    return v;
}

/* vLLM's "detailed" fields: per step, so also which tokens of the output were drafted. */
static void add_steps(json_t *spec, const wg_request *q)
{
    json_t *accepted = json_array(), *drafted = json_array();
    for (int i = 0; i < q->steps; i++) {
        json_array_append_new(accepted, json_integer(q->step[i].accepted));
        json_array_append_new(drafted, json_integer(q->step[i].nodes - 1));
    }
    json_object_set_new(spec, "per_step_accepted", accepted);
    json_object_set_new(spec, "per_step_drafted", drafted);
    if (q->mixture.n == 0) return;
    json_t *part = json_array();
    for (int i = 0; i < q->steps; i++) {
        const int taken = q->step[i].mixture.taken;
        json_array_append_new(part, taken < 0 ? json_null() : json_integer(taken));
    }
    json_object_set_new(spec, "per_step_part", part);
}

/* By turns, how many bytes of the text were drafted and how many the target chose, for showing who wrote what. */
static json_t *drafted_bytes(const wg_request *q, const wg_tokenizer *tokenizer, wg_error *err)
{
    json_t *list = json_array();
    size_t done = 0;
    if (!list) wg_nomem(err, 1, "a text");
    for (int i = 0, token = 0; i < 2 * q->steps && list; i++) { /* a step's drafted tokens come before its own */
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

static wg_status output_json(json_t *v, const wg_request *q, const wg_tokenizer *tokenizer, wg_error *err)
{
    json_t *ids = json_array();
    for (int i = 0; i < q->n; i++) json_array_append_new(ids, json_integer(q->token[i]));
    json_object_set_new(v, "ids", ids);
    json_object_set_new(v, "output_sha256", json_string(q->sha256));
    if (!tokenizer) return WG_OK;
    char *text;
    size_t n;
    WG_TRY(wg_tokenizer_decode(tokenizer, q->token, (size_t)q->n, true, &text, &n, err));
    json_t *s = json_stringn(text, n); /* NULL when the bytes are not UTF-8: the ids say it all the same */
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
    char sha[WG_SHA256_HEX];
    json_t *v = identity(q);
    *out = v;
    json_object_set_new(v, "id", json_string(q->source->id));
    json_object_set_new(v, "category", json_string(q->source->category));
    json_object_set_new(v, "status", json_string(q->status ? "error" : "ok"));
    wg_prompt_digest(q->source, sha);
    json_object_set_new(v, "prompt_sha256", json_stringn(sha, PROMPT_DIGITS));
    json_object_set_new(v, "prompt_tokens", q->prompt_tokens ? json_integer(q->prompt_tokens) : json_null());
    if (q->status) {
        json_object_set_new(v, "error", json_sprintf("%s: %s", wg_status_name(q->status), q->error));
        return WG_OK;
    }
    json_object_set_new(v, "cached_tokens", json_integer(q->cached));
    json_object_set_new(v, "tokens", json_integer(q->n));
    json_object_set_new(v, "finish", json_string(q->finish == WG_FINISH_EOS ? "stop" : "length"));
    json_object_set_new(v, "prefill_ms", wg_json_ms(q->prefill));
    json_object_set_new(v, "ttft_ms", wg_json_ms(q->ttft));
    json_object_set_new(v, "tpot_ms", wg_json_ms(q->tpot));
    json_object_set_new(v, "decode_ms", wg_json_ms(q->decode));
    json_object_set_new(v, "forward_ms", wg_json_ms(q->forward));
    json_object_set_new(v, "joules", isfinite(q->joules) ? json_real(q->joules) : json_null());
    json_object_set_new(v, "phase_ms", phases_json(&q->phases, q->decode));
    wg_events_put(v, &q->events);
    json_object_set_new(v, "load", wg_load_json(&q->load));
    json_object_set_new(v, "speculative_decoding", speculation_json(&q->counts));
    if (q->step) add_steps(json_object_get(v, "speculative_decoding"), q);
    if (q->mixture.n) {
        json_object_set_new(v, "parts", wg_mixture_json(&q->mixture));
        json_object_set_new(v, "parts_held", json_integer(q->mixture.held));
    }
    json_object_set_new(v, "equals_baseline", q->cell < 0 || q->equals < 0 ? json_null() : json_boolean(q->equals));
    return output_json(v, q, tokenizer, err);
}

static wg_status append(lines *l, json_t *v, wg_error *err)
{
    char *text = wg_json_canonical(v, false);
    json_decref(v);
    if (!text) return wg_nomem(err, 1, "a line");
    const size_t n = strlen(text);
    text[n] = '\n'; /* over the NUL */
    const wg_status s = lines_append(l, text, n + 1, err);
    wg_free(text);
    return s;
}

double wg_record_traced(const wg_record *r) { return r->traced; }

long long wg_record_trace_end(const wg_record *r) { return r->rounds.end; }

wg_status wg_record_trace(wg_record *r, const void *bytes, size_t n, wg_error *err)
{
    return lines_append(&r->rounds, bytes, n, err);
}

wg_status wg_record_request(wg_record *r, const wg_request *q, const wg_tokenizer *tokenizer, wg_error *err)
{
    const double start = wg_clock_now();
    for (int i = 0; r->trace && i < q->steps; i++) { /* before their request: a request that is there has all its steps */
        const wg_step_record *t = &q->step[i];
        json_t *v = identity(q);
        json_object_set_new(v, "step", json_integer(i));
        json_object_set_new(v, "position", json_integer(t->position));
        json_object_set_new(v, "nodes", json_integer(t->nodes));
        json_object_set_new(v, "probes", json_integer(t->probes));
        json_object_set_new(v, "height", json_integer(t->height));
        json_object_set_new(v, "accepted", json_integer(t->accepted));
        json_object_set_new(v, "emitted", json_integer(t->emitted));
        json_object_set_new(v, "batch", json_integer(t->batch));
        wg_mixture_put_step(v, &t->mixture);
        json_object_set_new(v, "ms", wg_json_ms(t->seconds));
        json_object_set_new(v, "phase_ms", phases_json(&t->phases, t->seconds));
        WG_TRY(append(&r->steps, v, err));
    }
    r->traced += wg_clock_now() - start;
    json_t *v;
    const wg_status s = request_json(&v, q, tokenizer, err);
    if (!s && r->probs) json_object_set_new(v, "trace_end", json_integer(r->rounds.end));
    if (s) json_decref(v);
    return s ? s : append(&r->requests, v, err);
}
