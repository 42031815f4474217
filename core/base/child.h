/* SPDX-License-Identifier: MIT
 * A program in a process of its own that answers requests: the shell starts it in its own process group; requests go to its
 * standard input, answers come from its standard output, and it is ended with everything that it started. An exchange has a
 * deadline, so a program that hangs, does not read or dies is an error of that exchange. Its input is a socket, so writing to a
 * dead program is an error of the write, not a signal. */
#ifndef WG_CORE_BASE_CHILD_H
#define WG_CORE_BASE_CHILD_H

#include <stddef.h>

#include "core/base/error.h"

enum { WG_CHILD_GRACE_MS = 300, WG_CHILD_SHARED = 3 };

typedef struct wg_child {
    const char *command; /* for the shell; borrowed */
    int pid;             /* 0: not running */
    int to, from;        /* this program's ends; -1: closed */
    double deadline;     /* end of the present exchange (wg_clock_now) */
    int limit_ms;        /* length of the exchange, and the option that sets it, for messages */
    const char *limit_name;
} wg_child;

void wg_child_init(wg_child *c, const char *command); /* sets it to not running */

/* Starts it unless it runs. shared: a descriptor that it gets as number WG_CHILD_SHARED; -1: none. EIO. */
wg_status wg_child_start(wg_child *c, int shared, wg_error *err);

/* Waits up to grace_ms for its exit, then kills its process group, and reaps it. Returns its wait status; 0: it did not run. */
int wg_child_stop(wg_child *c, int grace_ms);

/* Begins an exchange: its sends and reads must finish in limit_ms milliseconds. limit_name: the option that sets the limit. */
void wg_child_begin(wg_child *c, int limit_ms, const char *limit_name);

/* send: sends n bytes. read: reads *n bytes, 1 .. room, of its output. EIO, with its exit status, at the end of its output.
 * After EIO it may still run and is to be stopped. */
wg_status wg_child_send(wg_child *c, const void *bytes, size_t n, wg_error *err);
wg_status wg_child_read(wg_child *c, void *to, size_t room, size_t *n, wg_error *err);
wg_status wg_child_read_all(wg_child *c, void *to, size_t n, wg_error *err); /* exactly n bytes */

#endif
