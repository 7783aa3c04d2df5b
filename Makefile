PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
EQUIPPED := .venv/equipped
SERVED := .venv/served
SHOWN := .venv/shown
DOCUMENTED := .venv/documented
PIP := $(BIN)/pip install -qq --disable-pip-version-check

# Tests start many processes: where this is set, each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.SILENT:
.PHONY: help setup run ui test test-system surroundings fuzz mutants simulate bench kernels docs agreement site shape language figures golden golden-tools golden-clones clean startup

help: ## List the targets.
	grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /	/' | expand -t 13

setup: $(EQUIPPED) ## Create .venv and install the pinned dependencies, those of the tests included.

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rankledger needs Python 3.11 or newer; set PYTHON")'
	echo 'Installing the pinned dependencies in .venv'
	$(PYTHON) -m venv .venv
	$(PIP) --constraint constraints.txt --upgrade pip setuptools
	$(PIP) --constraint constraints.txt --editable .
	touch $@

$(EQUIPPED): $(INSTALLED)
	echo 'Installing the pinned dependencies of the tests in .venv'
	$(PIP) --constraint constraints.txt --editable '.[dev]'
	$(PIP) --constraint constraints.txt --no-deps beir
	touch $@

$(SHOWN): $(INSTALLED)
	$(PIP) --constraint constraints.txt --editable '.[ui]'
	touch $@

$(SERVED): $(EQUIPPED)
	$(PIP) --constraint constraints.txt --editable '.[system]'
	$(PIP) --constraint constraints.txt --no-deps axe-playwright-python
	touch $@

$(DOCUMENTED): $(INSTALLED)
	$(PIP) --constraint constraints.txt --editable '.[docs]'
	touch $@

run: $(INSTALLED) ## Evaluate configs/quickstart.yaml: a leaderboard, a record, runs in MLflow.
	$(BIN)/rankledger evaluate configs/quickstart.yaml

ui: $(SHOWN) ## Open MLflow on the local store, at http://127.0.0.1:5000; installs its pages.
	MLFLOW_DISABLE_TELEMETRY=true $(BIN)/mlflow ui --backend-store-uri sqlite:///runs/mlflow.db --host 127.0.0.1 --port 5000

test: $(EQUIPPED) ## Check lint, formatting and types, and run all tests.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest --numprocesses logical --maxprocesses 8 --dist worksteal

test-system: $(SERVED) ## Run tests/system: real servers (PostgreSQL, object stores, MLflow), faults, kills. Installs what it needs.
	tests/system/install.sh
	$(BIN)/pytest tests/system --numprocesses 3 --dist loadfile --no-loadscope-reorder

surroundings: $(SERVED) ## Kill 600 evaluations, close folders, move clocks, lie for MLflow; WRITE=--write puts the counts into a guide. Takes an hour.
	tests/system/install.sh
	$(BIN)/python -m tests.surroundings $(WRITE)

fuzz: $(EQUIPPED) ## Give 200,000 mutated inputs to everything that reads one; see tests/fuzz. Takes a quarter of an hour.
	$(BIN)/python -m tests.fuzz --runs 200000 $(FUZZ)

mutants: $(EQUIPPED) ## Change the code in one place at a time, 200 times, and count what the tests notice. Takes hours.
	$(BIN)/python -m tests.mutants $(MUTANTS)

simulate: $(EQUIPPED) ## Repeat the simulations of the guides on inference and gates; WRITE=--write puts them there. About 10 minutes.
	$(BIN)/python -m tests.simulations $(WRITE)

bench: $(EQUIPPED) ## Time whole evaluations beside other tools: CASES="l parquet", BENCH=--small or --write. Takes hours.
	$(BIN)/python -m tests.benchmarks $(CASES) $(BENCH)

kernels: $(EQUIPPED) ## Time the kernels, the page, the comparisons and the resampling.
	$(BIN)/pytest tests/benchmarks --override-ini python_files='bench_*.py' --benchmark-columns=min,median,max,rounds

startup: $(EQUIPPED) ## Print the CPU time of whole processes beside that of `import mlflow`.
	$(BIN)/python -m tests.benchmarks.startup

docs: $(EQUIPPED) ## Rebuild the generated parts of the documentation.
	$(BIN)/python docs/generate.py

agreement: $(EQUIPPED) ## Rebuild docs/agreement.csv, what agrees with which tool; MODULES="tests/agreement/test_ranx.py" rebuilds these alone.
	RANKLEDGER_AGREEMENT=write $(BIN)/pytest $(or $(MODULES),tests/agreement)
	$(BIN)/python docs/generate.py

site: $(DOCUMENTED) ## Build the documentation site in site/; a dead link fails.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

shape: $(EQUIPPED) ## Print figures of the code's shape beside their limits, and fail if one is above.
	$(BIN)/python -m tests.shape

language: $(EQUIPPED) ## Print how often each language rule is broken beside its limit: RULES='"local name"' prints the places.
	$(BIN)/python -m tests.language $(RULES)

figures: $(EQUIPPED) ## Compare the figures of the example configs with those of a commit: BASE=main. Takes some minutes.
	$(BIN)/python -m tests.figures $(or $(BASE),$(error BASE=commit is missing))

golden: $(EQUIPPED) ## Rebuild tests/golden/ticks.jsonl from matplotlib, never from our own code.
	$(BIN)/python tests/golden/make_ticks.py

golden-tools: $(EQUIPPED) ## Rebuild tests/golden/tools from RecBole, torchmetrics and ranx; installs them, 2 GB.
	$(PIP) --constraint constraints.txt --editable '.[golden]'
	$(PIP) --constraint constraints.txt --no-deps recbole
	$(BIN)/python -m tests.golden.make_tools ranx recbole torchmetrics

golden-clones: $(EQUIPPED) ## Rebuild tests/golden/tools from programs of repositories, cloned in the folder CLONES.
	$(PIP) --no-deps --ignore-requires-python --upgrade --target $(or $(CLONES),$(error CLONES=folder is missing)) \
	  balance==0.23.0 fairlearn==0.15.0 narwhals==2.29.0 nuggetizer==0.0.5 obp==0.5.5 open-rag-eval==0.3.0 xarray==2026.9.0
	PYTHONPATH=$(CLONES) GOLDEN_CLONES=$(CLONES) $(BIN)/python -m tests.golden.make_tools evidence fairness logs

clean: ## Remove the environment and all caches; records and the MLflow store stay.
	rm -rf .venv build site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
