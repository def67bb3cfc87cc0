#!/usr/bin/env bash
# Builds the bench of backpressure: the scheduler of pipes for 4,096 and 32,768 pipes, for this processor and for each way of comparing pipes.
#
# Usage: bench/backpressure/build.sh DIRECTORY      (where everything goes; the program is DIRECTORY/bench)
set -euo pipefail
into=${1:?a directory}
here=$(dirname "$(realpath "$0")")
mkdir -p "$into"
flags=(-O3 -Wall -Wno-unused-function -I"$here/../../sched")
objects=()
for sizes in 'few 4096 262144' 'many 32768 1048576'; do
  read -r name pipes slots <<< "$sizes"
  for way in 'native -march=native' 'avx2 -march=native -mno-avx512f' 'sse2 -march=x86-64-v2' 'plain -march=native -DSL_PIPE_PLAINLY'; do
    read -r suffix way_flags <<< "$way"
    read -r -a way_flags <<< "$way_flags"
    gcc "${flags[@]}" "${way_flags[@]}" "-DSL_PIPES=$pipes" "-DSL_PIPE_SLOTS=$slots" "-DCONTENDER=${name}_$suffix" \
      -c -o "$into/${name}_$suffix.o" "$here/contender.c"
    objects+=("$into/${name}_$suffix.o")
  done
done
gcc "${flags[@]}" -o "$into/bench" "$here/bench.c" "${objects[@]}"
