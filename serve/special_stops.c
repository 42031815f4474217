/* SPDX-License-Identifier: MIT
 * See special_stops.h. */
#include "serve/special_stops.h"

#include <string.h>

/* The text of a special token, freed by wg_text_free; NULL: the token is an ordinary one. */
static char *special_text(const wgs_server *s, int32_t token, size_t *n)
{
    char *shown = NULL, *text = NULL;
    size_t bytes = 0;
    const bool special = !wg_scheduler_detokenize(s->scheduler, &token, 1, 0, &shown, &bytes, NULL) && !bytes &&
                         !wg_scheduler_detokenize(s->scheduler, &token, 1, 1, &text, n, NULL) && *n > 0;
    wg_text_free(shown);
    if (special) return text;
    wg_text_free(text);
    return NULL;
}

static bool add(wgs_request *r, int32_t token, wgs_problem *p)
{
    for (int i = 0; i < r->stop_tokens; i++)
        if (r->stop_token[i] == token) return true;
    if (r->stop_tokens == WGS_STOP_TOKENS)
        return wgs_refuse(p, 400, "stop", "'stop' and 'stop_token_ids' have more than %d tokens", (int)WGS_STOP_TOKENS);
    r->stop_token[r->stop_tokens++] = token;
    return true;
}

bool wgs_special_stops(const wgs_server *s, wgs_request *r, wgs_problem *p)
{
    wg_error e;
    bool good = true;
    for (int i = 0; i < r->stops.n && good; i++) {
        const wgs_stop *stop = &r->stops.at[i];
        int32_t *token = NULL;
        int n = 0;
        if (wg_scheduler_tokenize(s->scheduler, stop->s, stop->n, 1, 0, &token, &n, &e))
            return wgs_refuse(p, e.code == WG_ENOMEM ? 503 : 400, "stop", "%s", e.text);
        for (int k = 0; k < n && good; k++) {
            size_t bytes = 0;
            char *text = special_text(s, token[k], &bytes);
            if (!text) continue;
            good = bytes == stop->n && !memcmp(text, stop->s, bytes)
                       ? add(r, token[k], p)
                       : wgs_refuse(
                             p, 400, "stop",
                             "'stop' has the special token %.60s beside other text; it has no text in an answer, so give it "
                             "alone",
                             text);
            wg_text_free(text);
        }
        wg_tokens_free(token);
    }
    return good;
}
