/* SPDX-License-Identifier: MIT
 * Two files of f32: the largest difference, relative to the largest number of the first, as a line of JSON.
 * usage: gpu_suite compare NAME A.f32 B.f32 LIMIT      exit 1 when it is not below LIMIT, or one has another length or a NaN */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/gpu/suite.h"

int wg_suite_compare(int argc, char **argv)
{
    double most = 0, off = 0;
    long n = 0;
    float a, b;
    size_t got_a, got_b;
    if (argc != 5) return fprintf(stderr, "usage: gpu_suite compare NAME A.f32 B.f32 LIMIT\n"), 2;
    FILE *fa = fopen(argv[2], "rb"), *fb = fopen(argv[3], "rb");
    if (!fa || !fb) return perror(fa ? argv[3] : argv[2]), 2;
    while (got_a = fread(&a, 4, 1, fa), got_b = fread(&b, 4, 1, fb), got_a && got_b) {
        const double d = fabs((double)a - (double)b);
        if (d > off || isnan(d)) off = d; /* a NaN stays */
        most = fmax(most, fabs((double)a));
        n++;
    }
    const int same_length = got_a == got_b;
    fclose(fa), fclose(fb);
    off = most > 0 ? off / most : off;
    if (!same_length || n == 0 || !(off < atof(argv[4])))
        return fprintf(stderr, "%s: %ld numbers%s differ by %g of the largest\n", argv[1], n,
                       same_length ? "" : " (another length)", off),
               1;
    printf("{\"type\": \"%s\", \"difference\": %.9g, \"logits\": %ld}\n", argv[1], off, n);
    return 0;
}
