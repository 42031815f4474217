/* SPDX-License-Identifier: MIT
 * The checked ops of the level LEVEL but for matmul, each after the regions that it accesses. Included by kernels/checked.c for
 * every level; undefines LEVEL. */
#define JOIN(op, level) wg_##op##_##level
#define JOIN_CHECKED(op, level) wg_##op##_##level##_checked
#define OF_LEVEL(op, level) JOIN(op, level)
#define CHECKED_OF_LEVEL(op, level) JOIN_CHECKED(op, level)
#define PLAIN(op) OF_LEVEL(op, LEVEL)
#define CHECKED(op) CHECKED_OF_LEVEL(op, LEVEL)

void CHECKED(act_prepare)(int type, const float *x, size_t ldx, int rows, int k, void *act, int r0, int r1)
{
    act_prepare(type, x, ldx, rows, k, act, r0, r1);
    PLAIN(act_prepare)(type, x, ldx, rows, k, act, r0, r1);
}

void CHECKED(rmsnorm)(const float *x, size_t ldx, const float *weight, int dim, float eps, float *y, size_t ldy, int rows)
{
    norm(x, ldx, weight, NULL, dim, y, ldy, rows);
    PLAIN(rmsnorm)(x, ldx, weight, dim, eps, y, ldy, rows);
}

void CHECKED(layernorm)(const float *x, const float *weight, const float *bias, int dim, float eps, float *y, int rows)
{
    norm(x, (size_t)dim, weight, bias, dim, y, (size_t)dim, rows);
    PLAIN(layernorm)(x, weight, bias, dim, eps, y, rows);
}

void CHECKED(rope)(float *x, int heads, int hd, int n_rot, const float *cs, int adjacent)
{
    floats(x, (size_t)heads * (size_t)hd);
    floats(cs, (size_t)n_rot);
    PLAIN(rope)(x, heads, hd, n_rot, cs, adjacent);
}

void CHECKED(kv_store)(const wg_kv_view *kv, int32_t slot, const float *k, const float *v)
{
    kv_store(kv, slot, k, v);
    PLAIN(kv_store)(kv, slot, k, v);
}

#define STAGE(op)                                                                                                              \
    void CHECKED(op)(const wg_attention *a, int i0, int i1)                                                                    \
    {                                                                                                                          \
        attention(a);                                                                                                          \
        PLAIN(op)(a, i0, i1);                                                                                                  \
    }
STAGE(attention_scores)
STAGE(attention_weights)
STAGE(attention_values)

#define GATED(op)                                                                                                              \
    void CHECKED(op)(const float *gate, const float *up, float *y, int n)                                                      \
    {                                                                                                                          \
        floats_2(gate, up, n);                                                                                                 \
        floats(y, (size_t)n);                                                                                                  \
        PLAIN(op)(gate, up, y, n);                                                                                             \
    }
GATED(swiglu)
GATED(geglu)
GATED(clamped_swiglu)

#define MAPPED(op)                                                                                                             \
    void CHECKED(op)(const float *x, float *y, int n)                                                                          \
    {                                                                                                                          \
        floats_2(x, y, n);                                                                                                     \
        PLAIN(op)(x, y, n);                                                                                                    \
    }
MAPPED(gelu)
MAPPED(gelu_erf)
MAPPED(relu2)
MAPPED(exp32)

#define IN_PLACE(op)                                                                                                           \
    void CHECKED(op)(float *x, float by, int n)                                                                                \
    {                                                                                                                          \
        floats(x, (size_t)n);                                                                                                  \
        PLAIN(op)(x, by, n);                                                                                                   \
    }
IN_PLACE(clamp)
IN_PLACE(softcap)
IN_PLACE(scale)

void CHECKED(add)(float *x, const float *y, int n)
{
    floats_2(x, y, n);
    PLAIN(add)(x, y, n);
}

void CHECKED(add_scaled)(float *x, float by, const float *y, int n)
{
    floats_2(x, y, n);
    PLAIN(add_scaled)(x, by, y, n);
}

double CHECKED(softmax64)(const float *x, int n, double inv_temp, double *p)
{
    row(x, p, n);
    return PLAIN(softmax64)(x, n, inv_temp, p);
}

int CHECKED(argmax)(const float *x, int n)
{
    row(x, NULL, n);
    return PLAIN(argmax)(x, n);
}

double CHECKED(split)(const float *x, int n, float bound, float max, float scale, int32_t *id, int room, int *count)
{
    row(x, NULL, n);
    region(id, (size_t)room * sizeof *id);
    return PLAIN(split)(x, n, bound, max, scale, id, room, count);
}

wg_mass CHECKED(weigh64)(const float *x, int n, float max, double inv_temp, double *p, wg_band *band)
{
    row(x, p, n);
    band_of(band);
    return PLAIN(weigh64)(x, n, max, inv_temp, p, band);
}

wg_mass CHECKED(kept64)(const float *x, const double *p, int n, float edge, int last, double lightest, int *count)
{
    row(x, p, n);
    return PLAIN(kept64)(x, p, n, edge, last, lightest, count);
}

void CHECKED(keep64)(const float *x, double *p, int n, float edge, int last, double lightest, double scale)
{
    row(x, p, n);
    PLAIN(keep64)(x, p, n, edge, last, lightest, scale);
}

#undef IN_PLACE
#undef MAPPED
#undef GATED
#undef CHECKED
#undef PLAIN
#undef CHECKED_OF_LEVEL
#undef OF_LEVEL
#undef JOIN_CHECKED
#undef JOIN
#undef LEVEL
