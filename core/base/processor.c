/* SPDX-License-Identifier: MIT
 * See processor.h: /proc/cpuinfo and /proc/stat of Linux. */
#include "core/base/processor.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The rest of the first line that begins with the key, behind ": ". */
static const char *line_of(const char *key, char *buf, size_t size)
{
    char line[512];
    FILE *f = fopen("/proc/cpuinfo", "re");
    *buf = '\0';
    while (f && !*buf && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        const char *at = line + strlen(key);
        at += strspn(at, " \t:");
        snprintf(buf, size, "%.*s", (int)strcspn(at, "\n"), at);
    }
    if (f) fclose(f);
    return buf;
}

const char *wg_processor_name(char *buf, size_t size)
{
    char maker[32], part[32];
    if (*line_of("model name", buf, size)) return buf;
    if (*line_of("CPU implementer", maker, sizeof maker) && *line_of("CPU part", part, sizeof part))
        snprintf(buf, size, "Arm %s part %s", maker, part);
    return buf;
}

wg_processor_seconds wg_processor_busy(void)
{
    unsigned long long user, nice, system, idle, wait, hard, soft, stolen;
    struct rusage own;
    const long ticks = sysconf(_SC_CLK_TCK);
    FILE *f = fopen("/proc/stat", "re");
    const int n =
        f ? fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait, &hard, &soft, &stolen)
          : 0;
    if (f) fclose(f);
    if (n != 8 || ticks < 1 || getrusage(RUSAGE_SELF, &own)) return (wg_processor_seconds){ -1, -1 };
    return (wg_processor_seconds){ (double)(user + nice + system + hard + soft + stolen) / (double)ticks,
                                   (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) +
                                       1e-6 * (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec) };
}
