# What people type. Nothing needs to be activated; a second call installs nothing.
VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/.ready
DOCS := .venv-docs
TYPESCRIPT := npx --yes --package typescript@5.9.3 tsc
# In a terminal, pip shows its progress.
PIP = $(PYTHON) -m pip install --disable-pip-version-check $(shell test -t 2 || echo --quiet)
# Many tests wait for other processes, so one more of them runs than there are processors.
TESTS = $(PYTHON) -m pytest -n $$(( $$($(PYTHON) -c "import os; print(os.cpu_count())") + 1 )) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup run ui test test-all check docs site bench release matrix mlflow clean

help:  ## Say what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY)  ## Make the environment in .venv from the lock file

$(READY): requirements.lock pyproject.toml
	@python3 -c 'import sys; sys.exit(not ((3, 11) <= sys.version_info < (3, 15)))' || \
		{ echo "Python 3.11 to 3.14 is needed; python3 is $$(python3 --version)"; exit 2; }
	@echo "Installing requirements.lock into $(VENV): this takes minutes, and about 3 GB"
	python3 -m venv $(VENV)
	$(PIP) --requirement requirements.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

run: setup  ## Take the tour: compare some retrievers on the bundled dataset
	$(PYTHON) -m runner experiment=tour_dense

ui: setup  ## Open the MLflow UI
	$(PYTHON) -m runner ui

# Some containers set this variable; without bytecode, each process that a test starts compiles the program anew.
test test-all: export PYTHONDONTWRITEBYTECODE =

test: setup  ## Run the tests
	$(TESTS) -m "not slow"

test-all: setup  ## Run the tests, the slow ones too
	$(TESTS)

check: setup  ## Format, lint, types, who may import whom
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	@if $(TYPESCRIPT) --version >/dev/null 2>&1; then \
		$(TYPESCRIPT) --project runner/pages/explorer/static && $(TYPESCRIPT) --project runner/features/judge/desk/templates; \
	else echo "The scripts of pages are not type-checked: npx cannot install TypeScript"; fi

docs: setup  ## Write the generated pages of docs/, then build the site
	$(PYTHON) -m runner.metrics.page docs/measures.md
	$(PYTHON) -m release.licences docs/licences.md
	$(PYTHON) -m release.commands docs/commands.md
	$(PYTHON) -m release.configuration docs/configuration.md
	$(PYTHON) -m release.security docs/security.md
	$(PYTHON) -m release.shapes docs/datasets.md
	$(PYTHON) -m release.growth
	$(MAKE) site

site: $(DOCS)/.ready  ## Build the documentation site in site/; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --quiet --strict
	@echo "The site: site/index.html"

$(DOCS)/.ready: release/docs.lock
	python3 -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement release/docs.lock
	@touch $@

bench: setup  ## Measure speed and memory against a peer, side by side
	$(PYTHON) -m benchmarks

release: setup  ## Build sdist and wheel, and try the wheel in a bare environment
	$(PYTHON) -m release.check

matrix: setup  ## Run the tests on every version of Python that this machine has
	$(PYTHON) -m release.matrix

mlflow: setup  ## Run the tests of tracking beside the oldest and the newest MLflow
	$(PYTHON) -m release.mlflow_versions

clean:  ## Remove the environment; runs and the store stay
	rm -rf $(VENV) $(DOCS)
