/* SPDX-License-Identifier: MIT
 * configs/prompts/quickstart.jsonl embedded in the program, for use without a checkout: NUL-terminated text, written by
 * cmake/embed.cmake. */
#ifndef WG_EXPERIMENTS_CLI_QUICKSTART_PROMPTS_H
#define WG_EXPERIMENTS_CLI_QUICKSTART_PROMPTS_H

extern const char wg_quickstart_prompts[];

#endif
