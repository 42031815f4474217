/* SPDX-License-Identifier: MIT
 * The machine profile of a run (run_profile.h). */
#include "experiments/run/run_profile.h"

#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/json_number.h"
#include "experiments/record/resume_cursor.h"

static void say(void *file, bool warning, const char *text)
{
    if (file) fprintf(file, "%s%s\n", warning ? "warning: " : "", text);
}

wg_status wg_run_profile_open(wg_profile **out, const wg_config *config, const wg_run_options *opt, wg_error *err)
{
    char *found = NULL, path[4096] = "";
    wg_error unused; /* a missing folder is reported where it is opened */
    if (opt->resume && !opt->out && wg_resume_find(&found, config, &unused)) found = NULL;
    if (opt->resume && (opt->out || found)) snprintf(path, sizeof path, "%s/profile.json", opt->out ? opt->out : found);
    wg_free(found);
    const bool there = *path && access(path, F_OK) == 0;
    const wg_profile_options o = { .use = there ? path : config->top.profile, .say = say, .user = opt->warnings };
    return wg_profile_open(out, &o, err);
}

void wg_run_profile_name(const wg_profile *p, json_t *machine, char name[WG_SHA256_HEX])
{
    char hex[WG_SHA256_HEX];
    snprintf(name, WG_SHA256_HEX, "%s", p ? wg_profile_name(p, hex) : wg_json_word(machine, "profile"));
    if (*name) json_object_set_new(machine, "profile", json_string(name));
}

wg_status wg_run_profile_save(const wg_profile *p, const char *dir, wg_error *err)
{
    char hex[WG_SHA256_HEX], path[4096];
    const char *name = wg_profile_name(p, hex);
    snprintf(path, sizeof path, "%s/profile.json", dir);
    return !*name || !strcmp(name, "nominal") || access(path, F_OK) == 0 ? WG_OK : wg_profile_save(p, path, err);
}
