/* SPDX-License-Identifier: MIT
 * Reading JSONL prompts line by line; then the selection by options. */
#include "experiments/config/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/read_file.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "kernels/philox.h"

static void prompt_free(wg_prompt *p)
{
    for (int i = 1; p->later && i < p->turns; i++) wg_free(p->later[i - 1].text);
    wg_free(p->later);
    wg_free(p->text);
    wg_free(p->id);
    wg_free(p->category);
}

void wg_dataset_close(wg_dataset *d)
{
    if (!d) return;
    for (int i = 0; i < d->n; i++) prompt_free(&d->prompt[i]);
    wg_free(d->prompt);
    wg_free(d->path);
    wg_free(d);
}

wg_turn wg_prompt_turn(const wg_prompt *p, int turn) { return turn ? p->later[turn - 1] : (wg_turn){ p->text, p->bytes }; }

wg_status wg_prompt_encode(wg_question *out, const wg_tokenizer *t, const wg_chat *chat, const wg_prompt *p, wg_error *err)
{
    wg_text *asked = wg_alloc((size_t)p->turns, sizeof *asked);
    if (!asked) return wg_nomem(err, (size_t)p->turns * sizeof *asked, "a conversation");
    for (int i = 0; i < p->turns; i++) {
        const wg_turn turn = wg_prompt_turn(p, i);
        asked[i] = (wg_text){ turn.text, turn.bytes };
    }
    const wg_status s = wg_conversation_encode(out, t, chat, asked, p->turns, err);
    wg_free(asked);
    return s;
}

int wg_dataset_questions(const wg_dataset *d, int first, int n)
{
    const wg_prompt *last = &d->prompt[first + n - 1];
    return last->before + last->turns - d->prompt[first].before;
}

/* Texts contain no NUL here, so a NUL separates them unambiguously. */
void wg_prompt_digest(const wg_prompt *p, char hex[WG_SHA256_HEX])
{
    wg_sha256_state sha;
    wg_sha256_begin(&sha);
    for (int i = 0; i < p->turns; i++) {
        const wg_turn t = wg_prompt_turn(p, i);
        if (i) wg_sha256_add(&sha, "", 1);
        wg_sha256_add(&sha, t.text, t.bytes);
    }
    wg_sha256_end(&sha, hex);
}

const wg_prompt *wg_dataset_find(const wg_dataset *d, const char *id, const char *hash)
{
    for (int i = 0; d && *hash && i < d->n; i++) {
        char sha[WG_SHA256_HEX];
        if (strcmp(d->prompt[i].id, id) != 0) continue;
        wg_prompt_digest(&d->prompt[i], sha);
        if (!strncmp(sha, hash, strlen(hash))) return &d->prompt[i];
    }
    return NULL;
}

#define MESSAGES "%s: \"messages\" must be a list of {\"role\": \"user\", \"content\": text}"

/* Converts `messages` of a user alone, as SPEED-Bench's preparation writes them, to `turns`. */
static wg_status turns_of_messages(json_t *line, const char *where, wg_error *err)
{
    const json_t *messages = json_object_get(line, "messages"), *m;
    json_t *turns = json_array();
    size_t i;
    wg_status s = json_array_size(messages) ? WG_OK : wg_fail(err, WG_EFORMAT, MESSAGES, where);
    json_array_foreach(messages, i, m) {
        const char *role = json_string_value(json_object_get(m, "role"));
        json_t *content = json_object_get(m, "content");
        if (role && strcmp(role, "user") != 0)
            s = wg_fail(err, WG_EUNSUPPORTED,
                        "%s: \"messages\" has one of the role \"%.40s\"; only questions of the user are read", where, role);
        else if (!role || !json_is_string(content)) s = wg_fail(err, WG_EFORMAT, MESSAGES, where);
        if (s) break;
        json_array_append(turns, content);
    }
    if (s) json_decref(turns);
    else json_object_set_new(line, "turns", turns);
    return s;
}

/* Refuses SPEED-Bench's notices in place of texts that may not be copied; drafts of them would measure nothing. */
static wg_status refuse_notices(const wg_dataset *d, const json_t *texts, int line, wg_error *err)
{
    const size_t n = json_is_array(texts) ? json_array_size(texts) : 1;
    for (size_t i = 0; i < n; i++)
        if (strstr(json_string_value(json_is_array(texts) ? json_array_get(texts, i) : texts),
                   "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE"))
            return wg_fail(err, WG_EFORMAT,
                           "%s:%d: this is no prompt but a notice that the text must be fetched; prepare the dataset with its "
                           "publisher's program, or remove the line",
                           d->path, line);
    return WG_OK;
}

/* The texts of a line: `prompt` or `question`, or the list `turns`, or of `messages`. */
static wg_status prompt_texts(json_t *line, const char *where, const json_t **out, wg_error *err)
{
    static const char *const keys[] = { "prompt", "question", "turns" };
    const char *key = NULL;
    for (int i = 0; i < 3 && !key; i++)
        if (json_object_get(line, keys[i])) key = keys[i];
    if (!key && json_object_get(line, "messages")) {
        WG_TRY(turns_of_messages(line, where, err));
        key = keys[2];
    }
    if (!key)
        return wg_fail(err, WG_EFORMAT,
                       "%s: expected a key \"prompt\" or \"question\" (text), \"turns\" (a list of texts) or \"messages\"",
                       where);
    const json_t *v = json_object_get(line, key);
    const bool list = *key == 't';
    const size_t n = list ? json_array_size(v) : 1;
    if (n > WG_TURNS_MAX)
        return wg_fail(err, WG_EFORMAT, "%s: \"turns\" has %zu texts; at most %d are allowed", where, n, WG_TURNS_MAX);
    for (size_t i = 0; i < n || i == 0; i++) {
        const json_t *text = list ? json_array_get(v, i) : v;
        if (!json_is_string(text))
            return wg_fail(err, WG_EFORMAT, "%s: \"%s\" must be %s", where, key, list ? "a list of texts" : "text");
        if (json_string_length(text) == 0)
            return wg_fail(err, WG_EFORMAT, "%s: \"%s\" %s empty; remove %s or give it a text", where, key,
                           list && n > 1 ? "has a text that is" : "is", list && n > 1 ? "that text" : "the line");
    }
    *out = v;
    return WG_OK;
}

/* A string or number that is a label, as a string; `fallback` when the key is absent. */
static char *label(const json_t *v, const char *fallback)
{
    char number[32];
    if (json_is_string(v)) return wg_strdup(json_string_value(v));
    if (!json_is_integer(v)) return wg_strdup(fallback);
    snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    return wg_strdup(number);
}

static const json_t *id_of(const json_t *line)
{
    static const char *const keys[] = { "id", "question_id", "task_id" };
    const json_t *id = NULL;
    for (int i = 0; i < 3 && !id; i++) id = json_object_get(line, keys[i]);
    return id;
}

/* ---- merged categories: "new=old|old;new=old" -------------------------------------------------------------------- */

static wg_status check_merge(const char *merge, wg_error *err)
{
    bool ok = true;
    for (const char *p = merge; ok && *p;) {
        const size_t n = strcspn(p, ";"), name = strcspn(p, "=");
        ok = name > 0 && name + 1 < n && p[n - 1] != '|' && p[name + 1] != '|';
        p += n + (p[n] == ';');
    }
    return ok ? WG_OK
              : wg_fail(err, WG_EINVAL, "merge: \"%.200s\": expected new names of categories, such as \"chat=writing|coding\"",
                        merge);
}

/* The new name of a category, n bytes at the returned place; itself when `merge` does not name it. */
static const char *merged(const char *merge, const char *category, size_t *n)
{
    const size_t len = strlen(category);
    for (const char *p = merge; *p; p += strcspn(p, ";"), p += *p == ';') {
        const size_t name = strcspn(p, "=");
        for (const char *old = p + name + 1;; old++) {
            const size_t m = strcspn(old, "|;");
            if (m == len && memcmp(old, category, len) == 0) return *n = name, p;
            old += m;
            if (*old != '|') break;
        }
    }
    return *n = len, category;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* The end of a text: at most `keep` bytes, from the beginning of a character (0: all). */
static const char *end_of(const char *text, size_t *n, int keep)
{
    size_t skip = keep && *n > (size_t)keep ? *n - (size_t)keep : 0;
    while (skip < *n && ((unsigned char)text[skip] & 0xC0) == 0x80) skip++;
    *n -= skip;
    return text + skip;
}

static wg_turn copy_text(const json_t *text, int keep)
{
    size_t bytes = json_string_length(text);
    const char *kept = end_of(json_string_value(text), &bytes, keep);
    return (wg_turn){ wg_strndup(kept, bytes), bytes };
}

/* Copies the questions of a line into p; false: out of memory, and p holds the copies made so far. */
static bool copy_texts(wg_prompt *p, const json_t *texts, const wg_setup_prompts *from)
{
    const int n = json_is_array(texts) ? (int)json_array_size(texts) : 1;
    const wg_turn first = copy_text(json_is_array(texts) ? json_array_get(texts, 0) : texts, from->keep_bytes);
    p->text = first.text;
    p->bytes = first.bytes;
    p->turns = from->turns && from->turns < n ? from->turns : n;
    if (p->turns > 1 && !(p->later = wg_calloc((size_t)p->turns - 1, sizeof *p->later))) return false;
    bool ok = p->text;
    for (int i = 1; i < p->turns && ok; i++) {
        p->later[i - 1] = copy_text(json_array_get(texts, (size_t)i), from->keep_bytes);
        ok = p->later[i - 1].text;
    }
    return ok;
}

static wg_status push(wg_dataset *d, size_t *cap, const json_t *line, const json_t *texts, int number,
                      const wg_setup_prompts *from, wg_error *err)
{
    char fallback[32];
    snprintf(fallback, sizeof fallback, "line-%d", number);
    size_t name;
    const char *own = json_string_value(json_object_get(line, "category"));
    const char *category = merged(from->merge, own ? own : "", &name);
    if (*from->category && (strlen(from->category) != name || memcmp(from->category, category, name) != 0)) return WG_OK;
    WG_TRY(refuse_notices(d, texts, number, err));
    WG_TRY(wg_grow((void **)&d->prompt, cap, (size_t)d->n + 1, sizeof *d->prompt, "prompts", err));
    wg_prompt p = { .id = label(id_of(line), fallback), .category = wg_strndup(category, name), .line = number };
    if (!copy_texts(&p, texts, from) || !p.id || !p.category) {
        prompt_free(&p);
        return wg_nomem(err, p.bytes, "a prompt");
    }
    d->prompt[d->n++] = p;
    return WG_OK;
}

static wg_status take_line(wg_dataset *d, size_t *cap, const char *bytes, size_t n, int number, const wg_setup_prompts *from,
                           wg_error *err)
{
    char where[600];
    snprintf(where, sizeof where, "%s:%d", d->path, number);
    json_error_t e;
    json_t *line = wg_json_load_foreign(bytes, n, JSON_REJECT_DUPLICATES, &e);
    const json_t *texts = NULL;
    wg_status s = WG_OK;
    if (!line && !*e.text) s = wg_nomem(err, n, "a prompt");
    else if (!line)
        s = wg_fail(err, WG_EFORMAT, "%s:%d: %s; a prompt file has one JSON object on each line", where,
                    e.column < 1 ? 1 : e.column, wg_json_why(&e));
    else if (!json_is_object(line)) s = wg_fail(err, WG_EFORMAT, "%s: expected a JSON object with a \"prompt\"", where);
    if (s == WG_OK) s = prompt_texts(line, where, &texts, err);
    if (s == WG_OK) s = push(d, cap, line, texts, number, from, err);
    json_decref(line);
    return s;
}

static wg_status read_lines(wg_dataset *d, FILE *f, const wg_setup_prompts *from, wg_error *err)
{
    char *line = NULL; /* allocated by getline, not by core/base/mem.h */
    size_t size = 0, cap = 0;
    ssize_t n;
    int number = 0;
    wg_status s = WG_OK;
    wg_sha256_state sha;
    wg_sha256_begin(&sha);
    while (s == WG_OK && (n = getline(&line, &size, f)) >= 0) {
        number++;
        wg_sha256_add(&sha, line, (size_t)n);
        const size_t mark = number == 1 ? wg_byte_order_mark(line, (size_t)n) : 0;
        const char *text = line + mark;
        n -= (ssize_t)mark;
        if (strspn(text, " \t\r\n") < (size_t)n) s = take_line(d, &cap, text, (size_t)n, number, from, err);
    }
    if (s == WG_OK && ferror(f)) s = wg_fail(err, WG_EIO, "%s: cannot read: %s", d->path, strerror(errno));
    free(line);
    wg_sha256_end(&sha, d->sha256);
    return s;
}

/* ---- selection --------------------------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const wg_prompt *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : x->line - y->line;
}

static void choose(wg_dataset *d, const wg_setup_prompts *from)
{
    for (int i = 0; from->shuffle && i < d->n; i++) {
        const wg_philox r = wg_philox_at((uint64_t)from->shuffle, (uint32_t)d->prompt[i].line, 0, 0, 0);
        d->prompt[i].key = (uint64_t)r.v[0] << 32 | r.v[1];
    }
    if (from->shuffle && d->n) qsort(d->prompt, (size_t)d->n, sizeof *d->prompt, by_key);
    int kept = 0;
    for (int i = 0; i < d->n; i++) {
        int same = 0;
        for (int k = 0; from->per_category && k < kept && same < from->per_category; k++)
            same += !strcmp(d->prompt[k].category, d->prompt[i].category);
        const bool keep = (!from->per_category || same < from->per_category) && (!from->limit || kept < from->limit);
        if (!keep) prompt_free(&d->prompt[i]);
        else if (kept++ != i) d->prompt[kept - 1] = d->prompt[i];
    }
    d->n = kept;
    for (int i = 0; i < kept; i++) {
        wg_prompt *p = &d->prompt[i];
        p->before = d->questions;
        d->questions += p->turns;
        if (p->turns > d->turns) d->turns = p->turns;
    }
}

wg_status wg_dataset_open(wg_dataset **out, const char *path, const wg_setup_prompts *from, wg_error *err)
{
    static const wg_setup_prompts everything = { .limit = 0 };
    if (!from) from = &everything;
    if (*from->merge) WG_TRY(check_merge(from->merge, err));
    wg_dataset *d = wg_calloc(1, sizeof *d);
    if (!d) return wg_nomem(err, sizeof *d, "a prompt set");
    d->path = wg_strdup(path);
    FILE *f = d->path ? fopen(path, "rbe") : NULL;
    wg_status s;
    if (!d->path) s = wg_nomem(err, 1, "a path");
    else if (!f) s = wg_fail(err, errno == ENOENT ? WG_ENOENT : WG_EIO, "%s: cannot open: %s", path, strerror(errno));
    else s = read_lines(d, f, from, err);
    if (f) fclose(f);
    if (s == WG_OK) choose(d, from);
    const bool some = *from->category;
    if (s == WG_OK && d->n == 0)
        s = wg_fail(err, WG_EINVAL, some ? "%s: no prompt of category \"%s\"" : "%s: no prompts%s", path,
                    some ? from->category : "");
    if (s == WG_OK) *out = d;
    else wg_dataset_close(d);
    return s;
}
