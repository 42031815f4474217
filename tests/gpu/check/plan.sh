# The sections in their order, with their limits in seconds (run.sh says what the words mean). What tells most comes first, for
# the time may end. The limits and the reserve add up to the budget at most: gpu-check.sh --plan, which is a test.
plan() {
  local unit type tool
  section canary 15 canary
  section basics 25 probe basics

  together correctness 90 # members may be run again by `again`
  for unit in $units; do member "unit_$unit" unit "$unit"; done
  member law law cuda:0 "$cases" 0
  member law_far law cuda:0 $((cases / 8)) 1
  member law_exact law cuda:0/exact "$cases" 0
  member settle settle
  member loop loop
  member logits_q8_0 logits q8_0
  member logits_bf16 logits bf16
  member texts texts
  gather
  again 45 eager serial both memcheck # what failed in the group before

  section forward_8b_bf16 25 holding recorded rows forward $big bf16 cuda:0 $rows $far
  section forward_8b_q8_0 15 holding recorded rows forward $big q8_0 cuda:0 $some $far
  section forward_8b_q4_0 15 holding recorded rows forward $big q4_0 cuda:0 $some $far
  section forward_1b_bf16 12 holding recorded rows forward $one bf16 cuda:0 $rows $far
  section forward_124m_bf16 10 holding recorded rows forward $small bf16 cuda:0 1,2 $few
  section kernels 45 probe kernels

  section oracle_8b_bf16 18 holding recorded arm holding looped 'arm":"plain' oracle $big 0
  section sampled_8b_bf16 18 holding recorded arm holding looped 'arm":"plain' oracle $big 1
  section oracle_1b_bf16 12 holding recorded arm holding looped 'arm":"plain' oracle $one 0
  section drafted_1b_bf16 14 holding recorded arm holding looped arm drafted $one $small 0
  section drafted_1b_sampled 14 holding recorded arm holding looped arm drafted $one $small 1
  section steps_1b_bf16 14 holding recorded arm drafted $one $small 0 --steps

  section train_11m 13 training

  section ncu 24 profile
  together racecheck 30
  for unit in $units; do member "racecheck_$unit" sanitizer racecheck "$unit"; done
  gather

  section forward_8b_q4_k 12 holding recorded rows forward $big q4_k cuda:0 $some $far
  section forward_8b_f8 12 typed f8_e4m3 holding recorded rows forward $big f8_e4m3 cuda:0 $some $far
  section fast_8b_bf16 14 optional cuda:0/fast holding recorded rows forward $big bf16 cuda:0/fast $rows $far
  section fast_1b_bf16 8 optional cuda:0/fast holding recorded rows forward $one bf16 cuda:0/fast $rows $far
  section eager_1b_bf16 10 forward $one bf16 cuda:0/eager $some $far
  section far_8b_bf16 14 holding recorded rows forward $big bf16 cuda:0 1,8 $((4 * far))
  section peer 26 peer
  together sanitizers 20
  for tool in memcheck synccheck initcheck; do
    for unit in $units; do member "${tool}_$unit" sanitizer $tool "$unit"; done
  done
  gather
}
