# The commands of the README. Each sets up what it needs and is missing; a second call finds it there.
#
#   make demo CLAW=nanobot MODEL=scripted:oracle N=2
#   make test N=4 PYTEST_ARGS="-k prompt"

CLAW ?= nanobot
MODEL ?= scripted:oracle
N ?= 2
PYTEST_ARGS ?=
REHEARSE_ARGS ?=
export PYTHON

.DEFAULT_GOAL := help
.PHONY: help demo test test-long lint bench rehearse docker venv lock

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | column -t -s '|' 2>/dev/null \
		|| sed -nE 's/^([a-z-]+):.*## (.*)/  make \1  \2/p' $(firstword $(MAKEFILE_LIST))

# `install all` ends with 1 where a claw can't be had, which it says: the others are run all the same
demo: ## the real claw over the embedded task set, from whatever state the machine is in
	@scripts/setup.sh docker venv
	@.venv/bin/clawbench install $(CLAW) || [ "$(CLAW) $$?" = "all 1" ]
	@.venv/bin/pytest -n $(N) -m demo $(if $(filter all,$(CLAW)),,-k $(CLAW)) --model $(MODEL) $(PYTEST_ARGS)

# A worker gets whole files, in this order: what the tests of a file share is made once, and long ones come first.
# (`loadgroup` would group as finely as needed, but with pytest 9.2 pytest-xdist 3.8 does not see the groups.)
# One test that hangs must not hang them all; no test comes near this time limit.
PYTEST := .venv/bin/pytest -n $(N) --dist loadfile --no-loadscope-reorder --timeout 900

test: for-tests ## the suite's own tests, in at most ten minutes on two cores
	@$(PYTEST) tests/docker tests/unit $(PYTEST_ARGS)

test-long: for-tests ## tests that take long by nature: crashes, chaos, load, every claw and dialect
	@$(PYTEST) tests/long $(PYTEST_ARGS)

.PHONY: for-tests
for-tests:
	@scripts/setup.sh docker venv
	@.venv/bin/clawbench install $(CLAW)
	@.venv/bin/clawbench install swebench4

lint: venv ## ruff, mypy, import-linter
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports

bench: ## history preparation, seconds per case, cases an hour, export time, patches, collection, resuming, startup, the page, the gateway, claws
	@scripts/setup.sh docker venv
	@.venv/bin/python -m tools.benchmarks

rehearse: venv ## a run of 1,750 cases without an engine, with workers, controllers, disks and files lost at random
	@.venv/bin/python -m tests.long.rehearsal $(REHEARSE_ARGS)

docker: ## a Docker engine that answers, and debootstrap
	@scripts/setup.sh docker

venv: ## .venv with the locked dependencies
	@scripts/setup.sh venv

lock: venv ## requirements.lock anew, from pyproject.toml and scripts/bootstrap.in
	.venv/bin/uv pip compile -q --universal --upgrade --python-version 3.11 --extra dev --no-emit-index-url \
		--custom-compile-command "make lock" -o requirements.lock pyproject.toml scripts/bootstrap.in
