/* SPDX-License-Identifier: MIT
 * What killed writers leave is removed by the next writer of the same name; what living ones write is not. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/save.h"
#include "tests/temp.h"

static temp t;
static void setup(void) { temp_make(&t); }
static void teardown(void) { temp_remove(&t); }
TestSuite(part_lock, .init = setup, .fini = teardown);

static wg_save *open_save(const char *name)
{
    wg_save *s;
    wg_error err;
    cr_assert_eq(wg_save_open(&s, temp_at(&t, name), &err), WG_OK, "%s", err.text);
    return s;
}

static wg_save_folder *open_folder(const char *name)
{
    wg_save_folder *f;
    wg_error err;
    char path[WG_SAVE_FOLDER_PATH + 10];
    cr_assert_eq(wg_save_folder_open(&f, temp_at(&t, name), &err), WG_OK, "%s", err.text);
    snprintf(path, sizeof path, "%s/a", wg_save_folder_part(f));
    file_write(path, "x", 1);
    return f;
}

/* A process that has a part of each, until it is killed. Returns when both are there. */
static pid_t writer(const char *file, const char *folder)
{
    int ready[2];
    char byte;
    cr_assert_eq(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves no process */
        open_save(file);
        open_folder(folder);
        if (write(ready[1], "x", 1) == 1) pause();
        _exit(1);
    }
    cr_assert_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]), close(ready[1]);
    return child;
}

static void kill_now(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

Test(part_lock, the_next_writer_removes_what_a_killed_one_left)
{
    wg_error err;
    kill_now(writer("a.gguf", "folder"));
    kill_now(writer("a.gguf", "folder"));
    cr_assert_eq(dir_count(t.dir), 2, "of the file; of the folder: each swept by its next writer");
    kill_now(writer("b.gguf", "b"));
    cr_assert_eq(dir_count(t.dir), 4, "parts of other names stay");
    cr_assert_eq(wg_save_commit(open_save("a.gguf"), &err), WG_OK);
    cr_assert_eq(wg_save_folder_commit(open_folder("folder"), &err), WG_OK);
    cr_assert_eq(dir_count(t.dir), 4, "file and folder, and the parts of b");
    cr_assert_eq(access(temp_at(&t, "a.gguf"), F_OK), 0);
}

Test(part_lock, parts_of_living_writers_stay)
{
    const pid_t child = writer("a.gguf", "folder");
    wg_save *one = open_save("a.gguf"), *two = open_save("a.gguf");
    wg_save_folder *folder = open_folder("folder");
    wg_error err;
    cr_assert_eq(dir_count(t.dir), 5);
    kill_now(child);
    cr_assert_eq(wg_save_commit(one, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_save_commit(two, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_save_folder_commit(folder, &err), WG_OK, "%s", err.text);
    cr_assert_eq(dir_count(t.dir), 4, "file and folder, and what the killed one left");
    wg_save_abort(open_save("a.gguf"));
    unlink(temp_at(&t, "folder/a"));
    wg_save_folder_abort(open_folder("folder"));
    cr_assert_eq(dir_count(t.dir), 2);
}

/* Names that only look like those of parts are somebody's files. */
Test(part_lock, other_names_stay)
{
    static const char *const names[] = { "a.part", "a.x1.part", "a.1.parts", "ab.12-0.part", "a..part" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) file_write(temp_at(&t, names[i]), "x", 1);
    file_write(temp_at(&t, "a.12-0.part"), "x", 1);
    wg_save_abort(open_save("a"));
    cr_assert_eq(dir_count(t.dir), sizeof names / sizeof *names);
}
