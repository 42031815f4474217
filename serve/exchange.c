/* SPDX-License-Identifier: MIT
 * HTTP over libmicrohttpd. */
#include "serve/exchange.h"

#include "core/base/short_turns.h"
#include "serve/json_memory.h"
#include "serve/reader.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Before 0.9.77 strict mode stays off: it would only answer requests without Host, a second time. The memory of a
 * connection is four times the largest header, so that longer headers get our answer and not the library's. */
#if MHD_VERSION < 0x00097701
#define STRICT MHD_OPTION_STRICT_FOR_CLIENT, 0
#else
#define STRICT MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1
#endif

enum { DISCARD = 64 << 20 }; /* bytes beyond the limit that are read and dropped, so that the client reads its answer */
enum { LINGER = 2 };         /* seconds without a byte after which a body that is dropped ends */

static const char no_memory[] =
    "{\"error\":{\"message\":\"the server is out of memory; try again\",\"type\":\"unavailable_error\","
    "\"param\":null,\"code\":null}}";

/* Sets the CORS headers: the origin that may call, the headers that it may send, and the headers of answers that it may
 * read. */
static void allow_pages(struct MHD_Response *r, const char *origin, wgs_value asked)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_, ";
    char names[1024] = "";
    if (asked.n < sizeof names && asked.n && strspn(asked.s, letters) >= asked.n) memcpy(names, asked.s, asked.n);
    MHD_add_response_header(r, "Vary", "Origin");
    MHD_add_response_header(r, "Access-Control-Allow-Origin", origin);
    MHD_add_response_header(r, "Access-Control-Allow-Headers", *names ? names : "Authorization, Content-Type");
    MHD_add_response_header(r, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    MHD_add_response_header(r, "Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
}

/* Makes r the answer of x; NULL: memory ran out. */
static void reply(wgs_exchange *x, int http, struct MHD_Response *r)
{
    const wgs_options *o = x->server->options;
    x->http = http;
    x->response = r;
    if (!r) return;
    MHD_add_response_header(r, "X-Request-Id", x->name);
    if (x->last) MHD_add_response_header(r, "Connection", "close");
    if (o->cors) allow_pages(r, o->cors, wgs_head_value(x->connection, "Access-Control-Request-Headers"));
}

static void count_answer(const wgs_exchange *x)
{
    wgs_metrics_count(x->server->metrics, WGS_HTTP_ANSWERS, 1);
    if (x->http >= 400) wgs_metrics_count(x->server->metrics, WGS_HTTP_ERRORS, 1);
}

/* Sends the answer. The connection closes where there is none because the client has gone. */
static enum MHD_Result send_answer(wgs_exchange *x)
{
    struct MHD_Response *r = x->response;
    if (!x->http) return MHD_NO;
    if (!r) x->http = 503;
    count_answer(x);
    const enum MHD_Result done = MHD_queue_response(x->connection, (unsigned)x->http, r ? r : x->server->no_memory);
    x->response = NULL;
    if (r) MHD_destroy_response(r);
    return done;
}

static struct MHD_Response *text_response(const char *type, const char *text, size_t n)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(n, (void *)text, MHD_RESPMEM_MUST_COPY);
    if (r) MHD_add_response_header(r, "Content-Type", type);
    return r;
}

void wgs_reply_text(wgs_exchange *x, int http, const char *type, const wgs_buffer *text)
{
    reply(x, http, text->failed ? NULL : text_response(type, text->s, text->n));
}

void wgs_reply_page(wgs_exchange *x, const wgs_buffer *html, const char *policy)
{
    struct MHD_Response *r = html->failed ? NULL : text_response("text/html; charset=utf-8", html->s, html->n);
    if (r) {
        MHD_add_response_header(r, "Content-Security-Policy", policy);
        MHD_add_response_header(r, "X-Frame-Options", "DENY");
        MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
        MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    }
    reply(x, 200, r);
}

static struct MHD_Response *json_response(wgs_exchange *x, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    struct MHD_Response *r = text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) : NULL;
    if (r) MHD_add_response_header(r, "Content-Type", "application/json");
    else free(text);
    json_decref(json);
    x->text = r ? text : NULL;
    return r;
}

void wgs_reply_json(wgs_exchange *x, int http, json_t *json) { reply(x, http, json_response(x, json)); }

/* The value of Retry-After in seconds, 1 to 60: the mean time of an ended answer times the answers that wait. */
static int retry_after(const wgs_server *s)
{
    wg_scheduler_stats now = { .size = sizeof now };
    if (wg_scheduler_stats_get(s->scheduler, &now, NULL) || !now.ended) return 1;
    const double each = now.step_seconds / (double)now.ended, seconds = each * now.waiting;
    return seconds < 1 ? 1 : seconds > 60 ? 60 : (int)seconds;
}

void wgs_reply_problem(wgs_exchange *x, const wgs_problem *p)
{
    struct MHD_Response *r = json_response(x, wgs_problem_json(p));
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

/* Compares a key of n bytes in a time that does not depend on where the keys differ. */
static bool same_key(const char *a, size_t n, const char *key)
{
    const size_t m = strlen(key);
    unsigned differ = n != m;
    for (size_t i = 0; i < n; i++) differ |= (unsigned char)a[i] ^ (unsigned char)key[m ? i % m : 0];
    return !differ;
}

static bool has_key(const wgs_exchange *x)
{
    const wgs_value given = wgs_head_value(x->connection, "Authorization");
    return !x->server->key ||
           (given.n > 7 && !strncasecmp(given.s, "Bearer ", 7) && same_key(given.s + 7, given.n - 7, x->server->key));
}

/* The endpoint of a method and a path, or NULL. *argument: the rest of the path behind the endpoint's. */
static const wgs_endpoint *find_endpoint(const char *method, char *path, char **argument)
{
    for (const wgs_endpoint *e = wgs_endpoints; e->path; e++) {
        const size_t n = strlen(e->path);
        const bool has_more = n > 1 && e->path[n - 1] == '/';
        *argument = wgs_target_behind(path, e->path);
        if (*argument && (has_more || !**argument) && !strcmp(e->method, method)) return e;
    }
    *argument = NULL;
    return NULL;
}

static void no_endpoint(wgs_exchange *x, const char *method)
{
    wgs_problem p;
    char methods[64] = "", *argument, *path = x->target.path;
    for (int i = 0; i < 2; i++)
        if (find_endpoint(i ? "POST" : "GET", path, &argument))
            snprintf(methods + strlen(methods), sizeof methods - strlen(methods), "%s%s", *methods ? ", " : "",
                     i ? "POST" : "GET");
    if (!*methods) {
        wgs_refuse(&p, 404, NULL, "there is no %.10s %.200s here; docs/serving.md lists the endpoints", method, path);
        wgs_reply_problem(x, &p);
        return;
    }
    wgs_refuse(&p, 405, NULL, "%.200s is called by %s", path, methods);
    struct MHD_Response *r = json_response(x, wgs_problem_json(&p));
    if (r) MHD_add_response_header(r, "Allow", methods);
    reply(x, 405, r);
}

static void refuse(wgs_exchange *x, const wgs_problem *p)
{
    x->refused = true;
    atomic_fetch_sub(&x->server->uploads, (long long)x->body.room);
    wgs_buffer_free(&x->body);
    wgs_reply_problem(x, p);
}

/* The largest body, in bytes. */
static size_t most_of(const wgs_options *o)
{
    const size_t body = (size_t)o->body_kib << 10, all = (size_t)o->uploads_mib << 20;
    return body < all ? body : all;
}

static void too_large(wgs_exchange *x)
{
    wgs_problem p;
    wgs_refuse(&p, 413, NULL, "the body is larger than %zu KiB (--max-body)", most_of(x->server->options) >> 10);
    refuse(x, &p);
}

/* Checks the header and refuses the request where it shows an error, before any byte of the body is kept. */
static void judge(wgs_exchange *x, const char *method, const char *version)
{
    const wgs_options *o = x->server->options;
    struct MHD_Connection *c = x->connection;
    wgs_problem p;
    const char *length = wgs_head_value(c, "Content-Length").s;
    char *argument = NULL;
    x->seen = true;
    /* Servers differ on where a chunked body ends, so the connection closes after one. */
    x->last = wgs_head_value(c, "Transfer-Encoding").s != NULL;
    if (x->target.path) x->endpoint = find_endpoint(!strcmp(method, "HEAD") ? "GET" : method, x->target.path, &argument);
    x->argument = argument;
    if (!wgs_head_framed(c, method, version, &x->line, (size_t)o->header_kib << 10, &p)) {
        x->last = true;
        refuse(x, &p);
    } else if (!x->target.path || (argument && !wgs_target_decode(argument))) {
        wgs_refuse(&p, 400, NULL, "the target of the request is '%.80s'; expected a path, or http://HOST/PATH, without %%00",
                   x->target.text);
        refuse(x, &p);
    } else if (!wgs_head_host(x->server, c, &x->target, &p)) refuse(x, &p);
    else if (o->cors && !strcmp(method, "OPTIONS")) {
        x->refused = true;
        reply(x, 204, text_response("text/plain", "", 0));
    } else if (!x->endpoint) {
        x->refused = true;
        no_endpoint(x, method);
    } else if (!x->endpoint->open && !has_key(x)) {
        wgs_refuse(&p, 401, NULL, "the key is missing or wrong; expected the header Authorization: Bearer KEY");
        refuse(x, &p);
    } else if (wgs_head_has_body(c) && !wgs_head_body(c, &p)) refuse(x, &p);
    else if (length && strtoull(length, NULL, 10) > most_of(o)) too_large(x);
}

/* Handles a whole request. It is called again when the reader has handled x, and when the job of x has changed. */
static enum MHD_Result answer(wgs_exchange *x)
{
    if (x->sent) return MHD_NO; /* the answer was sent: the connection closes */
    if (!x->begun && !x->refused) {
        x->begun = true;
        if (x->body.n >= WGS_LONG_BODY) x->later = x->endpoint->handle;
        else x->endpoint->handle(x);
        if (x->later) return wgs_reader_put(x->server->reader, x) ? MHD_YES : MHD_NO;
    }
    if (x->job && !x->http && !wgs_reply_job(x)) return MHD_YES;
    return send_answer(x);
}

static enum MHD_Result put_field(void *text, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    wgs_buffer_format(text, "%s: %s\r\n", name, value);
    return MHD_YES;
}

/* Sends the answer of a request that is refused before its body has come, and ends what this side says. libmicrohttpd would
 * hold the answer back until the body has ended, or close the connection at once, and the system may discard an answer whose
 * connection closes while a body comes. So what comes is read and dropped for a while. */
static void send_early(wgs_exchange *x)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const char *text = x->response ? x->text : no_memory;
    const time_t now = time(NULL);
    struct tm utc;
    char date[64] = "";
    wgs_buffer b = { 0 };
    if (x->sent || !x->http || !text || !info) return;
    x->sent = true;
    if (!x->response) x->http = 503;
    count_answer(x);
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    wgs_buffer_format(&b, "HTTP/1.1 %d %s\r\nDate: %s\r\n", x->http, MHD_get_reason_phrase_for((unsigned)x->http), date);
    MHD_get_response_headers(x->response ? x->response : x->server->no_memory, put_field, &b);
    wgs_buffer_format(&b, "%sContent-Length: %zu\r\n\r\n%s", x->last ? "" : "Connection: close\r\n", strlen(text), text);
    if (!b.failed && send(info->connect_fd, b.s, b.n, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)b.n)
        x->received += DISCARD; /* the client does not read its answer */
    shutdown(info->connect_fd, SHUT_WR);
    wgs_buffer_free(&b);
    if (!(x->server->options->idle_timeout < LINGER && x->server->options->idle_timeout > 0))
        MHD_set_connection_option(x->connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)LINGER);
}

/* Appends n bytes to the body, within the limits. false: the client has sent so much beyond them that the connection closes. */
static bool keep(wgs_exchange *x, const char *data, size_t n)
{
    wgs_server *s = x->server;
    const size_t most = most_of(s->options), room = x->body.room;
    wgs_problem p;
    x->received += n;
    if (!x->refused && x->received > most) too_large(x);
    if (x->refused) {
        send_early(x);
        return x->received <= most + DISCARD;
    }
    wgs_buffer_put(&x->body, data, n);
    const long long more = (long long)(x->body.room - room), all = atomic_fetch_add(&s->uploads, more) + more;
    if (x->body.failed) wgs_refuse(&p, 503, NULL, "out of memory for a body of %zu bytes; try again", x->received);
    else if (all > (long long)s->options->uploads_mib << 20)
        wgs_refuse(&p, 503, NULL, "bodies that are being read have all of their memory, %ld MiB (--max-uploads); try again",
                   s->options->uploads_mib);
    else return true;
    refuse(x, &p);
    send_early(x);
    return true;
}

/* Sets x->name to the client's x-request-id if that is a word, else to a name of ours. */
static void name_exchange(wgs_exchange *x)
{
    const wgs_value given = wgs_head_value(x->connection, "X-Request-Id");
    size_t n = 0;
    while (n < given.n && given.s[n] > ' ' && given.s[n] < 0x7f) n++;
    if (n && n < sizeof x->name && n == given.n) memcpy(x->name, given.s, n);
    else
        snprintf(x->name, sizeof x->name, "req-%llx-%llx", (unsigned long long)x->server->created,
                 (unsigned long long)atomic_fetch_add(&x->server->serial, 1));
}

/* Called with the first line of a request; returns the state that the library hands to later calls for this request. */
static void *on_line(void *user, const char *uri, struct MHD_Connection *connection)
{
    wgs_exchange *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    x->server = user;
    x->connection = connection;
    x->line = (wgs_first_line){ uri, strlen(uri), strchr(uri, ' ') != NULL };
    wgs_target_read(&x->target, uri);
    if (x->target.text) return x;
    free(x);
    return NULL;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *n, void **state)
{
    wgs_exchange *x = *state;
    (void)user, (void)url;
    if (!x) return MHD_NO;
    wgs_json_begin();
    if (!x->seen) { /* the first call has the header alone */
        name_exchange(x);
        judge(x, method, version);
        if (x->refused && wgs_head_value(connection, "Expect").s)
            return answer(x); /* a client that expects "100 Continue" gets the answer before it sends the body */
        if (x->refused && wgs_head_has_body(connection)) send_early(x);
        return MHD_YES;
    }
    if (*n) {
        const bool goes_on = keep(x, data, *n);
        *n = 0;
        return goes_on ? MHD_YES : MHD_NO;
    }
    return answer(x);
}

static void on_completed(void *user, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode why)
{
    wgs_exchange *x = *state;
    (void)user, (void)connection, (void)why;
    if (!x) return;
    if (x->response) MHD_destroy_response(x->response); /* the server closed before the answer was sent */
    if (x->job) wgs_job_leave(x->job, false);           /* where the answer was sent, no answer of the job runs any more */
    atomic_fetch_sub(&x->server->uploads, (long long)x->body.room);
    wgs_buffer_free(&x->body);
    wgs_target_free(&x->target);
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

/* Opens a socket that listens at host and port; -1: *p says why it cannot. */
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
    s->no_memory = text_response("application/json", no_memory, sizeof no_memory - 1);
    if (!s->no_memory) return wgs_refuse(p, 500, NULL, "out of memory");
    MHD_add_response_header(s->no_memory, "Retry-After", "1");
    if (o->cors) allow_pages(s->no_memory, o->cors, (wgs_value){ NULL, 0 });
    const int fd = listen_at(o, p);
    if (fd < 0) return false;
    s->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
                                 on_request, s, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_EXTERNAL_LOGGER, quiet, NULL,
                                 MHD_OPTION_CONNECTION_LIMIT, (unsigned)o->connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 (size_t)o->header_kib << 12, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(o->idle_timeout + 0.5),
                                 MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
                                 s, MHD_OPTION_URI_LOG_CALLBACK, on_line, s, STRICT, MHD_OPTION_END);
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
    if (s->no_memory) MHD_destroy_response(s->no_memory);
    s->no_memory = NULL;
}
