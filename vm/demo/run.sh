#!/usr/bin/env bash
# The demonstration, inside a virtual machine. Arguments are those of "sluice demo"; its files come back.
set -euo pipefail
cd /out
exec sluice demo --json demo.json "$@"
