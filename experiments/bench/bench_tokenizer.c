/* SPDX-License-Identifier: MIT
 * Each text is encoded whole, with control tokens as text; CPU time of the thread. */
#include "experiments/bench/bench_parts.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/text/tokenizer.h"
#include "experiments/base/timing.h"

enum { MADE = 1 << 20, TEXT_MOST = 256 << 20 };

typedef struct timed {
    double encode[WG_BENCH_REPEATS], decode[WG_BENCH_REPEATS],
        half[WG_BENCH_REPEATS]; /* seconds; half: of encoding half of it */
    size_t tokens;
} timed;

static wg_status encode(const wg_tokenizer *t, const char *s, size_t n, int32_t **ids, size_t *n_ids, double *seconds,
                        wg_error *err)
{
    const double start = wg_bench_clock(1);
    WG_TRY(wg_tokenizer_encode(t, s, n, false, false, ids, n_ids, err));
    *seconds = wg_bench_clock(1) - start;
    return WG_OK;
}

static wg_status once(const wg_tokenizer *t, const char *s, size_t n, timed *out, int k, wg_error *err)
{
    int32_t *ids;
    char *back;
    size_t n_ids, n_back;
    WG_TRY(encode(t, s, n / 2, &ids, &n_ids, &out->half[k], err));
    wg_free(ids);
    WG_TRY(encode(t, s, n, &ids, &n_ids, &out->encode[k], err));
    const double start = wg_bench_clock(1);
    const wg_status status = wg_tokenizer_decode(t, ids, n_ids, false, &back, &n_back, err);
    out->decode[k] = wg_bench_clock(1) - start;
    out->tokens = n_ids;
    wg_free(ids);
    if (status == WG_OK) wg_free(back);
    return status;
}

static wg_status measure(const wg_tokenizer *t, const char *name, const char *s, size_t n, int repeats, bool json,
                         wg_error *err)
{
    timed x = { .tokens = 0 };
    const double mb = (double)n / 1e6;
    for (int k = 0; k < repeats; k++) WG_TRY(once(t, s, n, &x, k, err));
    const double e = wg_bench_median(x.encode, repeats), d = wg_bench_median(x.decode, repeats),
                 half = wg_bench_median(x.half, repeats);
    if (!json) {
        printf("%-14s %9zu %9zu %12.1f %12.1f %9.2f\n", name, n, x.tokens, mb / e, mb / d, e / half);
        return WG_OK;
    }
    json_t *o = json_pack("{s:s, s:I, s:I, s:f, s:f, s:f}", "text", name, "bytes", (json_int_t)n, "tokens",
                          (json_int_t)x.tokens, "encode_mb_s", mb / e, "decode_mb_s", mb / d, "doubling", e / half);
    wg_json_put_line(o, 0);
    return WG_OK;
}

/* Fills a text with repetitions of the longest added token without its last byte. */
static void fill_prefixes(const wg_tokenizer *t, char *s)
{
    wg_text longest = { "<", 1 };
    for (int32_t id = 0; id < wg_tokenizer_size(t); id++) {
        const wg_text piece = wg_tokenizer_piece(t, id);
        if (wg_tokenizer_is_control(t, id) && piece.n > longest.n) longest = piece;
    }
    const size_t n = longest.n > 1 ? longest.n - 1 : 1;
    for (size_t i = 0; i < MADE; i++) s[i] = longest.s[i % n];
}

static wg_status measure_all(const wg_tokenizer *t, const char *text, size_t n, int repeats, bool json, wg_error *err)
{
    static const char *const made[][2] = { { "one word", "a" }, { "spaces", " " }, { "marks", "\xcc\x81" }, { "digits", "1" } };
    char *s = wg_alloc(MADE, 1);
    if (!s) return wg_nomem(err, MADE, "a text");
    if (!json) printf("text               bytes    tokens  encode MB/s  decode MB/s  doubling\n");
    wg_status status = text ? measure(t, "file", text, n, repeats, json, err) : WG_OK;
    for (size_t i = 0; i < sizeof made / sizeof *made && !status; i++) {
        for (size_t k = 0; k < MADE; k++) s[k] = made[i][1][k % strlen(made[i][1])];
        status = measure(t, made[i][0], s, MADE, repeats, json, err);
    }
    fill_prefixes(t, s);
    if (!status) status = measure(t, "token prefixes", s, MADE, repeats, json, err);
    wg_free(s);
    return status;
}

wg_status wg_bench_tokenizer(const char *model, const char *text, int repeats, bool json, wg_error *err)
{
    wg_weights *w;
    wg_tokenizer *t;
    char *bytes = NULL;
    size_t n = 0;
    WG_TRY(wg_weights_open(&w, model, err));
    wg_status s = wg_tokenizer_open(&t, w, err);
    wg_weights_close(w);
    if (s != WG_OK) return s;
    if (text) s = wg_read_file(text, TEXT_MOST, &bytes, &n, err);
    if (s == WG_OK) s = measure_all(t, bytes, n, repeats, json, err);
    wg_free(bytes);
    wg_tokenizer_close(t);
    return s;
}
