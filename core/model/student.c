/* SPDX-License-Identifier: MIT
 * How a cut student knows its target (student.h). */
#include "core/model/student.h"

#include "core/base/mem.h"

wg_status wg_student_knows(const wg_weights *w, const wg_student_target *t, bool *own, wg_text *name, wg_error *err)
{
    wg_meta_kind kind;
    wg_sha256_state sha;
    wg_text made = { 0 };
    char digest[WG_SHA256_HEX];
    wg_status s = WG_OK;
    const int64_t kept = wg_meta_array(w, WG_STUDENT_TOKENS, &kind);
    float *row = wg_alloc((size_t)t->dim, sizeof *row);
    if (!row) return wg_nomem(err, (size_t)t->dim * sizeof *row, "a row of the target");
    *name = (wg_text){ "", 0 };
    (void)wg_meta_string(w, WG_STUDENT_ROWS, &made);
    (void)wg_meta_string(w, WG_STUDENT_TARGET, name);
    wg_sha256_begin(&sha);
    for (int i = 0; i < WG_STUDENT_SAMPLE && !s; i++) {
        const int at = wg_student_sample(i, (int)kept);
        int64_t id = -1;
        (void)wg_meta_array_int(w, WG_STUDENT_TOKENS, at, &id);
        if (id < 0 || id >= t->rows)
            s = wg_fail(err, WG_EMODEL, "%s: key '%s' has at %d the token %lld: expected different ones below %d",
                        wg_weights_path(w), WG_STUDENT_TOKENS, at, (long long)id, t->rows);
        else t->row(t->target, (int32_t)id, row);
        if (!s) wg_sha256_add(&sha, row, (size_t)t->dim * sizeof *row);
    }
    wg_sha256_end(&sha, digest);
    wg_free(row);
    *own = !s && wg_text_is(made, digest);
    return s;
}
