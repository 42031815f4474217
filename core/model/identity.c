/* SPDX-License-Identifier: MIT
 * Digests of weights (identity.h). */
#include "core/model/identity.h"

#include <string.h>

#include "core/file/weights.h"

enum { SAMPLE = 256 };

static void add_text(wg_sha256_state *s, const char *text) { wg_sha256_add(s, text, strlen(text) + 1); }

void wg_identity_begin(wg_sha256_state *s, const struct wg_weights *w)
{
    const uint64_t size = wg_weights_file_bytes(w);
    uint64_t seed = 0;
    wg_sha256_begin(s);
    add_text(s, "wager weights 1");
    wg_sha256_add(s, &size, sizeof size);
    for (int i = 0; i < wg_meta_count(w); i++) {
        const char *key = wg_meta_key(w, i);
        int64_t whole;
        double real;
        if (wg_meta_int(w, key, &whole)) add_text(s, key), wg_sha256_add(s, &whole, sizeof whole);
        else if (wg_meta_float(w, key, &real)) add_text(s, key), wg_sha256_add(s, &real, sizeof real);
    }
    if (wg_weights_made(w, &seed)) wg_sha256_add(s, &seed, sizeof seed);
}

void wg_identity_add(wg_sha256_state *s, const struct wg_tensor *t)
{
    const size_t n = t->bytes < SAMPLE ? t->bytes : SAMPLE, at[] = { 0, (t->bytes - n) / 2, t->bytes - n };
    add_text(s, t->name);
    add_text(s, wg_type_name(t->type));
    wg_sha256_add(s, t->dim, sizeof t->dim);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) wg_sha256_add(s, (const char *)t->data + at[i], n);
}
