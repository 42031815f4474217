/* SPDX-License-Identifier: MIT
 * Names of models: their forms, the files that they mean, where they lead. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file/model_name.h"
#include "tests/temp.h"

Test(model_name, forms_of_a_hub)
{
    wg_hub_name n;
    wg_error err;
    cr_assert_eq(wg_hub_name_parse(&n, "hf:own/re.po-1", &err), WG_OK);
    cr_assert_str_eq(n.repo, "own/re.po-1");
    cr_assert_str_eq(n.revision, "main");
    cr_assert_str_eq(n.pick, "");
    cr_assert_eq(wg_hub_name_parse(&n, "hf:own/repo@v1:sub/a.gguf", &err), WG_OK);
    cr_assert_str_eq(n.repo, "own/repo");
    cr_assert_str_eq(n.revision, "v1");
    cr_assert_str_eq(n.pick, "sub/a.gguf");
    static const char *const wrong[] = { "hf:",      "hf:a",        "hf:/b",       "hf:a/",      "hf:../b",     "hf:a/..",
                                         "hf:a/b/c", "hf:a/b:../c", "hf:a/b:/c",   "hf:a/b@",    "hf:a/b@../c", "hf:a/b:",
                                         "hf:a b/c", "hf:a--b/c",   "hf:a/b:x\\y", "hf:a/b:x\ny" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect_eq(wg_hub_name_parse(&n, wrong[i], &err), WG_EINVAL, "%s", wrong[i]);
}

static int picked(const char *const *file, int n, const char *pick, int *count)
{
    bool chosen[16];
    int first = -2;
    wg_error err;
    *count = 0;
    if (wg_hub_pick("o/r", file, n, pick, chosen, &first, &err)) return -2;
    for (int i = 0; i < n; i++) *count += chosen[i];
    return first;
}

Test(model_name, files_that_are_meant)
{
    static const char *const files[] = { "README.md",
                                         "m-Q4_K_S.gguf",
                                         "m-Q4_K_M.gguf",
                                         "mmproj-m-Q8_0.gguf",
                                         "m-Q8_0.gguf",
                                         "m-F16-00001-of-00002.gguf",
                                         "m-F16-00002-of-00002.gguf",
                                         "x/m-q2_k.gguf" };
    int n;
    cr_expect_eq(picked(files, 8, "", &n), 2);
    cr_expect_eq(n, 1); /* Q4_K_M */
    cr_expect_eq(picked(files, 8, "q8_0", &n), 4);
    cr_expect_eq(n, 1);
    cr_expect_eq(picked(files, 8, "Q4_K", &n), -2); /* a word of its own */
    cr_expect_eq(picked(files, 8, "F16", &n), 5);
    cr_expect_eq(n, 2);
    cr_expect_eq(picked(files, 8, "m-q2_k.gguf", &n), 7);
    cr_expect_eq(n, 1);
    cr_expect_eq(picked(files, 8, "m-Q4_K_S.gguf", &n), 1);
    cr_expect_eq(picked(files, 2, "", &n), 1); /* the only one */
    static const char *const folder[] = { "config.json",    "model-1.safetensors", "model-2.safetensors",
                                          "tokenizer.json", "README.md",           "x.bin" };
    cr_expect_eq(picked(folder, 6, "", &n), -1);
    cr_expect_eq(n, 4);
    cr_expect_eq(picked(folder, 6, "Q8_0", &n), -2);
    cr_expect_eq(picked(folder + 3, 3, "", &n), -2);
}

Test(model_name, names_that_would_leave_their_folder)
{
    static const char *const unsafe[] = { "", "/a", "..", "a/../b", "a/..", "./a", "a//b", "a/", "a\\b", "a\tb" };
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        cr_expect_not(wg_hub_file_is_safe(unsafe[i]), "'%s'", unsafe[i]);
    cr_expect(wg_hub_file_is_safe("a/b.c") && wg_hub_file_is_safe("..a") && wg_hub_file_is_safe("a b"));
}

static void make(const char *path) { file_write(path, "x", 1); }

Test(model_name, where_a_name_leads)
{
    char dir[] = "/tmp/wg_names_XXXXXX", path[PATH_MAX], want[PATH_MAX];
    wg_error err;
    cr_assert(mkdtemp(dir) && chdir(dir) == 0);
    setenv("XDG_CACHE_HOME", dir, 1);
    unsetenv("HF_HOME"), unsetenv("HF_HUB_CACHE");
    cr_assert_eq(wg_model_path("some/file.gguf", path, &err), WG_OK);
    cr_expect_str_eq(path, "some/file.gguf");
    cr_expect_eq(wg_model_path("smollm2-135m-instruct", path, &err), WG_ENOENT);
    cr_expect(strstr(err.text, "wager pull smollm2-135m-instruct"), "%s", err.text);
    cr_assert(!mkdir("wager", 0700) && !mkdir("wager/models", 0700));
    make("wager/models/smollm2-135m-instruct-q4_1.gguf");
    cr_expect_eq(wg_model_path("smollm2-135m-instruct", path, &err), WG_OK);
    snprintf(want, sizeof want, "%s/wager/models/smollm2-135m-instruct-q4_1.gguf", dir);
    cr_expect_str_eq(path, want);
    make("smollm2-135m-instruct"); /* a file of that name comes first */
    cr_expect_eq(wg_model_path("smollm2-135m-instruct", path, &err), WG_OK);
    cr_expect_str_eq(path, "smollm2-135m-instruct");

    cr_expect_eq(wg_model_path("hf:o/r:Q8_0", path, &err), WG_ENOENT);
    cr_expect(strstr(err.text, "wager pull hf:o/r:Q8_0"), "%s", err.text);
    setenv("HF_HUB_CACHE", dir, 1);
    static const char *const folders[] = { "models--o--r", "models--o--r/refs", "models--o--r/snapshots",
                                           "models--o--r/snapshots/c0" };
    for (int i = 0; i < 4; i++) cr_assert_eq(mkdir(folders[i], 0700), 0);
    file_write("models--o--r/refs/main", "c0\n", 3);
    make("models--o--r/snapshots/c0/m-Q8_0.gguf");
    cr_expect_eq(wg_model_path("hf:o/r:Q8_0", path, &err), WG_OK, "%s", err.text);
    snprintf(want, sizeof want, "%s/./models--o--r/snapshots/c0/m-Q8_0.gguf", dir);
    cr_expect_str_eq(path, want);
    cr_expect_eq(wg_model_path("hf:o/r@c0", path, &err), WG_OK);
    file_write("models--o--r/refs/main", "../..", 5);
    cr_expect_eq(wg_model_path("hf:o/r:Q8_0", path, &err), WG_ENOENT); /* a commit that would leave the folder */
}
