# Two commands do everything on a machine with Python 3.11+ and make: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python
SOAK_MINUTES ?= 60
SOAK_SEED ?= 0
PIP = $(VENV)/bin/pip --disable-pip-version-check --quiet

.PHONY: bench wheelhouse help demo test test-all sklearn-ends soak check portable coverage docs workflows dist requirements clean

help:
	@echo "make demo          install, fit a model on an example and show it"
	@echo "make test          install what tests need and run them (a few minutes)"
	@echo "make test-all      the same with full counts of random cases"
	@echo "make sklearn-ends  tests/sklearn under the oldest scikit-learn that is taken, and under the newest"
	@echo "make soak          one model under load for an hour (SOAK_MINUTES=60): digests right, memory flat"
	@echo "make bench         every benchmark beside its peer (about two minutes); renews docs/benchmarks.md"
	@echo "make wheelhouse    installed as others do: empty environments, every Python here, pip, uv and pipx (half an hour)"
	@echo "make check         ruff, mypy, import-linter"
	@echo "make portable      mypy as on Windows, macOS and the newest Python"
	@echo "make coverage      tests with branch coverage of the core"
	@echo "make docs          the site in build/site: every example run, every link followed, built twice to the same bytes"
	@echo "make workflows     GitHub workflows, templates and the citation, each against its schema"
	@echo "make dist          archive and wheel, built twice with the same bytes and checked"
	@echo "make requirements  pin all packages anew, with hashes (needs uv)"
	@echo "make clean         remove the environment and every cache"
	@echo "make help          these lines"

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

$(VENV)/.docs: $(VENV)/.test requirements/docs.txt
	$(PIP) install --require-hashes --no-deps -r requirements/docs.txt
	@touch $@

# The examples of pages, docstrings and notebooks run first, those of the gallery while it is drawn
docs: $(VENV)/.docs
	$(RUN) -m pytest -n 2 --dist loadgroup tests/test_docs.py tests/test_notebooks.py tests/test_site.py
	$(RUN) docs/build_site.py
	$(RUN) docs/look_at_site.py

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

# tests/sklearn under the oldest scikit-learn that is taken and under the newest, each in an environment of its own
SKLEARN_ENDS = 1.6 1.9
$(VENV)/sklearn-%/.ready: $(VENV)/bin/python requirements/test.txt pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip --disable-pip-version-check --quiet install --require-hashes --no-deps -r requirements/test.txt
	$(@D)/bin/pip --disable-pip-version-check --quiet install --no-deps 'scikit-learn==$*.*'
	$(@D)/bin/pip --disable-pip-version-check --quiet install --no-deps --no-build-isolation -e .
	@touch $@

sklearn-ends: $(SKLEARN_ENDS:%=$(VENV)/sklearn-%/.ready)
	for end in $(SKLEARN_ENDS); do $(VENV)/sklearn-$$end/bin/python -m pytest tests/sklearn || exit 1; done

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

# What the standard library lacks there is known to mypy
portable: $(VENV)/.test
	$(VENV)/bin/mypy --platform win32 --cache-dir .mypy_cache/windows
	$(VENV)/bin/mypy --platform darwin --cache-dir .mypy_cache/macos
	$(VENV)/bin/mypy --python-version 3.14 --cache-dir .mypy_cache/newest

coverage: $(VENV)/.test
	$(VENV)/bin/coverage erase
	TALLYBAYES_KERNELS=off $(VENV)/bin/coverage run -m pytest
	$(VENV)/bin/coverage combine -q
	$(VENV)/bin/coverage report --skip-empty

$(VENV)/.release: $(VENV)/.run requirements/release.txt
	$(PIP) install --require-hashes --no-deps -r requirements/release.txt
	@touch $@

SCHEMA = $(VENV)/bin/check-jsonschema --quiet --builtin-schema
workflows: $(VENV)/.release
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) custom.github-workflows-require-timeout .github/workflows/*.yml
	$(SCHEMA) vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA) vendor.dependabot .github/dependabot.yml
	$(SCHEMA) vendor.citation-file-format CITATION.cff
	$(VENV)/bin/zizmor --quiet --offline --no-progress --config .github/zizmor.yml .github

dist: $(VENV)/.release
	$(RUN) tools/make_dist.py

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
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
