# All set-up happens in .venv, which is made anew when pyproject.toml or constraints.txt change. Another interpreter needs
# another folder: make test PYTHON=python3.13 VENV=.venv-3.13
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
QUICK := runs/quick
SITE_SOURCES := $(shell find agents cbo_gym docs examples results website *.md *.y*ml -type f -not -name '*.pyc')

.PHONY: help install leaderboard results agent-results readme pictures choice surface notebooks verify test test-slow benchmark \
  registry zoo docs serve release lint format clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

install: $(READY)  ## create .venv and install the package with its test tools

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $(READY)

leaderboard: $(READY)  ## run a small leaderboard (a minute or two) and print it
	$(BIN)/cbo-gym sweep $(QUICK) --seeds 5 --horizon 20 \
	  -a Random -a GP-UCB -a EICF -a MCBO \
	  -e CBO/Dropwave-v0 -e CBO/Alpine2-v0 -e CBO/Rosenbrock-v0 -e CBO/ToyGraph-v0
	$(BIN)/cbo-gym leaderboard $(QUICK)

results: $(READY)  ## play the tasks of the README's table, publish them and write it (a quarter of an hour on two cores)
	$(BIN)/python -c "from website.commands.showcase import play; play()"
	$(BIN)/cbo-gym publish runs/showcase --suite showcase
	$(MAKE) readme

agent-results: $(READY)  ## measure what the agents' pages say of cost and results (half an hour on two cores), or with AGENT=NAME one
	$(BIN)/python -c "from website.pages.agent_results import play; play('$(AGENT)')"
	$(BIN)/cbo-gym publish runs/agents --suite agents
	$(MAKE) readme

readme: $(READY)  ## write the README's tables and the agents' pages' numbers from the published results
	test ! -f results/showcase.parquet || $(BIN)/python -c "from website.commands.showcase import write; write()"
	test ! -f results/agents.parquet || $(BIN)/python -c "from website.pages.agent_results import write; write()"

pictures: $(READY)  ## draw the README's pictures anew, from real runs (needs Chromium)
	$(BIN)/python -m website.commands.readme_pictures

choice: $(READY)  ## hold the rules of Auto against every other agent, on the published results, and write the pages about it
	$(BIN)/python -m website.pages.choice_evidence --write
	$(BIN)/python -c "from website.pages.which_method import write; write()"

surface: $(READY)  ## write the list of the stable names, after a name or a parameter was added
	$(BIN)/python -c "from website.pages.surface import write; write()"

notebooks: $(READY)  ## write the notebooks of the tutorials, after an edit of a tutorial
	$(BIN)/python -c "from website.commands.notebooks import write; write()"

verify: $(READY)  ## play some of the published runs again and compare
	$(BIN)/cbo-gym verify results --sample 20

# the tests start some hundred processes, and without compiled files each would compile the package anew
test: $(READY)  ## the default tests, one process a core
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -p no:benchmark

test-slow: $(READY)  ## the long statistical tests
	$(BIN)/python -m pytest -m slow

benchmark: $(READY)  ## the speed tests, one process
	$(BIN)/python -m pytest -m benchmark tests/benchmarks

registry: $(READY)  ## write the copy of envs_registry.yaml that is read without a YAML parser, after an edit of that file
	$(BIN)/python -c "from cbo_gym.envs.registry import *; write_text(COPY, copy_of(registry_path()))"

zoo: $(READY)  ## renew the cards of the agents, after an agent was added or its docstring edited
	$(BIN)/python -c "from cbo_gym.agent_registry.cards import cards_json; print(cards_json(), end='')" > $(VENV)/cards.json
	mv $(VENV)/cards.json agents/cards.json

docs: site/index.html  ## build the site (guide, environments, API reference) into site/, after a change of what it is made from

site/index.html: $(READY) $(SITE_SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	OMP_NUM_THREADS=1 NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	touch $@

serve: $(READY)  ## show the site at http://localhost:8000 and build it again after each edit in docs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	OMP_NUM_THREADS=1 NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --livereload --dev-addr localhost:8000

release: $(READY)  ## write the address and the date of a release: make release REPOSITORY=https://... DATE=2026-12-01
	$(BIN)/python -m website.commands.release $(REPOSITORY) $(DATE)
	$(MAKE) notebooks

lint: $(READY)  ## ruff, codespell and mypy
	$(BIN)/codespell cbo_gym agents website docs examples/*.py README.md CONTRIBUTING.md CHANGELOG.md --skip '*.png,*.gif,*.csv'
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## let ruff reformat
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove .venv and the small leaderboard's results
	rm -rf $(VENV) $(QUICK)
