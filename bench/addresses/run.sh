#!/usr/bin/env bash
# Inside the virtual machine: the bench of the address table, in instructions.
set -euo pipefail
sluice-addresses "$@"
