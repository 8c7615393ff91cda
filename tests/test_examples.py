import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.support.sources import script_facts

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted([*(ROOT / "examples").glob("*.py"), *(ROOT / "examples" / "studies").glob("*.py")])
#: examples of their kind that take longest, even if they are quick; fits that the tests of their problems make too, and
#: training that a page of the guide does
LONG = (
    "dosing",
    "fermenter",
    "fit_chemostat",
    "fit_train_delay",
    "outside_optimisers",
    "reproduce_cbo_mw",
    "reproduce_coca_bo",
    "reproduce_discrete_bandits",
    "reproduce_excbo",
    "reproduce_gpoo",
    "reproduce_mcbo",
    "reproduce_ssem",
    "side_by_side",
    "submit_results",
    "train_sb3",
    "trained_policies",
)


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in LONG)) for path in EXAMPLES]
)
@pytest.mark.usefixtures("coarse_search")
def test_examples_run(path, tmp_path, monkeypatch, capsys):
    """In this process: importing everything takes most scripts longer than their work."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(path.parent)
    monkeypatch.setattr(sys, "argv", [str(path), "--quick"])
    status = 0
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        status = end.code
    assert not status
    assert capsys.readouterr().out.strip()


def test_a_package_of_its_own_is_found_by_its_entry_point(tmp_path):
    package = ROOT / "examples" / "outside_package"
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    (tmp_path / "cbo_hill").symlink_to(package / "cbo_hill")
    installed = tmp_path / "cbo_hill-0.1.0.dist-info"  # what an installation leaves behind
    installed.mkdir()
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1.0\n")
    ((group, points),) = project["entry-points"].items()
    listed = "".join(f"{name} = {path}\n" for name, path in points.items())
    (installed / "entry_points.txt").write_text(f"[{group}]\n{listed}")
    code = (
        "from cbo_gym import evaluate; from cbo_gym.agent_registry.finding import known_agents;"
        "assert 'HillClimber' in known_agents();"
        "print(evaluate('HillClimber(first=0.2)', 'CBO/Rosenbrock-v0', 0, horizon=60).table['expected_reward'][-1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > -200.0  # a random action earns about -2,000


def test_the_catalogue_names_every_environment_and_agent():
    from cbo_gym.agent_registry.finding import known_agents
    from cbo_gym.envs.registry import entries

    content = (ROOT / "docs" / "guide" / "catalogue.md").read_text()
    assert [name for name in known_agents() if f"`{name}`" not in content] == []
    bases = {re.sub(r"(-[A-Za-z]+)*(-v\d+)$", r"\2", entry.id) for entry in entries()}
    assert [base for base in bases if f"`{base}`" not in content] == []


def test_the_guide_lists_every_script_with_its_lines():
    page = (ROOT / "docs" / "guide" / "libraries.md").read_text(encoding="utf-8")
    for script in sorted((ROOT / "tests" / "trials" / "libraries").glob("*.py")):
        assert "| {} | {} | {} |".format(*script_facts(script)) in page, script.name


def test_the_makefile_names_registered_environments():
    from cbo_gym.envs.registry import find_entry

    named = re.findall(r"CBO/[\w-]+", (ROOT / "Makefile").read_text())
    assert [env for env in named if find_entry(env) is None] == []


def test_the_service_has_thirty_arms_of_which_the_diagram_leaves_six():
    from cbo_gym.scm import CausalDiagram
    from cbo_gym.scm.scopes import pomis

    described = yaml.safe_load((ROOT / "examples" / "studies" / "service.yaml").read_text(encoding="utf-8"))
    diagram = CausalDiagram.from_dagitty(described["diagram"])
    sets = pomis(diagram, described["reward"], set().union(*described["arms"]))
    assert len(described["arms"]) == len({frozenset(arm.items()) for arm in described["arms"]}) == 30
    assert sum(frozenset(arm) in sets for arm in described["arms"]) == 6


def test_the_services_expected_margins_are_those_of_many_visits(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples" / "studies")
    service = runpy.run_path(str(ROOT / "examples" / "studies" / "service.py"))
    for arm in ({}, {"layout": 1.0}, {"discount": 10.0}, {"chat": 1.0, "layout": 0.0}):
        shop = service["Service"](100)
        margins = [shop.visit(**arm)["margin"] for _ in range(10_000)]
        assert abs(sum(margins) / 10_000 - service["expected_margin"](arm)) < 0.02  # five standard errors


@pytest.mark.parametrize("name", ["fermenter", "dosing", "service"])
def test_a_tutorial_shows_the_files_of_its_example(name):
    page = (ROOT / "docs" / "tutorials" / f"study_{name}.md").read_text(encoding="utf-8")
    for kind in ("yaml", "csv"):
        content = (ROOT / "examples" / "studies" / f"{name}.{kind}").read_text(encoding="utf-8")
        assert f'```{kind} title="{name}.{kind}"\n{content}```\n' in page
