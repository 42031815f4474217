/* SPDX-License-Identifier: MIT
 * Two real models against known results: stories260K's greedy story, and alpha = E[sum min(p, q)] of the pair stories260K
 * (target) and stories279K (draft) at temperature 1 on text of the target, which is 0.668 (measured elsewhere on 11,000 to
 * 15,000 positions).
 *
 * Which positions. alpha must be a mean over all positions of target-sampled text, each with the same weight. The engine
 * measures it at every node where a path arrived and the drafter had a q row; a fully accepted draft ends at a node without
 * one, and those places follow runs of acceptances: they are the easy ones, so a short draft would measure too little (and
 * measuring roots alone is no better: a root follows a rejection). A draft so long that it is hardly ever accepted
 * completely measures nearly every position once. The omitted share is printed, and the test fails when it exceeds one per
 * cent: it then moves alpha by 0.007 at most. Rejection (not match) accepts longest; either gives text with the target's
 * law.
 *
 * Needs the shared data. */
#include <math.h>

#include "tests/law/plain_decode.h"

enum { STORIES = 50, TOKENS = 250, LENGTH = 24 }; /* the draft model's context is 256 */
static const double known_alpha = 0.668, tolerance = 0.02;
static const char beginning[] =
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she "
    "saw a big, red ball. She wanted to play with it, but it was too high";

/* Appends the bytes of a token: pieces stand in tokenizer.bin as u32 longest, then {f32 score, u32 bytes, text} each. */
static size_t piece(const char *vocabulary, size_t size, int32_t id, char *out)
{
    size_t at = 4;
    for (int i = 0; at + 8 <= size; i++) {
        uint32_t n;
        memcpy(&n, vocabulary + at + 4, 4);
        at += 8;
        if (n > size - at) break;
        if (i == id) {
            memcpy(out, vocabulary + at, n);
            return n;
        }
        at += n;
    }
    return 0;
}

static int check_story(const law_model *target, const char *tokenizer)
{
    static char vocabulary[1 << 16], text[1 << 12];
    FILE *f = fopen(tokenizer, "rb");
    if (!f) exit((perror(tokenizer), 1));
    const size_t size = fread(vocabulary, 1, sizeof vocabulary, f);
    fclose(f);
    const int32_t bos = 1;
    const law_request r = { &bos, 1, 120 };
    law_output o = { 0 };
    wg_counts counts = { 0 };
    const law_setup s = {
        .target = target, .drafter = "none", .rule = "greedy", .sampling = WG_SAMPLING(0, 0, 1, 0), .batch = 1
    };
    law_decode(&s, &r, 1, &o, &counts);
    size_t n = 0;
    for (int i = 0; i < o.n && n < sizeof text - 16; i++) n += piece(vocabulary, size, o.token[i], text + n);
    text[n] = '\0';
    const char *story = text + (text[0] == ' '); /* the first word has its leading space */
    printf("greedy: %.170s\n", story);
    law_free(&o, 1);
    if (!strncmp(story, beginning, sizeof beginning - 1)) return 0;
    fprintf(stderr, "FAILED: the greedy story does not begin with\n        %s\n", beginning);
    return 1;
}

static int check_alpha(const law_model *target, const char *draft)
{
    const int32_t bos = 1;
    law_request r[STORIES];
    law_output o[STORIES] = { 0 };
    for (int i = 0; i < STORIES; i++) r[i] = (law_request){ &bos, 1, TOKENS };
    char options[700];
    snprintf(options, sizeof options, "model=%s,length=%d,kv_type=f32", draft, LENGTH);
    wg_counts c = { 0 };
    const law_setup s = { .target = target,
                          .drafter = "model",
                          .options = options,
                          .rule = "rejection",
                          .sampling = WG_SAMPLING(1, 0, 1, 0),
                          .seed = 5,
                          .batch = 10,
                          .alpha = true };
    law_decode(&s, r, STORIES, o, &c);
    law_free(o, STORIES);
    const double alpha = c.alpha_sum / (double)c.alpha_n, missed = 1 - (double)c.alpha_n / (double)c.emitted;
    printf("alpha %.4f over %ld of %ld positions (%.2f %% left out), known %.3f; tau %.2f\n", alpha, c.alpha_n, c.emitted,
           100 * missed, known_alpha, (double)c.emitted / (double)c.passes);
    int failures = 0;
    if (c.alpha_n < 10000) fprintf(stderr, "FAILED: %ld positions, 10000 needed\n", c.alpha_n), failures++;
    if (missed > 0.01)
        fprintf(stderr, "FAILED: %.2f %% of the positions were not measured, 1 %% allowed\n", 100 * missed), failures++;
    if (!(fabs(alpha - known_alpha) <= tolerance))
        fprintf(stderr, "FAILED: alpha %.4f is not within %g of %g\n", alpha, tolerance, known_alpha), failures++;
    return failures;
}

int main(void)
{
    const char *shared = getenv("WG_SHARED");
    if (!shared) {
        printf("SKIPPED: WG_SHARED not set\n");
        return LAW_SKIP;
    }
    char path[3][512];
    static const char *const name[] = { "stories260K.bin", "stories279K_tok512_llama2xs.bin", "tok512.bin" };
    for (int i = 0; i < 3; i++) snprintf(path[i], sizeof path[i], "%s/weights/llama2c/%s", shared, name[i]);
    law_model target;
    law_model_open(&target, path[0], 1, wg_cpu_chosen(), WG_F32);
    int failures = check_story(&target, path[2]);
#ifdef WG_HARD
    printf("alpha: not measured, trees of a hard build are too small for %d tokens\n", LENGTH);
    (void)check_alpha;
#else
    failures += check_alpha(&target, path[1]);
#endif
    law_model_close(&target);
    return failures != 0;
}
