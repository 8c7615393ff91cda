"""What imports what inside of the package: the contracts in pyproject.toml, no cycles, and what an import loads."""

import subprocess
import sys

import grimp
import networkx as nx
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


def test_importing_is_light():
    """In one process, the lightest first; each leaves what the next one finds."""
    heavy = ["torch", "matplotlib", "scipy"]
    lightest = [*heavy, "networkx", "pydantic", "yaml", "polars"]
    allowed = {
        "import cbo_gym": lightest,
        "import cbo_gym.agents": lightest,
        "import cbo_gym.evaluation": heavy,
        "from cbo_gym.cli.completion import agent_names, env_ids; agent_names(''), env_ids('')": heavy,
    }
    lines = [f"{statement}\nprint([m for m in {banned} if m in sys.modules])" for statement, banned in allowed.items()]
    code = "\n".join(["import sys", *lines])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]"] * len(allowed)
