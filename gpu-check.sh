#!/usr/bin/env bash
# Everything a GPU is needed for, in one command and under ten minutes. In the order of what tells most: a canary kernel, the
# bandwidth and the gaps of the card, all tests of correctness at once, each failure again in other modes, times of passes and
# rounds of models whose weights it draws itself, profiles, compute-sanitizer, transformers beside ours. A section has its time;
# after one that runs out of it the canary decides whether the card can be asked on. Never touches a setting of the card.
# usage: ./gpu-check.sh [FOLDER]            FOLDER: with a gpu_suite (a build with -DWG_CUDA=ON, or its programs in one folder);
#                                           bin, else build/gpu, which is built here if nvcc is there (before the time begins)
#        ./gpu-check.sh --rehearse [FOLDER] on a machine without a card: everything up to the calls of the device
#        ./gpu-check.sh --plan              the sections and their limits; exit status 1 when they are more than fit
#        ./gpu-check.sh --pack [FILE]       one archive of programs, libraries, models and scripts (tests/gpu/check/pack.sh)
# OUT: where the folder of results goes, <time>-<card>-<commit> (results/gpu): result.json, table.txt, and logs.tar.gz.
# WG_GPU=simt: tiny shapes, for programs whose cuda:0 is emulated (tests/simt/gpu_check.sh).
# Exit status: 0, or 1 when a section failed, or could not end in its time.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
tools=tests/gpu/check
mode=${WG_GPU:-cuda}
case ${1:-} in
--pack) shift; exec $tools/pack.sh "$@" ;;
--plan) . $tools/settings.sh; . $tools/plan.sh; . $tools/count.sh; exit ;;
--rehearse) mode=rehearse; shift ;;
-*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; [ "$1" = --help ]; exit ;;
esac
. $tools/settings.sh
. $tools/commands.sh
. $tools/machine.sh
. $tools/results.sh
. $tools/run.sh
. $tools/plan.sh

find_suite "$@" || exit 1
look_at_machine || exit 1
open_results || exit 1
plan
close_results
exit "$failed"
