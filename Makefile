# `make repro` and `make test` set up everything they need from Python 3.11 or newer, git and a package index.

PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
CHECKED := .dvc/tmp/checked-params
PYTEST := pytest -n 2 --dist loadfile --no-loadscope-reorder
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export DVC_NO_ANALYTICS := true
export DO_NOT_TRACK := true
export MLFLOW_DISABLE_TELEMETRY := true
export HF_HUB_DISABLE_TELEMETRY := 1
# Installation compiles nothing (below), so the first import must cache its bytecode: torch takes 2.8 s, then 1.4 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: repro test test-workflow coverage check bench bench-quality bench-serving parameters docs licenses ui serve lock clean-venv

repro: $(READY)  ## run the workflow; PROFILE=name applies profiles/name.yaml, DATA=path uses local corpora, TASK=name runs one task
	@$(if $(PROFILE)$(DATA),transformer profile $(PROFILE) $(if $(DATA),--data "$(DATA)"))
	@$(MAKE) --silent $(CHECKED)
	@dvc repro $(if $(TASK),report@$(TASK))
	@transformer summary $(if $(TASK),--task $(TASK))

test: $(DEV)  ## run the unit tests and one small chain of each family, in 6 minutes
	$(PYTEST) $(ARGS)

test-workflow: $(DEV)  ## run the system tests: clones, servers, browsers, kills, other processors; in 40 minutes
	$(PYTEST) tests/system $(ARGS)

coverage: $(DEV)  ## run both and report line coverage of the package, as seen in the test processes
	$(PYTEST) tests tests/system --cov --cov-report=term $(ARGS)

check: $(DEV)  ## lint and type-check
	ruff check .
	ruff format --check .
	mypy

bench: $(DEV)  ## measure speed beside other implementations, minutes; DATA=path uses the real corpora
	python -m benchmarks $(if $(DATA),--data "$(DATA)") $(ARGS)

bench-quality: $(DEV)  ## measure the time to reach the notebooks' quality, under an hour; DATA=path as above
	python -m benchmarks.quality $(if $(DATA),--data "$(DATA)") $(ARGS)

bench-serving: $(DEV)  ## measure the translation model in every engine beside MarianMT, minutes; BUNDLE=path names another one, DATA=path as above
	python -m benchmarks.serving $(if $(BUNDLE),--bundle "$(BUNDLE)") $(if $(DATA),--data "$(DATA)") $(ARGS)

ui: $(READY)  ## serve MLflow's UI, to this machine only
	transformer ui --port $(or $(PORT),5000)

serve: $(READY)  ## open a page to try the workspace's translation model, and serve it, to this machine only; TASK=name another task's, MODEL=models:/NAME@best another one
	transformer serve --port $(or $(PORT),5001) $(if $(TASK),--task $(TASK)) $(if $(MODEL),--model "$(MODEL)")

parameters: $(READY)  ## write docs/parameters.md from the sections that declare them
	transformer parameters --markdown > docs/parameters.md

docs: $(DEV)  ## build the site from docs/ into build/docs; any warning is an error
	sphinx-build -q -W --keep-going -b html docs build/docs
	@echo "open build/docs/index.html"

licenses: $(DEV)  ## write THIRD_PARTY_LICENSES.md from what requirements.lock pins
	@echo "# Third-party licences\n\nWhat \`make repro\` installs (\`requirements.lock\`), with the licence that each package declares. Written by \`make licenses\`.\n" > THIRD_PARTY_LICENSES.md
	pip-licenses --with-system --from=mixed --format=markdown --packages $$(sed -n 's/==.*//p' requirements.lock) | sed 's/+cpu /     /' >> THIRD_PARTY_LICENSES.md

# One resolution of everything; what the workflow needs of it goes into requirements.lock, the rest into the second file.
lock:  ## pin the current versions of the dependencies in pyproject.toml
	rm -rf $(VENV) && $(PYTHON) -m venv $(VENV) && $(VENV)/bin/pip install -q -e ".[dev]"
	$(VENV)/bin/pip freeze --exclude-editable | sed 's/+cpu$$//' | grep -v '^nvidia-\|^triton==\|^cuda-' > $(VENV)/all.lock
	rm -rf $(VENV)/base && $(PYTHON) -m venv $(VENV)/base && $(VENV)/base/bin/pip install -q -c $(VENV)/all.lock -e ".[workflow]"
	$(VENV)/bin/python -c 'import sys; print("# python==%d.%d" % sys.version_info[:2])' > requirements.lock
	$(VENV)/base/bin/pip freeze --exclude-editable | sed 's/+cpu$$//' | grep -v '^nvidia-\|^triton==\|^cuda-' >> requirements.lock
	grep -vxFf requirements.lock $(VENV)/all.lock > requirements-dev.lock
	rm -rf $(VENV)/base

# Repeated only if the parameters or the code that reads them changed: it takes as long as importing torch.
$(CHECKED): params.yaml $(wildcard transformer/*.py transformer/*/*.py transformer/*/*/*.py transformer/*/*/*/*.py)
	@transformer check params.yaml
	@mkdir -p $(@D) && touch $@

# An environment cannot be moved, and in a copied folder its commands would run the original's code.
OWN := grep -sqF "$(CURDIR)/$(VENV)" $(VENV)/bin/activate
ifneq ($(shell $(OWN) && echo own),own)
.PHONY: $(READY)
endif

# compat: the repository on sys.path itself, so that a folder of its name beside a script is not taken for the package.
# pip would compile all modules first, which takes as long as everything else; most are never imported.
# The pip of Python 3.11 takes 94 s for what a new one does in 54 s.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: Python 3.11 or newer is needed, and $(PYTHON) is `$(PYTHON) --version`: name another, as in make PYTHON=python3.12"; exit 1; }
	@if ! { [ -e $@ ] && $(OWN); }; then rm -rf $(VENV); fi  # also one that another Python has begun
	@echo "installing into $(VENV): about 2 GB, a minute or more"
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --upgrade pip
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-compile -r requirements.lock
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps -e . --config-settings editable_mode=compat
	$(VENV)/bin/python -m transformer.commands.vega
	@touch $@

clean-venv:  ## remove the environment; the next `make` installs it again
	rm -rf $(VENV)

$(DEV): requirements-dev.lock $(READY)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-compile -r requirements-dev.lock
	@touch $@
