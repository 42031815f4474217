/* SPDX-License-Identifier: MIT
 * The messages of a chat. chat_prompt.h refuses members that the template does not use. */
#include <string.h>

#include "serve/request_fields.h"

/* A role: a word, which the template writes between control tokens. */
bool wgs_read_role(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    enum { LONGEST = 64 };
    const char *s = json_string_value(v);
    (void)r;
    if (!s) return wgs_wrong_type(p, name, v, "a word such as user");
    if (!*s || json_string_length(v) > LONGEST || strspn(s, letters) != json_string_length(v))
        return wgs_refuse(p, 400, name, "'%s' is '%.80s'; expected a word such as user", name, s);
    return true;
}

/* The content of a message: a text, or a list of text parts. */
bool wgs_read_message_content(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    static const char *const keys[] = { "type", "text", "cache_control", NULL };
    size_t i;
    json_t *part;
    (void)r;
    if (!json_is_string(v) && !json_is_array(v)) return wgs_wrong_type(p, name, v, "a text, or a list of parts");
    json_array_foreach(v, i, part) {
        const char *type = json_string_value(json_object_get(part, "type"));
        if (!type || strcmp(type, "text") != 0 || !json_is_string(json_object_get(part, "text")))
            return wgs_refuse(p, 400, name,
                              "content[%zu] is no {\"type\": \"text\", \"text\": \"...\"}; this server reads text alone", i);
        if (!wgs_only_keys("content", part, keys, p)) return false;
    }
    return true;
}

bool wgs_read_message_text(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    (void)r;
    return json_is_string(v) || wgs_wrong_type(p, name, v, "a text");
}

bool wgs_read_tool_calls(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    size_t i;
    json_t *call;
    (void)r;
    if (!json_is_array(v)) return wgs_wrong_type(p, name, v, "a list of calls");
    json_array_foreach(v, i, call) {
        if (!json_string_length(json_object_get(json_object_get(call, "function"), "name")))
            return wgs_refuse(p, 400, name,
                              "'%s[%zu]' has no name; expected {\"type\": \"function\", \"function\": {\"name\": ...}}", name,
                              i);
    }
    return true;
}

static bool read_message(wgs_request *r, const json_t *m, wgs_problem *p)
{
    const json_t *content = json_object_get(m, "content");
    if (!json_is_object(m))
        return wgs_refuse(p, 400, NULL, "it is no object; expected {\"role\": \"user\", \"content\": \"...\"}");
    if (!wgs_fields_read(r, m, WGS_MESSAGE, "a message", p)) return false;
    if (!json_object_get(m, "role"))
        return wgs_refuse(p, 400, NULL, "it has no 'role'; expected {\"role\": \"user\", \"content\": \"...\"}");
    if ((content && !json_is_null(content)) || json_array_size(json_object_get(m, "tool_calls"))) return true;
    return wgs_refuse(p, 400, NULL, "it has no 'content'; expected a text, or a list of parts");
}

bool wgs_read_messages(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    size_t i;
    json_t *m;
    if (!json_is_array(v) || !json_array_size(v)) return wgs_wrong_type(p, name, v, "a list of messages that is not empty");
    r->messages = v;
    json_array_foreach(v, i, m) {
        wgs_problem inner;
        if (!read_message(r, m, &inner)) return wgs_refuse(p, inner.http, name, "%s[%zu]: %s", name, i, inner.message);
    }
    return true;
}
