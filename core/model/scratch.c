/* SPDX-License-Identifier: MIT
 * The scratch of a model's pass: buffers of its device for the most rows that a pass may have, and rows of the batch as layers
 * with a window see them. */
#include "core/base/mem.h"
#include "core/model/model_impl.h"

/* Rows of the products of experts. */
static int expert_rows(const wg_model *m)
{
    const wg_arch *a = &m->arch;
    if (a->experts == 0 || !m->device.class->expert_slots) return m->max_rows;
    return m->device.class->expert_slots(m->max_rows, a->experts_used, a->experts);
}

/* The largest prepared form of any stage's input. */
static size_t act_floats(const wg_model *m)
{
    static const int types[] = { WG_F32, WG_F16, WG_BF16, WG_Q8_0 };
    const wg_arch *a = &m->arch;
    const wg_device *d = &m->device;
    const int q_dim = a->heads * a->head_dim, width[] = { a->dim, q_dim, a->hidden };
    size_t most = 0;
    for (int i = 0; i < 3; i++)
        for (int t = 0; t < 4; t++) {
            if (width[i] % wg_type_get(types[t])->block) continue;
            const size_t bytes = d->class->act_bytes(d, types[t], expert_rows(m), width[i]);
            most = bytes > most ? bytes : most;
        }
    return (most + sizeof(float) - 1) / sizeof(float);
}

wg_status wg_model_open_scratch(wg_model *m, wg_error *err)
{
    const wg_arch *a = &m->arch;
    const size_t rows = (size_t)m->max_rows, q_dim = (size_t)a->heads * (size_t)a->head_dim;
    const size_t kv_dim = (size_t)a->kv_heads * (size_t)a->head_dim, slots = (size_t)expert_rows(m);
    const struct {
        wg_buf *buf;
        size_t floats;
    } part[] = {
        { &m->x, rows * (size_t)a->dim },
        { &m->h, rows * (size_t)a->dim },
        { &m->q, rows * q_dim },
        { &m->att, rows * q_dim },
        { &m->k, rows * kv_dim },
        { &m->v, rows * kv_dim },
        { &m->gate, slots * (size_t)a->hidden },
        { &m->up, slots * (size_t)a->hidden },
        { &m->act, act_floats(m) },
        { &m->room, wg_device_attention_floats(&m->device, a->heads) },
        { &m->routed, rows * (size_t)a->experts },
        { &m->chosen, 2 * rows * (size_t)a->experts_used },
        { &m->picked, slots * (size_t)a->dim },
        { &m->mixed, slots * (size_t)a->dim },
        { &m->hidden_act, act_floats(m) },
        { &m->grouped, 2 * slots + rows * (size_t)a->experts_used },
    };
    const size_t parts = sizeof part / sizeof part[0] - (a->experts ? 0 : 6); /* the last are those of experts */
    for (size_t i = 0; i < parts; i++) {
        *part[i].buf = m->device.class->alloc(&m->device, part[i].floats);
        if (!*part[i].buf && part[i].floats > 0)
            return wg_nomem(err, part[i].floats * sizeof(float), "the scratch of a pass; lower max_rows");
    }
    if (m->window && (!(m->seen = wg_calloc(rows, sizeof *m->seen)) || !(m->asked_within = wg_calloc(rows, sizeof *m->seen))))
        return wg_nomem(err, 2 * rows * sizeof *m->seen, "the scratch of a pass; lower max_rows");
    m->asked = wg_calloc(rows, sizeof *m->asked);
    m->asked_from = wg_calloc(rows, sizeof *m->asked_from);
    return m->asked && m->asked_from ? WG_OK : wg_nomem(err, rows * sizeof *m->asked, "the scratch of a pass; lower max_rows");
}

void wg_model_close_scratch(wg_model *m)
{
    const wg_buf buf[] = { m->x,   m->h,      m->q,      m->att,    m->k,     m->v,          m->gate,    m->up,
                           m->act, m->routed, m->chosen, m->picked, m->mixed, m->hidden_act, m->grouped, m->room };
    for (size_t i = 0; i < sizeof buf / sizeof buf[0]; i++) m->device.class->free(&m->device, buf[i]);
    wg_free(m->asked);
    wg_free(m->seen);
    wg_free(m->asked_within);
    wg_free(m->asked_from);
}
