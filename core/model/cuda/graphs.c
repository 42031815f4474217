/* SPDX-License-Identifier: MIT
 * Recorded passes by key (graphs.h). */
#include "core/model/cuda/graphs.h"

#include <string.h>

int wg_graph_rows(int n)
{
    if (n > WG_GRAPH_ROWS) return n;
    if (n > 32) return n > 48 ? 64 : 48;
    int up = 1;
    while (up < n) up *= 2;
    return up;
}

int wg_graph_spans(int keys)
{
    int up = 1;
    while (up < wg_gpu_spans(keys)) up *= 2;
    return up;
}

bool wg_graph_plan(wg_graph_key *key, const wg_layer_plan *plan)
{
    key->layers = plan->layers;
    if (!plan->skip) return true;
    if (plan->layers > WG_GRAPH_LAYERS) return false;
    for (int i = 0; i < plan->layers; i++) key->skip[i / 32] |= (uint64_t)(plan->skip[i] & 3u) << 2 * (i % 32);
    return true;
}

wg_graph *wg_graphs_find(wg_graphs *g, const wg_graph_key *key, bool *first)
{
    wg_graph *oldest = &g->at[0];
    g->now++;
    *first = false;
    for (int i = 0; i < WG_GRAPHS; i++) {
        wg_graph *e = &g->at[i];
        if (e->used && memcmp(&e->key, key, sizeof *key) == 0) {
            e->used = g->now;
            return e;
        }
        if (e->used < oldest->used) oldest = e;
    }
    g->gpu->api->forget(g->gpu, oldest->ready);
    *oldest = (wg_graph){ .key = *key, .used = g->now };
    *first = true;
    return oldest;
}

void wg_graphs_clear(wg_graphs *g)
{
    for (int i = 0; i < WG_GRAPHS; i++) {
        g->gpu->api->forget(g->gpu, g->at[i].ready);
        g->at[i] = (wg_graph){ 0 };
    }
}
