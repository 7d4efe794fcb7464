# Every command of the project. `make` alone prints this list; each sets up what it needs.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.SHELLFLAGS := -eu -o pipefail -c

export CLUSTER ?= auto
export NODE ?= auto
export NODES ?= 3
export SLOTS ?= 4
export PYTHONPYCACHEPREFIX := $(CURDIR)/.local/cache/pycache
export RUFF_CACHE_DIR := $(CURDIR)/.local/cache/ruff

PYTHON ?= python3
VENV := .local/venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
RELEASED := PYTHONPATH=$(CURDIR)/.local/dist/unpacked $(RUN)
CODE := operator deploy tests benchmarks examples

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@echo
	@echo "  CLUSTER=auto|kind|local|current  NODE=auto|real|simulated  NODES=3  SLOTS=4  KEEP=1"

$(READY): pyproject.toml requirements.lock
	@echo "setup: Python packages into $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "setup: $(PYTHON) is older than 3.11; name another: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "setup: cannot make a virtual environment; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

venv: $(READY)

setup: venv ## install packages and binaries (every other command does this first where it is missing)
	@$(RUN) -m deploy.local setup

demo: venv ## watch two teams' runs from nothing to finished, then stop what was started
	@$(RUN) -m examples.demo

test: setup ## run the whole suite
	$(RUN) -m pytest

test-fast: venv ## run the parts that need no cluster
	$(RUN) -m pytest tests/unit

up: venv ## start the local cluster with the operator
	@$(RUN) -m deploy.local up

down: venv ## stop it and remove what it left
	@$(RUN) -m deploy.local down

status: venv ## say what runs, where, and whether it is well
	@$(RUN) -m deploy.local status

lint: venv ## ruff, mypy strict, import-linter
	$(VENV)/bin/ruff check $(CODE)
	$(VENV)/bin/ruff format --check $(CODE)
	$(VENV)/bin/mypy operator deploy tests benchmarks examples
	$(VENV)/bin/lint-imports --cache-dir .local/cache/import-linter

format: venv ## let ruff rewrite the code
	$(VENV)/bin/ruff check --fix $(CODE)
	$(VENV)/bin/ruff format $(CODE)

manifests: venv ## write what is generated from the models
	@$(RUN) -m agentjobs.apis.crds crds

verify: venv ## fail when what is generated differs from the models
	@$(RUN) -m agentjobs.apis.crds --check crds

fairness: venv ## write docs/fairness.md from simulations
	@$(RUN) -m benchmarks.fairness

lock: venv ## resolve the versions in requirements.lock anew
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --upgrade --group dev pyproject.toml -o requirements.lock

wheel: venv ## build the package as it is released, its policy compiled to C
	@$(RUN) -m deploy.wheel

benchmark: setup wheel ## measure the released form, print, and store under benchmarks/results/
	$(RELEASED) -m benchmarks

prove: setup wheel ## the long forms: random histories, mutants of the core, kill storms
	$(RUN) -m pytest tests/prove
	$(RELEASED) -m pytest tests/prove/test_policy.py

.PHONY: help venv setup demo test test-fast up down status lint format manifests verify fairness lock wheel benchmark prove
