PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check bench clean

demo: $(STAMP)  ## the main job on the embedded data: five segments nobody announces
	$(BIN)/tame run --out runs/demo --overwrite

test: $(STAMP)  ## every test that needs no system package
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

check: $(STAMP)  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(STAMP)  ## the measurements behind the README's figures (minutes)
	$(BIN)/python benchmarks/embedded.py
	$(BIN)/python benchmarks/fresh_seeds.py
	$(BIN)/python benchmarks/kills.py

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) build dist runs src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
