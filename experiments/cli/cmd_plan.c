/* SPDX-License-Identifier: MIT
 * wager plan: measures whether speculation pays for a model on this machine, and with which draft; or
 * predicts a draft model's chains and trees at one or several batch sizes (plan.h). */
#include <stdio.h>
#include <string.h>

#include "core/file/quantize.h"
#include "core/dist/tree.h"
#include "experiments/cli/cli.h"
#include "experiments/cli/plan.h"

typedef struct plan {
    wg_plan_options o;
    wg_plan_forecast f;  /* options of predictions */
    const char *batches; /* "4" or "1..64"; NULL: not given */
} plan;

/* Runs the predictions with the options that both plans share. */
static int foretell(plan *p)
{
    const wg_plan_options *o = &p->o;
    wg_plan_forecast *f = &p->f;
    wg_error err;
    if (o->models.n != 1 || o->drafts.n)
        return wg_cli_refuse(
            "plan", "--batch, --alpha, --accept and --vllm predict the drafts of one draft model: give one -d DRAFT, and no "
                    "--draft");
    f->model = o->model, f->draft = o->models.item[0], f->quantize = o->quantize;
    f->prompts = o->prompts;
    f->chat = o->chat, f->kv_type = o->kv_type, f->json = o->json, f->pin = o->pin;
    f->limit = o->limit, f->n = o->n, f->threads = o->threads, f->seed = o->seed, f->temperature = o->temperature;
    if (wg_plan_batches(p->batches ? p->batches : "1", &f->batch, &f->last_batch, &err)) return wg_cli_fail(&err);
    return wg_plan_foretell(f, &err) ? wg_cli_fail(&err) : WG_EXIT_OK;
}

int wg_cmd_plan(int argc, char **argv)
{
    plan p = { .o = { .seconds = 55, .limit = 12, .n = 96, .seed = 1 },
               .f = { .budgets = "4,8,16,32", .length = 8, .alpha = -1 } };
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL, &p.o.model, "the model to speed up"),
        { "draft-model", 'd', WG_FLAG_LIST, &p.o.models, "DRAFT", "a draft model to try; may be repeated", 0, 0 },
        { "draft", 0, WG_FLAG_LIST, &p.o.drafts, "KIND[:k=v,...]", "another drafter to try; may be repeated", 0, 0 },
        { "seconds", 's', WG_FLAG_INT, &p.o.seconds, "N", "time budget in seconds, loading included", 5, 86400 },
        { "prompts", 'p', WG_FLAG_STRING, &p.o.prompts, "FILE", "prompts like yours (JSONL), instead of the built-in ones", 0,
          0 },
        { "chat", 0, WG_FLAG_CHOICE, &p.o.chat_name, WG_CHAT_VALUES, WG_CHAT_DOC " (else the model's, where it has one)", 0,
          0 },
        { "system", 0, WG_FLAG_STRING, &p.o.system, "TEXT", WG_SYSTEM_DOC, 0, 0 },
        { "limit", 0, WG_FLAG_INT, &p.o.limit, "N", "use the first N prompts of FILE", 1, WG_FORECAST_TEXTS },
        { "n", 'n', WG_FLAG_INT, &p.o.n, "N", "most new tokens of a text", 1, 100000 },
        { "temp", 't', WG_FLAG_FLOAT, &p.o.temperature, "T", "temperature; 0 is greedy", 0, 100 },
        { "seed", 0, WG_FLAG_INT, &p.o.seed, "S", "seed of the texts", 1, 2147483647 },
        { "threads", 0, WG_FLAG_INT, &p.o.threads, "N", "number of threads; 0: all cores", 0, 256 },
        { "pin", 0, WG_FLAG_BOOL, &p.o.pin, NULL, "bind each worker thread to a processor of its own", 0, 0 },
        { "kv-type", 0, WG_FLAG_CHOICE, &p.o.kv_name, WG_KV_TYPE_VALUES, "of the target: " WG_KV_TYPE_DOC " (f16)", 0, 0 },
        { "quantize", 0, WG_FLAG_STRING, &p.o.quantize, "T[,P=T]...", "of the target: " WG_QUANTIZE_DOC, 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &p.o.json, NULL, "JSON objects, one a line", 0, 0 },
        { "batch", 'b', WG_FLAG_STRING, &p.batches, "N|A..B",
          "instead, for one -d: predict chains and trees at N sequences of a step, or the best draft at each of A..B", 0, 0 },
        { "vllm", 0, WG_FLAG_BOOL, &p.f.vllm, NULL, "print the chains of --batch A..B as vLLM's --speculative-config", 0, 0 },
        { "alpha", 'a', WG_FLAG_FLOAT, &p.f.alpha, "A",
          "predict by this acceptance of a draft token (0..1) instead of measuring it; negative: measure", 0, 1 },
        { "accept", 0, WG_FLAG_STRING, &p.f.accept, "P/P/...",
          "with --alpha: probability that the 1st, 2nd, ... child is accepted, for trees", 0, 0 },
        { "max-length", 'l', WG_FLAG_INT, &p.f.length, "N", "predictions: longest chain and deepest tree", 1, WG_TREE_MAX - 1 },
        { "budgets", 0, WG_FLAG_STRING, &p.f.budgets, "4,8,16", "predictions: numbers of draft tokens of trees", 0, 0 },
        { "context", 0, WG_FLAG_INT, &p.f.context, "N", "predictions: context length in tokens; 0: as in the texts", 0, 1e7 },
        { 0 },
    };
    const int done = wg_cli_parse("plan", flags, argc, argv, NULL, 0, 0);
    wg_error err;
    if (done >= 0) return done;
    if (!wg_cli_chat("plan", p.o.chat_name, p.o.system, &p.o.chat)) return WG_EXIT_USAGE;
    p.o.kv_type = wg_cli_kv_type(p.o.kv_name);
    if (p.batches || p.f.vllm || p.f.alpha >= 0 || p.f.accept) return foretell(&p);
    return wg_plan_speculation(&p.o, &err) ? wg_cli_fail(&err) : WG_EXIT_OK;
}
