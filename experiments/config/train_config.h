/* SPDX-License-Identifier: MIT
 * The file of a training run (docs/training.md): one JSON object with the sections below, checked as a whole before anything is
 * read or written. */
#ifndef WG_EXPERIMENTS_CONFIG_TRAIN_CONFIG_H
#define WG_EXPERIMENTS_CONFIG_TRAIN_CONFIG_H

#include "draft/train/trainer.h"

typedef struct wg_train_model {
    char init[WG_OPTION_STRING], tokenizer[WG_OPTION_STRING];
    int layers, dim, heads, kv_heads, head_dim, hidden, context;
    bool tied;
    double rope_base, eps;
} wg_train_model;

/* Replaces zeros of kv_heads, head_dim and hidden by their defaults. */
void wg_train_model_complete(wg_train_model *m);

typedef struct wg_train_data {
    char text[WG_OPTION_STRING], separator[WG_OPTION_STRING], tokens[WG_OPTION_STRING], held[WG_OPTION_STRING];
    char conversations[WG_OPTION_STRING];
    int held_out;
} wg_train_data;

typedef struct wg_train_output {
    char name[WG_OPTION_STRING], type[WG_OPTION_STRING];
} wg_train_output;

typedef struct wg_train_config {
    wg_train_model model;
    wg_train_data data;
    wg_train_options train;
    wg_optimiser_options optimiser;
    wg_schedule_options schedule;
    wg_train_output output;
    char *resolved; /* every option with its value, as JSON; owned */
} wg_train_config;

/* The sections of the file; ends with a NULL name. */
typedef struct wg_train_section {
    const char *name, *doc;
    const wg_option *table;
    size_t at; /* offset of its struct in wg_train_config */
} wg_train_section;
extern const wg_train_section wg_train_sections[];

/* set: "section.option=value", as for wg_config_open. ECONFIG: all problems at once, each with its place. */
wg_status wg_train_config_open(wg_train_config *out, const char *path, const char *const *set, int n_set, wg_error *err);
void wg_train_config_close(wg_train_config *c);

#endif
