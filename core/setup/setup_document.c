/* SPDX-License-Identifier: MIT
 * Opening a config's document, with hints and an excerpt if it is not JSON, and removing its comments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/setup/setup_check.h"

void wg_setup_uncomment(json_t *v)
{
    const char *key;
    json_t *inner;
    void *next;
    size_t i;
    json_array_foreach(v, i, inner) wg_setup_uncomment(inner);
    json_object_foreach_safe(v, next, key, inner) {
        if (!strncmp(key, "//", 2)) json_object_del(v, key);
        else wg_setup_uncomment(inner);
    }
}

/* The number of printable bytes of a line; 0: it is not text. */
static int shown_bytes(const char *source, size_t most)
{
    size_t n = strcspn(source, "\r\n");
    if (n > most)
        for (n = most; n > 0 && ((unsigned char)source[n] & 0xC0) == 0x80;) n--;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)source[i] < ' ' && source[i] != '\t') return 0;
    json_t *text = json_stringn(source, n); /* NULL: not UTF-8 */
    const int shown = text ? (int)n : 0;
    json_decref(text);
    return shown;
}

/* Appends the line of a file, with a caret under a column, to a message. */
static void append_excerpt(char *text, size_t size, const char *path, int line, int column)
{
    enum { SHOWN = 160 };
    char *source = NULL; /* allocated by getline */
    size_t cap = 0;
    FILE *f = fopen(path, "re");
    bool found = f != NULL && column <= SHOWN;
    for (int i = 0; found && i < line; i++) found = getline(&source, &cap, f) >= 0;
    const int n = found ? shown_bytes(source, SHOWN) : 0;
    const size_t at = strlen(text);
    if (n) snprintf(text + at, size - at, "\n  %.*s\n  %*s^", n, source, column - 1, "");
    free(source);
    if (f) fclose(f);
}

/* Opens a document; three frequent mistakes get a hint. */
wg_status wg_setup_document(wg_json **doc, const char *path, wg_error *err)
{
    wg_error e;
    int line = 0, column = 0;
    const wg_status s = wg_json_open(doc, path, &e);
    if (s == WG_OK) return WG_OK;
    const char *hint = "";
    if (strstr(e.text, "near '/") || strstr(e.text, "near '#"))
        hint = " (JSON has no comments; a key that begins with \"//\" is one)";
    else if (strstr(e.text, "near '\"@")) hint = " (a part is an object; it cannot name another part)";
    else if (strstr(e.text, "expected near '}'") || strstr(e.text, "near ']'")) hint = " (a comma before a closing bracket?)";
    snprintf(e.text + strlen(e.text), sizeof e.text - strlen(e.text), "%s", hint);
    if (s == WG_EFORMAT && sscanf(e.text + strlen(path), ":%d:%d:", &line, &column) == 2)
        append_excerpt(e.text, sizeof e.text, path, line, column);
    return wg_fail(err, s == WG_ENOMEM ? s : WG_ECONFIG, "%s", e.text);
}
