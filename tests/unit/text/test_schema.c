/* SPDX-License-Identifier: MIT
 * Grammars of JSON schemas: random texts of them are valid under an independent checker; valid texts that they must have;
 * what is refused, by name and place. */
#include "core/text/grammar/json_schema.h"
#include "tests/schema_check.h"
#include "tests/unit/text/languages.h"

#include <locale.h>

/* NULL: any JSON object. */
static language open_language(const char *schema)
{
    wg_error err = { 0 };
    char *text;
    size_t n;
    json_t *value = schema ? json_loads(schema, 0, NULL) : NULL;
    cr_assert(!schema || value, "%s", schema);
    cr_assert(wg_schema_grammar("s", value, &text, &n, &err) == WG_OK, "%s", err.text);
    const language l = language_of(text);
    wg_free(text);
    json_decref(value);
    return l;
}

static uint32_t random_word(uint32_t *state) { return (*state = *state * 1664525 + 1013904223) >> 8; }

/* One of the tokens that may follow, with a taste for what ends things; -1: the text may end, and does. */
static int choose(language *l, int32_t state, uint32_t *random)
{
    int n, at = 0;
    const uint64_t *set = wg_acceptor_allowed(l->a, state, &n);
    cr_assert(set != NULL && (n > 0 || wg_acceptor_accepts(l->a, state)), "a dead end");
    if (n == 0 || (wg_acceptor_accepts(l->a, state) && random_word(random) % 4 == 0)) return -1;
    const char *ends = random_word(random) % 2 ? "\"}],:0e" : "";
    for (; *ends; ends++)
        if (token_in(set, (uint8_t)*ends)) return (uint8_t)*ends;
    for (int pick = (int)(random_word(random) % (uint32_t)n);; at++)
        if (token_in(set, at) && pick-- == 0) return at;
}

/* A random text of the grammar; 0: longer than the room. */
static size_t draw(language *l, uint32_t seed, char *out, size_t room)
{
    int32_t state = wg_acceptor_start(l->a);
    uint32_t random = seed * 2654435761u + 1;
    for (size_t n = 0;;) {
        const int x = choose(l, state, &random);
        if (x < 0) return n;
        const wg_text bytes = wg_token_bytes(l->trie, x);
        if (n + bytes.n > room) return 0;
        memcpy(out + n, bytes.s, bytes.n);
        n += bytes.n;
        state = wg_acceptor_token(l->a, state, x);
        cr_assert(state >= 0);
    }
}

/* Draws 100 texts of a schema, all valid; adds those drawn and those of another length than the one before. */
static void draw_valid(const char *of, long *drawn, long *different)
{
    static char text[4000];
    language l = open_language(of);
    json_t *schema = of ? json_loads(of, 0, NULL) : NULL;
    size_t before = 0;
    for (uint32_t seed = 0; seed < 100; seed++) {
        const size_t n = draw(&l, seed, text, sizeof text);
        if (n == 0) continue;
        cr_assert(check_answer(schema, text, n), "%s: %.*s", of ? of : "any", (int)n, text);
        ++*drawn;
        *different += n != before;
        before = n;
    }
    json_decref(schema);
    close_language(&l);
}

Test(schema, texts_of_the_grammar_are_valid)
{
    long drawn = 0, different = 0;
    for (int i = -1; i < 20; i++) draw_valid(i < 0 ? NULL : check_schemas[i], &drawn, &different);
    cr_assert(drawn > 1800 && different > 800, "%ld texts, %ld of another length", drawn, different);
}

#define PET(kind, name) "{\"type\": \"object\", \"properties\": {\"kind\": {" kind "}, \"" name "\": {\"type\": \"boolean\"}}, "
#define MUST "\"required\": [\"kind\"]}"

/* What says nothing about a value is passed over, at every place; choices that a discriminator names are exclusive. */
Test(schema, annotations)
{
    static const char *const schemas[] = {
        "true",
        "{\"type\": \"array\", \"uniqueItems\": false, \"maxItems\": 2, \"items\": {\"X-Kind\": 1, \"enum\": [1, 2]}, \"x-a\": "
        "{}}",
        "{\"x-b\": 1, \"oneOf\": [{\"$ref\": \"#/$defs/cat\", \"x-c\": 1}, {\"type\": \"null\"}, {\"$ref\": \"#/$defs/dog\"}], "
        "\"discriminator\": "
        "{\"propertyName\": \"kind\"}, \"$defs\": {\"cat\": " PET("\"const\": \"cat\"", "purrs") MUST
        ", \"dog\": " PET("\"enum\": [\"dog\"], \"example\": 1", "barks") MUST "}}",
    };
    long drawn = 0, different = 0;
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        json_t *schema = json_loads(schemas[i], JSON_DECODE_ANY, NULL);
        char *text;
        size_t n;
        wg_error err = { 0 };
        cr_assert(wg_schema_grammar("s", schema, &text, &n, &err) == WG_OK, "%s: %s", schemas[i], err.text);
        wg_free(text);
        json_decref(schema);
        if (i) draw_valid(schemas[i], &drawn, &different);
    }
    cr_assert(drawn > 150 && different > 50, "%ld texts, %ld of another length", drawn, different);
}

/* Against the regular expressions of the C library. */
Test(schema, texts_of_patterns_are_valid)
{
    static const char *const patterns[] = {
        "^[a-c]{2,4}$", "^(a|bc)*$",   "^x?[^x]+x$",        "b",
        "^a|b$",        "^(|a)(|b)$",  "[0-9]{3}-[0-9]{4}", "^.{3}$",
        "^[\"'/]+$",    "^a{0}b{1,}$", "^((a*)*|(b+)?)*$",  "^[^ -~]{1,3}$",
        "^[-a.]+$",     "^\\.\\$\\|$", "^(ab|a)(bc|c)$",    "^(\xC3\xA9|\xE2\x82\xAC)+$",
    };
    long drawn = 0, different = 0;
    cr_assert(setlocale(LC_ALL, "C.UTF-8") != NULL);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        json_t *schema = json_pack("{s:s}", "pattern", patterns[i]);
        char *text = json_dumps(schema, 0);
        draw_valid(text, &drawn, &different);
        free(text);
        json_decref(schema);
    }
    cr_assert(drawn > 1300 && different > 400, "%ld texts, %ld of another length", drawn, different);
}

/* White space that may follow, line breaks first; and whether that is all: the text must go on or end. */
static int spaces_after(language *l, int32_t state)
{
    for (int n = 0; n < 100; n++) {
        int32_t next = -1;
        for (const char *c = "\n\r\t "; *c && next < 0; c++) next = wg_acceptor_bytes(l->a, state, c, 1);
        if (next < 0) return n;
        state = next;
    }
    return 100;
}

Test(schema, white_space_is_bounded)
{
    static char text[4000];
    int longest = 0;
    for (int i = -1; i < 20; i++) {
        language l = open_language(i < 0 ? NULL : check_schemas[i]);
        for (uint32_t seed = 0; seed < 10; seed++) {
            const size_t n = draw(&l, seed, text, sizeof text);
            int32_t state = wg_acceptor_start(l.a);
            bool string = false; /* inside one white space is text */
            for (size_t k = 0; k <= n; k++) {
                const int spaces = string ? 0 : spaces_after(&l, state);
                cr_assert(spaces <= 1 + WG_SCHEMA_INDENT, "schema %d: %d behind %.*s", i, spaces, (int)k, text);
                if (spaces > longest) longest = spaces;
                if (k == n) break;
                state = wg_acceptor_bytes(l.a, state, text + k, 1);
                if (string && text[k] == '\\') state = wg_acceptor_bytes(l.a, state, text + ++k, 1);
                else string ^= text[k] == '"';
            }
        }
        close_language(&l);
    }
    cr_assert_eq(longest, 1 + WG_SCHEMA_INDENT);
}

static bool is_in(language *l, const char *text)
{
    const int32_t s = wg_acceptor_bytes(l->a, wg_acceptor_start(l->a), text, strlen(text));
    return s >= 0 && wg_acceptor_accepts(l->a, s);
}

/* Texts that models write, and texts that they must not. */
Test(schema, texts_of_models)
{
    static const struct {
        int schema;
        const char *text;
        bool in;
    } cases[] = {
        { 0, "{\"name\": \"Ann\", \"age\": 7}", true },
        { 0, "{\n  \"name\": \"Zo\xC3\xAB\",\n  \"age\": 120\n}", true },
        { 0, "{\"name\":\"\\u00e9\\\"\\n\",\"age\":0}", true },
        { 0, "{\"name\": \"Ann\", \"age\": 121}", false },
        { 0, "{\"age\": 7, \"name\": \"Ann\"}", false }, /* another order: valid, and not written */
        { 0, "{\"name\": \"123456789\", \"age\": 7}", false },
        { 0, "{\"name\": \"Ann\", \"age\": 07}", false },
        { 0, "{\"name\": \"\\ud800\", \"age\": 7}", false },
        { 0, "{\"name\": \"Ann\", \"age\": 7, \"x\": 1}", false },
        { 1, "[\"red\", \"blue\"]", true },
        { 1, "[]", false },
        { 2, "{\"a\":[true]}", true },
        { 4, "-17", true },
        { 4, "1204", true },
        { 4, "1205", false },
        { 4, "-18", false },
        { 5, "2024-02-28", false },
        { 5, "\"2024-02-28\"", true },
        { 5, "\"2023-04-31\"", false },
        { 6, "{\"b\": true}", true },
        { 6, "{\"a\": null, \"b\": false, \"c\": 5}", true },
        { 6, "{\"a\": null}", false },
        { 7, "{\"v\": 1, \"next\": {\"v\": 2, \"next\": null}}", true },
        { 13, "{\"ab\": true, \"zz\": 4, \"abd\": 3, \"a\": 0}", true },
        { 13, "{\"ab\": true, \"abc\": 4}", false },
        { 13, "{\"ab\": true, \"zz\": 4, \"ab\": 3}", false },
        { 14, "12.5e-3", true },
        { 14, "-1", false },
        { 17, "[true, null]", true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        language l = open_language(check_schemas[cases[i].schema]);
        cr_assert(is_in(&l, cases[i].text) == cases[i].in, "schema %d: %s", cases[i].schema, cases[i].text);
        close_language(&l);
    }
}

/* Every integer of a range, and none beside it. */
Test(schema, integers_of_a_range)
{
    static const int ranges[][2] = { { 0, 0 },     { 3, 8 },      { 0, 10 }, { 7, 123 },
                                     { 100, 200 }, { 199, 1001 }, { -5, 5 }, { -120, -99 } };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        char schema[100], text[20];
        snprintf(schema, sizeof schema, "{\"type\": \"integer\", \"minimum\": %d, \"maximum\": %d}", ranges[i][0],
                 ranges[i][1]);
        language l = open_language(schema);
        for (int x = -1200; x <= 1200; x++) {
            snprintf(text, sizeof text, "%d", x);
            cr_assert(is_in(&l, text) == (x >= ranges[i][0] && x <= ranges[i][1]), "%s: %d", schema, x);
        }
        close_language(&l);
    }
}

/* Texts that a pattern has, and texts that it has not; both as JSON. */
Test(schema, patterns)
{
    static const struct {
        const char *pattern, *text;
        bool in;
    } cases[] = {
        { "^[A-Z]{2}\\d{4}$", "\"AB1234\"", true },
        { "^[A-Z]{2}\\d{4}$", "\"AB123\"", false },
        { "^[A-Z]{2}\\d{4}$", "\"AB12345\"", false },
        { "\\d", "\"a1\\nb\"", true }, /* not anchored: any JSON string around it */
        { "\\d", "\"ab\"", false },
        { "^\\w+@\\w+\\.(com|org)$", "\"a_1@b.org\"", true },
        { "^\\w+@\\w+\\.(com|org)$", "\"a_1@bxorg\"", false },
        { "^a|b$", "\"ac\"", true },
        { "^a|b$", "\"cb\"", true },
        { "^a|b$", "\"cbc\"", false },
        { "^a$|^b", "\"ac\"", false },
        { "^a$|^b", "\"bc\"", true },
        { "^(?:a|(?<x>b))+?$", "\"abba\"", true },
        { "^(?:a|(?<x>b))+?$", "\"\"", false },
        { "^[\"\\\\]+$", "\"\\\"\\\\\"", true },
        { "^[\"\\\\]+$", "\"\\n\"", false },
        { "^\\s$", "\"\\t\"", true },
        { "^\\s$", "\"\xC2\xA0\"", true },
        { "^\\S$", "\" \"", false },
        { "^[^\\d\\s]$", "\"x\"", true },
        { "^[^\\d\\s]$", "\"7\"", false },
        { "^.$", "\"\\n\"", false },
        { "^.$", "\"\xF0\x9F\x98\x80\"", true }, /* a character, not two halves */
        { "^\\uD83D\\uDE00\\u{e9}\\x41\\/\\-$",
          "\"\xF0\x9F\x98\x80\xC3\xA9"
          "A/-\"",
          true },
        { "^[\\b]$", "\"\\b\"", true },
        { "^(a|)$", "\"\"", true },
        { "", "\"anything\"", true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *schema = json_pack("{s:s}", "pattern", cases[i].pattern);
        char *text = json_dumps(schema, 0);
        language l = open_language(text);
        cr_assert(is_in(&l, cases[i].text) == cases[i].in, "%s: %s", cases[i].pattern, cases[i].text);
        close_language(&l);
        free(text);
        json_decref(schema);
    }
}

/* Numbers of up to three digits behind the point: those of a text that are valid are in it, unless they end with a zero. */
Test(schema, numbers_of_a_range)
{
    static const char *const bounds[] = {
        "\"minimum\": 0.25, \"maximum\": 0.5",
        "\"exclusiveMinimum\": 0.25, \"exclusiveMaximum\": 0.5",
        "\"exclusiveMinimum\": 0, \"maximum\": 1",
        "\"minimum\": 0, \"exclusiveMaximum\": 1",
        "\"minimum\": -1.5, \"maximum\": 12.05",
        "\"exclusiveMinimum\": -12, \"exclusiveMaximum\": -9.9",
        "\"minimum\": 9.95, \"maximum\": 10.05",
        "\"minimum\": 2, \"maximum\": 2",
        "\"minimum\": -3, \"exclusiveMaximum\": 0",
        "\"minimum\": -3, \"maximum\": 0",
        "\"minimum\": 1, \"exclusiveMinimum\": 1, \"maximum\": 7.125, \"exclusiveMaximum\": 9",
        "\"maximum\": 11",
        "\"minimum\": 8.008",
        "\"exclusiveMinimum\": 0.02, \"exclusiveMaximum\": 0.022",
    };
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        char schema[160], text[24];
        snprintf(schema, sizeof schema, "{\"type\": \"number\", %s}", bounds[i]);
        language l = open_language(schema);
        json_t *of = json_loads(schema, 0, NULL);
        long in = 0;
        for (int x = -13000; x <= 13000; x++)
            for (int digits = 0; digits < 4; digits++) {
                static const int unit[] = { 1000, 100, 10, 1 };
                if (x % unit[digits]) continue;
                const int n = snprintf(text, sizeof text, "%.*f", digits, x / 1000.);
                const bool valid = check_answer(of, text, (size_t)n), zero = digits > 0 && text[n - 1] == '0',
                           got = is_in(&l, text);
                cr_assert(valid || !got, "%s: %s is not valid", bounds[i], text);
                cr_assert(got || !valid || zero, "%s: %s is valid", bounds[i], text);
                in += got;
            }
        cr_assert(in > 0, "%s", bounds[i]);
        json_decref(of);
        close_language(&l);
        draw_valid(schema, &in, &in);
    }
}

/* No text has more than 15 digits. */
Test(schema, digits_of_numbers)
{
    static const char *const in[] = { "0.25000000000001", "0.49999999999999", "0.3", "0.50000000000000" }, *const out[] = {
        "0.250000000000001", "0.499999999999999", "0.300000000000001", "0.500000000000000"
    };
    language l = open_language("{\"type\": \"number\", \"minimum\": 0.25, \"maximum\": 0.5}");
    for (int i = 0; i < 4; i++) {
        cr_assert(is_in(&l, in[i]), "%s", in[i]);
        cr_assert(!is_in(&l, out[i]), "%s", out[i]);
    }
    close_language(&l);
    l = open_language("{\"type\": \"integer\", \"minimum\": -1e19, \"maximum\": 1e19}");
    cr_assert(is_in(&l, "999999999999999") && is_in(&l, "-999999999999999") && !is_in(&l, "1000000000000000"));
    close_language(&l);
}

static wg_status write_grammar(const char *schema, wg_error *err)
{
    char *text = NULL;
    size_t n;
    json_t *value = json_loads(schema, JSON_DECODE_ANY, NULL);
    cr_assert(value != NULL, "%s", schema);
    const wg_status s = wg_schema_grammar("s", value, &text, &n, err);
    cr_assert(!text, "%s", schema);
    json_decref(value);
    return s;
}

Test(schema, messages)
{
    static const refusal refused[] = {
        { "{\"pattern\": 3}", WG_EFORMAT, "s#: pattern: expected a regular expression, as a string, at byte 0" },
        { "{\"pattern\": \"a(?=b)\"}", WG_EUNSUPPORTED, "s#: pattern: looking ahead and behind is not supported, at byte 4" },
        { "{\"pattern\": \"(a)\\\\1\"}", WG_EUNSUPPORTED, "s#: pattern: back references are not supported, at byte 4" },
        { "{\"pattern\": \"a\\\\b\"}", WG_EUNSUPPORTED, "s#: pattern: \\b and \\B are not supported, at byte 2" },
        { "{\"pattern\": \"\\\\p{L}\"}", WG_EUNSUPPORTED, "s#: pattern: \\p{...} is not supported, at byte 1" },
        { "{\"pattern\": \"\\\\q\"}", WG_EUNSUPPORTED, "s#: pattern: an escape that is not supported, at byte 1" },
        { "{\"pattern\": \"(^a)\"}", WG_EUNSUPPORTED,
          "s#: pattern: ^ and $ are supported at the beginning and the end of the pattern and of its alternatives, at byte 1" },
        { "{\"pattern\": \"\\\\x01\"}", WG_EUNSUPPORTED,
          "s#: pattern: a set of characters of which none can be written, at byte 4" },
        { "{\"pattern\": \"(a\"}", WG_EFORMAT, "s#: pattern: a ( without its ), at byte 2" },
        { "{\"pattern\": \"a)\"}", WG_EFORMAT, "s#: pattern: a ) without its (, at byte 1" },
        { "{\"pattern\": \"[ab\"}", WG_EFORMAT, "s#: pattern: a set that does not end; expected ], at byte 0" },
        { "{\"pattern\": \"[b-a]\"}", WG_EFORMAT,
          "s#: pattern: a range whose end is before its beginning, or is a class, at byte 4" },
        { "{\"pattern\": \"*a\"}", WG_EFORMAT, "s#: pattern: nothing to repeat, at byte 0" },
        { "{\"pattern\": \"a**\"}", WG_EFORMAT, "s#: pattern: nothing to repeat, at byte 2" },
        { "{\"pattern\": \"a{x}\"}", WG_EFORMAT,
          "s#: pattern: expected a repetition as {2}, {2,} or {2,5}; write \\{ for {, at byte 2" },
        { "{\"pattern\": \"a{3,2}\"}", WG_EFORMAT, "s#: pattern: a repetition whose most is below its least, at byte 5" },
        { "{\"pattern\": \"a{9999}\"}", WG_EINVAL, "s#: pattern: more than 4096 repetitions, at byte 5" },
        { "{\"pattern\": \"a\\\\\"}", WG_EFORMAT, "s#: pattern: a \\ at the end, at byte 2" },
        { "{\"pattern\": \"a\", \"maxLength\": 5}", WG_EUNSUPPORTED,
          "s#: minLength or maxLength beside pattern is not supported; count in the pattern, as in ^.{2,5}$" },
        { "{\"pattern\": \"a\", \"format\": \"date\"}", WG_EUNSUPPORTED, "s#: pattern beside format date is not supported" },
        { "{\"properties\": {\"a\": {\"items\": {\"not\": {}}}}}", WG_EUNSUPPORTED,
          "s#/properties/a/items: the keyword not is not supported" },
        { "{\"$defs\": {\"x\": {\"if\": true}}, \"anyOf\": [true, {\"$ref\": \"#/$defs/x\"}]}", WG_EUNSUPPORTED,
          "s#/anyOf/1/$ref: the keyword if is not supported" },
        { "{\"enum\": [1], \"minimum\": 0}", WG_EUNSUPPORTED, "s#: the keyword minimum beside enum or const is not supported" },
        { "{\"$ref\": \"#/x\"}", WG_EUNSUPPORTED, "s#: $ref: expected a place of this schema, as in \"#/$defs/name\"" },
        { "{\"$ref\": \"#\", \"type\": \"null\"}", WG_EUNSUPPORTED, "s#: the keyword type beside $ref is not supported" },
        { "{\"allOf\": [true, true]}", WG_EUNSUPPORTED,
          "s#: allOf of more than one schema is not supported; write them as one" },
        { "{\"type\": \"array\", \"uniqueItems\": true}", WG_EUNSUPPORTED, "s#: the keyword uniqueItems is not supported" },
        { "{\"oneOf\": [" PET("\"const\": \"a\"", "x") MUST ", " PET("\"const\": \"a\"", "y") MUST "]}", WG_EUNSUPPORTED,
          "s#: oneOf: choice 1 may have the type of another, and a value of both would be invalid; use anyOf" },
        { "{\"oneOf\": [" PET("\"const\": \"a\"", "x") MUST ", " PET("\"const\": \"b\"", "y") "\"required\": []}]}",
          WG_EUNSUPPORTED,
          "s#: oneOf: choice 1 may have the type of another, and a value of both would be invalid; use anyOf" },
        { "{\"oneOf\": [{\"type\": \"integer\"}, {\"type\": \"number\"}]}", WG_EUNSUPPORTED,
          "s#: oneOf: choice 1 may have the type of another, and a value of both would be invalid; use anyOf" },
        { "{\"oneOf\": [{\"type\": \"null\"}, {\"type\": \"number\"}, {\"type\": \"integer\"}]}", WG_EUNSUPPORTED,
          "s#: oneOf: choice 2 may have the type of another, and a value of both would be invalid; use anyOf" },
        { "{\"oneOf\": [{\"type\": \"number\"}, {\"const\": 3}]}", WG_EUNSUPPORTED,
          "s#: oneOf: choice 1 may have the type of another, and a value of both would be invalid; use anyOf" },
        { "{\"type\": \"integer\", \"multipleOf\": 5}", WG_EUNSUPPORTED, "s#: multipleOf other than 1 is not supported" },
        { "{\"type\": \"number\", \"multipleOf\": 0.5}", WG_EUNSUPPORTED,
          "s#: multipleOf of numbers is not supported; use type integer, or none" },
        { "{\"type\": \"number\", \"maximum\": 123456789012345}", WG_EFORMAT,
          "s#: maximum: expected a number of at most 14 digits" },
        { "{\"type\": \"number\", \"minimum\": 0.1, \"exclusiveMaximum\": 0.1}", WG_EFORMAT,
          "s#: no number is between the bounds, so nothing satisfies the schema" },
        { "{\"format\": \"date\", \"minLength\": 5}", WG_EUNSUPPORTED,
          "s#: minLength or maxLength beside format date is not supported" },
        { "{\"prefixItems\": [true, true], \"maxItems\": 1}", WG_EUNSUPPORTED,
          "s#: maxItems below the number of prefixItems is not supported" },
        { "{\"properties\": {\"\\u00e9\": true}, \"additionalProperties\": true}", WG_EUNSUPPORTED,
          "s#: additionalProperties are supported beside at most 256 members, whose names have at most 64 ASCII characters "
          "without "
          "\" and \\" },
        { "3", WG_EFORMAT, "s#: expected a schema that something satisfies: an object, or true" },
        { "{\"type\": \"int\"}", WG_EFORMAT,
          "s#: type: expected null, boolean, integer, number, string, array or object, or a list of them" },
        { "{\"type\": []}", WG_EFORMAT, "s#: type: an empty list, which nothing satisfies" },
        { "false", WG_EFORMAT, "s#: expected a schema that something satisfies: an object, or true" },
        { "{\"enum\": [1, [{\"a\": 9223372036854775808.0}]]}", WG_EUNSUPPORTED,
          "s#: enum or const: a number beyond 64 bits; expected smaller ones" },
        { "{\"type\": \"integer\", \"minimum\": 1e19}", WG_EFORMAT, "s#: minimum: expected a number of at most 15 digits" },
        { "{\"type\": \"integer\", \"maximum\": -1e19}", WG_EFORMAT, "s#: maximum: expected a number of at most 15 digits" },
        { "{\"enum\": 3}", WG_EFORMAT, "s#: enum: expected a list of values" },
        { "{\"enum\": [3], \"type\": \"string\"}", WG_EFORMAT,
          "s#: enum or const: no value has the type, so nothing satisfies the schema" },
        { "{\"anyOf\": []}", WG_EFORMAT, "s#: anyOf: expected a list of schemas" },
        { "{\"type\": \"integer\", \"minimum\": \"a\"}", WG_EFORMAT, "s#: minimum: expected a number of at most 15 digits" },
        { "{\"type\": \"integer\", \"minimum\": 5, \"exclusiveMaximum\": 5}", WG_EFORMAT,
          "s#: no integer is between the bounds, so nothing satisfies the schema" },
        { "{\"minLength\": 5, \"maxLength\": 4}", WG_EFORMAT,
          "s#: maxLength below minLength, so nothing satisfies the schema" },
        { "{\"minItems\": 5, \"maxItems\": 4}", WG_EFORMAT, "s#: maxItems below minItems, so nothing satisfies the schema" },
        { "{\"minItems\": 5, \"items\": false}", WG_EFORMAT, "s#: minItems above the number of items that there can be" },
        { "{\"prefixItems\": 5}", WG_EFORMAT, "s#: prefixItems: expected a list of schemas" },
        { "{\"properties\": 5}", WG_EFORMAT, "s#: properties: expected an object" },
        { "{\"required\": 5}", WG_EFORMAT, "s#: required: expected a list of names" },
        { "{\"required\": [5]}", WG_EFORMAT, "s#: required: expected a list of names" },
        { "{\"required\": [\"a\"], \"additionalProperties\": false}", WG_EFORMAT,
          "s#: required: a is no property, and additionalProperties is false" },
        { "{\"minLength\": 5000}", WG_EINVAL, "s#: minLength: expected a whole number 0..4096" },
        { "{\"minLength\": -1}", WG_EINVAL, "s#: minLength: expected a whole number 0..4096" },
    };
    expect_refusals(refused, sizeof refused / sizeof *refused, write_grammar);
}

/* Schemas that are too large, by subschemas, members and bytes. */
Test(schema, limits)
{
    wg_error err = { 0 };
    char *text = NULL, name[20];
    size_t n;
    json_t *root = json_object(), *members = json_object(), *list = json_array();
    for (int i = 0; i < 1025; i++) {
        snprintf(name, sizeof name, "m%d", i);
        json_object_set_new(members, name, json_true());
    }
    json_object_set(root, "properties", members);
    cr_assert(wg_schema_grammar("s", root, &text, &n, &err) == WG_EINVAL && !strcmp(err.text, "s#: more than 1024 properties"));
    json_object_clear(root);
    for (int i = 0; i < 4200; i++) json_array_append_new(list, json_true());
    json_object_set(root, "anyOf", list);
    cr_assert(wg_schema_grammar("s", root, &text, &n, &err) == WG_EINVAL &&
              !strcmp(err.text, "s#: more than 4096 subschemas; use a smaller schema"));
    json_object_clear(root);
    json_array_clear(list);
    char *long_text = malloc(1 << 20);
    memset(long_text, 'x', 1 << 20);
    long_text[(1 << 20) - 1] = '\0';
    json_object_set_new(root, "const", json_string(long_text));
    free(long_text);
    cr_assert(wg_schema_grammar("s", root, &text, &n, &err) == WG_EINVAL &&
              !strcmp(err.text, "s: its grammar would have more than 1048576 bytes; use a smaller schema"));
    json_decref(root), json_decref(members), json_decref(list);
}
