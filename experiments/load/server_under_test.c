/* SPDX-License-Identifier: MIT
 * Starting a server for a test, and ending it. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/child.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "experiments/load/load_sweep.h"
#include "experiments/load/load_test.h"

enum { GRACE_MS = 10000, TAIL = 600, LOG_MOST = 64 << 20 };

struct wg_server_under_test {
    wg_child child;
    char url[64], command[2 * WG_SWEEP_COMMAND];
};

/* A port that nothing listens at now; 0: none is free. */
static int free_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool good = fd >= 0 && bind(fd, (struct sockaddr *)&at, n) == 0 && getsockname(fd, (struct sockaddr *)&at, &n) == 0;
    if (fd >= 0) close(fd);
    return good ? ntohs(at.sin_port) : 0;
}

/* Appends a text with {port} and {wager} replaced; false: it does not fit. */
static bool put(char *to, size_t room, const char *text, int port, const char *program)
{
    size_t n = strlen(to);
    for (const char *p = text; *p && n + 1 < room;) {
        int made = 1;
        if (!strncmp(p, "{port}", 6)) made = snprintf(to + n, room - n, "%d", port), p += 6;
        else if (!strncmp(p, "{wager}", 7)) made = snprintf(to + n, room - n, "'%s'", program), p += 7;
        else to[n] = *p++;
        n += (size_t)made;
    }
    if (n + 1 >= room) return false;
    to[n] = '\0';
    return true;
}

static bool has_ended(const wg_server_under_test *s)
{
    siginfo_t info = { 0 };
    return waitid(P_PID, (id_t)s->child.pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

/* The last lines of a log, for a message. */
static void tail_of(const char *log, char *to, size_t room)
{
    char *text = NULL;
    size_t n = 0;
    wg_error ignored;
    *to = '\0';
    if (wg_read_file(log, LOG_MOST, &text, &n, &ignored)) return;
    const size_t from = n > TAIL ? n - TAIL : 0;
    snprintf(to, room, "%s", text + from);
    wg_free(text);
}

static wg_status wait_ready(wg_server_under_test *s, const char *command, const char *log, double seconds,
                            const volatile sig_atomic_t *stop, wg_error *err)
{
    char tail[TAIL + 1];
    wg_status status = WG_EIO;
    for (const double until = wg_clock_now() + seconds; status && wg_clock_now() < until && !has_ended(s);) {
        status = wg_load_wait_ready(s->url, 0.25, stop, err);
        if (status == WG_EINTERRUPTED || status == WG_EUNSUPPORTED) return status;
    }
    if (!status) return WG_OK;
    tail_of(log, tail, sizeof tail);
    return wg_fail(err, WG_EIO, "the server '%.300s' %s; its log %s ends:\n%s", command,
                   has_ended(s) ? "has ended" : "was not ready in time", log, tail);
}

wg_status wg_server_start(wg_server_under_test **out, const char *command, const char *program, const char *log, double seconds,
                          const volatile sig_atomic_t *stop, wg_error *err)
{
    const int port = free_port();
    wg_server_under_test *s = wg_calloc(1, sizeof *s);
    if (!s) return wg_nomem(err, sizeof *s, "a server");
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", port);
    strcpy(s->command, "exec ");
    char to[WG_SWEEP_COMMAND];
    snprintf(to, sizeof to, " >'%s' 2>&1 </dev/null", log);
    wg_child_init(&s->child, s->command);
    wg_status status = WG_OK;
    if (!port || strchr(log, '\'') || !put(s->command, sizeof s->command, command, port, program) ||
        !put(s->command, sizeof s->command, to, port, program))
        status = wg_fail(err, WG_EIO, "the server '%.300s' cannot be started: no free port, or a quote in the path %s", command,
                         log);
    if (!status) status = wg_child_start(&s->child, -1, err);
    if (!status) status = wait_ready(s, command, log, seconds, stop, err);
    if (status) wg_server_stop(s);
    else *out = s;
    return status;
}

const char *wg_server_url(const wg_server_under_test *s) { return s->url; }

void wg_server_stop(wg_server_under_test *s)
{
    if (!s) return;
    if (s->child.pid) kill(-s->child.pid, SIGTERM);
    wg_child_stop(&s->child, GRACE_MS);
    wg_free(s);
}
