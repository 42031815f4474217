/* SPDX-License-Identifier: MIT
 * The environment of an experiment, as the system reports it. A value that cannot be read is null. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/base/processor.h"
#include "experiments/config/input_files.h"
#include "experiments/record/run_writer.h"
#include "kernels/cpu.h"

/* The rest of the first line of a file that starts with `key` (after ':' and spaces); the whole first line for key "". */
static json_t *line_of(const char *path, const char *key)
{
    char line[4096];
    FILE *f = fopen(path, "re");
    json_t *found = NULL;
    while (f && !found && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        const char *p = line + strlen(key);
        p += strspn(p, " \t:");
        found = json_stringn(p, strcspn(p, "\n"));
    }
    if (f) fclose(f);
    return found ? found : json_null();
}

static json_t *cpu_json(void)
{
    json_t *v = json_object();
    json_object_set_new(v, "model", line_of("/proc/cpuinfo", "model name"));
    json_object_set_new(v, "cores_online", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    json_object_set_new(v, "kernels", json_string(wg_cpu_name(wg_cpu_chosen())));
    json_object_set_new(v, "mhz_at_start", line_of("/proc/cpuinfo", "cpu MHz"));
    json_object_set_new(v, "governor", line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", ""));
    json_object_set_new(v, "smt", line_of("/sys/devices/system/cpu/smt/active", ""));
    json_object_set_new(v, "allowed", line_of("/proc/self/status", "Cpus_allowed_list"));
    return v;
}

static json_t *system_json(void)
{
    json_t *v = json_object();
    struct utsname u;
    struct sysinfo i;
    double load[3];
    if (uname(&u) == 0) {
        json_object_set_new(v, "host", json_string(u.nodename));
        json_object_set_new(v, "kernel", json_sprintf("%s %s", u.sysname, u.release));
        json_object_set_new(v, "architecture", json_string(u.machine));
    }
    if (sysinfo(&i) == 0) json_object_set_new(v, "memory_bytes", json_integer((json_int_t)i.totalram * i.mem_unit));
    json_object_set_new(v, "load_at_start",
                        getloadavg(load, 3) == 3 ? json_pack("[f,f,f]", load[0], load[1], load[2]) : json_null());
    return v;
}

/* A digest of a file, or null when it cannot be read. */
static json_t *digest(const char *path)
{
    char hex[WG_SHA256_HEX];
    return wg_sha256_file(path, hex, NULL) == WG_OK ? json_string(hex) : json_null();
}

static json_t *program_json(void)
{
    json_t *v = json_object();
    json_object_set_new(v, "version", json_string(WG_VERSION));
    json_object_set_new(v, "compiler", json_string(__VERSION__));
#ifdef WG_GIT
    json_object_set_new(v, "git", json_string(WG_GIT));
#endif
    json_object_set_new(v, "sha256", digest("/proc/self/exe"));
    return v;
}

/* The environment variables that can change the speed or the choice of kernels. */
static json_t *environment_json(void)
{
    static const char *const names[] = { "WG_CPU", "WG_TRACE", "LD_PRELOAD", "MALLOC_ARENA_MAX", "GOMP_CPU_AFFINITY", NULL };
    json_t *v = json_object();
    for (int i = 0; names[i]; i++) {
        const char *value = getenv(names[i]);
        json_t *text = value ? json_string(value) : NULL;
        if (text) json_object_set_new(v, names[i], text);
    }
    return v;
}

double wg_machine_load(void)
{
    double load[1];
    return getloadavg(load, 1) == 1 ? load[0] : NAN;
}

void wg_machine_line(FILE *f, double load_before)
{
    char name[128];
    fprintf(f, "machine: %s, %ld cores, kernels %s; load %.1f before the run, %.1f after it\n",
            *wg_processor_name(name, sizeof name) ? name : "a processor without a name", sysconf(_SC_NPROCESSORS_ONLN),
            wg_cpu_name(wg_cpu_chosen()), load_before, wg_machine_load());
}

json_t *wg_machine_facts_json(void)
{
    char utc[64];
    const time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(utc, sizeof utc, "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_t *v = json_object();
    json_object_set_new(v, "started", json_string(utc));
    json_object_set_new(v, "program", program_json());
    json_object_set_new(v, "system", system_json());
    json_object_set_new(v, "cpu", cpu_json());
    json_object_set_new(v, "environment", environment_json());
    return v;
}

json_t *wg_machine_json(const wg_config *config, const wg_energy *energy)
{
    char shard[WG_SHARD_TEXT];
    json_t *v = wg_machine_facts_json();
    json_object_set_new(v, "config_sha256", json_string(config->sha256));
    if (config->shard.count) json_object_set_new(v, "shard", json_string(wg_shard_text(config->shard, shard)));
    json_object_set_new(v, "energy", energy ? wg_energy_json(energy) : json_null());
    json_object_set_new(v, "files_sha256", wg_files_json(config));
    return v;
}
