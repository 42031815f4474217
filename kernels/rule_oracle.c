/* SPDX-License-Identifier: MIT
 * A stub of tests/simt/oracle.cpp for programs without an emulated device: a device's rules draw by Philox. */
#include "kernels/rule/rule_ask.h"

int wg_rule_oracle_set(const wg_rule_oracle *o)
{
    (void)o;
    return 0;
}
