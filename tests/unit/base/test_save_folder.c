/* SPDX-License-Identifier: MIT
 * Folders that appear whole, or not at all. */
#include <criterion/criterion.h>
#include <sys/stat.h>

#include "core/base/mem.h"
#include "core/base/save.h"
#include "tests/temp.h"

static temp t;
static void setup(void) { temp_make(&t); }
static void teardown(void) { temp_remove(&t); }
TestSuite(save_folder, .init = setup, .fini = teardown);

static void put_in(const wg_save_folder *f, const char *name)
{
    char path[WG_SAVE_FOLDER_PATH + 100];
    snprintf(path, sizeof path, "%s/%s", wg_save_folder_part(f), name);
    file_write(path, "x", 1);
}

Test(save_folder, appears_when_it_is_committed)
{
    wg_save_folder *f;
    wg_error err;
    char out[600];
    struct stat st;
    const size_t before = wg_mem_read().live_blocks;
    snprintf(out, sizeof out, "%s/", temp_at(&t, "out")); /* a slash behind the name changes nothing */
    cr_assert_eq(wg_save_folder_open(&f, out, &err), WG_OK, "%s", err.text);
    put_in(f, "a");
    cr_assert_neq(stat(out, &st), 0);
    cr_assert_eq(wg_save_folder_commit(f, &err), WG_OK, "%s", err.text);
    cr_assert_eq(dir_count(out), 1);
    cr_assert_eq(dir_count(t.dir), 1, "nothing beside it");
    cr_assert_eq(wg_save_folder_open(&f, out, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "is a folder with files in it; name one that does not exist, or remove it first"));
    unlink(temp_at(&t, "out/a"));
    cr_assert_eq(wg_save_folder_open(&f, out, &err), WG_OK, "an empty folder: %s", err.text);
    put_in(f, "b");
    cr_assert_eq(wg_save_folder_commit(f, &err), WG_OK, "%s", err.text);
    unlink(temp_at(&t, "out/b"));
    rmdir(temp_at(&t, "out"));
    cr_assert_eq(wg_mem_read().live_blocks, before);
}

Test(save_folder, leaves_nothing_behind)
{
    wg_save_folder *f;
    wg_error err;
    const size_t before = wg_mem_read().live_blocks;
    cr_assert_eq(wg_save_folder_open(&f, temp_at(&t, "out"), &err), WG_OK);
    put_in(f, "a"), put_in(f, ".b");
    wg_save_folder_abort(f);
    wg_save_folder_abort(NULL);
    cr_assert_eq(dir_count(t.dir), 0);
    cr_assert_eq(wg_save_folder_open(&f, temp_at(&t, "out"), &err), WG_OK);
    put_in(f, "a");
    file_write(temp_at(&t, "out"), "x", 1); /* somebody takes the name */
    cr_assert_eq(wg_save_folder_commit(f, &err), WG_EIO);
    cr_assert(strstr(err.text, "cannot give the folder its name"));
    cr_assert_eq(dir_count(t.dir), 1);
    cr_assert_eq(wg_save_folder_open(&f, temp_at(&t, "out"), &err), WG_EINVAL, "a file");
    cr_assert_eq(wg_save_folder_open(&f, temp_at(&t, "out/x/y"), &err), WG_EIO, "below a file");
    cr_assert(strstr(err.text, "/out/x: cannot make this folder: Not a directory"), "%s", err.text);
    cr_assert_eq(wg_save_folder_open(&f, temp_at(&t, "a/b//out/"), &err), WG_OK, "%s", err.text);
    put_in(f, "a");
    cr_assert_eq(wg_save_folder_commit(f, &err), WG_OK);
    cr_assert_eq(dir_count(temp_at(&t, "a/b/out")), 1, "the folders above it are made");
    cr_assert_eq(wg_save_folder_open(&f, "", &err), WG_EINVAL);
    cr_assert_eq(wg_mem_read().live_blocks, before);
}
