/* SPDX-License-Identifier: MIT
 * Expressions by recursive descent, with Jinja's precedence: choice, or, and, not, comparison, + -, ~, * / // %, **, sign, then
 * attributes, calls, filters and tests. */
#include <stdio.h>
#include <string.h>

#include "core/text/jinja/jinja_impl.h"

/* ---- tokens and nodes */

wgj_node *wgj_node_new(wgj *j, wgj_node_kind kind, uint32_t at)
{
    wgj_node *n = wgj_take(j, 1, sizeof *n);
    if (!n) return j->no_node = (wgj_node){ .kind = kind }, &j->no_node;
    n->kind = kind;
    n->at = at;
    return n;
}

bool wgj_text_is(const wgj_text *t, const char *s) { return t && t->n == strlen(s) && memcmp(t->s, s, t->n) == 0; }

static void step(wgj *j) { j->token += j->token->kind != WGJ_T_END; }

bool wgj_is_op(const wgj *j, int op) { return j->token->kind == WGJ_T_OP && j->token->op == op; }
bool wgj_is_name(const wgj *j, const char *name) { return j->token->kind == WGJ_T_NAME && wgj_text_is(j->token->text, name); }

bool wgj_skip_op(wgj *j, int op)
{
    if (j->failed || !wgj_is_op(j, op)) return false;
    step(j);
    return true;
}

bool wgj_skip_name(wgj *j, const char *name)
{
    if (j->failed || !wgj_is_name(j, name)) return false;
    step(j);
    return true;
}

void wgj_expected(wgj *j, const char *what)
{
    static const char *const kinds[] = {
        [WGJ_T_END] = "the end of the template",
        [WGJ_T_DATA] = "text",
        [WGJ_T_PRINT] = "{{",
        [WGJ_T_PRINT_END] = "}}",
        [WGJ_T_BLOCK] = "{%",
        [WGJ_T_BLOCK_END] = "%}",
        [WGJ_T_STRING] = "a text",
        [WGJ_T_INT] = "a number",
        [WGJ_T_FLOAT] = "a number",
        [WGJ_T_OP] = "",
    };
    char found[80];
    const wgj_token *t = j->token;
    if (t->kind == WGJ_T_NAME) snprintf(found, sizeof found, "'%.*s'", WGJ_SHOWN(t->text));
    else if (t->kind != WGJ_T_OP) snprintf(found, sizeof found, "%s", kinds[t->kind]);
    else if (t->op > 255) snprintf(found, sizeof found, "'%c%c'", t->op >> 8, t->op & 255);
    else snprintf(found, sizeof found, "'%c'", t->op);
    j->at = t->at;
    wgj_fail(j, WG_EMODEL, "found %s, expected %s", found, what);
}

void wgj_expect_op(wgj *j, int op)
{
    char what[] = "' '";
    what[1] = (char)op;
    if (!wgj_skip_op(j, op)) wgj_expected(j, what);
}

const wgj_text *wgj_expect_name(wgj *j)
{
    const wgj_text *name = j->token->text;
    if (j->failed || j->token->kind != WGJ_T_NAME) return wgj_expected(j, "a name"), NULL;
    step(j);
    return name;
}

static wgj_node *two(wgj *j, wgj_node_kind kind, uint32_t at, wgj_node *a, wgj_node *b)
{
    wgj_node *n = wgj_node_new(j, kind, at);
    n->a = a;
    n->b = b;
    return n;
}

static bool enter(wgj *j)
{
    if (++j->depth <= WGJ_SYNTAX) return !j->failed;
    j->at = j->token->at;
    wgj_fail(j, WG_EMODEL, "more than %d levels of brackets and blocks", WGJ_SYNTAX);
    return false;
}

/* ---- literals, names, brackets */

/* Appends to a list of kids whose end is *last. */
static void append(wgj_node ***last, wgj_node *n)
{
    **last = n;
    *last = &n->next;
}

static wgj_node *parse_list(wgj *j)
{
    wgj_node *n = wgj_node_new(j, WGJ_N_LIST, j->token->at), **last = &n->kids;
    wgj_expect_op(j, '[');
    while (!j->failed && !wgj_is_op(j, ']')) {
        append(&last, wgj_parse_expr(j, true));
        if (!wgj_is_op(j, ']')) wgj_expect_op(j, ',');
    }
    wgj_expect_op(j, ']');
    return n;
}

static wgj_node *parse_dict(wgj *j)
{
    wgj_node *n = wgj_node_new(j, WGJ_N_DICT, j->token->at), **last = &n->kids;
    wgj_expect_op(j, '{');
    while (!j->failed && !wgj_is_op(j, '}')) {
        append(&last, wgj_parse_expr(j, true));
        wgj_expect_op(j, ':');
        append(&last, wgj_parse_expr(j, true));
        if (!wgj_is_op(j, '}')) wgj_expect_op(j, ',');
    }
    wgj_expect_op(j, '}');
    return n;
}

/* Neighbouring texts are one. */
static wgj_node *parse_string(wgj *j)
{
    wgj_node *n = wgj_node_new(j, WGJ_N_CONST, j->token->at);
    wgj_buffer b = { 0 };
    for (; j->token->kind == WGJ_T_STRING && !j->failed; step(j)) wgj_put_text(j, &b, j->token->text);
    n->value = wgj_finish(j, &b);
    return n;
}

static wgj_node *parse_name(wgj *j)
{
    static const struct {
        const char *name;
        wgj_value v;
    } words[] = { { "true", { WGJ_BOOL, { .b = true } } },   { "True", { WGJ_BOOL, { .b = true } } },
                  { "false", { WGJ_BOOL, { .b = false } } }, { "False", { WGJ_BOOL, { .b = false } } },
                  { "none", { WGJ_NONE, { 0 } } },           { "None", { WGJ_NONE, { 0 } } } };
    wgj_node *n = wgj_node_new(j, WGJ_N_NAME, j->token->at);
    n->name = j->token->text;
    step(j);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (wgj_text_is(n->name, words[i].name)) n->kind = WGJ_N_CONST, n->value = words[i].v;
    return n;
}

static wgj_node *parse_primary(wgj *j)
{
    const wgj_token *t = j->token;
    wgj_node *n;
    if (j->failed) return wgj_node_new(j, WGJ_N_CONST, 0);
    switch (t->kind) {
    case WGJ_T_NAME: return parse_name(j);
    case WGJ_T_STRING: return parse_string(j);
    case WGJ_T_INT:
    case WGJ_T_FLOAT:
        n = wgj_node_new(j, WGJ_N_CONST, t->at);
        n->value = t->kind == WGJ_T_INT ? wgj_int(t->i) : wgj_float(t->f);
        step(j);
        return n;
    case WGJ_T_OP:
        if (t->op == '[') return parse_list(j);
        if (t->op == '{') return parse_dict(j);
        if (t->op != '(') break;
        step(j);
        n = wgj_parse_tuple(j, true, NULL);
        wgj_expect_op(j, ')');
        return n;
    default: break;
    }
    wgj_expected(j, "an expression");
    return wgj_node_new(j, WGJ_N_CONST, t->at);
}

/* ---- attributes, items, calls, filters, tests */

static wgj_node *parse_args(wgj *j)
{
    wgj_node *first = NULL, **last = &first;
    int n = 0;
    wgj_expect_op(j, '(');
    while (!j->failed && !wgj_is_op(j, ')')) {
        const wgj_token *t = j->token;
        if (wgj_is_op(j, '*') || wgj_is_op(j, WGJ_OP2('*', '*'))) {
            j->at = t->at;
            wgj_fail(j, WG_EUNSUPPORTED, "'*' and '**' in the arguments of a call are not implemented");
        } else if (t->kind == WGJ_T_NAME && t[1].kind == WGJ_T_OP && t[1].op == '=') {
            wgj_node *k = wgj_node_new(j, WGJ_N_KEYWORD, t->at);
            k->name = t->text;
            j->token += 2;
            k->a = wgj_parse_expr(j, true);
            append(&last, k);
        } else append(&last, wgj_parse_expr(j, true));
        if (++n > WGJ_ARGS) wgj_expected(j, "at most 8 arguments");
        if (!wgj_is_op(j, ')')) wgj_expect_op(j, ',');
    }
    wgj_expect_op(j, ')');
    return first;
}

static wgj_node *parse_subscript(wgj *j)
{
    wgj_node *n = wgj_node_new(j, WGJ_N_SLICE, j->token->at);
    wgj_node **part[] = { &n->a, &n->b, &n->c };
    int colons = 0;
    for (; colons < 3; colons++) {
        if (!wgj_is_op(j, ':') && !wgj_is_op(j, ']')) *part[colons] = wgj_parse_expr(j, true);
        if (!wgj_skip_op(j, ':')) break;
    }
    if (colons == 0 && !n->a) wgj_expected(j, "an expression");
    if (colons == 0 && wgj_is_op(j, ',')) wgj_expected(j, "']' (an index of several parts is not implemented)");
    wgj_expect_op(j, ']');
    return colons ? n : n->a;
}

static wgj_node *parse_access(wgj *j, wgj_node *n)
{
    while (!j->failed) {
        const uint32_t at = j->token->at;
        if (wgj_skip_op(j, '.')) {
            if (j->token->kind == WGJ_T_INT) {
                n = two(j, WGJ_N_ITEM, at, n, parse_primary(j));
                continue;
            }
            n = two(j, WGJ_N_ATTR, at, n, NULL);
            n->name = wgj_expect_name(j);
        } else if (wgj_skip_op(j, '[')) n = two(j, WGJ_N_ITEM, at, n, parse_subscript(j));
        else if (wgj_is_op(j, '(')) {
            n = two(j, WGJ_N_CALL, at, n, NULL);
            n->kids = parse_args(j);
        } else break;
    }
    return n;
}

static wgj_node *parse_test(wgj *j, wgj_node *subject, uint32_t at)
{
    const bool negated = wgj_skip_name(j, "not");
    wgj_node *n = two(j, WGJ_N_TEST, at, subject, NULL);
    n->name = wgj_expect_name(j);
    const wgj_token_kind k = j->token->kind;
    const bool word = k == WGJ_T_NAME && !wgj_is_name(j, "else") && !wgj_is_name(j, "or") && !wgj_is_name(j, "and");
    if (wgj_is_name(j, "is")) wgj_expected(j, "one test after 'is', not a chain of them");
    if (wgj_is_op(j, '(')) n->kids = parse_args(j);
    else if (word || k == WGJ_T_STRING || k == WGJ_T_INT || k == WGJ_T_FLOAT || wgj_is_op(j, '[') || wgj_is_op(j, '{'))
        n->kids = parse_access(j, parse_primary(j));
    if (!n->name || !negated) return n;
    return two(j, WGJ_N_NOT, at, n, NULL);
}

static wgj_node *parse_filter(wgj *j, wgj_node *subject, uint32_t at)
{
    wgj_node *n = two(j, WGJ_N_FILTER, at, subject, NULL);
    n->name = wgj_expect_name(j);
    if (wgj_is_op(j, '(')) n->kids = parse_args(j);
    return n;
}

/* "upper | trim": filters of a block, whose body is the innermost subject, a NULL. */
wgj_node *wgj_parse_filters(wgj *j, wgj_node *subject)
{
    wgj_node *n = subject;
    do n = parse_filter(j, n, j->token->at);
    while (wgj_skip_op(j, '|'));
    return n;
}

static wgj_node *parse_unary(wgj *j, bool filters)
{
    const uint32_t at = j->token->at;
    wgj_node *n;
    if (!enter(j)) return j->depth--, wgj_node_new(j, WGJ_N_CONST, at);
    if (wgj_skip_op(j, '-')) n = two(j, WGJ_N_NEGATE, at, parse_unary(j, false), NULL);
    else if (wgj_skip_op(j, '+')) n = two(j, WGJ_N_PLUS, at, parse_unary(j, false), NULL);
    else n = parse_primary(j);
    n = parse_access(j, n);
    while (filters && !j->failed) {
        const uint32_t here = j->token->at;
        if (wgj_skip_op(j, '|')) n = parse_filter(j, n, here);
        else if (wgj_skip_name(j, "is")) n = parse_test(j, n, here);
        else if (wgj_is_op(j, '(')) {
            n = two(j, WGJ_N_CALL, here, n, NULL);
            n->kids = parse_args(j);
        } else break;
    }
    j->depth--;
    return n;
}

/* ---- operators */

/* Operands with these operators (0: no more) between them, from the left. */
static wgj_node *parse_binary(wgj *j, const int *ops, wgj_node *(*operand)(wgj *j))
{
    wgj_node *n = operand(j);
    for (int i = 0; ops[i];) {
        if (!wgj_is_op(j, ops[i])) {
            i++;
            continue;
        }
        n = two(j, WGJ_N_BINARY, j->token->at, n, NULL);
        n->op = ops[i];
        step(j);
        n->b = operand(j);
        i = 0;
    }
    return n;
}

static wgj_node *parse_power(wgj *j) { return parse_unary(j, true); }
static wgj_node *parse_factor(wgj *j) { return parse_binary(j, (const int[]){ WGJ_OP2('*', '*'), 0 }, parse_power); }
static wgj_node *parse_product(wgj *j)
{
    return parse_binary(j, (const int[]){ '*', '/', WGJ_OP2('/', '/'), '%', 0 }, parse_factor);
}

static wgj_node *parse_concat(wgj *j)
{
    wgj_node *first = parse_product(j);
    if (!wgj_is_op(j, '~')) return first;
    wgj_node *n = wgj_node_new(j, WGJ_N_CONCAT, j->token->at), **last = &n->kids;
    append(&last, first);
    while (wgj_skip_op(j, '~')) append(&last, parse_product(j));
    return n;
}

static wgj_node *parse_sum(wgj *j) { return parse_binary(j, (const int[]){ '+', '-', 0 }, parse_concat); }

/* The comparison that the next token is, consumed; 0: none. */
static int comparison(wgj *j)
{
    static const int ops[] = { WGJ_OP2('=', '='), WGJ_OP2('!', '='), WGJ_OP2('<', '='), WGJ_OP2('>', '='), '<', '>' };
    for (int i = 0; i < 6; i++)
        if (wgj_skip_op(j, ops[i])) return ops[i];
    if (wgj_skip_name(j, "in")) return WGJ_OP_IN;
    const wgj_token *next = j->token + (j->token->kind != WGJ_T_END);
    if (!wgj_is_name(j, "not") || next->kind != WGJ_T_NAME || !wgj_text_is(next->text, "in")) return 0;
    j->token += 2;
    return WGJ_OP_NOT_IN;
}

static wgj_node *parse_compare(wgj *j)
{
    const uint32_t at = j->token->at;
    wgj_node *first = parse_sum(j), *n = NULL, **last = NULL;
    for (int op; !j->failed && (op = comparison(j));) {
        if (!n) {
            n = two(j, WGJ_N_COMPARE, at, first, NULL);
            last = &n->kids;
        }
        wgj_node *k = wgj_node_new(j, WGJ_N_COMPARE, j->token->at);
        k->op = op;
        k->a = parse_sum(j);
        append(&last, k);
    }
    return n ? n : first;
}

static wgj_node *parse_not(wgj *j)
{
    const uint32_t at = j->token->at;
    if (!wgj_is_name(j, "not")) return parse_compare(j);
    if (!enter(j)) return j->depth--, wgj_node_new(j, WGJ_N_CONST, at);
    step(j);
    wgj_node *n = two(j, WGJ_N_NOT, at, parse_not(j), NULL);
    j->depth--;
    return n;
}

static wgj_node *parse_and(wgj *j)
{
    wgj_node *n = parse_not(j);
    for (uint32_t at = j->token->at; wgj_skip_name(j, "and"); at = j->token->at) n = two(j, WGJ_N_AND, at, n, parse_not(j));
    return n;
}

static wgj_node *parse_or(wgj *j)
{
    wgj_node *n = parse_and(j);
    for (uint32_t at = j->token->at; wgj_skip_name(j, "or"); at = j->token->at) n = two(j, WGJ_N_OR, at, n, parse_and(j));
    return n;
}

/* choice: "x if y else z" belongs to the expression. */
wgj_node *wgj_parse_expr(wgj *j, bool choice)
{
    const uint32_t at = j->token->at;
    if (!enter(j)) return j->depth--, wgj_node_new(j, WGJ_N_CONST, at);
    wgj_node *n = parse_or(j);
    while (choice && wgj_skip_name(j, "if")) {
        n = two(j, WGJ_N_CHOICE, at, n, parse_or(j));
        if (wgj_skip_name(j, "else")) n->c = wgj_parse_expr(j, true);
    }
    j->depth--;
    return n;
}

static bool tuple_ends(const wgj *j, const char *end)
{
    const wgj_token_kind k = j->token->kind;
    return k == WGJ_T_PRINT_END || k == WGJ_T_BLOCK_END || k == WGJ_T_END || wgj_is_op(j, ')') || (end && wgj_is_name(j, end));
}

/* One expression, or several with commas between them; `end`: a name that ends them, NULL: none. */
wgj_node *wgj_parse_tuple(wgj *j, bool choice, const char *end)
{
    wgj_node *n = wgj_node_new(j, WGJ_N_TUPLE, j->token->at), **last = &n->kids;
    bool comma = false;
    while (!j->failed && !tuple_ends(j, end)) {
        append(&last, wgj_parse_expr(j, choice));
        if (!wgj_skip_op(j, ',')) break;
        comma = true;
    }
    if (n->kids && !comma) return n->kids;
    if (!n->kids && !wgj_is_op(j, ')')) wgj_expected(j, "an expression");
    return n;
}

static wgj_node *one_target(wgj *j, bool with_namespace)
{
    wgj_node *n = wgj_node_new(j, WGJ_N_NAME, j->token->at);
    if (wgj_skip_op(j, '(')) {
        n = wgj_parse_target(j, NULL, false);
        wgj_expect_op(j, ')');
        return n;
    }
    n->name = wgj_expect_name(j);
    if (!with_namespace || !wgj_skip_op(j, '.')) return n;
    wgj_node *attr = two(j, WGJ_N_ATTR, n->at, n, NULL);
    attr->name = wgj_expect_name(j);
    return attr;
}

/* What a statement assigns to: a name, names, or ns.attr. */
wgj_node *wgj_parse_target(wgj *j, const char *end, bool with_namespace)
{
    const uint32_t at = j->token->at;
    if (!enter(j)) return j->depth--, wgj_node_new(j, WGJ_N_NAME, at);
    wgj_node *first = one_target(j, with_namespace), *n = first;
    if (wgj_is_op(j, ',')) {
        n = wgj_node_new(j, WGJ_N_TUPLE, at);
        wgj_node **last = &n->kids;
        append(&last, first);
        while (wgj_skip_op(j, ',') && !(end && wgj_is_name(j, end))) append(&last, one_target(j, with_namespace));
    }
    j->depth--;
    return n;
}
