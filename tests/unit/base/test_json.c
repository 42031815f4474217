/* SPDX-License-Identifier: MIT */
#include "core/base/json.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "core/base/mem.h"
#include "tests/temp.h"

static void *mem_alloc(size_t n) { return wg_alloc(n, 1); }

/* jansson's own blocks pass the door too, so that leaks and failures of its allocations are seen. */
static void setup(void) { json_set_alloc_funcs(mem_alloc, wg_free); }

TestSuite(json, .init = setup);

static wg_json *parse(const char *text)
{
    wg_json *doc = NULL;
    wg_error err;
    const wg_status s = wg_json_parse(&doc, "t.json", text, strlen(text), &err);
    cr_assert_eq(s, WG_OK, "%s", s ? err.text : "");
    return doc;
}

static void expect_error(const char *text, size_t n, const char *message)
{
    wg_json *doc;
    wg_error err;
    const size_t live = wg_mem_read().live_blocks;
    cr_assert_eq(wg_json_parse(&doc, "t.json", text, n, &err), WG_EFORMAT, "%s", text);
    cr_assert_str_eq(err.text, message);
    cr_assert_eq(wg_mem_read().live_blocks, live);
}

Test(json, malformed_text_is_located)
{
    expect_error("", 0, "t.json:1:1: '[' or '{' expected near end of file");
    expect_error("{\n  \"a\": 1,\n}", 13, "t.json:3:1: string or '}' expected near '}'");
    expect_error("{\"a\": 1, \"a\": 2}", 16, "t.json:1:12: duplicate object key near '\"a\"'");
    expect_error("[1] x", 5, "t.json:1:5: end of file expected near 'x'");
    expect_error("[\"\xff\"]", 5, "t.json:1:2: unable to decode byte 0xff near '\"'");
    expect_error("{\n \"a\": 1\0}", 12, "t.json:2:8: a NUL byte; is this a text file?");
    wg_json *doc;
    wg_error err;
    cr_assert_eq(wg_json_open(&doc, "/nowhere/x.json", &err), WG_ENOENT);
    cr_assert_str_eq(err.text, "/nowhere/x.json: there is no such file");
}

static void expect_at(const wg_json *doc, const char *path, bool key, int line, int column)
{
    int l = 0, c = 0;
    cr_assert(wg_json_where(doc, path, key, &l, &c), "%s", path);
    cr_assert(l == line && c == column, "%s (%s): %d:%d", path, key ? "key" : "value", l, c);
}

static wg_status parse_foreign(wg_json **out, const char *text, wg_error *err)
{
    return wg_json_parse_foreign(out, "t.json", text, strlen(text), err);
}

/* Only integers beyond 64 bits are reals, only in foreign texts, and places are those of the text. */
Test(json, wide_integers_of_others_are_reals)
{
    static const char text[] =
        "{\"max\": 1000000000000000019884624838656, \"seed\": 9223372036854775807, \"low\": -9223372036854775808,\n"
        " \"a\": [9223372036854775808,-9223372036854775809, 9223372036854775808.0, 12345678901234567890e1, 0],\n"
        " \"1\\\"9999999999999999999999\": \"99999999999999999999\"}";
    wg_json *doc;
    wg_error err;
    const size_t live = wg_mem_read().live_blocks;
    expect_error(text, sizeof text - 1, "t.json:1:39: too big integer");
    expect_error("[-9223372036854775809]", 22, "t.json:1:21: too big negative integer near '-9223372036854775809'");
    cr_assert_eq(parse_foreign(&doc, text, &err), WG_OK, "%s", err.text);
    const json_t *root = wg_json_root(doc), *a = json_object_get(root, "a"), *max = json_object_get(root, "max");
    cr_assert(json_is_real(max) && json_real_value(max) == 1e30);
    cr_assert(json_is_integer(json_object_get(root, "seed")) && json_is_integer(json_object_get(root, "low")));
    cr_assert_eq(json_integer_value(json_object_get(root, "seed")), INT64_MAX);
    cr_assert_eq(json_integer_value(json_object_get(root, "low")), INT64_MIN);
    cr_assert(json_is_real(json_array_get(a, 0)) && json_real_value(json_array_get(a, 0)) == 0x1p63);
    cr_assert(json_is_real(json_array_get(a, 1)) && json_real_value(json_array_get(a, 1)) == -0x1p63);
    cr_assert(json_real_value(json_array_get(a, 2)) == 0x1p63 &&
              json_real_value(json_array_get(a, 3)) == 123456789012345678900.0);
    cr_assert(json_is_integer(json_array_get(a, 4)));
    cr_assert_str_eq(json_string_value(json_object_get(root, "1\"9999999999999999999999")), "99999999999999999999");
    expect_at(doc, "seed", true, 1, 42);
    expect_at(doc, "a[1]", false, 2, 28);
    wg_json_close(doc);
    static const struct {
        const char *text, *message;
    } row[] = {
        { "[9223372036854775808, 9223372036854775808, x]", "t.json:1:44: invalid token near 'x'" },
        { "[9223372036854775808,\n9223372036854775808, \"\xc3\xa9\" x]", "t.json:2:26: ']' expected near 'x'" },
        { "[1, x, 9223372036854775808]", "t.json:1:5: invalid token near 'x'" },
        { "[9223372036854775808", "t.json:1:20: ']' expected near end of file" },
        { "[\"\\", "t.json:1:3: invalid escape near '\"\\'" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        cr_assert_eq(parse_foreign(&doc, row[i].text, &err), WG_EFORMAT, "%s", row[i].text);
        cr_assert_str_eq(err.text, row[i].message);
    }
    cr_assert_eq(wg_mem_read().live_blocks, live);
}

/* Positions are those of the text behind it. */
Test(json, a_byte_order_mark_is_read_over)
{
    wg_json *doc = parse("\xEF\xBB\xBF{\"a\": 1}");
    expect_at(doc, "a", true, 1, 2);
    wg_json_close(doc);
    doc = parse("\xEF\xBB\xBF[]");
    cr_assert(json_is_array(wg_json_root(doc)));
    wg_json_close(doc);
    expect_error("\xEF\xBB\xBF{\"a\": x}", 11, "t.json:1:7: invalid token near 'x'");
}

Test(json, positions)
{
    wg_json *doc = parse("{\n"
                         "  \"sampling\": {\"top_p\": 0.95, \"x\": [1, {\"y\": null}, [3, 4]]},\n"
                         "\t\"sweep\": { \"draft.length\" : [2,4] , \"a\\\"}b\":\"}]{\" , \"\\u00e9\\ud83d\\ude00\": true},\n"
                         "  \"é\": 1, \"list\": [\"\\\\\", \"b\"]\n"
                         "}\n");
    int l, c;
    expect_at(doc, "", false, 1, 1);
    expect_at(doc, "sampling", true, 2, 3);
    expect_at(doc, "sampling", false, 2, 15);
    expect_at(doc, "sampling.top_p", true, 2, 16);
    expect_at(doc, "sampling.top_p", false, 2, 25);
    expect_at(doc, "sampling.x[1].y", false, 2, 46);
    expect_at(doc, "sampling.x[2][1]", false, 2, 57);
    expect_at(doc, "sampling.x[2]", true, 2, 53);
    expect_at(doc, "sweep.draft\\.length", true, 3, 13);
    expect_at(doc, "sweep.draft\\.length[1]", false, 3, 33);
    expect_at(doc, "sweep.a\"}b", false, 3, 46);
    expect_at(doc, "sweep.\u00e9\U0001F600", true, 3, 54);
    expect_at(doc, "\u00e9", false, 4, 8); /* columns count characters */
    expect_at(doc, "list[1]", false, 4, 26);
    static const char *const absent[] = {
        "nope",        "sampling.nope", "sampling.x[3]",      "sampling.x[-1]",   "sampling.x[", "sampling.x[1x]",
        "sampling[0]", "list.a",        "sweep.draft.length", "sampling.top_p.x", "list[1][0]"
    };
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
        cr_assert(!wg_json_where(doc, absent[i], false, &l, &c), "%s", absent[i]);
    wg_json_close(doc);
}

Test(json, problems_show_the_line_and_are_counted)
{
    wg_json *doc = parse("{\n\t\"temprature\": 1,\n  \"n\": [1, 22]\n}");
    wg_error err = { 0 };
    cr_assert_eq(wg_json_problem(doc, "temprature", true, &err, "unknown key; did you mean '%s'?", "temperature"), WG_ECONFIG);
    cr_assert_str_eq(err.text, "t.json:2:2: unknown key; did you mean 'temperature'?\n  \t\"temprature\": 1,\n  \t^");
    wg_json_problem(doc, "n[1]", false, &err, "expected at most 9");
    cr_assert_str_eq(err.text, "t.json:2:2: unknown key; did you mean 'temperature'?\n  \t\"temprature\": 1,\n  \t^\n"
                               "t.json:3:12: expected at most 9\n    \"n\": [1, 22]\n             ^");
    int added = 2;
    for (; !strstr(err.text, "... and "); added++) wg_json_problem(doc, "missing", false, &err, "no such thing %d", added);
    for (int i = 0; i < 11; i++) wg_json_problem(doc, "n", false, &err, "more");
    cr_assert(strlen(err.text) < sizeof err.text);
    cr_assert_str_eq(strstr(err.text, "\n... and "), "\n... and 12 more");
    cr_assert_eq(wg_json_problem(doc, "n", false, NULL, "nobody"), WG_ECONFIG);
    wg_json_close(doc);
}

Test(json, long_lines_are_cut)
{
    char text[1000] = "{\"a\": \"";
    memset(text + 7, 'x', 500);
    strcpy(text + 507, "\", \"b\": 1}");
    wg_json *doc = parse(text);
    wg_error err = { 0 };
    wg_json_problem(doc, "b", true, &err, "bad");
    cr_assert(strncmp(err.text, "t.json:1:511: bad\n  {\"a\"", 20) == 0, "%s", err.text);
    cr_assert_null(strchr(err.text, '^'));
    wg_json_close(doc);
}

static void expect_canonical(const char *in, const char *flat, const char *indented)
{
    wg_json *doc = parse(in);
    char *a = wg_json_canonical(wg_json_root(doc), false), *b = wg_json_canonical(wg_json_root(doc), true);
    cr_assert_str_eq(a, flat);
    cr_assert_str_eq(b, indented);
    wg_json *again = parse(b);
    cr_assert(json_equal(wg_json_root(doc), wg_json_root(again)));
    wg_json_close(again);
    wg_json_close(doc);
    wg_free(a);
    wg_free(b);
}

Test(json, canonical_text)
{
    expect_canonical("{}", "{}", "{}\n");
    expect_canonical("[]", "[]", "[]\n");
    expect_canonical(" { \"b\" : 1.0 , \"a\" : [ 1 , 2.50, true, null ] , \"c\": {\"z\":[[]], \"y\":\"\"}}",
                     "{\"a\":[1,2.5,true,null],\"b\":1.0,\"c\":{\"y\":\"\",\"z\":[[]]}}",
                     "{\n  \"a\": [1, 2.5, true, null],\n  \"b\": 1.0,\n  \"c\": {\n    \"y\": \"\",\n    \"z\": [\n      []\n "
                     "   ]\n  }\n}\n");
    expect_canonical("[\"\\u0001\\n\\t\\\"\\\\\\/ \\u00e9\\u2028\", -0.0, 1e300, 0.1, -9223372036854775808]",
                     "[\"\\u0001\\n\\t\\\"\\\\/ \u00e9\u2028\",-0.0,1e+300,0.1,-9223372036854775808]",
                     "[\"\\u0001\\n\\t\\\"\\\\/ \u00e9\u2028\", -0.0, 1e+300, 0.1, -9223372036854775808]\n");
}

Test(json, any_allocation_may_fail)
{
    static const char text[] = "{\"a\": [1, 2, {\"b\": \"some text\"}], \"c\": 0.5, \"d\": {\"e\": null, \"f\": true}}";
    temp t;
    temp_make(&t);
    const size_t live = wg_mem_read().live_blocks;
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        wg_json *doc = NULL;
        char *flat = NULL;
        wg_error err;
        wg_mem_fail_at(n, n % 2);
        wg_status s = wg_json_parse(&doc, "t.json", text, sizeof text - 1, &err);
        if (s == WG_OK) s = wg_json_save(wg_json_root(doc), temp_at(&t, "out.json"), &err);
        if (s == WG_OK && !(flat = wg_json_canonical(wg_json_root(doc), false))) s = WG_ENOMEM;
        wg_mem_fail_at(0, false);
        /* jansson's scanner reports its own lack of memory as bad input */
        cr_assert(s == WG_OK || s == WG_ENOMEM || (s == WG_EFORMAT && err.text[0]), "allocation %d: %s", (int)n, err.text);
        done = s == WG_OK;
        wg_free(flat);
        wg_json_close(doc);
        cr_assert_eq(wg_mem_read().live_blocks, live, "allocation %d leaks", (int)n);
        cr_assert(dir_count(t.dir) <= 1, "litter");
    }
    temp_remove(&t);
}

Test(json, saving_is_all_or_nothing)
{
    temp t;
    wg_error err;
    temp_make(&t);
    wg_json *doc = parse("{\"a\": 1}");
    const char *path = temp_at(&t, "x.json");
    cr_assert_eq(wg_json_save(wg_json_root(doc), path, &err), WG_OK);
    char *text = file_read(path, NULL);
    cr_assert_str_eq(text, "{\n  \"a\": 1\n}\n");
    free(text);
    struct stat sb;
    const mode_t mask = umask(0);
    umask(mask);
    cr_assert(stat(path, &sb) == 0 && (sb.st_mode & 0777) == (0666 & ~mask));

    /* a full disk: the old file stays, nothing new appears */
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 5, 5 });
    cr_assert_eq(wg_json_save(wg_json_root(doc), path, &err), WG_EIO);
    cr_assert(strncmp(err.text, path, strlen(path)) == 0 && strstr(err.text, "write elsewhere"), "%s", err.text);
    text = file_read(path, NULL);
    cr_assert_str_eq(text, "{\n  \"a\": 1\n}\n");
    free(text);
    cr_assert_eq(dir_count(t.dir), 1);

    cr_assert_eq(wg_json_save(wg_json_root(doc), "/dev/full", &err), WG_EIO);
    cr_assert_str_eq(err.text,
                     "/dev/full: cannot write after 0 bytes: No space left on device; free some space or write elsewhere");
    cr_assert_eq(wg_json_save(wg_json_root(doc), "/nowhere/x.json", &err), WG_ENOENT);
    cr_assert_str_eq(err.text, "/nowhere/x.json: cannot create: its folder does not exist; make it first");
    wg_json_close(doc);
    temp_remove(&t);
}

/* Rows: the two outermost levels break lines, so a change in one cell is a change of one line. */
Test(json, rows)
{
    temp t;
    wg_error err;
    temp_make(&t);
    wg_json *doc =
        parse("{\"z\": true, \"flat\": [1, 2.5], \"cells\": [{\"b\": {\"x\": [1, {\"y\": \"s\"}]}, \"a\": 0.1}, {\"a\": []}],"
              " \"none\": {}, \"of\": {\"k\": [3, [4]]}}");
    const char *path = temp_at(&t, "rows.json");
    cr_assert_eq(wg_json_save_rows(wg_json_root(doc), path, &err), WG_OK, "%s", err.text);
    char *text = file_read(path, NULL);
    cr_assert_str_eq(text, "{\n"
                           "  \"cells\": [\n"
                           "    {\"a\": 0.1, \"b\": {\"x\": [1, {\"y\": \"s\"}]}},\n"
                           "    {\"a\": []}\n"
                           "  ],\n"
                           "  \"flat\": [1, 2.5],\n"
                           "  \"none\": {},\n"
                           "  \"of\": {\n"
                           "    \"k\": [3, [4]]\n"
                           "  },\n"
                           "  \"z\": true\n"
                           "}\n");
    json_t *again = json_loads(text, 0, NULL);
    cr_assert(json_equal(again, wg_json_root(doc)), "what is read back is what was written");
    json_decref(again);
    free(text);
    wg_json_close(doc);
    temp_remove(&t);
}

Test(json, a_link_stays_a_link)
{
    temp t;
    struct stat sb;
    char target[512];
    temp_make(&t);
    strcpy(target, temp_at(&t, "real.json"));
    file_write(target, "[]", 2);
    cr_assert_eq(symlink(target, temp_at(&t, "link.json")), 0);
    wg_json *doc = parse("[1]");
    cr_assert_eq(wg_json_save(wg_json_root(doc), temp_at(&t, "link.json"), NULL), WG_OK);
    cr_assert(lstat(t.path, &sb) == 0 && S_ISLNK(sb.st_mode));
    char *text = file_read(target, NULL);
    cr_assert_str_eq(text, "[1]\n");
    free(text);
    wg_json_close(doc);
    temp_remove(&t);
}
