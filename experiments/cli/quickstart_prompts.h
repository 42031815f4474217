/* SPDX-License-Identifier: MIT
 * configs/prompts/quickstart.jsonl in the program, for where the checkout is not: text with a NUL behind it, written by
 * cmake/embed.cmake. */
#ifndef WG_EXPERIMENTS_CLI_QUICKSTART_PROMPTS_H
#define WG_EXPERIMENTS_CLI_QUICKSTART_PROMPTS_H

extern const char wg_quickstart_prompts[];

#endif
