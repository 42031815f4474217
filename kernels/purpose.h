/* SPDX-License-Identifier: MIT
 * The purpose of a random draw: a word of its Philox address (seed; request, absolute position, purpose, index). Host and
 * device read this one list, because a draw that both make must have one address. Recorded texts depend on the values: a new
 * purpose gets a new number. */
#ifndef WG_KERNELS_PURPOSE_H
#define WG_KERNELS_PURPOSE_H

#include <stdint.h>

#include "kernels/hd.h"

typedef enum wg_purpose {
    WG_DRAW_DRAFT = 1,   /* which token a drafter proposes; index: node */
    WG_DRAW_ACCEPT = 2,  /* whether a drafted token is kept; index: node */
    WG_DRAW_NEXT = 3,    /* the corrected, bonus or plain token; index: 0, position: its own */
    WG_DRAW_SHAPE = 4,   /* lengths and tree shapes that are drawn; index: the policy's */
    WG_DRAW_COUPLED = 5, /* the times of a race, shared by drafter and rule on purpose; position: the token's own */
} wg_purpose;

/* The purpose word of list `list` of a race's times. */
WG_HD static inline uint32_t wg_purpose_of_list(wg_purpose purpose, int list)
{
    return (uint32_t)purpose + 256u * (uint32_t)list;
}

#endif
