"""What imports what inside of the package: no cycles, and every arrow leads down or sideways."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

import cbo_gym

ROOT = Path(cbo_gym.__file__).parent  # agents lie in it by a link
FACADES = ("cbo_gym", "cbo_gym.agents")  # lead to everything, when it is first asked for

#: From the bottom up; packages and modules with all in them that has no layer of its own. Those of one layer may import
#: each other.
LAYERS = (
    (
        "arguments", "channel", "closed", "drawing", "errors", "files", "fronts", "labels", "later", "progress",
        "seal", "seed_ranges", "sums", "validation", "version", "yaml_files",
    ),
    ("actions", "scm"),
    ("task",),
    ("plain",),
    ("agent_state",),
    ("agent",),
    ("problems.outcomes",),
    ("problems.base",),
    ("problems.modes",),
    ("problems.variations",),
    ("problems.own",),
    ("problems.build",),
    ("problems.systems",),
    ("problems",),
    ("registry",),
    ("feedback",),
    ("envs", "oracle"),
    ("wrappers",),
    ("sb3",),
    ("agents.toolbox",),
    ("agents.surrogates.gp",),
    ("agents.surrogates.protocols",),
    ("agents.surrogates.causal",),
    ("agents.black_box", "agents.intervention_sets"),
    ("agents",),
    ("agent_finder",),
    ("agent_cards",),
    ("player",),
    ("specs", "suites"),
    ("exchange",),
    ("evaluation.runs",),
    ("evaluation.metrics",),
    ("evaluation.store", "evaluation.compare"),
    ("evaluation.play", "evaluation.report"),
    ("evaluation.verify",),
    ("evaluation",),
    ("study",),
    ("testing", "cli", "notebook", "__main__"),
)  # fmt: skip
#: Agents know what the task tells and how to read it; of systems, problems and environments they know nothing.
OPEN_TO_AGENTS = (
    "arguments", "errors", "actions", "sums", "fronts", "task", "agent", "agent_state", "agents",
    "scm.diagram", "scm.linear", "scm.noise", "scm.scopes", "scm.components", "scm.values",
)  # fmt: skip


def sources(root: Path, name: str) -> dict[str, str]:
    """The source texts of a package's modules, by name; folders that are links included."""
    found = {}
    for folder, _, files in os.walk(root, followlinks=True):
        for path in (Path(folder, file) for file in files if file.endswith(".py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join((name, *(part for part in parts if part != "__init__")))] = path.read_text(encoding="utf-8")
    return found


@cache
def imports_of(text: str) -> frozenset[tuple[str, str | None]]:
    """What a source text imports, at any depth: ``(module, name or None)``."""
    found: set[tuple[str, str | None]] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found.update((str(node.module), alias.name) for alias in node.names)
    return frozenset(found)


def import_graph(texts: Mapping[str, str]) -> nx.DiGraph:
    """Modules, and an arrow to each module of theirs that they import."""
    graph = nx.DiGraph()
    graph.add_nodes_from(texts)
    for importer, text in texts.items():
        for module, name in imports_of(text):
            inner = f"{module}.{name}"
            if (target := inner if inner in texts else module) in texts:
                graph.add_edge(importer, target)
            else:
                assert module.split(".")[0] not in {known.split(".")[0] for known in texts}, f"no module {module}"
    return graph


def without_facades(graph: nx.DiGraph) -> nx.DiGraph:
    """The graph less what the facades import."""
    kept = graph.copy()
    kept.remove_edges_from([edge for edge in graph.edges if edge[0] in FACADES])
    return kept


def within(name: str, prefixes: Iterable[str]) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


@cache
def layer_of(module: str) -> int:
    inner = module.removeprefix("cbo_gym.")
    heights = {name: height for height, names in enumerate(LAYERS) for name in names if within(inner, [name])}
    return heights[max(heights, key=len)]


def upward(graph: nx.DiGraph) -> list[tuple[str, str]]:
    """Arrows that lead up in the layers, or from the agents to what is closed to them."""
    wrong = []
    for importer, imported in sorted(graph.edges):
        if importer in FACADES:
            continue
        closed = within(importer, ["cbo_gym.agents"]) and not within(imported.removeprefix("cbo_gym."), OPEN_TO_AGENTS)
        if imported == "cbo_gym" or closed or layer_of(imported) > layer_of(importer):
            wrong.append((importer, imported))
    return wrong


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return sources(ROOT, "cbo_gym")


@pytest.fixture(scope="module")
def there_already(texts: dict[str, str]) -> list[tuple[str, str]]:
    return upward(import_graph(texts))


def test_every_module_is_seen_and_has_one_layer(texts: dict[str, str]) -> None:
    seen = {"cbo_gym", "cbo_gym.scm.scopes.policy_scopes", "cbo_gym.agents.networks.mcbo", "cbo_gym.agents.zoo"}
    assert seen <= set(texts)
    assert import_graph(texts).number_of_edges() > 300
    assert all(0 <= layer_of(module) < len(LAYERS) for module in texts if module != "cbo_gym")


def test_there_is_no_cycle(texts: dict[str, str]) -> None:
    cycles = [sorted(part) for part in nx.strongly_connected_components(without_facades(import_graph(texts)))]
    assert [part for part in cycles if len(part) > 1] == []


def test_every_arrow_leads_down_or_sideways(there_already: list[tuple[str, str]]) -> None:
    assert there_already == []


@pytest.mark.parametrize(
    ("module", "statement"),
    [
        ("cbo_gym.scm.noise", "def late():\n    from cbo_gym.scm import model"),
        ("cbo_gym.errors", "if TYPE_CHECKING:\n    from cbo_gym.files import write_text"),
        ("cbo_gym.actions.spaces", "import cbo_gym.actions.codec as codec"),
    ],
)
def test_a_planted_cycle_is_found(texts: dict[str, str], module: str, statement: str) -> None:
    planted = {**texts, module: f"{texts[module]}\n{statement}\n"}
    if module == "cbo_gym.errors":
        planted["cbo_gym.files"] += "\nfrom cbo_gym.errors import ArgumentError\n"
    parts = nx.strongly_connected_components(without_facades(import_graph(planted)))
    (cycle,) = (part for part in parts if len(part) > 1)
    assert module in cycle


LATE = "def late():\n    from cbo_gym.oracle import plain"


@pytest.mark.parametrize(
    ("module", "statement", "target"),
    [
        ("cbo_gym.task", "from cbo_gym.oracle import Oracle", "cbo_gym.oracle"),
        ("cbo_gym.scm.noise", "if TYPE_CHECKING:\n    import cbo_gym.problems.base", "cbo_gym.problems.base"),
        ("cbo_gym.feedback.soft", "from cbo_gym.envs import scalar", "cbo_gym.envs.scalar"),
        ("cbo_gym.envs.scalar", "from cbo_gym import Task", "cbo_gym"),
        ("cbo_gym.cli", "import cbo_gym", "cbo_gym"),
        ("cbo_gym.wrappers", "from cbo_gym.agents import MCBO", "cbo_gym.agents"),
        ("cbo_gym.agents.networks.mcbo", "from cbo_gym.problems import Problem", "cbo_gym.problems"),
        ("cbo_gym.agents.networks.mcbo", "from cbo_gym.scm import model", "cbo_gym.scm.model"),
        ("cbo_gym.agents.networks.mcbo", "from cbo_gym.scm import Linear", "cbo_gym.scm"),
        ("cbo_gym.agents.toolbox.features", LATE, "cbo_gym.oracle.plain"),
        (
            "cbo_gym.agents.surrogates.gp.model",
            "from cbo_gym.agents.networks import mcbo",
            "cbo_gym.agents.networks.mcbo",
        ),
        (
            "cbo_gym.evaluation.runs.results",
            "from cbo_gym.evaluation.report import page",
            "cbo_gym.evaluation.report.page",
        ),
        ("cbo_gym.problems.base", "from cbo_gym.problems.systems import ssem", "cbo_gym.problems.systems.ssem"),
    ],
)
def test_a_planted_arrow_that_leads_up_is_found(
    texts: dict[str, str], there_already: list[tuple[str, str]], module: str, statement: str, target: str
) -> None:
    planted = {**texts, module: f"{texts[module]}\n{statement}\n"}
    assert set(upward(import_graph(planted))) - set(there_already) == {(module, target)}


def test_an_import_of_what_is_not_there_is_found() -> None:
    with pytest.raises(AssertionError, match=r"no module cbo_gym\.gone"):
        import_graph({"cbo_gym": "", "cbo_gym.task": "from cbo_gym.gone import thing"})
    with pytest.raises(AssertionError, match="absolute"):
        import_graph({"cbo_gym.task": "from . import errors"})


def test_importing_is_light() -> None:
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
