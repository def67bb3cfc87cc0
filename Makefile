# Front door: every target does its own set-up, says what it installs, and is quick the second time.

CARGO ?= cargo
PREFIX ?= /usr/local
DESTDIR ?=

# BPF is compiled by the clang that both Debian 12 and 13 have, and bindgen reads headers with its library.
export CLANG ?= clang-19
export LIBCLANG_PATH ?= /usr/lib/llvm-19/lib

# The kernels of test-vm, demo-vm and test-cost (vm/kernel --help), and how machines run: --icount makes time exact there. Tests run on a
# plain processor, which is emulated faster.
# Each `up` loads programs, which takes an emulated processor some ten seconds: a machine is given what no other kernel shows. Commands are tested
# whole on the kernel that runs, with engine tc, and with engine qdisc on the newest one, by two machines. tests/kernels says what each leaves out.
comma := ,
skipping = $(subst $() ,$(comma),$(strip $(1) $(addprefix --skip=,$(shell sed 's/\#.*//' tests/kernels/$(2)))))
NEWEST := $(call skipping,--by-engine,newest)
OLDEST := $(call skipping,--brief,oldest)
BETWEEN := $(call skipping,--brief,between)
# What takes longest is first.
VM_KERNELS ?= debian13-backports:$(NEWEST),--part=1/2 debian13-backports:$(NEWEST),--part=2/2 debian12:$(OLDEST),--part=1/2 debian12:$(OLDEST),--part=2/2 \
  debian13:$(BETWEEN)
VM_DEMO_KERNEL ?= debian13-backports
VM_COST_KERNEL ?= debian13-backports
VM_OPTIONS ?= --icount
VM_CPU ?= qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+rdrand
VM_TIMEOUT ?= 3600
PROCESSOR_TESTS := $(subst $(comma), ,$(call skipping,--by-engine,processors)) shared_
VM_BESIDE ?=

# Passed on: which system tests (a filter, --list ...), how to run the demo, the benchmarks, what the lab does, which targets to fuzz (scripts/fuzz --help).
TEST_ARGS ?=
DEMO_ARGS ?=
BENCH_ARGS ?=
LAB_ARGS ?= run quick
FUZZ_ARGS ?=

# Everything that is tested, built once: another choice of packages has other features, and would build it again.
BUILD_TESTS = $(CARGO) build --release --locked --workspace --all-targets
# Without debug information, images of virtual machines are a sixth as large.
# Each takes its place at once, since a machine that starts may be reading it.
STRIPPED = mkdir -p target/stripped && for file in $(SLUICE) $(TESTS); do \
  strip -o "target/stripped/new-$${file\#\#*/}-$$$$" "$$file" && mv "target/stripped/new-$${file\#\#*/}-$$$$" "target/stripped/$${file\#\#*/}"; done

SLUICE := target/release/sluice
TESTS := target/release/sluice-system-tests
ARM64 := target/aarch64-unknown-linux-gnu/release
# A crate that is no member of the workspace, since it needs DPDK.
OF_DPDK := --manifest-path crates/dpdk/Cargo.toml --target-dir target/dpdk
RUN_AS_ROOT := $(if $(filter 0,$(shell id -u)),,--config 'target."cfg(unix)".runner = "sudo"')
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)

BIN := $(DESTDIR)$(PREFIX)/bin
SHARE := $(DESTDIR)$(PREFIX)/share
UNITS := $(DESTDIR)$(PREFIX)/lib/systemd/system

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help setup build look test test-unit test-native test-vm test-processors test-cost demo demo-vm lab results lists bench notebook fuzz lint deny audit install uninstall dpdk test-dpdk arm64 test-arm64 clean
.DEFAULT_GOAL := help

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install everything that the targets below would install by themselves
	@scripts/setup build test vm demo lab lint dpdk

build: ## Build target/release/sluice
	@scripts/setup build
	$(CARGO) build --release --locked -p sluice-cli

# Tests on this kernel mostly wait, so they run beside the machines; the gate on costs is last.
test: ## Run every test: unit, sluice-dpdk, system tests on this kernel, system tests on three stock kernels, several processors, and what a packet costs
	@scripts/setup build test vm dpdk lint
	$(BUILD_TESTS)
	@$(MAKE) --no-print-directory test-unit
	@$(MAKE) --no-print-directory test-dpdk
	@$(MAKE) --no-print-directory test-vm \
	  VM_BESIDE="--beside '$(MAKE) --no-print-directory test-native' --last '$(MAKE) --no-print-directory test-processors' --last '$(MAKE) --no-print-directory test-cost'"

test-unit: ## Run the tests that need neither root nor a particular kernel
	@scripts/setup build
	$(CARGO) test --release --locked --workspace

test-native: ## Run the system tests on this machine's kernel, in network namespaces (TEST_ARGS=filter)
	@scripts/setup build test
	$(BUILD_TESTS)
	$(AS_ROOT) env SLUICE_BIN=$(CURDIR)/$(SLUICE) $(TESTS) --test-threads=1 $(TEST_ARGS)
	$(CARGO) test --release --locked --workspace $(RUN_AS_ROOT) -- --ignored root_

look: ## Print times and write pages that no test can judge, for a person to look at (target/look)
	@scripts/setup build
	@mkdir -p target/look
	SLUICE_PAGES=$(CURDIR)/target/look $(CARGO) test --release --locked --workspace -- --ignored --nocapture shown_

test-vm: ## Run the system tests in virtual machines (VM_KERNELS=..., TEST_ARGS=filter)
	@scripts/setup build vm
	$(BUILD_TESTS)
	@$(STRIPPED)
	vm/each $(VM_BESIDE) "$(VM_KERNELS)" $(VM_OPTIONS) --cpu $(VM_CPU) --timeout $(VM_TIMEOUT) --add target/stripped/sluice --add target/stripped/sluice-system-tests \
	  --add policies:$(PREFIX)/share/sluice/policies vm/system-tests --test-threads=1 $(TEST_ARGS)

test-processors: ## Run the tests of one rate over the queues of several processors, in a machine that has four
	@scripts/setup build vm
	$(BUILD_TESTS)
	@$(STRIPPED)
	vm/run --verbose --kernel $(VM_DEMO_KERNEL) --smp 4 --cpu $(VM_CPU) --timeout $(VM_TIMEOUT) --add target/stripped/sluice --add target/stripped/sluice-system-tests \
	  --add policies:$(PREFIX)/share/sluice/policies vm/system-tests --test-threads=1 $(PROCESSOR_TESTS)

test-cost: ## Fail if a packet has become dearer by 5 %, as a share of what a rival costs in the same run (three minutes)
	@scripts/setup build vm
	$(BUILD_TESTS)
	$(SLUICE) lab cost --gate --kernel $(VM_COST_KERNEL)

demo: ## Show a game and a call beside downloads, without and with Sluice, on this machine
	@scripts/setup build demo
	$(CARGO) build --release --locked -p sluice-cli
	$(AS_ROOT) $(SLUICE) demo $(DEMO_ARGS)

demo-vm: ## The same on a stock kernel with BPF qdiscs, in a virtual machine; results in target/demo-vm
	@scripts/setup build demo vm
	$(CARGO) build --release --locked -p sluice-cli
	vm/run --verbose --kernel $(VM_DEMO_KERNEL) $(VM_OPTIONS) --timeout $(VM_TIMEOUT) --add $(SLUICE) \
	  --add policies:$(PREFIX)/share/sluice/policies --out target/demo-vm vm/demo $(DEMO_ARGS)

lab: ## Measure contenders against each other and write a report (LAB_ARGS="run published --vm"; see lab/README.md)
	@scripts/setup build demo lab vm
	$(CARGO) build --release --locked -p sluice-cli
	$(AS_ROOT) $(SLUICE) lab $(LAB_ARGS)

results: ## Write docs/results.md from bench/results.template.md and bench/data
	@scripts/setup build
	WRITE_RESULTS=1 $(CARGO) test --release --locked -p sluice-lab --test results

lists: ## Write the lists of disciplines in the schema, the docs and the fuzz dictionary from abi/disciplines.h
	@scripts/setup build
	WRITE_LISTS=1 $(CARGO) test --release --locked -p sluice-policy --test disciplines

bench: ## Measure costs per packet; see bench/README.md
	@scripts/setup build vm
	$(CARGO) build --release --locked -p sluice-cli
	bench/run $(BENCH_ARGS)

notebook: ## Learn classes from flows of known services, and check the policy (examples/classes)
	@scripts/setup build notebook
	$(CARGO) build --release --locked -p sluice-cli
	examples/classes/run

fuzz: ## Look for inputs that break a parser, a minute for each (FUZZ_ARGS="policy --time 600")
	@scripts/setup build fuzz
	scripts/fuzz $(FUZZ_ARGS)

lint: ## Check formatting and common mistakes: Rust, C, shell
	@scripts/setup build lint
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path crates/dpdk/Cargo.toml --check
	$(CARGO) clippy --release --locked --workspace --all-targets -- --deny warnings
	find abi bench bpf crates/classifier/src crates/dpdk/src forward sched telemetry fuzz/src -name '*.[ch]' ! -name vmlinux.h -print0 | xargs --null --no-run-if-empty clang-format-19 --dry-run --Werror
	grep --recursive --files-with-matches --null --extended-regexp '^#!.*\b(ba)?sh$$' scripts vm bench examples .ci | xargs --null shellcheck

deny: ## Check licences and sources of the crates that Sluice and sluice-dpdk depend on (deny.toml)
	@scripts/setup build
	$(CARGO) fetch --quiet --locked
	$(CARGO) fetch --quiet --locked --manifest-path crates/dpdk/Cargo.toml
	scripts/cargo-deny --locked --offline check licenses bans sources

audit: ## Check Sluice's dependencies for known vulnerabilities; needs a network
	@scripts/setup build
	scripts/cargo-deny --locked check advisories

install: ## Install what "make build" left under PREFIX (default /usr/local); DESTDIR is respected
	@[ -x $(SLUICE) ] || { echo 'make install: $(SLUICE) is not there; run "make build" first, as yourself, not as root' >&2; exit 1; }
	@mkdir -p target/install
	rm -rf target/install/man
	$(SLUICE) man target/install/man
	for shell in bash zsh fish; do $(SLUICE) completions $$shell > target/install/$$shell; done
	for unit in sluice@.service sluice-group@.service sluice-wire@.service sluice-serve.service sluice-ensure.service sluice-ensure.timer; do sed 's,@BINDIR@,$(PREFIX)/bin,' packaging/$$unit > target/install/$$unit; done
	install -D -m 755 $(SLUICE) $(BIN)/sluice
	install -d $(SHARE)/man/man8
	install -m 644 target/install/man/*.8 $(SHARE)/man/man8/
	install -D -m 644 target/install/bash $(SHARE)/bash-completion/completions/sluice
	install -D -m 644 target/install/zsh $(SHARE)/zsh/site-functions/_sluice
	install -D -m 644 target/install/fish $(SHARE)/fish/vendor_completions.d/sluice.fish
	install -d $(SHARE)/sluice/policies
	install -m 644 policies/* $(SHARE)/sluice/policies/
	install -d $(SHARE)/sluice/prometheus $(SHARE)/sluice/grafana $(SHARE)/doc/sluice/examples $(UNITS)
	install -m 644 packaging/prometheus/* $(SHARE)/sluice/prometheus/
	install -m 644 packaging/grafana/* $(SHARE)/sluice/grafana/
	install -m 644 packaging/*.conf $(SHARE)/doc/sluice/examples/
	install -m 644 target/install/*.service target/install/*.timer $(UNITS)/

uninstall: ## Remove what "make install" put there
	rm -f $(BIN)/sluice $(SHARE)/man/man8/sluice.8 $(SHARE)/man/man8/sluice-*.8 $(SHARE)/bash-completion/completions/sluice
	rm -f $(SHARE)/zsh/site-functions/_sluice $(SHARE)/fish/vendor_completions.d/sluice.fish
	rm -f $(UNITS)/sluice@.service $(UNITS)/sluice-group@.service $(UNITS)/sluice-wire@.service $(UNITS)/sluice-serve.service $(UNITS)/sluice-ensure.service $(UNITS)/sluice-ensure.timer
	rm -rf $(SHARE)/sluice $(SHARE)/doc/sluice

dpdk: ## Build target/dpdk/release/sluice-dpdk, a bump in the wire between two DPDK ports (docs/dpdk.md)
	@scripts/setup build dpdk
	$(CARGO) build --release --locked $(OF_DPDK)

test-dpdk: ## Check and test sluice-dpdk on ports of DPDK that need no card: captures, rings, null devices, veths, taps
	@scripts/setup build dpdk lint
	$(CARGO) clippy --release --locked $(OF_DPDK) --all-targets -- --deny warnings
	$(CARGO) test --release --locked $(OF_DPDK) $(RUN_AS_ROOT)

arm64: ## Cross-build for aarch64: target/aarch64-unknown-linux-gnu/release/sluice
	@scripts/setup build arm64
	scripts/arm64 build --release --locked -p sluice-cli

test-arm64: ## Run the system tests in an aarch64 virtual machine
	@scripts/setup build vm arm64
	scripts/arm64 build --release --locked -p sluice-cli -p sluice-tests
	vm/each "$(VM_DEMO_KERNEL)" --arch arm64 $(VM_OPTIONS) --timeout $(VM_TIMEOUT) --add $(ARM64)/sluice --add $(ARM64)/sluice-system-tests \
	  --add policies:$(PREFIX)/share/sluice/policies vm/system-tests --test-threads=1 $(TEST_ARGS)

clean: ## Remove what was built and the cache of kernels
	rm -rf target .cache
