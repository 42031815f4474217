/* SPDX-License-Identifier: MIT
 * Opening components by name, and their trees (composite.h). */
#include "draft/compose/composite.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/engine/build.h"
#include "kernels/philox.h"

/* ---- names */

wg_status wg_component_find(const wg_env *env, const char *owner, const char *option, const char *spec,
                            const wg_drafter_class **class, const char **options, wg_error *err)
{
    char name[64];
    const size_t n = strcspn(spec, ":");
    if (!env->plugins)
        return wg_fail(err, WG_ECONFIG,
                       "drafter %s: no table of drafters was handed over (wg_engine_parts.plugins), so none can be opened "
                       "by name",
                       owner);
    if (!*spec)
        return wg_fail(
            err, WG_ECONFIG,
            "drafter %s: %s is not given: expected a drafter, or several with | between where it takes several, such as "
            "%s:%s=suffix or %s=ngram:k=8|suffix (wager list drafters)",
            owner, option, owner, option, option);
    if (n == 0 || n >= sizeof name)
        return wg_fail(err, WG_ECONFIG, "drafter %s: %s=%s: expected a drafter, as KIND or KIND:option=value;option=value",
                       owner, option, spec);
    memcpy(name, spec, n);
    name[n] = '\0';
    const wg_status s = wg_find_drafter(env->plugins, name, class, err);
    if (s) return wg_fail_in(err, s, "drafter %s: %s", owner, option);
    *options = spec[n] ? spec + n + 1 : NULL;
    return WG_OK;
}

/* ---- one drafter */

static wg_status open_buffers(wg_component *in, const wg_env *env, wg_error *err)
{
    const size_t n = (size_t)env->max_batch;
    if (!(in->tree = wg_calloc(n, sizeof *in->tree))) return wg_nomem(err, n * sizeof *in->tree, "draft trees");
    if (!(in->seed = wg_calloc(n, sizeof *in->seed))) return wg_nomem(err, n * sizeof *in->seed, "the seeds of a draft");
    return wg_rows_open(&in->q, env->max_batch * WG_TREE_MAX, env->target->vocab, err);
}

wg_status wg_component_open(wg_component *in, uint32_t stream, const wg_env *env, const char *owner, const char *option,
                            const char *spec, wg_error *err)
{
    const wg_drafter_class *class;
    const char *options = NULL;
    char laws[96], own[96];
    WG_TRY(wg_component_find(env, owner, option, spec, &class, &options, err));
    in->stream = stream;
    in->first = wg_kv_spaces(env->kv);
    const wg_status s = wg_drafter_make(&in->d, class, env, options, err);
    if (s) return in->alone ? s : wg_fail_in(err, s, "drafter %s: %s", owner, option);
    const unsigned drawn = wg_drafter_laws(class, (const char *)in->d + class->options_at, env->sampling);
    if (drawn & ~(unsigned)WG_COMPONENT_LAWS)
        return wg_fail(
            err, WG_ELAW, "drafter %s: %s=%s draws siblings by the laws: %s; a drafter made of others passes on only: %s",
            owner, option, class->name, wg_law_list(drawn, laws, sizeof laws), wg_law_list(WG_COMPONENT_LAWS, own, sizeof own));
    in->end = wg_kv_spaces(env->kv);
    return open_buffers(in, env, err);
}

void wg_component_close(wg_component *in)
{
    wg_drafter_free(in->d);
    wg_free(in->tree);
    wg_free(in->seed);
    wg_rows_close(&in->q);
    *in = (wg_component){ 0 };
}

wg_status wg_component_open_list(wg_component *in, int *n, const wg_env *env, const char *owner, const char *option,
                                 const char *list, wg_error *err)
{
    *n = 0;
    for (const char *at = list; *at;) {
        char spec[WG_OPTION_STRING];
        const int length = wg_spec_item(at, '|');
        if (length < 0) return wg_spec_bad_braces(list, err);
        if (*n == WG_COMPONENT_MAX)
            return wg_fail(err, WG_ECONFIG, "drafter %s: %s: more than %d drafters", owner, option, (int)WG_COMPONENT_MAX);
        WG_TRY(wg_spec_copy(spec, sizeof spec, at, length, err));
        in[*n] = (wg_component){ .alone = *n == 0 && !at[length] };
        const uint32_t stream = (uint32_t)*n + 1;
        WG_TRY(wg_component_open(&in[(*n)++], stream, env, owner, option, spec, err));
        at += length;
        if (*at == '|') at++;
    }
    return WG_OK;
}

/* ---- before anything is opened */

/* Parses an item of a list: returns its options (the caller frees them) and sets its class; NULL: it names no drafter. */
static void *read_item(const struct wg_plugins *plugins, const char *list, int length, const wg_drafter_class **class)
{
    char spec[WG_OPTION_STRING];
    const wg_env names = { .plugins = plugins };
    const char *options = NULL;
    wg_error err;
    if (wg_spec_copy(spec, sizeof spec, list, length, &err)) return NULL;
    if (wg_component_find(&names, "", "", spec, class, &options, &err)) return NULL;
    char *d = wg_calloc(1, (*class)->size);
    if (!d) return NULL;
    wg_option_defaults((*class)->options, d + (*class)->options_at);
    if (!wg_drafter_set(*class, d + (*class)->options_at, options, &err)) return d;
    wg_free(d);
    return NULL;
}

unsigned wg_component_laws(const struct wg_plugins *plugins, const char *list, const wg_sampling *sampling)
{
    unsigned laws = 0;
    for (int length; *list; list += length + (list[length] == '|')) {
        const wg_drafter_class *class;
        if ((length = wg_spec_item(list, '|')) < 0) return WG_COMPONENT_LAWS;
        char *d = read_item(plugins, list, length, &class);
        if (!d) return WG_COMPONENT_LAWS;
        laws |= wg_drafter_laws(class, d + class->options_at, sampling);
        wg_free(d);
    }
    return laws ? laws : WG_COMPONENT_LAWS;
}

static bool list_has_outside(const struct wg_plugins *plugins, const char *list);

bool wg_component_is_outside(const struct wg_plugins *plugins, const wg_drafter_class *class, const void *options)
{
    bool outside = class->outside;
    for (const wg_option *o = class->options; !outside && o && o->name; o++)
        if (wg_option_is(o, WG_NAMES_DRAFTERS)) outside = list_has_outside(plugins, (const char *)options + o->at);
    return outside;
}

static bool list_has_outside(const struct wg_plugins *plugins, const char *list)
{
    bool outside = false;
    for (int length; *list && !outside && (length = wg_spec_item(list, '|')) >= 0; list += length + (list[length] == '|')) {
        const wg_drafter_class *class;
        char *d = read_item(plugins, list, length, &class);
        outside = d && wg_component_is_outside(plugins, class, d + class->options_at);
        wg_free(d);
    }
    return outside;
}

static wg_status check_item(const struct wg_plugins *plugins, const char *owner, const char *option, const char *spec,
                            wg_error *err)
{
    const wg_env names = { .plugins = plugins };
    const wg_drafter_class *class;
    const char *options = NULL;
    WG_TRY(wg_component_find(&names, owner, option, spec, &class, &options, err));
    char *d = wg_calloc(1, class->size);
    if (!d) return wg_nomem(err, class->size, "a drafter's options");
    wg_option_defaults(class->options, d + class->options_at);
    wg_status s = wg_drafter_set(class, d + class->options_at, options, err);
    if (s) s = wg_fail_in(err, s, "drafter %s: %s: %s", owner, option, class->name);
    for (const wg_option *o = class->options; !s && o && o->name; o++)
        if (wg_option_is(o, WG_NAMES_DRAFTERS))
            s = wg_component_check(plugins, class->name, o->name, d + class->options_at + o->at, err);
    wg_free(d);
    return s;
}

wg_status wg_component_check(const struct wg_plugins *plugins, const char *owner, const char *option, const char *list,
                             wg_error *err)
{
    do {
        char spec[WG_OPTION_STRING];
        const int length = wg_spec_item(list, '|');
        if (length < 0) return wg_spec_bad_braces(list, err);
        WG_TRY(wg_spec_copy(spec, sizeof spec, list, length, err));
        WG_TRY(check_item(plugins, owner, option, spec, err));
        list += length + (list[length] == '|');
    } while (*list);
    return WG_OK;
}

/* ---- drafts */

/* A seed derived from another at an address that no draw uses. */
static uint64_t own_seed(uint64_t seed, uint32_t stream)
{
    const wg_philox r = wg_philox_at(seed, stream, 0xD4AF7E4, 0, 0);
    return (uint64_t)r.v[0] << 32 | r.v[1];
}

/* Proposes with a seed of its own, so that two drafters never use the same random numbers. */
static wg_status propose_apart(wg_component *in, wg_seq *const *seq, int n, wg_error *err)
{
    for (int i = 0; i < n; i++) in->seed[i] = seq[i]->chance.seed;
    for (int i = 0; i < n; i++) seq[i]->chance.seed = own_seed(in->seed[i], in->stream);
    const wg_status s = in->d->class->propose(in->d, seq, n, in->tree, &in->q, err);
    for (int i = 0; i < n; i++) seq[i]->chance.seed = in->seed[i];
    return s;
}

wg_status wg_component_propose(wg_component *in, wg_seq *const *seq, int n, wg_error *err)
{
    const wg_drafter_class *c = in->d->class;
    wg_rows_clear(&in->q);
    for (int i = 0; i < n; i++) wg_tree_reset(&in->tree[i], seq[i]->token[seq[i]->n - 1], WG_LAW_FIXED);
    WG_TRY(propose_apart(in, seq, n, err));
    for (int i = 0; i < n; i++) {
        const wg_tree *t = &in->tree[i];
        wg_status s = wg_tree_check(t, in->q.vocab, in->q.n, err);
        if (!s && t->token[0] != seq[i]->token[seq[i]->n - 1]) s = wg_fail(err, WG_EINVAL, "the root is not the last token");
        if (!s && t->n > 1 && !(t->law & c->laws)) s = wg_fail(err, WG_EINVAL, "law %s was not declared", wg_law_name(t->law));
        if (s) return wg_fail_in(err, s, "inner drafter %s", c->name);
    }
    return WG_OK;
}

double wg_component_score(wg_component *in, int i)
{
    const wg_tree *t = &in->tree[i];
    if (t->n < 2) return -1;
    if (t->score > 0) return t->score;
    const int child = wg_tree_child(t, 0, 0), row = child < 0 ? -1 : t->qrow[child];
    if (row < 0 || in->q.point[row] >= 0) return 1;
    const double r = wg_rows_prob(&in->q, row, wg_rows_argmax(&in->q, row)), most = WG_TREE_MAX - 1;
    return r < most * (1 - r) ? r / (1 - r) : most;
}

static int copy_row(wg_rows *from, int row, wg_rows *to)
{
    const int made = wg_rows_push(to);
    wg_assert(made >= 0); /* a tree has fewer rows than nodes, and the engine has room for all nodes */
    to->point[made] = from->point[row];
    if (from->point[row] < 0) memcpy(wg_rows_at(to, made), wg_rows_at(from, row), (size_t)from->vocab * sizeof *from->p);
    return made;
}

void wg_component_take(wg_component *in, int i, wg_tree *out, wg_rows *q)
{
    const wg_tree *t = &in->tree[i];
    *out = *t;
    for (int node = 1; node < t->n; node++) {
        int twin = 1;
        while (t->qrow[twin] != t->qrow[node]) twin++;
        if (twin < node) out->qrow[node] = out->qrow[twin];
        else if (t->qrow[node] >= 0) out->qrow[node] = (int16_t)copy_row(&in->q, t->qrow[node], q);
    }
}

void wg_component_cut(const wg_component *in, const wg_seq *seq, wg_tree *t, int depth)
{
    bool keep[WG_TREE_MAX];
    int16_t from[WG_TREE_MAX];
    int n = 0;
    for (int i = 0; i < t->n; i++) n += keep[i] = wg_tree_depth(t, i) <= depth;
    if (n == t->n) return;
    n = wg_tree_keep(t, keep, from);
    for (int i = 0; i < n; i++)
        if (wg_tree_depth(t, i) == depth) t->group[i] = -1; /* all its children were cut */
    if (in->first == in->end) return;
    while (n > 0 && from[n - 1] >= wg_kv_tail(seq->kv)) n--;
    for (int space = in->first; space < in->end && n > 0; space++) wg_kv_renumber(seq->kv, space, from, n);
}

/* The root stays: it is the same token in every draft. */
void wg_component_drop(const wg_component *in, const wg_seq *seq)
{
    for (int space = in->first; space < in->end; space++) wg_kv_unwrite(seq->kv, space, 1);
}

void wg_component_observe(const wg_component *in, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    if (in->d->class->observe) in->d->class->observe(in->d, seq, tree, path, target);
}

wg_composite_stats wg_component_account(const wg_component *in, int i, bool taken, const wg_seq *seq)
{
    wg_composite_stats a = { .kind = in->d->class->name, .asked = i >= 0, .taken = taken };
    if (i < 0) return a;
    const wg_tree *t = &in->tree[i];
    const int first = seq->n - seq->last_emitted;
    a.drafted = taken ? seq->last_nodes - 1 : t->n - 1; /* the verified tree may have been cut since */
    for (int node = 0; first + a.matched < seq->n; a.matched++)
        if ((node = wg_tree_find(t, node, seq->token[first + a.matched])) < 0) break;
    return a;
}

void wg_component_forget(const wg_component *in, const wg_seq *seq)
{
    if (in->d->class->forget) in->d->class->forget(in->d, seq);
}

/* ---- lists of drafters */

wg_status wg_composite_open_steps(wg_composite *c, const wg_env *env, wg_error *err)
{
    const size_t n = (size_t)env->max_batch;
    return (c->last = wg_calloc(n, sizeof *c->last)) ? WG_OK : wg_nomem(err, n * sizeof *c->last, "the drafts of a step");
}

wg_status wg_composite_open(wg_composite *c, const wg_env *env, const char *owner, const char *list, wg_error *err)
{
    WG_TRY(wg_composite_open_steps(c, env, err));
    WG_TRY(wg_component_open_list(c->in, &c->n, env, owner, "of", list, err));
    if (c->n >= 2) return WG_OK;
    return wg_fail(err, WG_ECONFIG, "drafter %s: of=%s: expected two drafters or more, separated by |", owner, list);
}

void wg_composite_close(wg_drafter *d)
{
    wg_composite *c = (wg_composite *)d;
    for (int k = c->n - 1; k >= 0; k--) wg_component_close(&c->in[k]);
    wg_free(c->last);
}

wg_status wg_composite_ask(wg_composite *c, wg_seq *const *seq, int n, wg_error *err)
{
    for (int k = 0; k < c->n; k++) WG_TRY(wg_component_propose(&c->in[k], seq, n, err));
    return WG_OK;
}

void wg_composite_take(wg_composite *c, int taken, const wg_seq *seq, int i, wg_tree *out, wg_rows *q)
{
    wg_composite_step *last = &c->last[seq->slot];
    last->taken = taken;
    for (int k = 0; k < c->n; k++) {
        last->tree[k] = i;
        if (k != taken) wg_component_drop(&c->in[k], seq);
    }
    wg_component_take(&c->in[taken], i, out, q);
}

void wg_composite_observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    const wg_composite *c = (wg_composite *)d;
    for (int k = 0; k < c->n; k++) wg_component_observe(&c->in[k], seq, tree, path, target);
}

int wg_composite_account(const wg_drafter *d, const wg_seq *seq, wg_composite_stats *out, int most)
{
    const wg_composite *c = (const wg_composite *)d;
    const wg_composite_step *last = &c->last[seq->slot];
    const int n = c->n < most ? c->n : most;
    for (int k = 0; k < n; k++) out[k] = wg_component_account(&c->in[k], last->tree[k], last->taken == k, seq);
    return n;
}

void wg_composite_forget(wg_drafter *d, const wg_seq *seq)
{
    const wg_composite *c = (wg_composite *)d;
    for (int k = 0; k < c->n; k++) wg_component_forget(&c->in[k], seq);
}
