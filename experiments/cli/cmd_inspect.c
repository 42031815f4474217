/* SPDX-License-Identifier: MIT
 * wager inspect: the contents of a model file: metadata, tensors, sizes. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "core/base/mem.h"
#include "core/file/weights.h"
#include "experiments/base/target.h"
#include "experiments/cli/cli.h"
#include "experiments/cli/commands.h"

enum { SHOW_TEXT = 60, SHOW_ELEMENTS = 4 };

static void print_text(wg_text t)
{
    putchar('"');
    for (size_t i = 0; i < t.n && i < SHOW_TEXT; i++) {
        const unsigned char c = (unsigned char)t.s[i];
        if (c == '\n') fputs("\\n", stdout);
        else if (c < 32 || c == 127) printf("\\x%02x", c);
        else putchar(c);
    }
    fputs(t.n > SHOW_TEXT ? "...\"" : "\"", stdout);
}

static void print_array(const wg_weights *w, const char *key)
{
    wg_meta_kind kind;
    const int64_t n = wg_meta_array(w, key, &kind);
    printf("[%" PRId64 "]", n);
    for (int64_t i = 0; i < n && i < SHOW_ELEMENTS; i++) {
        int64_t v;
        double d;
        wg_text t;
        putchar(' ');
        if (wg_meta_array_string(w, key, i, &t)) print_text(t);
        else if (wg_meta_array_int(w, key, i, &v)) printf("%" PRId64, v);
        else if (wg_meta_array_float(w, key, i, &d)) printf("%g", d);
    }
    if (n > SHOW_ELEMENTS) fputs(" ...", stdout);
}

static void print_value(const wg_weights *w, int i)
{
    const char *key = wg_meta_key(w, i);
    int64_t v = 0;
    double d = 0;
    bool b = false;
    wg_text t = { "", 0 };
    switch (wg_meta_kind_of(w, i)) {
    case WG_META_INT:
        wg_meta_int(w, key, &v);
        printf("%" PRId64, v);
        break;
    case WG_META_FLOAT:
        wg_meta_float(w, key, &d);
        printf("%g", d);
        break;
    case WG_META_BOOL:
        wg_meta_bool(w, key, &b);
        fputs(b ? "true" : "false", stdout);
        break;
    case WG_META_STRING:
        wg_meta_string(w, key, &t);
        print_text(t);
        break;
    case WG_META_ARRAY: print_array(w, key); break;
    }
}

static void print_shape(const wg_tensor *t, char *buf, size_t size)
{
    int n = 0;
    for (int d = 0; d < t->n_dims; d++) n += snprintf(buf + n, size - (size_t)n, "%s%" PRId64, d ? " x " : "", t->dim[d]);
}

static void print_table(const wg_weights *w, const wg_arch *a)
{
    printf("%s: %s, %.2f MB, %d tensors, %d metadata keys\n\n", wg_weights_path(w), wg_weights_format(w),
           (double)wg_weights_file_bytes(w) / 1e6, wg_weights_count(w), wg_meta_count(w));
    for (int i = 0; i < wg_meta_count(w); i++) {
        printf("  %-42s ", wg_meta_key(w, i));
        print_value(w, i);
        putchar('\n');
    }
    putchar('\n');
    for (int i = 0; i < wg_weights_count(w); i++) {
        const wg_tensor *t = wg_weights_at(w, i);
        char shape[96];
        print_shape(t, shape, sizeof shape);
        printf("  %-32s %-6s %-20s %12zu bytes\n", t->name, wg_type_name(t->type), shape, t->bytes);
    }
    if (!a) return;
    printf("\n%s: %d layers, width %d, %d heads of %d on %d, hidden %d, vocabulary %d, context %d, %.2f M parameters\n",
           a->family, a->layers, a->dim, a->heads, a->head_dim, a->kv_heads, a->hidden, a->vocab, a->context,
           (double)wg_arch_parameters(a) / 1e6);
    if (a->window) printf("attention over a window of %d tokens\n", a->window);
}

/* One JSON object per tensor. */
static int print_json(const wg_weights *w)
{
    for (int i = 0; i < wg_weights_count(w); i++) {
        const wg_tensor *t = wg_weights_at(w, i);
        json_t *dims = json_array();
        for (int d = 0; d < t->n_dims; d++) json_array_append_new(dims, json_integer(t->dim[d]));
        json_t *o = json_pack("{s:s, s:s, s:o, s:I}", "name", t->name, "type", wg_type_name(t->type), "dims", dims, "bytes",
                              (json_int_t)t->bytes);
        if (!o || json_dumpf(o, stdout, JSON_SORT_KEYS | JSON_COMPACT)) {
            json_decref(o);
            return WG_EXIT_FAILED;
        }
        putchar('\n');
        json_decref(o);
    }
    return WG_EXIT_OK;
}

int wg_cmd_inspect(int argc, char **argv)
{
    bool json = false;
    const char *path;
    const wg_flag flags[] = {
        { "json", 0, WG_FLAG_BOOL, &json, NULL, "one JSON object per tensor", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("inspect", flags, argc, argv, &path, 1, 1);
    if (done >= 0) return done;
    wg_weights *w;
    wg_error err;
    if (wg_weights_open(&w, path, &err)) return wg_cli_fail(&err);
    int status = WG_EXIT_OK;
    wg_arch a;
    const wg_status s = wg_arch_read(w, &a, &err);
    if (json) status = print_json(w);
    else print_table(w, s ? NULL : &a);
    if (wg_target_check(w, true, &err)) status = wg_cli_fail(&err);
    wg_weights_close(w);
    return status;
}
