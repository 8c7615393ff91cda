"""The README's sweep and the two tables that are written from code and results.

``make results`` plays the tasks below into ``runs/showcase`` and publishes the runs; ``make readme`` writes into the
README the table of the modes and, from the published results, the table of scores. Every mode has an entry in
:data:`MODES`: a mode without an entry is an error, so that a new mode is not forgotten.
"""

from collections import defaultdict
from typing import NamedTuple

import polars as pl

from cbo_gym import sweep
from cbo_gym._util.files import write_text
from cbo_gym.agent_registry.finding import find_agent, modes_of
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.evaluation import Leaderboard, leaderboard, load_published
from cbo_gym.evaluation.report.markdown import with_part
from cbo_gym.evaluation.report.tables import MISSING
from cbo_gym.evaluation.seed_ranges import PUBLICATION
from cbo_gym.task import Mode
from website.common.markdown import ALL, table
from website.common.paths import ROOT

README = ROOT / "README.md"
RUNS = ROOT / "runs" / "showcase"
SUITE = "showcase"
AGENTS = ("Auto", "GP-UCB", "Optuna", "Random")
SEEDS = range(PUBLICATION.start, PUBLICATION.start + 10)
MAX_AGENTS = 4  # number of agents of a mode that the table of modes names


class Example(NamedTuple):
    """How the README introduces a mode.

    Attributes:
        action: an action, in words.
        feedback: the feedback, in words.
        env: the mode's example, which is played.
        rounds: number of rounds.
    """

    action: str
    feedback: str
    env: str
    rounds: int


#: Rounds are those after which methods differ, and in contextual mode those that learning a policy takes.
MODES = {
    Mode.SOFT: Example("parameters of the mechanisms", "all nodes", "CBO/Alpine2-v0", 50),
    Mode.HARD: Example("`do(X = x)` on a set of variables", "all nodes", "CBO/ToyGraph-v0", 50),
    Mode.CONTEXTUAL: Example("`do(X = x)`, after seeing a context", "all nodes", "CBO/CoCaAligned-v0", 100),
    Mode.AGGREGATED: Example("a cell of the parameters", "means over the cell", "CBO/GPBandit1-v0", 50),
    Mode.MASKED: Example("which random signals to select", "nodes and signals", "CBO/SSEMPeriodic-v1", 50),
    Mode.DISCRETE: Example("one of finitely many `do(X = x)`", "all nodes", "CBO/XYZWBandit-v0", 100),
    Mode.ADVERSARIAL: Example(
        "parameters, against a second player", "nodes, that player's move", "CBO/Dropwave-Penny-v0", 50
    ),
    Mode.DYNAMIC: Example("`do(X = x)` in a time slice", "nodes of the slice", "CBO/DCBOStat-v0", 30),
    Mode.PARTIAL: Example("a node to buy", "its value", "CBO/GPs1-v0", 60),
    Mode.SUBSET: Example("a subset of the nodes", "all nodes", "CBO/LinearSEMHierarchical5-v0", 100),
}


def play() -> None:
    """Play every task, the quickest first; runs that exist are kept."""
    for example in reversed(MODES.values()):
        sweep(AGENTS, example.env, list(SEEDS), RUNS, horizon=example.rounds, recommend="end")


def modes_table() -> str:
    """Return a row for each feedback mode, with its own agents in the order of the zoo."""
    agents: dict[Mode, list[str]] = defaultdict(list)
    for name in zoo():
        modes = modes_of(find_agent(name))
        if len(modes) < len(Mode):
            for mode in modes:
                agents[Mode(mode)].append(name)
    rows = [(mode, *example[:2], f"`{example.env}`", _shorten(agents[mode])) for mode, example in MODES.items()]
    return table(["mode", "an action is", "what comes back", "for example", "its agents"], rows, left=ALL) + "\n"


def _shorten(names: list[str]) -> str:
    more = f" and {len(names) - MAX_AGENTS} more" if len(names) > MAX_AGENTS + 1 else ""
    return ", ".join(names[:MAX_AGENTS] if more else names) + more


def scores_table(board: Leaderboard) -> str:
    """Return a row for each task with published runs: the scores of the final recommendations, the best in bold."""
    cells = {(row["env"], row["agent"]): row for row in board.per_env.filter(pl.col("score").is_not_null()).to_dicts()}
    rows = []
    for mode, example in MODES.items():
        label = f"{example.env}, T={example.rounds}"
        rows_of_env = {agent: cells[label, agent] for agent in AGENTS if (label, agent) in cells}
        if not rows_of_env:
            continue
        best = max(row["score"] for row in rows_of_env.values())
        scores = [_score(rows_of_env.get(agent), best) for agent in AGENTS]
        rows.append((mode, example.env.removeprefix("CBO/"), str(example.rounds), *scores))
    return table(["mode", "task", "rounds", *AGENTS], rows, left=2) + "\n"


def _score(row: dict[str, float] | None, best: float) -> str:
    if row is None:
        return MISSING
    half = row["score_half"]
    score = f"{row['score']:.2f}" + ("" if half is None else f" ± {half:.2f}")
    return f"**{score}**" if f"{row['score']:.2f}" == f"{best:.2f}" else score


def write() -> None:
    """Write both tables into the README, the scores from the published runs of :func:`play`."""
    scores = scores_table(leaderboard(load_published(suite=SUITE)))
    for name, content in {"modes": modes_table(), "results": scores}.items():
        write_text(README, with_part(README, name, content))
