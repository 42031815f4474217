/* SPDX-License-Identifier: MIT
 * An experiment: one JSON file (docs/experiments.md), checked as a whole before anything runs, and resolved into cells.
 *
 * A sweep maps dotted paths to lists of values; the grid is their product, the (alphabetically) first key slowest. A path
 * names one option ("draft.length") or a whole section ("draft": [{...}, {...}]), which each value then replaces. A list of
 * such maps is several grids in sequence, for combinations that no single product expresses. Every cell is validated against
 * the option tables of its own drafter and rule; an error message gives the position of the value in the file that caused
 * it, or the --set.
 *
 * Members whose keys begin with "//" are comments.
 *
 * A section may be a reference: "@models/story" is replaced by the object in models/story.json (config_reference.c). */
#ifndef WG_EXPERIMENTS_CONFIG_CONFIG_H
#define WG_EXPERIMENTS_CONFIG_CONFIG_H

#include <jansson.h>

#include "core/base/hash.h"
#include "core/base/option.h"
#include "core/engine/build.h"
#include "core/engine/profile.h"
#include "core/text/chat.h"
#include "core/setup/spec.h"
#include "core/setup/target.h"
#include "experiments/config/dataset.h"
#include "experiments/config/shard.h"

enum { WG_SECOND_PASS_AUTO, WG_SECOND_PASS_ALWAYS }; /* the option `second_pass` */

typedef struct wg_config_top {
    char name[WG_OPTION_STRING], question[WG_OPTION_STRING];
    int seed, max_tokens, repeats, batch, trace; /* trace: WG_TRACE_NONE, ... */
    int trace_rows, trace_top;                   /* trace_rows: WG_TRACE_EXACT, ... */
    bool alpha;                                  /* alpha, analytic_alpha, alpha_star and independent_acceptance are measured */
    int second_pass;                             /* WG_SECOND_PASS_AUTO, ... */
    char grammar[WG_OPTION_STRING], json_schema[WG_OPTION_STRING]; /* of all answers; json_schema: a path, or the schema */
    char profile[WG_OPTION_STRING];                                /* as wg_profile_options.use */
    bool audit; /* of every drafter; those from outside are audited with alpha, too */
} wg_config_top;

/* `label` of the section draft, beside the kind and its options: the cell's name in tables, drawings, pages and LaTeX. It is no
 * setting: cells that differ in it alone are equal. */
typedef struct wg_config_label {
    char label[WG_OPTION_STRING];
} wg_config_label;
extern const wg_option wg_config_label_table[];

typedef struct wg_config_target {
    char model[WG_OPTION_STRING], device[WG_OPTION_STRING], quantize[WG_OPTION_STRING];
    int threads, pin, kv_type, context;
    bool allow_nan;
    int kind; /* WG_TARGET_MODEL, ... */
    char command[WG_OPTION_STRING];
    int timeout_ms, start_ms;
    char library[WG_OPTION_STRING];
} wg_config_target;
extern const wg_option wg_config_target_table[];

/* "KIND:option=value,..." of a command line: a target that this program does not compute. EINVAL, as wg_target_kind_check. */
wg_status wg_config_target_parse(wg_config_target *out, const char *spec, wg_error *err);

/* EINVAL: options that do not belong together, or one that is missing. */
wg_status wg_target_kind_check(const wg_config_target *t, wg_error *err);

/* need_tokenizer stays false. Borrows texts of t. */
static inline wg_target_options wg_config_target_options(const wg_config_target *t)
{
    return (wg_target_options){
        .device = t->device,
        .quantize = t->quantize,
        .threads = t->threads,
        .pin = t->pin,
        .model = { .kv_type = wg_kv_type_ids[t->kv_type], .context = t->context, .allow_nan = t->allow_nan },
        .external = { .kind = (wg_target_kind)t->kind,
                      .command = t->command,
                      .timeout_ms = t->timeout_ms,
                      .start_ms = t->start_ms,
                      .library = t->library }
    };
}

typedef struct wg_config_prompts {
    char file[WG_OPTION_STRING], category[WG_OPTION_STRING], merge[WG_OPTION_STRING];
    int limit, per_category, shuffle, keep_bytes, turns;
    int chat; /* WG_CHAT_NONE, ... */
    char system[WG_OPTION_STRING], date[WG_OPTION_STRING];
} wg_config_prompts;
static inline wg_dataset_options wg_prompt_options(const wg_config_prompts *p)
{
    return (wg_dataset_options){ .merge = p->merge,
                                 .category = p->category,
                                 .shuffle = p->shuffle,
                                 .per_category = p->per_category,
                                 .limit = p->limit,
                                 .keep_bytes = p->keep_bytes,
                                 .turns = p->turns };
}
/* model: the target's file, whose template is meant by "model". */
static inline wg_chat wg_prompt_chat(const wg_config_prompts *p, const wg_weights *model)
{
    return (wg_chat){ .family = p->chat, .system = p->system, .model = model, .date = p->date };
}

/* The sections of a config, for checking and for `wager list`; ends with a NULL name. The options of `draft` and `verify` are
 * those of the class that `selector` names, so their table is NULL. The first row, named "", holds the top-level options. */
typedef struct wg_config_section {
    const char *name, *doc, *selector;
    const wg_option *table;
    size_t at; /* of the struct in wg_cell */
} wg_config_section;
extern const wg_config_section wg_config_sections[];

/* Whether this top-level option is the same for all cells; a sweep cannot set it. */
bool wg_config_of_all_cells(const char *option);

/* One point of the grid, fully resolved. */
typedef struct wg_cell {
    json_t *swept;  /* {"draft.length": 4}: what distinguishes it from its neighbours; {} without a sweep */
    json_t *config; /* the resolved config without the sweep */
    wg_config_top top;
    wg_config_target target;
    wg_config_prompts prompts;
    wg_sampling sampling;
    wg_config_label named_by;
    const wg_drafter_class *drafter;
    void *draft;            /* its options (owned) */
    wg_drafter_choice lone; /* the only drafter that the drafter `auto` has; class NULL: it has several, or is another */
    const wg_verifier_class *named;    /* the rule as the file names it, which may be `plugin` */
    void *verify;                      /* its options (owned) */
    const wg_verifier_class *verifier; /* the rule that runs, with these options: the named one, or that of its object */
    const void *verifier_options;
    wg_rule_choice loaded; /* of an object: owns it and the options */
    int dataset;           /* index into wg_config.dataset */
    int group;             /* cells with the same number differ in draft and verify only: they share a baseline */
} wg_cell;

struct wg_config {
    const wg_plugins *plugins;  /* borrowed */
    wg_config_top top;          /* of the base; wg_config_of_all_cells: which options are the same for all cells */
    json_t *resolved;           /* with --set applied and defaults filled in; a config file itself */
    char sha256[WG_SHA256_HEX]; /* of its canonical text */
    char hash[13];              /* the first 12 digits */
    wg_cell *cell;
    int n, groups;
    wg_dataset **dataset;
    int datasets;
    wg_shard shard; /* the shard that is run; set by the command line or the environment, not by the file */
};

/* Reads, overrides, checks and resolves a config. set: strings "a.b=value"; the value is JSON when it parses, else a string.
 * All files that the config names are checked (prompt files completely, model files' headers). ECONFIG reports all problems
 * at once. */
wg_status wg_config_open(wg_config **out, const char *path, const char *const *set, int n_set, const wg_plugins *plugins,
                         wg_error *err);
void wg_config_close(wg_config *c); /* NULL is fine */

/* wg_cell_lossless: the law of the cell's output is that of plain decoding. wg_cell_law_only: the target is not computed here
 * (wg_lm_class.law_only), so nothing more than that can be promised. wg_cell_repeats_plain: its output is plain decoding's,
 * token by token. */
bool wg_cell_lossless(const wg_cell *cell);
bool wg_cell_law_only(const wg_cell *cell);
bool wg_cell_repeats_plain(const wg_cell *cell);

/* Whether the drafter, or a component of it, is a plug-in or a process (wg_drafter_class.outside). */
bool wg_cell_is_outside(const wg_config *c, const wg_cell *cell);

/* wg_law_rests_on of a cell; NULL also where it is not lossless. */
const char *wg_cell_rests_on(const wg_config *c, const wg_cell *cell);

/* The name of a target device that does not keep the Prefix Law, so that no cell on it is lossless; NULL: there is none. */
const char *wg_config_fast(const wg_config *c);

/* The drafter whose draft model the cell is about: the only one of `auto`, or the cell's. */
static inline wg_drafter_choice wg_cell_lone(const wg_cell *cell)
{
    return cell->lone.class ? cell->lone : (wg_drafter_choice){ cell->drafter, cell->draft };
}

/* The options of a section of a cell: the struct that the section's table describes. */
const void *wg_cell_section(const wg_cell *cell, const wg_config_section *s);

#endif
