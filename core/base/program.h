/* SPDX-License-Identifier: MIT
 * How this program was called, for the commands that it prints to be pasted. */
#ifndef WG_CORE_BASE_PROGRAM_H
#define WG_CORE_BASE_PROGRAM_H

/* The program as one word of a shell; "wager" where nothing else was set, as in the library. */
const char *wg_program(void);
void wg_program_set(const char *word); /* kept, not copied; before threads start */

#endif
