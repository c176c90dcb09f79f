# Everything a person needs: `make run` and `make test`. Both set the machine up first, nothing is done by hand.

PYTHON ?= python3
BIN := .venv/bin
NATIVE := $(wildcard src/zombiescope/*.pyx src/zombiescope/native/*.pxi)
PYTEST := $(BIN)/python -m pytest
LANES := $(BIN)/python -m tests.lanes
PAGE := src/zombiescope/web/page/index.html
PAGE_SOURCES := $(shell find ui -name node_modules -prune -o -type f ! -name '*.test.ts' -print)

.DEFAULT_GOAL := help
.PHONY: help setup generated shell run demo man selftest-recording test test-all test-page test-unit test-fuzz test-kernel test-wheel test-browser test-node test-shipped test-hostile test-containers test-agent test-cluster test-ray test-engines test-gpu test-long test-fast test-oldest test-newest test-range test-packages golden golden-accept lint format bench bench-soak bench-ranks soak-fuzz soak-churn soak-starvation soak-network soak-death score docs lock deploy alerts pictures sbom image image-steps wheel wheels deb archive test-newcomer clean

help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Each step of the set-up says what it does as it begins, and how long it takes while it runs (scripts/step).
setup: .venv/.ready $(PAGE) ## build .venv with the command zombiescope in it, and the web page

.venv/.ready: requirements/dev.txt pyproject.toml setup.py $(NATIVE)
	@scripts/step "looking for Python, its headers and a C compiler" scripts/need-build "$(PYTHON)"
	@test -x $(BIN)/python || scripts/step "making .venv" $(PYTHON) -m venv .venv
	@scripts/step "installing what it needs into .venv" \
	  $(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@scripts/step "building the native module" \
	  $(BIN)/python -m pip install -qq --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@
	@echo "the command is $(BIN)/zombiescope; 'make shell' opens a shell in which it is just zombiescope" >&2

shell: setup ## open a shell in which the README's commands work as written
	@scripts/shell

.venv/.browser: requirements/browser.txt .venv/.ready
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/browser.txt
	@touch $@

.venv/.cluster: requirements/cluster.txt .venv/.ready
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/cluster.txt
	@touch $@

.venv/.docs: requirements/docs.txt .venv/.ready
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

.venv/.wheels: requirements/wheels.txt .venv/.ready
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/wheels.txt
	@touch $@

.venv/.fuzz: requirements/fuzz.txt .venv/.ready
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/fuzz.txt
	@touch $@

$(PAGE): $(PAGE_SOURCES) scripts/page | .venv/.ready
	@scripts/step "building the web page" scripts/page build
	@touch $@

run: setup ## record and diagnose this machine until Ctrl-C, and show it in the web UI
	@$(BIN)/zombiescope up

demo: setup ## diagnose the founding case on this machine, without root; with a display, also open the page
	@$(BIN)/zombiescope demo --open

# Redirected output goes to a separate file first: a failed command must not truncate the page.
generated: setup ## rewrite every page, schema and type that is generated from the code
	@mkdir -p build
	$(BIN)/python scripts/errors_page.py
	$(BIN)/python scripts/reference_pages.py
	$(BIN)/python -m zombiescope.web.description docs && scripts/page types
	$(BIN)/python -m zombiescope.agent.config.json_schema > build/generated && mv build/generated docs/agent.schema.json
	$(BIN)/python -m zombiescope.agent.metrics.reference > build/generated && mv build/generated docs/metrics.md
	$(BIN)/python -m zombiescope.diagnosis.patterns docs/patterns
	$(BIN)/python -m zombiescope.cli.lab.unseen docs/data/lab-runs.md

selftest-recording: setup ## make the built-in recording of `zombiescope selftest` from the founding case
	@$(BIN)/python scripts/selftest_recording.py

test-packages: ## install the Debian packages that tests compare with (perf, sysstat, ...)
	@scripts/need-tests

# Each phase of the tests is a target; scripts/phases makes them one after another and prints the seconds of each.
# Unit tests share nothing and run on all cores, kernel tests with the mark `waits` four at a time; what measures the
# kernel runs alone. Nothing that failed is tried again, but what tests/quarantine.txt names (docs/design/0074).
# Without ARGS, the built wheel is tried with the oldest packages that it allows (tests/lanes).
TEST_PHASES := test-page test-unit test-fuzz test-kernel test-browser $(if $(ARGS),,test-wheel)
LONG_PHASES := test-long test-oldest test-newest test-range test-shipped test-containers test-cluster test-agent test-ray test-engines test-gpu test-newcomer
# Exit code 5: ARGS chose none of these tests.
NONE_CHOSEN := $(if $(ARGS),|| test $$? -eq 5)

test: setup ## run the tests that a change has to pass: 15 minutes on two cores
	@MAKE="$(MAKE)" scripts/phases $(TEST_PHASES)

test-all: setup ## run every test: machines, containers, clusters, every Python; hours
	@MAKE="$(MAKE)" scripts/phases $(TEST_PHASES) $(LONG_PHASES)

test-page: setup
	scripts/page test

test-unit: setup .venv/.cluster .venv/.docs test-packages
	$(PYTEST) --numprocesses auto --dist worksteal -m "not long" tests/unit $(ARGS) $(NONE_CHOSEN)

test-fuzz: setup .venv/.fuzz
	$(PYTEST) --numprocesses auto --dist loadfile tests/fuzz $(ARGS) $(NONE_CHOSEN)

test-kernel: setup test-packages ## run kernel tests that need neither minutes nor a quiet machine
	$(PYTEST) --numprocesses 4 --dist worksteal -m "waits and not long" tests/kernel $(ARGS) $(NONE_CHOSEN)
	$(PYTEST) -m "not waits and not long" tests/kernel $(ARGS) $(NONE_CHOSEN)

test-wheel: setup
	$(LANES) oldest --short

test-oldest: setup ## test the wheel with the oldest version of every requirement, on every Python here
	$(LANES) oldest $(ARGS)
	$(LANES) job

test-newest: setup ## test the wheel with the newest version of every requirement
	$(LANES) newest $(ARGS)

test-range: setup ## test the wheel with every major version of pyarrow
	$(LANES) range pyarrow $(ARGS)

test-browser: setup .venv/.browser test-packages ## test the web UI in a real browser; PICTURES=DIR saves screenshots
	$(if $(PICTURES),ZOMBIESCOPE_PICTURES=$(abspath $(PICTURES))) $(PYTEST) tests/browser $(ARGS) $(NONE_CHOSEN)

test-node: setup test-packages ## boot machines of every kernel generation under QEMU and test on them
	$(PYTEST) tests/node $(ARGS)

test-shipped: setup .venv/.cluster test-packages ## test what is installed: the pod under containerd, the unit, the .deb, the wheel; after `make deb`
	@scripts/need-containers
	$(PYTEST) tests/shipped $(ARGS)
	$(LANES) oldest --short

# What a hostile user, recording, neighbour or peer tries: names, claims, locks, secrets, cookies; units on a real
# systemd, memory that never answers and 60,000 directories with a real recorder, names on real runtimes.
HOSTILE := tests/unit/diagnosis/test_hostile_names.py tests/unit/diagnosis/test_renaming.py \
  tests/unit/fix/test_provenance.py tests/unit/fix/test_containers.py tests/unit/fix/test_units.py \
  tests/unit/recorder/test_containers.py tests/unit/recorder/test_pythons.py tests/unit/store/test_lock.py \
  tests/unit/store/test_redaction.py tests/unit/test_secret_corpus.py tests/unit/test_secrets.py \
  tests/unit/agent/test_door.py tests/unit/agent/test_webhook.py tests/unit/web/test_guard.py \
  tests/unit/fleet/test_hostile_peers.py tests/unit/node/ray/test_hostile.py tests/unit/cli/test_hostile_names.py \
  tests/unit/fix/test_image.py tests/unit/audit/test_bad_roots.py tests/unit/node/containers \
  tests/unit/node/cluster/test_bad_server.py tests/unit/store/test_object_store.py tests/unit/diagnosis/test_selftest.py \
  tests/unit/assistant/test_protocol.py

test-hostile: setup test-packages ## run attacks by hostile users, recordings and peers, also on a real systemd
	$(PYTEST) --numprocesses auto --dist worksteal $(HOSTILE) $(ARGS)
	$(PYTEST) tests/kernel/test_fix_units.py -k "name_of_a_unit or incident_is_fixed" $(ARGS)
	$(PYTEST) tests/kernel/test_hostile_users.py $(ARGS)
	@scripts/need-containers
	$(PYTEST) tests/containers/test_hostile.py $(ARGS)

test-containers: setup test-packages ## record and diagnose a real Docker and a real kubelet; builds kubelet once
	@scripts/need-containers
	$(PYTEST) tests/containers $(ARGS)

test-cluster: setup .venv/.cluster ## test against a real Kubernetes API server; builds it once from Debian's source
	@scripts/need-containers
	@scripts/need-cluster >/dev/null
	$(PYTEST) tests/cluster $(ARGS)

test-agent: setup test-packages ## scrape a real agent with Prometheus and Alertmanager during a real fault
	@scripts/need-agent
	$(PYTEST) tests/agent $(ARGS)

.venv-ray/.ready: requirements/ray.txt .venv/.ready
	@scripts/need-ray "$(PYTHON)"
	@touch $@

test-ray: setup .venv-ray/.ready ## run Ray integration tests; compare the DuckDB and Ray fleet engines
	$(PYTEST) tests/ray/test_two_nodes.py tests/ray/test_fifty_jobs.py $(ARGS)
	PYTHONPATH=src .venv-ray/bin/python -m pytest tests/ray/test_fleet_engine.py $(ARGS)

.venv-engines/.ready: requirements/engines.txt .venv/.ready
	@scripts/need-engines "$(PYTHON)"
	@touch $@

test-engines: setup .venv-engines/.ready ## read the demo's recording with Polars and Spark, as in docs/python.md
	@rm -rf build/engines && mkdir -p build/engines
	@$(BIN)/zombiescope demo --output build/engines/case --json >/dev/null
	@mv build/engines/case/recording build/engines/rec && $(BIN)/zombiescope compact build/engines/rec
	ZOMBIESCOPE_DEMO=$(abspath build/engines) .venv-engines/bin/python -m pytest tests/engines $(ARGS)

test-gpu: setup ## record and starve training on an NVIDIA GPU; needs torch in .venv
	$(PYTEST) tests/gpu $(ARGS)

test-long: setup test-packages ## run tests that take minutes or a quiet machine: real faults, booted machines, other kernels
	$(PYTEST) -m long tests/unit tests/kernel tests/node $(ARGS)

test-fast: setup ## run the tests that need no privileges and take no time
	$(PYTEST) --numprocesses auto --dist worksteal -m "not kernel and not node and not containers and not agent and not cluster and not ray and not engines and not slow" \
	  --ignore tests/browser $(ARGS)

golden: setup ## compare every command's answers about fixed recordings with the accepted ones
	$(BIN)/python -m tests.golden $(ARGS)

golden-accept: setup ## show how these answers differ, and accept the new ones
	$(BIN)/python -m tests.golden --accept $(ARGS)

lint: setup .venv/.browser .venv/.cluster ## check code with ruff and mypy, text with the style guide, and the web page's sources
	$(BIN)/ruff check src tests benchmarks requirements setup.py
	$(BIN)/ruff format --check src tests benchmarks requirements setup.py
	$(BIN)/mypy
	$(BIN)/python scripts/plain_english.py
	scripts/page check

format: setup ## format Python with ruff and the web UI with biome
	$(BIN)/ruff check --fix-only src tests benchmarks requirements setup.py
	$(BIN)/ruff format src tests benchmarks requirements setup.py
	scripts/page format

bench: setup .venv/.browser test-packages ## measure cost against perf and mpstat; figures go to docs/data/benchmarks.md
	$(BIN)/python -m benchmarks $(ARGS)

soak-churn: setup test-packages ## churn processes, cgroups and containers for two hours and check that memory stays flat; ARGS="--seconds N"
	$(BIN)/python -m benchmarks churn $(ARGS)

soak-starvation: setup ## starve the recorder, attack by attack, and count what it lost; ARGS="--seconds N"
	$(BIN)/python -m benchmarks starvation $(ARGS)

soak-network: setup ## attack the web UI and measure honest clients and the recorder; ARGS="--seconds N"
	$(BIN)/python -m benchmarks.network $(ARGS)

soak-death: setup test-packages ## test crash safety: SIGKILL, SIGSTOP, OOM and disk full at hundreds of moments
	ZOMBIESCOPE_STOPPED_S=60 $(PYTEST) tests/unit/store/test_crash_points.py tests/kernel/test_crash.py tests/kernel/test_death.py \
	  tests/kernel/test_disk_stall.py tests/kernel/test_bad_conditions.py $(ARGS)

.venv-torch/.ready:
	$(PYTHON) -m venv .venv-torch
	.venv-torch/bin/python -m pip install -qq --disable-pip-version-check torch==2.13.0 numpy
	@touch $@

bench-ranks: setup .venv-torch/.ready ## measure with PyTorch on CPU whether the late rank is named, and why; as root, ARGS="--minutes N --healthy"
	out=build/ranks/$$(date +%s) && $(BIN)/python -m benchmarks.ranks run --python .venv-torch/bin/python --out $$out $(ARGS) && \
	$(BIN)/python -m benchmarks.ranks judge $$out
	$(BIN)/python -m benchmarks.ranks table build/ranks/*

bench-soak: setup test-packages ## record for an hour and check that memory stays flat
	$(BIN)/python -m benchmarks soak $(ARGS)

soak-fuzz: setup .venv/.fuzz ## fuzz every parser two million times, the native ones under sanitizers; resumes where it stopped
	@scripts/need-fuzz
	$(BIN)/python -m tests.fuzz --page $(ARGS)

score: setup test-packages ## run every lab fault, healthy load and stress-ng stressor, and write docs/data/
	@mkdir -p build/score; status=0; \
	$(BIN)/zombiescope lab score --yes --healthy-minutes 30 --whole-node --fix --cores 2,16,96,192 -o build/score/score.json --page docs/data/lab-runs.md $(ARGS) || status=$$?; \
	$(BIN)/zombiescope lab score --hold-out --yes --background healthy-training --resume build/score/hold-out -o docs/data/unseen-faults.json --page docs/data/unseen-faults.md || status=$$?; \
	$(BIN)/python -m zombiescope.cli.lab.calibration docs/data build/score/score.json docs/data/unseen-faults.json; exit $$status

man: setup ## write the man pages, one for each command, into build/man/man1
	$(BIN)/python -m zombiescope.cli.manual build/man/man1

docs: setup .venv/.docs ## check every page and link, and build the site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

lock: ## regenerate requirements/*.txt, with hashes and without registry addresses
	@test -x .venv/lock/bin/uv || ($(PYTHON) -m venv .venv/lock && .venv/lock/bin/pip install --quiet uv)
	@for name in runtime dev node browser fuzz ray cluster engines docs wheels; do cd requirements && ../.venv/lock/bin/uv pip compile --quiet --universal \
	  --python-version 3.11 --generate-hashes --no-strip-extras --no-header $$name.in -o $$name.txt && cd ..; done
	$(BIN)/python requirements/bill_of_materials.py --page > docs/licences.md

deploy: setup .venv/.cluster ## rewrite the kustomize base (the chart with its defaults) and the page of the chart's values
	$(BIN)/helm template zombiescope deploy/helm/zombiescope --namespace zombiescope --kube-version 1.31.0 --no-hooks > deploy/kustomize/base/zombiescope.yaml
	$(BIN)/python scripts/chart_page.py deploy/helm/zombiescope > build/chart.md && mv build/chart.md deploy/helm/zombiescope/README.md

alerts: ## write build/alerts.yaml, with links to the runbooks at DOCS=https://... where you publish `make docs`
	@test -n "$(DOCS)" || { echo "make alerts: say where the pages are: make alerts DOCS=https://docs.example" >&2; exit 2; }
	@mkdir -p build
	@sed -E 's#(runbook_url: .?)docs/(.*)\.md#\1$(patsubst %/,%,$(DOCS))/\2.html#' deploy/prometheus/alerts.yaml > build/alerts.yaml
	@echo build/alerts.yaml

pictures: setup .venv/.browser test-packages ## redraw the pictures of terminal and web UI in docs/pictures
	$(BIN)/python docs/pictures/demo.py
	$(BIN)/python docs/pictures/top.py
	ZOMBIESCOPE_REDRAW=1 $(PYTEST) tests/browser/test_docs_pictures.py

sbom: setup ## write dist/zombiescope.cdx.json: all that is shipped, with versions, hashes and licences (CycloneDX)
	@mkdir -p dist
	$(BIN)/python requirements/bill_of_materials.py > dist/zombiescope.cdx.json
	@echo dist/zombiescope.cdx.json

image: setup ## build the agent's image with podman, docker or buildah; NAME=registry.example/zombiescope:1, PLATFORM=linux/arm64
	scripts/image $(NAME)

image-steps: setup ## run the image's build steps in an empty directory, test the result, print its size
	deploy/image/steps.sh

wheel: setup ## build dist/*.whl: zombiescope for this machine, and zombiescope-mark for the environment of a job
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir dist packaging/mark

wheels: setup ## build the sdist and a tested manylinux wheel for every Python on PATH; SUITES="bookworm noble forky": for those, as root
	scripts/wheels $(SUITES)

deb: setup ## build dist/*.deb for this distribution: command, unit, user, kernel setting, man pages
	scripts/deb $(firstword $(wildcard dist/zombiescope-*-cp311-*manylinux*.whl))

archive: setup .venv/.wheels ## build dist/*.tar.gz with Python, for hosts with an older one; needs the wheel for 3.13, root and minutes
	scripts/archive $(or $(firstword $(wildcard dist/zombiescope-*-cp313-*manylinux*.whl)),$(error make archive needs the wheel for Python 3.13: make wheels SUITES=forky))

test-newcomer: setup ## follow README and tutorial word for word in an empty directory; as root also as an ordinary user
	$(PYTEST) tests/newcomer $(ARGS)

clean: ## remove what was built
	rm -rf .venv .venv-engines build dist site ui/node_modules src/zombiescope/web/page src/*.egg-info src/zombiescope/_native.c src/zombiescope/_native.*.so
