/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as the summary.json of an otherwise complete run with two requests: its page, Markdown, tables, its index
 * and a comparison with itself are written or refused with a message, and no memory is held afterwards. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "experiments/analysis/compare.h"
#include "experiments/report/report.h"
#include "experiments/record/resume_cursor.h"
#include "experiments/report/engine_metrics.h"
#include "experiments/report/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void write_file(const char *dir, const char *name, const void *bytes, size_t n)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f)) abort();
}

static void write_text(const char *dir, const char *name, const char *text) { write_file(dir, name, text, strlen(text)); }

static void remove_all(const char *dir)
{
    static const char *const name[] = { "config.json", "machine.json", "requests.jsonl", "summary.json" };
    char path[64];
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, name[i]);
        unlink(path);
    }
    rmdir(dir);
}

/* What a failure owes: a code and words. */
static void check(wg_status s, const wg_error *err)
{
    if (s && (err->code != s || !err->text[0])) abort();
}

static void read_all(const char *dir, FILE *f)
{
    wg_error err = { 0 };
    wg_run_reader *run;
    json_t *page = NULL;
    wg_resume_finished(dir);
    check(wg_report_index(&page, dir, &err), &err);
    json_decref(page);
    page = NULL;
    const wg_status s = wg_run_reader_open(&run, dir, &err);
    check(s, &err);
    if (s) return;
    check(wg_report_document(&page, run, false, &err), &err);
    json_decref(page);
    check(wg_report_markdown(f, run, NULL, &err), &err);
    if (json_is_array(json_object_get(run->summary, "cells"))) {
        wg_table_print(f, run->summary, NULL, 0);
        wg_table_print_json(f, run->summary);
    }
    for (const wg_engine_metric *m = wg_engine_metrics; m->engine; m++)
        for (size_t i = 0; i < json_array_size(json_object_get(run->summary, "cells")); i++)
            json_decref(wg_engine_metric_value(m, json_array_get(json_object_get(run->summary, "cells"), i)));
    for (int rows = WG_CSV_CELLS; run->summary && rows <= WG_CSV_PARTS; rows++)
        wg_table_print_csv(f, run->summary, (wg_csv_rows)rows, NULL);
    const wg_compared both[2] = { { run, -1 }, { run, -1 } };
    json_t *o;
    if (wg_compare(&o, both, 2, &err)) abort();
    json_decref(o);
    wg_run_reader_close(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const record =
        "{\"arm\":\"%s\",\"cell\":%s,\"group\":0,\"prompt\":0,\"repeat\":0,\"id\":\"a\",\"category\":\"x\",\"status\":\"ok\","
        "\"prompt_sha256\":\"h\",\"prompt_tokens\":3,\"tokens\":4,\"decode_ms\":2,\"ids\":[1,2,3,4],\"text\":\"a b\"}\n";
    char dir[] = "/tmp/wager-fuzz-XXXXXX", lines[1024], *text = NULL;
    size_t size = 0;
    if (!mkdtemp(dir)) abort();
    write_text(dir, "config.json", "{\"name\": \"t\", \"draft\": {\"kind\": \"ngram\"}, \"sweep\": {\"draft.k\": [2, 4]}}");
    write_text(dir, "machine.json", "{\"started\": \"now\", \"cpu\": {\"model\": \"x\"}}");
    int at = snprintf(lines, sizeof lines, record, "baseline", "null");
    snprintf(lines + at, sizeof lines - (size_t)at, record, "cell", "0");
    write_text(dir, "requests.jsonl", lines);
    write_file(dir, "summary.json", bytes, n);
    const size_t live = wg_mem_read().live_blocks;
    FILE *f = open_memstream(&text, &size);
    if (!f) abort();
    read_all(dir, f);
    fclose(f);
    free(text);
    remove_all(dir);
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
