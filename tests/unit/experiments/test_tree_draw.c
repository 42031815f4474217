/* SPDX-License-Identifier: MIT
 * Drawn trees: the text to the letter; the picture has one circle a node, one line an edge, and siblings side by side. */
#include "experiments/report/tree_draw.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "tests/temp.h"

Test(tree_draw, text)
{
    static const double value[WG_TREE_MAX] = { 1, 0.5, 0.25, 0.125, 0.0625 };
    char *text = NULL;
    size_t size = 0;
    wg_shape s;
    cr_assert_eq(wg_shape_kary(&s, "2-1", NULL), WG_OK);
    FILE *f = open_memstream(&text, &size);
    wg_tree_draw_text(f, &s, value);
    fclose(f);
    cr_assert_str_eq(text, "root                                    1.0000\n"
                           "├─ 1                                    0.5000\n"
                           "│  └─ 1.1                               0.1250\n"
                           "└─ 2                                    0.2500\n"
                           "   └─ 2.1                               0.0625\n");
    free(text);
    cr_assert_eq(wg_shape_chain(&s, WG_TREE_MAX - 1, NULL), WG_OK); /* the longest lines */
    f = open_memstream(&text, &size);
    wg_tree_draw_text(f, &s, (const double[WG_TREE_MAX]){ 1 });
    fclose(f);
    int lines = 0;
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    cr_assert_eq(lines, WG_TREE_MAX);
    free(text);
}

static int count(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text++) n++;
    return n;
}

Test(tree_draw, svg)
{
    temp dir;
    wg_error err;
    wg_shape s;
    double value[WG_TREE_MAX];
    for (int i = 0; i < WG_TREE_MAX; i++) value[i] = 1.0 / (1 + i);
    temp_make(&dir);
    char path[512];
    strcpy(path, temp_at(&dir, "tree.svg"));
    cr_assert_eq(wg_shape_kary(&s, "3-1", &err), WG_OK);
    cr_assert_eq(wg_tree_draw_svg(path, &s, value, "a < b & c", &err), WG_OK, "%s", err.text);
    char text[8192];
    FILE *f = fopen(path, "r");
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    cr_assert(count(text, "<circle ") == 7 && count(text, "<line ") == 6);
    cr_assert(strstr(text, "a &lt; b &amp; c") && !strstr(text, "a < b"));
    cr_assert(strncmp(text, "<svg ", 5) == 0 && strcmp(text + n - 7, "</svg>\n") == 0);
    const int want[] = { 124, 68, 124, 180, 68, 124, 180 }; /* the root above the middle one of three columns */
    const char *at = text;
    for (int i = 0; i < 7; i++) {
        double x;
        at = strstr(at, "<circle cx=") + 1;
        cr_assert(sscanf(at, "circle cx=\"%lf\"", &x) == 1 && x == want[i], "node %d at %g", i, x);
    }
    cr_assert_eq(wg_tree_draw_svg("/nonexistent/x.svg", &s, value, "x", &err), WG_ENOENT);
    for (uint64_t i = 1;; i++) {
        const size_t before = wg_mem_read().live_blocks;
        wg_mem_fail_at(i, false);
        const wg_status status = wg_tree_draw_svg(path, &s, value, "x", &err);
        wg_mem_fail_at(0, false);
        cr_assert(wg_mem_read().live_blocks == before && dir_count(dir.dir) == 1);
        if (status == WG_OK) break;
        cr_assert_eq(status, WG_ENOMEM);
    }
    temp_remove(&dir);
}
