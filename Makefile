# Few verbs; CI runs the same ones.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: install demo serve test check bench docs lock

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo 'Installing into $(VENV): a minute or two, once'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@rm -rf build *.egg-info
	@mkdir -p $(VENV)/typing && ln -sfn ../.. $(VENV)/typing/tollkeeper
	@touch $@

demo: install
	$(BIN)/toll demo

serve: install
	$(BIN)/toll serve

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	MYPYPATH=$(VENV)/typing $(BIN)/mypy -p tollkeeper.grammar -p tollkeeper.engine -p tollkeeper.api -m tollkeeper.cli

test: check
	$(BIN)/pytest -n auto

bench: install
	$(BIN)/python -m tollkeeper.bench

docs: install
	$(BIN)/python docs/generate.py

# For maintainers: needs uv. Pins every dependency with its hashes.
lock:
	uv pip compile --universal --python-version 3.11 --extra dev --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements.lock
