/* SPDX-License-Identifier: MIT
 * WG_PLUGIN_API marks the functions that a loaded shared object (a drafter or rule outside this repository, see
 * examples/plugin-verifier) may call. All other symbols of the program are hidden. */
#ifndef WG_CORE_BASE_PLUGIN_API_H
#define WG_CORE_BASE_PLUGIN_API_H

#define WG_PLUGIN_API __attribute__((visibility("default")))

#endif
