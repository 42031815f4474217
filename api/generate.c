/* SPDX-License-Identifier: MIT
 * A text in one call: a session, a sequence, and its rounds. */
#include <string.h>

#include "api/api_impl.h"
#include "core/base/mem.h"

static wg_status append(char **text, size_t *n, const wg_round *r, wg_error *err)
{
    char *more = wg_realloc(*text, *n + r->bytes + 1, 1);
    if (!more) return wg_nomem(err, *n + r->bytes + 1, "a text");
    memcpy(more + *n, r->text, r->bytes);
    *n += r->bytes;
    more[*n] = '\0';
    *text = more;
    return WG_OK;
}

wg_status wg_generate(const char *model, const char *prompt, const char *config, char **text, wg_error *err)
{
    if (!prompt || !text) return wg_missing("wg_generate", prompt ? "text" : "prompt", err);
    const wg_engine_text as = { .name = "config", .json = config ? config : "{}", .model = model, .target = true };
    wg_session *s = NULL;
    wg_sequence *q = NULL;
    char *all = NULL;
    size_t n = 0;
    wg_round r = { .size = sizeof r };
    wg_status status = wg_session_make(&s, &as, NULL, WG_SESSION_MODEL, err);
    if (!status) status = wg_sequence_open(s, &q, prompt, strlen(prompt), NULL, err);
    while (!status && r.end == WG_END_NOT) {
        status = wg_sequence_next(q, &r, err);
        if (!status) status = append(&all, &n, &r, err);
    }
    wg_session_close(s);
    if (status) wg_free(all);
    else *text = all;
    return status;
}
