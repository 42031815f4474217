#!/bin/sh
# SPDX-License-Identifier: MIT
# The shared library exports the functions of include/wager.h and nothing else, each under a version; the header declares what the
# version script lists; and its status codes are the library's own. It calls no function that ends the process, prints, handles
# signals or changes what all of the process sees, and has no writable data but what docs/architecture.md lists.
# usage: tests/api/symbols.sh LIBWAGER.so [LIBWAGER.a], from the root
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sed -n 's/^WG_API .*[ *]\(wg_[a-z_]*\)(.*/\1/p' include/wager.h | sort > "$dir/header"
sed -n 's/^    \(wg_[a-z_]*\);.*/\1/p' api/libwager.map | sort > "$dir/map"
nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sed 's/@@WAGER_[0-9]*$//' | sort > "$dir/exported"
[ -s "$dir/header" ] || { echo "no function found in include/wager.h"; exit 1; }
diff "$dir/header" "$dir/map" || { echo "include/wager.h (<) and api/libwager.map (>) differ"; exit 1; }
diff "$dir/header" "$dir/exported" || { echo "include/wager.h (<) and the symbols of $1 (>) differ; unversioned ones have no @@"; exit 1; }
if [ -n "${2:-}" ]; then
  nm --defined-only "$2" 2> "$dir/notes" | awk '$2 ~ /[A-Z]/ && NF == 3 { print $3 }' | sort > "$dir/static"
  diff "$dir/header" "$dir/static" || { echo "include/wager.h (<) and the global symbols of $2 (>) differ"; exit 1; }
fi
# The codes: numbers in the header, an order in core/base/error.h.
sed -n 's/^    WG_\(E[A-Z]*\) = 1\([0-9]*\).*/\1 \2/p' include/wager.h > "$dir/codes"
sed -n 's/^    X(\(E[A-Z]*\)).*/\1/p' core/base/error.h | awk '{ printf "%s %03d\n", $1, NR }' > "$dir/own"
diff "$dir/codes" "$dir/own" || { echo "the codes of include/wager.h (<) and of core/base/error.h (>) differ; codes are never renumbered"; exit 1; }
# What it calls. stderr and abort are those of wg_bug (core/base/error.c) alone; kill ends programs that it started.
nm -D --undefined-only "$1" | awk '{ print $2 }' | sed 's/@.*//' | sort -u > "$dir/calls"
[ -s "$dir/calls" ] || { echo "no undefined symbol found in $1"; exit 1; }
if nm "$1" | grep -q ' cudaFree$'; then echo "$(wc -l < "$dir/header") functions; SKIPPED in part: NVIDIA's library is in it"; exit 0; fi
for name in exit _exit _Exit __exit quick_exit atexit at_quick_exit on_exit printf vprintf __printf_chk __vprintf_chk puts putchar stdout \
  stdin perror psignal err errx warn warnx error syslog signal bsd_signal sysv_signal sigaction sigaltstack sigprocmask raise alarm \
  setitimer setrlimit prctl setlocale setenv unsetenv putenv clearenv chdir fchdir umask dup2 fork vfork system popen execl execlp \
  execle execv execvp execve daemon setpgid setsid mallopt fesetround rand srand random srandom drand48 srand48 strtok localtime \
  gmtime ctime asctime getpwuid; do echo "$name"; done | sort > "$dir/not"
comm -12 "$dir/calls" "$dir/not" > "$dir/bad"
[ ! -s "$dir/bad" ] || { echo "libwager calls:"; cat "$dir/bad"; exit 1; }
# Its writable data: the log's sink, counters of memory and the failures that tests inject, the level of the CPU, the name
# of the program in commands to paste, ranks of MPI, which the program alone opens; the rest is the
# compiler's.
if command -v objdump > "$dir/which"; then
  objdump -t "$1" | awk 'NF > 4 && $(NF - 2) ~ /^\.(bss|data|tbss|tdata)$/ { print $NF }' | grep -v '^\.' | sed 's/\.[0-9]*$//' | sort -u > "$dir/data"
  [ -s "$dir/data" ] || { echo "no data symbol found in $1"; exit 1; }
  for name in sink calls fail_in fail_sticky live_blocks live_bytes peak_bytes known completed program world __dso_handle __TMC_END__ \
    __bss_start _edata _end __cpu_model __cpu_features2; do echo "$name"; done | sort > "$dir/known"
  comm -23 "$dir/data" "$dir/known" > "$dir/bad"
  [ ! -s "$dir/bad" ] || { echo "libwager has writable data that is not known (docs/architecture.md, libwager):"; cat "$dir/bad"; exit 1; }
fi
echo "$(wc -l < "$dir/header") functions"
