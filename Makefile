# Two commands: `make serve` and `make test`. Everything they need, they set up themselves.
DIR     ?= .
PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
TOOLS   := $(VENV)/.tools
TESTS   ?= tests

.PHONY: serve test check bench clean

# The name goes through the environment, as it was typed: neither make nor the shell reads what is in it.
serve: export FOLDER := $(value DIR)
serve: $(READY)
	@case "$$FOLDER" in "~" | "~/"*) FOLDER="$$HOME$${FOLDER#?}" ;; -*) FOLDER="./$$FOLDER" ;; esac; \
	exec $(BIN)/ide-bridge serve "$$FOLDER"

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
