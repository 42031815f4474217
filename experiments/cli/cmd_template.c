/* SPDX-License-Identifier: MIT
 * wager template: renders a conversation by the chat template of a model file, or prints the tokens of that text. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/text/chat_template.h"
#include "experiments/cli/cli.h"

enum { TEMPLATE_MOST = 1 << 20 };

typedef struct options {
    const char *model, *messages, *tools, *documents, *prompt, *system, *variant, *file, *date;
    wg_flag_list set;
    bool no_generation_prompt, ids;
} options;

/* ---- the conversation */

/* Sets the list of a JSON file, which may be under its key in an object; file NULL: sets nothing. */
static wg_status add_list(json_t *data, const char *key, const char *file, wg_error *err)
{
    wg_json *doc;
    if (!file) return WG_OK;
    WG_TRY(wg_json_open(&doc, file, err));
    json_t *v = wg_json_root(doc), *member = json_object_get(v, key);
    if (member) v = member;
    wg_status s = WG_OK;
    if (json_is_array(v)) json_object_set(data, key, v);
    else s = wg_fail(err, WG_EINVAL, "%s: expected a list of objects, or an object with the key \"%s\"", file, key);
    for (size_t i = 0; !s && i < json_array_size(v); i++)
        if (!json_is_object(json_array_get(v, i)))
            s = wg_fail(err, WG_EINVAL, "%s: element %zu of the list of %s is no object", file, i, key);
    wg_json_close(doc);
    return s;
}

static void add_message(json_t *messages, const char *role, const char *text)
{
    json_array_append_new(messages, json_pack("{s:s, s:o}", "role", role, "content", json_stringn_nocheck(text, strlen(text))));
}

static wg_status add_messages(json_t *data, const options *o, wg_error *err)
{
    if (o->messages) return add_list(data, "messages", o->messages, err);
    json_t *messages = json_array();
    if (o->system && *o->system) add_message(messages, "system", o->system);
    add_message(messages, "user", o->prompt ? o->prompt : "Hello");
    json_object_set_new(data, "messages", messages);
    return WG_OK;
}

/* Sets variables of --set enable_thinking=false; a value that is not JSON is a text. */
static wg_status add_variables(json_t *data, const wg_flag_list *set, wg_error *err)
{
    for (int i = 0; i < set->n; i++) {
        const char *item = set->item[i], *equals = strchr(item, '=');
        char name[100];
        if (!equals || equals == item || equals - item >= (long)sizeof name)
            return wg_fail(err, WG_EINVAL, "--set %.100s: expected NAME=VALUE, such as enable_thinking=false", item);
        snprintf(name, sizeof name, "%.*s", (int)(equals - item), item);
        json_t *v = json_loads(equals + 1, JSON_DECODE_ANY, NULL);
        json_object_set_new(data, name, v ? v : json_stringn_nocheck(equals + 1, strlen(equals + 1)));
    }
    return WG_OK;
}

static wg_status conversation(json_t *data, const options *o, wg_error *err)
{
    json_object_set_new(data, "add_generation_prompt", json_boolean(!o->no_generation_prompt));
    WG_TRY(add_messages(data, o, err));
    WG_TRY(add_list(data, "tools", o->tools, err));
    WG_TRY(add_list(data, "documents", o->documents, err));
    return add_variables(data, &o->set, err);
}

/* ---- output */

static wg_status print_ids(const wg_weights *w, const wg_rendered *r, wg_error *err)
{
    wg_tokenizer *t;
    int32_t *ids;
    size_t n;
    WG_TRY(wg_tokenizer_open(&t, w, err));
    const wg_status s = wg_chat_template_ids(t, r, &ids, &n, err);
    for (size_t i = 0; !s && i < n; i++) {
        const wg_text piece = wg_tokenizer_piece(t, ids[i]);
        printf("%6" PRId32 "  %.*s\n", ids[i], (int)piece.n, piece.s);
    }
    if (!s) printf("%zu tokens\n", n);
    if (!s) wg_free(ids);
    wg_tokenizer_close(t);
    return s;
}

static wg_status print_rendered(const wg_weights *w, const options *o, wg_error *err)
{
    wg_rendered r;
    wg_text text;
    char *own = NULL;
    json_t *data = json_object();
    wg_status s = conversation(data, o, err);
    if (!s && o->file) s = wg_read_file(o->file, TEMPLATE_MOST, &own, &text.n, err);
    text.s = own;
    if (!s) s = wg_chat_template_render(w, o->variant, own ? &text : NULL, data, o->date, &r, err);
    json_decref(data);
    wg_free(own);
    if (s) return s;
    if (o->ids) s = print_ids(w, &r, err);
    else fwrite(r.text, 1, r.n, stdout);
    wg_rendered_free(&r);
    return s;
}

int wg_cmd_template(int argc, char **argv)
{
    options o = { 0 };
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL, &o.model, "the model whose template it is"),
        { "messages", 0, WG_FLAG_STRING, &o.messages, "FILE", "the conversation: a JSON list of {\"role\", \"content\", ...}",
          0, 0 },
        { "prompt", 'p', WG_FLAG_STRING, &o.prompt, "TEXT", "a question instead of --messages (Hello)", 0, 0 },
        { "system", 0, WG_FLAG_STRING, &o.system, "TEXT", "the system text before the question", 0, 0 },
        { "tools", 0, WG_FLAG_STRING, &o.tools, "FILE", "a JSON list of tools that the model may call", 0, 0 },
        { "documents", 0, WG_FLAG_STRING, &o.documents, "FILE", "a JSON list of documents", 0, 0 },
        { "set", 0, WG_FLAG_LIST, &o.set, "NAME=VALUE", "a variable of the template, such as enable_thinking=false", 0, 0 },
        { "variant", 0, WG_FLAG_STRING, &o.variant, "NAME", "a template that the file has by name, such as tool_use", 0, 0 },
        { "template", 0, WG_FLAG_STRING, &o.file, "FILE", "a template in place of the model's own", 0, 0 },
        { "date", 0, WG_FLAG_STRING, &o.date, "YYYY-MM-DD", WG_DATE_DOC, 0, 0 },
        { "no-generation-prompt", 0, WG_FLAG_BOOL, &o.no_generation_prompt, NULL, "do not open an answer at the end", 0, 0 },
        { "ids", 0, WG_FLAG_BOOL, &o.ids, NULL, "print tokens instead of the text", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("template", flags, argc, argv, NULL, 0, 0);
    if (done >= 0) return done;
    if (o.messages && (o.prompt || o.system)) return wg_cli_refuse("template", "give --messages, or -p and --system, not both");
    wg_weights *w = NULL;
    wg_error err;
    wg_status s = wg_weights_open(&w, o.model, &err);
    if (!s) s = print_rendered(w, &o, &err);
    wg_weights_close(w);
    return s ? wg_cli_fail(&err) : WG_EXIT_OK;
}
