/* SPDX-License-Identifier: MIT
 * Files of result folders without the values of clocks, for comparing folders. */
#ifndef WG_TESTS_MASKED_H
#define WG_TESTS_MASKED_H

#include <criterion/criterion.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "tests/temp.h"

/* Times, rates and what follows from them. */
static inline bool is_timing(const char *key)
{
    /* clang-format off */
    static const char *const names[] = { "started", "draft_cost_ratio", "explained_speedup", "predicted_speedup_range",
                                         "best_fixed", "baseline_spread", "disturbed",
                                         "residual_percent", "relative_error", "key_ms", "resumed", "finished", "seconds",
                                         "tok_s", "baseline_tok_s", "speedup", "speedup_ci", "predicted_speedup",
                                         "overhead_us_per_token", "speedup_mean_of_prompts", "speedup_macro", "load_at_start",
                                         "mhz_at_start", "mbsu", "trace_seconds", "second_pass_seconds", "teacher_pass_seconds",
                                         "efficiency", "energy", "joules", "machine", "sum",
                                         "output_throughput", "baseline_output_throughput" };
    /* clang-format on */
    const size_t n = strlen(key);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(key, names[i])) return true;
    return !strcmp(key, "ms") || (n > 3 && !strcmp(key + n - 3, "_ms"));
}

static inline void mask(json_t *v)
{
    const char *key;
    json_t *inner;
    void *next;
    size_t i;
    json_array_foreach(v, i, inner) mask(inner);
    json_object_foreach_safe(v, next, key, inner) {
        if (!strcmp(key, "resumed")) json_object_del(v, key);
        else if (is_timing(key)) json_object_set_new(v, key, json_string("time"));
        else mask(inner);
    }
}

/* A file of a folder, timings masked, as one text (free with free). Lines of a .jsonl stay lines. */
static inline char *masked(const char *dir, const char *file)
{
    char path[256], *text, *out = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/%s", dir, file);
    text = file_read(path, NULL);
    cr_assert_not_null(text, "%s", path);
    FILE *f = open_memstream(&out, &n);
    const bool lines = strstr(file, ".jsonl") != NULL;
    for (char *at = text, *end; *at; at = end) {
        end = lines ? strchr(at, '\n') : at + strlen(at);
        cr_assert_not_null(end, "%s: the last line is cut", path);
        json_t *v = json_loadb(at, (size_t)(end - at), 0, NULL);
        cr_assert_not_null(v, "%s: %.*s", path, (int)(end - at), at);
        mask(v);
        char *canonical = wg_json_canonical(v, false);
        fprintf(f, "%s\n", canonical);
        wg_free(canonical);
        json_decref(v);
        end += lines;
    }
    fclose(f);
    free(text);
    return out;
}

#endif
