# Two commands are enough: `make demo` and `make test`. Both set everything up first.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# The version we develop with. Any torch already in the environment is left as it is.
TORCH  := torch==2.13.0
LOCK   := requirements-dev.lock

.PHONY: demo test test-all test-benchmarks docs check format clean help

demo: $(READY)  ## read the sample text with the specimen and write demo/reading.html
	@$(BIN)/headscope demo --out demo

test: $(READY) check  ## what has to pass before a change lands
	$(BIN)/python -m pytest

test-all: $(READY) check  ## the same, with the slow tests
	$(BIN)/python -m pytest -m "not benchmark" --durations=15

test-benchmarks: $(READY)  ## run every part of every benchmark once, on something small
	$(BIN)/python -m pytest -m benchmark --durations=15

check: $(READY)  ## style, types, and that data goes one way
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

docs: $(READY)  ## the documentation as a site that needs no network, in site/
	@$(BIN)/python -c 'import mkdocs, material, mkdocstrings' 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --constraint $(LOCK) --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

format: $(READY)  ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(READY): pyproject.toml $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "headscope needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12 …"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "could not make $(VENV); on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@echo "installing into $(VENV) (the first time takes a few minutes)"
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -c 'import torch' 2>/dev/null || $(BIN)/python -m pip install --quiet $(TORCH)
	@$(BIN)/python -m pip install --quiet --constraint $(LOCK) --editable '.[dev]' || \
	  { echo "not every version of $(LOCK) can be had here; taking others that fit"; \
	    $(BIN)/python -m pip install --quiet --editable '.[dev]'; }
	@touch $@

clean:  ## remove what the commands above made
	rm -rf $(VENV) demo site dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

help:
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12
