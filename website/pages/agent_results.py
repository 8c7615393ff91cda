"""Cost and results on the agents' pages: the runs, and their table ``docs/data/agents.csv``.

``make agent-results`` plays every agent on the environments below and publishes the runs, which takes half an hour on
two cores; ``make agent-results AGENT=NAME`` plays one agent. ``make readme`` writes the table from the published runs.
"""

from collections import defaultdict
from dataclasses import dataclass, fields
from functools import cache
from typing import NamedTuple

import polars as pl

from cbo_gym import sweep
from cbo_gym._util.files import write_text
from cbo_gym.agent_registry.finding import known_agents
from cbo_gym.agent_registry.labels import bare_name
from cbo_gym.evaluation import Leaderboard, leaderboard, load_published
from cbo_gym.evaluation.claims.tables import RunsByFile
from cbo_gym.evaluation.comparison.provenance import provenance as provenance_of
from cbo_gym.evaluation.metrics.aggregate import MIN_SEEDS, t_factor
from cbo_gym.evaluation.runs.counted import newest
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.seed_ranges import PUBLICATION
from website.common.paths import DOCS, ROOT
from website.common.svg import light_and_dark
from website.pages.choice_evidence import on_publication_seeds, published_runs
from website.papers.figures import curves_svg

RESULTS = DOCS / "data" / "agents.csv"
SUITE = "agents"  # file of the published results
SEEDS = range(PUBLICATION.start, PUBLICATION.start + 3)
ROUNDS = 50
PANELS = 3
ENVS = (
    *("CBO/Dropwave-v0", "CBO/Alpine2-v0", "CBO/Rosenbrock-v0", "CBO/Ackley-v0", "CBO/PSAGraph-Cost-v0"),
    *("CBO/ToyGraph-v0", "CBO/ToyGraph-v0(graph='hidden')", "CBO/PSAGraph-v0", "CBO/CompleteGraph-v0"),
    *("CBO/GPBandit1-v0", "CBO/GPBandit2-v0", "CBO/GPBandit3-v0", "CBO/CCBOSynthetic2-v0", "CBO/DCBOStat-v0"),
    *("CBO/CoCaFig1-v0", "CBO/CoCaAligned-v0", "CBO/PSAContextual2-v0", "CBO/SSEMPeriodic-v0", "CBO/SSEMTanh-v1"),
    *("CBO/IVBandit-v0", "CBO/ParallelBandit-v0", "CBO/Dropwave-Penny-v0", "CBO/Alpine2-Perturb-v0"),
    *("CBO/LinearSEMHierarchical5-v0", "CBO/GPs1-v0", "CBO/ShiftTarget5-v0"),
)


@dataclass(frozen=True)
class Result:
    """Results of an agent on an environment: means over seeds, which are too few for intervals and ranks."""

    mode: str
    env: str
    agent: str
    score: float
    average_score: float
    seconds: float

    @property
    def short(self) -> str:
        """The environment with its keywords: ``ToyGraph-v0(graph='hidden')``."""
        return self.env.rpartition(", T=")[0].removeprefix("CBO/")

    @property
    def id(self) -> str:
        """The registered id: ``CBO/ToyGraph-v0``."""
        return f"CBO/{bare_name(self.short)}"


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.0f}" if seconds > 0.01 else f"{1e3 * seconds:.2g}"


@cache
def results() -> list[Result]:
    """Return the rows of :data:`RESULTS`."""
    rows = pl.read_csv(RESULTS, comment_prefix="#", infer_schema_length=None)
    return [Result(**row) for row in rows.iter_rows(named=True)]


class Score(NamedTuple):
    """Mean score of the recommendation after the last of some rounds, with half its 95 % interval."""

    agent: str
    rounds: int
    seeds: int
    score: float
    half: float
    seconds: float


@cache
def ranking() -> dict[str, list[Score]]:
    """Return id of an environment -> agents with enough published seeds on it, by descending score.

    If runs differ in their number of rounds, the number that most agents played counts; of several, the largest.
    """
    runs = published_runs(for_publication=True)
    means = runs.group_by("env", "rounds", "agent").agg(
        pl.len().alias("seeds"), pl.mean("score"), pl.std("score").alias("half"), pl.mean("seconds")
    )
    means = means.filter(pl.col("seeds") >= MIN_SEEDS)
    means = means.with_columns(pl.col("half") * pl.Series(t_factor(means["seeds"].to_numpy())))
    most = means.group_by("env", "rounds").agg(pl.len().alias("agents")).sort("agents", "rounds").group_by("env").last()
    chosen = means.join(most, on=["env", "rounds"], how="semi").sort(-pl.col("score"), "agent")
    ranked: dict[str, list[Score]] = defaultdict(list)
    for row in chosen.iter_rows(named=True):
        ranked[row["env"]].append(Score(**{name: row[name] for name in Score._fields}))
    return dict(ranked)


def curves(runs_by_file: RunsByFile) -> dict[str, str]:
    """Return pictures, by their addresses, of the regret of each agent, of Random and of the best other agent.

    A picture has a panel for each of the :data:`PANELS` environments, at most, that most agents have played.
    """
    played: dict[tuple[str, str, int], list[Run]] = defaultdict(list)
    for run in newest(run for runs in runs_by_file.values() for run in runs if on_publication_seeds(run)):
        if run.status == "finished" and not run.unverified:
            played[run.agent, run.env, run.horizon].append(run)
    pictures = {}
    for agent in known_agents():
        cells = {}
        ranked = {env: scores for env, scores in ranking().items() if agent in {score.agent for score in scores}}
        for env in sorted(ranked, key=lambda env: (-len(ranked[env]), env))[:PANELS]:
            best = next((score.agent for score in ranked[env] if score.agent not in (agent, "Random")), agent)
            for name in (agent, best, "Random"):
                cells[name, env] = played[name, env, ranked[env][0].rounds]
        if cells:
            svg = curves_svg(cells, "average_regret", "Average regret over the rounds so far", {}, {})
            pictures |= light_and_dark(f"agents/pictures/{agent}", svg)
    return pictures


def provenance() -> str:
    """Return the source of the results: the first line of :data:`RESULTS`."""
    return RESULTS.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def play(agent: str = "") -> None:
    """Play every agent, or one, on every environment; runs that exist are kept."""
    sweep([agent] if agent else list(known_agents()), list(ENVS), list(SEEDS), ROOT / "runs" / "agents", horizon=ROUNDS)


def csv_of_board(board: Leaderboard) -> str:
    """Return the content of the file for a leaderboard."""
    columns = [field.name for field in fields(Result)]
    rows = board.per_env.select(columns).filter(pl.col("score").is_not_null()).sort("mode", "env", "agent")
    return f"# {provenance_of(board)}\n{rows.write_csv(float_precision=6)}"


def write() -> None:
    """Write the file from the published runs of :func:`play`."""
    write_text(RESULTS, csv_of_board(leaderboard(load_published(suite=SUITE))))
