/* SPDX-License-Identifier: MIT
 * Ranks that are threads: the same logits as one rank, and an error that names a rank whose rows differ. */
#include "core/model/model_impl.h"
#include "core/model/ranks.h"
#include "tests/unit/model/one_sequence.h"
#include "tests/unit/model/tiny_model.h"

enum { RANKS = 3, TOKENS = 7, VOCAB = 96 };

static const tiny shape = {
    .layers = 2, .dim = 96, .heads = 3, .kv_heads = 3, .head_dim = 32, .hidden = 96, .vocab = VOCAB, .context = 64, .seed = 7
};

/* What another rank opens, on one thread; user: the rank whose output norm is wrong. */
static wg_status open_rank(void *user, const void *what, size_t bytes, const wg_model_ranks *in, wg_model **out, void **held,
                           wg_error *err)
{
    const wg_weights *w;
    wg_device d;
    const wg_model_options opt = { .kv_type = WG_F16, .ranks = *in };
    (void)held;
    cr_assert_eq(bytes, sizeof w);
    memcpy(&w, what, sizeof w);
    must(wg_device_cpu(&d, NULL, err), err);
    WG_TRY(wg_model_open(out, w, &d, &opt, err));
    if (in->comm->rank == *(const int *)user) (*out)->out_norm[3] += 1;
    return WG_OK;
}

static void close_rank(void *held) { (void)held; }

/* One pass of all tokens on the ranks, of which one has a wrong norm (-1: none). held: the bytes of all ranks. */
static wg_status pass(const wg_weights *w, int wrong, float *logits, wg_rank_held *held, wg_error *err)
{
    static const int32_t token[TOKENS] = { 1, 9, 4, 40, 7, 7, 2 };
    wg_rank_threads *ranks;
    const wg_rank_opener by = { .open = open_rank, .close = close_rank, .user = &wrong };
    setup u;
    wg_model_options opt = { .kv_type = WG_F16 };
    must(wg_rank_threads_open(&ranks, RANKS, &by, err), err);
    must(wg_ranks_tell_open(wg_rank_threads_comm(ranks), &w, sizeof w, &opt.ranks, err), err);
    must(wg_device_cpu(&u.device, NULL, err), err);
    must(wg_model_open(&u.model, w, &u.device, &opt, err), err);
    must(wg_ranks_agree(wg_rank_threads_comm(ranks), WG_OK, u.model, err), err);
    cr_assert_eq(wg_ranks_held(u.model, held), RANKS);
    u.lm = wg_model_lm(u.model);
    must(wg_kv_open(&u.kv, 16, 64, 1024, err), err);
    must(wg_lm_attach(u.lm, u.kv, err), err);
    must(wg_kv_seq_open(u.kv, &u.seq, err), err);
    must(wg_batch_open(&u.batch, TOKENS, err), err);
    must(wg_kv_reserve(u.seq, TOKENS, err), err);
    wg_batch_clear(&u.batch);
    must(wg_lm_forward(u.lm, &u.batch, logits, err), err); /* a pass without rows is none */
    wg_batch_chain(&u.batch, u.seq, 0, token, TOKENS, TOKENS);
    const wg_status s = wg_lm_forward(u.lm, &u.batch, logits, err);
    wg_kv_rollback(u.seq);
    setup_close(&u);
    wg_rank_threads_close(ranks);
    return s;
}

Test(ranks, a_rank_whose_rows_differ_is_named, .timeout = 60)
{
    wg_error err;
    wg_weights *w;
    char name[128], want[64];
    float ranked[TOKENS * VOCAB], alone[TOKENS * VOCAB];
    static const int32_t token[TOKENS] = { 1, 9, 4, 40, 7, 7, 2 };
    must(tiny_open(&shape, &w, name, &err), &err);
    wg_rank_held held[WG_RANKS_MOST], one[WG_RANKS_MOST];
    setup u = setup_open(w, WG_F16, 0);
    cr_assert_eq(wg_ranks_held(u.model, one), 1);
    feed(&u, token, TOKENS, alone);
    setup_close(&u);
    must(pass(w, -1, ranked, held, &err), &err);
    cr_assert(memcmp(ranked, alone, sizeof alone) == 0);
    /* what all have: rotary angles, and two norms of each layer and the last one */
    const uint64_t all = held[0].weights + held[1].weights + held[2].weights;
    const uint64_t twice = (64 * 32 + 5 * 96) * sizeof(float);
    cr_assert_eq(all, one[0].weights + 2 * twice, "%zu bytes of %zu", (size_t)all, (size_t)one[0].weights);
    cr_assert(held[1].pass < held[1].weights && held[1].pass < one[0].pass / 2);
    for (int wrong = 1; wrong < RANKS; wrong++) {
        snprintf(want, sizeof want, "ranks: rank %d has other rows than rank 0", wrong);
        cr_assert_eq(pass(w, wrong, ranked, held, &err), WG_EIO);
        cr_assert(strstr(err.text, want), "%s", err.text);
    }
    wg_weights_close(w);
}
