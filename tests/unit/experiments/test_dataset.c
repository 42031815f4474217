/* SPDX-License-Identifier: MIT
 * Prompt files: both spellings, labels, limits, and every kind of bad line with its place. */
#include <criterion/criterion.h>

#include "core/base/mem.h"
#include "experiments/dataset.h"
#include "tests/temp.h"

static temp t;
static void setup(void) { temp_make(&t); }
static void teardown(void) { temp_remove(&t); }
TestSuite(dataset, .init = setup, .fini = teardown);

static wg_dataset *open_text(const char *text, int limit, const char *category, wg_status want, wg_error *err)
{
    wg_dataset *d = NULL;
    const char *path = temp_at(&t, "p.jsonl");
    file_write(path, text, strlen(text));
    const wg_status s = wg_dataset_open(&d, path, limit, category, err);
    cr_assert_eq(s, want, "%s: %s", text, s ? err->text : "accepted");
    cr_assert_eq(d != NULL, s == WG_OK);
    return d;
}

static const char three[] = "{\"id\": \"a\", \"category\": \"x\", \"prompt\": \"one\"}\n"
                            " \t\r\n\n"
                            "{\"question_id\": 81, \"category\": \"y\", \"turns\": [\"two\", \"later\"]}\r\n"
                            "{\"prompt\": \"th\\u00e4ree\\n\"}"; /* no newline at the end */

Test(dataset, reads_both_forms_and_labels)
{
    wg_error err;
    wg_dataset *d = open_text(three, 0, NULL, WG_OK, &err);
    cr_assert_eq(d->n, 3);
    cr_assert_str_eq(d->prompt[0].text, "one");
    cr_assert_str_eq(d->prompt[0].id, "a");
    cr_assert_str_eq(d->prompt[0].category, "x");
    cr_assert_str_eq(d->prompt[1].text, "two");
    cr_assert_str_eq(d->prompt[1].id, "81");
    cr_assert_eq(d->prompt[1].line, 4);
    cr_assert_str_eq(d->prompt[2].text, "th\xc3\xa4ree\n");
    cr_assert_eq(d->prompt[2].bytes, 8);
    cr_assert_str_eq(d->prompt[2].id, "line-5");
    cr_assert_str_eq(d->prompt[2].category, "");
    wg_dataset_close(d);
}

Test(dataset, limit_and_category_choose_and_the_digest_is_the_files)
{
    wg_error err;
    char hex[WG_SHA256_HEX];
    wg_sha256(three, strlen(three), hex);
    wg_dataset *d = open_text(three, 2, "", WG_OK, &err);
    cr_assert_eq(d->n, 2);
    cr_assert_str_eq(d->sha256, hex);
    wg_dataset_close(d);
    d = open_text(three, 0, "y", WG_OK, &err);
    cr_assert_eq(d->n, 1);
    cr_assert_str_eq(d->prompt[0].text, "two");
    cr_assert_str_eq(d->sha256, hex);
    wg_dataset_close(d);
    open_text(three, 0, "z", WG_EINVAL, &err);
    cr_assert(strstr(err.text, "no prompt of category \"z\""), "%s", err.text);
}

Test(dataset, bad_lines_have_their_place)
{
    static const struct { const char *text; wg_status status; const char *says; } cases[] = {
        { "", WG_EINVAL, "p.jsonl: no prompts" },
        { "\n\n", WG_EINVAL, "p.jsonl: no prompts" },
        { "{\"prompt\": \"a\"}\n{\"prompt\": \"\"}\n", WG_EFORMAT, "p.jsonl:2: \"prompt\" is empty" },
        { "{\"prompt\": \"a\"}\n\nnonsense\n", WG_EFORMAT, "p.jsonl:3:" },
        { "{\"prompt\": \"a\"\n}\n", WG_EFORMAT, "p.jsonl:1:" },
        { "[\"a\"]\n", WG_EFORMAT, "p.jsonl:1: expected a JSON object" },
        { "{\"text\": \"a\"}\n", WG_EFORMAT, "p.jsonl:1: expected a key \"prompt\"" },
        { "{\"prompt\": 5}\n", WG_EFORMAT, "p.jsonl:1: \"prompt\" must be text" },
        { "{\"turns\": []}\n", WG_EFORMAT, "p.jsonl:1: \"turns\" must be a list of texts" },
        { "{\"turns\": \"a\"}\n", WG_EFORMAT, "p.jsonl:1: \"turns\" must be a list of texts" },
        { "{\"turns\": [\"\"]}\n", WG_EFORMAT, "p.jsonl:1: \"turns\" is empty" },
        { "{\"prompt\": \"a\", \"prompt\": \"b\"}\n", WG_EFORMAT, "p.jsonl:1:" },
        { "{\"prompt\": \"\xff\"}\n", WG_EFORMAT, "p.jsonl:1:" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_error err;
        open_text(cases[i].text, 1, NULL, cases[i].status, &err); /* the limit does not hide a bad line behind it */
        cr_assert(strstr(err.text, cases[i].says), "%s: %s", cases[i].text, err.text);
    }
}

Test(dataset, missing_file_and_folder)
{
    wg_error err;
    wg_dataset *d;
    cr_assert_eq(wg_dataset_open(&d, temp_at(&t, "absent"), 0, NULL, &err), WG_ENOENT);
    cr_assert_neq(wg_dataset_open(&d, t.dir, 0, NULL, &err), WG_OK);
    wg_dataset_close(NULL);
}

Test(dataset, survives_failing_allocations)
{
    file_write(temp_at(&t, "p.jsonl"), three, strlen(three));
    wg_status s = WG_ENOMEM;
    for (uint64_t nth = 1; s != WG_OK && nth < 100; nth++) {
        wg_error err;
        wg_dataset *d = NULL;
        const size_t before = wg_mem_read().live_blocks;
        wg_mem_fail_at(nth, false);
        s = wg_dataset_open(&d, temp_at(&t, "p.jsonl"), 0, NULL, &err);
        wg_mem_fail_at(0, false);
        cr_assert(s == WG_OK || s == WG_ENOMEM);
        wg_dataset_close(d);
        cr_assert_eq(wg_mem_read().live_blocks, before);
    }
    cr_assert_eq(s, WG_OK);
}
