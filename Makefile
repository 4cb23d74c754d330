# One command for each intent. Every one of them works on a fresh clone, creates what it needs under .venv and target,
# says how long each step took and shows the output of a step only when it fails.

SHELL := /bin/bash
.NOTPARALLEL:
.DEFAULT_GOAL := help

# The first Python on PATH that is new enough; `make PYTHON=... demo` takes another one.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$python; exit; fi; \
	done; echo python3)

VENV := .venv
IN_VENV := $(VENV)/bin/python
STEP := .ci/step

# maturin installs into the environment that it believes to be active.
MATURIN := env -u CONDA_PREFIX VIRTUAL_ENV='$(CURDIR)/$(VENV)' $(IN_VENV) -m maturin

export PIP_DISABLE_PIP_VERSION_CHECK := 1

FUZZ_TARGETS := manifest index record metadata open
FUZZ_SECONDS ?= 60

.PHONY: help demo test interop lint bench compare compare-quick instructions fuzz docs wheel check-wheel prerequisites extension extension-quick

help:
	@echo 'make demo    build the release extension and run examples/quickstart.py'
	@echo 'make test    everything that checks the project: Rust tests, doctests, Python tests'
	@echo 'make interop tests against the published package 0.4.8; part of make test'
	@echo 'make lint    formatting, clippy, ruff, mypy, basedpyright, import contracts'
	@echo 'make bench   the benchmarks under benches/'
	@echo 'make compare this library, its published version, its peers and its floors in one table; compare-quick in 6 minutes'
	@echo 'make instructions  what a sample costs, in instructions of the processor; needs valgrind'
	@echo 'make fuzz    damaged files against the reader, a minute for each target; needs a C++ compiler'
	@echo 'make docs    the manual and the reference of the Rust crate, into site/ and target/doc'
	@echo 'make wheel   a release wheel and a source distribution, into dist/'
	@echo 'make check-wheel  the unit tests in fresh environments with that wheel; needs the package index'

prerequisites:
	@.ci/prerequisites $(PYTHON)

# One stamp for each dependency group of pyproject.toml: a demo does not wait for the tools of a developer.
$(VENV)/bin/python: | prerequisites
	@$(STEP) 'create $(VENV)' sh -c '$(PYTHON) -m venv $(VENV) && $(IN_VENV) -m pip install --upgrade "pip>=25.1"'

$(VENV)/.group-%: pyproject.toml | prerequisites $(VENV)/bin/python
	@$(STEP) 'install Python packages: $*' $(IN_VENV) -m pip install --group $*
	@touch $@

# The extension as it is shipped: whole-program optimisation, minutes on a fresh clone and one minute after a change.
extension: $(VENV)/.group-build
	@$(STEP) 'build the release extension (6 min on 2 cores at first)' $(MATURIN) develop --release --locked

# The same code optimised module by module: what tests run against.
extension-quick: $(VENV)/.group-build
	@$(STEP) 'build the extension (minutes on a fresh clone)' $(MATURIN) develop --profile quick --locked

demo: $(VENV)/.group-demo extension
	@$(IN_VENV) examples/quickstart.py --picture target/quickstart.png

# nextest where it is installed. Both runners end with a line that counts the tests; it is printed as it stands.
NEXTEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo yes)
ifeq ($(NEXTEST),yes)
RUST_TESTS := cargo nextest run --locked
else
RUST_TESTS := cargo test --locked --lib --tests
endif

test: $(VENV)/.group-test $(VENV)/.group-torch extension-quick
	@$(STEP) 'build the Rust tests' cargo test --locked --no-run
	@$(STEP) 'Rust tests' --closing 'tests? run:|^test result:' $(RUST_TESTS)
	@$(STEP) 'Rust doctests' --closing '^test result:' cargo test --locked --doc
	@$(STEP) 'Python tests' --closing '(passed|failed).* in [0-9.]+s' $(IN_VENV) -m pytest
	@.ci/interop $(PYTHON)

# Caches and exports both ways; needs the package index once.
interop: $(VENV)/.group-test extension-quick
	@.ci/interop $(PYTHON)

lint: $(VENV)/.group-lint
	@$(STEP) 'cargo fmt' cargo fmt --check
	@$(STEP) 'clippy' cargo clippy --locked --all-targets --features python -- -D warnings
	@$(STEP) 'clippy without Python' cargo clippy --locked -- -D warnings
	@$(STEP) 'ruff check' $(IN_VENV) -m ruff check
	@$(STEP) 'ruff format' $(IN_VENV) -m ruff format --check
	@$(STEP) 'mypy' $(IN_VENV) -m mypy
	@$(STEP) 'basedpyright' $(VENV)/bin/basedpyright --level warning
	@$(STEP) 'completeness of types' $(IN_VENV) .ci/types
	@$(STEP) 'import contracts' env PYTHONPATH=python $(VENV)/bin/lint-imports --no-logo --no-cache

bench: $(VENV)/.group-bench $(VENV)/.group-torch extension
	cargo bench --locked
	$(IN_VENV) benches/python/read_path.py
	$(IN_VENV) benches/python/loader.py

# Needs the package index once, for 0.4.8 and the peers. What it takes: COMPARE='--lines shuffled write --sets AB', or '--help'.
COMPARE ?=

compare: $(VENV)/.group-bench $(VENV)/.group-torch extension
	env PYTHONPATH=benches:benches/python $(IN_VENV) -m compare $(COMPARE)

compare-quick:
	@$(MAKE) --no-print-directory compare COMPARE='--quick $(COMPARE)'

# Optimised like the extension that the tests run against. The count does not depend on how busy the machine is.
instructions: prerequisites
	@$(STEP) 'build the count of instructions' cargo build --locked --profile quick --bench instructions
	@$(STEP) 'instructions a sample' --closing 'of what was measured' cargo bench --locked --profile quick --bench instructions

# Coverage for libFuzzer out of the stable compiler: docs/decisions/0009-fuzzing.md. Not `--locked`: the lock file of fuzz/ follows
# the dependencies of the crate.
FUZZ_FLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
	-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing

fuzz:
	@host=$$(rustc -vV | sed -n 's/^host: //p') && \
	$(STEP) 'build the fuzz targets' env RUSTFLAGS='$(FUZZ_FLAGS)' cargo build --release \
		--manifest-path fuzz/Cargo.toml --target-dir target/fuzz --target $$host && \
	bin=target/fuzz/$$host/release && $$bin/seeds target/fuzz/corpus && \
	for target in $(FUZZ_TARGETS); do \
		$(STEP) "fuzz: $$target" --closing 'Done .* runs' $$bin/$$target target/fuzz/corpus/$$target \
			-max_total_time=$(FUZZ_SECONDS) -max_len=16384 -timeout=10 -rss_limit_mb=2048 -artifact_prefix=target/fuzz/$$target- || exit 1; \
	done

docs: $(VENV)/.group-docs
	@$(STEP) 'reference of the Rust crate' env RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps
	@$(STEP) 'manual' $(IN_VENV) -m mkdocs build --strict --quiet
	@echo 'site/index.html and target/doc/dataset_rt/index.html'

# Only what was just built: `.ci/wheel` looks at everything there.
wheel: $(VENV)/.group-build
	@rm -rf dist
	@$(STEP) 'build the wheel (minutes on a fresh clone)' $(MATURIN) build --release --locked --out dist
	@$(STEP) 'build the source distribution' $(MATURIN) sdist --out dist
	@$(STEP) 'look at what is in them' $(IN_VENV) .ci/wheel --contents
	@ls dist/*

# The unit tests where the wheel is installed, and a wheel out of the source distribution. Needs the package index; minutes for
# each environment.
check-wheel: wheel
	@$(IN_VENV) .ci/wheel
	@$(STEP) 'build a wheel out of the source distribution' env CARGO_TARGET_DIR='$(CURDIR)/target' \
		$(IN_VENV) -m pip wheel --quiet --no-deps --wheel-dir target/wheel-of-source dist/*.tar.gz
