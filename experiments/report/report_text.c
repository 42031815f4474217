/* SPDX-License-Identifier: MIT
 * Texts of one cell with the origin of each piece: drafted and accepted; the target's correction of a rejected draft; the
 * bonus token after a fully accepted draft; emitted without a draft. */
#include <string.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/base/json_number.h"
#include "experiments/config/dataset.h"
#include "experiments/report/report_parts.h"

enum { SHOWN = 3, MOST_BYTES = 4000 };

/* The prompts of a cell, if their file still exists. */
static wg_dataset *prompts_of(const wg_run_reader *run, int cell)
{
    const json_t *config = json_object_get(json_array_get(run->cells, (size_t)cell), "config");
    const char *key;
    json_t *v;
    wg_setup_prompts p;
    wg_error err;
    wg_option_defaults(wg_setup_prompts_table, &p);
    json_object_foreach(json_object_get(config, "prompts"), key, v) { /* a key that is unknown here changes nothing */
        const char *text = json_string_value(v);
        if (text) (void)wg_option_set(wg_setup_prompts_table, &p, key, text, &err);
        else (void)wg_option_set_number(wg_setup_prompts_table, &p, key, json_number_value(v), json_is_integer(v), &err);
    }
    wg_dataset *d = NULL;
    if (*p.file) wg_dataset_open(&d, p.file, &p, &err);
    return d;
}

/* Moves an offset to the beginning of a character. */
static size_t boundary(const char *text, size_t n, size_t at)
{
    while (at < n && ((unsigned char)text[at] & 0xC0) == 0x80) at++;
    return at < n ? at : n;
}

/* The steps of an answer, for the mark of a step's own token. In a chain, a step that accepted fewer tokens than were
 * drafted has a correction. In a tree this is certain only when nothing was accepted, because the path may end at a leaf
 * above the deepest one. */
typedef struct steps {
    const json_t *accepted, *drafted, *part;
    bool chains;
} steps;

static steps steps_of(const json_t *line)
{
    const json_t *spec = json_object_get(line, "speculative_decoding"), *offered = json_object_get(spec, "offered_by_position");
    json_int_t levels = 0;
    for (size_t d = 0; d < json_array_size(offered); d++) levels += json_integer_value(json_array_get(offered, d));
    return (steps){ json_object_get(spec, "per_step_accepted"), json_object_get(spec, "per_step_drafted"),
                    json_object_get(spec, "per_step_part"),
                    levels == json_integer_value(json_object_get(spec, "num_draft_tokens")) };
}

/* The mark of a step's own token; "": the step had no draft. */
static const char *own(const steps *s, size_t step)
{
    const json_int_t drafted = json_integer_value(json_array_get(s->drafted, step)),
                     accepted = json_integer_value(json_array_get(s->accepted, step));
    if (drafted == 0) return "";
    if (accepted == drafted) return "b";
    return s->chains || accepted == 0 ? "c" : "";
}

/* The mark of a step's drafted tokens: that of the component that drafted them, where the drafter is a composite. */
static const char *author(const steps *s, size_t step)
{
    static const char *const by[] = { "a", "a by1", "a by2", "a by3", "a by4", "a by5" };
    const json_int_t k = json_integer_value(json_array_get(s->part, step));
    return by[k > 0 && k < 6 ? k : 0];
}

static void add_piece(json_t *pieces, const char *mark, const char *text, size_t n)
{
    if (n) json_array_append_new(pieces, json_pack("[s, s%]", mark, text, n));
}

/* Cuts a text of n bytes into pieces. turns: for each step the bytes of its drafted tokens and of its own token,
 * alternately. */
static json_t *pieces_of(const char *text, size_t n, const json_t *turns, const steps *s)
{
    json_t *pieces = json_array();
    size_t at = 0, target = 0;
    for (size_t i = 0; i < json_array_size(turns) && at < n; i++) {
        target += (size_t)json_integer_value(json_array_get(turns, i));
        const size_t end = boundary(text, n, target);
        if (end <= at) continue;
        add_piece(pieces, i % 2 == 0 ? author(s, i / 2) : own(s, i / 2), text + at, end - at);
        at = end;
    }
    add_piece(pieces, "", text + at, n - at);
    return pieces;
}

static json_t *answer(const wg_run_reader *run, const wg_entry *e, const wg_dataset *d)
{
    json_t *line = wg_run_reader_line(run, e);
    const json_t *text = json_object_get(line, "text"), *turns = json_object_get(line, "drafted_bytes");
    const steps s = steps_of(line);
    const wg_prompt_key *a = &run->asked[e->prompt];
    const wg_prompt *p = wg_dataset_find(d, a->id, a->hash);
    json_t *o =
        json_pack("{s:o, s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:o*}", "id", wg_json_text(a->id), "category",
                  wg_json_text(a->category), "turn", e->turn, "turns", p ? p->turns : 1, "tokens", e->tokens, "passes",
                  e->passes, "accepted", e->accepted, "drafted", e->drafted, "pieces",
                  json_is_string(text) ? pieces_of(json_string_value(text), json_string_length(text), turns, &s) : NULL);
    if (p && e->turn < p->turns) {
        const wg_turn asked = wg_prompt_turn(p, e->turn);
        const size_t n = asked.bytes > MOST_BYTES ? boundary(asked.text, asked.bytes, MOST_BYTES) : asked.bytes;
        json_object_set_new(o, "prompt", json_stringn(asked.text, n));
        json_object_set_new(o, "cut", json_boolean(n < asked.bytes));
    }
    json_decref(line);
    return o;
}

/* The names of the drafters of a cell: its drafter, or the components of a composite. */
static json_t *drafters(const json_t *cell)
{
    const json_t *parts = json_object_get(cell, "parts");
    const size_t n = json_array_size(parts);
    json_t *all = json_array();
    for (size_t k = 0; k < (n ? n : 1); k++)
        json_array_append_new(all, wg_json_text(wg_json_word(n ? json_array_get(parts, k) : cell, "drafter")));
    return all;
}

json_t *wg_report_texts(const wg_run_reader *run, int cell)
{
    int shown = 0, prompt = -1;
    const char *trace = wg_json_word(run->config, "trace");
    if (cell < 0) return NULL;
    json_t *o = json_pack("{s:i, s:o}", "cell", cell, "drafters",
                          drafters(json_array_get(json_object_get(run->summary, "cells"), (size_t)cell)));
    if (!*trace || strcmp(trace, "none") == 0) return o;
    json_t *answers = json_array();
    wg_dataset *d = prompts_of(run, cell);
    for (int i = 0; i < run->n; i++) {
        const wg_entry *e = &run->entry[i];
        if (e->cell != cell || !e->ok || e->repeat != 0) continue;
        if (e->prompt != prompt && shown++ == SHOWN) break;
        prompt = e->prompt;
        json_array_append_new(answers, answer(run, e, d));
    }
    wg_dataset_close(d);
    json_object_set_new(o, "answers", answers);
    return o;
}
