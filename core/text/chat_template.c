/* SPDX-License-Identifier: MIT
 * Chat templates of weights files (chat_template.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "core/text/chat_template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"

#define KEY "tokenizer.chat_template"
enum { TEXT_MAX = 256 << 20 };

/* ---- reading and rendering */

static wg_status no_template(const wg_weights *w, const char *variant, wg_error *err)
{
    char names[300] = "";
    if (!variant)
        return wg_fail(err, WG_EMODEL,
                       "%s: has no chat template (key " KEY "); choose one by name: llama-2, llama-3, chatml, zephyr or vicuna",
                       wg_weights_path(w));
    for (int i = 0; i < wg_meta_count(w); i++)
        if (!strncmp(wg_meta_key(w, i), KEY ".", sizeof KEY) && strlen(names) < 200)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%.60s", *names ? ", " : "",
                     wg_meta_key(w, i) + sizeof KEY);
    return wg_fail(err, WG_EMODEL, "%s: has no chat template of the name %.60s; there are: %s", wg_weights_path(w), variant,
                   *names ? names : "none by name");
}

/* A special token's text as a variable of the template: as the file's tokenizer_config.json has it, else that of its id. */
static void set_token(json_t *to, const wg_weights *w, const char *name, const char *text_key, const char *id_key)
{
    wg_text text;
    int64_t id;
    wg_meta_kind kind;
    bool stated = false;
    const bool known =
        wg_meta_string(w, text_key, &text) ||
        (!wg_meta_bool(w, "wager.special_tokens", &stated) && wg_meta_int(w, id_key, &id) && id >= 0 &&
         id < wg_meta_array(w, "tokenizer.ggml.tokens", &kind) && wg_meta_array_string(w, "tokenizer.ggml.tokens", id, &text));
    if (known) json_object_set_new(to, name, json_stringn_nocheck(text.s, text.n));
}

static wg_status read_date(const char *date, struct tm *out, wg_error *err)
{
    int n = 0;
    *out = (struct tm){ .tm_hour = 12, .tm_isdst = -1 };
    if (sscanf(date, "%4d-%2d-%2d%n", &out->tm_year, &out->tm_mon, &out->tm_mday, &n) != 3 || date[n] || strlen(date) != 10 ||
        out->tm_mon < 1 || out->tm_mon > 12 || out->tm_mday < 1 || out->tm_mday > 31 || out->tm_year < 1900)
        return wg_fail(err, WG_EINVAL, "the date \"%.40s\": expected a year, month and day such as 2026-01-31", date);
    out->tm_year -= 1900;
    out->tm_mon--;
    timegm(out); /* the day of the week and of the year */
    return WG_OK;
}

static wg_status render(const wg_weights *w, wg_text text, const json_t *data, const struct tm *now, wg_rendered *out,
                        wg_error *err)
{
    char name[300];
    wg_jinja *t;
    json_t *trusted = json_object(), *all = json_copy((json_t *)(uintptr_t)data);
    snprintf(name, sizeof name, "%.250s: chat template", wg_weights_path(w));
    if (!trusted || !all) {
        json_decref(trusted);
        json_decref(all);
        return wg_nomem(err, 1, "a conversation");
    }
    if (!json_object_get(all, "tools")) json_object_set_new(all, "tools", json_null());
    if (!json_object_get(all, "documents")) json_object_set_new(all, "documents", json_null());
    set_token(trusted, w, "bos_token", "wager.bos_token", "tokenizer.ggml.bos_token_id");
    set_token(trusted, w, "eos_token", "wager.eos_token", "tokenizer.ggml.eos_token_id");
    wg_status s = wg_jinja_open(&t, name, text.s, text.n, err);
    if (!s) {
        const wg_jinja_input in = { .data = all, .trusted = trusted, .now = now };
        s = wg_jinja_render(t, &in, out, err);
        wg_jinja_close(t);
    }
    json_decref(trusted);
    json_decref(all);
    return s;
}

wg_status wg_chat_template_render(const wg_weights *w, const char *variant, const wg_text *text, const json_t *data,
                                  const char *date, wg_rendered *out, wg_error *err)
{
    char key[200];
    wg_text own;
    struct tm now;
    const bool dated = date && *date;
    if (variant && !strcmp(variant, "default")) variant = NULL;
    snprintf(key, sizeof key, KEY "%s%.100s", variant ? "." : "", variant ? variant : "");
    if (!text && !wg_meta_string(w, key, &own)) return no_template(w, variant, err);
    if (dated) WG_TRY(read_date(date, &now, err));
    return render(w, text ? *text : own, data, dated ? &now : NULL, out, err);
}

/* ---- conversations whose messages are all heard */

#define MARK "wagermark"

static const char *text_of(const json_t *message, const char *key) { return json_string_value(json_object_get(message, key)); }

/* What a member of a message says: texts, and the names of calls. A copy with "wagermark17." behind the text that has the
 * number 17, *number on; the member itself where it says nothing. NULL: out of memory. */
static json_t *marked_member(const char *key, json_t *value, size_t *number)
{
    static const char *const texts[] = { "content", "name", "reasoning_content", "reasoning", NULL };
    const char *const *text = texts;
    while (*text && strcmp(*text, key) != 0) text++;
    if (*text && json_string_length(value)) return json_sprintf("%s" MARK "%zu.", json_string_value(value), (*number)++);
    if (strcmp(key, "tool_calls") != 0 || !json_is_array(value)) return json_incref(value);
    json_t *calls = json_deep_copy(value), *call;
    size_t i;
    json_array_foreach(calls, i, call) {
        json_t *of = json_is_object(json_object_get(call, "function")) ? json_object_get(call, "function") : call;
        if (!text_of(of, "name")) continue;
        if (!json_object_set_new(of, "name", json_sprintf("%s" MARK "%zu.", text_of(of, "name"), (*number)++))) continue;
        json_decref(calls);
        return NULL;
    }
    return calls;
}

/* A copy of data in which all that the messages say is marked. NULL: out of memory. */
static json_t *marked(const json_t *data, size_t *number)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)data), *messages = json_array(), *m, *value;
    const char *key;
    size_t i;
    bool whole = copy && messages;
    *number = 0;
    json_array_foreach(json_object_get(data, "messages"), i, m) {
        json_t *one = json_copy(m);
        json_object_foreach(m, key, value) whole = !json_object_set_new(one, key, marked_member(key, value, number)) && whole;
        whole = !json_array_append_new(messages, one) && whole;
    }
    whole = !json_object_set_new(copy, "messages", messages) && whole;
    if (whole) return copy;
    json_decref(copy);
    return NULL;
}

static wg_status unheard(const json_t *message, size_t i, const char *key, wg_error *err)
{
    const char *role = text_of(message, "role");
    if (strcmp(key, "content") != 0)
        return wg_fail(err, WG_EINVAL, "messages[%zu].%.40s: the model's chat template leaves it out; say it in the content", i,
                       key);
    return wg_fail(
        err, WG_EINVAL,
        "messages[%zu]: the model's chat template leaves out this message of the role \"%.40s\", at this place; use a "
        "role that it knows, such as user",
        i, role ? role : "");
}

/* Refuses the first of n marks that is not in the text. */
static wg_status check_marks(const json_t *messages, size_t n, const wg_rendered *r, wg_error *err)
{
    size_t i, number = 0;
    json_t *m, *value;
    const char *key;
    wg_status s = WG_OK;
    bool *heard = wg_calloc(n + 1, sizeof *heard);
    if (!heard) return wg_nomem(err, n, "the messages of a conversation");
    for (const char *at = r->text; (at = strstr(at, MARK)); at++) {
        char *end;
        const unsigned long long k = strtoull(at + sizeof MARK - 1, &end, 10);
        if (*end == '.' && k < n) heard[k] = true;
    }
    json_array_foreach(messages, i, m)
        json_object_foreach(m, key, value) {
            size_t k = number;
            json_decref(marked_member(key, value, &number));
            for (; k < number && k < n && !s; k++)
                if (!heard[k]) s = unheard(m, i, key, err);
        }
    wg_free(heard);
    return s;
}

/* Renames developers where the template does not have the word. */
static void rename_developers(const wg_weights *w, json_t *messages)
{
    wg_text own;
    size_t i;
    json_t *m;
    if (!wg_meta_string(w, KEY, &own) || memmem(own.s, own.n, "developer", 9)) return;
    json_array_foreach(messages, i, m) {
        const char *role = text_of(m, "role");
        if (role && !strcmp(role, "developer")) json_object_set_new(m, "role", json_string("system"));
    }
}

wg_status wg_chat_template_conversation(const wg_weights *w, json_t *data, const char *date, wg_rendered *out, wg_error *err)
{
    wg_rendered twice;
    size_t marks;
    json_t *messages = json_object_get(data, "messages");
    rename_developers(w, messages);
    WG_TRY(wg_chat_template_render(w, NULL, NULL, data, date, out, err));
    json_t *copy = marked(data, &marks);
    wg_status s = copy ? wg_chat_template_render(w, NULL, NULL, copy, date, &twice, err) : wg_nomem(err, 1, "a conversation");
    json_decref(copy);
    if (!s) {
        s = check_marks(messages, marks, &twice, err);
        wg_rendered_free(&twice);
    }
    if (s) wg_rendered_free(out);
    return s;
}

/* ---- tokens */

typedef struct encoder {
    const wg_tokenizer *t;
    const wg_rendered *r;
    wg_merger m;
    wg_ids ids;
    size_t words;  /* where the words begin that are not encoded yet */
    bool begins;   /* they begin a stretch of text */
    size_t closed; /* ids up to an end of text that has only spaces before it; 0: none */
} encoder;

static wg_status put_words(encoder *e, size_t to, wg_error *err)
{
    const size_t from = e->words;
    return to > from ? wg_tokenizer_encode_part(e->t, e->r->text + from, to - from, e->begins, &e->m, &e->ids, err) : WG_OK;
}

static bool is_space(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] != ' ' && (s[i] < '\t' || s[i] > '\r')) return false;
    return true;
}

static wg_status put_control(encoder *e, const wg_special_place *x, bool first, wg_error *err)
{
    const bool bare = is_space(e->r->text + e->words, x->from - e->words);
    WG_TRY(put_words(e, x->from, err));
    WG_TRY(wg_ids_push(&e->ids, x->id, err));
    if (first && bare && wg_tokenizer_is_eog(e->t, x->id)) e->closed = e->ids.n;
    e->words = x->end;
    e->begins = true;
    return WG_OK;
}

static wg_status encode_all(encoder *e, wg_error *err)
{
    const wg_text s = { e->r->text, e->r->n };
    bool first = true;
    for (size_t at = e->words, own = at; at < s.n;) {
        wg_special_place user, x = { .id = -1 };
        if (own < at) own = at;
        while (own < s.n && !e->r->data[own]) own++; /* at .. own - 1 come from the template */
        const size_t plain = wg_tokenizer_special(e->t, s, e->words, at, s.n, false, &user);
        const size_t len = own > at ? wg_tokenizer_special(e->t, s, e->words, at, own, true, &x) : 0;
        if (len > plain && wg_tokenizer_is_control(e->t, x.id)) {
            WG_TRY(put_control(e, &x, first, err));
            first = false;
            at = e->words;
        } else at += plain ? plain : 1;
    }
    return put_words(e, s.n, err);
}

/* The ids of a rendered text from an offset on; closed may be NULL. */
static wg_status encode_from(const wg_tokenizer *t, const wg_rendered *r, size_t from, int32_t **ids, size_t *n_ids,
                             size_t *closed, wg_error *err)
{
    encoder e = { .t = t, .r = r, .words = from, .begins = from == 0, .ids.capacity = 64 };
    if (r->n > TEXT_MAX)
        return wg_fail(err, WG_EINVAL, "a conversation of more than %d bytes cannot be encoded; shorten its texts", TEXT_MAX);
    e.ids.v = wg_alloc(e.ids.capacity, sizeof *e.ids.v);
    if (!e.ids.v) return wg_nomem(err, e.ids.capacity * sizeof *e.ids.v, "token ids");
    const wg_status s = encode_all(&e, err);
    wg_merger_free(&e.m);
    if (s) {
        wg_free(e.ids.v);
        return s;
    }
    *ids = e.ids.v;
    *n_ids = e.ids.n;
    if (closed) *closed = e.closed;
    return WG_OK;
}

wg_status wg_chat_template_ids(const wg_tokenizer *t, const wg_rendered *r, int32_t **ids, size_t *n_ids, wg_error *err)
{
    return encode_from(t, r, 0, ids, n_ids, NULL, err);
}

/* ---- conversations */

static const char placeholder[] = "wager-answer";

static void add_message(json_t *messages, const char *role, const char *text, size_t n)
{
    json_t *m = json_object();
    json_object_set_new(m, "role", json_string(role));
    json_object_set_new(m, "content", json_stringn_nocheck(text, n));
    json_array_append_new(messages, m);
}

/* Renders n texts in turn, a question first; with `asked`, n questions with placeholders for the answers between them. */
static wg_status render_turns(const wg_chat *chat, const wg_text *turn, int n, bool asked, wg_rendered *out, wg_error *err)
{
    json_t *messages = json_array(), *data = json_object();
    if (chat->system && *chat->system) add_message(messages, "system", chat->system, strlen(chat->system));
    for (int i = 0; i < n; i++) {
        if (asked && i) add_message(messages, "assistant", placeholder, sizeof placeholder - 1);
        add_message(messages, asked || i % 2 == 0 ? "user" : "assistant", turn[i].s, turn[i].n);
    }
    json_object_set_new(data, "messages", messages);
    json_object_set_new(data, "add_generation_prompt", json_true());
    wg_status s;
    if (!data) s = wg_nomem(err, 1, "a conversation");
    else if (chat->system && *chat->system) s = wg_chat_template_conversation(chat->model, data, chat->date, out, err);
    else s = wg_chat_template_render(chat->model, NULL, NULL, data, chat->date, out, err);
    json_decref(data);
    return s;
}

wg_status wg_chat_template_encode(const wg_tokenizer *t, const wg_chat *chat, const wg_text *turn, int n, int32_t **ids,
                                  size_t *n_ids, wg_error *err)
{
    wg_rendered r;
    WG_TRY(render_turns(chat, turn, n, false, &r, err));
    const wg_status s = wg_chat_template_ids(t, &r, ids, n_ids, err);
    wg_rendered_free(&r);
    return s;
}

/* Where the text behind the last answer begins; `before` is what the template rendered when it asked for that answer. */
static wg_status find_answer(const wg_chat *chat, const wg_rendered *before, const wg_rendered *all, size_t *at, wg_error *err)
{
    const size_t n = sizeof placeholder - 1;
    size_t same = 0, to;
    while (same < before->n && same < all->n && before->text[same] == all->text[same]) same++;
    for (to = same; to < all->n && is_space(all->text + to, 1); to++) continue;
    if (same == before->n && all->n - to >= n && memcmp(all->text + to, placeholder, n) == 0) {
        *at = to + n;
        return WG_OK;
    }
    return wg_fail(
        err, WG_EMODEL,
        "%s: the chat template writes an earlier turn in other words than it had asked for the answer (from byte %zu "
        "on), so a conversation cannot go on from its tokens; use one turn, or a template by name",
        wg_weights_path(chat->model), same);
}

/* Both renderings of a conversation: at the last answer's beginning, and with the question behind it. */
static wg_status render_next(const wg_chat *chat, const wg_text *question, int n, wg_rendered *all, size_t *at, wg_error *err)
{
    wg_rendered before;
    if (n < 2) return wg_fail(err, WG_EINVAL, "a next question needs the one before it: %d questions of a conversation", n);
    WG_TRY(render_turns(chat, question, n - 1, true, &before, err));
    wg_status s = render_turns(chat, question, n, true, all, err);
    if (!s && (s = find_answer(chat, &before, all, at, err))) wg_rendered_free(all);
    wg_rendered_free(&before);
    return s;
}

wg_status wg_chat_template_next(const wg_tokenizer *t, const wg_chat *chat, const wg_text *question, int n, int32_t **ids,
                                size_t *n_ids, size_t *closed, wg_error *err)
{
    wg_rendered all;
    size_t at = 0;
    WG_TRY(render_next(chat, question, n, &all, &at, err));
    const wg_status s = encode_from(t, &all, at, ids, n_ids, closed, err);
    wg_rendered_free(&all);
    return s;
}

wg_status wg_chat_template_check(const wg_tokenizer *t, const wg_chat *chat, bool turns, wg_error *err)
{
    const wg_text question[2] = { { "a", 1 }, { "b", 1 } };
    int32_t *ids;
    size_t n, closed;
    WG_TRY(wg_chat_template_encode(t, chat, question, 1, &ids, &n, err));
    wg_free(ids);
    if (!turns) return WG_OK;
    WG_TRY(wg_chat_template_next(t, chat, question, 2, &ids, &n, &closed, err));
    wg_free(ids);
    return WG_OK;
}

size_t wg_chat_template_bytes(const wg_chat *chat)
{
    const wg_text question[2] = { { "a", 1 }, { "b", 1 } };
    wg_rendered first, all;
    size_t at = 0, n;
    if (render_turns(chat, question, 1, true, &first, NULL) != WG_OK) return 0;
    n = first.n;
    wg_rendered_free(&first);
    if (render_next(chat, question, 2, &all, &at, NULL) != WG_OK) return n;
    if (all.n - at > n) n = all.n - at;
    wg_rendered_free(&all);
    return n;
}
