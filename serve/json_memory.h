/* SPDX-License-Identifier: MIT
 * Memory of JSON. jansson goes on where it finds none: it leaves members out, asks again for every byte of a text, and (2.14)
 * writes behind the end of a string whose text it could not keep. So from the first failure on all that a thread asks for is
 * refused, at once, until it says that it begins anew: what is made of JSON is whole, or there is none. */
#ifndef WG_SERVE_JSON_MEMORY_H
#define WG_SERVE_JSON_MEMORY_H

void wgs_json_guard(void); /* of the process, before any JSON is made */
void wgs_json_begin(void); /* this thread begins something else */

#endif
