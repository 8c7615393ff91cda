import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted([*(ROOT / "examples").glob("*.py"), *(ROOT / "examples" / "studies").glob("*.py")])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path, tmp_path, monkeypatch, capsys):
    """As a script does, but in this process: to import everything anew takes most of them longer than what they do."""
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
        "from cbo_gym import evaluate; from cbo_gym.specs import known_agents;"
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
    from cbo_gym.registry import entries
    from cbo_gym.specs import known_agents

    text = (ROOT / "docs" / "guide" / "catalogue.md").read_text()
    assert [name for name in known_agents() if f"`{name}`" not in text] == []
    bases = {re.sub(r"(-[A-Za-z]+)*(-v\d+)$", r"\2", entry.id) for entry in entries()}
    assert [base for base in bases if f"`{base}`" not in text] == []


def test_the_makefile_names_registered_environments():
    from cbo_gym.registry import find_entry

    named = re.findall(r"CBO/[\w-]+", (ROOT / "Makefile").read_text())
    assert [env for env in named if find_entry(env) is None] == []
