/* SPDX-License-Identifier: MIT
 * Reading the file of a distillation (distill_config.h). */
#include "experiments/config/distill_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "experiments/config/train_check.h"

enum { FAMILIES = 64, SEEDS = 64 };

static const char *const rows[] = { "sequence", "kept", NULL };

/* clang-format off */
const wg_option wg_distill_table[] = {
    WG_OPTION_FLOAT(wg_distill_options, temperature, 1, 0, 100, "of the target's rows and of drafts; 0: the target is greedy"),
    { "prompt", "tokens of the text before a continuation", WG_OPT_INT, offsetof(wg_distill_options, source.prompt),
      32, 1, 1 << 20, NULL, NULL },
    { "refresh", "steps that a student writes with the same weights", WG_OPT_INT, offsetof(wg_distill_options, source.refresh),
      25, 1, 1 << 20, NULL, NULL },
    WG_OPTION_INT(wg_distill_options, documents, 40, 0, 1 << 16, "held-out documents that students are compared on at the end"),
    WG_OPTION_INT(wg_distill_options, keep, 0, 0, 1 << 24,
        "tokens that students propose: the most frequent ones of the rows to predict, and those that end a text; needs "
        "target_head frozen; 0: all"),
    WG_OPTION_ENUM(wg_distill_options, rows, WG_ROWS_SEQUENCE, rows,
        "the target's rows of the text: computed for every sequence anew, or once for a document and kept in memory"),
    WG_OPTION_BOOL(wg_distill_options, predict, 1, "time passes at the end, and predict speed-ups"),
    WG_OPTION_NAME(wg_distill_options, trace, WG_NAMES_FILE, "", "trace of a run, or its folder, for the source `trace`"),
    WG_OPTION_END,
};
#define SHARE(name, of, def, doc) \
    { name, doc, WG_OPT_FLOAT, offsetof(wg_distill_options, source.share[of]), def, 0, 1e6, NULL, NULL }
const wg_option wg_source_table[] = {
    SHARE("text", WG_SOURCE_TEXT, 1, "share of the passes over the text"),
    SHARE("target", WG_SOURCE_TARGET, 0, "over continuations that the target writes"),
    SHARE("student", WG_SOURCE_STUDENT, 0, "over continuations that each student writes itself (on-policy)"),
    SHARE("trace", WG_SOURCE_TRACE, 0, "over rows of a trace where a draft was rejected"),
    WG_OPTION_END,
};
const wg_option wg_conversations_table[] = {
    WG_OPTION_INT(wg_conversations_options, tokens, 0, 0, INT32_MAX,
        "tokens of answers that data.conversations is to have before the training: the target writes the "
        "others; 0: nothing"),
    WG_OPTION_NAME(wg_conversations_options, seeds, WG_NAMES_FILE, "",
        "file of prompts (JSONL), the questions of the others"),
    WG_OPTION_FLOAT(wg_conversations_options, magpie, 1, 0, 1,
        "share of the conversations whose question the target writes too"),
    WG_OPTION_STR(wg_conversations_options, temperature, "0.7",
        "of answers; several, such as 0/0.7/0.7, take turns at random"),
    WG_OPTION_FLOAT(wg_conversations_options, top_p, 1, 1e-6, 1, "of answers"),
    WG_OPTION_FLOAT(wg_conversations_options, question_temperature, 0.8, 0, 100, "of questions that the target writes"),
    WG_OPTION_INT(wg_conversations_options, question, 160, 1, 1 << 20,
        "most tokens of such a question; one that is longer yields no conversation"),
    WG_OPTION_INT(wg_conversations_options, prompt, 1024, 1, 1 << 20,
        "most tokens of a prompt of `seeds` with the template; a longer one yields no conversation"),
    WG_OPTION_INT(wg_conversations_options, answer, 384, 1, 1 << 20, "most tokens of an answer"),
    WG_OPTION_STR(wg_conversations_options, system, "", "system text; empty: that of the template, if any"),
    WG_OPTION_INT(wg_conversations_options, batch, 32, 1, 256, "conversations that are written at once"),
    WG_OPTION_INT(wg_conversations_options, seed, 1, 0, INT32_MAX, "of what is drawn"),
    WG_OPTION_END,
};
static const char *const heads[] = { "own", "copied", "frozen", NULL };
static const char *const kinds[] = { "model", "eagle3", NULL };
static const wg_option head_table[] = {
    { "target_head", "embedding and head: own, copied from the target, or the target's and not trained", WG_OPT_ENUM,
      offsetof(wg_distill_student, head), WG_HEAD_OWN, 0, 0, NULL, heads },
    WG_OPTION_END,
};
/* Keys that heads have too. */
static const wg_option kind_table[] = {
    WG_OPTION_FLOAT(wg_distill_student, norm_scale, 1, 1e-4, 1e4,
        "factor of the target's last norm at the beginning: below 1 a student of few layers is less sure of its first errors"),
    { "kind", "model: a language model; eagle3: a head of one of the target's layers over its hidden states (distill.taps)",
      WG_OPT_ENUM, offsetof(wg_distill_student, kind), WG_STUDENT_MODEL, 0, 0, NULL, kinds },
    { "steps", "of a head: tokens of the drafts that it is trained over", WG_OPT_INT, offsetof(wg_distill_student, steps),
      3, 1, WG_PATH_STEPS, NULL, NULL },
    WG_OPTION_END,
};
/* clang-format on */

/* A config while it is read. */
typedef struct reading {
    wg_distill_config *out;
    wg_distill_student base, family[FAMILIES];
    int families, seed[SEEDS], seeds;
} reading;

static const wg_option *table_of(const char *section)
{
    for (const wg_train_section *s = wg_train_sections; s->name; s++)
        if (!strcmp(s->name, section)) return s->table;
    return NULL;
}

/* ---- parts of a student */

static void check_layers(wg_checker *c, const char *path, const json_t *list, wg_distill_student *s)
{
    size_t i;
    json_t *v;
    s->from_target = 0;
    json_array_foreach((json_t *)list, i, v) {
        const json_int_t layer = json_is_integer(v) ? json_integer_value(v) : -1;
        if (layer < 0 || layer >= WG_LAYERS_MAX || s->from_target == WG_DISTILL_LAYERS) break;
        s->layer[s->from_target++] = (int)layer;
    }
    if (!json_is_array(list) || i < json_array_size(list) || s->from_target == 0)
        wg_problem(c, path, false, "%s: expected a list of up to %d numbers of the target's layers, such as [0, 4]", path,
                   WG_DISTILL_LAYERS);
}

static void move_members(json_t *from, json_t *to, const wg_option *table)
{
    for (const wg_option *o = table; o->name; o++) {
        json_t *v = json_object_get(from, o->name);
        if (v) json_object_set(to, o->name, v);
        json_object_del(from, o->name);
    }
}

/* Of `members` keys of kind_table among those of the object. */
static void check_kind(wg_checker *c, const char *section, const json_t *object, size_t members, const wg_distill_student *s)
{
    if (s->kind == WG_STUDENT_MODEL || json_object_size(object) == members) return;
    wg_problem(c, section, false,
               "%s: a head has the shape of one of the target's layers, and its embedding and head: expected the keys kind, "
               "steps and norm_scale alone",
               section);
}

static void check_model(wg_checker *c, const char *section, const json_t *object, wg_distill_student *s)
{
    char path[128];
    json_t *shape = json_copy((json_t *)(uintptr_t)object), *head = json_object(), *kind = json_object();
    const json_t *layers = json_object_get(object, "target_layers");
    if (!shape || !head || !kind) {
        c->failed = wg_nomem(&c->err, 1, "a config");
    } else {
        json_object_del(shape, "target_layers");
        move_members(shape, head, head_table);
        move_members(shape, kind, kind_table);
        snprintf(path, sizeof path, "%s.target_layers", section);
        if (layers) check_layers(c, path, layers, s);
        wg_check_members(c, head, section, "", head_table, NULL, s);
        wg_check_members(c, kind, section, "", kind_table, NULL, s);
        check_kind(c, section, object, json_object_size(kind), s);
        wg_check_members(c, shape, section, "", table_of("model"), NULL, &s->shape);
    }
    json_decref(shape);
    json_decref(head);
    json_decref(kind);
}

/* Reads a loss, whose terms replace inherited ones as a whole. */
static void check_loss(wg_checker *c, const char *section, const json_t *object, wg_distill_student *s)
{
    double any = 0;
    wg_option_defaults(wg_loss_options, &s->loss);
    wg_check_members(c, object, section, "", wg_loss_options, NULL, &s->loss);
    for (int i = 0; i < WG_LOSS_TERMS; i++) any += s->loss.weight[i];
    if (any == 0)
        wg_problem(c, section, true,
                   "%s: no term has a weight: expected one or more of kl, reverse_kl, jsd, tv, nla, lk, ce, rejection, block "
                   "above 0",
                   section);
}

/* Reads a part of a student, from the file's sections or an entry of the list. False: no such part. */
static bool check_part(wg_checker *c, const char *place, const char *name, const json_t *v, wg_distill_student *s)
{
    static const char *const parts[] = { "model", "loss", "optimiser", "schedule", NULL };
    char path[96];
    int which = 0;
    while (parts[which] && strcmp(parts[which], name) != 0) which++;
    if (!parts[which]) return false;
    snprintf(path, sizeof path, "%s%s%s", place, *place ? "." : "", name);
    if (!json_is_object(v)) {
        wg_problem(c, path, false, "%s: expected an object with options", path);
        return true;
    }
    if (which == 0) check_model(c, path, v, s);
    else if (which == 1) check_loss(c, path, v, s);
    else if (which == 2) wg_check_members(c, v, path, "", table_of(name), NULL, &s->optimiser);
    else wg_check_members(c, v, path, "", table_of(name), NULL, &s->schedule);
    return true;
}

/* ---- the file */

static void check_student(wg_checker *c, reading *r, const json_t *object)
{
    static const char *const names[] = { "name", "model", "loss", "optimiser", "schedule", NULL };
    const char *key, *name = json_string_value(json_object_get(object, "name"));
    char place[32], path[160], hint[512];
    json_t *v;
    snprintf(place, sizeof place, "students[%d]", r->families);
    wg_distill_student *s = &r->family[r->families];
    *s = r->base;
    s->family = r->families++;
    if (!name || strlen(name) > WG_DISTILL_NAME - 16) {
        wg_problem(c, place, false, "%s: expected an object with a name of up to %d characters", place, WG_DISTILL_NAME - 16);
        return;
    }
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(path, sizeof path, "%s.name", place);
    wg_train_check_name(c, path, s->name);
    for (int i = 0; i < s->family; i++)
        if (!strcmp(r->family[i].name, name)) wg_problem(c, path, false, "%s: there are two students \"%s\"", path, name);
    json_object_foreach((json_t *)(uintptr_t)object, key, v) {
        if (!strcmp(key, "name") || check_part(c, place, key, v, s)) continue;
        snprintf(path, sizeof path, "%s.%s", place, key);
        wg_problem(c, path, true, "unknown key \"%.60s\" of a student%s", key, wg_suggestion(key, names, hint, sizeof hint));
    }
}

static void check_seeds(wg_checker *c, reading *r, const json_t *list)
{
    size_t i;
    json_t *v;
    r->seeds = 0;
    json_array_foreach((json_t *)list, i, v) {
        const json_int_t seed = json_is_integer(v) ? json_integer_value(v) : -1;
        bool twice = false;
        for (int k = 0; k < r->seeds; k++) twice = twice || r->seed[k] == seed;
        if (seed < 0 || seed > INT32_MAX || r->seeds == SEEDS || twice) break;
        r->seed[r->seeds++] = (int)seed;
    }
    if (!json_is_array(list) || i < json_array_size(list) || r->seeds == 0)
        wg_problem(c, "seeds", false, "seeds: expected a list of up to %d different whole numbers from 0 on", SEEDS);
}

static const wg_setup_section *target_section(void)
{
    const wg_setup_section *s = wg_setup_sections;
    while (strcmp(s->name, "target") != 0) s++;
    return s;
}

static void check_taps(wg_checker *c, const json_t *list, wg_distill_options *o)
{
    size_t i;
    json_t *v;
    o->taps = 0;
    json_array_foreach((json_t *)(uintptr_t)list, i, v) {
        const json_int_t tap = json_is_integer(v) ? json_integer_value(v) : -1;
        bool twice = false;
        for (int k = 0; k < o->taps; k++) twice = twice || o->tap[k] == tap;
        if (tap < 0 || tap > WG_LAYERS_MAX || twice || o->taps == WG_HEAD_TAPS) break;
        o->tap[o->taps++] = (int)tap;
    }
    if (list && (!json_is_array(list) || i < json_array_size(list)))
        wg_problem(c, "distill.taps", false,
                   "distill.taps: expected a list of up to %d different numbers of the target's layers, such as [2, 15, 27]: "
                   "heads read the states that enter these",
                   WG_HEAD_TAPS);
}

static void check_distill(wg_checker *c, reading *r, const json_t *object)
{
    json_t *options = json_copy((json_t *)(uintptr_t)object);
    const json_t *loss = json_object_get(object, "loss"), *sources = json_object_get(object, "sources");
    if (loss) check_part(c, "distill", "loss", loss, &r->base);
    if (json_is_object(sources)) wg_check_members(c, sources, "distill.sources", "", wg_source_table, NULL, &r->out->distill);
    else if (sources)
        wg_problem(c, "distill.sources", false,
                   "distill.sources: expected an object of shares, such as {\"text\": 0.5, "
                   "\"target\": 0.5}");
    check_taps(c, json_object_get(object, "taps"), &r->out->distill);
    json_object_del(options, "taps");
    json_object_del(options, "loss");
    json_object_del(options, "sources");
    wg_check_members(c, options, "distill", "", wg_distill_table, NULL, &r->out->distill);
    json_decref(options);
}

static void check_section(wg_checker *c, reading *r, const char *key, const json_t *v)
{
    const char *names[24];
    char hint[512];
    int n = wg_train_section_names(names);
    names[n++] = "target", names[n++] = "distill", names[n++] = "conversations", names[n++] = "students";
    names[n++] = "seeds", names[n] = NULL;
    if (!strcmp(key, "students") || !strcmp(key, "loss")) return;
    if (!strcmp(key, "seeds")) check_seeds(c, r, v);
    else if (!strcmp(key, "target") || !strcmp(key, "distill") || !strcmp(key, "conversations")) {
        if (!json_is_object(v)) wg_problem(c, key, false, "%s: expected an object with options", key);
        else if (*key == 'd') check_distill(c, r, v);
        else if (*key == 'c') wg_check_members(c, v, key, "", wg_conversations_table, NULL, &r->out->conversations);
        else wg_check_members(c, v, key, "", target_section()->table, NULL, &r->out->target);
    } else if (!check_part(c, "", key, v, &r->base) && !wg_train_check_section(c, key, v, &r->out->train))
        wg_problem(c, key, true, "unknown section \"%.60s\" of a distillation%s", key,
                   wg_suggestion(key, names, hint, sizeof hint));
}

static void check_students(wg_checker *c, reading *r, const json_t *list)
{
    size_t i;
    json_t *v;
    if (!list) {
        r->family[0] = r->base;
        snprintf(r->family[0].name, sizeof r->family[0].name, "%.60s", r->out->train.output.name);
        r->families = 1;
        return;
    }
    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > FAMILIES) {
        wg_problem(c, "students", false, "students: expected a list of 1 to %d objects with a name", FAMILIES);
        return;
    }
    json_array_foreach((json_t *)(uintptr_t)list, i, v) check_student(c, r, v);
}

static void check_sources(wg_checker *c, const wg_distill_options *o)
{
    double all = 0;
    if (o->keep > 0 && o->source.share[WG_SOURCE_STUDENT] > 0)
        wg_problem(c, "distill.sources", false,
                   "distill.sources has a share of `student`, whose texts have all tokens: distill.keep must be 0");
    for (int i = 0; i < WG_SOURCES; i++) all += o->source.share[i];
    if (all <= 0) wg_problem(c, "distill.sources", false, "distill.sources: no source has a share above 0");
    if (o->source.share[WG_SOURCE_TRACE] > 0 && !*o->trace)
        wg_problem(c, "distill.sources", false,
                   "distill.sources has a share of `trace`, but distill.trace names none: a run with \"trace\": "
                   "\"probs\" writes one");
}

/* Reads the numbers of `temperature`, which slashes divide. False: they are none. */
static bool read_temperatures(wg_conversations_options *o)
{
    o->n_temperatures = 0;
    for (const char *at = o->temperature;; at++) {
        char *end;
        const double t = strtod(at, &end);
        if (end == at || !(t >= 0 && t <= 100) || o->n_temperatures == WG_TEMPERATURES) return false;
        o->temperatures[o->n_temperatures++] = t;
        if (*end == '\0') return true;
        if (*end != '/') return false;
        at = end;
    }
}

static void check_conversations(wg_checker *c, wg_conversations_options *o, const wg_train_data *data)
{
    if (!read_temperatures(o))
        wg_problem(
            c, "conversations.temperature", false,
            "conversations.temperature is \"%.60s\": expected 1 to %d numbers from 0 on with slashes between them, such as "
            "0/0.7",
            o->temperature, WG_TEMPERATURES);
    if (o->tokens == 0) return;
    if (!*data->conversations)
        wg_problem(c, "conversations.tokens", false,
                   "conversations.tokens needs data.conversations: the file that the target writes into");
    if (!*o->seeds && o->magpie < 1)
        wg_problem(c, "conversations.magpie", false,
                   "conversations.magpie is below 1, so the other questions are those of conversations.seeds: name a file of "
                   "prompts");
}

/* A key of `model`, an object at `place` or NULL, that no student would obey. */
static void check_obeyed(wg_checker *c, const char *place, const json_t *model, bool head, bool norm)
{
    char path[128];
    snprintf(path, sizeof path, "%s.steps", place);
    if (!head && json_object_get(model, "steps"))
        wg_problem(c, path, true, "%s are of a head, and the student is a model: leave it out, or say \"kind\": \"eagle3\"",
                   path);
    snprintf(path, sizeof path, "%s.norm_scale", place);
    if (!norm && json_object_get(model, "norm_scale"))
        wg_problem(
            c, path, true,
            "%s is a factor of the target's last norm, which the student does not take: leave it out, or set target_head "
            "to copied or frozen",
            path);
}

/* Keys of a student are obeyed by itself, common ones by one student at least. */
static void check_all_obeyed(wg_checker *c, const reading *r, const json_t *root)
{
    const json_t *list = json_object_get(root, "students");
    bool head = false, norm = false;
    char place[48];
    for (int i = 0; i < r->families; i++) {
        const wg_distill_student *s = &r->family[i];
        const bool is_head = s->kind != WG_STUDENT_MODEL, has_norm = s->head != WG_HEAD_OWN;
        head = head || is_head, norm = norm || has_norm;
        snprintf(place, sizeof place, "students[%d].model", i);
        check_obeyed(c, place, json_object_get(json_array_get(list, (size_t)i), "model"), is_head, has_norm);
    }
    check_obeyed(c, "model", json_object_get(root, "model"), head, norm);
    if (!head && r->out->distill.taps > 0)
        wg_problem(c, "distill.taps", true,
                   "distill.taps are the states that heads read, and no student is of the kind eagle3: leave it out");
}

static void check_root(wg_checker *c, const json_t *root, void *into)
{
    reading *r = into;
    const wg_train_config *t = &r->out->train;
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)root, key, v) check_section(c, r, key, v);
    check_students(c, r, json_object_get(root, "students"));
    if (!wg_is_clean(c)) return;
    if (!*r->out->target.model)
        wg_problem(c, "target", true, "target.model is needed: the weights file that students are distilled from");
    check_sources(c, &r->out->distill);
    check_conversations(c, &r->out->conversations, &t->data);
    for (int i = 0; i < r->families; i++) {
        wg_distill_student *s = &r->family[i];
        char place[48] = "model";
        if (json_object_get(root, "students")) snprintf(place, sizeof place, "students[%d].model", i);
        if (*s->shape.init && s->from_target > 0)
            wg_problem(c, place, false, "%s: init and target_layers exclude each other: a student begins in one way", place);
        if (s->kind != WG_STUDENT_MODEL) s->head = WG_HEAD_FROZEN, s->from_target = 0, *s->shape.init = '\0';
        if (s->from_target > 0 && s->head == WG_HEAD_OWN) s->head = WG_HEAD_COPIED;
        if (s->kind != WG_STUDENT_MODEL && r->out->distill.source.share[WG_SOURCE_STUDENT] > 0)
            wg_problem(c, place, false, "%s: a head writes no texts: distill.sources cannot have a share of `student`", place);
        if (r->out->distill.keep > 0 && s->head != WG_HEAD_FROZEN)
            wg_problem(c, place, false,
                       "%s: distill.keep chooses rows of a head that is not trained: target_head must be frozen", place);
        wg_train_check_shape(c, place, &s->shape, s->from_target > 0 || s->head ? 0 : t->train.length);
    }
    check_all_obeyed(c, r, root);
    wg_train_check_rest(c, t);
}

/* ---- the resolved config */

static json_t *student_json(const wg_distill_student *s)
{
    json_t *model = wg_train_options_json(table_of("model"), &s->shape), *layers = json_array();
    for (int i = 0; i < s->from_target; i++) json_array_append_new(layers, json_integer(s->layer[i]));
    if (s->from_target > 0) json_object_set(model, "target_layers", layers);
    json_decref(layers);
    json_object_update_new(model, wg_train_options_json(head_table, s));
    if (s->kind != WG_STUDENT_MODEL) json_object_clear(model);
    json_object_update_new(model, wg_train_options_json(kind_table, s));
    if (s->kind == WG_STUDENT_MODEL) json_object_del(model, "kind"), json_object_del(model, "steps");
    if (s->head == WG_HEAD_OWN) json_object_del(model, "norm_scale");
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "name", s->name, "model", model, "loss",
                     wg_train_options_json(wg_loss_options, &s->loss), "optimiser",
                     wg_train_options_json(table_of("optimiser"), &s->optimiser), "schedule",
                     wg_train_options_json(table_of("schedule"), &s->schedule));
}

static wg_status resolve(reading *r, wg_error *err)
{
    wg_distill_config *o = r->out;
    json_t *root = json_object(), *students = json_array(), *seeds = json_array();
    json_object_set_new(root, "target", wg_train_options_json(target_section()->table, &o->target));
    json_t *distill = wg_train_options_json(wg_distill_table, &o->distill);
    json_t *taps = json_array();
    for (int i = 0; i < o->distill.taps; i++) json_array_append_new(taps, json_integer(o->distill.tap[i]));
    if (o->distill.taps > 0) json_object_set(distill, "taps", taps);
    json_decref(taps);
    json_object_set_new(distill, "sources", wg_train_options_json(wg_source_table, &o->distill));
    json_object_set_new(root, "distill", distill);
    json_object_set_new(root, "conversations", wg_train_options_json(wg_conversations_table, &o->conversations));
    for (const wg_train_section *s = wg_train_sections; s->name; s++)
        if (!strcmp(s->name, "data") || !strcmp(s->name, "train") || !strcmp(s->name, "output"))
            json_object_set_new(root, s->name, wg_train_options_json(s->table, (const char *)&o->train + s->at));
    for (int i = 0; i < r->families; i++) json_array_append_new(students, student_json(&r->family[i]));
    for (int i = 0; i < r->seeds; i++) json_array_append_new(seeds, json_integer(r->seed[i]));
    json_object_set_new(root, "students", students);
    json_object_set_new(root, "seeds", seeds);
    o->resolved = wg_json_canonical(root, true);
    json_decref(root);
    o->student = wg_calloc((size_t)(r->families * r->seeds), sizeof *o->student);
    if (!o->resolved || !o->student) return wg_nomem(err, (size_t)(r->families * r->seeds) * sizeof *o->student, "a config");
    o->families = r->families;
    o->seeds = r->seeds;
    for (int i = 0; i < r->families; i++)
        for (int k = 0; k < r->seeds; k++) {
            wg_distill_student *s = &o->student[o->students++];
            *s = r->family[i];
            s->seed = r->seed[k];
            snprintf(s->family_name, sizeof s->family_name, "%s", s->name);
            if (r->seeds > 1) snprintf(s->name, sizeof s->name, "%.64s-%d", r->family[i].name, s->seed);
        }
    return WG_OK;
}

wg_status wg_distill_config_open(wg_distill_config *out, const char *path, const char *const *set, int n_set, wg_error *err)
{
    *out = (wg_distill_config){ 0 };
    reading *r = wg_calloc(1, sizeof *r);
    if (!r) return wg_nomem(err, sizeof *r, "a config");
    r->out = out;
    wg_train_defaults(&out->train);
    wg_option_defaults(target_section()->table, &out->target);
    wg_option_defaults(wg_distill_table, &out->distill);
    wg_option_defaults(wg_source_table, &out->distill);
    wg_option_defaults(wg_conversations_table, &out->conversations);
    r->base.shape = out->train.model, r->base.optimiser = out->train.optimiser, r->base.schedule = out->train.schedule;
    wg_option_defaults(head_table, &r->base);
    wg_option_defaults(kind_table, &r->base);
    wg_option_defaults(wg_loss_options, &r->base.loss);
    r->base.loss.weight[WG_LOSS_KL] = 1;
    wg_status s = wg_train_file_open(path, set, n_set, "{\"target\": ..., \"data\": ...}", check_root, r, err);
    if (r->seeds == 0) r->seed[r->seeds++] = out->train.train.seed;
    if (s == WG_OK) s = resolve(r, err);
    wg_free(r);
    if (s) wg_distill_config_close(out);
    return s;
}

void wg_distill_config_close(wg_distill_config *c)
{
    wg_free(c->student);
    wg_free(c->resolved);
    c->student = NULL;
    c->resolved = NULL;
}
