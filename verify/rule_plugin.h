/* SPDX-License-Identifier: MIT
 * A rule in a shared object outside this repository (examples/plugin-verifier):
 *
 *     #include "verify/rule_plugin.h"
 *     static const wg_verifier_class mine = { .name = "mine", ... };
 *     WG_VERIFIER_PLUGIN(mine);
 *
 * The object is built against these headers, is linked with nothing of the program, and calls back into the program that
 * loads it, through the functions that are marked WG_PLUGIN_API. Version numbers and struct sizes are compiled into the
 * object and compared when it is loaded: an object built against other headers is refused. */
#ifndef WG_VERIFY_RULE_PLUGIN_H
#define WG_VERIFY_RULE_PLUGIN_H

#include "core/base/plugin_api.h"
#include "core/engine/verifier.h"

enum { WG_VERIFIER_ABI = 6 }; /* goes up when the meaning of the contract changes and no size does */

/* `abi` stays first for ever; the rest belongs to this abi. */
typedef struct wg_verifier_plugin {
    uint32_t abi, tree_max;
    uint32_t class_size, tree_size, path_size, rows_size, chance_size;
    const wg_verifier_class *rule;
} wg_verifier_plugin;

#define WG_VERIFIER_PLUGIN_OF(class)                                                                                           \
    {                                                                                                                          \
        WG_VERIFIER_ABI, WG_TREE_MAX, sizeof(wg_verifier_class), sizeof(wg_tree), sizeof(wg_path), sizeof(wg_rows),            \
            sizeof(wg_chance), &(class)                                                                                        \
    }
#define WG_VERIFIER_PLUGIN(class)                                                                                              \
    extern WG_PLUGIN_API const wg_verifier_plugin wg_plugin_verifier;                                                          \
    const wg_verifier_plugin wg_plugin_verifier = WG_VERIFIER_PLUGIN_OF(class)

/* Loads the rule of a shared object. *object is what wg_verifier_unload takes, after the last use of the rule. The code runs
 * inside the program with all its rights: load only what you trust. ENOENT, EFORMAT (no shared object, no rule in it),
 * EUNSUPPORTED (built against other headers). */
wg_status wg_verifier_load(const char *path, const wg_verifier_class **rule, void **object, wg_error *err);
void wg_verifier_unload(void *object); /* NULL is fine */

/* Stands for the rule of a shared object where rules are named: `plugin`, with the options path and options (those of the rule
 * in the object, "name=value;name=value"). It is in no table and verifies nothing: wg_verifier_plugin_open replaces it. */
extern const wg_verifier_class wg_plugin_rule;
/* The rule that these options of wg_plugin_rule name: its class, its options (wg_free; NULL: it has none) and its object.
 * ECONFIG: no path; errors of wg_verifier_load and of its options. */
wg_status wg_verifier_plugin_open(const void *named, const wg_verifier_class **rule, void **options, void **object,
                                  wg_error *err);

#endif
