/* SPDX-License-Identifier: MIT
 * Graphs of the emulated device: a list of launches with copies of their arguments, run one after another. Two mistakes that a
 * device would answer with wrong numbers much later stop the test here: a recorded argument that points into the caller's stack
 * or into pinned memory, and a call that cannot be recorded. What was recorded from a value that has changed since shows as
 * another result than that of plain launches. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simt/simt.h"

struct simt_graph {
    simt_step *step;
    int n, room;
    const int32_t *again; /* device memory: it runs as long as this is not zero; NULL: once */
};

enum { PINNED = 64, TURNS = 1 << 20 };

static struct recorder {
    simt_graph *now; /* NULL: launches run */
    uintptr_t stack, stack_end;
    struct { uintptr_t at; size_t bytes; } pinned[PINNED];
} R;

bool simt_recording() { return R.now != NULL; }

void simt_record_refuse(const char *what)
{
    if (R.now) simt_fail(SIMT_HERE, "%s cannot be recorded", what);
}

void simt_record_begin()
{
    simt_record_refuse("recording");
    R.now = (simt_graph *)calloc(1, sizeof *R.now);
    pthread_attr_t attr;
    void *stack = NULL;
    size_t bytes = 0;
    if (!R.now || pthread_getattr_np(pthread_self(), &attr)) abort();
    pthread_attr_getstack(&attr, &stack, &bytes);
    pthread_attr_destroy(&attr);
    R.stack = (uintptr_t)stack;
    R.stack_end = R.stack + bytes;
}

simt_graph *simt_record_end(const int32_t *again)
{
    simt_graph *g = R.now;
    if (again && !simt_memory_holds(again)) simt_fail(SIMT_HERE, "the word that a loop goes by is not device memory");
    g->again = again;
    R.now = NULL;
    return g;
}

void simt_pinned(const void *p, size_t bytes)
{
    for (int i = 0; i < PINNED; i++)
        if (R.pinned[i].at == (bytes ? 0 : (uintptr_t)p)) {
            R.pinned[i].at = bytes ? (uintptr_t)p : 0;
            R.pinned[i].bytes = bytes;
            return;
        }
    if (bytes) abort(); /* too many */
}

/* A word of an argument that is an address of the host's which will not mean the same later. Words whose lower half is a small
 * number are numbers beside padding. */
static const char *stale(uintptr_t word)
{
    if ((uint32_t)word < 1u << 20) return NULL;
    for (int i = 0; i < PINNED; i++)
        if (R.pinned[i].at && word >= R.pinned[i].at && word < R.pinned[i].at + R.pinned[i].bytes) return "pinned memory";
    return word >= R.stack && word < R.stack_end ? "the caller's stack" : NULL;
}

/* Arguments that are pointers are device memory (simt_check_pointer); these may hold some. */
void simt_check_struct(const void *of, size_t bytes, const char *kernel)
{
    for (size_t i = 0; simt_recording() && i + sizeof(uintptr_t) <= bytes; i += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, (const char *)of + i, sizeof word);
        if (const char *where = stale(word)) simt_fail(SIMT_HERE, "a recorded launch of %s points into %s", kernel, where);
    }
}

void simt_record(const simt_step &step)
{
    simt_graph *g = R.now;
    if (g->n == g->room) {
        g->room = g->room ? 2 * g->room : 64;
        g->step = (simt_step *)realloc((void *)g->step, (size_t)g->room * sizeof *g->step);
        if (!g->step) abort();
    }
    simt_step *to = &g->step[g->n++];
    *to = step;
    to->arg = malloc(step.bytes);
    if (!to->arg) abort();
    memcpy(to->arg, step.arg, step.bytes);
}

static bool goes_on(const simt_graph *g)
{
    if (!g->again) return false;
    const simt_access was = simt_memory_access(SIMT_EVERYTHING);
    const bool yes = *g->again != 0;
    simt_memory_access(was);
    return yes;
}

void simt_replay(const simt_graph *g)
{
    int turns = 0;
    simt_record_refuse("a graph in a graph");
    simt_counts.replays++;
    do {
        for (int i = 0; i < g->n; i++) {
            const simt_step *s = &g->step[i];
            if (s->kernel) simt_launch(s->grid, s->block, s->dynamic, s->kernel, s->run, s->arg, s->bytes);
            else s->run(s->arg);
        }
        if (++turns == TURNS) simt_fail(SIMT_HERE, "a loop still runs after %d turns", turns);
    } while (goes_on(g));
}

void simt_forget(simt_graph *g)
{
    if (!g) return;
    for (int i = 0; i < g->n; i++) free(g->step[i].arg);
    free(g->step);
    free(g);
}
