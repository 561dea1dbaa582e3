# Every target makes .venv when it is missing and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: settings demo test test-baselines lint format study bench clean

$(VENV)/.base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --editable ".[dev,bench]"
	touch $@

demo: $(VENV)/.base
	$(BIN)/sadrec demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) -m "not baselines"

test-baselines: $(VENV)/.dev
	$(BIN)/python -m pytest -m baselines

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# make study NAME=table ARGS="--dataset movielens-100k --splits 2"
study: $(VENV)/.base
	$(BIN)/python -m studies.$(NAME) $(ARGS)

settings: $(VENV)/.dev
	$(BIN)/python docs/settings.py

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/training.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
