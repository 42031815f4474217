/* SPDX-License-Identifier: MIT */
#include "core/engine/seq.h"

#include <criterion/criterion.h>
#include <string.h>

enum { EOG = 99 };

static bool is_eog(const void *user, int32_t token) { return token == *(const int *)user; }
static const int eog = EOG;

typedef struct fixture {
    wg_seq s;
    int32_t token[32];
    uint8_t drafted[32];
} fixture;

static void start(fixture *f, int n, int limit)
{
    memset(f, 0, sizeof *f);
    f->s = (wg_seq){ .token = f->token, .drafted = f->drafted, .n = n, .prompt = n, .cap = 32, .limit = limit };
    f->s.chance = wg_chance_philox(1, 0, (uint32_t)n);
}

/* A chain of four and a sibling of its first node: root -> 1(10) -> 3(11) -> 4(12) -> 5(13), root -> 2(20). */
static wg_tree tree(void)
{
    wg_tree t;
    wg_tree_reset(&t, 7, WG_LAW_FIXED);
    wg_tree_push(&t, 0, 10, -1);
    wg_tree_push(&t, 0, 20, -1);
    wg_tree_push(&t, 1, 11, -1);
    wg_tree_push(&t, 3, 12, -1);
    wg_tree_push(&t, 4, 13, -1);
    return t;
}

static const wg_path three = { .n = 4, .node = { 0, 1, 3, 4 }, .next = 50 };

Test(seq, appends_the_path)
{
    fixture f;
    const wg_tree t = tree();
    start(&f, 2, 20);
    cr_assert(wg_seq_room(&f.s) == 17);
    wg_seq_append(&f.s, &t, &three, is_eog, &eog);
    const int32_t want[] = { 10, 11, 12, 50 };
    cr_assert(f.s.n == 6 && memcmp(f.token + 2, want, sizeof want) == 0 && f.s.finish == WG_RUNNING);
    cr_assert(f.drafted[2] == 1 && f.drafted[4] == 1 && f.drafted[5] == 0);
    cr_assert(f.s.chance.position == 6 && f.s.path.n == 4 && f.s.path.next == 50);
    const wg_counts *c = &f.s.counts;
    cr_assert(c->passes == 1 && c->drafted == 5 && c->accepted == 3 && c->emitted == 4);
    cr_assert(c->offered_at[1] == 1 && c->offered_at[4] == 1 && c->offered_at[5] == 0);
    cr_assert(c->accepted_at[1] == 1 && c->accepted_at[3] == 1 && c->accepted_at[4] == 0);
    cr_assert(c->tried_at[1] == 1 && c->tried_at[3] == 1 && c->tried_at[4] == 1 && c->tried_at[5] == 0);
    cr_assert(f.s.last_nodes == 6 && f.s.last_height == 4 && f.s.last_emitted == 4);
    const wg_path none = { .n = 1, .node = { 0 }, .next = 51 };
    wg_seq_append(&f.s, &t, &none, NULL, NULL);
    wg_counts sum = { .passes = 1, .alpha_n = 2, .alpha_star_sum = 0.5, .alpha_star_n = 3 };
    wg_counts_add(&sum, c);
    cr_assert(f.s.n == 7 && f.token[6] == 51 && sum.passes == 3 && sum.drafted == 10 && sum.accepted == 3 && sum.emitted == 5);
    cr_assert(sum.offered_at[4] == 2 && sum.accepted_at[1] == 1 && sum.alpha_n == 2);
    cr_assert(sum.tried_at[1] == 2 && sum.tried_at[2] == 1 && sum.tried_at[4] == 1);
    wg_counts_add(&sum, &sum);
    cr_assert(sum.alpha_star_sum == 1 && sum.alpha_star_n == 6);
}

Test(seq, the_limit_cuts)
{
    const wg_tree t = tree();
    for (int room = 1; room <= 4; room++) {
        fixture f;
        start(&f, 2, 2 + room);
        wg_seq_append(&f.s, &t, &three, is_eog, &eog);
        cr_assert(f.s.n == f.s.limit && f.s.finish == WG_FINISH_LENGTH && f.s.path.n == room);
        cr_assert(f.s.path.next == f.token[f.s.n - 1] && f.s.counts.emitted == room);
        cr_assert(f.s.counts.accepted == room - 1 && f.drafted[f.s.n - 1] == 0, "the last token is next, whoever proposed it");
        for (int d = 1; d <= 4; d++)
            cr_assert_eq(f.s.counts.tried_at[d], d < room || room == 4, "from the end on nothing was tried");
    }
}

Test(seq, the_end_of_generation_cuts)
{
    for (int at = 0; at < 4; at++) {
        fixture f;
        wg_tree t = tree();
        wg_path path = three;
        if (at < 3) t.token[three.node[at + 1]] = EOG;
        else path.next = EOG;
        start(&f, 2, 20);
        wg_seq_append(&f.s, &t, &path, is_eog, &eog);
        cr_assert(f.s.finish == WG_FINISH_EOS && f.s.n == 3 + at && f.token[f.s.n - 1] == EOG);
        cr_assert(f.s.path.n == at + 1 && f.s.path.next == EOG && f.s.chance.position == (uint32_t)f.s.n);
        cr_assert(f.s.counts.accepted == at && f.s.counts.emitted == at + 1,
                  "1 + accepted per step are the tokens that it emits");
        for (int d = 1; d <= 4; d++) cr_assert_eq(f.s.counts.tried_at[d], d <= at || at == 3);
        start(&f, 2, 20);
        wg_seq_append(&f.s, &t, &path, NULL, NULL); /* no token ends a text */
        cr_assert(f.s.finish == WG_RUNNING && f.s.n == 6);
    }
}

/* Position d counts as tried where the path accepted d - 1 tokens and could have accepted another: a sibling's subtree that is
 * deeper is no such offer. */
Test(seq, tried_is_offered_behind_the_accepted)
{
    fixture f;
    const wg_tree t = tree();
    const wg_path leaf = { .n = 2, .node = { 0, 2 }, .next = 50 };
    start(&f, 2, 20);
    wg_seq_append(&f.s, &t, &leaf, NULL, NULL);
    const wg_counts *c = &f.s.counts;
    cr_assert(c->offered_at[2] == 1 && c->accepted_at[1] == 1);
    cr_assert(c->tried_at[1] == 1 && c->tried_at[2] == 0, "node 2 has no child");
}

/* A step without a draft has a reason: the drafter's, but none had a chance where only `next` fits. */
Test(seq, a_root_alone_has_a_reason)
{
    static const int reasons[] = { WG_NO_DRAFT_NOTHING, WG_NO_DRAFT_CONTEXT, WG_NO_DRAFT_POLICY, WG_NO_DRAFT_ROOM, 77, -1 };
    const wg_path none = { .n = 1, .node = { 0 }, .next = 51 };
    for (int room = 1; room >= 0; room--)
        for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
            fixture f;
            wg_tree t;
            wg_tree_reset(&t, 7, WG_LAW_FIXED);
            cr_assert_eq(t.no_draft, WG_NO_DRAFT_NOTHING);
            t.no_draft = (wg_no_draft)reasons[i];
            start(&f, 2, 3 + room);
            wg_seq_append(&f.s, &t, &none, NULL, NULL);
            const wg_counts *c = &f.s.counts;
            const int want = !room ? WG_NO_DRAFT_ROOM : i < WG_NO_DRAFT_ROOM ? reasons[i] : WG_NO_DRAFT_NOTHING;
            for (int k = 0; k < WG_NO_DRAFT_REASONS; k++)
                cr_assert_eq(c->without_draft[k], k == want, "room %d, reason %zu", room, i);
            cr_assert(c->tried_at[1] == 0 && c->offered_at[1] == 0);
            wg_counts sum = *c;
            wg_counts_add(&sum, c);
            cr_assert_eq(sum.without_draft[want], 2);
        }
}
