/* SPDX-License-Identifier: MIT
 * The tests of `is`: defined, none, string, mapping, ... */
#include <string.h>

#include "core/text/jinja/jinja_impl.h"

/* clang-format off */
/* Name, parameters, function, whether the test holds of v. */
#define SIMPLE(X) \
    X("defined", "value", is_defined, v.kind != WGJ_UNDEFINED) \
    X("undefined", "value", is_undefined, v.kind == WGJ_UNDEFINED) \
    X("none", "value", is_none, v.kind == WGJ_NONE) \
    X("boolean", "value", is_boolean, v.kind == WGJ_BOOL) \
    X("true", "value", is_true, v.kind == WGJ_BOOL && v.as.b) \
    X("false", "value", is_false, v.kind == WGJ_BOOL && !v.as.b) \
    X("integer", "value", is_integer, v.kind == WGJ_INT) \
    X("float", "value", is_float, v.kind == WGJ_FLOAT) \
    X("number", "value", is_number, wgj_is_number(v)) \
    X("string", "value", is_string, v.kind == WGJ_TEXT) \
    X("mapping", "value", is_mapping, v.kind == WGJ_DICT) \
    X("iterable", "value", is_iterable, wgj_iterable(v)) \
    X("sequence", "value", is_sequence, \
      v.kind == WGJ_UNDEFINED || (v.kind >= WGJ_TEXT && v.kind <= WGJ_RANGE) || v.kind == WGJ_DICT) \
    X("callable", "value", is_callable, v.kind == WGJ_UNDEFINED || v.kind >= WGJ_LOOP /* loops, macros, methods, functions */) \
    X("escaped", "value", is_escaped, v.kind == WGJ_TEXT && v.as.text->safe) \
    X("eq", "value,other", is_equal, wgj_equal(j, v, c->arg[1])) \
    X("ne", "value,other", is_unequal, !wgj_equal(j, v, c->arg[1])) \
    X("lt", "value,other", is_less, wgj_order(j, v, c->arg[1]) < 0) \
    X("gt", "value,other", is_greater, wgj_order(j, v, c->arg[1]) > 0) \
    X("le", "value,other", is_at_most, wgj_order(j, v, c->arg[1]) <= 0) \
    X("ge", "value,other", is_at_least, wgj_order(j, v, c->arg[1]) >= 0) \
    X("in", "value,seq", is_in, wgj_contains(j, c->arg[1], v)) \
    X("lower", "value", is_lower, wgj_text_order(wgj_str(j, v), wgj_recase(j, wgj_str(j, v), WGJ_LOWER).as.text) == 0) \
    X("upper", "value", is_upper, wgj_text_order(wgj_str(j, v), wgj_recase(j, wgj_str(j, v), WGJ_UPPER).as.text) == 0) \
    X("filter", "value", is_filter, wgj_filter_known(wgj_str(j, v))) \
    X("test", "value", is_test, wgj_entry_find(tests, wgj_str(j, v)) != NULL)
/* clang-format on */

static const wgj_entry tests[];

#define FUNCTION(name, params, function, condition)                                                                            \
    static wgj_value function(wgj *j, const wgj_call *c)                                                                       \
    {                                                                                                                          \
        const wgj_value v = c->arg[0];                                                                                         \
        (void)j;                                                                                                               \
        return wgj_bool(condition);                                                                                            \
    }
SIMPLE(FUNCTION)

static bool rest_is(wgj *j, const wgj_call *c, wgj_value by, int64_t rest)
{
    const wgj_value r = wgj_binary(j, '%', c->arg[0], by);
    return !j->failed && wgj_equal(j, r, wgj_int(rest));
}

static wgj_value is_odd(wgj *j, const wgj_call *c) { return wgj_bool(rest_is(j, c, wgj_int(2), 1)); }
static wgj_value is_even(wgj *j, const wgj_call *c) { return wgj_bool(rest_is(j, c, wgj_int(2), 0)); }
static wgj_value is_divisible(wgj *j, const wgj_call *c) { return wgj_bool(rest_is(j, c, c->arg[1], 0)); }

static wgj_value is_same(wgj *j, const wgj_call *c)
{
    const wgj_value a = c->arg[0], b = c->arg[1];
    if (a.kind != b.kind) return wgj_bool(false);
    if (a.kind == WGJ_TEXT || a.kind >= WGJ_LIST) return wgj_bool(a.as.text == b.as.text);
    return wgj_bool(wgj_equal(j, a, b));
}

static const wgj_entry tests[] = {
#define ROW(name, params, function, condition) { name, params, function },
    SIMPLE(ROW)
#undef ROW
        { "equalto", "value,other", is_equal },
    { "==", "value,other", is_equal },
    { "!=", "value,other", is_unequal },
    { "lessthan", "value,other", is_less },
    { "<", "value,other", is_less },
    { "greaterthan", "value,other", is_greater },
    { ">", "value,other", is_greater },
    { "<=", "value,other", is_at_most },
    { ">=", "value,other", is_at_least },
    { "odd", "value", is_odd },
    { "even", "value", is_even },
    { "divisibleby", "value,num", is_divisible },
    { "sameas", "value,other", is_same },
    { NULL, NULL, NULL },
};

bool wgj_test(wgj *j, const wgj_text *name, wgj_value v, const wgj_args *args)
{
    wgj_call c;
    const wgj_entry *e = wgj_entry_find(tests, name);
    if (!e) wgj_fail(j, WG_EUNSUPPORTED, "there is no test '%.*s'", WGJ_SHOWN(name));
    return e && wgj_bind(j, e, &v, args, &c) && e->run(j, &c).as.b;
}
