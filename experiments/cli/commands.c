/* SPDX-License-Identifier: MIT
 * The table of commands, from which --help, messages and `wager list` are generated. */
#include "experiments/cli/commands.h"

#include <stddef.h>

#include "experiments/cli/cli.h"

const wg_command wg_commands[] = {
    { "run", "run CONFIG [--out DIR] [--set a.b=c]... [--resume] [--shard I/N] [--dry-run] [--threads N] [--json]",
      "Runs the experiment of a JSON file beside its own baseline and writes a result folder.", wg_cmd_run },
    { "check", "check CONFIG [--set a.b=c]... [--probe]", "Checks an experiment file and shows what it would run.",
      wg_cmd_check },
    { "plan", "plan -m TARGET -d DRAFT [--alpha A] [--prompts FILE] [--temp T] [--batch N] [--json]",
      "Which chain or tree to draft on this machine: calibrated costs, measured or given acceptance.", wg_cmd_plan },
    { "merge", "merge OUT DIR DIR...", "Puts the shards of a run together: the run that was not divided.", wg_cmd_merge },
    { "compare", "compare DIR[:CELL] DIR[:CELL]... [--fail-if-slower 3%] [--json] [--md] [--html FILE]",
      "Holds runs against the first one: what differs, same texts, faster by how much and where.", wg_cmd_compare },
    { "report", "report DIR [--out FILE] [--no-drawings] | DIR --table|--md|--csv [--columns LIST] [--by WHAT]",
      "Writes a run as one HTML page, or an index of a folder of runs; or prints it as a table.", wg_cmd_report },
    { "replay",
      "replay TRACE|DIR [--rule R]... [--length N]... [--temperature T] | --exact CONFIG [--rule R]... [--tree K-K]...",
      "Verifies the recorded rounds of a run with \"trace\": \"probs\" again, by any rule that accepts their laws.",
      wg_cmd_replay },
    { "generate", "generate -m TARGET [-d DRAFT | --draft KIND[:k=v,...]] -p TEXT -n N [flags]",
      "Continues a text; accepted draft tokens are coloured on a terminal.", wg_cmd_generate },
    { "logits", "logits MODEL --tokens 1,2,3 [--parents -1,0,1] [--out FILE.f32]",
      "Logits of a token sequence or tree: top five and a digest per row, or all of them in a file.", wg_cmd_logits },
    { "tokenize", "tokenize MODEL TEXT", "The tokens of a text.", wg_cmd_tokenize },
    { "inspect", "inspect MODEL", "What is in a model file.", wg_cmd_inspect },
    { "convert", "convert IN [--tokenizer FILE] --out OUT.gguf [--type q8_0]",
      "Any model file to GGUF, optionally in another weight type.", wg_cmd_convert },
    { "synth", "synth --like SHAPE --type T --seed S --out OUT.gguf",
      "A random model of a known shape, for tests and speed measurements.", wg_cmd_synth },
    { "datastore", "datastore build --model M --out F TEXT...",
      "Texts to a datastore, which the drafters retrieval, sam and ngram_cache look things up in.", wg_cmd_datastore },
    { "vocab", "vocab prune|overlap -m TARGET [-d DRAFT | --keep N --out F] [TEXT...]",
      "The frequent part of a vocabulary for a draft model, or what two vocabularies have in common.", wg_cmd_vocab },
    { "prove", "prove [--rule R|all] [--vocab V] [--depth D] [--cases N]",
      "Enumerates a verification rule's production code and compares its exact output law with the target's.", wg_cmd_prove },
    { "tree", "tree [chain|kary|file|sequoia] [--tree T] [--accept 0.6/0.15] [--budget N] [--svg FILE]",
      "The shape of a draft tree: drawn, with the tokens it is to yield.", wg_cmd_tree },
    { "skip-search", "skip-search -m MODEL --prompts FILE [--skip N] [--length N] [--time] [--out FILE]",
      "Finds layers that a draft can do without (drafter layer_skip), on given prompts.", wg_cmd_skip_search },
    { "bench", "bench forward|round|perplexity|draft|verify|kernels|compare|tokenizer [-m MODEL] [flags]",
      "Times passes, speculative rounds beside plain decoding, and the parts of both, interleaved.", wg_cmd_bench },
    { "columns", "columns [--json] | columns --as ENGINE DIR [--json]",
      "The numbers of a run under the names and definitions of another engine, or the list of these.", wg_cmd_columns },
    { "list", "list [drafters|rules|sampling|kernels|commands|columns|options|drafter NAME|rule NAME] [--schema]",
      "Drafters, rules, kernel levels and columns, a line each; one of them with its options.", wg_cmd_list },
    { NULL, NULL, NULL, NULL },
};
