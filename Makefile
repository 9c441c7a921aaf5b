PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PEERS  := $(VENV)/peers
OLDEST := $(VENV)/oldest
# The pip that is there installs into the environment, which takes ten seconds less than a pip of its own; where there
# is none, the environment gets one first.
PIP     = $(shell $(PYTHON) -m pip --version >/dev/null 2>&1 && echo "$(PYTHON) -m pip --python $(VENV)" || \
          echo "$(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip")
# Small tensors run far faster on one thread; parallelism is across fits.
export OMP_NUM_THREADS ?= 1
# Without byte code every process that a test starts would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
# Datasets that tests load are downloaded once, after installing.
$(VENV)/test-ready tests coverage test-peers test-oldest search: export DROSURV_DATA ?= $(CURDIR)/$(VENV)/data

.PHONY: demo test beside-tests lint tests coverage test-peers test-r test-oldest search bench reproduce benchmark docs dist clean

# Base dependencies only: no torch, scikit-survival, LightGBM or Dask.
demo: $(VENV)/installed
	$(BIN)/drosurv demo

# Beside the tests, types are checked and then the peers compared with, when most kernels are compiled.
test: $(VENV)/test-ready
	$(MAKE) --jobs=2 tests beside-tests

beside-tests:
	$(MAKE) --jobs=1 lint test-peers

lint: $(VENV)/test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

tests: $(VENV)/test-ready
	$(BIN)/pytest -n auto --dist worksteal -m "not peer and not r" --doctest-modules tests src/drosurv

# Lines and branches of src that the tests run; compiled functions are counted only where a test calls their Python form.
coverage: $(VENV)/test-ready
	$(BIN)/pytest -n auto --dist worksteal -m "not peer and not r" --cov --cov-report=term:skip-covered tests

# lifelines needs pandas < 3, so it lives in a folder of its own that shadows the newer pandas. One process: these tests
# take no longer than a second one takes to import what they need.
test-peers: $(PEERS)/ready
	PYTHONPATH=$(PEERS) $(BIN)/pytest -m "peer and not r" $$(grep -rl "mark.peer" tests --include="test_*.py")

# Live comparisons with R (Debian: r-cran-survival); the other tests use recorded numbers of R.
test-r: $(VENV)/test-ready
	$(BIN)/pytest -n auto -m r $$(grep -rl "run_r" tests --include="test_*.py")

# The oldest supported versions of the dependencies; torch is the one of constraints.txt.
test-oldest: | $(BIN)/python
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/pip install --quiet --constraint constraints-oldest.txt --constraint constraints.txt --editable ".[test]"
	$(OLDEST)/bin/pytest -n auto --dist worksteal -m "not peer and not r" tests --ignore tests/experiments

# Examples that no run has tried yet, for every property that Hypothesis tests.
search: $(VENV)/test-ready
	HYPOTHESIS_PROFILE=search $(BIN)/pytest -n auto -m "hypothesis and not peer and not r" tests

# The experiments; ARGS are handed on, as in `make benchmark ARGS=--quick`. Stopped runs continue.
bench: $(VENV)/test-ready $(PEERS)/ready $(VENV)/bench-peers/ready
	$(BIN)/python -m experiments.speed $(ARGS)

reproduce: $(VENV)/test-ready
	$(BIN)/python -m experiments.paper $(ARGS)

benchmark: $(VENV)/test-ready $(VENV)/bench-peers/ready
	$(BIN)/python -m experiments.benchmark $(ARGS)

docs: $(VENV)/docs-ready
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# Wheel and source archive in dist/.
dist: $(VENV)/test-ready
	$(BIN)/python -c "from setuptools import build_meta; build_meta.build_sdist('dist'); build_meta.build_wheel('dist')"
	@ls dist

$(BIN)/python:
	$(PYTHON) -m venv --without-pip $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --no-compile --constraint constraints.txt --editable .
	touch $@

# Byte code is made afterwards, by all cores; pip would use one. A few files are no Python, or that of a newer version.
# A third is of packages that the tests do not import, or that are compiled already.
UNUSED := /(tests|testing|_dynamo|_inductor|fontTools|mypy|mypyc|networkx|onnx|pygments|sympy)/
define install
$(PIP) install --quiet --no-compile --constraint constraints.txt pip --editable ".$(1)"
$(BIN)/python -m compileall -qq -j 0 -x '$(UNUSED)' $(VENV)/lib src || true
endef

# Most kernels are compiled here, one process for each core, and the datasets downloaded; a test compiles or downloads
# what it does not find.
$(VENV)/test-ready: pyproject.toml constraints.txt | $(BIN)/python
	$(call install,[test])
	-PYTHONPATH=. $(BIN)/python tests/prepare.py
	touch $(VENV)/installed $@

$(VENV)/docs-ready: $(VENV)/installed
	$(call install,[docs])
	touch $@

$(PEERS)/ready: $(VENV)/test-ready
	$(BIN)/pip install --quiet --no-compile --no-deps --target $(PEERS) "lifelines>=0.30" "pandas<3" pytz autograd autograd-gamma formulaic interface-meta wrapt
	touch $@

$(VENV)/bench-peers/ready: $(VENV)/test-ready
	$(BIN)/pip install --quiet --no-deps --target $(VENV)/bench-peers "skglm>=0.5"
	-$(BIN)/pip install --quiet --no-deps --target $(VENV)/bench-peers "xgboost-cpu>=3"
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache src/*.egg-info experiments/speed/results docs/_build docs/generated docs/more_models.rst docs/gallery docs/examples/*.csv docs/examples/report.html
