/* SPDX-License-Identifier: MIT
 * The law tests on the bundled pair (models/README.md): every drafter under greedy and match gives the tokens of plain
 * decoding, on real prompts. */
#ifndef WG_TESTS_LAW_PAIR_H
#define WG_TESTS_LAW_PAIR_H

#include <jansson.h>
#include <unistd.h>

#include "draft/lookup/datastore.h"
#include "tests/bundled.h"
#include "tests/conformance/head_folder.h"
#include "tests/law/plain_decode.h"

/* Paths of the pair, of `size` bytes each. False when it is not there. */
static inline bool pair_find(char *target, char *draft, size_t size)
{
    const char *root = getenv("WG_ROOT");
    snprintf(target, size, "%s/" BUNDLED_TARGET, root ? root : ".");
    snprintf(draft, size, "%s/" BUNDLED_DRAFT, root ? root : ".");
    return !access(target, R_OK) && !access(draft, R_OK);
}

/* How many prompts had this category before; it is counted. */
enum { PAIR_CATEGORIES = 32 };
typedef struct pair_category {
    char name[32];
    int n;
} pair_category;
static inline int pair_count(pair_category *c, const char *name)
{
    int k = 0;
    while (k < PAIR_CATEGORIES && c[k].n > 0 && strcmp(c[k].name, name) != 0) k++;
    if (k == PAIR_CATEGORIES) abort();
    snprintf(c[k].name, sizeof c[k].name, "%s", name);
    return c[k].n++;
}

/* The first prompts of a JSONL file ("prompt", or the first of "turns"), `max` in all and `each` of a "category", as tokens cut
 * to `longest`. */
static inline int pair_prompts(const char *path, const wg_tokenizer *t, int each, int max, int longest, int max_new,
                               law_request *out)
{
    wg_error err;
    FILE *f = fopen(path, "r");
    if (!f) {
        perror(path);
        exit(1);
    }
    char *line = NULL;
    size_t room = 0;
    int n = 0;
    pair_category seen[PAIR_CATEGORIES] = { 0 };
    for (int at = 0; n < max && getline(&line, &room, f) > 0; at++) {
        json_t *o = json_loads(line, 0, NULL);
        const json_t *text = json_object_get(o, "prompt");
        if (!text) text = json_array_get(json_object_get(o, "turns"), 0);
        if (!json_is_string(text)) {
            fprintf(stderr, "%s:%d: no \"prompt\" and no \"turns\"\n", path, at + 1);
            exit(1);
        }
        const char *category = json_string_value(json_object_get(o, "category"));
        if (pair_count(seen, category ? category : "") >= each) {
            json_decref(o);
            continue;
        }
        int32_t *id;
        size_t ids;
        LAW_TRY(wg_tokenizer_encode(t, json_string_value(text), json_string_length(text), true, false, &id, &ids, &err));
        if (ids == 0) wg_free(id);
        else out[n++] = (law_request){ id, ids < (size_t)longest ? (int)ids : longest, max_new };
        json_decref(o);
    }
    free(line);
    fclose(f);
    return n;
}

/* A datastore of the prompts and the plain greedy texts of every other one. */
static inline void pair_store(const law_model *target, const law_request *r, int n, char *path)
{
    wg_error err;
    law_output *plain = wg_calloc((size_t)n, sizeof *plain);
    int32_t *token = wg_calloc((size_t)n, 1024 * sizeof *token);
    size_t fill = 0;
    const law_setup setup = { .target = target, .drafter = "none", .rule = "match", .sampling = WG_SAMPLING(0, 0, 1, 0) };
    if (!plain || !token) abort();
    law_decode(&setup, r, n, plain, &(wg_counts){ 0 });
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < r[i].n && k < 400; k++) token[fill++] = r[i].prompt[k];
        for (int k = 0; i % 2 == 0 && k < plain[i].n && k < 600; k++) token[fill++] = plain[i].token[k];
        token[fill++] = -1;
    }
    const int fd = mkstemp(path);
    if (fd < 0) exit((perror(path), 1));
    close(fd);
    LAW_TRY(wg_datastore_write(path, target->tokenizer, token, fill, &err));
    law_free(plain, n);
    wg_free(plain);
    wg_free(token);
}

enum { PAIR_EACH = 5, PAIR_REQUESTS = 64 }; /* each: test options of a drafter */

/* The folder of a head of this target, to be removed when the program ends. */
static char pair_head_dir[] = "/tmp/wg-head-XXXXXX";
static inline void pair_head_remove(void) { head_remove(pair_head_dir); }
static inline const char *pair_head(const char *target)
{
    if (!mkdtemp(pair_head_dir)) exit((perror(pair_head_dir), 1));
    atexit(pair_head_remove);
    head_for(target, pair_head_dir);
    return pair_head_dir;
}

/* Every drafter with its test options, over the bundled models. `paths` holds them. Returns how many rows there are. */
typedef struct pair_paths {
    char other[600], list[600];
} pair_paths;
static inline int pair_rows(pair_paths *paths, const char *target, const char *draft, const char *store, law_row *row,
                            int *failures)
{
    const char *root = getenv("WG_ROOT");
    if (!root) root = ".";
    snprintf(paths->other, sizeof paths->other, "%s/" BUNDLED_OTHER, root);
    snprintf(paths->list, sizeof paths->list, "%s/configs/vocab/story-1024.json", root);
    const law_files files = { .target = target,
                              .near = draft,
                              .far = draft,
                              .brief = draft,
                              .other = paths->other,
                              .store = store,
                              .list = paths->list,
                              .head = pair_head(target),
                              .plugin = LAW_PLUGIN };
    return law_rows(&files, PAIR_EACH, row, failures);
}

/* One drafter on one half of the requests. Returns the failures. */
static inline int pair_run(const law_row *row, const law_setup *setup, const law_request *r, const law_output *plain, int n)
{
    law_output got[PAIR_REQUESTS] = { 0 };
    wg_counts counts = { 0 };
    char what[1200];
    const double begin = wg_clock_now();
    law_decode(setup, r, n, got, &counts);
    snprintf(what, sizeof what, "T=%g %s, rule %s, batch %d, %d threads", setup->sampling.temperature, row->label, setup->rule,
             setup->batch, wg_pool_threads(setup->target->pool));
    const int bad = law_compare(what, plain, got, n);
    printf("%-52s %d of %d equal, tau %.2f, accepted %ld of %ld, %.2f s\n", what, n - bad, n,
           (double)counts.emitted / (double)counts.passes, counts.accepted, counts.drafted, wg_clock_now() - begin);
    law_free(got, n);
    return bad;
}

/* Decodes the requests plainly, then with every drafter: at temperature 0 one half one at a time and the other half by eight,
 * at each temperature above it one half one way or the other, in turn; on one thread and on two. Returns the failures. */
static inline int pair_check(const char *target_path, const char *draft_path, const law_request *r, int n)
{
    const wg_sampling samplings[] = { WG_SAMPLING(0, 0, 1, 0), WG_SAMPLING(0.7, 0, 0.95, 0), WG_SAMPLING(1, 0, 1, 0) };
    const int begin[3] = { 0, (n + 1) / 2, n };
    char store[] = "/tmp/wg-store-XXXXXX";
    static law_row row[LAW_ROWS];
    law_output plain[PAIR_REQUESTS] = { 0 };
    pair_paths paths;
    law_model target[2] = { 0 };
    for (int t = 0; t < 2; t++) law_model_open(&target[t], target_path, t + 1, wg_cpu_chosen(), WG_F16);
    pair_store(&target[0], r, n, store);
    int failures = 0;
    const int rows = pair_rows(&paths, target_path, draft_path, store, row, &failures);
    for (int s = 0; s < 3; s++) {
        for (int half = 0; half < 2; half++) { /* a request's number, from 0 in each, addresses its randomness */
            const law_setup setup = {
                .target = &target[0], .drafter = "none", .rule = "match", .sampling = samplings[s], .seed = 11, .batch = 1
            };
            law_decode(&setup, r + begin[half], begin[half + 1] - begin[half], plain + begin[half], &(wg_counts){ 0 });
        }
        for (int d = 0; d < rows; d++)
            for (int k = 0; k < 2; k++) { /* batch 1 on one thread, batch 8 on two; above 0 also the other way round */
                if (s && k != (s + d) % 2) continue;
                const int threads = s ? d / 2 % 2 : k, half = s ? (s + d / 2) % 2 : (k + d) % 2;
                /* Few one at a time on two threads: small passes are slow on busy cores. */
                const int all = begin[half + 1] - begin[half];
                const int some = k == 0 && threads && all > 6 ? 6 : all;
                const law_setup setup = { .target = &target[threads],
                                          .drafter = row[d].class->name,
                                          .options = row[d].options,
                                          .rule = s == 0 && k ? "greedy" : "match",
                                          .sampling = samplings[s],
                                          .seed = 11,
                                          .batch = k ? 8 : 1 };
                failures += pair_run(&row[d], &setup, r + begin[half], plain + begin[half], some);
            }
        law_free(plain, n);
    }
    for (int t = 0; t < 2; t++) law_model_close(&target[t]);
    remove(store);
    return failures;
}

/* each: prompts of a category; one where the environment has WG_THIN. */
static inline int pair_main(const char *prompts, int each, int longest, int max_new)
{
    char target[512], draft[512];
    if (!pair_find(target, draft, sizeof target)) {
        printf("SKIPPED: the bundled pair is not there\n");
        return LAW_SKIP;
    }
    law_model m; /* for its tokenizer */
    law_model_open(&m, target, 1, wg_cpu_chosen(), WG_F16);
    if (!m.tokenizer) {
        fprintf(stderr, "%s has no tokenizer\n", target);
        return 1;
    }
    law_request in_order[PAIR_REQUESTS], r[PAIR_REQUESTS];
    const int n = pair_prompts(prompts, m.tokenizer, getenv("WG_THIN") ? 1 : each, PAIR_REQUESTS, longest, max_new, in_order);
    for (int i = 0; i < n; i++) r[i % 2 ? (n + 1) / 2 + i / 2 : i / 2] = in_order[i]; /* halves with some of everything */
    printf("%d prompts of %s\n", n, prompts);
    const int failures = pair_check(target, draft, r, n);
    for (int i = 0; i < n; i++) wg_free((int32_t *)r[i].prompt);
    law_model_close(&m);
    if (n == 0) fprintf(stderr, "FAILED: no prompts\n");
    return failures || n == 0;
}

#endif
