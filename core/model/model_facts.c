/* SPDX-License-Identifier: MIT
 * What is said of an opened model: its identity, its sizes, the bytes that its passes read; and what is refused before it is
 * loaded. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/cuda/device_cuda.h"
#include "core/model/ranked_impl.h"
#include "core/model/student.h"

/* A window of layers that the file does not name: a token of a longer context would attend to fewer tokens than it does here.
 * */
wg_status wg_model_check_window(const wg_weights *w, const wg_arch *a, int context, wg_error *err)
{
    if (a->window == 0 || !a->window_unknown || context <= a->window) return WG_OK;
    return wg_fail(
        err, WG_EUNSUPPORTED,
        "%s: key '%s.attention.sliding_window' = %d: the file does not say which layers have this window, and the context in "
        "use is %d tokens: lower the context to %d",
        wg_weights_path(w), a->family, a->window, context, a->window);
}

void wg_model_identify(wg_model *m, const wg_weights *w, wg_sha256_state *seen)
{
    wg_lm_identity *of = &m->identity;
    const char *path = wg_weights_path(w), *slash = strrchr(path, '/');
    int type = 0;
    while (wg_kv_type_names[type] && wg_kv_type_ids[type] != m->kv_type) type++;
    wg_sha256_end(seen, of->weights);
    snprintf(of->name, sizeof of->name, "%s", slash && slash[1] ? slash + 1 : path);
    const int n = snprintf(of->part, sizeof of->part, "cache %s", wg_kv_type_names[type] ? wg_kv_type_names[type] : "?");
    if (m->head_rows < m->arch.vocab)
        snprintf(of->part + n, sizeof of->part - (size_t)n, ", %d rows of the head", m->head_rows);
    const wg_cuda *card = m->device.class->cuda ? m->device.class->cuda(&m->device) : NULL;
    if (m->ranked)
        snprintf(of->device, sizeof of->device, "%s, %d ranks (%s)", m->device.class->name, m->part.ranks,
                 m->ranked->comm->class->name);
    else if (!card) snprintf(of->device, sizeof of->device, "%s", m->device.class->name);
    else snprintf(of->device, sizeof of->device, "%s mode %u, %.40s", card->name, card->mode, card->gpu.card);
    of->threads = m->device.pool ? wg_pool_threads(m->device.pool) : 1;
}

static wg_status not_alone(const wg_weights *w, wg_error *err)
{
    return wg_fail(err, WG_EUNSUPPORTED,
                   "%s: is a student cut to what its target lacks, whose embedding it reads: it drafts for this target on "
                   "the CPU without ranks, as model:model=FILE, and does not run alone",
                   wg_weights_path(w));
}

wg_status wg_model_check_alone(const wg_weights *w, wg_error *err)
{
    const bool cut = wg_meta_array(w, WG_STUDENT_TOKENS, &(wg_meta_kind){ 0 }) >= 0 && !wg_weights_find(w, "token_embd.weight");
    return cut ? not_alone(w, err) : WG_OK;
}

wg_status wg_model_check_embedding(const wg_model *m, const wg_weights *w, const wg_matrix *embedding, wg_error *err)
{
    const wg_arch *a = &m->arch;
    if (!a->kept) return WG_OK;
    if (m->device.memory || !embedding) return not_alone(w, err);
    if (embedding->k == a->dim && embedding->n == a->vocab) return WG_OK;
    return wg_fail(err, WG_EMODEL, "%s: is a cut student of a target with %d tokens and width %d; this target has %d and %d",
                   wg_weights_path(w), a->vocab, a->dim, embedding->n, embedding->k);
}

/* A synthetic model's name can require more memory than the machine has, and generated tensors cannot be released as file
 * pages can: so the memory is checked before. A device with its own memory checks its memory itself. */
wg_status wg_model_check_room(const wg_weights *w, const wg_device *d, wg_error *err)
{
    size_t all = 0, most = 0;
    if (!wg_weights_made(w, NULL) || d->memory) return WG_OK;
    for (int i = 0; i < wg_weights_count(w); i++) {
        const wg_tensor *t = wg_weights_at(w, i);
        const size_t each = d->class->matrix_bytes(d, t->type, (int)t->dim[1], (int)t->dim[0]);
        all += t->n_dims > 1 ? each * (size_t)t->dim[2] : t->bytes;
        most = t->bytes > most ? t->bytes : most;
    }
    const size_t free = wg_mem_available();
    if (all + most <= free) return WG_OK;
    return wg_fail(err, WG_ENOMEM,
                   "%s: %.2f GB of weights, and %.2f GB to draw the largest tensor, but %.2f GB of memory are free: name a "
                   "smaller type (q8_0, q4_0), fewer layers (layers=N) or a smaller shape",
                   wg_weights_path(w), (double)all / 1e9, (double)most / 1e9, (double)free / 1e9);
}

const wg_arch *wg_model_arch(const wg_model *m) { return &m->arch; }
wg_lm *wg_model_lm(wg_model *m) { return &m->lm; }
int wg_model_head_rows(const wg_model *m) { return m->head_rows; }
size_t wg_model_bytes(const wg_model *m) { return m->bytes; }
const wg_matrix *wg_model_embedding(const wg_model *m) { return m->device.memory || m->ranked ? NULL : &m->embed; }
const wg_matrix *wg_model_output(const wg_model *m) { return m->device.memory || m->head.n < m->arch.vocab ? NULL : &m->head; }

size_t wg_model_read_bytes(const wg_model *m, double experts)
{
    const wg_arch *a = &m->arch;
    const size_t embed = a->kept || m->head.data == m->embed.data
                             ? 0
                             : m->device.class->matrix_bytes(&m->device, m->embed.type, m->embed.n, m->embed.k);
    const double left = a->experts ? 1 - experts / a->experts : 0; /* of the experts */
    return m->bytes - m->angles_bytes - embed - (size_t)((double)m->expert_bytes * left);
}

double wg_model_experts_expected(const wg_model *m, int rows)
{
    const wg_arch *a = &m->arch;
    return a->experts ? a->experts * (1 - pow(1 - (double)a->experts_used / a->experts, rows)) : 0;
}

size_t wg_model_pass_bytes(const wg_model *m, int rows) { return wg_model_read_bytes(m, wg_model_experts_expected(m, rows)); }

double wg_model_experts_read(const wg_model *m) { return (double)m->experts_read / m->arch.layers; }
