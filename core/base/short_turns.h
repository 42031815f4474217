/* SPDX-License-Identifier: MIT
 * Short turns on the processor, for a thread that waits for events. A header alone: the server, which is linked with libwager
 * and nothing else of ours, has it too. */
#ifndef WG_CORE_BASE_SHORT_TURNS_H
#define WG_CORE_BASE_SHORT_TURNS_H

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Asks for turns of a tenth of a millisecond for the calling thread. Where an engine's threads keep all processors busy, the
 * scheduler of Linux from 6.12 on then lets this one run when it wakes, and not when a turn of theirs ends, which would gather
 * the events of several rounds. Older ones ignore it; a thread of another policy than SCHED_OTHER stays as it is. */
static inline void wg_short_turns(void)
{
    struct { /* sched_attr of sched_setattr(2) */
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period; /* ns */
    } a = { .size = sizeof a };
    if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) || a.policy != SCHED_OTHER) return;
    a.flags = 0;
    a.runtime = 100000;
    syscall(SYS_sched_setattr, 0, &a, 0);
}

#endif
