/* SPDX-License-Identifier: MIT
 * Loading rules from shared objects and checking them. */
#include "verify/rule_plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"

/* Refuses a file that is not a shared object, because the loader's messages differ between systems. */
static wg_status check_file(const char *path, wg_error *err)
{
    char magic[4] = { 0 };
    FILE *f = fopen(path, "rb");
    if (!f) return wg_fail(err, WG_ENOENT, "rule plug-in %s: no such file, or it cannot be read", path);
    const size_t n = fread(magic, 1, sizeof magic, f);
    fclose(f);
    if (n == sizeof magic && !memcmp(magic, "\177ELF", sizeof magic)) return WG_OK;
    return wg_fail(err, WG_EFORMAT,
                   "rule plug-in %s: not a shared object (no ELF header); build one as in "
                   "examples/plugin-verifier",
                   path);
}

static wg_status check_table(const char *path, const wg_verifier_plugin *t, wg_error *err)
{
    static const wg_verifier_class none;
    const wg_verifier_plugin own = WG_VERIFIER_PLUGIN_OF(none);
    if (!t)
        return wg_fail(err, WG_EFORMAT,
                       "rule plug-in %s: no symbol wg_plugin_verifier; define it with WG_VERIFIER_PLUGIN(rule) of "
                       "verify/rule_plugin.h",
                       path);
    if (t->abi != own.abi)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "rule plug-in %s: built for version %u of the contract of rules, this program has "
                       "version %u; rebuild it against this program's headers",
                       path, t->abi, own.abi);
    if (t->tree_max != own.tree_max)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "rule plug-in %s: built for trees of %u nodes, this program for %u; rebuild it with "
                       "the same WG_TREE_NODES and WG_HARD",
                       path, t->tree_max, own.tree_max);
    if (memcmp(&t->class_size, &own.class_size, 5 * sizeof own.class_size) != 0)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "rule plug-in %s: built against other headers (the structures of "
                       "core/engine/verifier.h differ in size); rebuild it against this program's",
                       path);
    if (!t->rule || !t->rule->name || !t->rule->accept || !(t->rule->laws & WG_LAWS))
        return wg_fail(err, WG_EFORMAT, "rule plug-in %s: its class needs a name, laws and accept", path);
    return WG_OK;
}

wg_status wg_verifier_load(const char *path, const wg_verifier_class **rule, void **object, wg_error *err)
{
    char from[4096];
    *object = NULL;
    WG_TRY(check_file(path, err));
    snprintf(from, sizeof from, "%s%s", strchr(path, '/') ? "" : "./", path); /* no search path */
    void *loaded = dlopen(from, RTLD_NOW | RTLD_LOCAL);
    if (!loaded) return wg_fail(err, WG_EFORMAT, "rule plug-in %s: cannot be loaded: %s", path, dlerror());
    const wg_verifier_plugin *t = dlsym(loaded, "wg_plugin_verifier");
    const wg_status s = check_table(path, t, err);
    if (s) {
        dlclose(loaded);
        return s;
    }
    *rule = t->rule;
    *object = loaded;
    return WG_OK;
}

void wg_verifier_unload(void *object)
{
    if (object) dlclose(object);
}

/* ---- by name */

typedef struct plugin_options {
    char path[WG_OPTION_STRING], options[WG_OPTION_STRING];
} plugin_options;

static const wg_option options[] = {
    WG_OPTION_NAME(plugin_options, path, WG_NAMES_FILE, "", "shared object (needed); see verify/rule_plugin.h"),
    WG_OPTION_STR(plugin_options, options, "", "options of the rule in it, as name=value;name=value"),
    WG_OPTION_END,
};

const wg_verifier_class wg_plugin_rule = {
    .name = "plugin", .doc = "a rule from a shared object of your own", .size = sizeof(plugin_options), .options = options
};

static wg_status make_options(const wg_verifier_class *rule, const char *text, void **out, wg_error *err)
{
    char list[WG_OPTION_STRING];
    if (!rule->size)
        return !*text ? WG_OK : wg_fail(err, WG_ECONFIG, "rule %s has no options, but here are some: %s", rule->name, text);
    void *o = wg_calloc(1, rule->size);
    if (!o) return wg_nomem(err, rule->size, "a rule's options");
    wg_option_defaults(rule->options, o);
    snprintf(list, sizeof list, "%s", text);
    for (char *at = list; (at = strchr(at, ';')) != NULL;) *at = ',';
    const wg_status s = wg_option_set_list(rule->options, o, rule->size, list, err);
    if (s) wg_free(o);
    else *out = o;
    return s;
}

wg_status wg_verifier_plugin_open(const void *named, const wg_verifier_class **rule, void **opt, void **object, wg_error *err)
{
    const plugin_options *o = named;
    *opt = *object = NULL;
    if (!*o->path) return wg_fail(err, WG_ECONFIG, "rule plugin: no shared object is named; set its option path=FILE");
    WG_TRY(wg_verifier_load(o->path, rule, object, err));
    const wg_status s = make_options(*rule, o->options, opt, err);
    if (!s) return WG_OK;
    wg_fail_in(err, s, "rule plug-in %s", o->path);
    wg_verifier_unload(*object);
    *object = NULL;
    return s;
}
