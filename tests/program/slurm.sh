#!/usr/bin/env bash
# A run divided over a Slurm array (examples/shards/array.sbatch), on a cluster of this machine alone: munged, slurmctld and slurmd
# of the packages, started here in a temporary folder. Four shards; one of them is killed (SIGKILL) in its middle and requeued. The merged run
# must have the texts of the undivided run. usage: tests/program/slurm.sh WAGER
# Exit 77 where the daemons are not installed or do not start (slurmd needs root).
set -u
export WAGER
WAGER=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
root=$PWD
PATH=$PATH:/usr/sbin:/sbin
for program in munged mungekey slurmctld slurmd sbatch scontrol; do
  command -v $program >/dev/null || { echo "skipped: no $program (packages slurmctld slurmd slurm-client munge)"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "skipped: slurmd needs root"; exit 77; }

base=$(mktemp -d "${TMPDIR:-/tmp}/wager-slurm.XXXXXX")
chmod 755 "$base"
pids=
stop() { for pid in $pids; do kill "$pid" 2>/dev/null; done; wait 2>/dev/null; pkill -f "slurmstepd.*$base" 2>/dev/null; rm -rf "$base"; }
trap stop EXIT
skip() { echo "skipped: $1"; tail -n 3 "$base"/*.log; exit 77; }
fail() { echo "FAIL: $1"; tail -n 5 "$base"/*.log "$base"/runs/*.log 2>/dev/null; exit 1; }
until_true() { for _ in $(seq 150); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done; return 1; }

# The cluster.
cd "$base" || exit 1
mkdir spool state runs
host=$(hostname -s)
port=$((20000 + $$ % 20000))
cat >slurm.conf <<END
ClusterName=wager
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$base/munge.socket
CryptoType=crypto/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmctldPidFile=$base/slurmctld.pid
SlurmdPidFile=$base/slurmd.pid
SlurmdSpoolDir=$base/spool
StateSaveLocation=$base/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
JobRequeue=1
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF=$base/slurm.conf
mungekey --create --keyfile="$base/munge.key" >munge.log 2>&1 || skip "mungekey failed"
munged --foreground --force --key-file="$base/munge.key" --socket="$base/munge.socket" --pid-file="$base/munge.pid" --seed-file="$base/munge.seed" \
  --log-file="$base/munged.log" >>munge.log 2>&1 &
pids="$pids $!"
until_true test -S munge.socket || skip "munged does not start"
slurmctld -D -i >slurmctld.log 2>&1 &
pids="$pids $!"
slurmd -D -N "$host" >slurmd.log 2>&1 &
pids="$pids $!"
idle() { [ "$(sinfo -h -o %T 2>/dev/null)" = idle ]; }
until_true idle || skip "the cluster does not come up"

# The whole run, and the array. The second shard is killed once its first request is recorded.
cd runs || exit 1
"$WAGER" synth --like tiny --type f32 --seed 1 --out target.gguf >/dev/null || fail "synth"
for i in $(seq 64); do echo "{\"id\": $i, \"prompt\": \"The cat $i sat\"}"; done >prompts.jsonl
cat >config.json <<'END'
{"name": "shards", "target": {"model": "target.gguf", "threads": 1}, "draft": {"kind": "ngram"}, "prompts": {"file": "prompts.jsonl"},
 "max_tokens": 200, "sweep": {"draft.k": [2, 4], "sampling.temperature": [0, 1]}}
END
"$WAGER" run config.json --shard all --out whole >/dev/null 2>&1 || fail "the whole run"
job=$(sbatch --parsable --array=1-4 "$root/examples/shards/array.sbatch" config.json shards) || fail "sbatch"
until_true test -s shards/2/requests.jsonl || fail "shard 2 records nothing"
pkill -KILL -f -- "--out shards/2" || fail "shard 2 ended before it could be killed"
failed() { scontrol show job "${job}_2" | grep -q 'JobState=\(FAILED\|NODE_FAIL\)'; }
until_true failed || fail "the killed task is not seen as failed"
scontrol requeue "${job}_2" || fail "requeue"
sleep 2 # the credential of the task that was killed is revoked by whole seconds
start() { scontrol update jobid="${job}_2" starttime=now; } # Slurm waits two minutes before it starts a requeued task
until_true start || fail "the requeued task is not started"
before=$(wc -l <shards/2/requests.jsonl)
gone() { [ -z "$(squeue -h -j "$job" 2>/dev/null)" ]; }
for _ in 1 2 3 4; do until_true gone && break; done
gone || fail "the array does not end"
after=$(wc -l <shards/2/requests.jsonl)
[ "$before" -lt "$after" ] || fail "shard 2 was complete ($before requests) before it was requeued"
"$WAGER" merge merged shards/1 shards/2 shards/3 shards/4 >merge.log 2>&1 || fail "merge"
texts() { grep -o '"output_sha256":"[0-9a-f]*"\|"id":"[^"]*"' "$1/requests.jsonl"; }
[ -n "$(texts whole)" ] && [ "$(texts whole)" = "$(texts merged)" ] || fail "texts differ from those of the whole run"
"$WAGER" compare whole merged 2>/dev/null | grep -q 'same texts' || fail "compare"
echo "ok: 4 shards, $(wc -l <whole/requests.jsonl) requests, shard 2 killed after $before of $after requests and requeued"
