/* SPDX-License-Identifier: MIT
 * Drawn trees, to the letter. */
#include "experiments/report/tree_draw.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

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
