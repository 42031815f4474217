/* SPDX-License-Identifier: MIT
 * How engines draft with an exported student: exact command lines, and the limits of each. Sources: vLLM 0.26 to 0.30
 * (vllm/config/speculative.py, docs/features/speculative_decoding/draft_model.md), SGLang
 * (docs/advanced_features/speculative_decoding.md), llama.cpp of October 2026 (0c1e570; common/speculative.cpp, arg.cpp),
 * transformers 5.23 (generation/candidate_generator.py, generation/utils.py). */
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/json_number.h"
#include "experiments/base/shell_word.h"
#include "experiments/report/model_card.h"

typedef struct use {
    const json_t *card;
    const char *folder, *gguf; /* gguf NULL: there is no such file */
    bool hf;
    const char *target;
    bool target_is_gguf, other_vocabulary;
    long long vocabulary, length;
} use;

/* The name of the folder's GGUF file, as a path. */
static void put_gguf(FILE *f, const use *u)
{
    char path[2 * 4096];
    snprintf(path, sizeof path, "%s/%s", u->folder, u->gguf);
    wg_put_shell_word(f, path);
}

static bool ends_in_gguf(const char *s) { return strlen(s) > 5 && strcmp(s + strlen(s) - 5, ".gguf") == 0; }

static void put_target(FILE *f, const use *u, bool gguf)
{
    if (strcmp(u->target, "TARGET") == 0 || u->target_is_gguf == gguf) wg_put_shell_word(f, u->target);
    else fputs(gguf ? "TARGET.gguf" : "TARGET_FOLDER", f);
}

/* Where the named target has another form than the engine reads. */
static void put_form(FILE *f, const use *u, bool gguf)
{
    if (strcmp(u->target, "TARGET") == 0 || u->target_is_gguf == gguf) return;
    fputs(gguf ? "* TARGET.gguf: `wager convert " : "* TARGET_FOLDER: `wager convert ", f);
    wg_put_shell_word(f, u->target);
    fputs(gguf ? " TARGET.gguf`.\n" : " TARGET_FOLDER`, or the folder that the file was made of.\n", f);
}

static bool missing(FILE *f, bool there, const char *format)
{
    if (!there) fprintf(f, "Needs the other form of the files: `wager export ... --format %s`.\n\n", format);
    return !there;
}

static void put_student(FILE *f, const use *u)
{
    if (u->hf) wg_put_shell_word(f, u->folder);
    else put_gguf(f, u);
}

static void put_wager(FILE *f, const use *u)
{
    fputs("### wager\n\n```\nwager generate -m ", f);
    wg_put_shell_word(f, u->target);
    fputs(u->other_vocabulary ? " --draft slem:model=" : " -d ", f);
    put_student(f, u);
    fputs(" -p \"TEXT\" -n 200\n", f);
    if (!u->other_vocabulary) {
        fputs("wager plan -m ", f);
        wg_put_shell_word(f, u->target);
        fputs(" -d ", f);
        put_student(f, u);
        fputs("      # whether drafts pay on this machine, and with what length\n", f);
    }
    fputs("```\n\n", f);
}

static void put_vllm(FILE *f, const use *u)
{
    fputs("### vLLM\n\n", f);
    if (missing(f, u->hf, "hf")) return;
    json_t *o = json_pack("{s:s, s:o, s:I}", "method", "draft_model", "model", wg_json_text(u->folder),
                          "num_speculative_tokens", (json_int_t)u->length);
    char *text = wg_json_canonical(o, false);
    fputs("```\nvllm serve ", f);
    put_target(f, u, false);
    fputs(" --speculative-config ", f);
    wg_put_shell_word(f, text ? text : "");
    fputs("\n```\n\n", f);
    fprintf(f,
            "* `vocab_size` of both config.json must be equal (here %lld), or vLLM refuses to start. Other vocabularies of the "
            "same texts:\n"
            "  `\"use_heterogeneous_vocab\": true` (0.26 and later), with greedy drafts.\n"
            "* Drafts are greedy unless `\"draft_sample_method\": \"probabilistic\"` stands in the config; sampled texts "
            "usually accept fewer\n"
            "  greedy drafts than sampled ones.\n"
            "* No multimodal targets; draft and target run with the same tensor parallelism.\n",
            u->vocabulary);
    put_form(f, u, false);
    fputc('\n', f);
    wg_free(text);
    json_decref(o);
}

static void put_sglang(FILE *f, const use *u)
{
    fputs("### SGLang\n\n", f);
    if (missing(f, u->hf, "hf")) return;
    fputs("```\npython3 -m sglang.launch_server --model-path ", f);
    put_target(f, u, false);
    fputs(" --speculative-algorithm STANDALONE \\\n  --speculative-draft-model-path ", f);
    wg_put_shell_word(f, u->folder);
    fprintf(f,
            " --speculative-num-steps %lld --speculative-eagle-topk 1 \\\n  --speculative-num-draft-tokens %lld\n```\n\n"
            "* Token ids are passed on as they are: the vocabularies must be equal. Not with `--enable-dp-attention`.\n"
            "* Beside a quantised target: `--speculative-draft-model-quantization unquant`.\n",
            u->length, u->length + 1);
    put_form(f, u, false);
    fputc('\n', f);
}

static void put_llama(FILE *f, const use *u)
{
    fputs("### llama.cpp\n\n", f);
    if (missing(f, u->gguf != NULL, "gguf")) return;
    fputs("```\nllama-server -m ", f);
    put_target(f, u, true);
    fputs(" -md ", f);
    put_gguf(f, u);
    fprintf(f,
            " --spec-type draft-simple --spec-draft-n-max %lld\n```\n\n"
            "* The vocabularies must be of one type, with the same first and last tokens; their sizes may differ by 128, and "
            "the texts of all\n"
            "  ids from 5 on must be equal.\n"
            "* Drafts are greedy, and accepted where the target samples the same token: sampled texts accept fewer than under "
            "p/q.\n"
            "* Older versions call the flag `--draft-max`, and have no `--spec-type`.\n",
            u->length);
    put_form(f, u, true);
    fputc('\n', f);
}

static void put_python_text(FILE *f, const char *s)
{
    json_t *v = wg_json_text(s); /* a JSON string is one of Python */
    json_dumpf(v, f, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    json_decref(v);
}

static void put_transformers(FILE *f, const use *u)
{
    fputs("### transformers\n\n", f);
    if (missing(f, u->hf, "hf")) return;
    fputs("```python\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\ntarget = "
          "AutoModelForCausalLM.from_pretrained(",
          f);
    put_python_text(f, strcmp(u->target, "TARGET") == 0 || !u->target_is_gguf ? u->target : "TARGET_FOLDER");
    fputs(")\ndraft = AutoModelForCausalLM.from_pretrained(", f);
    put_python_text(f, u->folder);
    fputs(")\ntokenizer = AutoTokenizer.from_pretrained(", f);
    put_python_text(f, u->folder);
    fprintf(
        f,
        ")\ndraft.generation_config.num_assistant_tokens = %lld\n"
        "draft.generation_config.num_assistant_tokens_schedule = \"constant\"\n"
        "draft.generation_config.assistant_confidence_threshold = 0.0\n"
        "ids = tokenizer(\"TEXT\", return_tensors=\"pt\")\n"
        "print(tokenizer.decode(target.generate(**ids, assistant_model=draft, max_new_tokens=200)[0]))\n```\n\n"
        "* One sequence at a time. Where `vocab_size` differs, `generate` also needs `tokenizer=` and `assistant_tokenizer=`.\n"
        "* Sampling divides the logits of the assistant by the temperature twice (5.23): below 1 it accepts fewer tokens than "
        "other engines.\n",
        u->length);
    put_form(f, u, false);
    fputc('\n', f);
}

void wg_model_card_use(FILE *f, const json_t *card)
{
    const json_t *first = json_array_get(json_object_get(card, "targets"), 0);
    const char *target = wg_json_word(first, "path"), *gguf = wg_json_word(card, "gguf");
    const use u = { .card = card,
                    .folder = wg_json_word(card, "folder"),
                    .gguf = *gguf ? gguf : NULL,
                    .hf = json_is_true(json_object_get(card, "hf")),
                    .target = *target ? target : "TARGET",
                    .target_is_gguf = ends_in_gguf(target),
                    .other_vocabulary =
                        *target && strcmp(wg_json_word(json_object_get(first, "vocabulary"), "kind"), "same") != 0,
                    .vocabulary = wg_json_int(json_object_get(card, "architecture"), "vocabulary"),
                    .length = wg_json_int(card, "draft_length") };
    fputs("## Use\n\n", f);
    if (json_is_true(json_object_get(card, "draft_length_measured")))
        fprintf(f, "Drafts of %lld tokens were the fastest of the measured ones.\n\n", u.length);
    else fprintf(f, "Drafts of %lld tokens are a usual start; the best length depends on target and machine.\n\n", u.length);
    if (u.other_vocabulary)
        fputs("**The target has another vocabulary.** wager drafts by texts (`slem`); of the other engines vLLM with "
              "`use_heterogeneous_vocab`\n"
              "and transformers with both tokenizers do, SGLang and llama.cpp do not.\n\n",
              f);
    put_wager(f, &u);
    put_vllm(f, &u);
    put_sglang(f, &u);
    put_llama(f, &u);
    put_transformers(f, &u);
}
