/* SPDX-License-Identifier: MIT
 * Reading the file of a training run (train_config.h). */
#include "experiments/config/train_config.h"

#include <string.h>

#include "core/base/mem.h"
#include "experiments/config/config.h"
#include "experiments/config/train_check.h"

/* clang-format off */
static const wg_option model_table[] = {
    WG_OPTION_NAME(wg_train_model, init, WG_NAMES_FILE, "",
        "model file to train on from; its shape and tokenizer hold, and the shape here is left out"),
    WG_OPTION_NAME(wg_train_model, tokenizer, WG_NAMES_FILE, "",
        "model file or folder, or tokenizer.json, whose tokenizer is used (needed without init)"),
    WG_OPTION_INT(wg_train_model, layers, 2, 1, WG_LAYERS_MAX, "blocks"),
    WG_OPTION_INT(wg_train_model, dim, 128, 8, 1 << 16, "width"),
    WG_OPTION_INT(wg_train_model, heads, 4, 1, 4096, "of attention"),
    WG_OPTION_INT(wg_train_model, kv_heads, 0, 0, 4096, "heads of keys and values; 0: as many as heads"),
    WG_OPTION_INT(wg_train_model, head_dim, 0, 0, 512, "width of a head; 0: dim / heads"),
    WG_OPTION_INT(wg_train_model, hidden, 0, 0, 1 << 18, "width of the MLP; 0: 8/3 dim in multiples of 32"),
    WG_OPTION_INT(wg_train_model, context, 512, 2, 1 << 20, "longest text, in tokens"),
    WG_OPTION_BOOL(wg_train_model, tied, 1, "the head is the embedding"),
    WG_OPTION_FLOAT(wg_train_model, rope_base, 10000, 2, 1e12, "base of the rotary frequencies"),
    WG_OPTION_FLOAT(wg_train_model, eps, 1e-5, 1e-12, 1, "of RMSNorm"),
    WG_OPTION_END,
};
static const wg_option data_table[] = {
    WG_OPTION_NAME(wg_train_data, text, WG_NAMES_FILE, "", "text file, or folder of *.txt and *.md files"),
    WG_OPTION_STR(wg_train_data, separator, "", "what stands between two documents of a file; empty: a file is a document"),
    WG_OPTION_INT(wg_train_data, held_out, 50, 0, 1 << 30, "one document in so many is held out; 0: none"),
    WG_OPTION_NAME(wg_train_data, tokens, WG_NAMES_FILE, "", "token file, instead of a text"),
    WG_OPTION_NAME(wg_train_data, held, WG_NAMES_FILE, "", "token file of the held-out text, beside `tokens`"),
    WG_OPTION_NAME(wg_train_data, conversations, WG_NAMES_FILE, "",
        "JSONL file of conversations, or folder of *.jsonl files, instead of a text; prompts have no loss"),
    WG_OPTION_END,
};
static const wg_option output_table[] = {
    WG_OPTION_STR(wg_train_output, name, "model", "of the model, and of its file NAME.gguf"),
    WG_OPTION_STR(wg_train_output, type, "q8_0", "of its matrices: " WG_WRITABLE_TYPES),
    WG_OPTION_END,
};
const wg_train_section wg_train_sections[] = {
    { "model", "what is trained", model_table, offsetof(wg_train_config, model) },
    { "data", "what it is trained on", data_table, offsetof(wg_train_config, data) },
    { "train", "how long, in which pieces", wg_train_table, offsetof(wg_train_config, train) },
    { "optimiser", "how weights are changed", wg_optimiser_table, offsetof(wg_train_config, optimiser) },
    { "schedule", "of the learning rates", wg_schedule_table, offsetof(wg_train_config, schedule) },
    { "output", "the model file", output_table, offsetof(wg_train_config, output) },
    { NULL, NULL, NULL, 0 },
};
/* clang-format on */

static const wg_train_section *find(const char *name)
{
    for (const wg_train_section *s = wg_train_sections; s->name; s++)
        if (!strcmp(s->name, name)) return s;
    return NULL;
}

int wg_train_section_names(const char **names)
{
    int n = 0;
    for (const wg_train_section *s = wg_train_sections; s->name; s++) names[n++] = s->name;
    return n;
}

void wg_train_defaults(wg_train_config *out)
{
    *out = (wg_train_config){ 0 };
    for (const wg_train_section *k = wg_train_sections; k->name; k++) wg_option_defaults(k->table, (char *)out + k->at);
}

bool wg_train_check_section(wg_checker *c, const char *name, const json_t *v, wg_train_config *out)
{
    const wg_train_section *s = find(name);
    if (!s) return false;
    if (!json_is_object(v)) wg_problem(c, name, false, "%s: expected an object with options", name);
    else wg_check_members(c, v, s->name, "", s->table, NULL, (char *)out + s->at);
    return true;
}

static void check_sections(wg_checker *c, const json_t *root, wg_train_config *out)
{
    const char *names[16], *key;
    char hint[512];
    json_t *v;
    names[wg_train_section_names(names)] = NULL;
    json_object_foreach((json_t *)root, key, v)
        if (!wg_train_check_section(c, key, v, out))
            wg_problem(c, key, true, "unknown section \"%.60s\" of a training run%s", key,
                       wg_suggestion(key, names, hint, sizeof hint));
}

void wg_train_model_complete(wg_train_model *m)
{
    if (m->kv_heads == 0) m->kv_heads = m->heads;
    if (m->head_dim == 0) m->head_dim = m->dim / m->heads;
    if (m->hidden == 0) m->hidden = (m->dim * 8 / 3 + 31) / 32 * 32;
}

void wg_train_check_shape(wg_checker *c, const char *section, wg_train_model *m, int length)
{
    char path[128];
    wg_train_model_complete(m);
    if (m->heads % m->kv_heads != 0) {
        snprintf(path, sizeof path, "%s.kv_heads", section);
        wg_problem(c, path, false, "%s.heads is %d, %s.kv_heads %d: expected a multiple", section, m->heads, section,
                   m->kv_heads);
    }
    if (m->head_dim < 2 || m->head_dim % 2 != 0) {
        snprintf(path, sizeof path, "%s.head_dim", section);
        wg_problem(c, path, false, "%s.head_dim is %d: expected an even number", section, m->head_dim);
    }
    if (!*m->init && length > m->context)
        wg_problem(c, "train.length", false, "train.length is %d: the model's context is %d", length, m->context);
}

void wg_train_check_name(wg_checker *c, const char *path, const char *name)
{
    if (!*name || strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != strlen(name))
        wg_problem(c, path, false, "%s: expected letters, digits, '.', '_' and '-'", path);
}

void wg_train_check_rest(wg_checker *c, const wg_train_config *o)
{
    const int type = wg_type_parse(o->output.type);
    if (!!*o->data.text + !!*o->data.tokens + !!*o->data.conversations != 1)
        wg_problem(c, "data", true, "data: expected `text`, `tokens` or `conversations`, one of them");
    if (*o->data.held && !*o->data.tokens)
        wg_problem(c, "data.held", false, "data.held belongs to data.tokens; a text has data.held_out");
    if (o->train.batch % o->train.micro != 0)
        wg_problem(c, "train.batch", false, "train.batch is %d, train.micro %d: expected a multiple", o->train.batch,
                   o->train.micro);
    if (!wg_type_get(type) || !wg_type_get(type)->writable)
        wg_problem(c, "output.type", false, "output.type: expected %s, got \"%.20s\"", WG_WRITABLE_TYPES, o->output.type);
    wg_train_check_name(c, "output.name", o->output.name);
}

/* With what single values do not show. */
static void check_root(wg_checker *c, const json_t *root, void *out)
{
    wg_train_config *o = out;
    check_sections(c, root, o);
    if (!wg_is_clean(c)) return;
    if (!*o->model.init && !*o->model.tokenizer)
        wg_problem(c, "model", true,
                   "model.tokenizer is needed: a model file or a tokenizer.json whose tokenizer makes the tokens");
    wg_train_check_shape(c, "model", &o->model, o->train.length);
    wg_train_check_rest(c, o);
}

json_t *wg_train_options_json(const wg_option *table, const void *o)
{
    json_t *into = json_object();
    for (const wg_option *r = table; r->name; r++) json_object_set_new(into, r->name, wg_option_json(r, o));
    return into;
}

static wg_status resolve(wg_train_config *o, wg_error *err)
{
    json_t *root = json_object();
    for (const wg_train_section *s = wg_train_sections; s->name; s++)
        json_object_set_new(root, s->name, wg_train_options_json(s->table, (const char *)o + s->at));
    o->resolved = wg_json_canonical(root, true);
    json_decref(root);
    return o->resolved ? WG_OK : wg_nomem(err, 1, "a config");
}

wg_status wg_train_file_open(const char *path, const char *const *set, int n_set, const char *example, wg_check_root *check,
                             void *out, wg_error *err)
{
    wg_json *doc;
    WG_TRY(wg_setup_document(&doc, path, err));
    wg_override *over = wg_calloc((size_t)n_set, sizeof *over);
    json_t *root = json_deep_copy(wg_json_root(doc));
    wg_checker c = { .doc = doc, .set = over, .n_set = n_set };
    wg_status s = over && root ? WG_OK : wg_nomem(err, sizeof *over, "a config");
    for (int i = 0; i < n_set && s == WG_OK; i++) s = wg_override_open(&over[i], set[i], err);
    if (s == WG_OK && !json_is_object(root)) s = wg_fail(err, WG_ECONFIG, "%s: expected an object: %s", path, example);
    if (s == WG_OK) {
        wg_setup_uncomment(root);
        for (int i = 0; i < n_set; i++) wg_override_apply(&c, root, &over[i], set[i] + strlen(over[i].path) + 1);
        check(&c, root, out);
        s = wg_problems_report(&c, err);
    }
    for (int i = 0; over && i < n_set; i++) wg_json_close(over[i].doc), wg_free(over[i].text);
    wg_free(over);
    wg_free(c.seen);
    wg_free(c.found);
    json_decref(root);
    wg_json_close(doc);
    return s;
}

wg_status wg_train_config_open(wg_train_config *out, const char *path, const char *const *set, int n_set, wg_error *err)
{
    wg_train_defaults(out);
    WG_TRY(wg_train_file_open(path, set, n_set, "{\"model\": ..., \"data\": ...}", check_root, out, err));
    return resolve(out, err);
}

void wg_train_config_close(wg_train_config *c)
{
    wg_free(c->resolved);
    c->resolved = NULL;
}
