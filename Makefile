# Each target does its own set-up; a second run finds it done.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
FUZZ_SECONDS ?= 60

.PHONY: help demo test test-spark lint docs bench verified soak fuzz clean
help:
	@echo "make demo    see causality break, hold, and why"
	@echo "make test    the tests, in minutes"
	@echo "make test-spark  the part of them that runs on Spark"
	@echo "make lint    ruff, mypy --strict, import directions"
	@echo "make docs    the documentation as a site, out/site/index.html"
	@echo "make bench   the benchmarks, as ratios"
	@echo "make verified    every model check of docs/verification.md again (hours of CPU time)"
	@echo "make soak    100,000 seeded runs for every protocol (minutes on two cores)"
	@echo "make fuzz    100,000 random traces against the brute-force check; every decoder"
	@echo "             with Atheris, for FUZZ_SECONDS=60 each"

# The environment: from the lock file, which pins every version.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "causewire needs Python 3.11 or newer: make PYTHON=python3.11 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP)
	@$(BIN)/causewire demo --out out/demo

test: $(STAMP)
	$(BIN)/python -m pytest -q -n auto --ignore=tests/pipeline
	$(BIN)/python -m pytest -q tests/pipeline

# One process for all of these: they share a Spark session.
test-spark: $(STAMP)
	$(BIN)/python -m pytest -q tests/pipeline

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-docs.lock
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "see out/site/index.html"

bench: $(STAMP)
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/sim.py
	$(BIN)/python benchmarks/check.py
	$(BIN)/python benchmarks/node.py
	$(BIN)/python benchmarks/verify.py
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/pipeline.py
	$(BIN)/python benchmarks/scan.py
	$(BIN)/python -m campaigns.planted

verified: $(STAMP)
	$(BIN)/python -m campaigns.verified

soak: $(STAMP)
	$(BIN)/python -m campaigns.soak --runs 100000

fuzz: $(STAMP)
	$(BIN)/python -m campaigns.check_fuzz --runs 100000
	$(BIN)/python -m campaigns.decoder_fuzz all $(FUZZ_SECONDS)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist out
