/* SPDX-License-Identifier: MIT
 * Fetching a file (fetch.h). One thread runs up to eight exchanges, each of which fetches one piece of the file. The first
 * exchange alone finds the final address and whether the server supports ranges; the others use that address. */
#include "experiments/pull/fetch.h"

#include <errno.h>
#include <sha1.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/mem.h"
#include "experiments/load/http.h"
#include "experiments/pull/part_file.h"

enum { URL_MAX = 4096, HOPS_MAX = 8, ATTEMPTS_MAX = 6 };
static const double STALL = 30, WAIT_MAX = 120; /* seconds without a byte; the longest wait that a server may ask for */

typedef struct exchange {
    struct transfer *of;
    int piece;       /* -1: idle */
    int64_t at, end; /* in the file: next byte, end of the piece */
    char url[URL_MAX], location[URL_MAX];
    int hops, status;
    int64_t from, total; /* values of Content-Range; -1: none */
    double retry_after;  /* seconds; -1: none */
    double begin;        /* earliest time to begin (wg_clock_now) */
    bool begun;          /* bytes of this answer have arrived */
    bool misfit;         /* the answer has another range or size than requested */
    wg_error err;        /* error of writing; code 0: none */
} exchange;

typedef struct transfer {
    const wg_fetch *f;
    wg_http *http;
    wg_part_file part;
    char resolved[URL_MAX]; /* address after redirects; "": unknown */
    bool whole;             /* the server has no ranges: one exchange fetches all */
    bool done;              /* such an exchange, or a text, is complete */
    int attempts;           /* failures since bytes last arrived */
    int64_t received;       /* bytes received in this start */
    double began, shown;
    char **text; /* (text_n) the answer of wg_fetch_text, at most text_most bytes; NULL: a file */
    size_t text_n, text_most;
    exchange x[WG_FETCH_CONNECTIONS];
} transfer;

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* The length of "scheme://host:port"; 0: another scheme. */
static size_t origin_of(const char *url)
{
    const size_t scheme = !strncasecmp(url, "http://", 7) ? 7 : !strncasecmp(url, "https://", 8) ? 8 : 0;
    const size_t host = scheme ? strcspn(url + scheme, "/?#") : 0;
    return host && !memchr(url + scheme, '@', host) ? scheme + host : 0;
}

static bool same_origin(const char *a, const char *b)
{
    const size_t n = origin_of(a);
    return n && n == origin_of(b) && strncasecmp(a, b, n) == 0;
}

/* Resolves a Location header relative to `base`; false: it is not followed. */
static bool follow(const char *base, const char *location, char out[URL_MAX])
{
    const size_t origin = origin_of(base);
    int n;
    if (origin_of(location)) {
        if (!strncasecmp(base, "https:", 6) && strncasecmp(location, "https:", 6) != 0) return false;
        n = snprintf(out, URL_MAX, "%s", location);
    } else if (strstr(location, "://") || !strncmp(location, "//", 2)) return false;
    else if (*location == '/') n = snprintf(out, URL_MAX, "%.*s%s", (int)origin, base, location);
    else {
        const size_t path = strcspn(base, "?#");
        size_t folder = path;
        while (folder > origin && base[folder - 1] != '/') folder--;
        n = snprintf(out, URL_MAX, "%.*s%s%s", (int)folder, base, folder > origin ? "" : "/", location);
    }
    return n > 0 && n < URL_MAX;
}

/* ---- arriving bytes ------------------------------------------------------------------------------------------------ */

static bool header_is(const char *line, size_t n, const char *name, const char **value)
{
    const size_t k = strlen(name);
    if (n <= k || strncasecmp(line, name, k) != 0 || line[k] != ':') return false;
    *value = line + k + 1;
    while (**value == ' ' || **value == '\t') ++*value;
    return true;
}

static void on_head(void *user, const char *line, size_t n)
{
    exchange *x = user;
    const char *v;
    char text[URL_MAX];
    if (n >= sizeof text) return;
    memcpy(text, line, n);
    text[n] = '\0';
    if (!strncmp(text, "HTTP/", 5)) {
        const char *space = strchr(text, ' ');
        x->status = space ? atoi(space) : 0;
        x->from = x->total = -1;
        x->retry_after = -1;
        x->location[0] = '\0';
    } else if (header_is(text, n, "location", &v)) snprintf(x->location, sizeof x->location, "%s", v);
    else if (header_is(text, n, "content-range", &v)) {
        long long from, to, total;
        if (sscanf(v, "bytes %lld-%lld/%lld", &from, &to, &total) == 3) x->from = from, x->total = total;
    } else if (header_is(text, n, "content-length", &v) && x->status == 200) x->total = atoll(v);
    else if (header_is(text, n, "retry-after", &v)) x->retry_after = atof(v);
}

static bool take_text(transfer *t, const char *bytes, size_t n, exchange *x)
{
    if (n > t->text_most - t->text_n)
        return wg_fail(&x->err, WG_EIO, "%s: the answer is longer than %zu bytes", t->f->url, t->text_most), false;
    char *more = wg_realloc(*t->text, t->text_n + n + 1, 1);
    if (!more) return wg_nomem(&x->err, n, "an answer"), false;
    *t->text = more;
    memcpy(more + t->text_n, bytes, n);
    t->text_n += n;
    more[t->text_n] = '\0';
    return true;
}

static bool on_body(void *user, int status, const char *bytes, size_t n)
{
    exchange *x = user;
    transfer *t = x->of;
    if (status != 200 && status != 206) return true; /* the page of an error or a redirect */
    if (t->text) return take_text(t, bytes, n, x);
    if (status == 200 && !t->whole) { /* the range was ignored; the main loop restarts without ranges */
        x->misfit = true;
        return false;
    }
    if (t->part.bytes < 0 && x->total >= 0 && wg_part_size(&t->part, x->total, "", &x->err)) return false;
    if (x->end < 0 && t->part.bytes >= 0) x->end = t->whole ? t->part.bytes : wg_part_end(&t->part, x->piece);
    const bool other = !x->begun && status == 206 && (x->from != x->at || x->total != t->part.bytes || x->total < 0);
    x->begun = true;
    if (other || (x->end >= 0 && (int64_t)n > x->end - x->at)) {
        x->misfit = true;
        return false;
    }
    if (wg_part_write(&t->part, x->at, bytes, n, &x->err)) return false;
    x->at += (int64_t)n;
    t->received += (int64_t)n;
    t->attempts = 0;
    return true;
}

/* ---- one exchange ------------------------------------------------------------------------------------------------ */

static wg_status start(transfer *t, int slot, wg_error *err)
{
    exchange *x = &t->x[slot];
    char range[80], key[1100];
    wg_http_request r = { .url = x->url, .stall = STALL, .on_head = on_head, .on_body = on_body, .user = x };
    int n = 0;
    if (!t->text && !t->whole) {
        snprintf(range, sizeof range, "Range: bytes=%lld-%lld", (long long)x->at,
                 (long long)(x->end < 0 ? WG_PART_BYTES : x->end) - 1);
        r.header[n++] = range;
    }
    if (t->f->token && same_origin(x->url, t->f->url)) {
        snprintf(key, sizeof key, "Authorization: Bearer %s", t->f->token);
        r.header[n++] = key;
    }
    x->status = 0;
    x->begun = x->misfit = false;
    x->err.code = WG_OK;
    return wg_http_start(t->http, slot, &r, err);
}

/* Assigns the next piece to an exchange; false: none is left. */
static bool next_piece(transfer *t, int slot)
{
    exchange *x = &t->x[slot];
    const char *from = *t->resolved ? t->resolved : t->f->url;
    int piece = 0;
    x->piece = -1;
    if (t->text || t->whole || t->part.bytes < 0) {
        if (slot > 0 || t->done) return false;
        x->at = 0;
        x->end = t->whole || t->text ? t->part.bytes : -1;
    } else {
        for (; piece < t->part.pieces; piece++) {
            bool taken = t->part.whole[piece];
            for (int i = 0; i < WG_FETCH_CONNECTIONS && !taken; i++) taken = t->x[i].piece == piece;
            if (!taken) break;
        }
        if (piece == t->part.pieces) return false;
        x->at = wg_part_begin(piece);
        x->end = wg_part_end(&t->part, piece);
    }
    x->piece = piece;
    x->hops = 0;
    x->begin = 0;
    snprintf(x->url, sizeof x->url, "%s", from);
    return true;
}

static wg_status refused(const transfer *t, const exchange *x, wg_error *err)
{
    const char *url = t->f->url;
    if (x->status == 404) return wg_fail(err, WG_ENOENT, "%s: there is no such file or repository (404)", url);
    if (x->status == 401 || x->status == 403)
        return wg_fail(err, WG_EINVAL, "%s: %s (%d)", url,
                       t->f->token
                           ? "the token in HF_TOKEN has no access; accept the model's terms on its page, or use another token"
                           : "access is refused; set HF_TOKEN to a token of an account that has access",
                       x->status);
    return wg_fail(err, WG_EIO, "%s: the server answers %d", url, x->status);
}

/* Schedules a retry after a temporary failure, with a growing wait, or the server's. */
static wg_status again(transfer *t, exchange *x, const char *why, wg_error *err)
{
    if (++t->attempts > ATTEMPTS_MAX)
        return wg_fail(err, WG_EIO, "%s: %s, %d times in a row; start again later: what has arrived is kept", t->f->url, why,
                       ATTEMPTS_MAX + 1);
    double wait = 0.25 * (double)(1 << t->attempts);
    if (x->retry_after > WAIT_MAX)
        return wg_fail(err, WG_EIO, "%s: the server asks to wait %.0f seconds; start again then: what has arrived is kept",
                       t->f->url, x->retry_after);
    if (x->retry_after >= 0) wait = x->retry_after;
    if (t->f->progress && wait >= 2) fprintf(stderr, "\r%s: %s; trying again in %.0f s\n", t->f->name, why, wait);
    x->begin = wg_clock_now() + wait;
    x->hops = 0;
    t->resolved[0] = '\0'; /* an address behind a redirect may have expired */
    snprintf(x->url, sizeof x->url, "%s", t->f->url);
    if (t->whole) x->at = 0;
    t->text_n = 0;
    return WG_OK;
}

static wg_status redirected(transfer *t, exchange *x, wg_error *err)
{
    char to[URL_MAX];
    if (++x->hops > HOPS_MAX) return wg_fail(err, WG_EIO, "%s: more than %d redirects", t->f->url, HOPS_MAX);
    if (!follow(x->url, x->location, to))
        return wg_fail(err, WG_EIO, "%s: redirected to '%.200s', which is not followed; expected another https address",
                       t->f->url, x->location);
    memcpy(x->url, to, sizeof to);
    return WG_OK;
}

/* Handles the end of an answer with bytes of the file. */
static wg_status arrived(transfer *t, exchange *x, wg_error *err)
{
    if (x->status == 200) t->whole = true; /* an empty file */
    if (t->whole && t->part.bytes < 0) {   /* its length is the bytes that arrived */
        const int64_t n = x->at;
        WG_TRY(wg_part_size(&t->part, n, "", err));
        x->end = n;
    }
    if (x->at < x->end || x->end < 0) return again(t, x, "the answer ended early", err);
    snprintf(t->resolved, sizeof t->resolved, "%s", x->url);
    if (t->whole) t->part.arrived = t->part.bytes, t->done = true;
    else WG_TRY(wg_part_record(&t->part, x->piece, err));
    x->piece = -1;
    return WG_OK;
}

static wg_status ended(transfer *t, const wg_http_end *end, wg_error *err)
{
    exchange *x = &t->x[end->slot];
    if (x->err.code) {
        if (err) *err = x->err;
        return x->err.code;
    }
    if (x->misfit && x->status == 200 && !t->whole) { /* no ranges: fetch all in one exchange */
        for (int i = 0; i < WG_FETCH_CONNECTIONS; i++) wg_http_abandon(t->http, i), t->x[i].piece = -1;
        t->whole = true;
        return WG_OK;
    }
    if (x->misfit)
        return wg_fail(err, WG_EFORMAT,
                       "%s: the server sends other bytes than were asked for: %lld bytes in all, expected %lld", t->f->url,
                       (long long)x->total, (long long)t->part.bytes);
    if (end->result != WG_HTTP_COMPLETE)
        return again(t, x, end->result == WG_HTTP_UNREACHABLE ? "no connection" : "the connection was lost", err);
    if (x->status == 301 || x->status == 302 || x->status == 303 || x->status == 307 || x->status == 308)
        return redirected(t, x, err);
    if (t->text && x->status == 200) {
        x->piece = -1;
        t->done = true;
        return WG_OK;
    }
    if (x->status == 200 || x->status == 206) return arrived(t, x, err);
    if (x->status == 429) return again(t, x, "too many requests (429)", err);
    if (x->status >= 500) return again(t, x, "the server has an error", err);
    if (strcmp(x->url, t->f->url) != 0) return again(t, x, "an address behind a redirect has expired", err);
    return refused(t, x, err);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static void show(transfer *t, bool last)
{
    const double now = wg_clock_now(), seconds = now - t->began;
    if (!t->f->progress || (!last && now < t->shown + 0.2)) return;
    int64_t have = t->part.arrived;
    for (int i = 0; i < WG_FETCH_CONNECTIONS; i++)
        if (t->x[i].piece >= 0) have += t->x[i].at - wg_part_begin(t->x[i].piece);
    const double rate = seconds > 0.5 ? (double)t->received / seconds : 0;
    t->shown = now;
    if (t->part.bytes <= 0) fprintf(stderr, "\r\033[K%s  %.1f MB  %.1f MB/s", t->f->name, (double)have / 1e6, rate / 1e6);
    else
        fprintf(stderr, "\r\033[K%s  %.1f of %.1f MB  %3.0f %%  %.1f MB/s%s", t->f->name, (double)have / 1e6,
                (double)t->part.bytes / 1e6, 100.0 * (double)have / (double)t->part.bytes, rate / 1e6, "");
    if (rate > 0 && !last && t->part.bytes > 0) fprintf(stderr, "  %.0f s left", (double)(t->part.bytes - have) / rate);
    if (last) fputc('\n', stderr);
}

/* Whether an exchange may begin: beside the first one only after it has shown that the server supports ranges. */
static bool may_begin(const transfer *t, int slot)
{
    return slot == 0 || (*t->resolved && !t->whole && !t->text && slot < t->f->connections);
}

static wg_status run(transfer *t, wg_error *err)
{
    if (!origin_of(t->f->url))
        return wg_fail(err, WG_EINVAL, "%.200s: expected an address that begins with http:// or https://", t->f->url);
    bool busy[WG_FETCH_CONNECTIONS] = { false };
    for (int i = 0; i < WG_FETCH_CONNECTIONS; i++) t->x[i] = (exchange){ .of = t, .piece = -1 };
    for (;;) {
        int active = 0;
        double soonest = 1;
        for (int i = 0; i < WG_FETCH_CONNECTIONS; i++) {
            exchange *x = &t->x[i];
            if (!busy[i] && x->piece < 0 && (!may_begin(t, i) || !next_piece(t, i))) continue;
            active++;
            const double wait = x->begin - wg_clock_now();
            if (busy[i]) continue;
            if (wait > 0) soonest = wait < soonest ? wait : soonest;
            else {
                WG_TRY(start(t, i, err));
                busy[i] = true;
            }
        }
        if (!active) return WG_OK;
        wg_http_wait(t->http, soonest < 0.2 ? soonest : 0.2);
        for (wg_http_end end; wg_http_ended(t->http, &end);) {
            busy[end.slot] = false;
            WG_TRY(ended(t, &end, err));
            for (int i = 0; i < WG_FETCH_CONNECTIONS; i++) busy[i] = busy[i] && t->x[i].piece >= 0;
        }
        show(t, false);
    }
}

/* The digest of a file as a git object, which hubs give for small files: SHA-1 over "blob SIZE", NUL and the bytes, in 40
 * digits. */
static wg_status git_digest(const char *path, char hex[WG_SHA256_HEX], wg_error *err)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) != 0) {
        if (f) fclose(f);
        return wg_fail(err, WG_EIO, "%s: cannot read: %s", path, strerror(errno));
    }
    char head[40];
    unsigned char bytes[16384];
    SHA1_CTX c;
    SHA1Init(&c);
    SHA1Update(&c, (const uint8_t *)head, (size_t)snprintf(head, sizeof head, "blob %lld", (long long)st.st_size) + 1);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, f)) > 0;) SHA1Update(&c, bytes, n);
    const bool read = !ferror(f);
    fclose(f);
    SHA1End(&c, hex);
    return read ? WG_OK : wg_fail(err, WG_EIO, "%s: cannot read: %s", path, strerror(errno));
}

static wg_status check(const wg_fetch *f, const wg_part_file *p, wg_error *err)
{
    char hex[WG_SHA256_HEX];
    const char *want = f->sha256 ? f->sha256 : f->git;
    if (!want) return WG_OK;
    WG_TRY(f->sha256 ? wg_sha256_file(p->part, hex, err) : git_digest(p->part, hex, err));
    if (strcasecmp(hex, want) == 0) return WG_OK;
    return wg_fail(err, WG_EFORMAT, "%s: what arrived has the digest %.12s..., expected %.12s...; it was removed, start again",
                   f->url, hex, want);
}

wg_status wg_fetch_file(const wg_fetch *f, wg_error *err)
{
    transfer *t = wg_calloc(1, sizeof *t);
    if (!t) return wg_nomem(err, sizeof *t, "a transfer");
    *t = (transfer){ .f = f, .began = wg_clock_now() };
    wg_status s = wg_part_open(&t->part, f->to, f->bytes, f->sha256 ? f->sha256 : f->git ? f->git : "", err);
    if (s) return wg_free(t), s;
    if (f->bytes != 0)
        s = wg_http_open(&t->http, &(wg_http_options){ .slots = WG_FETCH_CONNECTIONS, .reuse = true, .proxies = true }, err);
    if (!s && f->bytes != 0) s = run(t, err);
    if (f->progress && (t->received || s)) show(t, true);
    if (t->http) wg_http_close(t->http);
    if (!s) s = check(f, &t->part, err);
    if (s == WG_EFORMAT) wg_part_drop(&t->part);
    else if (s) wg_part_close(&t->part);
    else s = wg_part_commit(&t->part, err);
    wg_free(t);
    return s;
}

wg_status wg_fetch_text(const char *url, const char *token, size_t most, char **text, size_t *n, wg_error *err)
{
    const wg_fetch f = { .url = url, .token = token, .bytes = -1, .name = "", .connections = 1 };
    transfer *t = wg_calloc(1, sizeof *t);
    *text = wg_calloc(1, 1);
    if (!t || !*text) {
        wg_free(t), wg_free(*text);
        return wg_nomem(err, sizeof *t, "a transfer");
    }
    *t = (transfer){
        .f = &f, .began = wg_clock_now(), .text = text, .text_most = most, .part = { .fd = -1, .log = -1, .bytes = -1 }
    };
    wg_status s =
        wg_http_open(&t->http, &(wg_http_options){ .slots = WG_FETCH_CONNECTIONS, .reuse = true, .proxies = true }, err);
    if (!s) s = run(t, err);
    if (t->http) wg_http_close(t->http);
    *n = t->text_n;
    wg_free(t);
    if (s) wg_free(*text), *text = NULL;
    return s;
}
