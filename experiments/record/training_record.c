/* SPDX-License-Identifier: MIT
 * The record of a trained model (training_record.h). */
#include "experiments/record/training_record.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_number.h"

enum { PATH = 4096 };

/* Splits FOLDER/NAME.ENDING; the folder of a bare name is ".". */
static bool split(const char *model, const char *ending, char folder[PATH], char name[PATH])
{
    const char *slash = strrchr(model, '/'), *base = slash ? slash + 1 : model;
    const size_t n = strlen(base), end = strlen(ending);
    if (n <= end || n >= PATH || strlen(model) >= PATH || strcmp(base + n - end, ending) != 0) return false;
    snprintf(name, PATH, "%.*s", (int)(n - end), base);
    if (slash == model) strcpy(folder, "/");
    else snprintf(folder, PATH, "%.*s", slash ? (int)(slash - model) : 1, slash ? model : ".");
    return true;
}

static void read_line(json_t *record, const json_t *line)
{
    const json_t *held = json_object_get(line, "held_out");
    if (json_is_number(held)) {
        json_object_set_new(record, "held_out", json_real(json_number_value(held)));
        json_object_set_new(record, "held_out_step", json_integer(wg_json_int(line, "step")));
        return;
    }
    if (!json_is_number(json_object_get(line, "loss"))) return;
    json_object_set_new(record, "steps", json_integer(wg_json_int(line, "step")));
    json_object_set_new(record, "tokens", json_integer(wg_json_int(record, "tokens") + wg_json_int(line, "rows")));
    json_object_set_new(record, "seconds", json_real(wg_json_real(record, "seconds") + wg_json_real(line, "seconds")));
    json_object_set_new(record, "loss", json_real(wg_json_real(line, "loss")));
}

/* Reads the lines of the log up to a step. */
static void read_log(json_t *record, const char *folder, json_int_t last)
{
    char path[PATH + 32], *text = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%s/train.jsonl", folder);
    FILE *f = fopen(path, "r");
    for (ssize_t n; f && (n = getline(&text, &size, f)) > 0;) {
        json_t *line = json_loadb(text, (size_t)n, 0, NULL);
        if (json_is_object(line) && wg_json_int(line, "step") <= last) read_line(record, line);
        json_decref(line);
    }
    free(text);
    if (f) fclose(f);
}

/* The record of a student of distill.json; NULL: none has this file. */
static json_t *distilled(const char *folder, const char *name)
{
    char file[PATH + 8];
    json_t *root = wg_json_load(folder, "distill.json"), *s, *record = NULL;
    size_t i;
    snprintf(file, sizeof file, "%s.gguf", name);
    json_array_foreach(json_object_get(root, "students"), i, s) {
        if (record || strcmp(wg_json_word(s, "model"), file) != 0) continue;
        json_t *config = wg_json_load(folder, "config.json");
        record = json_pack("{s:o, s:I, s:I, s:f, s:O?, s:O?, s:n, s:O}", "config", config ? config : json_null(), "steps",
                           (json_int_t)wg_json_int(root, "steps"), "tokens", (json_int_t)wg_json_int(root, "tokens"), "seconds",
                           wg_json_real(root, "seconds"), "loss", json_object_get(s, "loss"), "held_out",
                           json_object_get(s, "held_out"), "held_out_step", "student", s);
    }
    json_decref(root);
    return record;
}

/* name NULL: any name. */
static json_t *trained(const char *folder, const char *name, json_int_t last)
{
    json_t *config = wg_json_load(folder, "config.json");
    const json_t *output = json_object_get(config, "output");
    if (!json_is_object(json_object_get(config, "train")) || (name && strcmp(wg_json_word(output, "name"), name) != 0)) {
        json_decref(config);
        return NULL;
    }
    json_t *record = json_pack("{s:o, s:i, s:I, s:f, s:n, s:n, s:n, s:n}", "config", config, "steps", 0, "tokens",
                               (json_int_t)0, "seconds", 0.0, "loss", "held_out", "held_out_step", "student");
    if (record) read_log(record, folder, last);
    return record;
}

json_t *wg_training_record(const char *model)
{
    char folder[PATH], name[PATH];
    long long step;
    int end = 0;
    if (split(model, ".wgc", folder, name))
        return sscanf(name, "checkpoint-%lld%n", &step, &end) == 1 && name[end] == '\0' ? trained(folder, NULL, step) : NULL;
    if (!split(model, ".gguf", folder, name)) return NULL;
    json_t *record = distilled(folder, name);
    return record ? record : trained(folder, name, INT64_MAX);
}
