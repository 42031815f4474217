# SPDX-License-Identifier: MIT
"""What is mutated, and the tests that are to find it, cheapest first. The first pattern that matches a source decides."""

RULE_TESTS = ['test_golden_rules', 'test_rejection', 'test_block', 'test_coupled', 'test_match', 'test_greedy', 'test_lossy',
              'test_mutations', 'test_reference', 'test_promises', 'test_supports', 'test_prove_order', 'test_prove']
DEVICE_TESTS = ['test_gpu_verify', 'test_gpu_prove']
ROW_TESTS = ['test_rows', 'test_lazy_rows', 'test_support', 'test_sampler', 'test_golden_rules', 'test_supports',
             'test_promises', 'test_rejection']

ARGUMENTS = {'test_gpu_prove': ['--filter', 'gpu_prove/options']}  # the whole test takes a minute

# pattern of paths, tests
TARGETS = [
    ('kernels/cuda/verify.cu', DEVICE_TESTS),
    ('kernels/cuda/rule_block.h', DEVICE_TESTS),
    ('kernels/cuda/rule_chance.h', DEVICE_TESTS),
    ('verify/rule_plugin.c', ['test_prove_plugin']),
    ('verify/host_passes.h', RULE_TESTS),
    ('verify/optimal.c', RULE_TESTS + ['test_exact']),  # wg_optimal_law
    ('verify/pair*.[ch]', ['test_golden_rules', 'law_pairs', 'test_supports', 'test_prove']),
    ('verify/*.[ch]', RULE_TESTS + ['test_gpu_verify']),  # device_params
    ('kernels/rule/*.h', RULE_TESTS),
    ('core/dist/chance.c', ['test_chance', 'test_race', 'test_golden_rules', 'test_coupled']),
    ('core/dist/chance_tree.c', ['test_chance', 'test_race', 'test_prove', 'test_prove_order', 'test_mutations',
                                 'test_reference']),
    ('core/dist/race.c', ['test_race', 'test_coupled', 'test_prove_order']),
    ('core/dist/optimal_acceptance.c', ['test_optimal_acceptance', 'test_promises', 'test_prove_order']),
    ('core/dist/tree.c', ['test_tree', 'test_engine', 'test_tree_draw']),
    ('core/dist/penalty.c', ['test_penalty', 'test_sampler']),
    ('core/dist/rows.c', ROW_TESTS),
    ('core/dist/mass_weights.c', ['test_chance'] + ROW_TESTS),
    ('core/dist/nucleus.c', ['test_sampler', 'test_support', 'test_lazy_rows', 'test_penalty']),
    ('core/dist/sampler*.[ch]', ['test_sampler', 'test_support', 'test_lazy_rows', 'test_penalty', 'test_rows', 'test_engine']),
]
