# Two commands: `make serve` and `make test`. Everything they need, they set up themselves.
DIR     ?= .
PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
TOOLS   := $(VENV)/.tools
TESTS   ?= tests

.PHONY: serve test check bench clean

serve: $(READY)
	@exec $(BIN)/ide-bridge serve "$(DIR)"

test: $(TOOLS)
	PYTHONWARNDEFAULTENCODING=1 $(BIN)/python -m pytest $(TESTS)

check: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(TOOLS)
	@$(BIN)/python -m tests.bench

clean:
	rm -rf $(VENV) .cache dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(READY): pyproject.toml .ci/setup
	@.ci/setup venv "$(PYTHON)" "$(VENV)"
	@touch $@

$(TOOLS): $(READY)
	@.ci/setup tools "$(VENV)"
	@touch $@
