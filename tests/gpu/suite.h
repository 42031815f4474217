/* SPDX-License-Identifier: MIT
 * gpu_suite: the programs of gpu-check.sh in one, so that the kernels travel once. Each is a main under another name. */
#ifndef WG_TESTS_GPU_SUITE_H
#define WG_TESTS_GPU_SUITE_H

#ifdef __cplusplus
extern "C" {
#endif

#define WG_SUITE(X)                                                                                                            \
    X(wager, "the program")                                                                                                    \
    X(canary, "one kernel, whose result is checked")                                                                           \
    X(unit, "the tests of kernels of the named files (move: of test_gpu_move.c)")                                              \
    X(probe, "what the card allows: basics | kernels")                                                                         \
    X(law_prefix, "the Prefix Law")                                                                                            \
    X(law_device_verify, "steps settled on the device")                                                                        \
    X(law_device_decode, "rounds in one graph")                                                                                \
    X(compare, "NAME A.f32 B.f32 LIMIT: the largest difference over the largest of A")
#define X(name, what) int wg_suite_##name(int argc, char **argv);
WG_SUITE(X)
#undef X

#ifdef __cplusplus
}
#endif

#endif
