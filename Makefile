# `make repro` and `make test` set up all they need: Python 3.11 or newer, git and the package index.

PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
CHECKED := .dvc/tmp/checked-params
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export DVC_NO_ANALYTICS := true
export DO_NOT_TRACK := true
export MLFLOW_DISABLE_TELEMETRY := true
export HF_HUB_DISABLE_TELEMETRY := 1
# Nothing is compiled at installation (below), so the first import must keep what it compiled: torch takes 2.8 s, then 1.4.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: repro test coverage mutations stress check bench bench-lasting bench-quality docs licenses ui lock clean-venv

repro: $(READY)  ## run the workflow; PROFILE=name takes profiles/name.yaml, DATA=path local corpora, TASK=name one task
	@$(if $(PROFILE)$(DATA),transformer profile $(PROFILE) $(if $(DATA),--data "$(DATA)"))
	@$(MAKE) --silent $(CHECKED)
	@dvc repro $(if $(TASK),report@$(TASK))
	@transformer summary

test: $(DEV)  ## run the tests
	pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

coverage: $(DEV)  ## the tests, and which lines of the package they run in their own processes
	pytest -n 2 --dist loadfile --no-loadscope-reorder --cov --cov-report=term $(ARGS)

mutations: $(DEV)  ## put twenty bugs into the code, one at a time: the tests must see each; some minutes
	python -m tests.mutations $(ARGS)

stress: $(DEV)  ## the tests that kill and fill up, many times: minutes
	pytest -n 2 -m stress $(ARGS)

check: $(DEV)  ## lint and type-check
	ruff check .
	ruff format --check .
	mypy

bench: $(DEV)  ## measure speed beside the peers, about 20 minutes on two cores; DATA=path takes the real corpora
	python -m benchmarks $(if $(DATA),--data "$(DATA)") $(ARGS)

bench-lasting: $(DEV)  ## measure whether training stays as fast as its first minute, half an hour; DATA=path as above
	python -m benchmarks.lasting $(if $(DATA),--data "$(DATA)") $(ARGS)

bench-quality: $(DEV)  ## measure the time to the notebooks' quality, under an hour; DATA=path takes the real corpora
	python -m benchmarks.quality $(if $(DATA),--data "$(DATA)") $(ARGS)

ui: $(READY)  ## MLflow's UI on this machine only
	transformer ui --port $(or $(PORT),5000)

docs: $(DEV)  ## build the site from docs/ into build/docs; any warning is an error
	sphinx-build -q -W --keep-going -b html docs build/docs
	@echo "open build/docs/index.html"

licenses: $(DEV)  ## write THIRD_PARTY_LICENSES.md from what requirements.lock pins
	@echo "# Third-party licences\n\nWhat \`make repro\` installs (\`requirements.lock\`), with the licence that each package declares. Written by \`make licenses\`.\n" > THIRD_PARTY_LICENSES.md
	pip-licenses --with-system --from=mixed --format=markdown --packages $$(sed -n 's/==.*//p' requirements.lock) | sed 's/+cpu /     /' >> THIRD_PARTY_LICENSES.md

# One resolution of everything; what the workflow needs of it goes into requirements.lock, the rest into the second file.
lock:  ## pin today's versions of what pyproject.toml names, for each stage in versions/
	rm -rf $(VENV) && $(PYTHON) -m venv $(VENV) && $(VENV)/bin/pip install -q -e ".[dev]"
	$(VENV)/bin/pip freeze --exclude-editable | sed 's/+cpu$$//' | grep -v '^nvidia-\|^triton==\|^cuda-' > $(VENV)/all.lock
	rm -rf $(VENV)/base && $(PYTHON) -m venv $(VENV)/base && $(VENV)/base/bin/pip install -q -c $(VENV)/all.lock -e ".[workflow]"
	$(VENV)/bin/python -c 'import sys; print("# python==%d.%d" % sys.version_info[:2])' > requirements.lock
	$(VENV)/base/bin/pip freeze --exclude-editable | sed 's/+cpu$$//' | grep -v '^nvidia-\|^triton==\|^cuda-' >> requirements.lock
	grep -vxFf requirements.lock $(VENV)/all.lock > requirements-dev.lock
	rm -rf $(VENV)/base
	$(VENV)/bin/python -m transformer.core.versions

# Again only if the parameters or the code that reads them changed: it takes as long as importing torch.
$(CHECKED): params.yaml $(wildcard transformer/*.py transformer/*/*.py transformer/*/*/*.py)
	@transformer check
	@mkdir -p $(@D) && touch $@

# own_commands.pth: .venv/bin/dvc finds the `python` beside it, which runs the stages, also where nothing is activated.
# pip would compile all modules first, which takes as long as all the rest; most are never imported.
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-compile -r requirements.lock
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps -e .
	cp own_commands.pth "$$($(VENV)/bin/python -c 'import site; print(site.getsitepackages()[0])')"
	$(VENV)/bin/python -m transformer.commands.vega
	@touch $@

$(DEV): requirements-dev.lock $(READY)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-compile -r requirements-dev.lock
	@touch $@
