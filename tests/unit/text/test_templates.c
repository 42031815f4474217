/* SPDX-License-Identifier: MIT
 * Published chat templates: each renders the conversations of tests/golden/templates/cases.json to the bytes that jinja2 as
 * transformers configures it makes of them (published.txt: lengths and digests). The templates are in the folder
 * WG_SHARED/templates; without it the whole program is skipped (77). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/text/jinja/jinja.h"

enum { SKIP = 77 };

static int failures, rendered, same, refused;

static void complain(const char *file, const char *name, const char *what)
{
    failures++;
    fprintf(stderr, "%s, %s: %s\n", file, name, what);
}

/* want: "LENGTH DIGEST", or "refused". */
static void compare(const wg_jinja *t, const char *file, const char *name, const json_t *data, const char *want)
{
    static const struct tm date = { .tm_year = 125, .tm_mon = 6, .tm_mday = 9, .tm_hour = 12, .tm_wday = 3, .tm_yday = 189 };
    char hex[WG_SHA256_HEX], got[128];
    wg_rendered r;
    wg_error err = { 0 };
    json_t *trusted = json_pack("{s:s, s:s}", "bos_token", "<s>", "eos_token", "</s>");
    const wg_jinja_input in = { .data = data, .trusted = trusted, .now = &date };
    const wg_status s = wg_jinja_render(t, &in, &r, &err);
    json_decref(trusted);
    rendered++;
    if (s) {
        refused++;
        if (strcmp(want, "refused") != 0) complain(file, name, err.text);
        return;
    }
    wg_sha256(r.text, r.n, hex);
    snprintf(got, sizeof got, "%zu %s", r.n, hex);
    if (strcmp(want, got) != 0) complain(file, name, got);
    same += strcmp(want, got) == 0;
    wg_rendered_free(&r);
}

static char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    if (!end) return NULL;
    *end = '\0';
    *at = end + 1;
    return line;
}

/* The cases of one file; its digests are the next lines. */
static void all_cases(const char *shared, const char *file, const json_t *cases, char **digests)
{
    char path[512], *text = NULL;
    size_t n;
    wg_jinja *t = NULL;
    wg_error err = { 0 };
    snprintf(path, sizeof path, "%s/templates/%s", shared, file);
    if (wg_read_file(path, 1 << 20, &text, &n, &err) || wg_jinja_open(&t, file, text, n, &err))
        complain(file, "open", err.text);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        const char *want = next_line(digests);
        if (t && want) compare(t, file, json_string_value(json_array_get(one, 0)), json_array_get(one, 1), want);
    }
    wg_jinja_close(t);
    wg_free(text);
}

int main(void)
{
    const char *shared = getenv("WG_SHARED"), *root = getenv("WG_ROOT");
    char path[512], *digests, *line;
    size_t n;
    int files = 0;
    wg_json *doc;
    wg_error err;
    if (!shared) {
        printf("skipped: WG_SHARED does not name a folder with templates\n");
        return SKIP;
    }
    snprintf(path, sizeof path, "%s/tests/golden/templates/cases.json", root ? root : ".");
    if (wg_json_open(&doc, path, &err)) return fprintf(stderr, "%s\n", err.text), 1;
    snprintf(path, sizeof path, "%s/tests/golden/templates/published.txt", root ? root : ".");
    if (wg_read_file(path, 1 << 20, &digests, &n, &err)) return fprintf(stderr, "%s\n", err.text), 1;
    for (char *at = digests; (line = next_line(&at)); files++) all_cases(shared, line + 2, wg_json_root(doc), &at);
    wg_json_close(doc);
    wg_free(digests);
    printf("%d templates, %d renderings: %d identical, %d refused by both, %d failures, %zu blocks not freed\n", files,
           rendered, same, refused, failures, wg_mem_read().live_blocks);
    return failures > 0 || files < 19 || wg_mem_read().live_blocks > 0;
}
