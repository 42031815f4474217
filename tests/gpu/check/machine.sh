# What this machine is: $card, and $machine, an object of JSON for the results.
words() { tr -d '"\\' | tr -c '[:print:]\n' ' ' | sed 's/^ *//; s/ *$//'; } # as a string of JSON may hold them

# The driver's answers, an object; each question is one that a card may not answer.
ask() { timeout 10 nvidia-smi "--query-gpu=$1" --format=csv,noheader 2>/dev/null | head -n 1 | words; }
describe_card() {
  local fields=(driver_version compute_cap memory.total clocks.sm clocks.mem clocks.max.sm clocks.max.mem power.draw power.limit
    temperature.gpu pstate ecc.mode.current mig.mode.current) answers i
  IFS=, read -r -a answers <<<"$(ask "$(IFS=,; echo "${fields[*]}")")"
  for i in "${!fields[@]}"; do printf '"%s": "%s", ' "${fields[$i]}" "$(words <<<"${answers[$i]:-unknown}")"; done
}

look_at_machine() {
  local about=
  card=emulated
  if [ "$mode" = rehearse ]; then
    card=none
  elif [ "$mode" = cuda ]; then
    command -v nvidia-smi >/dev/null || { echo "error: no nvidia-smi here; this needs an NVIDIA GPU" >&2; return 1; }
    card=$(ask name)
    [ -n "$card" ] || { echo "error: nvidia-smi names no card" >&2; return 1; }
    about=$(describe_card)
  fi
  machine=$(printf '{%s"cpu": "%s", "cores": %d, "memory_kib": %d, "kernel": "%s", "system": "%s"}' "$about" \
    "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1 | words)" "$cores" \
    "$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo)" "$(uname -r | words)" \
    "$(. /etc/os-release 2>/dev/null; words <<<"${PRETTY_NAME:-unknown}")")
}

# Clocks, power and temperature twice a second, as long as the run lasts.
watch_card() {
  [ "$mode" = cuda ] || return 0
  timeout 20 nvidia-smi -q >"$log/nvidia-smi.out" 2>&1
  nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu --format=csv -lms 500 \
    >"$log/clocks.csv" 2>/dev/null &
  watcher=$!
}
