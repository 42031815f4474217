/* SPDX-License-Identifier: MIT
 * runtime.cu over the stub runtime, which has the toolkit's error state: statuses that are no failure, and tolerated
 * failures, are never reported by another call; a real failure is reported once, with its own device and name; no recorded
 * launch loses its shared memory; passes run where nothing can be recorded, and are counted as launched; the size of the GPU
 * changes no bit. */
#include "core/base/log.h"
#include "tests/unit/cuda/passes.h"

enum {
    INVALID_VALUE = 1,
    NO_MEMORY = 2,
    INVALID_CONFIGURATION = 9,
    INVALID_DEVICE = 101,
    ILLEGAL_ADDRESS = 700,
    NOT_SUPPORTED = 801
}; /* of cudaError_t */

static char why[WG_GPU_WHY];

static void all_is_well(wg_gpu *g, const char *after)
{
    why[0] = '\0';
    cr_assert_eq(g->api->wait(g, why), 0, "after %s: %s", after, why);
}

static void wait_fails(wg_gpu *g, const char *part)
{
    cr_assert(g->api->wait(g, why) == -1 && strstr(why, part), "\"%s\" is not in: %s", part, why);
    all_is_well(g, "the failure was reported");
}

static wg_gpu open_gpu(void)
{
    wg_gpu g;
    cr_assert_eq(wg_gpu_simt()->open(&g, 0, why), 0, "%s", why);
    return g;
}

/* A loop is polled while it runs; each poll's cudaErrorNotReady is the runtime's last error by then. */
Test(gpu_runtime, a_poll_is_no_failure)
{
    const wg_gpu_api *api = gpu()->api;
    const float one = -1, start = 5;
    float *left = to_device(&start, 4), *step = to_device(&one, 4), got;
    api->record(gpu());
    api->add(gpu(), left, step, 1, 1);
    void *loop = api->recorded_loop(gpu(), (const int32_t *)(const void *)left, why);
    cr_assert_not_null(loop, "%s", why);
    const long polls = simt_stats_read().polls;
    api->replay(gpu(), loop);
    while (!api->idle(gpu())) {}
    cr_assert_geq(simt_stats_read().polls - polls, 5);
    all_is_well(gpu(), "polls");
    from_device(&got, left, 4);
    cr_assert_eq(got, 0);
    api->forget(gpu(), loop);
    device_free(left), device_free(step);
}

/* Failures that a call reports by NULL or a number: wait() does not report them again. */
Test(gpu_runtime, what_may_fail_is_not_reported_by_wait)
{
    wg_gpu g = open_gpu(), other;
    const wg_gpu_api *api = g.api;
    void *device = NULL;
    simt_cuda_fail("cudaMalloc", 1, NO_MEMORY);
    cr_assert_null(api->alloc(&g, 100));
    all_is_well(&g, "an allocation");
    simt_cuda_fail("cudaMallocHost", 1, NO_MEMORY);
    cr_assert_null(api->pin(&g, 100));
    all_is_well(&g, "pinned memory");
    simt_cuda_fail("cudaHostAlloc", 1, NO_MEMORY);
    cr_assert_null(api->map(&g, 100, &device));
    simt_cuda_fail("cudaHostGetDevicePointer", 1, NOT_SUPPORTED);
    cr_assert_null(api->map(&g, 100, &device));
    all_is_well(&g, "mapped memory");
    cr_assert_eq(api->open(&other, 3, why), -1);
    simt_cuda_fail("cudaGetDeviceProperties", 1, INVALID_DEVICE);
    cr_assert_eq(api->open(&other, 0, why), -1);
    simt_cuda_fail("cudaStreamCreateWithFlags", 1, NO_MEMORY);
    cr_assert_eq(api->open(&other, 0, why), -1);
    all_is_well(&g, "devices that could not be opened");
    other = open_gpu();
    simt_cuda_fail("cudaStreamDestroy", 1, INVALID_VALUE);
    api->close(&other);
    all_is_well(&g, "a device that could not be closed");
    api->close(&g);
}

/* Every call whose failure is a failure, once, and by the device whose it was. */
Test(gpu_runtime, a_failure_is_reported_once_by_its_own_device)
{
    wg_gpu g = open_gpu(), other = open_gpu();
    const wg_gpu_api *api = g.api;
    const float zeros[4] = { 0 };
    float *x = api->alloc(&g, 16), *y = api->alloc(&g, 16), got[4];
    static const struct {
        const char *call, *says;
        int error;
    } calls[] = {
        { "cudaMemcpyAsync", "copying to the device: invalid argument (cudaErrorInvalidValue)", INVALID_VALUE },
        { "cudaMemsetAsync", "clearing memory: invalid argument", INVALID_VALUE },
        { "cudaLaunchKernelExC", "launching kernel: invalid configuration argument", INVALID_CONFIGURATION },
        { "cudaStreamQuery", "running a kernel: an illegal memory access", ILLEGAL_ADDRESS },
        { "cudaStreamSynchronize", "waiting for the device: an illegal memory access", ILLEGAL_ADDRESS },
        { "cudaSetDevice", "choosing the device: invalid device ordinal", INVALID_DEVICE },
        { "cudaMemGetInfo", "asking for free memory: invalid argument", INVALID_VALUE },
        { "cudaFuncSetAttribute", "invalid argument", INVALID_VALUE },
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        wg_gpu fresh = open_gpu(); /* its kernels are made ready anew */
        simt_cuda_fail(calls[i].call, 1, calls[i].error);
        api->put(&fresh, x, zeros, 16);
        api->clear(&fresh, y, 16);
        api->add(&fresh, x, y, 4, 1);
        api->idle(&fresh);
        api->get(&fresh, got, x, 16);
        api->room(&fresh);
        all_is_well(&other, "another device's failure");
        const char *part = calls[i].says;
        cr_assert(api->wait(&fresh, why) == -1 && strstr(why, strstr(part, "launching") ? strchr(part, ':') : part),
                  "%s: \"%s\" is not in: %s", calls[i].call, part, why);
        all_is_well(&fresh, calls[i].call);
        api->close(&fresh);
    }
    simt_cuda_fail("cudaGraphLaunch", 1, INVALID_VALUE);
    api->record(&g);
    api->add(&g, x, y, 4, 1);
    void *graph = api->recorded(&g, why);
    api->replay(&g, graph);
    wait_fails(&g, "launching a graph: invalid argument");
    api->forget(&g, graph);
    api->free(&g, x), api->free(&g, y);
    api->close(&g), api->close(&other);
}

/* A launch with little shared memory between a recording with much and its replay: the limit of the function stays. */
Test(gpu_runtime, a_recorded_kernel_keeps_its_shared_memory)
{
    enum { N = 64, K = 4096, ROWS_OF = 8 };
    const wg_gpu_api *api = gpu()->api;
    const size_t bytes = wg_gpu_matrix_bytes(WG_Q8_0, WG_GPU_PANELS, N, K);
    char *packed = aligned(bytes);
    memset(packed, 0, bytes);
    const wg_matrix w = { .type = WG_Q8_0, .n = N, .k = K, .data = weights_to_device(packed, bytes) }, *one = &w;
    float *x = random_floats(ROWS_OF * K, 3), *dx = to_device(x, ROWS_OF * K * 4), *y = to_device(NULL, ROWS_OF * N * 4);
    const wg_gpu_input in = { dx, NULL, 0 };
    cr_assert(wg_gpu_fits(gpu(), WG_Q8_0, WG_GPU_PANELS, ROWS_OF, K));
    const wg_gpu_output out = { .then = WG_GPU_STORE };
    api->record(gpu());
    api->matmul_fused(gpu(), &one, &y, 1, &in, ROWS_OF, &out);
    void *graph = api->recorded(gpu(), why);
    cr_assert_not_null(graph, "%s", why);
    api->matmul_fused(gpu(), &one, &y, 1, &in, 1, &out);
    api->replay(gpu(), graph);
    all_is_well(gpu(), "a replay");
    cr_assert_eq(simt_stats_read().uncarved, 0);
    api->forget(gpu(), graph);
    device_free((void *)(uintptr_t)w.data), device_free(dx), device_free(y);
    free(packed), free(x);
}

/* ---- passes where nothing can be recorded */

static wg_device device_of(unsigned mode)
{
    wg_device d;
    cr_assert_eq(wg_device_cuda(&d, wg_gpu_simt(), 0, mode, NULL, &err), WG_OK, "%s", err.text);
    return d;
}

static char logged[600];

static void listen(void *user, wg_log_level level, const char *text)
{
    (void)user;
    if (level >= WG_LOG_WARN) snprintf(logged, sizeof logged, "%s", text);
}

/* Five passes alike; what the call by this name fails at. Gives how they were made. */
static wg_passes_made five(wg_weights *w, unsigned mode, const char *call, float *logits)
{
    setup s;
    wg_device d = device_of(mode);
    cr_assert_eq(setup_open(&s, &d, w), WG_OK, "%s", err.text);
    if (call) simt_cuda_fail(call, 1, NOT_SUPPORTED);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(pass(&s, 3, 3, logits + i * 3 * VOCAB), WG_OK, "%s: %s", call ? call : "", err.text);
        wg_kv_commit_chain(s.seq, 1);
    }
    const wg_passes_made made = d.class->made(&d);
    cr_assert(!call || strstr(logged, "launches are made one by one: operation not supported"), "%s: %s", call, logged);
    setup_close(&s);
    wg_device_close(&d);
    return made;
}

Test(gpu_runtime, passes_go_on_where_recording_fails_and_say_so)
{
    static const char *const calls[] = { "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate" };
    static float want[15 * VOCAB], got[15 * VOCAB];
    wg_weights *w = weights();
    wg_log_to(listen, NULL);
    wg_passes_made made = five(w, 0, NULL, want);
    cr_assert_str_empty(logged);
    cr_assert(made.first == 1 && made.replayed == 4 && made.launched == 0 && made.looped == 0);
    made = five(w, WG_CUDA_EAGER, NULL, got);
    cr_assert(made.first == 0 && made.replayed == 0 && made.launched == 5);
    cr_assert_arr_eq(got, want, sizeof want);
    for (int i = 0; i < 3; i++) {
        made = five(w, 0, calls[i], got);
        cr_assert(made.first == 1 && made.replayed == 0 && made.launched == 4, "%s: %ld first, %ld replayed, %ld launched",
                  calls[i], made.first, made.replayed, made.launched);
        cr_assert_arr_eq(got, want, sizeof want, "%s", calls[i]);
    }
    wg_weights_close(w);
}

/* An allocation between record() and recorded(): the capture is lost, and no more than that. */
Test(gpu_runtime, an_illegal_call_costs_the_recording_only)
{
    const wg_gpu_api *api = gpu()->api;
    const float ones[2] = { 1, 1 };
    float *x = to_device(ones, 8), got[2];
    simt_capture_answers(true);
    api->record(gpu());
    api->add(gpu(), x, x, 2, 1);
    cr_assert_null(api->pin(gpu(), 100));
    cr_assert_null(api->recorded(gpu(), why));
    cr_assert(strstr(why, "operation failed due to a previous error during capture"), "%s", why);
    all_is_well(gpu(), "a lost capture");
    api->add(gpu(), x, x, 2, 1);
    from_device(got, x, 8);
    cr_assert(got[0] == 2 && got[1] == 2);
    device_free(x);
}

static void noticed(const char *message) { _exit(strstr(message, "an allocation cannot be recorded") ? 42 : 3); }

Test(gpu_runtime, an_illegal_call_stops_a_test_that_does_not_ask_for_it, .exit_code = 42)
{
    simt_on_fail(noticed);
    gpu()->api->record(gpu());
    gpu()->api->alloc(gpu(), 8);
}

/* A device that is gone answers everything with its error: each pass says so, and all can be closed. */
Test(gpu_runtime, a_broken_device_fails_every_pass)
{
    float logits[VOCAB];
    wg_weights *w = weights();
    setup s;
    wg_device d = device_of(0);
    cr_assert_eq(setup_open(&s, &d, w), WG_OK, "%s", err.text);
    cr_assert_eq(pass(&s, 1, 1, logits), WG_OK, "%s", err.text);
    wg_kv_rollback(s.seq);
    simt_cuda_break(ILLEGAL_ADDRESS);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(pass(&s, 1, 1, logits), WG_EIO);
        cr_assert(strstr(err.text, "an illegal memory access was encountered (cudaErrorIllegalAddress)"), "%s", err.text);
        wg_kv_rollback(s.seq);
    }
    setup_close(&s);
    wg_device_close(&d);
    wg_weights_close(w);
}

/* ---- cards of other sizes */

static void on_card(wg_weights *w, int sms, int kib, unsigned mode, float *logits)
{
    simt_card_set(sms, (size_t)kib << 10);
    setup s;
    wg_device d = device_of(mode);
    cr_assert_eq(setup_open(&s, &d, w), WG_OK, "%s", err.text);
    cr_assert_eq(pass(&s, 300, 0, NULL), WG_OK, "%s", err.text);
    wg_kv_commit_chain(s.seq, 300);
    static const int rows[] = { 1, 8, 2, 40, 1, 8 };
    for (int i = 0; i < 6; i++) {
        cr_assert_eq(pass(&s, rows[i], rows[i], logits), WG_OK, "%s", err.text);
        wg_kv_rollback(s.seq);
        logits += rows[i] * VOCAB;
    }
    setup_close(&s);
    wg_device_close(&d);
}

Test(gpu_runtime, a_cards_size_shows_in_no_bit)
{
    static const int cards[][2] = { { 2, 99 }, { 2, 227 }, { 17, 163 }, { 132, 227 } };
    static float want[60 * VOCAB], got[60 * VOCAB];
    wg_weights *w = weights();
    for (unsigned mode = 0; mode <= WG_CUDA_EXACT; mode++) {
        on_card(w, 1, 99, mode, want);
        for (int i = 0; i < 4; i++) {
            on_card(w, cards[i][0], cards[i][1], mode, got);
            cr_assert_arr_eq(got, want, sizeof want, "%d multiprocessors, %d KiB, mode %u", cards[i][0], cards[i][1], mode);
        }
    }
    wg_weights_close(w);
}
