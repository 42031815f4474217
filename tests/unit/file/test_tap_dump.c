/* SPDX-License-Identifier: MIT
 * Dumps of hidden states: written and read back in both layouts, never half there, and every lie of a file refused by name. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/file/tap_dump.h"
#include "kernels/types.h"
#include "tests/temp.h"
#include "tests/unit/file/dump_bytes.h"

enum { DIM = 5, TAPS = 3, N = 7 };
static wg_error err;
static temp t;

static void must(wg_status s) { cr_assert_eq(s, WG_OK, "%s", err.text); }
static void setup(void) { temp_make(&t); }

static void remove_all(const char *dir)
{
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    cr_assert_eq(system(command), 0);
}

static void teardown(void)
{
    remove_all(t.dir);
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}

/* ---- there and back */

/* Column c of row i of sample s, exact in BF16. */
static float value(int s, int i, int c) { return (float)((s * 37 + i * 19 + c) % 251); }

static wg_dump_plan plan_of(wg_dump_layout layout, int type)
{
    return (wg_dump_plan){
        .layout = layout, .type = type, .tap = { 0, 2, 4 }, .taps = TAPS, .dim = DIM, .model = "some/model", .shard_bytes = 500
    };
}

/* Samples of N, 1 and N + 2 tokens, in pieces of two rows. */
static void write_three(const char *dir, const wg_dump_plan *plan)
{
    const int columns = TAPS + (plan->layout == WG_DUMP_DEEPSPEC);
    wg_dump_writer *w;
    must(wg_dump_create(&w, dir, plan, &err));
    for (int s = 0; s < 3; s++) {
        const int n = s == 1 ? 1 : N + s;
        int32_t token[N + 2];
        uint8_t loss[N + 2];
        for (int i = 0; i < n; i++) token[i] = 100 * s + i, loss[i] = i > 2;
        must(wg_dump_begin(w, token, s ? loss : NULL, n, &err));
        for (int i = 0; i < n; i += 2) {
            float x[2 * (TAPS + 1) * DIM];
            const int rows = n - i < 2 ? 1 : 2;
            for (int k = 0; k < rows * columns * DIM; k++) x[k] = value(s, i + k / (columns * DIM), k % (columns * DIM));
            must(wg_dump_rows(w, x, rows, &err));
        }
        must(wg_dump_end(w, &err));
    }
    must(wg_dump_finish(w, &err));
}

static void read_three(const char *dir, const wg_dump_plan *plan)
{
    const bool cache = plan->layout == WG_DUMP_DEEPSPEC;
    wg_dump *d;
    int tap[WG_DUMP_TAPS];
    must(wg_dump_open(&d, dir, &err));
    cr_assert(wg_dump_layout_of(d) == plan->layout && wg_dump_samples(d) == 3);
    cr_assert_eq(wg_dump_taps(d, tap), cache ? TAPS : 0);
    if (cache) cr_assert(tap[0] == 0 && tap[1] == 2 && tap[2] == 4);
    for (int s = 2; s >= 0; s--) {
        wg_dump_sample x;
        must(wg_dump_sample_at(d, s, &x, &err));
        cr_assert(x.n == (s == 1 ? 1 : N + s) && x.taps == TAPS && x.dim == DIM && x.type == plan->type);
        cr_assert((x.last != NULL) == cache && (x.loss != NULL) == cache);
        for (int i = 0; i < x.n; i++) {
            float row[DIM];
            cr_assert_eq(wg_dump_token(&x, i), 100 * s + i);
            if (cache) cr_assert_eq(x.loss[i], s == 0 || i > 2);
            for (int c = -1; c < TAPS; c++) {
                if (c < 0 && !cache) continue;
                wg_dump_row(&x, i, c, row);
                for (int k = 0; k < DIM; k++) cr_assert_eq(row[k], value(s, i, (c < 0 ? TAPS : c) * DIM + k));
            }
        }
    }
    wg_dump_close(d);
}

Test(tap_dump, read_back, .init = setup, .fini = teardown)
{
    static const struct {
        wg_dump_layout layout;
        int type, files;
    } row[] = { { WG_DUMP_VLLM, WG_BF16, 3 }, { WG_DUMP_VLLM, WG_F32, 3 }, { WG_DUMP_DEEPSPEC, WG_BF16, 4 } };
    for (int i = 0; i < 3; i++) {
        char dir[512], name[8];
        const wg_dump_plan plan = plan_of(row[i].layout, row[i].type);
        snprintf(name, sizeof name, "d%d", i);
        snprintf(dir, sizeof dir, "%s", temp_at(&t, name));
        write_three(dir, &plan);
        cr_assert_eq(dir_count(dir), row[i].files);
        read_three(dir, &plan);
        wg_dump_writer *w;
        cr_assert_eq(wg_dump_create(&w, dir, &plan, &err), WG_EINVAL);
        cr_assert(strstr(err.text, ": is not empty; name a new folder for the dump"), "%s", err.text);
    }
}

/* The bytes of a cache, as DeepSpec's writer lays them out. */
Test(tap_dump, cache_bytes, .init = setup, .fini = teardown)
{
    const wg_dump_plan plan = plan_of(WG_DUMP_DEEPSPEC, WG_BF16);
    char dir[512], path[600];
    snprintf(dir, sizeof dir, "%s", temp_at(&t, "d"));
    write_three(dir, &plan);
    snprintf(path, sizeof path, "%s/samples.idx", dir);
    size_t n = 0;
    char *index = file_read(path, &n);
    cr_assert_eq(n, 3 * 56);
    uint8_t want[56];
    enum { FIRST = N * (4 + 1 + 1 + 2 * DIM * (TAPS + 1)) };
    dump_record(want, 1, 0, 1, (const uint64_t[]){ FIRST, FIRST + 4, FIRST + 5, FIRST + 6, FIRST + 6 + 2 * DIM * TAPS });
    cr_assert_arr_eq(index + 56, want, 56);
    dump_record(want, 2, 1, N + 2,
                (const uint64_t[]){ 0, 4 * (N + 2), 5 * (N + 2), 6 * (N + 2), (N + 2) * (6 + 2 * DIM * TAPS) });
    cr_assert_arr_eq(index + 112, want, 56);
    free(index);
    snprintf(path, sizeof path, "%s/manifest.json", dir);
    json_t *m = json_load_file(path, 0, NULL);
    cr_assert(json_integer_value(json_object_get(m, "num_samples")) == 3 &&
              json_integer_value(json_object_get(m, "version")) == 2);
    const json_t *layers = json_object_get(m, "target_layer_ids");
    cr_assert(json_integer_value(json_array_get(layers, 0)) == -1 && json_integer_value(json_array_get(layers, 2)) == 3);
    json_decref(m);
}

Test(tap_dump, never_half, .init = setup, .fini = teardown)
{
    const int32_t token[] = { 1, 2 };
    const float x[(TAPS + 1) * DIM] = { 0 };
    for (int layout = 0; layout < 2; layout++) {
        const wg_dump_plan plan = plan_of((wg_dump_layout)layout, WG_BF16);
        wg_dump_writer *w;
        must(wg_dump_create(&w, temp_at(&t, "d"), &plan, &err));
        must(wg_dump_begin(w, token, NULL, 2, &err));
        must(wg_dump_rows(w, x, 1, &err));
        wg_dump_abandon(w);
        cr_assert_eq(dir_count(t.dir), 0);
    }
    wg_dump_plan plan = plan_of(WG_DUMP_DEEPSPEC, WG_F32);
    wg_dump_writer *w;
    cr_assert_eq(wg_dump_create(&w, "DIR", &plan, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "DIR: a DeepSpec cache is of type bf16; leave the type out, or choose the layout vllm");
    plan = plan_of(WG_DUMP_DEEPSPEC, WG_BF16);
    plan.tap[2] = 2;
    cr_assert_eq(wg_dump_create(&w, "DIR", &plan, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "DIR: the taps of a DeepSpec cache must ascend, or choose the layout vllm");
    file_write(temp_at(&t, "f"), "x", 1);
    cr_assert_eq(wg_dump_create(&w, temp_at(&t, "f/d"), &(wg_dump_plan){ .taps = 1, .dim = 1 }, &err), WG_EIO);
    cr_assert(strstr(err.text, ": cannot make the folder: "), "%s", err.text);
    unlink(temp_at(&t, "f"));
    plan = plan_of(WG_DUMP_DEEPSPEC, WG_BF16);
    plan.model = "\xff";
    must(wg_dump_create(&w, temp_at(&t, "d"), &plan, &err));
    cr_assert_eq(wg_dump_finish(w, &err), WG_EINVAL);
    cr_assert(strstr(err.text, ": the name of the model is not UTF-8"), "%s", err.text);
}

/* ---- lies of a file of a sample */

static wg_status read_sample(const char *header, size_t data, uint8_t fill, wg_dump_sample *s)
{
    const uint64_t n = strlen(header);
    uint8_t *bytes = malloc(8 + n + data);
    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, header, n);
    memset(bytes + 8 + n, fill, data);
    const wg_status status = wg_dump_read_sample("FILE", bytes, 8 + n + data, s, &err);
    free(bytes);
    return status;
}

#define TOKENS(type, shape, end) "\"token_ids\":{\"dtype\":\"" type "\",\"shape\":[" shape "],\"data_offsets\":[0," #end "]}"
#define STATES(type, shape, begin, end)                                                                                        \
    "\"hidden_states\":{\"dtype\":\"" type "\",\"shape\":[" shape "],\"data_offsets\":[" #begin "," #end "]}"

Test(tap_dump, lies_of_a_sample)
{
    static const struct {
        const char *header;
        size_t data;
        uint8_t fill;
        const char *text;
    } row[] = {
        { "{}", 0, 0,
          "FILE: there is no tensor 'token_ids': expected token_ids and hidden_states, as vLLM's extract_hidden_states writes "
          "them" },
        { "{" TOKENS("I64", "2", 16) "}", 16, 0, "FILE: there is no tensor 'hidden_states': expected " },
        { "{" TOKENS("F32", "2", 8) "," STATES("BF16", "2,1,1", 8, 12) "}", 12, 0,
          "FILE: tensor 'token_ids' is no list of tokens: expected (n) of I64 or I32" },
        { "{" TOKENS("I32", "2,1", 8) "," STATES("BF16", "2,1,1", 8, 12) "}", 12, 0, "FILE: tensor 'token_ids' is no list" },
        { "{" TOKENS("I32", "0", 0) "," STATES("BF16", "2,1,1", 0, 4) "}", 4, 0, "FILE: tensor 'token_ids' is no list" },
        { "{" TOKENS("I32", "2", 8) "," STATES("I16", "2,1,1", 8, 12) "}", 12, 0,
          "FILE: tensor 'hidden_states' is I16 of 3 dimensions: expected (tokens, layers up to 64, width) of F32, F16 or "
          "BF16" },
        { "{" TOKENS("I32", "2", 8) "," STATES("F16", "2,2", 8, 16) "}", 16, 0,
          "FILE: tensor 'hidden_states' is F16 of 2 dimensions: expected " },
        { "{" TOKENS("I32", "2", 8) "," STATES("F16", "2,1,0", 8, 8) "}", 8, 0, "FILE: tensor 'hidden_states' is F16 of 3 " },
        { "{" TOKENS("I32", "2", 8) "," STATES("F16", "1,65,1", 8, 138) "}", 138, 0,
          "FILE: tensor 'hidden_states' is F16 of 3 " },
        { "{" TOKENS("I32", "2", 8) "," STATES("F16", "3,1,1", 8, 14) "}", 14, 0,
          "FILE: hidden states of 3 tokens, and 2 tokens; the file is damaged: dump it again" },
        { "{" TOKENS("I32", "2", 8) "," STATES("F16", "2,1,1", 8, 12) "}", 12, 0xff,
          "FILE: token 0 of 2 is no token id: expected 0..2147483647; the file is damaged: dump it again" },
    };
    wg_dump_sample s;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        cr_assert_eq(read_sample(row[i].header, row[i].data, row[i].fill, &s), WG_EFORMAT, "%zu", i);
        cr_assert(strncmp(err.text, row[i].text, strlen(row[i].text)) == 0, "%zu: %s", i, err.text);
    }
    must(read_sample("{" TOKENS("I32", "2", 8) "," STATES("F16", "2,1,1", 8, 12) "}", 12, 0, &s));
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}

/* ---- lies of a cache */

#define MANIFEST                                                                                                               \
    "{\"version\":2,\"num_samples\":1,\"num_shards\":1,\"target_layer_ids\":[-1,3],\"hidden_size\":4,\"hidden_dtype\":"        \
    "\"bfloat16\",\"token_dtype\":\"int32\",\"mask_dtype\":\"uint8\",\"index_record_size\":56,\"shards\":[{\"shard_id\":0,"    \
    "\"file_name\":\"s.bin\"}]}"

static wg_status read_manifest(const char *text, wg_dump_cache *c)
{
    wg_json *doc;
    must(wg_json_parse(&doc, "FILE", text, strlen(text), &err));
    const wg_status s = wg_dump_read_manifest(c, doc, &err);
    wg_json_close(doc);
    return s;
}

Test(tap_dump, lies_of_a_manifest)
{
    static const struct {
        const char *from, *to, *text;
    } row[] = {
        { "\"version\":2", "\"version\":1",
          "FILE: key 'version' is no integer from 2 to 2; the file is damaged: dump it again" },
        { "\"num_samples\":1", "\"num_samples\":-1", "FILE: key 'num_samples' is no integer from 0 to 2147483647" },
        { "\"hidden_size\":4", "\"hidden_size\":\"4\"", "FILE: key 'hidden_size' is no integer from 1 to 16777216" },
        { "\"index_record_size\":56", "\"index_record_size\":64", "FILE: key 'index_record_size' is no integer from 56 to 56" },
        { "bfloat16", "float8_e5m2", "FILE: key 'hidden_dtype' is 'float8_e5m2', which is not read: expected bfloat16" },
        { "int32", "int64", "FILE: key 'token_dtype' is 'int64', which is not read: expected int32" },
        { "\"mask_dtype\":\"uint8\"", "\"mask\":1", "FILE: key 'mask_dtype' is '', which is not read: expected uint8" },
        { "[-1,3]", "[3,3]", "FILE: key 'target_layer_ids' is no ascending list of 1 to 64 layers from -1 on; " },
        { "[-1,3]", "[-2,3]", "FILE: key 'target_layer_ids' is no ascending list" },
        { "[-1,3]", "[]", "FILE: key 'target_layer_ids' is no ascending list" },
        { "\"num_shards\":1", "\"num_shards\":2", "FILE: 1 shards are listed, num_shards is 2; the file is damaged" },
        { "s.bin", "../s.bin", "FILE: shard 0: expected the 'shard_id' 0 and the 'file_name' of a file in the folder; " },
        { "\"shard_id\":0", "\"shard_id\":1", "FILE: shard 0: expected the 'shard_id' 0" },
        { MANIFEST, "[]", "FILE: is no JSON object; the file is damaged: dump it again" },
    };
    wg_dump_cache c;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char text[1024];
        const char *at = strstr(MANIFEST, row[i].from);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - MANIFEST), MANIFEST, row[i].to, at + strlen(row[i].from));
        cr_assert_neq(read_manifest(text, &c), WG_OK, "%s", text);
        cr_assert(strncmp(err.text, row[i].text, strlen(row[i].text)) == 0, "%zu: %s", i, err.text);
    }
    must(read_manifest(MANIFEST, &c));
    cr_assert(c.samples == 1 && c.dim == 4 && c.taps == 2 && c.tap[0] == 0 && c.tap[1] == 4 && c.shards == 1);
    wg_dump_cache_free(&c);
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}

Test(tap_dump, lies_of_an_index)
{
    enum { TOKENS_ = 3, SHARD = TOKENS_ * (6 + 2 * 4 * 3) };
    static const uint64_t fine[5] = { 0, 4 * TOKENS_, 5 * TOKENS_, 6 * TOKENS_, 6 * TOKENS_ + TOKENS_ * 16 };
    static const struct {
        uint64_t sample;
        uint32_t shard, n;
        const char *text;
    } row[] = {
        { 1, 0, TOKENS_, "INDEX: record 0 is of sample 1 with 3 tokens in shard 0 of 1; the file is damaged: dump it again" },
        { 0, 1, TOKENS_, "INDEX: record 0 is of sample 0 with 3 tokens in shard 1 of 1" },
        { 0, 0, 0, "INDEX: record 0 is of sample 0 with 0 tokens in shard 0 of 1" },
        { 0, 0, TOKENS_ + 1, "SHARD: target_last_hidden_states of 4 tokens at byte 66 ends behind the file of 90; " },
        { 0, 0, 0xffffffff, "SHARD: input_ids of 4294967295 tokens at byte 0 ends behind the file of 90; " },
    };
    wg_dump_cache c;
    wg_dump_record r;
    wg_dump_sample s;
    uint8_t index[56], *shard = calloc(1, SHARD);
    must(read_manifest(MANIFEST, &c));
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        dump_record(index, row[i].sample, row[i].shard, row[i].n, fine);
        wg_status st = wg_dump_read_record(&c, "INDEX", index, 56, 0, &r, &err);
        if (!st) st = wg_dump_place(&c, &r, "SHARD", shard, SHARD, &s, &err);
        cr_assert_eq(st, WG_EFORMAT);
        cr_assert(strncmp(err.text, row[i].text, strlen(row[i].text)) == 0, "%zu: %s", i, err.text);
    }
    cr_assert_eq(wg_dump_read_record(&c, "INDEX", index, 55, 0, &r, &err), WG_EFORMAT);
    cr_assert(strstr(err.text, "INDEX: 55 bytes are not the records of 1 samples, of 56 bytes each"), "%s", err.text);
    for (int k = 0; k < 5; k++) {
        uint64_t far[5];
        memcpy(far, fine, sizeof far);
        far[k] = UINT64_MAX - 1;
        dump_record(index, 0, 0, TOKENS_, far);
        must(wg_dump_read_record(&c, "INDEX", index, 56, 0, &r, &err));
        cr_assert_eq(wg_dump_place(&c, &r, "SHARD", shard, SHARD, &s, &err), WG_EFORMAT);
    }
    dump_record(index, 0, 0, TOKENS_, fine);
    must(wg_dump_read_record(&c, "INDEX", index, 56, 0, &r, &err));
    must(wg_dump_place(&c, &r, "SHARD", shard, SHARD, &s, &err));
    free(shard);
    wg_dump_cache_free(&c);
}

Test(tap_dump, files_that_are_not_there, .init = setup, .fini = teardown)
{
    wg_dump *d;
    char path[200];
    cr_assert_eq(wg_dump_open(&d, "no/such.safetensors", &err), WG_ENOENT);
    cr_assert_str_eq(err.text, "no/such.safetensors: there is no such file");
    cr_assert_eq(wg_dump_open(&d, t.dir, &err), WG_ENOENT);
    cr_assert(strstr(err.text, ": has neither manifest.json (a DeepSpec cache) nor .safetensors files (vLLM's hidden states)"),
              "%s", err.text);
    file_write(temp_at(&t, "a1.safetensors"), "", 0);
    cr_assert_eq(wg_dump_open(&d, t.dir, &err), WG_EFORMAT);
    cr_assert(strstr(err.text, "/a1.safetensors: is no file with hidden states: it is empty, or a folder"), "%s", err.text);
    file_write(temp_at(&t, "manifest.json"), MANIFEST, strlen(MANIFEST));
    cr_assert_eq(wg_dump_open(&d, t.dir, &err), WG_ENOENT);
    cr_assert(strstr(err.text, "/samples.idx: there is no such file"), "%s", err.text);
    uint8_t index[56];
    dump_record(index, 0, 0, 1, (const uint64_t[5]){ 0 });
    file_write(temp_at(&t, "samples.idx"), index, 56);
    must(wg_dump_open(&d, t.dir, &err));
    wg_dump_sample s;
    cr_assert_eq(wg_dump_sample_at(d, 0, &s, &err), WG_ENOENT);
    snprintf(path, sizeof path, "%s/s.bin: there is no such file", t.dir);
    cr_assert(strstr(err.text, path), "%s", err.text);
    wg_dump_close(d);
}
