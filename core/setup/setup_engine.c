/* SPDX-License-Identifier: MIT
 * Checks of a whole engine: named files, component drafters, the rule against the drafter, template and grammar against the
 * vocabulary. All problems are collected; none stops the checks. */
#include <stdio.h>

#include "core/file/model_name.h"
#include "core/model/device.h"
#include "core/setup/constrained.h"
#include "core/setup/setup_check.h"
#include "core/setup/target.h"
#include "core/text/chat.h"
#include "draft/compose/composite.h"
#include "verify/rule_plugin.h"

/* Reports how the check of a file of weights ended. what: "the target". */
static void report_file(wg_checker *c, const char *path, const char *file, const char *what, wg_status s, const wg_error *e)
{
    if (s == WG_ENOENT && (wg_is_model_name(file) || wg_is_of_option(c, path))) {
        wg_problem(c, path, false, "%s: %s", path, e->text);
        c->missing++;
    } else if (s == WG_ENOENT) {
        wg_problem(c, path, false, "%s: no such file: \"%s\" (%s; " WG_SETUP_PATHS ")", path, file, what);
        c->missing++;
    } else if (s == WG_ENOMEM) c->failed = s, c->err = *e;
    else if (s) wg_problem(c, path, false, "%s: %s", path, e->text);
}

static void check_model_file(wg_checker *c, const char *path, const char *file, const wg_target_options *opt, const char *what)
{
    char once[3 * WG_OPTION_STRING + 64];
    snprintf(once, sizeof once, "%d %d %d %d %d %s %d %s %s", (int)opt->external.kind, opt->need_tokenizer, opt->model.context,
             opt->tensor, opt->pipeline, opt->ranks ? opt->ranks : "", opt->pin, opt->quantize ? opt->quantize : "", file);
    if (!wg_first_time(c, "model", once)) return;
    wg_error e;
    wg_arch arch;
    const wg_status s = wg_target_probe(file, opt, &arch, &e);
    report_file(c, path, file, what, s, &e);
}

/* Checks a file that is no language model, as its drafter does. */
static void check_own_file(wg_checker *c, const wg_drafter_class *drafter, const char *file)
{
    char once[2 * WG_OPTION_STRING];
    wg_error e;
    snprintf(once, sizeof once, "%s %s", drafter->name, file);
    if (!wg_first_time(c, "head", once)) return;
    const wg_status s = drafter->check_model(drafter, file, &e);
    report_file(c, "draft.model", file, "the head", s, &e);
}

/* Checks that a drafter's option `model`, if it has one, is the path of another file of weights. */
static void check_draft_model(wg_checker *c, const wg_setup *setup)
{
    const wg_option *row = wg_option_find(setup->drafter->options, "model");
    if (!row || row->type != WG_OPT_STRING) return;
    const char *file = (const char *)setup->draft + row->at;
    const wg_option *how = wg_option_find(setup->drafter->options, "quantize");
    const wg_target_options as_draft = { .model = { .kv_type = WG_F16 },
                                         .quantize = how ? (const char *)setup->draft + how->at : NULL };
    if (*file && setup->drafter->check_model) check_own_file(c, setup->drafter, file);
    else if (*file) check_model_file(c, "draft.model", file, &as_draft, "the draft model");
    else wg_problem(c, "draft", false, "draft: drafter \"%s\" needs \"model\": %s", setup->drafter->name, row->doc);
}

/* Checks component drafters, which are specified inside options. */
static void check_inner(wg_checker *c, const wg_setup *setup)
{
    for (const wg_option *o = setup->drafter->options; o && o->name; o++) {
        const char *value = (const char *)setup->draft + o->at;
        char path[64];
        wg_error e;
        if (!wg_option_is(o, WG_NAMES_DRAFTERS) || !wg_first_time(c, "inner", value)) continue;
        snprintf(path, sizeof path, "draft.%s", o->name);
        const wg_status s = wg_component_check(c->plugins, setup->drafter->name, o->name, value, &e);
        if (s == WG_ENOMEM) c->failed = s, c->err = e;
        else if (s) wg_problem(c, *value ? path : "draft", false, "draft: %s", e.text);
    }
}

/* Checks that the vocabulary has all tokens of the chat template, and that a model's own template renders, with `turns` a
 * second question, too. */
void wg_check_chat(wg_checker *c, const wg_setup *setup, bool turns)
{
    char once[2 * WG_OPTION_STRING + 64];
    wg_chat chat = wg_setup_chat(&setup->prompts, NULL);
    wg_weights *w = NULL;
    wg_tokenizer *t = NULL;
    wg_error e;
    if (chat.family == WG_CHAT_NONE) {
        if (*chat.system)
            wg_problem(c, "prompts.system", false, "prompts.system: needs \"chat\", the template that it becomes part of");
        return;
    }
    snprintf(once, sizeof once, "%d %d %s %s", chat.family, turns, setup->target.model, chat.date);
    if (!*setup->target.model || !wg_first_time(c, "chat", once)) return;
    if (wg_weights_open(&w, setup->target.model, &e) != WG_OK) return; /* reported where the file was checked */
    chat.model = w;
    wg_status s = wg_tokenizer_open(&t, w, &e);
    if (s == WG_OK) s = wg_chat_check(t, &chat, turns, &e);
    if (s == WG_ENOMEM) c->failed = s, c->err = e;
    else if (s) wg_problem(c, "prompts.chat", false, "prompts.chat: %s: %s", setup->target.model, e.text);
    wg_tokenizer_close(t);
    wg_weights_close(w);
}

/* Checks that the grammar or schema opens with the target's vocabulary. */
void wg_check_constraint(wg_checker *c, const wg_setup *setup)
{
    const wg_setup_top *o = &setup->top;
    const char *key = *o->grammar ? "grammar" : "json_schema";
    char once[3 * WG_OPTION_STRING];
    wg_constrained by;
    wg_weights *w = NULL;
    wg_tokenizer *t = NULL;
    wg_error e;
    if (!*o->grammar && !*o->json_schema) return;
    if (*o->grammar && *o->json_schema) wg_problem(c, key, false, "grammar: give grammar or json_schema, not both");
    snprintf(once, sizeof once, "%s\n%s\n%s", o->grammar, o->json_schema, setup->target.model);
    if (!*setup->target.model || !wg_first_time(c, "constraint", once)) return;
    if (wg_weights_open(&w, setup->target.model, &e) != WG_OK) return; /* reported where the file was checked */
    wg_status s = wg_tokenizer_open(&t, w, &e);
    if (s == WG_OK) {
        s = wg_constrained_open(&by, o->grammar, o->json_schema, t, wg_tokenizer_size(t), &e);
        wg_constrained_close(&by);
        if (s == WG_ENOMEM) c->failed = s, c->err = e;
        else if (s) wg_problem(c, key, false, "%s: %s", key, e.text);
    }
    wg_tokenizer_close(t);
    wg_weights_close(w);
}

/* Sets the rule that runs; for `plugin` it loads the object's. */
static void load_rule(wg_checker *c, wg_setup *setup)
{
    setup->verifier = setup->named;
    setup->verifier_options = setup->verify;
    if (setup->named != &wg_plugin_rule) return;
    wg_error e;
    wg_rule_choice *l = &setup->loaded;
    const wg_status s = wg_verifier_plugin_open(setup->verify, &l->class, &l->options, &l->object, &e);
    setup->verifier = s ? NULL : l->class;
    setup->verifier_options = l->options;
    if (s == WG_ENOMEM) c->failed = s, c->err = e;
    else if (s) wg_problem(c, "verify", false, "verify: %s", e.text);
}

static void check_target(wg_checker *c, const wg_setup *setup)
{
    wg_error device, kind;
    if (wg_target_kind_check(&setup->target, &kind)) wg_problem(c, "target", false, "%s", kind.text);
    if (wg_device_name_check(setup->target.device, &device)) wg_problem(c, "target.device", false, "target.%s", device.text);
    const wg_target_options as_target = { .quantize = setup->target.quantize,
                                          .ranks = setup->target.ranks,
                                          .tensor = setup->target.tensor,
                                          .pipeline = setup->target.pipeline,
                                          .pin = setup->target.pin,
                                          .need_tokenizer = true,
                                          .model = { .kv_type = WG_F16, .context = setup->target.context },
                                          .external = { .kind = (wg_target_kind)setup->target.kind } };
    if (*setup->target.model) check_model_file(c, "target.model", setup->target.model, &as_target, "the target");
    else wg_problem(c, "target", false, "target.model: missing; it names the target's weights file");
}

void wg_check_engine(wg_checker *c, wg_setup *setup, bool target)
{
    if (target) check_target(c, setup);
    if (setup->drafter) check_draft_model(c, setup);
    if (setup->drafter) check_inner(c, setup);
    if (setup->named) load_rule(c, setup);
    if (setup->drafter && setup->verifier) {
        wg_error e;
        const unsigned laws = wg_drafter_laws(setup->drafter, setup->draft, &setup->sampling);
        const wg_status s = wg_check_laws(setup->drafter, laws, setup->verifier, c->plugins->verifiers, &e);
        if (s) wg_problem(c, "verify.rule", false, "verify.rule: %s", e.text);
    }
}
