/* SPDX-License-Identifier: MIT
 * The identity of a model's passes: one for one file, another where weights, types, cache, threads or the part that runs
 * differ. */
#include <criterion/criterion.h>

#include "core/model/model.h"
#include "core/model/submodel.h"
#include "core/file/synth.h"
#include "tests/temp.h"

static temp dir;
static void begin(void) { temp_make(&dir); }
static void end(void) { temp_remove(&dir); }
TestSuite(identity, .init = begin, .fini = end);

/* Of a random model; cut: layers of a submodel, 0: the whole. */
static wg_lm_identity of(const char *file, int kv_type, int threads, int cut)
{
    wg_lm_identity out = { .threads = 0 };
    wg_weights *w;
    wg_pool *pool;
    wg_device device;
    wg_model *m;
    wg_error err;
    cr_assert_eq(wg_weights_open(&w, file, &err), WG_OK, "%s", err.text);
    cr_assert(!wg_pool_open(&pool, threads, &err) && !wg_device_cpu(&device, pool, &err));
    cr_assert_eq(wg_model_open(&m, w, &device, &(wg_model_options){ .kv_type = kv_type }, &err), WG_OK, "%s", err.text);
    wg_lm *lm = wg_model_lm(m);
    wg_submodel *part = NULL;
    if (cut) cr_assert_eq(wg_submodel_open(&part, lm, &(wg_layer_plan){ .layers = cut }, &err), WG_OK, "%s", err.text);
    const wg_lm *asked = cut ? wg_submodel_lm(part) : lm;
    asked->class->identity(asked, &out);
    wg_submodel_close(part);
    wg_model_close(m);
    wg_device_close(&device);
    wg_pool_close(pool);
    wg_weights_close(w);
    return out;
}

static bool same(const wg_lm_identity *a, const wg_lm_identity *b)
{
    return !strcmp(a->weights, b->weights) && !strcmp(a->part, b->part) && !strcmp(a->device, b->device) &&
           a->threads == b->threads;
}

Test(identity, tells_models_apart)
{
    static const struct {
        int type;
        uint64_t seed;
        const char *file;
    } made[] = { { WG_F32, 1, "a.gguf" }, { WG_F32, 1, "renamed.gguf" }, { WG_F32, 2, "b.gguf" }, { WG_Q8_0, 1, "c.gguf" } };
    wg_lm_identity is[4];
    wg_error err;
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(wg_synth("tiny", made[i].type, made[i].seed, temp_at(&dir, made[i].file), &err), WG_OK, "%s", err.text);
        is[i] = of(temp_at(&dir, made[i].file), WG_F16, 1, 0);
    }
    cr_assert(same(&is[0], &is[1]) && strlen(is[0].weights) == 64);
    cr_assert_str_eq(is[1].name, "renamed.gguf");
    cr_assert_str_eq(is[0].part, "cache f16");
    cr_assert_str_eq(is[0].device, "cpu");
    cr_assert(strcmp(is[0].weights, is[2].weights) != 0 && strcmp(is[0].weights, is[3].weights) != 0);
    const char *a = temp_at(&dir, "a.gguf");
    const wg_lm_identity cache = of(a, WG_F32, 1, 0), threads = of(a, WG_F16, 2, 0), part = of(a, WG_F16, 1, 1);
    cr_assert(!same(&is[0], &cache) && !same(&is[0], &threads) && !same(&is[0], &part));
    cr_assert(strcmp(cache.weights, is[0].weights) == 0 && threads.threads == 2 && strstr(part.part, "cache f16, 1 of "));
}

/* One byte of one matrix, and one of a norm. */
Test(identity, sees_changed_weights)
{
    wg_error err;
    size_t n;
    cr_assert_eq(wg_synth("tiny", WG_F32, 1, temp_at(&dir, "a.gguf"), &err), WG_OK);
    const wg_lm_identity was = of(temp_at(&dir, "a.gguf"), WG_F16, 1, 0);
    char *bytes = file_read(temp_at(&dir, "a.gguf"), &n);
    wg_weights *w;
    cr_assert_eq(wg_weights_open_memory(&w, "a", bytes, n, &err), WG_OK);
    static const char *const names[] = { "blk.0.attn_q.weight", "blk.0.attn_norm.weight" };
    for (int i = 0; i < 2; i++) {
        const wg_tensor *t = wg_weights_find(w, names[i]);
        char *at = (char *)(uintptr_t)t->data + t->bytes - 4; /* the lowest bits of its last number */
        *at ^= 1;
        file_write(temp_at(&dir, "b.gguf"), bytes, n);
        *at ^= 1;
        const wg_lm_identity is = of(temp_at(&dir, "b.gguf"), WG_F16, 1, 0);
        cr_assert_str_neq(is.weights, was.weights, "%s", names[i]);
    }
    wg_weights_close(w);
    free(bytes);
}
