/* SPDX-License-Identifier: MIT
 * wager-serve: a model behind the OpenAI API, with speculative decoding. The main thread takes signals; the engine and HTTP
 * have a thread each. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "serve/json_memory.h"
#include "serve/reader.h"

static void *run_engine(void *user)
{
    wgs_server *s = user;
    while (!atomic_load(&s->quit)) {
        int running = 0;
        wgs_watch_poll(s->watch, wgs_job_client_gone);
        wg_scheduler_step(s->scheduler, &running, NULL);
        if (!running) wg_scheduler_wait(s->scheduler, 0.2);
    }
    return NULL;
}

/* Sends a state to the service manager, as sd_notify(3) does. */
static void notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    const size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@')) return;
    memcpy(to.sun_path, path, n);
    if (path[0] == '@') to.sun_path[0] = 0;
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    const ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
                                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
    (void)sent; /* it does not matter whether the manager received it */
    close(fd);
}

/* Reads the key: the first line of --api-key-file. */
static bool read_key(wgs_server *s, wgs_problem *p)
{
    const wgs_options *o = s->options;
    size_t room = 0;
    if (o->key) s->key = strdup(o->key);
    if (!o->key_file) return true;
    FILE *f = fopen(o->key_file, "r");
    if (!f) return wgs_refuse(p, 500, NULL, "--api-key-file %s: cannot open: %s", o->key_file, strerror(errno));
    errno = 0;
    const ssize_t n = getline(&s->key, &room, f);
    const int why = errno;
    fclose(f);
    if (n < 0 && why) return wgs_refuse(p, 500, NULL, "--api-key-file %s: cannot read a line: %s", o->key_file, strerror(why));
    if (n < 0) return wgs_refuse(p, 500, NULL, "--api-key-file %s: the file is empty; expected a key", o->key_file);
    s->key[strcspn(s->key, "\r\n")] = 0;
    return s->key[0] || wgs_refuse(p, 500, NULL, "--api-key-file %s: the first line is empty; expected a key", o->key_file);
}

/* The model's name for clients: the file's name without folders and extension. */
static char *name_of(const char *path)
{
    const char *base = strrchr(path, '/');
    char *name = strdup(base ? base + 1 : path);
    char *end = name ? strrchr(name, '.') : NULL;
    if (end && (!strcmp(end, ".gguf") || !strcmp(end, ".bin"))) *end = 0;
    return name;
}

static bool open_engine(wgs_server *s, wgs_problem *p)
{
    wgs_options *o = s->options;
    wg_error e;
    const wg_scheduler_options opt = { .size = sizeof opt,
                                       .mode = wgs_options_mode(o),
                                       .queue = (int)o->queue,
                                       .pages = (int)o->pages,
                                       .prefill_rows = (int)o->prefill_rows,
                                       .prefix_cache = !o->no_prefix_cache,
                                       .logprobs = 1,
                                       .speculation = wgs_options_speculation(o) };
    s->config = wgs_options_config(o, p);
    if (!s->config) return false;
    s->about.size = sizeof s->about;
    if (wg_scheduler_open(&s->scheduler, s->config, &opt, &e) || wg_scheduler_about_get(s->scheduler, &s->about, &e))
        return wgs_refuse(p, 500, NULL, "%s", e.text);
    s->metrics = wgs_metrics_open();
    s->watch = wgs_watch_open();
    s->reader = wgs_reader_open();
    s->name = o->name ? strdup(o->name) : name_of(s->about.model);
    s->created = (int64_t)time(NULL);
    snprintf(s->fingerprint, sizeof s->fingerprint, "wager-%s-%s", wg_version(), s->about.rule);
    return (s->metrics && s->watch && s->reader && s->name) || wgs_refuse(p, 500, NULL, "out of memory");
}

static void greet(const wgs_server *s)
{
    const wgs_options *o = s->options;
    const char *at = strchr(o->host, ':') ? "[" : "", *end = *at ? "]" : "";
    printf("wager-serve: %s, drafter %s, rule %s%s; listening at http://%s%s%s:%d\n", s->name, s->about.drafter, s->about.rule,
           s->about.lossless ? "" : " (LOSSY)", at, o->host, end, wgs_http_port(s));
    fflush(stdout);
    for (const char *line = s->about.profile_notes; *line;) {
        const size_t n = strcspn(line, "\n");
        fprintf(stderr, "wager-serve: %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    if (!s->about.chat)
        fputs("wager-serve: the model has no chat template: conversations are continued as plain texts; --chat names one\n",
              stderr);
    if (!s->key && strcmp(o->host, "127.0.0.1") && strcmp(o->host, "::1") && strcmp(o->host, "localhost"))
        fprintf(stderr, "wager-serve: whoever reaches %s may use this server: it asks for no key (--api-key)\n", o->host);
}

/* Waits for a signal, at most `seconds`, and pings silent streams meanwhile. */
static int wait_for_signal(wgs_server *s, const sigset_t *set, double seconds)
{
    const struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
    const int signal = sigtimedwait(set, NULL, &t);
    if (s->options->ping > 0) wgs_jobs_ping(s, s->options->ping);
    return signal;
}

static int in_work(wgs_server *s) { return atomic_load(&s->streams) + atomic_load(&s->reading); }

/* Waits for running answers to end, at most --shutdown-timeout seconds; a second signal ends them at once. */
static void drain(wgs_server *s, const sigset_t *set)
{
    const double end = wgs_now() + s->options->shutdown_timeout;
    atomic_store(&s->draining, true);
    wg_scheduler_drain(s->scheduler);
    notify("STOPPING=1");
    fprintf(stderr, "wager-serve: shutting down; %d requests are in work\n", in_work(s));
    while (in_work(s) && wgs_now() < end)
        if (wait_for_signal(s, set, 0.02) > 0) break;
    wgs_jobs_abort(s, false);
    for (int i = 0; i < 100 && in_work(s); i++) wait_for_signal(s, set, 0.02);
    wgs_jobs_abort(s, true);
}

static void close_server(wgs_server *s)
{
    atomic_store(&s->closing, true);
    wgs_reader_stop(s->reader);
    wgs_jobs_abort(s, true); /* the jobs that the reader has submitted meanwhile */
    wgs_http_close(s);
    wgs_reader_close(s->reader);
    atomic_store(&s->quit, true);
    if (s->engine) pthread_join(s->engine, NULL);
    wg_scheduler_close(s->scheduler);
    wgs_watch_close(s->watch);
    wgs_metrics_close(s->metrics);
    pthread_mutex_destroy(&s->lock);
    free(s->name);
    free(s->config);
    free(s->key);
}

/* Opens /dev/null for standard streams that are closed, so that no socket gets their number and the printed text. */
static void fill_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return;
}

int main(int argc, char **argv)
{
    wgs_options o;
    wgs_problem p = { 0 };
    fill_standard_streams();
    wgs_json_guard();
    const int done = wgs_options_read(&o, argc, argv);
    if (done == WGS_EXIT_OK && (fflush(stdout) || ferror(stdout))) { /* --help or --version could not be printed */
        fputs("wager serve: standard output cannot be written\n", stderr);
        return WGS_EXIT_FAILED;
    }
    if (done >= 0) return done;
    wgs_server s = { .options = &o };
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* threads that are created later inherit the mask */
    signal(SIGPIPE, SIG_IGN);
    pthread_mutex_init(&s.lock, NULL);
    bool good = read_key(&s, &p) && open_engine(&s, &p) && wgs_http_open(&s, &p);
    if (good && (errno = pthread_create(&s.engine, NULL, run_engine, &s))) {
        s.engine = 0;
        good = wgs_refuse(&p, 500, NULL, "cannot start a thread: %s", strerror(errno));
    }
    if (good) {
        greet(&s);
        notify("READY=1");
        while (wait_for_signal(&s, &set, o.ping > 0 && o.ping < 1 ? o.ping : 1) <= 0) {}
        drain(&s, &set);
    } else {
        int n = 0;
        const char *option = wg_given_option(&o.given, p.message, &n);
        fprintf(stderr, "wager serve: %.*s%s%s\n", n, option ? option : "", option ? " " : "", p.message);
    }
    close_server(&s);
    return good ? WGS_EXIT_OK : WGS_EXIT_FAILED;
}
