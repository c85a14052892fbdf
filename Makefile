# The two commands: `make book` builds and proves the book, `make test` runs the whole gate. Both set up their own environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Tests start some thousand interpreters: without bytecode, which images of containers like to switch off, each compiles rankbook again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help book test serve lint clean
.DEFAULT_GOAL := help

help:  ## show the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 10

book: $(READY)  ## generate the pages, execute every listing, build the site in site/
	@$(BIN)/rankbook book

# Four workers for two cores: tests wait for much, the end of a hung rank for example, and three leave a core idle at times.
test: $(READY)  ## lint, types, import contract, tests, the docs' own listings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest tests --ignore=tests/distributed --numprocesses=4 --dist=worksteal
	$(BIN)/rankbook gen
	$(BIN)/pytest --doctest-glob='*.md' --ignore=docs/suite docs/ README.md CONTRIBUTING.md

serve: $(READY)  ## show the book at http://127.0.0.1:8000 and rebuild it when a source changes
	$(BIN)/mkdocs serve

lint: $(READY)  ## mend what can be mended by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove everything that is made
	rm -rf $(VENV) site docs/suite .rankbook

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "rankbook needs Python 3.11 or newer; this is $$($(PYTHON) --version): say make PYTHON=python3.11, for example" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@
