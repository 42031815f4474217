/* SPDX-License-Identifier: MIT
 * Conversations that a target writes (conversations.h). The scheduler runs a batch of them; the question of a conversation is a
 * request, and its answer another one. Those that are done wait until all before them are, and are appended in order. */
#include "experiments/run/conversations.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/sched/sched.h"
#include "core/setup/spec.h"
#include "core/text/chat_template.h"
#include "draft/draft.h"
#include "experiments/config/dataset.h"
#include "kernels/philox.h"

#define QUESTION_MARK "QUESTION-OF-THE-USER"
enum { FILE_MAX = 1 << 30, AHEAD = 4, LEAST = 3, NOTHING = 1000, RIDE = 256, CHOICE = 12, CHOICE_WORD = 0x74616c6b };

typedef enum talk_state { FREE, ASKING, ANSWERING, WRITTEN } talk_state;

typedef struct talk {
    talk_state state;
    bool ended, whole; /* its request has ended; the last token drawn ends a text */
    uint64_t number;
    int32_t *id; /* (room) */
    int n, prompt, room;
    double temperature;
    wg_error why;
    bool failed;
} talk;

typedef struct ids {
    int32_t *id;
    size_t n;
} ids;

typedef struct writer {
    const wg_conversations_job *job;
    const wg_conversations_options *o;
    wg_engine *engine;
    wg_sched *sched;
    wg_dataset *seeds;
    ids *seed;      /* (seeds->n) the prompts of seeds up to the answer; of one that is too long n is 0 */
    ids head, tail; /* the template before a question, and between it and the answer */
    char *header;   /* the first line */
    int file;
    talk *talk; /* (window) conversation n is at n % window */
    int window, running;
    uint64_t next, done; /* the next number to begin, and to append */
    int nothing;         /* the last conversations that came to nothing */
    wg_conversations_count count;
    double begun, shown;
    long before; /* tokens when this process began */
} writer;

/* ---- the template */

static json_t *conversation_json(const char *system)
{
    json_t *messages = json_array();
    if (*system) json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "system", "content", system));
    json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "user", "content", QUESTION_MARK));
    return json_pack("{s:o, s:b}", "messages", messages, "add_generation_prompt", 1);
}

static wg_status part_ids(const writer *w, const wg_rendered *r, size_t from, size_t to, ids *out, wg_error *err)
{
    const wg_rendered part = { r->text + from, r->data + from, to - from };
    return wg_chat_template_ids(w->job->target->tokenizer, &part, &out->id, &out->n, err);
}

/* Sets head and tail from the template rendered around a mark. */
static wg_status split_template(writer *w, const wg_rendered *r, wg_error *err)
{
    const wg_target *t = w->job->target;
    const char *at = strstr(r->text, QUESTION_MARK);
    const size_t from = at ? (size_t)(at - r->text) : 0, to = from + strlen(QUESTION_MARK);
    if (at) {
        WG_TRY(part_ids(w, r, 0, from, &w->head, err));
        WG_TRY(part_ids(w, r, to, r->n, &w->tail, err));
    }
    if (w->head.n > 0 && w->tail.n > 0 && wg_tokenizer_is_control(t->tokenizer, w->tail.id[0])) return WG_OK;
    return wg_fail(err, WG_EINVAL,
                   "%s: its chat template does not end a question with a control token, so it cannot write one: set "
                   "conversations.magpie to 0 and name a file of prompts (seeds)",
                   t->path);
}

static wg_status open_template(writer *w, wg_error *err)
{
    wg_rendered r;
    if (w->o->magpie == 0) return WG_OK;
    json_t *data = conversation_json(w->o->system);
    if (!data) return wg_nomem(err, 1, "a conversation");
    wg_status s = wg_chat_template_render(w->job->target->weights, NULL, NULL, data, NULL, &r, err);
    json_decref(data);
    WG_TRY(s);
    s = split_template(w, &r, err);
    wg_rendered_free(&r);
    return s;
}

static wg_status open_seeds(writer *w, wg_error *err)
{
    if (!*w->o->seeds) return WG_OK;
    const wg_target *t = w->job->target;
    const wg_chat chat = { .family = WG_CHAT_MODEL, .system = w->o->system, .model = t->weights };
    WG_TRY(wg_dataset_open(&w->seeds, w->o->seeds, NULL, err));
    w->seed = wg_calloc((size_t)w->seeds->n, sizeof *w->seed);
    if (!w->seed) return wg_nomem(err, (size_t)w->seeds->n * sizeof *w->seed, "the prompts");
    for (int i = 0; i < w->seeds->n; i++) {
        const wg_turn turn = wg_prompt_turn(&w->seeds->prompt[i], 0);
        const wg_text text = { turn.text, turn.bytes };
        WG_TRY(wg_chat_encode(t->tokenizer, &chat, &text, 1, &w->seed[i].id, &w->seed[i].n, err));
        if (w->seed[i].n > (size_t)w->o->prompt) w->seed[i].n = 0;
    }
    return WG_OK;
}

/* ---- the file */

/* Sets what the target computes with, where it is not the usual. */
static void set_numerics(json_t *v, const wg_setup_target *how)
{
    if (*how->quantize) json_object_set_new(v, "quantize", json_string(how->quantize));
    if (wg_kv_type_ids[how->kv_type] != WG_F16) json_object_set_new(v, "kv_type", json_string(wg_kv_type_names[how->kv_type]));
}

static wg_status make_header(writer *w, wg_error *err)
{
    char digest[WG_SHA256_HEX];
    const wg_target *t = w->job->target;
    const wg_conversations_options *o = w->o;
    const char *name = strrchr(t->path, '/');
    wg_tokenizer_digest(t->tokenizer, digest);
    json_t *v = json_pack("{s:i, s:s, s:s, s:i, s:f, s:s, s:f, s:s, s:f, s:i, s:i, s:i, s:s}", "schema", 1, "tokenizer", digest,
                          "model", name ? name + 1 : t->path, "seed", o->seed, "magpie", o->magpie, "seeds",
                          w->seeds ? w->seeds->sha256 : "", "question_temperature", o->question_temperature, "temperature",
                          o->temperature, "top_p", o->top_p, "question", o->question, "prompt", o->prompt, "answer", o->answer,
                          "system", o->system);
    if (w->job->how) set_numerics(v, w->job->how);
    w->header = wg_json_canonical(v, false);
    json_decref(v);
    return w->header ? WG_OK : wg_nomem(err, 1, "a line");
}

static wg_status append(writer *w, const char *line, wg_error *err)
{
    const size_t n = strlen(line);
    for (size_t done = 0; done < n;) {
        const ssize_t k = write(w->file, line + done, n - done);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0)
            return wg_fail(err, WG_EIO, "%s: cannot write: %s; its whole lines are kept. Free some space, then go on",
                           w->job->path, strerror(k < 0 ? errno : ENOSPC));
        done += (size_t)k;
    }
    return WG_OK;
}

/* Counts the whole lines of the file behind its first, and cuts off what follows them. */
static wg_status read_lines(writer *w, const char *text, size_t bytes, wg_error *err)
{
    const char *line = text, *end;
    for (; (end = memchr(line, '\n', bytes - (size_t)(line - text))); line = end + 1) {
        if (line == text) {
            if ((size_t)(end - line) == strlen(w->header) && memcmp(line, w->header, (size_t)(end - line)) == 0) continue;
            return wg_fail(err, WG_EINVAL,
                           "%s: begins with\n  %.*s\nbut this config and target write\n  %s\nname another file in "
                           "data.conversations, or set conversations.tokens to 0 to train on this one",
                           w->job->path, (int)(end - line > 600 ? 600 : end - line), line, w->header);
        }
        json_t *v = json_loadb(line, (size_t)(end - line), 0, NULL);
        const json_int_t n = (json_int_t)json_array_size(json_object_get(v, "ids"));
        const json_int_t prompt = json_integer_value(json_object_get(v, "prompt"));
        const bool whole =
            json_is_object(v) && json_integer_value(json_object_get(v, "n")) == w->count.lines && prompt >= 0 && prompt <= n;
        json_decref(v);
        if (!whole)
            return wg_fail(err, WG_EFORMAT, "%s: line %ld is not conversation %ld; move the file away", w->job->path,
                           w->count.lines + 2, w->count.lines);
        w->count.lines++;
        w->count.conversations += n > 0;
        w->count.tokens += (long)(n - prompt);
    }
    if (ftruncate(w->file, (off_t)(line - text)) != 0)
        return wg_fail(err, WG_EIO, "%s: cannot cut a half line: %s", w->job->path, strerror(errno));
    return WG_OK;
}

static wg_status open_file(writer *w, wg_error *err)
{
    char *text;
    size_t bytes;
    const char *path = w->job->path;
    w->file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (w->file < 0) return wg_fail(err, WG_EIO, "%s: cannot create: %s", path, strerror(errno));
    if (flock(w->file, LOCK_EX | LOCK_NB) != 0)
        return wg_fail(err, WG_EINVAL, "%s: another process is writing conversations into it; wait for it, or stop it", path);
    WG_TRY(wg_read_file(path, FILE_MAX, &text, &bytes, err));
    const wg_status s = read_lines(w, text, bytes, err);
    const bool empty = !memchr(text, '\n', bytes);
    wg_free(text);
    WG_TRY(s);
    if (!empty) return WG_OK;
    WG_TRY(append(w, w->header, err));
    return append(w, "\n", err);
}

/* ---- conversations */

static double choice(const writer *w, uint64_t n, uint32_t which)
{
    const wg_philox p =
        wg_philox_at((uint64_t)w->o->seed, (uint32_t)n, (uint32_t)(n >> 32), CHOICE + (which << 8), CHOICE_WORD);
    return wg_philox_double(p.v[0], p.v[1]);
}

static void on_event(void *user, const wg_sched_event *e)
{
    talk *t = user;
    if (e->kind == WG_SCHED_ROUND)
        for (int i = 0; i < e->n && t->n < t->room; i++) t->id[t->n++] = e->token[i];
    if (e->kind == WG_SCHED_FAILED) {
        t->failed = true;
        t->why = *e->why;
    }
    if (e->kind != WG_SCHED_ENDED && e->kind != WG_SCHED_FAILED) return;
    t->whole = e->end == WG_SCHED_EOS || e->end == WG_SCHED_STOP;
    t->ended = true;
}

static wg_status submit(writer *w, talk *t, int most, double temperature, double top_p, bool question, wg_error *err)
{
    const wg_sampling sampling = WG_SAMPLING(temperature, 0, top_p, 0);
    const wg_sched_request r = { .token = t->id,
                                 .n = t->n,
                                 .max_new = most,
                                 .seed = (uint64_t)w->o->seed,
                                 .number = (uint32_t)t->number,
                                 .stop = w->tail.id,
                                 .stops = question ? 1 : 0,
                                 .how = { .sampling = &sampling },
                                 .on_event = on_event,
                                 .user = t };
    uint64_t id;
    t->ended = false;
    return wg_sched_submit(w->sched, &r, &id, err);
}

static wg_status answer(writer *w, talk *t, wg_error *err)
{
    t->prompt = t->n;
    t->state = ANSWERING;
    return submit(w, t, w->o->answer, t->temperature, w->o->top_p, false, err);
}

static void put(talk *t, const ids *from)
{
    memcpy(t->id + t->n, from->id, from->n * sizeof *t->id);
    t->n += (int)from->n;
}

static void drop(writer *w, talk *t)
{
    t->n = t->prompt = 0;
    t->state = WRITTEN;
    w->running--;
}

static wg_status begin(writer *w, wg_error *err)
{
    talk *t = &w->talk[w->next % (uint64_t)w->window];
    t->number = w->next++;
    t->n = t->prompt = 0;
    t->temperature = w->o->temperatures[(int)(choice(w, t->number, 0) * w->o->n_temperatures)];
    w->running++;
    if (choice(w, t->number, 1) < w->o->magpie) {
        put(t, &w->head);
        t->state = ASKING;
        return submit(w, t, w->o->question, w->o->question_temperature, 1, true, err);
    }
    const ids *seed = &w->seed[(size_t)(choice(w, t->number, 2) * w->seeds->n)];
    if (seed->n == 0) {
        drop(w, t);
        return WG_OK;
    }
    put(t, seed);
    return answer(w, t, err);
}

/* Goes on with a conversation whose request has ended. A question that has no end of its own yields no conversation. */
static wg_status advance(writer *w, talk *t, wg_error *err)
{
    if (t->failed) {
        *err = t->why;
        return t->why.code;
    }
    if (t->state == ANSWERING) {
        t->state = WRITTEN;
        w->running--;
        return WG_OK;
    }
    const int drawn = t->n - (int)w->head.n;
    if (!t->whole || t->id[t->n - 1] != w->tail.id[0] || drawn <= LEAST) {
        drop(w, t);
        return WG_OK;
    }
    t->n--;
    put(t, &w->tail);
    return answer(w, t, err);
}

static wg_status append_talk(writer *w, const talk *t, wg_error *err)
{
    json_t *list = json_array();
    for (int i = 0; i < t->n; i++) json_array_append_new(list, json_integer(t->id[i]));
    json_t *v = json_pack("{s:I, s:o, s:i, s:f}", "n", (json_int_t)t->number, "ids", list, "prompt", t->prompt, "temperature",
                          t->temperature);
    char *line = wg_json_canonical(v, false);
    json_decref(v);
    if (!line) return wg_nomem(err, (size_t)t->n * 8, "a line");
    wg_status s = append(w, line, err);
    if (!s) s = append(w, "\n", err);
    wg_free(line);
    w->count.lines++;
    w->count.conversations += t->n > 0;
    w->count.tokens += t->n - t->prompt;
    return s;
}

static wg_status check_nothing(writer *w, const talk *t, wg_error *err)
{
    w->nothing = t->n ? 0 : w->nothing + 1;
    if (w->nothing < NOTHING) return WG_OK;
    return wg_fail(err, WG_EINVAL,
                   "%s: the last %d conversations came to nothing: questions of the target had no end within "
                   "conversations.question tokens (%d), or prompts of conversations.seeds more than conversations.prompt (%d); "
                   "raise these",
                   w->job->path, NOTHING, w->o->question, w->o->prompt);
}

static bool enough(const writer *w) { return w->count.tokens >= w->o->tokens; }

static wg_status flush(writer *w, wg_error *err)
{
    for (talk *t; !enough(w) && (t = &w->talk[w->done % (uint64_t)w->window])->state == WRITTEN; w->done++) {
        WG_TRY(append_talk(w, t, err));
        WG_TRY(check_nothing(w, t, err));
        t->state = FREE;
    }
    return WG_OK;
}

static void show(writer *w)
{
    const double now = wg_clock_now();
    if (now - w->shown < (w->job->progress ? 1 : 60)) return;
    w->shown = now;
    fprintf(stderr, "%s%ld conversations, %ld of %d tokens of answers, %.0f tok/s%s", w->job->progress ? "\r\x1b[K" : "",
            w->count.conversations, w->count.tokens, w->o->tokens, (double)(w->count.tokens - w->before) / (now - w->begun),
            w->job->progress ? "" : "\n");
    fflush(stderr);
}

static wg_status run(writer *w, wg_error *err)
{
    w->begun = w->shown = wg_clock_now();
    w->before = w->count.tokens;
    w->next = w->done = (uint64_t)w->count.lines;
    while (!enough(w)) {
        if (w->job->stop && *w->job->stop)
            return wg_fail(err, WG_EINTERRUPTED, "%s: stopped after %ld conversations, %ld of %d tokens of answers",
                           w->job->path, w->count.conversations, w->count.tokens, w->o->tokens);
        while (w->running < w->o->batch && w->next < w->done + (uint64_t)w->window) WG_TRY(begin(w, err));
        wg_sched_step(w->sched);
        for (int i = 0; i < w->window; i++) {
            talk *t = &w->talk[i];
            if ((t->state == ASKING || t->state == ANSWERING) && t->ended) WG_TRY(advance(w, t, err));
        }
        WG_TRY(flush(w, err));
        show(w);
    }
    return WG_OK;
}

/* ---- opening */

static wg_status open_talks(writer *w, wg_error *err)
{
    const int own = (int)w->head.n + w->o->question + (int)w->tail.n;
    const int room = (own > w->o->prompt ? own : w->o->prompt) + w->o->answer + 1;
    const int context = w->job->target->lm->context;
    if (room > context)
        return wg_fail(
            err, WG_EINVAL,
            "conversations have up to %d tokens, the context of %s %d: lower conversations.prompt, question or answer", room,
            w->job->target->path, context);
    w->window = AHEAD * w->o->batch;
    w->talk = wg_calloc((size_t)w->window, sizeof *w->talk);
    if (!w->talk) return wg_nomem(err, (size_t)w->window * sizeof *w->talk, "conversations");
    for (int i = 0; i < w->window; i++) {
        w->talk[i].room = room;
        w->talk[i].id = wg_alloc((size_t)room, sizeof *w->talk[i].id);
        if (!w->talk[i].id) return wg_nomem(err, (size_t)room * sizeof *w->talk[i].id, "a conversation");
    }
    wg_engine_parts parts = wg_target_engine_parts(w->job->target);
    const wg_engine_options e = { .max_batch = w->o->batch,
                                  .max_tokens = room,
                                  .ride_rows = RIDE,
                                  .seed = (uint64_t)w->o->seed,
                                  .sampling = WG_SAMPLING(1, 0, 1, 0) };
    parts.drafter = &wg_drafter_none;
    WG_TRY(wg_find_verifier(&wg_program_plugins, "match", &parts.verifier, err));
    WG_TRY(wg_engine_open(&w->engine, &parts, &e, err));
    return wg_sched_open(&w->sched, w->engine, &(wg_sched_options){ .queue = w->window, .no_draft = true }, err);
}

static void close_all(writer *w)
{
    wg_sched_close(w->sched);
    wg_engine_close(w->engine);
    for (int i = 0; w->talk && i < w->window; i++) wg_free(w->talk[i].id);
    for (int i = 0; w->seed && i < w->seeds->n; i++) wg_free(w->seed[i].id);
    if (w->file >= 0) close(w->file);
    wg_dataset_close(w->seeds);
    wg_free(w->talk), wg_free(w->seed), wg_free(w->head.id), wg_free(w->tail.id), wg_free(w->header);
}

wg_status wg_conversations_write(const wg_conversations_job *job, wg_conversations_count *out, wg_error *err)
{
    writer w = { .job = job, .o = job->options, .file = -1 };
    wg_status s = open_template(&w, err);
    if (!s) s = open_seeds(&w, err);
    if (!s) s = make_header(&w, err);
    if (!s) s = open_file(&w, err);
    if (!s && !enough(&w)) {
        s = open_talks(&w, err);
        if (!s) s = run(&w, err);
        if (job->progress) fputs("\r\x1b[K", stderr);
    }
    *out = w.count;
    close_all(&w);
    return s;
}
