/* SPDX-License-Identifier: MIT */
#include "core/base/option.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "core/base/number.h"

typedef struct knobs {
    int k, any;
    double p_min, width;
    bool greedy;
    char file[WG_OPTION_STRING];
    int rule;
} knobs;

static const char *const rules[] = { "greedy", "match", "rejection", NULL };
static const wg_option table[] = {
    WG_OPTION_INT(knobs, k, 8, 1, 64, "tokens per draft"),
    WG_OPTION_INT(knobs, any, -3, INT_MIN, INT_MAX, "any number"),
    WG_OPTION_FLOAT(knobs, p_min, 0.3, 0, 1, "least probability"),
    WG_OPTION_FLOAT(knobs, width, 2, 0, INFINITY, "width"),
    WG_OPTION_BOOL(knobs, greedy, 1, "take the best"),
    WG_OPTION_STR(knobs, file, "none", "a file"),
    WG_OPTION_ENUM(knobs, rule, 1, rules, "a rule"),
    WG_OPTION_END,
};

static void expect_fail(const char *name, const char *value, const char *text)
{
    knobs o, before;
    wg_error err;
    memset(&o, 0, sizeof o);
    wg_option_defaults(table, &o);
    before = o;
    cr_assert_eq(wg_option_set(table, &o, name, value, &err), WG_EINVAL, "%s=%s", name, value);
    cr_assert_str_eq(err.text, text);
    cr_assert_eq(memcmp(&o, &before, sizeof o), 0, "the struct changed");
}

Test(option, defaults)
{
    knobs o;
    wg_option_defaults(table, &o);
    cr_assert(o.k == 8 && o.any == -3 && o.p_min == 0.3 && o.width == 2 && o.greedy && o.rule == 1);
    cr_assert_str_eq(o.file, "none");
    wg_option_defaults(NULL, NULL);
    cr_assert_null(wg_option_find(NULL, "k"));
    cr_assert_eq(wg_option_find(table, "rule"), &table[6]);
}

/* A number of which some values have words. */
Test(option, count)
{
    typedef struct counts {
        int turns;
    } counts;
    static const char *const words[] = { "all", "first", NULL };
    static const wg_option table[] = { WG_OPTION_COUNT(counts, turns, 1, 0, 9, words, "turns"), WG_OPTION_END };
    counts o;
    wg_error err;
    char text[64];
    wg_option_defaults(table, &o);
    cr_assert_eq(o.turns, 1);
    cr_assert_eq(wg_option_set(table, &o, "turns", "all", &err), WG_OK);
    cr_assert_eq(o.turns, 0);
    cr_assert_eq(wg_option_set(table, &o, "turns", "7", &err), WG_OK);
    cr_assert_eq(o.turns, 7);
    cr_assert_eq(wg_option_set(table, &o, "turns", "first", &err), WG_OK);
    cr_assert_eq(o.turns, 1);
    cr_assert_str_eq(wg_option_value(table, &o, text, sizeof text), "1");
    cr_assert_eq(wg_option_set(table, &o, "turns", "frist", &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "option 'turns' = 'frist': expected integer 0..9, all or first; did you mean 'first'?");
    cr_assert_eq(wg_option_set(table, &o, "turns", "10", &err), WG_EINVAL);
    cr_assert_eq(o.turns, 1);
}

Test(option, set)
{
    knobs o;
    wg_option_defaults(table, &o);
    cr_assert_eq(
        wg_option_set_list(table, &o, sizeof o, "k=64,p_min=1e-2,greedy=false,file=a b=c,rule=rejection,any=-2147483648", NULL),
        WG_OK);
    cr_assert(o.k == 64 && o.p_min == 0.01 && !o.greedy && o.rule == 2 && o.any == INT_MIN);
    cr_assert_str_eq(o.file, "a b=c");
    cr_assert_eq(wg_option_set_list(table, &o, sizeof o, "", NULL), WG_OK);
    cr_assert_eq(wg_option_set_list(NULL, NULL, 0, "", NULL), WG_OK);
    cr_assert_eq(wg_option_set(table, &o, "k", "1e1", NULL), WG_OK);
    cr_assert_eq(o.k, 10);
}

Test(option, errors_say_what_was_expected)
{
    expect_fail("k", "65", "option 'k' = '65': expected integer 1..64");
    expect_fail("k", "1.5", "option 'k' = '1.5': expected integer 1..64");
    expect_fail("k", "", "option 'k' = '': expected integer 1..64");
    expect_fail("k", "3x", "option 'k' = '3x': expected integer 1..64");
    expect_fail("k", " 3", "option 'k' = ' 3': expected integer 1..64");
    expect_fail("k", "0x3", "option 'k' = '0x3': expected integer 1..64");
    expect_fail("any", "2147483648", "option 'any' = '2147483648': expected integer");
    expect_fail("p_min", "1.01", "option 'p_min' = '1.01': expected number 0..1");
    expect_fail("p_min", "nan", "option 'p_min' = 'nan': expected number 0..1");
    expect_fail("p_min", "0,5", "option 'p_min' = '0,5': expected number 0..1");
    expect_fail("width", "-1", "option 'width' = '-1': expected number >= 0");
    expect_fail("width", "1e999", "option 'width' = '1e999': expected number >= 0");
    expect_fail("greedy", "yes", "option 'greedy' = 'yes': expected true or false");
    expect_fail("rule", "rejecton",
                "option 'rule' = 'rejecton': expected one of: greedy, match, rejection; did you mean 'rejection'?");
    expect_fail("rule", "zzz", "option 'rule' = 'zzz': expected one of: greedy, match, rejection");
    expect_fail("pmin", "1", "unknown option 'pmin'; did you mean 'p_min'?; known: k, any, p_min, width, greedy, file, rule");
    expect_fail("temperature", "1", "unknown option 'temperature'; known: k, any, p_min, width, greedy, file, rule");
    char big[WG_OPTION_STRING + 1];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    knobs o;
    wg_error err;
    wg_option_defaults(table, &o);
    cr_assert_eq(wg_option_set(table, &o, "file", big, &err), WG_EINVAL);
    cr_assert_str_eq(o.file, "none");
    big[sizeof big - 2] = '\0';
    cr_assert_eq(wg_option_set(table, &o, "file", big, &err), WG_OK);
    cr_assert_eq(wg_option_set_list(table, &o, sizeof o, "k=3,oops", &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "option list 'k=3,oops': 'oops' is not of the form name=value");
    cr_assert_eq(o.k, 3);
    cr_assert_eq(wg_option_set(NULL, &o, "k", "3", &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "unknown option 'k'; there are no options here");
}

Test(option, numbers_from_json)
{
    knobs o;
    wg_error err;
    wg_option_defaults(table, &o);
    cr_assert_eq(wg_option_set_number(table, &o, "k", 5, true, &err), WG_OK);
    cr_assert_eq(wg_option_set_number(table, &o, "k", 5, false, &err), WG_EINVAL); /* 5.0 */
    cr_assert_eq(wg_option_set_number(table, &o, "k", 65, true, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "option 'k' = '65': expected integer 1..64");
    cr_assert_eq(wg_option_set_number(table, &o, "p_min", 0.25, false, &err), WG_OK);
    cr_assert_eq(wg_option_set_number(table, &o, "p_min", 1, true, &err), WG_OK);
    cr_assert_eq(wg_option_set_number(table, &o, "p_min", NAN, false, &err), WG_EINVAL);
    cr_assert_eq(wg_option_set_number(table, &o, "greedy", 0, true, &err), WG_OK);
    cr_assert_eq(wg_option_set_number(table, &o, "greedy", 2, true, &err), WG_EINVAL);
    cr_assert_eq(wg_option_set_number(table, &o, "file", 2, true, &err), WG_EINVAL);
    cr_assert(o.k == 5 && o.p_min == 1 && !o.greedy);
}

Test(option, values_as_text_read_back)
{
    knobs o, back;
    char buf[WG_OPTION_STRING];
    wg_option_defaults(table, &o);
    o.p_min = 1.0 / 3;
    wg_option_defaults(table, &back);
    for (const wg_option *r = table; r->name; r++)
        cr_assert_eq(wg_option_set(table, &back, r->name, wg_option_value(r, &o, buf, sizeof buf), NULL), WG_OK);
    cr_assert(back.k == o.k && back.p_min == o.p_min && back.rule == o.rule && back.greedy == o.greedy);
    cr_assert_str_eq(wg_option_value(&table[2], &o, buf, sizeof buf), "0.3333333333333333");
}

Test(option, nearest)
{
    static const char *const words[] = { "temperature", "top_k", "top_p", "min_p", NULL };
    cr_assert_str_eq(wg_nearest("tmeperature", words), "temperature"); /* a swap is one edit */
    cr_assert_str_eq(wg_nearest("temprature", words), "temperature");
    cr_assert_str_eq(wg_nearest("topk", words), "top_k");
    cr_assert_str_eq(wg_nearest("top_", words), "top_k"); /* the first of equals */
    cr_assert_null(wg_nearest("tempo", words));
    cr_assert_str_eq(wg_nearest("temp", words), "temperature"); /* a beginning */
    cr_assert_str_eq(wg_nearest("min_p_after", words), "min_p");
    cr_assert_null(wg_nearest("to", words)); /* too short for one */
    cr_assert_null(wg_nearest("", words));
    cr_assert_null(wg_nearest("abc", words));
    cr_assert_null(wg_nearest("abc", NULL));
    char big[200];
    memset(big, 'a', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    cr_assert_null(wg_nearest(big, words));
}

Test(option, a_struct_too_small_for_its_table_is_a_bug, .signal = 6)
{
    wg_option_set_list(table, &(knobs){ 0 }, 8, "k=3", NULL);
}

Test(option, number_text_is_short_and_exact_in_any_locale)
{
    static const struct {
        double v;
        const char *text;
    } row[] = {
        { 0, "0" },
        { -0.0, "-0" },
        { 0.1, "0.1" },
        { 1.0 / 3, "0.3333333333333333" },
        { 1e-7, "1e-07" },
        { 2e20, "2e+20" },
        { 5e-324, "4.94065645841247e-324" },
        { 1.7976931348623157e308, "1.7976931348623157e+308" },
        { 123456789, "123456789" },
    };
    char buf[WG_NUMBER_TEXT];
    double back;
    for (int locale = 0; locale < 2; locale++) {
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
            cr_assert_str_eq(wg_number_text(row[i].v, buf, sizeof buf), row[i].text);
            cr_assert(wg_number_parse(buf, &back) && back == row[i].v);
        }
        if (!setlocale(LC_ALL, "de_DE.UTF-8")) break; /* the machine has no locale with a decimal comma */
    }
    uint64_t s = 88172645463325252u;
    for (int i = 0; i < 200000; i++) {
        s ^= s << 13, s ^= s >> 7, s ^= s << 17;
        double v;
        memcpy(&v, &s, sizeof v);
        if (!isfinite(v)) continue;
        cr_assert(wg_number_parse(wg_number_text(v, buf, sizeof buf), &back) && back == v, "%a", v);
    }
}

Test(number, list)
{
    double v[3] = { 0 };
    cr_assert(wg_number_list("0.5/1/0.25", "/", 0, 1, v, 3) == 3 && v[0] == 0.5 && v[1] == 1 && v[2] == 0.25);
    cr_assert(wg_number_list("7", ",", 0, 9, v, 3) == 1 && v[0] == 7);
    static const char *const bad[] = { "", "/", "0.5/", "/0.5", "0.5//1", "0.5/x", "0.5/1.5", "-1", "0/0/0/0", "0.5 /1" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(wg_number_list(bad[i], "/", 0, 1, v, 3), -1, "%s", bad[i]);
    char longer[100];
    memset(longer, '0', sizeof longer);
    longer[99] = '\0';
    cr_assert_eq(wg_number_list(longer, "/", 0, 1, v, 3), -1);
}
