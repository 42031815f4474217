/* SPDX-License-Identifier: MIT
 * The log sink: where the library writes its few log lines (never results, never errors). Set it before threads start. */
#ifndef WG_CORE_BASE_LOG_H
#define WG_CORE_BASE_LOG_H

typedef enum wg_log_level { WG_LOG_DEBUG, WG_LOG_INFO, WG_LOG_WARN } wg_log_level;
typedef void wg_log_fn(void *user, wg_log_level level, const char *text);

/* NULL is the default: nowhere, because a library does not print. */
void wg_log_to(wg_log_fn *fn, void *user);
/* The sink of the program: warnings to stderr, everything with WG_TRACE=1. */
void wg_log_to_stderr(void *user, wg_log_level level, const char *text);
void wg_log(wg_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
