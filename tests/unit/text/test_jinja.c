/* SPDX-License-Identifier: MIT
 * The interpreter of chat templates: templates with the texts that jinja2 prints for them (tests/golden/templates/make.py),
 * every message, the marks of bytes that come from the data, the limits, and failing allocations. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/text/jinja/jinja.h"

static const struct tm today = { .tm_year = 125, .tm_mon = 6, .tm_mday = 9, .tm_hour = 12, .tm_wday = 3, .tm_yday = 189 };

static wg_status render(const char *text, const json_t *data, const struct tm *now, wg_rendered *out, wg_error *err)
{
    wg_jinja *t;
    json_t *trusted = json_pack("{s:s, s:s}", "bos_token", "<s>", "eos_token", "</s>");
    const wg_jinja_input in = { .data = data, .trusted = trusted, .now = now };
    wg_status s = wg_jinja_open(&t, "t.jinja", text, strlen(text), err);
    if (!s) {
        s = wg_jinja_render(t, &in, out, err);
        wg_jinja_close(t);
    }
    json_decref(trusted);
    return s;
}

Test(jinja, prints_what_jinja2_prints)
{
    const char *root = getenv("WG_ROOT");
    char path[512];
    wg_json *doc;
    wg_error err;
    size_t i;
    json_t *row;
    snprintf(path, sizeof path, "%s/tests/golden/templates/own.json", root ? root : ".");
    cr_assert_eq(wg_json_open(&doc, path, &err), WG_OK, "%s", err.text);
    const json_t *data = json_object_get(wg_json_root(doc), "variables"),
                 *rows = json_object_get(wg_json_root(doc), "templates");
    cr_assert_gt(json_array_size(rows), 500);
    json_array_foreach((json_t *)(uintptr_t)rows, i, row) {
        const char *text = json_string_value(json_array_get(row, 0));
        const json_t *want = json_array_get(row, 1);
        wg_rendered r = { 0 };
        const wg_status s = render(text, data, &today, &r, &err);
        if (json_is_null(want)) cr_expect_neq(s, WG_OK, "%s\nprints \"%s\" and is refused by jinja2", text, r.text);
        else if (s) cr_expect_fail("%s\n%s", text, err.text);
        else
            cr_expect(r.n == json_string_length(want) && memcmp(r.text, json_string_value(want), r.n) == 0,
                      "%s\nprints \"%s\" instead of \"%s\"", text, r.text, json_string_value(want));
        wg_rendered_free(&r);
    }
    wg_json_close(doc);
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}

/* ---- messages */

static const struct {
    const char *text, *message; /* behind "t.jinja, line " */
} refused[] = {
    { "a\n  {{ 1 + }}", "2, column 10: found }}, expected an expression" },
    { "{% if x %}a", "1, column 12: found the end of the template, expected {% elif %} or {% else %} or {% endif %}" },
    { "{{ a b }}", "1, column 6: found 'b', expected }}" },
    { "{% for 1 in a %}", "1, column 8: found a number, expected a name" },
    { "{% for x of a %}", "1, column 10: found 'of', expected 'in'" },
    { "{{ f(1 2) }}", "1, column 8: found a number, expected ','" },
    { "{{ 'a' == }}x", "1, column 11: found }}, expected an expression" },
    { "{% set x = == %}", "1, column 12: found '==', expected an expression" },
    { "{% if 'a' 'b' x %}", "1, column 15: found 'x', expected %}" },
    { "{{ a. 'x' }}", "1, column 7: found a text, expected a name" },
    { "{% if a", "1, column 1: {% never ends: expected %}" },
    { "x{{ a", "1, column 2: {{ never ends: expected }}" },
    { "{# a", "1, column 1: a comment begins here and never ends: expected #}" },
    { "{% raw %}", "1, column 1: a raw block begins here and never ends: expected {% endraw %}" },
    { "{{ 'abc }}", "1, column 4: a text begins here and never ends: expected its closing quote" },
    { "{{ '\\xq' }}", "1, column 7: expected hexadecimal digits after \\x, \\u or \\U" },
    { "{{ '\\ud800' }}", "1, column 7: a character above 10FFFF or half of a surrogate pair" },
    { "{{ '\\N{DASH}' }}", "1, column 6: characters by name (\\N{...}) are not implemented" },
    { "{{ 99999999999999999999 }}", "1, column 4: a number outside the range of 64-bit integers and doubles" },
    { "{{ $ }}", "1, column 4: a character that begins no part of an expression" },
    { "{{ ] }}", "1, column 4: a closing bracket that matches no open one" },
    { "{% include 'x' %}",
      "1, column 4: the statement 'include' is not implemented: a chat template is one text without others" },
    { "{% for x in a %}{% endif %}{% endfor %}",
      "1, column 20: found the tag 'endif', expected for, if, set, macro, call, filter, with, generation, break, continue or "
      "raw, or 'else' or 'endfor'" },
    { "{% break %}", "1, column 4: 'break' outside a loop" },
    { "{% call x %}{% endcall %}", "1, column 9: expected the call of a macro after 'call'" },
    { "{{ f(*a) }}", "1, column 6: '*' and '**' in the arguments of a call are not implemented" },
    { "{{ f(1,2,3,4,5,6,7,8,9) }}", "1, column 23: found ')', expected at most 8 arguments" },
    { "{% macro f(a,b,c,d,e,f,g,h,i) %}{% endmacro %}", "1, column 29: found ')', expected at most 8 parameters" },
    { "{{ a[1,2] }}", "1, column 7: found ',', expected ']' (an index of several parts is not implemented)" },
    { "{{ a is b is c }}", "1, column 11: found 'is', expected one test after 'is', not a chain of them" },
    { "{{ x.y }}", "1, column 5: 'x' is undefined, so 'y' cannot be read from it" },
    { "{{ x[0] }}", "1, column 5: 'x' is undefined, and an element of it is asked" },
    { "{{ x() }}", "1, column 5: 'x' is undefined, and is called" },
    { "{{ x[1:] }}", "1, column 5: 'x' is undefined, and is sliced" },
    { "{{ x + 1 }}", "1, column 6: 'x' is undefined, and is an operand of '+'" },
    { "{{ x < 1 }}", "1, column 4: 'x' is undefined, and is compared" },
    { "{{ x in 'a' }}", "1, column 4: 'x' is undefined, and is looked for in a text" },
    { "{{ x|tojson }}", "1, column 5: 'x' is undefined, and is written as JSON" },
    { "{{ x|int }}", "1, column 5: 'x' is undefined, and is converted to a number" },
    { "{{ 'a'.replace(x, 'b') }}", "1, column 15: 'x' is undefined, and is the old text of 'replace'" },
    { "{{ d.k.l }}", "1, column 7: the dict has no 'k', so 'l' cannot be read from it" },
    { "{{ a[9].b }}", "1, column 8: the list has no element 9, so 'b' cannot be read from it" },
    { "{{ d[1].b }}", "1, column 8: the dict has no such element, so 'b' cannot be read from it" },
    { "{{ (1 if false).x }}",
      "1, column 16: the inline if without else was false, so its value is undefined, so 'x' cannot be read from it" },
    { "{{ d[:1].b }}", "1, column 9: a slice of a dict is undefined, so 'b' cannot be read from it" },
    { "{{ a.append(1) }}", "1, column 12: access to 'append' of a list is refused, as in Jinja's sandbox, and is called" },
    { "{{ [].nope.x }}", "1, column 11: the list has no 'nope', so 'x' cannot be read from it" },
    { "{{ 1() }}", "1, column 5: a int is called, expected a function, a method or a macro" },
    { "{{ 1 + 'a' }}", "1, column 6: '+' between a int and a str" },
    { "{{ 1 // 0 }}", "1, column 6: division by zero" },
    { "{{ 9223372036854775807 + 1 }}", "1, column 24: an integer outside the range of 64 bits" },
    { "{{ '%d' % 'a' }}", "1, column 9: '%d' expects a number, found a str" },
    { "{{ '%q' % 1 }}", "1, column 9: a conversion after '%' other than s, d, i, x, f, e, g and % is not implemented" },
    { "{{ '%s' % () }}", "1, column 9: fewer values than conversions of '%'" },
    { "{{ '%s' % (1, 2) }}", "1, column 9: more values than conversions of '%'" },
    { "{{ '%999d' % 1 }}", "1, column 12: a width or precision of more than two digits after '%'" },
    { "{{ '%9s' % u }}",
      "1, column 10: a width of '%s' is not implemented for texts of the data, long ones or other than ASCII" },
    { "{{ a['x':] }}", "1, column 5: a bound of a slice is a str, expected an integer" },
    { "{{ a[::0] }}", "1, column 5: a slice with step 0" },
    { "{{ [] < {} }}", "1, column 4: a list and a dict have no order" },
    { "{{ 1 in 'a' }}", "1, column 4: a int cannot be in a text; expected a text on the left of 'in'" },
    { "{% for x in 1 %}{% endfor %}", "1, column 13: a int cannot be iterated over" },
    { "{{ {[]: 1} }}", "1, column 9: a list cannot be a key" },
    { "{{ d.items() }}", "1, column 11: a dict view has no text; expected a text, a number, a list or a dict" },
    { "{{ range|tojson }}", "1, column 9: a function cannot be written as JSON" },
    { "{{ {(1,): 1}|tojson }}", "1, column 13: a tuple cannot be a key of JSON" },
    { "{{ a|tojson(separators=[1]) }}", "1, column 5: separators of tojson: expected two texts" },
    { "{% set x, y = 1, 2, 3 %}", "1, column 8: 3 values for 2 names" },
    { "{% set u.x = 1 %}", "1, column 8: an attribute is set on a str; expected a namespace()" },
    { "{% set n = namespace() %}{% set n._x = 1 %}",
      "1, column 33: an attribute of a namespace that begins with an underscore" },
    { "{{ namespace(_x=1) }}", "1, column 13: an attribute of a namespace that begins with an underscore" },
    { "{{ namespace(1) }}", "1, column 13: 'namespace' with a int; expected a dict or keyword arguments" },
    { "{% for x in a %}{{ loop(a) }}{% endfor %}",
      "1, column 24: loop() is called with 1 arguments; expected one, in a loop that is marked 'recursive'" },
    { "{% for x in a %}{{ loop.cycle() }}{% endfor %}", "1, column 30: loop.cycle() without arguments" },
    { "{% for x in a %}{{ loop.q.r }}{% endfor %}", "1, column 26: the loop has no 'q', so 'r' cannot be read from it" },
    { "{% for x in a %}{{ loop.previtem.r }}{% endfor %}",
      "1, column 33: the first element of a loop has no loop.previtem, so 'r' cannot be read from it" },
    { "{% for x in [1] %}{{ loop.nextitem.r }}{% endfor %}",
      "1, column 35: the last element of a loop has no loop.nextitem, so 'r' cannot be read from it" },
    { "{% macro f(a) %}{{ a.b }}{% endmacro %}{{ f() }}",
      "1, column 21: the argument 'a' was not given, so 'b' cannot be read from it" },
    { "{% macro f(a) %}{% endmacro %}{{ f(b=1) }}", "1, column 35: the macro has no argument 'b'" },
    { "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "1, column 35: the macro is called with too many arguments" },
    { "{% call range(1) %}{% endcall %}", "1, column 4: 'call' with a function; expected a macro, with at most 7 arguments" },
    { "{{ range() }}", "1, column 9: 'range' needs the argument 'from'" },
    { "{{ u|upper(1) }}", "1, column 5: 'upper' has more arguments than its parameters (value)" },
    { "{{ range('a') }}", "1, column 9: an argument of 'range' is a str, expected an integer" },
    { "{{ range(1, 2, 0) }}", "1, column 9: range() with step 0" },
    { "{{ range(1000000) }}", "1, column 9: range() of more than 100000 numbers" },
    { "{{ joiner }}", "1, column 4: 'joiner' of Jinja is not implemented" },
    { "{{ 'a'.find(1) }}", "1, column 12: the text to find of 'find' is a int, expected a text" },
    { "{{ 'a'.split('') }}", "1, column 13: 'split' with an empty separator" },
    { "{{ 'a'.partition('') }}", "1, column 17: 'partition' with an empty separator" },
    { "{{ 'a'.rsplit(none, 1) }}", "1, column 14: 'rsplit' with a limit needs a separator" },
    { "{{ 'a'.startswith(1) }}", "1, column 18: 'startswith' and 'endswith' expect a text or a tuple of texts, found a int" },
    { "{{ 'a'.index('b') }}", "1, column 13: 'index' of something that is not there" },
    { "{{ 'a'.join([1]) }}", "1, column 12: 'join' of a int, expected texts" },
    { "{{ 'a'.zfill(3) }}", "1, column 13: the text method 'zfill' is not implemented" },
    { "{{ u|nope }}", "1, column 5: there is no filter 'nope'" },
    { "{{ u is nope }}", "1, column 6: there is no test 'nope'" },
    { "{{ none|length }}", "1, column 8: a None has no length; expected a text, a list or a dict" },
    { "{{ (a|first).x.y }}", "1, column 15: the int has no 'x', so 'y' cannot be read from it" },
    { "{{ ([]|first).x }}", "1, column 14: the first of no elements is undefined, so 'x' cannot be read from it" },
    { "{{ ([]|last).x }}", "1, column 13: the last of no elements is undefined, so 'x' cannot be read from it" },
    { "{{ ([]|max).x }}", "1, column 12: the extreme of no elements is undefined, so 'x' cannot be read from it" },
    { "{{ a|items }}", "1, column 5: 'items' of a list, expected a dict" },
    { "{{ a|sort(attribute='x,y') }}", "1, column 5: 'sort' by several attributes is not implemented" },
    { "{{ a|map }}", "1, column 5: 'map' needs the name of a filter, or attribute=..." },
    { "{{ a|map(1) }}", "1, column 5: 'map' expects the name of a filter, test or attribute" },
    { "{{ a|selectattr }}", "1, column 5: 'selectattr' needs the name of an attribute" },
    { "{{ (d|attr('x')).y }}", "1, column 17: a dict has no attribute 'x', so 'y' cannot be read from it" },
    { "{{ a|batch(0) }}", "1, column 5: 'batch' in lists of fewer than one element" },
    { "{{ '{'.format(1) }}", "1, column 14: 'format' of a text with a single brace" },
    { "{{ '{0} {}'.format(1) }}", "1, column 19: 'format' with fields that have a number and some that have none" },
    { "{{ '{x}'.format(1) }}", "1, column 16: 'format' has no argument for the field {x}" },
    { "{{ '{0.k}'.format(u) }}", "1, column 18: 'format' with the field {0.k} is not implemented" },
    { "{{ '{:>9}'.format(u) }}", "1, column 18: 'format' with the form '>9' of a field is not implemented" },
    { "{{ u|format(x=1) }}", "1, column 5: 'format' with keyword arguments is not implemented" },
    { "{{ u|int(0, 99) }}", "1, column 5: 'int' with a base that is not 0 or 2 to 36" },
    { "{{ u|round }}", "1, column 5: 'round' of a str, expected a number" },
    { "{{ 1.5|round(1, 'x') }}", "1, column 7: 'round': expected the method common, ceil or floor" },
    { "{{ 1.5|round(-1) }}", "1, column 7: 'round' to fewer than 0 or more than 300 digits" },
    { "{{ raise_exception('only ' ~ u) }}", "1, column 19: the template refuses: only text" },
    { "{{ strftime_now('%Y') }}", "1, column 16: 'strftime_now' is undefined, and is called" },
};

Test(jinja, every_message)
{
    json_t *data = json_pack("{s:[i,i], s:{s:i}, s:s}", "a", 1, 2, "d", "x", 1, "u", "text");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char want[600];
        wg_rendered r = { 0 };
        wg_error err = { 0 };
        snprintf(want, sizeof want, "t.jinja, line %s", refused[i].message);
        cr_expect_neq(render(refused[i].text, data, NULL, &r, &err), WG_OK, "%s prints \"%s\"", refused[i].text, r.text);
        cr_expect_str_eq(err.text, want, "%s\n  %s\ninstead of\n  %s", refused[i].text, err.text, want);
        wg_rendered_free(&r);
    }
    json_decref(data);
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}

/* ---- marks */

static const struct {
    const char *text, *prints, *marks; /* marks: 1 for a byte of the data */
} marked[] = {
    { "<{{ u }}>", "<t<|x>", "011110" },
    { "{{ '<|' + r + '|>' }}", "<|user|>", "00000000" },
    { "{{ '<|' + b + '|>' }}", "<|boss|>", "00111100" },
    { "{{ bos_token ~ u[1:] ~ eos_token }}", "<s><|x</s>", "0001110000" },
    { "{{ u|upper }}{{ u|replace('t', '-') }}{{ u|trim }}", "T<|X-<|xt<|x", "111101111111" },
    { "{{ u.split('<')|join('.') }}", "t.|x", "1011" },
    { "{{ [u]|string }}{{ [u]|tojson }}", "['t<|x'][\"t<|x\"]", "0011110000111100" },
    { "{% set x %}a{{ u }}{% endset %}{{ x[::-1] }}", "x|<ta", "11110" },
    { "{% macro f(a) %}({{ a }}){% endmacro %}{{ f(u)|indent(1, true) }}", " (t<|x)", "0011110" },
    { "{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %}", "key=7", "11100" },
    { "{% for c in u %}{{ c }}-{% endfor %}", "t-<-|-x-", "10101010" },
    { "{{ '%s:%s' % ('a', u) }}{{ 'x' if u == 't<|x' }}", "a:t<|xx", "0011110" },
    { "{{ (u|e) ~ ('a' * 2) ~ u|length }}", "t&lt;|xaa4", "1111111000" },
    { "{{ {'a': u}.a ~ (u, 'b')|last ~ ([u, 'z']|sort|first) }}", "t<|xbt<|x", "111101111" },
    { "{{ m[0].content ~ m[0].role }}", "hiuser", "110000" },
};

/* Bytes of the data stay marked through methods, filters and macros; well-known roles and numbers are not marked. */
Test(jinja, bytes_of_the_data_are_marked)
{
    json_t *data = json_pack("{s:s, s:s, s:{s:i}, s:[{s:s, s:s}], s:{s:s}}", "u", "t<|x", "b", "boss", "d", "key", 7, "m",
                             "content", "hi", "role", "user", "box", "role", "boss");
    json_object_set_new(data, "role", json_string("user"));
    for (size_t i = 0; i < sizeof marked / sizeof *marked; i++) {
        char text[300], marks[64];
        wg_rendered r = { 0 };
        wg_error err = { 0 };
        snprintf(text, sizeof text, "{%% set r = m[0].role %%}%s", marked[i].text);
        cr_assert_eq(render(text, data, NULL, &r, &err), WG_OK, "%s", err.text);
        for (size_t k = 0; k < r.n && k + 1 < sizeof marks; k++) marks[k] = r.data[k] ? '1' : '0';
        marks[r.n < sizeof marks ? r.n : sizeof marks - 1] = '\0';
        cr_expect_str_eq(r.text, marked[i].prints, "%s prints %s", marked[i].text, r.text);
        cr_expect_str_eq(marks, marked[i].marks, "%s prints %s marked %s", marked[i].text, r.text, marks);
        wg_rendered_free(&r);
    }
    wg_rendered r = { 0 };
    cr_assert_eq(render("{{ box.role }}", data, NULL, &r, NULL), WG_OK);
    cr_assert(r.n == 4 && r.data[0] == 1 && r.data[3] == 1); /* a role by another name is data */
    wg_rendered_free(&r);
    json_decref(data);
}

/* ---- limits */

static const struct {
    const char *text, *message;
} endless[] = {
    { "{% for i in range(90000) %}{% for k in range(90000) %}{{ k }}{% endfor %}{% endfor %}",
      "line 1, column 35: more than 256 MB of memory are needed" },
    { "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "more than 600 levels of nesting; does a macro of the template call itself without end?" },
    { "{% set n = namespace(x=[]) %}{% for i in range(2000) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}",
      "more than 600 levels of nesting; does a macro of the template call itself without end?" },
    { "{{ 'abcdefgh' * 9000000 }}", "a text of more than 64 MB" },
    { "{{ [1] * 900000000 }}", "the template takes more than 52428800 steps; does a loop of it never end?" },
};

Test(jinja, hostile_templates_end_with_a_message)
{
    json_t *data = json_object();
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        wg_rendered r = { 0 };
        wg_error err = { 0 };
        cr_expect_eq(render(endless[i].text, data, NULL, &r, &err), WG_EMODEL, "%s", endless[i].text);
        cr_expect(strstr(err.text, endless[i].message), "%s\n%s", endless[i].text, err.text);
    }
    char deep[4096];
    const int levels = 2000;
    memset(deep, '(', (size_t)levels);
    memcpy(deep, "{{ ", 3);
    deep[levels] = '\0';
    wg_error err = { 0 };
    wg_jinja *t;
    cr_assert_eq(wg_jinja_open(&t, "t.jinja", deep, (size_t)levels, &err), WG_EMODEL);
    cr_assert(strstr(err.text, "more than 64 open brackets"), "%s", err.text);
    *deep = '\0';
    for (int i = 0; i < 200; i++) strcat(deep, "{% if a %}");
    cr_assert_eq(wg_jinja_open(&t, "t.jinja", deep, strlen(deep), &err), WG_EMODEL);
    cr_assert(strstr(err.text, "more than 100 levels of brackets and blocks"), "%s", err.text);
    char *large = wg_calloc(2 << 20, 1);
    cr_assert_eq(wg_jinja_open(&t, "t.jinja", large, 2 << 20, &err), WG_EMODEL);
    cr_assert(strstr(err.text, "2097152 bytes of a chat template; at most 1048576 are read"), "%s", err.text);
    wg_free(large);
    cr_assert_eq(wg_jinja_open(&t, "t.jinja", "a\xff", 2, &err), WG_EMODEL);
    cr_assert(strstr(err.text, "line 1, column 2: the template is no UTF-8 text"), "%s", err.text);
    cr_assert_eq(render("{{ strftime_now('%Y' * 999) }}", data, &today, &(wg_rendered){ 0 }, &err), WG_EMODEL);
    cr_assert(strstr(err.text, "a format of dates of more than 255 bytes, or with a NUL"), "%s", err.text);
    json_decref(data);
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}

/* A megabyte with a line end in every ten bytes is an ordinary message. */
Test(jinja, long_messages_are_no_hostile_ones)
{
    enum { BYTES = 1 << 20 };
    static const char text[] =
        "{{ (u.split('\\n')|length) ~ (u|replace('\\n', '')|length) ~ (u|trim|length) ~ u.count('\\n') }}"
        "{{ u|indent|length }}{{ (u|tojson)|length }}";
    char *u = wg_alloc(BYTES, 1);
    for (size_t i = 0; i < BYTES; i++) u[i] = i % 10 == 9 ? '\n' : 'a';
    json_t *data = json_pack("{s:s%}", "u", u, (size_t)BYTES);
    wg_rendered r;
    wg_error err;
    cr_assert_eq(render(text, data, NULL, &r, &err), WG_OK, "%s", err.text);
    cr_assert_str_eq(r.text, "104858943719104857610485714680041153435");
    wg_rendered_free(&r);
    wg_free(u);
    json_decref(data);
}

Test(jinja, survives_failing_allocations)
{
    json_t *data = json_pack("{s:[i,i,i], s:s}", "a", 1, 2, 3, "u", "text");
    wg_status s = WG_ENOMEM;
    uint64_t nth = 1;
    for (; s != WG_OK && nth < 100; nth++) {
        wg_rendered r = { 0 };
        wg_error err = { 0 };
        wg_mem_fail_at(nth, false);
        s = render("{% for x in a %}{{ u|upper }}{{ [x, u]|tojson * 3000 }}{% endfor %}", data, NULL, &r, &err);
        wg_mem_fail_at(0, false);
        cr_assert(s == WG_OK || (s == WG_ENOMEM && strstr(err.text, "out of memory")), "%s", err.text);
        wg_rendered_free(&r);
        cr_assert_eq(wg_mem_read().live_blocks, 0);
    }
    cr_assert(nth > 6 && nth < 100);
    json_decref(data);
}
