/* SPDX-License-Identifier: MIT
 * A drafter from a shared object (draft/external/drafter_plugin.h): finds its table, checks that it was built for this
 * program, and forwards every call. The code runs inside the program with all its rights: load only what you trust. */
#include "draft/external/drafter_plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "draft/draft.h"
#include "draft/open.h"

typedef struct plugin_options {
    char path[WG_OPTION_STRING], options[WG_OPTION_STRING];
} plugin_options;

typedef struct plugin_drafter {
    wg_drafter base;
    plugin_options opt;
    void *object;
    wg_drafter *d;
} plugin_drafter;

static const wg_option options[] = {
    WG_OPTION_NAME(plugin_options, path, WG_NAMES_FILE, "", "shared object (needed); see draft/external/drafter_plugin.h"),
    WG_OPTION_STR(plugin_options, options, "", "options of the drafter in it, as name=value;name=value"),
    WG_OPTION_END,
};

/* Refuses a file that is not a shared object, because the loader's messages differ between systems. */
static wg_status check_file(const char *path, wg_error *err)
{
    char magic[4] = { 0 };
    if (!*path) return wg_fail(err, WG_ECONFIG, "drafter plugin: no shared object is named; set its option path=FILE");
    FILE *f = fopen(path, "rb");
    if (!f)
        return wg_fail(err, WG_ENOENT,
                       "drafter plugin: path=%s: no such file, or it cannot be read; the example is built by: cmake -S "
                       "examples/plugin-drafter -B build/plugin-drafter && cmake --build build/plugin-drafter",
                       path);
    const size_t n = fread(magic, 1, sizeof magic, f);
    fclose(f);
    if (n == sizeof magic && !memcmp(magic, "\177ELF", sizeof magic)) return WG_OK;
    return wg_fail(err, WG_EFORMAT,
                   "drafter plugin: %s is not a shared object (no ELF header); build one as in "
                   "examples/plugin-drafter",
                   path);
}

static wg_status load(plugin_drafter *p, wg_error *err)
{
    char path[WG_OPTION_STRING + 2];
    snprintf(path, sizeof path, "%s%s", strchr(p->opt.path, '/') ? "" : "./", p->opt.path); /* no search path */
    p->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (p->object) return WG_OK;
    return wg_fail(err, WG_EFORMAT, "drafter plugin: %s cannot be loaded: %s", p->opt.path, dlerror());
}

/* Checks that the object was built against this program's headers. */
static wg_status check_table(const plugin_drafter *p, const wg_plugin_table *t, wg_error *err)
{
    static const wg_drafter_class none;
    const wg_plugin_table own = WG_DRAFTER_PLUGIN_OF(none);
    const char *path = p->opt.path;
    if (!t)
        return wg_fail(err, WG_EFORMAT,
                       "drafter plugin: %s has no symbol wg_plugin_drafter; define it with WG_DRAFTER_PLUGIN(class) "
                       "of draft/external/drafter_plugin.h",
                       path);
    if (t->abi != own.abi)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "drafter plugin: %s was built for version %u of the drafter contract, this program has "
                       "version %u; rebuild it against this program's headers",
                       path, t->abi, own.abi);
    if (t->tree_max != own.tree_max)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "drafter plugin: %s was built for trees of %u nodes, this program for %u; rebuild it "
                       "with the same WG_TREE_NODES and WG_HARD",
                       path, t->tree_max, own.tree_max);
    if (t->class_size != own.class_size || t->env_size < WG_DRAFTER_ENV_LEAST || t->env_size > own.env_size ||
        t->seq_size != own.seq_size || t->tree_size != own.tree_size || t->rows_size != own.rows_size)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "drafter plugin: %s was built against other headers (the structures of "
                       "core/engine/drafter.h differ in size); rebuild it against this program's",
                       path);
    return WG_OK;
}

static wg_status check_class(const plugin_drafter *p, const wg_drafter_class *c, wg_error *err)
{
    char laws[96], own[96];
    if (!c || !c->name || !c->propose || c->size < sizeof(wg_drafter))
        return wg_fail(err, WG_EFORMAT, "drafter plugin: %s: its class needs a name, a size of at least %zu and propose",
                       p->opt.path, sizeof(wg_drafter));
    if (c->laws & ~(unsigned)WG_COMPONENT_LAWS)
        return wg_fail(err, WG_ELAW, "drafter plugin: %s: drafter %s declares the laws: %s; a plug-in may have only: %s",
                       p->opt.path, c->name, wg_law_list(c->laws, laws, sizeof laws),
                       wg_law_list(WG_COMPONENT_LAWS, own, sizeof own));
    return WG_OK;
}

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    plugin_drafter *p = (plugin_drafter *)d;
    wg_env_watch(env); /* the object may read rows and logits */
    WG_TRY(check_file(p->opt.path, err));
    WG_TRY(load(p, err));
    const wg_plugin_table *t = dlsym(p->object, "wg_plugin_drafter");
    WG_TRY(check_table(p, t, err));
    WG_TRY(check_class(p, t->drafter, err));
    const wg_status s = wg_drafter_make(&p->d, t->drafter, env, p->opt.options, err);
    return s ? wg_fail_in(err, s, "drafter plugin: %s, drafter %s", p->opt.path, t->drafter->name) : WG_OK;
}

const wg_drafter_class *wg_drafter_in_object(const wg_drafter *d) { return ((const plugin_drafter *)d)->d->class; }

static void close(wg_drafter *d)
{
    plugin_drafter *p = (plugin_drafter *)d;
    wg_drafter_free(p->d);
    if (p->object) dlclose(p->object);
}

/* Checks the rows of q that the tree's nodes name. */
static wg_status check_rows(const wg_tree *t, const wg_rows *q, int vocab, wg_error *err)
{
    WG_TRY(wg_tree_check(t, vocab, q->n, err));
    if (!(t->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT))) return WG_OK;
    for (int i = 1, last = -1; i < t->n; last = t->qrow[i++])
        if (t->qrow[i] >= 0 && t->qrow[i] != last) WG_TRY(wg_rows_check(q, t->qrow[i], err));
    return WG_OK;
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    const plugin_drafter *p = (plugin_drafter *)d;
    if (err) err->text[0] = '\0';
    const wg_status s = p->d->class->propose(p->d, seq, n, out, q, err);
    if (s && err && !*err->text) wg_fail(err, s, "%s failed and did not say why", p->d->class->name);
    if (s) return wg_fail_in(err, s, "drafter plugin: %s", p->opt.path);
    for (int i = 0; i < n; i++) {
        if (out[i].n > 1 && !(out[i].law & p->d->class->laws))
            return wg_fail(err, WG_EINVAL, "drafter plugin: %s: law %s is not among those %s declares", p->opt.path,
                           wg_law_name(out[i].law), p->d->class->name);
        if (check_rows(&out[i], q, d->env->target->vocab, err))
            return wg_fail_in(err, WG_EINVAL, "drafter plugin: %s, request %u", p->opt.path, (unsigned)seq[i]->request);
    }
    return WG_OK;
}

static void observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    const plugin_drafter *p = (plugin_drafter *)d;
    if (p->d->class->observe) p->d->class->observe(p->d, seq, tree, path, target);
}

static void forget(wg_drafter *d, const wg_seq *seq)
{
    const plugin_drafter *p = (plugin_drafter *)d;
    if (p->d->class->forget) p->d->class->forget(p->d, seq);
}

const wg_drafter_class wg_drafter_plugin = {
    .name = "plugin",
    .doc = "a drafter from a shared object of your own",
    .size = sizeof(plugin_drafter),
    .options = options,
    .options_at = offsetof(plugin_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "path=$plugin,options=k=3" },
            { .options = NULL },
        },
    .laws = WG_COMPONENT_LAWS,
    .open = open,
    .propose = propose,
    .observe = observe,
    .forget = forget,
    .close = close,
    .cross_request = true,
    .outside = true,
};
