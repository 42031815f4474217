/* SPDX-License-Identifier: MIT
 * A program in a process of its own that answers requests: started by the shell in its own process group, written to through
 * its standard input, read from its standard output, ended with everything that it started. An exchange has a deadline, so a
 * program that hangs, does not read or dies is an error of that exchange. Its input is a socket: writing to a dead program is
 * an error of the write and no signal. */
#ifndef WG_CORE_BASE_CHILD_H
#define WG_CORE_BASE_CHILD_H

#include <stddef.h>

#include "core/base/error.h"

enum { WG_CHILD_GRACE_MS = 300, WG_CHILD_SHARED = 3 };

typedef struct wg_child {
    const char *command; /* for the shell; borrowed */
    int pid;             /* 0: not running */
    int to, from;        /* this program's ends; -1: closed */
    double deadline;     /* of the current exchange, as wg_clock_now */
    int limit_ms;        /* its length, and the option that sets it: for messages */
    const char *limit_name;
} wg_child;

void wg_child_init(wg_child *c, const char *command); /* not running; wg_child_stop does nothing then */

/* Starts it, where it does not run. shared: a descriptor that it gets as number WG_CHILD_SHARED; -1: none. EIO. */
wg_status wg_child_start(wg_child *c, int shared, wg_error *err);

/* Waits up to grace_ms for its exit, then kills its process group, and reaps it. Returns its wait status; 0: it did not run. */
int wg_child_stop(wg_child *c, int grace_ms);

/* Begins an exchange, which sends and reads must finish in limit_ms milliseconds; limit_name: the option that says so. */
void wg_child_begin(wg_child *c, int limit_ms, const char *limit_name);

/* Sends n bytes. read: 1 .. room bytes of what it wrote, *n; EIO, with the status it ended with, at the end of its output.
 * After EIO it may run still: stop it. */
bool wg_child_has_output(const wg_child *c); /* bytes that were not read, or the end of its output, now */
wg_status wg_child_send(wg_child *c, const void *bytes, size_t n, wg_error *err);
wg_status wg_child_read(wg_child *c, void *to, size_t room, size_t *n, wg_error *err);
wg_status wg_child_read_all(wg_child *c, void *to, size_t n, wg_error *err); /* exactly n bytes */

#endif
