/* SPDX-License-Identifier: MIT
 * Short time slices of the processor, for a thread that waits for events. It is a header alone, so that the server, which links
 * only libwager, can use it. */
#ifndef WG_CORE_BASE_SHORT_TURNS_H
#define WG_CORE_BASE_SHORT_TURNS_H

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Requests slices of a tenth of a millisecond for the calling thread. If an engine's threads keep all processors busy, Linux
 * from 6.12 on then runs this thread when it wakes, not at the end of one of their slices, when events of several rounds would
 * have gathered. Older systems ignore it; a thread with another policy than SCHED_OTHER is unchanged. */
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
