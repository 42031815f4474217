/* SPDX-License-Identifier: MIT
 * RAPL from a folder made by hand: the counted domains, wrapping, and unreadable counters. */
#include <criterion/criterion.h>
#include <math.h>
#include <sys/stat.h>

#include "experiments/base/energy.h"
#include "tests/temp.h"

static temp t;
static void setup(void) { temp_make(&t); }
static void teardown(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", t.dir);
    if (system(command)) abort();
}
TestSuite(energy, .init = setup, .fini = teardown);

static void set(const char *domain, const char *file, const char *text)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", t.dir, domain);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s", t.dir, domain, file);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f, "%s", path);
    fputs(text, f);
    fclose(f);
}

static void counter(const char *domain, const char *name, const char *range, const char *value)
{
    set(domain, "name", name);
    if (range) set(domain, "max_energy_range_uj", range);
    set(domain, "energy_uj", value);
}

static void expect_domains(const wg_energy *e, const char *want)
{
    json_t *v = wg_energy_json(e);
    char *text = json_dumps(v, JSON_COMPACT);
    cr_assert_str_eq(text, want);
    free(text);
    json_decref(v);
}

/* Packages and memory; cores are part of their package, psys has everything again. 1.5 J + 0.25 J + 2 J. */
Test(energy, packages_and_memory)
{
    wg_energy e;
    counter("intel-rapl:0", "package-0\n", "262143328850\n", "1000000\n");
    counter("intel-rapl:0:0", "core\n", "262143328850\n", "7\n");
    counter("intel-rapl:0:1", "dram\n", "65712999613\n", "500\n");
    counter("intel-rapl:1", "package-1\n", "262143328850\n", "3000000\n");
    counter("intel-rapl:2", "psys\n", "262143328850\n", "9\n");
    counter("intel-rapl-mmio:0", "package-0\n", "262143328850\n", "1000000\n");
    set("intel-rapl", "enabled", "1\n");
    wg_energy_open(&e, t.dir);
    expect_domains(&e, "{\"domains\":[\"package-0\",\"package-0/dram\",\"package-1\"]}");
    cr_assert_eq(wg_energy_joules(&e), 0);
    set("intel-rapl:0", "energy_uj", "2500000\n");
    set("intel-rapl:0:0", "energy_uj", "900000000\n");
    set("intel-rapl:0:1", "energy_uj", "250500\n");
    set("intel-rapl:1", "energy_uj", "5000000\n");
    set("intel-rapl:2", "energy_uj", "900000000\n");
    cr_assert_float_eq(wg_energy_joules(&e), 3.75, 1e-9);
    cr_assert_float_eq(wg_energy_joules(&e), 3.75, 1e-9);
    wg_energy_close(&e);
}

/* From 9.5 J over the end at 10 J to 0.25 J: 0.75 J, then 1 J more. */
Test(energy, wraps)
{
    wg_energy e;
    counter("intel-rapl:0", "package-0\n", "10000000\n", "9500000\n");
    wg_energy_open(&e, t.dir);
    set("intel-rapl:0", "energy_uj", "250000\n");
    cr_assert_float_eq(wg_energy_joules(&e), 0.75, 1e-9);
    set("intel-rapl:0", "energy_uj", "1250000\n");
    cr_assert_float_eq(wg_energy_joules(&e), 1.75, 1e-9);
    wg_energy_close(&e);
}

/* Never a number that is not one: no folder, nothing in it, a package that cannot be read beside one that can, a counter that
 * falls without a range, one that breaks off. */
Test(energy, says_why_not)
{
    wg_energy e;
    char none[200];
    snprintf(none, sizeof none, "%s/none", t.dir);
    wg_energy_open(&e, none);
    cr_assert(isnan(wg_energy_joules(&e)) && strstr(e.why, "No such file"), "%s", e.why);
    wg_energy_open(&e, t.dir);
    cr_assert(isnan(wg_energy_joules(&e)) && strstr(e.why, "no RAPL counters"), "%s", e.why);
    counter("intel-rapl:0", "package-0\n", NULL, "9500000\n");
    set("intel-rapl:1", "name", "package-1\n");
    wg_energy_open(&e, t.dir);
    cr_assert(isnan(wg_energy_joules(&e)) && strstr(e.why, "intel-rapl:1/energy_uj: No such file"), "%s", e.why);
    set("intel-rapl:1", "energy_uj", "many\n");
    wg_energy_open(&e, t.dir);
    cr_assert(isnan(wg_energy_joules(&e)) && strstr(e.why, "intel-rapl:1/energy_uj: not a number"), "%s", e.why);
    set("intel-rapl:1", "energy_uj", "1\n");
    wg_energy_open(&e, t.dir);
    cr_assert_eq(wg_energy_joules(&e), 0, "%s", e.why);
    set("intel-rapl:0", "energy_uj", "9000000\n");
    cr_assert(isnan(wg_energy_joules(&e)) && strstr(e.why, "package-0: the counter fell"), "%s", e.why);
    cr_assert(isnan(wg_energy_joules(&e)));
    wg_energy_open(&e, t.dir);
    set("intel-rapl:1", "energy_uj", "");
    cr_assert(isnan(wg_energy_joules(&e)) && strstr(e.why, "cannot be read any more"), "%s", e.why);
}
