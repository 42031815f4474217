/* SPDX-License-Identifier: MIT
 * A Hugging Face folder as weights. Its files are described by the head of a GGUF file that is never written: keys, tensor
 * names and shapes. Tensors stay where they are in the mapped shards; only those that differ in a GGUF file (permuted rows,
 * rotary divisors) or do not lie at a multiple of their elements are made when they are needed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/file/format.h"
#include "core/file/hf.h"
#include "core/file/hf_names.h"
#include "core/file/hf_paired.h"
#include "core/file/hf_shards.h"

#define MTP "model.mtp_layers."

/* Where the bytes of a tensor come from. */
typedef struct source {
    const wg_safetensor *from; /* NULL: the rotary divisors */
    int heads;                 /* whose rows are permuted; 0: they are not */
    bool grouped;              /* rows of queries, keys and values, which stand by key head */
    int divisors;              /* of `from` NULL: which list of config.json */
    bool turned;               /* columns become rows */
    bool plus_one;             /* a norm's weights, stored less 1 */
    int half;                  /* of the rows (of each expert): 1 the first, 2 the second; 0: all of them */
    bool there;                /* the tensor's data points into the shard */
    wg_hf_paired paired;       /* step 0: it is none of these experts */
    const wg_safetensor *scales;
    const wg_safetensor **each; /* (experts) of a tensor that is made of those of all experts; else NULL */
} source;

typedef struct folder {
    const char *path;
    char *file; /* of messages: a file of the folder */
    wg_hf_config config;
    wg_hf_shards shard;
    source *source; /* (sources) in the order of the tensors */
    size_t sources;
    uint32_t aside; /* tensors for multi-token prediction, which are not read */
    int32_t *stack; /* (layers, WG_HF_EXPERT_NAMES) which source has the tensors of all experts; -1: none yet */
    const wg_weights *weights;
    wg_error *err;
} folder;

static void folder_close(void *user)
{
    folder *f = user;
    wg_hf_shards_close(&f->shard);
    for (size_t i = 0; i < f->sources; i++) wg_free(f->source[i].each);
    wg_free(f->stack);
    wg_free(f->source);
    wg_free(f->file);
    wg_free(f);
}

/* The path of a file of the folder, valid until the next call; NULL: out of memory. */
static const char *path_of(folder *f, const char *name)
{
    const size_t n = strlen(f->path) + strlen(name) + 2;
    wg_free(f->file);
    f->file = wg_alloc(n, 1);
    if (f->file) snprintf(f->file, n, "%s/%s", f->path, name);
    return f->file;
}

static bool has(folder *f, const char *name)
{
    const char *path = path_of(f, name);
    return path && access(path, F_OK) == 0;
}

/* A pipe in the place of a file would be waited for. */
static wg_status check_files(folder *f)
{
    static const char *const names[] = { "config.json",
                                         "generation_config.json",
                                         "tokenizer.json",
                                         "tokenizer.model",
                                         "tokenizer_config.json",
                                         "chat_template.jinja",
                                         "model.safetensors.index.json",
                                         "added_tokens.json",
                                         "special_tokens_map.json",
                                         "chat_template.json" };
    struct stat st;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = path_of(f, names[i]);
        if (!path) return wg_nomem(f->err, 1, "a path");
        if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
            return wg_fail(f->err, WG_EFORMAT, "%s: is not a regular file; download it again", path);
    }
    return WG_OK;
}

static wg_status check_dtype(const folder *f, const char *path, const wg_safetensor *t)
{
    if (t->type >= 0) return WG_OK;
    return wg_fail(f->err, WG_EUNSUPPORTED, "%s: tensor '%.120s' has the dtype %s: expected F32, F16 or BF16", path, t->name,
                   t->dtype);
}

/* ---- experts: a tensor each here, one tensor of all in GGUF files */

/* Whether a name is that of an expert's tensor: its layer, kind and number. */
static bool find_expert(const wg_hf_config *c, const char *hf, int *layer, int *kind, int *expert)
{
    char exact[WG_HF_NAME];
    for (*kind = 0; c->experts > 0 && *kind < WG_HF_EXPERT_NAMES; ++*kind) {
        snprintf(exact, sizeof exact, "model.layers.%%4d.%s.experts.%%4d.", wg_hf_expert_names[*kind].before);
        if (sscanf(hf, exact, layer, expert) != 2) continue;
        snprintf(exact, sizeof exact, WG_HF_EXPERT, *layer, wg_hf_expert_names[*kind].before, *expert,
                 wg_hf_expert_names[*kind].after);
        if (strcmp(hf, exact) == 0 && *layer >= 0 && *layer < c->layers && *expert >= 0 && *expert < c->experts) return true;
    }
    return false;
}

/* The first tensor of a kind and layer declares the tensor of all experts. */
static wg_status declare_stack(folder *f, wg_gguf_writer *g, const wg_safetensor *t, int32_t *stack, const char *name)
{
    const int n = f->config.experts;
    const wg_tensor all = { .name = name, .type = t->type, .n_dims = 3, .dim = { t->dim[1], t->dim[0], n, 1 } };
    source *s = &f->source[f->sources];
    *s = (source){ .from = t, .each = wg_calloc((size_t)n, sizeof *s->each) };
    if (!s->each) return wg_nomem(f->err, (size_t)n * sizeof *s->each, "a list of experts");
    *stack = (int32_t)f->sources++;
    wg_gguf_add(g, &all, NULL, NULL);
    return WG_OK;
}

static wg_status add_expert(folder *f, wg_gguf_writer *g, const char *path, const wg_safetensor *t, int layer, int kind, int e)
{
    char name[WG_HF_NAME];
    int32_t *stack = &f->stack[layer * WG_HF_EXPERT_NAMES + kind];
    snprintf(name, sizeof name, "blk.%d.%s.weight", layer, wg_hf_expert_names[kind].gguf);
    WG_TRY(check_dtype(f, path, t));
    if (*stack < 0 && t->n_dims == 2) WG_TRY(declare_stack(f, g, t, stack, name));
    const wg_safetensor *first = *stack < 0 ? NULL : f->source[*stack].from;
    if (!first || t->n_dims != 2 || t->type != first->type || t->dim[0] != first->dim[0] || t->dim[1] != first->dim[1])
        return wg_fail(f->err, WG_EMODEL,
                       "%s: tensor '%.120s' has another shape or dtype than those of other experts: expected matrices alike",
                       path, t->name);
    f->source[*stack].each[e] = t;
    return WG_OK;
}

/* Newer files have all experts of a layer in one tensor, as GGUF files; the rows of gate and up stand one behind the other. */
static bool find_stack(const wg_hf_config *c, const char *hf, int *layer, bool *down)
{
    char exact[WG_HF_NAME];
    if (c->experts == 0 || sscanf(hf, "model.layers.%4d.", layer) != 1 || *layer < 0 || *layer >= c->layers) return false;
    for (int i = 0; i < 2; i++) {
        snprintf(exact, sizeof exact, "model.layers.%d.mlp.experts.%s", *layer, i ? "down_proj" : "gate_up_proj");
        *down = i;
        if (strcmp(hf, exact) == 0) return true;
    }
    return false;
}

static wg_status add_stack(folder *f, wg_gguf_writer *g, const char *path, const wg_safetensor *t, int layer, bool down)
{
    static const char *const halves[] = { "ffn_gate_exps", "ffn_up_exps" };
    char name[WG_HF_NAME];
    const wg_hf_config *c = &f->config;
    const int64_t rows = down ? c->dim : 2 * c->hidden, columns = down ? c->hidden : c->dim;
    WG_TRY(check_dtype(f, path, t));
    if (t->n_dims != 3 || t->dim[0] != c->experts || t->dim[1] != rows || t->dim[2] != columns)
        return wg_fail(f->err, WG_EMODEL, "%s: tensor '%.120s' has another shape: expected %d x %lld x %lld", path, t->name,
                       c->experts, (long long)rows, (long long)columns);
    for (int i = 0; i < (down ? 1 : 2); i++) {
        snprintf(name, sizeof name, "blk.%d.%s.weight", layer, down ? "ffn_down_exps" : halves[i]);
        const wg_tensor all = {
            .name = name, .type = t->type, .n_dims = 3, .dim = { columns, down ? rows : rows / 2, c->experts, 1 }
        };
        f->source[f->sources++] = (source){ .from = t,
                                            .half = down ? 0 : i + 1,
                                            .there = down && (uintptr_t)t->data % wg_type_size(wg_type_get(t->type), 1) == 0 };
        wg_gguf_add(g, &all, NULL, NULL);
    }
    return WG_OK;
}

static const wg_safetensor *find_tensor(const folder *f, const char *name);

static wg_status add_paired(folder *f, wg_gguf_writer *g, const char *path, const wg_safetensor *t, const wg_hf_paired *p)
{
    wg_tensor to[2];
    char name[2][WG_HF_NAME], scales[WG_HF_FULL_NAME];
    wg_hf_paired of[2];
    const wg_safetensor *by = NULL;
    WG_TRY(wg_hf_paired_check(&f->config, p, path, t, f->err));
    wg_hf_paired_scales(p, scales);
    if (p->scales) return WG_OK;
    if (p->blocks && !(by = find_tensor(f, scales)))
        return wg_fail(f->err, WG_EMODEL, "%s: there is no tensor '%s' beside '%.120s'; is the folder complete?", path, scales,
                       t->name);
    const int n = wg_hf_paired_tensors(&f->config, p, t, to, name, of);
    for (int i = 0; i < n; i++) {
        f->source[f->sources++] = (source){ .from = t, .paired = of[i], .scales = by };
        wg_gguf_add(g, &to[i], NULL, NULL);
    }
    return WG_OK;
}

static wg_status check_experts(const folder *f)
{
    for (size_t i = 0; i < f->sources; i++)
        for (int e = 0; f->source[i].each && e < f->config.experts; e++)
            if (!f->source[i].each[e])
                return wg_fail(f->err, WG_EMODEL,
                               "%s: there is no tensor of expert %d of %d beside '%.120s'; is the folder complete?", f->path, e,
                               f->config.experts, f->source[i].from->name);
    return WG_OK;
}

static bool has_bias(const wg_hf_config *c, const char *gguf)
{
    return strstr(gguf, "norm")          ? c->norm_bias
           : strstr(gguf, "ffn_")        ? c->mlp_bias
           : strstr(gguf, "attn_output") ? c->output_bias
                                         : c->qkv_bias;
}

/* Tensors that are f32 whatever the shard has, because other readers of GGUF files take no other: vectors, learned positions,
 * routers. */
static bool is_f32(const wg_tensor *t)
{
    return t->n_dims == 1 || strcmp(t->name, "position_embd.weight") == 0 || strstr(t->name, "ffn_gate_inp");
}

/* Rows of gate and up that stand one behind the other become two tensors. to: the first, with the rows of both. */
static wg_status add_halves(folder *f, wg_gguf_writer *g, const wg_safetensor *t, const wg_hf_name *as, const wg_tensor *to)
{
    char second[WG_HF_NAME];
    wg_tensor half = *to;
    half.dim[1] /= 2;
    snprintf(second, sizeof second, "%.*s%s", (int)(strlen(to->name) - strlen(as->gguf)), to->name, as->second);
    for (int i = 0; i < 2; i++) {
        f->source[f->sources++] = (source){ .from = t, .half = i + 1 };
        if (i) half.name = second;
        wg_gguf_add(g, &half, NULL, NULL);
    }
    return WG_OK;
}

/* Whether the tensor is of a layer for multi-token prediction, which a head reads (head_file.h). */
static bool is_mtp(const wg_hf_config *c, const char *name)
{
    int layer = -1;
    if (c->mtp && strncmp(name, MTP, strlen(MTP)) == 0) return true;
    if (!c->nextn) return false;
    return strncmp(name, "mtp.", 4) == 0 || (sscanf(name, "model.layers.%9d.", &layer) == 1 && layer >= c->layers);
}

/* Adds one tensor of a shard under its name in GGUF files. */
static wg_status add_tensor(folder *f, wg_gguf_writer *g, const char *path, const wg_safetensor *t)
{
    char name[WG_HF_NAME];
    const wg_hf_config *c = &f->config;
    int layer, kind, expert;
    bool down;
    wg_hf_paired paired;
    if (is_mtp(c, t->name)) {
        f->aside++;
        return WG_OK;
    }
    if (wg_hf_paired_find(c, t->name, &paired)) return add_paired(f, g, path, t, &paired);
    if (find_expert(c, t->name, &layer, &kind, &expert)) return add_expert(f, g, path, t, layer, kind, expert);
    if (find_stack(c, t->name, &layer, &down)) return add_stack(f, g, path, t, layer, down);
    const wg_hf_name *as = wg_hf_find_name(c, t->name, name);
    if (!as)
        return wg_fail(f->err, WG_EUNSUPPORTED,
                       "%s: tensor '%.120s' has no place in a %s model of %d layers: its results would be wrong without it",
                       path, t->name, c->family, c->layers);
    if (!*name) return WG_OK;
    WG_TRY(check_dtype(f, path, t));
    if (strstr(as->gguf, ".bias") && !has_bias(c, as->gguf))
        return wg_fail(
            f->err, WG_EMODEL,
            "%s: tensor '%.120s' is a bias, and by config.json the model has none there; do the files belong together?", path,
            t->name);
    wg_tensor to = { .name = name, .type = t->type, .n_dims = t->n_dims, .dim = { 1, 1, 1, 1 } };
    for (int d = 0; d < t->n_dims; d++) to.dim[d] = t->dim[t->n_dims - 1 - d];
    if (as->second && t->n_dims == 2 && t->dim[0] % 2 == 0) return add_halves(f, g, t, as, &to);
    source *s = &f->source[f->sources++];
    const wg_hf_change change = wg_hf_change_of(c, as, t->n_dims);
    *s = (source){
        .from = t, .plus_one = change.plus_one, .heads = change.heads, .turned = change.turned, .grouped = change.grouped
    };
    const int64_t rows = t->dim[0], width = c->head_dim;
    const int heads = s->grouped ? c->heads + 2 * c->kv_heads : s->heads;
    if (heads && (t->n_dims < 1 || t->n_dims > 2 || rows != heads * width))
        return wg_fail(f->err, WG_EMODEL, "%s: tensor '%.120s' has %lld rows: expected %d heads of %lld", path, t->name,
                       (long long)rows, heads, (long long)width);
    if (is_f32(&to)) to.type = WG_F32;
    if (s->turned) to.dim[0] = t->dim[0], to.dim[1] = t->dim[1];
    s->there = to.type == t->type && !s->heads && !s->plus_one && !s->turned && !s->grouped &&
               (uintptr_t)t->data % wg_type_size(wg_type_get(t->type), 1) == 0;
    wg_gguf_add(g, &to, NULL, NULL);
    return WG_OK;
}

static wg_status add_tensors(folder *f, wg_gguf_writer *g)
{
    size_t all = 2;                                                           /* with those of rotary divisors */
    for (size_t i = 0; i < f->shard.n; i++) all += 2 * f->shard.at[i].list.n; /* gate and up may be one tensor */
    f->source = wg_calloc(all, sizeof *f->source);
    const size_t stacks = (size_t)f->config.layers * WG_HF_EXPERT_NAMES;
    f->stack = wg_alloc(stacks, sizeof *f->stack);
    if (!f->source || !f->stack) return wg_nomem(f->err, all * sizeof *f->source, "a list of tensors");
    memset(f->stack, -1, stacks * sizeof *f->stack);
    for (size_t i = 0; i < f->shard.n; i++)
        for (size_t k = 0; k < f->shard.at[i].list.n; k++)
            WG_TRY(add_tensor(f, g, f->shard.at[i].path, &f->shard.at[i].list.tensor[k]));
    WG_TRY(check_experts(f));
    if (f->aside > 0) wg_gguf_set_u32(g, "wager.left_aside.mtp_layers", f->aside); /* for wager inspect */
    if (f->shard.aside > 0) wg_gguf_set_u32(g, "wager.left_aside.images", f->shard.aside);
    const char *const name[] = { f->config.longrope ? "rope_factors_long.weight" : "rope_freqs.weight",
                                 "rope_factors_short.weight" };
    for (int i = 0; f->config.divisors > 0 && i < (f->config.longrope ? 2 : 1); i++) {
        f->source[f->sources++] = (source){ .divisors = i };
        wg_gguf_add(g, &(wg_tensor){ .name = name[i], .type = WG_F32, .n_dims = 1, .dim = { f->config.divisors, 1, 1, 1 } },
                    NULL, NULL);
    }
    return WG_OK;
}

/* ---- tensors that are made */

/* Pairs become neighbours; or groups of the queries of a key head, its key and its value become all queries, all keys, all
 * values. */
static void permute(const source *s, const wg_hf_config *c, char *to)
{
    const int64_t rows = s->from->dim[0], width = s->grouped ? 0 : rows / s->heads;
    const size_t row = s->from->bytes / (size_t)rows;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t from = s->grouped ? wg_hf_grouped_row(c, r) : wg_hf_row(r, width);
        memcpy(to + (size_t)r * row, s->from->data + (size_t)from * row, row);
    }
}

static void turn(const wg_safetensor *t, char *to)
{
    const size_t rows = (size_t)t->dim[0], columns = (size_t)t->dim[1], each = wg_type_size(wg_type_get(t->type), 1);
    for (size_t c = 0; c < columns; c++)
        for (size_t r = 0; r < rows; r++) memcpy(to + (c * rows + r) * each, t->data + (r * columns + c) * each, each);
}

static wg_status make(void *user, const wg_tensor *t, void *dst, wg_error *err)
{
    const folder *f = user;
    const source *s = &f->source[t - wg_weights_at(f->weights, 0)];
    (void)err;
    if (s->there) return WG_OK;
    if (!s->from) return memcpy(dst, f->config.divisor[s->divisors], t->bytes), WG_OK;
    if (s->paired.step) {
        wg_hf_paired_make(&s->paired, s->from, s->scales, t, dst);
        return WG_OK;
    }
    if (s->each) {
        for (int e = 0; e < f->config.experts; e++) {
            memcpy((char *)dst + (size_t)e * s->from->bytes, s->each[e]->data, s->from->bytes);
            wg_pages_release(s->each[e]->data, s->from->bytes);
        }
        return WG_OK;
    }
    if (s->half) {
        const size_t n = f->config.experts ? (size_t)f->config.experts : 1, half = t->bytes / n;
        for (size_t e = 0; e < n; e++)
            memcpy((char *)dst + e * half, s->from->data + (2 * e + (size_t)s->half - 1) * half, half);
        return WG_OK;
    }
    char *to = (char *)dst + t->bytes -
               s->from->bytes; /* what becomes f32 stands at the end first, and is read before it is written */
    if (s->turned) turn(s->from, to);
    else if (s->grouped || s->heads) permute(s, &f->config, to);
    else memcpy(to, s->from->data, s->from->bytes);
    const size_t n = t->bytes / sizeof(float);
    if (t->type != s->from->type) wg_row_to_f32(s->from->type, to, dst, n);
    for (size_t i = 0; s->plus_one && i < n; i++) ((float *)dst)[i] += 1.0f;
    wg_pages_release(s->from->data, s->from->bytes);
    return WG_OK;
}

static void ahead(void *user, const wg_tensor *t)
{
    const folder *f = user;
    const source *s = &f->source[t - wg_weights_at(f->weights, 0)];
    for (int e = 0; s->each && e < f->config.experts; e++) wg_pages_ahead(s->each[e]->data, s->each[e]->bytes);
    if (s->from && !s->each) wg_pages_ahead(s->from->data, s->from->bytes);
}

/* ---- the folder */

static wg_status read_config(folder *f, wg_json *config, wg_hf_ids *ids)
{
    wg_json *generation;
    WG_TRY(wg_hf_config_read(&f->config, config, f->err));
    WG_TRY(wg_hf_open_json(&generation, f->path, "generation_config.json", f->err));
    const wg_status s = wg_hf_ids_read(ids, generation, config, f->err);
    wg_json_close(generation);
    return s;
}

static const wg_safetensor *find_tensor(const folder *f, const char *name)
{
    const wg_hf_dialect in = wg_hf_dialect_of(&f->config);
    for (size_t i = 0; i < f->shard.n; i++)
        for (size_t k = 0; k < f->shard.at[i].list.n; k++)
            if (strcmp(wg_hf_plain_name(&in, f->shard.at[i].list.tensor[k].name), name) == 0)
                return &f->shard.at[i].list.tensor[k];
    return NULL;
}

/* The tensor of the first layer that a GGUF file calls so; NULL: there is none. hf: what it is called here. */
static const wg_safetensor *find_first(const folder *f, const char *gguf, char hf[WG_HF_NAME])
{
    const wg_hf_dialect in = wg_hf_dialect_of(&f->config);
    const wg_safetensor *t = NULL;
    for (size_t i = 0; i < in.in_layers && !t; i++) {
        if (!in.in_layer[i].gguf || strcmp(in.in_layer[i].gguf, gguf) != 0) continue;
        const int n = snprintf(hf, WG_HF_NAME, in.layer, 0);
        snprintf(hf + n, WG_HF_NAME - (size_t)n, "%s", in.in_layer[i].hf);
        t = find_tensor(f, hf);
    }
    return t;
}

/* The head's tensor, by one of its names; NULL: there is none. */
static const wg_safetensor *find_head(const folder *f)
{
    const wg_hf_dialect in = wg_hf_dialect_of(&f->config);
    const wg_safetensor *t = NULL;
    for (size_t i = WG_HF_HEAD_NAME; i < in.heads && !t; i++)
        if (strcmp(in.head[i].gguf, "output.weight") == 0) t = find_tensor(f, in.head[i].hf);
    return t;
}

/* A head that the file has is used, whatever config.json says; one that is the embedding's copy is left aside. */
static void settle_head(folder *f)
{
    const wg_hf_dialect in = wg_hf_dialect_of(&f->config);
    const wg_safetensor *head = f->config.tied ? find_head(f) : NULL, *e = find_tensor(f, in.head[WG_HF_EMBEDDING_NAME].hf);
    if (!head || !e) return;
    f->config.tied = head->type == e->type && head->bytes == e->bytes && memcmp(head->data, e->data, e->bytes) == 0;
}

/* Tensors whose presence GGUF files decide by, and config.json here. */
static wg_status check_tensors(const folder *f)
{
    const wg_hf_config *c = &f->config;
    const wg_hf_dialect in = wg_hf_dialect_of(c);
    const char *biases = c->style == WG_HF_FALCON ? "bias" : "attention_bias";
    const bool normed = !c->one_norm && !c->no_pre_norm && !(c->names & WG_HF_NAMES_SEED);
    const struct {
        const char *gguf, *key;
        bool needed;
    } row[] = {
        { c->fused ? "attn_qkv.bias" : "attn_q.bias", c->qkv_key ? c->qkv_key : biases, c->qkv_bias },
        { "attn_output.bias", c->output_key ? c->output_key : biases, c->output_bias },
        { "ffn_up.bias", c->mlp_key ? c->mlp_key : biases, c->mlp_bias && !c->paired },
        { "attn_norm.bias", "model_type", c->norm_bias },
        { "attn_norm_2.weight", "num_ln_in_parallel_attn", c->own_norm },
        { "ffn_norm.weight", "parallel_attn", normed },
    };
    const char *missing = in.head[WG_HF_HEAD_NAME].hf, *key = "tie_word_embeddings";
    char hf[WG_HF_NAME];
    const wg_safetensor *t = find_tensor(f, in.head[WG_HF_EMBEDDING_NAME].hf);
    if (!t || t->n_dims != 2 || t->dim[0] != c->vocab || t->bytes == 0)
        return wg_fail(f->err, WG_EMODEL,
                       "%s: there is no tensor '%s' of %d rows, the vocab_size of config.json; is the folder complete?",
                       f->path, in.head[WG_HF_EMBEDDING_NAME].hf, c->vocab);
    bool whole = c->tied || find_head(f);
    for (size_t i = 0; i < sizeof row / sizeof row[0] && whole; i++) {
        whole = !row[i].needed || find_first(f, row[i].gguf, hf);
        missing = hf, key = row[i].key;
    }
    if (whole) return WG_OK;
    return wg_fail(f->err, WG_EMODEL,
                   "%s: there is no tensor '%s', which the model's type and '%s' of config.json require; is the folder "
                   "complete?",
                   f->path, missing, key);
}

/* Sets the keys of tokenizer.json, or of tokenizer.model where there is none. */
static wg_status describe_tokenizer(folder *f, const wg_hf_ids *ids, wg_gguf_writer *g)
{
    enum { MOST = 256 << 20 };
    wg_status s;
    wg_json *tokenizer;
    WG_TRY(wg_hf_open_json(&tokenizer, f->path, "tokenizer.json", f->err));
    if (tokenizer) {
        s = wg_hf_tokenizer(g, tokenizer, ids, f->config.vocab, f->err);
        wg_json_close(tokenizer);
        return s;
    }
    if (!has(f, "tokenizer.model")) return WG_OK;
    char *bytes;
    size_t n;
    const char *path = path_of(f, "tokenizer.model");
    if (!path) return wg_nomem(f->err, 1, "a path");
    WG_TRY(wg_read_file(path, MOST, &bytes, &n, f->err));
    wg_hf_added added;
    s = wg_hf_added_read(&added, f->path, f->err);
    if (s == WG_OK) {
        s = wg_sentencepiece_tokenizer(g, path, (wg_text){ bytes, n }, &added, ids, f->config.vocab, f->err);
        wg_hf_added_close(&added);
    }
    wg_free(bytes);
    return s;
}

static wg_status describe(folder *f, const wg_hf_ids *ids, wg_gguf_writer *g)
{
    const char *slash = strrchr(f->path, '/'), *name = slash ? slash + 1 : f->path;
    wg_hf_config_write(&f->config, g);
    wg_gguf_set_string(g, "general.name", name, strlen(name));
    settle_head(f);
    WG_TRY(check_tensors(f));
    WG_TRY(add_tensors(f, g));
    WG_TRY(wg_hf_chat(g, f->path, f->err));
    return describe_tokenizer(f, ids, g);
}

/* Writes all that describes the folder to *g, which stays NULL where nothing was written. */
static wg_status describe_all(folder *f, wg_gguf_writer **g)
{
    wg_json *config;
    wg_hf_ids ids;
    WG_TRY(check_files(f));
    WG_TRY(wg_hf_open_json(&config, f->path, "config.json", f->err));
    if (!config)
        return wg_fail(
            f->err, WG_EUNSUPPORTED,
            "%s: is a folder without config.json; give a GGUF file, or the folder of a model with config.json and safetensors",
            f->path);
    wg_status s = read_config(f, config, &ids);
    wg_json_close(config);
    if (s == WG_OK) s = wg_hf_shards_open(&f->shard, f->path, f->err);
    if (s == WG_OK) s = wg_gguf_writer_open(g, NULL, f->err);
    if (s != WG_OK) return s;
    if (f->config.wrapped) wg_hf_shards_unwrap(&f->shard);
    return describe(f, &ids, *g);
}

wg_status wg_hf_open(wg_weights **out, const char *path, wg_error *err)
{
    wg_gguf_writer *g = NULL;
    size_t length = strlen(path);
    folder *f = wg_calloc(1, sizeof *f);
    if (!f) return wg_nomem(err, sizeof *f, "a folder of weights");
    while (length > 1 && path[length - 1] == '/') length--;
    char *plain = wg_strndup(path, length);
    f->path = plain;
    f->err = err;
    wg_status s = plain ? describe_all(f, &g) : wg_nomem(err, length, "a path");
    if (s != WG_OK) {
        wg_gguf_writer_abort(g);
        folder_close(f);
        wg_free(plain);
        return s;
    }
    const wg_maker maker = { .make = make, .close = folder_close, .ahead = ahead, .user = f };
    s = wg_weights_open_made(out, plain, g, &maker, err);
    wg_free(plain);
    if (s != WG_OK) return s;
    wg_weights *w = *out;
    f->weights = w;
    snprintf(w->format, sizeof w->format, f->shard.n > 1 ? "safetensors, %d files" : "safetensors", (int)f->shard.n);
    for (size_t i = 0; i < f->sources; i++)
        if (f->source[i].there) w->tensor[i].data = f->source[i].from->data;
    return WG_OK;
}
