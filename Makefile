# Everything a person needs: `make run` and `make test`. Both set the machine up first, nothing is done by hand.

PYTHON ?= python3
BIN := .venv/bin
NATIVE := $(wildcard src/zombiescope/*.pyx src/zombiescope/native/*.pxi)
PYTEST := $(BIN)/python -m pytest
PAGE := src/zombiescope/web/page/index.html
PAGE_SOURCES := $(shell find ui -name node_modules -prune -o -type f ! -name '*.test.ts' -print)

.DEFAULT_GOAL := help
.PHONY: help setup run demo test test-browser test-node test-containers test-long test-fast test-packages lint format bench bench-soak score docs lock sbom wheel clean

help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.ready $(PAGE) ## build .venv with the command zombiescope in it, and the web page

.venv/.ready: requirements/dev.txt pyproject.toml setup.py $(NATIVE)
	@scripts/need-build "$(PYTHON)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

.venv/.browser: requirements/browser.txt .venv/.ready
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/browser.txt
	@touch $@

$(PAGE): $(PAGE_SOURCES) scripts/page | .venv/.ready
	@scripts/page build
	@touch $@

run: setup ## record this machine until Ctrl-C, diagnose it, and show it at the address that it prints
	@$(BIN)/zombiescope up

demo: setup ## replay the founding case on this machine, without root; with a display, also on the page
	@$(BIN)/zombiescope demo --open

test-packages: ## install the Debian packages that tests compare with (perf, sysstat, ...)
	@scripts/need-tests

# Unit tests share nothing and run on all cores; what measures the kernel runs alone. Exit code 5: ARGS chose none of them.
test: setup .venv/.browser test-packages ## run every test but those of make test-long
	scripts/page test
	$(PYTEST) --numprocesses auto --dist loadfile tests/unit $(ARGS) || test $$? -eq 5
	$(PYTEST) -m "not long" tests/kernel tests/node $(ARGS) || test $$? -eq 5
	$(PYTEST) tests/browser $(ARGS) || test $$? -eq 5

test-browser: setup .venv/.browser test-packages ## the page in a real browser; PICTURES=DIR keeps what it looked like
	$(if $(PICTURES),ZOMBIESCOPE_PICTURES=$(abspath $(PICTURES))) $(PYTEST) tests/browser $(ARGS)

test-node: setup test-packages ## boot whole machines under QEMU, of every kernel generation, and try it on them
	$(PYTEST) tests/node $(ARGS)

test-containers: setup test-packages ## what a real Docker and a real kubelet do, recorded and diagnosed; builds kubelet once
	@scripts/need-containers
	$(PYTEST) tests/containers $(ARGS)

test-long: setup test-packages ## what takes minutes or a quiet machine: real faults diagnosed, other kernel generations
	$(PYTEST) -m long tests/kernel tests/node $(ARGS)

test-fast: setup ## run the tests that need no privileges and take no time
	$(PYTEST) --numprocesses auto --dist loadfile -m "not kernel and not node and not containers and not slow" \
	  --ignore tests/browser $(ARGS)

lint: setup .venv/.browser ## ruff (lint and format) and mypy in strict mode; the page's types, lint and format
	$(BIN)/ruff check src tests benchmarks requirements setup.py
	$(BIN)/ruff format --check src tests benchmarks requirements setup.py
	$(BIN)/mypy
	scripts/page check

format: setup ## let ruff format the code, and biome the page
	$(BIN)/ruff check --fix-only src tests benchmarks requirements setup.py
	$(BIN)/ruff format src tests benchmarks requirements setup.py
	scripts/page format

bench: setup .venv/.browser test-packages ## measure cost against perf and mpstat; figures go to docs/performance.md
	$(BIN)/python -m benchmarks $(ARGS)

bench-soak: setup test-packages ## an hour of recording: is memory flat?
	$(BIN)/python -m benchmarks soak $(ARGS)

score: setup test-packages ## every fault of the laboratory, healthy load and the stressors of stress-ng, into docs/accuracy.md
	@mkdir -p build/score; status=0; \
	$(BIN)/zombiescope lab score --yes --healthy-minutes 30 --whole-node --cores 2,16,96,192 -o build/score/score.json --page docs/accuracy.md $(ARGS) || status=$$?; \
	$(BIN)/zombiescope lab score --hold-out --yes --resume build/score/hold-out -o docs/hold-out.json --page docs/hold-out.md || status=$$?; \
	$(BIN)/python -m zombiescope.commands.lab.calibration docs build/score/score.json docs/hold-out.json; exit $$status

docs: setup ## check the pages and build them into site/
	$(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

lock: ## write requirements/*.txt anew, with hashes and without the address of any registry
	@test -x .venv/lock/bin/uv || ($(PYTHON) -m venv .venv/lock && .venv/lock/bin/pip install --quiet uv)
	@for name in runtime dev node browser; do cd requirements && ../.venv/lock/bin/uv pip compile --quiet --universal \
	  --python-version 3.11 --generate-hashes --no-header $$name.in -o $$name.txt && cd ..; done
	$(BIN)/python requirements/bill_of_materials.py --page > docs/licences.md

sbom: setup ## write dist/zombiescope.cdx.json: all that is shipped, with versions, hashes and licences (CycloneDX)
	@mkdir -p dist
	$(BIN)/python requirements/bill_of_materials.py > dist/zombiescope.cdx.json
	@echo dist/zombiescope.cdx.json

wheel: setup ## build dist/*.whl
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .

clean: ## remove what was built
	rm -rf .venv build dist site ui/node_modules src/zombiescope/web/page src/*.egg-info src/zombiescope/_native.c src/zombiescope/_native.*.so
