#!/usr/bin/env bash
# Fetches the source of Debian's librte_sched, of the version that is installed, into a directory; through apt, with lists of its own.
#
# Usage: bench/rte-sched/source.sh DIRECTORY
set -euo pipefail
into=${1:?a directory}
version=$(dpkg-query -W -f '${source:Version}' libdpdk-dev)
sources=$into/lib/sched
if [ "$(cat "$into/version" 2> /dev/null)" = "$version" ] && [ -e "$sources/rte_sched.c" ]; then
  echo "$sources"
  exit
fi
rm -rf "$into"
mkdir -p "$into/parts" "$into/lists/partial"
# The system may not list sources: the same archives, as sources.
[ ! -e /etc/apt/sources.list.d/debian.sources ] || sed 's/^Types:.*/Types: deb-src/' /etc/apt/sources.list.d/debian.sources > "$into/parts/debian.sources"
[ ! -e /etc/apt/sources.list ] || sed -n 's/^deb /deb-src /p' /etc/apt/sources.list > "$into/parts/debian.list"
private=(-q -q -o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$(realpath "$into/parts")" -o "Dir::State::lists=$(realpath "$into/lists")"
  -o APT::Sandbox::User=root)
apt-get "${private[@]}" update >&2
(cd "$into" && apt-get "${private[@]}" source --download-only "dpdk=$version" >&2)
tar -xf "$into"/dpdk_*.orig.tar.* -C "$into" --strip-components=1 --wildcards '*/lib/sched/*'
# Debian's changes to it, if there are any.
if tar -tf "$into"/dpdk_*.debian.tar.* | grep -q 'debian/patches/series'; then
  tar -xf "$into"/dpdk_*.debian.tar.* -C "$into" debian/patches
  while read -r patch _; do
    case $patch in '' | '#'*) continue ;; esac
    if grep -q '^+++ b/lib/sched/' "$into/debian/patches/$patch"; then
      (cd "$into" && patch --quiet -p1 < "debian/patches/$patch" >&2)
    fi
  done < "$into/debian/patches/series"
fi
echo "$version" > "$into/version"
echo "$sources"
