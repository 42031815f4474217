/* SPDX-License-Identifier: MIT
 * wager export: a student for other engines, as a Hugging Face folder, a GGUF file or both, with a model card. The writers are
 * those of `wager convert`; the written files are read again and their logits compared with the source's. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/save.h"
#include "core/file/convert.h"
#include "core/model/export.h"
#include "experiments/analysis/logit_rows.h"
#include "experiments/analysis/measured_draft.h"
#include "core/base/json_number.h"
#include "experiments/cli/cli.h"
#include "experiments/cli/model_facts.h"
#include "experiments/report/model_card.h"
#include "experiments/run/checkpoint_model.h"

enum { PATH = WG_SAVE_FOLDER_PATH + 300, NAME = 200, USUAL_LENGTH = 4 };
#define BOUND 1e-3 /* largest difference between logits of the source and of the written model */

typedef struct job {
    const char *model, *to, *type_name, *measured;
    char weights[PATH]; /* the model's file, or one made from a checkpoint */
    wg_flag_list targets;
    bool hf, gguf;
    int type, threads;               /* type -1: unchanged */
    char name[NAME], file[NAME + 8]; /* name of the model, and of its GGUF file */
    wg_weights *w;
    wg_save_folder *folder;
    json_t *card;
} job;

/* ---- the source -------------------------------------------------------------------------------------------------- */

/* Sets the name: the last component of the model's path, without ".gguf" or ".wgc"; false, after a message: it is not a valid
 * name. */
static bool set_name(job *j, const char *given)
{
    const char *path = given ? given : j->model;
    size_t n = strlen(path), first;
    while (n > 1 && path[n - 1] == '/') n--;
    for (first = n; first > 0 && path[first - 1] != '/';) first--;
    if (!given && n - first > 5 && strncmp(path + n - 5, ".gguf", 5) == 0) n -= 5;
    else if (!given && n - first > 4 && strncmp(path + n - 4, ".wgc", 4) == 0) n -= 4;
    snprintf(j->name, sizeof j->name, "%.*s", (int)(n - first), path + first);
    snprintf(j->file, sizeof j->file, "%s.gguf", j->name);
    if (*j->name && strcmp(j->name, ".") != 0 && strcmp(j->name, "..") != 0) return true;
    fprintf(stderr, "wager export: '%.100s' is no name for a model; give one with --name\n", path);
    return false;
}

static const char *in_part(const job *j, const char *name, char path[PATH])
{
    snprintf(path, PATH, "%s%s%s", wg_save_folder_part(j->folder), *name ? "/" : "", name);
    return path;
}

static wg_status open_source(job *j, wg_error *err)
{
    wg_tokenizer *t;
    snprintf(j->weights, sizeof j->weights, "%s", j->model);
    if (wg_is_checkpoint(j->model)) {
        /* beside the output, during writing */
        snprintf(j->weights, sizeof j->weights, "%s.gguf", wg_save_folder_part(j->folder));
        WG_TRY(wg_checkpoint_model(j->model, j->weights, err));
    }
    WG_TRY(wg_weights_open(&j->w, j->weights, err));
    WG_TRY(wg_target_check(j->w, WG_TOKENIZER_IF_THERE, err));
    WG_TRY(wg_model_check_alone(j->w, err));
    if (wg_tokenizer_open(&t, j->w, err) != WG_OK)
        return wg_fail_in(err, err->code, "a student is exported with its tokenizer");
    wg_tokenizer_close(t);
    return WG_OK;
}

static wg_status check_target(job *j, const char *path, wg_error *err)
{
    wg_weights *w;
    WG_TRY(wg_weights_open(&w, path, err));
    json_t *facts = wg_draft_facts(w, j->weights);
    wg_weights_close(w);
    if (!facts) return wg_nomem(err, 1, "the facts of a pair");
    const json_t *notes = json_object_get(facts, "notes");
    const char *why = json_string_value(json_array_get(notes, 0));
    wg_status s = WG_OK;
    if (!json_is_true(json_object_get(facts, "can_draft")))
        s = wg_fail(err, WG_EVOCAB, "--for %s: %s cannot draft for it: %s", path, j->model, why ? why : "?");
    json_object_set_new(facts, "path", wg_json_text(path)); /* the target's path replaces the draft's */
    json_array_append_new(json_object_get(j->card, "targets"), facts);
    return s;
}

/* The length of the fastest measured cell. */
static void set_length(json_t *card, const json_t *measured)
{
    const json_t *best = NULL, *c;
    size_t i;
    json_array_foreach(measured, i, c)
        if (json_is_integer(json_object_get(c, "length")) &&
            (!best || wg_json_real(c, "speedup") > wg_json_real(best, "speedup")))
            best = c;
    json_object_set_new(card, "draft_length", json_integer(best ? wg_json_int(best, "length") : USUAL_LENGTH));
    json_object_set_new(card, "draft_length_measured", json_boolean(best != NULL));
}

static wg_status describe_source(job *j, wg_error *err)
{
    char hex[WG_SHA256_HEX], weights[PATH];
    struct stat st;
    json_t *measured = NULL;
    snprintf(weights, sizeof weights, "%s%s", j->model,
             stat(j->model, &st) == 0 && S_ISDIR(st.st_mode) ? "/model.safetensors" : "");
    const bool hashed = wg_sha256_file(weights, hex, NULL) == WG_OK; /* false for a folder with shards */
    j->card = json_pack("{s:s, s:o, s:o, s:b, s:s?, s:o, s:s?, s:[], s:[], s:[]}", "name", j->name, "folder",
                        wg_json_text(j->to), "source", wg_json_text(j->model), "hf", j->hf, "gguf", j->gguf ? j->file : NULL,
                        "type", j->type_name ? wg_json_text(j->type_name) : json_null(), "source_sha256", hashed ? hex : NULL,
                        "targets", "files", "check");
    if (!j->card) return wg_nomem(err, 1, "a model card");
    for (int i = 0; i < j->targets.n; i++) WG_TRY(check_target(j, j->targets.item[i], err));
    if (j->measured) WG_TRY(wg_measured_draft_read(&measured, j->measured, j->model, err));
    set_length(j->card, measured);
    json_object_set_new(j->card, "measured", measured ? measured : json_array());
    return WG_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* The types in which the source is read for the comparison: its own if unchanged, else the written type. */
static const char *source_as(const job *j, bool folder)
{
    if (j->type >= 0) return wg_type_name(j->type);
    for (int i = 0; folder && i < wg_weights_count(j->w); i++) {
        const int type = wg_weights_at(j->w, i)->type;
        if (type != WG_F32 && type != WG_F16 && type != WG_BF16) return "f32";
    }
    return NULL;
}

static wg_status add_check(job *j, const char *name, const char *as, wg_logit_rows row[3], wg_error *err)
{
    WG_TRY(wg_logit_rows_agree(&row[0], &row[1], BOUND, name, err));
    const wg_logit_difference d = wg_logit_rows_difference(&row[1], &row[0]);
    json_t *o = json_pack("{s:s, s:i, s:f, s:f, s:s?, s:n, s:n}", "file", name, "rows", row[0].n, "largest", d.largest, "bound",
                          BOUND, "source_as", as, "stored_largest", "stored_relative");
    if (as) {
        const wg_logit_difference stored = wg_logit_rows_difference(&row[1], &row[2]);
        json_object_set_new(o, "stored_largest", wg_json_number(stored.largest));
        json_object_set_new(o, "stored_relative", wg_json_number(stored.relative));
    }
    json_array_append_new(json_object_get(j->card, "check"), o);
    return WG_OK;
}

/* Reads the written model (`part`, or a file in it) and compares it with the source. */
static wg_status check_written(job *j, const char *name, bool folder, wg_error *err)
{
    char path[PATH];
    const char *as = source_as(j, folder);
    wg_logit_rows row[3] = { { 0 } }; /* source, written model, source in its stored types */
    wg_status s = wg_logit_rows_read(&row[0], j->weights, as, j->threads, err);
    if (s == WG_OK) s = wg_logit_rows_read(&row[1], in_part(j, folder ? "" : name, path), NULL, j->threads, err);
    if (s == WG_OK && as) s = wg_logit_rows_read(&row[2], j->weights, NULL, j->threads, err);
    if (s == WG_OK) s = add_check(j, name, as, row, err);
    for (int i = 0; i < 3; i++) wg_logit_rows_free(&row[i]);
    return s;
}

static wg_status describe_written(job *j, wg_error *err)
{
    char path[PATH];
    wg_weights *w;
    wg_tensor_list list = { 0 };
    WG_TRY(wg_weights_open(&w, in_part(j, j->hf ? "" : j->file, path), err));
    wg_status s = wg_tensor_list_of(&list, w, err);
    json_t *facts = s ? NULL : wg_model_facts(w, path, &list, NULL, &(wg_facts_options){ .batch = 1, .kv_type = WG_F16 });
    wg_tensor_list_free(&list);
    wg_weights_close(w);
    if (s == WG_OK && !facts) s = wg_nomem(err, 1, "the facts of a model");
    static const char *const keep[] = { "architecture", "tokenizer" };
    for (int i = 0; i < 2 && s == WG_OK; i++) json_object_set(j->card, keep[i], json_object_get(facts, keep[i]));
    json_decref(facts);
    return s;
}

static wg_status list_files(job *j, wg_error *err)
{
    struct dirent **list = NULL;
    char path[PATH];
    struct stat st;
    const int n = scandir(in_part(j, "", path), &list, NULL, alphasort);
    if (n < 0) return wg_nomem(err, 1, "a list of files");
    for (int i = 0; i < n; i++) {
        if (stat(in_part(j, list[i]->d_name, path), &st) == 0 && S_ISREG(st.st_mode))
            json_array_append_new(
                json_object_get(j->card, "files"),
                json_pack("{s:o, s:I}", "name", wg_json_text(list[i]->d_name), "bytes", (json_int_t)st.st_size));
        free(list[i]);
    }
    free(list);
    return WG_OK;
}

static wg_status write_all(job *j, wg_error *err)
{
    char path[PATH];
    if (j->hf) WG_TRY(wg_export(j->w, in_part(j, "", path), j->type, 0, err));
    if (j->gguf) WG_TRY(wg_convert(j->weights, NULL, in_part(j, j->file, path), j->type, err));
    if (j->hf) WG_TRY(check_written(j, "model.safetensors", true, err));
    if (j->gguf) WG_TRY(check_written(j, j->file, false, err));
    WG_TRY(describe_written(j, err));
    WG_TRY(list_files(j, err));
    return wg_model_card_save(in_part(j, "README.md", path), j->card, err);
}

static wg_status export(job *j, wg_error *err)
{
    WG_TRY(wg_save_folder_open(&j->folder, j->to, err));
    wg_status s = open_source(j, err);
    if (s == WG_OK) s = describe_source(j, err);
    if (s == WG_OK) s = write_all(j, err);
    if (wg_is_checkpoint(j->model)) (void)unlink(j->weights);
    if (s == WG_OK) return wg_save_folder_commit(j->folder, err);
    wg_save_folder_abort(j->folder);
    return s;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static void print(const job *j)
{
    const json_t *one;
    size_t i;
    printf("wrote %s: %.2f M parameters\n", j->to,
           (double)wg_json_int(json_object_get(j->card, "architecture"), "parameters") / 1e6);
    json_array_foreach(json_object_get(j->card, "files"), i, one)
        printf("  %-26s %12lld bytes\n", wg_json_word(one, "name"), (long long)wg_json_int(one, "bytes"));
    json_array_foreach(json_object_get(j->card, "check"), i, one) {
        const char *as = wg_json_word(one, "source_as");
        printf("%s read again: %lld rows of logits, at most %.3g from those of the source%s%s (bound %g)",
               wg_json_word(one, "file"), (long long)wg_json_int(one, "rows"), wg_json_real(one, "largest"), *as ? " as " : "",
               as, wg_json_real(one, "bound"));
        if (*as) printf("; at most %.3g as it is stored", wg_json_real(one, "stored_largest"));
        putchar('\n');
    }
    printf("%s/README.md: the model card, with command lines of the engines that draft with it\n", j->to);
}

int wg_cmd_export(int argc, char **argv)
{
    job j = { .type = -1 };
    const char *format = "hf", *name = NULL;
    long threads = 0;
    bool json = false;
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL, &j.model, "the draft model, or a checkpoint of its training"),
        { "to", 'o', WG_FLAG_STRING, &j.to, "FOLDER", "the folder to write, which must not exist or be empty (needed)", 0, 0 },
        { "format", 0, WG_FLAG_CHOICE, &format, "hf|gguf|both", "hf: a Hugging Face folder", 0, 0 },
        { "for", 0, WG_FLAG_LIST, &j.targets, "TARGET",
          "a target for which the model drafts: it is checked and named in the card; may be repeated", 0, 0 },
        { "measured", 0, WG_FLAG_STRING, &j.measured, "RESULTS",
          "result folder of a run that drafted with this file; the card gets its acceptance", 0, 0 },
        { "type", 0, WG_FLAG_STRING, &j.type_name, "TYPE",
          WG_WRITABLE_TYPES " for all matrices; kept when left out. Folders: f32, f16 or bf16; others become f32 when left out",
          0, 0 },
        { "name", 0, WG_FLAG_STRING, &name, "NAME", "name of the model and of its GGUF file; else that of the source", 0, 0 },
        { "threads", 0, WG_FLAG_INT, &threads, "N", "number of threads; 0: all cores", 0, 256 },
        { "json", 0, WG_FLAG_BOOL, &json, NULL, "one JSON object, with the keys of docs/students.md", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("export", flags, argc, argv, NULL, 0, 0);
    if (done >= 0) return done;
    if (!j.to) return wg_cli_refuse("export", "--to FOLDER is missing: the folder to write");
    j.hf = strcmp(format, "gguf") != 0;
    j.gguf = strcmp(format, "hf") != 0;
    if (j.type_name && (j.type = wg_cli_weight_type("export", j.type_name)) < 0) return WG_EXIT_USAGE;
    j.threads = (int)threads;
    if (!set_name(&j, name)) return WG_EXIT_USAGE;
    wg_error err;
    const wg_status s = export(&j, &err);
    int status = WG_EXIT_OK;
    if (s) status = wg_cli_fail(&err);
    else if (!json) print(&j);
    else wg_cli_put_json(json_incref(j.card), true);
    wg_weights_close(j.w);
    json_decref(j.card);
    return status;
}
