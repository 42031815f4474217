/* SPDX-License-Identifier: MIT
 * Prompt files: both spellings, labels, limits, and every kind of bad line with its position. */
#include <criterion/criterion.h>

#include "core/base/mem.h"
#include "experiments/config/dataset.h"
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
    wg_setup_prompts o = { .limit = limit };
    if (category) strcpy(o.category, category);
    const wg_status s = wg_dataset_open(&d, path, &o, err);
    cr_assert_eq(s, want, "%s: %s", text, s ? err->text : "accepted");
    cr_assert_eq(d != NULL, s == WG_OK);
    return d;
}

static const char three[] =
    "{\"id\": \"a\", \"category\": \"x\", \"prompt\": \"one\"}\n"
    " \t\r\n\n"
    "{\"question_id\": 81, \"hash\": 18446744073709551615, \"category\": \"y\", \"turns\": [\"two\", \"later\"]}\r\n"
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

Test(dataset, a_byte_order_mark_is_read_over)
{
    wg_error err;
    wg_dataset *d = open_text("\xEF\xBB\xBF{\"prompt\": \"one\"}\n{\"prompt\": \"\xEF\xBB\xBFtwo\"}\n", 0, NULL, WG_OK, &err);
    cr_assert_eq(d->n, 2);
    cr_assert_str_eq(d->prompt[0].text, "one");
    cr_assert_str_eq(d->prompt[1].text, "\xEF\xBB\xBFtwo");
    wg_dataset_close(d);
}

/* HumanEval and GSM8K as their authors publish them. */
Test(dataset, reads_the_forms_of_known_sets)
{
    wg_error err;
    wg_dataset *d = open_text("{\"task_id\": \"HumanEval/0\", \"prompt\": \"def f():\", \"entry_point\": \"f\"}\n"
                              "{\"question\": \"How many?\", \"answer\": \"#### 18\"}\n",
                              0, NULL, WG_OK, &err);
    cr_assert_str_eq(d->prompt[0].id, "HumanEval/0");
    cr_assert_str_eq(d->prompt[1].text, "How many?");
    cr_assert_str_eq(d->prompt[1].id, "line-2");
    wg_dataset_close(d);
}

/* SPEED-Bench, as it is published (turns) and prepared (messages); lines whose text is elsewhere. */
Test(dataset, reads_speed_bench)
{
    static const char text[] =
        "{\"question_id\": \"a1\", \"category\": \"math\", \"sub_category\": \"\", \"turns\": [\"one\", \"two\"], \"source\": "
        "\"x\"}\n"
        "{\"question_id\": \"a2\", \"category\": \"math\", \"messages\": [{\"role\": \"user\", \"content\": \"three\"},"
        " {\"role\": \"user\", \"content\": \"four\"}]}\n"
        "{\"question_id\": \"a3\", \"category\": \"rag\", \"turns\": [\"FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE "
        "USING "
        "SPECDEC_BENCH\"]}\n";
    wg_error err;
    wg_dataset *d = open_text(text, 0, "math", WG_OK, &err);
    cr_assert_eq(d->n, 2);
    cr_assert_str_eq(d->prompt[0].id, "a1");
    for (int i = 0; i < 4; i++)
        cr_expect_str_eq(wg_prompt_turn(&d->prompt[i / 2], i % 2).text, ((const char *[]){ "one", "two", "three", "four" })[i]);
    wg_dataset_close(d);
    open_text(text, 0, NULL, WG_EFORMAT, &err);
    cr_expect(strstr(err.text, "p.jsonl:3: this is no prompt but a notice"), "%s", err.text);
}

static const char talks[] = "{\"prompt\": \"one\"}\n"
                            "{\"id\": \"b\", \"turns\": [\"b\\u00e4\", \"two\", \"three\"]}\n"
                            "{\"id\": \"c\", \"turns\": [\"ba\", \"dc\"]}\n";

/* The number of turns used, the numbering of questions, and the digests of conversations. */
Test(dataset, turns)
{
    static const struct {
        int turns, want[3], most, questions;
    } cases[] = {
        { 0, { 1, 3, 2 }, 3, 6 },
        { 1, { 1, 1, 1 }, 1, 3 },
        { 2, { 1, 2, 2 }, 2, 5 },
        { 9, { 1, 3, 2 }, 3, 6 },
    };
    wg_error err;
    char whole[WG_SHA256_HEX], one[WG_SHA256_HEX], text[WG_SHA256_HEX];
    file_write(temp_at(&t, "p.jsonl"), talks, strlen(talks));
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        wg_dataset *d = NULL;
        const wg_setup_prompts o = { .turns = cases[k].turns, .keep_bytes = 4 };
        cr_assert_eq(wg_dataset_open(&d, temp_at(&t, "p.jsonl"), &o, &err), WG_OK, "%s", err.text);
        cr_assert_eq(d->turns, cases[k].most);
        cr_assert_eq(d->questions, cases[k].questions);
        cr_assert_eq(wg_dataset_questions(d, 0, 3), cases[k].questions);
        cr_assert_eq(wg_dataset_questions(d, 1, 1), cases[k].want[1]);
        for (int i = 0, before = 0; i < 3; before += d->prompt[i++].turns) {
            cr_assert_eq(d->prompt[i].turns, cases[k].want[i]);
            cr_assert_eq(d->prompt[i].before, before);
        }
        if (cases[k].turns == 0) {
            cr_assert_str_eq(wg_prompt_turn(&d->prompt[1], 0).text, "b\xc3\xa4");
            cr_assert_str_eq(wg_prompt_turn(&d->prompt[1], 1).text, "two");
            cr_assert_str_eq(wg_prompt_turn(&d->prompt[1], 2).text, "hree"); /* each text keeps its own end */
            cr_assert_eq(wg_prompt_turn(&d->prompt[1], 2).bytes, 4);
            wg_prompt_digest(&d->prompt[2], whole);
        }
        if (cases[k].turns == 1) { /* of one text: its own, as runs from before there were turns have it */
            wg_prompt_digest(&d->prompt[2], one);
            wg_sha256("ba", 2, text);
            cr_assert_str_eq(one, text);
        }
        wg_dataset_close(d);
    }
    cr_assert_str_neq(whole, one);
    wg_sha256("badc", 4, text);
    cr_assert_str_neq(whole, text);
}

static wg_dataset *open_with(const wg_setup_prompts *o)
{
    char text[2048] = "";
    wg_error err;
    wg_dataset *d = NULL;
    for (int i = 0; i < 12; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "{\"id\": %d, \"category\": \"%s\", \"prompt\": \"p\u00e4%d\"}\n", i,
                 i % 4 == 0   ? "a"
                 : i % 4 == 1 ? "b"
                 : i % 4 == 2 ? "c"
                              : "d",
                 i);
    file_write(temp_at(&t, "p.jsonl"), text, strlen(text));
    cr_assert_eq(wg_dataset_open(&d, temp_at(&t, "p.jsonl"), o, &err), WG_OK, "%s", err.text);
    return d;
}

static void ids(const wg_dataset *d, char *out)
{
    *out = '\0';
    for (int i = 0; i < d->n; i++) sprintf(out + strlen(out), "%s%s ", d->prompt[i].category, d->prompt[i].id);
}

Test(dataset, slices)
{
    static const struct {
        wg_setup_prompts o;
        const char *want;
    } cases[] = {
        { { .per_category = 1 }, "a0 b1 c2 d3 " },
        { { .per_category = 2, .limit = 5 }, "a0 b1 c2 d3 a4 " },
        { { .merge = "ab=a|b;rest=d", .per_category = 2 }, "ab0 ab1 c2 rest3 c6 rest7 " },
        { { .merge = "ab=a|b", .category = "ab", .limit = 3 }, "ab0 ab1 ab4 " },
    };
    char got[256], again[256], whole[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_dataset *d = open_with(&cases[i].o);
        ids(d, got);
        cr_assert_str_eq(got, cases[i].want);
        wg_dataset_close(d);
    }
    wg_dataset *d = open_with(&(wg_setup_prompts){ .shuffle = 7 });
    ids(d, whole);
    cr_assert_eq(d->n, 12);
    wg_dataset_close(d);
    d = open_with(&(wg_setup_prompts){ .shuffle = 7, .limit = 4 }); /* a slice is the beginning of the order */
    ids(d, got);
    cr_assert_eq(strncmp(whole, got, strlen(got)), 0, "%s against %s", got, whole);
    wg_dataset_close(d);
    d = open_with(&(wg_setup_prompts){ .shuffle = 8 });
    ids(d, again);
    cr_assert_str_neq(again, whole);
    wg_dataset_close(d);
    d = open_with(&(wg_setup_prompts){ .keep_bytes = 2, .limit = 1 }); /* never half a character */
    cr_assert_str_eq(d->prompt[0].text, "0");
    cr_assert_eq(d->prompt[0].bytes, 1);
    wg_dataset_close(d);
}

Test(dataset, merge_must_have_its_form)
{
    static const char *const bad[] = { "a", "=a", "a=", "a=b|", "a=|b", "a=b;;c=d", "a=b;c" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wg_error err;
        wg_dataset *d = NULL;
        wg_setup_prompts o = { .limit = 0 };
        strcpy(o.merge, bad[i]);
        file_write(temp_at(&t, "p.jsonl"), three, strlen(three));
        cr_assert_eq(wg_dataset_open(&d, temp_at(&t, "p.jsonl"), &o, &err), WG_EINVAL, "%s", bad[i]);
        cr_assert(strstr(err.text, "expected new names of categories"), "%s", err.text);
    }
}

#define NOTICE "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE USING SPECDEC_BENCH"

Test(dataset, bad_lines_have_their_place)
{
    static const struct {
        const char *text;
        wg_status status;
        const char *says;
    } cases[] = {
        { "", WG_EINVAL, "p.jsonl: no prompts" },
        { "\n\n", WG_EINVAL, "p.jsonl: no prompts" },
        { "{\"prompt\": \"a\"}\n{\"prompt\": \"\"}\n", WG_EFORMAT, "p.jsonl:2: \"prompt\" is empty" },
        { "{\"prompt\": \"a\"}\n\nnonsense\n", WG_EFORMAT, "p.jsonl:3:" },
        { "{\"prompt\": \"a\"\n}\n", WG_EFORMAT, "p.jsonl:1:" },
        { "[\"a\"]\n", WG_EFORMAT, "p.jsonl:1: expected a JSON object" },
        { "{\"text\": \"a\"}\n", WG_EFORMAT,
          "p.jsonl:1: expected a key \"prompt\" or \"question\" (text), \"turns\" (a list of texts) or \"messages\"" },
        { "{\"messages\": []}\n", WG_EFORMAT,
          "p.jsonl:1: \"messages\" must be a list of {\"role\": \"user\", \"content\": text}" },
        { "{\"messages\": [{\"role\": \"user\"}]}\n", WG_EFORMAT, "p.jsonl:1: \"messages\" must be a list of {" },
        { "{\"messages\": [{\"role\": \"system\", \"content\": \"a\"}]}\n", WG_EUNSUPPORTED,
          "p.jsonl:1: \"messages\" has one of the role \"system\"; only questions of the user are read" },
        { "{\"prompt\": \"a\"}\n{\"turns\": [\"b\", \"" NOTICE "\"]}\n", WG_EFORMAT,
          "p.jsonl:2: this is no prompt but a notice that the text must be fetched; prepare the dataset with its publisher's "
          "program, or remove the line" },
        { "{\"prompt\": 5}\n", WG_EFORMAT, "p.jsonl:1: \"prompt\" must be text" },
        { "{\"turns\": []}\n", WG_EFORMAT, "p.jsonl:1: \"turns\" must be a list of texts" },
        { "{\"turns\": \"a\"}\n", WG_EFORMAT, "p.jsonl:1: \"turns\" must be a list of texts" },
        { "{\"turns\": [\"\"]}\n", WG_EFORMAT, "p.jsonl:1: \"turns\" is empty" },
        { "{\"turns\": []}\n", WG_EFORMAT, "p.jsonl:1: \"turns\" must be a list of texts" },
        { "{\"turns\": [\"a\", \"\"]}\n", WG_EFORMAT, "p.jsonl:1: \"turns\" has a text that is empty; remove that text" },
        { "{\"turns\": [\"a\", 3]}\n", WG_EFORMAT, "p.jsonl:1: \"turns\" must be a list of texts" },
        { "{\"prompt\": \"a\", \"prompt\": \"b\"}\n", WG_EFORMAT, "p.jsonl:1:" },
        { "{\"prompt\": \"\xff\"}\n", WG_EFORMAT, "p.jsonl:1:" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_error err;
        open_text(cases[i].text, 1, NULL, cases[i].status, &err); /* the limit does not hide a bad line behind it */
        cr_assert(strstr(err.text, cases[i].says), "%s: %s", cases[i].text, err.text);
    }
}

Test(dataset, turns_are_bounded)
{
    wg_error err;
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    fputs("{\"turns\": [\"a\"", f);
    for (int i = 0; i < WG_TURNS_MAX; i++) fputs(", \"a\"", f);
    fputs("]}\n", f);
    fclose(f);
    open_text(text, 0, NULL, WG_EFORMAT, &err);
    cr_assert(strstr(err.text, "p.jsonl:1: \"turns\" has 1025 texts; at most 1024 are allowed"), "%s", err.text);
    free(text);
}

Test(dataset, missing_file_and_folder)
{
    wg_error err;
    wg_dataset *d;
    cr_assert_eq(wg_dataset_open(&d, temp_at(&t, "absent"), NULL, &err), WG_ENOENT);
    cr_assert_neq(wg_dataset_open(&d, t.dir, NULL, &err), WG_OK);
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
        const wg_setup_prompts all = { .shuffle = 3, .merge = "z=x" };
        s = wg_dataset_open(&d, temp_at(&t, "p.jsonl"), &all, &err);
        wg_mem_fail_at(0, false);
        cr_assert(s == WG_OK || s == WG_ENOMEM);
        wg_dataset_close(d);
        cr_assert_eq(wg_mem_read().live_blocks, before);
    }
    cr_assert_eq(s, WG_OK);
}
