/* SPDX-License-Identifier: MIT
 * What is tested on vocabularies and texts that are not in the repository. Without them (WG_SHARED) the test is reported as
 * skipped, which is why it has its own main: a single test that Criterion skips is not seen. */
#include "core/base/read_file.h"
#include "core/file/hf_write.h"
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
