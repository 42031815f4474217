/* SPDX-License-Identifier: MIT
 * The options of a command line as the user wrote them, so that a message that begins with a value ("a.gguf: there is no such
 * file") names the option too. It is a header alone, because the server is linked with libwager and nothing else of ours. */
#ifndef WG_CORE_BASE_GIVEN_H
#define WG_CORE_BASE_GIVEN_H

#include <string.h>

enum { WG_GIVEN_MOST = 128 }; /* further options are not named */

typedef struct wg_given {
    const char *option[WG_GIVEN_MOST], *value[WG_GIVEN_MOST]; /* (n) borrowed; an option may end with "=value" */
    int n;
} wg_given;

static inline void wg_given_add(wg_given *g, const char *option, const char *value)
{
    if (g->n < WG_GIVEN_MOST && *value) g->option[g->n] = option, g->value[g->n++] = value;
}

/* The option with whose value, and a colon, the message begins; NULL: none. *n: bytes of the option. */
static inline const char *wg_given_option(const wg_given *g, const char *message, int *n)
{
    for (int i = 0; i < g->n; i++) {
        const size_t bytes = strlen(g->value[i]);
        if (strncmp(message, g->value[i], bytes) != 0 || message[bytes] != ':') continue;
        *n = (int)strcspn(g->option[i], "=");
        return g->option[i];
    }
    return NULL;
}

#endif
