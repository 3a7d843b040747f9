# Each target does its own set-up; a second run finds it done.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
FUZZ_SECONDS ?= 60
MINUTES ?= 10
LOCK   := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml

.PHONY: nemesis help demo test test-quick test-compiled test-spark coverage lint lock docs bench measurements study study-quick verified soak fuzz clean
help:
	@echo "make demo        see a causal violation happen, see it prevented, and read why"
	@echo "make test        run all tests"
	@echo "make test-quick  run the tests that take less than a quarter of a second each"
	@echo "make test-compiled  compile transport and core, and run the tests of core, transport, node and verify on it"
	@echo "make test-spark  run the tests that need Spark"
	@echo "make coverage    run all tests and write out/coverage/index.html"
	@echo "make lint        run ruff, mypy --strict and import-linter"
	@echo "make docs        build the documentation site, out/site/index.html"
	@echo "make bench       run the benchmarks"
	@echo "make measurements  run the benchmarks and write docs/measurements (on an idle machine)"
	@echo "make study       run the study and write docs/study.md (hours; it can be stopped and continued)"
	@echo "make study-quick run it with few and small runs, in about a minute"
	@echo "make verified    repeat every model check of docs/verification.md (hours of CPU time)"
	@echo "make soak        run 100,000 seeded runs of every protocol (minutes on two cores)"
	@echo "make nemesis     inject random faults into real processes for MINUTES=10, and judge their traces"
	@echo "make fuzz        run the Hypothesis tests with new examples, compare the check with brute"
	@echo "                 force on 100,000 random traces, then run Atheris on every decoder for"
	@echo "                 FUZZ_SECONDS=60 each"
	@echo "make lock        pin the dependencies again, with hashes"
	@echo "make clean       remove the environment and everything that was built"

# The environment comes from the lock file, which pins every version by its hash.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Causewire needs Python 3.11 or newer; choose one with: make PYTHON=python3.11 ..." >&2; exit 2; }
	@$(PYTHON) .ci/environment.py $(VENV) requirements.lock
	@touch $@

demo: $(STAMP)
	@$(BIN)/causewire demo --out out/demo

test: $(STAMP)
	$(BIN)/python -m pytest -q -n auto

test-quick: $(STAMP)
	$(BIN)/python -m pytest -q -n auto -m "not slow" --ignore=tests/pipeline

test-compiled: $(STAMP)
	$(BIN)/python hatch_build.py out/compiled
	PYTHONPATH=out/compiled CAUSEWIRE_PURE=0 $(BIN)/python -m pytest -q -n auto tests/test_source.py tests/core tests/transport tests/node tests/verify

coverage: $(STAMP)
	COVERAGE_PROCESS_START=pyproject.toml $(BIN)/coverage run -m pytest -q --ignore=tests/pipeline
	COVERAGE_PROCESS_START=pyproject.toml $(BIN)/coverage run -m pytest -q tests/pipeline
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet --directory out/coverage
	$(BIN)/coverage report --format total

# One process for all of these: they share a Spark session.
test-spark: $(STAMP)
	$(BIN)/python -m pytest -q tests/pipeline

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lock: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(LOCK) --extra all --group dev -o requirements.lock
	$(LOCK) --group docs -o requirements-docs.lock

docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "see out/site/index.html"

measurements: $(STAMP)
	$(BIN)/python -m campaigns.record

bench: $(STAMP)
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/sim.py
	$(BIN)/python benchmarks/check.py
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/node.py
	$(BIN)/python benchmarks/verify.py
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/pipeline.py
	$(BIN)/python benchmarks/by_node.py
	$(BIN)/python benchmarks/scan.py
	$(BIN)/python -m campaigns.planted

study: $(STAMP)
	$(BIN)/python -m campaigns.study

study-quick: $(STAMP)
	$(BIN)/python -m campaigns.study --quick

verified: $(STAMP)
	$(BIN)/python -m campaigns.verified

nemesis: $(STAMP)
	$(BIN)/python -m campaigns.failures.nemesis --minutes $(MINUTES) --out out/nemesis

soak: $(STAMP)
	$(BIN)/python -m campaigns.soak --runs 100000
	$(BIN)/python -m campaigns.adaptive --runs 100000

fuzz: $(STAMP)
	$(BIN)/python -m pytest -q -n auto --hypothesis-profile=random -k hypothesis
	$(BIN)/python -m campaigns.check_fuzz --runs 100000
	$(BIN)/python -m campaigns.decoder_fuzz all $(FUZZ_SECONDS)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist out
