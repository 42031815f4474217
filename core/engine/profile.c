/* SPDX-License-Identifier: MIT
 * See profile.h: prices that are asked for, from the profile, measured, or nominal. profile_file.c reads and writes. */
#include "core/engine/profile.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/mem.h"
#include "core/base/processor.h"
#include "core/base/read_file.h"
#include "core/dist/chance.h"
#include "core/engine/pass_time.h"
#include "core/engine/profile_impl.h"
#include "core/model/model.h"
#include "kernels/cpu.h"

/* Seconds that measuring a target and a draft model take; rows of the largest pass of a draft model. */
static const double TARGET_SECONDS = 1.4, DRAFT_SECONDS = 0.3;
enum { DRAFT_ROWS = WG_TREE_MAX > 16 ? 16 : WG_TREE_MAX, ROWS_TIMED = 4, FILE_MOST = 4 << 20 };

double wg_prices_of(const wg_prices *p, double rows)
{
    int k = 0;
    if (p->n < 2) return p->n ? p->seconds[0] : 0;
    while (k + 2 < p->n && p->rows[k + 1] < rows) k++;
    const double slope = (p->seconds[k + 1] - p->seconds[k]) / (p->rows[k + 1] - p->rows[k]);
    return p->seconds[k] + slope * (rows - p->rows[k]);
}

bool wg_profile_is_quiet(const wg_disturbance *d) { return d->others + d->threads <= d->cores + 0.3 && d->spread <= 0.5; }

/* ---- opening ----------------------------------------------------------------------------------------------------- */

void wg_profile_say(const wg_profile *p, bool warning, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (p->options.say) p->options.say(p->options.user, warning, text);
    else wg_log(warning ? WG_LOG_WARN : WG_LOG_INFO, "%s", text);
}

wg_profile_machine wg_profile_this_machine(void)
{
    wg_profile_machine m = { .wager = WG_VERSION, .ranks = 1 };
    wg_processor_name(m.cpu, sizeof m.cpu);
    snprintf(m.level, sizeof m.level, "%s", wg_cpu_name(wg_cpu_chosen()));
    return m;
}

/* A FILE, whatever machine it is of: that is said. */
static wg_status read_given(wg_profile *p, wg_error *err)
{
    char *text;
    size_t n;
    WG_TRY(wg_read_file(p->path, FILE_MOST, &text, &n, err));
    const wg_profile_machine here = p->machine;
    const wg_status s = wg_profile_parse(p, p->path, text, n, &p->machine, err);
    wg_free(text);
    if (s) return s;
    if (strcmp(here.cpu, p->machine.cpu) != 0 || strcmp(here.level, p->machine.level) != 0)
        wg_profile_say(p, false, "%s: prices of another machine: %s, kernels %s", p->path, p->machine.cpu, p->machine.level);
    return WG_OK;
}

static wg_status open_profile(wg_profile *p, const char *use, const char *folder, wg_error *err)
{
    p->use = !*use                     ? WG_PROFILE_CACHED
             : !strcmp(use, "new")     ? WG_PROFILE_NEW
             : !strcmp(use, "nominal") ? WG_PROFILE_NOMINAL
                                       : WG_PROFILE_FILE;
    p->machine = wg_profile_this_machine();
    if (p->use == WG_PROFILE_FILE && !strpbrk(use, "./") && access(use, F_OK) != 0)
        return wg_fail(err, WG_EINVAL, "profile %s: expected nominal, new, or a file that was written by wager", use);
    if (p->use == WG_PROFILE_FILE) {
        if (!(p->path = wg_strdup(use))) return wg_nomem(err, strlen(use), "a profile's name");
        return read_given(p, err);
    }
    if (p->use == WG_PROFILE_NOMINAL) return WG_OK;
    if (folder && !*folder) return WG_OK;
    p->folder = folder ? wg_strdup(folder) : wg_profile_user_folder(p->why_not, sizeof p->why_not);
    return p->folder || *p->why_not ? WG_OK : wg_nomem(err, 1, "the folder of profiles");
}

wg_status wg_profile_open(wg_profile **out, const wg_profile_options *o, wg_error *err)
{
    wg_profile *p = wg_calloc(1, sizeof *p);
    if (!p) return wg_nomem(err, sizeof *p, "a profile");
    p->options = *o;
    const wg_status s = open_profile(p, o->use ? o->use : "", o->folder, err);
    if (s) wg_profile_close(p);
    else *out = p;
    return s;
}

void wg_profile_close(wg_profile *p)
{
    if (!p) return;
    wg_profile_unlock(p);
    wg_free(p->folder);
    wg_free(p->path);
    wg_free(p->entry);
    wg_free(p);
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static bool same_model(const wg_lm_identity *a, const wg_lm_identity *b, bool threads)
{
    return !strcmp(a->weights, b->weights) && !strcmp(a->part, b->part) && !strcmp(a->device, b->device) &&
           (!threads || a->threads == b->threads);
}

bool wg_price_key_same(const wg_price_key *a, const wg_price_key *b, bool threads)
{
    return a->kind == b->kind && same_model(&a->target, &b->target, threads) && same_model(&a->draft, &b->draft, threads) &&
           !strcmp(a->chain, b->chain);
}

bool wg_profile_is_of(const wg_price_entry *e, const wg_lm_identity *target)
{
    return same_model(&e->key.target, target, true);
}

/* Of a FILE, those of another number of threads, and rows of another sampler chain, where it has no others. */
static bool will_do(const wg_price_key *a, const wg_price_key *b, int lenient)
{
    if (lenient < 2) return wg_price_key_same(a, b, lenient == 0);
    return a->kind == WG_PRICE_ROW && b->kind == WG_PRICE_ROW && same_model(&a->target, &b->target, false);
}

wg_price_entry *wg_profile_find(const wg_profile *p, const wg_price_key *key)
{
    for (int lenient = 0; lenient <= (p->use == WG_PROFILE_FILE ? 2 : 0); lenient++)
        for (int i = 0; i < p->entries; i++)
            if (will_do(&p->entry[i].key, key, lenient)) return &p->entry[i];
    return NULL;
}

wg_status wg_profile_add(wg_profile *p, const wg_price_entry *e, wg_error *err)
{
    wg_price_entry *more = wg_realloc(p->entry, (size_t)p->entries + 1, sizeof *more);
    if (!more) return wg_nomem(err, sizeof *more, "the prices of a profile");
    p->entry = more;
    p->entry[p->entries++] = *e;
    return WG_OK;
}

static wg_lm_identity identity_of(const wg_lm *lm)
{
    wg_lm_identity of = { .threads = 0 };
    if (lm->class && lm->class->identity) lm->class->identity(lm, &of);
    else snprintf(of.part, sizeof of.part, "%s of %d tokens", lm->class ? lm->class->name : "a model", lm->vocab);
    return of;
}

static const char *name_of(const wg_lm_identity *of) { return *of->name ? of->name : of->part; }

/* ---- measuring --------------------------------------------------------------------------------------------------- */

/* What is timed for a key. */
typedef struct wanted {
    wg_lm *target, *draft;
    const wg_sampling *sampling;
    const wg_ops *ops;
} wanted;

/* The least of some times of a row of p, drawn from. */
static double time_row(wg_sampler *sampler, wg_rows *row, const float *logits)
{
    double least = INFINITY;
    const wg_chance chance = wg_chance_philox(0, 0, 0);
    for (int k = 0; k < ROWS_TIMED; k++) {
        const double start = wg_clock_now();
        wg_sampler_row(sampler, logits, row, 0);
        if (wg_rows_one_hot(row, 0) < 0) wg_rows_pick(row, 0, &chance, WG_DRAW_NEXT, 0);
        least = fmin(least, wg_clock_now() - start);
    }
    return fmax(least, 1e-9);
}

/* Logits of a harmonic row (Zipf's law), its tokens in no order. */
static wg_status measure_row(const wanted *w, wg_prices *out, wg_error *err)
{
    const int vocab = w->target->vocab;
    wg_sampler sampler = { 0 };
    wg_rows row = { 0 };
    float *logits = wg_alloc((size_t)vocab, sizeof *logits);
    wg_status s = logits ? WG_OK : wg_nomem(err, (size_t)vocab * sizeof *logits, "measuring a row");
    for (int i = 0; !s && i < vocab; i++) logits[i] = -logf(1 + (float)(i * 37L % vocab));
    if (!s) s = wg_sampler_open(&sampler, w->sampling, w->ops, vocab, err);
    if (!s) s = wg_rows_open(&row, 1, vocab, err);
    *out = (wg_prices){ .n = 1, .rows = { 1 } };
    if (!s && wg_rows_push(&row) == 0) out->seconds[0] = time_row(&sampler, &row, logits);
    wg_rows_close(&row);
    wg_sampler_close(&sampler);
    wg_free(logits);
    return s;
}

static wg_status measure(wg_profile *p, const wg_price_key *key, const wanted *w, wg_price_entry *out, wg_error *err)
{
    const wg_processor_seconds before = wg_processor_busy();
    const double start = wg_clock_now();
    if (!p->measured)
        wg_profile_say(p, false,
                       "measuring what passes cost on this machine (once: about 2 s, or a few passes of a large model)");
    p->measured = true;
    *out = (wg_price_entry){ .key = *key, .others = -1, .fresh = true };
    WG_TRY(key->kind == WG_PRICE_TARGET ? wg_time_passes(w->target, WG_TREE_MAX, TARGET_SECONDS, &out->price, err)
           : key->kind == WG_PRICE_DRAFT
               ? wg_time_draft_passes(w->draft, w->target, DRAFT_ROWS, DRAFT_SECONDS, &out->price, err)
               : measure_row(w, &out->price, err));
    const wg_processor_seconds after = wg_processor_busy();
    const double wall = wg_clock_now() - start;
    p->measuring += wall;
    if (key->kind != WG_PRICE_ROW && before.all >= 0 && after.all >= 0 && wall > 0)
        out->others = fmax(0, (after.all - before.all - (after.own - before.own)) / wall);
    return wg_profile_add(p, out, err);
}

static const char *what_of(const wg_price_key *key)
{
    return key->kind == WG_PRICE_TARGET ? "passes of" : key->kind == WG_PRICE_DRAFT ? "drafts for" : "rows of";
}

/* From the cache, where a process that is measuring now is waited for. */
static wg_status look_up(wg_profile *p, const wg_price_key *key, wg_price_entry **found, wg_error *err)
{
    if (!p->folder || !*key->target.weights) return WG_OK;
    const bool cached = p->use == WG_PROFILE_CACHED;
    if (cached) WG_TRY(wg_profile_load(p, &key->target, err));
    if ((*found = cached ? wg_profile_find(p, key) : NULL)) return WG_OK;
    if (wg_profile_lock(p) && cached) WG_TRY(wg_profile_load(p, &key->target, err));
    *found = cached ? wg_profile_find(p, key) : NULL;
    return WG_OK;
}

/* From the profile, else from the cache, else by the clock. */
static wg_status ask(wg_profile *p, const wg_price_key *key, const wanted *w, wg_prices *out, wg_error *err)
{
    wg_price_entry *found = wg_profile_find(p, key), measured;
    if (!found) WG_TRY(look_up(p, key, &found, err));
    if (!found && p->use == WG_PROFILE_FILE)
        return wg_fail(err, WG_ECONFIG,
                       "%s: no prices of %s %s%s%s (device %s, %s): it is of other models or settings; leave the profile out, "
                       "or take the profile.json of a run with these",
                       p->path, what_of(key), name_of(&key->target), key->kind == WG_PRICE_DRAFT ? " by " : "",
                       key->kind == WG_PRICE_DRAFT ? name_of(&key->draft) : "", key->target.device, key->target.part);
    if (!found) {
        WG_TRY(measure(p, key, w, &measured, err));
        found = &p->entry[p->entries - 1];
    }
    found->used = true;
    *out = found->price;
    return WG_OK;
}

/* ---- nominal prices ---------------------------------------------------------------------------------------------- */

/* Of a draft model's pass: what one more row costs. Bytes of weights that a processor's last cache is taken to hold. */
static const double ONE_MORE = 0.35, CACHED = 32e6;

static double weight_bytes(const wg_lm *lm)
{
    const wg_model *m = wg_lm_transformer(lm);
    return m ? (double)wg_model_pass_bytes(m, 1) : 0;
}

/* A model whose weights stay in a cache is bound by arithmetic, which every row pays for; of a larger one the stream of weights
 * pays for two rows, and each one more for itself. Constants of the model, not of a machine. */
static wg_prices nominal_passes(const wg_lm *target)
{
    const double weights = weight_bytes(target);
    if (weights > 0 && weights < CACHED) return (wg_prices){ 2, { 1, 2 }, { 1, 1.62 }, .nominal = true };
    return (wg_prices){ 4, { 1, 2, 3, 4 }, { 1, 1.08, 1.3, 1.7 }, .nominal = true };
}

/* By the weights that a pass reads; a model without a file is taken for a tenth of the target. */
static wg_prices nominal_draft(const wg_lm *draft, const wg_lm *target)
{
    const double own = weight_bytes(draft), all = weight_bytes(target);
    const double level = own > 0 && all > 0 ? fmin(1, 0.01 + 1.1 * own / all) : 0.1;
    return (wg_prices){ 2, { 1, 2 }, { level, level * (1 + ONE_MORE) }, .nominal = true };
}

static bool is_nominal(wg_profile *p)
{
    if (p && p->use == WG_PROFILE_NOMINAL) p->nominal = true;
    return !p || p->nominal;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

wg_status wg_profile_target(wg_profile *p, wg_lm *target, wg_prices *out, wg_error *err)
{
    if (is_nominal(p)) return *out = nominal_passes(target), WG_OK;
    const wg_price_key key = { .kind = WG_PRICE_TARGET, .target = identity_of(target) };
    return ask(p, &key, &(wanted){ .target = target }, out, err);
}

wg_status wg_profile_draft(wg_profile *p, wg_lm *draft, wg_lm *target, wg_prices *out, wg_error *err)
{
    if (is_nominal(p)) return *out = nominal_draft(draft, target), WG_OK;
    const wg_price_key key = { .kind = WG_PRICE_DRAFT, .target = identity_of(target), .draft = identity_of(draft) };
    return ask(p, &key, &(wanted){ .target = target, .draft = draft }, out, err);
}

wg_status wg_profile_row(wg_profile *p, wg_lm *target, const wg_sampling *s, const wg_ops *ops, wg_prices *out, wg_error *err)
{
    if (is_nominal(p)) return *out = (wg_prices){ 1, { 1 }, { 0 }, .nominal = true }, WG_OK;
    wg_price_key key = { .kind = WG_PRICE_ROW, .target = identity_of(target) };
    const bool seen =
        s->frequency_penalty != 0 || s->presence_penalty != 0 || (s->repetition_penalty != 0 && s->repetition_penalty != 1);
    snprintf(key.chain, sizeof key.chain, "%d tokens, temperature %g, top_k %d, top_p %g, min_p %g%s", target->vocab,
             s->temperature, s->top_k, s->top_p, s->min_p, seen ? ", penalties" : "");
    return ask(p, &key, &(wanted){ .target = target, .sampling = s, .ops = ops }, out, err);
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

/* What disturbed the fresh entries most. */
static wg_disturbance disturbance_of(const wg_profile *p)
{
    wg_disturbance d = { .others = -1, .cores = (int)sysconf(_SC_NPROCESSORS_ONLN), .threads = 1 };
    for (int i = 0; i < p->entries; i++) {
        const wg_price_entry *e = &p->entry[i];
        if (!e->fresh) continue;
        d.others = fmax(d.others, e->others);
        d.spread = fmax(d.spread, e->price.spread);
        if (e->key.target.threads > d.threads) d.threads = e->key.target.threads;
    }
    return d;
}

static void say_busy(const wg_profile *p, const wg_disturbance *d)
{
    wg_profile_say(p, true,
                   "measured under load (other programs kept %.1f of %d processors busy, times of one pass differ by %.0f %%): "
                   "these prices are used now and not kept; a quiet machine, or --profile FILE, makes decisions repeat",
                   fmax(0, d->others), d->cores, 100 * d->spread);
}

/* Puts all fresh entries of a target into its file; without a digest there is none. */
static void keep_target(wg_profile *p, const wg_lm_identity *target)
{
    char path[4096];
    wg_error err;
    if (p->folder && *target->weights) {
        const wg_status s = wg_profile_store(p, target, path, sizeof path, &err);
        if (s) wg_profile_say(p, true, "prices are in memory only: %s", err.text);
        else wg_profile_say(p, false, "measured in %.1f s, kept in %s", p->measuring, path);
    }
    for (int i = 0; i < p->entries; i++)
        if (wg_profile_is_of(&p->entry[i], target)) p->entry[i].fresh = false;
}

void wg_profile_keep(wg_profile *p)
{
    bool fresh = false;
    for (int i = 0; p && i < p->entries; i++) fresh |= p->entry[i].fresh;
    if (p && !fresh) wg_profile_unlock(p);
    if (!fresh) return;
    const wg_disturbance d = disturbance_of(p);
    const bool quiet = p->options.quiet ? p->options.quiet(&d) : wg_profile_is_quiet(&d);
    if (!quiet) say_busy(p, &d);
    else if (*p->why_not) wg_profile_say(p, true, "prices are in memory only: %s", p->why_not);
    for (int i = 0; i < p->entries; i++) {
        if (!p->entry[i].fresh) continue;
        if (quiet) keep_target(p, &p->entry[i].key.target);
        else p->entry[i].fresh = false;
    }
    p->measuring = 0;
    wg_profile_unlock(p);
}

/* ---- what was asked for ------------------------------------------------------------------------------------------ */

static bool is_used(const wg_profile *p)
{
    for (int i = 0; p && i < p->entries; i++)
        if (p->entry[i].used) return true;
    return false;
}

char *wg_profile_text(const wg_profile *p)
{
    json_t *v = wg_profile_json(p, true);
    char *text = v ? wg_json_canonical(v, true) : NULL;
    json_decref(v);
    return text;
}

const char *wg_profile_name(const wg_profile *p, char hex[WG_SHA256_HEX])
{
    if (p && p->nominal) return "nominal";
    char *text = is_used(p) ? wg_profile_text(p) : NULL;
    if (!text) return "";
    wg_sha256(text, strlen(text), hex);
    wg_free(text);
    return hex;
}
