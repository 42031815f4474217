/* SPDX-License-Identifier: MIT
 * The tests of `is`: defined, none, string, mapping, ... */
#include <string.h>

#include "core/text/jinja/jinja_impl.h"

static wgj_value yes(bool b) { return wgj_bool(b); }
#define IS(name, condition)                                                                                                    \
    static wgj_value name(wgj *j, const wgj_call *c)                                                                           \
    {                                                                                                                          \
        const wgj_value v = c->arg[0];                                                                                         \
        (void)j;                                                                                                               \
        return yes(condition);                                                                                                 \
    }

/* clang-format off */
IS(is_defined, v.kind != WGJ_UNDEFINED)
IS(is_undefined, v.kind == WGJ_UNDEFINED)
IS(is_none, v.kind == WGJ_NONE)
IS(is_boolean, v.kind == WGJ_BOOL)
IS(is_true, v.kind == WGJ_BOOL && v.as.b)
IS(is_false, v.kind == WGJ_BOOL && !v.as.b)
IS(is_integer, v.kind == WGJ_INT)
IS(is_float, v.kind == WGJ_FLOAT)
IS(is_number, wgj_is_number(v))
IS(is_string, v.kind == WGJ_TEXT)
IS(is_mapping, v.kind == WGJ_DICT)
IS(is_iterable, wgj_iterable(v))
IS(is_sequence, v.kind == WGJ_UNDEFINED || (v.kind >= WGJ_TEXT && v.kind <= WGJ_RANGE) || v.kind == WGJ_DICT)
IS(is_callable, v.kind == WGJ_UNDEFINED || v.kind >= WGJ_LOOP) /* loops, macros, methods, functions */
IS(is_escaped, v.kind == WGJ_TEXT && v.as.text->safe)
IS(is_equal, wgj_equal(j, v, c->arg[1]))
IS(is_unequal, !wgj_equal(j, v, c->arg[1]))
IS(is_less, wgj_order(j, v, c->arg[1]) < 0)
IS(is_greater, wgj_order(j, v, c->arg[1]) > 0)
IS(is_at_most, wgj_order(j, v, c->arg[1]) <= 0)
IS(is_at_least, wgj_order(j, v, c->arg[1]) >= 0)
IS(is_in, wgj_contains(j, c->arg[1], v))
IS(is_lower, wgj_text_order(wgj_str(j, v), wgj_recase(j, wgj_str(j, v), WGJ_LOWER).as.text) == 0)
IS(is_upper, wgj_text_order(wgj_str(j, v), wgj_recase(j, wgj_str(j, v), WGJ_UPPER).as.text) == 0)
IS(is_filter, wgj_filter_known(wgj_str(j, v)))
IS(is_test, wgj_test_known(wgj_str(j, v)))
/* clang-format on */

static bool rest_is(wgj *j, const wgj_call *c, wgj_value by, int64_t rest)
{
    const wgj_value r = wgj_binary(j, '%', c->arg[0], by);
    return !j->failed && wgj_equal(j, r, wgj_int(rest));
}

static wgj_value is_odd(wgj *j, const wgj_call *c) { return yes(rest_is(j, c, wgj_int(2), 1)); }
static wgj_value is_even(wgj *j, const wgj_call *c) { return yes(rest_is(j, c, wgj_int(2), 0)); }
static wgj_value is_divisible(wgj *j, const wgj_call *c) { return yes(rest_is(j, c, c->arg[1], 0)); }

static wgj_value is_same(wgj *j, const wgj_call *c)
{
    const wgj_value a = c->arg[0], b = c->arg[1];
    if (a.kind != b.kind) return yes(false);
    if (a.kind == WGJ_TEXT || a.kind >= WGJ_LIST) return yes(a.as.text == b.as.text);
    return yes(wgj_equal(j, a, b));
}

static const wgj_entry tests[] = {
    { "defined", "value", is_defined },
    { "undefined", "value", is_undefined },
    { "none", "value", is_none },
    { "boolean", "value", is_boolean },
    { "true", "value", is_true },
    { "false", "value", is_false },
    { "integer", "value", is_integer },
    { "float", "value", is_float },
    { "number", "value", is_number },
    { "string", "value", is_string },
    { "mapping", "value", is_mapping },
    { "iterable", "value", is_iterable },
    { "sequence", "value", is_sequence },
    { "callable", "value", is_callable },
    { "escaped", "value", is_escaped },
    { "eq", "value,other", is_equal },
    { "equalto", "value,other", is_equal },
    { "==", "value,other", is_equal },
    { "ne", "value,other", is_unequal },
    { "!=", "value,other", is_unequal },
    { "lt", "value,other", is_less },
    { "lessthan", "value,other", is_less },
    { "<", "value,other", is_less },
    { "gt", "value,other", is_greater },
    { "greaterthan", "value,other", is_greater },
    { ">", "value,other", is_greater },
    { "le", "value,other", is_at_most },
    { "<=", "value,other", is_at_most },
    { "ge", "value,other", is_at_least },
    { ">=", "value,other", is_at_least },
    { "in", "value,seq", is_in },
    { "lower", "value", is_lower },
    { "upper", "value", is_upper },
    { "odd", "value", is_odd },
    { "even", "value", is_even },
    { "divisibleby", "value,num", is_divisible },
    { "sameas", "value,other", is_same },
    { "filter", "value", is_filter },
    { "test", "value", is_test },
    { NULL, NULL, NULL },
};

bool wgj_test_known(const wgj_text *name) { return wgj_entry_find(tests, name) != NULL; }

bool wgj_test(wgj *j, const wgj_text *name, wgj_value v, const wgj_args *args)
{
    wgj_call c;
    const wgj_entry *e = wgj_entry_find(tests, name);
    if (!e) wgj_fail(j, WG_EUNSUPPORTED, "there is no test '%.*s'", name->n < 60 ? (int)name->n : 60, name->s);
    return e && wgj_bind(j, e, &v, args, &c) && e->run(j, &c).as.b;
}
