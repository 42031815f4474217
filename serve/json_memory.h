/* SPDX-License-Identifier: MIT
 * Allocation for jansson. When an allocation fails, jansson continues: it leaves members out, and version 2.14 writes behind
 * the end of a string. So after a failure every further allocation of that thread fails, until the thread calls
 * wgs_json_begin: a JSON document is complete, or there is none. */
#ifndef WG_SERVE_JSON_MEMORY_H
#define WG_SERVE_JSON_MEMORY_H

void wgs_json_guard(void); /* call it once, before any JSON is made */
void wgs_json_begin(void); /* this thread begins a new document: allocations may succeed again */

#endif
