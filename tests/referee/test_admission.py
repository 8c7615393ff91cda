"""What a results file says is data: no string in it becomes an object unless ``referee.admission`` accepts it."""

import ast
import re
from dataclasses import replace

import pytest

from cbo_gym import evaluate
from cbo_gym._util.yaml import Lines
from cbo_gym.agent_registry.admission import admit_agent
from cbo_gym.agent_registry.labels import import_paths
from cbo_gym.envs.registry import entries
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation import leaderboard, load_published, publish
from cbo_gym.evaluation.report.page import write_report
from cbo_gym.evaluation.runs.results import name_of, save_run
from cbo_gym.referee.admission import admit_env
from cbo_gym.referee.replay import replays
from cbo_gym.referee.submission import check_submission
from cbo_gym.study.files import read_arguments
from cbo_gym.study.study import describe
from tests.support.sources import package_sources

#: what makes an object of a string, and the modules that may use it, each with the caller's own strings or with those
#: that ``referee.admission`` accepted
MAKERS = {
    "importlib.import_module": "_util.lazy agent_registry.finding agents.baselines.learned_graph agents.choice.auto "
    "evaluation.play.players modes problems.build",
    "builtins.exec": "scm.straight_line",
    "builtins.eval": "scm.formula",
    "ast.literal_eval": "agent_registry.labels",
    "pickle.loads": "_util.processes.serving study.page.agent_pool",
    "cloudpickle.loads": "referee.player study.study",
    "pickle.Unpickler": "_util.agent_state",
    "gymnasium.make": "cli.environments envs.making",
    "agent_registry.finding:find_agent": "agent_registry.admission agent_registry.cards cli.checks "
    "evaluation.play.grid evaluation.runs.revisions referee.player study.suggesting",
    "agent_registry.finding:create_agent": "evaluation.play.grid referee.player",
    "envs.making:make_env": "cli.environments envs.tasks evaluation.play.grid evaluation.play.runner "
    "evaluation.runs.revisions integrations.opening testing",
    "problems.build:import_builder": "referee.admission",
    "problems.build:build_problem": "evaluation.report.curves modes problems.systems.contextual testing",
    "problems.build:load_problem": "",
    "evaluation.play.grid:plan": "cli.runs evaluation.play.sweep",
    "evaluation.play.grid:cell_of": "referee.admission",
    "evaluation.play.grid:facts_of": "referee.referee referee.replay",
    "evaluation.play.sweep:sweep": "cli.runs",
    "evaluation.play.runner:evaluate": "cli.runs evaluation.play.sweep",
    "evaluation.play.players:isolate": "evaluation.play.sweep",
    "referee.isolated:IsolatedAgent": "",
    "referee.admission:guarded_cells": "referee.referee referee.replay",
    "referee.admission:admit": "referee.referee referee.replay",
}


def dotted(node):
    """The name ``a.b.c`` that an expression is; empty if it is something else."""
    if isinstance(node, ast.Name):
        return node.id
    before = dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return before and f"{before}.{node.attr}"


def uses():
    """(module, what it uses) of every name in the package, by the module that defines it."""
    words = {name.rpartition(":")[2].rpartition(".")[2] for name in MAKERS}
    named = re.compile(rf"\b(?:{'|'.join(sorted(words))})\b")
    sources = {module: text for module, text in package_sources().items() if named.search(text)}
    names, nodes = {}, []
    for module, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                package = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                names |= {f"{module}.{alias.asname or alias.name}": f"{package}{alias.name}" for alias in node.names}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.setdefault(f"{module}.{node.name}", f"{module}:{node.name}")
            elif isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and node.attr in words):
                nodes.append((module, node))
    for module, node in nodes:
        if path := dotted(node):
            first, _, rest = path.partition(".")
            used = f"{names.get(f'{module}.{first}', f'builtins.{first}')}.{rest}".rstrip(".")
            while used in names:
                used = names[used]
            yield module.removeprefix("cbo_gym."), used.removeprefix("cbo_gym.")


def test_every_user_of_what_makes_objects_of_strings_is_known():
    found = {name: set() for name in MAKERS}
    for module, name in uses():
        if name in found and not name.startswith(f"{module}:"):
            found[name].add(module)
    assert found == {name: set(known.split()) for name, known in MAKERS.items()}


HOSTILE_AGENTS = [
    "subprocess:Popen(args=['touch', '{}'])", "os:mkdir(path='{}')", "pathlib:Path", "cbo_gym.agents:MCBO",
    "MCBO(beta='0.5')", "MCBO(beta=True)", "MCBO(gamma=1)", "StableBaselines3(tensorboard_log='{}')", "__main__:Mine",
    "*", "Rand*", "x" * 9_000, "A(" + "[" * 4_000 + "]" * 4_000 + ")", "A(b={{}: 1})".replace("{}", "[]"), "",
]  # fmt: skip
HOSTILE_ENVS = [
    "CBO/Custom-v0(problem='os:mkdir', path='{}')", "CBO/Alpine2-v0(problem='os:mkdir', path='{}')",
    "CBO/Custom-v0(problem='/etc/passwd.yaml')", "CBO/Alpine2-v0(mode='hard')", "CBO/Alpine2-v0(render_mode='ansi')",
    "CBO/Alpine2-v0(max_episode_steps=3)", "os:CartPole-v1", "CartPole-v1", "CBO/GPBandit1-v0(points='x')", "CBO/*", "",
    "CBO/Alpine2-v0(disable_env_checker=True)", "CBO/SSEMTanh-v0(activation=3)",
]  # fmt: skip


@pytest.fixture(scope="module")
def played():
    return evaluate("Random", "CBO/Dropwave-v0", 0, horizon=3)


@pytest.fixture(scope="module")
def store(played, tmp_path_factory):
    """Published runs with all these labels, and the path at which one of them would make a folder."""
    folder = tmp_path_factory.mktemp("hostile")
    mark = folder / "made"
    runs = [replace(played, agent=label.replace("{}", str(mark)), seed=n) for n, label in enumerate(HOSTILE_AGENTS)]
    runs += [replace(played, env=label.replace("{}", str(mark)), seed=n) for n, label in enumerate(HOSTILE_ENVS)]
    for run in runs:
        save_run(folder / "mine" / name_of(run), run)
    return publish(folder / "mine", folder / "store").path, mark


def test_no_label_of_a_file_is_carried_out(store, tmp_path):
    path, mark = store
    runs = load_published(path)
    found = list(replays(runs))
    assert len(found) == len(HOSTILE_AGENTS) + len(HOSTILE_ENVS)
    assert {one.verdict for one in found} == {"skipped"}
    write_report(leaderboard(runs[::3]), tmp_path / "report.html", formats=())
    (tmp_path / "card.yaml").write_text("agent: Random\nsuite: mcbo2023\npaper: p\ncode: c\ncontact: m\nhardware: h\n")
    assert check_submission(path, tmp_path / "card.yaml").problems
    assert not mark.exists()


def test_an_import_path_is_followed_where_it_is_named():
    label = "tests.support.agents:Centre"
    assert admit_agent(label, [label]).name == label
    with pytest.raises(ArgumentError, match=r"is not installed here.*--allow package\.module:Class"):
        admit_agent(label, ["tests.support.agents:Other", "tests.support.agents"])


def test_what_is_registered_is_let_in_with_the_parameters_that_are_declared():
    """All that is published is let in too, see the tests of the store."""
    for entry in entries():
        admit_env(entry.id)
    assert str(admit_agent("MCBO(beta=0.5)")) == "MCBO(beta=0.5)"
    assert admit_agent("cCBO(multi_task=True)")
    for admit, label, message in (
        (admit_agent, "MCBO(beta='0.5')", r"beta of the agent MCBO must be float \| None; given '0.5'"),
        (admit_agent, "StableBaselines3(tensorboard_log='x')", "given also 'tensorboard_log'"),
        (admit_env, "CBO/Alpine2-v0(problem='a:b')", "given also 'problem'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            admit(label)


ADMITTED = ["MCBO(beta=0.5)", "Random", "GP-UCB(beta=4)"]
REFUSED = [
    "StableBaselines3(tensorboard_log='{}')", "Random(x=1)", "MCBO(beta='0.5')", "Nobody", "os:mkdir(path='{}')",
    "mine:Keep", "a:b", "not a path:at all", "Random(x='os:mkdir')", ":", "a:", "C:\\agents",
]  # fmt: skip


@pytest.mark.parametrize("label", ADMITTED + REFUSED)
def test_results_and_studies_admit_the_same_labels(tmp_path, label):
    label = label.replace("{}", str(tmp_path / "made"))
    about = {"name": "n", "reward": "y", "diagram": "dag { x -> y }", "settable": {"x": [0, 1]}, "mode": "hard"}
    describe(**(about | {"agent": "Random"}))

    def admits(call):
        try:
            call()
        except ArgumentError:
            return False
        return True

    study = admits(lambda: read_arguments(lambda: ({**about, "agent": label}, Lines(None))))
    assert study == admits(lambda: admit_agent(label)) == (label in ADMITTED)
    assert not (tmp_path / "made").exists()


def test_only_import_paths_count_as_such():
    assert import_paths("mine:Keep(k=1)") == ["mine:Keep"]
    assert import_paths("CBO/Custom-v0(problem='my.module:build', x='12:30', y=':')") == ["my.module:build"]
    for label in ("Random", "Random(x='12:30')", "C:\\a", "a:1", ":", "1a:b", "a b:c", "CBO/Alpine2-v0", "x" * 20_000):
        assert import_paths(label) == []
