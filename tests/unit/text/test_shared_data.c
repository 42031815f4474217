/* SPDX-License-Identifier: MIT
 * What is tested on vocabularies and texts that are not in the repository. Without them (WG_SHARED) the test is reported as
 * skipped, which is why it has its own main: a single test that Criterion skips is not seen. */
#include <dirent.h>

#include "core/base/read_file.h"
#include "core/file/hf_write.h"
#include "core/text/chat_template.h"
#include "tests/unit/text/tiny.h"
#include "trained_bpe.h"

enum { SKIP = 77 };

Test(shared_data, merges_of_a_play_are_those_of_the_library)
{
    static const char name[] = "text/tinyshakespeare/input.txt";
    char path[512];
    text x;
    snprintf(path, sizeof path, "%.400s/%s", getenv("WG_SHARED"), name);
    cr_assert_eq(wg_read_file(path, 1 << 28, &x.s, &x.n, &err), WG_OK, "%s", err.text);
    cr_assert_eq(check_cases(name, &x), 1);
    wg_free(x.s);
}

/* tokenizer.json written back (core/file/hf_write.h): a text in many scripts keeps its ids. */
Test(shared_data, published_vocabularies_come_back)
{
    static const char *const names[] = { "llama-spm", "phi-3", "gpt-2" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[400];
        size_t size = 0, n[2];
        int32_t *id[2];
        wg_weights *w;
        json_t *again;
        wg_tokenizer *t[2];
        const wg_hf_ids none = { -1, { -1, -1, -1 } };
        snprintf(path, sizeof path, "%.200s/tokenizers/gguf/ggml-vocab-%s.gguf", getenv("WG_SHARED"), names[i]);
        cr_assert_eq(wg_weights_open(&w, path, &err), WG_OK, "%s", err.text);
        snprintf(path + strlen(path), 8, ".inp");
        char *text = file_read(path, &size);
        cr_assert(text && size > 1000);
        cr_assert_eq(wg_tokenizer_open(&t[0], w, &err), WG_OK, "%s", err.text);
        cr_assert_eq(wg_hf_tokenizer_json(w, &again, &err), WG_OK, "%s", err.text);
        t[1] = tokenizer_of(again, &none, (int)wg_meta_array(w, "tokenizer.ggml.tokens", NULL));
        for (int k = 0; k < 2; k++) cr_assert_eq(wg_tokenizer_encode(t[k], text, size, true, true, &id[k], &n[k], &err), WG_OK);
        cr_expect(n[0] == n[1] && memcmp(id[0], id[1], n[0] * sizeof **id) == 0, "%s: %zu ids, and then %zu", names[i], n[0],
                  n[1]);
        for (int k = 0; k < 2; k++) wg_free(id[k]), wg_tokenizer_close(t[k]);
        wg_weights_close(w);
        json_decref(again);
        free(text);
    }
}

/* A weights file that has this chat template. */
static void open_template(tiny *file, wg_weights **w, const char *template, size_t n)
{
    uint64_t keys;
    tiny_bpe(file);
    memcpy(&keys, file->b + 16, sizeof keys); /* tiny's head counts them there */
    keys++;
    memcpy(file->b + 16, &keys, sizeof keys);
    tiny_text(file, "tokenizer.chat_template", 23);
    tiny_u32(file, GGUF_STRING);
    tiny_text(file, template, n);
    cr_assert_eq(wg_weights_open_memory(w, "tiny", file->b, file->n, &err), WG_OK, "%s", err.text);
}

#define SAYS(role, text) "{\"role\": \"" role "\", \"content\": \"" text "\"}"
#define TALK(messages) "{\"add_generation_prompt\": true, \"messages\": [" messages "]}"

/* Of published templates no ordinary message is taken for one that is left out, and developer is heard. A template may refuse a
 * conversation itself. */
Test(shared_data, published_templates_hear_ordinary_messages)
{
    static const char *const talks[] = {
        TALK(SAYS("user", "hello")),
        TALK(SAYS("system", "kind") ", " SAYS("user", "hello")),
        TALK(SAYS("user", "hello") ", " SAYS("assistant", "<think>why</think>so") ", " SAYS("user", "and {\\\"x\\\": 1}?\\n")),
        TALK(SAYS("developer", "kind") ", " SAYS("user", "hello")),
    };
    char folder_path[300], path[600], *text;
    int heard = 0, files = 0;
    size_t n;
    snprintf(folder_path, sizeof folder_path, "%.200s/templates", getenv("WG_SHARED"));
    DIR *folder = opendir(folder_path);
    cr_assert(folder, "%s", folder_path);
    for (const struct dirent *at; (at = readdir(folder));) {
        tiny file = { 0 };
        wg_weights *w;
        if (!strstr(at->d_name, ".jinja")) continue;
        snprintf(path, sizeof path, "%s/%.200s", folder_path, at->d_name);
        cr_assert_eq(wg_read_file(path, 1 << 20, &text, &n, &err), WG_OK, "%s", err.text);
        open_template(&file, &w, text, n);
        for (size_t i = 0; i < sizeof talks / sizeof *talks; i++) {
            wg_rendered r;
            json_t *data = json_loads(talks[i], 0, NULL);
            const wg_status status = wg_chat_template_conversation(w, data, "2026-01-31", &r, &err);
            cr_assert(!status || status == WG_EMODEL, "%s, %s: %s", at->d_name, talks[i], err.text);
            if (!status) wg_rendered_free(&r), heard++;
            json_decref(data);
        }
        wg_weights_close(w);
        wg_free(text);
        files++;
    }
    closedir(folder);
    cr_assert(files >= 19 && heard > 3 * files, "%d conversations of %d templates", heard, files);
}

/* Visible, because Criterion looks for it by its name in the process of each test. */
__attribute__((visibility("default"))) int main(int argc, char **argv)
{
    if (!getenv("WG_SHARED")) {
        puts("SKIPPED: WG_SHARED is not set");
        return SKIP;
    }
    struct criterion_test_set *all = criterion_initialize();
    const int passed = !criterion_handle_args(argc, argv, true) || criterion_run_all_tests(all);
    criterion_finalize(all);
    return !passed;
}
