# Every target installs what it needs into a virtual environment in .venv, nothing system-wide.
.DEFAULT_GOAL := help
SHELL := /bin/bash -o pipefail

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ENV    := $(VENV)/.installed
BENCH  := $(VENV)/.bench-installed
AUDIT  := $(VENV)/.audit-installed
LOCKS  := requirements.lock requirements-bench.lock requirements-audit.lock

# Cluster tests mostly wait, so that several run in parallel: each worker has its own control plane (1 to 2 GiB).
WORKERS ?= 3
# The minor version of Kubernetes to test on: make test KUBERNETES=1.36
ifdef KUBERNETES
export GROVE_KUBERNETES := $(KUBERNETES)
endif
SIDE_BY_SIDE = --numprocesses $(WORKERS) --dist worksteal

.PHONY: help
help: ## list the targets
	@bold=; plain=; if test -t 1 -a -z "$$NO_COLOR"; then bold=$$(printf '\033[1m'); plain=$$(printf '\033[0m'); fi; \
	grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /|/' | sort | \
		awk -F'|' -v bold="$$bold" -v plain="$$plain" '{printf "  %s%-15s%s %s\n", bold, $$1, plain, $$2}'

$(ENV): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'Grove needs Python 3.11 or later: make PYTHON=/path/to/python3.11 ...' >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(BENCH): $(ENV) requirements-bench.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	@touch $@

$(AUDIT): $(ENV) requirements-audit.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-audit.lock
	@touch $@

.PHONY: demo
demo: $(ENV) ## start a local control plane, an operator and a sample workload, and show them
	@$(BIN)/grove demo

.PHONY: up
up: $(ENV) ## start the local cluster
	@$(BIN)/grove up $(ARGS)

.PHONY: down
down: $(ENV) ## stop the local cluster and remove its state
	@$(BIN)/grove down --delete $(ARGS)

.PHONY: test
test: $(ENV) ## run all tests, on a real control plane that is built when needed (KUBERNETES=1.36: another version)
	@$(BIN)/grove cluster prepare
	@$(BIN)/python -m tools.helm
	@$(BIN)/python -m tools.browser || true # without a browser its tests are skipped, and fail in CI
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) $(ARGS)

# What depends on the version of Kubernetes: its schedulers, admission, and upgrades of a cluster.
BY_VERSION = tests/cluster/schedulers tests/cluster/webhooks tests/cluster/operator/scheduling tests/cluster/operator/placement

.PHONY: test-by-version
test-by-version: $(ENV) ## run the tests that depend on the version of Kubernetes (KUBERNETES=1.36)
	@$(BIN)/grove cluster prepare
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) $(BY_VERSION) $(ARGS)

.PHONY: versions
versions: $(ENV) ## record what the tests find on a version of Kubernetes, for docs/kubernetes-versions.md (KUBERNETES=1.36)
	@$(BIN)/grove cluster prepare
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m proves --record-versions $(ARGS); code=$$?; \
		$(BIN)/python -m tools.generated; exit $$code

.PHONY: test-fast
test-fast: $(ENV) ## run the tests that need no control plane: five minutes of CPU time
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not cluster" $(ARGS)

.PHONY: check
check: $(ENV) ## check lint, format, types, import layers and generated files
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tools.vocabulary
	@$(BIN)/python -m tools.constants
	@$(BIN)/python -m tools.generated --check

.PHONY: fix
fix: $(ENV) ## apply ruff's fixes and format, and regenerate the generated files
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/python -m tools.generated

.PHONY: bench
bench: bench-kube bench-webhooks bench-placement bench-cli bench-dashboard bench-core ## run all benchmarks; results are ratios within one run

.PHONY: bench-cli
bench-cli: $(BENCH) ## benchmark how soon commands answer, on 500 nodes and 5,000 pods
	@$(BIN)/python -m bench.cli

.PHONY: bench-core
bench-core: $(BENCH) ## benchmark the operator against two baselines (PEER="command" PEER_DIR=manifests: and another one)
	@$(BIN)/python -m bench.core $(if $(PEER)$(PEER_DIR),--peer "$$PEER" --peer-dir "$$PEER_DIR") $(ARGS)

.PHONY: bench-dashboard
bench-dashboard: $(BENCH) ## benchmark the dashboard in a browser, on 5,000 nodes and 20,000 pods
	@$(BIN)/python -m tools.browser
	@$(BIN)/python -m bench.dashboard

# Not part of `make bench`: it takes an hour and a half. ARGS="restart fairness" runs some of its measurements.
.PHONY: bench-growth
bench-growth: $(BENCH) ## measure growth up to 10,000 pods, for docs/growth.svg: an hour and a half, not part of bench
	@$(BIN)/python -m bench.growth $(ARGS)

.PHONY: bench-kube
bench-kube: $(BENCH) ## benchmark the Kubernetes client against a bare loop and two other clients
	@$(BIN)/python -m bench.kube

.PHONY: bench-placement
bench-placement: $(BENCH) ## benchmark the placement of gangs: seconds of one core, and what is left of the cluster
	@$(BIN)/python -m bench.placement

.PHONY: bench-webhooks
bench-webhooks: $(BENCH) ## benchmark admission requests per second on one core
	@$(BIN)/python -m bench.webhooks

.PHONY: krew
krew: $(ENV) ## build the archives of kubectl-grove for krew, and their manifest, into dist/krew (URL=where they will be)
	@test -n "$(URL)" || { echo 'say where the archives will be published: make krew URL=https://...' >&2; exit 1; }
	@$(BIN)/python -m tools.krew --url "$(URL)" $(ARGS)

.PHONY: sbom
sbom: $(AUDIT) ## write software bills of materials of the package and the images to dist/sbom
	@$(BIN)/python -m tools.sbom

.PHONY: audit
audit: $(AUDIT) ## look up known vulnerabilities of all pinned packages; needs the internet
	@$(BIN)/pip-audit --strict --disable-pip --require-hashes $(LOCKS:%=--requirement %)

.PHONY: image-digests
image-digests: $(ENV) ## pin the base images of the Containerfile to the digests that their registry reports
	@$(BIN)/python -m tools.image_digests

.PHONY: lock
lock: $(ENV) ## pin the newest versions that pyproject.toml allows
	@$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --upgrade --quiet -o requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --group bench --constraint requirements.lock --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --upgrade --quiet -o requirements-bench.lock
	@$(BIN)/uv pip compile pyproject.toml --group audit --constraint requirements.lock --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --upgrade --quiet -o requirements-audit.lock
