/* SPDX-License-Identifier: MIT
 * The options of wager-serve. */
#include "serve/options.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json_foreign.h"
#include "core/base/nearest.h"

typedef enum option_kind { O_HUB, O_TEXT, O_CHOICE, O_INT, O_NUMBER, O_FLAG } option_kind;

typedef struct option_row {
    const char *name, *value; /* value: its name in the help, with O_CHOICE "a|b|c"; NULL: the option takes none */
    char letter;              /* short form; 0: none */
    option_kind kind;
    size_t at;
    double min, max;
    const char *doc;
} option_row;

#define AT(member) offsetof(wgs_options, member)
static const option_row rows[] = {
    { "model", "MODEL", 'm', O_TEXT, AT(model), 0, 0, "the model; -m may be left out" },
    { "hf", "OWNER/REPO[:QUANT]", 0, O_HUB, AT(model), 0, 0, "a model of a hub: as -m hf:OWNER/REPO[:QUANT] (wager pull)" },
    { "draft-model", "FILE", 'd', O_TEXT, AT(draft_model), 0, 0,
      "a draft model for the drafter auto, which chooses the draft length at each round, or no draft" },
    { "draft", "KIND[:k=v,...]", 0, O_TEXT, AT(draft), 0, 0, "a drafter and its options (wager list drafters)" },
    { "rule", "RULE", 0, O_TEXT, AT(rule), 0, 0, "verification rule; match keeps the text of plain decoding (match)" },
    { "config", "FILE", 0, O_TEXT, AT(config), 0, 0,
      "a config with target, draft, verify, sampling as in an experiment; options override it" },
    { "chat", "none|model|llama-2|llama-3|chatml|zephyr|vicuna", 0, O_CHOICE, AT(chat), 0, 0,
      "chat template; without it the model's own, and if it has none, messages joined by line ends" },
    { "device", "DEVICE", 0, O_TEXT, AT(device), 0, 0, "device of the target (cpu)" },
    { "ranks", "RANKS", 0, O_TEXT, AT(ranks), 0, 0,
      "ranks that share the matrices of the target: threads:N; under mpirun those that it started (docs/ranks.md)" },
    { "kv-type", "f32|f16|bf16|q8", 0, O_CHOICE, AT(kv_type), 0, 0, "element type of the KV cache (f16)" },
    { "profile", "FILE|new|nominal", 0, O_TEXT, AT(profile), 0, 0,
      "prices of passes, by which auto and adaptive lengths decide: a file; new: measure now; nominal: constants; without it: "
      "measured once and kept in ~/.cache/wager" },
    { "threads", "N", 0, O_INT, AT(threads), 0, 256, "number of threads of the engine; 0: all cores (0)" },
    { "name", "NAME", 0, O_TEXT, AT(name), 0, 0, "name of the model in the API (the file's name)" },
    { "host", "ADDRESS", 0, O_TEXT, AT(host), 0, 0, "address to listen at (127.0.0.1)" },
    { "port", "N", 0, O_INT, AT(port), 0, 65535, "port; 0: a free one (8080)" },
    { "api-key", "KEY", 0, O_TEXT, AT(key), 0, 0, "key that clients must send: Authorization: Bearer KEY" },
    { "api-key-file", "FILE", 0, O_TEXT, AT(key_file), 0, 0,
      "file whose first line is the key, so that `ps` does not show it" },
    { "cors", "ORIGIN", 0, O_TEXT, AT(cors), 0, 0,
      "origin whose web pages may call the API, such as https://example.org; *: any" },
    { "allow-host", "NAMES", 0, O_TEXT, AT(allow_host), 0, 0,
      "further host names, separated by commas, by which clients may address this server; *: any. On 127.0.0.1 without a "
      "key only localhost and 127.* are accepted" },
    { "batch", "N", 'b', O_INT, AT(batch), 1, 512, "number of answers that are generated at once (8)" },
    { "queue", "N", 0, O_INT, AT(queue), 1, 100000, "number of answers that may wait; more are refused with 429 (256)" },
    { "mode", "continuous|dynamic|static", 0, O_CHOICE, AT(mode), 0, 0, "when requests enter the batch (continuous)" },
    { "speculation", "fixed|off|adaptive", 0, O_CHOICE, AT(speculation), 0, 0,
      "draft lengths; fixed: the drafter's; adaptive: chosen by load; off: no drafts (fixed)" },
    { "pages", "N", 0, O_INT, AT(pages), 0, 1e9, "number of pages of the KV cache; 0: room for --batch full contexts (0)" },
    { "prefill-rows", "N", 0, O_INT, AT(prefill_rows), 0, 1e6, "most prompt tokens that one step reads; 0: 256 (0)" },
    { "no-prefix-cache", NULL, 0, O_FLAG, AT(no_prefix_cache), 0, 0,
      "do not keep the KV cache of ended texts for prompts that begin alike" },
    { "max-tokens", "N", 0, O_INT, AT(max_tokens), 0, 1e9, "most tokens of an answer; 0: as many as the context holds (0)" },
    { "temp", "T", 't', O_NUMBER, AT(temperature), 0, 100, "temperature of requests without one (1)" },
    { "top-k", "K", 0, O_INT, AT(top_k), 0, 1e9, "top_k of requests without one; 0 keeps all tokens (0)" },
    { "top-p", "P", 0, O_NUMBER, AT(top_p), 0, 1, "top_p of requests without one (1)" },
    { "min-p", "P", 0, O_NUMBER, AT(min_p), 0, 1, "min_p of requests without one (0)" },
    { "details", "none|summary|detailed", 0, O_CHOICE, AT(details), 0, 0,
      "how much answers report about speculation (summary)" },
    { "metrics-prefix", "P", 0, O_TEXT, AT(metrics_prefix), 0, 0,
      "prefix of the metric names at /metrics; vllm: suits vLLM's dashboards (wager:)" },
    { "no-page", NULL, 0, O_FLAG, AT(no_page), 0, 0, "do not serve the chat page at /" },
    { "max-body", "KIB", 0, O_INT, AT(body_kib), 1, 1 << 20,
      "largest body of a request, in KiB; a larger one is refused with 413 (8192)" },
    { "max-header", "KIB", 0, O_INT, AT(header_kib), 4, 1024,
      "largest header of a request, in KiB; a larger one is refused with 431 (32)" },
    { "max-uploads", "MIB", 0, O_INT, AT(uploads_mib), 1, 1 << 20,
      "most memory for the bodies of all requests, in MiB; more are refused with 503 (256)" },
    { "max-connections", "N", 0, O_INT, AT(connections), 1, 60000, "most open connections (2048)" },
    { "max-streams", "N", 0, O_INT, AT(streams), 1, 60000, "most requests that run or wait; more are refused with 429 (1024)" },
    { "request-timeout", "S", 0, O_NUMBER, AT(request_timeout), 0, 1e6,
      "longest time of an answer, in seconds; 0: no limit (600)" },
    { "idle-timeout", "S", 0, O_NUMBER, AT(idle_timeout), 0, 1e6,
      "close a connection after S seconds without a byte; 0: never (75)" },
    { "shutdown-timeout", "S", 0, O_NUMBER, AT(shutdown_timeout), 0, 1e6,
      "seconds that running answers get to end after SIGTERM (30)" },
    { "ping", "S", 0, O_NUMBER, AT(ping), 0, 1e6, "send a comment in a stream after S silent seconds; 0: never (10)" },
    { NULL, NULL, 0, O_FLAG, 0, 0, 0, NULL },
};

void wgs_options_help(FILE *f)
{
    fputs("wager-serve MODEL [options]\n\nServes a model by the OpenAI API, with speculative decoding (docs/serving.md).\n\n",
          f);
    for (const option_row *o = rows; o->name; o++) {
        char head[64], letter[8] = "";
        if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
        snprintf(head, sizeof head, "%s--%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
        fprintf(f, "  %-26s %s\n", head, o->doc);
    }
    fputs("  -h, --help                 this text\n  --version                  the version\n", f);
}

static int usage(const char *what, const char *option, const char *expected)
{
    fprintf(stderr, "wager serve: %s%s%s%s; wager serve --help lists the options\n", what, option,
            expected ? ": expected " : "", expected ? expected : "");
    return WGS_EXIT_USAGE;
}

/* " (did you mean 'x'?)", x the candidate nearest to word, or "". */
static const char *hint_of(const char *word, const char *dashes, const char *const *candidates, char out[96])
{
    const char *near = wg_nearest(word, candidates);
    *out = 0;
    if (near) snprintf(out, 96, " (did you mean '%s%s'?)", dashes, near);
    return out;
}

static int unknown(const char *option)
{
    const char *names[sizeof rows / sizeof *rows + 2];
    char hint[96], name[WG_NEAREST_WORD + 1];
    int n = 0;
    for (const option_row *o = rows; o->name; o++) names[n++] = o->name;
    names[n++] = "help", names[n++] = "version", names[n] = NULL;
    const char *bare = option + strspn(option, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(bare, "="), bare);
    fprintf(stderr, "wager serve: there is no option %s%s; wager serve --help lists the options\n", option,
            hint_of(name, "--", names, hint));
    return WGS_EXIT_USAGE;
}

/* Checks that the value is one of the option's "a|b|c". Returns -1, or an exit status after a message. */
static int check_choice(const option_row *o, const char *value)
{
    enum { MOST = 16 };
    char text[128], hint[96], *save;
    const char *words[MOST];
    int n = 0;
    snprintf(text, sizeof text, "%s", o->value);
    for (char *w = strtok_r(text, "|", &save); w && n < MOST - 1; w = strtok_r(NULL, "|", &save)) words[n++] = w;
    words[n] = NULL;
    for (int i = 0; i < n; i++)
        if (!strcmp(words[i], value)) return -1;
    fprintf(stderr, "wager serve: --%s %s: expected one of: ", o->name, value);
    for (int i = 0; i < n; i++) fprintf(stderr, "%s%s", i ? ", " : "", words[i]);
    fprintf(stderr, "%s\n", hint_of(value, "", words, hint));
    return WGS_EXIT_USAGE;
}

static int out_of_range(const option_row *o, const char *value)
{
    fprintf(stderr, "wager serve: --%s %s: expected %s from %g to %g\n", o->name, value,
            o->kind == O_INT ? "a whole number" : "a number", o->min, o->max);
    return WGS_EXIT_USAGE;
}

static int empty(const option_row *o)
{
    char name[64];
    snprintf(name, sizeof name, "--%s", o->name);
    return usage(name, " is empty", o->value);
}

/* Sets an option. Returns -1, or an exit status after a message. */
static int set(wgs_options *all, const option_row *o, const char *value)
{
    char *place = (char *)all + o->at, *end, name[sizeof all->hub];
    if (o->kind == O_HUB) {
        if ((size_t)snprintf(name, sizeof name, "hf:%s", value) >= sizeof name)
            return usage("no name of a repository: ", value, NULL);
        if (all->model && strcmp(all->model, name) != 0) return usage("a second model: ", name, NULL);
        all->model = strcpy(all->hub, name);
        return -1;
    }
    if (o->kind == O_FLAG) *(bool *)place = true;
    else if (o->kind == O_TEXT || o->kind == O_CHOICE) {
        const char **text = (const char **)place;
        if (!*value) return empty(o);
        if (o->at == AT(model) && *text && strcmp(*text, value) != 0) return usage("a second model: ", value, NULL);
        if (o->kind == O_CHOICE && check_choice(o, value) >= 0) return WGS_EXIT_USAGE;
        *text = value;
    } else {
        const double d = strtod(value, &end);
        if (!*value || *end || !(d >= o->min && d <= o->max) || (o->kind == O_INT && d != floor(d)))
            return out_of_range(o, value);
        if (o->kind == O_INT) *(long *)place = (long)d;
        else *(double *)place = d;
    }
    return -1;
}

static const option_row *find(const char *word, size_t n, bool letter)
{
    for (const option_row *o = rows; o->name; o++)
        if ((letter && n == 1 && o->letter == *word) || (strlen(o->name) == n && !memcmp(o->name, word, n))) return o;
    return NULL;
}

/* Whether a text has the form of an origin that browsers send: SCHEME://HOST or SCHEME://HOST:PORT. */
static bool is_origin(const char *s)
{
    const char *host = strstr(s, "://");
    return host && host > s && host[3] && !host[3 + strcspn(host + 3, "/ \t\r\n,")] && !strpbrk(s, " \t\r\n,");
}

/* Whether names of Prometheus may begin with a text. */
static bool is_metric_prefix(const char *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789";
    return !s[strspn(s, letters)] && !(*s >= '0' && *s <= '9');
}

static int check(const wgs_options *o)
{
    if (o->draft && o->draft_model) return usage("-d FILE and --draft KIND", " say the same thing; give one", NULL);
    if (o->key && o->key_file) return usage("--api-key and --api-key-file", " say the same thing; give one", NULL);
    if (o->cors && strcmp(o->cors, "*") != 0 && !is_origin(o->cors))
        return usage("--cors ", o->cors, "the origin of pages, such as https://example.org, or *");
    if (!is_metric_prefix(o->metrics_prefix))
        return usage("--metrics-prefix ", o->metrics_prefix, "letters, digits, '_' and ':', and no digit first");
    if (!o->model && !o->config) return usage("no model", " is named", "wager serve MODEL");
    return -1;
}

int wgs_options_read(wgs_options *o, int argc, char **argv)
{
    *o = (wgs_options){ .rule = NULL, .host = "127.0.0.1", .port = 8080, .mode = "continuous", .speculation = "fixed" };
    o->details = "summary";
    o->metrics_prefix = "wager:";
    o->temperature = o->top_p = o->min_p = -1;
    o->top_k = -1;
    o->body_kib = 8192;
    o->header_kib = 32;
    o->uploads_mib = 256;
    o->connections = 2048;
    o->streams = 1024;
    o->request_timeout = 600;
    o->idle_timeout = 75;
    o->shutdown_timeout = 30;
    o->ping = 10;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = NULL;
        if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
            wgs_options_help(stdout);
            return WGS_EXIT_OK;
        }
        if (!strcmp(word, "--version")) {
            printf("wager-serve %s\n", wg_version());
            return WGS_EXIT_OK;
        }
        if (word[0] != '-') {
            const int done = set(o, find("model", 5, false), word);
            if (done >= 0) return done;
            continue;
        }
        const bool letter = word[1] != '-';
        word += letter ? 1 : 2;
        const char *equals = letter ? NULL : strchr(word, '=');
        const option_row *row = find(word, equals ? (size_t)(equals - word) : strlen(word), letter);
        if (!row) return unknown(argv[i]);
        if (row->kind == O_FLAG && equals) return usage(argv[i], " takes no value", NULL);
        if (row->kind != O_FLAG && !(value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL))
            return usage(argv[i], " needs a value", row->value);
        const int done = set(o, row, value);
        if (done >= 0) return done;
        if (value) wg_given_add(&o->given, argv[equals ? i : i - 1], value);
    }
    return check(o);
}

/* "KIND:k=v,..." as an object of a config; commas within braces belong to the value. NULL: a part has no '='. */
static json_t *named(const char *spec, const char *name_key)
{
    const size_t kind = strcspn(spec, ":");
    json_t *o = json_object();
    json_object_set_new(o, name_key, json_stringn(spec, kind));
    for (const char *s = spec + kind; *s;) {
        const char *key = ++s, *equals;
        int depth = 0;
        for (; *s && (depth || *s != ','); s++) depth += (*s == '{') - (*s == '}');
        equals = memchr(key, '=', (size_t)(s - key));
        if (!equals) {
            json_decref(o);
            return NULL;
        }
        const size_t n = (size_t)(s - equals - 1);
        json_t *value = json_loadb(equals + 1, n, JSON_DECODE_ANY, NULL);
        if (!value || json_is_string(value) || json_is_object(value)) {
            json_decref(value);
            value = json_stringn(equals + 1, n);
        }
        char word[64] = "";
        if ((size_t)(equals - key) < sizeof word) memcpy(word, key, (size_t)(equals - key));
        json_object_set_new(o, word, value);
    }
    return o;
}

/* Records under "//from" that the value at a path of the config came from an option, which messages about it then name. */
static void note(json_t *config, const char *path, const char *option, const char *value)
{
    json_t *from = json_object_get(config, "//from");
    if (!from) json_object_set_new(config, "//from", from = json_object());
    json_object_set_new(from, path, json_sprintf("%s%s%s", option, *option ? " " : "", value));
}

/* The section of that name; it is created where it is missing. */
static json_t *section(json_t *config, const char *name)
{
    json_t *o = json_object_get(config, name);
    if (!json_is_object(o)) json_object_set_new(config, name, o = json_object());
    return o;
}

static void put_text(json_t *config, const char *where, const char *key, const char *option, const char *value)
{
    char path[64];
    if (!value) return;
    snprintf(path, sizeof path, "%s.%s", where, key);
    json_object_set_new(section(config, where), key, json_string(value));
    note(config, path, option, value);
}

static bool put_component(json_t *config, const char *where, const char *name_key, const char *option, const char *spec,
                          wgs_problem *p)
{
    char path[64];
    if (!spec) return true;
    json_t *o = named(spec, name_key);
    if (!o) return wgs_refuse(p, 400, NULL, "%s %s: expected NAME or NAME:option=value,...", option, spec);
    json_object_set_new(config, where, o);
    note(config, where, option, spec);
    snprintf(path, sizeof path, "%s.%s", where, name_key);
    note(config, path, option, spec);
    return true;
}

/* The drafter of -d FILE: `auto` over chains of up to eight tokens of that model; `model` where the target runs on another
 * device or in another program, because a device runs rounds alone only with chains of one length. */
static json_t *by_model(const json_t *config, const char *file)
{
    const json_t *target = json_object_get(config, "target");
    const char *device = json_string_value(json_object_get(target, "device"));
    const char *kind = json_string_value(json_object_get(target, "kind"));
    if ((device && strcmp(device, "cpu")) || (kind && strcmp(kind, "model")))
        return json_pack("{s:s, s:s}", "kind", "model", "model", file);
    return json_pack("{s:s, s:o}", "kind", "auto", "of", json_sprintf("model:model={%s};length=8", file));
}

/* A value of the section `sampling`: that of the option if it is given, else of the config, else `usual`. */
static double put_sampling(json_t *config, const char *key, double given, double usual)
{
    json_t *sampling = section(config, "sampling");
    if (given >= 0)
        json_object_set_new(sampling, key, given == floor(given) ? json_integer((json_int_t)given) : json_real(given));
    const json_t *v = json_object_get(sampling, key);
    return json_is_number(v) ? json_number_value(v) : usual;
}

static void put_all_sampling(wgs_options *o, json_t *config)
{
    const double temperature =
        o->temperature < 0 && !json_object_get(json_object_get(config, "sampling"), "temperature") ? 1 : o->temperature;
    o->sampling = (wg_sampler_options){ .size = sizeof o->sampling };
    o->sampling.temperature = put_sampling(config, "temperature", temperature, 1);
    o->sampling.top_p = put_sampling(config, "top_p", o->top_p, 1);
    o->sampling.min_p = put_sampling(config, "min_p", o->min_p, 0);
    o->sampling.top_k = (int)put_sampling(config, "top_k", (double)o->top_k, 0);
    o->sampling.penalty_window = (int)put_sampling(config, "penalty_window", -1, 0);
    o->sampling.repetition_penalty = put_sampling(config, "repetition_penalty", -1, 1);
    o->sampling.frequency_penalty = put_sampling(config, "frequency_penalty", -1, 0);
    o->sampling.presence_penalty = put_sampling(config, "presence_penalty", -1, 0);
}

char *wgs_options_config(wgs_options *o, wgs_problem *p)
{
    json_error_t e;
    json_t *c = o->config ? json_load_file(o->config, JSON_REJECT_DUPLICATES, &e) : json_object();
    char *text = NULL;
    if (!c) {
        if (e.line < 0) wgs_refuse(p, 400, NULL, "--config %s: %s", o->config, e.text);
        else wgs_refuse(p, 400, NULL, "--config %s:%d:%d: %s", o->config, e.line, e.column, wg_json_why(&e));
        return NULL;
    }
    if (o->config) note(c, "", "--config", o->config);
    put_text(c, "target", "model", "-m", o->model);
    put_text(c, "target", "device", "--device", o->device);
    put_text(c, "target", "ranks", "--ranks", o->ranks);
    put_text(c, "target", "kv_type", "--kv-type", o->kv_type);
    put_text(c, "prompts", "chat", "--chat", o->chat);
    if (o->profile) json_object_set_new(c, "profile", json_string(o->profile)), note(c, "profile", "--profile", o->profile);
    if (o->threads) json_object_set_new(section(c, "target"), "threads", json_integer(o->threads));
    if (o->draft_model) json_object_set_new(c, "draft", by_model(c, o->draft_model)), note(c, "draft", "-d", o->draft_model);
    if (o->batch || !json_object_get(c, "batch")) json_object_set_new(c, "batch", json_integer(o->batch ? o->batch : 8));
    put_all_sampling(o, c);
    const char *rule = o->rule || json_object_get(c, "verify") ? o->rule : "match";
    if (put_component(c, "draft", "kind", "--draft", o->draft, p) && put_component(c, "verify", "rule", "--rule", rule, p))
        text = json_dumps(c, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text && !p->http) wgs_refuse(p, 500, NULL, "out of memory for the config of the engine");
    json_decref(c);
    return text;
}

void wgs_options_defaults(const wgs_options *o, wgs_request *r)
{
    r->temperature = o->sampling.temperature;
    r->top_p = o->sampling.top_p;
    r->top_k = o->sampling.top_k;
    r->min_p = o->sampling.min_p;
    r->repetition_penalty = o->sampling.repetition_penalty;
    r->frequency_penalty = o->sampling.frequency_penalty;
    r->presence_penalty = o->sampling.presence_penalty;
    r->detail = o->details[0] == 'n' ? WGS_DETAIL_NONE : o->details[0] == 's' ? WGS_DETAIL_SUMMARY : WGS_DETAIL_STEPS;
}

wg_batching wgs_options_mode(const wgs_options *o)
{
    return o->mode[0] == 'd' ? WG_BATCHING_DYNAMIC : o->mode[0] == 's' ? WG_BATCHING_STATIC : WG_BATCHING_CONTINUOUS;
}

wg_speculation wgs_options_speculation(const wgs_options *o)
{
    return o->speculation[0] == 'o'   ? WG_SPECULATION_OFF
           : o->speculation[0] == 'a' ? WG_SPECULATION_ADAPTIVE
                                      : WG_SPECULATION_FIXED;
}
