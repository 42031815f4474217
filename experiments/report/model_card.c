/* SPDX-License-Identifier: MIT
 * The flags of the engines are those of vLLM 0.26 to 0.30, SGLang, llama.cpp 0c1e570 and transformers 5.23; docs/students.md
 * has their limits. */
#include "experiments/report/model_card.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/save.h"
#include "core/base/json_number.h"
#include "experiments/base/shell_word.h"

static const json_t *member(const json_t *o, const char *key) { return json_object_get(o, key); }
static long long number(const json_t *o, const char *key) { return (long long)wg_json_int(o, key); }

/* A number with its interval as a cell of a table. */
static void put_measured(FILE *f, const json_t *o, const char *key)
{
    char ci[64];
    snprintf(ci, sizeof ci, "%s_ci", key);
    const double v = wg_json_measured(o, key);
    if (isfinite(v)) fprintf(f, " %.3f", v);
    else fputs(" -", f);
    if (json_is_array(member(o, ci))) fprintf(f, " [%.3f, %.3f]", wg_json_item(o, ci, 0), wg_json_item(o, ci, 1));
    fputs(" |", f);
}

static void put_head(FILE *f, const json_t *card)
{
    const json_t *a = member(card, "architecture"), *t = member(card, "tokenizer"), *targets = member(card, "targets"), *target;
    size_t i;
    fprintf(f,
            "---\n%spipeline_tag: text-generation\ntags:\n- speculative-decoding\n- draft-model\n---\n\n# %s\n\n"
            "A draft model for speculative decoding: it proposes tokens, a larger target with the same tokenizer verifies "
            "them.\nWritten by `wager export` (wager " WG_VERSION ").\n\n",
            json_is_true(member(card, "hf")) ? "library_name: transformers\n" : "", wg_json_word(card, "name"));
    fprintf(f,
            "* Model: %s, %lld parameters, %lld layers of width %lld, context %lld, vocabulary %lld.\n"
            "* Tokenizer: %s, digest of its ids `%.16s`.\n* Source: `%s`, SHA-256 `%s`.\n",
            wg_json_word(a, "family"), number(a, "parameters"), number(a, "layers"), number(a, "width"), number(a, "context"),
            number(a, "vocabulary"), wg_json_word(t, "kind"), wg_json_word(t, "digest"), wg_json_word(card, "source"),
            wg_json_word(card, "source_sha256"));
    json_array_foreach(targets, i, target)
        fprintf(f, "* Drafts for `%s`: %lld of its %lld tokens in common, %.3f of its parameters.\n",
                wg_json_word(target, "path"), number(member(target, "vocabulary"), "shared"),
                number(member(target, "vocabulary"), "of"), wg_json_real(target, "parameters_share"));
    fputs("* Licence: that of the source and of the texts that it was trained on. `wager export` does not know it.\n", f);
}

static void put_acceptance(FILE *f, const json_t *card)
{
    const json_t *all = member(card, "measured"), *c;
    size_t i;
    fputs("\n## Measured acceptance\n\n", f);
    if (json_array_size(all) == 0) {
        fputs("Not measured. `wager run` measures it, and `wager export --measured RESULTS` writes it here.\n", f);
        return;
    }
    fprintf(f,
            "By `wager run`%s%s; 95 %% intervals over prompts. alpha: mean of sum min(p, q); tau: tokens per pass of the "
            "target;\nspeed-up: over plain decoding on that machine.\n\n"
            "| target | rule | temperature | length | prompts | alpha | accepted | tau | speed-up |\n"
            "|---|---|--:|--:|--:|--:|--:|--:|--:|\n",
            *wg_json_word(json_array_get(all, 0), "machine") ? " on " : "", wg_json_word(json_array_get(all, 0), "machine"));
    json_array_foreach(all, i, c) {
        fprintf(f, "| %s | %s%s | %g | %lld | %lld |", wg_json_word(c, "target"), wg_json_word(c, "rule"),
                json_is_false(member(c, "lossless")) ? " (lossy)" : "", wg_json_real(c, "temperature"), number(c, "length"),
                number(c, "prompts"));
        put_measured(f, c, "alpha");
        put_measured(f, c, "acceptance_rate");
        put_measured(f, c, "tau");
        put_measured(f, c, "speedup");
        fputc('\n', f);
    }
}

/* Writes a command line; `target` and the words like it are quoted for the shell. */
static void put_command(FILE *f, const char *before, const char *target, const char *between, const char *draft,
                        const char *after)
{
    fputs(before, f);
    wg_put_shell_word(f, target);
    fputs(between, f);
    wg_put_shell_word(f, draft);
    fputs(after, f);
}

static void put_use(FILE *f, const json_t *card)
{
    const char *folder = wg_json_word(card, "folder"), *gguf = wg_json_word(card, "gguf"),
               *named = wg_json_word(json_array_get(member(card, "targets"), 0), "path");
    const size_t n = strlen(named);
    const bool hf = json_is_true(member(card, "hf")), is_gguf = n > 5 && strcmp(named + n - 5, ".gguf") == 0;
    const bool other =
        n && strcmp(wg_json_word(member(json_array_get(member(card, "targets"), 0), "vocabulary"), "kind"), "same") != 0;
    const char *as_folder = n && !is_gguf ? named : "TARGET_FOLDER", *as_gguf = is_gguf ? named : "TARGET.gguf";
    const int length = (int)number(card, "draft_length");
    char file[2 * 4096], after[200];
    snprintf(file, sizeof file, "%s/%s", folder, gguf);
    fprintf(f, "\n## Use\n\nDrafts of %d tokens%s. Limits of the engines: docs/students.md of wager.\n\n```\n", length,
            json_is_true(member(card, "draft_length_measured")) ? " were the fastest of the measured ones"
                                                                : " are a usual start");
    put_command(f, "wager generate -m ", n ? named : "TARGET", other ? " --draft slem:model=" : " -d ", hf ? folder : file,
                " -p TEXT -n 200\n");
    snprintf(after, sizeof after, " --spec-type draft-simple --spec-draft-n-max %d\n", length);
    if (*gguf) put_command(f, "llama-server -m ", as_gguf, " -md ", file, after);
    if (hf) {
        json_t *config = json_pack("{s:s, s:o, s:i}", "method", "draft_model", "model", wg_json_text(folder),
                                   "num_speculative_tokens", length);
        char *text = wg_json_canonical(config, false);
        put_command(f, "vllm serve ", as_folder, " --speculative-config ", text ? text : "", "\n");
        wg_free(text);
        json_decref(config);
        snprintf(after, sizeof after,
                 " --speculative-num-steps %d --speculative-eagle-topk 1 --speculative-num-draft-tokens %d\n", length,
                 length + 1);
        put_command(f, "python3 -m sglang.launch_server --model-path ", as_folder,
                    " --speculative-algorithm STANDALONE --speculative-draft-model-path ", folder, after);
    }
    fputs("```\n", f);
    if (hf) fputs("\nIn transformers this folder is the `assistant_model` of `generate`.\n", f);
    if (other)
        fputs("\nThe target has another vocabulary: wager drafts by texts (`slem`), vLLM needs `use_heterogeneous_vocab`, "
              "SGLang and llama.cpp cannot.\n",
              f);
    if (n && (is_gguf ? hf : *gguf))
        fprintf(f, "\n`wager convert` makes %s of the target.\n", is_gguf ? "TARGET_FOLDER" : "TARGET.gguf");
}

wg_status wg_model_card_save(const char *path, const json_t *card, wg_error *err)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return wg_nomem(err, 1, "a model card");
    put_head(f, card);
    put_acceptance(f, card);
    put_use(f, card);
    fclose(f);
    const wg_status s = wg_save_all(path, text, n, err);
    free(text);
    return s;
}
