# Every target makes .venv when it is missing and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# more than the cores of a small machine: tests of clusters and services wait a good part of their time
WORKERS ?= 3

.PHONY: demo-cluster campaigns audit sbom dist build/user browser screenshots settings docs figures demo test test-all test-baselines test-integrations lint format study bench clean

$(VENV)/.base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[plot,serve]"
	touch $@

$(VENV)/.test: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

$(VENV)/.docs: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $@

$(VENV)/.release: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --editable ".[release]"
	touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --editable ".[dev,bench]"
	touch $@

demo: $(VENV)/.base
	$(BIN)/sadrec demo

# A browser for the tests of the explorer, where it can be installed; without one they are skipped and say so.
browser:
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && timeout 600 sh -c \
	  "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium \
	  fonts-dejavu-core" >/dev/null 2>&1; } || echo "no Chromium: the tests of the explorer will be skipped"

# Every promise of the README, without Ray, a browser or PyTorch; tests/conftest.py says what is left to test-all
test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations 15 -m "not extra and not baselines"

# Everything: also the cluster, the explorer in a browser, campaigns, studies, notebooks, and floors on real data
test-all: $(VENV)/.dev browser
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations 15 -m "not baselines"

test-baselines: $(VENV)/.dev
	$(BIN)/python -m pytest -m baselines --ignore=tests/integrations

# Inside Cornac, RecTools and both lines of LensKit, each in an environment of its own
test-integrations: $(VENV)/.dev
	$(BIN)/python -m pytest -m baselines tests/integrations

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

# The pictures of the explorer in docs/images
screenshots: $(VENV)/.dev browser
	SADREC_SCREENSHOTS=$(CURDIR)/docs/images $(BIN)/python -m pytest -q tests/serving/test_explorer.py -k screenshots

settings: $(VENV)/.dev
	$(BIN)/python docs/settings.py

# The site, with every notebook executed, in build/docs; a warning or a cell that fails is an error
docs: $(VENV)/.docs
	$(BIN)/python docs/build.py build/docs

# The drawings of the site in docs/images
figures: $(VENV)/.docs
	$(BIN)/python docs/figures.py

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/training.py

# Faults on purpose, with the counts of docs/results/reliability/README.md
campaigns: $(VENV)/.dev
	$(BIN)/python -m campaigns

# What a user gets with `pip install sadrec`, in an environment of its own
build/user: $(VENV)/.release
	rm -rf $@
	$(PYTHON) -m venv $@
	$@/bin/python -m pip install --quiet .

# Three Ray nodes on this machine train, one is killed, and the bits are those of one machine (docs/cluster.md)
demo-cluster: $(VENV)/.dev
	$(BIN)/python -m campaigns.cluster --demo

# Known vulnerabilities of what the library depends on
audit: build/user
	$(BIN)/python -m campaigns._audit build/user/bin/python

# The bill of materials that goes with a release, as CycloneDX
sbom: build/user
	mkdir -p dist
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file dist/sadrec.cdx.json \
		build/user/bin/python

# Wheel and source archive, checked by twine and used in empty environments of every Python that is there
dist: $(VENV)/.release
	rm -f dist/*.whl dist/*.tar.gz
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz
	$(BIN)/python tests/installed.py dist

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
