/* SPDX-License-Identifier: MIT
 * wager taps: writes the hidden states of texts as a dump (core/file/tap_dump.h), or describes one. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/file/tap_dump.h"
#include "core/model/taps.h"
#include "core/setup/conversation.h"
#include "core/setup/target.h"
#include "experiments/cli/cli.h"
#include "experiments/config/config.h"
#include "experiments/record/run_reader.h"

enum { TEXT_MOST = 256 << 20 };

typedef struct request {
    const char *model, *kind, *out, *prompts, *run, *tap_list, *layout, *type, *device, *kv_name, *chat_name, *system;
    wg_flag_list texts;
    wg_chat chat;
    long most, limit, threads, shard_mb;
    int kv_type;
    bool json, allow_nan;
} request;

/* ---- describing a dump */

/* Writes the taps of a sample as "0, 2, 4", or their number. */
static void taps_text(const int *tap, int n, int of_sample, char *text, size_t size)
{
    if (n == 0) snprintf(text, size, "%d tap%s (the layout does not say which)", of_sample, of_sample == 1 ? "" : "s");
    else snprintf(text, size, "taps");
    for (int i = 0; i < n; i++) {
        const size_t at = strlen(text);
        snprintf(text + at, size - at, "%s %d", i ? "," : "", tap[i]);
    }
}

typedef struct contents {
    int64_t samples, tokens, trained, dim;
    int tap[WG_DUMP_TAPS], taps, of_sample, type;
    bool losses;
} contents;

static wg_status check_dump(const char *path, wg_dump *d, contents *c, wg_error *err)
{
    c->samples = wg_dump_samples(d);
    c->taps = wg_dump_taps(d, c->tap);
    for (int64_t i = 0; i < c->samples; i++) {
        wg_dump_sample s;
        WG_TRY(wg_dump_sample_at(d, i, &s, err));
        if (i == 0) c->of_sample = s.taps, c->dim = s.dim, c->type = s.type;
        if (s.taps != c->of_sample || s.dim != c->dim || s.type != c->type)
            return wg_fail(err, WG_EFORMAT,
                           "%s: sample %" PRId64 " has %d taps of width %" PRId64 " in %s, the first %d of %" PRId64
                           " in %s; are these files of one dump?",
                           path, i, s.taps, s.dim, wg_type_name(s.type), c->of_sample, c->dim, wg_type_name(c->type));
        c->tokens += s.n;
        c->losses = s.loss != NULL;
        for (int64_t k = 0; s.loss && k < s.n; k++) c->trained += s.loss[k] != 0;
    }
    return WG_OK;
}

static void print_contents(const request *r, wg_dump_layout layout, const contents *c)
{
    char taps[8 * WG_DUMP_TAPS];
    taps_text(c->tap, c->taps, c->of_sample, taps, sizeof taps);
    if (!r->json) {
        printf("%s: %s, %" PRId64 " samples, %" PRId64 " tokens", r->model,
               layout == WG_DUMP_VLLM ? "hidden states as vLLM writes them" : "a DeepSpec cache", c->samples, c->tokens);
        if (c->losses) printf(" (%" PRId64 " trained on)", c->trained);
        printf(", %s, width %" PRId64 ", %s\n", taps, c->dim, wg_type_name(c->type));
        return;
    }
    json_t *list = json_array(), *o;
    for (int i = 0; i < c->taps; i++) json_array_append_new(list, json_integer(c->tap[i]));
    o = json_pack("{s:s, s:I, s:I, s:i, s:o, s:I, s:s}", "layout", wg_dump_layouts[layout], "samples", (json_int_t)c->samples,
                  "tokens", (json_int_t)c->tokens, "taps_of_token", c->of_sample, "taps", list, "dim", (json_int_t)c->dim,
                  "type", wg_type_name(c->type));
    if (c->losses) json_object_set_new(o, "trained_tokens", json_integer(c->trained));
    wg_json_put_line(o, 0);
}

static wg_status describe(const request *r, wg_error *err)
{
    wg_dump *d;
    contents c = { 0 };
    WG_TRY(wg_dump_open(&d, r->model, err));
    const wg_status s = check_dump(r->model, d, &c, err);
    if (!s) print_contents(r, wg_dump_layout_of(d), &c);
    wg_dump_close(d);
    return s;
}

/* ---- passes */

enum { PASS_ROWS = 64 };

typedef struct totals {
    long samples, tokens, cut; /* cut: samples that were longer than `most` */
} totals;

/* Runs passes without logits over the tokens of each text and writes their taps as they come. */
typedef struct dumper {
    wg_target *target;
    wg_dump_plan plan;
    wg_dump_writer *writer;
    wg_taps *taps;
    wg_kv *kv;
    wg_kv_seq *seq;
    wg_batch batch;
    float *x;      /* (PASS_ROWS, columns, dim) taps of a pass */
    uint8_t *loss; /* (most) */
    int most;
    totals totals;
} dumper;

/* Sets the usual taps, ascending and distinct. */
static void usual_taps(wg_dump_plan *p, int layers)
{
    const bool last = p->layout == WG_DUMP_VLLM;
    for (int tap = 0; tap <= layers; tap++)
        if (tap == 2 || tap == layers / 2 || tap == layers - 3 || (last && tap == layers)) p->tap[p->taps++] = tap;
}

/* Opens the plan's taps and, for a cache, the tap after the final norm. */
static wg_status open_taps(dumper *d, wg_error *err)
{
    wg_dump_plan *p = &d->plan;
    const int layers = d->target->lm->hidden.layers;
    int tap[WG_DUMP_TAPS + 1], n = p->taps;
    if (n == 0) usual_taps(p, layers), n = p->taps;
    memcpy(tap, p->tap, (size_t)n * sizeof *tap);
    for (int i = 0; i < n && p->layout == WG_DUMP_DEEPSPEC; i++)
        if (tap[i] > layers)
            return wg_fail(
                err, WG_EINVAL,
                "tap %d is behind the final norm: a DeepSpec cache has these states beside its taps, and no layer id "
                "for them; leave it out",
                tap[i]);
    if (p->layout == WG_DUMP_DEEPSPEC) tap[n++] = layers + 1;
    return wg_taps_open(&d->taps, d->target->lm, tap, n, err);
}

static wg_status open_rest(dumper *d, const char *dir, wg_error *err)
{
    const int room = d->most + PASS_ROWS;
    WG_TRY(open_taps(d, err));
    WG_TRY(wg_kv_open(&d->kv, 16, (room + 15) / 16 + 2, room, err));
    WG_TRY(wg_lm_attach(d->target->lm, d->kv, err));
    WG_TRY(wg_kv_seq_open(d->kv, &d->seq, err));
    WG_TRY(wg_batch_open(&d->batch, PASS_ROWS, err));
    d->plan.dim = wg_taps_dim(d->taps);
    const size_t floats = (size_t)PASS_ROWS * (size_t)wg_taps_count(d->taps) * (size_t)d->plan.dim;
    d->x = wg_alloc(floats, sizeof *d->x);
    d->loss = wg_alloc((size_t)d->most, 1);
    if (!d->x || !d->loss) return wg_nomem(err, floats * sizeof *d->x, "the hidden states of a pass");
    return wg_dump_create(&d->writer, dir, &d->plan, err);
}

/* NULL is fine; without finish only complete sample files remain. */
static void dumper_close(dumper *d)
{
    if (!d) return;
    wg_dump_abandon(d->writer);
    wg_free(d->loss);
    wg_free(d->x);
    wg_batch_close(&d->batch);
    wg_kv_seq_close(d->seq);
    wg_kv_close(d->kv);
    wg_taps_close(d->taps);
    wg_free(d);
}

/* plan->taps empty: 2, half of the layers, the last but two and, in the layout vllm, the last (those of EAGLE-3 heads). most:
 * most tokens of a sample, up to the target's context; 0: the context. The target is borrowed. Errors: those of wg_taps_open
 * and wg_dump_create; EINVAL: a tap that the layout lacks. */
static wg_status dumper_open(dumper **out, wg_target *target, const char *dir, const wg_dump_plan *plan, int most,
                             wg_error *err)
{
    dumper *d = wg_calloc(1, sizeof *d);
    if (!d) return wg_nomem(err, sizeof *d, "a dump of hidden states");
    d->target = target;
    d->plan = *plan;
    d->most = most && most < target->lm->context ? most : target->lm->context;
    const wg_status s = open_rest(d, dir, err);
    if (s == WG_OK) *out = d;
    else dumper_close(d);
    return s;
}

static wg_status run_passes(dumper *d, const int32_t *token, int n, wg_error *err)
{
    for (int first = 0, rows; first < n; first += rows) {
        rows = n - first < PASS_ROWS ? n - first : PASS_ROWS;
        WG_TRY(wg_kv_reserve(d->seq, rows, err));
        wg_batch_clear(&d->batch);
        wg_batch_chain(&d->batch, d->seq, first, token + first, rows, 0);
        d->batch.taps = d->taps;
        WG_TRY(wg_lm_forward(d->target->lm, &d->batch, NULL, err));
        wg_kv_commit_chain(d->seq, rows);
        WG_TRY(wg_taps_read(d->taps, 0, rows, d->x, err));
        WG_TRY(wg_dump_rows(d->writer, d->x, rows, err));
    }
    return WG_OK;
}

/* Adds a text of n tokens, of which those from `answer` on are for training. `name` is for messages. EINVAL: there are none. */
static wg_status dumper_add(dumper *d, const char *name, const int32_t *token, size_t n, size_t answer, wg_error *err)
{
    const int some = n > (size_t)d->most ? d->most : (int)n;
    if (n == 0) return wg_fail(err, WG_EINVAL, "%s: the text has no tokens", name);
    for (int i = 0; i < some; i++) d->loss[i] = (size_t)i >= answer;
    WG_TRY(wg_dump_begin(d->writer, token, d->loss, some, err));
    const wg_status s = run_passes(d, token, some, err);
    wg_kv_rollback(d->seq);
    wg_kv_truncate(d->seq, 0);
    WG_TRY(s);
    d->totals.samples++;
    d->totals.tokens += some;
    d->totals.cut += n > (size_t)some;
    return wg_dump_end(d->writer, err);
}

static wg_status dumper_finish(dumper *d, totals *out, wg_error *err)
{
    wg_dump_writer *w = d->writer;
    d->writer = NULL;
    *out = d->totals;
    return wg_dump_finish(w, err);
}

/* ---- texts */

static wg_status add_file(dumper *d, const wg_target *t, const char *path, wg_error *err)
{
    char *bytes;
    int32_t *token = NULL;
    size_t n_bytes, n = 0;
    WG_TRY(wg_read_file(path, TEXT_MOST, &bytes, &n_bytes, err));
    wg_status s = wg_tokenizer_encode(t->tokenizer, bytes, n_bytes, true, false, &token, &n, err);
    wg_free(bytes);
    if (s == WG_OK) s = dumper_add(d, path, token, n, 0, err);
    wg_free(token);
    return s;
}

/* Adds the prompt and, if there is one, the answer of a line of a run. */
static wg_status add_prompt(dumper *d, const request *r, const wg_target *t, const wg_prompt *p, const json_t *line,
                            wg_error *err)
{
    wg_chat chat = r->chat;
    const wg_text text = { p->text, p->bytes };
    const json_t *ids = json_object_get(line, "ids");
    const size_t answer = json_array_size(ids);
    const long asked = (long)json_integer_value(json_object_get(line, "prompt_tokens"));
    int32_t *token;
    size_t n;
    chat.model = t->weights;
    WG_TRY(wg_chat_encode(t->tokenizer, &chat, &text, 1, &token, &n, err));
    wg_status s = WG_OK;
    if (line && (long)n != asked)
        s = wg_fail(err, WG_EINVAL,
                    "%s: prompt '%.80s' had %ld tokens in that run and has %zu here: give the model, "
                    "--chat and --system of the run",
                    r->run, p->id, asked, n);
    int32_t *more = s ? NULL : wg_realloc(token, n + answer, sizeof *more);
    if (more) token = more;
    else if (!s) s = wg_nomem(err, (n + answer) * sizeof *token, "a text");
    for (size_t i = 0; !s && i < answer; i++) token[n + i] = (int32_t)json_integer_value(json_array_get(ids, i));
    if (!s) s = dumper_add(d, p->id, token, n + answer, line ? n : 0, err);
    wg_free(token);
    return s;
}

/* Adds the texts of plain decoding in a run: the first answers of the first repeat. */
static wg_status add_run(dumper *d, const request *r, const wg_target *t, const wg_dataset *prompts, wg_error *err)
{
    wg_run_reader *run;
    long added = 0;
    WG_TRY(wg_run_reader_open(&run, r->run, err));
    wg_status s = WG_OK;
    for (int i = 0; i < run->n && s == WG_OK && (!r->limit || added < r->limit); i++) {
        const wg_entry *e = &run->entry[i];
        if (e->cell >= 0 || e->repeat || e->turn || !e->ok || e->group) continue;
        const wg_prompt_key *key = &run->asked[e->prompt];
        const wg_prompt *p = wg_dataset_find(prompts, key->id, key->hash);
        json_t *line = p ? wg_run_reader_line(run, e) : NULL;
        if (!p)
            s = wg_fail(err, WG_EINVAL, "%s: its prompt '%.80s' is not in %s: give the prompts of the run", r->run, key->id,
                        prompts->path);
        else if (!line) s = wg_fail(err, WG_EIO, "%s: requests.jsonl cannot be read", r->run);
        else s = add_prompt(d, r, t, p, line, err);
        json_decref(line);
        added++;
    }
    if (s == WG_OK && added == 0) s = wg_fail(err, WG_EINVAL, "%s: no request of its baseline has a text", r->run);
    wg_run_reader_close(run);
    return s;
}

static wg_status add_texts(dumper *d, const request *r, const wg_target *t, const wg_dataset *prompts, wg_error *err)
{
    for (int i = 0; i < r->texts.n; i++) WG_TRY(add_file(d, t, r->texts.item[i], err));
    if (r->run) return add_run(d, r, t, prompts, err);
    for (int i = 0; prompts && i < prompts->n; i++) WG_TRY(add_prompt(d, r, t, &prompts->prompt[i], NULL, err));
    return WG_OK;
}

/* ---- a dump */

static wg_status plan_of(const request *r, wg_dump_plan *p, wg_error *err)
{
    wg_cli_ints list = { 0 };
    *p = (wg_dump_plan){ .type = WG_BF16, .model = r->model, .shard_bytes = (uint64_t)r->shard_mb << 20 };
    for (int i = 0; r->layout && wg_dump_layouts[i]; i++)
        if (strcmp(r->layout, wg_dump_layouts[i]) == 0) p->layout = (wg_dump_layout)i;
    if (r->type && strcmp(r->type, "bf16") != 0 && strcmp(r->type, "f32") != 0)
        return wg_fail(err, WG_EINVAL, "--type %s: expected bf16 or f32", r->type);
    if (r->type && strcmp(r->type, "f32") == 0) p->type = WG_F32;
    if (!r->tap_list) return WG_OK;
    wg_status s = wg_cli_read_ints("taps", r->tap_list, &list, err);
    if (!s && list.n > WG_DUMP_TAPS - 1)
        s = wg_fail(err, WG_EINVAL, "--taps has %d numbers: expected at most %d", list.n, WG_DUMP_TAPS - 1);
    for (int i = 0; !s && i < list.n; i++) p->tap[p->taps++] = list.v[i];
    wg_free(list.v);
    return s;
}

static void print_totals(const request *r, const wg_dump_plan *p, const totals *n)
{
    char taps[8 * WG_DUMP_TAPS];
    taps_text(p->tap, p->taps, p->taps, taps, sizeof taps);
    printf("wrote %s: %ld samples, %ld tokens, %s, width %d, %s\n", r->out, n->samples, n->tokens, taps, p->dim,
           wg_type_name(p->type));
    if (n->cut) printf("%ld of them were longer and are cut: --tokens, or the model's context\n", n->cut);
}

static wg_status dump_texts(const request *r, wg_target *t, const wg_dataset *prompts, const wg_dump_plan *plan, wg_error *err)
{
    dumper *d = NULL;
    totals n;
    WG_TRY(dumper_open(&d, t, r->out, plan, (int)r->most, err));
    wg_status s = add_texts(d, r, t, prompts, err);
    if (!s) s = dumper_finish(d, &n, err);
    if (!s) print_totals(r, &d->plan, &n);
    dumper_close(d);
    return s;
}

static wg_status write_dump(const request *r, wg_error *err)
{
    wg_dump_plan plan;
    wg_target *t;
    wg_dataset *prompts = NULL;
    const wg_setup_prompts taken = { .limit = r->run ? 0 : (int)r->limit };
    wg_target_options want = { .device = r->device,
                               .threads = (int)r->threads,
                               .need_tokenizer = true,
                               .model = { .kv_type = r->kv_type, .allow_nan = r->allow_nan } };
    wg_setup_target external;
    WG_TRY(plan_of(r, &plan, err));
    if (r->kind) {
        WG_TRY(wg_target_parse(&external, r->kind, err));
        want.external = wg_setup_target_options(&external).external;
    }
    if (r->prompts) WG_TRY(wg_dataset_open(&prompts, r->prompts, &taken, err));
    wg_status s = wg_target_open(&t, r->model, &want, err);
    if (!s) {
        s = dump_texts(r, t, prompts, &plan, err);
        wg_target_close(t);
    }
    wg_dataset_close(prompts);
    return s;
}

static bool is_model(const char *path)
{
    wg_weights *w;
    wg_error err;
    if (wg_weights_open(&w, path, &err)) return false;
    wg_weights_close(w);
    return true;
}

int wg_cmd_taps(int argc, char **argv)
{
    request r = { .shard_mb = 65536 };
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL, &r.model,
                     "the model whose hidden states are written; without other flags, a dump to describe"),
        { "target", 0, WG_FLAG_STRING, &r.kind, "KIND:k=v,...",
          "a target that another program computes, such as process:command=PROGRAM", 0, 0 },
        { "out", 'o', WG_FLAG_STRING, &r.out, "DIR", "the folder of the dump, new or empty", 0, 0 },
        { "text", 0, WG_FLAG_LIST, &r.texts, "FILE", "a text file, which is one sample; may be repeated", 0, 0 },
        { "prompts", 'p', WG_FLAG_STRING, &r.prompts, "FILE", "prompts (JSONL), the first question of each", 0, 0 },
        { "run", 0, WG_FLAG_STRING, &r.run, "DIR", "a run over these prompts, whose baseline's answers are appended to them", 0,
          0 },
        { "taps", 0, WG_FLAG_STRING, &r.tap_list, "LIST",
          "0: the embedding; i: behind layer i; one more than the layers: behind the final norm (2, half, the last but two; "
          "the "
          "last)",
          0, 0 },
        { "layout", 0, WG_FLAG_CHOICE, &r.layout, "vllm|deepspec",
          "vllm: safetensors, a file a sample; deepspec: a target cache", 0, 0 },
        { "type", 0, WG_FLAG_STRING, &r.type, "TYPE", "type of the numbers: bf16, or with --layout vllm f32 (bf16)", 0, 0 },
        { "tokens", 'n', WG_FLAG_INT, &r.most, "N", "cut texts to N tokens; 0: to the model's context", 0, 1e9 },
        { "limit", 0, WG_FLAG_INT, &r.limit, "N", "use the first N prompts; 0: all", 0, 1e6 },
        { "shard-mb", 0, WG_FLAG_INT, &r.shard_mb, "N", "with --layout deepspec: size of a shard, in MiB", 1, 1e9 },
        { "chat", 0, WG_FLAG_CHOICE, &r.chat_name, WG_CHAT_VALUES, WG_CHAT_DOC, 0, 0 },
        { "system", 0, WG_FLAG_STRING, &r.system, "TEXT", WG_SYSTEM_DOC, 0, 0 },
        { "device", 0, WG_FLAG_STRING, &r.device, "DEVICE", "where it runs: " WG_DEVICE_NAMES, 0, 0 },
        { "threads", 0, WG_FLAG_INT, &r.threads, "N", "number of threads; 0: all cores", 0, 256 },
        { "kv-type", 0, WG_FLAG_CHOICE, &r.kv_name, WG_KV_TYPE_VALUES, WG_KV_TYPE_DOC " (f16)", 0, 0 },
        { "allow-nan", 0, WG_FLAG_BOOL, &r.allow_nan, NULL, "accept NaN and infinities in weights", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &r.json, NULL, "describe a dump as a JSON object", 0, 0 },
        { 0 },
    };
    wg_error err;
    const int done = wg_cli_parse("taps", flags, argc, argv, NULL, 0, 0);
    if (done >= 0) return done;
    if (!r.out && !r.texts.n && !r.prompts && !is_model(r.model)) return describe(&r, &err) ? wg_cli_fail(&err) : WG_EXIT_OK;
    if (!r.out) return wg_cli_refuse("taps", "--out DIR is missing: the folder of the dump to write");
    if (!r.texts.n && !r.prompts) return wg_cli_refuse("taps", "no text: give --text FILE or --prompts FILE");
    if (r.run && !r.prompts) return wg_cli_refuse("taps", "--run DIR has the answers: --prompts FILE must give the prompts");
    if (!wg_cli_chat("taps", r.chat_name, r.system, &r.chat)) return WG_EXIT_USAGE;
    r.kv_type = wg_cli_kv_type(r.kv_name);
    return write_dump(&r, &err) ? wg_cli_fail(&err) : WG_EXIT_OK;
}
