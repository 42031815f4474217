/* SPDX-License-Identifier: MIT
 * Rules that ask instead of drawing (kernels/cuda/rule_chance.h). All threads of the block that runs must ask the same, in the
 * same order: the first of them to ask for the nth time is answered by the oracle, the others get its answer. */
#include "tests/simt/simt.h"

#include <vector>

#include "kernels/rule/rule_ask.h"

bool simt_asks = false;

namespace
{
struct answered {
    wg_rule_ask ask;
    double answer;
};
const wg_rule_oracle *oracle;
std::vector<answered> given;     /* of this launch */
std::vector<size_t> asked(1024); /* how often, by thread */
} // namespace

double simt_answer(const wg_rule_ask &ask)
{
    const size_t n = asked[simt_me->thread.x]++;
    if (n == given.size()) given.push_back({ ask, oracle->answer(oracle->state, &ask) });
    const wg_rule_ask &first = given[n].ask;
    if (ask.kind != first.kind || ask.purpose != first.purpose || ask.position != first.position || ask.index != first.index ||
        ask.n != first.n || ask.races != first.races || ask.weight != first.weight ||
        memcmp(&ask.num, &first.num, sizeof ask.num) != 0 || memcmp(&ask.den, &first.den, sizeof ask.den) != 0)
        simt_fail(SIMT_HERE, "thread %u asks for another random number than the %zuth of its block: the threads decide apart",
                  simt_me->thread.x, n);
    return given[n].answer;
}

void simt_oracle_set(const wg_rule_oracle *o)
{
    oracle = o;
    simt_asks = o != NULL;
    given.clear();
    asked.assign(asked.size(), 0);
}
