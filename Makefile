# Everything happens in a virtual environment of this folder; only Python and make must be there.
#     make test PYTHON=python3.13 VENV=.venv-3.13

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
BIN := $(VENV)/bin
CORE := $(VENV)/.core
STAMP := $(VENV)/.installed
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
	-c constraints.txt

export MPLBACKEND ?= Agg

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install demo test lint types imports unit examples docs dist test-lowest shape \
	format bench clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:.*## /|/' \
		| awk -F'|' '{ printf "  make %-12s %s\n", $$1, $$2 }'

# The build backend is installed first, pinned like all the rest, and used as it is. What the demo
# needs comes by itself; the tools of the other targets (PyTorch among them) only with $(STAMP).
$(CORE): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) hatchling
	$(PIP_INSTALL) --no-build-isolation -e .
	@touch $@

$(STAMP): $(CORE)
	$(PIP_INSTALL) --no-build-isolation -e '.[dev]'
	@$(PIP_INSTALL) hnswlib > /dev/null 2>&1 \
		|| echo "hnswlib needs a C++ compiler: its tests will be skipped"
	@touch $@

install: $(STAMP)  ## make the virtual environment

demo: $(CORE)  ## run examples/demo.py: installs the library alone
	$(BIN)/python examples/demo.py

test: lint types imports unit examples docs  ## all checks: what must pass before a change is merged

lint: $(STAMP)  ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## mypy
	$(BIN)/mypy

imports: $(STAMP)  ## import-linter: the dependency direction
	$(BIN)/lint-imports --no-logo

unit: $(STAMP)  ## pytest with coverage: tests and the examples in docstrings
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --cov --cov-report=term

examples: $(STAMP)  ## run every script in examples/
	@set -e; for script in $(wildcard examples/*.py); do \
		echo "$(BIN)/python $$script"; $(BIN)/python -W error "$$script" > /dev/null; done

docs: $(STAMP)  ## build the pages and the gallery into build/site; warnings are errors
	$(BIN)/sphinx-build -q -W --keep-going -d build/doctrees docs build/site

dist: $(STAMP)  ## build wheel and source archive into dist/, check both, install them twice
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist . > /dev/null
	$(BIN)/python -m tools.check_dist dist --install

# PyTorch is left out: its lowest version comes with gigabytes for GPUs.
LOWEST := .venv-lowest
test-lowest:  ## the tests with the lowest versions that pyproject.toml admits
	$(PYTHON) -m venv $(LOWEST)
	mkdir -p build
	$(PYTHON) tools/lowest.py cli report export test > build/lowest.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
		-c build/lowest.txt hatchling
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
		-c build/lowest.txt --no-build-isolation -e '.[cli,report,export]' \
		pytest pytest-xdist hypothesis
	$(LOWEST)/bin/python -m pip check
	$(LOWEST)/bin/python -m pytest -n $(JOBS) --dist worksteal $(TESTS)

shape: $(STAMP)  ## figures of the package: modules, lines, lengths, depth; 1 where a limit is exceeded
	$(BIN)/python tools/shape.py

format: $(STAMP)  ## repair formatting and what ruff can repair by itself
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(STAMP)  ## run every benchmarks/bench_*.py
	@set -e; for script in $(wildcard benchmarks/bench_*.py); do \
		echo "$(BIN)/python $$script"; $(BIN)/python "$$script"; done

clean:  ## remove the virtual environment, caches and outputs
	rm -rf $(VENV) build dist docs/gallery docs/api/generated docs/api/backreferences \
		.coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks examples experiments tools -name __pycache__ -type d -prune -exec rm -rf {} +
