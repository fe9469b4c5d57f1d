# Needs only Python 3.11 or newer, pip and make. Everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One worker for each core. For a debugger, or to see what a test prints: make test PYTEST=".venv/bin/python -m pytest"
PYTEST ?= $(BIN)/python -m pytest -n auto
READY := $(VENV)/.installed
# Deterministic and fair to small machines: one thread unless told otherwise.
export OMP_NUM_THREADS ?= 1

.PHONY: install demo test test-compiled test-nojit test-bounds check format lint types bench docs clean

install: $(READY)

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $(READY)

demo: install
	$(BIN)/bathysphere draw toy-montezuma --by breadth-first --out demo/toy-montezuma
	$(BIN)/bathysphere draw deep-sea --size 20 --by breadth-first --out demo/deep-sea
	$(BIN)/bathysphere draw sokoban --num-boxes 2 --seed 1 --by breadth-first --fps 6 --out demo/sokoban
	$(BIN)/python examples/demo.py demo

# The kernels run three ways: compiled, as plain Python, and compiled with bounds checks.
test: test-compiled test-nojit test-bounds

test-compiled: install
	$(PYTEST)

test-nojit: install
	NUMBA_DISABLE_JIT=1 NUMBA_CACHE_DIR=.numba-nojit $(PYTEST) -m kernels

test-bounds: install
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=.numba-boundscheck $(PYTEST) -m kernels

check: install lint types test

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache --no-logo

types: install
	$(BIN)/mypy

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: install
	$(BIN)/bathysphere bench domains
	$(BIN)/bathysphere bench planner

# The documentation as a site that needs no network: open site/index.html. Broken links fail.
docs: install
	$(BIN)/python -m tools.pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

clean:
	rm -rf $(VENV) demo site .numba-* .pytest_cache .mypy_cache .ruff_cache
