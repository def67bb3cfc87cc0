#!/usr/bin/env bash
# The system tests, inside a virtual machine. Arguments are the test program's.
set -euo pipefail
export SLUICE_BIN=/usr/bin/sluice
exec sluice-system-tests "$@"
