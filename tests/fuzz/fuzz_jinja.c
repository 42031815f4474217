/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as a chat template, or behind a NUL as the JSON of its variables: it renders a conversation or is refused
 * with a message; every byte of the data's texts that appears is marked, and nothing stays allocated. The data's texts have
 * characters that occur nowhere else, so what a template prints of them is recognised. */
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/text/jinja/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const char variables[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"\\u4e00 \\u4e01\"}, {\"role\": \"user\", \"content\": \"\\u4e02\"},"
    " {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"\\u4e03\", \"function\": {\"name\": \"\\u4e04\","
    " \"arguments\": {\"\\u4e05\": [1, 2.5, true, null, {}]}}}]}, {\"role\": \"tool\", \"content\": \"\\u4e06\"}],"
    " \"tools\": [{\"type\": \"\\u4e07\", \"function\": {\"name\": \"\\u4e08\", \"parameters\": {\"type\": \"\\u4e09\"}}}],"
    " \"documents\": null, \"add_generation_prompt\": true, \"enable_thinking\": false, \"a\": [3, 1, 2], \"s\": "
    "\"\\u4e0a\\u4e0b\","
    " \"d\": {\"\\u4e0c\": 1}}";

static bool has(const char *text, size_t n, const char *what) { return n && memmem(text, n, what, strlen(what)) != NULL; }

/* The characters U+4E00 .. U+4E3F come from the data alone, unless the template writes them or escapes for them. */
static void check_marks(const wg_rendered *r, const char *text, size_t n)
{
    if (has(text, n, "\xE4\xB8") || has(text, n, "\\")) return;
    for (size_t i = 0; i + 2 < r->n; i++)
        if (!memcmp(r->text + i, "\xE4\xB8", 2) && (!r->data[i] || !r->data[i + 1] || !r->data[i + 2])) abort();
}

static void render(const char *text, size_t n, const json_t *data, bool own)
{
    static const struct tm now = { .tm_year = 125, .tm_mon = 6, .tm_mday = 9 };
    wg_jinja *t;
    wg_rendered r;
    wg_error err = { 0 };
    if (wg_jinja_open(&t, "input", text, n, &err) != WG_OK) {
        if (err.text[0] == '\0') abort();
        return;
    }
    json_t *trusted = json_pack("{s:s, s:s}", "bos_token", "<s>", "eos_token", "</s>");
    const wg_jinja_input in = { .data = data, .trusted = trusted, .now = &now };
    if (wg_jinja_render(t, &in, &r, &err) == WG_OK) {
        if (!own) check_marks(&r, text, n);
        wg_rendered_free(&r);
    } else if (err.text[0] == '\0') abort();
    json_decref(trusted);
    wg_jinja_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    const uint8_t *end = memchr(bytes, '\0', n);
    const size_t text = end ? (size_t)(end - bytes) : n;
    json_t *own = end ? json_loadb((const char *)end + 1, n - text - 1, 0, NULL) : NULL;
    json_t *data = json_is_object(own) ? json_incref(own) : json_loads(variables, 0, NULL);
    if (!data) abort();
    render((const char *)bytes, text, data, json_is_object(own));
    json_decref(data);
    json_decref(own);
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
