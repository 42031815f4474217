/* SPDX-License-Identifier: MIT
 * Runs a fuzz target over stored inputs: replay PATH... (files, or folders whose files are all run). An empty corpus is an
 * error: a test that runs nothing must not pass. Linked with one fuzz_*.c; libFuzzer replaces this file with its own main. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat sb;
    if (!f || fstat(fileno(f), &sb) != 0) {
        perror(path);
        exit(1);
    }
    const size_t n = (size_t)sb.st_size;
    uint8_t *bytes = malloc(n ? n : 1); /* exactly as large as the input, so that a sanitizer sees one step too far */
    if (!bytes || fread(bytes, 1, n, f) != n) {
        fprintf(stderr, "%s: cannot read\n", path);
        exit(1);
    }
    fclose(f);
    LLVMFuzzerTestOneInput(bytes, n);
    free(bytes);
    return 1;
}

static int run_path(const char *path)
{
    struct stat sb;
    if (stat(path, &sb) != 0) {
        perror(path);
        exit(1);
    }
    if (!S_ISDIR(sb.st_mode)) return run_file(path);
    DIR *d = opendir(path);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        char name[4096];
        if (e->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        n += run_path(name);
    }
    if (d) closedir(d);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++) n += run_path(argv[i]);
    printf("%d inputs\n", n);
    return n == 0;
}
