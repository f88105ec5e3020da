# Few verbs; CI runs the same ones.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Tests and tools start many processes: each would compile the modules again.
export PYTHONDONTWRITEBYTECODE :=
PIP    := PYTHONWARNINGS=ignore $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: install demo serve test check types bench docs vsix lock vendor

# What the service and its commands need, and the tools to build: enough for the demo.
$(VENV)/service: pyproject.toml setup.py requirements-service.lock $(wildcard engine/*.c engine/*/*.[ch])
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo 'Installing the service into $(VENV): once'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements-service.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@rm -rf build *.egg-info
	@touch $@

# Everything: each extra, and what tests, types and lint need.
$(VENV)/installed: $(VENV)/service requirements.lock
	@echo 'Installing the tools and every extra into $(VENV): a minute or two, once'
	@$(PIP) install --require-hashes -r requirements.lock
	@touch $@

install: $(VENV)/installed

demo: $(VENV)/service
	$(BIN)/toll demo

serve: $(VENV)/service
	$(BIN)/toll serve

check: install types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

# mypy finds a package by its folder's name, and the repository's may be any: the link gives it ours.
types: install
	@mkdir -p $(VENV)/typing && ln -sfn ../.. $(VENV)/typing/tollkeeper
	MYPYPATH=$(VENV)/typing $(BIN)/mypy -p tollkeeper.grammar -p tollkeeper.engine -p tollkeeper.api -p tollkeeper.bench -m tollkeeper.cli -m tollkeeper.client

test: check
	$(BIN)/pytest -n auto --dist worksteal

bench: install
	$(BIN)/python -m tollkeeper.bench

docs: install
	$(BIN)/python -m tollkeeper.grammar.parse_table
	$(BIN)/python docs/generate.py
	$(BIN)/python editors/generate.py

# The extension for VS Code, editors/vscode/toll.vsix: needs npm.
vsix:
	cd editors/vscode && npm ci --ignore-scripts && npm test && npm run package

# For maintainers: needs uv. Pins every dependency with its hashes; the small locks agree with the whole one.
PIN := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml
lock:
	$(PIN) --extra dev -o requirements.lock
	$(PIN) --extra build -c requirements.lock -o requirements-service.lock
	$(PIN) --extra build --extra openid --extra postgres --extra telemetry -c requirements.lock -o requirements-image.lock

# For maintainers: needs Node. Bundles the console's scripts anew, with their licences and hashes.
vendor: install
	$(BIN)/python editors/console/words.py
	cd editors/console && npm ci --silent && npm run --silent build
	$(BIN)/python editors/console/lock.py
