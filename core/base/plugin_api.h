/* SPDX-License-Identifier: MIT
 * What a shared object that the program loads (a rule of your own, see examples/plugin-verifier) may call: everything else is
 * hidden. */
#ifndef WG_CORE_BASE_PLUGIN_API_H
#define WG_CORE_BASE_PLUGIN_API_H

#define WG_PLUGIN_API __attribute__((visibility("default")))

#endif
