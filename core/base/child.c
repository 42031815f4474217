/* SPDX-License-Identifier: MIT
 * Programs in processes of their own (child.h). */
#include "core/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"

void wg_child_init(wg_child *c, const char *command) { *c = (wg_child){ .command = command, .to = -1, .from = -1 }; }

static void close_ends(wg_child *c)
{
    if (c->to >= 0) close(c->to);
    if (c->from >= 0) close(c->from);
    c->to = c->from = -1;
}

/* The group is killed while the program, running or not, still holds its number. */
int wg_child_stop(wg_child *c, int grace_ms)
{
    int status = 0;
    close_ends(c);
    if (c->pid == 0) return 0;
    for (int ms = 0; ms < grace_ms; ms++) {
        siginfo_t info = { 0 };
        const struct timespec nap = { 0, 1000000 };
        if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid) break;
        nanosleep(&nap, NULL);
    }
    kill(-c->pid, SIGKILL);
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR) {}
    c->pid = 0;
    return status;
}

static int spawn(wg_child *c, int in, int out, int shared)
{
    extern char **environ;
    const char *const words[] = { "sh", "-c", c->command, NULL };
    char *argv[4];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    memcpy(argv, words, sizeof argv);
    int e = posix_spawn_file_actions_init(&files);
    if (e) return e;
    if ((e = posix_spawnattr_init(&attr)) == 0) {
        if (!e) e = posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
        if (!e) e = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
        if (!e && shared >= 0) e = posix_spawn_file_actions_adddup2(&files, shared, WG_CHILD_SHARED);
        if (!e) e = posix_spawnattr_setpgroup(&attr, 0);
        if (!e) e = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
        if (!e) e = posix_spawn(&c->pid, "/bin/sh", &files, &attr, argv, environ);
        if (e) c->pid = 0;
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&files);
    return e;
}

/* The descriptor moved above those that the program gets, so that none of them overwrites another before it is handed on. */
static int above(int fd)
{
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, WG_CHILD_SHARED + 1);
    close(fd);
    return moved;
}

wg_status wg_child_start(wg_child *c, int shared, wg_error *err)
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, e = 0;
    if (c->pid) return WG_OK;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) < 0 || pipe2(out, O_CLOEXEC) < 0) e = errno;
    if (!e && ((in[1] = above(in[1])) < 0 || (out[1] = above(out[1])) < 0)) e = errno;
    c->to = in[0];
    c->from = out[0];
    if (!e && fcntl(c->from, F_SETFL, O_NONBLOCK) < 0) e = errno;
    if (!e) e = spawn(c, in[1], out[1], shared);
    if (in[1] >= 0) close(in[1]);
    if (out[1] >= 0) close(out[1]);
    if (!e) return WG_OK;
    close_ends(c);
    return wg_fail(err, WG_EIO, "'%s' cannot be started: %s", c->command, strerror(e));
}

void wg_child_begin(wg_child *c, int limit_ms, const char *limit_name)
{
    c->deadline = wg_clock_now() + limit_ms * 1e-3;
    c->limit_ms = limit_ms;
    c->limit_name = limit_name;
}

/* Whether poll reports an event on one end before the deadline. */
static bool ready(const wg_child *c, int fd, short what)
{
    for (;;) {
        const double left = (c->deadline - wg_clock_now()) * 1000;
        struct pollfd f = { .fd = fd, .events = what };
        if (left <= 0) return false;
        const int n = poll(&f, 1, (int)left + 1);
        if (n > 0) return true;
        if (n < 0 && errno != EINTR) return false;
    }
}

static wg_status hung(const wg_child *c, const char *doing, wg_error *err)
{
    return wg_fail(err, WG_EIO, "the program '%s' did not %s within %d ms (option %s)", c->command, doing, c->limit_ms,
                   c->limit_name);
}

/* The program closed an end. Waits briefly for its exit, so that the message has its status. */
static wg_status ended(wg_child *c, wg_error *err)
{
    const int status = wg_child_stop(c, WG_CHILD_GRACE_MS);
    if (WIFEXITED(status)) {
        const int code = WEXITSTATUS(status);
        char why[40] = "";
        if (code == 127) snprintf(why, sizeof why, " (no such command?)");
        if (code > 128) snprintf(why, sizeof why, " (signal %d, says the shell)", code - 128);
        return wg_fail(err, WG_EIO, "the program '%s' ended with status %d before it answered%s", c->command, code, why);
    }
    return wg_fail(err, WG_EIO, "the program '%s' was ended by signal %d (%s) or closed its output before it answered",
                   c->command, WTERMSIG(status), strsignal(WTERMSIG(status)));
}

wg_status wg_child_send(wg_child *c, const void *bytes, size_t n, wg_error *err)
{
    for (size_t at = 0; at < n;) {
        const ssize_t sent = send(c->to, (const char *)bytes + at, n - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) at += (size_t)sent;
        else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!ready(c, c->to, POLLOUT)) return hung(c, "read a request", err);
        } else if (errno != EINTR) return ended(c, err);
    }
    return WG_OK;
}

wg_status wg_child_read(wg_child *c, void *to, size_t room, size_t *n, wg_error *err)
{
    for (;;) {
        if (!ready(c, c->from, POLLIN)) return hung(c, "answer", err);
        const ssize_t got = read(c->from, to, room);
        if (got > 0) return *n = (size_t)got, WG_OK;
        if (got == 0 || (errno != EINTR && errno != EAGAIN)) return ended(c, err);
    }
}

wg_status wg_child_read_all(wg_child *c, void *to, size_t n, wg_error *err)
{
    for (size_t at = 0, got; at < n; at += got) WG_TRY(wg_child_read(c, (char *)to + at, n - at, &got, err));
    return WG_OK;
}
