/* SPDX-License-Identifier: MIT
 * HTTP exchanges (http.h). */
#include "experiments/load/http.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/mem.h"

#if WG_HAVE_CURL

#include <curl/curl.h>

/* The functions of libcurl that are used, by their names without "curl_". */
#define FUNCTIONS(X)                                                                                                           \
    X(CURLcode, global_init, (long))                                                                                           \
    X(CURL *, easy_init, (void))                                                                                               \
    X(CURLcode, easy_setopt, (CURL *, CURLoption, ...))                                                                        \
    X(CURLcode, easy_getinfo, (CURL *, CURLINFO, ...))                                                                         \
    X(const char *, easy_strerror, (CURLcode))                                                                                 \
    X(void, easy_cleanup, (CURL *))                                                                                            \
    X(struct curl_slist *, slist_append, (struct curl_slist *, const char *))                                                  \
    X(void, slist_free_all, (struct curl_slist *))                                                                             \
    X(CURLM *, multi_init, (void))                                                                                             \
    X(CURLMcode, multi_setopt, (CURLM *, CURLMoption, ...))                                                                    \
    X(CURLMcode, multi_add_handle, (CURLM *, CURL *))                                                                          \
    X(CURLMcode, multi_remove_handle, (CURLM *, CURL *))                                                                       \
    X(CURLMcode, multi_perform, (CURLM *, int *))                                                                              \
    X(CURLMcode, multi_poll, (CURLM *, struct curl_waitfd *, unsigned, int, int *))                                            \
    X(CURLMsg *, multi_info_read, (CURLM *, int *))                                                                            \
    X(CURLMcode, multi_cleanup, (CURLM *))

typedef struct library {
#define X(result, name, parameters) result(*name) parameters;
    FUNCTIONS(X)
#undef X
} library;

typedef struct slot {
    const library *curl;
    CURL *easy;
    bool busy, given_up;
    wg_http_request request;    /* its body is owned */
    struct curl_slist *headers; /* of the set and of the request */
    char error[CURL_ERROR_SIZE];
} slot;

struct wg_http {
    library curl;
    CURLM *multi;
    slot *slot;
    wg_http_options o; /* its key is not kept */
    int slots, ended;  /* ended: messages left by the last multi_info_read */
    char key[1024];    /* the header with the key; "": none */
};

static wg_status load_library(library *l, wg_error *err)
{
    static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so" };
    void *object = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !object; i++) object = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!object) return wg_fail(err, WG_EUNSUPPORTED, "libcurl is not there (%s); install libcurl4", dlerror());
#define X(result, name, parameters)                                                                                            \
    if (!(*(void **)&l->name = dlsym(object, "curl_" #name)))                                                                  \
        return wg_fail(err, WG_EUNSUPPORTED, "libcurl has no curl_%s; install a newer libcurl4", #name);
    FUNCTIONS(X)
#undef X
    return l->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? WG_OK : wg_fail(err, WG_EUNSUPPORTED, "libcurl does not start");
}

static size_t take_body(char *bytes, size_t size, size_t n, void *user)
{
    slot *s = user;
    long status = 0;
    if (!s->request.on_body) return size * n;
    s->curl->easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
    s->given_up = s->given_up || !s->request.on_body(s->request.user, (int)status, bytes, size * n);
    return s->given_up ? 0 : size * n;
}

static size_t take_head(char *line, size_t size, size_t n, void *user)
{
    slot *s = user;
    size_t k = size * n;
    while (k > 0 && (line[k - 1] == '\n' || line[k - 1] == '\r')) k--;
    if (s->request.on_head) s->request.on_head(s->request.user, line, k);
    return size * n;
}

static wg_status open_slots(wg_http *h, wg_error *err)
{
    for (int i = 0; i < h->slots; i++) {
        slot *s = &h->slot[i];
        s->curl = &h->curl;
        if (!(s->easy = h->curl.easy_init())) return wg_nomem(err, sizeof *s, "an HTTP exchange");
        h->curl.easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, take_body);
        h->curl.easy_setopt(s->easy, CURLOPT_WRITEDATA, s);
        h->curl.easy_setopt(s->easy, CURLOPT_HEADERFUNCTION, take_head);
        h->curl.easy_setopt(s->easy, CURLOPT_HEADERDATA, s);
        h->curl.easy_setopt(s->easy, CURLOPT_PRIVATE, s);
        h->curl.easy_setopt(s->easy, CURLOPT_ERRORBUFFER, s->error);
        h->curl.easy_setopt(s->easy, CURLOPT_NOSIGNAL, 1L);
        if (!h->o.proxies) h->curl.easy_setopt(s->easy, CURLOPT_NOPROXY, "*");
        h->curl.easy_setopt(s->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        h->curl.easy_setopt(s->easy, CURLOPT_FORBID_REUSE, h->o.reuse ? 0L : 1L);
        h->curl.easy_setopt(s->easy, CURLOPT_FRESH_CONNECT, h->o.reuse ? 0L : 1L);
    }
    return WG_OK;
}

static wg_status open_set(wg_http *h, wg_error *err)
{
    WG_TRY(load_library(&h->curl, err));
    if (h->o.key) snprintf(h->key, sizeof h->key, "Authorization: Bearer %s", h->o.key);
    if (!(h->multi = h->curl.multi_init()) || !(h->slot = wg_calloc((size_t)h->slots, sizeof *h->slot)))
        return wg_nomem(err, (size_t)h->slots * sizeof *h->slot, "HTTP exchanges");
    h->curl.multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)h->slots + 4);
    return open_slots(h, err);
}

wg_status wg_http_open(wg_http **out, const wg_http_options *o, wg_error *err)
{
    wg_http *h = wg_calloc(1, sizeof *h);
    if (!h) return wg_nomem(err, sizeof *h, "HTTP exchanges");
    h->slots = o->slots;
    h->o = *o;
    const wg_status s = open_set(h, err);
    h->o.key = NULL;
    *out = s ? NULL : h;
    if (s) wg_http_close(h);
    return s;
}

void wg_http_close(wg_http *h)
{
    if (!h) return;
    for (int i = 0; h->slot && i < h->slots; i++) {
        wg_http_abandon(h, i);
        if (h->slot[i].easy) h->curl.easy_cleanup(h->slot[i].easy);
    }
    if (h->multi) h->curl.multi_cleanup(h->multi);
    wg_free(h->slot);
    wg_free(h);
}

static void set_free(wg_http *h, slot *s)
{
    h->curl.multi_remove_handle(h->multi, s->easy);
    h->curl.slist_free_all(s->headers);
    s->headers = NULL;
    wg_free((char *)(uintptr_t)s->request.body);
    s->request.body = NULL;
    s->busy = false;
}

void wg_http_abandon(wg_http *h, int slot)
{
    if (h->slot[slot].busy) set_free(h, &h->slot[slot]);
}

/* Expect: without it libcurl asks before it sends a long body, which costs a round trip. */
static wg_status put_headers(wg_http *h, slot *s, const wg_http_request *r, wg_error *err)
{
    const char *const fixed[] = { "Content-Type: application/json", "Expect:", "User-Agent: wager/" WG_VERSION, h->key };
    for (int i = r->body ? 0 : 1; i < 4 + WG_HTTP_HEADERS; i++) {
        const char *line = i < 4 ? fixed[i] : r->header[i - 4];
        if (!line) break;
        struct curl_slist *more = *line ? h->curl.slist_append(s->headers, line) : s->headers;
        if (*line && !more) return wg_nomem(err, strlen(line), "headers");
        s->headers = more;
    }
    h->curl.easy_setopt(s->easy, CURLOPT_HTTPHEADER, s->headers);
    return WG_OK;
}

static wg_status put_request(wg_http *h, slot *s, const wg_http_request *r, wg_error *err)
{
    WG_TRY(put_headers(h, s, r, err));
    if (r->body && !(s->request.body = wg_strndup(r->body, r->n))) return wg_nomem(err, r->n, "a request");
    h->curl.easy_setopt(s->easy, CURLOPT_URL, r->url);
    h->curl.easy_setopt(s->easy, CURLOPT_TIMEOUT_MS, r->seconds > 0 ? (long)(r->seconds * 1e3) + 1 : 0L);
    h->curl.easy_setopt(s->easy, CURLOPT_CONNECTTIMEOUT, (long)(r->stall > 0 ? r->stall + 1 : 0));
    h->curl.easy_setopt(s->easy, CURLOPT_LOW_SPEED_LIMIT, r->stall > 0 ? 1L : 0L);
    h->curl.easy_setopt(s->easy, CURLOPT_LOW_SPEED_TIME, (long)(r->stall > 0 ? r->stall + 1 : 0));
    if (r->body) {
        h->curl.easy_setopt(s->easy, CURLOPT_POST, 1L);
        h->curl.easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->n);
        h->curl.easy_setopt(s->easy, CURLOPT_POSTFIELDS, s->request.body);
    } else h->curl.easy_setopt(s->easy, CURLOPT_HTTPGET, 1L);
    return h->curl.multi_add_handle(h->multi, s->easy) == CURLM_OK ? WG_OK : wg_nomem(err, sizeof *s, "an HTTP exchange");
}

wg_status wg_http_start(wg_http *h, int at, const wg_http_request *r, wg_error *err)
{
    slot *s = &h->slot[at];
    wg_assert(!s->busy);
    s->request = *r;
    s->request.body = NULL;
    s->given_up = false;
    s->error[0] = '\0';
    const wg_status failed = put_request(h, s, r, err);
    if (failed) {
        set_free(h, s);
        return failed;
    }
    s->busy = true;
    return WG_OK;
}

void wg_http_wait(wg_http *h, double seconds)
{
    int running;
    h->curl.multi_perform(h->multi, &running);
    if (seconds <= 0) return;
    /* ceil: rounded up, so that a rest below a millisecond does not spin */
    h->curl.multi_poll(h->multi, NULL, 0, (int)(seconds * 1e3) + 1, NULL);
    h->curl.multi_perform(h->multi, &running);
}

static wg_http_result result_of(CURLcode code, const slot *s, int status)
{
    if (s->given_up) return WG_HTTP_GIVEN_UP;
    if (code == CURLE_OK) return WG_HTTP_COMPLETE;
    if (code == CURLE_OPERATION_TIMEDOUT) return WG_HTTP_TIMEOUT;
    return status ? WG_HTTP_BROKEN : WG_HTTP_UNREACHABLE;
}

bool wg_http_ended(wg_http *h, wg_http_end *end)
{
    for (CURLMsg *m; (m = h->curl.multi_info_read(h->multi, &h->ended));) {
        if (m->msg != CURLMSG_DONE) continue;
        const CURLcode code = m->data.result;
        char *private = NULL;
        long status = 0, connections = 0;
        h->curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private);
        h->curl.easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        h->curl.easy_getinfo(m->easy_handle, CURLINFO_NUM_CONNECTS, &connections);
        slot *s = (slot *)(void *)private;
        *end = (wg_http_end){ .slot = (int)(s - h->slot),
                              .status = (int)status,
                              .result = result_of(code, s, (int)status),
                              .new_connection = connections > 0 };
        if (code != CURLE_OK)
            snprintf(end->error, sizeof end->error, "%.150s", *s->error ? s->error : h->curl.easy_strerror(code));
        set_free(h, s);
        return true;
    }
    return false;
}

/* ---- a whole answer ---------------------------------------------------------------------------------------------- */

typedef struct answer {
    char *text;
    size_t n, most;
} answer;

static bool take_answer(void *user, int status, const char *bytes, size_t n)
{
    answer *a = user;
    (void)status;
    if (n > a->most - a->n) return false;
    char *grown = wg_realloc(a->text, a->n + n + 1, 1);
    if (!grown) return false;
    memcpy(grown + a->n, bytes, n);
    a->text = grown;
    a->n += n;
    grown[a->n] = '\0';
    return true;
}

wg_status wg_http_get(wg_http *h, const char *url, double seconds, size_t most, char **text, size_t *n, int *status,
                      wg_error *err)
{
    answer a = { .text = wg_calloc(1, 1), .most = most };
    wg_http_end end = { .slot = -1 };
    const wg_http_request r = { .url = url, .seconds = seconds, .on_body = take_answer, .user = &a };
    wg_status s = a.text ? wg_http_start(h, 0, &r, err) : wg_nomem(err, 1, "an answer");
    for (const double until = wg_clock_now() + seconds + 1; !s && end.slot != 0;) {
        wg_http_wait(h, 0.02);
        if (!wg_http_ended(h, &end) && wg_clock_now() > until) break;
    }
    if (!s && (end.slot != 0 || end.result != WG_HTTP_COMPLETE))
        s = wg_fail(err, WG_EIO, "%s: no answer: %s", url, end.slot == 0 ? end.error : "too late");
    if (s) wg_free(a.text), a.text = NULL;
    *text = a.text;
    *n = a.n;
    *status = end.status;
    return s;
}

#else

wg_status wg_http_open(wg_http **out, const wg_http_options *o, wg_error *err)
{
    (void)out, (void)o;
    return wg_fail(err, WG_EUNSUPPORTED,
                   "this program was built without libcurl: install libcurl4-openssl-dev, configure and build it again");
}

/* Unreachable without a set. */
void wg_http_close(wg_http *h) { wg_assert(!h); }
wg_status wg_http_start(wg_http *h, int slot, const wg_http_request *r, wg_error *err)
{
    (void)slot, (void)r, (void)err;
    wg_assert(h && false);
    return WG_EUNSUPPORTED;
}
void wg_http_abandon(wg_http *h, int slot) { wg_assert(h && slot < 0); }
void wg_http_wait(wg_http *h, double seconds) { wg_assert(h && seconds < 0); }
bool wg_http_ended(wg_http *h, wg_http_end *end) { return (void)end, wg_assert(h && false), false; }
wg_status wg_http_get(wg_http *h, const char *url, double seconds, size_t most, char **text, size_t *n, int *status,
                      wg_error *err)
{
    (void)url, (void)seconds, (void)most, (void)text, (void)n, (void)status, (void)err;
    wg_assert(h && false);
    return WG_EUNSUPPORTED;
}

#endif
