/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as JSON: canonical text is a fixed point, and every member of the tree can be located in the source. What is
 * read of others' files is the same tree where all integers have 64 bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* key with dots, brackets and backslashes escaped, behind the path so far; false when it does not fit. */
static bool extend(char *path, size_t size, const char *key)
{
    size_t n = strlen(path);
    if (n > 0 && n + 2 < size) path[n++] = '.';
    for (; *key && n + 3 < size; key++) {
        if (strchr(".[\\", *key)) path[n++] = '\\';
        path[n++] = *key;
    }
    path[n] = '\0';
    return *key == '\0';
}

static void locate(const wg_json *doc, const json_t *v, char *path, size_t size, int depth)
{
    const size_t n = strlen(path);
    int line, column;
    if (!wg_json_where(doc, path, true, &line, &column) || !wg_json_where(doc, path, false, &line, &column)) abort();
    if (line < 1 || column < 1) abort();
    if (depth > 8) return;
    for (size_t i = 0; i < json_array_size(v) && i < 20; i++) {
        snprintf(path + n, size - n, "[%zu]", i);
        locate(doc, json_array_get(v, i), path, size, depth + 1);
        path[n] = '\0';
    }
    const char *key;
    json_t *member;
    if (!json_is_object(v)) return;
    json_object_foreach((json_t *)v, key, member) {
        /* an empty key cannot be written in a path, nor one longer than a step holds */
        if (*key && strlen(key) < 200 && extend(path, size - 40, key)) locate(doc, member, path, size, depth + 1);
        path[n] = '\0';
    }
}

/* doc: what the strict reader makes of the bytes; NULL: nothing. */
static void read_foreign(const wg_json *doc, const uint8_t *bytes, size_t n)
{
    wg_json *foreign;
    wg_error err = { 0 };
    char path[4096] = "";
    if (wg_json_parse_foreign(&foreign, "input", (const char *)bytes, n, &err) != WG_OK) {
        if (doc || err.text[0] == '\0') abort();
        return;
    }
    if (doc && !json_equal(wg_json_root(doc), wg_json_root(foreign))) abort();
    locate(foreign, wg_json_root(foreign), path, sizeof path, 0);
    wg_json_close(foreign);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    wg_json *doc, *again;
    wg_error err = { 0 };
    if (wg_json_parse(&doc, "input", (const char *)bytes, n, &err) != WG_OK) {
        if (err.text[0] == '\0') abort();
        read_foreign(NULL, bytes, n);
    } else {
        char path[4096] = "";
        locate(doc, wg_json_root(doc), path, sizeof path, 0);
        read_foreign(doc, bytes, n);
        char *a = wg_json_canonical(wg_json_root(doc), n % 2);
        if (!a || wg_json_parse(&again, "again", a, strlen(a), &err) != WG_OK) abort();
        char *b = wg_json_canonical(wg_json_root(again), n % 2);
        if (!b || strcmp(a, b) != 0) abort();
        wg_json_problem(doc, "a", true, &err, "problem");
        wg_json_close(again);
        wg_json_close(doc);
        wg_free(a);
        wg_free(b);
    }
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
