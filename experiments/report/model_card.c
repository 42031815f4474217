/* SPDX-License-Identifier: MIT */
#include "experiments/report/model_card.h"

#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/json_number.h"
#include "experiments/report/html.h"

static const json_t *member(const json_t *o, const char *key) { return json_object_get(o, key); }
static long long number(const json_t *o, const char *key) { return (long long)wg_json_int(o, key); }

/* A text inside a line of Markdown, or a cell of a table. */
static void put_text(FILE *f, const char *s)
{
    for (; *s; s++) {
        if (*s == '|') fputc('\\', f);
        fputc(*s == '\n' ? ' ' : *s, f);
    }
}

/* "0.731 [0.702, 0.760]", or "-". */
static void put_measured(FILE *f, const json_t *o, const char *key, const char *unit)
{
    char ci[64];
    snprintf(ci, sizeof ci, "%s_ci", key);
    const double v = wg_json_measured(o, key);
    if (!isfinite(v)) {
        fputs("-", f);
        return;
    }
    fprintf(f, "%.3f%s", v, unit);
    if (json_is_array(member(o, ci))) fprintf(f, " [%.3f, %.3f]", wg_json_item(o, ci, 0), wg_json_item(o, ci, 1));
}

/* ---- what it is */

static void put_head(FILE *f, const json_t *card)
{
    fputs("---\n", f);
    if (json_is_true(member(card, "hf"))) fputs("library_name: transformers\n", f);
    fputs("pipeline_tag: text-generation\ntags:\n- speculative-decoding\n- draft-model\n---\n\n# ", f);
    fprintf(f, "%s\n\n", wg_json_word(card, "name"));
    fputs("A draft model for speculative decoding: it proposes tokens, a larger target with the same tokenizer verifies them.\n"
          "Written by `wager export` (wager " WG_VERSION ").\n\n",
          f);
}

static void put_sizes(FILE *f, const json_t *card)
{
    const json_t *a = member(card, "architecture"), *file;
    size_t i;
    fprintf(f,
            "## Sizes\n\n| | |\n|---|---|\n| family | %s |\n| parameters | %lld |\n| layers | %lld |\n| width | %lld |\n"
            "| heads x size (KV heads) | %lld x %lld (%lld) |\n| feed-forward width | %lld |\n| context | %lld |\n"
            "| vocabulary | %lld |\n| head | %s |\n\n",
            wg_json_word(a, "family"), number(a, "parameters"), number(a, "layers"), number(a, "width"), number(a, "heads"),
            number(a, "head_dim"), number(a, "kv_heads"), number(a, "hidden"), number(a, "context"), number(a, "vocabulary"),
            json_is_true(member(a, "tied")) ? "the embedding" : "a matrix of its own");
    fputs("| file | bytes |\n|---|--:|\n", f);
    json_array_foreach(member(card, "files"), i, file)
        fprintf(f, "| `%s` | %lld |\n", wg_json_word(file, "name"), number(file, "bytes"));
    fputc('\n', f);
}

static void put_token(FILE *f, const char *role, const json_t *t)
{
    if (!json_is_object(t)) return;
    fprintf(f, ", %s %lld `", role, number(t, "id"));
    put_text(f, wg_json_word(t, "text"));
    fputc('`', f);
}

static void put_tokenizer(FILE *f, const json_t *card)
{
    const json_t *t = member(card, "tokenizer");
    fprintf(f, "## Tokenizer\n\n%s, %lld tokens", wg_json_word(t, "kind"), number(t, "size"));
    put_token(f, "bos", member(t, "bos"));
    put_token(f, "eos", member(t, "eos"));
    fprintf(f, "; a text %s with bos. Digest of what its ids mean: `%.16s`.\n\n",
            json_is_true(member(t, "adds_bos")) ? "begins" : "does not begin", wg_json_word(t, "digest"));
}

static void put_targets(FILE *f, const json_t *card)
{
    const json_t *all = member(card, "targets"), *t, *note;
    size_t i, k, notes = 0;
    fputs("## What it drafts for\n\n", f);
    if (json_array_size(all) == 0) {
        fputs("Any target with this tokenizer. None was named when it was exported (`wager export --for TARGET`).\n\n", f);
        return;
    }
    fputs("| target | vocabulary | tokens in common | its work for a token, of the target's |\n|---|---|--:|--:|\n", f);
    json_array_foreach(all, i, t) {
        const json_t *v = member(t, "vocabulary");
        fputs("| `", f);
        put_text(f, wg_json_word(t, "path"));
        fprintf(f, "` | %s | %lld of %lld | %.3f |\n", wg_json_word(v, "kind"), number(v, "shared"), number(v, "of"),
                wg_json_real(t, "parameters_share"));
    }
    fputc('\n', f);
    json_array_foreach(all, i, t)
        json_array_foreach(member(t, "notes"), k, note) {
            fputs("* ", f);
            put_text(f, json_string_value(note));
            fputc('\n', f), notes++;
        }
    fputs(notes ? "\n" : "", f);
}

/* ---- how good it is */

static void put_training(FILE *f, const json_t *card)
{
    const json_t *t = member(card, "training");
    fputs("## Training\n\n", f);
    if (!json_is_object(t)) {
        fputs("Not known: the exported file does not stand in the folder of a training run.\n\n", f);
        return;
    }
    const json_t *student = member(t, "student"), *texts = member(student, "target_text");
    fprintf(f, "%lld steps, %lld tokens, %.0f s%s; loss of the last step %.4f", number(t, "steps"), number(t, "tokens"),
            wg_json_real(t, "seconds"), json_is_object(student) ? " of all students of the run" : "", wg_json_real(t, "loss"));
    if (json_is_number(member(t, "held_out"))) fprintf(f, "; of held-out text %.4f", wg_json_real(t, "held_out"));
    if (isfinite(wg_json_measured(texts, "alpha"))) {
        fputs("; alpha on texts of the target ", f);
        put_measured(f, texts, "alpha", "");
    }
    char *config = wg_json_canonical(member(t, "config"), true);
    fprintf(f, ".\nThe config of the run:\n\n```json\n%s```\n\n", config ? config : "");
    wg_free(config);
}

static void put_acceptance(FILE *f, const json_t *card)
{
    const json_t *all = member(card, "measured"), *c;
    size_t i;
    fputs("## Measured acceptance\n\n", f);
    if (json_array_size(all) == 0) {
        fputs("Not measured. `wager run` measures it, and `wager export --measured RESULTS` writes it here.\n\n", f);
        return;
    }
    fputs("By `wager run`; intervals of 95 % over prompts (jackknife). alpha: mean of sum min(p, q) over the texts, "
          "teacher-forced;\n"
          "accepted: of drafted tokens; tau: tokens per pass of the target; speed-up: over plain decoding on that machine, "
          "interleaved.\n"
          "\n| target | rule | temperature | length | prompts | alpha | accepted | tau | speed-up |\n"
          "|---|---|--:|--:|--:|--:|--:|--:|--:|\n",
          f);
    json_array_foreach(all, i, c) {
        fputs("| ", f);
        put_text(f, wg_json_word(c, "target"));
        fprintf(f, " | %s%s | %g | ", wg_json_word(c, "rule"), json_is_false(member(c, "lossless")) ? " (lossy)" : "",
                wg_json_real(c, "temperature"));
        if (json_is_integer(member(c, "length"))) fprintf(f, "%lld", number(c, "length"));
        fprintf(f, " | %lld | ", number(c, "prompts"));
        put_measured(f, c, "alpha", ""), fputs(" | ", f);
        put_measured(f, c, "acceptance_rate", ""), fputs(" | ", f);
        put_measured(f, c, "tau", ""), fputs(" | ", f);
        put_measured(f, c, "speedup", "x"), fputs(" |\n", f);
    }
    const json_t *first = json_array_get(all, 0);
    fputs("\nThe runs drafted with the file that was exported, `", f);
    put_text(f, wg_json_word(first, "draft"));
    fprintf(f, "` (equal by SHA-256)%s%s.\n\n", *wg_json_word(first, "machine") ? ", on: " : "",
            wg_json_word(first, "machine"));
}

static void put_check(FILE *f, const json_t *card)
{
    const json_t *c = member(card, "check"), *one;
    size_t i;
    fputs("## Check after writing\n\n", f);
    json_array_foreach(c, i, one) {
        fprintf(f, "* `%s` was read again: over %lld rows its logits are at most %.3g away from those of the source",
                wg_json_word(one, "file"), number(one, "rows"), wg_json_real(one, "largest"));
        if (*wg_json_word(one, "source_as")) fprintf(f, " converted to %s", wg_json_word(one, "source_as"));
        fprintf(f, " (bound %g)", wg_json_real(one, "bound"));
        if (json_is_number(member(one, "stored_largest")))
            fprintf(f, ", and at most %.3g (%.2g of a row's norm) from those of the source as it is stored",
                    wg_json_real(one, "stored_largest"), wg_json_real(one, "stored_relative"));
        fputs(".\n", f);
    }
    fprintf(f, "* Source: `%s`, SHA-256 `%s`.\n", wg_json_word(card, "source"), wg_json_word(card, "source_sha256"));
}

static wg_status write(FILE *f, void *arg, wg_error *err)
{
    const json_t *card = arg;
    (void)err;
    put_head(f, card);
    put_sizes(f, card);
    put_tokenizer(f, card);
    put_targets(f, card);
    put_acceptance(f, card);
    wg_model_card_use(f, card);
    put_training(f, card);
    put_check(f, card);
    return WG_OK;
}

wg_status wg_model_card_save(const char *path, const json_t *card, wg_error *err)
{
    return wg_html_save(path, write, (void *)(uintptr_t)card, err);
}
