"""What imports what inside of the package: the contracts in pyproject.toml, no cycles, and what an import loads."""

import ast
import subprocess
import sys
from pathlib import Path

import grimp
import networkx as nx
import pytest
from importlinter import cli, configuration


def test_the_contracts_on_imports_are_kept(capsys):
    configuration.configure()
    assert cli.lint_imports(no_cache=True) == cli.EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_there_is_no_cycle_of_modules():
    package = grimp.build_graph("cbo_gym", cache_dir=None)
    assert "cbo_gym.agents.networks.mcbo" in package.modules  # agents lie in it by a link
    lazy = {"cbo_gym", "cbo_gym.agents"}
    graph = nx.DiGraph(
        (one, other) for one in package.modules - lazy for other in package.find_modules_directly_imported_by(one)
    )
    assert [part for part in nx.strongly_connected_components(graph) if len(part) > 1] == []


LIST_AGENTS = """
import contextlib, io
from cbo_gym.cli import app
with contextlib.redirect_stdout(io.StringIO()):
    app(["agents"], standalone_mode=False)
"""


def test_importing_is_light():
    """In one process, the lightest first; each leaves what the next one finds."""
    heavy = ["torch", "matplotlib", "scipy"]
    lightest = [*heavy, "networkx", "pydantic", "yaml", "polars"]
    allowed = {
        "import cbo_gym": lightest,
        "import cbo_gym.agents": lightest,
        "cbo_gym.agents.Random": ["torch"],
        "import cbo_gym.evaluation": heavy,
        "from cbo_gym.cli.completion import agent_names, env_ids; agent_names(''), env_ids('')": heavy,
        LIST_AGENTS: ["torch"],
    }
    lines = [f"{statement}\nprint([m for m in {banned} if m in sys.modules])" for statement, banned in allowed.items()]
    code = "\n".join(["import sys", *lines])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]"] * len(allowed)


@pytest.mark.parametrize("first", ["evaluate('Auto', 'CBO/Dropwave-v0', seed=100, horizon=1)", "agents.MCBO()"])
def test_nothing_is_imported_with_a_warning(first):
    code = f"from cbo_gym import agents, evaluate\n{first}\nfrom cbo_gym import *"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


#: names of protocols and of libraries that begin with an underscore
UNDERSCORED = ("_C", "_exit", "_getframe", "_replace", "_repr_html_", "_repr_svg_", "_simulate", "_util")


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and name not in UNDERSCORED


def test_tests_use_public_names_and_share_code_in_support_alone():
    wrong = []
    # Agents that attack read what is private.
    paths = [path for path in Path(__file__).parent.rglob("*.py") if path.stem != "intruders"]
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = [alias.name for alias in node.names if is_private(alias.name)]
                names += [node.module] * (node.module.startswith("tests.") and ".test_" in node.module)
            else:
                private = isinstance(node, ast.Attribute) and is_private(node.attr)
                names = [node.attr] if private and getattr(node.value, "id", "") not in ("self", "cls") else []
            wrong += [f"{path.name}, line {node.lineno}: {name}" for name in names]
    assert wrong == []
