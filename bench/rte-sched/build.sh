#!/usr/bin/env bash
# Builds the bench of rte_sched and the scheduler of pipes, from Debian's libdpdk-dev and the source of its librte_sched.
#
# Usage: bench/rte-sched/build.sh DIRECTORY      (where everything goes; the program is DIRECTORY/bench)
set -euo pipefail
into=${1:?a directory}
here=$(dirname "$(realpath "$0")")
mkdir -p "$into"
sched=$("$here/source.sh" "$into/dpdk")
read -r -a dpdk <<< "$(pkg-config --cflags libdpdk | sed 's/-march=[a-z0-9-]*//')"
flags=(-O3 -march=native -Wall -Wno-deprecated-declarations)

# The library, as Debian has built it.
gcc "${flags[@]}" "${dpdk[@]}" -DCONTENDER=rte_sched_library -DEXACT_CLOCK=0 -c -o "$into/library.o" "$here/rte_sched.c"

# Its source, for this processor: its functions under other names, and its clock is the bench's.
mapfile -t renamed < <(sed -n 's/^\t\(rte_sched_[a-z_]*\);$/-D\1=native_\1/p' "$sched/version.map")
sed 's/rte_get_tsc_cycles()/clock_cycles()/' "$sched/rte_sched.c" > "$into/native_sched.c"
gcc "${flags[@]}" "${dpdk[@]}" -w -DALLOW_EXPERIMENTAL_API "${renamed[@]}" -I"$sched" -include "$here/contender.h" -c -o "$into/native_sched.o" "$into/native_sched.c"
gcc "${flags[@]}" "${dpdk[@]}" -I"$sched" -c -o "$into/native_approx.o" "$sched/rte_approx.c"
gcc "${flags[@]}" "${dpdk[@]}" "${renamed[@]}" -DCONTENDER=rte_sched_native -DEXACT_CLOCK=1 -c -o "$into/native.o" "$here/rte_sched.c"

pipes=()
for sizes in '4096 262144' '32768 1048576'; do
  read -r n slots <<< "$sizes"
  for kind in '' codel headers; do
    name=pipes_$n${kind:+_$kind}
    gcc "${flags[@]}" -Wno-unused-function -I"$here/../../sched" "-DSL_PIPES=$n" "-DSL_PIPE_SLOTS=$slots" "-DCONTENDER=$name" ${kind:+"-D${kind^^}"} \
      -c -o "$into/$name.o" "$here/pipes.c"
    pipes+=("$into/$name.o")
  done
done
read -r -a libraries <<< "$(pkg-config --libs libdpdk)"
gcc "${flags[@]}" "${dpdk[@]}" -o "$into/bench" "$here/bench.c" "$into/library.o" "$into/native.o" "$into/native_sched.o" "$into/native_approx.o" \
  "${pipes[@]}" -Wl,--as-needed "${libraries[@]}" -lm
