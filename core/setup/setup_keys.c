/* SPDX-License-Identifier: MIT
 * The keys of a text: their names, types, ranges, defaults and descriptions. */
#include "core/setup/setup.h"

#include "core/file/quantize.h"
#include "core/model/device.h"
#include "core/setup/conversation.h"

static const char *const traces[] = { "none", "steps", "probs", NULL };
static const char *const trace_rows[] = { "auto", "exact", "logits", "f16", "top", NULL };

static const char *const second_passes[] = { "auto", "always", NULL };
static const wg_option top_options[] = {
    WG_OPTION_STR(wg_setup_top, name, "",
                  "name of the experiment and of its result folder: letters, digits, '.', '_' and '-' (needed)"),
    WG_OPTION_STR(wg_setup_top, question, "", "the question that the experiment answers"),
    WG_OPTION_INT(wg_setup_top, seed, 1, 0, 2147483647, "seed of all randomness"),
    WG_OPTION_INT(wg_setup_top, max_tokens, 128, 1, 1000000, "most new tokens of an answer"),
    WG_OPTION_NAME(wg_setup_top, grammar, WG_NAMES_FILE, "",
                   "grammar of every answer: a file in GBNF (docs/constrained.md); empty: no constraint"),
    WG_OPTION_NAME(wg_setup_top, json_schema, WG_NAMES_FILE, "",
                   "JSON schema of every answer: a file, or in a config the schema itself; empty: no constraint"),
    WG_OPTION_INT(wg_setup_top, repeats, 1, 1, 10000, "number of runs of each prompt, each with other random draws"),
    WG_OPTION_INT(wg_setup_top, batch, 1, 1, 256, "number of sequences of a step"),
    WG_OPTION_ENUM(wg_setup_top, trace, 0, traces,
                   "steps: a line per step in steps.jsonl; probs: also trees and rows of p and q, in trace.wgt (wager replay)"),
    WG_OPTION_ENUM(wg_setup_top, trace_rows, 0, trace_rows,
                   "rows of trace.wgt: exact, in the shortest form; logits: of the target always, for replay at other "
                   "temperatures; f16; top: cut to the `trace_top` most probable tokens; auto: exact, but from a vocabulary of "
                   "32,000 tokens on top for rows with more than 1,360 tokens"),
    WG_OPTION_INT(wg_setup_top, trace_top, 64, 1, 1 << 20, "most probable tokens of a cut row"),
    WG_OPTION_BOOL(wg_setup_top, alpha, 1,
                   "measure alpha, analytic_alpha, alpha_star and independent_acceptance, outside of every clock"),
    WG_OPTION_ENUM(
        wg_setup_top, second_pass, WG_SECOND_PASS_AUTO, second_passes,
        "what needs the target's rows (alpha, trace=probs) comes, auto: from a second, untimed pass where the target's "
        "device verifies, else from between the steps; always: from a second pass on every target"),
    WG_OPTION_NAME(wg_setup_top, profile, WG_NAMES_OR_WORD, "", WG_PROFILE_DOC),
    WG_OPTION_BOOL(wg_setup_top, audit, 0,
                   "test whether drafts were drawn from the declared rows of q, outside of every clock; those of plug-ins and "
                   "processes are tested with \"alpha\", too"),
    WG_OPTION_END,
};

const wg_option wg_setup_label_table[] = {
    WG_OPTION_STR(wg_setup_label, label, "", "name of the cell in tables and drawings; empty: its drafter"),
    WG_OPTION_END,
};

const wg_option wg_setup_target_table[] = {
    WG_OPTION_NAME(wg_setup_target, model, WG_NAMES_FILE, "", "weights file (needed)"),
    WG_OPTION_STR(wg_setup_target, device, "cpu", "where it runs: " WG_DEVICE_NAMES),
    WG_OPTION_INT(wg_setup_target, threads, 0, 0, 256, "number of threads; 0: as many as the process may use"),
    WG_OPTION_STR(wg_setup_target, ranks, "", WG_RANKS_DOC "; empty: as many threads as `tensor`"),
    WG_OPTION_INT(wg_setup_target, tensor, 0, 0, WG_RANKS_MOST,
                  "number of ranks that share each matrix (docs/ranks.md); 0: those that mpirun started, else one"),
    WG_OPTION_INT(wg_setup_target, pipeline, 0, 0, WG_RANKS_MOST,
                  "number of stages, each with a part of the layers and `tensor` ranks; 0: one, or as `ranks` says"),
    WG_OPTION_BOOL(wg_setup_target, pin, 0, "bind each worker thread to a processor of its own"),
    WG_OPTION_ENUM(wg_setup_target, kv_type, 1, wg_kv_type_names, "element type of the target's cache"),
    WG_OPTION_INT(wg_setup_target, context, 0, 0, 1 << 24, "longest sequence in tokens; 0: the file's"),
    WG_OPTION_STR(wg_setup_target, quantize, "", WG_QUANTIZE_DOC),
    WG_OPTION_BOOL(wg_setup_target, allow_nan, 0, "accept NaN and infinities in weights"),
    WG_OPTION_ENUM(
        wg_setup_target, kind, WG_TARGET_MODEL, wg_target_kinds,
        "model: wager runs the file; process: a program of your own does (docs/process-target.md), and the file has the "
        "tokenizer; llamacpp: llama.cpp's library does. Results of the last two are equal in law only"),
    WG_OPTION_NAME(wg_setup_target, command, WG_NAMES_COMMAND, "",
                   "shell command of the program of kind process (needed there)"),
    WG_OPTION_INT(wg_setup_target, timeout_ms, 60000, 1, 3600000, "milliseconds that a process has to answer a pass"),
    WG_OPTION_INT(wg_setup_target, start_ms, 300000, 1, 3600000, "milliseconds that a process has to load its model"),
    WG_OPTION_NAME(wg_setup_target, library, WG_NAMES_COMMAND, "libllama.so",
                   "llama.cpp's library: a path, or a name that the loader finds"),
    WG_OPTION_END,
};
static const char *const turn_words[] = { "all", "first", NULL };
const wg_option wg_setup_prompts_table[] = {
    WG_OPTION_NAME(wg_setup_prompts, file, WG_NAMES_FILE, "",
                   "JSONL with `prompt`, `question`, `turns` or `messages` (needed)"),
    WG_OPTION_COUNT(wg_setup_prompts, turns, 1, 0, WG_TURNS_MAX, turn_words,
                    "questions of `turns` that are used, each after the answer to the one before; 0: all"),
    WG_OPTION_INT(wg_setup_prompts, limit, 0, 0, 1 << 24, "number of prompts that are used; 0: all"),
    WG_OPTION_INT(wg_setup_prompts, per_category, 0, 0, 1 << 24, "number of prompts of each category that are used; 0: all"),
    WG_OPTION_STR(wg_setup_prompts, category, "", "category of the prompts that are used; empty: all"),
    WG_OPTION_STR(wg_setup_prompts, merge, "", "new names for categories, such as chat=writing|coding;other=qa"),
    WG_OPTION_INT(wg_setup_prompts, shuffle, 0, 0, 2147483647,
                  "seed of a random order of the prompts, before any are left out; 0: the order of the file"),
    WG_OPTION_INT(wg_setup_prompts, keep_bytes, 0, 0, 1 << 30,
                  "longest prompt in bytes; a longer one keeps its end; 0: no limit"),
    WG_OPTION_ENUM(
        wg_setup_prompts, chat, WG_CHAT_NONE, wg_chat_names,
        "the template that the target was trained with (model: the one in its file): a prompt is a question, and its "
        "answer is wanted"),
    WG_OPTION_STR(wg_setup_prompts, system, "", "system text of the template; needs `chat`"),
    WG_OPTION_STR(wg_setup_prompts, date, "", "date that a model's own template reads, such as 2026-01-31; empty: none"),
    WG_OPTION_END,
};

const wg_setup_section wg_setup_sections[] = {
    { "", "the experiment", NULL, top_options, offsetof(wg_setup, top) },
    { "target", "the model whose output is wanted", NULL, wg_setup_target_table, offsetof(wg_setup, target) },
    { "draft", "the drafter, by kind, and its options", "kind", NULL, offsetof(wg_setup, draft) },
    { "verify", "the verification rule and its options", "rule", NULL, offsetof(wg_setup, verify) },
    { "sampling", "how logits become a distribution", NULL, wg_sampling_options, offsetof(wg_setup, sampling) },
    { "prompts", "what is continued", NULL, wg_setup_prompts_table, offsetof(wg_setup, prompts) },
    { NULL, NULL, NULL, NULL, 0 },
};

const void *wg_setup_options(const wg_setup *s, const wg_setup_section *section)
{
    const char *at = (const char *)s + section->at;
    return section->selector ? *(void *const *)at : at;
}
