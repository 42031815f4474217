/* SPDX-License-Identifier: MIT
 * Texts of one cell with the origin of each piece: drafted and accepted; the target's correction of a rejected draft; the
 * bonus token after a fully accepted draft; emitted without a draft. */
#include <string.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "experiments/config/dataset.h"
#include "experiments/report/html.h"
#include "experiments/report/report_parts.h"

enum { SHOWN = 3, MOST_BYTES = 4000 };

/* The prompts of a cell, if their file still exists. */
static wg_dataset *prompts_of(const wg_run_reader *run, int cell)
{
    const json_t *config = json_object_get(json_array_get(run->cells, (size_t)cell), "config");
    const json_t *p = json_object_get(config, "prompts");
    const char *file = json_string_value(json_object_get(p, "file"));
    const json_t *turns = json_object_get(p, "turns"); /* runs of versions without turns have one */
    const wg_dataset_options o = { .merge = json_string_value(json_object_get(p, "merge")),
                                   .category = json_string_value(json_object_get(p, "category")),
                                   .keep_bytes = (int)json_integer_value(json_object_get(p, "keep_bytes")),
                                   .turns = turns ? (int)json_integer_value(turns) : 1 };
    wg_dataset *d = NULL;
    wg_error err;
    if (file) wg_dataset_open(&d, file, &o, &err);
    return d;
}

/* Moves an offset to the beginning of a character. */
static size_t boundary(const char *text, size_t n, size_t at)
{
    while (at < n && ((unsigned char)text[at] & 0xC0) == 0x80) at++;
    return at < n ? at : n;
}

/* The kind of a step's own token. Where all drafts were chains, a step that accepted fewer tokens than were drafted has a
 * correction. In a tree that is certain only when nothing was accepted, because a path may end at a leaf above the deepest
 * one. */
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

/* The CSS class of a step's own token; NULL: the target's, without a draft. */
static const char *own(const steps *s, size_t step)
{
    const json_int_t drafted = json_integer_value(json_array_get(s->drafted, step)),
                     accepted = json_integer_value(json_array_get(s->accepted, step));
    if (drafted == 0) return NULL;
    if (accepted == drafted) return "b";
    return s->chains || accepted == 0 ? "c" : NULL;
}

/* The CSS class of a step's drafted tokens: by component, where the drafter is a composite. */
static const char *author(const steps *s, size_t step)
{
    static const char *const by[] = { "a", "a by1", "a by2", "a by3", "a by4", "a by5" };
    const json_int_t k = json_integer_value(json_array_get(s->part, step));
    return by[k > 0 && k < 6 ? k : 0];
}

static void part(FILE *f, const char *class, const char *text, size_t n)
{
    if (class) fprintf(f, "<span class=\"%s\">", class);
    wg_html_text(f, text, n);
    if (class) fputs("</span>", f);
}

static void marked(FILE *f, const char *text, size_t n, const json_t *turns, const steps *s)
{
    size_t at = 0, target = 0;
    for (size_t i = 0; i < json_array_size(turns) && at < n; i++) {
        target += (size_t)json_integer_value(json_array_get(turns, i));
        const size_t end = boundary(text, n, target);
        if (end <= at) continue;
        part(f, i % 2 == 0 ? author(s, i / 2) : own(s, i / 2), text + at, end - at);
        at = end;
    }
    wg_html_text(f, text + at, n - at);
}

/* Writes one answer; the first of a conversation with the prompt's name. */
static void transcript(FILE *f, const wg_run_reader *run, const wg_entry *e, const wg_dataset *d)
{
    json_t *line = wg_run_reader_line(run, e);
    const json_t *text = json_object_get(line, "text"), *turns = json_object_get(line, "drafted_bytes");
    const steps s = steps_of(line);
    const wg_prompt_key *a = &run->asked[e->prompt];
    const wg_prompt *p = wg_dataset_find(d, a->id, a->hash);
    if (e->turn == 0) {
        fputs("<h3>", f);
        wg_html_puts(f, a->id);
        if (*a->category) fputs(", ", f);
        wg_html_puts(f, a->category);
        fputs("</h3>\n", f);
    }
    fputs("<p class=\"soft\">", f);
    if (e->turn > 0 || (p && p->turns > 1)) fprintf(f, "turn %d: ", e->turn + 1);
    fprintf(f, "%d tokens in %d passes; %d of %d drafted tokens accepted</p>\n", e->tokens, e->passes, e->accepted, e->drafted);
    if (p && e->turn < p->turns) {
        const wg_turn asked = wg_prompt_turn(p, e->turn);
        const size_t n = asked.bytes > MOST_BYTES ? boundary(asked.text, asked.bytes, MOST_BYTES) : asked.bytes;
        fputs("<pre>", f);
        wg_html_text(f, asked.text, n);
        fputs(n < asked.bytes ? " ...</pre>\n" : "</pre>\n", f);
    }
    fputs("<pre>", f);
    if (json_is_string(text)) marked(f, json_string_value(text), json_string_length(text), turns, &s);
    else fputs("(the output is not UTF-8; its ids are in requests.jsonl)", f);
    fputs("</pre>\n", f);
    json_decref(line);
}

/* The components, for the legend; several with their numbers, because two may be of one kind. */
static void authors(FILE *f, const json_t *cell)
{
    const json_t *parts = json_object_get(cell, "parts");
    const size_t n = json_array_size(parts);
    for (size_t k = 0; k < (n ? n : 1); k++) {
        fputs("<li><span class=\"a", f);
        if (k) fprintf(f, " by%zu", k);
        fputs("\">drafted</span> by ", f);
        wg_html_puts(f, json_string_value(json_object_get(n ? json_array_get(parts, k) : cell, "drafter")));
        if (n) fprintf(f, " (part %zu)", k);
        fputs(" and accepted</li>", f);
    }
}

void wg_report_transcripts(FILE *f, const wg_run_reader *run, int cell)
{
    int shown = 0, prompt = -1;
    if (cell < 0) return;
    char *name = wg_run_reader_cell_name(run, cell);
    fputs("<h2>Who wrote what</h2>\n<p class=\"soft\">", f);
    if (!json_is_string(json_object_get(run->config, "trace")) ||
        strcmp(json_string_value(json_object_get(run->config, "trace")), "none") == 0)
        fputs("Run with <code>--set trace=steps</code> to see here which tokens were drafted.</p>\n", f);
    else {
        fputs("Texts of the cell ", f);
        wg_html_name(f, name);
        fputs(".</p>\n<ul class=\"legend\">", f);
        authors(f, json_array_get(json_object_get(run->summary, "cells"), (size_t)cell));
        fputs("<li><span class=\"c\">corrected</span>: the target's, in place of a rejected draft</li><li><span "
              "class=\"b\">bonus</span>: the target's, after a completely accepted draft</li><li>unmarked: the target's, "
              "without a draft, or after a tree draft that does not determine the kind</li></ul>\n",
              f);
        wg_dataset *d = prompts_of(run, cell);
        for (int i = 0; i < run->n; i++) {
            const wg_entry *e = &run->entry[i];
            if (e->cell != cell || !e->ok || e->repeat != 0) continue;
            if (e->prompt != prompt && shown++ == SHOWN) break;
            prompt = e->prompt;
            transcript(f, run, e, d);
        }
        wg_dataset_close(d);
    }
    wg_free(name);
}
