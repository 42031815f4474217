/* SPDX-License-Identifier: MIT
 * HTTP over libmicrohttpd. */
#include "serve/exchange.h"

#include "core/base/short_turns.h"
#include "serve/reader.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { DISCARD = 64 << 20 }; /* bytes behind the limit of a body that are still read, so that the client reads its answer */

/* Makes r, or NULL, the answer. */
static void reply(wgs_exchange *x, int http, struct MHD_Response *r)
{
    const wgs_options *o = x->server->options;
    x->http = http;
    x->response = r;
    if (!r) return;
    MHD_add_response_header(r, "X-Request-Id", x->name);
    if (o->cors) {
        MHD_add_response_header(r, "Access-Control-Allow-Origin", o->cors);
        MHD_add_response_header(r, "Access-Control-Allow-Headers", "Authorization, Content-Type");
        MHD_add_response_header(r, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    }
}

/* Sends the answer; without one the connection closes. */
static enum MHD_Result send_answer(wgs_exchange *x)
{
    struct MHD_Response *r = x->response;
    if (!r) return MHD_NO;
    wgs_metrics_count(x->server->metrics, WGS_HTTP_ANSWERS, 1);
    if (x->http >= 400) wgs_metrics_count(x->server->metrics, WGS_HTTP_ERRORS, 1);
    const enum MHD_Result done = MHD_queue_response(x->connection, (unsigned)x->http, r);
    x->response = NULL;
    MHD_destroy_response(r);
    return done;
}

static struct MHD_Response *text_response(const char *type, const char *text, size_t n)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(n, (void *)text, MHD_RESPMEM_MUST_COPY);
    if (r) MHD_add_response_header(r, "Content-Type", type);
    return r;
}

void wgs_reply_text(wgs_exchange *x, int http, const char *type, const char *text, size_t n)
{
    reply(x, http, text_response(type, text, n));
}

static struct MHD_Response *json_response(json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    struct MHD_Response *r = text ? text_response("application/json", text, strlen(text)) : NULL;
    free(text);
    json_decref(json);
    return r;
}

void wgs_reply_json(wgs_exchange *x, int http, json_t *json) { reply(x, http, json_response(json)); }

/* Seconds after which a client that found a full queue may find a place: as long as an answer took so far, within bounds. */
static int retry_after(const wgs_server *s)
{
    wg_scheduler_stats now = { .size = sizeof now };
    if (wg_scheduler_stats_get(s->scheduler, &now, NULL) || !now.ended) return 1;
    const double each = now.step_seconds / (double)now.ended, seconds = each * now.waiting;
    return seconds < 1 ? 1 : seconds > 60 ? 60 : (int)seconds;
}

void wgs_reply_problem(wgs_exchange *x, const wgs_problem *p)
{
    struct MHD_Response *r = json_response(wgs_problem_json(p));
    char seconds[16];
    if (p->http == 429) wgs_metrics_count(x->server->metrics, WGS_REJECTED, 1);
    if (r && (p->http == 429 || p->http == 503)) {
        snprintf(seconds, sizeof seconds, "%d", retry_after(x->server));
        MHD_add_response_header(r, "Retry-After", seconds);
    }
    if (r && p->http == 401) MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
    reply(x, p->http, r);
}

void wgs_reply_stream(wgs_exchange *x, struct MHD_Response *r) { reply(x, 200, r); }

/* Compares in a time that does not depend on where the keys differ. */
static bool same_key(const char *a, const char *key)
{
    const size_t n = strlen(a), m = strlen(key);
    unsigned differ = n != m;
    for (size_t i = 0; i < n; i++) differ |= (unsigned char)a[i] ^ (unsigned char)key[m ? i % m : 0];
    return !differ;
}

static bool has_key(const wgs_exchange *x)
{
    const char *given = MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, "Authorization");
    return !x->server->key || (given && !strncasecmp(given, "Bearer ", 7) && same_key(given + 7, x->server->key));
}

static void no_endpoint(wgs_exchange *x, const char *url)
{
    wgs_problem p;
    char methods[64] = "";
    for (const wgs_endpoint *e = wgs_endpoints; e->path; e++)
        if (!strcmp(e->path, url))
            snprintf(methods + strlen(methods), sizeof methods - strlen(methods), "%s%s", *methods ? ", " : "", e->method);
    if (!*methods) {
        wgs_refuse(&p, 404, NULL, "there is no %.200s here; docs/serving.md lists the endpoints", url);
        wgs_reply_problem(x, &p);
        return;
    }
    wgs_refuse(&p, 405, NULL, "%.200s is called by %s", url, methods);
    struct MHD_Response *r = json_response(wgs_problem_json(&p));
    if (r) MHD_add_response_header(r, "Allow", methods);
    reply(x, 405, r);
}

/* Answers what needs no handling, or may not have it. */
static bool answer_early(wgs_exchange *x, const char *url, const char *method)
{
    wgs_problem p;
    if (x->server->options->cors && !strcmp(method, "OPTIONS")) wgs_reply_text(x, 204, "text/plain", "", 0);
    else if (!x->endpoint) no_endpoint(x, url);
    else if (!x->endpoint->open && !has_key(x)) {
        wgs_refuse(&p, 401, NULL, "the key is missing or wrong; expected the header Authorization: Bearer KEY");
        wgs_reply_problem(x, &p);
    } else if (x->too_large) {
        wgs_refuse(&p, 413, NULL,
                   "the body is larger than %ld KiB (--max-body), or than the memory for bodies has room for (--max-uploads)",
                   x->server->options->body_kib);
        wgs_reply_problem(x, &p);
    } else return false;
    return true;
}

/* The request is whole. It is called again when the reader has handled x, and when something has happened to its job. */
static enum MHD_Result answer(wgs_exchange *x, const char *url, const char *method)
{
    if (!x->begun && !answer_early(x, url, method)) {
        x->begun = true;
        if (x->body.n >= WGS_LONG_BODY) x->later = x->endpoint->handle;
        else x->endpoint->handle(x);
        if (x->later) return wgs_reader_put(x->server->reader, x) ? MHD_YES : MHD_NO;
    }
    if (x->job && !x->response && !wgs_reply_job(x)) return MHD_YES;
    return send_answer(x);
}

/* Keeps a piece of the body, within the limits. false: the client sends too much to be worth listening to. */
static bool keep(wgs_exchange *x, const char *data, size_t n)
{
    wgs_server *s = x->server;
    const size_t most = (size_t)s->options->body_kib << 10, room = x->body.room;
    x->received += n;
    if (!x->too_large &&
        (x->received > most || atomic_load(&s->uploads) + (long long)n > (long long)s->options->uploads_mib << 20)) {
        x->too_large = true;
        atomic_fetch_sub(&s->uploads, (long long)room);
        wgs_buffer_free(&x->body);
    }
    if (x->too_large) return x->received <= most + DISCARD;
    wgs_buffer_put(&x->body, data, n);
    atomic_fetch_add(&s->uploads, (long long)(x->body.room - room));
    return !x->body.failed;
}

/* The client's name of the request, when it is a word; else one of ours. */
static void name_exchange(wgs_exchange *x)
{
    const char *given = MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, "X-Request-Id");
    size_t n = 0;
    while (given && given[n] > ' ' && given[n] < 0x7f && n < sizeof x->name) n++;
    if (n && n < sizeof x->name && !given[n]) memcpy(x->name, given, n + 1);
    else
        snprintf(x->name, sizeof x->name, "req-%llx-%llx", (unsigned long long)x->server->created,
                 (unsigned long long)atomic_fetch_add(&x->server->serial, 1));
}

static wgs_exchange *begin(wgs_server *s, struct MHD_Connection *connection, const char *url, const char *method)
{
    wgs_exchange *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    x->server = s;
    x->connection = connection;
    name_exchange(x);
    if (!strcmp(method, "HEAD")) method = "GET";
    for (const wgs_endpoint *e = wgs_endpoints; e->path && !x->endpoint; e++)
        if (!strcmp(e->path, url) && !strcmp(e->method, method)) x->endpoint = e;
    return x;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *n, void **state)
{
    wgs_exchange *x = *state;
    (void)version;
    if (!x) { /* the header alone */
        const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
        *state = x = begin(user, connection, url, method);
        if (!x) return MHD_NO;
        x->too_large = length && strtoull(length, NULL, 10) > (unsigned long long)x->server->options->body_kib << 10;
        const char *expect = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Expect");
        return x->too_large && expect ? answer(x, url, method) : MHD_YES;
    }
    if (*n) {
        const bool goes_on = keep(x, data, *n);
        *n = 0;
        return goes_on ? MHD_YES : MHD_NO;
    }
    return answer(x, url, method);
}

static void on_completed(void *user, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode why)
{
    wgs_exchange *x = *state;
    (void)user, (void)connection, (void)why;
    if (!x) return;
    if (x->response) MHD_destroy_response(x->response); /* the server has closed before it was sent */
    if (x->job) wgs_job_leave(x->job, false);           /* of one that was told, no answer runs */
    atomic_fetch_sub(&x->server->uploads, (long long)x->body.room);
    wgs_buffer_free(&x->body);
    free(x);
    *state = NULL;
}

static void on_connection(void *user, struct MHD_Connection *connection, void **state, enum MHD_ConnectionNotificationCode what)
{
    wgs_server *s = user;
    (void)connection, (void)state;
    if (!s->short_turns) wg_short_turns();
    s->short_turns = true;
    atomic_fetch_add(&s->connections, what == MHD_CONNECTION_NOTIFY_STARTED ? 1 : -1);
}

static void quiet(void *user, const char *format, va_list a) { (void)user, (void)format, (void)a; }

/* A socket that listens at host and port, or -1. */
static int listen_at(const wgs_options *o, wgs_problem *p)
{
    const struct addrinfo want = { .ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    char port[16];
    const int on = 1;
    snprintf(port, sizeof port, "%ld", o->port);
    const int bad = getaddrinfo(o->host, port, &want, &found);
    if (bad) {
        wgs_refuse(p, 500, NULL, "--host %s: %s; expected an address of this machine", o->host, gai_strerror(bad));
        return -1;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 1024)) {
        wgs_refuse(p, 500, NULL, "cannot listen at %s, port %s: %s", o->host, port, strerror(errno));
        if (fd >= 0) close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

bool wgs_http_open(wgs_server *s, wgs_problem *p)
{
    const wgs_options *o = s->options;
    struct rlimit files;
    if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < (rlim_t)o->connections + 64) {
        files.rlim_cur = files.rlim_max < (rlim_t)o->connections + 64 ? files.rlim_max : (rlim_t)o->connections + 64;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    const int fd = listen_at(o, p);
    if (fd < 0) return false;
    s->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
                                 on_request, s, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_EXTERNAL_LOGGER, quiet, NULL,
                                 MHD_OPTION_CONNECTION_LIMIT, (unsigned)o->connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 (size_t)o->header_kib << 10, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(o->idle_timeout + 0.5),
                                 MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
                                 s, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (s->daemon) return true;
    close(fd);
    return wgs_refuse(p, 500, NULL, "libmicrohttpd does not start: %s", strerror(errno));
}

int wgs_http_port(const wgs_server *s)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_LISTEN_FD);
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    if (!info || getsockname(info->listen_fd, (struct sockaddr *)&at, &n)) return 0;
    return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port : ((struct sockaddr_in *)&at)->sin_port);
}

void wgs_http_close(wgs_server *s)
{
    if (s->daemon) MHD_stop_daemon(s->daemon);
    s->daemon = NULL;
}
