/* SPDX-License-Identifier: MIT
 * wager inspect: prints facts of a model's file: metadata, tensors, sizes, memory, tokenizer; its kind if it is a drafter; and
 * whether another model can draft for it. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/file/head_file.h"
#include "core/file/weights.h"
#include "core/setup/target.h"
#include "experiments/cli/cli.h"
#include "experiments/cli/model_facts.h"

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

static void print_metadata(const wg_weights *w)
{
    for (int i = 0; i < wg_meta_count(w); i++) {
        printf("  %-42s ", wg_meta_key(w, i));
        print_value(w, i);
        putchar('\n');
    }
    putchar('\n');
}

static void print_tensors(const json_t *tensors)
{
    size_t i, k;
    json_t *t, *dim;
    json_array_foreach(tensors, i, t) {
        char shape[96] = "";
        size_t n = 0;
        json_array_foreach(json_object_get(t, "dims"), k, dim) {
            const int more =
                snprintf(shape + n, sizeof shape - n, "%s%lld", k ? " x " : "", (long long)json_integer_value(dim));
            n += (size_t)more;
        }
        printf("  %-32s %-6s %-20s %12lld bytes\n", json_string_value(json_object_get(t, "name")),
               json_string_value(json_object_get(t, "type")), shape,
               (long long)json_integer_value(json_object_get(t, "bytes")));
    }
}

/* ---- facts */

static long long number(const json_t *o, const char *key) { return (long long)json_number_value(json_object_get(o, key)); }
static const char *word(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }

static void print_architecture(const json_t *a)
{
    printf("\n%s: %lld layers, width %lld, %lld heads of %lld on %lld, hidden %lld, vocabulary %lld, context %lld, %.2f M "
           "parameters\n",
           word(a, "family"), number(a, "layers"), number(a, "width"), number(a, "heads"), number(a, "head_dim"),
           number(a, "kv_heads"), number(a, "hidden"), number(a, "vocabulary"), number(a, "context"),
           (double)number(a, "parameters") / 1e6);
    if (number(a, "window"))
        printf("attention over a window of %lld tokens in %lld of %lld layers\n", number(a, "window"),
               number(a, "window_layers"), number(a, "layers"));
    if (number(a, "experts"))
        printf("%lld experts in each layer, of which a token uses %lld\n", number(a, "experts"), number(a, "experts_used"));
}

static void print_memory(const json_t *m)
{
    char held[80] = "";
    if (number(m, "held") < number(m, "context"))
        snprintf(held, sizeof held, ", of which it holds %lld at once", number(m, "held"));
    printf("memory    %.1f MB of weights; cache (%s) %lld bytes a token, %.1f MB for %lld x %lld tokens%s; together %.1f MB\n",
           (double)number(m, "weight_bytes") / 1e6, word(m, "cache_type"), number(m, "bytes_per_token"),
           (double)number(m, "cache_bytes") / 1e6, number(m, "batch"), number(m, "context"), held,
           (double)number(m, "bytes") / 1e6);
}

static void print_token(const char *name, const json_t *t)
{
    if (json_is_object(t)) printf(", %s %lld '%s'", name, number(t, "id"), word(t, "text"));
}

/* Prints "name, name" of an array of texts, or of tokens. */
static void print_names(const json_t *list)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v) printf("%s%s", i ? ", " : "", json_is_object(v) ? word(v, "text") : json_string_value(v));
    putchar('\n');
}

static void print_tokenizer(const json_t *t)
{
    if (word(t, "refused")) return; /* the error tells it */
    printf("tokenizer %s%s%s, %lld tokens, %lld of them control", word(t, "kind"), word(t, "pre") ? ", pre-tokeniser " : "",
           word(t, "pre") ? word(t, "pre") : "", number(t, "size"), number(t, "control_tokens"));
    if (number(t, "beyond_embedding"))
        printf(", %lld beyond the embedding (refused in prompts)", number(t, "beyond_embedding"));
    print_token("bos", json_object_get(t, "bos"));
    print_token("eos", json_object_get(t, "eos"));
    printf("%s\nends      ", json_is_true(json_object_get(t, "adds_bos")) ? "; a text begins with bos" : "");
    print_names(json_object_get(t, "ends"));
    if (json_array_size(json_object_get(t, "templates"))) {
        fputs("templates ", stdout);
        print_names(json_object_get(t, "templates"));
    }
}

static void print_head(const json_t *h)
{
    const char *key;
    json_t *v;
    size_t i;
    if (word(h, "refused")) {
        printf("head      cannot run: %s\n", word(h, "refused"));
        return;
    }
    printf("head      of %s's layout: %lld layers of width %lld over states of width %lld, %lld of %lld tokens\ntaps     ",
           word(h, "dialect"), number(h, "layers"), number(h, "width"), number(h, "target_width"), number(h, "drafts"),
           number(h, "vocabulary"));
    json_array_foreach(json_object_get(h, "taps"), i, v) printf(" %lld", (long long)json_integer_value(v));
    const bool last = json_object_get(h, "after_norm");
    puts(json_is_array(json_object_get(h, "taps")) ? ""
         : last                                    ? " the target's last state"
                                                   : " 2, L/2 and L-3 of the target's L layers");
    json_object_foreach((json_t *)(uintptr_t)h, key, v) {
        if (json_is_true(v)) printf("flag      %s\n", key);
    }
    if (number(h, "mask_token") && !number(h, "block")) printf("mask      token %lld\n", number(h, "mask_token"));
    if (number(h, "block")) {
        printf("block     %lld rows, token %lld in all but the first; layers in which a row sees no later one:",
               number(h, "block"), number(h, "mask_token"));
        json_array_foreach(json_object_get(h, "causal_layers"), i, v) printf(" %lld", (long long)json_integer_value(v));
        puts(json_array_size(json_object_get(h, "causal_layers")) ? "" : " none");
    }
    if (word(h, "markov_head")) printf("markov    %s\n", word(h, "markov_head"));
    if (number(h, "window")) printf("window    %lld tokens\n", number(h, "window"));
    json_object_foreach(json_object_get(h, "assumed"), key, v) { printf("assumed   %s = %s\n", key, json_string_value(v)); }
}

static void print_draft(const json_t *d)
{
    const json_t *v = json_object_get(d, "vocabulary");
    size_t i;
    json_t *note;
    printf("\ndraft     %s: ", word(d, "path"));
    if (json_is_true(json_object_get(d, "can_draft"))) {
        fputs("can draft for it with: ", stdout);
        print_names(json_object_get(d, "drafters"));
    } else puts("cannot draft for it");
    if (json_is_object(v))
        printf("          vocabulary: %s, %lld of %lld tokens\n", word(v, "kind"), number(v, "shared"), number(v, "of"));
    if (json_is_number(json_object_get(d, "parameters_share")))
        printf("          %.3f of the target's work for a token\n", json_number_value(json_object_get(d, "parameters_share")));
    json_array_foreach(json_object_get(d, "notes"), i, note) printf("          %s\n", json_string_value(note));
}

static void print_text_of(const wg_weights *w, const json_t *o)
{
    const json_t *drafter = json_object_get(o, "drafter"), *a = json_object_get(o, "architecture");
    printf("%s: %s, %.2f MB, %zu tensors", word(o, "path"), word(o, "format"), (double)number(o, "bytes") / 1e6,
           json_array_size(json_object_get(o, "tensors")));
    if (w) printf(", %d metadata keys", wg_meta_count(w));
    fputs("\n\n", stdout);
    if (w) print_metadata(w);
    print_tensors(json_object_get(o, "tensors"));
    if (json_is_object(drafter))
        printf("\n%s %s: %s\n", json_is_true(json_object_get(drafter, "beside_a_model")) ? "has layers of" : "drafter of kind",
               word(drafter, "name"), word(drafter, "about"));
    if (json_is_object(json_object_get(o, "head"))) print_head(json_object_get(o, "head"));
    if (json_is_object(a)) print_architecture(a);
    if (json_is_object(json_object_get(o, "memory"))) print_memory(json_object_get(o, "memory"));
    if (json_is_object(json_object_get(o, "tokenizer"))) print_tokenizer(json_object_get(o, "tokenizer"));
    if (json_is_object(json_object_get(o, "draft"))) print_draft(json_object_get(o, "draft"));
}

/* ---- the command */

typedef struct inspected {
    wg_weights *w; /* NULL: the file cannot be opened */
    wg_tensor_list list;
    wg_error refused; /* why the file cannot be a target */
    wg_status status;
} inspected;

static void close_file(inspected *f)
{
    wg_tensor_list_free(&f->list);
    wg_weights_close(f->w);
}

/* WG_OK: the file has facts to print, even if it cannot run. */
static wg_status open(inspected *f, const char *path, wg_error *err)
{
    *f = (inspected){ 0 };
    f->status = wg_weights_open(&f->w, path, &f->refused);
    if (!f->status) {
        f->status = wg_target_check(f->w, WG_TOKENIZER_NEEDED, &f->refused);
        return wg_tensor_list_of(&f->list, f->w, err);
    }
    wg_error damaged;
    const wg_status s = wg_tensor_list_read(&f->list, path, &damaged);
    if (!s && f->list.n) return WG_OK;
    *err = s && s != WG_ENOENT ? damaged : f->refused; /* a damaged file is one whatever the folder's config says */
    return f->status;
}

static int print(const inspected *f, const char *path, const char *draft, const wg_facts_options *opt, bool as_json)
{
    json_t *o = wg_model_facts(f->w, path, &f->list, f->status ? f->refused.text : NULL, opt);
    if (o && draft && f->w) json_object_set_new(o, "draft", wg_draft_facts(f->w, draft));
    wg_error err;
    int status = WG_EXIT_OK;
    if (!o || (as_json && !wg_cli_put_json(json_incref(o), true)))
        status = wg_cli_fail((wg_nomem(&err, 1, "the facts of a file"), &err));
    else if (!as_json) print_text_of(f->w, o);
    const json_t *pair = json_object_get(o, "draft"), *why = json_array_get(json_object_get(pair, "notes"), 0);
    if (pair && !json_is_true(json_object_get(pair, "can_draft"))) {
        const char *note = json_string_value(why);
        status = wg_cli_fail((wg_fail(&err, WG_EVOCAB, "%s cannot draft for %s: %s", draft, path, note ? note : "?"), &err));
    }
    json_decref(o);
    return status;
}

/* Whether the folder is a head that runs as a drafter, so that it is no error that it is no model. */
static bool is_head(const char *path)
{
    wg_head_file *f;
    if (wg_head_file_open(&f, path, NULL)) return false;
    wg_head_file_close(f);
    return true;
}

int wg_cmd_inspect(int argc, char **argv)
{
    bool json = false;
    const char *path = NULL, *draft = NULL, *kv_type = NULL;
    long context = 0, batch = 1;
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL, &path, "the model to look at"),
        { "draft-model", 'd', WG_FLAG_STRING, &draft, "FILE",
          "whether this model can draft for it, with which drafters, or why not", 0, 0 },
        { "context", 'c', WG_FLAG_INT, &context, "N", "tokens of a sequence, for the memory of the cache; the model's context",
          1, 1 << 20 },
        { "batch", 'b', WG_FLAG_INT, &batch, "N", "sequences at once, likewise", 1, 256 },
        { "kv-type", 0, WG_FLAG_CHOICE, &kv_type, WG_KV_TYPE_VALUES, WG_KV_TYPE_DOC, 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &json, NULL, "one JSON object, with the keys of docs/models.md", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("inspect", flags, argc, argv, NULL, 0, 0);
    if (done >= 0) return done;
    const wg_facts_options o = { (int)context, (int)batch, wg_cli_kv_type(kv_type) };
    inspected f;
    wg_error err;
    if (open(&f, path, &err)) return wg_cli_fail(&err);
    int status = print(&f, path, draft, &o, json);
    if (f.status && !is_head(path)) status = wg_cli_fail(&f.refused);
    close_file(&f);
    return status;
}
