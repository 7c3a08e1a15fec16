# Two commands do everything on a machine with Python 3.11+ and make: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python
SOAK_MINUTES ?= 60
SOAK_SEED ?= 0
PIP = $(VENV)/bin/pip --disable-pip-version-check --quiet

.PHONY: bench wheelhouse help demo test test-all soak check coverage requirements clean

help:
	@echo "make demo       install, fit a model on an example and show it"
	@echo "make test       install what tests need and run them (a few minutes)"
	@echo "make test-all   the same with full counts of random cases"
	@echo "make soak       one model under load for an hour (SOAK_MINUTES=60): digests right, memory flat"
	@echo "make bench      every benchmark beside its peer (about two minutes); renews docs/benchmarks.md"
	@echo "make wheelhouse installed as others do: empty environments, every Python here, pip, uv and pipx (half an hour)"
	@echo "make check      ruff, mypy, import-linter"
	@echo "make coverage   tests with branch coverage of the core"

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "tallybayes needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

# A stamp per requirements file: installed once, again when the pins or the package's metadata change
$(VENV)/.run: $(VENV)/bin/python requirements/run.txt pyproject.toml
	$(PIP) install --require-hashes --no-deps -r requirements/run.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.test: $(VENV)/.run requirements/test.txt requirements/neighbours.txt requirements/spark.txt requirements/browser.txt
	$(PIP) install --require-hashes --no-deps -r requirements/test.txt
	$(PIP) install --require-hashes --no-deps -r requirements/neighbours.txt
	@if java -version >/dev/null 2>&1; then $(PIP) install --require-hashes --no-deps -r requirements/spark.txt; \
	else echo "no Java found: the Spark tests will be skipped"; fi
	@if command -v chromium >/dev/null; then $(PIP) install --require-hashes --no-deps -r requirements/browser.txt; \
	else echo "no Chromium found: the tests in a browser will be skipped"; fi
	@touch $@

bench: $(VENV)/.test
	$(RUN) benchmarks/run.py --write docs/benchmarks.md
	$(RUN) benchmarks/scaling.py --write docs/scaling.svg

demo: $(VENV)/.run
	@$(RUN) examples/clinic.py
	@echo; $(VENV)/bin/tallybayes fit examples/flats.csv --target let --set note=text -o $(VENV)/flats.tb.parquet
	@echo; $(VENV)/bin/tallybayes explain $(VENV)/flats.tb.parquet examples/flats.csv --row 1

test: $(VENV)/.test
	$(RUN) -m pytest -n 2 --dist loadgroup
	TALLYBAYES_KERNELS=off $(RUN) -m pytest -n 2 --dist loadgroup -m core

test-all: $(VENV)/.test
	TALLYBAYES_TESTS=all $(RUN) -m pytest -n 2 --dist loadgroup
	TALLYBAYES_TESTS=all TALLYBAYES_KERNELS=off $(RUN) -m pytest -n 2 --dist loadgroup -m core

soak: $(VENV)/.test
	$(RUN) tests/soak.py --minutes $(SOAK_MINUTES) --seed $(SOAK_SEED)

$(VENV)/.wheelhouse: $(VENV)/.test requirements/wheelhouse.txt
	$(PIP) install --require-hashes --no-deps -r requirements/wheelhouse.txt
	@touch $@

wheelhouse: $(VENV)/.wheelhouse
	PATH="$(abspath $(VENV))/bin:$$PATH" $(RUN) tests/wheelhouse.py

check: $(VENV)/.test
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

coverage: $(VENV)/.test
	$(VENV)/bin/coverage erase
	TALLYBAYES_KERNELS=off $(VENV)/bin/coverage run -m pytest
	$(VENV)/bin/coverage combine -q
	$(VENV)/bin/coverage report --skip-empty

# Pins with hashes, for every supported Python and system; needs uv. No index or download address is written.
COMPILE = uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
  --no-emit-index-url --no-emit-find-links --no-emit-package tallybayes pyproject.toml
BESIDE = -c requirements/test.txt -c requirements/neighbours.txt
requirements:
	$(COMPILE) --extra build --extra all -o requirements/run.txt
	$(COMPILE) --extra build --extra all --extra test --extra check -c requirements/run.txt -o requirements/test.txt
	$(COMPILE) --extra neighbours --extra mlflow --extra skl2onnx -c requirements/test.txt -o requirements/neighbours.txt
	$(COMPILE) --extra spark $(BESIDE) -o requirements/spark.txt
	$(COMPILE) --extra browser $(BESIDE) -o requirements/browser.txt
	$(COMPILE) --extra docs $(BESIDE) -o requirements/docs.txt
	$(COMPILE) --extra release $(BESIDE) -o requirements/release.txt
	$(COMPILE) --extra wheelhouse $(BESIDE) -o requirements/wheelhouse.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
