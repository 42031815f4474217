/* SPDX-License-Identifier: MIT
 * A plug-in with one fault, chosen by FAULT when it is compiled (tests/CMakeLists.txt). */
#include "draft/external/drafter_plugin.h"

enum {
    NONE,
    WRONG_ABI,
    WRONG_TREE,
    WRONG_SIZE,
    NO_TABLE,
    WRONG_LAW,
    NO_PROPOSE,
    UNDECLARED,
    FAILS,
    WRONG_ROOT,
    LONG_ENV,
    SHORT_ENV,
    NEGATIVE, /* a row that sums to 1 with an entry below 0, */
    NOT_A_NUMBER,
    ABOVE_ONE, /* or with one above 1 alone */
    POINT,     /* a one-hot row of a token that there is not */
    SUPPORT,   /* a support that is not ascending */
    SHORT,     /* entries in 0..1 that sum to 0.9 */
};
enum { DRAWS = FAULT == UNDECLARED || (FAULT >= NEGATIVE && FAULT <= SHORT) };

/* A row of q with the fault; token 0 is drawn from it. */
static void write_row(wg_rows *q, int row)
{
    double *p = q->p + (size_t)row * (size_t)q->vocab;
    for (int x = 0; x < q->vocab; x++) p[x] = 0;
    p[0] = FAULT == ABOVE_ONE ? 1.5 : 0.75;
    p[1] = FAULT == NEGATIVE ? -0.25 : FAULT == NOT_A_NUMBER ? 0.0 / 0.0 * p[0] : FAULT == SHORT ? 0.15 : 0.25;
    p[2] = FAULT == NEGATIVE ? 0.5 : 0;
    q->point[row] = FAULT == POINT ? q->vocab : -1;
    if (FAULT != SUPPORT) return;
    q->support[(size_t)row * (size_t)q->room] = 1;
    q->support[(size_t)row * (size_t)q->room + 1] = 0;
    q->supported[row] = 2;
}

/* Token 0 after the text, as if it were drawn. */
static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    (void)d;
    if (FAULT == FAILS) {
        if (err) err->code = WG_EIO;
        return WG_EIO;
    }
    for (int i = 0; i < n; i++) {
        wg_tree_reset(&out[i], seq[i]->token[seq[i]->n - 1] + (FAULT == WRONG_ROOT), DRAWS ? WG_LAW_IID : WG_LAW_FIXED);
        const int row = q->n++;
        q->point[row] = 0;
        q->supported[row] = -1;
        q->lazy[row].state = WG_ROW_THERE;
        if (FAULT >= NEGATIVE) write_row(q, row);
        wg_tree_push(&out[i], 0, 0, row);
    }
    return WG_OK;
}

static const wg_drafter_class bad = {
    .name = "bad",
    .size = sizeof(wg_drafter),
    .laws = FAULT == WRONG_LAW             ? WG_LAW_FIXED | WG_LAW_WITHOUT_REPLACEMENT
            : DRAWS && FAULT != UNDECLARED ? WG_LAW_IID
                                           : WG_LAW_FIXED,
    .propose =
        FAULT == NO_PROPOSE ? (wg_status(*)(wg_drafter *, wg_seq *const *, int, wg_tree *, wg_rows *, wg_error *))0 : propose,
};

#if FAULT == 4
WG_PLUGIN_API extern const wg_drafter_class *const wg_plugin_other;
const wg_drafter_class *const wg_plugin_other = &bad;
#else
extern WG_PLUGIN_API const wg_plugin_table wg_plugin_drafter;
const wg_plugin_table wg_plugin_drafter = {
    .abi = WG_DRAFTER_ABI + (FAULT == WRONG_ABI ? 6 : 0),
    .tree_max = FAULT == WRONG_TREE ? 5 : WG_TREE_MAX,
    .class_size = sizeof(wg_drafter_class),
    .env_size = FAULT == LONG_ENV    ? sizeof(wg_env) + 8
                : FAULT == SHORT_ENV ? WG_DRAFTER_ENV_LEAST
                                     : sizeof(wg_env),
    .seq_size = sizeof(wg_seq) + (FAULT == WRONG_SIZE ? 8 : 0),
    .tree_size = sizeof(wg_tree),
    .rows_size = sizeof(wg_rows),
    .drafter = &bad,
};
#endif
