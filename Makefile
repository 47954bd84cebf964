# Two commands: `make serve` and `make test`. Everything they need, they set up themselves.
DIR     ?= .
PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
CACHE   := .cache
READY   := $(VENV)/.ready
TOOLS   := $(VENV)/.tools

.PHONY: serve test check bench clean setup

serve: $(READY)
	@$(BIN)/ide-bridge serve "$(DIR)"

setup: $(TOOLS)

$(READY): pyproject.toml
	@.ci/setup venv "$(PYTHON)" "$(VENV)"
	@touch $@

$(TOOLS): $(READY) pyproject.toml
	@.ci/setup tools "$(VENV)"
	@touch $@
