# `make demo` shows the main job, `make test` checks everything. Both set up .venv first; nothing is reinstalled
# until pyproject.toml changes. Modules are compiled when they are first used: doing it for all takes as long again.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# Compiled modules are kept even where the environment says not to: each of the dozens of processes that the tests
# start would compile scikit-learn, matplotlib and torch again, which takes as long as half of the tests.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo explore quick test pytest nightly examples coverage fuzz matrix reproduce docs docs-links lint clean

help:
	@echo "make demo       set up, simulate a molecule with two motions, factor its images, average them"
	@echo "make explore    serve a page on the demo's result, at the address it prints; Ctrl-C stops it"
	@echo "make quick      set up, lint and run the fast tests: under a minute, for the edit loop"
	@echo "make test       set up, lint, type-check and run all tests"
	@echo "make nightly    set up and run what \`make test\` leaves out: studies, packages, killed processes, damaged files"
	@echo "make examples   set up and run every example of the gallery, and the code of every page, as tests"
	@echo "make coverage   set up, run the fast tests and print their line coverage"
	@echo "make matrix     install the wheel with the lowest and the latest dependencies on every Python, and test it"
	@echo "make fuzz       set up, damage files at random and read them; CASES=20000 SEED=0 for many"
	@echo "make reproduce  set up, make every figure and the table of the paper, with numbers; half an hour"
	@echo "make docs       set up, run the examples and build the site: build/docs/index.html; no network needed"
	@echo "make docs-links set up, and check every link to other sites; needs the network"
	@echo "make lint       ruff and mypy only"
	@echo "make clean      remove the virtual environment and caches"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "manifactor needs Python 3.11 or newer; set one with: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "could not make a virtual environment; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/.core: pyproject.toml | $(BIN)/python
	@echo "installing manifactor into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[cryoem,explore,plots]'
	@touch $@ $(VENV)/.plots

$(VENV)/.plots: pyproject.toml | $(BIN)/python
	@echo "installing manifactor with its figures into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[plots]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "installing manifactor and its test tools into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.core $(VENV)/.plots

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	@echo "installing manifactor and what builds its site into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[docs]'
	@touch $@ $(VENV)/.core $(VENV)/.plots

demo: $(VENV)/.core
	@$(BIN)/manifactor demo

demo-run/run.json:
	@$(MAKE) --no-print-directory demo

explore: $(VENV)/.core demo-run/run.json
	@$(BIN)/manifactor explore demo-run

reproduce: $(VENV)/.plots
	@$(BIN)/python -m studies.paper

# Every warning is an error: links between pages, names in docstrings and failing examples are checked.
SPHINX := -m sphinx --fail-on-warning --keep-going --jobs 2 --doctree-dir build/doctrees

# DOCS_WITHOUT_FIGURES=1 runs no examples; DOCS_ONLINE=1 adds links to the pages of numpy, scikit-learn and others.
docs: $(VENV)/.docs
	@$(BIN)/python $(SPHINX) --quiet --builder html docs build/docs
	@echo "open build/docs/index.html"

docs-links: $(VENV)/.docs
	@DOCS_WITHOUT_FIGURES=1 $(BIN)/python $(SPHINX) --builder linkcheck docs build/links

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

FAST := not slow and not browser and not torch and not nightly

pytest: $(VENV)/.dev
	@$(BIN)/python -m pytest -m "not gallery and not nightly"

nightly: $(VENV)/.dev
	@$(BIN)/python -m pytest -p no:doctest -o addopts="-q -rs -n 2 --dist worksteal" -m nightly tests
	@$(MAKE) --no-print-directory fuzz

examples: $(VENV)/.dev # `make docs` runs them, too
	@$(BIN)/python -m pytest -m gallery tests

coverage: $(VENV)/.dev # not part of `make test`: traced tests take half as long again
	@$(BIN)/python -m pytest -m "$(FAST)" --cov --cov-report=
	@echo "line coverage of the fast tests: $$($(BIN)/python -m coverage report --format=total) %"

quick: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/python -m pytest -p no:doctest -o addopts="-q -n 2 --dist worksteal" \
	  -m "$(FAST) and not medium" tests

PYTHONS ?= python3.11 python3.12 python3.13

# Minutes for each environment; those of Pythons that are not installed are left out.
matrix:
	@$(PYTHON) .ci/environment.py --dependencies minimum
	@for python in $(PYTHONS); do \
	  if $$python --version > /dev/null 2>&1; \
	  then $(PYTHON) .ci/environment.py --python $$python || exit 1; \
	  else echo "$$python is not installed: left out"; fi; done

CASES ?= 2000
SEED  ?= 0

# One case alone: make fuzz KIND=star SEED=3 CASE=1234
fuzz: $(VENV)/.dev
	@$(BIN)/python -m hostile.fuzz --cases $(CASES) --seed $(SEED) $(if $(KIND),--kind $(KIND)) \
	  $(if $(CASE),--case $(CASE)) $(if $(JOBS),--jobs $(JOBS))

test: $(VENV)/.dev # mypy takes one core for half a minute; the tests use the other meanwhile
	@$(MAKE) --no-print-directory --jobs=2 lint pytest

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
	rm -rf build docs/api docs/gallery
