/* SPDX-License-Identifier: MIT
 * A drafter in a shared object outside this repository (examples/plugin-drafter):
 *
 *     #include "draft/external/drafter_plugin.h"
 *     static const wg_drafter_class mine = { .name = "mine", ... };
 *     WG_DRAFTER_PLUGIN(mine);
 *
 * The object is built against these headers and linked with nothing of the program. It calls functions of the program that
 * loads it, those marked WG_PLUGIN_API (trees, rows, chance, feeds of hidden states). Version numbers and struct sizes are
 * compiled into the object and compared when it is loaded: an object built against other headers is refused. wg_env grows at
 * its end only, so an object built with a shorter one still runs.
 *
 * The object allocates with calloc and free. On failure it returns a wg_status and fills err->code and err->text (err may be
 * NULL). */
#ifndef WG_DRAFT_EXTERNAL_DRAFTER_PLUGIN_H
#define WG_DRAFT_EXTERNAL_DRAFTER_PLUGIN_H

#include "core/base/plugin_api.h"
#include "core/engine/drafter.h"

enum { WG_DRAFTER_ABI = 3 };                             /* raised when the contract changes and no size does */
enum { WG_DRAFTER_ENV_LEAST = offsetof(wg_env, feeds) }; /* bytes of the shortest wg_env of this ABI */

/* `abi` is the first member in every version; the other members belong to this ABI. */
typedef struct wg_plugin_table {
    uint32_t abi, tree_max;
    uint32_t class_size, env_size, seq_size, tree_size, rows_size;
    const wg_drafter_class *drafter;
} wg_plugin_table;

#define WG_DRAFTER_PLUGIN_OF(class)                                                                                            \
    {                                                                                                                          \
        WG_DRAFTER_ABI, WG_TREE_MAX, sizeof(wg_drafter_class), sizeof(wg_env), sizeof(wg_seq), sizeof(wg_tree),                \
            sizeof(wg_rows), &(class)                                                                                          \
    }
#define WG_DRAFTER_PLUGIN(class)                                                                                               \
    extern WG_PLUGIN_API const wg_plugin_table wg_plugin_drafter;                                                              \
    const wg_plugin_table wg_plugin_drafter = WG_DRAFTER_PLUGIN_OF(class)

#endif
