/* SPDX-License-Identifier: MIT
 * A rule in a shared object outside this repository (examples/plugin-verifier):
 *
 *     #include "verify/rule_plugin.h"
 *     static const wg_verifier_class mine = { .name = "mine", ... };
 *     WG_VERIFIER_PLUGIN(mine);
 *
 * The object is built against these headers and linked with nothing of the program. It calls functions of the program that
 * loads it, those marked WG_PLUGIN_API. Version numbers and struct sizes are compiled into the object and compared when it is
 * loaded: an object built against other headers is refused. */
#ifndef WG_VERIFY_RULE_PLUGIN_H
#define WG_VERIFY_RULE_PLUGIN_H

#include "core/base/plugin_api.h"
#include "core/engine/verifier.h"

enum { WG_VERIFIER_ABI = 6 }; /* raised when the contract changes and no size does */

/* `abi` is the first member in every version; the other members belong to this ABI. */
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

/* Loads the rule of a shared object; wg_verifier_unload takes *object after the last use of the rule. The code runs inside the
 * program with all its rights: load only what you trust. ENOENT, EFORMAT (no shared object, no rule in it), EUNSUPPORTED (built
 * against other headers). */
wg_status wg_verifier_load(const char *path, const wg_verifier_class **rule, void **object, wg_error *err);
void wg_verifier_unload(void *object); /* NULL is fine */

/* The name `plugin` for the rule of a shared object, with the options `path` and `options` (the rule's own,
 * "name=value;name=value"). It is in no table and verifies nothing: wg_verifier_plugin_open replaces it. */
extern const wg_verifier_class wg_plugin_rule;
/* Opens the rule that these options of wg_plugin_rule name: its class, its options (wg_free; NULL: none) and its object.
 * ECONFIG: no path; errors of wg_verifier_load and of its options. */
wg_status wg_verifier_plugin_open(const void *named, const wg_verifier_class **rule, void **options, void **object,
                                  wg_error *err);

#endif
