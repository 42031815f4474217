/* SPDX-License-Identifier: MIT
 * Recognising drafters' files (dialect.h). Layouts: the checkpoints of the authors' repositories, of speculators, SpecForge,
 * DeepSpec and llama.cpp's converters. A dialect is a row: patterns of tensor names that must be there, and of such that must
 * not. */
#include "core/file/dialect.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/file/safetensors.h"

enum { EAGLE_3, EAGLE, P_EAGLE, MEDUSA, HYDRA, MTP, DFLASH, DFLASH_2, DSPARK, DOMINO, MLP_SPECULATOR };

static const wg_dialect dialects[] = {
    [EAGLE_3] = { "eagle-3", "one layer over hidden states of three layers of the target and its own last one", "eagle", true },
    [EAGLE] = { "eagle-1/2", "one layer over the target's last hidden state and a token; EAGLE-2 has the same files", "eagle",
                false },
    [P_EAGLE] = { "p-eagle", "EAGLE-3 that drafts several tokens in one pass, over a mask state", "block", false },
    [MEDUSA] = { "medusa", "heads over the target's last hidden state, one for each later token", NULL, false },
    [HYDRA] = { "hydra", "Medusa's heads, each over the tokens drafted before it as well", NULL, false },
    [MTP] = { "mtp", "layers of the target for multi-token prediction (NextN)", "mtp", false },
    [DFLASH] = { "dflash", "a block of tokens at once, over hidden states of several layers", "block", true },
    [DFLASH_2] = { "dflash-2", "DFlash with convolutions and a selection of candidates", "block", false },
    [DSPARK] = { "dspark", "DFlash with a Markov head over the token before", "block", true },
    [DOMINO] = { "domino", "DFlash with a recurrent state over the tokens before", NULL, false },
    [MLP_SPECULATOR] = { "mlp-speculator", "a stack of MLPs over the target's last hidden state and the tokens before", NULL,
                         false },
    { NULL, NULL, NULL, false },
};

/* The first row that fits decides. Names end as the patterns say; what stands before them (a class's prefix) is left open. */
static const struct rule {
    int dialect;
    const char *has[3], *lacks[2];
} rules[] = {
    { HYDRA, { "*hydra_*" }, { NULL } },
    { MEDUSA, { "*medusa_head.*.weight" }, { NULL } },
    { MEDUSA, { "*blocks.0.layers.0.weight", "*lm_heads.0.weight" }, { NULL } },
    { MEDUSA, { "0.0.linear.weight", "0.[1-9].weight" }, { NULL } },
    { P_EAGLE, { "*mask_hidden", "*fc.weight" }, { NULL } },
    { DFLASH_2, { "*candidate_selector.*", "*fc.weight" }, { NULL } },
    { DFLASH_2, { "*attention_conv.*", "*fc.weight" }, { NULL } },
    { DFLASH_2, { "*selector_predecessor.weight", "*fc.weight" }, { NULL } },
    { DOMINO, { "*prefix_gru.weight_ih_l0", "*fc.weight" }, { NULL } },
    { DSPARK, { "*markov_w1.weight", "*fc.weight" }, { NULL } },
    { DSPARK, { "*markov_w1", "*fc.weight" }, { NULL } },
    { DSPARK, { "*markov_head_a*", "*dspark_fc*" }, { NULL } },
    { EAGLE_3, { "*midlayer.*", "*fc.weight" }, { NULL } },
    { EAGLE_3, { "*layers.0.hidden_norm.weight", "*fc.weight" }, { NULL } },
    { EAGLE_3, { "blk.0.attn_norm_2.weight", "fc.weight" }, { NULL } },
    { EAGLE_3, { "*d2t", "*fc.weight" }, { "*hidden_norm.weight" } },
    { MTP, { "*mtp.fc.weight" }, { NULL } },
    { DFLASH, { "*hidden_norm.weight", "*fc.weight" }, { "*layers.0.hidden_norm.weight" } },
    { DFLASH, { "enc.output_norm*", "fc.weight" }, { NULL } },
    { EAGLE, { "*fc.weight", "*layers.0.self_attn.q_proj.weight" }, { "*layers.0.input_layernorm.weight" } },
    { EAGLE, { "fusion_fc.weight", "transformer.self_attn.q_proj.weight" }, { NULL } },
    { MTP, { "*mtp_layers.*" }, { NULL } },
    { MTP, { "*.eh_proj.weight" }, { NULL } },
    { MLP_SPECULATOR, { "*emb.0.weight", "*proj.0.weight", "*head.0.weight" }, { NULL } },
};

const wg_dialect *wg_dialects(void) { return dialects; }

/* ---- recognising */

static bool any(const wg_tensor_list *list, const char *pattern)
{
    for (size_t i = 0; i < list->n; i++)
        if (fnmatch(pattern, list->tensor[i].name, 0) == 0) return true;
    return false;
}

static bool fits(const wg_tensor_list *list, const struct rule *r)
{
    for (size_t k = 0; k < sizeof r->has / sizeof r->has[0] && r->has[k]; k++)
        if (!any(list, r->has[k])) return false;
    for (size_t k = 0; k < sizeof r->lacks / sizeof r->lacks[0] && r->lacks[k]; k++)
        if (any(list, r->lacks[k])) return false;
    return true;
}

/* A first layer and embeddings of a model, beside what drafts. DeepSeek's layers for prediction are numbered behind its own. */
static bool is_whole(const wg_tensor_list *list)
{
    const bool hf = any(list, "*model.layers.0.input_layernorm.weight") && any(list, "*model.embed_tokens.weight");
    const bool gguf = any(list, "blk.0.attn_norm.weight") && any(list, "token_embd.weight") && !any(list, "blk.0.nextn.*");
    return hf || gguf;
}

const wg_dialect *wg_dialect_of(const wg_tensor_list *list, bool *whole)
{
    *whole = false;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (!fits(list, &rules[i])) continue;
        *whole = rules[i].dialect == MTP && is_whole(list);
        return &dialects[rules[i].dialect];
    }
    return NULL;
}

/* ---- lists */

void wg_tensor_list_free(wg_tensor_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        wg_free(list->tensor[i].name);
        wg_free(list->tensor[i].type);
    }
    wg_free(list->tensor);
    *list = (wg_tensor_list){ 0 };
}

static wg_status push(wg_tensor_list *list, const char *name, const char *type, const int64_t *dim, int n_dims, size_t bytes,
                      wg_error *err)
{
    WG_TRY(wg_grow((void **)&list->tensor, &list->room, list->n + 1, sizeof *list->tensor, "a list of tensors", err));
    wg_listed_tensor *t = &list->tensor[list->n];
    *t = (wg_listed_tensor){ .name = wg_strdup(name), .type = wg_strdup(type), .n_dims = n_dims, .bytes = bytes };
    memcpy(t->dim, dim, sizeof t->dim);
    list->n++; /* a half-filled one is freed like the others */
    return t->name && t->type ? WG_OK : wg_nomem(err, strlen(name), "a tensor name");
}

wg_status wg_tensor_list_of(wg_tensor_list *out, const wg_weights *w, wg_error *err)
{
    *out = (wg_tensor_list){ .files = 1, .bytes = wg_weights_file_bytes(w) };
    const int n = wg_weights_count(w);
    wg_status s = WG_OK;
    for (int i = 0; i < n && !s; i++) {
        const wg_tensor *t = wg_weights_at(w, i);
        s = push(out, t->name, wg_type_name(t->type), t->dim, t->n_dims, t->bytes, err);
    }
    if (s) wg_tensor_list_free(out);
    return s;
}

static wg_status add_bytes(wg_tensor_list *list, const char *path, const void *bytes, size_t n, wg_error *err)
{
    wg_safetensors file = { 0 };
    WG_TRY(wg_safetensors_read(&file, path, bytes, n, err));
    wg_status s = WG_OK;
    for (size_t i = 0; i < file.n && !s; i++) {
        const wg_safetensor *t = &file.tensor[i];
        s = push(list, t->name, t->dtype, t->dim, t->n_dims, t->bytes, err);
    }
    wg_safetensors_free(&file);
    return s;
}

static wg_status add_file(wg_tensor_list *list, const char *path, wg_error *err)
{
    void *p;
    size_t n;
    if (wg_map_file(path, "", &p, &n, NULL)) return wg_fail(err, WG_EIO, "%s: cannot be read as a file of tensors", path);
    const wg_status s = add_bytes(list, path, p, n, err);
    munmap(p, n);
    list->files++;
    list->bytes += n;
    return s;
}

static bool is_safetensors(const char *name)
{
    const size_t n = strlen(name);
    return n > 12 && strcmp(name + n - 12, ".safetensors") == 0;
}

static wg_status add_folder(wg_tensor_list *list, const char *path, DIR *d, wg_error *err)
{
    wg_status s = WG_OK;
    for (const struct dirent *e; !s && (e = readdir(d));) {
        if (!is_safetensors(e->d_name)) continue;
        const size_t n = strlen(path) + strlen(e->d_name) + 2;
        char *file = wg_alloc(n, 1);
        if (file) snprintf(file, n, "%s/%s", path, e->d_name);
        s = file ? add_file(list, file, err) : wg_nomem(err, n, "a path");
        wg_free(file);
    }
    return s;
}

wg_status wg_tensor_list_read(wg_tensor_list *out, const char *path, wg_error *err)
{
    *out = (wg_tensor_list){ 0 };
    DIR *d = opendir(path);
    wg_status s = d                      ? add_folder(out, path, d, err)
                  : is_safetensors(path) ? add_file(out, path, err)
                                         : wg_fail(err, WG_ENOENT, "%s: has no tensors of safetensors files", path);
    if (d) closedir(d);
    if (s) wg_tensor_list_free(out);
    return s;
}

/* Takes the list. folder: of safetensors files, which drafters read. */
static wg_status refuse(wg_tensor_list *list, const char *path, bool folder, wg_status status, wg_error *err)
{
    bool whole;
    const wg_dialect *d = wg_dialect_of(list, &whole);
    wg_tensor_list_free(list);
    if (!d || whole) return status;
    if (!d->drafter || (!folder && !d->gguf))
        return wg_fail(
            err, WG_EUNSUPPORTED,
            "%s: is no model but a drafter for one, by its tensors: %s (%s); it cannot be a target, and no drafter of "
            "this program runs it yet",
            path, d->name, d->doc);
    struct stat sb;
    const char *slash = strrchr(path, '/');
    const bool alone = folder && stat(path, &sb) == 0 && S_ISREG(sb.st_mode); /* without its config.json */
    return wg_fail(
        err, WG_EUNSUPPORTED,
        "%s: is no model but a drafter for one, by its tensors: %s (%s); it cannot be a target; %s runs with --draft "
        "%s:model=%.*s",
        path, d->name, d->doc, alone ? "its folder, with config.json," : "it", d->drafter,
        alone && slash ? (int)(slash - path) : (int)strlen(path), alone && !slash ? "." : path);
}

wg_status wg_dialect_refuse(const char *path, wg_status status, wg_error *err)
{
    wg_tensor_list list;
    return wg_tensor_list_read(&list, path, NULL) ? status : refuse(&list, path, true, status, err);
}

wg_status wg_dialect_refuse_open(const wg_weights *w, wg_status status, wg_error *err)
{
    wg_tensor_list list;
    return wg_tensor_list_of(&list, w, NULL) ? status : refuse(&list, wg_weights_path(w), false, status, err);
}
