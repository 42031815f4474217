# Runs sections:
#   section NAME SECONDS COMMAND...   alone
#   together NAME SECONDS; member NAME COMMAND...; gather    all at once, with one limit
#   again SECONDS WAY...              members of the last group that failed: eager, serial, both, memcheck
# A section that is out of time is killed; then the canary runs, and when it fails nothing more is asked of the card.
names=() states=() times=() limits=() whys=() lines=() # of each section; lines: of JSON
failed=0 ended= start=$SECONDS
ways_of_eager='MODE=/eager' ways_of_serial='MODE=/serial WG_GPU_SERIAL=1' ways_of_both='MODE=/eager/serial WG_GPU_SERIAL=1'

left() { echo $((budget - reserve - (SECONDS - start))); }
launch() { # NAME SECONDS COMMAND...: in the background; its process: $pid
  local what=$1 limit=$2
  shift 2
  timeout -k $reaction "$limit" bash -c '. tests/gpu/check/commands.sh; "$@"' _ "$@" >"$log/$what.txt" 2>"$log/$what.err" &
  pid=$!
}
await() { # PID DEADLINE: its exit status in $rc. What is left of its group, which `timeout` made, is killed
  rc=137
  while kill -0 "$1" 2>/dev/null && [ "$SECONDS" -lt "$2" ]; do sleep 0.1; done
  if ! kill -0 "$1" 2>/dev/null; then wait "$1"; rc=$?; fi
  kill -KILL -- "-$1" 2>/dev/null
}
why_of() { grep -v '^ *$' "$log/$1.err" 2>/dev/null | tail -n 1 | cut -c 1-200 | words; }
add() { # NAME STATE SECONDS LIMIT WHY LINES
  names+=("$1") states+=("$2") times+=("$3") limits+=("$4") whys+=("$5") lines+=("${6:-}")
}
settle_section() { # NAME EXIT-STATUS SECONDS LIMIT
  local state why
  why=$(why_of "$1")
  case $2 in
  0) state=passed why= ;;
  77) state="skipped: ${why:-no reason was given}" ;;
  124 | 137) state="out of time" ;;
  *) if [ "$mode" = rehearse ] && needs_card "$1"; then state="needs a card"; else state=failed; fi ;;
  esac
  case $state in failed | "out of time") failed=1 ;; esac
  [ "$state" != failed ] || { echo "failed: $1"; tail -n 5 "$log/$1.err"; } >&2
  add "$1" "$state" "$3" "$4" "$why" "$(lines_of "$1")"
}
needs_card() { grep -q 'no NVIDIA driver is installed here\|the NVIDIA driver finds no device' "$log/$1.err" "$log/$1.txt"; }

after_time_out() { # NAME
  local from=$SECONDS
  [ "$mode" != rehearse ] && [ -z "$ended" ] || return 0
  launch "canary_after_$1" $((10 * patience)) canary
  await "$pid" $((SECONDS + 10 * patience + 2 * reaction))
  settle_section "canary_after_$1" "$rc" $((SECONDS - from)) 10
  [ "$rc" = 0 ] || ended="the canary failed after $1: ${whys[-1]:-out of time}"
}
begin() { # NAME SECONDS: $limit, what is left of it; 1 where there is none
  limit=$(($2 * patience))
  if [ -n "$ended" ]; then add "$1" "not run" 0 "$2" ""; return 1; fi
  [ "$(left)" -ge "$limit" ] || limit=$(left)
  [ "$limit" -ge 2 ] || { add "$1" "no time left" 0 "$2" ""; failed=1; return 1; }
}
section() {
  local what=$1 from=$SECONDS
  begin "$1" "$2" || return 0
  shift 2
  launch "$what" "$limit" "$@"
  await "$pid" $((SECONDS + limit + 2 * reaction))
  settle_section "$what" "$rc" $((SECONDS - from)) "$limit"
  if [ "${states[-1]}" = "out of time" ]; then after_time_out "$what"; fi
  if [ "$what" = canary ] && [ "$rc" != 0 ] && [ "$mode" != rehearse ]; then
    ended="the canary failed: ${whys[-1]:-out of time}"
  fi
  write_json
}

group=() ways=() commands=() # of each member its name, what its environment gets, and its command, quoted
together() { group_name=$1 group_limit=$2 group=() ways=() commands=(); }
member() {
  group+=("$1") ways+=("")
  shift
  commands+=("$(printf '%q ' "$@")")
}
gather() {
  local i pids=() from=$SECONDS open late=
  broken=() broken_commands=()
  for i in "${!group[@]}"; do
    begin "${group[$i]}" "$group_limit" || continue
    eval "launch ${group[$i]} $limit env_and ${ways[$i]} ${commands[$i]}"
    pids[i]=$pid
  done
  while :; do # as they end
    open=0
    for i in "${!pids[@]}"; do
      if kill -0 "${pids[$i]}" 2>/dev/null && [ "$SECONDS" -lt $((from + limit + 2 * reaction)) ]; then open=1; continue; fi
      await "${pids[$i]}" "$SECONDS"
      settle_section "${group[$i]}" "$rc" $((SECONDS - from)) "$limit"
      unset "pids[$i]"
      case ${states[-1]} in
      "out of time") late=${group[$i]} ;;&
      failed | "out of time") broken+=("${group[$i]}") broken_commands+=("${commands[$i]}") ;;
      esac
    done
    [ $open = 1 ] || break
    sleep 0.1
  done
  if [ -n "$late" ]; then after_time_out "$late"; fi
  write_json
}
again() { # what failed in the group before, every way at once
  local limit=$1 i way ways_name
  shift
  local of=("${broken[@]}") with=("${broken_commands[@]}")
  [ ${#of[@]} -gt 0 ] || return 0
  together again "$limit"
  for i in "${!of[@]}"; do
    for way; do
      group+=("${of[$i]}.$way")
      if [ "$way" = memcheck ]; then
        ways+=("") commands+=("with_memcheck ${with[$i]}")
      else
        ways_name=ways_of_$way
        ways+=("${!ways_name}") commands+=("${with[$i]}")
      fi
    done
  done
  gather
}
