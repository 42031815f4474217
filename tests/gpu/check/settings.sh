# Sizes of what is run: those of a card, and tiny ones for the emulation. Exported to the commands of sections.
budget=590 # seconds of the whole run; of them the last are for writing the results, and for what has to be killed
reserve=20
patience=1 # what limits are multiplied with, in tests on a busy machine
reaction=3 # seconds from asking a program to end to killing it
cores=$(nproc 2>/dev/null || echo 2)
PATH=$PATH:/usr/local/cuda/bin
prompt='The old house'
case $mode in
simt)
  budget=${BUDGET:-$budget} patience=${PATIENCE:-1}
  big=tiny one=tiny small=tiny vocab=512 rows=1,2 some=1,2 far=8 few=4 repeats=1 tokens=6 cases=1 length=2 runs=1
  units="draw move" model=models/story-draft-q8_0.gguf trained="synth:tiny:f32 --sequences 1 --length 8"
  export WG_GPU=simt
  ;;
*)
  big=llama-3.1-8b one=llama-3.2-1b small=draft-124m vocab=128256 rows=1,2,4,8,16,32,64 some=1,8,16,64 far=1024 few=128
  repeats=51 tokens=256 cases=60 length=64 runs=1000
  units="attention draw experts fast fused graphs matmul move rows sample taps train verify" model=models/story-target-q8_0.gguf
  trained="$model --sequences 16"
  export WG_GPU=cuda
  ;;
esac
draft=models/story-draft-q8_0.gguf
export mode big one small vocab rows some far few repeats tokens cases length runs units model trained draft prompt cores PATH
