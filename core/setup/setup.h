/* SPDX-License-Identifier: MIT
 * The settings of an engine and its output: the keys of an experiment, or of an engine that a program opens, with their values
 * (docs/experiments.md). Readers, `wager list`, the JSON Schema, resolved configs and resumed runs share one table of keys,
 * wg_setup_sections. A new key is a row in setup_keys.c, a field below, and the code that obeys it. */
#ifndef WG_CORE_SETUP_SETUP_H
#define WG_CORE_SETUP_SETUP_H

#include "core/base/option.h"
#include "core/engine/build.h"
#include "core/engine/profile.h"
#include "core/setup/spec.h"
#include "core/setup/target.h"
#include "core/text/chat.h"

enum { WG_SECOND_PASS_AUTO, WG_SECOND_PASS_ALWAYS }; /* the option `second_pass` */

typedef struct wg_setup_top {
    char name[WG_OPTION_STRING], question[WG_OPTION_STRING];
    int seed, max_tokens, repeats, batch, trace; /* trace: WG_TRACE_NONE, ... */
    int trace_rows, trace_top;                   /* trace_rows: WG_TRACE_AUTO, ... */
    bool alpha;                                  /* alpha, analytic_alpha, alpha_star and independent_acceptance are measured */
    int second_pass;                             /* WG_SECOND_PASS_AUTO, ... */
    char grammar[WG_OPTION_STRING], json_schema[WG_OPTION_STRING]; /* of all answers; json_schema: a path, or a schema */
    char profile[WG_OPTION_STRING];                                /* as wg_profile_options.use */
    bool audit; /* audit every drafter; those from outside are also audited with alpha */
} wg_setup_top;

/* `label` of the section draft, beside the kind and its options: the cell's name in tables, drawings, pages and LaTeX. It is
 * not a setting: cells that differ in it alone are equal. */
typedef struct wg_setup_label {
    char label[WG_OPTION_STRING];
} wg_setup_label;
extern const wg_option wg_setup_label_table[];

typedef struct wg_setup_target {
    char model[WG_OPTION_STRING], device[WG_OPTION_STRING], quantize[WG_OPTION_STRING], ranks[WG_OPTION_STRING];
    int threads, tensor, pipeline, pin, kv_type, context;
    bool allow_nan;
    int kind; /* WG_TARGET_MODEL, ... */
    char command[WG_OPTION_STRING];
    int timeout_ms, start_ms;
    char library[WG_OPTION_STRING];
} wg_setup_target;
extern const wg_option wg_setup_target_table[];

/* Parses "KIND:option=value,...", a target that this program does not compute. EINVAL, as of wg_target_kind_check. */
wg_status wg_target_parse(wg_setup_target *out, const char *spec, wg_error *err);

/* Checks that the target's options belong to its kind. EINVAL: options that do not belong together, or one that is missing. */
wg_status wg_target_kind_check(const wg_setup_target *t, wg_error *err);

/* The options for wg_target_open, with need_tokenizer false. Borrows texts of t. */
static inline wg_target_options wg_setup_target_options(const wg_setup_target *t)
{
    return (wg_target_options){
        .device = t->device,
        .quantize = t->quantize,
        .threads = t->threads,
        .ranks = t->ranks,
        .tensor = t->tensor,
        .pipeline = t->pipeline,
        .pin = t->pin,
        .model = { .kv_type = wg_kv_type_ids[t->kv_type], .context = t->context, .allow_nan = t->allow_nan },
        .external = { .kind = (wg_target_kind)t->kind,
                      .command = t->command,
                      .timeout_ms = t->timeout_ms,
                      .start_ms = t->start_ms,
                      .library = t->library }
    };
}

/* The prompts: a selection from a file (experiments/config/dataset.h), and their chat template. */
typedef struct wg_setup_prompts {
    char file[WG_OPTION_STRING], category[WG_OPTION_STRING], merge[WG_OPTION_STRING];
    int limit, per_category, shuffle, keep_bytes, turns;
    int chat; /* WG_CHAT_NONE, ... */
    char system[WG_OPTION_STRING], date[WG_OPTION_STRING];
} wg_setup_prompts;
extern const wg_option wg_setup_prompts_table[];
/* The chat template of the prompts. model: the target's file, whose template "model" means. */
static inline wg_chat wg_setup_chat(const wg_setup_prompts *p, const wg_weights *model)
{
    return (wg_chat){ .family = p->chat, .system = p->system, .model = model, .date = p->date };
}

/* The sections of a config, for checking and for `wager list`; ends with a NULL name. The options of `draft` and `verify` are
 * those of the class that `selector` names, so their table is NULL. The first row, named "", holds the top-level options. */
typedef struct wg_setup_section {
    const char *name, *doc, *selector;
    const wg_option *table;
    size_t at; /* offset of its struct in wg_setup */
} wg_setup_section;
extern const wg_setup_section wg_setup_sections[];

/* The values of one text. A zeroed one is closed. */
typedef struct wg_setup {
    wg_setup_top top;
    wg_setup_target target;
    wg_setup_prompts prompts;
    wg_sampling sampling;
    wg_setup_label named_by;
    const wg_drafter_class *drafter;
    void *draft;                       /* its options (owned) */
    const wg_verifier_class *named;    /* the rule as the text names it, which may be `plugin` */
    void *verify;                      /* its options (owned) */
    const wg_verifier_class *verifier; /* the rule that runs: the named one, or its object's */
    const void *verifier_options;
    wg_rule_choice loaded; /* a rule from an object; owns object and options */
} wg_setup;
void wg_setup_close(wg_setup *s); /* closes its members */

/* The option struct of a section, as its table describes it. */
const void *wg_setup_options(const wg_setup *s, const wg_setup_section *section);

/* wg_setup_lossless: the output has the law of plain decoding. wg_setup_law_only: the target is not computed here
 * (wg_lm_class.law_only), so only its law can be promised. wg_setup_repeats_plain: the output is plain decoding's, token by
 * token. */
bool wg_setup_lossless(const wg_setup *s);
bool wg_setup_law_only(const wg_setup *s);
bool wg_setup_repeats_plain(const wg_setup *s);

/* Whether the drafter or a component of it is a plug-in or a process (wg_drafter_class.outside). */
bool wg_setup_is_outside(const wg_setup *s, const wg_plugins *plugins);

/* As wg_law_assumes; NULL also if the output is not lossless. */
const char *wg_setup_assumes(const wg_setup *s, const wg_plugins *plugins);

#endif
