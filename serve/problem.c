/* SPDX-License-Identifier: MIT
 * Errors for clients in the shape of the OpenAI API. */
#include "serve/problem.h"

#include <stdarg.h>
#include <stdio.h>

#include "serve/buffer.h"

bool wgs_refuse(wgs_problem *p, int http, const char *param, const char *format, ...)
{
    va_list a;
    *p = (wgs_problem){ .http = http };
    if (param) snprintf(p->param, sizeof p->param, "%s", param);
    va_start(a, format);
    vsnprintf(p->message, sizeof p->message, format, a);
    va_end(a);
    return false;
}

static const char *type_of(int http)
{
    switch (http) {
    case 401: return "authentication_error";
    case 429: return "rate_limit_error";
    case 500: return "server_error";
    case 503: return "unavailable_error";
    case 504: return "timeout_error";
    default: return "invalid_request_error";
    }
}

/* A message as a JSON string; bytes of the client that it quotes may not be UTF-8. */
static json_t *text_of(const char *s)
{
    wgs_buffer b = { 0 };
    size_t n = 0;
    while (s[n]) n++;
    wgs_buffer_put_utf8(&b, s, n);
    json_t *text = b.failed ? NULL : json_stringn(b.s ? b.s : "", b.n);
    wgs_buffer_free(&b);
    return text;
}

json_t *wgs_problem_json(const wgs_problem *p)
{
    return json_pack("{s:{s:o, s:s, s:o, s:s?}}", "error", "message", text_of(p->message), "type", type_of(p->http), "param",
                     p->param[0] ? text_of(p->param) : json_null(), "code", p->code);
}
