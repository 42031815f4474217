/* SPDX-License-Identifier: MIT
 * Headers of requests. libmicrohttpd before 0.9.77 drops what stands behind a NUL, joins a folded line to the name of its
 * field, takes spaces before a colon into the name, and the first of two lengths. So the fields are compared with the bytes
 * that they were read from, which are still there: the first line and the fields lie one behind the other, and each separator
 * that the library has found is a NUL. Later versions refuse these by MHD_OPTION_CLIENT_DISCIPLINE_LVL. */
#include "serve/request_head.h"

#include <string.h>
#include <strings.h>

/* The fields that frame a message, and the place that is compared next. */
typedef struct fields {
    const char *at, *end;
    bool good;
    int hosts, lengths, codings;
    bool chunked;
    const char *wrong; /* the name of the first bad field, for the message */
} fields;

/* Characters of names of fields (RFC 9110, token). */
static bool is_token(const char *s, size_t n)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < n; i++) {
        const char c = s[i], low = (char)(c | 0x20);
        if (!(low >= 'a' && low <= 'z') && !(c >= '0' && c <= '9') && (!c || !strchr(others, c))) return false;
    }
    return n > 0;
}

/* No control characters but tabs. */
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
/* Whether the field stands where the last one ended, and ends with CR LF. */
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
    f->hosts += is_name(name, n, "Host");
    f->lengths += is_name(name, n, "Content-Length");
    if (is_name(name, n, "Transfer-Encoding")) {
        f->codings++;
        f->chunked = m == 7 && !strncasecmp(value, "chunked", 7);
    }
    return MHD_YES;
}

#if MHD_VERSION < 0x00097701
/* The first line is METHOD SP URI SP VERSION CR LF, and the header ends behind its fields. */
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
    if (!is_whole(&f, method, version, line))
        return wgs_refuse(p, 400, NULL,
                          "the header is malformed; expected METHOD PATH VERSION and lines NAME: VALUE, each "
                          "ended by CR LF, without control characters");
    const bool old = !strcmp(version, "HTTP/1.0");
    if (f.hosts > 1 || (!f.hosts && !old))
        return wgs_refuse(p, 400, NULL, "the header has %d fields Host; expected one", f.hosts);
    if (f.lengths > 1 || f.codings > 1 || (f.lengths && f.codings))
        return wgs_refuse(
            p, 400, NULL,
            "the header says the length of the body more than once: %d fields Content-Length, %d Transfer-Encoding; "
            "expected one of them",
            f.lengths, f.codings);
    if (f.codings && !f.chunked)
        return wgs_refuse(p, 400, NULL, "the transfer coding of the body is not known; expected Transfer-Encoding: chunked");
    if (f.codings && old) return wgs_refuse(p, 400, NULL, "HTTP/1.0 has no Transfer-Encoding; send Content-Length");
    return true;
}

static const char *field_of(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* Whether a list of names, with commas, has this one; "*" has all. */
static bool lists(const char *list, const char *name, size_t n)
{
    for (const char *s = list; s && *s; s += strspn(s, ", ")) {
        const size_t m = strcspn(s, ", ");
        if ((m == n && !strncasecmp(s, name, n)) || (m == 1 && *s == '*')) return true;
        s += m;
    }
    return false;
}

/* Whether a name is this machine's own, for clients on it: a loopback address, or a name below `localhost`. */
static bool is_loopback(const char *name, size_t n)
{
    static const char local[] = ".localhost";
    const size_t m = sizeof local - 1;
    if (is_name(name, n, "localhost") || is_name(name, n, "[::1]") || is_name(name, n, "::1")) return true;
    if (n > m && !strncasecmp(name + n - m, local, m)) return true;
    return n > 4 && !strncmp(name, "127.", 4) && strspn(name, "0123456789.") >= n;
}

bool wgs_head_host(const wgs_server *s, struct MHD_Connection *c, wgs_problem *p)
{
    const wgs_options *o = s->options;
    const char *host = field_of(c, "Host"), *close = host && *host == '[' ? strchr(host, ']') : NULL;
    if (!host) return true; /* HTTP/1.0 alone */
    const size_t n = close ? (size_t)(close + 1 - host) : strcspn(host, ":"), port = host[n] == ':' ? n + 1 : n;
    if (!n || host[port + strspn(host + port, "0123456789")] || host[strcspn(host, " \t,/?#@")])
        return wgs_refuse(p, 400, NULL, "the field Host is '%.80s'; expected NAME or NAME:PORT", host);
    const bool guarded = o->allow_host || (!s->key && is_loopback(o->host, strlen(o->host)));
    if (!guarded || is_loopback(host, n) || is_name(host, n, o->host) || lists(o->allow_host, host, n)) return true;
    return wgs_refuse(p, 403, NULL,
                      "this server does not answer for the host '%.80s'; expected localhost or an address of this machine; "
                      "--allow-host %.*s lets it",
                      host, n > 80 ? 80 : (int)n, host);
}

bool wgs_head_has_body(struct MHD_Connection *c)
{
    const char *length = field_of(c, "Content-Length");
    return (length && length[strspn(length, "0")]) || field_of(c, "Transfer-Encoding");
}

bool wgs_head_body(struct MHD_Connection *c, wgs_problem *p)
{
    const char *type = field_of(c, "Content-Type"), *coding = field_of(c, "Content-Encoding");
    if (coding && strcasecmp(coding, "identity") != 0)
        return wgs_refuse(p, 415, NULL, "the body has Content-Encoding: %.40s; expected a body that is not compressed", coding);
    const size_t n = type ? strcspn(type, "; \t") : 0;
    if (is_name(type, n, "application/json")) return true;
    return wgs_refuse(p, 415, NULL,
                      "the body has %s%.80s; expected the header Content-Type: application/json (curl: -H 'Content-Type: "
                      "application/json')",
                      type ? "Content-Type: " : "no Content-Type", type ? type : "");
}
