/* SPDX-License-Identifier: MIT
 * Facts of a model (model_facts.h). A section is null if the file has nothing of the kind. */
#include "experiments/cli/model_facts.h"

#include <math.h>
#include <string.h>

#include "core/file/head_file.h"
#include "core/kv/kv.h"
#include "core/model/student.h"
#include "core/text/vocab_map.h"
#include "core/setup/target.h"

/* A text of the file; if it is not UTF-8, bytes beyond ASCII become question marks. */
static json_t *text_of(const char *s, size_t n)
{
    json_t *whole = json_stringn(s, n);
    if (whole) return whole;
    char plain[200];
    if (n > sizeof plain) n = sizeof plain;
    for (size_t i = 0; i < n; i++) plain[i] = s[i] & 0x80 ? '?' : s[i];
    return json_stringn(plain, n);
}
static json_t *text(const char *s) { return s ? text_of(s, strlen(s)) : json_null(); }

/* ---- sections */

/* The dialect of a model, by all tensors of its folder, some of which an open one omits. */
static json_t *dialect_of(const char *path, const wg_tensor_list *list)
{
    wg_tensor_list all = { 0 };
    bool whole;
    const bool folder = wg_tensor_list_read(&all, path, NULL) == WG_OK;
    const wg_dialect *d = wg_dialect_of(folder ? &all : list, &whole);
    wg_tensor_list_free(&all);
    if (!d) return json_null();
    return json_pack("{s:s, s:s, s:s?, s:b}", "name", d->name, "about", d->doc, "runs_with",
                     folder || d->gguf ? d->drafter : NULL, "beside_a_model", whole);
}

/* Sets the flags of a head's kind. */
static void set_flags(json_t *o, const wg_head_spec *s)
{
    static const char *const markov[] = { "none", "vanilla", "gated", "rnn" };
    const bool eagle3 = wg_head_is_eagle3(s), block = wg_head_is_block(s), joins = wg_head_joins(s);
    const bool spark = s->kind == WG_HEAD_DSPARK;
    const struct {
        bool has;
        const char *key;
        bool value;
    } flag[] = { { eagle3, "norm_before_residual", s->norm_before_residual },
                 { eagle3, "norm_before_fc", s->norm_before_fc },
                 { eagle3, "fc_norm", s->fc_norm },
                 { eagle3, "norm_output", s->norm_output },
                 { block, "sample_from_anchor", s->from_anchor },
                 { block, "adjacent_rotary_pairs", s->adjacent },
                 { joins, "layernorms", s->last_norm },
                 { joins, "fc_bias", s->fc_bias > 0 },
                 { joins, "hidden_first", s->hidden_first },
                 { joins, "zero_first", s->zero_first },
                 { joins, "after_norm", s->after_norm },
                 { spark, "confidence_head", s->confidence },
                 { spark, "confidence_head_with_markov", s->confidence_markov } };
    for (size_t i = 0; i < sizeof flag / sizeof flag[0]; i++)
        if (flag[i].has) json_object_set_new(o, flag[i].key, json_boolean(flag[i].value));
    if (spark) json_object_set_new(o, "markov_head", json_string(markov[s->markov]));
    if (s->kind == WG_HEAD_PEAGLE) json_object_set_new(o, "mask_token", json_integer(s->mask_token));
    if (!block) return;
    json_t *causal = json_array();
    for (int i = 0; i < s->layers; i++)
        if (s->causal >> i & 1) json_array_append_new(causal, json_integer(i));
    json_object_set_new(o, "block", json_integer(s->block));
    json_object_set_new(o, "mask_token", json_integer(s->mask_token));
    json_object_set_new(o, "causal_layers", causal);
}

/* What a head computes, and which of its keys are not in its file but assumed. */
static json_t *head_of(const char *path)
{
    wg_head_file *f;
    wg_error err;
    if (wg_head_file_open(&f, path, &err)) return json_pack("{s:o}", "refused", text(err.text));
    const wg_head_spec *s = wg_head_file_spec(f);
    json_t *taps = s->taps_named ? json_array() : json_null(), *assumed = json_object();
    for (int i = 0; s->taps_named && i < s->n_taps; i++) json_array_append_new(taps, json_integer(s->tap[i]));
    for (int i = 0; i < s->n_assumed; i++) json_object_set_new(assumed, s->assumed[i].key, text(s->assumed[i].value));
    json_t *o = json_pack("{s:n, s:s, s:i, s:i, s:i, s:i, s:i, s:o, s:o}", "refused", "dialect", s->dialect, "layers",
                          s->layers, "width", s->dim, "target_width", s->target_dim, "vocabulary", s->vocab, "drafts",
                          s->draft_vocab, "taps", taps, "assumed", assumed);
    set_flags(o, s);
    json_object_set_new(o, "window", s->windowed ? json_integer(s->window) : json_null());
    wg_head_file_close(f);
    return o;
}

static json_t *architecture_of(const wg_arch *a)
{
    int windowed = 0;
    for (int i = 0; i < a->layers && a->window; i++) windowed += wg_arch_windowed(a, i);
    json_t *o = json_pack("{s:s, s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:b}", "family", a->family, "name",
                          text(a->name), "layers", a->layers, "width", a->dim, "heads", a->heads, "kv_heads", a->kv_heads,
                          "head_dim", a->head_dim, "hidden", a->hidden, "vocabulary", a->vocab, "context", a->context,
                          "parameters", (json_int_t)wg_arch_parameters(a), "tied", a->tied);
    json_object_set_new(o, "window", a->window ? json_integer(a->window) : json_null());
    json_object_set_new(o, "window_layers", json_integer(windowed));
    json_object_set_new(o, "experts", json_integer(a->experts));
    json_object_set_new(o, "experts_used", json_integer(a->experts_used));
    return o;
}

/* Memory of a run: the file's weights, and the cache of `batch` sequences of `context` tokens, of which `held` are cached at
 * once. */
static json_t *memory_of(const wg_arch *a, double weights, const wg_facts_options *o)
{
    const int context = o->context ? o->context : a->context;
    const int held = wg_target_held(a, context);
    const double token = (double)wg_kv_token_bytes(o->kv_type, a->layers, a->kv_heads, a->head_dim);
    const double cache = token * held * o->batch;
    return json_pack("{s:s, s:I, s:i, s:i, s:i, s:I, s:I, s:I}", "cache_type", wg_kv_type_name(o->kv_type), "bytes_per_token",
                     (json_int_t)token, "context", context, "held", held, "batch", o->batch, "cache_bytes", (json_int_t)cache,
                     "weight_bytes", (json_int_t)weights, "bytes", (json_int_t)(cache + weights));
}

static json_t *string_of(const wg_weights *w, const char *key)
{
    wg_text t;
    return wg_meta_string(w, key, &t) ? text_of(t.s, t.n) : json_null();
}

/* A token's id and text; null: there is none. */
static json_t *token_of(const wg_tokenizer *t, int id)
{
    if (id < 0) return json_null();
    const wg_text piece = wg_tokenizer_piece(t, id);
    return json_pack("{s:i, s:o}", "id", id, "text", text_of(piece.s, piece.n));
}

/* Names of the chat templates: "default", and variants. */
static json_t *templates_of(const wg_weights *w)
{
    static const char key[] = "tokenizer.chat_template";
    json_t *names = json_array();
    for (int i = 0; i < wg_meta_count(w); i++) {
        const char *k = wg_meta_key(w, i);
        if (strncmp(k, key, strlen(key)) != 0 || wg_meta_kind_of(w, i) != WG_META_STRING) continue;
        if (k[strlen(key)] == 0) json_array_insert_new(names, 0, json_string("default"));
        else if (k[strlen(key)] == '.') json_array_append_new(names, text(k + strlen(key) + 1));
    }
    return names;
}

/* Facts of the tokenizer. rows: of the embedding, 0: unknown; prompts may not have tokens beyond them. */
static json_t *tokenizer_of(const wg_weights *w, int rows)
{
    wg_tokenizer *t;
    wg_text kind;
    wg_error err;
    if (!wg_meta_string(w, "tokenizer.ggml.model", &kind)) return json_null();
    if (wg_tokenizer_open(&t, w, &err)) return json_pack("{s:o}", "refused", text(err.text));
    char digest[WG_SHA256_HEX];
    int control = 0;
    const int beyond = rows > 0 && wg_tokenizer_size(t) > rows ? wg_tokenizer_size(t) - rows : 0;
    json_t *ends = json_array();
    for (int id = 0; id < wg_tokenizer_size(t); id++) {
        control += wg_tokenizer_is_control(t, id);
        if (wg_tokenizer_is_eog(t, id)) json_array_append_new(ends, token_of(t, id));
    }
    wg_tokenizer_digest(t, digest);
    json_t *o =
        json_pack("{s:s, s:i, s:o, s:o, s:o, s:b, s:i, s:o, s:o, s:s, s:n}", "kind", wg_tokenizer_kind(t), "size",
                  wg_tokenizer_size(t), "pre", string_of(w, "tokenizer.ggml.pre"), "bos", token_of(t, wg_tokenizer_bos(t)),
                  "eos", token_of(t, wg_tokenizer_eos(t)), "adds_bos", wg_tokenizer_add_bos(t), "control_tokens", control,
                  "ends", ends, "templates", templates_of(w), "digest", digest, "refused");
    json_object_set_new(o, "beyond_embedding", json_integer(beyond));
    wg_tokenizer_close(t);
    return o;
}

static json_t *tensors_of(const wg_tensor_list *list)
{
    json_t *all = json_array();
    for (size_t i = 0; i < list->n; i++) {
        const wg_listed_tensor *t = &list->tensor[i];
        json_t *dims = json_array();
        for (int d = 0; d < t->n_dims; d++) json_array_append_new(dims, json_integer(t->dim[d]));
        json_array_append_new(all, json_pack("{s:o, s:s, s:o, s:I}", "name", text(t->name), "type", t->type, "dims", dims,
                                             "bytes", (json_int_t)t->bytes));
    }
    return all;
}

json_t *wg_model_facts(const wg_weights *w, const char *path, const wg_tensor_list *list, const char *refused,
                       const wg_facts_options *o)
{
    wg_arch a;
    wg_error err;
    const bool known = w && wg_arch_read(w, &a, &err) == WG_OK;
    json_t *drafter = dialect_of(path, list);
    json_t *head = json_is_string(json_object_get(drafter, "runs_with")) ? head_of(path) : json_null();
    return json_pack("{s:o, s:s, s:I, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "path", text(path), "format",
                     w ? wg_weights_format(w) : "safetensors", "bytes", (json_int_t)list->bytes, "runs", !refused, "refused",
                     text(refused), "drafter", drafter, "head", head, "architecture", known ? architecture_of(&a) : json_null(),
                     "memory", known ? memory_of(&a, (double)list->bytes, o) : json_null(), "tokenizer",
                     w ? tokenizer_of(w, known ? a.vocab : 0) : json_null(), "tensors", tensors_of(list));
}

/* ---- a pair */

/* The relation of two tokenizers' vocabularies, "same", "overlap" or "other", with the drafters for it. */
static json_t *pair_of(const wg_tokenizer *a, const wg_tokenizer *b, json_t *with, json_t *why)
{
    wg_vocab_map map;
    wg_error err;
    if (wg_tokenizer_same(a, b, "the target", "the draft model", &err) == WG_OK) {
        json_array_append_new(with, json_string("model"));
        json_array_append_new(with, json_string("slem"));
        return json_pack("{s:s, s:i, s:i}", "kind", "same", "shared", wg_tokenizer_size(a), "of", wg_tokenizer_size(a));
    }
    json_array_append_new(why, text(err.text));
    if (wg_vocab_map_open(&map, a, b, &err)) return json_null();
    if (map.shared) json_array_append_new(with, json_string("model:vocabulary=intersection"));
    json_array_append_new(with, json_string("slem"));
    json_t *o = json_pack("{s:s, s:i, s:i}", "kind", map.shared ? "overlap" : "other", "shared", map.shared, "of", map.a);
    wg_vocab_map_close(&map);
    return o;
}

/* Compares files without a tokenizer, by vocabulary size only. */
static json_t *sizes_of(const wg_arch *target, const wg_arch *draft, json_t *with, json_t *why)
{
    char line[160];
    if (target->vocab == draft->vocab) {
        json_array_append_new(with, json_string("model"));
        json_array_append_new(why,
                              json_string("one of them has no tokenizer: only the sizes of the vocabularies are compared"));
        return json_pack("{s:s, s:i, s:i}", "kind", "same", "shared", target->vocab, "of", target->vocab);
    }
    snprintf(line, sizeof line, "%d and %d tokens, and one of them has no tokenizer", target->vocab, draft->vocab);
    json_array_append_new(why, json_string(line));
    return json_pack("{s:s, s:i, s:i}", "kind", "other", "shared", 0, "of", target->vocab);
}

static void file_row(const void *tensor, int32_t token, float *row)
{
    const wg_tensor *t = tensor;
    const size_t bytes = wg_type_size(wg_type_get(t->type), (size_t)t->dim[0]);
    if (wg_row_to_f32(t->type, (const char *)t->data + (size_t)token * bytes, row, (size_t)t->dim[0])) row[0] = NAN;
}

/* Whether the target has the rows that a student was cut from. */
static bool has_rows_of(const wg_weights *w, const wg_weights *d)
{
    const wg_tensor *head = wg_weights_find(w, "output.weight"), *t = head ? head : wg_weights_find(w, "token_embd.weight");
    bool own = false;
    wg_text name;
    wg_error err;
    if (!t || wg_weights_need(w, t, &err)) return false;
    const wg_student_target of = { t, file_row, (int)t->dim[1], (int)t->dim[0] };
    return wg_student_knows(d, &of, &own, &name, &err) == WG_OK && own;
}

/* A student that is cut to what its target lacks has the target's ids. */
static json_t *student_of(const wg_tokenizer *t, const wg_weights *w, const wg_weights *d, const wg_arch *draft, json_t *with,
                          json_t *why)
{
    char digest[WG_SHA256_HEX];
    wg_text made = { 0 };
    wg_tokenizer_digest(t, digest);
    const bool own = wg_meta_string(d, WG_STUDENT_TOKENIZER, &made) && wg_text_is(made, digest) && has_rows_of(w, d);
    if (own) json_array_append_new(with, json_string("model"));
    json_array_append_new(why, json_string(own ? "a student cut to what its target lacks: it reads the target's embedding"
                                               : "a student cut to what another target lacks"));
    return json_pack("{s:s, s:i, s:i}", "kind", own ? "overlap" : "other", "shared", own ? draft->kept : 0, "of",
                     wg_tokenizer_size(t));
}

static json_t *context_of(const wg_arch *target, const wg_arch *draft, bool own_tokens, json_t *why)
{
    char line[200];
    if (draft->context >= target->context) return json_integer(draft->context);
    if (own_tokens)
        snprintf(line, sizeof line, "its context of %d tokens is shorter: later rounds of longer texts have no draft",
                 draft->context);
    else
        snprintf(line, sizeof line, "its context is shorter: of texts of more than %d tokens it reads the last %d to %d",
                 draft->context, draft->context - draft->context / 2 + 1, draft->context);
    json_array_append_new(why, json_string(line));
    return json_integer(draft->context);
}

/* Compares two open files that run as models. */
static void compare(const wg_weights *w, const wg_weights *d, json_t *o, json_t *with, json_t *why)
{
    wg_tokenizer *a = NULL, *b = NULL;
    wg_arch target, draft;
    wg_error err;
    if (wg_arch_read(w, &target, &err) || wg_arch_read(d, &draft, &err)) {
        json_array_append_new(why, text(err.text));
        return;
    }
    const bool mine = wg_tokenizer_open(&a, w, &err) == WG_OK, read = mine && wg_tokenizer_open(&b, d, &err) == WG_OK;
    json_t *vocabulary = mine && draft.kept ? student_of(a, w, d, &draft, with, why)
                         : read             ? pair_of(a, b, with, why)
                                            : sizes_of(&target, &draft, with, why);
    const char *kind = json_string_value(json_object_get(vocabulary, "kind"));
    const bool own_tokens = !draft.kept && (!kind || strcmp(kind, "same") != 0);
    json_object_set_new(o, "context", context_of(&target, &draft, own_tokens, why));
    json_object_set_new(o, "vocabulary", vocabulary);
    json_object_set_new(o, "parameters_share", json_real((double)wg_arch_macs(&draft) / (double)wg_arch_macs(&target)));
    wg_tokenizer_close(a);
    wg_tokenizer_close(b);
}

json_t *wg_draft_facts(const wg_weights *w, const char *draft)
{
    wg_weights *d = NULL;
    wg_error err;
    json_t *with = json_array(), *why = json_array();
    json_t *o = json_pack("{s:o, s:n, s:n, s:n}", "path", text(draft), "context", "vocabulary", "parameters_share");
    wg_status s = wg_weights_open(&d, draft, &err);
    if (!s) s = wg_target_check(d, WG_TOKENIZER_IF_THERE, &err);
    if (s) json_array_append_new(why, text(err.text));
    else compare(w, d, o, with, why);
    wg_weights_close(d);
    json_object_set_new(o, "can_draft", json_boolean(json_array_size(with) > 0));
    json_object_set_new(o, "drafters", with);
    json_object_set_new(o, "notes", why);
    return o;
}
