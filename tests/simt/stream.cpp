/* SPDX-License-Identifier: MIT
 * Streams, capture and graphs of the stub runtime (stub/cuda_runtime.h). What is launched or copied becomes a node of a list:
 * of what a stream still has to do, or of what is being captured. A mistake that a device would answer with wrong numbers much
 * later stops the test here: a captured argument that points into the caller's stack or into pinned memory. What was captured
 * from a value that has changed since shows as another result than that of plain launches. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/simt/runtime_api.h"

enum { PINNED = 64, TURNS = 1 << 20, STREAMS = 64, HANDLES = 4096 };

struct simt_node {
    enum { STEP, CHILD, LOOP, END, GRAPH } kind;
    simt_step step;                    /* STEP: a kernel, or something else to be done */
    simt_graph *body;                  /* CHILD, LOOP: owned */
    const simt_exec *exec;             /* GRAPH: in a stream's list; borrowed */
    cudaGraphConditionalHandle handle; /* LOOP: as long as it is set. END: what call() sets by the word */
    void (*call)(const int32_t *word, cudaGraphConditionalHandle handle);
    const int32_t *word;
};
struct simt_graph {
    simt_node **node;
    int n, room;
};
struct simt_exec {
    simt_graph *graph;
};

struct simt_stream {
    bool there, capturing, invalid; /* invalid: the capture, by an illegal call */
    simt_graph todo;                /* what has been asked for */
    int at, inner, turns;           /* of todo; of the graph there; of its loop */
    simt_graph *captured;
};

static simt_stream streams[STREAMS];
static unsigned condition[HANDLES]; /* behind the handles, which count from 1 */
static unsigned char condition_first[HANDLES];
static int handles;

static struct recorder {
    simt_graph *into; /* where launches go; NULL: they run */
    bool captured;    /* and their arguments are kept for later */
    const void *function;
    uintptr_t stack, stack_end;
    struct {
        uintptr_t at;
        size_t bytes;
    } pinned[PINNED];
} R;

bool simt_recording() { return R.into != NULL; }

/* ---- lists */

static simt_node *append(simt_graph *g, const simt_node &node)
{
    if (g->n == g->room) {
        g->room = g->room ? 2 * g->room : 64;
        g->node = (simt_node **)realloc((void *)g->node, (size_t)g->room * sizeof *g->node);
    }
    simt_node *to = (simt_node *)malloc(sizeof *to);
    if (!g->node || !to) abort();
    *to = node;
    return g->node[g->n++] = to;
}

static void clear(simt_graph *g)
{
    for (int i = 0; i < g->n; i++) {
        free(g->node[i]->step.arg);
        simt_forget(g->node[i]->body);
        free(g->node[i]);
    }
    g->n = 0;
}

static simt_graph *graph_new()
{
    simt_graph *g = (simt_graph *)calloc(1, sizeof *g);
    if (!g) abort();
    return g;
}

void simt_forget(simt_graph *g)
{
    if (!g) return;
    clear(g);
    free((void *)g->node);
    free(g);
}

static void *copy_of(const void *arg, size_t bytes)
{
    void *to = malloc(bytes ? bytes : 1);
    if (!to) abort();
    memcpy(to, arg, bytes);
    return to;
}

static void append_step(simt_graph *g, simt_step step)
{
    simt_node node = {};
    step.arg = copy_of(step.arg, step.bytes);
    node.kind = simt_node::STEP, node.step = step;
    append(g, node);
}

static simt_graph *clone(const simt_graph *g)
{
    simt_graph *to = graph_new();
    for (int i = 0; i < g->n; i++) {
        simt_node *node = append(to, *g->node[i]);
        if (node->step.arg) node->step.arg = copy_of(node->step.arg, node->step.bytes);
        if (node->body) node->body = clone(node->body);
    }
    return to;
}

void simt_record(simt_step step)
{
    step.function = R.function;
    append_step(R.into, step);
}

/* ---- running */

static void run_step(const simt_step &s)
{
    if (s.kernel) simt_launch(s.grid, s.block, s.dynamic, s.kernel, s.run, s.arg, s.bytes);
    else s.run(s.arg);
}

static void run_node(const simt_node *node)
{
    if (node->kind == simt_node::STEP) run_step(node->step);
    else if (node->kind == simt_node::CHILD) simt_replay(node->body);
    else if (node->kind == simt_node::END) {
        const simt_access was = simt_memory_access(SIMT_EVERYTHING);
        node->call(node->word, node->handle);
        simt_memory_access(was);
    } else simt_fail(SIMT_HERE, "a WHILE node within a WHILE node or a child graph");
}

void simt_replay(const simt_graph *g)
{
    for (int i = 0; i < g->n; i++) run_node(g->node[i]);
}

/* To the end of what was asked for, or of one turn of a loop. Whether there is more. */
static bool go_on(simt_stream *s)
{
    while (s->at < s->todo.n) {
        const simt_node *node = s->todo.node[s->at];
        const simt_graph *g = node->exec ? node->exec->graph : NULL;
        if (!g) run_node(node);
        for (; g && s->inner < g->n; s->inner++) {
            const simt_node *inner = g->node[s->inner];
            if (inner->kind != simt_node::LOOP) {
                run_node(inner);
                continue;
            }
            if (!condition[inner->handle - 1]) continue;
            simt_replay(inner->body);
            if (++s->turns == TURNS) simt_fail(SIMT_HERE, "a loop still runs after %d turns", s->turns);
            return true;
        }
        s->at++;
        s->inner = s->turns = 0;
    }
    clear(&s->todo);
    s->at = 0;
    return false;
}

static bool busy(const simt_stream *s) { return s->todo.n > 0; }

void simt_finish(simt_stream *s)
{
    while (go_on(s)) {}
}

void simt_finish_all()
{
    for (int i = 0; i < STREAMS; i++) simt_finish(&streams[i]);
}

/* ---- what is asked of a stream */

bool simt_capturing()
{
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].capturing) return true;
    return false;
}

cudaError_t simt_illegal(const char *what)
{
    if (!simt_lenient()) simt_fail(SIMT_HERE, "%s cannot be recorded", what);
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].capturing) streams[i].invalid = true;
    return cudaErrorStreamCaptureUnsupported;
}

static void into(simt_stream *s)
{
    if (!s || !s->there) simt_fail(SIMT_HERE, "a stream that is not there");
    R.into = s->capturing ? s->captured : &s->todo;
    R.captured = s->capturing;
}

cudaError_t simt_do(simt_stream *s, simt_fn *run, const void *arg, size_t bytes)
{
    if (s->invalid) return cudaErrorStreamCaptureInvalidated;
    into(s);
    append_step(R.into, simt_step{ dim3(), dim3(), 0, NULL, run, (void *)(uintptr_t)arg, bytes, NULL });
    R.into = NULL;
    return cudaSuccess;
}

bool simt_stream_captures(const simt_stream *s) { return s->capturing; }

static cudaError_t launch_to(const cudaLaunchConfig_t *how, const void *function)
{
    const dim3 g = how->gridDim, b = how->blockDim;
    if (how->stream->invalid) return cudaErrorStreamCaptureInvalidated;
    if (g.x == 0 || g.y == 0 || g.z == 0 || g.y > 65535 || g.z > 65535 || b.x * b.y * b.z == 0 || b.x * b.y * b.z > 1024)
        return cudaErrorInvalidConfiguration;
    if (how->dynamicSmemBytes > simt_allowed(function)) return cudaErrorInvalidValue;
    simt_counts.uncarved += !simt_carved(function);
    into(how->stream);
    R.function = function;
    return cudaSuccess;
}

cudaError_t simt_launch_to(const cudaLaunchConfig_t *how, const void *function)
{
    return simt_answer("cudaLaunchKernelExC", [=] { return launch_to(how, function); });
}

cudaError_t simt_launched()
{
    R.into = NULL;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    return simt_answer(__func__, [=] {
        for (int i = 0; i < STREAMS; i++)
            if (!streams[i].there) {
                streams[i].there = true;
                *stream = &streams[i];
                return cudaSuccess;
            }
        return cudaErrorMemoryAllocation;
    });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return simt_answer(__func__, [=] {
        simt_finish(stream);
        free((void *)stream->todo.node);
        *stream = simt_stream{};
        return cudaSuccess;
    });
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return simt_answer(__func__, [=] {
        if (stream->capturing) return simt_illegal("querying a stream");
        if (!busy(stream)) return cudaSuccess;
        go_on(stream);
        simt_counts.polls++;
        return cudaErrorNotReady;
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return simt_answer(__func__, [=] {
        if (stream->capturing) return simt_illegal("waiting");
        simt_finish(stream);
        return cudaSuccess;
    });
}

/* ---- capture */

static void note_stack()
{
    pthread_attr_t attr;
    void *stack = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attr)) abort();
    pthread_attr_getstack(&attr, &stack, &bytes);
    pthread_attr_destroy(&attr);
    R.stack = (uintptr_t)stack;
    R.stack_end = R.stack + bytes;
}

void simt_record_begin()
{
    note_stack();
    R.into = graph_new();
    R.captured = true;
}

simt_graph *simt_record_end()
{
    simt_graph *g = R.into;
    R.into = NULL;
    return g;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    return simt_answer(__func__, [=] {
        if (stream->capturing) return cudaErrorIllegalState;
        if (mode != cudaStreamCaptureModeThreadLocal) return cudaErrorInvalidValue;
        note_stack();
        stream->captured = graph_new();
        stream->capturing = true;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    cudaError_t e = simt_asked(__func__); /* the capture ends, whatever becomes of it */
    *graph = NULL;
    if (e == cudaSuccess && !stream->capturing) e = cudaErrorIllegalState;
    if (e == cudaSuccess && stream->invalid) e = cudaErrorStreamCaptureInvalidated;
    if (e == cudaSuccess) *graph = stream->captured;
    else simt_forget(stream->captured);
    stream->capturing = stream->invalid = false;
    stream->captured = NULL;
    return simt_said(e);
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

bool simt_pinned_holds(const void *p)
{
    for (int i = 0; i < PINNED; i++) {
        const uintptr_t at = R.pinned[i].at;
        if (at && (uintptr_t)p >= at && (uintptr_t)p < at + R.pinned[i].bytes) return true;
    }
    return false;
}

/* A word of an argument that is an address of the host's which will not mean the same later. Words whose lower half is a small
 * number are numbers beside padding. A float beside padding that was an address by chance lies in the caller's frames, a few
 * kilobytes, about once in a million runs; so only these count as the stack. */
static const char *stale(uintptr_t word)
{
    if ((uint32_t)word < 1u << 20) return NULL;
    if (simt_pinned_holds((const void *)word) && !simt_mapped_holds((const void *)word)) return "pinned memory";
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0),
                    first = here >= R.stack && here < R.stack_end ? here : R.stack;
    return word >= first && word < R.stack_end ? "the caller's stack" : NULL;
}

/* Arguments that are pointers are device memory (simt_check_pointer); these may hold some. */
void simt_check_struct(const void *of, size_t bytes, const char *kernel)
{
    for (size_t i = 0; R.into && R.captured && i + sizeof(uintptr_t) <= bytes; i += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, (const char *)of + i, sizeof word);
        if (const char *where = stale(word)) simt_fail(SIMT_HERE, "a recorded launch of %s points into %s", kernel, where);
    }
}

/* ---- graphs */

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned)
{
    return simt_answer(__func__, [=] {
        *graph = graph_new();
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return simt_answer(__func__, [=] {
        simt_forget(graph);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t, unsigned first, unsigned flags)
{
    return simt_answer(__func__, [=] {
        if (handles == HANDLES) return cudaErrorMemoryAllocation;
        condition_first[handles] = (unsigned char)(flags == cudaGraphCondAssignDefault && first);
        *handle = (cudaGraphConditionalHandle)++handles;
        return cudaSuccess;
    });
}

void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value) { condition[handle - 1] = value; }

/* Nodes run in the order in which they were added: each must wait for the one before it. */
static cudaError_t add(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t n, const simt_node &of)
{
    if (graph->n > 0 && (n != 1 || before[0] != graph->node[graph->n - 1]))
        simt_fail(SIMT_HERE, "a node of a graph does not wait for the one before it");
    *node = append(graph, of);
    return cudaSuccess;
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before, const cudaGraphEdgeData *,
                             size_t n, cudaGraphNodeParams *params)
{
    return simt_answer(__func__, [=] {
        static cudaGraph_t body;
        cudaConditionalNodeParams *c = &params->conditional;
        if (params->type != cudaGraphNodeTypeConditional || c->type != cudaGraphCondTypeWhile || c->size != 1 || !c->handle)
            return cudaErrorInvalidValue;
        simt_node of = {};
        of.kind = simt_node::LOOP, of.handle = c->handle, of.body = body = graph_new();
        c->phGraph_out = &body;
        return add(node, graph, before, n, of);
    });
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t n,
                                       cudaGraph_t child)
{
    return simt_answer(__func__, [=] {
        simt_node of = {};
        of.kind = simt_node::CHILD, of.body = clone(child);
        return add(node, graph, before, n, of);
    });
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t n,
                                   const cudaKernelNodeParams *params)
{
    return simt_answer(__func__, [=] {
        simt_node of = {};
        of.kind = simt_node::END;
        of.call = (void (*)(const int32_t *, cudaGraphConditionalHandle))params->func;
        memcpy(&of.word, params->kernelParams[0], sizeof of.word);
        memcpy(&of.handle, params->kernelParams[1], sizeof of.handle);
        if (!simt_memory_holds(of.word)) simt_fail(SIMT_HERE, "the word that a loop goes by is not device memory");
        return add(node, graph, before, n, of);
    });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    return simt_answer(__func__, [=] {
        *exec = (simt_exec *)calloc(1, sizeof **exec);
        if (!*exec) abort();
        (*exec)->graph = clone(graph);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return simt_answer(__func__, [=] {
        for (int i = 0; i < STREAMS; i++)
            for (int k = streams[i].at; k < streams[i].todo.n; k++)
                if (streams[i].todo.node[k]->exec == exec) simt_fail(SIMT_HERE, "a graph is destroyed that is still to run");
        simt_forget(exec->graph);
        free(exec);
        return cudaSuccess;
    });
}

/* Conditions as they are at first; false: a kernel is not allowed its shared memory any more. */
static bool ready(const simt_graph *g)
{
    for (int i = 0; i < g->n; i++) {
        const simt_node *node = g->node[i];
        if (node->kind == simt_node::LOOP) condition[node->handle - 1] = condition_first[node->handle - 1];
        if (node->step.kernel && node->step.dynamic > simt_allowed(node->step.function)) return false;
        if (node->body && !ready(node->body)) return false;
    }
    return true;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    return simt_answer(__func__, [=] {
        if (stream->capturing) return simt_illegal("a graph in a graph");
        if (!ready(exec->graph)) return cudaErrorInvalidValue;
        simt_node node = {};
        node.kind = simt_node::GRAPH, node.exec = exec;
        append(&stream->todo, node);
        simt_counts.replays++;
        return cudaSuccess;
    });
}
