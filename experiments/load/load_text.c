/* SPDX-License-Identifier: MIT
 * Load tests as text (load_text.h). */
#include "experiments/load/load_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/base/json_number.h"

static const struct {
    const char *name, *title;
} rows[] = {
    { "ttft", "TTFT" },        { "tpot", "TPOT" },
    { "itl", "ITL, a round" }, { "itl_per_token", "ITL per token" },
    { "e2el", "E2EL" },        { "client_queue_time", "wait in the client" },
};

static double of(const json_t *m, const char *form, const char *name)
{
    char key[80];
    snprintf(key, sizeof key, form, name);
    return wg_json_measured(m, key);
}

/* "p99" of "p99_ttft_ms": the percentiles are those of the object. */
static void print_row(FILE *f, const json_t *m, const char *name, const char *title, bool head)
{
    const char *key;
    json_t *v;
    char end[80];
    snprintf(end, sizeof end, "_%s_ms", name);
    if (head) fprintf(f, "%-20s %9s %9s", "ms", "mean", "median");
    else fprintf(f, "%-20s %9.2f %9.2f", title, of(m, "mean_%s_ms", name), of(m, "median_%s_ms", name));
    json_object_foreach((json_t *)(uintptr_t)m, key, v) {
        const char *at = strstr(key, end);
        if (key[0] != 'p' || !at || at[strlen(end)] || strspn(key + 1, "0123456789.") != (size_t)(at - key - 1)) continue;
        if (head) fprintf(f, " %9.*s", (int)(at - key), key);
        else fprintf(f, " %9.2f", json_is_number(v) ? json_number_value(v) : NAN);
    }
    fputc('\n', f);
}

static void print_failures(FILE *f, const json_t *m)
{
    const char *kind, *between = ": ";
    json_t *v;
    fprintf(f, "%lld of %lld requests completed", (long long)wg_json_int(m, "completed"), (long long)wg_json_int(m, "planned"));
    json_object_foreach(json_object_get(m, "failed_by_kind"), kind, v) {
        if (json_integer_value(v) == 0) continue;
        fprintf(f, "%s%lld %s", between, (long long)json_integer_value(v), kind);
        between = ", ";
    }
    if (wg_json_int(m, "not_sent")) fprintf(f, "%s%lld not sent", between, (long long)wg_json_int(m, "not_sent"));
    fprintf(f, ", in %.2f s\n", wg_json_real(m, "duration"));
}

/* Prints errors of the server without control characters. */
static void print_errors(FILE *f, const json_t *m)
{
    const char *kind;
    json_t *v;
    json_object_foreach(json_object_get(m, "first_errors"), kind, v) {
        fprintf(f, "first %s: ", kind);
        for (const char *p = json_string_value(v); p && *p; p++) fputc((unsigned char)*p < ' ' || *p == 127 ? ' ' : *p, f);
        fputc('\n', f);
    }
}

void wg_load_print(FILE *f, const json_t *m)
{
    const json_t *model = json_object_get(m, "latency_model");
    print_failures(f, m);
    print_errors(f, m);
    if (wg_json_int(m, "completed") == 0) return;
    fprintf(f, "%.2f requests/s, %.1f tokens/s out, %.1f in and out; %lld requests at once at most\n",
            wg_json_real(m, "request_throughput"), wg_json_real(m, "output_throughput"),
            wg_json_real(m, "total_token_throughput"), (long long)wg_json_int(m, "max_concurrent_requests"));
    if (json_is_number(json_object_get(m, "request_goodput")))
        fprintf(f, "goodput %.2f requests/s within the limits\n", wg_json_real(m, "request_goodput"));
    fputc('\n', f);
    print_row(f, m, "ttft", "", true);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!isnan(of(m, "mean_%s_ms", rows[i].name))) print_row(f, m, rows[i].name, rows[i].title, false);
    fprintf(f, "\n%.2f tokens an event%s\n", wg_json_measured(m, "tokens_per_event"),
            wg_json_measured(m, "event_tokens_known") < 1 ? ", of which not all say how many" : "");
    fprintf(f, "TTFT + TPOT (n - 1) misses the measured latency of a request by %.2f %% (median), %.2f %% (p99)\n",
            100 * wg_json_measured(model, "median_relative_error"), 100 * wg_json_measured(model, "p99_relative_error"));
    if (json_object_get(m, "spec_decode_num_drafts"))
        fprintf(f, "speculation: %.2f tokens a pass that drafted, %.1f %% of the drafts accepted (by the server's %s)\n",
                wg_json_measured(m, "spec_decode_acceptance_length"), wg_json_measured(m, "spec_decode_acceptance_rate"),
                wg_json_word(m, "spec_decode_source"));
    fprintf(f, "client: %.0f %% of one processor\n",
            100 * wg_json_real(m, "client_cpu_s") / fmax(wg_json_real(m, "duration"), 1e-9));
}
