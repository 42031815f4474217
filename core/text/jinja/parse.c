/* SPDX-License-Identifier: MIT
 * Statements: a template as a list of nodes. */
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/text/jinja/jinja_impl.h"
#include "core/text/unicode.h"

static wgj_node *parse_list(wgj *j, const char *const *ends);

static const char *const end_for[] = { "endfor", NULL }, *const end_for_else[] = { "else", "endfor", NULL };
static const char *const end_if[] = { "endif", NULL }, *const end_if_else[] = { "elif", "else", "endif", NULL };
static const char *const end_set[] = { "endset", NULL }, *const end_macro[] = { "endmacro", NULL };
static const char *const end_call[] = { "endcall", NULL }, *const end_filter[] = { "endfilter", NULL };
static const char *const end_with[] = { "endwith", NULL }, *const end_generation[] = { "endgeneration", NULL };

static void expect_block_end(wgj *j)
{
    if (j->token->kind != WGJ_T_BLOCK_END) wgj_expected(j, "%}");
    else j->token++;
}

/* A body up to one of these tags, whose name is left as the next token. */
static wgj_node *parse_body(wgj *j, const char *const *ends)
{
    expect_block_end(j);
    return parse_list(j, ends);
}

/* A body up to its end tag, which is consumed. */
static wgj_node *parse_rest(wgj *j, const char *const *end)
{
    wgj_node *body = parse_body(j, end);
    wgj_skip_name(j, *end);
    return body;
}

static void parse_for(wgj *j, wgj_node *n)
{
    n->a = wgj_parse_target(j, "in", false);
    if (!wgj_skip_name(j, "in")) wgj_expected(j, "'in'");
    n->b = wgj_parse_tuple(j, false, "recursive");
    if (wgj_skip_name(j, "if")) n->c = wgj_parse_expr(j, true);
    n->op = wgj_skip_name(j, "recursive");
    j->loops++;
    n->kids = parse_body(j, end_for_else);
    j->loops--;
    if (wgj_skip_name(j, "else")) n->other = parse_rest(j, end_for);
    else wgj_skip_name(j, "endfor");
}

static void parse_if(wgj *j, wgj_node *n)
{
    wgj_node **last = &n->kids;
    bool more = true;
    while (more && !j->failed) {
        wgj_node *b = *last = wgj_node_new(j, WGJ_N_BRANCH, j->token->at);
        last = &b->next;
        b->a = wgj_parse_tuple(j, false, NULL);
        b->kids = parse_body(j, end_if_else);
        more = wgj_skip_name(j, "elif");
    }
    if (wgj_skip_name(j, "else")) {
        wgj_node *b = *last = wgj_node_new(j, WGJ_N_BRANCH, j->token->at);
        b->kids = parse_rest(j, end_if);
    } else wgj_skip_name(j, "endif");
}

static void parse_set(wgj *j, wgj_node *n)
{
    n->a = wgj_parse_target(j, NULL, true);
    if (wgj_skip_op(j, '=')) {
        n->b = wgj_parse_tuple(j, true, NULL);
        return;
    }
    n->kind = WGJ_N_SETBLOCK;
    if (wgj_skip_op(j, '|')) n->b = wgj_parse_filters(j, NULL);
    n->kids = parse_rest(j, end_set);
}

/* (a, b=1) */
static wgj_node *parse_parameters(wgj *j)
{
    wgj_node *first = NULL, **last = &first;
    int n = 0;
    wgj_expect_op(j, '(');
    while (!j->failed && !wgj_is_op(j, ')')) {
        wgj_node *p = *last = wgj_node_new(j, WGJ_N_KEYWORD, j->token->at);
        last = &p->next;
        p->name = wgj_expect_name(j);
        if (wgj_skip_op(j, '=')) p->a = wgj_parse_expr(j, true);
        if (++n > WGJ_ARGS) wgj_expected(j, "at most 8 parameters");
        if (!wgj_is_op(j, ')')) wgj_expect_op(j, ',');
    }
    wgj_expect_op(j, ')');
    return first;
}

/* break and continue stay inside the body of a macro. */
static wgj_node *parse_closed(wgj *j, const char *const *end)
{
    const int loops = j->loops;
    j->loops = 0;
    wgj_node *body = parse_rest(j, end);
    j->loops = loops;
    return body;
}

static void parse_call(wgj *j, wgj_node *n)
{
    if (wgj_is_op(j, '(')) n->other = parse_parameters(j);
    n->a = wgj_parse_expr(j, true);
    if (!j->failed && n->a->kind != WGJ_N_CALL) {
        j->at = n->a->at;
        wgj_fail(j, WG_EMODEL, "expected the call of a macro after 'call'");
    }
    n->kids = parse_closed(j, end_call);
}

static void parse_with(wgj *j, wgj_node *n)
{
    wgj_node **last = &n->other;
    while (!j->failed && j->token->kind != WGJ_T_BLOCK_END) {
        wgj_node *p = *last = wgj_node_new(j, WGJ_N_KEYWORD, j->token->at);
        last = &p->next;
        p->name = wgj_expect_name(j);
        wgj_expect_op(j, '=');
        p->a = wgj_parse_expr(j, true);
        if (j->token->kind != WGJ_T_BLOCK_END) wgj_expect_op(j, ',');
    }
    n->kids = parse_rest(j, end_with);
}

static void refuse_statement(wgj *j, const wgj_text *name, const char *const *ends)
{
    static const char *const known[] = {
        "include", "import", "from", "extends", "block", "autoescape", "do", "trans", "debug"
    };
    char tags[200] = "";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (wgj_text_is(name, known[i]))
            wgj_fail(j, WG_EUNSUPPORTED, "the statement '%s' is not implemented: a chat template is one text without others",
                     known[i]);
    for (; ends && *ends; ends++)
        snprintf(tags + strlen(tags), sizeof tags - strlen(tags), "%s'%s'", *tags ? " or " : ", or ", *ends);
    wgj_fail(j, WG_EMODEL,
             "found the tag '%.*s', expected for, if, set, macro, call, filter, with, generation, break, continue or raw%s",
             WGJ_SHOWN(name), tags);
}

/* The statement of a tag whose name was read; NULL: it ends a body. */
static wgj_node *parse_statement(wgj *j, const char *const *ends)
{
    const uint32_t at = j->token->at;
    for (const char *const *e = ends; e && *e; e++)
        if (wgj_is_name(j, *e)) return NULL;
    wgj_node *n = wgj_node_new(j, WGJ_N_BODY, at);
    const wgj_text *name = wgj_expect_name(j);
    if (!name) return n;
    j->at = at;
    if (wgj_text_is(name, "for")) n->kind = WGJ_N_FOR, parse_for(j, n);
    else if (wgj_text_is(name, "if")) n->kind = WGJ_N_IF, parse_if(j, n);
    else if (wgj_text_is(name, "set")) n->kind = WGJ_N_SET, parse_set(j, n);
    else if (wgj_text_is(name, "macro")) {
        n->kind = WGJ_N_MACRO;
        n->name = wgj_expect_name(j);
        n->other = parse_parameters(j);
        n->kids = parse_closed(j, end_macro);
    } else if (wgj_text_is(name, "call")) n->kind = WGJ_N_CALLER, parse_call(j, n);
    else if (wgj_text_is(name, "filter")) {
        n->kind = WGJ_N_FILTERED;
        n->b = wgj_parse_filters(j, NULL);
        n->kids = parse_rest(j, end_filter);
    } else if (wgj_text_is(name, "with")) n->kind = WGJ_N_WITH, parse_with(j, n);
    else if (wgj_text_is(name, "generation")) n->kids = parse_rest(j, end_generation);
    else if (wgj_text_is(name, "break") || wgj_text_is(name, "continue")) {
        n->kind = wgj_text_is(name, "break") ? WGJ_N_BREAK : WGJ_N_CONTINUE;
        if (j->loops == 0) wgj_fail(j, WG_EMODEL, "'%s' outside a loop", n->kind == WGJ_N_BREAK ? "break" : "continue");
    } else refuse_statement(j, name, ends);
    return n;
}

/* Nodes up to a tag with one of these names (NULL: the end of the template). The tag's name is the next token then. */
static wgj_node *parse_list(wgj *j, const char *const *ends)
{
    wgj_node *first = NULL, **last = &first;
    if (++j->depth > WGJ_SYNTAX) {
        j->at = j->token->at;
        wgj_fail(j, WG_EMODEL, "more than %d levels of brackets and blocks", WGJ_SYNTAX);
    }
    while (!j->failed) {
        const wgj_token *t = j->token;
        wgj_node *n;
        if (t->kind == WGJ_T_END) {
            char what[80] = "";
            for (const char *const *e = ends; e && *e; e++)
                snprintf(what + strlen(what), sizeof what - strlen(what), "%s{%% %s %%}", *what ? " or " : "", *e);
            if (ends) wgj_expected(j, what);
            break;
        }
        j->token++;
        if (t->kind == WGJ_T_DATA) {
            n = wgj_node_new(j, WGJ_N_DATA, t->at);
            n->value = (wgj_value){ WGJ_TEXT, { .text = t->text } };
        } else if (t->kind == WGJ_T_PRINT) {
            n = wgj_node_new(j, WGJ_N_PRINT, t->at);
            n->a = wgj_parse_tuple(j, true, NULL);
            if (j->token->kind != WGJ_T_PRINT_END) wgj_expected(j, "}}");
            else j->token++;
        } else {
            n = parse_statement(j, ends);
            if (!n) break;
            expect_block_end(j);
        }
        *last = n;
        last = &n->next;
    }
    j->depth--;
    return first;
}

/* ---- opening */

/* Line ends become \n, and a last one is removed, as Jinja does it. */
static wg_status copy_source(wgj *j, const char *text, size_t n)
{
    uint32_t cp;
    char *to = wgj_take(j, n + 1, 1);
    if (!to) return j->failed;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\r' && i + 1 < n && text[i + 1] == '\n') continue;
        to[j->n++] = text[i] == '\r' ? '\n' : text[i];
    }
    j->source = to;
    for (size_t i = 0, len; i < j->n; i += len) {
        len = wg_utf8_decode(to + i, j->n - i, &cp);
        j->at = (uint32_t)i;
        if (cp == WG_UTF8_BAD) return wgj_fail(j, WG_EMODEL, "the template is no UTF-8 text"), j->failed;
    }
    j->n -= j->n > 0 && to[j->n - 1] == '\n';
    return WG_OK;
}

wg_status wg_jinja_open(wg_jinja **out, const char *name, const char *text, size_t n, wg_error *err)
{
    if (n > WGJ_SOURCE)
        return wg_fail(err, WG_EMODEL, "%s: %zu bytes of a chat template; at most %d are read", name, n, WGJ_SOURCE);
    wg_jinja *t = wg_calloc(1, sizeof *t);
    if (!t) return wg_nomem(err, sizeof *t, "a chat template");
    t->j.name = name;
    t->j.err = err;
    char *kept = wgj_take(&t->j, strlen(name) + 1, 1);
    if (kept) t->j.name = strcpy(kept, name);
    if (kept && copy_source(&t->j, text, n) == WG_OK) {
        wgj_lex(&t->j);
        if (!t->j.failed) t->body = parse_list(&t->j, NULL);
    }
    const wg_status s = t->j.failed;
    t->j.err = NULL;
    t->j.token = NULL;
    if (s) wg_jinja_close(t);
    else *out = t;
    return s;
}

void wg_jinja_close(wg_jinja *t)
{
    if (!t) return;
    wgj_free(&t->j);
    wg_free(t);
}
