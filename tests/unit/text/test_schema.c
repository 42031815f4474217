/* SPDX-License-Identifier: MIT
 * Grammars of JSON schemas: random texts of them are valid under an independent checker; valid texts that they must have;
 * what is refused, by name and place. */
#include "core/text/grammar/json_schema.h"
#include "tests/schema_check.h"
#include "tests/unit/text/languages.h"

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

Test(schema, texts_of_the_grammar_are_valid)
{
    static char text[4000];
    long drawn = 0, different = 0;
    for (int i = -1; i < 20; i++) {
        language l = open_language(i < 0 ? NULL : check_schemas[i]);
        json_t *schema = i < 0 ? NULL : json_loads(check_schemas[i], 0, NULL);
        size_t before = 0;
        for (uint32_t seed = 0; seed < 100; seed++) {
            const size_t n = draw(&l, seed, text, sizeof text);
            if (n == 0) continue;
            cr_assert(check_answer(schema, text, n), "schema %d: %.*s", i, (int)n, text);
            drawn++;
            different += n != before;
            before = n;
        }
        json_decref(schema);
        close_language(&l);
    }
    cr_assert(drawn > 1800 && different > 800, "%ld texts, %ld of another length", drawn, different);
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
        const int32_t s = wg_acceptor_bytes(l.a, wg_acceptor_start(l.a), cases[i].text, strlen(cases[i].text));
        const bool in = s >= 0 && wg_acceptor_accepts(l.a, s);
        cr_assert(in == cases[i].in, "schema %d: %s", cases[i].schema, cases[i].text);
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
            const int n = snprintf(text, sizeof text, "%d", x);
            const int32_t s = wg_acceptor_bytes(l.a, wg_acceptor_start(l.a), text, (size_t)n);
            cr_assert((s >= 0 && wg_acceptor_accepts(l.a, s)) == (x >= ranges[i][0] && x <= ranges[i][1]), "%s: %d", schema, x);
        }
        close_language(&l);
    }
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
        { "{\"type\": \"string\", \"pattern\": \"a\"}", WG_EUNSUPPORTED, "s#: the keyword pattern is not supported" },
        { "{\"properties\": {\"a\": {\"items\": {\"not\": {}}}}}", WG_EUNSUPPORTED,
          "s#/properties/a/items: the keyword not is not supported" },
        { "{\"$defs\": {\"x\": {\"if\": true}}, \"anyOf\": [true, {\"$ref\": \"#/$defs/x\"}]}", WG_EUNSUPPORTED,
          "s#/anyOf/1/$ref: the keyword if is not supported" },
        { "{\"enum\": [1], \"minimum\": 0}", WG_EUNSUPPORTED, "s#: the keyword minimum beside enum or const is not supported" },
        { "{\"$ref\": \"#/x\"}", WG_EUNSUPPORTED, "s#: $ref: expected a place of this schema, as in \"#/$defs/name\"" },
        { "{\"$ref\": \"#\", \"type\": \"null\"}", WG_EUNSUPPORTED, "s#: the keyword type beside $ref is not supported" },
        { "{\"allOf\": [true, true]}", WG_EUNSUPPORTED,
          "s#: allOf of more than one schema is not supported; write them as one" },
        { "{\"oneOf\": [{\"type\": \"number\"}, {\"const\": 3}]}", WG_EUNSUPPORTED,
          "s#: oneOf: choice 1 may have the type of another, and a value of both would be invalid; use anyOf" },
        { "{\"type\": \"integer\", \"multipleOf\": 5}", WG_EUNSUPPORTED, "s#: multipleOf other than 1 is not supported" },
        { "{\"type\": \"number\", \"maximum\": 5}", WG_EUNSUPPORTED,
          "s#: maximum of numbers is not supported; use type integer, or no bound" },
        { "{\"type\": \"number\", \"minimum\": 5}", WG_EUNSUPPORTED,
          "s#: minimum other than 0 of numbers is not supported; use type integer, or no bound" },
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
