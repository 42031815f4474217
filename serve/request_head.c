/* SPDX-License-Identifier: MIT
 * Headers of requests. libmicrohttpd before 0.9.77 drops bytes behind a NUL, joins a folded line to the name of its field,
 * takes spaces before a colon as part of the name, and uses the first of two lengths. So the fields are compared with the
 * bytes that they were read from: the first line and the fields lie one behind the other in the library's buffer, with a NUL
 * for each separator that it found. Later versions refuse such headers by MHD_OPTION_CLIENT_DISCIPLINE_LVL. */
#include "serve/request_head.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- the target */

void wgs_target_read(wgs_target *t, const char *uri)
{
    static const char *const schemes[] = { "http://", "https://" };
    const size_t bytes = strcspn(uri, "?");
    *t = (wgs_target){ .text = calloc(bytes + 2, 1) };
    if (!t->text) return;
    memcpy(t->text, uri, bytes);
    for (int i = 0; i < 2; i++) {
        const size_t n = strlen(schemes[i]);
        if (strncasecmp(t->text, schemes[i], n) != 0) continue;
        t->host = t->text + n;
        t->host_bytes = strcspn(t->host, "/");
        t->path = t->host + t->host_bytes;
        if (!*t->path) *t->path = '/';
    }
    if (!t->host && (t->text[0] == '/' || !strcmp(t->text, "*"))) t->path = t->text;
}

void wgs_target_free(wgs_target *t)
{
    free(t->text);
    *t = (wgs_target){ 0 };
}

static int digit(char c)
{
    const char low = (char)(c | 0x20);
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/* The byte of the escape at s, such as "%2F"; -1: no escape stands there. */
static int escaped(const char *s)
{
    if (s[0] != '%' || digit(s[1]) < 0 || digit(s[2]) < 0) return -1;
    return digit(s[1]) * 16 + digit(s[2]);
}

char *wgs_target_behind(char *path, const char *prefix)
{
    for (; *prefix; prefix++) {
        const int byte = escaped(path);
        if (byte == '/' || (byte >= 0 ? byte : (unsigned char)*path) != (unsigned char)*prefix) return NULL;
        path += byte >= 0 ? 3 : 1;
    }
    return path;
}

bool wgs_target_decode(char *s)
{
    char *to = s;
    for (; *s; s++) {
        const int byte = escaped(s);
        if (*s == '%' && byte <= 0) return false;
        *to++ = byte > 0 ? (char)byte : *s;
        if (byte > 0) s += 2;
    }
    *to = 0;
    return true;
}

/* ---- the head */

/* Fields that a request may have once only, because two servers could use different ones of two. */
enum { HOST, LENGTH, CODING, TYPE, PACKING, KEY, ONCE };
static const char *const once[ONCE] = { [HOST] = "Host",         [LENGTH] = "Content-Length",    [CODING] = "Transfer-Encoding",
                                        [TYPE] = "Content-Type", [PACKING] = "Content-Encoding", [KEY] = "Authorization" };

/* State of the walk over the fields. */
typedef struct fields {
    const char *at, *end;
    bool good;
    int count[ONCE];
    bool chunked;
    const char *wrong; /* the name of the first bad field, for the message */
} fields;

/* Whether n bytes are a field name (RFC 9110, token). */
static bool is_token(const char *s, size_t n)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < n; i++) {
        const char c = s[i], low = (char)(c | 0x20);
        if (!(low >= 'a' && low <= 'z') && !(c >= '0' && c <= '9') && (!c || !strchr(others, c))) return false;
    }
    return n > 0;
}

/* Whether n bytes are a field value: no control characters except tabs. */
static bool is_value(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)s[i] < 0x20 && s[i] != '\t') || s[i] == 0x7f) return false;
    return true;
}

static bool is_name(const char *name, size_t n, const char *wanted)
{
    return n == strlen(wanted) && !strncasecmp(name, wanted, n);
}

#if MHD_VERSION < 0x00097701
/* Whether the field begins where the previous one ended, and ends with CR LF. */
static bool is_next(fields *f, const char *name, size_t n, const char *value, size_t m)
{
    const char *at = f->at;
    if (at != name || value < name + n + 1 || value + m + 2 > f->end) return false;
    for (at += n + 1; at < value; at++)
        if (*at != ' ' && *at != '\t') return false;
    f->at = value + m + 2;
    return !value[m] && !value[m + 1];
}
#else
static bool is_next(fields *f, const char *name, size_t n, const char *value, size_t m)
{
    (void)f, (void)name, (void)n, (void)value, (void)m;
    return true;
}
#endif

static enum MHD_Result see_field(void *user, enum MHD_ValueKind kind, const char *name, size_t n, const char *value, size_t m)
{
    fields *f = user;
    (void)kind;
    if (!value) value = name + n + 1, m = 0;
    if (!is_token(name, n) || !is_value(value, m) || !is_next(f, name, n, value, m)) {
        if (f->good) f->wrong = name;
        f->good = false;
        return MHD_NO;
    }
    for (int i = 0; i < ONCE; i++) f->count[i] += is_name(name, n, once[i]);
    if (is_name(name, n, once[CODING])) f->chunked = is_name(value, m, "chunked");
    return MHD_YES;
}

#if MHD_VERSION < 0x00097701
/* Whether the first line is METHOD SP URI SP VERSION CR LF, and the header ends behind the last field. */
static bool is_whole(const fields *f, const char *method, const char *version, const wgs_first_line *line)
{
    const bool first = !line->spaces && line->uri == method + strlen(method) + 1 && version == line->uri + line->bytes + 1;
    return first && f->at + 2 == f->end && !f->at[0] && !f->at[1];
}
#else
static bool is_whole(const fields *f, const char *method, const char *version, const wgs_first_line *line)
{
    (void)f, (void)method, (void)version;
    return !line->spaces;
}
#endif

/* Whether each field of the enumeration above occurs at most once. */
static bool framed_once(const fields *f, bool old, wgs_problem *p)
{
    const int lengths = f->count[LENGTH], codings = f->count[CODING];
    if (!f->count[HOST] && !old) return wgs_refuse(p, 400, NULL, "the header has 0 fields Host; expected one");
    if (lengths > 1 || codings > 1 || (lengths && codings))
        return wgs_refuse(
            p, 400, NULL,
            "the header says the length of the body more than once: %d fields Content-Length, %d Transfer-Encoding; "
            "expected one of them",
            lengths, codings);
    for (int i = 0; i < ONCE; i++)
        if (f->count[i] > 1) return wgs_refuse(p, 400, NULL, "the header has %d fields %s; expected one", f->count[i], once[i]);
    if (codings && !f->chunked)
        return wgs_refuse(p, 400, NULL, "the transfer coding of the body is not known; expected Transfer-Encoding: chunked");
    if (codings && old) return wgs_refuse(p, 400, NULL, "HTTP/1.0 has no Transfer-Encoding; send Content-Length");
    return true;
}

bool wgs_head_framed(struct MHD_Connection *c, const char *method, const char *version, const wgs_first_line *line, size_t most,
                     wgs_problem *p)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const size_t size = info ? info->header_size : 0;
    fields f = { .at = version + strlen(version) + 2, .end = method + size, .good = true };
    if (size > most)
        return wgs_refuse(p, line->bytes > most / 2 ? 414 : 431, NULL,
                          "the header has %zu bytes; expected at most %zu (--max-header)", size, most);
    MHD_get_connection_values_n(c, MHD_HEADER_KIND, see_field, &f);
    if (!f.good)
        return wgs_refuse(
            p, 400, NULL,
            "the header is malformed at the field '%.40s'; expected lines NAME: VALUE that end with CR LF, without "
            "spaces before the colon, control characters or folded lines",
            f.wrong);
    if (!is_token(method, strlen(method)) || !is_whole(&f, method, version, line))
        return wgs_refuse(p, 400, NULL,
                          "the header is malformed; expected METHOD PATH VERSION and lines NAME: VALUE, each "
                          "ended by CR LF, without control characters");
    return framed_once(&f, !strcmp(version, "HTTP/1.0"), p);
}

wgs_value wgs_head_value(struct MHD_Connection *c, const char *name)
{
    wgs_value v = { NULL, 0 };
    if (MHD_lookup_connection_value_n(c, MHD_HEADER_KIND, name, strlen(name), &v.s, &v.n) == MHD_NO)
        return (wgs_value){ NULL, 0 };
    if (!v.s) v.s = "";
    while (v.n && (*v.s == ' ' || *v.s == '\t')) v.s++, v.n--;
    while (v.n && (v.s[v.n - 1] == ' ' || v.s[v.n - 1] == '\t')) v.n--;
    return v;
}

bool wgs_value_is(wgs_value v, const char *text) { return is_name(v.s, v.n, text); }

/* Whether a comma-separated list contains a name; "*" contains every name. */
static bool lists(const char *list, const char *name, size_t n)
{
    for (const char *s = list; s && *s; s += strspn(s, ", ")) {
        const size_t m = strcspn(s, ", ");
        if ((m == n && !strncasecmp(s, name, n)) || (m == 1 && *s == '*')) return true;
        s += m;
    }
    return false;
}

/* Whether a name is a loopback address, or `localhost` or a name below it. */
static bool is_loopback(const char *name, size_t n)
{
    static const char local[] = ".localhost";
    const size_t m = sizeof local - 1;
    if (is_name(name, n, "localhost") || is_name(name, n, "[::1]") || is_name(name, n, "::1")) return true;
    if (n > m && !strncasecmp(name + n - m, local, m)) return true;
    return n > 4 && !strncmp(name, "127.", 4) && strspn(name, "0123456789.") >= n;
}

bool wgs_head_host(const wgs_server *s, struct MHD_Connection *c, const wgs_target *target, wgs_problem *p)
{
    const wgs_options *o = s->options;
    const wgs_value field = wgs_head_value(c, "Host");
    const char *host = target->host ? target->host : field.s;
    const size_t all = target->host ? target->host_bytes : field.n;
    if (!host) return true; /* only HTTP/1.0 may leave Host out */
    const char *close = all && *host == '[' ? memchr(host, ']', all) : NULL, *colon = memchr(host, ':', all);
    const size_t n = close ? (size_t)(close + 1 - host) : colon ? (size_t)(colon - host) : all;
    const size_t port = n < all && host[n] == ':' ? n + 1 : n;
    bool good = n > 0;
    for (size_t i = 0; i < all; i++)
        good = good && (i < port ? !strchr(" \t,/?#@", host[i]) : host[i] >= '0' && host[i] <= '9');
    if (!good)
        return wgs_refuse(p, 400, NULL, "the host of the request is '%.*s'; expected NAME or NAME:PORT",
                          all > 80 ? 80 : (int)all, host);
    const bool guarded = o->allow_host || (!s->key && is_loopback(o->host, strlen(o->host)));
    if (!guarded || is_loopback(host, n) || is_name(host, n, o->host) || lists(o->allow_host, host, n)) return true;
    return wgs_refuse(p, 403, NULL,
                      "this server does not answer for the host '%.*s'; expected localhost or an address of this machine; "
                      "--allow-host %.*s lets it",
                      all > 80 ? 80 : (int)all, host, n > 80 ? 80 : (int)n, host);
}

bool wgs_head_has_body(struct MHD_Connection *c)
{
    const wgs_value length = wgs_head_value(c, "Content-Length");
    return (length.s && length.s[strspn(length.s, "0")]) || wgs_head_value(c, "Transfer-Encoding").s;
}

/* Whether the parameters of a type, such as "; charset=utf-8", allow UTF-8. */
static bool is_utf8(wgs_value type)
{
    static const char *const names[] = { "utf-8", "utf8", "us-ascii" };
    for (size_t i = 0; i < type.n; i++) {
        wgs_value v = { type.s + i, type.n - i };
        if (type.s[i] != ';') continue;
        for (v.s++, v.n--; v.n && (*v.s == ' ' || *v.s == '\t'); v.s++) v.n--;
        if (v.n < 8 || strncasecmp(v.s, "charset=", 8) != 0) continue;
        v.s += 8;
        for (v.n = 0; v.s + v.n < type.s + type.n && !strchr("; \t", v.s[v.n]);) v.n++;
        if (v.n > 1 && *v.s == '"' && v.s[v.n - 1] == '"') v.s++, v.n -= 2;
        if (!wgs_value_is(v, names[0]) && !wgs_value_is(v, names[1]) && !wgs_value_is(v, names[2])) return false;
    }
    return true;
}

bool wgs_head_body(struct MHD_Connection *c, wgs_problem *p)
{
    const wgs_value type = wgs_head_value(c, "Content-Type"), packing = wgs_head_value(c, "Content-Encoding");
    if (packing.s && !wgs_value_is(packing, "identity"))
        return wgs_refuse(p, 415, NULL, "the body has Content-Encoding: %.40s; expected a body that is not compressed",
                          packing.s);
    const size_t n = type.s ? strcspn(type.s, "; \t") : 0;
    if (n && is_name(type.s, n, "application/json") && is_utf8(type)) return true;
    return wgs_refuse(p, 415, NULL,
                      "the body has %s%.80s; expected the header Content-Type: application/json (curl: -H 'Content-Type: "
                      "application/json'), of UTF-8",
                      type.s ? "Content-Type: " : "no Content-Type", type.s ? type.s : "");
}
