/* SPDX-License-Identifier: MIT
 * The list of columns. A share is a number up to 1 in files and a percentage in tables. */
#include "experiments/report/columns.h"
#include "core/base/json_number.h"

#include <stdio.h>
#include <string.h>

#include "core/base/option.h"

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static void same_text(const json_t *c, char *b, size_t n)
{
    const json_t *equal = json_object_get(c, "equals_baseline");
    const bool lossless = json_is_true(json_object_get(c, "lossless"));
    const char *word = json_integer_value(json_object_get(c, "requests")) ? "law" : "-";
    if (json_is_boolean(equal)) word = json_is_true(equal) ? "yes" : lossless ? "NO" : "no";
    if (json_is_string(json_object_get(c, "lossless_withdrawn"))) snprintf(b, n, "law withdrawn");
    else if (!strcmp(word, "law") && json_is_string(json_object_get(c, "lossless_if")))
        snprintf(b, n, "law if %s", json_string_value(json_object_get(c, "lossless_if")));
    else snprintf(b, n, "%s%s", word, lossless ? "" : " (lossy)");
}

static void label(const json_t *c, char *b, size_t n)
{
    const char *given = json_string_value(json_object_get(c, "label"));
    snprintf(b, n, "%s", given ? given : wg_json_word(c, "drafter"));
}

/* "-6 % draft": the deviation from the prediction, and the phase with the largest share of it. */
static void residual(const json_t *c, char *b, size_t n)
{
    static const char *const parts[] = { "draft", "verify", "rest", "plain" };
    const json_t *r = json_object_get(c, "residual_percent");
    const double total = wg_json_real(r, "total");
    const char *worst = "";
    double most = 0;
    for (int i = 0; i < 4; i++) {
        const double part = wg_json_real(r, parts[i]) * (total < 0 ? -1 : 1);
        if (part > most) most = part, worst = parts[i];
    }
    if (json_is_object(r)) snprintf(b, n, "%+.0f %% %s", total, worst);
    else snprintf(b, n, "-");
}

/* "0.70 0.55 0.42 ..": as many positions as fit. */
static void positions(const json_t *c, char *b, size_t n)
{
    enum { SHOWN = 8 };
    const json_t *list = json_object_get(c, "acceptance_by_position");
    const size_t all = json_array_size(list);
    size_t at = (size_t)snprintf(b, n, "%s", all ? "" : "-");
    for (size_t i = 0; i < all && i < SHOWN; i++)
        at += (size_t)snprintf(b + at, n - at, "%s%.2f", i ? " " : "", json_number_value(json_array_get(list, i)));
    if (all > SHOWN) snprintf(b + at, n - at, " ..");
}

static void turn(const json_t *o, char *b, size_t n) { snprintf(b, n, "%.0f", wg_json_real(o, "turn") + 1); }

/* ---- the list ---------------------------------------------------------------------------------------------------- */

enum {
    T = WG_IN_TABLE | WG_IN_WIDE,
    W = WG_IN_WIDE,
    M = WG_IN_MARKDOWN,
    P = WG_IN_PAGE,
    N = WG_IN_NAMES,
    H = WG_IN_PHASES,
    U = WG_IN_USE,
    L = WG_IN_LOSSES,
    R = WG_IN_ROUNDS,
    S = WG_SHORT,
    A = WG_IN_PAPER,
};

const wg_column wg_columns[] = {
    { "drafter", "drafter", "", T | M, "drafter", NULL, NULL, NULL, "what drafts" },
    { "rule", "rule", "", T | M | P, "rule", NULL, NULL, NULL, "what verifies" },
    { "temperature", "temp", "", T | M | P, "temperature", NULL, "%g", NULL, "of the sampling" },
    { "label", "label", "", 0, "label", NULL, NULL, label, "the label that the config gives to its draft, or its drafter" },
    { "group", "group", "", 0, "group", NULL, "%.0f", NULL, "cells of one number share a baseline" },
    { "lossless", "lossless", "", 0, "lossless", NULL, NULL, NULL, "the law of the output is the target's" },
    { "law_only", "law only", "", 0, "law_only", NULL, NULL, NULL,
      "the target is not computed here: texts are equal in law, not token by token" },
    { "lossless_if", "lossless if", "", 0, "lossless_if", NULL, NULL, NULL, "what that rests on, and nothing here has proved" },
    { "lossless_withdrawn", "lossless withdrawn", "", 0, "lossless_withdrawn", NULL, NULL, NULL,
      "why a lossless rule was not lossless in this run" },
    { "audit_found", "audit", "", 0, "audit.found", NULL, NULL, NULL, "what speaks against the drafter's word, if anything" },
    { "audit_draws", "audited draws", "tokens", 0, "audit.draws", NULL, "%.0f", NULL,
      "drafted tokens that were tested against their rows of q" },
    { "audit_draws_log10_e", "e-value of draws", "log10", 0, "audit.draws_log10_e", NULL, "%.1f", NULL,
      "evidence that they were not drawn from these rows: 3 or more by chance in one of 1000 runs at most" },
    { "audit_massless", "massless drafts", "requests", 0, "audit.massless", NULL, "%.0f", NULL,
      "that failed because a drafted token had no probability in its row of q" },
    { "audit_unscaled_rows", "unscaled rows", "rows", 0, "audit.unscaled_rows", NULL, "%.0f", NULL,
      "rows of q that have a negative probability or do not sum to 1" },
    { "audit_steps", "audited steps", "steps", 0, "audit.steps", NULL, "%.0f", NULL,
      "with a draft, tested for keeping more of it than alpha* allows" },
    { "audit_kept_log10_e", "e-value of kept", "log10", 0, "audit.kept_log10_e", NULL, "%.1f", NULL,
      "evidence that drafts knew the rule's draws, or q is not true" },
    { "requests", "requests", "", 0, "requests", NULL, "%.0f", NULL, "pairs of requests that counted" },
    { "failed", "failed", "", 0, "failed", NULL, "%.0f", NULL, "pairs of which a side failed; they count on neither" },
    { "first_failure", "first failure", "", 0, "first_failure", NULL, NULL, NULL, "why the first of them failed" },
    { "tokens", "tokens", "tokens", 0, "tokens", NULL, "%.0f", NULL, "of all outputs" },
    { "probes", "probes", "rows", 0, "probes", NULL, "%.0f", NULL, "rows that passes scored for the drafter alone" },
    { "device_verified_passes", "verified on device", "passes", 0, "device_verified_passes", NULL, "%.0f", NULL,
      "passes whose rule ran on the target's device" },
    { "device_decoded_passes", "decoded on device", "passes", 0, "device_decoded_passes", NULL, "%.0f", NULL,
      "of them, those of rounds that the device decoded without the host" },
    { "target_passes", "passes", "passes", R, "target_passes", NULL, "%.0f", NULL, "of the target" },
    { "spec_decode_num_drafts", "with a draft", "passes", R, "spec_decode_num_drafts", NULL, "%.0f", NULL,
      "passes that drafted at least one token (vLLM's definition)" },
    { "without_draft_nothing_found", "nothing found", "passes", R, "rounds_without_draft.nothing_found", NULL, "%.0f", NULL,
      "passes without a draft because the drafter found nothing" },
    { "without_draft_draft_context", "draft's context", "passes", R, "rounds_without_draft.draft_context", NULL, "%.0f", NULL,
      "passes without a draft because the text was longer than the draft model's context" },
    { "without_draft_length_policy", "length policy", "passes", R, "rounds_without_draft.length_policy", NULL, "%.0f", NULL,
      "passes without a draft because the length policy chose no token" },
    { "without_draft_room", "room", "passes", R, "rounds_without_draft.room", NULL, "%.0f", NULL,
      "passes without a draft because the text ended with their token" },
    { "draft_context", "context", "tokens", R, "draft_context", NULL, "%.0f", NULL, "of the draft model" },
    { "spec_decode_num_draft_tokens", "drafted", "tokens", 0, "spec_decode_num_draft_tokens", NULL, "%.0f", NULL,
      "draft tokens that were verified" },
    { "spec_decode_num_accepted_tokens", "kept", "tokens", 0, "spec_decode_num_accepted_tokens", NULL, "%.0f", NULL,
      "of them, those accepted" },
    { "tau", "tau", "tokens", T | M | P | S | A, "tau", "tau_ci", "%.2f", NULL,
      "tokens per pass of the target, the corrected or bonus token included; plain decoding has 1 (block efficiency)" },
    { "tau_macro", "tau, macro", "tokens", 0, "tau_macro", NULL, "%.2f", NULL, "unweighted mean of tau over the categories" },
    { "mean_acceptance_length", "mean acceptance length", "tokens", N, "mean_acceptance_length", NULL, "%.3f", NULL,
      "1 + accepted tokens per pass that drafted (vLLM's definition); tau counts all passes" },
    { "accepted_per_pass", "accepted per pass", "tokens", N, "acceptance.accepted_per_pass", NULL, "%.3f", NULL,
      "draft tokens kept per pass: without the corrected or bonus token" },
    { "draft_acceptance_rate", "accepted", "share", T | P | N | A, "draft_acceptance_rate", NULL, "%.1f %%", NULL,
      "draft tokens kept, of those offered" },
    { "acceptance_by_position", "accepted by position", "share", M, "acceptance_by_position", NULL, NULL, positions,
      "steps that accepted at least so many tokens, of those whose draft was as deep" },
    { "kept", "kept at a node", "share", L, "attribution.kept", NULL, "%.3f", NULL,
      "of the nodes that were reached and had a draft, those of which a child was kept" },
    { "alpha", "alpha", "share", W | P | N | L, "alpha", NULL, "%.3f", NULL,
      "mean of sum min(p, q) over the nodes reached: what a token-wise rule can accept there; depends on rule, length and "
      "policy" },
    { "analytic_alpha", "analytic alpha", "share", N, "analytic_alpha", NULL, "%.3f", NULL,
      "mean of sum min(p, q) over all positions of the baseline's texts: of the pair of models alone (Leviathan et al.)" },
    { "alpha_star", "alpha*", "share", W | N | L, "alpha_star", NULL, "%.3f", NULL,
      "the most that any lossless rule could accept there, given the siblings' law and number" },
    { "independent_acceptance", "independent", "share", N, "acceptance.independent_acceptance", NULL, "%.3f", NULL,
      "mean of min(1, p/q) over all draft tokens: those that would pass their own test, also behind a rejected one" },
    { "verify_rate", "verify rate", "share", N, "acceptance.verify_rate", NULL, "%.3f", NULL, "tokens / (drafted + passes)" },
    { "drafted_fraction_of_output", "drafted fraction of output", "share", N, "acceptance.drafted_fraction_of_output", NULL,
      "%.3f", NULL, "accepted draft tokens, of all output tokens" },
    { "drafter_loss", "drafter's loss", "share", L, "attribution.drafter_loss", "attribution.drafter_loss_ci", "%.3f", NULL,
      "1 - alpha*" },
    { "rule_loss", "rule's loss", "share", L, "attribution.rule_loss", "attribution.rule_loss_ci", "%.3f", NULL,
      "alpha* - kept, of lossless rules that decide node by node" },
    { "tok_s", "tok/s", "tokens/s", T | M | P, "tok_s", NULL, "%.1f", NULL,
      "tokens a second of decoding, the prompt's pass left out" },
    { "baseline_tok_s", "plain", "tokens/s", T | M | P, "baseline_tok_s", NULL, "%.1f", NULL,
      "the same of plain decoding, the baseline, run in turn with the cell in the same process" },
    { "speedup", "speed-up", "ratio", T | M | P | A, "speedup", "speedup_ci", "%.2fx", NULL,
      "plain decoding's time per token over the cell's, decoding only" },
    { "best_fixed_speedup", "best fixed", "ratio", 0, "best_fixed.speedup", NULL, "%.2fx", NULL,
      "of a cell of auto: the largest speed-up among the other drafters of its group under its rule, and plain decoding's 1" },
    { "best_fixed_share", "of best fixed", "share", 0, "best_fixed.share", NULL, "%.3f", NULL,
      "of a cell of auto: its speed-up over that" },
    { "baseline_spread", "plain's spread", "share", 0, "baseline_spread", NULL, "%.3f", NULL,
      "plain decoding's slowest repeat over its fastest, less 1; above the interval's width (and 0.05) the cell is marked *" },
    { "disturbed", "disturbed", "", 0, "disturbed", NULL, NULL, NULL,
      "whether plain decoding's repeats differ by more than the interval of the speed-up is wide, and by more than 5 %" },
    { "predicted_speedup", "predicted", "ratio", W | M | P | S, "predicted_speedup", "predicted_speedup_range", "%.2fx", NULL,
      "speed-up by costs calibrated before the run, for drafts that fare like these; its range is the cost model's" },
    { "residual_percent", "residual", "%", W | M | P, "residual_percent.total", NULL, NULL, residual,
      "100 log(measured / predicted), and the phase that did most of it" },
    { "residual_percent_draft", "residual: draft", "%", 0, "residual_percent.draft", NULL, "%+.1f", NULL,
      "drafting's part of it" },
    { "residual_percent_verify", "residual: verify", "%", 0, "residual_percent.verify", NULL, "%+.1f", NULL,
      "the target's pass's" },
    { "residual_percent_rest", "residual: rest", "%", 0, "residual_percent.rest", NULL, "%+.1f", NULL,
      "the rest of the step's" },
    { "residual_percent_plain", "residual: plain", "%", 0, "residual_percent.plain", NULL, "%+.1f", NULL, "the plain step's" },
    { "speedup_macro", "speed-up, macro", "ratio", 0, "speedup_macro", NULL, "%.2fx", NULL,
      "unweighted mean over the categories" },
    { "speedup_mean_of_prompts", "mean of prompts", "ratio", 0, "speedup_mean_of_prompts", NULL, "%.2fx", NULL,
      "unweighted mean of the prompts' speed-ups" },
    { "explained_speedup", "explained", "ratio", 0, "explained_speedup", NULL, "%.2fx", NULL,
      "tau x (a plain step's phases) / (a step's phases)" },
    { "draft_cost_ratio", "c", "ratio", W | M, "draft_cost_ratio", NULL, "%.3f", NULL,
      "seconds of drafting for each level of a draft, over those of a plain pass" },
    { "output_throughput", "throughput", "tokens/s", 0, "output_throughput", NULL, "%.1f", NULL,
      "tokens a second of prefill and decoding, of all sequences of a batch" },
    { "baseline_output_throughput", "plain throughput", "tokens/s", 0, "baseline_output_throughput", NULL, "%.1f", NULL,
      "the same of plain decoding" },
    { "median_ttft_ms", "TTFT p50", "ms", W, "ttft_ms.p50", NULL, "%.2f", NULL,
      "milliseconds from a request to its first tokens: the median request's" },
    { "p90_ttft_ms", "TTFT p90", "ms", 0, "ttft_ms.p90", NULL, "%.2f", NULL, "its 90th percentile" },
    { "p99_ttft_ms", "TTFT p99", "ms", 0, "ttft_ms.p99", NULL, "%.2f", NULL, "its 99th percentile" },
    { "median_tpot_ms", "TPOT p50", "ms", W | P, "tpot_ms.p50", NULL, "%.2f", NULL,
      "milliseconds per output token of a request after its first tokens: the median request's" },
    { "p90_tpot_ms", "TPOT p90", "ms", 0, "tpot_ms.p90", NULL, "%.2f", NULL, "its 90th percentile" },
    { "p99_tpot_ms", "TPOT p99", "ms", U, "tpot_ms.p99", NULL, "%.2f", NULL, "its 99th percentile" },
    { "equals_baseline", "same text", "", T | M | P, "equals_baseline", NULL, NULL, same_text,
      "yes: plain decoding's, token by token; law: the same distribution with other draws; law if q is true: if the plug-in or "
      "process draws as it says" },
    { "overhead_us_per_token", "overhead", "us", W, "overhead_us_per_token", NULL, "%.0f us", NULL,
      "a token's share of step time outside drafting and the target's forward pass" },
    { "phase_ms_draft", "draft", "ms", H, "phase_ms.draft", NULL, "%.3f", NULL, "drafting" },
    { "phase_ms_verify", "verify", "ms", H, "phase_ms.verify", NULL, "%.3f", NULL, "the target's pass" },
    { "phase_ms_accept", "accept", "ms", H, "phase_ms.accept", NULL, "%.3f", NULL, "sampling and accepting" },
    { "phase_ms_kv", "kv", "ms", H, "phase_ms.kv", NULL, "%.3f", NULL, "cache" },
    { "phase_ms_other", "other", "ms", H, "phase_ms.other", NULL, "%.3f", NULL, "the rest of a step" },
    { "predicted_ms_draft", "predicted draft", "ms", 0, "predicted_ms.draft", NULL, "%.3f", NULL,
      "what the calibration expected of it" },
    { "predicted_ms_verify", "predicted verify", "ms", 0, "predicted_ms.verify", NULL, "%.3f", NULL, "the same" },
    { "predicted_ms_rest", "predicted rest", "ms", 0, "predicted_ms.rest", NULL, "%.3f", NULL, "the same" },
    { "predicted_ms_plain", "predicted plain", "ms", 0, "predicted_ms.plain", NULL, "%.3f", NULL, "of a plain step" },
    { "mbu", "MBU", "share", W | U, "efficiency.mbu", NULL, "%.0f %%", NULL,
      "model bandwidth utilisation: bytes a second of the passes, of what a read-only stream gave in this run" },
    { "baseline_mbu", "plain's MBU", "share", U, "efficiency.baseline_mbu", NULL, "%.0f %%", NULL,
      "the same of plain decoding" },
    { "mfu", "MFU", "share", W | U, "efficiency.mfu", NULL, "%.0f %%", NULL,
      "model FLOPs utilisation: operations a second of the passes, of what the kernels gave on operands in the cache" },
    { "baseline_mfu", "plain's MFU", "share", U, "efficiency.baseline_mfu", NULL, "%.0f %%", NULL,
      "the same of plain decoding" },
    { "gb_s", "GB/s", "GB/s", 0, "efficiency.gb_s", NULL, "%.1f", NULL, "bytes of the passes" },
    { "baseline_gb_s", "plain's GB/s", "GB/s", 0, "efficiency.baseline_gb_s", NULL, "%.1f", NULL,
      "the same of plain decoding" },
    { "stream_gb_s", "stream's GB/s", "GB/s", 0, "efficiency.stream_gb_s", NULL, "%.1f", NULL, "what MBU is a share of" },
    { "gflop_s", "GFLOP/s", "GFLOP/s", 0, "efficiency.gflop_s", NULL, "%.1f", NULL, "operations of the passes" },
    { "baseline_gflop_s", "plain's GFLOP/s", "GFLOP/s", 0, "efficiency.baseline_gflop_s", NULL, "%.1f", NULL,
      "the same of plain decoding" },
    { "peak_gflop_s", "peak GFLOP/s", "GFLOP/s", 0, "efficiency.peak_gflop_s", NULL, "%.1f", NULL, "what MFU is a share of" },
    { "rejected_tokens", "rejected", "tokens", 0, "rejected.tokens", NULL, "%.0f", NULL,
      "draft tokens that were verified and not kept" },
    { "rejected_gflop", "rejected GFLOP", "GFLOP", 0, "rejected.gflop", NULL, "%.1f", NULL, "the target's operations on them" },
    { "rejected_flop_share", "FLOPs rejected", "share", W | U, "rejected.flop_share", NULL, "%.0f %%", NULL,
      "the target's operations on draft tokens that were rejected, of all its operations" },
    { "rejected_kv_mb", "rejected MB", "MB", 0, "rejected.kv_mb", NULL, "%.1f", NULL, "keys and values written for them" },
    { "rejected_byte_share", "bytes rejected", "share", U, "rejected.byte_share", NULL, "%.2f %%", NULL,
      "keys and values written for them, of all bytes read and written" },
    { "kv_slots_held", "slots held", "slots", 0, "kv_slots.held", NULL, "%.1f", NULL, "of the cache's pages, in a pass" },
    { "kv_slots_unused", "slots unused", "slots", 0, "kv_slots.unused", NULL, "%.1f", NULL, "of them, after the last row" },
    { "kv_slots_rolled_back", "slots rolled back", "slots", 0, "kv_slots.rolled_back", NULL, "%.1f", NULL,
      "of them, rows that were not kept" },
    { "kv_slots_waste", "slots wasted", "share", W | U, "kv_slots.waste", NULL, "%.0f %%", NULL,
      "slots of the cache's pages that are unused or rolled back" },
    { "median_itl_ms", "ITL p50", "ms", U, "itl_ms.p50", NULL, "%.2f", NULL,
      "milliseconds between events; the tokens of a step arrive together and are one event: the median" },
    { "p90_itl_ms", "ITL p90", "ms", 0, "itl_ms.p90", NULL, "%.2f", NULL, "its 90th percentile" },
    { "p99_itl_ms", "ITL p99", "ms", U, "itl_ms.p99", NULL, "%.2f", NULL, "its 99th percentile" },
    { "mean_itl_ms", "ITL mean", "ms", 0, "mean_itl_ms", NULL, "%.2f", NULL, "its mean" },
    { "median_itl_per_token_ms", "ITL per token p50", "ms", U, "itl_per_token_ms.p50", NULL, "%.2f", NULL,
      "the same, shared evenly by the tokens of the event" },
    { "p90_itl_per_token_ms", "ITL per token p90", "ms", 0, "itl_per_token_ms.p90", NULL, "%.2f", NULL, "its 90th percentile" },
    { "p99_itl_per_token_ms", "ITL per token p99", "ms", 0, "itl_per_token_ms.p99", NULL, "%.2f", NULL, "its 99th percentile" },
    { "joules_per_token", "J/token", "J", U, "energy.joules_per_token", NULL, "%.3g", NULL, "joules of decoding, by RAPL" },
    { "baseline_joules_per_token", "plain's J/token", "J", U, "energy.baseline_joules_per_token", NULL, "%.3g", NULL,
      "the same of plain decoding" },
    { "watts", "watts", "W", 0, "energy.watts", NULL, "%.3g", NULL, "while decoding" },
    { "baseline_watts", "plain's watts", "W", 0, "energy.baseline_watts", NULL, "%.3g", NULL, "the same of plain decoding" },
    { "overlap_shared", "tokens in common", "tokens", 0, "overlap.shared", NULL, "%.0f", NULL,
      "the draft model's, of the target's vocabulary" },
    { "overlap_vocabulary", "vocabulary", "tokens", 0, "overlap.vocabulary", NULL, "%.0f", NULL, "the target's" },
    { "overlap_share", "vocabulary in common", "share", 0, "overlap.share", NULL, "%.1f %%", NULL, "the one of the other" },
    { "overlap_text_shared", "text tokens in common", "tokens", 0, "overlap.text_shared", NULL, "%.0f", NULL,
      "of the outputs, those the draft model has" },
    { "overlap_text_tokens", "text tokens", "tokens", 0, "overlap.text_tokens", NULL, "%.0f", NULL, "of the outputs" },
    { "overlap_text_share", "text in common", "share", 0, "overlap.text_share", NULL, "%.1f %%", NULL, "the one of the other" },
    { "parts_matched", "matched by any part", "tokens", 0, "parts_matched", NULL, "%.0f", NULL,
      "tokens that any part's draft had of what the steps emitted: what the best choice at each step would have kept" },
    { "output_sha256", "digest", "", 0, "output_sha256", NULL, NULL, NULL, "of all outputs" },
    { 0 },
};

const wg_column wg_category_columns[] = {
    { "category", "category", "", M | P, "category", NULL, NULL, NULL, "of the prompts" },
    { "prompts", "prompts", "", P, "prompts", NULL, "%.0f", NULL, "of it that counted" },
    { "tokens", "tokens", "tokens", 0, "tokens", NULL, "%.0f", NULL, "of their outputs" },
    { "tau", "tau", "tokens", M | P, "tau", "tau_ci", "%.2f", NULL, "as of the cell" },
    { "draft_acceptance_rate", "accepted", "share", P, "acceptance_rate", NULL, "%.1f %%", NULL, "as of the cell" },
    { "speedup", "speed-up", "ratio", M | P, "speedup", "speedup_ci", "%.2fx", NULL, "as of the cell" },
    { 0 },
};

const wg_column wg_turn_columns[] = {
    { "turn", "turn", "", M | P, "turn", NULL, "%.0f", turn, "of the conversation: the first is 1 for people, 0 in files" },
    { "prompts", "prompts", "", P, "prompts", NULL, "%.0f", NULL, "that have it and counted" },
    { "tokens", "tokens", "tokens", 0, "tokens", NULL, "%.0f", NULL, "of its outputs" },
    { "tau", "tau", "tokens", M | P, "tau", "tau_ci", "%.2f", NULL, "as of the cell" },
    { "tau_over_first", "tau, of the first turn's", "ratio", M | P, "tau_over_first", "tau_over_first_ci", "%.2fx", NULL,
      "over tau of the same conversations' first turn" },
    { "draft_acceptance_rate", "accepted", "share", P, "acceptance_rate", NULL, "%.1f %%", NULL, "as of the cell" },
    { "speedup", "speed-up", "ratio", M | P, "speedup", "speedup_ci", "%.2fx", NULL, "as of the cell" },
    { 0 },
};

const wg_column wg_part_columns[] = {
    { "part", "part", "", P, "part", NULL, "%.0f", NULL, "its number, in the order of the config" },
    { "drafter", "drafter", "", M | P, "drafter", NULL, NULL, NULL, "what drafts" },
    { "asked", "asked", "steps", M | P, "asked", NULL, "%.0f", NULL, "steps in which it drafted" },
    { "taken", "taken", "steps", M | P, "taken", NULL, "%.0f", NULL, "of them, those in which its draft was verified" },
    { "spec_decode_num_draft_tokens", "drafted", "tokens", P, "drafted", NULL, "%.0f", NULL, "of the drafts that were taken" },
    { "spec_decode_num_accepted_tokens", "kept", "tokens", M | P, "accepted", NULL, "%.0f", NULL, "of them, those accepted" },
    { "draft_acceptance_rate", "accepted", "share", M | P, "acceptance_rate", NULL, "%.1f %%", NULL, "the one of the other" },
    { "shared", "shared", "tokens", M | P, "shared", NULL, "%.0f", NULL,
      "of the accepted, those that another part's draft had at their place too" },
    { "alone", "alone", "tokens", M | P, "alone", NULL, "%.0f", NULL,
      "those that no other part's draft had, in steps where all drafted" },
    { "matched", "matched", "tokens", 0, "matched", NULL, "%.0f", NULL,
      "tokens that its drafts had of what the steps emitted, from a step's first one, taken or not" },
    { "matched_per_step", "matched a step", "tokens", M | P, "matched_per_step", NULL, "%.2f", NULL,
      "the same for each step in which it drafted: what it would have kept, as far as the step went" },
    { 0 },
};

const wg_column wg_position_columns[] = {
    { "acceptance_by_position", "offered-corrected", "share", P, "acceptance.offered_corrected_by_position", NULL, "%.2f", NULL,
      "steps that accepted at least so many, of those whose draft was as deep" },
    { "survival_by_position", "survival", "share", 0, "acceptance.survival_by_position", NULL, "%.2f", NULL,
      "steps that accepted at least so many, of all" },
    { "conditional_by_position", "conditional", "share", 0, "acceptance.conditional_by_position", NULL, "%.2f", NULL,
      "steps that accepted at least so many, of those that accepted one fewer and had a draft token behind" },
    { "spec_decode_num_accepted_tokens_per_pos", "accepted", "tokens", 0, "spec_decode_num_accepted_tokens_per_pos", NULL,
      "%.0f", NULL, "steps that accepted at least so many" },
    { "acceptance_histogram", "steps", "", P, "acceptance.acceptance_histogram", NULL, "%.0f", NULL,
      "steps that drafted and accepted exactly so many; position 0: none" },
    { 0 },
};

/* ---- a value ----------------------------------------------------------------------------------------------------- */

const json_t *wg_column_value(const json_t *o, const char *path)
{
    char part[64];
    for (const char *at = path; o && *at;) {
        const size_t n = strcspn(at, ".");
        snprintf(part, sizeof part, "%.*s", (int)n, at);
        o = json_object_get(o, part);
        at += n + (at[n] == '.');
    }
    return o;
}

static void write_number(const char *format, double v, char *buf, size_t size)
{
    const bool share = strstr(format, "%%") != NULL;
    snprintf(buf, size, format, share ? 100 * v : v);
}

void wg_column_text(const wg_column *c, const json_t *o, char *buf, size_t size)
{
    const json_t *v = wg_column_value(o, c->path);
    snprintf(buf, size, "-");
    if (c->text) c->text(o, buf, size);
    else if (json_is_string(v)) snprintf(buf, size, "%s", json_string_value(v));
    else if (json_is_boolean(v)) snprintf(buf, size, "%s", json_is_true(v) ? "yes" : "no");
    else if (json_is_number(v)) write_number(c->format, json_number_value(v), buf, size);
}

void wg_column_brackets(const wg_column *c, const json_t *o, char *buf, size_t size)
{
    const json_t *ci = c->interval ? wg_column_value(o, c->interval) : NULL;
    const json_t *lo = json_array_get(ci, 0), *hi = json_array_get(ci, 1);
    *buf = '\0';
    if (json_is_number(lo) && json_is_number(hi))
        snprintf(buf, size, "[%.2f, %.2f]", json_number_value(lo), json_number_value(hi));
}

bool wg_column_is_words(const wg_column *c) { return !c->format; }

/* ---- choices of columns ------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    unsigned set;
} sets[] = {
    { "table", WG_IN_TABLE },   { "wide", WG_IN_WIDE }, { "paper", WG_IN_PAPER },
    { "md", WG_IN_MARKDOWN },   { "page", WG_IN_PAGE }, { "acceptance", WG_IN_NAMES },
    { "phases", WG_IN_PHASES }, { "use", WG_IN_USE },   { "losses", WG_IN_LOSSES },
    { "rounds", WG_IN_ROUNDS }, { "all", 0 },
};
enum { SETS = sizeof sets / sizeof *sets, LISTED = sizeof wg_columns / sizeof *wg_columns - 1 };
_Static_assert((int)LISTED <= (int)WG_COLUMNS_MOST, "a choice has room for all columns");

const char *wg_column_set(int i) { return i < SETS ? sets[i].name : NULL; }

static void choose(wg_column_choice *out, const wg_column *c)
{
    for (int i = 0; i < out->n; i++)
        if (out->column[i] == c) return;
    out->column[out->n++] = c;
}

static void add_set(wg_column_choice *out, const wg_column *list, unsigned set)
{
    for (const wg_column *c = list; c->name; c++)
        if (!set || c->shown & set) choose(out, c);
}

void wg_columns_of(const wg_column *list, unsigned set, wg_column_choice *out)
{
    out->n = 0;
    add_set(out, list, set);
}

static wg_status unknown(const char *name, wg_error *err)
{
    const char *names[2 * LISTED + SETS + 1] = { NULL };
    for (int i = 0; i < LISTED; i++) names[i] = wg_columns[i].name, names[LISTED + SETS + i] = wg_columns[i].head;
    for (int i = 0; i < SETS; i++) names[LISTED + i] = sets[i].name;
    const char *near = wg_nearest(name, names);
    return wg_fail(err, WG_EINVAL, "there is no column '%s'%s%s%s; `wager list columns` has them", name,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* Whether `list` begins with the item `text`; then *n becomes its length if that is larger. */
static bool is_item(const char *list, const char *text, size_t *n)
{
    const size_t length = strlen(text);
    const bool is = length > *n && !strncmp(list, text, length) && (list[length] == ',' || !list[length]);
    if (is) *n = length;
    return is;
}

/* Adds the columns of the first item of a list, and returns its length; 0: it is unknown. A name is preferred to a heading,
 * the longer of two headings to the shorter ("tau, macro" to tau). */
static size_t add_item(wg_column_choice *out, const char *list)
{
    const wg_column *column = NULL;
    int set = -1;
    size_t n = 0;
    for (int i = 0; i < SETS; i++)
        if (is_item(list, sets[i].name, &n)) set = i;
    for (const wg_column *c = wg_columns; c->name; c++)
        if (is_item(list, c->name, &n)) column = c, set = -1;
    for (const wg_column *c = wg_columns; c->name; c++)
        if (is_item(list, c->head, &n)) column = c, set = -1;
    if (set >= 0) add_set(out, wg_columns, sets[set].set);
    else if (column) choose(out, column);
    return n;
}

wg_status wg_columns_named(const char *list, wg_column_choice *out, wg_error *err)
{
    out->n = 0;
    do {
        char name[WG_COLUMN_TEXT];
        list += strspn(list, " ");
        const size_t n = add_item(out, list);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(list, ","), list);
        if (n == 0) return unknown(name, err);
        list += n + (list[n] == ',');
    } while (*list);
    return WG_OK;
}
