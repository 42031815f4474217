/* SPDX-License-Identifier: MIT
 * Status codes and messages. A function that can fail returns a wg_status and fills the caller's wg_error, which needs no
 * freeing. A message says what happened, where, what was expected and how to fix it; it can be printed as it is. */
#ifndef WG_CORE_BASE_ERROR_H
#define WG_CORE_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

#define WG_STATUS_MAP(X)                                                                                                       \
    X(EINVAL)       /* invalid argument */                                                                                     \
    X(ENOMEM)       /* out of memory */                                                                                        \
    X(EIO)          /* input/output error */                                                                                   \
    X(ENOENT)       /* no such file */                                                                                         \
    X(EFORMAT)      /* malformed file */                                                                                       \
    X(EUNSUPPORTED) /* not supported */                                                                                        \
    X(ECONFIG)      /* invalid configuration */                                                                                \
    X(EMODEL)       /* unusable model */                                                                                       \
    X(EVOCAB)       /* vocabularies differ */                                                                                  \
    X(ELAW)         /* verifier cannot check this kind of draft */                                                             \
    X(EFULL)        /* no free KV page */                                                                                      \
    X(ECONTEXT)     /* context length exceeded */                                                                              \
    X(EREPLAY)      /* a second pass differs from the timed one */                                                             \
    X(EINTERRUPTED) /* interrupted */

typedef enum wg_status {
    WG_OK = 0,
    WG_STATUS_BASE = 1000,
#define X(name) WG_##name,
    WG_STATUS_MAP(X)
#undef X
} wg_status;

enum { WG_ERROR_TEXT = 2048 };

/* Lives on the caller's stack. On success it is left untouched. */
typedef struct wg_error {
    wg_status code;
    char text[WG_ERROR_TEXT]; /* NUL-terminated UTF-8, no trailing newline */
} wg_error;

/* The name of a code ("EFORMAT"). Never NULL. */
const char *wg_status_name(wg_status s);

/* Fills err (which may be NULL) and returns code, so that a failure is one line: return wg_fail(err, WG_EIO, "..."). */
wg_status wg_fail(wg_error *err, wg_status code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the message that err already holds; returns err's code (code when err is NULL). */
wg_status wg_fail_in(wg_error *err, wg_status code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Forwards a failure to the caller. */
#define WG_TRY(expr)                                                                                                           \
    do {                                                                                                                       \
        const wg_status wg_try_ = (expr);                                                                                      \
        if (wg_try_ != WG_OK) return wg_try_;                                                                                  \
    } while (0)

/* For bugs of the program, never for mistakes of the user: prints the expression and aborts. On in every build. */
#define wg_assert(cond) ((cond) ? (void)0 : wg_bug(#cond, __FILE__, __LINE__))
_Noreturn void wg_bug(const char *what, const char *file, int line);

#endif
